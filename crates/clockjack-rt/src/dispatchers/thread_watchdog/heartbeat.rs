//! What a pinned thread writes for the lookout, and the bell that wakes that. The rules are those
//! of the module above.

use std::sync::Arc;

use clockjack_sync::{
    mutant,
    prim::atomic::{
        AtomicBool, AtomicU32,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

use crate::Parker;

/// What a pinned thread writes for the lookout.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    is_awake: AtomicBool,
    /// Odd while a step is under way.
    step: AtomicU32,
    wake_flag: Arc<WakeFlag>,
}

/// Where the lookout sleeps.
#[derive(Debug)]
pub(crate) struct WakeFlag {
    parker: Parker,
    is_asleep: AtomicBool,
    is_stopped: AtomicBool,
}

impl Heartbeat {
    /// The post of a thread that is awake, and in no step.
    pub(crate) fn new(wake_flag: Arc<WakeFlag>) -> Self {
        Self { is_awake: AtomicBool::new(true), step: AtomicU32::new(0), wake_flag }
    }

    /// Rule 2: a step begins or ends.
    pub(crate) fn advance(&self) {
        // Relaxed: one writer. Release: who reads that a step is over sees what became of it.
        self.step.store(self.step.load(Relaxed).wrapping_add(1), Release);
        // Release: pairs with that of `find`. Who finds something that this thread writes from now
        // on finds the count, too.
        if !mutant!("lookout-count-late") {
            fence(Release);
        }
    }

    /// Where the thread is now: odd in a step.
    pub(crate) fn step(&self) -> u32 {
        // Acquire: pairs with `count`.
        self.step.load(Acquire)
    }

    /// Looks for something that belongs to a step; none if that is over by now, and what was found
    /// may be of another.
    pub(crate) fn read_in_step<T>(&self, step: u32, read: impl FnOnce() -> T) -> Option<T> {
        let found = read();
        // Acquire: pairs with that of `count`.
        fence(Acquire);
        // Relaxed: the fence orders it.
        let is_same_step = self.step.load(Relaxed) == step || mutant!("lookout-looks-once");
        is_same_step.then_some(found)
    }

    /// Calls something that lets this thread sleep. Rule 1.
    pub(crate) fn while_asleep(&self, sleep: impl FnOnce()) {
        // Relaxed: a lookout that has not heard of it looks once more.
        self.is_awake.store(false, Relaxed);
        sleep();
        // Relaxed: the fence orders it.
        self.is_awake.store(true, Relaxed);
        // SeqCst: pairs with that of `rests`.
        if !mutant!("lookout-wakes-unfenced") {
            fence(SeqCst);
        }
        // Relaxed: as above.
        if self.wake_flag.is_asleep.load(Relaxed) && !mutant!("lookout-uncalled") {
            self.wake_flag.parker.unpark();
        }
    }

    /// The thread ends, and has nothing more to show.
    pub(crate) fn thread_exited(&self) {
        // Relaxed: as in `asleep_in`.
        self.is_awake.store(false, Relaxed);
    }

    pub(crate) fn is_awake(&self) -> bool {
        // Relaxed: the fences order it where that counts.
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

    /// Where the lookout sleeps, and is called.
    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }

    /// The lookout looks.
    pub(crate) fn mark_awake(&self) {
        // Relaxed: who takes it for asleep calls once too often.
        self.is_asleep.store(false, Relaxed);
    }

    /// Rule 4: whether the lookout is to sleep until it is called.
    pub(crate) fn prepare_park(&self, is_any_awake: impl Fn() -> bool) -> bool {
        if is_any_awake() {
            return false;
        }
        // Relaxed: the fence orders it.
        self.is_asleep.store(true, Relaxed);
        // SeqCst: pairs with that of `asleep_in`.
        fence(SeqCst);
        mutant!("lookout-rests-unseen") || !is_any_awake()
    }

    /// Tells the lookout to end.
    pub(crate) fn stop(&self) {
        // Release: pairs with its thread's look.
        self.is_stopped.store(true, Release);
        self.parker.unpark();
    }

    /// Whether the lookout was told to end.
    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with `end`.
        self.is_stopped.load(Acquire)
    }
}
