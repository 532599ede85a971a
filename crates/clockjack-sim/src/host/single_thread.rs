//! A host with one thread for a whole system, as faithful as a real one: it runs when it was woken
//! or a tick has come, and at no other time.

use alloc::{boxed::Box, format, sync::Arc, task::Wake};
use core::{
    any::Any,
    fmt,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};
use std::panic::catch_unwind;

use clockjack_actor::{ActorSystem, RootContext, StartError, SystemBuilder, Toolbox, testing};
use clockjack_exec::Caught;
use clockjack_time::{ManualDriver, MonotonicClock, Tick, TickDriver, TickSpan};

use crate::{
    clock::{RESOLUTION, SimClock},
    context::SimContext,
    fault::Class,
    invariant::Invariant,
};

/// After how many turns in one moment a system counts as one that is never idle.
const TURNS_MAX: usize = 20_000;

/// Forward jumps of the clock, in ticks, with their weights: what a pause is, what makes runs fold,
/// what leaves the range of the wheel.
const JUMPS: &[(u64, u64)] = &[(6, 700), (3, 5_000), (2, 61_000), (1, 1 << 21)];

/// Lets time pass, as far as faults of the clock let it: by how many ticks, and whether it was one
/// that has made it stand still.
pub(crate) fn pass(sim: &SimContext, ticks: u64) -> (u64, bool) {
    let mut ticks = ticks;
    if let Some(size) = sim.fault(Class::ClockDrift) {
        // Up to half as fast again, or half as slow.
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

/// A system on one thread, and the hand that lets its time pass.
pub struct SingleThreadHost {
    root: RootContext,
    sim: SimContext,
    driver: Arc<ManualDriver>,
    bell: Arc<WakeFlag>,
    waker: Waker,
    /// Ticks that the driver has not brought yet.
    owed: u64,
}

impl SingleThreadHost {
    /// Starts a system on this sim: with its clock, and with its seed for the order of what is
    /// ready.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`].
    pub fn start(sim: &SimContext, builder: SystemBuilder) -> Result<Self, StartError> {
        let driver = Arc::new(ManualDriver::new(RESOLUTION));
        let clock = Arc::clone(sim.clock());
        let bench = Bench { clock, driver: Arc::clone(&driver), seed: sim.order_seed() };
        let root = RootContext::new(bench, builder)?;
        let bell = Arc::new(WakeFlag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&bell));
        Ok(Self { root, sim: sim.clone(), driver, bell, waker, owed: 0 })
    }

    /// The root, for spawning.
    pub fn root(&mut self) -> &mut RootContext {
        &mut self.root
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.root.system()
    }

    /// Lets time pass, as far as faults of the clock and the driver let it.
    pub fn pass(&mut self, ticks: u64) {
        let (passed, is_still) = pass(&self.sim, ticks);
        // Where the clock stands still, ticks come all the same.
        self.owed += passed + u64::from(is_still);
        if self.sim.fault(Class::DriverStall).is_none() {
            self.feed();
        }
    }

    /// The driver brings all ticks that there are.
    pub fn feed(&mut self) {
        let owed = core::mem::take(&mut self.owed);
        if owed > 0 {
            self.driver.inject(TickSpan::new(owed));
        }
    }

    /// Runs if it was woken, until it sleeps; unless it wakes late. Whether it sleeps with nothing
    /// left to do: no wake was held back, and no tick.
    pub fn settle(&mut self) -> bool {
        if self.bell.is_rung() && self.sim.fault(Class::LateWake).is_some() {
            return false;
        }
        if self.sim.fault(Class::SpuriousWake).is_some() {
            self.bell.ring();
        }
        let mut turns = 0;
        while self.bell.take() {
            if self.turn() {
                self.bell.ring();
            }
            turns += 1;
            if turns == TURNS_MAX {
                self.sim.check(Invariant::X1, false, || format!("not idle after {turns} turns"));
                return false;
            }
        }
        self.owed == 0
    }

    /// One turn and no more, if it was woken.
    pub fn turn_if_woken(&mut self) {
        if self.bell.take() && self.turn() {
            self.bell.ring();
        }
    }

    /// One turn, whether somebody has called for it or not; whether it did anything.
    fn turn(&mut self) -> bool {
        let mut cx = Context::from_waker(&self.waker);
        let polled = pin!(self.root.dispatch_next()).poll(&mut cx);
        match polled {
            Poll::Ready(true) => true,
            Poll::Pending => false,
            // It has terminated; what is left may still be stepped.
            Poll::Ready(false) => self.root.run_until_idle() > 0,
        }
    }

    /// To be called where [`settle`](Self::settle) was true: nobody has anything to do.
    pub fn check_quiet(&self) {
        let sim = &self.sim;
        for seen in testing::census(self.system()) {
            sim.check(Invariant::X1, !seen.is_ready, || {
                format!("{} is ready and sleeps", seen.path)
            });
        }
    }
}

impl fmt::Debug for SingleThreadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rooted").field("root", &self.root).finish_non_exhaustive()
    }
}

/// What wakes the host.
struct WakeFlag(AtomicBool);

impl WakeFlag {
    fn ring(&self) {
        // Relaxed, here and below: all of it is one thread.
        self.0.store(true, Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }

    fn is_rung(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

struct Bench {
    clock: Arc<SimClock>,
    driver: Arc<ManualDriver>,
    seed: u64,
}

impl Toolbox for Bench {
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

    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        catch_unwind(AssertUnwindSafe(turn))
            .map_err(|payload: Box<dyn Any + Send>| Caught::new(payload))
    }
}
