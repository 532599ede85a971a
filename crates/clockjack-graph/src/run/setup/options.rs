//! The options of a run: how long it runs, by which clock, and what it records.

use core::time::Duration;

use clockjack_actor::ActorRef;

use crate::{
    bridge::{OnRefused, Subscription},
    component::Snapshot,
    data::Data,
    run::{
        engine::call_cost::CallCost,
        flow::tasks::ShutdownPolicy,
        observe::{
            component_log::ComponentLog,
            observer::{Observer, SharedObserver},
            sinks::{CommitLog, TraceLog},
        },
    },
    setters::setters,
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
    pub(crate) keeps_call_times: bool,
    pub(crate) call_cost: Option<CallCost>,
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
            keeps_call_times: false,
            call_cost: None,
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

    setters! {
        /// Runs at most `n` epochs.
        steps_max(n: u64): |options| options.steps = Some(n);

        /// Runs at most for this long.
        duration_max(duration: Duration): |options| options.duration = Some(duration);

        /// Sets the clock.
        clock(clock: Clock): |options| options.clock = clock;

        /// Uses at most `n` workers for an epoch; by default as many as the system has.
        workers(n: usize): |options| options.workers = Some(n.max(1));

        /// Sets whether regions run in parallel.
        parallel(parallel: Parallel): |options| options.parallel = parallel;

        /// Sets the seed for components that draw random numbers.
        seed(seed: u64): |options| options.seed = seed;

        /// Writes every value that becomes visible to a commit log.
        commit_log(log: &CommitLog): |options| options.commit_log = Some(log.clone());

        /// Writes trace records.
        trace(log: &TraceLog): |options| options.trace = Some(log.clone());

        /// Measures calls in one of this number of epochs; zero: only calls with a budget.
        timing_every(epochs: u64): |options| options.timing_every = epochs;

        /// Keeps the durations of the newest 1,024 measured calls of each component, for the
        /// metrics `runtime.component.p50_duration_ns` and `runtime.component.p99_duration_ns`.
        #[doc(hidden)]
        keep_call_times(): |options| options.keeps_call_times = true;

        /// Sets how long a call of a component takes in virtual time, where calls take no time
        /// otherwise: for its id and the number of the epoch. Ticks of fixed-rate lanes then
        /// exceed their budget, and are late, as by the wall clock.
        call_cost(model: impl Fn(&str, u64) -> Duration + Send + Sync + 'static): |options|
            options.call_cost = Some(CallCost::new(model));

        /// How many tasks of components may run at the same time. Tasks that several components
        /// submit in one epoch are counted per component, so that refusals do not depend on
        /// threads.
        tasks_max(n: usize): |options| options.tasks_max = n;

        /// How many fed values may wait for the next epoch.
        feed_max(n: usize): |options| options.feed_max = n;

        /// Sets the log for lines that components write.
        component_log(component_log: &ComponentLog): |options|
            options.component_log = Some(component_log.clone());

        /// Adds an observer, which sees the run after it has ended. Observers are called in the
        /// order in which they were added.
        observer(observer: impl Observer): |options|
            options.observers.push(SharedObserver::new(observer));
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

    setters! {
        /// Sets what happens to the running tasks at the end.
        shutdown_policy(policy: ShutdownPolicy): |options| options.shutdown_policy = policy;

        /// How long the run waits for them, by the clock of the system; then it cancels them. By
        /// default ten seconds.
        drain_max(within: Duration): |options| options.drain_max = within;

        /// Takes snapshots of the components at the end.
        snapshots(): |options| options.snapshots = true;

        /// Restores a snapshot of a component at the start.
        restore(component: &str, snapshot: Snapshot): |options|
            options.restore.push((component.into(), snapshot));

        /// Resets the components at the start.
        reset(): |options| options.reset = true;
    }
}
