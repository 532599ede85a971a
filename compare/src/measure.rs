//! The cost of a piece of work: clocks and allocations read together, for every suite whose
//! subjects have threads.

use core::ops::AddAssign;

use crate::clock::{Elapsed, Started, Watch};
use crate::order::Results;
use crate::report::Extra;
use crate::tally::{CountingAll, Tally};

/// Counting takes time, so a run either counts or is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Timed,
    /// Counts allocations and the bytes that remain allocated.
    Counted,
}

impl Mode {
    /// Round 0 counts, all others are timed.
    pub(crate) const fn of_round(round: u32) -> Self {
        if round == 0 { Self::Counted } else { Self::Timed }
    }
}

/// A measurement that has started.
#[derive(Debug)]
pub(crate) struct Begun {
    counting: Option<CountingAll>,
    started: Started,
}

impl Begun {
    /// Starts counting, if that is the mode, and then the clocks.
    #[inline]
    pub(crate) fn new(mode: Mode, watch: Watch) -> Self {
        let counting = (mode == Mode::Counted).then(CountingAll::begin);
        Self { counting, started: watch.start() }
    }

    /// Stops both, in reverse order.
    #[inline]
    pub(crate) fn end(self) -> Spent {
        let elapsed = self.started.stop();
        Spent { elapsed, tally: self.counting.map_or(Tally::default(), CountingAll::stop) }
    }
}

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) elapsed: Elapsed,
    /// All zero in a timed run.
    pub(crate) tally: Tally,
}

impl Spent {
    /// The cost per operation, of `n_ops` operations.
    pub(crate) fn per(self, n_ops: f64) -> Cost {
        Cost {
            cpu_ns: self.elapsed.cpu_ns / n_ops,
            wall_ns: self.elapsed.wall_ns / n_ops,
            n_allocs: self.tally.n_allocs as f64 / n_ops,
            live_bytes: self.tally.live_bytes as f64 / n_ops,
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.elapsed.cpu_ns += other.elapsed.cpu_ns;
        self.elapsed.wall_ns += other.elapsed.wall_ns;
        self.tally.n_allocs += other.tally.n_allocs;
        self.tally.live_bytes += other.tally.live_bytes;
    }
}

/// The cost of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
    /// Allocations; zero in a timed run.
    pub(crate) n_allocs: f64,
    /// Bytes allocated and not freed; zero in a timed run.
    pub(crate) live_bytes: f64,
}

impl Cost {
    /// The figure of a timed case.
    pub(crate) const fn cpu(&self) -> Option<f64> {
        Some(self.cpu_ns)
    }

    /// The further figures of a timed case.
    pub(crate) fn extras(all: &Results<Self>) -> Vec<Extra> {
        vec![
            Extra::numbers("wall_time", all.medians(|cost| Some(cost.wall_ns))),
            Extra::quartiles(all.quartiles(Self::cpu)),
            Extra::numbers("allocs", all.counted(|cost| Some(cost.n_allocs))),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Elapsed, Mode, Spent, Tally};

    #[test]
    fn what_was_spent_is_added_up_and_shared_by_the_operations() {
        let once = Spent {
            elapsed: Elapsed { cpu_ns: 10.0, wall_ns: 20.0 },
            tally: Tally { n_allocs: 3, live_bytes: -4 },
        };
        let mut total = Spent::default();
        total += once;
        total += once;
        let Cost { cpu_ns, wall_ns, n_allocs, live_bytes } = total.per(4.0);
        assert_eq!([cpu_ns, wall_ns, n_allocs, live_bytes], [5.0, 10.0, 1.5, -2.0]);
    }

    #[test]
    fn only_the_first_round_counts() {
        assert_eq!([0, 1, 2].map(Mode::of_round), [Mode::Counted, Mode::Timed, Mode::Timed]);
    }
}
