//! Failures: who decides what becomes of an actor, and how it is told.

use alloc::{string::ToString as _, vec::Vec};
use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::{Counted, mutant};

use super::{
    AnyTurn, CellVTable, SUPERVISED, Stage, WAS_STARTED,
    lifecycle::{EscalationOutcome, catch_and_discard},
    pending::children_of,
};
use crate::{
    ActorPath, Directive, FailureInfo, FailureReport, Next, RestartStats, Scope, Signal, Strategy,
    escalation::Escalations,
    events::SystemEvent,
    header::{ActorHeader, AnyActor, FAILED, RESTART, RESUME, STOP, SUSPEND_ONE, SystemSend},
    strategy::{Decision, FailureContext, RestartHistory, StrategyState},
    system_queue::{ChildReport, FailedChild, RestartOptions, SupervisionCommand, TimerEvent},
};

/// After which time a failure is offered again that a sink has refused.
const ESCALATION_RETRY: Duration = Duration::from_millis(100);

impl dyn CellVTable + '_ {
    /// The actor has failed: its own strategies decide, innermost first, then its parent's.
    pub(super) fn fail(
        &mut self,
        turn: &AnyTurn<'_>,
        failure: Failure,
        message_type: Option<&'static str>,
    ) {
        if self.status().is_stopping() {
            report_hook_failure(turn, failure);
            return;
        }
        let info = self.info_of(turn, &failure, message_type);
        let at = self.failure_context(turn);
        let n = self.rare().map_or(0, |rare| rare.strategies.len());
        for index in 0..n {
            let decided = self.rare_or_new().strategies.get_mut(index).and_then(|state| {
                let mut decision = None;
                // A decider of the user's may panic: then the failure goes on outward.
                let guarded = turn.guarded(&mut || {
                    if state.matches(&failure) {
                        decision = Some(state.decide_on(&failure, at));
                    }
                });
                if let Err(caught) = guarded {
                    turn.discard(caught);
                }
                decision
                    .map(|decision| (decision, (state.keeps_children(), state.stash_capacity())))
            });
            match decided {
                None | Some((Decision::Escalate, _)) => {}
                Some((Decision::Resume, _)) if self.has_actor() => {
                    self.publish_failure(turn, info, Directive::Resume);
                    turn.drop_contained(failure);
                    // The failure may be that of a child, which waits for what becomes of it.
                    if !mutant!("actor-resume-leaves-child") {
                        self.continue_children(turn, EscalationOutcome::Resume);
                    }
                    return;
                }
                Some((Decision::Resume | Decision::Stop, _)) => {
                    self.publish_failure(turn, info, Directive::Stop);
                    self.stop(turn, Some(failure));
                    return;
                }
                Some((Decision::Restart { delay }, (keeps_children, stash))) => {
                    self.publish_failure(turn, info, Directive::Restart);
                    turn.drop_contained(failure);
                    // Those further in remember an actor that is no more.
                    let n_inner =
                        if mutant!("actor-inner-strategies-remember") { 0 } else { index };
                    self.rare_or_new()
                        .strategies
                        .iter_mut()
                        .take(n_inner)
                        .for_each(StrategyState::reset);
                    self.restart(turn, RestartOptions { delay, keeps_children, stash });
                    return;
                }
            }
        }
        self.escalate(turn, failure, info, at.is_startup);
    }

    /// None of its own strategies has settled it.
    fn escalate(
        &mut self,
        turn: &AnyTurn<'_>,
        failure: Failure,
        info: FailureInfo,
        is_startup: bool,
    ) {
        let header = turn.front();
        offer_to_sink(turn, &info);
        match &header.parent {
            Some(parent) if self.status().has(SUPERVISED) => {
                self.status_mut().stage = Stage::Failed;
                self.suspend_children(turn);
                let me = turn.me();
                let child = me.clone();
                let can_resume = self.has_actor();
                let failed = FailedChild { child, failure, info, is_startup, can_resume };
                header.set_flags(FAILED);
                let mut stale = None;
                let told =
                    parent.send_child_report(&me, |report| stale = report.failed.replace(failed));
                // It was decided about on account of another one, and nobody has looked at it.
                turn.drop_contained(stale);
                if let Some(ChildReport { failed: Some(failed), .. }) = told {
                    self.stop(turn, Some(failed.failure));
                }
            }
            Some(_) => {
                self.publish_failure(turn, info, Directive::Stop);
                self.stop(turn, Some(failure));
            }
            None => {
                // The root: nobody is above.
                turn.drop_contained(failure);
                let system = header.system();
                let goes_on = system.root_failed(info, &|call| catch_and_discard(turn, call));
                if let (true, Some(rare)) = (goes_on, self.rare_mut()) {
                    for child in core::mem::take(&mut rare.suspended).into_values() {
                        child.wake_with_command(RESUME, SupervisionCommand::StopEscalated);
                    }
                }
                self.arm_escalation_retry(turn);
            }
        }
    }

    /// Suspends the children, each once, because the actor has failed or is suspended itself.
    pub(super) fn suspend_children(&mut self, turn: &AnyTurn<'_>) {
        let Some(children) = turn.front().children() else { return };
        if self.status().is_stopping() {
            return;
        }
        let are_held = core::mem::replace(&mut self.rare_or_new().children_are_suspended, true);
        if are_held && !mutant!("actor-suspends-again") {
            // Those that have come meanwhile are suspended from their beginning.
            return;
        }
        for child in children.with(|children| children.suspend(true)) {
            // The others have nobody to pass it on to, and see it before their next message.
            if child.children().is_some() {
                child.wake();
            }
        }
    }

    /// Lets the children go on, if they are held and nothing is left to hold them for.
    pub(super) fn unsuspend_children(&mut self, turn: &AnyTurn<'_>) {
        let Some(rare) = self.rare_mut() else { return };
        if !rare.children_are_suspended || turn.front().flags() >= SUSPEND_ONE {
            return;
        }
        rare.children_are_suspended = false;
        let Some(children) = turn.front().children() else { return };
        let resumed = children.with(|children| children.suspend(false));
        resumed.iter().for_each(|child| child.wake());
    }

    /// A child has failed and waits for a decision.
    pub(super) fn child_failed(&mut self, turn: &AnyTurn<'_>, failed: FailedChild) {
        let FailedChild { child, failure, mut info, is_startup, can_resume } = failed;
        let children = turn.front().children();
        let is_mine = children.is_some_and(|c| c.with(|c| c.entry_of(&child).is_some()));
        let is_stopping_it = match self.status().stage {
            Stage::Stopping | Stage::Draining => true,
            Stage::Restarting => !self.rare_or_new().keeps_children,
            _ => false,
        };
        if !is_mine || is_stopping_it {
            child.wake_with(STOP);
            turn.drop_contained(failure);
            return;
        }
        if child.flags() & FAILED == 0 && !mutant!("actor-stale-failure-counts") {
            // It was decided about already, on account of another one.
            turn.drop_contained(failure);
            return;
        }
        let at = FailureContext { is_startup, ..self.failure_context(turn) };
        let (mut decision, scope, options) =
            self.decide_on_child(turn, &child, &failure, at, &mut info);
        if decision == Decision::Resume && !can_resume {
            decision = Decision::Stop;
        }
        match decision {
            Decision::Resume => {
                self.publish_child_failure(turn, info, Directive::Resume);
                child.clear_flags(FAILED);
                child.wake_with(RESUME);
            }
            Decision::Restart { delay } => {
                self.publish_child_failure(turn, info, Directive::Restart);
                for child in in_scope(turn, scope, &child) {
                    self.restart_child(turn, &child, RestartOptions { delay, ..options });
                }
            }
            Decision::Stop => {
                self.publish_child_failure(turn, info, Directive::Stop);
                for child in in_scope(turn, scope, &child) {
                    child.clear_flags(FAILED);
                    child.wake_with(STOP);
                }
            }
            Decision::Escalate => {
                let up = info.escalate_to_parent(turn.pid());
                self.rare_or_new().suspended.insert(child.pid(), child);
                // At once: it may be that it hears nothing any more after this.
                match self.deliver_signal(Signal::Escalated(info)) {
                    Ok(Next::Stop) => self.stop(turn, Some(failure)),
                    Ok(_) => self.fail_with_info(turn, failure, up),
                    Err(other) => {
                        report_hook_failure(turn, other);
                        self.fail_with_info(turn, failure, up);
                    }
                }
                return;
            }
        }
        turn.drop_contained(failure);
    }

    /// Asks the strategy for children. What is to be done, to whom, and how a restart would be.
    fn decide_on_child(
        &mut self,
        turn: &AnyTurn<'_>,
        child: &AnyActor,
        failure: &Failure,
        at: FailureContext,
        info: &mut FailureInfo,
    ) -> (Decision, Scope, RestartOptions) {
        let rare = self.rare_or_new();
        let Some((scope, strategy)) = &mut rare.for_children else {
            return (Decision::Stop, Scope::OneForOne, RestartOptions::DEFAULT);
        };
        let line = child.parent_link_or_new();
        let mut history = line.take_history().unwrap_or_default();
        let mut decision = Decision::Escalate;
        // If the decider panics, it has not decided.
        catch_and_discard(turn, &mut || decision = decide(strategy, &mut history, failure, at));
        info.restart_stats.window_failures = history.stats().window_failures;
        line.put_history(history);
        let options = RestartOptions {
            delay: None,
            keeps_children: strategy.keeps_children(),
            stash: strategy.stash_capacity(),
        };
        (decision, *scope, options)
    }

    /// Orders the restart of a child, on its own account or on that of another one.
    pub(super) fn restart_child(
        &mut self,
        turn: &AnyTurn<'_>,
        child: &AnyActor,
        options: RestartOptions,
    ) {
        self.child_starting(turn, &child.path);
        let line = child.parent_link_or_new();
        let mut history = line.take_history().unwrap_or_default();
        history.restarts();
        line.put_history(history);
        child.clear_flags(FAILED);
        // Whatever was ordered before and not seen.
        line.set_command((!options.is_default()).then_some(SupervisionCommand::Restart(options)));
        child.wake_with(RESTART);
    }

    /// A child is about to be made, for the first time or again.
    pub(super) fn child_starting(&mut self, turn: &AnyTurn<'_>, path: &ActorPath) {
        let rare = self.rare_or_new();
        let Some((_, strategy)) = &mut rare.for_children else { return };
        catch_and_discard(turn, &mut || strategy.before_start(path));
    }

    /// A child has started again, as this actor has ordered.
    pub(super) fn child_restarted(&mut self, turn: &AnyTurn<'_>, child: &AnyActor, now: u64) {
        let line = child.parent_link_or_new();
        let Some(mut history) = line.take_history() else { return };
        history.restarted(now);
        let stats = history.stats();
        line.put_history(history);
        let rare = self.rare_or_new();
        let Some((_, strategy)) = &mut rare.for_children else { return };
        catch_and_discard(turn, &mut || strategy.after_restart(&child.path, &stats));
    }

    /// What a host says about a failure: decided about, if it concerns a child. ChildReport of one that
    /// had the child's name before is old, and ignored.
    pub(super) fn host_reported_failure(&mut self, turn: &AnyTurn<'_>, info: FailureInfo) {
        let header = turn.front();
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
            self.signal_later(Signal::ChildFailed(info));
            return;
        };
        if *child.path == *below && child.pid() != pid && !mutant!("actor-failure-by-name") {
            return;
        }
        let failure = Failure::msg(info.reason.to_string());
        child.set_flags(FAILED);
        let failed = FailedChild { child, failure, info, is_startup: false, can_resume: true };
        self.child_failed(turn, failed);
    }

    /// Fails because of a child.
    fn fail_with_info(&mut self, turn: &AnyTurn<'_>, failure: Failure, info: FailureInfo) {
        self.rare_or_new().escalated = Some(info);
        self.fail(turn, failure, None);
    }

    /// Goes on as if nothing had happened.
    pub(super) fn resume(&mut self, turn: &AnyTurn<'_>, outcome: EscalationOutcome) {
        if !self.has_actor() {
            // There is nothing that could go on.
            self.stop(turn, None);
            return;
        }
        self.status_mut().stage = Stage::Running;
        turn.front().clear_flags(FAILED);
        self.continue_children(turn, outcome);
    }

    /// Waits before it is made anew.
    pub(super) fn back_off(&mut self, turn: &AnyTurn<'_>, delay: Duration) {
        let rare = self.rare_or_new();
        rare.backoffs = rare.backoffs.wrapping_add(1).max(1);
        let number = rare.backoffs;
        let me = turn.me();
        let system = turn.front().system();
        rare.backoff_timer = system.schedule_event(delay, me, TimerEvent::BackoffOver(number));
        // If no timer is to be had, at once is better than never.
        rare.backoff = if rare.backoff_timer.is_some() { number } else { 0 };
    }

    /// The timer of this back-off has come.
    pub(super) fn backoff_over(&mut self, turn: &AnyTurn<'_>, number: u32) {
        let rare = self.rare_or_new();
        if rare.backoff != number {
            return;
        }
        rare.backoff = 0;
        let delay = rare.backoff_timer.take();
        if let Some(rest) = turn.front().system().remaining_delay(delay) {
            self.back_off(turn, rest);
        }
    }

    /// Offers again what a sink has refused, its own or, at the root, the system's.
    pub(super) fn retry_escalations(&mut self, turn: &AnyTurn<'_>) {
        let header = turn.front();
        match own_sink(header) {
            Some(sink) => retry(&sink, &|call| catch_and_discard(turn, call)),
            None => header.system().retry_escalations(&|call| catch_and_discard(turn, call)),
        }
        self.arm_escalation_retry(turn);
    }

    /// Sees to it that what a sink has refused is offered again.
    fn arm_escalation_retry(&self, turn: &AnyTurn<'_>) {
        let header = turn.front();
        let me = turn.me();
        match own_sink(header) {
            Some(sink) => arm_retry(&sink, &me),
            None if header.parent.is_none() => {
                if let Some(sink) = header.system().escalations() {
                    arm_retry(sink, &me);
                }
            }
            None => {}
        }
    }

    fn failure_context(&mut self, turn: &AnyTurn<'_>) -> FailureContext {
        let header = turn.front();
        let rare = self.rare_or_new();
        rare.draws = rare.draws.wrapping_add(1);
        let random = header.system().random(&header.path, rare.draws);
        FailureContext {
            now_nanos: turn.nanos(),
            is_startup: !self.status().has(WAS_STARTED),
            random,
        }
    }

    fn info_of(
        &mut self,
        turn: &AnyTurn<'_>,
        failure: &Failure,
        message_type: Option<&'static str>,
    ) -> FailureInfo {
        if let Some(info) = self.rare_or_new().escalated.take() {
            return info;
        }
        let reason = report_of(turn, failure);
        let rare = self.rare_or_new();
        let state =
            rare.strategies.iter().find(|state| state.matches(failure)).map(StrategyState::stats);
        let stats = RestartStats {
            restarts: rare.restarts,
            last_restart_nanos: rare.last_restart_nanos,
            window_failures: state.unwrap_or_default().window_failures,
        };
        let path = turn.front().path.clone();
        let mut info = FailureInfo::new(turn.pid(), path, reason);
        info.restart_stats = stats;
        info.message_type = message_type;
        info
    }

    fn publish_failure(&self, turn: &AnyTurn<'_>, mut info: FailureInfo, directive: Directive) {
        info.directive = Some(directive);
        turn.front().system().failed(&info);
    }

    fn publish_child_failure(
        &mut self,
        turn: &AnyTurn<'_>,
        mut info: FailureInfo,
        directive: Directive,
    ) {
        info.directive = Some(directive);
        turn.front().system().failed(&info);
        self.signal_later(Signal::ChildFailed(info));
    }
}

/// The children in the scope of a decision about one of them, newest first.
fn in_scope(
    turn: &AnyTurn<'_>,
    scope: Scope,
    failed: &AnyActor,
) -> impl Iterator<Item = AnyActor> + use<> {
    let mut others = Vec::new();
    if scope != Scope::OneForOne {
        others = children_of(turn);
        if let (Scope::RestForOne, Some(at)) =
            (scope, others.iter().position(|child| child.ptr_eq(failed)))
        {
            // Those that are left were started before it.
            others.truncate(at + 1);
        }
    }
    // The one alone needs no list.
    let alone = (scope == Scope::OneForOne).then(|| failed.clone());
    alone.into_iter().chain(others)
}

/// The text of a failure, which is user code.
pub(super) fn report_of(turn: &AnyTurn<'_>, failure: &Failure) -> FailureReport {
    let mut report = None;
    let guarded = turn.guarded(&mut || report = Some(FailureReport::from(failure)));
    if let Err(caught) = guarded {
        turn.discard(caught);
    }
    report.unwrap_or_else(|| FailureReport::new("a failure whose text panics"))
}

/// A hook has failed, which changes nothing any more.
pub(super) fn report_hook_failure(turn: &AnyTurn<'_>, failure: Failure) {
    let reason = report_of(turn, &failure);
    let path = turn.front().path.clone();
    let info = FailureInfo::new(turn.pid(), path, reason);
    turn.front().system().events().publish(&SystemEvent::Failure(info));
    turn.drop_contained(failure);
}

/// What a parent that watches is to know of the end.
pub(super) fn set_final_failure(turn: &AnyTurn<'_>, report: FailureReport) {
    turn.front().parent_link_or_new().set_final_failure(report);
}

fn decide(
    strategy: &mut Strategy,
    history: &mut RestartHistory,
    failure: &Failure,
    at: FailureContext,
) -> Decision {
    if strategy.matches(failure) {
        strategy.decide_on(history, failure, at)
    } else {
        Decision::Escalate
    }
}

/// Offers once more what waits.
pub(crate) fn retry(sink: &Escalations, guarded: &dyn Fn(&mut dyn FnMut())) {
    sink.disarm();
    guarded(&mut || _ = sink.retry());
}

/// Has what waits offered again after a while, by the actor that the sink belongs to.
fn arm_retry(sink: &Escalations, holder: &AnyActor) {
    if !sink.arm() {
        return;
    }
    let again = holder.system().schedule_event(
        ESCALATION_RETRY,
        holder.clone(),
        TimerEvent::RetryEscalations,
    );
    if again.is_none() {
        sink.disarm();
    }
}

/// The sink that was set for this actor itself.
fn own_sink(header: &ActorHeader) -> Option<Counted<Escalations>> {
    header.children()?.with(|children| children.sink.clone())
}

/// Tells the sink of the actor, or else that of the nearest one above that has one, of a failure
/// that the actor does not settle.
fn offer_to_sink(turn: &AnyTurn<'_>, info: &FailureInfo) {
    let me = turn.me();
    let mut holder = Some(&me);
    while let Some(one) = holder {
        if let Some(sink) = own_sink(one) {
            catch_and_discard(turn, &mut || _ = sink.retry());
            let mut offer = Some(info.clone());
            // If there is no room to keep it for another time, that is counted there.
            catch_and_discard(turn, &mut || _ = offer.take().map(|info| sink.offer(info)));
            return arm_retry(&sink, one);
        }
        holder = one.parent.as_ref();
    }
}
