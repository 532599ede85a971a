//! A host with several workers for a complete system, all on one thread.
//!
//! The workers are stepped in random order. Other workers can also run within a step: code that
//! calls [`interleave`] pauses while other workers are stepped, like a thread that was preempted.
//! Unlike with threads, the step that started last finishes first; but overlapping steps, and what
//! each of them sees of the other, are the same as with threads.

use core::{
    cell::{Cell, RefCell},
    fmt,
};
use std::{rc::Rc, sync::Arc};

use clockjack_actor::{
    ActorSystem, StartError, SystemBuilder,
    system::{FailedStart, HostParts},
    testing,
};
use clockjack_exec::{
    Handle,
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    worker::manual::{ManualStep, ManualWorker},
};
use clockjack_sched::{Scheduler, SchedulerHost};
use clockjack_time::{ClockKind, MonotonicClock as _, Tick, TimerInstant};

use crate::{
    clock::{RESOLUTION, SimClock},
    context::SimContext,
    fault::Class,
    host::{
        executor::{ExecutorHost, ExecutorState, SleepState},
        single_thread::advance,
    },
    invariant::Invariant,
    random::Stream,
};

/// After this many steps without a pause, the system counts as never idle.
const STEPS_MAX: u64 = 60_000;
/// The maximum number of steps of other workers within one call of [`interleave`].
const INTERLEAVE_MAX: u64 = 6;
/// The maximum number of jobs per poll of the scheduler.
const JOBS_PER_POLL: usize = 64;

std::thread_local! {
    /// The workers of this thread.
    static HERE: RefCell<Option<Rc<Workers>>> = const { RefCell::new(None) };
}

/// Steps other workers, in the middle of the step of the current worker. Without a host with
/// several workers on this thread, this function does nothing.
pub fn interleave() {
    let workers = HERE.with_borrow(Option::clone);
    if let Some(workers) = workers {
        workers.interleave();
    }
}

/// A system on several workers, stepped by the simulation.
pub struct MultiWorkerHost {
    workers: Rc<Workers>,
    system: ActorSystem,
}

struct Workers {
    sim: SimContext,
    executor_state: Arc<ExecutorState>,
    engine: ExecutorRef,
    scheduler: Scheduler,
    /// The workers; `None` while a worker is being stepped.
    workers: RefCell<Vec<Option<(ManualWorker, SleepState)>>>,
    /// The sleep state of the scheduler poller.
    poller: Cell<SleepState>,
    order: RefCell<Stream>,
}

impl MultiWorkerHost {
    /// Starts a system with this many workers, with the clock and the seed of this context.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`](clockjack_actor::RootContext::new).
    pub fn start(
        sim: &SimContext,
        mut builder: SystemBuilder,
        n_workers: usize,
    ) -> Result<Self, StartError> {
        let (limits, mut config, commands) = builder.host_config()?;
        config.resolution = RESOLUTION;
        config.start = sim.clock().now().tick();
        config.shards = 1;
        let executor_state = ExecutorState::new(sim, n_workers);
        let engine = ExecutorConfig {
            workers: n_workers,
            node: 0,
            limits,
            resolution: RESOLUTION,
            tolerance_ticks: 2,
            quiet_polls_max: 2,
        };
        let engine = ExecutorShared::new(
            Box::new(ExecutorHost(Arc::clone(&executor_state))),
            &engine,
            commands,
        )?;
        let scheduler_host = SimSchedulerHost {
            clock: Arc::clone(sim.clock()),
            executor_state: Arc::clone(&executor_state),
        };
        let scheduler = Scheduler::new(config, scheduler_host)
            .map_err(|refused| StartError::thread(&refused))?;
        let host = HostParts {
            executor: Handle::new(engine.clone()),
            scheduler: scheduler.clone(),
            dispatchers: Vec::new(),
            dispatcher_host: None,
            seed: sim.order_seed(),
        };
        let workers = (0..n_workers)
            .map(|worker| Some((ManualWorker::new(&engine, worker), SleepState::Awake)))
            .collect();
        let workers = Rc::new(Workers {
            sim: sim.clone(),
            executor_state,
            engine,
            scheduler,
            workers: RefCell::new(workers),
            poller: Cell::new(SleepState::Awake),
            order: RefCell::new(sim.stream("crowd")),
        });
        match builder.start_on(host) {
            Ok(system) => {
                HERE.set(Some(Rc::clone(&workers)));
                Ok(Self { workers, system })
            }
            Err(FailedStart { error, .. }) => {
                workers.close();
                Err(error)
            }
        }
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// Advances time, subject to clock faults.
    pub fn advance(&self, ticks: u64) {
        advance(&self.workers.sim, ticks);
    }

    /// Steps workers that are awake or were woken, in random order, until none is. Returns whether
    /// the system is idle: false if a wake-up was delayed.
    pub fn run_until_idle(&self) -> bool {
        self.workers.run_until_idle()
    }

    /// Steps one worker once, if one is awake.
    pub fn step_if_woken(&self) {
        if let Some(worker) = self.workers.pick(&self.workers.awake()) {
            self.workers.step_worker(worker);
        }
    }

    /// Call this function after [`run_until_idle`](Self::run_until_idle) returned true: no actor
    /// may be ready.
    pub fn check_idle_state(&self) {
        for seen in testing::all_actors(&self.system) {
            let is_fine = !seen.is_ready;
            self.workers.sim.check(Invariant::X1, is_fine, || {
                format!("{} is ready but not scheduled", seen.path)
            });
        }
    }
}

impl Drop for MultiWorkerHost {
    /// Cancels pending jobs and stops all live actors forcibly.
    fn drop(&mut self) {
        HERE.set(None);
        self.workers.close();
    }
}

impl Workers {
    /// The workers that are awake or have a pending wake-up; the index after the last worker means
    /// the scheduler poller.
    fn awake(&self) -> Vec<usize> {
        let now = self.sim.clock().raw();
        let workers = self.workers.borrow();
        let is_awake = |(worker, manual_worker): (usize, &Option<(ManualWorker, SleepState)>)| {
            let (_, sleep) = manual_worker.as_ref()?;
            (sleep.is_over(now) || self.executor_state.is_woken(worker)).then_some(worker)
        };
        let mut awake: Vec<usize> = workers.iter().enumerate().filter_map(is_awake).collect();
        if self.executor_state.is_poller_woken() || self.poller.get().is_over(self.sim.now()) {
            awake.push(workers.len());
        }
        awake
    }

    fn pick(&self, among: &[usize]) -> Option<usize> {
        let at = self.order.borrow_mut().index(among.len());
        among.get(at).copied()
    }

    fn run_until_idle(&self) -> bool {
        for _ in 0..STEPS_MAX {
            let mut awake = self.awake();
            let n_awake = awake.len();
            awake.retain(|_| self.sim.fault(Class::LateWake).is_none());
            let n_workers = self.workers.borrow().len();
            if self.sim.fault(Class::SpuriousWake).is_some() {
                awake.push(self.order.borrow_mut().index(n_workers));
            }
            let Some(worker) = self.pick(&awake) else { return n_awake == 0 };
            self.step_worker(worker);
        }
        self.sim.check(Invariant::X1, false, || format!("not idle after {STEPS_MAX} turns"));
        false
    }

    /// See [`interleave`].
    fn interleave(&self) {
        let n_turns = self.order.borrow_mut().below(INTERLEAVE_MAX);
        for _ in 0..n_turns {
            let Some(worker) = self.pick(&self.awake()) else { return };
            self.step_worker(worker);
        }
    }

    fn step_worker(&self, worker: usize) {
        if worker == self.workers.borrow().len() {
            self.executor_state.clear_poller_wake();
            let turn = self.scheduler.poll_shard(0, 0, JOBS_PER_POLL);
            let is_more = turn.ran > 0 || turn.is_more;
            let sleep = if is_more {
                SleepState::Awake
            } else {
                SleepState::Asleep(turn.next_wake.map(Tick::get))
            };
            self.poller.set(sleep);
            return;
        }
        self.executor_state.clear_wake(worker);
        let Some((mut manual_worker, _)) = self.workers.borrow_mut()[worker].take() else { return };
        let step = manual_worker.step();
        if step != ManualStep::Stopped {
            self.workers.borrow_mut()[worker] = Some((manual_worker, SleepState::of(step)));
        }
    }

    fn close(&self) {
        self.scheduler.shutdown();
        self.engine.begin_shutdown();
        for _ in 0..2 {
            for _ in 0..STEPS_MAX {
                let Some(worker) = self.pick(&self.awake()) else { break };
                self.step_worker(worker);
            }
            self.engine.terminate_all(|_| {});
        }
        self.workers.borrow_mut().clear();
        self.engine.close_timers();
        self.engine.close_run_queue();
    }
}

impl fmt::Debug for MultiWorkerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiWorkerHost").field("system", &self.system).finish_non_exhaustive()
    }
}

/// The scheduler's view of the host.
struct SimSchedulerHost {
    clock: Arc<SimClock>,
    executor_state: Arc<ExecutorState>,
}

impl SchedulerHost for SimSchedulerHost {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::Deterministic
    }

    fn name(&self) -> &'static str {
        "simulation"
    }

    fn wake_poller(&self, _shard: usize) {
        self.executor_state.wake_poller();
    }
}
