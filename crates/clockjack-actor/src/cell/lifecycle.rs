//! The life of an actor: how it starts, is made anew and ends.

use core::time::Duration;

use clockjack_exec::{Failure, custom::Outcome};
use clockjack_sync::mail::Pop;

use super::{Cell, Pending, Stage, TurnOf, WAS_STARTED, pop};
use crate::{
    Actor, Next, Signal,
    base::{ENDED, REPORTS, STOP, Tell},
    control::Control,
    events::{DeadLetterReason, Lifecycle, LifecycleStep, SystemEvent},
    notes::{self, Item, Note},
};

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Makes the actor, and lets it start.
    pub(super) fn start(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Self { actor, factory, .. } = self;
        let made = turn.guarded(&mut || *actor = Some(factory()));
        let result = match made {
            Ok(()) => {
                self.state.stage = Stage::Running;
                self.guarded(turn, A::started)
            }
            Err(caught) => {
                let failure = super::of_panic(&caught);
                turn.discard(caught);
                Err(failure)
            }
        };
        match result {
            Ok(next) => {
                let is_first = !self.state.has(WAS_STARTED);
                self.state.set(WAS_STARTED, true);
                if is_first {
                    self.tell_step(turn, LifecycleStep::Started);
                } else {
                    self.restarted(turn);
                }
                if self.state.extra.as_ref().is_some_and(|extra| extra.unstash > 0) {
                    self.state.put_back();
                }
                if next == Next::Stop {
                    self.stop(turn, None);
                }
            }
            Err(failure) => self.fail(turn, failure, None),
        }
    }

    fn restarted(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let now = turn.nanos();
        let extra = self.state.extra();
        extra.restarts = extra.restarts.saturating_add(1);
        extra.layers.iter_mut().for_each(|layer| layer.restarted(now));
        self.tell_step(turn, LifecycleStep::Restarted);
    }

    fn tell_step(&self, turn: &TurnOf<'_, A::Msg>, step: LifecycleStep) {
        let core = &turn.front().core;
        let events = core.system().events();
        if events.wants(crate::EventKinds::LIFECYCLE) {
            events.publish(&SystemEvent::Lifecycle(Lifecycle {
                pid: turn.pid(),
                path: core.path.clone(),
                step,
            }));
        }
    }

    /// Begins to stop: nothing more is taken, and the children go first.
    pub(super) fn stop(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Option<Failure>) {
        if self.state.is_ending() {
            return;
        }
        if let Some(failure) = failure {
            let report = self.report_of(turn, &failure);
            turn.drop_contained(failure);
            self.state.extra().reason = Some(report);
        }
        self.state.stage = Stage::Stopping;
        turn.front().mail.close();
        self.end_incarnation(turn);
        if let Some(children) = turn.front().core.children() {
            children.with(|children| children.is_closed = true);
        }
        self.stop_next_child(turn);
    }

    /// What belongs to this value of the actor ends with it: timers and futures.
    pub(super) fn end_incarnation(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let _ = turn;
        if let Some(extra) = &mut self.state.extra {
            extra.backoff = 0;
            extra.batch = None;
        }
    }

    /// Tells the child that was started last to stop; when it has ended comes the one before.
    pub(super) fn stop_next_child(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let Some(children) = turn.front().core.children() else { return };
        if let Some(last) = children.with(|children| children.last().cloned()) {
            last.order(STOP);
        }
    }

    pub(super) fn has_no_children(&self, turn: &TurnOf<'_, A::Msg>) -> bool {
        let children = turn.front().core.children();
        children.is_none_or(|children| children.with(|children| children.is_empty()))
    }

    /// Makes the actor anew, as soon as its children have ended and, if there is one, the delay.
    pub(super) fn restart(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        delay: Option<Duration>,
        keeps_children: bool,
    ) {
        self.state.stage = Stage::Restarting;
        self.end_incarnation(turn);
        let told = self.guarded(turn, |actor, cx| actor.signal(cx, Signal::PreRestart));
        // Nothing that the hook has asked for outlives the value.
        self.end_incarnation(turn);
        if let Err(failure) = told {
            self.tell_of_hook(turn, failure);
        }
        turn.drop_contained(self.actor.take());
        let extra = self.state.extra();
        extra.keeps_children = keeps_children;
        let n = extra.stash.len();
        extra.unstash = n;
        self.state.put_back();
        if !keeps_children {
            self.forget_children(turn);
            self.stop_next_child(turn);
        }
        if let Some(delay) = delay {
            self.back_off(turn, delay);
        }
    }

    /// Whether nothing stands in the way of a restart any more.
    pub(super) fn may_restart(&mut self, turn: &TurnOf<'_, A::Msg>) -> bool {
        let extra = self.state.extra();
        let keeps_children = extra.keeps_children;
        extra.backoff == 0 && (keeps_children || self.has_no_children(turn))
    }

    /// All children have ended: the last that the actor does.
    pub(super) fn finish(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let told = self.guarded(turn, |actor, cx| actor.signal(cx, Signal::PostStop));
        self.end_incarnation(turn);
        if let Err(failure) = told {
            self.tell_of_hook(turn, failure);
        }
        turn.drop_contained(self.actor.take());
        self.state.stage = Stage::Draining;
    }

    /// Makes dead letters of what is left; the end, unless somebody is about to put in more.
    pub(super) fn drain(&mut self, turn: &TurnOf<'_, A::Msg>) -> Outcome {
        let front = turn.front();
        loop {
            match pop(front) {
                Pop::Item(envelope) => {
                    tell_lost::<A::Msg>(turn, DeadLetterReason::Stopped);
                    turn.drop_contained(envelope);
                }
                Pop::Empty => break,
                Pop::Busy => return Outcome::Again,
            }
        }
        self.let_go(turn);
        Outcome::End
    }

    /// Ends what others know of the actor, and tells them.
    fn let_go(&mut self, turn: &TurnOf<'_, A::Msg>) {
        let core = &turn.front().core;
        let mut watchers = alloc::vec::Vec::new();
        if let Some(mut extra) = self.state.extra.take() {
            watchers = core::mem::take(&mut extra.watchers);
            for envelope in extra.replay.drain(..).chain(extra.stash.drain(..)) {
                tell_lost::<A::Msg>(turn, DeadLetterReason::Stopped);
                turn.drop_contained(envelope);
            }
            for item in extra.control.drain(..) {
                lose_control(turn, item);
            }
            for pending in extra.signals.drain(..) {
                if let Pending::Message(envelope) = pending {
                    turn.drop_contained(envelope);
                }
            }
            self.say_last_words(turn, extra.reason.take());
            turn.drop_contained(extra);
        }
        core.raise(ENDED);
        for item in core.notes.close::<A::Msg>() {
            match item {
                Item::Note(Note::Watch { watcher }) => {
                    if !watchers.iter().any(|one| one.ptr_eq(&watcher)) {
                        watchers.push(watcher);
                    }
                }
                Item::Note(Note::Unwatch { watcher }) => {
                    watchers.retain(|one| one.pid() != watcher);
                }
                Item::Note(_) => {}
                Item::Control(item) => lose_control(turn, item),
            }
        }
        self.tell_step(turn, LifecycleStep::Stopped);
        for watcher in watchers {
            // One that has ended too does not want to know.
            drop(watcher.note(notes::terminated(turn.pid(), core.path.clone())));
        }
        match &core.parent {
            Some(parent) => {
                parent.report(crate::actor_ref::untyped(turn.me()));
                parent.order(REPORTS);
            }
            None => core.system().root_ended(),
        }
    }

    /// The executor has ended the process by force.
    pub(super) fn cut_short(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.state.stage == Stage::Draining && turn.front().core.is_ended() {
            return;
        }
        turn.front().mail.close();
        turn.drop_contained(self.actor.take());
        while let Pop::Item(envelope) = pop(turn.front()) {
            turn.drop_contained(envelope);
        }
        self.let_go(turn);
    }
}

fn lose_control<M: 'static>(turn: &TurnOf<'_, M>, item: Control<M>) {
    match item {
        Control::Message(envelope) => {
            tell_lost::<M>(turn, DeadLetterReason::Stopped);
            turn.drop_contained(envelope);
        }
    }
}

/// Tells of a message that will not be handled.
pub(super) fn tell_lost<M: 'static>(turn: &TurnOf<'_, M>, reason: DeadLetterReason) {
    let core = &turn.front().core;
    core.system().dead_letter::<M>(&core.path, reason);
}
