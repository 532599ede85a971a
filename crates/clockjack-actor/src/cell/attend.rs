//! What a runner looks at before user messages: children, notes, orders, signals, control.

use core::task::Waker;

use clockjack_sync::mutant;

use super::{
    Budget, Cell, Outcome, PENDING, Pending, Sleep, Stage, TurnOf, WAS_STARTED, WAS_STOPPED,
    lifecycle::{Waiting, tell_lost},
};
use crate::{
    Actor, Context, Failure, Next, Signal, SystemMessage,
    base::{
        AnyActor, FUTURES, NOTES, PREPARE, REPORTS, RESTART, RESUME, STOP, SUSPEND_ONE, Tell,
        WAITERS,
    },
    control::Control,
    envelope::Envelope,
    events::DeadLetterReason,
    failure_info::Panicked,
    notes::{Item, Line, News, Note, Renewal, Ticks},
    strategy::Layer,
};

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Looks at all that comes before user messages. None if those are next.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
        let core = &turn.front().core;
        let panicked = self.state.extra.as_mut().and_then(|extra| extra.panicked.take());
        if let Some((failure, message_type)) = panicked {
            self.fail(turn, failure, message_type);
            self.state.restart_idle(turn);
        }
        let bits = core.take_bits();
        if bits & PREPARE != 0 {
            self.state.prepare();
            super::reserve(turn.front());
        }
        let is_new = self.state.stage == Stage::Unborn && !self.state.has(WAS_STARTED);
        let mut was_started = false;
        if is_new && bits & STOP == 0 && !mutant!("actor-decides-unborn") {
            // Others may have started children below a guardian before it has had a turn.
            was_started = true;
            self.start(turn);
        }
        let reports = (bits & REPORTS != 0).then(|| core.take_reports());
        if bits & NOTES != 0 {
            self.take_notes(turn);
        }
        if let Some(extra) = &mut self.state.extra
            && bits & FUTURES != 0
        {
            extra.futures.collect();
            self.state.set(PENDING, true);
        }
        for child in reports.into_iter().flatten() {
            self.child_ended(turn, &child);
        }
        self.obey(turn, bits);
        if core.peek() >= SUSPEND_ONE && !mutant!("actor-suspends-children-only") {
            self.hold_children(turn);
        }
        if bits & WAITERS != 0 {
            Self::admit(turn);
        }
        loop {
            match self.state.stage {
                // One that fails in each start must not keep the worker to itself.
                Stage::Unborn if was_started => return Some(Outcome::Again),
                Stage::Unborn => {
                    was_started = !mutant!("actor-restart-storm");
                    self.start(turn);
                }
                Stage::Running => break,
                Stage::Failed => return Some(Outcome::Sleep(Sleep::Wait)),
                Stage::Restarting => {
                    if !self.may_restart(turn) {
                        return Some(self.keep_mail(turn, budget));
                    }
                    self.state.stage = Stage::Unborn;
                }
                Stage::Stopping if self.has_no_children(turn) => self.finish(turn),
                // Who waits for an answer need not wait for the children too.
                Stage::Stopping => {
                    let is_empty = self.empty_mailbox(turn);
                    return Some(if is_empty {
                        Outcome::Sleep(Sleep::Wait)
                    } else {
                        Outcome::Again
                    });
                }
                Stage::Draining => return Some(self.drain(turn)),
            }
        }
        if core.peek() >= SUSPEND_ONE {
            return Some(Outcome::Sleep(Sleep::Wait));
        }
        self.release_children(turn);
        if self.state.has(PENDING) { self.next_pending(turn, budget) } else { None }
    }

    /// Does what the notes say; control messages come later.
    fn take_notes(&mut self, turn: &TurnOf<'_, A::Msg>) {
        for item in turn.front().core.notes.take::<A::Msg>() {
            match item {
                Item::Note(Note::Watch { watcher }, spare) => {
                    self.state.extra().watchers.insert(watcher.pid(), (watcher, spare));
                }
                Item::Note(note, _) => self.note(turn, note),
                Item::Control(item) => self.control_later(item),
                Item::News(news) => self.news(turn, news),
                Item::Ticks(ticks) => self.ticks(turn, &ticks),
            }
        }
    }

    /// Lets those in who wait for room, as far as there is any.
    fn admit(turn: &TurnOf<'_, A::Msg>) {
        let Some(waiters) = turn.front().waiters() else { return };
        for letter in waiters.take_withdrawn() {
            turn.drop_contained(letter);
        }
        while let Some(admitted) = waiters.admit() {
            if let Some((permit, mut unsent)) = admitted.unmade {
                let mut made = None;
                match turn.guarded(&mut || made = Some(unsent.make())) {
                    Ok(()) => _ = made.map(|msg| permit.write(Envelope::new(msg))),
                    Err(caught) => {
                        turn.discard(caught);
                        tell_lost::<A::Msg>(turn, DeadLetterReason::NoReceiver);
                    }
                }
                turn.drop_contained(unsent);
            }
            if !mutant!("send-admitted-unwoken") {
                wake_contained(turn, admitted.waker);
            }
        }
    }

    /// Tells those who wait for room that there will be none. The mailbox is closed.
    pub(super) fn refuse_waiters(turn: &TurnOf<'_, A::Msg>) {
        let Some(waiters) = turn.front().waiters() else { return };
        let left = waiters.close();
        for request in left.requests {
            if mutant!("ask-request-outlives-stop") {
                core::mem::forget(request);
                continue;
            }
            tell_lost::<A::Msg>(turn, DeadLetterReason::Stopped);
            turn.drop_contained(request);
        }
        for waker in left.wakers {
            if !mutant!("send-refused-unwoken") {
                wake_contained(turn, Some(waker));
            }
        }
    }

    /// What a supervisor has decided.
    fn obey(&mut self, turn: &TurnOf<'_, A::Msg>, bits: u32) {
        if bits & STOP != 0 && !self.state.is_ending() {
            self.state.set(WAS_STOPPED, true);
            self.stop(turn, None);
        }
        if self.state.is_ending() {
            return;
        }
        // Each looks for its own kind of order: one that comes meanwhile is for the next turn.
        let line = turn.front().core.line();
        if bits & RESTART != 0 {
            let renewal = line.and_then(Line::take_renewal).unwrap_or(Renewal::PLAIN);
            self.restart_as_ordered(turn, renewal);
        } else if bits & RESUME != 0 && self.state.stage == Stage::Failed {
            let settles = line.is_some_and(Line::takes_settle);
            self.resume(turn, if settles { Waiting::Stop } else { Waiting::Resume });
        }
    }

    /// The supervisor has decided that the actor is to be made anew.
    fn restart_as_ordered(&mut self, turn: &TurnOf<'_, A::Msg>, renewal: Renewal) {
        if self.state.is_ending() || self.state.stage == Stage::Restarting {
            return;
        }
        let extra = self.state.extra();
        extra.is_ordered = true;
        // The actor's own strategies remember one that is no more.
        extra.layers.iter_mut().for_each(Layer::reset);
        self.restart(turn, renewal);
    }

    fn note(&mut self, turn: &TurnOf<'_, A::Msg>, note: Note) {
        match note {
            // Taken where its node is kept.
            Note::Watch { .. } => {}
            Note::Unwatch { watcher } => {
                if let Some(extra) = &mut self.state.extra {
                    extra.watchers.remove(&watcher);
                }
            }
            Note::Terminated(terminated) => self.state.tell_end(terminated),
            Note::Starting(path) => self.child_starting(turn, &path),
            Note::WatchFor { who } => drop(self.state.watch(turn, &who, None)),
            Note::UnwatchFor { who } => self.state.unwatch(turn, &who),
            Note::System(message) => self.system_message(turn, *message),
        }
    }

    /// What a child has said, in the order in which it can have come to that.
    fn news(&mut self, turn: &TurnOf<'_, A::Msg>, news: News) {
        let News { child, restarted_nanos, failed } = news;
        let Some(child) = child else { return };
        if let Some(now_nanos) = restarted_nanos {
            self.child_restarted(turn, &child, now_nanos);
        }
        if let Some(failed) = failed {
            self.child_failed(turn, failed);
        }
    }

    /// What the clock has said.
    fn ticks(&mut self, turn: &TurnOf<'_, A::Msg>, ticks: &Ticks) {
        if let Some(number) = ticks.backoff {
            let extra = self.state.extra();
            if extra.backoff == number {
                extra.backoff = 0;
            }
        }
        if let Some(wait) = ticks.patience {
            self.patience_over(turn, wait);
        }
        if ticks.retries {
            self.retry_escalations(turn);
        }
        if let Some(number) = ticks.idle {
            self.control_later(Control::Idle(number));
        }
    }

    /// What a host has put in by hand.
    fn system_message(&mut self, turn: &TurnOf<'_, A::Msg>, message: SystemMessage) {
        let core = &turn.front().core;
        match message {
            SystemMessage::Stop => self.obey(turn, STOP),
            SystemMessage::Restart => self.obey(turn, RESTART),
            SystemMessage::Resume if core.peek() >= SUSPEND_ONE => core.suspend(false),
            SystemMessage::Resume => self.obey(turn, RESUME),
            SystemMessage::Suspend => core.suspend(true),
            SystemMessage::Failure(info) => self.told_of_failure(turn, info),
            SystemMessage::Escalate(info) => {
                self.signal_later(Signal::Escalated(info.clone()));
                self.told_of_failure(turn, info);
            }
            SystemMessage::Terminated(end) => self.state.tell_end(end),
            SystemMessage::Watch(watcher) | SystemMessage::Unwatch(watcher) => {
                let Some(watcher) = core.system().find(watcher) else { return };
                let who = crate::actor_ref::untyped(turn.me());
                // Both ends have to know, and the watcher's end begins it.
                drop(watcher.note(if matches!(message, SystemMessage::Watch(_)) {
                    Note::WatchFor { who }
                } else {
                    Note::UnwatchFor { who }
                }));
            }
        }
    }

    fn control_later(&mut self, item: Control<A::Msg>) {
        self.state.extra().control.push_back(item);
        self.state.set(PENDING, true);
    }

    pub(super) fn signal_later(&mut self, signal: Signal) {
        self.state.extra().signals.push_back(Pending::Signal(signal));
        self.state.set(PENDING, true);
    }

    /// Handles one thing that waits before the mailbox. None if nothing does.
    fn next_pending(&mut self, turn: &TurnOf<'_, A::Msg>, budget: &mut Budget) -> Option<Outcome> {
        while self.state.stage == Stage::Running {
            let extra = self.state.extra();
            let is_waiting = extra.futures.is_waiting() && !mutant!("actor-wait-takes-messages");
            let has_news = !extra.signals.is_empty() || !extra.control.is_empty();
            let is_nothing_put_back = extra.unstashed.is_empty() && extra.replay.is_empty();
            let has_old = !is_nothing_put_back && !is_waiting;
            let is_lent = extra.futures.is_lent();
            if !extra.futures.has_due() && (is_lent || !has_news && !has_old) {
                if is_waiting {
                    // The mark stays, so that the mailbox is left alone until the wait is over.
                    return Some(Outcome::Sleep(Sleep::Wait));
                }
                self.state.set(PENDING, false);
                return None;
            }
            if !budget.take(turn) {
                return Some(Outcome::Again);
            }
            let extra = self.state.extra();
            if is_lent {
                self.poll_next(turn);
            } else if let Some(pending) = extra.signals.pop_front() {
                match pending {
                    Pending::Signal(signal) => self.signal(turn, signal),
                    Pending::Message(_, envelope) => self.receive_envelope(turn, envelope),
                }
            } else if let Some(item) = extra.control.pop_front() {
                self.control(turn, item);
            } else if extra.futures.has_due() {
                self.poll_next(turn);
            } else if let Some(envelope) = extra.unstashed.pop_front() {
                self.receive_envelope(turn, envelope);
            } else if let Some(envelope) = extra.replay.pop_front() {
                self.receive_envelope(turn, envelope);
            }
            // What has come meanwhile is looked at first.
            if turn.front().core.peek() & !WAITERS != 0 {
                return Some(Outcome::Again);
            }
        }
        Some(Outcome::Again)
    }

    fn control(&mut self, turn: &TurnOf<'_, A::Msg>, item: Control<A::Msg>) {
        match item {
            Control::Message(envelope) => self.receive_envelope(turn, envelope),
            Control::Fire(fire) => self.fire(turn, fire),
            Control::Idle(number) => self.idle(turn, number),
        }
    }

    /// Tells the actor a signal, as a handler.
    pub(crate) fn signal(&mut self, turn: &TurnOf<'_, A::Msg>, signal: Signal) {
        let Some(actor) = &mut self.actor else { return };
        // What it fails with if it does not care.
        let unless_handled = match &signal {
            Signal::Terminated(_) => Some(super::DEATH_PACT.failure()),
            Signal::AdapterFailed(failure) if !mutant!("actor-adapter-failure-ignored") => {
                failure.downcast_ref::<Panicked>().cloned().map(Failure::from)
            }
            _ => None,
        };
        self.state.extra().is_beside = true;
        let mut cx = Context::new(&mut self.state, turn);
        let result = match (actor.signal(&mut cx, signal), unless_handled) {
            (Ok(Next::Unhandled), Some(failure)) => Err(failure),
            (Ok(Next::Unhandled), None) => Ok(Next::Stay),
            (result, _) => result,
        };
        self.state.extra().is_beside = false;
        self.conclude::<Signal>(turn, result);
        self.state.restart_idle(turn);
    }

    /// Calls something of the actor's in a guard. The failure, if it came to one.
    pub(super) fn guarded(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        call: impl FnOnce(&mut A, &mut Context<'_, A>) -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let Self { actor, state, .. } = self;
        let Some(actor) = actor else { return Ok(Next::Stay) };
        let (mut call, mut result) = (Some(call), Ok(Next::Stay));
        let guarded = turn.guarded(&mut || {
            if let Some(call) = call.take() {
                result = call(actor, &mut Context::new(state, turn));
            }
        });
        match guarded {
            Ok(()) => result,
            Err(caught) => {
                let failure = super::of_panic(&caught);
                turn.discard(caught);
                Err(failure)
            }
        }
    }

    /// The children that are there, newest first.
    pub(super) fn children(turn: &TurnOf<'_, A::Msg>) -> alloc::vec::Vec<AnyActor> {
        let children = turn.front().core.children();
        children.map_or_else(alloc::vec::Vec::new, |children| {
            children.with(|children| children.newest_first().cloned().collect())
        })
    }
}

/// Wakes somebody; what that may throw is none of the actor's affair.
fn wake_contained<M: 'static>(turn: &TurnOf<'_, M>, waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(caught) = turn.guarded(&mut || waker.wake_by_ref()) {
        turn.discard(caught);
    }
    turn.drop_contained(waker);
}
