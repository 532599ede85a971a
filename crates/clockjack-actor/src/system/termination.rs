//! The termination of a system: its report, and the futures and hooks that wait for it.
//!
//! Roles: the *driver* of the coordinated shutdown, if one runs; the *root* actor, whose stop means
//! that the last actor has stopped; and *waiters*.
//!
//! 1. While a driver runs, the stop of the root only wakes the driver. Without a driver, the stop
//!    of the root sets the report.
//! 2. A driver that finishes sets the report, even if the root has not stopped: the live actors are
//!    then the stragglers. A driver that is dropped before it has finished leaves the report to the
//!    root, unless the root has already stopped.
//! 3. The report is set once. Then the waiters are woken and the hooks are called, outside of the
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

use clockjack_sync::{Arc, spin_lock::SpinLock, waker::AtomicWaker};

use super::SystemInner;
use crate::{
    ActorPath,
    room::with_room,
    shutdown::{Abort, Report},
};

/// How a system has terminated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminationReport {
    /// Why the system terminated.
    pub reason: String,
    /// Actors that had not stopped when the time was over.
    pub stragglers: Vec<ActorPath>,
    /// The report of the shutdown phases; `None` if the phases did not run, or did not finish.
    pub shutdown: Option<Report>,
}

impl TerminationReport {
    /// Whether all actors have stopped in time and all shutdown tasks succeeded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty() && self.shutdown.as_ref().is_none_or(Report::is_clean)
    }

    /// Why phases were skipped; `None` if none were. The actors were stopped all the same.
    #[must_use]
    pub fn aborted(&self) -> Option<&Abort> {
        self.shutdown.as_ref().and_then(|report| report.aborted.as_ref())
    }
}

pub(super) type OnTerminated = Box<dyn FnOnce(&TerminationReport) + Send>;

/// The state of a system's termination.
pub(super) struct TerminationState {
    state: SpinLock<State>,
    /// The waker of the task that waits for the root.
    root: AtomicWaker,
}

#[derive(Default)]
struct State {
    reason: Option<Arc<String>>,
    has_driver: bool,
    is_root_stopped: bool,
    report: Option<Arc<TerminationReport>>,
    /// Each waker with its id.
    waiting: Vec<(u64, Waker)>,
    next_id: u64,
    hooks: Vec<OnTerminated>,
}

/// A report, with the waiters to wake and the hooks to call.
pub(super) struct TerminationNotice {
    pub(super) report: Arc<TerminationReport>,
    waiting: Vec<(u64, Waker)>,
    pub(super) hooks: Vec<OnTerminated>,
}

/// The reason of a termination for which no other reason was given.
const DEFAULT_REASON: &str = "actor system terminate";

impl TerminationState {
    pub(super) fn new() -> Self {
        Self { state: SpinLock::new(State::default()), root: AtomicWaker::new() }
    }

    /// Sets the reason of the termination; the first reason stays.
    pub(super) fn set_reason(&self, reason: &str) {
        let mut reason = Some(Arc::new(reason.to_string()));
        self.state.with(|state| {
            if state.reason.is_none() {
                state.reason = reason.take();
            }
        });
    }

    pub(super) fn driver_started(&self) {
        self.state.with(|state| state.has_driver = true);
    }

    /// The last actor has stopped.
    #[must_use = "the waiters have to be notified"]
    pub(super) fn root_stopped(&self) -> Option<TerminationNotice> {
        let mut report = self.new_report(Vec::new(), None);
        let notice = self.state.with(|state| {
            state.is_root_stopped = true;
            if state.has_driver { None } else { state.set_report(&mut report) }
        });
        self.root.wake();
        notice
    }

    /// The host stops waiting: sets the report to the present state.
    #[must_use = "the waiters have to be notified"]
    pub(super) fn force_report(
        &self,
        stragglers: Vec<ActorPath>,
        report: Option<Report>,
    ) -> Option<TerminationNotice> {
        let mut report = self.new_report(stragglers, report);
        self.state.with(|state| state.set_report(&mut report))
    }

    /// The driver has finished; or was dropped, if there is no report.
    #[must_use = "the waiters have to be notified"]
    pub(super) fn driver_finished(
        &self,
        stragglers: Vec<ActorPath>,
        report: Option<Report>,
    ) -> Option<TerminationNotice> {
        let is_complete = report.is_some();
        let mut report = self.new_report(stragglers, report);
        self.state.with(|state| {
            state.has_driver = false;
            if !is_complete && !state.is_root_stopped {
                return None;
            }
            state.set_report(&mut report)
        })
    }

    /// A report that can be set under the lock. The reason that is set meanwhile comes too late.
    fn new_report(
        &self,
        stragglers: Vec<ActorPath>,
        shutdown: Option<Report>,
    ) -> Option<Arc<TerminationReport>> {
        let reason = self.reason();
        Some(Arc::new(TerminationReport { reason, stragglers, shutdown }))
    }

    /// Whether the last actor has stopped; if not, the waker is registered.
    pub(super) fn poll_root(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.root.register(cx.waker());
        if self.is_root_stopped() { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn is_root_stopped(&self) -> bool {
        self.state.with(|state| state.is_root_stopped)
    }

    pub(super) fn report(&self) -> Option<TerminationReport> {
        let report = self.state.with(|state| state.report.clone());
        report.map(|report| TerminationReport::clone(&report))
    }

    pub(super) fn reason(&self) -> String {
        let reason = self.state.with(|state| state.reason.clone());
        reason.map_or_else(|| DEFAULT_REASON.to_string(), |reason| String::clone(&reason))
    }

    /// Adds a hook. If there is a report already, returns the hook with the report, so that the
    /// caller calls it at once.
    pub(super) fn add_hook(&self, hook: OnTerminated) -> Option<(OnTerminated, TerminationReport)> {
        let mut hook = Some(hook);
        let add = |state: &mut State| {
            if state.report.is_none() {
                state.hooks.extend(hook.take());
            }
            state.report.clone()
        };
        let report = with_room(&self.state, |state| &mut state.hooks, add);
        hook.zip(report.map(|report| TerminationReport::clone(&report)))
    }
}

impl State {
    fn set_report(
        &mut self,
        report: &mut Option<Arc<TerminationReport>>,
    ) -> Option<TerminationNotice> {
        if self.report.is_some() {
            return None;
        }
        let report = report.take()?;
        self.report = Some(report.clone());
        Some(TerminationNotice {
            report,
            waiting: core::mem::take(&mut self.waiting),
            hooks: core::mem::take(&mut self.hooks),
        })
    }
}

impl TerminationNotice {
    /// The wakers to wake.
    pub(super) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        core::mem::take(&mut self.waiting).into_iter().map(|(_, waker)| waker)
    }
}

/// A future that completes when the system has terminated. It may be dropped at any time; the
/// termination continues all the same.
#[must_use = "await the future to wait for the termination, which proceeds without it"]
pub struct Termination {
    system: Arc<SystemInner>,
    /// The id of the entry in the list of waiters; 0 if there is none.
    id: u64,
}

impl Termination {
    pub(super) fn new(system: Arc<SystemInner>) -> Self {
        Self { system, id: 0 }
    }

    /// The report, if the system has terminated.
    #[must_use]
    pub fn report(&self) -> Option<TerminationReport> {
        self.system.termination.report()
    }

    /// Removes the entry from the list of waiters and returns its waker, to be dropped outside of
    /// the lock.
    fn unregister(&mut self) -> Option<Waker> {
        let id = core::mem::take(&mut self.id);
        if id == 0 {
            return None;
        }
        self.system.termination.state.with(|state| {
            let at = state.waiting.iter().position(|one| one.0 == id)?;
            Some(state.waiting.swap_remove(at).1)
        })
    }
}

impl Future for Termination {
    type Output = TerminationReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TerminationReport> {
        let waker = cx.waker().clone();
        drop(self.unregister());
        let termination = &self.system.termination;
        let add = |state: &mut State| match &state.report {
            Some(report) => (0, Some(report.clone()), Some(waker)),
            None => {
                state.next_id += 1;
                state.waiting.push((state.next_id, waker));
                (state.next_id, None, None)
            }
        };
        let (id, report, unused) = with_room(&termination.state, |state| &mut state.waiting, add);
        drop(unused);
        self.id = id;
        report.map_or(Poll::Pending, |report| Poll::Ready(TerminationReport::clone(&report)))
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        drop(self.unregister());
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("report", &self.report()).finish_non_exhaustive()
    }
}
