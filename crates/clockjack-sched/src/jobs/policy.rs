//! Policies. A job gets its policy by its affinity, never by an extra argument.

use alloc::{borrow::Cow, vec::Vec};
use core::fmt;

pub use clockjack_time::TimerPriority;

/// What happens to runs at a fixed rate that could not start in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CatchUp {
    /// Each is delivered separately, back to back and never overlapping, as in Pekko.
    #[default]
    Individually,
    /// All are merged into one run, whose batch says how many.
    Folded,
}

/// The policy of a job: its priority, and how far it may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Which jobs are evicted first when there is no room for all.
    pub priority: TimerPriority,
    /// The largest backlog that a job at a fixed rate may have; `None` for any. The *backlog* is
    /// the number of due runs that wait behind an earlier run of the same job, which is running or
    /// comes next: after a stall in which five runs became due, the backlog is four, and so it is
    /// if four become due while the handler runs. A job whose backlog is larger than the limit is
    /// cancelled; with a limit of zero, as soon as two of its runs are due at a time. Warnings and
    /// [dumps](crate::JobDump::backlog) have the same number.
    pub backlog_limit: Option<u32>,
    /// The largest backlog without a [`BurstFire`](crate::Warning::BurstFire).
    pub burst_threshold: u32,
    /// What happens to missed runs.
    pub catch_up: CatchUp,
}

impl Policy {
    /// Normal priority, no limit, a warning at the eleventh missed run, and separate missed runs.
    pub const DEFAULT: Self = Self {
        priority: TimerPriority::Normal,
        backlog_limit: None,
        burst_threshold: 10,
        catch_up: CatchUp::Individually,
    };

    /// Sets another priority.
    #[must_use]
    pub const fn priority(mut self, priority: TimerPriority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the largest backlog, beyond which the job is cancelled.
    #[must_use]
    pub const fn backlog_limit(mut self, runs: u32) -> Self {
        self.backlog_limit = Some(runs);
        self
    }

    /// Sets the largest backlog without a warning.
    #[must_use]
    pub const fn burst_threshold(mut self, runs: u32) -> Self {
        self.burst_threshold = runs;
        self
    }

    /// Sets another way to catch up.
    #[must_use]
    pub const fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.catch_up = catch_up;
        self
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Names a dispatcher, which determines where closures run, and with which policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DispatcherId(pub u16);

impl DispatcherId {
    /// The dispatcher that every host has.
    pub const DEFAULT: Self = Self(0);
}

impl fmt::Display for DispatcherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dispatcher {}", self.0)
    }
}

/// What a job belongs to, from the general to the specific.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Affinity {
    /// Everything that a dispatcher runs.
    Dispatcher(DispatcherId),
    /// An actor and everything below it, by its path: `/user`, `/system`, `/user/shop`. Of several
    /// paths the longest applies.
    Guardian(Cow<'static, str>),
    /// A part of the runtime or the application, by name. In an actor system an actor below
    /// `/user/shop` or `/system/shop` belongs to the subsystem `shop`, unless its scheduler says
    /// otherwise.
    Subsystem(Cow<'static, str>),
    /// Actors of one class, by name.
    ActorClass(Cow<'static, str>),
}

impl Affinity {
    /// How specific it is. The most specific policy that is set applies.
    fn rank(&self) -> (u8, usize) {
        match self {
            Self::Dispatcher(_) => (0, 0),
            Self::Guardian(path) => (1, path.len()),
            Self::Subsystem(_) => (2, 0),
            Self::ActorClass(_) => (3, 0),
        }
    }
}

/// Policies by affinity. They are set before the start and do not change afterwards.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Affinity, CatchUp, TimerPriority, DispatcherId, Policy, PolicyRegistry};
///
/// let policies = PolicyRegistry::new()
///     .set(Affinity::Dispatcher(DispatcherId(3)), Policy::DEFAULT.priority(TimerPriority::Low))
///     .set(Affinity::Subsystem("telemetry".into()), Policy::DEFAULT.catch_up(CatchUp::Folded));
/// assert_eq!(policies.of_dispatcher(DispatcherId(3)).priority, TimerPriority::Low);
/// assert_eq!(policies.of_dispatcher(DispatcherId::DEFAULT), Policy::DEFAULT);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PolicyRegistry {
    default: Policy,
    entries: Vec<(Affinity, Policy)>,
}

impl PolicyRegistry {
    /// Creates a registry in which every job has [`Policy::DEFAULT`].
    #[must_use]
    pub const fn new() -> Self {
        Self { default: Policy::DEFAULT, entries: Vec::new() }
    }

    /// Sets the policy of jobs that have no other.
    #[must_use]
    pub const fn set_default(mut self, policy: Policy) -> Self {
        self.default = policy;
        self
    }

    /// Sets the policy of an affinity, and replaces an earlier one.
    #[must_use]
    pub fn set(mut self, affinity: Affinity, policy: Policy) -> Self {
        match self.entries.iter_mut().find(|(known, _)| *known == affinity) {
            Some((_, known)) => *known = policy,
            None => self.entries.push((affinity, policy)),
        }
        self
    }

    /// The policy of a job that runs on a dispatcher and has no other affinity.
    #[must_use]
    pub fn of_dispatcher(&self, dispatcher: DispatcherId) -> Policy {
        let resolve = || self.resolve(&[Affinity::Dispatcher(dispatcher)]);
        self.uniform().unwrap_or_else(resolve)
    }

    /// The policy of every job, if no affinity has one of its own. Then a caller need not find out
    /// the affinities of its jobs.
    #[inline]
    #[must_use]
    pub fn uniform(&self) -> Option<Policy> {
        self.entries.is_empty().then_some(self.default)
    }

    /// The policy of a job with these affinities: that of the most specific one that is set.
    #[must_use]
    pub fn resolve(&self, affinities: &[Affinity]) -> Policy {
        self.resolve_by(|affinity| affinities.contains(affinity))
    }

    /// The policy of a job that belongs to the affinities for which `belongs` returns true: that of
    /// the most specific one that is set.
    #[must_use]
    pub fn resolve_by(&self, belongs: impl Fn(&Affinity) -> bool) -> Policy {
        let set = self.entries.iter().filter(|(affinity, _)| belongs(affinity));
        set.max_by_key(|(affinity, _)| affinity.rank()).map_or(self.default, |(_, policy)| *policy)
    }
}
