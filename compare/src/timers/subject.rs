//! The interface of a measured timer store, and its description in the report.
//!
//! A subject receives the time, in milliseconds since its construction, and never reads a clock. It
//! does not know how many timers it will get: all subjects start small and grow.

use core::ops::AddAssign;

/// A timer store under measurement.
pub(crate) trait Subject: Sized {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The key that `insert` returns and `cancel` takes.
    type Key;

    /// An empty store at time 0, with a tick of one millisecond.
    fn new() -> Self;

    /// Arms a timer for `deadline_ms`, which is in the future. The ids of armed timers are
    /// distinct.
    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key;

    /// Cancels a timer that has not fired.
    fn cancel(&mut self, key: Self::Key);

    /// Advances the clock to `to_ms` in one jump and fires the timers that become due.
    fn jump(&mut self, to_ms: u64) -> Fired;

    /// Advances the clock from 0 to `to_ms` millisecond by millisecond, as a running program does.
    fn steps(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        for at_ms in 1..=to_ms {
            fired += self.jump(at_ms);
        }
        fired
    }

    /// Takes a key that is no longer needed, whether or not its timer fired. Not timed.
    fn retire(&mut self, key: Self::Key) {
        drop(key);
    }

    /// Runs a batch of operations in the environment that they need, such as a runtime, which is
    /// entered once per batch.
    fn within<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        batch(self)
    }
}

/// The properties of a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The name in tables, in JSON and after `--only`.
    pub(crate) name: &'static str,
    /// Its package, or `None` for the standard library.
    pub(crate) package: Option<&'static str>,
    pub(crate) role: Role,
    pub(crate) cancel: Cancel,
    /// Whether `Fired::id_sum` is filled in.
    pub(crate) ids: Ids,
    /// A remark for the reader of the figures, in one line.
    pub(crate) note: &'static str,
}

impl Facts {
    /// Whether the subject may be the best peer: a competing crate whose cancel frees its entry. A
    /// store that leaves cancelled entries in place has not paid the whole cost of the cancel.
    pub(crate) fn is_rival(&self) -> bool {
        self.role == Role::Crate && self.cancel == Cancel::Frees
    }
}

/// The role of a subject in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Clockjack's own store.
    Ours,
    /// A published crate.
    Crate,
    /// A collection of the standard library: a hand-written store.
    Reference,
}

/// What happens to the memory of a cancelled timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// The next insert can use it.
    Frees,
    /// It is kept until the deadline passes. The case `bytes` checks this with the allocator.
    Lazy,
}

/// Whether a subject reports which timers fired, or only how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    HandedBack,
    Lost,
}

/// The cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Arm n timers in a store that was filled and emptied once.
    Insert,
    /// Cancel all of them in random order.
    Cancel,
    /// Fire n timers in one jump of the clock.
    Fire,
    /// Fire n timers in steps of one millisecond.
    #[value(name = "fire_1ms")]
    Fire1ms,
    /// With n timeouts of 30 s resident: cancel a random one and arm it again.
    Churn,
    /// Live heap bytes per timer after n inserts.
    Bytes,
}

impl Case {
    pub(crate) const ALL: [Self; 6] =
        [Self::Insert, Self::Cancel, Self::Fire, Self::Fire1ms, Self::Churn, Self::Bytes];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Cancel => "cancel",
            Self::Fire => "fire",
            Self::Fire1ms => "fire_1ms",
            Self::Churn => "churn",
            Self::Bytes => "bytes",
        }
    }

    /// The unit of its figures.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            _ => "ns",
        }
    }
}

/// The timers that fired in a move of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// How many timers fired.
    pub(crate) count: u64,
    /// The sum of their ids. Summing forces every subject to return its values.
    pub(crate) id_sum: u64,
}

impl Fired {
    /// Records that the timer `id` fired.
    #[inline]
    pub(crate) fn note(&mut self, id: u32) {
        self.count += 1;
        self.id_sum += u64::from(id);
    }
}

impl AddAssign for Fired {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.id_sum += other.id_sum;
    }
}
