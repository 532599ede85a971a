//! Failures: who decides what becomes of an actor, and how it is told.

use alloc::{string::ToString as _, vec::Vec};
use core::time::Duration;

use clockjack_exec::Failure;
use clockjack_sync::{Counted, mutant};

use super::{
    ASKS_PARENT, AnyTurn, Stage, Typed, WAS_STARTED,
    attend::children_of,
    lifecycle::{Waiting, contain},
};
use crate::{
    ActorPath, Directive, FailureInfo, FailureReport, Next, RestartStats, Scope, Signal, Strategy,
    base::{AnyActor, Core, FAILED, RESTART, RESUME, STOP, SUSPEND_ONE, Tell},
    escalation::Escalations,
    events::SystemEvent,
    notes::{FailedChild, News, Order, Renewal, Tick},
    strategy::{Layer, Ledger, Moment, Ruling},
};

/// After which time a failure is offered again that a sink has refused.
const ESCALATION_RETRY: Duration = Duration::from_millis(100);

impl dyn Typed + '_ {
    /// The actor has failed: its own strategies decide, innermost first, then its parent's.
    pub(super) fn fail(
        &mut self,
        turn: &AnyTurn<'_>,
        failure: Failure,
        message_type: Option<&'static str>,
    ) {
        if self.mark().is_ending() {
            tell_of_hook(turn, failure);
            return;
        }
        let info = self.info_of(turn, &failure, message_type);
        let at = self.moment(turn);
        let n = self.life().map_or(0, |life| life.layers.len());
        for index in 0..n {
            let ruled = self.life_or_new().layers.get_mut(index).and_then(|layer| {
                let mut ruling = None;
                // A decider of the user's may panic: then the failure goes on outward.
                let guarded = turn.guarded(&mut || {
                    if layer.matches(&failure) {
                        ruling = Some(layer.rule(&failure, at));
                    }
                });
                if let Err(caught) = guarded {
                    turn.discard(caught);
                }
                ruling.map(|ruling| (ruling, (layer.keeps_children(), layer.stash_capacity())))
            });
            match ruled {
                None | Some((Ruling::Escalate, _)) => {}
                Some((Ruling::Resume, _)) if self.has_actor() => {
                    self.tell_of_failure(turn, info, Directive::Resume);
                    turn.drop_contained(failure);
                    // The failure may be that of a child, which waits for what becomes of it.
                    if !mutant!("actor-resume-leaves-child") {
                        self.let_children_go_on(turn, Waiting::Resume);
                    }
                    return;
                }
                Some((Ruling::Resume | Ruling::Stop, _)) => {
                    self.tell_of_failure(turn, info, Directive::Stop);
                    self.stop(turn, Some(failure));
                    return;
                }
                Some((Ruling::Restart { delay }, (keeps_children, stash))) => {
                    self.tell_of_failure(turn, info, Directive::Restart);
                    turn.drop_contained(failure);
                    // Those further in remember an actor that is no more.
                    let n_inner = if mutant!("actor-inner-layers-remember") { 0 } else { index };
                    self.life_or_new().layers.iter_mut().take(n_inner).for_each(Layer::reset);
                    self.restart(turn, Renewal { delay, keeps_children, stash });
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
        let core = turn.front();
        tell_sink(turn, &info);
        match &core.parent {
            Some(parent) if self.mark().has(ASKS_PARENT) => {
                self.mark_mut().stage = Stage::Failed;
                self.hold_children(turn);
                let me = turn.me();
                let child = me.clone();
                let can_resume = self.has_actor();
                let failed = FailedChild { child, failure, info, is_startup, can_resume };
                core.raise(FAILED);
                let mut stale = None;
                let told = parent.news(&me, |news| stale = news.failed.replace(failed));
                // It was decided about on account of another one, and nobody has looked at it.
                turn.drop_contained(stale);
                if let Some(News { failed: Some(failed), .. }) = told {
                    self.stop(turn, Some(failed.failure));
                }
            }
            Some(_) => {
                self.tell_of_failure(turn, info, Directive::Stop);
                self.stop(turn, Some(failure));
            }
            None => {
                // The root: nobody is above.
                turn.drop_contained(failure);
                let system = core.system();
                let goes_on = system.root_failed(info, &|call| contain(turn, call));
                if let (true, Some(life)) = (goes_on, self.life_mut()) {
                    for child in core::mem::take(&mut life.suspended).into_values() {
                        child.order_with(RESUME, Order::Settle);
                    }
                }
                self.retry_later(turn);
            }
        }
    }

    /// Suspends the children, each once, because the actor has failed or is suspended itself.
    pub(super) fn hold_children(&mut self, turn: &AnyTurn<'_>) {
        let Some(children) = turn.front().children() else { return };
        if self.mark().is_ending() {
            return;
        }
        let are_held = core::mem::replace(&mut self.life_or_new().holds_children, true);
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
    pub(super) fn release_children(&mut self, turn: &AnyTurn<'_>) {
        let Some(life) = self.life_mut() else { return };
        if !life.holds_children || turn.front().peek() >= SUSPEND_ONE {
            return;
        }
        life.holds_children = false;
        let Some(children) = turn.front().children() else { return };
        let resumed = children.with(|children| children.suspend(false));
        resumed.iter().for_each(|child| child.wake());
    }

    /// A child has failed and waits for a decision.
    pub(super) fn child_failed(&mut self, turn: &AnyTurn<'_>, failed: FailedChild) {
        let FailedChild { child, failure, mut info, is_startup, can_resume } = failed;
        let children = turn.front().children();
        let is_mine = children.is_some_and(|c| c.with(|c| c.of(&child).is_some()));
        let is_stopping_it = match self.mark().stage {
            Stage::Stopping | Stage::Draining => true,
            Stage::Restarting => !self.life_or_new().keeps_children,
            _ => false,
        };
        if !is_mine || is_stopping_it {
            child.order(STOP);
            turn.drop_contained(failure);
            return;
        }
        if child.peek() & FAILED == 0 && !mutant!("actor-stale-failure-counts") {
            // It was decided about already, on account of another one.
            turn.drop_contained(failure);
            return;
        }
        let at = Moment { is_startup, ..self.moment(turn) };
        let (mut ruling, scope, renewal) = self.rule_child(turn, &child, &failure, at, &mut info);
        if ruling == Ruling::Resume && !can_resume {
            ruling = Ruling::Stop;
        }
        match ruling {
            Ruling::Resume => {
                self.tell_of_child(turn, info, Directive::Resume);
                child.lower(FAILED);
                child.order(RESUME);
            }
            Ruling::Restart { delay } => {
                self.tell_of_child(turn, info, Directive::Restart);
                for child in in_scope(turn, scope, &child) {
                    self.restart_child(turn, &child, Renewal { delay, ..renewal });
                }
            }
            Ruling::Stop => {
                self.tell_of_child(turn, info, Directive::Stop);
                for child in in_scope(turn, scope, &child) {
                    child.lower(FAILED);
                    child.order(STOP);
                }
            }
            Ruling::Escalate => {
                let up = info.escalate_to_parent(turn.pid());
                self.life_or_new().suspended.insert(child.pid(), child);
                // At once: it may be that it hears nothing any more after this.
                match self.tell(Signal::Escalated(info)) {
                    Ok(Next::Stop) => self.stop(turn, Some(failure)),
                    Ok(_) => self.fail_as(turn, failure, up),
                    Err(other) => {
                        tell_of_hook(turn, other);
                        self.fail_as(turn, failure, up);
                    }
                }
                return;
            }
        }
        turn.drop_contained(failure);
    }

    /// Asks the strategy for children. What is to be done, to whom, and how a restart would be.
    fn rule_child(
        &mut self,
        turn: &AnyTurn<'_>,
        child: &AnyActor,
        failure: &Failure,
        at: Moment,
        info: &mut FailureInfo,
    ) -> (Ruling, Scope, Renewal) {
        let life = self.life_or_new();
        let Some((scope, strategy)) = &mut life.for_children else {
            return (Ruling::Stop, Scope::OneForOne, Renewal::PLAIN);
        };
        let line = child.line_or_new();
        let mut ledger = line.take_ledger().unwrap_or_default();
        let mut ruling = Ruling::Escalate;
        // If the decider panics, it has not decided.
        contain(turn, &mut || ruling = rule(strategy, &mut ledger, failure, at));
        info.restart_stats.window_failures = ledger.stats().window_failures;
        line.put_ledger(ledger);
        let renewal = Renewal {
            delay: None,
            keeps_children: strategy.keeps_children(),
            stash: strategy.stash_capacity(),
        };
        (ruling, *scope, renewal)
    }

    /// Orders the restart of a child, on its own account or on that of another one.
    pub(super) fn restart_child(&mut self, turn: &AnyTurn<'_>, child: &AnyActor, renewal: Renewal) {
        self.child_starting(turn, &child.path);
        let line = child.line_or_new();
        let mut ledger = line.take_ledger().unwrap_or_default();
        ledger.restarts();
        line.put_ledger(ledger);
        child.lower(FAILED);
        // Whatever was ordered before and not seen.
        line.set_order((!renewal.is_plain()).then_some(Order::Restart(renewal)));
        child.order(RESTART);
    }

    /// A child is about to be made, for the first time or again.
    pub(super) fn child_starting(&mut self, turn: &AnyTurn<'_>, path: &ActorPath) {
        let life = self.life_or_new();
        let Some((_, strategy)) = &mut life.for_children else { return };
        contain(turn, &mut || strategy.before_start(path));
    }

    /// A child has started again, as this actor has ordered.
    pub(super) fn child_restarted(&mut self, turn: &AnyTurn<'_>, child: &AnyActor, now: u64) {
        let line = child.line_or_new();
        let Some(mut ledger) = line.take_ledger() else { return };
        ledger.restarted(now);
        let stats = ledger.stats();
        line.put_ledger(ledger);
        let life = self.life_or_new();
        let Some((_, strategy)) = &mut life.for_children else { return };
        contain(turn, &mut || strategy.after_restart(&child.path, &stats));
    }

    /// What a host says about a failure: decided about, if it concerns a child. News of one that
    /// had the child's name before is old, and ignored.
    pub(super) fn told_of_failure(&mut self, turn: &AnyTurn<'_>, info: FailureInfo) {
        let core = turn.front();
        let own = (info.actor, &info.path);
        let (pid, below) = if info.path == *core.path { info.origin() } else { own };
        let mut up = Some(below);
        while let Some(path) = up.filter(|path| path.parent() != Some(&core.path)) {
            up = path.parent();
        }
        let child = up.and_then(|path| {
            core.children()?.with(|children| children.get(path.name())?.child().cloned())
        });
        let Some(child) = child else {
            self.signal_later(Signal::ChildFailed(info));
            return;
        };
        if *child.path == *below && child.pid() != pid && !mutant!("actor-failure-by-name") {
            return;
        }
        let failure = Failure::msg(info.reason.to_string());
        child.raise(FAILED);
        let failed = FailedChild { child, failure, info, is_startup: false, can_resume: true };
        self.child_failed(turn, failed);
    }

    /// Fails because of a child.
    fn fail_as(&mut self, turn: &AnyTurn<'_>, failure: Failure, info: FailureInfo) {
        self.life_or_new().escalated = Some(info);
        self.fail(turn, failure, None);
    }

    /// Goes on as if nothing had happened.
    pub(super) fn resume(&mut self, turn: &AnyTurn<'_>, waiting: Waiting) {
        if !self.has_actor() {
            // There is nothing that could go on.
            self.stop(turn, None);
            return;
        }
        self.mark_mut().stage = Stage::Running;
        turn.front().lower(FAILED);
        self.let_children_go_on(turn, waiting);
    }

    /// Waits before it is made anew.
    pub(super) fn back_off(&mut self, turn: &AnyTurn<'_>, delay: Duration) {
        let life = self.life_or_new();
        life.backoffs = life.backoffs.wrapping_add(1).max(1);
        let number = life.backoffs;
        let me = turn.me();
        let system = turn.front().system();
        life.backoff_timer = system.after(delay, me, Tick::BackoffOver(number));
        // If no timer is to be had, at once is better than never.
        life.backoff = if life.backoff_timer.is_some() { number } else { 0 };
    }

    /// The timer of this back-off has come.
    pub(super) fn backoff_over(&mut self, turn: &AnyTurn<'_>, number: u32) {
        let life = self.life_or_new();
        if life.backoff != number {
            return;
        }
        life.backoff = 0;
        let delay = life.backoff_timer.take();
        if let Some(rest) = turn.front().system().rest_of(delay) {
            self.back_off(turn, rest);
        }
    }

    /// Offers again what a sink has refused, its own or, at the root, the system's.
    pub(super) fn retry_escalations(&mut self, turn: &AnyTurn<'_>) {
        let core = turn.front();
        match own_sink(core) {
            Some(sink) => retry(&sink, &|call| contain(turn, call)),
            None => core.system().retry_escalations(&|call| contain(turn, call)),
        }
        self.retry_later(turn);
    }

    /// Sees to it that what a sink has refused is offered again.
    fn retry_later(&self, turn: &AnyTurn<'_>) {
        let core = turn.front();
        let me = turn.me();
        match own_sink(core) {
            Some(sink) => call_again(&sink, &me),
            None if core.parent.is_none() => {
                if let Some(sink) = core.system().escalations() {
                    call_again(sink, &me);
                }
            }
            None => {}
        }
    }

    fn moment(&mut self, turn: &AnyTurn<'_>) -> Moment {
        let core = turn.front();
        let life = self.life_or_new();
        life.draws = life.draws.wrapping_add(1);
        let random = core.system().random(&core.path, life.draws);
        Moment { now_nanos: turn.nanos(), is_startup: !self.mark().has(WAS_STARTED), random }
    }

    fn info_of(
        &mut self,
        turn: &AnyTurn<'_>,
        failure: &Failure,
        message_type: Option<&'static str>,
    ) -> FailureInfo {
        if let Some(info) = self.life_or_new().escalated.take() {
            return info;
        }
        let reason = report_of(turn, failure);
        let life = self.life_or_new();
        let layer = life.layers.iter().find(|layer| layer.matches(failure)).map(Layer::stats);
        let stats = RestartStats {
            restarts: life.restarts,
            last_restart_nanos: life.last_restart_nanos,
            window_failures: layer.unwrap_or_default().window_failures,
        };
        let path = turn.front().path.clone();
        let mut info = FailureInfo::new(turn.pid(), path, reason);
        info.restart_stats = stats;
        info.message_type = message_type;
        info
    }

    fn tell_of_failure(&self, turn: &AnyTurn<'_>, mut info: FailureInfo, directive: Directive) {
        info.directive = Some(directive);
        turn.front().system().failed(&info);
    }

    fn tell_of_child(&mut self, turn: &AnyTurn<'_>, mut info: FailureInfo, directive: Directive) {
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
pub(super) fn tell_of_hook(turn: &AnyTurn<'_>, failure: Failure) {
    let reason = report_of(turn, &failure);
    let path = turn.front().path.clone();
    let info = FailureInfo::new(turn.pid(), path, reason);
    turn.front().system().events().publish(&SystemEvent::Failure(info));
    turn.drop_contained(failure);
}

/// What a parent that watches is to know of the end.
pub(super) fn say_last_words(turn: &AnyTurn<'_>, report: FailureReport) {
    turn.front().line_or_new().set_last_words(report);
}

fn rule(strategy: &mut Strategy, ledger: &mut Ledger, failure: &Failure, at: Moment) -> Ruling {
    if strategy.matches(failure) { strategy.rule(ledger, failure, at) } else { Ruling::Escalate }
}

/// Offers once more what waits.
pub(crate) fn retry(sink: &Escalations, guarded: &dyn Fn(&mut dyn FnMut())) {
    sink.disarm();
    guarded(&mut || _ = sink.retry());
}

/// Has what waits offered again after a while, by the actor that the sink belongs to.
fn call_again(sink: &Escalations, holder: &AnyActor) {
    if !sink.arm() {
        return;
    }
    let again = holder.system().after(ESCALATION_RETRY, holder.clone(), Tick::RetryEscalations);
    if again.is_none() {
        sink.disarm();
    }
}

/// The sink that was set for this actor itself.
fn own_sink(core: &Core) -> Option<Counted<Escalations>> {
    core.children()?.with(|children| children.sink.clone())
}

/// Tells the sink of the actor, or else that of the nearest one above that has one, of a failure
/// that the actor does not settle.
fn tell_sink(turn: &AnyTurn<'_>, info: &FailureInfo) {
    let me = turn.me();
    let mut holder = Some(&me);
    while let Some(one) = holder {
        if let Some(sink) = own_sink(one) {
            contain(turn, &mut || _ = sink.retry());
            let mut offer = Some(info.clone());
            // If there is no room to keep it for another time, that is counted there.
            contain(turn, &mut || _ = offer.take().map(|info| sink.offer(info)));
            return call_again(&sink, one);
        }
        holder = one.parent.as_ref();
    }
}
