//! The heartbeat that a pinned thread writes for the watchdog, and the flag that wakes the
//! watchdog. The parent module has the numbered rules.

use std::sync::Arc;

use clockjack_sync::primitive::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

use crate::Parker;

/// The state that a pinned thread publishes to the watchdog.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    is_awake: AtomicBool,
    /// Odd during a step.
    step: AtomicU32,
    wake_flag: Arc<WakeFlag>,
}

/// Where the watchdog sleeps.
#[derive(Debug)]
pub(crate) struct WakeFlag {
    parker: Parker,
    is_asleep: AtomicBool,
    is_stopped: AtomicBool,
}

impl Heartbeat {
    /// The heartbeat of a thread that is awake and not in a step.
    pub(crate) fn new(wake_flag: Arc<WakeFlag>) -> Self {
        Self { is_awake: AtomicBool::new(true), step: AtomicU32::new(0), wake_flag }
    }

    /// Rule 2: a step begins or ends.
    pub(crate) fn advance(&self) {
        // Relaxed load: only this thread writes. Release: a watchdog that reads the new counter
        // also sees the effects of the finished step.
        self.step.store(self.step.load(Relaxed).wrapping_add(1), Release);
        // Release: pairs with the fence in `read_in_step`. A watchdog that sees a later write of
        // this thread also sees this counter.
        fence(Release);
    }

    /// The step counter: odd during a step.
    pub(crate) fn step(&self) -> u32 {
        // Acquire: pairs with `advance`.
        self.step.load(Acquire)
    }

    /// Reads something that belongs to a step. Returns `None` if that step has ended by now, since
    /// the value may then belong to a later step.
    pub(crate) fn read_in_step<T>(&self, step: u32, read: impl FnOnce() -> T) -> Option<T> {
        let found = read();
        // Acquire: pairs with the fence in `advance`.
        fence(Acquire);
        // Relaxed: the fence orders it.
        let is_same_step = self.step.load(Relaxed) == step;
        is_same_step.then_some(found)
    }

    /// Rule 1: calls a function in which this thread sleeps.
    pub(crate) fn while_asleep(&self, sleep: impl FnOnce()) {
        // Relaxed: a watchdog that does not see this store yet checks once more than necessary.
        self.is_awake.store(false, Relaxed);
        sleep();
        // Relaxed: the fence orders it.
        self.is_awake.store(true, Relaxed);
        // SeqCst: pairs with the fence in `prepare_park`.
        fence(SeqCst);
        // Relaxed: as above.
        if self.wake_flag.is_asleep.load(Relaxed) {
            self.wake_flag.parker.unpark();
        }
    }

    /// The thread exits; there is nothing left to monitor.
    pub(crate) fn thread_exited(&self) {
        // Relaxed: as in `while_asleep`.
        self.is_awake.store(false, Relaxed);
    }

    pub(crate) fn is_awake(&self) -> bool {
        // Relaxed: where the order matters, the fences provide it.
        self.is_awake.load(Relaxed)
    }
}

impl WakeFlag {
    pub(crate) fn new() -> Self {
        Self {
            parker: Parker::new(),
            is_asleep: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Where the watchdog parks, and where other threads unpark it.
    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }

    /// The watchdog is about to check the heartbeats.
    pub(crate) fn mark_awake(&self) {
        // Relaxed: a pinned thread that still sees "asleep" unparks once more than necessary.
        self.is_asleep.store(false, Relaxed);
    }

    /// Rule 4: whether the watchdog may park without a timeout.
    pub(crate) fn prepare_park(&self, is_any_awake: impl Fn() -> bool) -> bool {
        if is_any_awake() {
            return false;
        }
        // Relaxed: the fence orders it.
        self.is_asleep.store(true, Relaxed);
        // SeqCst: pairs with the fence in `while_asleep`.
        fence(SeqCst);
        !is_any_awake()
    }

    /// Signals the watchdog to stop.
    pub(crate) fn stop(&self) {
        // Release: pairs with `is_stopped`.
        self.is_stopped.store(true, Release);
        self.parker.unpark();
    }

    /// Whether the watchdog was signalled to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with `stop`.
        self.is_stopped.load(Acquire)
    }
}
