//! The options of a run: how long it runs, by which clock, and what it records.

use core::time::Duration;

use clockjack_actor::ActorRef;

use crate::{
    bridge::{OnRefused, Subscription},
    component::Snapshot,
    data::Data,
    run::{
        flow::tasks::ShutdownPolicy,
        observe::{
            component_log::ComponentLog,
            observer::{Observer, SharedObserver},
            sinks::{CommitLog, TraceLog},
        },
    },
};

/// Which clock the epochs of a run follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Wall-clock lanes follow the clock of the system, each on its own. All other lanes run in
    /// simulated time if the run has a number of epochs or runs until it is idle; otherwise they
    /// follow the clock of the system, too.
    #[default]
    Described,
    /// All lanes run in simulated time: nothing sleeps, and the result depends only on the graph,
    /// its inputs and its seed.
    Virtual,
    /// All lanes follow the clock of the system.
    Wall,
}

/// Whether independent regions run in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// Where lanes allow it, and calls are long enough to be worth it.
    #[default]
    Auto,
    /// Where lanes allow it.
    Always,
    /// Never.
    Never,
}

/// The options of a run.
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

/// The largest number of epochs of a run until it is idle, by default.
const IDLE_STEPS_MAX: u64 = 1000;

/// How long a run waits for its tasks at the end, by default: as an orderly shutdown of a system
/// does.
const DRAIN_MAX: Duration = Duration::from_secs(10);

impl RunOptions {
    /// Runs `n` epochs.
    #[must_use]
    pub fn steps(n: u64) -> Self {
        Self { steps: Some(n), ..Self::until_stopped() }
    }

    /// Runs until an epoch in which nothing was ready, or for at most a thousand epochs.
    #[must_use]
    pub fn until_idle() -> Self {
        Self { until_idle: true, steps: Some(IDLE_STEPS_MAX), ..Self::until_stopped() }
    }

    /// Runs for this long, in the run's time.
    #[must_use]
    pub fn run_for(duration: Duration) -> Self {
        Self { duration: Some(duration), ..Self::until_stopped() }
    }

    /// Runs until it is [stopped](crate::GraphRun::stop), or fails.
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

    /// Runs at most `n` epochs.
    #[must_use]
    pub fn steps_max(mut self, n: u64) -> Self {
        self.steps = Some(n);
        self
    }

    /// Runs at most for this long.
    #[must_use]
    pub fn duration_max(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Uses at most `n` workers for an epoch; by default as many as the system has.
    #[must_use]
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = Some(n.max(1));
        self
    }

    /// Sets whether regions run in parallel.
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    /// Sets the seed for components that draw random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Writes every value that becomes visible to a commit log.
    #[must_use]
    pub fn commit_log(mut self, log: &CommitLog) -> Self {
        self.commit_log = Some(log.clone());
        self
    }

    /// Writes trace records.
    #[must_use]
    pub fn trace(mut self, log: &TraceLog) -> Self {
        self.trace = Some(log.clone());
        self
    }

    /// Measures calls in one of this number of epochs; zero: only calls with a budget.
    #[must_use]
    pub fn timing_every(mut self, epochs: u64) -> Self {
        self.timing_every = epochs;
        self
    }

    /// How many tasks of components may run at the same time. Tasks that several components submit
    /// in one epoch are counted per component, so that refusals do not depend on threads.
    #[must_use]
    pub fn tasks_max(mut self, n: usize) -> Self {
        self.tasks_max = n;
        self
    }

    /// How many fed values may wait for the next epoch.
    #[must_use]
    pub fn feed_max(mut self, n: usize) -> Self {
        self.feed_max = n;
        self
    }

    /// Sets the log for lines that components write.
    #[must_use]
    pub fn component_log(mut self, component_log: &ComponentLog) -> Self {
        self.component_log = Some(component_log.clone());
        self
    }

    /// Adds an observer, which sees the run after it has ended. Observers are called in the order
    /// in which they were added.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(SharedObserver::new(observer));
        self
    }

    /// Sends an actor each value that comes to an input of a component at the output boundary,
    /// after a successful call of the component with it. A [mapped](ActorRef::map) reference
    /// converts the values to messages.
    ///
    /// The component counts the values that it sent as `actor.told_count`, and those that the actor
    /// refused as `actor.refused_count`.
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

    /// Sets what happens to the running tasks at the end.
    #[must_use]
    pub fn shutdown_policy(mut self, policy: ShutdownPolicy) -> Self {
        self.shutdown_policy = policy;
        self
    }

    /// How long the run waits for them, by the clock of the system; then it cancels them. By
    /// default ten seconds.
    #[must_use]
    pub fn drain_max(mut self, within: Duration) -> Self {
        self.drain_max = within;
        self
    }

    /// Takes snapshots of the components at the end.
    #[must_use]
    pub fn snapshots(mut self) -> Self {
        self.snapshots = true;
        self
    }

    /// Restores a snapshot of a component at the start.
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
