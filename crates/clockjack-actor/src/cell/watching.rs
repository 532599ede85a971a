//! Death watch: who watches whom, and children that have ended.

use clockjack_exec::Pid;
use clockjack_sync::mutant;

use super::{Cell, PENDING, Pending, State, TurnOf, Watch};
use crate::{
    Actor, Signal, Terminated, WatchError,
    base::{AnyActor, Tell},
    envelope::Envelope,
    notes::{Line, Note, Spare},
};

impl<M> Pending<M> {
    /// Whose end it tells of.
    fn ended(&self) -> Option<Pid> {
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
        turn: &TurnOf<'_, A::Msg>,
        who: &AnyActor,
        message: Option<A::Msg>,
    ) -> Result<(), WatchError<Option<A::Msg>>> {
        let pid = who.pid();
        if let Some(watch) = self.extra().watching.get(&pid) {
            if watch.message.is_some() || message.is_some() {
                return Err(WatchError { path: who.path.clone(), message });
            }
            return Ok(());
        }
        self.extra().watching.insert(pid, Watch { message, spare: None });
        if self.is_child(turn, who, Some(true)) {
            // Its end is reported anyway.
            return Ok(());
        }
        let me = crate::actor_ref::untyped(turn.me());
        if who.note(Note::Watch { watcher: me }).is_err() {
            self.tell_end(Terminated::new(pid, who.path.clone(), None));
        } else if let Some(watch) = self.extra().watching.get_mut(&pid) {
            watch.spare = Some(Spare::new());
        }
        Ok(())
    }

    /// Watches no more; also what has come already does not arrive.
    pub(crate) fn unwatch(&mut self, turn: &TurnOf<'_, A::Msg>, who: &AnyActor) {
        let pid = who.pid();
        let Some(extra) = &mut self.extra else { return };
        let Some(watch) = extra.watching.remove(&pid) else {
            // The end may have come. Whose end is told is not watched any more, so it is one or
            // the other.
            if !mutant!("actor-unwatch-leaves-signal") {
                extra.signals.retain(|pending| pending.ended() != Some(pid));
            }
            return;
        };
        if !self.is_child(turn, who, Some(false)) {
            let spare = watch.spare.unwrap_or_else(Spare::new);
            drop(who.note_in(spare, Note::Unwatch { watcher: turn.pid() }));
        }
    }

    /// Whether it is a child that is there; sets whether it is watched.
    fn is_child(
        &self,
        turn: &TurnOf<'_, A::Msg>,
        who: &AnyActor,
        is_watched: Option<bool>,
    ) -> bool {
        let Some(children) = turn.front().core.children() else { return false };
        children.with(|children| match children.of(who) {
            Some(entry) => {
                entry.is_watched = is_watched.unwrap_or(entry.is_watched);
                true
            }
            None => false,
        })
    }

    /// Tells the actor of the end of one that it watches, if it still does.
    pub(super) fn tell_end(&mut self, end: Terminated) {
        let extra = self.extra();
        let Some(watch) = extra.watching.remove(&end.pid) else { return };
        extra.signals.push_back(match watch.message {
            Some(message) => Pending::Message(end.pid, Envelope::new(message)),
            None => Pending::Signal(Signal::Terminated(end)),
        });
        self.set(PENDING, true);
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// A child has ended and is no child any more.
    pub(super) fn child_ended(&mut self, turn: &TurnOf<'_, A::Msg>, child: &AnyActor) {
        let Some(children) = turn.front().core.children() else { return };
        let Some((gone, is_watched)) = children.with(|children| children.remove(child)) else {
            return;
        };
        let pid = gone.pid();
        if let Some(extra) = &mut self.state.extra {
            if !extra.suspended.is_empty() {
                extra.suspended.remove(&pid);
            }
            if extra.awaited.take_if(|one| one.ptr_eq(&gone)).is_some() {
                self.stop_next_child(turn);
            }
        }
        if is_watched {
            let is_deaf = mutant!("actor-last-words-unheard");
            let failure = gone.line().and_then(Line::take_last_words).filter(|_| !is_deaf);
            self.state.tell_end(Terminated::new(pid, gone.path.clone(), failure));
        }
    }

    /// Before a restart stops them: nothing that was to come at the end of a child comes.
    pub(super) fn forget_children(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Some(children) = turn.front().core.children() else { return };
        let mut pids = alloc::vec::Vec::new();
        children.with(|children| {
            pids.extend(children.newest_first().map(|child| child.pid()));
            children.unwatch_all();
        });
        for pid in pids {
            let watched = self.state.extra.as_mut().and_then(|extra| extra.watching.remove(&pid));
            // What was to be told is the user's, and may do anything when it is dropped.
            self.drop_told(turn, watched);
        }
    }
}
