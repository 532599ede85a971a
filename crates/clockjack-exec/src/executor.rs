//! The state that the workers, the handles and the tasks of one executor share.
//!
//! One type serves both executors. A [`LocalExecutor`](crate::LocalExecutor) has no workers: every
//! task that becomes ready goes into the injector, and the executor's one thread takes it from
//! there. A pool has several [workers](crate::worker).
//!
//! # Where a task goes that has become ready
//!
//! | it became ready by | on a worker of the executor | on another thread |
//! |---|---|---|
//! | its creation | end of the worker's ring | injector |
//! | a wake | the worker's LIFO slot; the task that was there moves to the ring | injector |
//! | a timer of the executor | end of the worker's ring, in the order of the deadlines | injector |
//! | asking for another poll | end of the worker's ring | injector |
//!
//! A thread that has put a task where others can find it then checks whether a worker has to be
//! woken for it ([`Idle`]). The LIFO slot is the exception: its worker takes that task next, except
//! after several such polls in a row, when the ring has its turn. If the worker does not take the
//! task, because its current poll does not return, the watchdog finds it.
#![expect(unsafe_code, reason = "polls cells of unknown type as their only runner")]

pub mod executor_ref;
pub(crate) mod local;
mod panic;
mod record;
mod schedule;
pub(crate) mod shutdown;
mod unparker;

use alloc::{borrow::Cow, boxed::Box};
use core::{cell::Cell, fmt, mem::ManuallyDrop, num::NonZeroU32, panic::Location, ptr::NonNull};

use clockjack_sync::{
    Injector,
    counter::StripedCounter,
    pad::Padded,
    primitive::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};
use clockjack_time::{Resolution, Tick, TimerInstant};

use crate::{
    command::{Commands, ErasedCompleter},
    error::{SendError, StartError, SubmitError},
    executor::shutdown::RUNNING,
    executor_ref::{ExecutorRef, ExecutorRefs},
    exit::{JoinError, PanicPayload},
    failure::Failure,
    idle::Idle,
    limits::Limits,
    memory::Memory,
    payload::{Payload, Payloads},
    pid::Pid,
    process::Process,
    process::links,
    process::process_ref::ProcessRef,
    process::signal::ProcessSignal,
    registry::{CAPACITY_MAX, LastRef, Lookup, Registry, Reserved, SlotCache, SlotRef},
    shards::{Shards, ShardsConfig},
    state::{State, WaitKind, WaitTransition},
    stats::SingleThreadCounters,
    task::join::JoinHandle,
    task::{
        self, AfterDispatch, Header, HeaderRef, JoinableHeader, PollOutcome, RunQueueLink,
        Runnable, TaskRef, TaskResult, future, process,
    },
    timer::{action::TimerAction, source::takeover_ticks},
    toolbox::ExecutorToolbox,
    watchdog::shared::WatchdogShared,
    worker::{WorkerLocal, WorkerShared},
};

/// The configuration of an executor.
#[doc(hidden)]
#[derive(Debug)]
pub struct ExecutorConfig {
    /// How many workers there may be; 0 for an executor on one thread.
    pub workers: usize,
    /// The number of this executor in pids.
    pub node: u32,
    /// The limits.
    pub limits: Limits,
    /// The length of a tick.
    pub resolution: Resolution,
    /// How late a shard may be before the watchdog acts, in ticks.
    pub tolerance_ticks: u64,
    /// After how many polls without a request the watchdog stops polling.
    pub quiet_polls_max: u32,
}

/// What the workers, the handles and the tasks of one executor share.
#[doc(hidden)]
pub struct ExecutorShared {
    /// How many pointers there are to this.
    refs: ExecutorRefs,
    toolbox: Box<dyn ExecutorToolbox>,
    pub(crate) idle: Idle,
    pub(crate) watchdog: WatchdogShared,
    pub(crate) injector: Injector<RunQueueLink>,
    pub(crate) workers: Box<[Padded<WorkerShared>]>,
    pub(crate) shards: Shards<TimerAction>,
    /// After how many ticks another worker takes over a poll of the source.
    pub(crate) takeover_ticks: u64,
    registry: Registry,
    pub(crate) memory: Memory,
    commands: Commands,
    limits: Limits,
    resolution: Resolution,
    node: u32,
    pub(crate) shutdown_state: AtomicU32,
    /// Whether polls, wake-ups, fires, and starts and ends of tasks are recorded.
    is_tracing: AtomicBool,
    /// Tasks that other threads have started and finished; workers count in their [`WorkerShared`].
    pub(crate) spawned: StripedCounter,
    pub(crate) finished: StripedCounter,
    /// The counters of the executor's thread, if it has no workers.
    pub(crate) single_thread: SingleThreadCounters,
    pub(crate) stale_completions: AtomicU64,
    pub(crate) drop_panics: AtomicU64,
    pub(crate) source_panics: AtomicU64,
    pub(crate) watchdog_restarts: AtomicU64,
    /// By threads that are not workers; workers count in their [`WorkerShared`].
    pub(crate) rescheduled: AtomicU64,
}

impl ExecutorShared {
    /// An executor that no worker has joined yet.
    ///
    /// # Errors
    /// If two handlers have the same number.
    #[expect(clippy::new_ret_no_self, reason = "an executor is always shared")]
    pub fn new(
        toolbox: Box<dyn ExecutorToolbox>,
        config: &ExecutorConfig,
        commands: Commands,
    ) -> Result<ExecutorRef, StartError> {
        commands.check()?;
        let workers = config.workers.max(1);
        let start = toolbox.tick_of(toolbox.nanos());
        let capacity = config.limits.shard_capacity();
        let shards = ShardsConfig { workers, capacity, start };
        Ok(ExecutorRef::new(Self {
            refs: ExecutorRefs::new(),
            toolbox,
            idle: Idle::new(workers),
            watchdog: WatchdogShared::new(config.tolerance_ticks, config.quiet_polls_max),
            injector: Injector::new(),
            workers: (0..config.workers).map(|_| Padded(WorkerShared::new())).collect(),
            shards: Shards::new(shards).keeping_stale_values(),
            takeover_ticks: takeover_ticks(config.resolution),
            registry: Registry::new(
                config.limits.processes_max().min(CAPACITY_MAX),
                config.workers,
            ),
            memory: Memory::new(),
            commands,
            limits: config.limits,
            resolution: config.resolution,
            node: config.node,
            shutdown_state: AtomicU32::new(RUNNING),
            is_tracing: AtomicBool::new(false),
            spawned: StripedCounter::new(),
            finished: StripedCounter::new(),
            single_thread: SingleThreadCounters::default(),
            stale_completions: AtomicU64::new(0),
            drop_panics: AtomicU64::new(0),
            source_panics: AtomicU64::new(0),
            watchdog_restarts: AtomicU64::new(0),
            rescheduled: AtomicU64::new(0),
        }))
    }

    #[doc(hidden)]
    pub fn toolbox(&self) -> &dyn ExecutorToolbox {
        &*self.toolbox
    }

    /// The number of this executor in pids.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.node
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn step_budget_nanos(&self) -> u64 {
        u64::try_from(self.limits.step_budget_max().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.toolbox.nanos()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        let tick = self.toolbox.tick_of(self.toolbox.nanos());
        TimerInstant::new(tick, self.resolution)
    }

    /// The latest tick at which a worker has read the clock. Cheaper than [`now`](Self::now), and
    /// late by as long as the workers sleep. Not for deadlines.
    #[must_use]
    pub fn coarse_now(&self) -> Tick {
        Tick::new(self.workers.iter().map(|worker| worker.coarse_now()).max().unwrap_or(0))
    }

    /// The length of a tick.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// The local state of the caller's thread, if that thread is a worker of this executor.
    #[inline]
    pub(crate) fn worker_local(&self) -> Option<&WorkerLocal> {
        let local = self.toolbox.worker_local();
        // SAFETY: the toolbox returns what a worker has set on this thread, which is valid until
        // the worker sets something else (`ExecutorToolbox`, 1).
        let local = unsafe { local.as_ref() }?;
        local.is_of(self).then_some(local)
    }

    pub(crate) fn count_drop_panic(&self) {
        // Relaxed: a statistic.
        self.drop_panics.fetch_add(1, Relaxed);
    }

    /// Counts an armed timer that was armed for another time.
    pub(crate) fn count_rescheduled(&self) {
        match self.worker_local() {
            Some(local) => local.shared_of(self).count_rescheduled(),
            // Relaxed: a statistic.
            None => _ = self.rescheduled.fetch_add(1, Relaxed),
        }
    }

    pub(crate) fn count_stale_completion(&self) {
        // Relaxed: a statistic.
        self.stale_completions.fetch_add(1, Relaxed);
    }
}

/// Polling tasks.
impl ExecutorShared {
    /// Polls a task, whose runnable the caller took from a run queue. Returns whether the task had
    /// more to do than one poll allows.
    pub(crate) fn poll_task(&self, runnable: Runnable) -> bool {
        let Some(task) = self.start_poll(runnable) else { return false };
        let mut outcome = None;
        let caught = self.toolbox.catch_unwind(&mut || {
            // SAFETY: `start_poll` made this thread the runner.
            outcome = Some(unsafe { self.poll(task.as_ptr()) });
        });
        let outcome = match (caught, outcome) {
            // SAFETY: a poll that panics has not parked the task, so this thread is still the
            // runner.
            (Err(payload), _) => unsafe { self.handle_panic(task.as_ptr(), payload) },
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => unreachable!("the toolbox did not call the closure"),
        };
        let is_again = matches!(outcome, PollOutcome::PollAgain);
        self.finish_poll(task, outcome);
        is_again
    }

    /// As [`poll_task`](Self::poll_task), for a caller that catches the panics of many polls by one
    /// `catch_unwind`. If it catches one, `running` is the task that was polled, and the caller
    /// passes it to [`finish_panicked`](Self::finish_panicked).
    #[inline]
    pub(crate) fn poll_task_in_guard(
        &self,
        runnable: Runnable,
        running: &Cell<Option<NonNull<Header>>>,
    ) {
        let Some(task) = self.start_poll(runnable) else { return };
        running.set(Some(task.as_ptr()));
        // SAFETY: `start_poll` made this thread the runner.
        let outcome = unsafe { self.poll(task.as_ptr()) };
        running.set(None);
        self.finish_poll(task, outcome);
    }

    /// Finishes a poll that a panic ended: ends the task, or reports the panic to a custom task.
    ///
    /// # Safety
    ///
    /// `running` is what [`poll_task_in_guard`](Self::poll_task_in_guard) had stored when the panic
    /// was caught.
    pub(crate) unsafe fn finish_panicked(&self, running: NonNull<Header>, payload: PanicPayload) {
        // SAFETY: the poll that was unwound held the task's own reference, and does not drop it.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(running) });
        // SAFETY: as in `poll_task`.
        let outcome = unsafe { self.handle_panic(running, payload) };
        self.finish_poll(task, outcome);
    }

    /// What becomes of a task whose poll was ended by a panic.
    ///
    /// # Safety
    ///
    /// As for [`poll`](Self::poll).
    unsafe fn handle_panic(&self, header: NonNull<Header>, payload: PanicPayload) -> PollOutcome {
        // SAFETY: the runner holds the task's own reference.
        match unsafe { header.as_ref() }.vtable.on_panic {
            // SAFETY: by the contract; the vtable is that of the cell.
            Some(on_panic) => unsafe { on_panic(header, self, payload) },
            None => PollOutcome::Finished(TaskResult::Error(JoinError::panicked(payload))),
        }
    }

    /// Makes this thread the runner, unless the task is to be terminated. The task's own reference
    /// is `ManuallyDrop`: a waiting task has no variable that would drop the reference.
    #[inline]
    fn start_poll(&self, runnable: Runnable) -> Option<ManuallyDrop<TaskRef>> {
        let task = ManuallyDrop::new(runnable.into_ref());
        if become_runner(task.header()) {
            self.finish_task(
                ManuallyDrop::into_inner(task),
                TaskResult::Error(JoinError::terminated()),
            );
            return None;
        }
        Some(task)
    }

    /// # Safety
    ///
    /// This thread is the runner. After [`PollOutcome::Parked`] it is not, and the header may be
    /// freed.
    #[inline]
    unsafe fn poll(&self, header: NonNull<Header>) -> PollOutcome {
        // SAFETY: the runner holds the task's own reference.
        let poll = unsafe { header.as_ref() }.vtable.poll;
        // SAFETY: by the contract; the vtable is that of the cell.
        unsafe { poll(header, self) }
    }

    /// Carries out the outcome of a poll.
    #[inline]
    fn finish_poll(&self, task: ManuallyDrop<TaskRef>, outcome: PollOutcome) {
        let kind = match outcome {
            PollOutcome::Parked => return, // may be freed: `task` is only an address
            PollOutcome::Wait(kind) => kind,
            PollOutcome::DispatchCommands(AfterDispatch::Wait) => {
                self.dispatch(&task);
                WaitKind::Blocked
            }
            PollOutcome::DispatchCommands(AfterDispatch::PollAgain) => {
                self.dispatch(&task);
                return self.reschedule(ManuallyDrop::into_inner(task));
            }
            PollOutcome::PollAgain => return self.reschedule(ManuallyDrop::into_inner(task)),
            PollOutcome::Finished(ending) => {
                return self.finish_task(ManuallyDrop::into_inner(task), ending);
            }
        };
        // After this another worker may poll the task, or even end it. Only if the task is ready
        // does this thread still hold the task's own reference.
        match task.header().state.transition_to_waiting(kind) {
            WaitTransition::Waiting => {}
            WaitTransition::Ready => {
                self.schedule_yielded(Runnable::from_ref(ManuallyDrop::into_inner(task)));
            }
        }
    }

    /// Enqueues a task, whose runner this thread is, for another poll.
    #[inline]
    fn reschedule(&self, task: TaskRef) {
        let header = task.header();
        if header.vtable.custom.is_some() {
            // Relaxed: a hint.
            header.is_polling.store(false, Relaxed);
        } else {
            header.state.transition_to_ready();
        }
        self.schedule_yielded(Runnable::from_ref(task));
    }

    /// Passes the commands that a poll has yielded to their handlers.
    fn dispatch(&self, task: &TaskRef) {
        let header = task.header();
        let incarnation = header.state.generation();
        // SAFETY: this thread is the runner, and the vtable is that of the cell.
        while let Some(request) = unsafe { (header.vtable.next_request)(header) } {
            let completer = ErasedCompleter::new(task.clone(), request.tag, incarnation);
            let mut call = Some((request, completer));
            // A panic drops the completer, which then completes the command with a failure.
            let caught = self.toolbox.catch_unwind(&mut || {
                if let Some((request, completer)) = call.take() {
                    self.commands.dispatch(request, completer);
                }
            });
            if let Err(payload) = caught {
                self.drop_panic_payload(payload);
            }
        }
    }

    /// Ends a task whose runner this thread is.
    fn finish_task(&self, task: TaskRef, ending: TaskResult) {
        // A panic that the toolbox does not catch must not release the reference: another thread
        // must not drop a body that was not dropped here.
        let task = ManuallyDrop::new(task);
        let header = task.header();
        let table = header.vtable;
        let reason = self.reason_of(&ending);
        if !matches!(ending, TaskResult::Stored) {
            // SAFETY: this thread is the runner, and the vtable is that of the cell.
            self.catch_panic(&mut || unsafe { (table.close)(header) });
            // Each panic leaves less to drop, so the loop ends.
            // SAFETY: as above.
            while !self.catch_panic(&mut || unsafe { (table.drop_body)(header) }) {}
        }
        // SAFETY: as above.
        unsafe { (table.store)(header, ending) };
        links::notify_exit(header, self, &reason);
        if self.is_tracing() {
            self.record_finished(&header, &reason);
        }
        // Counted before the completion, which publishes the count: a thread that has joined a task
        // finds it counted, and room for another one.
        match self.worker_local() {
            Some(local) => {
                local.shared_of(self).count_finished();
                local.with_cache(|cache| self.registry.end(Some(cache)));
            }
            None => {
                self.finished.add(header.slot().index() as usize, 1);
                self.registry.end(None);
            }
        }
        let finished = header.state.transition_to_complete();
        if finished.join_waker {
            // SAFETY: only a future or a process has a joiner.
            let join_waker = unsafe { &JoinableHeader::of(header).join_waker };
            // SAFETY: the bit says that the completing runner owns the slot.
            let waker = join_waker.with_mut(|join_waker| unsafe { (*join_waker).take() });
            if let Some(waker) = waker {
                self.wake_foreign(waker);
            }
        }
        if !finished.joined {
            // SAFETY: there is no joiner, so the runner still owns the output.
            self.catch_panic(&mut || unsafe { (table.drop_output)(header) });
        }
        drop(ManuallyDrop::into_inner(task));
        // Relaxed: the thread that waits polls by itself, too; this only saves it time.
        if self.shutdown_state.load(Relaxed) != RUNNING {
            self.toolbox.shutdown_progressed();
        }
    }
}

/// Creating, finding and ending tasks.
impl ExecutorShared {
    pub(crate) fn reserve(&self, local: Option<&WorkerLocal>) -> Option<Reserved<'_>> {
        match local {
            Some(local) => local.with_cache(|cache| self.registry.reserve(Some(cache))),
            None => self.registry.reserve(None),
        }
    }

    fn count_spawned(&self, local: Option<&WorkerLocal>, index: u32) {
        match local {
            Some(local) => local.shared_of(self).count_spawned(),
            None => self.spawned.add(index as usize, 1),
        }
    }

    /// A cell was freed; frees its slot.
    pub(crate) fn vacate(&self, last: LastRef<'_>) {
        match self.worker_local() {
            Some(local) => local.with_cache(|cache| self.registry.vacate(last, Some(cache))),
            None => self.registry.vacate(last, None),
        }
    }

    /// A worker parks: returns its cached free slots to a small registry.
    pub(crate) fn flush_idle_slot_cache(&self, cache: &mut SlotCache) {
        self.registry.flush_idle(cache);
    }

    /// A worker stops: returns its cached free slots to the registry.
    pub(crate) fn flush_slot_cache(&self, cache: &mut SlotCache) {
        self.registry.flush(cache);
    }

    /// Starts a future.
    ///
    /// # Safety
    ///
    /// The executor runs it on this thread only, or the future and its output are `Send`.
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn spawn<F>(
        this: &ExecutorRef,
        future: F,
        name: Option<Cow<'static, str>>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if this.is_stopping() {
            return JoinHandle::refused(this.refusal());
        }
        let local = this.worker_local();
        let Some(reserved) = this.reserve(local) else {
            return JoinHandle::refused(JoinError::refused_full());
        };
        let slot = reserved.slot();
        let header = future::new(this.clone(), slot, future, name, Location::caller());
        // One reference for the task itself, one for the joiner.
        let join = this.publish(local, reserved, header, INITIAL_REFS, |_| {});
        JoinHandle::new(join)
    }

    /// Publishes a cell and enqueues it; returns one of its references. `before_first_poll` is
    /// called when the task can be found and before it is first polled.
    pub(crate) fn publish(
        &self,
        local: Option<&WorkerLocal>,
        reserved: Reserved<'_>,
        header: NonNull<Header>,
        refs: NonZeroU32,
        before_first_poll: impl FnOnce(HeaderRef<'_>),
    ) -> TaskRef {
        self.count_spawned(local, reserved.index());
        self.registry.occupy(reserved, header.cast(), refs);
        // SAFETY: the cell was just made with this many references: the runnable owns one, and this
        // is another.
        let task = unsafe { TaskRef::from_raw(header) };
        before_first_poll(task.header());
        if self.is_tracing() {
            self.record_spawned(&task);
        }
        self.schedule_new(local, Runnable::of(task.header()));
        self.check_published(&task);
        task
    }

    /// Starts a process.
    ///
    /// # Errors
    /// Returns the process to the caller: if its `init` fails, if there is no room, or after the
    /// shutdown has begun.
    ///
    /// # Safety
    ///
    /// The executor runs it on this thread only, or the process and its messages are `Send`.
    #[doc(hidden)]
    pub unsafe fn submit<P: Process>(
        this: &ExecutorRef,
        process: P,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        // SAFETY: by the contract.
        unsafe { Self::submit_linked(this, process, method, input, |_| {}) }
    }

    /// As [`submit`](Self::submit). `before_first_poll` may link the process or monitor it, so that
    /// its end cannot be missed.
    ///
    /// # Safety
    ///
    /// As `submit`.
    pub(crate) unsafe fn submit_linked<P: Process>(
        this: &ExecutorRef,
        mut process: P,
        method: &str,
        input: Payloads,
        before_first_poll: impl FnOnce(HeaderRef<'_>),
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        if this.is_stopping() {
            let is_forked = this.is_forked();
            let refused = if is_forked { SubmitError::forked } else { SubmitError::stopped };
            return Err(refused(process));
        }
        let local = this.worker_local();
        let Some(reserved) = this.reserve(local) else {
            return Err(SubmitError::full(process));
        };
        let pid = Pid::new(this.node, reserved.index(), reserved.generation());
        match this.init(&mut process, pid, method, input) {
            Ok(()) => {}
            Err(failure) => {
                this.cancel_reservation(local, reserved);
                return Err(SubmitError::refused(failure, Some(process)));
            }
        }
        let slot = reserved.slot();
        let header = process::new(this.clone(), slot, process, this.limits.messages_max());
        let task = this.publish(local, reserved, header, INITIAL_REFS, before_first_poll);
        // SAFETY: the cell is that of a process with this message type.
        Ok(unsafe { ProcessRef::new(task) })
    }

    fn cancel_reservation(&self, local: Option<&WorkerLocal>, reserved: Reserved<'_>) {
        match local {
            Some(local) => local.with_cache(|cache| self.registry.cancel(reserved, Some(cache))),
            None => self.registry.cancel(reserved, None),
        }
    }

    /// Calls `init`; a panic in it is a failure like any other.
    fn init<P: Process>(
        &self,
        process: &mut P,
        pid: Pid,
        method: &str,
        input: Payloads,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut input = Some(input);
        let caught = self.toolbox.catch_unwind(&mut || {
            result = process.init(pid, method, input.take().unwrap_or_default());
        });
        match caught {
            Ok(()) => result,
            Err(payload) => {
                let failure = Failure::msg(payload.message());
                self.drop_panic_payload(payload);
                Err(failure)
            }
        }
    }

    /// The live task of a pid.
    pub(crate) fn get(&self, pid: Pid) -> Option<TaskRef> {
        if pid.node() != self.node {
            return None;
        }
        let found = match self.registry.get(pid.index(), pid.generation()) {
            Lookup::Found(found) => found,
            Lookup::Missing => return None,
            Lookup::LastRef(other) => {
                task::free(other);
                return None;
            }
        };
        let task = Self::task_of(found);
        (!task.header().state.is_complete()).then_some(task)
    }

    /// The reference that the registry counted.
    fn task_of(found: SlotRef<'_>) -> TaskRef {
        let header = found.value().cast();
        // The drop of the result releases the reference.
        let _ = found.into_slot();
        // SAFETY: the registry returned a reference to a cell that was published in it.
        unsafe { TaskRef::from_raw(header) }
    }

    /// Wakes a task, if it is alive.
    pub(crate) fn wake(&self, pid: Pid) {
        if let Some(task) = self.get(pid) {
            task.header().wake();
        }
    }

    /// The pid of the live task at an index, whatever its generation.
    pub(crate) fn pid_at(&self, index: u32) -> Option<Pid> {
        let task = Self::task_of(self.registry.get_any(index)?);
        (!task.header().state.is_complete()).then(|| task.pid())
    }

    /// Ends a task whose runnable was taken from a run queue, without polling it.
    pub(crate) fn terminate_queued_task(&self, runnable: Runnable) {
        let task = runnable.into_ref();
        let _ = become_runner(task.header());
        self.finish_task(task, TaskResult::Error(JoinError::terminated()));
    }

    /// An empty cache of free slots, for a worker of this executor.
    pub(crate) fn cache(&self) -> SlotCache {
        // SAFETY: a worker passes it to its own executor only.
        unsafe { self.registry.cache() }
    }

    /// Sends a signal to a task, if it is alive.
    pub(crate) fn signal(&self, pid: Pid, signal: ProcessSignal) -> bool {
        self.get(pid).is_some_and(|task| task.signal(signal).is_ok())
    }

    /// Sends a message of unknown type.
    ///
    /// # Errors
    /// Returns the message to the caller: if there is no such process, it has ended, its mailbox is
    /// full, or it takes messages of another type.
    pub fn send(&self, to: Pid, message: Payload) -> Result<(), SendError<Payload>> {
        let Some(task) = self.get(to) else { return Err(SendError::unknown(message)) };
        // SAFETY: the vtable is that of the cell.
        unsafe { (task.header().vtable.deliver)(task.header(), message) }
    }

    /// Asks a process to stop; false if there is no such process.
    pub fn cancel(&self, pid: Pid, reason: &'static str) -> bool {
        self.signal(pid, ProcessSignal::Cancel { reason })
    }

    /// Ends a task instead of its next poll; false if there is no such task.
    pub fn terminate(&self, pid: Pid) -> bool {
        self.get(pid).is_some_and(|task| task.header().terminate())
    }

    /// What a task does; `None` if there is no such task.
    #[must_use]
    pub fn state(&self, pid: Pid) -> Option<State> {
        self.get(pid).map(|task| task.header().state())
    }
}

/// Makes this thread the runner of a task whose runnable it has; returns whether the task is to be
/// terminated instead of polled.
#[inline]
fn become_runner(header: HeaderRef<'_>) -> bool {
    if header.vtable.custom.is_some() {
        // Relaxed: a hint.
        header.is_polling.store(true, Relaxed);
        header.state.is_terminated()
    } else {
        header.state.transition_to_running().terminate
    }
}

/// The references of a new task: the task's own, and its creator's.
pub(crate) const INITIAL_REFS: NonZeroU32 = NonZeroU32::new(2).expect("two is not zero");

/// Counting.
impl ExecutorShared {
    pub(crate) fn for_each_live(&self, mut f: impl FnMut(&TaskRef)) {
        self.registry.for_each_live(|found| {
            let task = Self::task_of(found);
            if !task.header().state.is_complete() {
                f(&task);
            }
        });
    }

    /// As [`for_each_live`](Self::for_each_live), for `n` slots of the registry from this index on.
    /// Returns the index to continue with; `None` if there are no further slots.
    pub(crate) fn for_each_live_in(
        &self,
        from: u32,
        n: u32,
        mut f: impl FnMut(TaskRef),
    ) -> Option<u32> {
        self.registry.for_each_live_in(from, n, |found| {
            let task = Self::task_of(found);
            if !task.header().state.is_complete() {
                f(task);
            }
        })
    }

    /// How many tasks are in the injector, at about this time.
    #[doc(hidden)]
    #[must_use]
    pub fn injector_len(&self) -> usize {
        self.injector.len()
    }

    /// A poll of the watchdog panicked.
    pub fn count_watchdog_restart(&self) {
        // Relaxed: a statistic.
        self.watchdog_restarts.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for ExecutorShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorShared").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
