//! What a dump of an executor's tasks says of each of them.
#![expect(unsafe_code, reason = "reads what a future keeps next to its header")]

use alloc::borrow::Cow;
use core::{
    fmt,
    panic::Location,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use super::{TaskRef, future};
use crate::{executor::ExecutorShared, pid::Pid, state::State};

/// Nanoseconds per unit of `PollStats::polled_at`, as a power of two: about a millisecond, so that
/// 32 bits last for 52 days.
const UNIT_SHIFT: u32 = 20;

/// How often and when a task was polled; only its runner writes.
///
/// The atomics are those of `core` and not those that models replace: these are statistics, with
/// one writer at a time, and no decision depends on them.
pub(crate) struct PollStats {
    polls: AtomicU32,
    /// The time of the last poll, in units of 2^20 ns, as the worker knew it.
    polled_at: AtomicU32,
}

impl PollStats {
    pub(crate) const fn new() -> Self {
        Self { polls: AtomicU32::new(0), polled_at: AtomicU32::new(0) }
    }

    /// A poll begins. `nanos` is when the worker last read the clock.
    #[inline]
    pub(crate) fn count(&self, nanos: u64) {
        // Relaxed, here and below: statistics with one writer.
        self.polls.store(self.polls.load(Relaxed).wrapping_add(1), Relaxed);
        self.polled_at.store(units(nanos), Relaxed);
    }
}

fn units(nanos: u64) -> u32 {
    let low = (nanos >> UNIT_SHIFT) & u64::from(u32::MAX);
    u32::try_from(low).unwrap_or(u32::MAX)
}

/// A task that has not ended, as an entry of a dump: a future, a process or an actor.
///
/// [`Handle::task_dump`](crate::Handle::task_dump) returns one per task. Its text is one line:
///
/// ```text
/// {0|3.1} "upload" app::main::{closure} is idle, 7 polls, the last 5.2s ago, \
///     spawned at src/main.rs:12:9, waits at src/upload.rs:31:24
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTask {
    /// Its pid.
    pub pid: Pid,
    /// The name that the task was spawned with; in a dump of a runtime also the path of an actor.
    pub name: Option<Cow<'static, str>>,
    /// The name of its type.
    pub type_name: &'static str,
    /// What it does.
    pub state: State,
    /// How often it was polled, modulo 2^32.
    pub polls: u32,
    /// How long ago its last poll began, modulo 52 days; `None` if it was never polled. The begin
    /// is the time of the worker's last look at the clock, which is at most 127 polls old.
    pub since_poll: Option<Duration>,
    /// Where a future was spawned; `None` for a process and an actor.
    pub spawned_at: Option<&'static Location<'static>>,
    /// The `.await` at which a future waits; `None` if it does not wait, or waits for a future of
    /// another crate.
    pub waits_at: Option<&'static Location<'static>>,
}

impl LiveTask {
    pub(crate) fn of(task: &TaskRef, executor: &ExecutorShared) -> Self {
        let header = task.header();
        let state = header.state();
        // Relaxed: statistics.
        let polls = header.poll_stats.polls.load(Relaxed);
        let polled_at = header.poll_stats.polled_at.load(Relaxed);
        let age = u64::from(units(executor.nanos()).wrapping_sub(polled_at)) << UNIT_SHIFT;
        // SAFETY: the reference keeps the task from being freed.
        let info = unsafe { future::info(task.as_ptr()) };
        let is_waiting = matches!(state, State::Idle | State::Blocked);
        Self {
            pid: task.pid(),
            name: info.and_then(|info| info.name()),
            type_name: (header.vtable.name)(),
            state,
            polls,
            since_poll: (polls > 0).then(|| Duration::from_nanos(age)),
            spawned_at: info.map(|info| info.spawned_at()),
            waits_at: info.filter(|_| is_waiting).and_then(|info| info.waits_at()),
        }
    }
}

impl fmt::Display for LiveTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, type_name, state, polls, .. } = self;
        write!(f, "{pid}")?;
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        write!(f, " {type_name} is {state}, {polls} polls")?;
        if let Some(since) = self.since_poll {
            write!(f, ", the last {since:.1?} ago")?;
        }
        if let Some(spawned_at) = self.spawned_at {
            write!(f, ", spawned at {spawned_at}")?;
        }
        if let Some(waits_at) = self.waits_at {
            write!(f, ", waits at {waits_at}")?;
        }
        Ok(())
    }
}
