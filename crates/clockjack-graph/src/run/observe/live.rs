//! A live view of a run, for readers that poll it.
//!
//! A reader gets what the domains published last, and requests an update. Each domain publishes an
//! update once, at the end of the epoch in which it sees the request. So no thread waits for
//! another one, and a run without readers only checks one flag per epoch.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Mutex;

use super::{
    collect::{self, LifecycleCounts},
    metrics::Metrics,
};
use crate::{
    compile::Plan,
    lock::lock,
    run::engine::{domain::Domain, epoch::RegionCell},
};

/// The progress of a lane while the run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveLane {
    /// Its id.
    pub lane: String,
    /// Epochs of its domain.
    pub epochs: u64,
    /// Nanoseconds of its domain's time.
    pub now_ns: u64,
    /// Calls of its components that have succeeded.
    pub calls: u64,
    /// Its ticks.
    pub ticks: u64,
    /// Ticks that took too long.
    pub overruns: u64,
    /// Ticks that were skipped.
    pub skipped: u64,
    /// Messages to its components that were dropped or refused.
    pub drops: u64,
}

/// What the domains of a run have published.
pub(crate) struct Live {
    /// For each domain, the requested parts that it has not published.
    requested: Vec<AtomicU8>,
    /// All parts that were ever requested.
    ever_requested: AtomicU8,
    lanes: Mutex<Vec<LiveLane>>,
    /// For each domain.
    metrics: Mutex<Vec<Metrics>>,
}

const LANES: u8 = 1;
const METRICS: u8 = 2;

impl Live {
    pub(crate) fn new(plan: &Plan, n_domains: usize) -> Self {
        let lane = |id: &str| LiveLane { lane: id.into(), ..LiveLane::default() };
        Self {
            requested: (0..n_domains).map(|_| AtomicU8::new(0)).collect(),
            ever_requested: AtomicU8::new(0),
            lanes: Mutex::new(plan.lanes.iter().map(|one| lane(&one.spec.id)).collect()),
            metrics: Mutex::new(vec![Metrics::default(); n_domains]),
        }
    }

    /// The progress of the lanes, as last published.
    pub(crate) fn lanes(&self) -> Vec<LiveLane> {
        self.request(LANES);
        lock(&self.lanes).clone()
    }

    /// All metrics, as last published.
    pub(crate) fn metrics(&self) -> Metrics {
        self.request(METRICS);
        let mut all = Metrics::default();
        for one in &*lock(&self.metrics) {
            all.add(one);
        }
        all
    }

    fn request(&self, what: u8) {
        for requested in &self.requested {
            // Relaxed: a request that is seen one epoch later is soon enough.
            requested.fetch_or(what, Ordering::Relaxed);
        }
        self.ever_requested.fetch_or(what, Ordering::Relaxed);
    }

    /// Whether a domain has a request.
    #[inline]
    pub(crate) fn is_requested(&self, domain: usize) -> bool {
        // Relaxed: as above.
        self.requested[domain].load(Ordering::Relaxed) != 0
    }

    /// Publishes the progress of a domain.
    #[cold]
    pub(crate) fn publish(&self, domain: &Domain) {
        // Relaxed: as above.
        let requested = self.requested[domain.index].swap(0, Ordering::Relaxed);
        self.publish_parts(domain, requested);
    }

    /// Publishes the final state of a domain: it gets no more requests.
    pub(crate) fn publish_final(&self, domain: &Domain) {
        // Relaxed: a reader whose first request comes after the end has the report.
        self.publish_parts(domain, self.ever_requested.load(Ordering::Relaxed));
    }

    fn publish_parts(&self, domain: &Domain, requested: u8) {
        if requested & LANES != 0 {
            let mut lanes = lock(&self.lanes);
            for clock in &domain.lanes.list {
                let shown = &mut lanes[clock.lane];
                shown.epochs = domain.state.env.epoch;
                shown.now_ns = domain.state.env.now_ns;
                shown.ticks = clock.counts.ticks;
                shown.overruns = clock.counts.overruns;
                shown.skipped = clock.counts.skipped;
                (shown.calls, shown.drops) = (0, 0);
            }
            for region in domain.state.regions.iter().map(RegionCell::lock) {
                let shown = &mut lanes[region.lane];
                shown.calls += region.nodes.iter().map(|node| node.counts.executions).sum::<u64>();
                for counts in region.channels.iter().map(|channel| channel.counters()) {
                    shown.drops += counts.drop_count
                        + counts.overwrite_count
                        + counts.stale_drop_count
                        + counts.reject_count;
                }
                let edges = region.nodes.iter().flat_map(|node| node.outbox.edges());
                shown.drops += edges.map(|edge| edge.n_refused).sum::<u64>();
            }
        }
        if requested & METRICS != 0 {
            let domains = core::slice::from_ref(domain);
            let found = collect::collect(&domain.shared, domains, &LifecycleCounts::default());
            lock(&self.metrics)[domain.index] = found;
        }
    }
}
