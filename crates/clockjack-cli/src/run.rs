//! Running a graph for the commands `run`, `trace`, `observe` and `bench`: a runtime with workers,
//! one run on it, and somebody who looks at it now and again. What a run did is in its report;
//! nothing here changes it, except that Ctrl-C lets it drain.

pub(crate) mod assertions;
pub(crate) mod bench;
pub(crate) mod events;
pub(crate) mod host;
pub(crate) mod observe;
pub(crate) mod summary;

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::thread::Thread;
use std::time::Instant;

use clockjack_graph::compile::Plan;
use clockjack_graph::run::{Journal, RunError, RunReport, TraceLog};
use clockjack_graph::{Clock, CommitLog, Graph, GraphRun, RunOptions, Stopper};
use clockjack_rt::{PoolConfig, Runtime, actor::ActorSystem};

use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How often somebody looks at a run that goes on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Epochs of a run in simulated time that was given no bound.
pub(crate) const STEPS_DEFAULT: u64 = 1000;
/// How long workers have to end after the run has.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);

/// How a run is to go.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) steps: Option<u64>,
    pub(crate) length: Option<Duration>,
    pub(crate) until_idle: bool,
    pub(crate) clock: Clock,
    pub(crate) workers: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) commit_log: Option<CommitLog>,
    pub(crate) trace: Option<TraceLog>,
    pub(crate) journal: Option<Journal>,
}

impl Wanted {
    /// In simulated time, so many epochs.
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
            options = options.journal(journal);
        }
        options
    }
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What it did; nothing if it did not begin.
    pub(crate) report: Option<RunReport>,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
    /// Whether Ctrl-C has ended it.
    pub(crate) was_interrupted: bool,
    /// How long it took by the clock on the wall, set-up included.
    pub(crate) wall: Duration,
    /// What the runtime below it has counted.
    pub(crate) host: Vec<host::HostCount>,
}

/// Runs a graph to its end. `look` is called now and again while it runs, and once after.
pub(crate) fn run(
    graph: Graph,
    wanted: &Wanted,
    interrupt: &Interrupt,
    look: impl FnMut(&Stopper),
) -> Result<Ran, Failure> {
    run_looking(graph, wanted, interrupt, LOOK_EVERY, look)
}

/// The same, with how often `look` is called.
pub(crate) fn run_looking(
    graph: Graph,
    wanted: &Wanted,
    interrupt: &Interrupt,
    every: Duration,
    mut look: impl FnMut(&Stopper),
) -> Result<Ran, Failure> {
    let config = PoolConfig { workers: wanted.workers, ..PoolConfig::DEFAULT };
    let system = ActorSystem::builder("clockjack");
    let runtime = Runtime::start_with(system, config)
        .map_err(|error| Failure::no_runtime(error.to_string()))?;
    let began = Instant::now();
    let (ended, was_interrupted) = match graph.start(runtime.system(), wanted.options()) {
        Ok(run) => wait(run, interrupt, every, &mut look),
        Err(error) => (Err(error), false),
    };
    let wall = began.elapsed();
    let host = host::counts(&runtime);
    drop(runtime.shutdown(SHUTDOWN_DEADLINE));
    let (report, error) = match ended {
        Ok(report) => (Some(report), None),
        Err(error) => {
            let mut report = error.report().cloned();
            // What ended the run belongs to what went wrong in it.
            if let (Some(report), Some(fault)) = (&mut report, error.fault())
                && !report.faults.contains(fault)
            {
                report.faults.push(fault.clone());
            }
            (report, Some(error.to_string()))
        }
    };
    Ok(Ran { report, error, was_interrupted, wall, host })
}

/// Finds out what lanes get of what they ask of the operating system. Nothing is run.
pub(crate) fn try_on_this_host(plan: &mut Plan) -> Result<(), Failure> {
    let config = PoolConfig { workers: Some(1), ..PoolConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("clockjack"), config)
        .map_err(|error| Failure::no_runtime(error.to_string()))?;
    plan.try_on(runtime.system());
    drop(runtime.shutdown(SHUTDOWN_DEADLINE));
    Ok(())
}

/// Waits for the end of a run on this thread, and looks up now and again.
fn wait(
    run: GraphRun,
    interrupt: &Interrupt,
    every: Duration,
    look: &mut dyn FnMut(&Stopper),
) -> (Result<RunReport, RunError>, bool) {
    let stopper = run.stopper();
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let is_woken = &unpark.1;
    let mut cx = Context::from_waker(&waker);
    let mut run = pin!(run);
    let mut was_interrupted = false;
    loop {
        if let Poll::Ready(ended) = run.as_mut().poll(&mut cx) {
            look(&stopper);
            return (ended, was_interrupted);
        }
        // Ctrl-C is not to wait for a long frame.
        let looked = Instant::now();
        while !is_woken.swap(false, Ordering::Acquire) && looked.elapsed() < every {
            std::thread::park_timeout(every.saturating_sub(looked.elapsed()).min(LOOK_EVERY));
            if interrupt.is_requested() {
                break;
            }
        }
        if interrupt.is_requested() && !was_interrupted {
            was_interrupted = true;
            stopper.stop();
        }
        look(&stopper);
    }
}

/// Wakes a thread that is parked, and leaves a note that it was not for nothing.
struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        // Pairs with the swap of who waits: it polls after this.
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}
