//! A host with one thread for a complete system. Like a real host, it runs only when it was woken
//! or a tick has arrived.

use core::{
    fmt,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};
use std::{sync::Arc, task::Wake};

use clockjack_actor::{ActorSystem, RootContext, StartError, SystemBuilder, Toolbox, testing};
use clockjack_exec::PanicPayload;
use clockjack_time::{ManualDriver, MonotonicClock, Tick, TickDriver, TickSpan};

use crate::{
    clock::{RESOLUTION, SimClock},
    context::SimContext,
    fault::Class,
    invariant::Invariant,
};

/// After this many steps without a pause, the system counts as never idle.
const STEPS_MAX: usize = 20_000;

/// Forward jumps of the clock in ticks, with weights: a short pause, a pause that makes runs fold,
/// and jumps beyond the range of the wheel.
const JUMPS: &[(u64, u64)] = &[(6, 700), (3, 5_000), (2, 61_000), (1, 1 << 21)];

/// Advances time, subject to clock faults. Returns by how many ticks, and whether a fault has
/// stopped the clock.
pub(crate) fn advance(sim: &SimContext, ticks: u64) -> (u64, bool) {
    let mut ticks = ticks;
    if let Some(size) = sim.fault(Class::ClockDrift) {
        // Up to 50 % faster or slower.
        let off = ticks * (size % 50) / 100;
        ticks = if size & (1 << 40) == 0 { ticks + off } else { ticks - off };
    }
    if let Some(size) = sim.fault(Class::ClockJump) {
        ticks += crate::random::Stream::new(size, "jump").pick(JUMPS).unwrap_or(0);
    }
    let is_still = sim.fault(Class::ClockStill).is_some();
    if is_still {
        ticks = 0;
    }
    if let Some(size) = sim.fault(Class::ClockBack) {
        sim.clock().go_back(1 + size % 60);
    }
    sim.clock().advance(ticks);
    (ticks, is_still)
}

/// A system on one thread; the simulation advances its time.
pub struct SingleThreadHost {
    root: RootContext,
    sim: SimContext,
    driver: Arc<ManualDriver>,
    wake_flag: Arc<WakeFlag>,
    waker: Waker,
    /// Ticks that the driver has not delivered yet.
    pending_ticks: u64,
}

impl SingleThreadHost {
    /// Starts a system with the clock of this context, and with its seed for the order of ready
    /// tasks.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`].
    pub fn start(sim: &SimContext, builder: SystemBuilder) -> Result<Self, StartError> {
        Self::start_seeded(sim, builder, sim.order_seed())
    }

    /// As [`start`](Self::start), with a seed of its own for the order of ready tasks: for one of
    /// several systems on one clock.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`].
    pub(crate) fn start_seeded(
        sim: &SimContext,
        builder: SystemBuilder,
        seed: u64,
    ) -> Result<Self, StartError> {
        let driver = Arc::new(ManualDriver::new(RESOLUTION));
        let clock = Arc::clone(sim.clock());
        let toolbox = SimToolbox { clock, driver: Arc::clone(&driver), seed };
        let root = RootContext::new(toolbox, builder)?;
        let wake_flag = Arc::new(WakeFlag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&wake_flag));
        Ok(Self { root, sim: sim.clone(), driver, wake_flag, waker, pending_ticks: 0 })
    }

    /// The root context, for spawning.
    pub fn root(&mut self) -> &mut RootContext {
        &mut self.root
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
    }

    /// Advances time, subject to faults of the clock and the driver.
    pub fn advance(&mut self, ticks: u64) {
        let (passed, is_still) = advance(&self.sim, ticks);
        // Ticks arrive even if the clock has stopped.
        self.pending_ticks += passed + u64::from(is_still);
        if self.sim.fault(Class::DriverStall).is_none() {
            self.deliver_ticks();
        }
    }

    /// Time has passed, for all systems of a run.
    pub(crate) fn passed(&mut self, ticks: u64) {
        self.pending_ticks += ticks;
    }

    /// Whether the system was woken since it has slept.
    pub(crate) fn is_woken(&self) -> bool {
        self.wake_flag.is_set()
    }

    /// Delivers all pending ticks to the driver.
    pub fn deliver_ticks(&mut self) {
        let pending_ticks = core::mem::take(&mut self.pending_ticks);
        if pending_ticks > 0 {
            self.driver.inject(TickSpan::new(pending_ticks));
        }
    }

    /// Runs until the system sleeps, if it was woken; a fault can delay the wake-up. Returns
    /// whether the system is idle: no wake-up and no tick is held back.
    pub fn run_until_idle(&mut self) -> bool {
        if self.wake_flag.is_set() && self.sim.fault(Class::LateWake).is_some() {
            return false;
        }
        if self.sim.fault(Class::SpuriousWake).is_some() {
            self.wake_flag.set();
        }
        let mut turns = 0;
        while self.wake_flag.take() {
            if self.turn() {
                self.wake_flag.set();
            }
            turns += 1;
            if turns == STEPS_MAX {
                self.sim.check(Invariant::X1, false, || format!("not idle after {turns} turns"));
                return false;
            }
        }
        self.pending_ticks == 0
    }

    /// One step, if the system was woken.
    pub fn step_if_woken(&mut self) {
        if self.wake_flag.take() && self.turn() {
            self.wake_flag.set();
        }
    }

    /// One step, whether the system was woken or not. Returns whether the step did anything.
    fn turn(&mut self) -> bool {
        let mut cx = Context::from_waker(&self.waker);
        let polled = pin!(self.root.dispatch_next()).poll(&mut cx);
        match polled {
            Poll::Ready(true) => true,
            Poll::Pending => false,
            // The system has shut down, but remaining tasks may still run.
            Poll::Ready(false) => self.root.run_until_idle() > 0,
        }
    }

    /// Call this function after [`run_until_idle`](Self::run_until_idle) returned true: no actor
    /// may be ready.
    pub fn check_idle_state(&self) {
        let sim = &self.sim;
        for seen in testing::all_actors(self.system()) {
            sim.check(Invariant::X1, !seen.is_ready, || {
                format!("{} is ready but not scheduled", seen.path)
            });
        }
    }
}

impl fmt::Debug for SingleThreadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleThreadHost").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The wake flag of the host.
struct WakeFlag(AtomicBool);

impl WakeFlag {
    fn set(&self) {
        // Relaxed, here and below: only one thread uses the flag.
        self.0.store(true, Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }

    fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

struct SimToolbox {
    clock: Arc<SimClock>,
    driver: Arc<ManualDriver>,
    seed: u64,
}

impl Toolbox for SimToolbox {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &*self.driver
    }

    fn park(&self, _until: Option<Tick>) {}

    fn unpark(&self) {}

    fn seed(&self) -> u64 {
        self.seed
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        super::catch_panic(turn)
    }
}
