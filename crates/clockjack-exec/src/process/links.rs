//! Monitors and links, as in OTP: which processes learn when a process ends.
//!
//! There is no lock. Each process has its own lists of the processes that it is linked to, that it
//! monitors and that monitor it; only its runner touches them. A link or monitor is made and
//! removed by signals between the two processes, so both ends know each other. Signals from one
//! process to another keep their order, so a link that is made and then removed does not remain. A
//! process that ends notifies all processes on its lists, and considers signals that arrived too
//! late to be put on them: closing the signal queue and reading it for the last time are one atomic
//! step.
//!
//! The lists are [sets](pid_set), so making and removing a tie takes the same time however many
//! there are. No poll handles more than [`SIGNALS_PER_POLL`] signals, and none notifies more than
//! [`EXITS_PER_POLL`] processes of an end: a task of its own does that for a process with more
//! ties, a part per poll, so other tasks run in between.
#![expect(unsafe_code, reason = "the runner has the links of its process to itself")]

use alloc::{boxed::Box, vec::Vec};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use clockjack_sync::Arc;
use clockjack_time::TimerId;

use crate::{
    command::PendingTicks,
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    exit::{ExitReason, JoinError},
    failure::Failure,
    payload::Payload,
    pid::Pid,
    process::pid_set::{PidSet, Pids},
    process::signal::{DrainedSignals, ProcessSignal},
    process::{Event, Tag},
    task::HeaderRef,
    timer::action::CurrentTimer,
};

/// The initial capacity for timers.
const TIMERS_MIN: usize = 4;

/// How many signals one poll handles at most: those of a whole supervision tree's children take
/// some tens of microseconds.
const SIGNALS_PER_POLL: usize = 256;
/// How many processes one poll notifies of an end at most.
const EXITS_PER_POLL: usize = 256;

/// The links and monitors of a process, and the timers that are cancelled when it ends.
#[derive(Debug, Default)]
pub(crate) struct ProcessLinks {
    /// Processes that monitor this one.
    monitors: PidSet,
    /// Processes that this one monitors.
    monitored: PidSet,
    links: PidSet,
    traps: bool,
    /// Signals that were taken out of the queue and are not handled yet.
    pending: DrainedSignals,
    /// The timers of pending commands, and some that have fired already.
    timers: Vec<TimerId>,
    /// The intervals, and some that have ended already.
    intervals: Vec<Arc<CurrentTimer>>,
}

/// A signal that the process itself receives as an event.
#[derive(Debug)]
pub(crate) enum ReceivedSignal {
    Complete { tag: Tag, result: Result<Payload, Failure> },
    Cancel { reason: &'static str },
    Exit { pid: Pid, reason: ExitReason },
    LinkDown { pid: Pid, reason: ExitReason },
}

impl<M> From<ReceivedSignal> for Event<M> {
    fn from(received: ReceivedSignal) -> Self {
        match received {
            ReceivedSignal::Complete { tag, result } => {
                // Taken only now: until here, further ticks of an interval add to this one.
                let ticks =
                    result.as_ref().ok().and_then(Payload::downcast_ref::<Arc<PendingTicks>>);
                let tick = ticks.map(|ticks| Payload::new(ticks.take()));
                Self::YieldComplete { tag, result: tick.map_or(result, Ok) }
            }
            ReceivedSignal::Cancel { reason } => Self::Cancel { reason },
            ReceivedSignal::Exit { pid, reason } => Self::Exit { pid, reason },
            ReceivedSignal::LinkDown { pid, reason } => Self::LinkDown { pid, reason },
        }
    }
}

/// The links of a process, for its runner.
///
/// The borrow must not be kept across user code or another call of this function.
fn links(header: HeaderRef<'_>) -> &mut ProcessLinks {
    // SAFETY: only the runner of the process calls the functions of this module; none keeps the
    // borrow when it calls another.
    let links = header.links.with_mut(|links| unsafe { &mut *links });
    links.get_or_insert_with(Box::default)
}

/// Whether there are signals to handle. By the runner.
#[inline]
pub(crate) fn has_signals(header: HeaderRef<'_>) -> bool {
    let is_pending = |links: &Option<Box<ProcessLinks>>| {
        links.as_ref().is_some_and(|links| !links.pending.is_empty())
    };
    // SAFETY: as in `links`.
    !header.signals.is_empty() || header.links.with(|links| is_pending(unsafe { &*links }))
}

/// The next signal: of those that an earlier poll has left, else from the queue.
fn next_signal(header: HeaderRef<'_>, taken: &mut DrainedSignals) -> Option<ProcessSignal> {
    taken.next().or_else(|| {
        *taken = header.signals.take();
        taken.next()
    })
}

/// Sets whether the process receives failures of linked processes as events. By the runner.
pub(crate) fn trap_links(header: HeaderRef<'_>, traps: bool) {
    links(header).traps = traps;
}

/// Registers a timer to be cancelled when the process ends. By the runner.
pub(crate) fn keep_timer(header: HeaderRef<'_>, executor: &ExecutorShared, id: TimerId) {
    let timers = &mut links(header).timers;
    if timers.len() == timers.capacity() {
        // Remove those that have fired. The room for as many as are left makes this rare, however
        // many there are.
        timers.retain(|id| executor.is_armed(*id));
        timers.reserve(timers.len().max(TIMERS_MIN));
    }
    timers.push(id);
}

/// Registers an interval to be cancelled when the process ends. By the runner.
pub(crate) fn keep_interval(header: HeaderRef<'_>, interval: Arc<CurrentTimer>) {
    let intervals = &mut links(header).intervals;
    if intervals.len() == intervals.capacity() {
        // Remove those that have no timer any more, as above.
        intervals.retain(|interval| !Arc::is_unique(interval));
        intervals.reserve(intervals.len().max(1));
    }
    intervals.push(interval);
}

/// Handles the signals in the queue, as many as one poll may, and passes those that the process
/// receives to `tell`. Returns whether there may be more. By the runner.
pub(crate) fn take_signals(
    header: HeaderRef<'_>,
    executor: &ExecutorShared,
    mut tell: impl FnMut(ReceivedSignal),
) -> Result<bool, JoinError> {
    let incarnation = header.state.generation();
    let mut pending = take_pending(header);
    for _ in 0..SIGNALS_PER_POLL {
        let Some(signal) = next_signal(header, &mut pending) else { return Ok(false) };
        match signal {
            ProcessSignal::Complete { tag, incarnation: asked, result } => {
                if asked == incarnation {
                    tell(ReceivedSignal::Complete { tag, result });
                } else {
                    executor.count_stale_completion();
                    executor.drop_catching_panic(result);
                }
            }
            ProcessSignal::Cancel { reason } => tell(ReceivedSignal::Cancel { reason }),
            ProcessSignal::Monitor { monitor } => _ = links(header).monitors.insert(monitor),
            ProcessSignal::Demonitor { monitor } => _ = links(header).monitors.remove(monitor),
            ProcessSignal::Link { peer } => _ = links(header).links.insert(peer),
            ProcessSignal::Unlink { peer } => _ = links(header).links.remove(peer),
            ProcessSignal::Exit { pid, reason } => {
                if links(header).monitored.remove(pid) {
                    tell(ReceivedSignal::Exit { pid, reason });
                }
            }
            ProcessSignal::LinkExit { pid, reason } => {
                let own = links(header);
                if own.links.remove(pid) && reason.is_failure() {
                    if own.traps {
                        tell(ReceivedSignal::LinkDown { pid, reason });
                    } else {
                        // The end of the process handles the remaining signals: one may be a
                        // request to monitor it.
                        keep_pending(header, pending);
                        return Err(JoinError::link_down(pid, reason));
                    }
                }
            }
        }
    }
    keep_pending(header, pending);
    Ok(has_signals(header))
}

/// What an earlier poll has left.
fn take_pending(header: HeaderRef<'_>) -> DrainedSignals {
    // SAFETY: as in `links`.
    let known = header.links.with_mut(|links| unsafe { (*links).as_mut() });
    known.map_or_else(DrainedSignals::default, |known| core::mem::take(&mut known.pending))
}

/// Keeps what this poll has left.
fn keep_pending(header: HeaderRef<'_>, pending: DrainedSignals) {
    if !pending.is_empty() {
        links(header).pending = pending;
    }
}

/// Monitors another process. By the runner of the monitoring process; `Ok(false)`: it does already.
pub(crate) fn monitor(header: HeaderRef<'_>, other: HeaderRef<'_>) -> Result<bool, ProcessSignal> {
    let (me, pid) = (header.pid(), other.pid());
    if links(header).monitored.contains(pid) {
        return Ok(false);
    }
    other.signal(ProcessSignal::Monitor { monitor: me })?;
    Ok(links(header).monitored.insert(pid))
}

/// Stops monitoring; returns whether the process was monitored. By the runner.
pub(crate) fn demonitor(header: HeaderRef<'_>, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = links(header).monitored.remove(pid);
    if did {
        executor.signal(pid, ProcessSignal::Demonitor { monitor: header.pid() });
    }
    did
}

/// Links two processes. By the runner of one of them. Idempotent.
pub(crate) fn link(header: HeaderRef<'_>, other: HeaderRef<'_>) -> Result<(), ProcessSignal> {
    other.signal(ProcessSignal::Link { peer: header.pid() })?;
    links(header).links.insert(other.pid());
    Ok(())
}

/// Removes the link between two processes; returns whether there was one. By the runner of one of
/// them.
pub(crate) fn unlink(header: HeaderRef<'_>, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = links(header).links.remove(pid);
    if did {
        executor.signal(pid, ProcessSignal::Unlink { peer: header.pid() });
    }
    did
}

/// Notifies all linked and monitoring processes that this process has ended, including those whose
/// signal arrived too late to be handled before. By the runner, as its last use of the links.
pub(crate) fn notify_exit(header: HeaderRef<'_>, executor: &ExecutorShared, reason: &ExitReason) {
    let late = header.signals.close();
    // SAFETY: this is the runner, and no other borrow of the links is alive.
    let known = header.links.with_mut(|links| unsafe { (*links).take() });
    if known.is_none() && late.is_empty() {
        return;
    }
    let mut known = known.unwrap_or_default();
    for signal in core::mem::take(&mut known.pending).chain(late) {
        match signal {
            ProcessSignal::Monitor { monitor } => _ = known.monitors.insert(monitor),
            ProcessSignal::Demonitor { monitor } => _ = known.monitors.remove(monitor),
            ProcessSignal::Link { peer } => _ = known.links.insert(peer),
            ProcessSignal::Unlink { peer } => _ = known.links.remove(peer),
            ProcessSignal::Exit { pid, .. } => _ = known.monitored.remove(pid),
            ProcessSignal::LinkExit { pid, .. } => _ = known.links.remove(pid),
            ProcessSignal::Complete { result, .. } => executor.drop_catching_panic(result),
            ProcessSignal::Cancel { .. } => {}
        }
    }
    for id in known.timers {
        executor.cancel_timer(id);
    }
    for interval in known.intervals {
        interval.end(executor);
    }
    let n_ties = known.monitors.len() + known.links.len() + known.monitored.len();
    let mut notices = ExitNotices {
        pid: header.pid(),
        reason: reason.clone(),
        monitors: known.monitors.into_pids(),
        links: known.links.into_pids(),
        monitored: known.monitored.into_pids(),
    };
    if n_ties <= EXITS_PER_POLL {
        notices.send(executor, n_ties);
        return;
    }
    let task = ExitTask { executor: (*header.executor).clone(), notices, is_done: false };
    // SAFETY: the future and its output are `Send`.
    drop(unsafe { ExecutorShared::spawn(&header.executor, task, None) });
}

/// The notices of an end that were not sent yet, in the order in which the ties were made.
struct ExitNotices {
    pid: Pid,
    reason: ExitReason,
    monitors: Pids,
    links: Pids,
    monitored: Pids,
}

impl ExitNotices {
    fn next(&mut self) -> Option<(Pid, ProcessSignal)> {
        let Self { pid, reason, .. } = self;
        let exit = |to| (to, ProcessSignal::Exit { pid: *pid, reason: reason.clone() });
        let link_exit = |to| (to, ProcessSignal::LinkExit { pid: *pid, reason: reason.clone() });
        let demonitor = |to| (to, ProcessSignal::Demonitor { monitor: *pid });
        let monitor = self.monitors.next().map(exit);
        let link = || self.links.next().map(link_exit);
        monitor.or_else(link).or_else(|| self.monitored.next().map(demonitor))
    }

    /// Sends the next ones, at most so many; returns whether these were all.
    fn send(&mut self, executor: &ExecutorShared, n_max: usize) -> bool {
        for _ in 0..n_max {
            let Some((to, signal)) = self.next() else { return true };
            executor.signal(to, signal);
        }
        false
    }
}

/// The task that notifies the many processes that were tied to one that has ended.
struct ExitTask {
    executor: ExecutorRef,
    notices: ExitNotices,
    is_done: bool,
}

impl Future for ExitTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { executor, notices, is_done } = self.get_mut();
        *is_done = notices.send(executor, EXITS_PER_POLL);
        if *is_done {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for ExitTask {
    /// An executor that shuts down refuses or ends this task: then the rest is sent at once.
    fn drop(&mut self) {
        if !self.is_done {
            self.notices.send(&self.executor, usize::MAX);
        }
    }
}
