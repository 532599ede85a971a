//! The end of a system, and those who wait for it.
//!
//! Roles: the *driver* of the coordinated shutdown, if one runs; the *root*, which tells when the
//! last actor has ended; and *waiters*.
//!
//! 1. While a driver runs, the root only wakes it; without one it settles the report.
//! 2. A driver that is done settles the report, also if the root has not ended: then what is alive
//!    are stragglers. A driver that is dropped before leaves that to the root, unless it has ended.
//! 3. The report is settled once. Then the waiters are woken and the hooks called, outside of the
//!    lock.

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_sync::{lock::Lock, mutant, waker::AtomicWaker};

use super::ActorSystem;
use crate::{
    ActorPath,
    shutdown::{Abort, Report},
};

/// How a system has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminationReport {
    /// Why.
    pub reason: String,
    /// Actors that had not stopped when the time was over.
    pub stragglers: Vec<ActorPath>,
    /// What came of the phases; none if they did not run, or not to their end.
    pub shutdown: Option<Report>,
}

impl TerminationReport {
    /// Whether everything has stopped by itself, and all tasks of the shutdown succeeded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty() && self.shutdown.as_ref().is_none_or(Report::is_clean)
    }

    /// Why phases were left out; none if none were. The actors were stopped all the same.
    #[must_use]
    pub fn aborted(&self) -> Option<&Abort> {
        self.shutdown.as_ref().and_then(|report| report.aborted.as_ref())
    }
}

pub(super) type OnTerminated = Box<dyn FnOnce(&TerminationReport) + Send>;

/// The state of a system's end.
pub(super) struct End {
    state: Lock<State>,
    /// Of the task that waits for the root.
    root: AtomicWaker,
}

#[derive(Default)]
struct State {
    reason: Option<String>,
    has_driver: bool,
    is_root_gone: bool,
    report: Option<TerminationReport>,
    /// Each with its number.
    waiting: Vec<(u64, Waker)>,
    next_id: u64,
    hooks: Vec<OnTerminated>,
}

/// Who has to be told of a report.
pub(super) struct Settled {
    pub(super) report: TerminationReport,
    waiting: Vec<(u64, Waker)>,
    pub(super) hooks: Vec<OnTerminated>,
}

/// Why a system ends, if nobody has said more.
const ASKED: &str = "actor system terminate";

impl End {
    pub(super) fn new() -> Self {
        Self { state: Lock::new(State::default()), root: AtomicWaker::new() }
    }

    /// Says why it will end; the first reason stays.
    pub(super) fn set_reason(&self, reason: &str) {
        let reason = reason.to_string();
        self.state.with(|state| _ = state.reason.get_or_insert(reason));
    }

    pub(super) fn begin_driver(&self) {
        self.state.with(|state| state.has_driver = true);
    }

    /// The last actor has ended.
    #[must_use = "somebody waits for it"]
    pub(super) fn root_gone(&self) -> Option<Settled> {
        let asked = ASKED.to_string();
        let settled = self.state.with(|state| {
            state.is_root_gone = true;
            if state.has_driver { None } else { state.settle(asked, Vec::new(), None) }
        });
        self.root.wake();
        settled
    }

    /// A host gives up waiting, and tells what is so now.
    #[must_use = "somebody waits for it"]
    pub(super) fn give_up(
        &self,
        stragglers: Vec<ActorPath>,
        report: Option<Report>,
    ) -> Option<Settled> {
        let asked = ASKED.to_string();
        self.state.with(|state| state.settle(asked, stragglers, report))
    }

    /// The driver is done; or was dropped, if there is no report.
    #[must_use = "somebody waits for it"]
    pub(super) fn driver_over(
        &self,
        stragglers: Vec<ActorPath>,
        report: Option<Report>,
    ) -> Option<Settled> {
        let asked = ASKED.to_string();
        self.state.with(|state| {
            state.has_driver = false;
            if report.is_none() && !state.is_root_gone {
                return None;
            }
            state.settle(asked, stragglers, report)
        })
    }

    /// Whether the last actor has ended; if not, the waker is kept.
    pub(super) fn poll_root(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.root.register(cx.waker());
        if self.is_root_gone() { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn is_root_gone(&self) -> bool {
        self.state.with(|state| state.is_root_gone)
    }

    pub(super) fn report(&self) -> Option<TerminationReport> {
        self.state.with(|state| state.report.clone())
    }

    pub(super) fn reason(&self) -> String {
        self.state.with(|state| state.reason.clone()).unwrap_or_else(|| ASKED.to_string())
    }

    /// Calls `hook` with the report, at once if there is one; then it comes back with that.
    pub(super) fn add_hook(&self, hook: OnTerminated) -> Option<(OnTerminated, TerminationReport)> {
        let mut hook = Some(hook);
        let report = self.state.with(|state| {
            if state.report.is_none() {
                state.hooks.extend(hook.take());
            }
            state.report.clone()
        });
        hook.zip(report)
    }
}

impl State {
    fn settle(
        &mut self,
        asked: String,
        stragglers: Vec<ActorPath>,
        shutdown: Option<Report>,
    ) -> Option<Settled> {
        if self.report.is_some() && !mutant!("end-settles-twice") {
            return None;
        }
        let reason = self.reason.clone().unwrap_or(asked);
        let report = TerminationReport { reason, stragglers, shutdown };
        self.report = Some(report.clone());
        Some(Settled {
            report,
            waiting: core::mem::take(&mut self.waiting),
            hooks: core::mem::take(&mut self.hooks),
        })
    }
}

impl Settled {
    /// Those who are to be woken.
    pub(super) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        core::mem::take(&mut self.waiting).into_iter().map(|(_, waker)| waker)
    }
}

/// A future of the end of a system. It may be dropped and made anew; the system ends all the same.
#[must_use = "it does nothing by itself, but the system does"]
pub struct Termination {
    system: ActorSystem,
    /// Zero if it does not wait.
    id: u64,
}

impl Termination {
    pub(super) fn new(system: ActorSystem) -> Self {
        Self { system, id: 0 }
    }

    /// The report, if the system has ended.
    #[must_use]
    pub fn report(&self) -> Option<TerminationReport> {
        self.system.inner().end.report()
    }

    /// Waits no more; what it has left is to be dropped.
    fn leave(&mut self) -> Option<Waker> {
        let id = core::mem::take(&mut self.id);
        if id == 0 {
            return None;
        }
        self.system.inner().end.state.with(|state| {
            let at = state.waiting.iter().position(|one| one.0 == id)?;
            Some(state.waiting.swap_remove(at).1)
        })
    }
}

impl Future for Termination {
    type Output = TerminationReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TerminationReport> {
        let waker = cx.waker().clone();
        drop(self.leave());
        let end = &self.system.inner().end;
        let (id, report, unused) = end.state.with(|state| match &state.report {
            Some(report) => (0, Some(report.clone()), Some(waker)),
            None => {
                state.next_id += 1;
                state.waiting.push((state.next_id, waker));
                (state.next_id, None, None)
            }
        });
        drop(unused);
        self.id = id;
        report.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        if !mutant!("termination-waker-stays") {
            drop(self.leave());
        }
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("report", &self.report()).finish_non_exhaustive()
    }
}
