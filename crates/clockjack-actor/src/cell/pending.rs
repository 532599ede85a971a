//! What a runner handles before user messages: stopped children, the system queue, commands,
//! signals, control messages and futures.

use alloc::vec::Vec;
use core::task::Waker;

use clockjack_sync::mutant;

use super::{
    AnyTurn, Budget, Cell, CellVTable, Outcome, PENDING, ParkMode, PendingSignal, Stage, TurnOf,
    WAS_STARTED, WAS_STOPPED, any,
    lifecycle::{EscalationOutcome, publish_dead_letter},
};
use crate::{
    Actor, Context, Failure, Next, Signal, SystemMessage,
    cell::{
        envelope::Envelope,
        header::{
            ActorHeader, AnyActor, CHILD_STOPPED, FUTURES, PREPARE, RESTART, RESUME, STOP,
            STOP_WHEN_IDLE, SUSPEND_ONE, SYSTEM_QUEUE, SystemSend, WAITERS,
        },
    },
    events::DeadLetterReason,
    failure_info::Panicked,
    mailbox::{
        control::Control,
        system_queue::{
            ChildReport, InternalMessage, ParentLink, PreallocatedNode, RestartOptions, SystemItem,
            TimerEvents,
        },
    },
    strategy::StrategyState,
};

impl dyn CellVTable + '_ {
    /// Handles everything that precedes user messages. None if a user message is next.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_system_messages(
        &mut self,
        turn: &AnyTurn<'_>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
        let header = turn.front();
        let panicked = self.rare_mut().and_then(|rare| rare.panicked.take());
        if let Some((failure, message_type)) = panicked {
            self.fail(turn, failure, message_type);
            self.apply_deferred();
            self.restart_receive_timeout();
        }
        let flags = header.take_flags();
        if flags & PREPARE != 0 {
            self.prepare();
        }
        let is_new = self.status().stage == Stage::Initial && !self.status().has(WAS_STARTED);
        let mut was_started = false;
        if is_new && flags & STOP == 0 && !mutant!("actor-decides-unborn") {
            // Other threads may have started children below a guardian before its first poll.
            was_started = true;
            self.start(turn);
        }
        let stopped = (flags & CHILD_STOPPED != 0).then(|| header.take_stopped_children());
        if flags & SYSTEM_QUEUE != 0 {
            self.drain_system_queue();
        }
        if flags & FUTURES != 0 {
            self.collect_futures();
        }
        for child in stopped.into_iter().flatten() {
            self.child_stopped(turn, &child);
        }
        self.apply_supervision(turn, flags);
        if header.flags() >= SUSPEND_ONE && !mutant!("actor-suspends-children-only") {
            self.suspend_children(turn);
        }
        if flags & WAITERS != 0 {
            self.admit_waiters();
        }
        loop {
            match self.status().stage {
                // An actor that fails in each start must not occupy the worker.
                Stage::Initial if was_started => return Some(Outcome::Again),
                Stage::Initial => {
                    was_started = !mutant!("actor-restart-storm");
                    self.start(turn);
                }
                Stage::Running => break,
                Stage::Failed => return Some(Outcome::Sleep(ParkMode::Wait)),
                Stage::Restarting => {
                    if !self.may_restart(turn) {
                        return Some(self.keep_incoming(budget));
                    }
                    self.status_mut().stage = Stage::Initial;
                }
                Stage::Stopping if self.has_no_children(turn) => self.finish(turn),
                // A sender that waits for an answer need not wait for the children too, so its
                // message becomes a dead letter now.
                Stage::Stopping => {
                    let is_empty = self.drain_mailbox();
                    return Some(if is_empty {
                        Outcome::Sleep(ParkMode::Wait)
                    } else {
                        Outcome::Again
                    });
                }
                Stage::Draining => return Some(self.drain(turn)),
            }
        }
        self.handle_pending(turn, budget)
    }

    /// Handles what a running actor has besides its mailbox. None if a user message is next.
    fn handle_pending(&mut self, turn: &AnyTurn<'_>, budget: &mut Budget) -> Option<Outcome> {
        let header = turn.front();
        if header.flags() >= SUSPEND_ONE {
            return Some(Outcome::Sleep(ParkMode::Wait));
        }
        self.unsuspend_children(turn);
        if self.status().has(PENDING)
            && let Some(outcome) = self.next_pending(budget)
        {
            return Some(outcome);
        }
        if header.flags() & STOP_WHEN_IDLE != 0 && self.is_idle() {
            self.stop(turn, None);
            return Some(Outcome::Again);
        }
        None
    }
}

impl dyn CellVTable + '_ {
    /// Applies the commands of the supervisor.
    fn apply_supervision(&mut self, turn: &AnyTurn<'_>, flags: u32) {
        if flags & STOP != 0 && !self.status().is_stopping() {
            self.status_mut().set(WAS_STOPPED, true);
            self.stop(turn, None);
        }
        if self.status().is_stopping() {
            return;
        }
        // Each command takes only its own kind of parameters: a command that arrives in between is
        // handled by the next poll.
        let link = turn.front().parent_link();
        if flags & RESTART != 0 {
            let options =
                link.and_then(ParentLink::take_restart_options).unwrap_or(RestartOptions::DEFAULT);
            self.restart_on_command(turn, options);
        } else if flags & RESUME != 0 && self.status().stage == Stage::Failed {
            let settles = link.is_some_and(ParentLink::take_stop_escalated);
            self.resume(
                turn,
                if settles { EscalationOutcome::Stop } else { EscalationOutcome::Resume },
            );
        }
    }

    /// The supervisor has commanded a restart.
    fn restart_on_command(&mut self, turn: &AnyTurn<'_>, options: RestartOptions) {
        if self.status().is_stopping() || self.status().stage == Stage::Restarting {
            return;
        }
        let rare = self.rare_or_new();
        rare.is_commanded = true;
        // The state of the actor's own strategies is about the previous incarnation.
        rare.strategies.iter_mut().for_each(StrategyState::reset);
        self.restart(turn, options);
    }

    /// Handles an internal message, which arrived in this node.
    fn handle_internal(
        &mut self,
        turn: &AnyTurn<'_>,
        message: InternalMessage,
        node: PreallocatedNode,
    ) {
        match message {
            InternalMessage::Watch { watcher } => {
                self.rare_or_new().watchers.insert(watcher.pid(), (watcher, node));
            }
            InternalMessage::Unwatch { watcher } => {
                if let Some(rare) = self.rare_mut() {
                    rare.watchers.remove(&watcher);
                }
            }
            InternalMessage::Terminated(terminated) => self.queue_terminated(terminated),
            InternalMessage::Starting(path) => self.child_starting(turn, &path),
            InternalMessage::WatchFor { who } => self.watch(turn, &who),
            InternalMessage::UnwatchFor { who } => self.unwatch(turn, &who),
            InternalMessage::System(message) => self.system_message(turn, *message),
        }
    }

    /// Handles the report of a child: its restart first, then its failure, the only possible order.
    fn handle_child_report(&mut self, turn: &AnyTurn<'_>, report: ChildReport) {
        let ChildReport { child, restarted_nanos, failed } = report;
        let Some(child) = child else { return };
        if let Some(now_nanos) = restarted_nanos {
            self.child_restarted(turn, &child, now_nanos);
        }
        if let Some(failed) = failed {
            self.child_failed(turn, failed);
        }
    }

    /// Handles timer events.
    fn handle_timer_events(&mut self, turn: &AnyTurn<'_>, events: &TimerEvents) {
        if let Some(number) = events.backoff {
            self.backoff_over(turn, number);
        }
        if let Some(wait) = events.stop_timeout {
            self.stop_timeout_elapsed(turn, wait);
        }
        if events.retries {
            self.retry_escalations(turn);
        }
        if let Some(number) = events.receive_timeout {
            self.receive_timeout_later(number);
        }
    }

    /// Handles a message that a host has sent.
    fn system_message(&mut self, turn: &AnyTurn<'_>, message: SystemMessage) {
        let header = turn.front();
        match message {
            SystemMessage::Stop => self.apply_supervision(turn, STOP),
            SystemMessage::Restart => self.apply_supervision(turn, RESTART),
            SystemMessage::Suspend => _ = self.suspend_by_host(header, true),
            SystemMessage::Resume if self.suspend_by_host(header, false) => {}
            SystemMessage::Resume => self.apply_supervision(turn, RESUME),
            SystemMessage::Failure(info) => self.host_reported_failure(turn, info),
            SystemMessage::Escalate(info) => {
                self.signal_later(Signal::Escalated(info.clone()));
                self.host_reported_failure(turn, info);
            }
            SystemMessage::Terminated(end) => self.queue_terminated(end),
            SystemMessage::Watch(watcher) | SystemMessage::Unwatch(watcher) => {
                let Some(watcher) = header.system().find(watcher) else { return };
                let who = turn.me();
                // Both sides keep a record of the watch, and the watcher's side initiates it.
                drop(watcher.send_internal(if matches!(message, SystemMessage::Watch(_)) {
                    InternalMessage::WatchFor { who }
                } else {
                    InternalMessage::UnwatchFor { who }
                }));
            }
        }
    }

    /// Increments or decrements the number of suspensions by hosts; false if that is not possible.
    /// The suspensions by the parent are counted by the parent.
    fn suspend_by_host(&mut self, header: &ActorHeader, more: bool) -> bool {
        let held = &mut self.rare_or_new().host_suspensions;
        let next = if more { held.checked_add(1) } else { held.checked_sub(1) };
        let Some(next) = next else { return false };
        *held = next;
        header.suspend(more);
        true
    }

    pub(super) fn signal_later(&mut self, signal: Signal) {
        self.rare_or_new().signals.push_back(PendingSignal::Signal(signal));
        self.status_mut().set(PENDING, true);
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Handles what is in the system queue; control messages are queued for later.
    pub(super) fn drain_system_queue(&mut self, turn: &TurnOf<'_, A::Msg>) {
        for item in turn.front().header.system_queue.take::<A::Msg>() {
            match item {
                SystemItem::Control(item) => self.control_later(item),
                SystemItem::Internal(message, node) => {
                    self.with_untyped(turn, |cell, turn| cell.handle_internal(turn, message, node));
                }
                SystemItem::ChildReport(report) => {
                    self.with_untyped(turn, |cell, turn| cell.handle_child_report(turn, report))
                }
                SystemItem::TimerEvents(events) => {
                    self.with_untyped(turn, |cell, turn| cell.handle_timer_events(turn, &events))
                }
            }
        }
    }

    /// Moves messages of waiting senders into the mailbox, as far as there is room.
    pub(super) fn admit_waiters(turn: &TurnOf<'_, A::Msg>) {
        let Some(waiters) = turn.front().waiters() else { return };
        for message in waiters.take_cancelled() {
            turn.drop_contained(message);
        }
        while let Some(admitted) = waiters.admit() {
            if let Some((permit, mut message)) = admitted.deferred {
                let mut made = None;
                match turn.guarded(&mut || made = Some(message.make())) {
                    Ok(()) => _ = made.map(|msg| permit.write(Envelope::new(msg))),
                    Err(caught) => {
                        turn.discard(caught);
                        publish_dead_letter::<A::Msg>(&any(turn), DeadLetterReason::NoReceiver);
                    }
                }
                turn.drop_contained(message);
            }
            if !mutant!("send-admitted-unwoken") {
                wake_contained(&any(turn), admitted.waker);
            }
        }
    }

    /// Refuses the senders that wait for room. The mailbox is closed.
    pub(super) fn refuse_waiters(turn: &TurnOf<'_, A::Msg>) {
        let Some(waiters) = turn.front().waiters() else { return };
        let left = waiters.close();
        for request in left.requests {
            if mutant!("ask-request-outlives-stop") {
                core::mem::forget(request);
                continue;
            }
            publish_dead_letter::<A::Msg>(&any(turn), DeadLetterReason::Stopped);
            turn.drop_contained(request);
        }
        for waker in left.wakers {
            if !mutant!("send-refused-unwoken") {
                wake_contained(&any(turn), Some(waker));
            }
        }
    }

    pub(super) fn control_later(&mut self, item: Control<A::Msg>) {
        self.state.rare().control.push_back(item);
        self.state.set(PENDING, true);
    }

    /// Handles one item that precedes the mailbox. None if there is no such item.
    pub(super) fn next_pending(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
        while self.state.stage == Stage::Running {
            let rare = self.state.rare();
            let is_waiting = rare.futures.is_waiting() && !mutant!("actor-wait-takes-messages");
            let has_news = !rare.signals.is_empty() || !rare.control.is_empty();
            let is_nothing_put_back = rare.unstashed.is_empty() && rare.replay.is_empty();
            let has_old = !is_nothing_put_back && !is_waiting;
            let is_lent = rare.futures.is_lent();
            if !rare.futures.has_due() && (is_lent || !has_news && !has_old) {
                if is_waiting {
                    // PENDING stays set, so that the mailbox is left alone until the wait is over.
                    return Some(Outcome::Sleep(ParkMode::Wait));
                }
                self.state.set(PENDING, false);
                return None;
            }
            if !budget.take(turn) {
                return Some(Outcome::Again);
            }
            let rare = self.state.rare();
            if is_lent {
                self.poll_next(turn);
            } else if let Some(pending) = rare.signals.pop_front() {
                if let Some(pid) = pending.stopped_pid() {
                    rare.watching.remove(&pid);
                }
                match pending {
                    PendingSignal::Signal(signal) => self.signal(turn, signal),
                    PendingSignal::Message(_, message) => {
                        if let Ok(msg) = message.downcast() {
                            self.receive_envelope(turn, Envelope::new(*msg));
                        }
                    }
                }
            } else if let Some(item) = rare.control.pop_front() {
                self.control(turn, item);
            } else if rare.futures.has_due() {
                self.poll_next(turn);
            } else if let Some(envelope) = rare.unstashed.pop_front() {
                self.receive_envelope(turn, envelope);
            } else if let Some(envelope) = rare.replay.pop_front() {
                self.receive_envelope(turn, envelope);
            }
            // System messages that have arrived in the meantime go first.
            if turn.front().header.flags() & !WAITERS != 0 {
                return Some(Outcome::Again);
            }
        }
        Some(Outcome::Again)
    }

    fn control(&mut self, turn: &TurnOf<'_, A::Msg>, item: Control<A::Msg>) {
        match item {
            Control::Message(envelope) => self.receive_envelope(turn, envelope),
            Control::Timer(fired) => self.timer_fired(turn, fired),
            Control::ReceiveTimeout(number) => self.receive_timeout_fired(turn, number),
        }
    }

    /// Calls the signal handler of the actor.
    pub(crate) fn signal(&mut self, turn: &TurnOf<'_, A::Msg>, signal: Signal) {
        let Some(actor) = &mut self.actor else { return };
        let unless_handled = unless_handled(&signal);
        self.state.rare().in_other_handler = true;
        let mut cx = Context::new(&mut self.state, turn);
        let result = match (actor.signal(&mut cx, signal), unless_handled) {
            (Ok(Next::Unhandled), Some(failure)) => Err(failure),
            (Ok(Next::Unhandled), None) => Ok(Next::Stay),
            (result, _) => result,
        };
        self.state.rare().in_other_handler = false;
        self.handle_result::<Signal>(turn, result);
        self.state.restart_receive_timeout(turn);
    }

    /// Calls user code of the actor inside `catch_unwind`; a panic becomes a failure.
    pub(super) fn call_catching(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        call: impl FnOnce(&mut A, &mut Context<'_, A>) -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let Self { actor, state, .. } = self;
        let Some(actor) = actor else { return Ok(Next::Stay) };
        let (mut call, mut result) = (Some(call), Ok(Next::Stay));
        super::lifecycle::catch_failure(&any(turn), &mut || {
            if let Some(call) = call.take() {
                result = call(actor, &mut Context::new(state, turn));
            }
        })?;
        result
    }
}

/// The failure of an actor that leaves a signal unhandled.
fn unless_handled(signal: &Signal) -> Option<Failure> {
    match signal {
        Signal::Terminated(_) => Some(super::DEATH_PACT.failure()),
        Signal::AdapterFailed(failure) if !mutant!("actor-adapter-failure-ignored") => {
            failure.downcast_ref::<Panicked>().cloned().map(Failure::from)
        }
        _ => None,
    }
}

/// The current children, newest first.
pub(super) fn children_of(turn: &AnyTurn<'_>) -> Vec<AnyActor> {
    let children = turn.front().children();
    children.map_or_else(Vec::new, |children| {
        children.with(|children| children.newest_first().cloned().collect())
    })
}

/// Calls a waker; a panic in it does not affect the actor.
fn wake_contained(turn: &AnyTurn<'_>, waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(caught) = turn.guarded(&mut || waker.wake_by_ref()) {
        turn.discard(caught);
    }
    turn.drop_contained(waker);
}
