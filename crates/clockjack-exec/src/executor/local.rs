//! The executor on one thread: for microcontrollers, tests and simulations.
//!
//! Every task that becomes ready goes into one queue, to which other threads and interrupts may
//! push. The thread that owns the executor takes tasks from the queue and polls one after the
//! other, in the order in which they became ready, or, if the toolbox has a seed other than zero,
//! in an order drawn from that seed: the same seed gives the same order. The order inside one
//! mailbox never changes.
#![expect(unsafe_code, reason = "promises that what it runs stays on its thread")]

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    ptr,
    task::{Context, Waker},
    time::Duration,
};

use clockjack_sync::{mpsc::Pop, primitive::hint};
use clockjack_time::{ClockKind, Resolution, Tick};

use crate::{
    command::Commands,
    error::{StartError, SubmitError},
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    exit::PanicPayload,
    handle::Handle,
    limits::Limits,
    payload::Payloads,
    process::Process,
    process::process_ref::ProcessRef,
    task::Runnable,
    task::join::JoinHandle,
    task::live_task::LiveTask,
    timer::action::DeferredActions,
    toolbox::{ExecutorToolbox, Toolbox},
    worker::{WorkerLocal, mix},
};

/// How many timers fire before the tasks that they woke are polled.
const TIMERS_PER_TURN: usize = 256;

/// The capacity of the ready queue that is kept when it is empty.
const READY_KEPT: usize = 4096;

/// How many runnables are taken from the injector at a time.
const BATCH: usize = 64;

/// An executor on the thread that created it; processes and futures need not be `Send`.
///
/// # Examples
///
/// ```
/// # use clockjack_exec::{Commands, Limits, LocalExecutor, Toolbox};
/// # use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, TickDriver};
/// # struct Bench(ManualClock, ManualDriver);
/// # impl Toolbox for Bench {
/// #     fn clock(&self) -> &dyn MonotonicClock { &self.0 }
/// #     fn driver(&self) -> &dyn TickDriver { &self.1 }
/// # }
/// # let bench = Bench(ManualClock::new(Resolution::MILLI), ManualDriver::new(Resolution::MILLI));
/// use std::{cell::Cell, rc::Rc};
///
/// let mut executor = LocalExecutor::new(bench, Limits::SMALL, Commands::new())?;
/// let count = Rc::new(Cell::new(0));
/// for _ in 0..3 {
///     let count = Rc::clone(&count);
///     drop(executor.spawn_future(async move { count.set(count.get() + 1) }));
/// }
/// assert_eq!(executor.run_until_idle(), 3);
/// assert_eq!(count.get(), 3);
/// # Ok::<(), clockjack_exec::StartError>(())
/// ```
pub struct LocalExecutor {
    executor: ExecutorRef,
    ready: VecDeque<Runnable>,
    deferred: DeferredActions,
    random: u64,
    is_seeded: bool,
    local_shard: u32,
    /// The last poll of the timers ended by its budget, perhaps before anything fired.
    has_more_due: bool,
    /// When the clock was last read, in nanoseconds.
    clock_read_at: u64,
    /// Polls that have begun and not returned. Between two calls: those that ended by a panic which
    /// the toolbox did not catch.
    n_unfinished: usize,
    /// Not `Send`: neither is what it runs.
    _here: PhantomData<*const ()>,
}

/// What one [turn](LocalExecutor::turn) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTurn {
    /// Tasks that were polled.
    pub steps: usize,
    /// Timers that fired.
    pub fired: usize,
    /// When the next timer is due, if no task becomes ready before.
    pub next_wake: Option<Tick>,
}

/// The result of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct LocalReport {
    /// How many tasks ended by themselves after they were asked to.
    pub completed: usize,
    /// Those that had to be terminated.
    pub stragglers: Vec<LiveTask>,
}

impl LocalExecutor {
    /// An executor on this platform.
    ///
    /// # Errors
    ///
    /// If two handlers have the same number.
    pub fn new(
        toolbox: impl Toolbox + Send + 'static,
        limits: Limits,
        commands: Commands,
    ) -> Result<Self, StartError> {
        Self::on_node(0, toolbox, limits, commands)
    }

    /// As [`new`](Self::new), for one of several executors whose processes know each other: `node`
    /// tells their pids apart.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn on_node(
        node: u32,
        toolbox: impl Toolbox + Send + 'static,
        limits: Limits,
        commands: Commands,
    ) -> Result<Self, StartError> {
        let resolution = toolbox.clock().resolution();
        let seed = toolbox.seed();
        let toolbox = Box::new(OneThread { toolbox, resolution });
        let config = ExecutorConfig {
            workers: 0,
            node,
            limits,
            resolution,
            tolerance_ticks: 1,
            quiet_polls_max: 1,
        };
        let executor = ExecutorShared::new(toolbox, &config, commands)?;
        let local_shard = executor.shards.attach(0);
        Ok(Self {
            executor,
            ready: VecDeque::new(),
            deferred: DeferredActions::default(),
            random: mix(seed),
            is_seeded: seed != 0,
            local_shard,
            has_more_due: false,
            clock_read_at: 0,
            n_unfinished: 0,
            _here: PhantomData,
        })
    }

    /// A handle for other threads: what it starts must be `Send`.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(self.executor.clone())
    }

    /// Runs a future.
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: only the thread of `self` runs this executor, and that is the current thread.
        unsafe { ExecutorShared::spawn(&self.executor, future, None) }
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// Returns the process to the caller: if its `init` fails, if there is no room, or after the
    /// shutdown.
    pub fn submit<P: Process>(&self, process: P) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        self.submit_method(process, "", Payloads::new())
    }

    /// Starts a process by one of its methods, with input for it.
    ///
    /// # Errors
    ///
    /// As [`submit`](Self::submit).
    pub fn submit_method<P: Process>(
        &self,
        process: P,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        // SAFETY: only the thread of `self` runs this executor, and that is the current thread.
        unsafe { ExecutorShared::submit(&self.executor, process, method, input) }
    }

    /// Polls one task, if one is ready; fires no timers.
    pub fn step_one(&mut self) -> bool {
        self.collect();
        let Some(runnable) = self.choose() else { return false };
        self.run(runnable);
        true
    }

    /// Fires due timers and polls ready tasks, until there are none; returns the number of polls.
    ///
    /// It does not return while a task is always ready; use [`turn`](Self::turn) if that may
    /// happen.
    pub fn run_until_idle(&mut self) -> usize {
        let mut steps = 0;
        loop {
            let turn = self.turn();
            steps += turn.steps;
            if turn.steps == 0 && turn.fired == 0 && !self.has_more_due {
                return steps;
            }
        }
    }

    /// Fires due timers, and polls nothing; returns the number of timers that fired.
    pub fn fire_due(&mut self) -> usize {
        self.poll_timers()
    }

    /// Fires due timers, then polls each task once that is ready now.
    pub fn turn(&mut self) -> LocalTurn {
        let fired = self.poll_timers();
        self.collect();
        let n_ready = self.ready.len();
        let mut steps = 0;
        while steps < n_ready {
            let Some(runnable) = self.choose() else { break };
            self.run(runnable);
            steps += 1;
        }
        LocalTurn { steps, fired, next_wake: self.next_wake() }
    }

    /// Polls at most `max` tasks, including those that become ready in the meantime; fires no
    /// timers. It returns early after a task that had more to do than one poll allows. Returns the
    /// number of polls.
    pub fn step_many(&mut self, max: usize) -> usize {
        for steps in 0..max {
            if self.ready.is_empty() {
                self.collect();
            }
            let Some(runnable) = self.choose() else { return steps };
            if self.run(runnable) {
                return steps + 1;
            }
        }
        max
    }

    /// Polls a task; returns whether it had more to do than one poll allows.
    fn run(&mut self, runnable: Runnable) -> bool {
        self.n_unfinished += 1;
        runnable.begin_poll(self.clock_read_at);
        let is_again = self.executor.poll_task(runnable);
        self.n_unfinished -= 1;
        self.executor.single_thread.count_step();
        is_again
    }

    /// When the next timer is due.
    #[must_use]
    pub fn next_wake(&self) -> Option<Tick> {
        self.executor.shards.next_wake(0)
    }

    /// Whether a task is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.executor.injector.is_empty()
    }

    /// How many tasks are alive.
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.executor.live_len()
    }

    /// Runs until a future has its output, and parks when there is nothing to do.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = core::pin::pin!(future);
        let waker = crate::executor::unparker::waker(&self.executor);
        let mut cx = Context::from_waker(&waker);
        loop {
            if let core::task::Poll::Ready(output) = Pin::as_mut(&mut future).poll(&mut cx) {
                return output;
            }
            let turn = self.turn();
            if turn.steps == 0 && turn.fired == 0 && !self.is_ready() && !self.has_more_due {
                self.park(turn.next_wake);
            }
        }
    }

    /// A waker that unparks the executor's thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        crate::executor::unparker::waker(&self.executor)
    }

    /// Asks every task to stop, runs until all have stopped or the time is over, and then
    /// terminates the rest.
    pub fn shutdown(mut self, timeout: Duration) -> LocalReport {
        let until = self.executor.toolbox().deadline_after(timeout);
        let before = self.live_len();
        self.executor.begin_shutdown();
        while self.live_len() > 0 {
            let turn = self.turn();
            let toolbox = self.executor.toolbox();
            if toolbox.tick_of(toolbox.nanos()) >= until {
                break;
            }
            if turn.steps == 0 && turn.fired == 0 && !self.is_ready() && !self.has_more_due {
                let wake = turn.next_wake.map_or(until, |wake| wake.min(until));
                self.park(Some(wake));
            }
        }
        let mut report = LocalReport::default();
        self.executor.terminate_all(|alive| report.stragglers.push(alive));
        report.completed = before.saturating_sub(report.stragglers.len());
        report
    }

    fn park(&self, until: Option<Tick>) {
        self.executor.single_thread.count_park();
        self.executor.toolbox().park(0, until);
    }

    /// Takes the tasks that have become ready.
    fn collect(&mut self) {
        if self.ready.is_empty() && self.ready.capacity() > READY_KEPT {
            self.ready.shrink_to(READY_KEPT);
        }
        loop {
            match self.executor.injector.take_batch(BATCH) {
                Pop::Item(batch) => self.ready.extend(batch),
                Pop::Empty => return,
                Pop::Retry => {
                    // The pusher may be one that this thread has preempted.
                    if self.ready.is_empty() {
                        clockjack_sync::backoff::wait(1);
                    }
                    return;
                }
            }
        }
    }

    /// Chooses the next ready task.
    fn choose(&mut self) -> Option<Runnable> {
        // An empty queue draws no random number: that would change the run.
        if !self.is_seeded || self.ready.is_empty() {
            return self.ready.pop_front();
        }
        self.random = mix(self.random);
        let n = self.ready.len() as u64;
        let at = usize::try_from(((self.random >> 32) * n) >> 32).unwrap_or(0);
        self.ready.swap_remove_back(at)
    }

    fn poll_timers(&mut self) -> usize {
        let toolbox = self.executor.toolbox();
        self.clock_read_at = toolbox.nanos();
        let now = toolbox.tick_of(self.clock_read_at);
        let deferred = &mut self.deferred;
        let mut latest = 0;
        let polled = self.executor.shards.poll(self.local_shard, now, TIMERS_PER_TURN, |timer| {
            latest = latest.max(now.get().saturating_sub(timer.deadline.get()));
            timer.value.fire(&self.executor, now, deferred);
        });
        if polled.fired > 0 {
            self.executor.single_thread.count_fired(polled.fired, latest);
        }
        deferred.finish(&self.executor);
        self.executor.drop_stale_values(self.local_shard);
        if polled.is_closed {
            self.executor.close_timers();
        }
        self.has_more_due = polled.more;
        polled.fired
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        // Everything is dropped here, on its own thread. A task that is terminated may wake or
        // start others.
        self.executor.begin_shutdown();
        self.executor.terminate_all(|_| {});
        self.executor.close_timers();
        // A task whose poll a panic left unfinished never ends. One that another thread is just
        // waking may look the same, but there are not more lost tasks than unfinished polls.
        let n_lost = self.executor.running_len().min(self.n_unfinished);
        while self.live_len() > n_lost {
            self.collect();
            match self.ready.pop_front() {
                Some(runnable) => self.executor.terminate_queued_task(runnable),
                // Another thread has woken the task, and is about to enqueue it.
                None => hint::spin_loop(),
            }
        }
        self.executor.close_run_queue_here();
    }
}

impl fmt::Debug for LocalExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalExecutor").field("executor", &*self.executor).finish_non_exhaustive()
    }
}

/// Adapts a toolbox for one thread to the wider contract.
struct OneThread<B> {
    toolbox: B,
    resolution: Resolution,
}

/// The payload for a panic that a toolbox has caught and not returned.
const KEPT: &str = "a panic that the toolbox did not return";

// SAFETY: (1) there is never a current worker: everything goes through the injector. (2) Whatever
// the toolbox does, the closure is called once; it is not `Send`, so it is called on this thread.
unsafe impl<B: Toolbox + Send + 'static> ExecutorToolbox for OneThread<B> {
    fn nanos(&self) -> u64 {
        self.toolbox.clock_nanos()
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / u64::from(self.resolution.nanos().get()))
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let now = self.toolbox.clock().now();
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let ticks = nanos.div_ceil(u64::from(self.resolution.nanos().get()));
        // A real clock is somewhere inside its current tick: add one tick. A clock that is advanced
        // by hand is exactly at the edge of a tick.
        let is_exact = self.toolbox.clock().kind() == ClockKind::Deterministic || ticks == 0;
        Tick::new(now.ticks.saturating_add(ticks).saturating_add(u64::from(!is_exact)))
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        let (mut is_called, mut is_done) = (false, false);
        let caught = self.toolbox.catch_unwind(&mut || {
            if !core::mem::replace(&mut is_called, true) {
                call();
                is_done = true;
            }
        });
        assert!(is_called, "the toolbox did not call the closure");
        match caught {
            Ok(()) if !is_done => Err(PanicPayload::new(Box::new(KEPT))),
            caught => caught,
        }
    }

    fn worker_local(&self) -> *const WorkerLocal {
        ptr::null()
    }

    fn enter(&self, _local: *const WorkerLocal) -> *const WorkerLocal {
        ptr::null()
    }

    fn park(&self, _seat: usize, until: Option<Tick>) {
        self.toolbox.park(until);
    }

    fn unpark(&self, _seat: usize) {
        self.toolbox.unpark();
    }

    fn unpark_watchdog(&self) {}

    fn yield_now(&self) {}

    fn shutdown_progressed(&self) {}

    fn seed(&self) -> u64 {
        self.toolbox.seed()
    }
}
