//! What a runner handles before user messages: the system queue, stopped children, commands,
//! signals, control messages and futures.

use core::task::Waker;

use super::{
    AnyPoll, Budget, Cell, CellState, CellVTable, Outcome, PENDING, ParkMode, PendingSignal,
    PollOf, Stage, WAS_STARTED, WAS_STOPPED, any,
    group::is_its_turn,
    lifecycle::{EscalationOutcome, publish_dead_letter},
    supervise::report_undecided,
};
use crate::{
    Actor, Context, Failure, FailureInfo, Next, Signal, SystemMessage,
    cell::{
        envelope::Envelope,
        header::{
            ActorHeader, CHILD_STOPPED, EVENTS, FUTURES, MAILBOX_FULL, PREPARE, REFUSALS, RESTART,
            RESUME, SATURATED, STOP, STOP_WHEN_IDLE, SUSPEND_ONE, SYSTEM_QUEUE, SystemSend,
            WAITERS,
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
    receive_timeout::TimeoutCheck,
    strategy::StrategyState,
};

/// Flags that do not interrupt what a runner has begun: they stay set while the mailbox is full,
/// and what they ask for can wait until the next poll.
const LATER: u32 = WAITERS | EVENTS | MAILBOX_FULL | SATURATED;

/// How many failures of children wait for an actor that handles no signals.
const CHILD_FAILURES_MAX: u32 = 256;

impl dyn CellVTable + '_ {
    /// Handles everything that precedes user messages. None if a user message is next.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_system_messages(
        &mut self,
        poll: &AnyPoll<'_>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
        let header = poll.shared();
        let panicked = self.rare_mut().and_then(|rare| rare.panicked.take());
        if let Some((failure, message_type)) = panicked {
            self.fail(poll, failure, message_type);
            self.apply_deferred();
            self.restart_receive_timeout();
        }
        let flags = header.take_flags();
        if flags & PREPARE != 0 {
            self.prepare();
        }
        let is_new = self.status().stage == Stage::Initial && !self.status().has(WAS_STARTED);
        let mut was_started = false;
        let may_start = is_new && flags & STOP == 0 && is_its_turn(poll);
        if may_start {
            // Other threads may have started children below a guardian before its first poll.
            was_started = true;
            self.start(poll);
            self.pass_turn(poll, false);
        }
        let stopped = (flags & CHILD_STOPPED != 0).then(|| header.take_stopped_children());
        self.collect_arrived(poll, flags);
        for child in stopped.into_iter().flatten() {
            self.child_stopped(poll, &child);
        }
        self.apply_supervision(poll, flags);
        if header.flags() >= SUSPEND_ONE {
            self.suspend_children(poll);
        }
        if flags & WAITERS != 0 {
            self.admit_waiters();
        }
        if flags & EVENTS != 0 {
            header.system().events().serve(poll.pid());
        }
        if flags & REFUSALS != 0 {
            header.system().serve_refusals();
        }
        loop {
            match self.status().stage {
                Stage::Initial if is_new && !may_start => {
                    return Some(Outcome::Park(ParkMode::Wait));
                }
                // An actor that fails in each start must not occupy the worker.
                Stage::Initial if was_started => return Some(Outcome::PollAgain),
                Stage::Initial => {
                    was_started = true;
                    self.start(poll);
                }
                Stage::Running => break,
                Stage::Failed => return Some(Outcome::Park(ParkMode::Wait)),
                Stage::Restarting => {
                    // Messages are kept for the next incarnation.
                    if !self.may_restart(poll) {
                        return Some(self.keep_incoming(budget));
                    }
                    self.status_mut().stage = Stage::Initial;
                }
                Stage::Stopping if self.has_no_children(poll) => self.finish(poll),
                // A sender that waits for an answer need not wait for the children too, so its
                // message becomes a dead letter now.
                Stage::Stopping => {
                    let is_empty = self.drain_mailbox();
                    return Some(if is_empty {
                        Outcome::Park(ParkMode::Wait)
                    } else {
                        Outcome::PollAgain
                    });
                }
                Stage::Draining => return Some(self.drain(poll)),
            }
        }
        self.handle_pending(poll, budget)
    }

    /// Takes what has arrived in the system queue, timers without a job, and woken futures.
    fn collect_arrived(&mut self, poll: &AnyPoll<'_>, flags: u32) {
        if flags & SYSTEM_QUEUE != 0 {
            self.drain_system_queue();
        }
        self.fire_substitutes(poll);
        if flags & FUTURES != 0 {
            self.collect_futures();
        }
    }

    /// Handles what a running actor has besides its mailbox. None if a user message is next.
    fn handle_pending(&mut self, poll: &AnyPoll<'_>, budget: &mut Budget) -> Option<Outcome> {
        let header = poll.shared();
        if header.flags() >= SUSPEND_ONE {
            return Some(Outcome::Park(ParkMode::Wait));
        }
        self.unsuspend_children(poll);
        if self.status().has(PENDING)
            && let Some(outcome) = self.next_pending(budget)
        {
            return Some(outcome);
        }
        if header.flags() & STOP_WHEN_IDLE != 0 && self.is_idle() {
            self.stop(poll, None);
            return Some(Outcome::PollAgain);
        }
        None
    }
}

impl dyn CellVTable + '_ {
    /// Applies the commands of the supervisor.
    fn apply_supervision(&mut self, poll: &AnyPoll<'_>, flags: u32) {
        if flags & STOP != 0 && !self.status().is_stopping() {
            self.status_mut().set(WAS_STOPPED, true);
            self.stop(poll, None);
        }
        if self.status().is_stopping() {
            return;
        }
        // Each command takes only its own kind of parameters: a command that arrives in between is
        // handled by the next poll.
        let link = poll.shared().parent_link();
        if flags & RESTART != 0 {
            let options =
                link.and_then(ParentLink::take_restart_options).unwrap_or(RestartOptions::DEFAULT);
            self.restart_on_command(poll, options);
        } else if flags & RESUME != 0 && self.status().stage == Stage::Failed {
            let settles = link.is_some_and(ParentLink::take_stop_escalated);
            self.resume(
                poll,
                if settles { EscalationOutcome::Stop } else { EscalationOutcome::Resume },
            );
        }
    }

    /// The supervisor has commanded a restart.
    fn restart_on_command(&mut self, poll: &AnyPoll<'_>, options: RestartOptions) {
        if self.status().is_stopping() {
            return;
        }
        if self.status().stage == Stage::Restarting {
            return self.restart_in_part(poll, options);
        }
        let rare = self.rare_or_new();
        rare.is_commanded = true;
        // The state of the actor's own strategies is about the previous incarnation.
        rare.strategies.iter_mut().for_each(StrategyState::reset);
        self.restart(poll, options);
    }

    /// Handles an internal message, which arrived in this node.
    fn handle_internal(
        &mut self,
        poll: &AnyPoll<'_>,
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
            InternalMessage::Starting(path) => self.child_starting(poll, &path),
            InternalMessage::WatchFor { who } => self.watch(poll, &who),
            InternalMessage::UnwatchFor { who } => self.unwatch(poll, &who),
            InternalMessage::System(message) => self.system_message(poll, *message),
        }
    }

    /// Handles the report of a child: its restart first, then its failure, the only possible order.
    fn handle_child_report(&mut self, poll: &AnyPoll<'_>, report: ChildReport) {
        let ChildReport { child, restarted_nanos, is_down, failed } = report;
        let Some(child) = child else { return };
        if let Some(now_nanos) = restarted_nanos {
            self.child_restarted(poll, &child, now_nanos);
        }
        if is_down {
            // The child has failed before it has ended, because it waits since then. Not after the
            // next line: that may start the child, which may fail again, on another thread, before
            // this thread looks at the old failure, which would then count as the new one.
            if let Some(failed) = failed {
                report_undecided(poll, failed);
            }
            self.member_is_down(poll, &child);
        } else if let Some(failed) = failed {
            self.child_failed(poll, failed);
        }
    }

    /// Handles timer events.
    pub(super) fn handle_timer_events(&mut self, poll: &AnyPoll<'_>, events: &TimerEvents) {
        if let Some(number) = events.backoff {
            self.backoff_over(poll, number);
        }
        if let Some(wait) = events.stop_timeout {
            self.stop_timeout_elapsed(poll, wait);
        }
        if events.retries {
            self.rare_or_new().retry_timer = None;
            self.retry_escalations(poll);
        }
        if let Some(number) = events.receive_timeout {
            self.receive_timeout_later(number);
        }
    }

    /// Handles a message that a host has sent.
    fn system_message(&mut self, poll: &AnyPoll<'_>, message: SystemMessage) {
        let header = poll.shared();
        match message {
            SystemMessage::Stop => self.apply_supervision(poll, STOP),
            SystemMessage::Restart => self.apply_supervision(poll, RESTART),
            SystemMessage::Suspend => _ = self.suspend_by_host(header, true),
            SystemMessage::Resume if self.suspend_by_host(header, false) => {}
            SystemMessage::Resume => self.apply_supervision(poll, RESUME),
            SystemMessage::Failure(info) => self.host_reported_failure(poll, info),
            SystemMessage::Escalate(info) => {
                self.signal_later(Signal::Escalated(info.clone()));
                self.host_reported_failure(poll, info);
            }
            SystemMessage::Terminated(end) => self.queue_terminated(end),
            SystemMessage::Watch(watcher) | SystemMessage::Unwatch(watcher) => {
                let Some(watcher) = header.system().find(watcher) else { return };
                let who = poll.self_ref();
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

    /// Signals the failure of a child. An actor that waits for a future handles no signals, while
    /// its children can fail again and again: beyond a limit, further ones become dead letters.
    pub(super) fn child_failed_later(&mut self, poll: &AnyPoll<'_>, info: FailureInfo) {
        let rare = self.rare_or_new();
        if rare.child_failures >= CHILD_FAILURES_MAX {
            return publish_dead_letter::<Signal>(poll, DeadLetterReason::MailboxFull);
        }
        rare.child_failures += 1;
        self.signal_later(Signal::ChildFailed(info));
    }
}

impl<A: Actor> CellState<A> {
    pub(super) fn control_later(&mut self, item: Control<A::Msg>) {
        self.rare().control.push_back(item);
        self.set(PENDING, true);
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Handles what is in the system queue; control messages are queued for later.
    pub(super) fn drain_system_queue(&mut self, poll: &PollOf<'_, A::Msg>) {
        for item in poll.shared().header.system_queue.take::<A::Msg>() {
            match item {
                SystemItem::Control(item) => self.state.control_later(item),
                SystemItem::TimerFired(fired) => self.state.timer_later(fired),
                SystemItem::Internal(message, node) => {
                    self.with_untyped(poll, |cell, poll| cell.handle_internal(poll, message, node));
                }
                SystemItem::ChildReport(report) => {
                    self.with_untyped(poll, |cell, poll| cell.handle_child_report(poll, report))
                }
                SystemItem::TimerEvents(events) => {
                    self.with_untyped(poll, |cell, poll| cell.handle_timer_events(poll, &events))
                }
            }
        }
    }

    /// Moves messages of waiting senders into the mailbox, as far as there is room.
    pub(super) fn admit_waiters(poll: &PollOf<'_, A::Msg>) {
        let Some(waiters) = poll.shared().waiters() else { return };
        for message in waiters.take_cancelled() {
            poll.drop_catching_panic(message);
        }
        while let Some(admitted) = waiters.admit() {
            if let Some((permit, mut message)) = admitted.deferred {
                let mut made = None;
                match poll.catch_unwind(&mut || made = Some(message.make())) {
                    Ok(()) => _ = made.map(|envelope| permit.write(envelope)),
                    Err(caught) => {
                        poll.drop_panic_payload(caught);
                        publish_dead_letter::<A::Msg>(&any(poll), DeadLetterReason::NoReceiver);
                    }
                }
                poll.drop_catching_panic(message);
            }
            wake_contained(&any(poll), admitted.waker);
        }
    }

    /// Refuses the senders that wait for room. The mailbox is closed.
    pub(super) fn refuse_waiters(poll: &PollOf<'_, A::Msg>) {
        let Some(waiters) = poll.shared().waiters() else { return };
        let left = waiters.close();
        for request in left.requests {
            publish_dead_letter::<A::Msg>(&any(poll), DeadLetterReason::Stopped);
            poll.drop_catching_panic(request);
        }
        for waker in left.wakers {
            wake_contained(&any(poll), Some(waker));
        }
    }

    /// Handles one item that precedes the mailbox. None if there is no such item.
    pub(super) fn next_pending(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        budget: &mut Budget,
    ) -> Option<Outcome> {
        while self.state.stage == Stage::Running {
            let rare = self.state.rare();
            let is_waiting = rare.futures.is_waiting();
            let has_news = !rare.signals.is_empty() || !rare.control.is_empty();
            let is_nothing_put_back = rare.unstashed.is_empty() && rare.replay.is_empty();
            let has_old = !is_nothing_put_back && !is_waiting;
            let (is_lent, has_due) = (rare.futures.is_lent(), rare.futures.has_due());
            let has_none = !has_due && (is_lent || !has_news && !has_old);
            let timeout = if has_none && !is_lent {
                self.state.check_receive_timeout(poll)
            } else {
                TimeoutCheck::Done
            };
            if has_none && timeout != TimeoutCheck::Fires {
                if is_waiting {
                    // PENDING stays set, so that the mailbox is left alone until the wait is over.
                    return Some(Outcome::Park(ParkMode::Wait));
                }
                // A timeout that waits for messages is checked again after the next one.
                self.state.set(PENDING, timeout != TimeoutCheck::Done);
                return None;
            }
            if !budget.take(poll) {
                return Some(Outcome::PollAgain);
            }
            let rare = self.state.rare();
            if timeout == TimeoutCheck::Fires {
                self.receive_timeout_fired(poll);
            } else if is_lent {
                self.poll_next(poll);
            } else if let Some(pending) = rare.signals.pop_front() {
                if let Some(pid) = pending.stopped_pid() {
                    rare.watching.remove(&pid);
                }
                if matches!(pending, PendingSignal::Signal(Signal::ChildFailed(_))) {
                    rare.child_failures -= 1;
                }
                match pending {
                    PendingSignal::Signal(signal) => self.signal(poll, signal),
                    PendingSignal::Message(_, message) => {
                        if let Ok(msg) = message.downcast() {
                            self.receive_envelope(poll, Envelope::new(*msg));
                        }
                    }
                }
            } else if let Some(item) = rare.control.pop_front() {
                self.control(poll, item);
            } else if rare.futures.has_due() {
                self.poll_next(poll);
            } else if let Some(envelope) = rare.unstashed.pop_front() {
                self.receive_envelope(poll, envelope);
            } else if let Some(envelope) = rare.replay.pop_front() {
                self.receive_envelope(poll, envelope);
            }
            // System messages that have arrived in the meantime go first.
            if poll.shared().header.flags() & !LATER != 0 {
                return Some(Outcome::PollAgain);
            }
        }
        Some(Outcome::PollAgain)
    }

    fn control(&mut self, poll: &PollOf<'_, A::Msg>, item: Control<A::Msg>) {
        match item {
            Control::Message(envelope) => self.receive_envelope(poll, envelope),
            Control::Timer(fired) => self.timer_fired(poll, fired, None),
        }
    }

    /// Calls the signal handler of the actor.
    pub(crate) fn signal(&mut self, poll: &PollOf<'_, A::Msg>, signal: Signal) {
        let Some(actor) = &mut self.actor else { return };
        let unless_handled = unless_handled(&signal);
        self.state.rare().in_other_handler = true;
        let mut cx = Context::new(&mut self.state, poll);
        let result = match (actor.signal(&mut cx, signal), unless_handled) {
            (Ok(Next::Unhandled), Some(failure)) => Err(failure),
            (Ok(Next::Unhandled), None) => Ok(Next::Stay),
            (result, _) => result,
        };
        self.state.rare().in_other_handler = false;
        self.handle_result::<Signal>(poll, result);
        self.state.restart_receive_timeout(poll);
    }

    /// Calls user code of the actor inside `catch_unwind`; a panic becomes a failure.
    pub(super) fn call_catching(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        call: impl FnOnce(&mut A, &mut Context<'_, A>) -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let Self { actor, state, .. } = self;
        let Some(actor) = actor else { return Ok(Next::Stay) };
        let (mut call, mut result) = (Some(call), Ok(Next::Stay));
        super::lifecycle::catch_failure(&any(poll), &mut || {
            if let Some(call) = call.take() {
                result = call(actor, &mut Context::new(state, poll));
            }
        })?;
        result
    }
}

/// The failure of an actor that leaves a signal unhandled.
fn unless_handled(signal: &Signal) -> Option<Failure> {
    match signal {
        Signal::Terminated(_) => Some(super::DEATH_PACT.failure()),
        Signal::AdapterFailed(failure) => {
            failure.downcast_ref::<Panicked>().cloned().map(Failure::from)
        }
        _ => None,
    }
}

/// Calls a waker; a panic in it does not affect the actor.
fn wake_contained(poll: &AnyPoll<'_>, waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(caught) = poll.catch_unwind(&mut || waker.wake_by_ref()) {
        poll.drop_panic_payload(caught);
    }
    poll.drop_catching_panic(waker);
}
