//! The executor on one thread: for microcontrollers, tests and simulations.
//!
//! Everything that becomes ready goes through one queue, which other threads and interrupts may
//! push to. The thread that owns the executor takes from it and steps one process after the other,
//! in the order in which they became ready, or, if its toolbox has a seed other than zero, in an
//! order drawn from that seed: the same seed gives the same order. The order inside one mailbox is
//! never changed.
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

use clockjack_sync::{mpsc::Pop, mutant, prim::hint};
use clockjack_time::{ClockKind, Resolution, Tick};

use crate::{
    command::Commands,
    error::{StartError, SubmitError},
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    exit::PanicPayload,
    handle::Handle,
    join::JoinHandle,
    limits::Limits,
    payload::Payloads,
    process::Process,
    process_ref::ProcessRef,
    shutdown::LiveTask,
    task::Runnable,
    timer_action::DeferredActions,
    toolbox::{ExecutorToolbox, Toolbox},
    worker::{WorkerLocal, mix},
};

/// How many timers fire between two looks at what they woke.
const TIMERS_PER_TURN: usize = 256;

/// For how many that are ready at a time room is kept.
const READY_KEPT: usize = 4096;

/// How many runnables are taken from the queue at a time.
const BATCH: usize = 64;

/// An executor on the thread that made it; processes and futures need not be `Send`.
///
/// # Examples
///
/// ```
/// # use clockjack_exec::{Commands, Limits, LocalExecutor, Toolbox};
/// # use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};
/// # struct Bench(ManualClock, ManualDriver);
/// # impl Toolbox for Bench {
/// #     fn clock(&self) -> &dyn MonotonicClock { &self.0 }
/// #     fn driver(&self) -> &dyn TickDriver { &self.1 }
/// #     fn park(&self, _until: Option<Tick>) {}
/// #     fn unpark(&self) {}
/// # }
/// # let bench = Bench(ManualClock::new(Resolution::MILLI), ManualDriver::new(Resolution::MILLI));
/// use std::{cell::Cell, rc::Rc};
///
/// let mut executor = LocalExecutor::new(bench, Limits::SMALL, Commands::new())?;
/// let count = Rc::new(Cell::new(0));
/// for _ in 0..3 {
///     let count = Rc::clone(&count);
///     drop(executor.spawn(async move { count.set(count.get() + 1) }));
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
    /// The last look at the timers ended by its budget, perhaps before anything fired.
    has_more_due: bool,
    /// Turns that have begun and not ended: afterwards, those that a panic ended past a toolbox
    /// that catches none.
    n_unended: usize,
    /// Not `Send`: neither is what it runs.
    _here: PhantomData<*const ()>,
}

/// What one turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTurn {
    /// Steps that were made.
    pub steps: usize,
    /// Timers that fired.
    pub fired: usize,
    /// When the next timer is due, if nothing is ready before.
    pub next_wake: Option<Tick>,
}

/// What became of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct LocalReport {
    /// How many processes ended by themselves, once asked.
    pub completed: usize,
    /// Those that had to be ended.
    pub stragglers: Vec<LiveTask>,
}

impl LocalExecutor {
    /// An executor on this toolbox.
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
    /// As there.
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
            n_unended: 0,
            _here: PhantomData,
        })
    }

    /// A handle for other threads: what is started by it must be `Send`.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(self.executor.clone())
    }

    /// Runs a future as a process.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: this executor is run by the thread of `self` only, which is this one.
        unsafe { ExecutorShared::spawn(&self.executor, future) }
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// The process comes back: if its `init` fails, if there is no room, or after the shutdown.
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
        // SAFETY: this executor is run by the thread of `self` only, which is this one.
        unsafe { ExecutorShared::submit(&self.executor, process, method, input) }
    }

    /// Steps one process, if one is ready; timers are not looked at.
    pub fn step_one(&mut self) -> bool {
        self.collect();
        let Some(runnable) = self.choose() else { return false };
        self.run(runnable);
        true
    }

    /// Fires what is due, then steps what is ready, until nothing is; gives the number of steps.
    ///
    /// It does not return while a process goes on and on; use [`turn`](Self::turn) where that may
    /// be.
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

    /// Fires what is due, and steps nothing; gives the number of timers that fired.
    pub fn fire_due(&mut self) -> usize {
        self.poll_timers()
    }

    /// Fires what is due, then steps each process once that is ready now.
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

    /// Steps at most `max` processes, also such as become ready meanwhile; timers are not looked
    /// at. It ends early behind one that had more to do than its turn had room for. Gives the
    /// number of steps.
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

    /// Gives a process its turn; whether it had more to do than that had room for.
    fn run(&mut self, runnable: Runnable) -> bool {
        self.n_unended += 1;
        let is_again = self.executor.poll_task(runnable);
        self.n_unended -= 1;
        self.executor.single_thread.count_step();
        is_again
    }

    /// When the next timer is due.
    #[must_use]
    pub fn next_wake(&self) -> Option<Tick> {
        self.executor.shards.next_wake(0)
    }

    /// Whether a process is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.executor.injector.is_empty()
    }

    /// How many processes are alive.
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.executor.live_len()
    }

    /// Runs until a future has its output, and parks where there is nothing to do.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = core::pin::pin!(future);
        let waker = crate::unparker::waker(&self.executor);
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

    /// A waker that ends the sleep of the executor's thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        crate::unparker::waker(&self.executor)
    }

    /// Asks everything to stop, runs until it has, or until the time is over; then ends the rest.
    pub fn shutdown(mut self, deadline: Duration) -> LocalReport {
        let until = self.executor.toolbox().deadline_after(deadline);
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

    /// Takes what has become ready.
    fn collect(&mut self) {
        if self.ready.is_empty() && self.ready.capacity() > READY_KEPT {
            self.ready.shrink_to(READY_KEPT);
        }
        while let Pop::Item(batch) = self.executor.injector.take_batch(BATCH) {
            self.ready.extend(batch);
        }
    }

    /// The next one of those that are ready.
    fn choose(&mut self) -> Option<Runnable> {
        // Looking where there is nothing draws no number: it must not change the run.
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
        let now = toolbox.tick_of(toolbox.nanos());
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
        self.has_more_due = polled.more && !mutant!("local-forgets-more-due");
        polled.fired
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        // Everything dies here, on its own thread; what is ended may wake or start something else.
        self.executor.begin_shutdown();
        self.executor.terminate_all(|_| {});
        self.executor.close_timers();
        // What a panic left in the middle of its turn never ends. One that is just being woken by
        // another thread may look the same, but there are not more than turns that did not end.
        let n_unended = if mutant!("local-woken-as-lost") { usize::MAX } else { self.n_unended };
        let n_lost = self.executor.running_len().min(n_unended);
        while self.live_len() > n_lost {
            self.collect();
            match self.ready.pop_front() {
                Some(runnable) => self.executor.terminate_queued_task(runnable),
                // Another thread has woken it, and is about to queue it.
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

/// A toolbox as a toolbox with one place.
struct OneThread<B> {
    toolbox: B,
    resolution: Resolution,
}

/// What is said of a panic that a toolbox has caught and not given.
const KEPT: &str = "a panic that the toolbox kept to itself";

// SAFETY: (1) there is never a current worker: everything goes through the injector. (2) whatever
// the toolbox does, the closure is called once; it is not `Send`, so that is on this thread.
unsafe impl<B: Toolbox + Send + 'static> ExecutorToolbox for OneThread<B> {
    fn nanos(&self) -> u64 {
        let now = self.toolbox.clock().now();
        now.ticks.saturating_mul(u64::from(now.resolution_ns))
    }

    fn tick_of(&self, nanos: u64) -> Tick {
        Tick::new(nanos / u64::from(self.resolution.nanos().get()))
    }

    fn deadline_after(&self, after: Duration) -> Tick {
        let now = self.toolbox.clock().now();
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let mut ticks = nanos.div_ceil(u64::from(self.resolution.nanos().get()));
        if mutant!("delay-of-36-bits") {
            ticks &= (1 << 36) - 1;
        } else if mutant!("delay-folded-into-wheel") {
            ticks %= 1 << 20;
        }
        // A real clock has begun its tick some time ago, nobody knows when: one more. A clock that
        // is advanced by hand stands at the edge.
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
        assert!(is_called, "the toolbox did not call what it was to guard");
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
