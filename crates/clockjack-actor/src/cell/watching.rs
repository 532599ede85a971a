//! Death watch: who watches whom, and children that have stopped.

use alloc::{boxed::Box, vec::Vec};
use core::any::Any;

use clockjack_exec::Pid;

use super::{
    AnyPoll, CellState, CellStatus, CellVTable, PENDING, PendingSignal, UntypedRareState, Watch,
    lifecycle::drop_reported,
};
use crate::{
    Actor, ActorError, ActorPath, Signal, Terminated,
    cell::header::{AnyActor, SystemSend},
    error::ActorErrorKind,
    mailbox::system_queue::{InternalMessage, ParentLink, PreallocatedNode},
};

impl PendingSignal {
    /// The pid of the actor whose termination this reports.
    pub(super) fn stopped_pid(&self) -> Option<Pid> {
        match self {
            Self::Signal(Signal::Terminated(end)) => Some(end.pid),
            Self::Signal(_) => None,
            Self::Message(pid, _) => Some(*pid),
        }
    }
}

impl<A: Actor> CellState<A> {
    /// Starts to watch, with a signal or with a message.
    pub(crate) fn watch(
        &mut self,
        poll: &AnyPoll<'_>,
        who: &AnyActor,
        message: Option<A::Msg>,
    ) -> Result<(), ActorError<Option<A::Msg>>> {
        self.rare();
        let Self { status, rare: Some(rare), .. } = self else { return Ok(()) };
        match message {
            Some(message) if rare.is_watching(who) => Err(ActorError::new(
                ActorErrorKind::AlreadyWatched(who.path.clone()),
                Some(message),
            )),
            message => {
                let message = message.map(|message| -> Box<dyn Any> { Box::new(message) });
                let refused = rare.watch(status, poll, who, message);
                refused.map_err(|path| ActorError::new(ActorErrorKind::AlreadyWatched(path), None))
            }
        }
    }

    /// Stops watching; a notification that has already arrived is removed.
    pub(crate) fn unwatch(&mut self, poll: &AnyPoll<'_>, who: &AnyActor) {
        if let Some(rare) = &mut self.rare {
            rare.unwatch(poll, who);
        }
    }
}

impl UntypedRareState {
    /// Whether the actor watches another one.
    fn is_watching(&self, who: &AnyActor) -> bool {
        self.watching.contains_key(&who.pid())
    }

    /// Starts to watch. Refused, with the path, if the actor is already watched in another way.
    fn watch(
        &mut self,
        status: &mut CellStatus,
        poll: &AnyPoll<'_>,
        who: &AnyActor,
        message: Option<Box<dyn Any>>,
    ) -> Result<(), ActorPath> {
        let pid = who.pid();
        if let Some(watch) = self.watching.get(&pid) {
            let is_other = watch.is_by_message || message.is_some();
            return if is_other { Err(who.path.clone()) } else { Ok(()) };
        }
        let is_by_message = message.is_some();
        let watch = Watch { message, is_by_message, is_terminated: false, node: None };
        self.watching.insert(pid, watch);
        if is_child(poll, who, Some(true)) {
            // The stop of a child is reported anyway.
            return Ok(());
        }
        if who.send_internal(InternalMessage::Watch { watcher: poll.self_ref() }).is_err() {
            self.queue_terminated(status, Terminated::new(pid, who.path.clone(), None));
        } else if let Some(watch) = self.watching.get_mut(&pid) {
            watch.node = Some(PreallocatedNode::new());
        }
        Ok(())
    }

    fn unwatch(&mut self, poll: &AnyPoll<'_>, who: &AnyActor) {
        let pid = who.pid();
        let Some(watch) = self.watching.remove(&pid) else { return };
        if watch.is_terminated {
            self.signals.retain(|pending| pending.stopped_pid() != Some(pid));
            return;
        }
        if !is_child(poll, who, Some(false)) {
            let node = watch.node.unwrap_or_else(PreallocatedNode::new);
            drop(who.send_internal_in(node, InternalMessage::Unwatch { watcher: poll.pid() }));
        }
    }

    /// Removes a watch whose notification a test delivers by hand; returns the message that
    /// replaces the signal.
    pub(crate) fn take_watch(&mut self, who: Pid) -> Option<Box<dyn Any>> {
        let watch = self.watching.remove(&who)?;
        if !watch.is_terminated {
            return watch.message;
        }
        let at = self.signals.iter().position(|pending| pending.stopped_pid() == Some(who))?;
        match self.signals.remove(at)? {
            PendingSignal::Message(_, message) => Some(message),
            PendingSignal::Signal(_) => None,
        }
    }

    /// Queues the notification that a watched actor has stopped, if it is still watched. The watch
    /// ends only when the notification is handled, so watching again before that does not cause a
    /// second notification.
    fn queue_terminated(&mut self, status: &mut CellStatus, end: Terminated) {
        let Some(watch) = self.watching.get_mut(&end.pid) else { return };
        if core::mem::replace(&mut watch.is_terminated, true) {
            return;
        }
        self.signals.push_back(match watch.message.take() {
            Some(message) => PendingSignal::Message(end.pid, message),
            None => PendingSignal::Signal(Signal::Terminated(end)),
        });
        status.set(PENDING, true);
    }
}

/// Whether it is a current child; sets whether it is watched.
fn is_child(poll: &AnyPoll<'_>, who: &AnyActor, is_watched: Option<bool>) -> bool {
    let Some(children) = poll.shared().children() else { return false };
    children.with(|children| match children.entry_of(who) {
        Some(entry) => {
            entry.is_watched = is_watched.unwrap_or(entry.is_watched);
            true
        }
        None => false,
    })
}

impl dyn CellVTable + '_ {
    /// A host has requested a watch.
    pub(super) fn watch(&mut self, poll: &AnyPoll<'_>, who: &AnyActor) {
        let (status, rare) = self.status_and_rare();
        // If the actor is watched already, nothing changes.
        drop(rare.watch(status, poll, who, None));
    }

    /// A host has requested an unwatch.
    pub(super) fn unwatch(&mut self, poll: &AnyPoll<'_>, who: &AnyActor) {
        if let Some(rare) = self.rare_mut() {
            rare.unwatch(poll, who);
        }
    }

    /// Queues the notification that a watched actor has stopped, if it is still watched.
    pub(super) fn queue_terminated(&mut self, end: Terminated) {
        let (status, rare) = self.status_and_rare();
        rare.queue_terminated(status, end);
    }

    /// A child has stopped and is removed.
    pub(super) fn child_stopped(&mut self, poll: &AnyPoll<'_>, child: &AnyActor) {
        let Some(children) = poll.shared().children() else { return };
        let Some(removed) = children.with(|children| children.remove(child)) else { return };
        let (gone, is_watched) = (&removed.child, removed.is_watched);
        let pid = gone.pid();
        if let Some(rare) = self.rare_mut() {
            if !rare.suspended.is_empty() {
                rare.suspended.remove(&pid);
            }
            if rare.stopping_child.take_if(|one| one.ptr_eq(gone)).is_some() {
                self.after_stop(poll);
            } else {
                self.member_has_gone(poll, gone);
            }
        }
        if is_watched {
            let end = gone.parent_link().and_then(ParentLink::take_end);
            let (cause, failure) = end.unwrap_or_default();
            let terminated = Terminated::new(pid, gone.path.clone(), failure);
            self.queue_terminated(terminated.with_cause(cause));
        }
    }

    /// Before a restart that stops the children: removes all watches of children, so that no
    /// notification arrives.
    pub(super) fn drop_child_watches(&mut self, poll: &AnyPoll<'_>) {
        let Some(rare) = self.rare_mut() else { return };
        // The watch of any other actor has a node, and the stop of a child is not reported yet.
        let is_of_child = |watch: &Watch| watch.node.is_none() && !watch.is_terminated;
        let of_children = rare.watching.iter().filter(|(_, watch)| is_of_child(watch));
        let pids = of_children.map(|(pid, _)| *pid).collect::<Vec<_>>();
        for pid in pids {
            let watched = self.rare_mut().and_then(|rare| rare.watching.remove(&pid));
            // The message is a value of the user, whose drop may panic.
            drop_reported(poll, watched);
        }
    }
}
