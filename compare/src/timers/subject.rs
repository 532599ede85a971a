//! What a timer store must offer to be measured, and what is said about it beside the figures.
//!
//! A subject is told the time, in milliseconds since its construction, and never reads a clock of
//! its own. It is not told how many timers will come: all of them start small and grow.

use core::ops::AddAssign;

/// A timer store under measurement.
pub(crate) trait Subject: Sized {
    /// What is known about this subject before it runs.
    const FACTS: Facts;

    /// What `insert` gives out and `cancel` takes.
    type Key;

    /// An empty store at time 0, with a tick of one millisecond.
    fn new() -> Self;

    /// Arms a timer for `deadline_ms`, which lies ahead. No two ids alive at once are equal.
    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key;

    /// Cancels a timer that has not fired.
    fn cancel(&mut self, key: Self::Key);

    /// Moves the clock to `to_ms` in one go and fires what is due on the way.
    fn jump(&mut self, to_ms: u64) -> Fired;

    /// Moves the clock from 0 to `to_ms` millisecond by millisecond, as a running program does.
    fn steps(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        for at_ms in 1..=to_ms {
            fired += self.jump(at_ms);
        }
        fired
    }

    /// Takes back a key that is not needed any more, whether or not its timer fired. Not timed.
    fn retire(&mut self, key: Self::Key) {
        drop(key);
    }

    /// Runs a batch of operations with whatever must surround them, such as being inside a
    /// runtime. It is entered once a batch, as in a program that lives there.
    fn within<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        batch(self)
    }
}

/// What is known about a subject before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The name in tables, in JSON and after `--only`.
    pub(crate) name: &'static str,
    /// The package it comes from, or the standard library if there is none.
    pub(crate) package: Option<&'static str>,
    pub(crate) role: Role,
    pub(crate) cancel: Cancel,
    /// Whether `Fired::id_sum` is filled in.
    pub(crate) ids: Ids,
    /// What a reader of the figures should know, in one line.
    pub(crate) note: &'static str,
}

impl Facts {
    /// True if the subject may be the best peer: a crate one could use instead, whose cancel
    /// frees its entry. Who leaves cancelled entries lying about has not yet paid for the cancel.
    pub(crate) fn is_rival(&self) -> bool {
        self.role == Role::Crate && self.cancel == Cancel::Frees
    }
}

/// In which line of the report a subject stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Clockjack's own store.
    Ours,
    /// A published crate.
    Crate,
    /// A collection of the standard library: what one would write by hand.
    Reference,
}

/// What becomes of the memory of a cancelled timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// The next insert can use it.
    Frees,
    /// It is held until the deadline passes. The claim is checked by the allocator in `bytes`.
    Lazy,
}

/// Whether a subject says which timers fired, or only how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    HandedBack,
    Lost,
}

/// What is measured.
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
    /// With n timeouts of 30 s resident: cancel a random one and arm it anew.
    Churn,
    /// Live heap bytes a timer after n inserts.
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

/// What a move of the clock brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// How many timers fired.
    pub(crate) count: u64,
    /// The sum of their ids. Summing makes every subject really hand its values over.
    pub(crate) id_sum: u64,
}

impl Fired {
    /// Notes that the timer `id` fired.
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
