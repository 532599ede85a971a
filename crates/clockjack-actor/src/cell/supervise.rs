//! Supervision: who decides about a failure, and how the decision is carried out.

use alloc::string::ToString as _;
use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::Arc;

use super::{
    AnyPoll, CellVTable, SUPERVISED, Stage, WAS_STARTED,
    children::{ChildPhase, Direction, read_all},
    lifecycle::{EscalationOutcome, catch_and_discard},
    own_timer::{self, OwnTimer},
};
use crate::{
    ActorPath, Directive, FailureInfo, FailureReport, Next, RestartStats, Scope, Signal,
    cell::header::{ActorHeader, AnyActor, FAILED, RESTART, RESUME, STOP, SUSPEND_ONE, SystemSend},
    escalation::Escalations,
    mailbox::system_queue::{
        ChildReport, FailedChild, RestartOptions, RestartPart, SupervisionCommand, TimerEvent,
    },
    strategy::{ChildStrategy, Decision, FailureContext, StrategyState},
};

/// The delay after which a failure that a sink has refused is offered again.
const ESCALATION_RETRY: Duration = Duration::from_millis(100);

impl dyn CellVTable + '_ {
    /// The actor has failed: its own strategies decide, innermost first, then that of its parent.
    pub(super) fn fail(
        &mut self,
        poll: &AnyPoll<'_>,
        failure: Failure,
        message_type: Option<&'static str>,
    ) {
        if self.status().is_stopping() {
            report_hook_failure(poll, failure);
            return;
        }
        let info = self.info_of(poll, &failure, message_type);
        let at = self.failure_context(poll);
        let path: &ActorPath = &poll.shared().path;
        let n = self.rare().map_or(0, |rare| rare.strategies.len());
        for index in 0..n {
            let decided = self.rare_or_new().strategies.get_mut(index).and_then(|state| {
                let mut decision = None;
                // The decider is user code and may panic; then the failure goes on outward.
                let guarded = poll.catch_unwind(&mut || {
                    if state.matches(&failure) {
                        decision = Some(state.decide_on(path, &failure, at));
                    }
                });
                if let Err(caught) = guarded {
                    poll.drop_panic_payload(caught);
                }
                decision
                    .map(|decision| (decision, (state.keeps_children(), state.stash_capacity())))
            });
            match decided {
                None | Some((Decision::Escalate, _)) => {}
                Some((Decision::Resume, _)) if self.has_actor() => {
                    self.publish_failure(poll, info, Directive::Resume);
                    poll.drop_catching_panic(failure);
                    // The failure may be that of a child, which waits for the decision.
                    self.continue_children(poll, EscalationOutcome::Resume);
                    return;
                }
                Some((Decision::Resume | Decision::Stop, _)) => {
                    self.publish_failure(poll, info, Directive::Stop);
                    self.stop(poll, Some(failure));
                    return;
                }
                Some((Decision::Restart { delay }, (keeps_children, stash))) => {
                    self.publish_failure(poll, info, Directive::Restart);
                    poll.drop_catching_panic(failure);
                    // The state of the inner strategies is about the previous incarnation.
                    self.rare_or_new()
                        .strategies
                        .iter_mut()
                        .take(index)
                        .for_each(StrategyState::reset);
                    let part = RestartPart::Whole;
                    self.restart(poll, RestartOptions { delay, keeps_children, stash, part });
                    return;
                }
            }
        }
        self.escalate(poll, failure, info, at.is_startup);
    }

    /// None of the actor's own strategies has handled the failure.
    fn escalate(
        &mut self,
        poll: &AnyPoll<'_>,
        failure: Failure,
        info: FailureInfo,
        is_startup: bool,
    ) {
        let header = poll.shared();
        offer_to_sink(poll, &info);
        match &header.parent {
            Some(parent) if self.status().has(SUPERVISED) => {
                self.status_mut().stage = Stage::Failed;
                self.suspend_children(poll);
                let me = poll.self_ref();
                let child = me.clone();
                let can_resume = self.has_actor();
                let failed = FailedChild { child, failure, info, is_startup, can_resume };
                header.set_flags(FAILED);
                let mut stale = None;
                let refused =
                    parent.send_child_report(&me, |report| stale = report.failed.replace(failed));
                // The parent has already decided about this earlier failure, because of a sibling,
                // and has not read it.
                if let Some(stale) = stale {
                    report_undecided(poll, stale);
                }
                if let Some(ChildReport { failed: Some(failed), .. }) = refused {
                    self.publish_failure(poll, failed.info, Directive::Stop);
                    self.stop(poll, Some(failed.failure));
                }
            }
            Some(_) => {
                self.publish_failure(poll, info, Directive::Stop);
                self.stop(poll, Some(failure));
            }
            None => {
                // This is the root: nobody is above.
                poll.drop_catching_panic(failure);
                let system = header.system();
                let goes_on = system.root_failed(info, &|call| catch_and_discard(poll, call));
                if let (true, Some(rare)) = (goes_on, self.rare_mut()) {
                    for child in core::mem::take(&mut rare.suspended).into_values() {
                        child.wake_with_command(RESUME, SupervisionCommand::StopEscalated);
                    }
                }
                self.arm_escalation_retry(poll);
            }
        }
    }

    /// Suspends the children, each once, because the actor has failed or is suspended itself.
    pub(super) fn suspend_children(&mut self, poll: &AnyPoll<'_>) {
        let Some(children) = poll.shared().children() else { return };
        if self.status().is_stopping() {
            return;
        }
        let are_held = core::mem::replace(&mut self.rare_or_new().children_are_suspended, true);
        if are_held {
            // Children that were added since then are suspended from the beginning.
            return;
        }
        children.with(|children| children.suspend_new(true));
        for child in read_all(children, Direction::NewestFirst) {
            if !children.with(|children| children.suspend(&child, true)) {
                continue;
            }
            // A child without children has nobody to suspend in turn; it sees the count before its
            // next message.
            if child.children().is_some() {
                child.wake();
            }
        }
    }

    /// Resumes the children, if they are suspended and no reason for it remains.
    pub(super) fn unsuspend_children(&mut self, poll: &AnyPoll<'_>) {
        let Some(rare) = self.rare_mut() else { return };
        if !rare.children_are_suspended || poll.shared().flags() >= SUSPEND_ONE {
            return;
        }
        rare.children_are_suspended = false;
        let Some(children) = poll.shared().children() else { return };
        children.with(|children| children.suspend_new(false));
        for child in read_all(children, Direction::NewestFirst) {
            if children.with(|children| children.suspend(&child, false)) {
                child.wake();
            }
        }
    }

    /// A child has failed and waits for a decision.
    pub(super) fn child_failed(&mut self, poll: &AnyPoll<'_>, failed: FailedChild) {
        let children = poll.shared().children();
        let is_mine = children.is_some_and(|c| c.with(|c| c.entry_of(&failed.child).is_some()));
        let is_stopping_it = match self.status().stage {
            Stage::Stopping | Stage::Draining => true,
            Stage::Restarting => !self.rare_or_new().keeps_children,
            _ => false,
        };
        if !is_mine || is_stopping_it {
            failed.child.wake_with(STOP);
            return report_undecided(poll, failed);
        }
        let phase = self.phase_of(poll, &failed.child);
        if failed.child.flags() & FAILED == 0 || phase.ends_with_group() {
            // The parent has already decided about this child, because of a sibling, or its
            // incarnation ends anyway.
            return report_undecided(poll, failed);
        }
        let FailedChild { child, failure, mut info, is_startup, can_resume } = failed;
        let at = FailureContext { is_startup, ..self.failure_context(poll) };
        let (mut decision, scope, options) =
            self.decide_on_child(poll, &child, &failure, at, &mut info);
        if decision == Decision::Resume && !can_resume {
            decision = Decision::Stop;
        }
        match decision {
            Decision::Resume => {
                self.publish_child_failure(poll, info, Directive::Resume);
                child.clear_flags(FAILED);
                child.wake_with(RESUME);
            }
            Decision::Restart { delay } => {
                self.publish_child_failure(poll, info, Directive::Restart);
                let options = RestartOptions { delay, ..options };
                // A start that fails within a group is tried again, without the others.
                if scope == Scope::OneForOne || phase == ChildPhase::Starting {
                    self.restart_child(poll, &child, options);
                } else {
                    self.act_on_group(poll, (scope, &child), Some(options));
                }
            }
            Decision::Stop => {
                self.publish_child_failure(poll, info, Directive::Stop);
                if scope == Scope::OneForOne {
                    child.clear_flags(FAILED);
                    child.wake_with(STOP);
                } else {
                    self.act_on_group(poll, (scope, &child), None);
                }
            }
            Decision::Escalate => {
                let up = info.escalate_to_parent(poll.pid());
                self.rare_or_new().suspended.insert(child.pid(), child);
                // At once: after this the actor may not receive any signal.
                match self.deliver_signal(Signal::Escalated(info)) {
                    Ok(Next::Stop) => self.stop(poll, Some(failure)),
                    Ok(_) => self.fail_with_info(poll, failure, up),
                    Err(other) => {
                        report_hook_failure(poll, other);
                        self.fail_with_info(poll, failure, up);
                    }
                }
                return;
            }
        }
        poll.drop_catching_panic(failure);
    }

    /// Asks the strategy for children for the decision, its scope, and the options of a restart.
    fn decide_on_child(
        &mut self,
        poll: &AnyPoll<'_>,
        child: &AnyActor,
        failure: &Failure,
        at: FailureContext,
        info: &mut FailureInfo,
    ) -> (Decision, Scope, RestartOptions) {
        let rare = self.rare_or_new();
        let Some(children) = &mut rare.for_children else {
            return (Decision::Stop, Scope::OneForOne, RestartOptions::DEFAULT);
        };
        let link = child.parent_link_or_new();
        let mut history = link.take_history().unwrap_or_default();
        let mut decision = Decision::Escalate;
        // If the decider panics, the failure is escalated.
        catch_and_discard(poll, &mut || {
            decision = children.decide_on(&mut history, &child.path, failure, at);
        });
        info.restart_stats.window_failures = history.stats(&children.window).window_failures;
        link.put_history(history);
        let strategy = &children.strategy;
        let options = RestartOptions {
            delay: None,
            keeps_children: strategy.keeps_children(),
            stash: strategy.stash_capacity(),
            part: RestartPart::Whole,
        };
        (decision, children.scope, options)
    }

    /// Commands the restart of a child, because of its own failure or that of a sibling.
    pub(super) fn restart_child(
        &mut self,
        poll: &AnyPoll<'_>,
        child: &AnyActor,
        options: RestartOptions,
    ) {
        self.child_starting(poll, &child.path);
        let link = child.parent_link_or_new();
        let mut history = link.take_history().unwrap_or_default();
        history.restarts();
        link.put_history(history);
        child.clear_flags(FAILED);
        // Overwrites an earlier command that the child has not read.
        link.set_command((!options.is_default()).then_some(SupervisionCommand::Restart(options)));
        child.wake_with(RESTART);
    }

    /// A child is about to be created, for the first time or again.
    pub(super) fn child_starting(&mut self, poll: &AnyPoll<'_>, path: &ActorPath) {
        let rare = self.rare_or_new();
        let Some(children) = &mut rare.for_children else { return };
        catch_and_discard(poll, &mut || children.strategy.before_start(path));
    }

    /// A child has restarted, as this actor has commanded.
    pub(super) fn child_restarted(&mut self, poll: &AnyPoll<'_>, child: &AnyActor, now: u64) {
        let link = child.parent_link_or_new();
        if let Some(mut history) = link.take_history() {
            history.restarted(now);
            if let Some(ChildStrategy { strategy, window, .. }) =
                &mut self.rare_or_new().for_children
            {
                let stats = history.stats(window);
                catch_and_discard(poll, &mut || strategy.after_restart(&child.path, &stats));
            }
            link.put_history(history);
        }
        self.member_has_started(poll, child);
    }

    /// A host reports a failure: the actor decides about it, if it concerns a child. A report about
    /// an earlier actor with the same name as the child is stale, and ignored.
    pub(super) fn host_reported_failure(&mut self, poll: &AnyPoll<'_>, info: FailureInfo) {
        let header = poll.shared();
        let own = (info.actor, &info.path);
        let (pid, below) = if info.path == *header.path { info.origin() } else { own };
        let mut up = Some(below);
        while let Some(path) = up.filter(|path| path.parent() != Some(&header.path)) {
            up = path.parent();
        }
        let child = up.and_then(|path| {
            header.children()?.with(|children| children.get(path.name())?.child().cloned())
        });
        let Some(child) = child else {
            self.child_failed_later(poll, info);
            return;
        };
        if *child.path == *below && child.pid() != pid {
            return;
        }
        let failure = Failure::msg(info.reason.to_string());
        child.set_flags(FAILED);
        let failed = FailedChild { child, failure, info, is_startup: false, can_resume: true };
        self.child_failed(poll, failed);
    }

    /// Fails because of a child.
    fn fail_with_info(&mut self, poll: &AnyPoll<'_>, failure: Failure, info: FailureInfo) {
        self.rare_or_new().escalated = Some(info);
        self.fail(poll, failure, None);
    }

    /// Continues as if nothing had happened.
    pub(super) fn resume(&mut self, poll: &AnyPoll<'_>, outcome: EscalationOutcome) {
        if !self.has_actor() {
            // There is no value that could continue.
            self.stop(poll, None);
            return;
        }
        self.status_mut().stage = Stage::Running;
        poll.shared().clear_flags(FAILED);
        self.continue_children(poll, outcome);
    }

    /// Waits before the restart, which comes neither before the delay is over nor never.
    pub(super) fn back_off(&mut self, poll: &AnyPoll<'_>, delay: Duration) {
        let rare = self.rare_or_new();
        rare.backoffs = rare.backoffs.wrapping_add(1).max(1);
        let number = rare.backoffs;
        rare.backoff = number;
        let timer = self.arm_own_timer(poll, delay, TimerEvent::BackoffOver(number));
        self.rare_or_new().backoff_timer = Some(timer);
    }

    /// The timer of this back-off has fired, or the scheduler has dropped its job.
    pub(super) fn backoff_over(&mut self, poll: &AnyPoll<'_>, number: u32) {
        let rare = self.rare_or_new();
        if rare.backoff != number {
            return;
        }
        rare.backoff = 0;
        let rest = rare.backoff_timer.take().and_then(|timer| timer.rest(poll));
        if let Some(rest) = rest {
            self.back_off(poll, rest);
        }
    }

    /// Offers again what a sink has refused: the actor's own sink or, at the root, that of the
    /// system.
    pub(super) fn retry_escalations(&mut self, poll: &AnyPoll<'_>) {
        let header = poll.shared();
        match own_sink(header) {
            Some(sink) => retry(&sink, &|call| catch_and_discard(poll, call)),
            None => header.system().retry_escalations(&|call| catch_and_discard(poll, call)),
        }
        self.arm_escalation_retry(poll);
    }

    /// Makes sure that what a sink has refused is offered again.
    fn arm_escalation_retry(&mut self, poll: &AnyPoll<'_>) {
        let header = poll.shared();
        let must_arm = match own_sink(header) {
            Some(sink) => sink.arm(),
            None if header.parent.is_none() => {
                header.system().escalations().is_some_and(|sink| sink.arm())
            }
            None => false,
        };
        if must_arm {
            let event = TimerEvent::RetryEscalations;
            let timer = self.arm_own_timer(poll, ESCALATION_RETRY, event);
            // Nobody cancels its job.
            self.rare_or_new().retry_timer = Some(timer).filter(OwnTimer::is_substitute);
        }
    }

    fn failure_context(&mut self, poll: &AnyPoll<'_>) -> FailureContext {
        let header = poll.shared();
        let rare = self.rare_or_new();
        rare.draws = rare.draws.wrapping_add(1);
        let random = header.system().random(&header.path, rare.draws);
        FailureContext {
            now_nanos: poll.nanos(),
            is_startup: !self.status().has(WAS_STARTED),
            random,
        }
    }

    fn info_of(
        &mut self,
        poll: &AnyPoll<'_>,
        failure: &Failure,
        message_type: Option<&'static str>,
    ) -> FailureInfo {
        if let Some(info) = self.rare_or_new().escalated.take() {
            return info;
        }
        let reason = report_of(poll, failure);
        let rare = self.rare_or_new();
        let state =
            rare.strategies.iter().find(|state| state.matches(failure)).map(StrategyState::stats);
        let stats = RestartStats {
            restarts: rare.restarts,
            last_restart_nanos: rare.last_restart_nanos,
            window_failures: state.unwrap_or_default().window_failures,
        };
        let path = poll.shared().path.clone();
        let mut info = FailureInfo::new(poll.pid(), path, reason);
        info.restart_stats = stats;
        info.message_type = message_type;
        info
    }

    fn publish_failure(&self, poll: &AnyPoll<'_>, mut info: FailureInfo, directive: Directive) {
        info.directive = Some(directive);
        poll.shared().system().failed(&info);
    }

    fn publish_child_failure(
        &mut self,
        poll: &AnyPoll<'_>,
        mut info: FailureInfo,
        directive: Directive,
    ) {
        info.directive = Some(directive);
        poll.shared().system().failed(&info);
        self.child_failed_later(poll, info);
    }
}

/// The text of a failure. `Display` is user code.
pub(super) fn report_of(poll: &AnyPoll<'_>, failure: &Failure) -> FailureReport {
    let mut report = None;
    let guarded = poll.catch_unwind(&mut || report = Some(FailureReport::from(failure)));
    if let Err(caught) = guarded {
        poll.drop_panic_payload(caught);
    }
    report.unwrap_or_else(|| FailureReport::new("a failure whose `Display` panics"))
}

/// A hook has failed, which no longer changes anything; counts and publishes the failure.
pub(super) fn report_hook_failure(poll: &AnyPoll<'_>, failure: Failure) {
    let reason = report_of(poll, &failure);
    let path = poll.shared().path.clone();
    let info = FailureInfo::new(poll.pid(), path, reason);
    poll.shared().system().failed(&info);
    poll.drop_catching_panic(failure);
}

/// A child has failed, which changes nothing, because the child stops or restarts anyway; publishes
/// the failure.
pub(super) fn report_undecided(poll: &AnyPoll<'_>, failed: FailedChild) {
    let FailedChild { failure, info, .. } = failed;
    poll.shared().system().failed(&info);
    poll.drop_catching_panic(failure);
}

/// Offers once more what a sink has refused.
pub(crate) fn retry(sink: &Escalations, guarded: &dyn Fn(&mut dyn FnMut())) {
    sink.disarm();
    guarded(&mut || _ = sink.retry());
}

/// Schedules the next offer, by the actor that the sink belongs to.
fn arm_retry(sink: &Escalations, holder: &AnyActor) {
    if !sink.arm() {
        return;
    }
    let event = TimerEvent::RetryEscalations;
    let jobs = holder.system().jobs();
    let (job, _) = own_timer::schedule(jobs, holder.clone(), ESCALATION_RETRY, event);
    if job.is_none() {
        // Only the holder itself can wait without a job: it offers now, and then waits.
        holder.send_timer_event(event);
    }
}

/// The sink that was set for this actor itself.
fn own_sink(header: &ActorHeader) -> Option<Arc<Escalations>> {
    header.children()?.with(|children| children.sink.clone())
}

/// Offers a failure that the actor does not handle to the sink of the actor, or else to that of the
/// nearest ancestor that has one.
fn offer_to_sink(poll: &AnyPoll<'_>, info: &FailureInfo) {
    let me = poll.self_ref();
    let mut holder = Some(&me);
    while let Some(one) = holder {
        if let Some(sink) = own_sink(one) {
            catch_and_discard(poll, &mut || _ = sink.retry());
            let mut offer = Some(info.clone());
            // If there is no room to keep it for a later offer, the sink counts that.
            catch_and_discard(poll, &mut || _ = offer.take().map(|info| sink.offer(info)));
            return arm_retry(&sink, one);
        }
        holder = one.parent.as_ref();
    }
}
