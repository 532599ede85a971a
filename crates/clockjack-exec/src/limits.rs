//! How much an executor may hold, and how much one step may do.
//!
//! Nothing grows without a limit; what exceeds one is refused with an error. The numbers are
//! limits, not reservations: unused capacity costs nothing where memory can grow.

use core::time::Duration;

/// The largest capacity of a mailbox.
const MESSAGES_MAX: usize = clockjack_sync::mail::CAPACITY_MAX;

/// The largest number of timers for which a shard reserves room.
const RESERVED_MAX: usize = 64;
/// The least.
const RESERVED_MIN: usize = 2;

/// The limits of an executor.
///
/// Each setter takes and returns the limits, also in a `const`.
///
/// # Examples
///
/// ```
/// use clockjack_exec::limits::Limits;
///
/// const BOARD: Limits = Limits::SMALL.processes(4).timers(16);
/// assert_eq!(BOARD.processes_max(), 4);
/// assert_eq!(BOARD.messages_max(), Limits::SMALL.messages_max());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    processes_max: usize,
    timers_max: usize,
    messages_max: usize,
    throughput: usize,
    step_budget: Duration,
}

impl Limits {
    /// For a machine with an operating system: a million processes, a million timers per shard, and
    /// 65536 messages per process.
    pub const DEFAULT: Self = Self {
        processes_max: 1 << 20,
        timers_max: 1 << 20,
        messages_max: 1 << 16,
        throughput: 64,
        step_budget: Duration::from_millis(1),
    };

    /// For a board with about ten kilobytes of memory. Steps are shorter too, because there is one
    /// worker for all processes.
    pub const SMALL: Self = Self {
        processes_max: 16,
        timers_max: 32,
        messages_max: 16,
        throughput: 8,
        step_budget: Duration::from_millis(1),
    };

    /// Limits the number of processes at the same time; more are refused. There is never room for
    /// more than about 2³⁰. A process that has ended does not count, even while somebody keeps a
    /// reference to it; it occupies its memory until the last reference is dropped.
    #[must_use]
    pub const fn processes(self, processes_max: usize) -> Self {
        Self { processes_max, ..self }
    }

    /// Limits the number of armed timers per shard; more are refused. A worker can always arm that
    /// many; a few more may be accepted from other threads, for which room is reserved.
    #[must_use]
    pub const fn timers(self, timers_max: usize) -> Self {
        Self { timers_max, ..self }
    }

    /// Limits the number of waiting messages per process; more are refused. Zero is taken as one: a
    /// message waits until the next step of the process. A mailbox holds at most 2²⁴ messages, or
    /// 2²⁰ on targets without 64-bit atomics; a larger limit is taken as that.
    #[must_use]
    pub const fn messages(self, messages_max: usize) -> Self {
        let messages_max = match messages_max {
            0 => 1,
            1..=MESSAGES_MAX => messages_max,
            _ => MESSAGES_MAX,
        };
        Self { messages_max, ..self }
    }

    /// Limits the number of events per step; afterwards other processes run. Zero is taken as one:
    /// a process that could take no event would never end.
    #[must_use]
    pub const fn throughput(self, events_max: usize) -> Self {
        let throughput = if events_max == 0 { 1 } else { events_max };
        Self { throughput, ..self }
    }

    /// Limits the time for the steps of a process; afterwards other processes run. A running step
    /// is not interrupted; with zero a process runs one step at a time.
    #[must_use]
    pub const fn step_budget(self, step_budget: Duration) -> Self {
        Self { step_budget, ..self }
    }

    /// How many processes there may be at the same time.
    #[must_use]
    pub const fn processes_max(&self) -> usize {
        self.processes_max
    }

    /// How many timers may be armed in a shard.
    #[must_use]
    pub const fn timers_max(&self) -> usize {
        self.timers_max
    }

    /// How many slots a shard needs for that many timers. A shard reserves up to 64 slots, and at
    /// most a quarter, for threads that arm timers while another thread holds it: a power of two.
    pub(crate) const fn shard_capacity(&self) -> usize {
        let third = self.timers_max / 3;
        let reserved = match third {
            0 | 1 => RESERVED_MIN,
            RESERVED_MAX.. => RESERVED_MAX,
            _ => 1 << third.ilog2(),
        };
        self.timers_max.saturating_add(reserved)
    }

    /// How many messages may wait for a process; at least one.
    #[must_use]
    pub const fn messages_max(&self) -> usize {
        self.messages_max
    }

    /// How many events a step may take; at least one.
    #[must_use]
    pub const fn throughput_max(&self) -> usize {
        self.throughput
    }

    /// How long the steps of a process may take before other processes run.
    #[must_use]
    pub const fn step_budget_max(&self) -> Duration {
        self.step_budget
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
