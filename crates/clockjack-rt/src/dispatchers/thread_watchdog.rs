//! A watchdog thread that finds pinned threads whose current step takes too long.
//!
//! The workers of a pool have the pool's own watchdog for this. All pinned threads of a runtime
//! share one watchdog thread, which is started together with the first pinned thread.
//!
//! Roles: the *watchdog* thread; one *heartbeat* per pinned thread, which only that thread writes.
//!
//! 1. `is_awake` of a heartbeat is true except while its thread is parked. When the pinned thread
//!    wakes, it sets `is_awake`, and then reads whether the watchdog is asleep: if so, it unparks
//!    the watchdog.
//! 2. The step counter of a heartbeat is incremented where a step begins and where it ends, so the
//!    counter is odd during a step (as in a seqlock). Nested steps do not count, and neither do
//!    calls by other threads.
//! 3. While at least one heartbeat is awake, the watchdog checks all heartbeats periodically. If
//!    it finds the same odd counter for as long as `stuck_after`, it reports the step once, with
//!    the process that runs there. It reads the process first and then the counter again: if the
//!    counter has changed, the step has ended and nothing is reported.
//! 4. If no heartbeat is awake, the watchdog sets `is_asleep`, checks the heartbeats once more, and
//!    parks without a timeout. A thread that adds a heartbeat unparks it.
//!
//! *Why no step is missed* (Dekker's fence pattern): the pinned thread of rule 1 and the watchdog
//! of rule 4 each write their own flag, execute a sequentially consistent fence, and read the
//! other's flag. So at least one of the two sees the other's write. An unpark before the park
//! leaves a token, which ends the park at once.
//!
//! *Why no wrong process is reported*: after it changes the counter, the pinned thread executes a
//! release fence before its later writes; the watchdog executes an acquire fence before it reads
//! the counter again. So a watchdog that has read the process of a later step also sees the later
//! counter.
//!
//! *Cost*: two stores per step. Only the watchdog reads the clock, and no thread wakes up while
//! all threads sleep.

mod heartbeat;

use core::{cell::Cell, mem, panic::AssertUnwindSafe, ptr, time::Duration};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
};

use clockjack_exec::{Handle, Pid, StartError, State, StuckWorker};

pub(super) use self::heartbeat::Heartbeat;
use self::heartbeat::WakeFlag;
use super::{JOIN_TIMEOUT, StuckReporter};
use crate::{
    OsInstant, PoolConfig, blocking,
    pool::forced_stop_until,
    thread::{self, ThreadConfig},
};

/// The minimum and the maximum of the check interval while a pinned thread is awake.
const CHECK_INTERVAL: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

thread_local! {
    /// The heartbeat of this thread; only compared, never dereferenced.
    static OWN_HEARTBEAT: Cell<*const Heartbeat> = const { Cell::new(ptr::null()) };
}

thread_local! {
    /// Whether this thread is in a step that is counted.
    static IS_STEPPING: Cell<bool> = const { Cell::new(false) };
}

impl Heartbeat {
    /// Declares that this heartbeat belongs to the current thread.
    pub(super) fn bind_to_current_thread(&self) {
        OWN_HEARTBEAT.set(self);
    }

    /// Rule 2: runs one step.
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

/// A step in progress; the drop ends it, also when the step panics.
struct StepGuard<'p>(&'p Heartbeat);

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        self.0.advance();
        IS_STEPPING.set(false);
    }
}

/// All heartbeats, each with the executor of its thread.
type Heartbeats = Mutex<Vec<(Arc<Heartbeat>, Handle)>>;

/// The handle of the watchdog and its thread.
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
            checked: Vec::new(),
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

    /// Creates the heartbeat of a thread that is about to start.
    pub(super) fn new_heartbeat(&self) -> Arc<Heartbeat> {
        Arc::new(Heartbeat::new(Arc::clone(&self.wake_flag)))
    }

    /// Monitors a heartbeat from now on.
    pub(super) fn add(&self, heartbeat: Arc<Heartbeat>, handle: Handle) {
        lock(&self.heartbeats).push((heartbeat, handle));
        self.wake_flag.parker().unpark();
    }

    /// Stops monitoring a heartbeat whose thread has finished.
    pub(super) fn remove(&self, heartbeat: &Arc<Heartbeat>) {
        lock(&self.heartbeats).retain(|(other, _)| !Arc::ptr_eq(other, heartbeat));
    }

    /// Signals the watchdog to stop.
    pub(super) fn stop(&self) {
        self.wake_flag.stop();
        lock(&self.heartbeats).clear();
    }

    /// Joins the watchdog, unless a report callback does not return. `until` is the deadline of the
    /// shutdown.
    pub(super) fn join(self, until: OsInstant) {
        let rest = forced_stop_until(until).saturating_since(OsInstant::now());
        let left = self.exited.recv_timeout(rest.min(JOIN_TIMEOUT));
        if left == Err(mpsc::RecvTimeoutError::Disconnected) {
            thread::join_or_detach(self.join);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under this lock leaves the value in an inconsistent state when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the watchdog's thread.
struct WatchLoop {
    wake_flag: Arc<WakeFlag>,
    heartbeats: Arc<Heartbeats>,
    /// The heartbeats of one check; empty between checks. Kept, so that a check allocates nothing.
    checked: Vec<(Arc<Heartbeat>, Handle)>,
    /// One per heartbeat that was checked and still exists.
    observed: Vec<Observation>,
    stuck_after: Duration,
    on_stuck: Option<fn(StuckWorker)>,
    stuck_reporter: Arc<StuckReporter>,
}

/// The last observation of a heartbeat.
struct Observation {
    heartbeat: Arc<Heartbeat>,
    step: u32,
    since: OsInstant,
    is_reported: bool,
}

impl WatchLoop {
    /// Checks all heartbeats; returns the time of the next check, or `None` to sleep until an
    /// unpark.
    fn check_all(&mut self) -> Option<OsInstant> {
        self.wake_flag.mark_awake();
        let now = OsInstant::now();
        let mut heartbeats = mem::take(&mut self.checked);
        heartbeats.extend(lock(&self.heartbeats).iter().cloned());
        let is_there = |one: &Observation| {
            heartbeats.iter().any(|(heartbeat, _)| Arc::ptr_eq(heartbeat, &one.heartbeat))
        };
        self.observed.retain(is_there);
        for (index, (heartbeat, handle)) in heartbeats.iter().enumerate() {
            self.check(index, heartbeat, handle, now);
        }
        let is_parked = self
            .wake_flag
            .prepare_park(|| heartbeats.iter().any(|(heartbeat, _)| heartbeat.is_awake()));
        // A thread that has ended must not be kept by its handle.
        heartbeats.clear();
        self.checked = heartbeats;
        if is_parked {
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
        if step != observed.step {
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
            // A callback of the user panicked; the step is already marked as reported.
            blocking::drop_panic_payload(payload);
        }
    }
}

/// The process that a single-threaded executor runs at this moment.
fn running_pid(handle: &Handle) -> Option<Pid> {
    let mut found = None;
    handle.executor().live_tasks(|alive| {
        if alive.state == State::Running {
            found = Some(alive.pid);
        }
    });
    found
}
