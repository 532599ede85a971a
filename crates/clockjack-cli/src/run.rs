//! Runs a graph for the commands `run`, `trace`, `observe` and `bench`: starts a runtime with
//! worker threads, starts one run on it, and calls an observer at intervals. The only influence on
//! the run is Ctrl-C, which stops it after the work in progress.

pub(crate) mod assertions;
pub(crate) mod bench;
pub(crate) mod events;
pub(crate) mod host;
pub(crate) mod observe;
pub(crate) mod summary;

use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{sync::Arc, task::Wake, thread::Thread, time::Instant};

use clockjack_graph::{
    Clock, CommitLog, Graph, GraphRun, RunOptions, Stopper,
    compile::Plan,
    run::{ComponentLog, RunError, RunReport, TraceLog},
};
use clockjack_observe::timeline::Timeline;
use clockjack_rt::{FlightRecording, Runtime, RuntimeConfig, actor::ActorSystem};

use crate::{failure::Failure, interrupt::Interrupt};

/// The default interval between two calls of the observer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The number of epochs of a run in virtual time without a bound.
pub(crate) const STEPS_DEFAULT: u64 = 1000;
/// How long the worker threads may take to shut down after the run.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunSettings {
    pub(crate) steps: Option<u64>,
    pub(crate) length: Option<Duration>,
    pub(crate) until_idle: bool,
    pub(crate) clock: Clock,
    pub(crate) workers: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) commit_log: Option<CommitLog>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) journal: Option<ComponentLog>,
}

impl RunSettings {
    /// A run of `n` epochs in virtual time.
    pub(crate) const fn steps(n: u64) -> Self {
        Self {
            steps: Some(n),
            length: None,
            until_idle: false,
            clock: Clock::Virtual,
            workers: None,
            seed: 0,
            commit_log: None,
            trace: None,
            journal: None,
        }
    }

    fn options(&self) -> RunOptions {
        let mut options = match (self.until_idle, self.steps, self.length) {
            (true, ..) => RunOptions::until_idle(),
            (false, Some(steps), _) => RunOptions::steps(steps),
            (false, None, Some(length)) => RunOptions::run_for(length),
            (false, None, None) if self.clock == Clock::Wall => RunOptions::until_stopped(),
            (false, None, None) => RunOptions::steps(STEPS_DEFAULT),
        };
        if let Some(steps) = self.steps {
            options = options.steps_max(steps);
        }
        if let Some(length) = self.length {
            options = options.duration_max(length);
        }
        options = options.clock(self.clock).seed(self.seed);
        if let Some(workers) = self.workers {
            options = options.workers(workers);
        }
        if let Some(log) = &self.commit_log {
            options = options.commit_log(log);
        }
        if let Some(log) = &self.trace {
            options = options.trace(log);
        }
        if let Some(journal) = &self.journal {
            options = options.component_log(journal);
        }
        options
    }
}

/// A completed run.
#[derive(Debug)]
pub(crate) struct RunResult {
    /// What the run did; `None` if the run did not start.
    pub(crate) report: Option<RunReport>,
    /// Why the run failed, if it failed.
    pub(crate) error: Option<String>,
    /// Whether Ctrl-C stopped the run.
    pub(crate) was_interrupted: bool,
    /// The wall time of the run, including setup.
    pub(crate) wall: Duration,
    /// The metrics of the runtime.
    pub(crate) host: Vec<host::RuntimeMetric>,
    /// What the workers did, if the run was traced by the wall clock.
    pub(crate) workers: Option<WorkerTrace>,
}

/// What the workers of the runtime did during a run.
#[derive(Debug)]
pub(crate) struct WorkerTrace {
    recording: FlightRecording,
    /// When the run began, in nanoseconds since the start of the runtime.
    began_ns: u64,
}

impl WorkerTrace {
    /// The number of events that are kept for each worker: 6 MiB.
    const RECORDS: usize = 1 << 18;

    /// Adds one track per worker to the timeline of the graph.
    pub(crate) fn add_to(&self, timeline: &mut Timeline) {
        self.recording.add_to(timeline, self.began_ns);
    }
}

/// Runs a graph until it stops. `observer` is called at intervals during the run, and once after
/// it.
pub(crate) fn run(
    graph: Graph,
    settings: &RunSettings,
    interrupt: &Interrupt,
    observer: impl FnMut(&Stopper),
) -> Result<RunResult, Failure> {
    run_with_interval(graph, settings, interrupt, POLL_INTERVAL, observer)
}

/// Like [`run`], with the interval between two calls of `observer`.
pub(crate) fn run_with_interval(
    graph: Graph,
    settings: &RunSettings,
    interrupt: &Interrupt,
    interval: Duration,
    mut observer: impl FnMut(&Stopper),
) -> Result<RunResult, Failure> {
    // A run in virtual time is reproducible, and so is its trace; what the workers do is not.
    let traces_workers = settings.trace.is_some() && settings.clock == Clock::Wall;
    let mut config = RuntimeConfig { workers: settings.workers, ..RuntimeConfig::DEFAULT };
    if traces_workers {
        config.flight_records = WorkerTrace::RECORDS;
    }
    let system = ActorSystem::builder("clockjack");
    let runtime = Runtime::start_with(system, config)
        .map_err(|error| Failure::no_runtime(error.to_string()))?;
    runtime.set_tracing(traces_workers);
    let (began, began_ns) = (Instant::now(), runtime.pool().handle().nanos());
    let (outcome, was_interrupted) = match graph.start(runtime.system(), settings.options()) {
        Ok(run) => wait(run, interrupt, interval, &mut observer),
        Err(error) => (Err(error), false),
    };
    let wall = began.elapsed();
    let host = host::counts(&runtime);
    let workers = traces_workers.then(|| {
        let recording = runtime.flight_recording(Duration::MAX);
        WorkerTrace { recording, began_ns }
    });
    drop(runtime.shutdown(SHUTDOWN_DEADLINE));
    let (report, error) = match outcome {
        Ok(report) => (Some(report), None),
        Err(error) => {
            let mut report = error.report().cloned();
            // The fault that stopped the run belongs to the faults of the report.
            if let (Some(report), Some(fault)) = (&mut report, error.fault())
                && !report.faults.contains(fault)
            {
                report.faults.push(fault.clone());
            }
            (report, Some(error.to_string()))
        }
    };
    Ok(RunResult { report, error, was_interrupted, wall, host, workers })
}

/// Tries the thread settings of each lane on this machine. Nothing is run.
pub(crate) fn probe_lane_settings(plan: &mut Plan) -> Result<(), Failure> {
    let config = RuntimeConfig { workers: Some(1), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("clockjack"), config)
        .map_err(|error| Failure::no_runtime(error.to_string()))?;
    plan.try_on(runtime.system());
    drop(runtime.shutdown(SHUTDOWN_DEADLINE));
    Ok(())
}

/// Waits on this thread until the run stops, and calls `observer` at intervals.
fn wait(
    run: GraphRun,
    interrupt: &Interrupt,
    interval: Duration,
    observer: &mut dyn FnMut(&Stopper),
) -> (Result<RunReport, RunError>, bool) {
    let stopper = run.stopper();
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let is_woken = &unpark.1;
    let mut cx = Context::from_waker(&waker);
    let mut run = pin!(run);
    let mut was_interrupted = false;
    loop {
        if let Poll::Ready(outcome) = run.as_mut().poll(&mut cx) {
            observer(&stopper);
            return (outcome, was_interrupted);
        }
        // Ctrl-C must not wait for a long frame, so the thread parks for at most `POLL_INTERVAL`.
        let polled_at = Instant::now();
        while !is_woken.swap(false, Ordering::Acquire) && polled_at.elapsed() < interval {
            std::thread::park_timeout(
                interval.saturating_sub(polled_at.elapsed()).min(POLL_INTERVAL),
            );
            if interrupt.is_requested() {
                break;
            }
        }
        if interrupt.is_requested() && !was_interrupted {
            was_interrupted = true;
            stopper.stop();
        }
        observer(&stopper);
    }
}

/// Unparks a thread and records the wake-up, so that the thread can tell it from a spurious one.
struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        // Pairs with the swap (Acquire) in `wait`: the waiting thread polls the run after it sees
        // `true`.
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}
