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
    fault::Class,
    law::Law,
    random::Stream,
    rooted::pass,
    shop::{Rest, Shop, ShopHost},
    stage::Stage,
};

/// After how many turns in one moment a system counts as one that is never idle.
const TURNS_MAX: u64 = 60_000;
/// How many turns others have at most while one is in the middle of its own.
const MEANWHILE_MAX: u64 = 6;
/// How many jobs of the scheduler a turn of it runs.
const JOBS_PER_TURN: usize = 64;

std::thread_local! {
    /// The workers of this thread.
    static HERE: RefCell<Option<Rc<Room>>> = const { RefCell::new(None) };
}

/// Lets other workers have some turns, in the middle of what one of them steps. Elsewhere nothing
/// happens: on a host with one thread nobody can come in between.
pub fn meanwhile() {
    let room = HERE.with_borrow(Option::clone);
    if let Some(room) = room {
        room.meanwhile();
    }
}

/// A system on several workers, and the hand that turns them.
pub struct Crowd {
    room: Rc<Room>,
    system: ActorSystem,
}

struct Room {
    stage: Stage,
    shop: Arc<Shop>,
    engine: EngineRef,
    scheduler: Scheduler,
    /// None while it has its turn.
    hands: RefCell<Vec<Option<(Hand, Rest)>>>,
    /// Who looks after the scheduler.
    runner: Cell<Rest>,
    order: RefCell<Stream>,
}

impl Crowd {
    /// Starts a system with so many workers on this stage, with its clock and its seed.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`](clockjack_actor::RootContext::new).
    pub fn start(
        stage: &Stage,
        mut builder: SystemBuilder,
        seats: usize,
    ) -> Result<Self, StartError> {
        let (limits, mut config, commands) = builder.host_config();
        config.resolution = RESOLUTION;
        config.start = stage.clock().now().tick();
        config.shards = 1;
        let shop = Shop::new(stage, seats);
        let engine = EngineConfig {
            seats,
            node: 0,
            limits,
            resolution: RESOLUTION,
            grace_ticks: 2,
            quiet_looks_max: 2,
        };
        let engine = Engine::new(Box::new(ShopHost(Arc::clone(&shop))), &engine, commands)?;
        let runner = Runner { clock: Arc::clone(stage.clock()), shop: Arc::clone(&shop) };
        let scheduler =
            Scheduler::new(config, runner).map_err(|refused| StartError::thread(&refused))?;
        let host = HostParts {
            executor: Handle::new(engine.clone()),
            scheduler: scheduler.clone(),
            dispatchers: Vec::new(),
            dispatcher_host: None,
            seed: stage.order_seed(),
        };
        let hands = (0..seats).map(|seat| Some((Hand::new(&engine, seat), Rest::Awake))).collect();
        let room = Rc::new(Room {
            stage: stage.clone(),
            shop,
            engine,
            scheduler,
            hands: RefCell::new(hands),
            runner: Cell::new(Rest::Awake),
            order: RefCell::new(stage.stream("crowd")),
        });
        match builder.start_on(host) {
            Ok(system) => {
                HERE.set(Some(Rc::clone(&room)));
                Ok(Self { room, system })
            }
            Err(FailedStart { error, .. }) => {
                room.close();
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
        pass(&self.room.stage, ticks);
    }

    /// Turns whoever is awake or was woken, in any order, until nobody is. Whether it came to that:
    /// no wake was held back.
    pub fn settle(&self) -> bool {
        self.room.settle()
    }

    /// One turn of one worker, and no more, if any is awake.
    pub fn turn_if_woken(&self) {
        if let Some(seat) = self.room.pick(&self.room.awake()) {
            self.room.turn(seat);
        }
    }

    /// To be called where [`settle`](Self::settle) was true: nobody has anything to do.
    pub fn check_quiet(&self) {
        for seen in testing::census(&self.system) {
            let is_fine = !seen.is_ready;
            self.room
                .stage
                .check(Law::X1, is_fine, || format!("{} is ready and sleeps", seen.path));
        }
    }
}

impl Drop for Crowd {
    /// Jobs that wait are cancelled and what is alive is ended by force.
    fn drop(&mut self) {
        HERE.set(None);
        self.room.close();
    }
}

impl Room {
    /// Workers that are awake, or would be if they were looked at; one beyond the last stands for
    /// the runner of the scheduler.
    fn awake(&self) -> Vec<usize> {
        let now = self.stage.clock().raw();
        let hands = self.hands.borrow();
        let is_awake = |(seat, hand): (usize, &Option<(Hand, Rest)>)| {
            let (_, rest) = hand.as_ref()?;
            (rest.is_over(now) || self.shop.is_called(seat)).then_some(seat)
        };
        let mut awake: Vec<usize> = hands.iter().enumerate().filter_map(is_awake).collect();
        if self.shop.is_runner_called() || self.runner.get().is_over(self.stage.now()) {
            awake.push(hands.len());
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
            awake.retain(|_| self.stage.fault(Class::LateWake).is_none());
            let n_seats = self.hands.borrow().len();
            if self.stage.fault(Class::SpuriousWake).is_some() {
                awake.push(self.order.borrow_mut().index(n_seats));
            }
            let Some(seat) = self.pick(&awake) else { return n_awake == 0 };
            self.turn(seat);
        }
        self.stage.check(Law::X1, false, || format!("not idle after {TURNS_MAX} turns"));
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
        if seat == self.hands.borrow().len() {
            self.shop.answer_runner();
            let turn = self.scheduler.turn(0, 0, JOBS_PER_TURN);
            let is_more = turn.ran > 0 || turn.is_more;
            let rest =
                if is_more { Rest::Awake } else { Rest::Asleep(turn.next_wake.map(Tick::get)) };
            self.runner.set(rest);
            return;
        }
        self.shop.answer(seat);
        let Some((mut hand, _)) = self.hands.borrow_mut()[seat].take() else { return };
        let turned = hand.turn();
        if turned != Turned::Left {
            self.hands.borrow_mut()[seat] = Some((hand, Rest::of(turned)));
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
        self.hands.borrow_mut().clear();
        self.engine.close_timers();
        self.engine.close();
    }
}

impl fmt::Debug for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crowd").field("system", &self.system).finish_non_exhaustive()
    }
}

/// What the scheduler has of its host.
struct Runner {
    clock: Arc<SimClock>,
    shop: Arc<Shop>,
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
        self.shop.call_runner();
    }
}
