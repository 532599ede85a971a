//! A thread with its own executor: for actors that are not `Send`, or for one task.
//!
//! Roles: the *thread*, which creates the executor, drives it and drops it, so that no part of the
//! executor leaves the thread; the *owner*, which stops the thread.
//!
//! 1. The thread drives the executor until `stop` is set, then shuts the executor down with the
//!    deadline in `until`, and drops it.
//! 2. The owner writes `until`, sets `stop`, and unparks the thread. The thread reads `stop` before
//!    each poll and parks afterwards: an unpark in between leaves a token, so the thread reads
//!    `stop` again.
//! 3. The thread holds one end of the channel `exited` as long as it runs, and last sends the
//!    report of its executor. The owner waits for the report or for the channel to disconnect, and
//!    abandons the thread if neither happens in time.
//! 4. The thread applies its scheduling policy before it creates the executor: so no task runs
//!    there without the policy, and the results of the policy are part of the start.

use core::{
    future::poll_fn,
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    task::Poll,
};
use std::{
    borrow::Cow,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use clockjack_actor::system::{PolicyAnswers, ThreadPolicy};
use clockjack_exec::{
    Commands, Handle, LocalExecutor, LocalReport, PanicPayload, StartError, Toolbox,
};
use clockjack_time::{ManualDriver, MonotonicClock, Tick, TickDriver};

use super::thread_watchdog::Heartbeat;
use crate::{
    ExecutorReport, OsClock, OsInstant, Parker, PoolConfig, Straggler, catch_panic,
    pool::{current::Entered, forced_stop_until, host},
    thread::{self, ThreadConfig, policy},
    tokio_integration::reactor,
};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct PinnedThread {
    handle: Handle,
    shared: Arc<Shared>,
    exited: mpsc::Receiver<LocalReport>,
    join: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    clock: OsClock,
    /// The executor has no scheduler, so nothing ever advances this driver.
    driver: ManualDriver,
    parker: Parker,
    seed: u64,
    stop: AtomicBool,
    /// The shutdown deadline, in nanoseconds of [`OsInstant`].
    until: AtomicU64,
    heartbeat: Arc<Heartbeat>,
}

/// The platform services that the thread gives to its executor.
struct PinnedToolbox(Arc<Shared>);

impl Toolbox for PinnedToolbox {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.0.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.0.driver
    }

    fn park(&self, until: Option<Tick>) {
        let until = until.map(|tick| self.0.clock.instant_of(tick));
        self.0.heartbeat.while_asleep(|| _ = self.0.parker.park(until));
    }

    fn unpark(&self) {
        self.0.parker.unpark();
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.0.heartbeat.in_step(|| catch_panic(call))
    }
}

impl PinnedThread {
    /// Starts the thread, and waits until the executor exists.
    pub(super) fn start(
        node: u32,
        name: &str,
        thread_policy: &ThreadPolicy,
        config: &PoolConfig,
        clock: OsClock,
        reactor: reactor::ReactorHandle,
        heartbeat: Arc<Heartbeat>,
    ) -> Result<(Self, PolicyAnswers), StartError> {
        let shared = Arc::new(Shared {
            clock,
            driver: ManualDriver::new(clock.resolution()),
            parker: Parker::new(),
            seed: config.seed,
            stop: AtomicBool::new(false),
            until: AtomicU64::new(0),
            heartbeat,
        });
        let (report, reported) = mpsc::channel();
        let (running, exited) = mpsc::channel();
        let thread_config =
            ThreadConfig { name: Cow::Owned(name.into()), stack_size: config.stack_size };
        let (toolbox, limits) = (PinnedToolbox(Arc::clone(&shared)), config.limits);
        let (own_shared, thread_policy) = (Arc::clone(&shared), thread_policy.clone());
        thread::check_can_wait().map_err(|refused| StartError::thread(&refused))?;
        let started = thread::start(&thread_config, move || {
            // Moved here, so that the channel disconnects last, after the executor is dropped.
            let running = running;
            thread::sleep_precisely();
            let answers = policy::apply(&thread_policy);
            let executor = match LocalExecutor::on_node(node, toolbox, limits, Commands::new()) {
                Ok(executor) => executor,
                Err(refused) => return drop(report.send(Err(refused))),
            };
            host::mark_pinned();
            own_shared.heartbeat.bind_to_current_thread();
            let _reactor = reactor.enter();
            let _entered = Entered::enter(executor.handle(), None);
            drop(report.send(Ok((executor.handle(), answers))));
            let report = drive(executor, &own_shared);
            own_shared.heartbeat.thread_exited();
            drop(running.send(report));
        });
        let join = started.map_err(|refused| StartError::thread(&refused))?;
        let (handle, answers) = reported.recv().map_err(|_| StartError::stopped())??;
        Ok((Self { handle, shared, exited, join }, answers))
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Signals the thread to stop, with a shutdown deadline.
    pub(super) fn stop(&self, until: OsInstant) {
        self.shared.stop(until);
    }

    /// Whether the thread was signalled to stop.
    pub(super) fn is_stopping(&self) -> bool {
        // Relaxed: the flag alone is read.
        self.shared.stop.load(Relaxed)
    }

    /// A guard whose drop stops the thread at once.
    pub(super) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(Arc::clone(&self.shared))
    }

    /// Whether the thread has finished.
    pub(super) fn is_finished(&self) -> bool {
        self.join.is_finished()
    }

    /// The heartbeat that the watchdog monitors.
    pub(super) fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.shared.heartbeat
    }

    /// Joins the thread, or abandons it; reports which.
    pub(super) fn join(self, until: OsInstant) -> ExecutorReport {
        let name = self.join.thread().name().unwrap_or_default().to_owned();
        let mut report = ExecutorReport { name, ..ExecutorReport::default() };
        let rest = forced_stop_until(until).saturating_since(OsInstant::now());
        match self.exited.recv_timeout(rest) {
            Ok(LocalReport { completed, stragglers }) => {
                report.completed = completed;
                report.stragglers = stragglers.into_iter().map(Straggler::from).collect();
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => {
                // A thread that is asleep was woken, and only waits for a CPU.
                report.threads_left = usize::from(self.shared.heartbeat.is_awake());
                return report;
            }
        }
        thread::join_or_detach(self.join);
        report
    }
}

impl Shared {
    /// Rule 2.
    fn stop(&self, until: OsInstant) {
        // Relaxed: the flag below publishes it.
        self.until.store(until.as_nanos(), Relaxed);
        // Release: pairs with the load in `drive`.
        self.stop.store(true, Release);
        self.parker.unpark();
    }
}

/// Stops a thread when it is dropped, without waiting.
#[derive(Debug)]
pub(super) struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop(OsInstant::now());
    }
}

/// Rule 1.
fn drive(mut executor: LocalExecutor, shared: &Shared) -> LocalReport {
    executor.block_on(poll_fn(|_| {
        // Acquire: pairs with `stop`.
        if shared.stop.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }));
    // Relaxed: ordered by the load of the flag.
    let until = OsInstant::from_nanos(shared.until.load(Relaxed));
    executor.shutdown(until.saturating_since(OsInstant::now()))
}
