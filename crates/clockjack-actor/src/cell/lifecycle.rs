//! The life cycle of an actor: start, restart and stop.

use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::{backoff, mail::Pop, primitive::hint};

use super::{
    AnyPoll, Budget, Cell, CellVTable, Outcome, PENDING, ParkMode, PendingSignal, PollOf, Stage,
    WAS_STARTED, Watchers, any,
    children::{Children, search},
    empty_token,
    group::Hold,
    poll_again_after_wait, pop,
    priority::{Item, priority_of},
    supervise::{report_hook_failure, report_of},
};
use crate::{
    Actor, FailureReport, Next, Signal, TerminationCause,
    cell::{
        envelope::Envelope,
        header::{AnyActor, CHILD_STOPPED, FAILED, RESUME, STOP, STOPPED, SystemSend},
    },
    events::{DeadLetterReason, LifecycleStep, SystemEvent},
    mailbox::{
        control::Control,
        system_queue::{self, InternalMessage, RestartOptions, SystemItem, TimerEvent},
    },
};

/// How often an actor that is stopped by force checks for a message that a producer is about to
/// write: a few milliseconds.
const SPINS_MAX: u32 = 1 << 16;

impl dyn CellVTable + '_ {
    /// Creates the actor and calls `started`.
    pub(super) fn start(&mut self, poll: &AnyPoll<'_>) {
        let path = &poll.shared().path;
        let mut made = Ok(());
        if let Some(rare) = self.rare_mut()
            && !rare.strategies.is_empty()
        {
            made = catch_failure(poll, &mut || {
                rare.strategies.iter_mut().for_each(|state| state.before_start(path));
            });
        }
        let mut result = match made.and_then(|()| self.create_actor()) {
            Ok(()) => {
                self.status_mut().stage = Stage::Running;
                match self.call_started() {
                    Ok(Next::Unhandled) => {
                        Err(Failure::msg("`started` returned `Next::Unhandled`"))
                    }
                    result => result,
                }
            }
            Err(failure) => Err(failure),
        };
        let is_first = !self.status().has(WAS_STARTED);
        if result.is_ok() && !is_first {
            result = self.restarted(poll).and(result);
        }
        if result.is_ok() {
            self.report_start(poll);
        }
        match result {
            Ok(next) => {
                self.status_mut().set(WAS_STARTED, true);
                let step = if is_first { LifecycleStep::Started } else { LifecycleStep::Restarted };
                self.publish_step(poll, step);
                self.apply_deferred();
                if next == Next::Stop {
                    self.stop(poll, None);
                }
            }
            Err(failure) => {
                // It has not started, so it receives neither `PreRestart` nor `PostStop`.
                self.drop_actor();
                self.fail(poll, failure, None);
            }
        }
    }

    /// A restart has succeeded, unless a hook fails.
    fn restarted(&mut self, poll: &AnyPoll<'_>) -> Result<(), Failure> {
        let header = poll.shared();
        let now = poll.nanos();
        let rare = self.rare_or_new();
        let strategies = &mut rare.strategies;
        catch_failure(poll, &mut || {
            for state in &mut *strategies {
                state.restarted(now);
                state.after_restart(&header.path);
            }
        })?;
        rare.restarts = rare.restarts.saturating_add(1);
        rare.last_restart_nanos = Some(now);
        header.count_restart();
        self.continue_children(poll, EscalationOutcome::Restart);
        Ok(())
    }

    /// Reports a start that the parent has commanded.
    fn report_start(&mut self, poll: &AnyPoll<'_>) {
        let is_commanded = self.rare_mut().is_some_and(|rare| {
            // An actor without rare state was never restarted. Nothing is allocated for one that
            // was not.
            if poll.shared().is_restarting() {
                poll.shared().set_restarting(false);
            }
            core::mem::take(&mut rare.is_commanded)
        });
        if let (true, Some(parent)) = (is_commanded, &poll.shared().parent) {
            let (me, now) = (poll.self_ref(), poll.nanos());
            drop(parent.send_child_report(&me, |report| report.restarted_nanos = Some(now)));
        }
    }

    /// Resumes the children that were kept, and suspended because this actor failed. Children whose
    /// failure was escalated get the decision that was made above.
    pub(super) fn continue_children(&mut self, poll: &AnyPoll<'_>, outcome: EscalationOutcome) {
        self.unsuspend_children(poll);
        let Some(rare) = self.rare_mut() else { return };
        for child in core::mem::take(&mut rare.suspended).into_values() {
            match outcome {
                EscalationOutcome::Restart => {
                    self.restart_child(poll, &child, RestartOptions::DEFAULT)
                }
                EscalationOutcome::Resume | EscalationOutcome::Stop => {
                    child.clear_flags(FAILED);
                    child.wake_with(if outcome == EscalationOutcome::Resume {
                        RESUME
                    } else {
                        STOP
                    });
                }
            }
        }
    }

    fn publish_step(&self, poll: &AnyPoll<'_>, step: LifecycleStep) {
        let header = poll.shared();
        header.system().lifecycle_changed(poll.pid(), header, step);
    }

    /// Begins to stop: closes the mailbox and stops the children first.
    pub(super) fn stop(&mut self, poll: &AnyPoll<'_>, failure: Option<Failure>) {
        if self.status().is_stopping() {
            return;
        }
        if let Some(failure) = failure {
            let report = report_of(poll, &failure);
            poll.drop_catching_panic(failure);
            self.rare_or_new().reason = Some(report);
        }
        self.status_mut().stage = Stage::Stopping;
        poll.shared().clear_flags(FAILED);
        // An asker whose request will not be answered reads this flag to find out why.
        if poll.shared().flags() & STOP == 0 {
            poll.shared().set_flags(STOP);
        }
        self.close_mail();
        self.cancel_incarnation();
        self.pass_turn(poll, true);
        poll.shared().close_children();
        self.stop_children(poll);
    }

    /// Cancels what belongs to this incarnation of the actor: timers, futures and adapters.
    fn cancel_incarnation(&mut self) {
        self.cancel_owned(true);
        if let Some(rare) = self.rare_mut() {
            rare.backoff = 0;
            if let Some(timer) = rare.backoff_timer.take() {
                timer.cancel();
            }
        }
    }

    /// Begins to stop the children, unless that has begun.
    fn stop_children(&mut self, poll: &AnyPoll<'_>) {
        self.dissolve_group(poll);
        if self.rare().is_none_or(|rare| rare.stopping_child.is_none()) {
            self.stop_next_child(poll);
        }
    }

    /// Stops the child that was started last; when it has stopped, the one before it follows.
    pub(super) fn stop_next_child(&mut self, poll: &AnyPoll<'_>) {
        let Some(children) = poll.shared().children() else { return };
        let Some(next) = search(children, Children::next_to_stop) else {
            return self.all_have_stopped();
        };
        next.wake_with(STOP);
        self.wait_for_stop(poll, next);
    }

    /// Waits until a child has stopped, but not longer than the stop timeout.
    pub(super) fn wait_for_stop(&mut self, poll: &AnyPoll<'_>, child: AnyActor) {
        let rare = self.rare_or_new();
        rare.stopping_child = Some(child);
        rare.stop_wait = rare.stop_wait.wrapping_add(1);
        if rare.stop_timer.is_none() {
            self.arm_stop_timeout(poll);
        }
    }

    /// There is no further child to stop.
    pub(super) fn all_have_stopped(&mut self) {
        let Some(rare) = self.rare_mut() else { return };
        rare.stopping_child = None;
        rare.stop_wait = rare.stop_wait.wrapping_add(1);
        if let Some(timer) = rare.stop_timer.take() {
            timer.cancel();
        }
    }

    /// Arms the timer that limits the wait for the child.
    fn arm_stop_timeout(&mut self, poll: &AnyPoll<'_>) {
        self.arm_stop_timeout_for(poll, poll.shared().system().stop_timeout());
    }

    fn arm_stop_timeout_for(&mut self, poll: &AnyPoll<'_>, time: Duration) {
        let event = TimerEvent::StopTimeout(self.rare_or_new().stop_wait);
        let timer = self.arm_own_timer(poll, time, event);
        self.rare_or_new().stop_timer = Some(timer);
    }

    /// The timer has fired that was armed for the wait of this number, or for one before it.
    pub(super) fn stop_timeout_elapsed(&mut self, poll: &AnyPoll<'_>, wait: u32) {
        let rare = self.rare_or_new();
        let rest = rare.stop_timer.take().and_then(|timer| timer.rest(poll));
        let Some(straggler) = &rare.stopping_child else { return };
        if rare.stop_wait != wait {
            self.arm_stop_timeout(poll);
        } else if let Some(rest) = rest {
            self.arm_stop_timeout_for(poll, rest);
        } else {
            let path = straggler.path.clone();
            let events = poll.shared().system().events();
            events.publish(&SystemEvent::Straggler(path));
            self.after_stop(poll);
        }
    }

    pub(super) fn has_no_children(&self, poll: &AnyPoll<'_>) -> bool {
        let children = poll.shared().children();
        children.is_none_or(|children| children.with(|children| children.is_empty()))
    }

    /// Restarts the actor, as soon as its children have stopped and the delay, if any, has elapsed.
    pub(super) fn restart(&mut self, poll: &AnyPoll<'_>, options: RestartOptions) {
        if self.is_single_use() {
            self.stop(
                poll,
                Some(Failure::msg(
                    "the actor cannot be restarted: it was created from a value, without a factory",
                )),
            );
            return;
        }
        self.status_mut().stage = Stage::Restarting;
        poll.shared().set_restarting(true);
        poll.shared().clear_flags(FAILED);
        self.cancel_incarnation();
        let result = self.deliver_signal(Signal::PreRestart);
        // Whatever the hook has started belongs to the old incarnation as well.
        self.cancel_incarnation();
        if let Err(failure) = result {
            report_hook_failure(poll, failure);
        }
        self.drop_actor();
        let n_kept = self.keep_stashed();
        let rare = self.rare_or_new();
        rare.keeps_children = options.keeps_children;
        rare.hold = Hold::of(options.part);
        rare.room = options.stash.saturating_sub(n_kept);
        rare.unstash = 0;
        self.status_mut().set(PENDING, true);
        if !options.keeps_children {
            if let Some(children) = &mut self.rare_or_new().for_children {
                children.window.clear();
            }
            self.drop_child_watches(poll);
            self.stop_children(poll);
        }
        if let Some(delay) = options.delay {
            self.back_off(poll, delay);
        }
    }

    /// Whether nothing delays the restart any more.
    pub(super) fn may_restart(&mut self, poll: &AnyPoll<'_>) -> bool {
        let rare = self.rare_or_new();
        let (keeps_children, is_due) = (rare.keeps_children, rare.backoff == 0);
        let has_ended = keeps_children || self.has_no_children(poll);
        has_ended && is_due && !self.waits_for_group(poll)
    }

    /// All children have stopped: calls `PostStop` and drops the actor.
    pub(super) fn finish(&mut self, poll: &AnyPoll<'_>) {
        let result = self.deliver_signal(Signal::PostStop);
        self.cancel_incarnation();
        if let Err(failure) = result {
            report_hook_failure(poll, failure);
        }
        self.drop_actor();
        self.status_mut().stage = Stage::Draining;
    }

    /// Turns the remaining messages into dead letters, and finishes unless a producer is about to
    /// write one more.
    pub(super) fn drain(&mut self, poll: &AnyPoll<'_>) -> Outcome {
        if !self.drain_mailbox() {
            return Outcome::PollAgain;
        }
        self.announce_stop(poll);
        Outcome::Finished
    }

    /// Makes the stop visible to others and notifies them.
    fn announce_stop(&mut self, poll: &AnyPoll<'_>) {
        let header = poll.shared();
        let mut cause = self.rare().map(|rare| rare.cause).unwrap_or_default();
        let (mut watchers, reason) = self.discard_all();
        if reason.is_some() {
            cause = TerminationCause::Failed;
        }
        if cause != TerminationCause::Stopped {
            // For a parent that watches this actor.
            header.parent_link_or_new().set_end(cause, reason);
        }
        header.set_flags(STOPPED);
        self.close_system_queue(&mut watchers);
        self.publish_step(poll, LifecycleStep::Stopped);
        for (watcher, node) in watchers.into_values() {
            // A watcher that has stopped too refuses the message.
            drop(watcher.send_internal_in(
                node,
                system_queue::terminated(poll.pid(), header.path.clone(), cause),
            ));
        }
        match &header.parent {
            Some(parent) => {
                let is_first = parent.push_stopped_child(poll.self_ref());
                // The child that found the list empty reports for all.
                let flags = if is_first {
                    parent.set_flags(CHILD_STOPPED)
                } else {
                    parent.flags() | CHILD_STOPPED
                };
                if flags & STOPPED != 0 {
                    // The parent was stopped by force before its children. Nobody else takes the
                    // cells off its lists, and they would keep each other alive. Either this thread
                    // sees that the parent has stopped, or the stopping parent sees the pushed
                    // child: both change the same flag word. The parent empties its table of
                    // children after that, so a child that is inserted later sees the flag as well.
                    drop(parent.take_stopped_children());
                    let me = poll.self_ref();
                    let children = parent.children();
                    drop(children.and_then(|children| children.with(|all| all.remove(&me))));
                } else if flags & CHILD_STOPPED == 0 {
                    // Behind other runnable tasks, because other children may be about to stop too.
                    parent.wake_last();
                }
            }
            None => {
                header.system().retry_escalations(&|call| catch_and_discard(poll, call));
                header.system().root_stopped();
            }
        }
    }

    /// The executor has stopped the task by force.
    pub(super) fn force_stop(&mut self, poll: &AnyPoll<'_>) {
        if self.status().stage == Stage::Draining && poll.shared().is_stopped() {
            return;
        }
        self.close_mail();
        self.cancel_owned(false);
        self.drop_actor();
        self.pass_turn(poll, true);
        self.drain_mailbox_now();
        self.announce_stop(poll);
        let header = poll.shared();
        drop(header.take_stopped_children());
        // Remaining children are stopped by force too, and this table would keep them alive.
        header.close_children();
        while let Some(children) = header.children()
            && let Some(child) = children.with(|children| {
                let last = children.newest().cloned()?;
                children.remove(&last)
            })
        {
            drop(child);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Takes messages out of the mailbox while a restart is pending, and keeps them.
    pub(super) fn keep_incoming(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        budget: &mut Budget,
    ) -> Outcome {
        let shared = poll.shared();
        loop {
            if !budget.take(poll) {
                return Outcome::PollAgain;
            }
            match pop(shared) {
                Pop::Item(envelope) => {
                    let rare = self.state.rare();
                    if rare.room > 0 {
                        rare.room = rare.room.saturating_sub(1);
                        self.keep(poll, envelope);
                    } else {
                        discard_for(poll, envelope, DeadLetterReason::StashFull);
                    }
                }
                Pop::Empty => {
                    // The restart may be far away.
                    shared.check_saturation_again();
                    let idle = empty_token(shared).map(ParkMode::Idle);
                    return idle.map_or(Outcome::PollAgain, Outcome::Park);
                }
                Pop::Retry => return poll_again_after_wait(),
            }
        }
    }

    /// Keeps a message for the next incarnation: behind the older ones, or by its priority.
    fn keep(&mut self, poll: &PollOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        match self.state.priority() {
            Some(priority) => {
                let rank = priority_of(poll, priority, &envelope.msg);
                self.state.rare().by_priority.push_kept(rank, envelope);
            }
            None => self.state.rare().replay.push_back(envelope),
        }
    }

    /// Turns the messages in the closed mailbox, and those before it, into dead letters. False if a
    /// producer is still about to write one.
    pub(super) fn drain_mailbox(&mut self, poll: &PollOf<'_, A::Msg>) -> bool {
        self.discard_queued(poll);
        loop {
            match pop(poll.shared()) {
                Pop::Item(envelope) => discard(poll, envelope),
                Pop::Empty => {
                    // The children may take long to stop. After them the stop itself relieves.
                    if self.state.stage == Stage::Stopping {
                        poll.shared().relieve_closed();
                    }
                    return true;
                }
                Pop::Retry => {
                    // The sender may be one that this thread has preempted.
                    backoff::wait(1);
                    return false;
                }
            }
        }
    }

    /// Turns the messages that precede the mailbox into dead letters, except those that the actor
    /// has stashed, which its last hook may still use.
    fn discard_queued(&mut self, poll: &PollOf<'_, A::Msg>) {
        let Some(queued) = self.state.rare.as_deref_mut() else { return };
        while let Some(envelope) = queued.replay.pop_front() {
            discard(poll, envelope);
        }
        while let Some(item) = queued.by_priority.pop() {
            match item {
                Item::Message(envelope) | Item::Kept(envelope) => discard(poll, envelope),
                // The timer was cancelled.
                Item::Timer { msg, .. } => drop_reported(&any(poll), msg),
            }
        }
        while let Some(item) = queued.control.pop_front() {
            discard_control(poll, item);
        }
    }

    /// Turns all kept messages into dead letters. Returns the watchers, and the failure that is the
    /// cause of the stop.
    pub(super) fn discard_all(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
    ) -> (Watchers, Option<FailureReport>) {
        let Some(kept) = self.state.rare.as_deref_mut() else { return (Watchers::new(), None) };
        for queue in [&mut kept.unstashed, &mut kept.stash] {
            while let Some(envelope) = queue.pop_front() {
                discard(poll, envelope);
            }
        }
        self.discard_queued(poll);
        let Some(mut rare) = self.state.rare.take() else { return (Watchers::new(), None) };
        while let Some(pending) = rare.signals.pop_front() {
            if let PendingSignal::Message(_, message) = pending {
                publish_dead_letter::<A::Msg>(&any(poll), DeadLetterReason::Stopped);
                drop_reported(&any(poll), message);
            }
        }
        let left = (core::mem::take(&mut rare.watchers), rare.reason.take());
        poll.drop_catching_panic(rare);
        left
    }

    /// Closes the system queue. Of the messages in it, only watches and unwatches are still
    /// processed.
    pub(super) fn close_system_queue(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        watchers: &mut Watchers,
    ) {
        for item in poll.shared().header.system_queue.close::<A::Msg>() {
            match item {
                SystemItem::Internal(InternalMessage::Watch { watcher }, node) => {
                    watchers.insert(watcher.pid(), (watcher, node));
                }
                SystemItem::Internal(InternalMessage::Unwatch { watcher }, _) => {
                    watchers.remove(&watcher);
                }
                SystemItem::Internal(note, _) => poll.drop_catching_panic(note),
                SystemItem::Control(item) => discard_control(poll, item),
                SystemItem::ChildReport(report) => poll.drop_catching_panic(report),
                SystemItem::TimerEvents(_) | SystemItem::TimerFired(_) => {}
            }
        }
    }

    /// Before a restart: puts the stashed messages before those that were kept by an earlier
    /// restart, which are younger. Returns the number of the latter.
    pub(super) fn keep_stashed(&mut self) -> usize {
        let rare = self.state.rare();
        let n_kept = rare.replay.len() + rare.by_priority.n_kept();
        rare.stash.append(&mut rare.replay);
        rare.unstashed.append(&mut rare.stash);
        core::mem::swap(&mut rare.replay, &mut rare.unstashed);
        n_kept
    }

    /// Turns the messages in the closed mailbox into dead letters; there is no further poll.
    pub(super) fn drain_mailbox_now(&mut self, poll: &PollOf<'_, A::Msg>) {
        let mut spins_left = SPINS_MAX;
        loop {
            match pop(poll.shared()) {
                Pop::Item(envelope) => discard(poll, envelope),
                Pop::Empty => return,
                // A producer is between its claim and its write. Nobody would find the message that
                // it writes, and a request in it would keep the cell alive forever. The loop is
                // bounded, because this thread may have interrupted the producer.
                Pop::Retry if spins_left > 0 => {
                    spins_left -= 1;
                    hint::spin_loop();
                }
                // The producer was suspended in between. What it has claimed, and what others have
                // pushed behind the claim, will be dropped with the mailbox.
                Pop::Retry => {
                    for _ in 0..poll.shared().mail.len() {
                        publish_dead_letter::<A::Msg>(&any(poll), DeadLetterReason::Stopped);
                    }
                    return;
                }
            }
        }
    }
}

/// Discards a message because the actor stops.
fn discard<M: 'static>(poll: &PollOf<'_, M>, envelope: Envelope<M>) {
    discard_for(poll, envelope, DeadLetterReason::Stopped);
}

fn discard_for<M: 'static>(poll: &PollOf<'_, M>, envelope: Envelope<M>, reason: DeadLetterReason) {
    // A cancelled message is no dead letter.
    if !envelope.is_cancelled() {
        publish_dead_letter::<M>(&any(poll), reason);
    }
    drop_reported(&any(poll), envelope);
}

fn discard_control<M: 'static>(poll: &PollOf<'_, M>, item: Control<M>) {
    match item {
        Control::Message(envelope) => discard(poll, envelope),
        // The timer was cancelled.
        Control::Timer(_) => {}
    }
}

/// What happens to children whose failure was escalated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EscalationOutcome {
    Resume,
    Restart,
    Stop,
}

/// Calls user code; a panic in it does not affect the actor.
pub(super) fn catch_and_discard(poll: &AnyPoll<'_>, call: &mut dyn FnMut()) {
    if let Err(caught) = poll.catch_unwind(call) {
        poll.drop_panic_payload(caught);
    }
}

/// Calls user code; a panic in it is returned as a failure.
pub(super) fn catch_failure(poll: &AnyPoll<'_>, call: &mut dyn FnMut()) -> Result<(), Failure> {
    poll.catch_unwind(call).map_err(|caught| {
        let failure = super::panic_failure(&caught);
        poll.drop_panic_payload(caught);
        failure
    })
}

/// Drops a user value; a panic in the drop changes nothing, but is published as a failure.
pub(crate) fn drop_reported<T>(poll: &AnyPoll<'_>, value: T) {
    let mut value = Some(value);
    drop_reported_by(poll, &mut || drop(value.take()));
}

fn drop_reported_by(poll: &AnyPoll<'_>, drop: &mut dyn FnMut()) {
    if let Err(failure) = catch_failure(poll, drop) {
        report_hook_failure(poll, failure);
    }
}

/// Publishes that a message is not handled.
pub(super) fn publish_dead_letter<M: 'static>(poll: &AnyPoll<'_>, reason: DeadLetterReason) {
    let header = poll.shared();
    header.system().dead_letter::<M>(&header.path, reason);
}
