//! The end of a system, and those who wait for it.

use alloc::{
    string::{String, ToString as _},
    vec::Vec,
};
use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_sync::lock::Lock;

use super::ActorSystem;
use crate::ActorPath;

/// How a system has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminationReport {
    /// Why.
    pub reason: String,
    /// Actors that had not stopped when the time was over.
    pub stragglers: Vec<ActorPath>,
}

impl TerminationReport {
    /// Whether everything has stopped by itself.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty()
    }
}

/// The state of a system's end.
pub(super) struct End(Lock<State>);

#[derive(Default)]
struct State {
    reason: Option<String>,
    report: Option<TerminationReport>,
    waiting: Vec<Waker>,
}

/// Why a system ends, if nobody has said more.
const ASKED: &str = "actor system terminate";

impl End {
    pub(super) fn new() -> Self {
        Self(Lock::new(State::default()))
    }

    /// Says why it will end; the first reason stays.
    pub(super) fn set_reason(&self, reason: &str) {
        let reason = reason.to_string();
        self.0.with(|state| _ = state.reason.get_or_insert(reason));
    }

    /// It has ended.
    pub(super) fn reach(&self) {
        let asked = ASKED.to_string();
        let waiting = self.0.with(|state| {
            let reason = state.reason.clone().unwrap_or(asked);
            state.report = Some(TerminationReport { reason, stragglers: Vec::new() });
            core::mem::take(&mut state.waiting)
        });
        waiting.into_iter().for_each(Waker::wake);
    }

    fn report(&self) -> Option<TerminationReport> {
        self.0.with(|state| state.report.clone())
    }
}

/// A future of the end of a system. It may be dropped and made anew; the system ends all the same.
#[must_use = "it does nothing by itself, but the system does"]
pub struct Termination {
    system: ActorSystem,
}

impl Termination {
    pub(super) fn new(system: ActorSystem) -> Self {
        Self { system }
    }

    /// The report, if the system has ended.
    #[must_use]
    pub fn report(&self) -> Option<TerminationReport> {
        self.system.inner().end.report()
    }
}

impl Future for Termination {
    type Output = TerminationReport;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TerminationReport> {
        let waker = cx.waker().clone();
        let end = &self.system.inner().end;
        let (report, old) = end.0.with(|state| match &state.report {
            Some(report) => (Some(report.clone()), Some(waker)),
            None => {
                let is_same = |one: &Waker| one.will_wake(&waker);
                if state.waiting.iter().any(is_same) {
                    return (None, Some(waker));
                }
                state.waiting.push(waker);
                (None, None)
            }
        });
        drop(old);
        report.map_or(Poll::Pending, Poll::Ready)
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("report", &self.report()).finish_non_exhaustive()
    }
}
