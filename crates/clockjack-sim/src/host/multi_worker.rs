//! A host with several workers for a whole system, all of them on one thread.
//!
//! Workers take turns in any order. A step of one of them can also have others within it: whoever
//! is stepped and says so ([`meanwhile`]) stands still while the others go on, as on a thread that
//! has lost its processor. Those that have begun later end earlier, which threads need not do; but
//! that two are at work at once, and who sees what of the other, is as it is there.

use alloc::{boxed::Box, format, rc::Rc, sync::Arc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    fmt,
};

use clockjack_actor::{
    ActorSystem, StartError, SystemBuilder,
    system::{FailedStart, HostParts},
    testing,
};
use clockjack_exec::{
    Handle,
    engine::{Engine, EngineConfig},
    engine_ref::EngineRef,
    worker::hand::{Hand, Turned},
};
use clockjack_sched::{Scheduler, SchedulerHost};
use clockjack_time::{ClockKind, MonotonicClock as _, Tick, TimerInstant};

use crate::{
    clock::{RESOLUTION, SimClock},
    context::SimContext,
    fault::Class,
    host::executor::{ExecutorHost, ExecutorState, Rest},
    host::single_thread::pass,
    invariant::Invariant,
    random::Stream,
};

/// After how many turns in one moment a system counts as one that is never idle.
const TURNS_MAX: u64 = 60_000;
/// How many turns others have at most while one is in the middle of its own.
const MEANWHILE_MAX: u64 = 6;
/// How many jobs of the scheduler a turn of it runs.
const JOBS_PER_TURN: usize = 64;

std::thread_local! {
    /// The workers of this thread.
    static HERE: RefCell<Option<Rc<Workers>>> = const { RefCell::new(None) };
}

/// Lets other workers have some turns, in the middle of what one of them steps. Elsewhere nothing
/// happens: on a host with one thread nobody can come in between.
pub fn meanwhile() {
    let workers = HERE.with_borrow(Option::clone);
    if let Some(workers) = workers {
        workers.meanwhile();
    }
}

/// A system on several workers, and the hand that turns them.
pub struct MultiWorkerHost {
    workers: Rc<Workers>,
    system: ActorSystem,
}

struct Workers {
    sim: SimContext,
    executor_state: Arc<ExecutorState>,
    engine: EngineRef,
    scheduler: Scheduler,
    /// None while it has its turn.
    workers: RefCell<Vec<Option<(Hand, Rest)>>>,
    /// Who looks after the scheduler.
    runner: Cell<Rest>,
    order: RefCell<Stream>,
}

impl MultiWorkerHost {
    /// Starts a system with so many workers on this sim, with its clock and its seed.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`](clockjack_actor::RootContext::new).
    pub fn start(
        sim: &SimContext,
        mut builder: SystemBuilder,
        seats: usize,
    ) -> Result<Self, StartError> {
        let (limits, mut config, commands) = builder.host_config();
        config.resolution = RESOLUTION;
        config.start = sim.clock().now().tick();
        config.shards = 1;
        let executor_state = ExecutorState::new(sim, seats);
        let engine = EngineConfig {
            seats,
            node: 0,
            limits,
            resolution: RESOLUTION,
            grace_ticks: 2,
            quiet_looks_max: 2,
        };
        let engine =
            Engine::new(Box::new(ExecutorHost(Arc::clone(&executor_state))), &engine, commands)?;
        let runner =
            Runner { clock: Arc::clone(sim.clock()), executor_state: Arc::clone(&executor_state) };
        let scheduler =
            Scheduler::new(config, runner).map_err(|refused| StartError::thread(&refused))?;
        let host = HostParts {
            executor: Handle::new(engine.clone()),
            scheduler: scheduler.clone(),
            dispatchers: Vec::new(),
            dispatcher_host: None,
            seed: sim.order_seed(),
        };
        let workers =
            (0..seats).map(|seat| Some((Hand::new(&engine, seat), Rest::Awake))).collect();
        let workers = Rc::new(Workers {
            sim: sim.clone(),
            executor_state,
            engine,
            scheduler,
            workers: RefCell::new(workers),
            runner: Cell::new(Rest::Awake),
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

    /// Lets time pass, as far as faults of the clock let it.
    pub fn pass(&self, ticks: u64) {
        pass(&self.workers.sim, ticks);
    }

    /// Turns whoever is awake or was woken, in any order, until nobody is. Whether it came to that:
    /// no wake was held back.
    pub fn settle(&self) -> bool {
        self.workers.settle()
    }

    /// One turn of one worker, and no more, if any is awake.
    pub fn turn_if_woken(&self) {
        if let Some(seat) = self.workers.pick(&self.workers.awake()) {
            self.workers.turn(seat);
        }
    }

    /// To be called where [`settle`](Self::settle) was true: nobody has anything to do.
    pub fn check_quiet(&self) {
        for seen in testing::census(&self.system) {
            let is_fine = !seen.is_ready;
            self.workers
                .sim
                .check(Invariant::X1, is_fine, || format!("{} is ready and sleeps", seen.path));
        }
    }
}

impl Drop for MultiWorkerHost {
    /// Jobs that wait are cancelled and what is alive is ended by force.
    fn drop(&mut self) {
        HERE.set(None);
        self.workers.close();
    }
}

impl Workers {
    /// Workers that are awake, or would be if they were looked at; one beyond the last stands for
    /// the runner of the scheduler.
    fn awake(&self) -> Vec<usize> {
        let now = self.sim.clock().raw();
        let workers = self.workers.borrow();
        let is_awake = |(seat, hand): (usize, &Option<(Hand, Rest)>)| {
            let (_, rest) = hand.as_ref()?;
            (rest.is_over(now) || self.executor_state.is_called(seat)).then_some(seat)
        };
        let mut awake: Vec<usize> = workers.iter().enumerate().filter_map(is_awake).collect();
        if self.executor_state.is_runner_called() || self.runner.get().is_over(self.sim.now()) {
            awake.push(workers.len());
        }
        awake
    }

    fn pick(&self, among: &[usize]) -> Option<usize> {
        let at = self.order.borrow_mut().index(among.len());
        among.get(at).copied()
    }

    fn settle(&self) -> bool {
        for _ in 0..TURNS_MAX {
            let mut awake = self.awake();
            let n_awake = awake.len();
            awake.retain(|_| self.sim.fault(Class::LateWake).is_none());
            let n_seats = self.workers.borrow().len();
            if self.sim.fault(Class::SpuriousWake).is_some() {
                awake.push(self.order.borrow_mut().index(n_seats));
            }
            let Some(seat) = self.pick(&awake) else { return n_awake == 0 };
            self.turn(seat);
        }
        self.sim.check(Invariant::X1, false, || format!("not idle after {TURNS_MAX} turns"));
        false
    }

    /// See [`meanwhile`].
    fn meanwhile(&self) {
        let n_turns = self.order.borrow_mut().below(MEANWHILE_MAX);
        for _ in 0..n_turns {
            let Some(seat) = self.pick(&self.awake()) else { return };
            self.turn(seat);
        }
    }

    fn turn(&self, seat: usize) {
        if seat == self.workers.borrow().len() {
            self.executor_state.answer_runner();
            let turn = self.scheduler.turn(0, 0, JOBS_PER_TURN);
            let is_more = turn.ran > 0 || turn.is_more;
            let rest =
                if is_more { Rest::Awake } else { Rest::Asleep(turn.next_wake.map(Tick::get)) };
            self.runner.set(rest);
            return;
        }
        self.executor_state.answer(seat);
        let Some((mut hand, _)) = self.workers.borrow_mut()[seat].take() else { return };
        let turned = hand.turn();
        if turned != Turned::Left {
            self.workers.borrow_mut()[seat] = Some((hand, Rest::of(turned)));
        }
    }

    fn close(&self) {
        self.scheduler.shutdown();
        self.engine.stop();
        for _ in 0..2 {
            for _ in 0..TURNS_MAX {
                let Some(seat) = self.pick(&self.awake()) else { break };
                self.turn(seat);
            }
            self.engine.terminate_all(|_| {});
        }
        self.workers.borrow_mut().clear();
        self.engine.close_timers();
        self.engine.close();
    }
}

impl fmt::Debug for MultiWorkerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crowd").field("system", &self.system).finish_non_exhaustive()
    }
}

/// What the scheduler has of its host.
struct Runner {
    clock: Arc<SimClock>,
    executor_state: Arc<ExecutorState>,
}

impl SchedulerHost for Runner {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::Deterministic
    }

    fn name(&self) -> &'static str {
        "crowd"
    }

    fn call_runner(&self, _shard: usize) {
        self.executor_state.call_runner();
    }
}
