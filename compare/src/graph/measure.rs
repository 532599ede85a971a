//! One run of one subject with one graph. The suite repeats runs, rotates subjects and takes
//! medians.
//!
//! The first component of an epoch reads the clocks, within the run, so that neither start nor stop
//! of a run count, nor its first epochs, in which queues grow and the runtime learns the duration
//! of calls.

use alloc::sync::Arc;
use std::sync::OnceLock;

use super::shape::Shape;
use super::taskflow::Program;
use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::{Begun, Cost, Mode, Spent};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) shape: &'a Shape,
    /// Measured epochs.
    pub(crate) n: u32,
    /// Warm-up epochs.
    pub(crate) n_warm_up: u64,
    /// The expected sum of all sinks.
    pub(crate) expected: u64,
    pub(crate) mode: Mode,
    /// Whether Clockjack records a trace.
    pub(crate) traces: bool,
    /// The number of threads of the other subjects; Clockjack has one per core.
    pub(crate) n_threads: usize,
    pub(crate) watch: Watch,
    /// The compiled program of the C++ rival, if it is installed.
    pub(crate) taskflow: Option<&'a Program>,
}

impl Run<'_> {
    /// All epochs of the run. The measurement stops when the epoch after the last measured one
    /// starts.
    pub(crate) fn n_epochs(&self) -> u64 {
        self.n_warm_up + u64::from(self.n) + 1
    }

    /// The figures per epoch.
    ///
    /// # Errors
    ///
    /// If the sum of all sinks is wrong, or the run stopped before the end of the measurement.
    pub(crate) fn figure(
        &self,
        subject: &'static str,
        total: u64,
        spent: Option<Spent>,
    ) -> Result<Figure, Failure> {
        let expected = self.expected;
        if total != expected {
            return Err(Failure::miscount(subject, "the sum of all sinks", total, expected));
        }
        let Some(spent) = spent else {
            return Err(Failure::miscount(subject, "the number of measures", 0, 1));
        };
        Ok(Figure { cost: spent.per(f64::from(self.n)), overlap: None })
    }
}

/// The cost of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) cost: Cost,
    /// The maximum number of nodes that ran concurrently, if it was observed.
    pub(crate) overlap: Option<usize>,
}

/// Reads the clocks at the start of the first measured epoch and after the last.
#[derive(Debug)]
pub(crate) struct Gauge {
    first: u64,
    end: u64,
    mode: Mode,
    watch: Watch,
    begun: Option<Begun>,
    spent: Arc<OnceLock<Spent>>,
}

impl Gauge {
    /// A gauge, and the place of its result.
    pub(crate) fn new(run: &Run<'_>) -> (Self, Arc<OnceLock<Spent>>) {
        let spent = Arc::new(OnceLock::new());
        let first = run.n_warm_up + 1;
        let gauge = Self {
            first,
            end: first + u64::from(run.n),
            mode: run.mode,
            watch: run.watch,
            begun: None,
            spent: Arc::clone(&spent),
        };
        (gauge, spent)
    }

    /// Called at the start of this epoch, counted from one.
    #[inline]
    pub(crate) fn at(&mut self, epoch: u64) {
        if epoch == self.first {
            self.begun = Some(Begun::new(self.mode, self.watch));
        } else if epoch == self.end {
            self.end();
        }
    }

    #[cold]
    fn end(&mut self) {
        if let Some(begun) = self.begun.take() {
            let spent = begun.end();
            // The measurement stops once, so the cell is empty.
            let _first = self.spent.set(spent);
        }
    }
}
