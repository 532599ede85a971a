//! The metrics of a runtime: system, executors, workers, scheduler, blocking work, the worst
//! actors, and what the program adds.
//!
//! Everything is read on request: no counter exists for this module, and a runtime whose metrics
//! nobody reads pays nothing. One reading costs some words per worker and per actor, for a bounded
//! number of actors.

mod actors;
mod sampler;
mod sources;

use core::{fmt, time::Duration};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use clockjack_actor::{ActorSystem, system::UncountedSystem};
use clockjack_exec::Handle;
use clockjack_observe::{
    prometheus::ExportError,
    samples::{Sample, SampleSet},
};
use clockjack_sched::Scheduler;

use self::{actors::WorstActors, sampler::Sampler};
use super::{FlightRecording, Runtime, TraceSource};
use crate::{BlockingPool, BlockingStats, dispatchers::Dispatchers};

/// The metrics of a [`Runtime`]: a handle that can be cloned and sent to the task that serves them.
/// It does not keep the runtime running. Of a runtime that was shut down it returns the last
/// values, except those of dispatchers, whose pools are gone.
///
/// # Metrics
///
/// | names | labels | about |
/// |---|---|---|
/// | `clockjack_actors_*`, `clockjack_events_dropped_total` | | the actor system |
/// | `clockjack_messages_refused_total` | `reason` | messages that senders got back |
/// | `clockjack_dead_letters_total` | `reason` | messages that are not handled |
/// | `clockjack_actor_*` | `path` | the worst actors: see below |
/// | `clockjack_executor_*` | `pool` | the executor of each pool |
/// | `clockjack_worker_*` | `pool`, `worker` | each worker |
/// | `clockjack_blocking_*` | | the threads for blocking work |
/// | `clockjack_scheduler_*` | | the scheduler: jobs, runs, lateness, drift |
///
/// The worst actors are the ten with the most messages in their mailboxes, and the ten with the
/// most messages handled, messages refused, restarts and time in handlers, each since the last
/// reading; so a reading has at most fifty of them. Of at most 20,000 actors the figures are read;
/// `clockjack_actors_sampled` says of how many. The time in handlers is an estimate: while metrics
/// are read at least once per minute, a thread looks a hundred times per second which task each
/// worker of a pool is polling.
///
/// # Examples
///
/// ```
/// use clockjack_rt::Runtime;
///
/// let rt = Runtime::new("shop")?;
/// let metrics = rt.metrics(); // for the task that answers `GET /metrics`
/// let text = metrics.prometheus()?;
/// assert!(text.contains("# TYPE clockjack_actors_live gauge"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RuntimeMetrics(Arc<Inner>);

struct Inner {
    system: UncountedSystem,
    pool: TraceSource,
    scheduler: Scheduler,
    blocking: Arc<BlockingPool>,
    dispatchers: Weak<Dispatchers>,
    added: Mutex<Vec<Arc<Source>>>,
    sampler: Arc<Sampler>,
    worst: Mutex<WorstActors>,
}

type Source = dyn Fn(&mut SampleSet) + Send + Sync;

impl Runtime {
    /// A handle to the metrics of this runtime. All handles are to the same metrics.
    #[must_use]
    pub fn metrics(&self) -> RuntimeMetrics {
        self.metrics.clone()
    }

    /// All metrics of this runtime in Prometheus' text format; see [`RuntimeMetrics`].
    ///
    /// # Errors
    ///
    /// As [`RuntimeMetrics::prometheus`].
    pub fn prometheus(&self) -> Result<String, ExportError> {
        self.metrics.prometheus()
    }
}

impl RuntimeMetrics {
    pub(super) fn new(
        system: &ActorSystem,
        pool: &crate::WorkerPool,
        dispatchers: &Arc<Dispatchers>,
    ) -> Self {
        Self(Arc::new(Inner {
            system: system.uncounted(),
            pool: pool.trace_source(),
            scheduler: pool.scheduler().clone(),
            blocking: pool.blocking_pool(),
            dispatchers: Arc::downgrade(dispatchers),
            added: Mutex::new(Vec::new()),
            sampler: Arc::new(Sampler::default()),
            worst: Mutex::new(WorstActors::default()),
        }))
    }

    /// Adds metrics of the program: each reading calls `source`, on the thread that reads. The
    /// metrics of a dataflow graph are added in this way; see `Metrics::add_to` of
    /// `clockjack-graph`.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_rt::{Runtime, actor::observe::samples::Sample};
    ///
    /// let rt = Runtime::new("shop")?;
    /// rt.metrics().add_source(|set| {
    ///     set.push(&Sample::gauge("shop.orders_open", 3).help("Orders that are not paid."));
    /// });
    /// assert!(rt.prometheus()?.contains("\nclockjack_shop_orders_open 3\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_source(&self, source: impl Fn(&mut SampleSet) + Send + Sync + 'static) {
        lock(&self.0.added).push(Arc::new(source));
    }

    /// Reads all metrics.
    #[must_use]
    pub fn samples(&self) -> SampleSet {
        let mut set = SampleSet::new();
        let inner = &self.0;
        sources::system(&mut set, &inner.system.metrics());
        let pools = inner.pools();
        inner.sampler.keep_running(&pools);
        lock(&inner.worst).add_to(&mut set, &inner.system, &inner.sampler);
        for (name, pool) in named(&pools) {
            sources::executor(&mut set, &name, &pool.executor);
        }
        sources::blocking(&mut set, &inner.blocking.stats());
        sources::scheduler(&mut set, &inner.scheduler.metrics());
        // A source is code of the program, so it runs without the lock.
        let added = lock(&inner.added).clone();
        for source in added {
            source(&mut set);
        }
        set
    }

    /// The executors of the pool, of all dispatchers and of all pinned threads that exist, each
    /// with a name that is unique.
    #[doc(hidden)]
    #[must_use]
    pub fn executors(&self) -> Vec<(String, Handle)> {
        let pools = self.0.pools();
        let mut all: Vec<(String, Handle)> = Vec::new();
        for (name, pool) in named(&pools) {
            all.push((name, Handle::new(pool.executor.clone())));
        }
        if let Some(dispatchers) = self.0.dispatchers.upgrade() {
            let pinned = dispatchers.handles().into_iter().skip(pools.len() - 1);
            all.extend(pinned.enumerate().map(|(n, one)| (format!("pinned-{n}"), one)));
        }
        all
    }

    /// As [`Runtime::set_tracing`].
    #[doc(hidden)]
    pub fn set_tracing(&self, is_on: bool) {
        for pool in self.0.pools() {
            pool.executor.set_tracing(is_on);
        }
        self.0.scheduler.set_tracing(is_on);
    }

    /// Whether the pool of the runtime is traced.
    #[doc(hidden)]
    #[must_use]
    pub fn is_tracing(&self) -> bool {
        self.0.pool.executor.is_tracing()
    }

    /// As [`Runtime::flight_recording`].
    #[doc(hidden)]
    #[must_use]
    pub fn flight_recording(&self, last: Duration) -> FlightRecording {
        FlightRecording::of(&self.0.pools(), &self.0.system, last)
    }

    /// The threads for blocking work, and how many there may be.
    #[doc(hidden)]
    #[must_use]
    pub fn blocking(&self) -> (BlockingStats, usize) {
        (self.0.blocking.stats(), self.0.blocking.threads_max())
    }

    /// Reads all metrics and returns them in Prometheus' text format.
    ///
    /// # Errors
    ///
    /// If an added source has a metric with an invalid name, or one that occurs twice.
    pub fn prometheus(&self) -> Result<String, ExportError> {
        self.samples().prometheus()
    }
}

impl Inner {
    /// The pool of the runtime, and those of its dispatchers.
    fn pools(&self) -> Vec<TraceSource> {
        let mut pools = vec![self.pool.clone()];
        if let Some(dispatchers) = self.dispatchers.upgrade() {
            pools.extend(dispatchers.trace_sources());
        }
        pools
    }
}

/// The pools with names that are unique: the second of two equal names gets a number.
fn named(pools: &[TraceSource]) -> Vec<(String, &TraceSource)> {
    let mut named: Vec<(String, &TraceSource)> = Vec::new();
    for pool in pools {
        let is_taken = |name: &str| named.iter().any(|(other, _)| other == name);
        let mut name = pool.name.clone();
        let mut n = 1;
        while is_taken(&name) {
            n += 1;
            name = format!("{}-{n}", pool.name);
        }
        named.push((name, pool));
    }
    named
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks leaves the state inconsistent when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number as the value of a gauge.
fn level(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn counter(set: &mut SampleSet, name: &str, help: &str, labels: &[(&str, &str)], n: u64) {
    set.push(&Sample::counter(name, n).help(help).labels(labels));
}

fn gauge(set: &mut SampleSet, name: &str, help: &str, labels: &[(&str, &str)], n: usize) {
    set.push(&Sample::gauge(name, level(n)).help(help).labels(labels));
}

impl fmt::Debug for RuntimeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeMetrics").field("system", &self.0.system).finish_non_exhaustive()
    }
}
