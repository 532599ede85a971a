//! Death watch: who watches whom, and children that have ended.

use alloc::boxed::Box;
use core::any::Any;

use clockjack_exec::Pid;
use clockjack_sync::mutant;

use super::{AnyTurn, Life, Mark, PENDING, Pending, State, Typed, Watch, lifecycle::drop_told};
use crate::{
    Actor, ActorPath, Signal, Terminated, WatchError,
    base::{AnyActor, Tell},
    notes::{Line, Note, Spare},
};

impl Pending {
    /// Whose end it tells of.
    pub(super) fn ended(&self) -> Option<Pid> {
        match self {
            Self::Signal(Signal::Terminated(end)) => Some(end.pid),
            Self::Signal(_) => None,
            Self::Message(pid, _) => Some(*pid),
        }
    }
}

impl<A: Actor> State<A> {
    /// Begins to watch, by a signal or by a message.
    pub(crate) fn watch(
        &mut self,
        turn: &AnyTurn<'_>,
        who: &AnyActor,
        message: Option<A::Msg>,
    ) -> Result<(), WatchError<Option<A::Msg>>> {
        self.extra();
        let Self { mark, extra: Some(extra), .. } = self else { return Ok(()) };
        match message {
            Some(message) if extra.is_watching(who) => {
                Err(WatchError { path: who.path.clone(), message: Some(message) })
            }
            message => {
                let message = message.map(|message| -> Box<dyn Any> { Box::new(message) });
                let refused = extra.watch(mark, turn, who, message);
                refused.map_err(|path| WatchError { path, message: None })
            }
        }
    }

    /// Watches no more; also what has come already does not arrive.
    pub(crate) fn unwatch(&mut self, turn: &AnyTurn<'_>, who: &AnyActor) {
        if let Some(extra) = &mut self.extra {
            extra.unwatch(turn, who);
        }
    }
}

impl Life {
    /// Whether it watches another one.
    fn is_watching(&self, who: &AnyActor) -> bool {
        self.watching.contains_key(&who.pid())
    }

    /// Begins to watch. Refused, with the path, if that would be in two ways.
    fn watch(
        &mut self,
        mark: &mut Mark,
        turn: &AnyTurn<'_>,
        who: &AnyActor,
        message: Option<Box<dyn Any>>,
    ) -> Result<(), ActorPath> {
        let pid = who.pid();
        if let Some(watch) = self.watching.get(&pid) {
            let is_other = watch.is_by_message || message.is_some();
            return if is_other { Err(who.path.clone()) } else { Ok(()) };
        }
        let is_by_message = message.is_some();
        let watch = Watch { message, is_by_message, has_ended: false, spare: None };
        self.watching.insert(pid, watch);
        if is_child(turn, who, Some(true)) {
            // Its end is reported anyway.
            return Ok(());
        }
        if who.note(Note::Watch { watcher: turn.me() }).is_err() {
            self.tell_end(mark, Terminated::new(pid, who.path.clone(), None));
        } else if let Some(watch) = self.watching.get_mut(&pid) {
            watch.spare = Some(Spare::new());
        }
        Ok(())
    }

    fn unwatch(&mut self, turn: &AnyTurn<'_>, who: &AnyActor) {
        let pid = who.pid();
        let Some(watch) = self.watching.remove(&pid) else { return };
        if watch.has_ended {
            if !mutant!("actor-unwatch-leaves-signal") {
                self.signals.retain(|pending| pending.ended() != Some(pid));
            }
            return;
        }
        if !is_child(turn, who, Some(false)) {
            let spare = watch.spare.unwrap_or_else(Spare::new);
            drop(who.note_in(spare, Note::Unwatch { watcher: turn.pid() }));
        }
    }

    /// Watches one no more whose end is told by hand; gives what was to be told then.
    pub(crate) fn take_watch(&mut self, who: Pid) -> Option<Box<dyn Any>> {
        let watch = self.watching.remove(&who)?;
        if !watch.has_ended {
            return watch.message;
        }
        let at = self.signals.iter().position(|pending| pending.ended() == Some(who))?;
        match self.signals.remove(at)? {
            Pending::Message(_, message) => Some(message),
            Pending::Signal(_) => None,
        }
    }

    /// Tells the actor of the end of one that it watches, if it still does. It is watched until
    /// that is told, so whoever watches it once more by then is told once.
    fn tell_end(&mut self, mark: &mut Mark, end: Terminated) {
        let Some(watch) = self.watching.get_mut(&end.pid) else { return };
        if core::mem::replace(&mut watch.has_ended, !mutant!("actor-end-told-again")) {
            return;
        }
        self.signals.push_back(match watch.message.take() {
            Some(message) => Pending::Message(end.pid, message),
            None => Pending::Signal(Signal::Terminated(end)),
        });
        mark.set(PENDING, true);
    }
}

/// Whether it is a child that is there; sets whether it is watched.
fn is_child(turn: &AnyTurn<'_>, who: &AnyActor, is_watched: Option<bool>) -> bool {
    let Some(children) = turn.front().children() else { return false };
    children.with(|children| match children.of(who) {
        Some(entry) => {
            entry.is_watched = is_watched.unwrap_or(entry.is_watched);
            true
        }
        None => false,
    })
}

impl dyn Typed + '_ {
    /// Watches as a host has said.
    pub(super) fn watch(&mut self, turn: &AnyTurn<'_>, who: &AnyActor) {
        let (mark, life) = self.mark_and_life();
        // If it watches already, that is as good.
        drop(life.watch(mark, turn, who, None));
    }

    /// And not any more.
    pub(super) fn unwatch(&mut self, turn: &AnyTurn<'_>, who: &AnyActor) {
        if let Some(life) = self.life_mut() {
            life.unwatch(turn, who);
        }
    }

    /// Tells the actor of the end of one that it watches, if it still does.
    pub(super) fn tell_end(&mut self, end: Terminated) {
        let (mark, life) = self.mark_and_life();
        life.tell_end(mark, end);
    }

    /// A child has ended and is no child any more.
    pub(super) fn child_ended(&mut self, turn: &AnyTurn<'_>, child: &AnyActor) {
        let Some(children) = turn.front().children() else { return };
        let Some((gone, is_watched)) = children.with(|children| children.remove(child)) else {
            return;
        };
        let pid = gone.pid();
        if let Some(life) = self.life_mut() {
            if !life.suspended.is_empty() {
                life.suspended.remove(&pid);
            }
            if life.awaited.take_if(|one| one.ptr_eq(&gone)).is_some() {
                self.stop_next_child(turn);
            }
        }
        if is_watched {
            let is_deaf = mutant!("actor-last-words-unheard");
            let failure = gone.line().and_then(Line::take_last_words).filter(|_| !is_deaf);
            self.tell_end(Terminated::new(pid, gone.path.clone(), failure));
        }
    }

    /// Before a restart stops them: nothing that was to come at the end of a child comes.
    pub(super) fn forget_children(&mut self, turn: &AnyTurn<'_>) {
        let Some(children) = turn.front().children() else { return };
        let mut pids = alloc::vec::Vec::new();
        children.with(|children| {
            pids.extend(children.newest_first().map(|child| child.pid()));
            children.unwatch_all();
        });
        for pid in pids {
            let watched = self.life_mut().and_then(|life| life.watching.remove(&pid));
            // What was to be told is the user's, and may do anything when it is dropped.
            drop_told(turn, watched);
        }
    }
}
