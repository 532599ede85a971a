//! Failures: who decides what becomes of an actor, and how it is told.

use alloc::vec::Vec;
use core::time::Duration;

use clockjack_exec::{Failure, Pid};

use super::{ASKS_PARENT, Cell, Stage, TurnOf, WAS_STARTED};
use crate::{
    Actor, Directive, FailureInfo, FailureReport, Scope, Signal, Strategy,
    base::{AnyActor, RESTART, RESUME, STOP, Tell},
    events::SystemEvent,
    notes::{FailedChild, Note},
    strategy::{Layer, Ledger, Moment, Ruling},
};

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// The actor has failed: its own strategies decide, innermost first, then its parent's.
    pub(super) fn fail(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        failure: Failure,
        message_type: Option<&'static str>,
    ) {
        if self.state.is_ending() {
            self.tell_of_hook(turn, failure);
            return;
        }
        let info = self.info_of(turn, &failure, message_type);
        let at = self.moment(turn);
        let is_startup = at.is_startup;
        let n = self.state.extra.as_ref().map_or(0, |extra| extra.layers.len());
        for index in 0..n {
            let ruled = self.state.extra().layers.get_mut(index).and_then(|layer| {
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
                ruling.map(|ruling| (ruling, layer.keeps_children()))
            });
            match ruled {
                None | Some((Ruling::Escalate, _)) => {}
                Some((Ruling::Resume, _)) if !is_startup => {
                    self.tell_of_failure(turn, info, Directive::Resume);
                    turn.drop_contained(failure);
                    return;
                }
                Some((Ruling::Resume | Ruling::Stop, _)) => {
                    self.tell_of_failure(turn, info, Directive::Stop);
                    self.stop(turn, Some(failure));
                    return;
                }
                Some((Ruling::Restart { delay }, keeps_children)) => {
                    self.tell_of_failure(turn, info, Directive::Restart);
                    turn.drop_contained(failure);
                    self.restart(turn, delay, keeps_children);
                    return;
                }
            }
        }
        self.escalate(turn, failure, info);
    }

    /// None of its own strategies has settled it.
    fn escalate(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Failure, info: FailureInfo) {
        let core = &turn.front().core;
        match &core.parent {
            Some(parent) if self.state.has(ASKS_PARENT) => {
                self.state.stage = Stage::Failed;
                for child in Self::children(turn) {
                    child.suspend(true);
                    child.wake();
                }
                let me = crate::actor_ref::untyped(turn.me());
                let failed = FailedChild { child: me, failure, info };
                if let Err(Note::Failed(failed)) = parent.note(Note::Failed(failed.into())) {
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
                core.system().root_failed(info);
            }
        }
    }

    /// A child has failed and waits for a decision.
    pub(super) fn child_failed(&mut self, turn: &TurnOf<'_, A::Msg>, failed: FailedChild) {
        let FailedChild { child, failure, info } = failed;
        let children = turn.front().core.children();
        let is_mine = children.is_some_and(|c| c.with(|c| c.of(&child).is_some()));
        if !is_mine || self.state.is_ending() {
            child.order(STOP);
            turn.drop_contained(failure);
            return;
        }
        let at = Moment { is_startup: false, ..self.moment(turn) };
        let mut ruling = Ruling::Stop;
        let mut scope = Scope::OneForOne;
        let mut keeps_children = false;
        let extra = self.state.extra();
        let ledger = ledger_of(&mut extra.ledgers, child.pid());
        if let Some((for_all, strategy)) = &mut extra.for_children {
            scope = *for_all;
            keeps_children = strategy.keeps_children();
            let ruled = turn.guarded(&mut || ruling = rule(strategy, ledger, &failure, at));
            if let Err(caught) = ruled {
                turn.discard(caught);
                ruling = Ruling::Escalate;
            }
        }
        match ruling {
            Ruling::Resume => {
                self.tell_of_child(turn, info, Directive::Resume);
                child.order(RESUME);
            }
            Ruling::Restart { delay } => {
                self.tell_of_child(turn, info, Directive::Restart);
                let is_plain = delay.is_none() && !keeps_children;
                Self::for_scope(turn, scope, &child, |child| {
                    if is_plain {
                        child.order(RESTART);
                    } else {
                        drop(child.note(Note::Restart { delay, keeps_children }));
                    }
                });
            }
            Ruling::Stop => {
                self.tell_of_child(turn, info, Directive::Stop);
                Self::for_scope(turn, scope, &child, |child| child.order(STOP));
            }
            Ruling::Escalate => {
                let up = info.escalate_to_parent(turn.pid());
                self.signal_later(Signal::Escalated(info));
                self.state.extra().suspended.push(child);
                self.fail_as(turn, failure, up);
                return;
            }
        }
        turn.drop_contained(failure);
    }

    /// Fails because of a child.
    fn fail_as(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Failure, info: FailureInfo) {
        self.state.extra().escalated = Some(info);
        self.fail(turn, failure, None);
    }

    /// Calls `tell` for all children in the scope of a decision, newest first.
    fn for_scope(
        turn: &TurnOf<'_, A::Msg>,
        scope: Scope,
        failed: &AnyActor,
        tell: impl Fn(&AnyActor),
    ) {
        let mut is_in_scope = scope != Scope::OneForOne;
        for child in &Self::children(turn) {
            let is_failed = child.ptr_eq(failed);
            if is_failed || is_in_scope {
                tell(child);
            }
            if is_failed && scope == Scope::RestForOne {
                // Those that are left were started before it.
                is_in_scope = false;
            }
        }
    }

    /// Goes on as if nothing had happened.
    pub(super) fn resume(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.actor.is_none() {
            // There is nothing that could go on.
            self.stop(turn, None);
            return;
        }
        self.state.stage = Stage::Running;
        for child in Self::children(turn) {
            child.suspend(false);
            child.wake();
        }
        let extra = self.state.extra();
        for child in core::mem::take(&mut extra.suspended) {
            child.order(RESUME);
        }
    }

    /// Waits before it is made anew.
    pub(super) fn back_off(&mut self, turn: &TurnOf<'_, A::Msg>, delay: Duration) {
        let extra = self.state.extra();
        extra.backoffs = extra.backoffs.wrapping_add(1).max(1);
        extra.backoff = extra.backoffs;
        let number = extra.backoff;
        let me = crate::actor_ref::untyped(turn.me());
        if !turn.front().core.system().after(delay, me, Note::BackoffOver(number)) {
            // No timer is to be had: at once is better than never.
            extra.backoff = 0;
        }
    }

    fn moment(&mut self, turn: &TurnOf<'_, A::Msg>) -> Moment {
        let core = &turn.front().core;
        let extra = self.state.extra();
        extra.draws = extra.draws.wrapping_add(1);
        let random = core.system().random(&core.path, extra.draws);
        Moment { now_nanos: turn.nanos(), is_startup: !self.state.has(WAS_STARTED), random }
    }

    pub(super) fn report_of(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        failure: &Failure,
    ) -> FailureReport {
        let mut report = None;
        // The text of an error is user code.
        let guarded = turn.guarded(&mut || report = Some(FailureReport::from(failure)));
        if let Err(caught) = guarded {
            turn.discard(caught);
        }
        report.unwrap_or_else(|| FailureReport::new("a failure whose text panics"))
    }

    fn info_of(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        failure: &Failure,
        message_type: Option<&'static str>,
    ) -> FailureInfo {
        if let Some(info) = self.state.extra().escalated.take() {
            return info;
        }
        let reason = self.report_of(turn, failure);
        let stats = self.state.extra().layers.first().map(Layer::stats).unwrap_or_default();
        let path = turn.front().core.path.clone();
        let mut info = FailureInfo::new(turn.pid(), path, reason);
        info.restart_stats = stats;
        info.message_type = message_type;
        info
    }

    fn tell_of_failure(
        &self,
        turn: &TurnOf<'_, A::Msg>,
        mut info: FailureInfo,
        directive: Directive,
    ) {
        info.directive = Some(directive);
        turn.front().core.system().failed(&info);
    }

    fn tell_of_child(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        mut info: FailureInfo,
        directive: Directive,
    ) {
        info.directive = Some(directive);
        turn.front().core.system().failed(&info);
        self.signal_later(Signal::ChildFailed(info));
    }

    /// A hook has failed, which changes nothing any more.
    pub(super) fn tell_of_hook(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Failure) {
        let reason = self.report_of(turn, &failure);
        let path = turn.front().core.path.clone();
        let info = FailureInfo::new(turn.pid(), path, reason);
        turn.front().core.system().events().publish(&SystemEvent::Failure(info));
        turn.drop_contained(failure);
    }

    /// What a parent that watches is to know of the end.
    pub(super) fn say_last_words(&self, turn: &TurnOf<'_, A::Msg>, reason: Option<FailureReport>) {
        if let (Some(report), Some(parent)) = (reason, &turn.front().core.parent) {
            drop(parent.note(Note::LastWords { child: turn.pid(), report }));
        }
    }
}

fn rule(strategy: &mut Strategy, ledger: &mut Ledger, failure: &Failure, at: Moment) -> Ruling {
    if strategy.matches(failure) { strategy.rule(ledger, failure, at) } else { Ruling::Escalate }
}

fn ledger_of(ledgers: &mut Vec<(Pid, Ledger)>, child: Pid) -> &mut Ledger {
    let at = match ledgers.iter().position(|(pid, _)| *pid == child) {
        Some(at) => at,
        None => {
            ledgers.push((child, Ledger::default()));
            ledgers.len() - 1
        }
    };
    &mut ledgers[at].1
}
