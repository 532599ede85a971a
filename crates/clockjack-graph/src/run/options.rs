//! How long a run goes on, by which clock, and what is written down.

use core::time::Duration;

use clockjack_actor::ActorRef;

use super::{
    component_log::ComponentLog,
    observer::{Observer, SharedObserver},
    sinks::{CommitLog, TraceLog},
    tasks::ShutdownPolicy,
};
use crate::{
    bridge::{OnRefused, Subscription},
    component::Snapshot,
    data::Data,
};

/// Which clock the epochs of a run follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Wall-clock lanes follow the clock of the system, each by itself. All others are in simulated
    /// time if the run has a number of epochs or goes on until it is idle, and else follow the
    /// clock of the system too.
    #[default]
    Described,
    /// All lanes are in simulated time: nothing sleeps, and the result depends on nothing but the
    /// graph, its inputs and its seed.
    Virtual,
    /// All lanes follow the clock of the system.
    Wall,
}

/// Whether regions that do not depend on each other are run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// Where lanes allow it and calls are long enough for it to pay.
    #[default]
    Auto,
    /// Where lanes allow it.
    Always,
    /// Never.
    Never,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub(crate) steps: Option<u64>,
    pub(crate) duration: Option<Duration>,
    pub(crate) until_idle: bool,
    pub(crate) clock: Clock,
    pub(crate) workers: Option<usize>,
    pub(crate) parallel: Parallel,
    pub(crate) seed: u64,
    pub(crate) commit_log: Option<CommitLog>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) timing_every: u64,
    pub(crate) tasks_max: usize,
    pub(crate) feed_max: usize,
    pub(crate) shutdown_policy: ShutdownPolicy,
    pub(crate) drain_max: Duration,
    pub(crate) component_log: Option<ComponentLog>,
    pub(crate) observers: Vec<SharedObserver>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) snapshots: bool,
    pub(crate) restore: Vec<(String, Snapshot)>,
    pub(crate) reset: bool,
}

/// Epochs of a run until it is idle that was given no number of them.
const IDLE_STEPS_MAX: u64 = 1000;

/// How long tasks are waited for at the end, unless told otherwise: as an orderly shutdown of a
/// system takes.
const DRAIN_MAX: Duration = Duration::from_secs(10);

impl RunOptions {
    /// So many epochs.
    #[must_use]
    pub fn steps(n: u64) -> Self {
        Self { steps: Some(n), ..Self::until_stopped() }
    }

    /// Until an epoch in which nothing was ready, or after a thousand.
    #[must_use]
    pub fn until_idle() -> Self {
        Self { until_idle: true, steps: Some(IDLE_STEPS_MAX), ..Self::until_stopped() }
    }

    /// So long, in the run's own time.
    #[must_use]
    pub fn run_for(duration: Duration) -> Self {
        Self { duration: Some(duration), ..Self::until_stopped() }
    }

    /// Until somebody [stops](crate::GraphRun::stop) it, or a component ends it.
    #[must_use]
    pub fn until_stopped() -> Self {
        Self {
            steps: None,
            duration: None,
            until_idle: false,
            clock: Clock::Described,
            workers: None,
            parallel: Parallel::Auto,
            seed: 0,
            commit_log: None,
            trace: None,
            timing_every: 64,
            tasks_max: 1024,
            feed_max: 1024,
            shutdown_policy: ShutdownPolicy::Drain,
            drain_max: DRAIN_MAX,
            component_log: None,
            observers: Vec::new(),
            subscriptions: Vec::new(),
            snapshots: false,
            restore: Vec::new(),
            reset: false,
        }
    }

    /// At most so many epochs.
    #[must_use]
    pub fn steps_max(mut self, n: u64) -> Self {
        self.steps = Some(n);
        self
    }

    /// At most so long.
    #[must_use]
    pub fn duration_max(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// By which clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// At most so many at once work on an epoch; by default as many as the system has workers.
    #[must_use]
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = Some(n.max(1));
        self
    }

    /// Whether regions are run at once.
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    /// What components that draw numbers begin with.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Writes down what becomes visible.
    #[must_use]
    pub fn commit_log(mut self, log: &CommitLog) -> Self {
        self.commit_log = Some(log.clone());
        self
    }

    /// Writes down what happens when.
    #[must_use]
    pub fn trace(mut self, log: &TraceLog) -> Self {
        self.trace = Some(log.clone());
        self
    }

    /// Measures calls in one epoch of so many; zero: only those that have a budget.
    #[must_use]
    pub fn timing_every(mut self, epochs: u64) -> Self {
        self.timing_every = epochs;
        self
    }

    /// Futures of components under way at once. Those that several components submit in one epoch
    /// are counted for each by itself, so that who is refused does not depend on threads.
    #[must_use]
    pub fn tasks_max(mut self, n: usize) -> Self {
        self.tasks_max = n;
        self
    }

    /// Values from outside that wait for the next epoch.
    #[must_use]
    pub fn feed_max(mut self, n: usize) -> Self {
        self.feed_max = n;
        self
    }

    /// Where components write what they have to say.
    #[must_use]
    pub fn component_log(mut self, component_log: &ComponentLog) -> Self {
        self.component_log = Some(component_log.clone());
        self
    }

    /// Shows the run to somebody when it has ended. Observers are called in the order in which they
    /// were given.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(SharedObserver::new(observer));
        self
    }

    /// Tells an actor each value that comes to an input of a component at the output boundary, when
    /// that component was called with it and has not failed. A [mapped](ActorRef::map) ref makes
    /// messages of them.
    ///
    /// The component counts what it has told, as `actor.told_count`, and what the actor has not
    /// taken, as `actor.refused_count`.
    #[must_use]
    pub fn subscribe<T: Data + Clone>(
        mut self,
        endpoint: &str,
        to: &ActorRef<T>,
        on_refused: OnRefused,
    ) -> Self {
        self.subscriptions.push(Subscription::new(endpoint, to, on_refused));
        self
    }

    /// What becomes of the tasks that are under way at the end.
    #[must_use]
    pub fn shutdown_policy(mut self, policy: ShutdownPolicy) -> Self {
        self.shutdown_policy = policy;
        self
    }

    /// How long they are waited for, by the clock of the system; then they are cancelled. By
    /// default ten seconds.
    #[must_use]
    pub fn drain_max(mut self, within: Duration) -> Self {
        self.drain_max = within;
        self
    }

    /// Asks the components for their states at the end.
    #[must_use]
    pub fn snapshots(mut self) -> Self {
        self.snapshots = true;
        self
    }

    /// Gives a component a state at the start.
    #[must_use]
    pub fn restore(mut self, component: &str, snapshot: Snapshot) -> Self {
        self.restore.push((component.into(), snapshot));
        self
    }

    /// Resets the components at the start.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.reset = true;
        self
    }
}
