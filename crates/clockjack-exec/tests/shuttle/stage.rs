//! What the scenes play on: a host of shuttle's threads, and a crew of workers with a metronome.
//!
//! Time is virtual and passes only by sleeping: who parks with a deadline lets others run once, and
//! then it is that late. So every thread may be slow, nothing waits for a real clock, and who parks
//! without a deadline and is forgotten there is found as a deadlock.
#![expect(unsafe_code, reason = "promises which worker a thread is")]

use alloc::sync::Arc;
use core::{cell::Cell, ptr, time::Duration};

use clockjack_exec::{
    Caught, Commands, Handle, Host, Limits,
    engine::{Engine, EngineConfig},
    engine_ref::EngineRef,
    watch::Watch,
    worker::{self, Local},
};
use clockjack_sync::prim::atomic::{AtomicU64, Ordering::SeqCst};
use clockjack_time::{Resolution, Tick};
use shuttle::{
    rand::Rng as _,
    sync::{Condvar, Mutex},
    thread::{self, JoinHandle},
};

/// A tick of the scenes: long enough that a step of no time at all is short.
pub(crate) const TICK: Duration = Duration::from_millis(1);
const NANOS_PER_TICK: u64 = 1_000_000;
/// Of so many schedules of a scene one.
const SHARE: usize = 10;
const GRACE_TICKS: u64 = 2;
const QUIET_LOOKS_MAX: u32 = 2;
/// Steps take no time, but the one that a scene blocks: longer than any scene.
const REPORT_AFTER_NANOS: u64 = 10 * NANOS_PER_TICK;

shuttle::thread_local! {
    /// The worker that this thread is.
    static LOCAL: Cell<*const Local> = Cell::new(ptr::null());
}

/// A door that is opened once, and waited for by threads.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Blocks the thread, as a step should not do.
    pub(crate) fn wait(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    /// Closes it again behind who came through.
    fn pass(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        *is_open = false;
    }

    fn try_pass(&self) -> bool {
        core::mem::take(&mut *self.is_open.lock().unwrap())
    }
}

/// Runs a scene of a whole engine, which takes some ten times as long as one of a queue.
pub(crate) fn explore(scene: impl Fn() + Clone + Send + Sync + 'static) {
    clockjack_sync::prim::explore_part(SHARE, scene);
}

/// What the threads of a scene share with the engine.
struct Stage {
    ticks: AtomicU64,
    seats: Box<[Gate]>,
    metronome: Gate,
    seed: u64,
}

impl Stage {
    fn park(&self, place: &Gate, until: Option<Tick>) {
        let Some(until) = until else { return place.pass() };
        if !place.try_pass() {
            thread::yield_now();
            if !place.try_pass() {
                self.ticks.fetch_max(until.get(), SeqCst);
            }
        }
    }
}

struct StageHost(Arc<Stage>);

// SAFETY: (1) the thread-local of shuttle's holds what was last set on this thread, and nothing
// interrupts it. (2) the closure is called once, on this thread.
unsafe impl Host for StageHost {
    fn nanos(&self) -> u64 {
        self.0.ticks.load(SeqCst) * NANOS_PER_TICK
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / NANOS_PER_TICK)
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let nanos = u64::try_from(after.as_nanos()).unwrap();
        Tick::new((self.nanos() + nanos).div_ceil(NANOS_PER_TICK))
    }

    // Not caught: a panic in a scene is its failure.
    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        turn();
        Ok(())
    }

    fn local(&self) -> *const Local {
        LOCAL.try_with(Cell::get).unwrap_or(ptr::null())
    }

    fn enter(&self, local: *const Local) -> *const Local {
        LOCAL.with(|before| before.replace(local))
    }

    fn park(&self, seat: usize, until: Option<Tick>) {
        self.0.park(&self.0.seats[seat], until);
    }

    fn unpark(&self, seat: usize) {
        self.0.seats[seat].open();
    }

    fn unpark_metronome(&self) {
        self.0.metronome.open();
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn stop_progressed(&self) {}

    fn seed(&self) -> u64 {
        self.0.seed
    }
}

/// An engine with its threads.
pub(crate) struct Crew {
    stage: Arc<Stage>,
    pub(crate) engine: EngineRef,
    workers: Box<[Option<JoinHandle<()>>]>,
    metronome: Option<JoinHandle<()>>,
}

impl Crew {
    /// Two seats, and a worker in each.
    pub(crate) fn of_two() -> Self {
        Self::with(Limits::SMALL)
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let mut crew = Self::empty(2, limits);
        crew.start(0);
        crew.start(1);
        crew
    }

    fn empty(seats: usize, limits: Limits) -> Self {
        let stage = Arc::new(Stage {
            ticks: AtomicU64::new(1),
            seats: (0..seats).map(|_| Gate::default()).collect(),
            metronome: Gate::default(),
            seed: shuttle::rand::thread_rng().r#gen(),
        });
        let config = EngineConfig {
            seats,
            node: 0,
            limits,
            resolution: Resolution::from_nanos(1_000_000).unwrap(),
            grace_ticks: GRACE_TICKS,
            quiet_looks_max: QUIET_LOOKS_MAX,
        };
        let host = Box::new(StageHost(Arc::clone(&stage)));
        let engine = Engine::new(host, &config, Commands::new()).unwrap();
        Self { stage, engine, workers: (0..seats).map(|_| None).collect(), metronome: None }
    }

    /// Starts a worker, and waits until it sits.
    pub(crate) fn start(&mut self, seat: usize) {
        let (engine, sits) = (self.engine.clone(), Arc::new(Gate::default()));
        let seated = Arc::clone(&sits);
        let worker = thread::spawn(move || {
            worker::work_once_seated(&engine, seat, || seated.open());
        });
        sits.wait();
        assert!(self.workers[seat].replace(worker).is_none());
    }

    /// Starts the metronome, as the pool does.
    pub(crate) fn start_metronome(&mut self) {
        let (engine, stage) = (self.engine.clone(), Arc::clone(&self.stage));
        self.metronome = Some(thread::spawn(move || {
            let mut watch = Watch::new(stage.seats.len(), REPORT_AFTER_NANOS);
            while !engine.is_over() {
                let until = watch.look(&engine, |_| {});
                stage.park(&stage.metronome, until);
            }
        }));
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::new(self.engine.clone())
    }

    /// Asks a worker to leave, and waits for that.
    pub(crate) fn dismiss(&mut self, seat: usize) {
        let worker = self.workers[seat].take().unwrap();
        self.engine.dismiss(seat);
        worker.join().unwrap();
        assert!(!self.engine.is_taken(seat));
    }

    /// Ends it all: everything that was started has ended, and nothing of the engine is left when
    /// the last of its threads has gone.
    pub(crate) fn end(mut self) {
        for seat in 0..self.workers.len() {
            if self.workers[seat].is_some() {
                self.dismiss(seat);
            }
        }
        assert_eq!(self.engine.live_len(), 0, "{:?}", self.engine.stats());
        self.engine.alive(|alive| panic!("{alive:?} is alive"));
        self.engine.close_timers();
        self.engine.close();
        self.stage.metronome.open();
        if let Some(metronome) = self.metronome.take() {
            metronome.join().unwrap();
        }
        let Self { stage, engine, .. } = self;
        drop(engine);
        assert_eq!(Arc::strong_count(&stage), 1, "the engine is left behind");
    }
}
