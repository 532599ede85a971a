//! Looks at pinned threads from outside: which of them is in one step for long.
//!
//! A pool has its metronome for that. All pinned threads of a runtime share one thread, the
//! *lookout*, which is started with the first of them.
//!
//! Roles: the *lookout*; the *posts*, one for each pinned thread, which that thread alone writes.
//!
//! 1. A post is awake but while its thread is parked. When its thread wakes, the post says so, and
//!    then looks whether the lookout is asleep: if so, it calls.
//! 2. A post counts up where a step begins, and where it ends: the count is odd in between. Guards
//!    within a step do not count, nor do those of other threads.
//! 3. The lookout looks at all posts time and again, as long as one is awake. If it finds the same
//!    odd count for as long as `stuck_after`, it reports that, once, with the process that is in a
//!    turn there. It finds that first and looks at the count again: if that is another by now, the
//!    step is over, and nothing is reported.
//! 4. If no post is awake, the lookout says that it is asleep, looks at them once more, and sleeps
//!    until it is called. Who adds a post calls.
//!
//! *Why no step is overlooked*: between the write of its own word and the look at the other's, the
//! post of rule 1 and the lookout of rule 4 have a fence that is sequentially consistent. So one of
//! the two sees the other; a call that comes before the sleep ends it.
//!
//! *Why no other process is named*: what a thread writes after a count comes behind a fence that
//! releases, and the second look at the count comes behind one that acquires. So who has found a
//! process of a later turn finds a later count, too.
//!
//! *What it costs*: two stores a step. Nobody but the lookout reads the clock, and nobody wakes up
//! while all sleep.

mod heartbeat;

use core::{cell::Cell, panic::AssertUnwindSafe, ptr, time::Duration};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::{Handle, Pid, StartError, State, StuckWorker};
use clockjack_sync::mutant;

pub(super) use self::heartbeat::Heartbeat;
use self::heartbeat::WakeFlag;
use super::{JOIN_TIMEOUT, StuckReporter};
use crate::{
    OsInstant, PoolConfig, blocking,
    thread::{self, ThreadConfig},
};

/// How often the lookout looks, at most and at least, as long as there is something to see.
const CHECK_INTERVAL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

thread_local! {
    /// The post of this thread; compared, and never followed.
    static OWN_HEARTBEAT: Cell<*const Heartbeat> = const { Cell::new(ptr::null()) };
}

thread_local! {
    /// Whether this thread is in a step that counts.
    static IS_STEPPING: Cell<bool> = const { Cell::new(false) };
}

impl Heartbeat {
    /// This thread is the one whose post this is.
    pub(super) fn bind_to_current_thread(&self) {
        OWN_HEARTBEAT.set(self);
    }

    /// Rule 2.
    pub(super) fn in_step<T>(&self, step: impl FnOnce() -> T) -> T {
        if !ptr::eq(OWN_HEARTBEAT.get(), self) || IS_STEPPING.replace(true) {
            return step();
        }
        let guard = StepGuard(self);
        self.advance();
        let output = step();
        drop(guard);
        output
    }
}

/// A step that is under way; ended by the drop, also where it panics.
struct StepGuard<'p>(&'p Heartbeat);

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.0.advance();
        IS_STEPPING.set(false);
    }
}

/// All posts, each with the executor of its thread.
type Heartbeats = Mutex<Vec<(Arc<Heartbeat>, Handle)>>;

/// The lookout and its thread.
#[derive(Debug)]
pub(super) struct ThreadWatchdog {
    wake_flag: Arc<WakeFlag>,
    heartbeats: Arc<Heartbeats>,
    exited: mpsc::Receiver<()>,
    join: JoinHandle<()>,
}

impl ThreadWatchdog {
    pub(super) fn start(
        config: &PoolConfig,
        stuck_reporter: Arc<StuckReporter>,
    ) -> Result<Self, StartError> {
        let (wake_flag, heartbeats) = (Arc::new(WakeFlag::new()), Arc::<Heartbeats>::default());
        let (running, exited) = mpsc::channel::<()>();
        let mut watch_loop = WatchLoop {
            wake_flag: Arc::clone(&wake_flag),
            heartbeats: Arc::clone(&heartbeats),
            observed: Vec::new(),
            stuck_after: config.stuck_after,
            on_stuck: config.on_stuck,
            stuck_reporter,
        };
        let thread_config =
            ThreadConfig { name: "cj-thread-watch".into(), ..ThreadConfig::DEFAULT };
        let started = thread::start(&thread_config, move || {
            let _running = running;
            while !watch_loop.wake_flag.is_stopped() {
                let until = watch_loop.check_all();
                watch_loop.wake_flag.parker().park(until);
            }
        });
        let join = started.map_err(|refused| StartError::thread(&refused))?;
        Ok(Self { wake_flag, heartbeats, exited, join })
    }

    /// A post for a thread that is about to be started.
    pub(super) fn new_heartbeat(&self) -> Arc<Heartbeat> {
        Arc::new(Heartbeat::new(Arc::clone(&self.wake_flag)))
    }

    /// Looks at a post from now on.
    pub(super) fn add(&self, heartbeat: Arc<Heartbeat>, handle: Handle) {
        lock(&self.heartbeats).push((heartbeat, handle));
        self.wake_flag.parker().unpark();
    }

    /// Looks at it no more: its thread has ended.
    pub(super) fn remove(&self, heartbeat: &Arc<Heartbeat>) {
        lock(&self.heartbeats).retain(|(other, _)| !Arc::ptr_eq(other, heartbeat));
    }

    /// Tells the lookout to end.
    pub(super) fn stop(&self) {
        self.wake_flag.stop();
        lock(&self.heartbeats).clear();
    }

    /// Waits for its end, unless what it tells of does not come back.
    pub(super) fn join(self) {
        let left = self.exited.recv_timeout(JOIN_TIMEOUT);
        if left == Err(mpsc::RecvTimeoutError::Disconnected) {
            // What it runs is guarded.
            drop(self.join.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done by a panic under this lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the lookout's thread has.
struct WatchLoop {
    wake_flag: Arc<WakeFlag>,
    heartbeats: Arc<Heartbeats>,
    /// One for each post that was looked at and is there.
    observed: Vec<Observation>,
    stuck_after: Duration,
    on_stuck: Option<fn(StuckWorker)>,
    stuck_reporter: Arc<StuckReporter>,
}

/// What was found at a post.
struct Observation {
    heartbeat: Arc<Heartbeat>,
    step: u32,
    since: OsInstant,
    is_reported: bool,
}

impl WatchLoop {
    /// Looks at all posts; gives the time of the next look, if there is to be one.
    fn check_all(&mut self) -> Option<OsInstant> {
        self.wake_flag.mark_awake();
        let now = OsInstant::now();
        let heartbeats = lock(&self.heartbeats).clone();
        let is_there = |one: &Observation| {
            heartbeats.iter().any(|(heartbeat, _)| Arc::ptr_eq(heartbeat, &one.heartbeat))
        };
        self.observed.retain(is_there);
        for (index, (heartbeat, handle)) in heartbeats.iter().enumerate() {
            self.check(index, heartbeat, handle, now);
        }
        if self
            .wake_flag
            .prepare_park(|| heartbeats.iter().any(|(heartbeat, _)| heartbeat.is_awake()))
        {
            return None;
        }
        let every = (self.stuck_after / 4).clamp(CHECK_INTERVAL.0, CHECK_INTERVAL.1);
        Some(now.saturating_add(every))
    }

    /// Rule 3.
    fn check(&mut self, index: usize, heartbeat: &Arc<Heartbeat>, handle: &Handle, now: OsInstant) {
        let step = heartbeat.step();
        let is_between = step.is_multiple_of(2);
        let known = self.observed.iter().position(|one| Arc::ptr_eq(&one.heartbeat, heartbeat));
        let known = known.unwrap_or_else(|| {
            let heartbeat = Arc::clone(heartbeat);
            self.observed.push(Observation { heartbeat, step: 0, since: now, is_reported: false });
            self.observed.len() - 1
        });
        let observed = &mut self.observed[known];
        if step != observed.step && (is_between || !mutant!("lookout-steps-as-one")) {
            (observed.step, observed.since, observed.is_reported) = (step, now, false);
        }
        let running_for = now.saturating_since(observed.since);
        if is_between || observed.is_reported || running_for < self.stuck_after {
            return;
        }
        observed.is_reported = true;
        let Some(pid) = heartbeat.read_in_step(step, || running_pid(handle)) else { return };
        let for_nanos = u64::try_from(running_for.as_nanos()).unwrap_or(u64::MAX);
        let stuck = StuckWorker { worker: index, pid, for_nanos };
        let (stuck_reporter, on_stuck) = (&self.stuck_reporter, self.on_stuck);
        let reported = catch_unwind(AssertUnwindSafe(|| {
            stuck_reporter.report(stuck);
            if let Some(report) = on_stuck {
                report(stuck);
            }
        }));
        if let Err(payload) = reported {
            // A report of the user's; the next look goes on behind it.
            blocking::drop_panic_payload(payload);
        }
    }
}

/// The process that an executor on one thread has in a turn.
fn running_pid(handle: &Handle) -> Option<Pid> {
    let mut found = None;
    handle.engine().alive(|alive| {
        if alive.state == State::Running {
            found = Some(alive.pid);
        }
    });
    found
}
