//! How much of everything an executor may hold, and how much of it a turn may take.
//!
//! Nothing grows without a bound; who meets one is refused and told so. The numbers are bounds, not
//! reservations: what is not used costs nothing where memory can grow.

use core::time::Duration;

/// What a queue can count: more than there is memory for.
const MESSAGES_MAX: usize = usize::MAX / 4;

/// The bounds of an executor.
///
/// Each setter takes and gives the limits, also in a `const`.
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
    /// For a machine with an operating system: a million processes, a million timers a shard, and
    /// 65536 messages a process.
    pub const DEFAULT: Self = Self {
        processes_max: 1 << 20,
        timers_max: 1 << 20,
        messages_max: 1 << 16,
        throughput: 64,
        step_budget: Duration::from_millis(1),
    };

    /// For a board with some ten kilobytes of memory. The turns are shorter too, since there is one
    /// worker for all.
    pub const SMALL: Self = Self {
        processes_max: 16,
        timers_max: 32,
        messages_max: 16,
        throughput: 8,
        step_budget: Duration::from_millis(1),
    };

    /// With so many processes at the same time at most; more are refused. There is never room for
    /// more than 2³⁰, about, however many are said here.
    #[must_use]
    pub const fn processes(self, processes_max: usize) -> Self {
        Self { processes_max, ..self }
    }

    /// With so many armed timers a shard at most, but at least eight; more are refused.
    #[must_use]
    pub const fn timers(self, timers_max: usize) -> Self {
        Self { timers_max, ..self }
    }

    /// With so many waiting messages a process at most; more are refused. Zero is taken as one: a
    /// message waits until the process has its turn.
    #[must_use]
    pub const fn messages(self, messages_max: usize) -> Self {
        let messages_max = match messages_max {
            0 => 1,
            1..=MESSAGES_MAX => messages_max,
            _ => MESSAGES_MAX,
        };
        Self { messages_max, ..self }
    }

    /// With so many events a step at most, then it is the turn of others. Zero is taken as one: a
    /// process that could take none would never come to its end.
    #[must_use]
    pub const fn throughput(self, events_max: usize) -> Self {
        let throughput = if events_max == 0 { 1 } else { events_max };
        Self { throughput, ..self }
    }

    /// With so much time for the steps of a process, then it is the turn of others. A step that has
    /// begun is not interrupted; with zero each turn is one step.
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

    /// How long the steps of a process may go on before it is the turn of others.
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
