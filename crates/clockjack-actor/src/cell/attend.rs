//! What a runner looks at before user messages: children, notes, orders, signals, control.

use alloc::vec::Vec;
use core::task::Waker;

use clockjack_sync::mutant;

use super::{
    AnyTurn, Budget, Cell, Outcome, PENDING, Pending, Sleep, Stage, TurnOf, Typed, WAS_STARTED,
    WAS_STOPPED, any,
    lifecycle::{Waiting, tell_lost},
};
use crate::{
    Actor, Context, Failure, Next, Signal, SystemMessage,
    base::{
        AnyActor, Core, FUTURES, NOTES, PREPARE, REPORTS, RESTART, RESUME, RETIRE, STOP,
        SUSPEND_ONE, Tell, WAITERS,
    },
    control::Control,
    envelope::Envelope,
    events::DeadLetterReason,
    failure_info::Panicked,
    notes::{Item, Line, News, Note, Renewal, Spare, Ticks},
    strategy::Layer,
};

impl dyn Typed + '_ {
    /// Looks at all that comes before user messages. None if those are next.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&mut self, turn: &AnyTurn<'_>, budget: &mut Budget) -> Option<Outcome> {
        let core = turn.front();
        let panicked = self.life_mut().and_then(|life| life.panicked.take());
        if let Some((failure, message_type)) = panicked {
            self.fail(turn, failure, message_type);
            self.settle();
            self.restart_idle();
        }
        let bits = core.take_bits();
        if bits & PREPARE != 0 {
            self.prepare();
        }
        let is_new = self.mark().stage == Stage::Unborn && !self.mark().has(WAS_STARTED);
        let mut was_started = false;
        if is_new && bits & STOP == 0 && !mutant!("actor-decides-unborn") {
            // Others may have started children below a guardian before it has had a turn.
            was_started = true;
            self.start(turn);
        }
        let reports = (bits & REPORTS != 0).then(|| core.take_reports());
        if bits & NOTES != 0 {
            self.take_notes();
        }
        if bits & FUTURES != 0 {
            self.collect_futures();
        }
        for child in reports.into_iter().flatten() {
            self.child_ended(turn, &child);
        }
        self.obey(turn, bits);
        if core.peek() >= SUSPEND_ONE && !mutant!("actor-suspends-children-only") {
            self.hold_children(turn);
        }
        if bits & WAITERS != 0 {
            self.admit();
        }
        loop {
            match self.mark().stage {
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
                        return Some(self.keep_mail(budget));
                    }
                    self.mark_mut().stage = Stage::Unborn;
                }
                Stage::Stopping if self.has_no_children(turn) => self.finish(turn),
                // Who waits for an answer need not wait for the children too.
                Stage::Stopping => {
                    let is_empty = self.empty_mailbox();
                    return Some(if is_empty {
                        Outcome::Sleep(Sleep::Wait)
                    } else {
                        Outcome::Again
                    });
                }
                Stage::Draining => return Some(self.drain(turn)),
            }
        }
        self.go_on(turn, budget)
    }

    /// Looks at what a running actor has beside its mailbox. None if that is next.
    fn go_on(&mut self, turn: &AnyTurn<'_>, budget: &mut Budget) -> Option<Outcome> {
        let core = turn.front();
        if core.peek() >= SUSPEND_ONE {
            return Some(Outcome::Sleep(Sleep::Wait));
        }
        self.release_children(turn);
        if self.mark().has(PENDING)
            && let Some(outcome) = self.next_pending(budget)
        {
            return Some(outcome);
        }
        if core.peek() & RETIRE != 0 && self.is_idle() {
            self.stop(turn, None);
            return Some(Outcome::Again);
        }
        None
    }
}

impl dyn Typed + '_ {
    /// What a supervisor has decided.
    fn obey(&mut self, turn: &AnyTurn<'_>, bits: u32) {
        if bits & STOP != 0 && !self.mark().is_ending() {
            self.mark_mut().set(WAS_STOPPED, true);
            self.stop(turn, None);
        }
        if self.mark().is_ending() {
            return;
        }
        // Each looks for its own kind of order: one that comes meanwhile is for the next turn.
        let line = turn.front().line();
        if bits & RESTART != 0 {
            let renewal = line.and_then(Line::take_renewal).unwrap_or(Renewal::PLAIN);
            self.restart_as_ordered(turn, renewal);
        } else if bits & RESUME != 0 && self.mark().stage == Stage::Failed {
            let settles = line.is_some_and(Line::takes_settle);
            self.resume(turn, if settles { Waiting::Stop } else { Waiting::Resume });
        }
    }

    /// The supervisor has decided that the actor is to be made anew.
    fn restart_as_ordered(&mut self, turn: &AnyTurn<'_>, renewal: Renewal) {
        if self.mark().is_ending() || self.mark().stage == Stage::Restarting {
            return;
        }
        let life = self.life_or_new();
        life.is_ordered = true;
        // The actor's own strategies remember one that is no more.
        life.layers.iter_mut().for_each(Layer::reset);
        self.restart(turn, renewal);
    }

    /// Does what a note says, which came in this node.
    fn note(&mut self, turn: &AnyTurn<'_>, note: Note, spare: Spare) {
        match note {
            Note::Watch { watcher } => {
                self.life_or_new().watchers.insert(watcher.pid(), (watcher, spare));
            }
            Note::Unwatch { watcher } => {
                if let Some(life) = self.life_mut() {
                    life.watchers.remove(&watcher);
                }
            }
            Note::Terminated(terminated) => self.tell_end(terminated),
            Note::Starting(path) => self.child_starting(turn, &path),
            Note::WatchFor { who } => self.watch(turn, &who),
            Note::UnwatchFor { who } => self.unwatch(turn, &who),
            Note::System(message) => self.system_message(turn, *message),
        }
    }

    /// What a child has said, in the order in which it can have come to that.
    fn news(&mut self, turn: &AnyTurn<'_>, news: News) {
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
    fn ticks(&mut self, turn: &AnyTurn<'_>, ticks: &Ticks) {
        if let Some(number) = ticks.backoff {
            self.backoff_over(turn, number);
        }
        if let Some(wait) = ticks.patience {
            self.patience_over(turn, wait);
        }
        if ticks.retries {
            self.retry_escalations(turn);
        }
        if let Some(number) = ticks.idle {
            self.idle_later(number);
        }
    }

    /// What a host has put in by hand.
    fn system_message(&mut self, turn: &AnyTurn<'_>, message: SystemMessage) {
        let core = turn.front();
        match message {
            SystemMessage::Stop => self.obey(turn, STOP),
            SystemMessage::Restart => self.obey(turn, RESTART),
            SystemMessage::Suspend => _ = self.suspend_by_host(core, true),
            SystemMessage::Resume if self.suspend_by_host(core, false) => {}
            SystemMessage::Resume => self.obey(turn, RESUME),
            SystemMessage::Failure(info) => self.told_of_failure(turn, info),
            SystemMessage::Escalate(info) => {
                self.signal_later(Signal::Escalated(info.clone()));
                self.told_of_failure(turn, info);
            }
            SystemMessage::Terminated(end) => self.tell_end(end),
            SystemMessage::Watch(watcher) | SystemMessage::Unwatch(watcher) => {
                let Some(watcher) = core.system().find(watcher) else { return };
                let who = turn.me();
                // Both ends have to know, and the watcher's end begins it.
                drop(watcher.note(if matches!(message, SystemMessage::Watch(_)) {
                    Note::WatchFor { who }
                } else {
                    Note::UnwatchFor { who }
                }));
            }
        }
    }

    /// A host suspends it once more or once less; false if it has not, or not so often. What its
    /// parent has suspended it for is the parent's affair.
    fn suspend_by_host(&mut self, core: &Core, more: bool) -> bool {
        let held = &mut self.life_or_new().held_by_host;
        let next = if more { held.checked_add(1) } else { held.checked_sub(1) };
        let Some(next) = next else { return false };
        *held = next;
        core.suspend(more);
        true
    }

    pub(super) fn signal_later(&mut self, signal: Signal) {
        self.life_or_new().signals.push_back(Pending::Signal(signal));
        self.mark_mut().set(PENDING, true);
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Does what the notes say; control messages come later.
    pub(super) fn take_notes(&mut self, turn: &TurnOf<'_, A::Msg>) {
        for item in turn.front().core.notes.take::<A::Msg>() {
            match item {
                Item::Control(item) => self.control_later(item),
                Item::Note(note, spare) => {
                    self.alike(turn, |life, turn| life.note(turn, note, spare));
                }
                Item::News(news) => self.alike(turn, |life, turn| life.news(turn, news)),
                Item::Ticks(ticks) => self.alike(turn, |life, turn| life.ticks(turn, &ticks)),
            }
        }
    }

    /// Lets those in who wait for room, as far as there is any.
    pub(super) fn admit(turn: &TurnOf<'_, A::Msg>) {
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
                        tell_lost::<A::Msg>(&any(turn), DeadLetterReason::NoReceiver);
                    }
                }
                turn.drop_contained(unsent);
            }
            if !mutant!("send-admitted-unwoken") {
                wake_contained(&any(turn), admitted.waker);
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
            tell_lost::<A::Msg>(&any(turn), DeadLetterReason::Stopped);
            turn.drop_contained(request);
        }
        for waker in left.wakers {
            if !mutant!("send-refused-unwoken") {
                wake_contained(&any(turn), Some(waker));
            }
        }
    }

    pub(super) fn control_later(&mut self, item: Control<A::Msg>) {
        self.state.extra().control.push_back(item);
        self.state.set(PENDING, true);
    }

    /// Handles one thing that waits before the mailbox. None if nothing does.
    pub(super) fn next_pending(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
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
                if let Some(pid) = pending.ended() {
                    extra.watching.remove(&pid);
                }
                match pending {
                    Pending::Signal(signal) => self.signal(turn, signal),
                    Pending::Message(_, message) => {
                        if let Ok(msg) = message.downcast() {
                            self.receive_envelope(turn, Envelope::new(*msg));
                        }
                    }
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
        let unless_handled = unless_handled(&signal);
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
        super::lifecycle::guarded(&any(turn), &mut || {
            if let Some(call) = call.take() {
                result = call(actor, &mut Context::new(state, turn));
            }
        })?;
        result
    }
}

/// What an actor fails with if it does not care for a signal.
fn unless_handled(signal: &Signal) -> Option<Failure> {
    match signal {
        Signal::Terminated(_) => Some(super::DEATH_PACT.failure()),
        Signal::AdapterFailed(failure) if !mutant!("actor-adapter-failure-ignored") => {
            failure.downcast_ref::<Panicked>().cloned().map(Failure::from)
        }
        _ => None,
    }
}

/// The children that are there, newest first.
pub(super) fn children_of(turn: &AnyTurn<'_>) -> Vec<AnyActor> {
    let children = turn.front().children();
    children.map_or_else(Vec::new, |children| {
        children.with(|children| children.newest_first().cloned().collect())
    })
}

/// Wakes somebody; what that may throw is none of the actor's affair.
fn wake_contained(turn: &AnyTurn<'_>, waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(caught) = turn.guarded(&mut || waker.wake_by_ref()) {
        turn.discard(caught);
    }
    turn.drop_contained(waker);
}
