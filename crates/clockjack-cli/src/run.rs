//! Runs a graph for the commands `run`, `trace`, `observe` and `bench`: starts a runtime with
//! worker threads, starts one run on it, and calls an observer at intervals. The only influence on
//! the run is a signal: the first one stops the run after the work in progress, the second one and
//! the drain time-out end the wait for that. Clients of its console may have more influence, if the
//! user says so.

pub(crate) mod assertions;
pub(crate) mod bench;
pub(crate) mod events;
mod known_losses;
pub(crate) mod observe;
pub(crate) mod overview;
pub(crate) mod summary;

use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{sync::Arc, task::Wake, thread::Thread, time::Instant};

use clap::ValueEnum;
use clockjack_graph::{
    Clock, CommitLog, Graph, GraphRun, Parallel, RunOptions, Stopper,
    compile::Plan,
    run::{ComponentLog, Metrics, OverdueCall, RunError, RunReport, TraceLog},
};
use clockjack_observe::{samples::SampleSet, timeline::Timeline};
use clockjack_rt::{
    FailureLog, FlightRecording, Runtime, RuntimeConfig, actor::ActorSystem, signals::StopSignal,
};

use crate::{console::RunConsole, failure::Failure, interrupt::Interrupt};

/// The default interval between two calls of the observer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a run may take to stop after the first signal, unless the user says otherwise.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a run may take to end after the second signal, or after the drain time-out.
const LAST_CHANCE: Duration = Duration::from_millis(200);
/// The number of epochs of a run in virtual time without a bound.
pub(crate) const STEPS_DEFAULT: u64 = 1000;
/// How long the worker threads may take to shut down after a run that was abandoned.
const ABANDON_DEADLINE: Duration = Duration::from_millis(100);
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
    pub(crate) parallel: Parallel,
    pub(crate) seed: u64,
    pub(crate) commit_log: Option<CommitLog>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) journal: Option<ComponentLog>,
    /// Which calls are measured, for their distribution; `None`: few of them, without it.
    pub(crate) call_times: Option<CallTimes>,
    /// How long the run may take to stop after the first signal.
    pub(crate) drain_timeout: Duration,
    /// What clients of its console may do; `None`: it has none.
    pub(crate) console: Option<Allowed>,
}

/// Which calls are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTimes {
    /// As many as without the distribution.
    Few,
    /// Those of one epoch in seven, a prime: components that are called in every second, fourth or
    /// tenth epoch are measured, too.
    Many,
}

/// What clients of the console of a run may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
    /// Look, watch actors, trace for a while.
    Inspect,
    /// Also change settings of the graph: `clockjack set`.
    Graphs,
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
            parallel: Parallel::Auto,
            seed: 0,
            commit_log: None,
            trace: None,
            journal: None,
            call_times: None,
            drain_timeout: DRAIN_TIMEOUT,
            console: None,
        }
    }

    fn options(&self) -> RunOptions {
        let mut options = match (self.until_idle, self.steps, self.length) {
            (true, ..) => RunOptions::until_idle(),
            (false, Some(steps), _) => RunOptions::steps(steps),
            (false, None, Some(length)) => RunOptions::run_for(length),
            (false, None, None) if self.clock == Clock::Virtual => RunOptions::steps(STEPS_DEFAULT),
            (false, None, None) => RunOptions::until_stopped(),
        };
        if let Some(steps) = self.steps {
            options = options.steps_max(steps);
        }
        if let Some(length) = self.length {
            options = options.duration_max(length);
        }
        options = options.clock(self.clock).parallel(self.parallel).seed(self.seed);
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
        options = match self.call_times {
            None => options,
            Some(CallTimes::Few) => options.keep_call_times(),
            Some(CallTimes::Many) => options.keep_call_times().timing_every(7),
        };
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
    /// Whether a signal, or a reader that has closed the pipe, stopped the run.
    pub(crate) was_interrupted: bool,
    /// The signal that stopped the run.
    pub(crate) signal: Option<StopSignal>,
    /// The last metrics of a run that did not stop before the second signal. It has no report.
    pub(crate) abandoned: Option<Metrics>,
    /// The wall time of the run, including setup.
    pub(crate) wall: Duration,
    /// The metrics of the runtime.
    pub(crate) host: SampleSet,
    /// What the workers did, if the run was traced by the wall clock.
    pub(crate) workers: Option<WorkerTrace>,
}

impl RunResult {
    /// The metrics at the end of the run, or the last ones of a run that was abandoned.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.report.as_ref().map(|report| &report.metrics).or(self.abandoned.as_ref())
    }
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

/// What an observer is called for.
#[derive(Debug)]
pub(crate) enum Moment<'a> {
    /// An interval has passed, or the run has stopped.
    Frame(&'a Stopper),
    /// There is something to tell the user.
    Note(&'a str),
}

/// Runs a graph until it stops. `observer` is called at intervals during the run, once after it,
/// and for notes.
pub(crate) fn run(
    graph: Graph,
    settings: &RunSettings,
    interrupt: &Interrupt,
    observer: impl FnMut(Moment<'_>),
) -> Result<RunResult, Failure> {
    run_with_interval(graph, settings, interrupt, POLL_INTERVAL, observer)
}

/// Like [`run`], with the interval between two calls of `observer`.
pub(crate) fn run_with_interval(
    graph: Graph,
    settings: &RunSettings,
    interrupt: &Interrupt,
    interval: Duration,
    mut observer: impl FnMut(Moment<'_>),
) -> Result<RunResult, Failure> {
    // A run in virtual time is reproducible, and so is its trace; what the workers do is not.
    let traces_workers = settings.trace.is_some() && settings.clock != Clock::Virtual;
    let mut config = RuntimeConfig {
        workers: settings.workers,
        // The summary reports what has failed.
        failure_log: FailureLog::Off,
        ..RuntimeConfig::DEFAULT
    };
    if traces_workers {
        config.flight_records = WorkerTrace::RECORDS;
    }
    let system = ActorSystem::builder("clockjack");
    let runtime = Runtime::start_with(system, config).map_err(Failure::no_runtime)?;
    runtime.set_tracing(traces_workers);
    let (began, began_ns) = (Instant::now(), runtime.pool().handle().nanos());
    let console =
        settings.console.map(|allowed| RunConsole::open(&runtime, allowed)).transpose()?;
    let (end, was_interrupted) = match graph.start(runtime.system(), settings.options()) {
        Ok(run) => {
            if let Some(console) = &console {
                let name = run.plan().name.clone();
                observer(Moment::Note(&console.show(&name, &run)));
            }
            wait(run, interrupt, (interval, settings.drain_timeout), &mut observer)
        }
        Err(error) => (RunEnd::Stopped(Box::new(Err(error))), false),
    };
    if let Some(console) = console {
        console.close();
    }
    let signal = interrupt.signal().filter(|_| was_interrupted);
    let wall = began.elapsed();
    let host = runtime.metrics().samples();
    let workers = traces_workers.then(|| {
        let recording = runtime.flight_recording(Duration::MAX);
        WorkerTrace { recording, began_ns }
    });
    let is_abandoned = matches!(end, RunEnd::Abandoned(..));
    drop(runtime.shutdown(if is_abandoned { ABANDON_DEADLINE } else { SHUTDOWN_DEADLINE }));
    let mut abandoned = None;
    let (report, error) = match end {
        RunEnd::Abandoned(metrics, overdue) => {
            abandoned = Some(metrics);
            (None, overdue.first().map(ToString::to_string))
        }
        RunEnd::Stopped(outcome) => match *outcome {
            Ok(report) => (Some(report), None),
            Err(error) => (report_of(&error), Some(error.to_string())),
        },
    };
    Ok(RunResult { report, error, was_interrupted, signal, abandoned, wall, host, workers })
}

/// The report of a failed run. The fault that stopped the run belongs to the faults of the report.
fn report_of(error: &RunError) -> Option<RunReport> {
    let mut report = error.report().cloned()?;
    if let Some(fault) = error.fault()
        && !report.faults.contains(fault)
    {
        report.faults.push(fault.clone());
    }
    Some(report)
}

/// Tries the thread settings of each lane on this machine. Nothing is run.
pub(crate) fn probe_lane_settings(plan: &mut Plan) -> Result<(), Failure> {
    let config = RuntimeConfig { workers: Some(1), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("clockjack"), config)
        .map_err(Failure::no_runtime)?;
    plan.try_on(runtime.system());
    drop(runtime.shutdown(SHUTDOWN_DEADLINE));
    Ok(())
}

/// How a run ends.
enum RunEnd {
    Stopped(Box<Result<RunReport, RunError>>),
    /// It did not stop before the second signal or the drain time-out; with the calls that do not
    /// return.
    Abandoned(Metrics, Vec<OverdueCall>),
}

/// Waits on this thread until the run stops, and calls `observer` at intervals. The first signal
/// stops the run, the second one or the drain time-out soon ends the wait.
fn wait(
    run: GraphRun,
    interrupt: &Interrupt,
    (interval, drain_timeout): (Duration, Duration),
    observer: &mut dyn FnMut(Moment<'_>),
) -> (RunEnd, bool) {
    let stopper = run.stopper();
    let mut last_metrics = LastMetrics::new(&stopper);
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let is_woken = &unpark.1;
    let mut cx = Context::from_waker(&waker);
    let mut run = pin!(run);
    let (mut interrupted_at, mut urgent_at, mut overdue) = (None::<Instant>, None, Vec::new());
    loop {
        if let Poll::Ready(outcome) = run.as_mut().poll(&mut cx) {
            observer(Moment::Frame(&stopper));
            return (RunEnd::Stopped(Box::new(outcome)), interrupted_at.is_some());
        }
        let is_late = interrupted_at.is_some_and(|at| at.elapsed() >= drain_timeout);
        if interrupt.is_urgent() || is_late {
            // Both signals may have arrived since the last look, and a terminal and a supervisor
            // may each have sent one: a run that can end at once is not abandoned.
            stopper.stop();
            if urgent_at.get_or_insert_with(Instant::now).elapsed() >= LAST_CHANCE {
                return (RunEnd::Abandoned(stopper.metrics(), stopper.overdue_calls()), true);
            }
        }
        // A signal must not wait for a long frame, so the thread parks for at most `POLL_INTERVAL`.
        let polled_at = Instant::now();
        while !is_woken.swap(false, Ordering::Acquire) && polled_at.elapsed() < interval {
            std::thread::park_timeout(
                interval.saturating_sub(polled_at.elapsed()).min(POLL_INTERVAL),
            );
            last_metrics.refresh(&stopper);
            if interrupt.is_requested() {
                break;
            }
        }
        if interrupt.is_requested() && interrupted_at.is_none() {
            interrupted_at = Some(Instant::now());
            stopper.stop();
            if let Some(signal) = interrupt.signal() {
                observer(Moment::Note(&drain_note(signal, drain_timeout)));
            }
        }
        overdue = note_overdue(&stopper, &overdue, observer);
        observer(Moment::Frame(&stopper));
    }
}

/// Tells the user of the calls that do not return, each once; returns the components.
fn note_overdue(
    stopper: &Stopper,
    known: &[String],
    observer: &mut dyn FnMut(Moment<'_>),
) -> Vec<String> {
    let calls = stopper.overdue_calls().into_iter();
    let note = |call: OverdueCall| {
        if !known.contains(&call.component) {
            observer(Moment::Note(&format!("clockjack: {call}")));
        }
        call.component
    };
    calls.map(note).collect()
}

/// What a signal starts.
fn drain_note(signal: StopSignal, drain_timeout: Duration) -> String {
    format!(
        "clockjack: {signal}: waiting up to {drain_timeout:?} for the callbacks in progress, then \
         every component is deactivated; a second signal writes the files without waiting"
    )
}

/// Requests metrics of a run now and then: a run that hangs publishes no more of them.
struct LastMetrics(Instant);

impl LastMetrics {
    const INTERVAL: Duration = Duration::from_secs(1);

    fn new(stopper: &Stopper) -> Self {
        drop(stopper.metrics());
        Self(Instant::now())
    }

    fn refresh(&mut self, stopper: &Stopper) {
        if self.0.elapsed() >= Self::INTERVAL {
            *self = Self::new(stopper);
        }
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
