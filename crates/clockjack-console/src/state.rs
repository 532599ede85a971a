//! What lies between two inspections. All of it is bounded.

mod graphs;
pub(crate) mod log;
mod rates;
mod samples;
mod sweep;

pub(crate) use self::{
    graphs::{GraphRates, Graphs},
    log::{Ended, Log, Subscription},
    rates::{Counters, Follow, Rates, WINDOW_NS, late_bucket, late_p99},
    samples::{Place, Samples, WorkerSamples},
    sweep::{Hot, KEPT, Sums, Sweeper, key, matches, row_of, state_of},
};
use clockjack_exec::Pid;

use crate::view::{Finding, Undecided};

/// The actors whose handlers take too long.
pub(crate) type StuckPlaces = Vec<Pid>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct State {
    /// How many watchers live.
    pub(crate) n_watchers: usize,
    pub(crate) subscription: Option<Subscription>,
    pub(crate) samples: Samples,
    pub(crate) sweeper: Sweeper,
    pub(crate) rates: Rates,
    pub(crate) graphs: Graphs,
    pub(crate) follow: Follow,
    pub(crate) memory: crate::findings::Memory,
    pub(crate) findings: Vec<Finding>,
    pub(crate) undecided: Vec<Undecided>,
    /// When findings were looked for, at first and at last.
    pub(crate) looked_ns: Option<(u64, u64)>,
}

impl State {
    /// Forgets everything: nobody looks any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// About how many bytes this holds.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.samples.bytes() + self.sweeper.bytes() + self.follow.bytes()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for rates, which people read")]
pub(crate) const fn float(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "for rates, which people read")]
pub(crate) const fn float_of(n: usize) -> f64 {
    n as f64
}

/// The seconds between two times in nanoseconds; `None` if there are none.
pub(crate) fn seconds_between(from_ns: u64, to_ns: u64) -> Option<f64> {
    let nanos = to_ns.saturating_sub(from_ns);
    (nanos > 0).then(|| float(nanos) / 1e9)
}
