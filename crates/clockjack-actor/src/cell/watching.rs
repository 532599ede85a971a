//! Death watch: who watches whom, and children that have ended.

use super::{Cell, PENDING, Pending, Stage, State, TurnOf, Watch};
use crate::{
    Actor, ActorPath, Signal, Terminated, WatchError,
    base::{AnyActor, Tell},
    envelope::Envelope,
    notes::Note,
};

impl<A: Actor> State<A> {
    /// Begins to watch, by a signal or by a message.
    pub(crate) fn watch(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        who: &AnyActor,
        message: Option<A::Msg>,
    ) -> Result<(), WatchError<Option<A::Msg>>> {
        let pid = who.pid();
        let is_with = message.is_some();
        if let Some(watch) = self.extra().watching.iter().find(|watch| watch.pid == pid) {
            if watch.is_with || is_with {
                return Err(WatchError { path: who.path.clone(), message });
            }
            return Ok(());
        }
        self.extra().watching.push(Watch { pid, message, is_with });
        if self.is_child(turn, who, Some(true)) {
            // Its end is reported anyway.
            return Ok(());
        }
        let me = crate::actor_ref::untyped(turn.me());
        if who.note(Note::Watch { watcher: me }).is_err() {
            self.tell_end(Terminated::new(pid, who.path.clone(), None));
        }
        Ok(())
    }

    /// Watches no more; also what has come already does not arrive.
    pub(crate) fn unwatch(&mut self, turn: &TurnOf<'_, A::Msg>, who: &AnyActor) {
        let pid = who.pid();
        let Some(extra) = &mut self.extra else { return };
        let before = extra.watching.len();
        extra.watching.retain(|watch| watch.pid != pid);
        extra.signals.retain(|pending| {
            !matches!(pending, Pending::Signal(Signal::Terminated(end)) if end.pid == pid)
        });
        if before != extra.watching.len() && !self.is_child(turn, who, Some(false)) {
            drop(who.note(Note::Unwatch { watcher: turn.pid() }));
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
        let Some(at) = extra.watching.iter().position(|watch| watch.pid == end.pid) else {
            return;
        };
        let watch = extra.watching.swap_remove(at);
        extra.signals.push_back(match watch.message {
            Some(message) => Pending::Message(Envelope::new(message)),
            None => Pending::Signal(Signal::Terminated(end)),
        });
        self.set(PENDING, true);
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    pub(super) fn watched_ended(&mut self, turn: &TurnOf<'_, A::Msg>, end: Terminated) {
        let _ = turn;
        self.state.tell_end(end);
    }

    /// A child has ended and is no child any more.
    pub(super) fn child_ended(&mut self, turn: &TurnOf<'_, A::Msg>, child: &AnyActor) {
        let Some(children) = turn.front().core.children() else { return };
        let Some((gone, is_watched)) = children.with(|children| children.remove(child)) else {
            return;
        };
        let pid = gone.pid();
        let path: ActorPath = gone.path.clone();
        let mut failure = None;
        if let Some(extra) = &mut self.state.extra {
            if let Some(at) = extra.last_words.iter().position(|(child, _)| *child == pid) {
                failure = Some(extra.last_words.swap_remove(at).1);
            }
            extra.suspended.retain(|one| !one.ptr_eq(&gone));
        }
        if is_watched {
            self.state.tell_end(Terminated::new(pid, path, failure));
        }
        let is_next = match self.state.stage {
            Stage::Stopping => true,
            Stage::Restarting => !self.state.extra().keeps_children,
            _ => false,
        };
        if is_next {
            self.stop_next_child(turn);
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
        if let Some(extra) = &mut self.state.extra {
            extra.watching.retain(|watch| !pids.contains(&watch.pid));
        }
    }
}
