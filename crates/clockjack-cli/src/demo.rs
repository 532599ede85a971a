//! `clockjack demo`: a timer wheel and a scheduler in virtual time, checked by the oracle of
//! [`clockjack_sched::properties`].
//!
//! Each demo depends on its seed alone; only the wall time that it prints differs between runs.

pub(crate) mod jobs;
pub(crate) mod timers;

use clockjack_sched::properties::{JobOracle, PropertyError, Run};
use clockjack_time::Tick;

use crate::rng::mix;

/// The oracle, and what is printed of the runs that it has checked.
#[derive(Debug)]
struct Checked {
    oracle: JobOracle,
    /// A digest of the numbers and due times of all runs, in order.
    order: u64,
    n_late: u64,
    /// The greatest lateness, in ticks.
    late_max: u64,
}

impl Checked {
    const fn new(oracle: JobOracle) -> Self {
        Self { oracle, order: 0, n_late: 0, late_max: 0 }
    }

    /// Checks a run that took no time.
    fn run(&mut self, number: usize, run: Run) -> Result<(), PropertyError> {
        self.oracle.begin(number, run)?;
        self.oracle.end(number, run.now, false);
        // Each step is a bijection of what came before, so no difference is forgotten by itself.
        self.order = mix(self.order ^ run.due.get()).wrapping_add(number as u64);
        let late = run.now.saturating_since(run.due).get();
        self.n_late += u64::from(late > 0);
        self.late_max = self.late_max.max(late);
        Ok(())
    }

    /// Checks that everything due by `now` has run.
    fn settled(&self, now: u64) -> Result<(), PropertyError> {
        self.oracle.check_settled(Tick::new(now))
    }
}
