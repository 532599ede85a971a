//! One subject, one graph, once. What repeats, rotates and takes medians is the suite.
//!
//! The clocks are read within the run, by whoever comes first in an epoch, so that neither start
//! nor end of a run count, nor its first epochs, in which queues grow and the runtime learns how
//! long calls take.

use alloc::sync::Arc;
use std::sync::OnceLock;

use super::shape::Shape;
use super::taskflow::Program;
use crate::clock::Watch;
use crate::failure::Failure;
use crate::measure::{Begun, Cost, Mode, Spent};

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) shape: &'a Shape,
    /// Epochs that are measured.
    pub(crate) n: u32,
    /// Epochs before those.
    pub(crate) n_warm_up: u64,
    /// What the sums of all sinks must come to.
    pub(crate) expected: u64,
    pub(crate) mode: Mode,
    /// Whether ours writes down what happens when.
    pub(crate) traces: bool,
    /// How many threads others than ours may use; ours has one a core.
    pub(crate) n_threads: usize,
    pub(crate) watch: Watch,
    /// What was compiled of the rival in C++, where it is installed.
    pub(crate) taskflow: Option<&'a Program>,
}

impl Run<'_> {
    /// Epochs of the whole run. The measure ends when the one behind the last begins.
    pub(crate) fn n_epochs(&self) -> u64 {
        self.n_warm_up + u64::from(self.n) + 1
    }

    /// What an epoch came to.
    ///
    /// # Errors
    ///
    /// If the sum of all sinks is not what it must be, or the run ended before its measure.
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

/// What an epoch takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) cost: Cost,
    /// The most nodes that were seen at work at once, where somebody looks.
    pub(crate) overlap: Option<usize>,
}

/// Reads the clocks at the first and behind the last of the measured epochs.
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
    /// A gauge, and where its reading will be.
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

    /// This epoch, counted from one, begins.
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
            // There is one end, and so nothing there yet.
            let _first = self.spent.set(spent);
        }
    }
}
