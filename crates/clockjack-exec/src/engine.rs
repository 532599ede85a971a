//! The heart of an executor: what its workers, handles and processes share.
//!
//! One type serves both executors. A [local one](crate::LocalExecutor) has no seats: everything
//! that becomes ready goes through the injector, and its one thread takes it from there. A pool has
//! a seat for each worker (see [`worker`](crate::worker)).
//!
//! # Where a process goes that has become ready
//!
//! | by | on a worker of the engine | elsewhere |
//! |---|---|---|
//! | its birth | end of the worker's ring | injector |
//! | a wake | the worker's LIFO slot; what was there moves to the ring | injector |
//! | a timer | end of the worker's ring, in the order of the deadlines | injector |
//! | its own wish to go on | end of the worker's ring | injector |
//!
//! Whoever puts something where others can find it then looks whether somebody has to be woken for
//! it ([`Idle`]), but for the LIFO slot: its worker takes that next. If it does not, because the
//! step that is under way goes on and on, the metronome finds it.
#![expect(unsafe_code, reason = "runs cells of unknown type as their one runner")]

use alloc::boxed::Box;
use core::{cell::Cell, fmt, mem::ManuallyDrop, num::NonZeroU32, ptr::NonNull};

use clockjack_sync::{
    Injector,
    counter::Striped,
    mutant,
    pad::Padded,
    prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};
use clockjack_time::{Resolution, Tick, TimerInstant};

use crate::{
    cell::{self, CellRef, Ending, Entry, Head, Joinable, Next, Queued, Verdict, proc, task},
    command::{Answer, Commands},
    engine_ref::EngineRef,
    error::{SendError, StartError, SubmitError},
    exit::{Caught, Exit},
    failure::Failure,
    fire::Fire,
    idle::Idle,
    join::Join,
    limits::Limits,
    memory::Memory,
    metronome::Metronome,
    payload::{Payload, Payloads},
    pid::Pid,
    process::Process,
    process_ref::ProcessRef,
    registry::{CAPACITY_MAX, Cache, Get, Last, Ref, Registry, Reserved},
    shards::{Shards, ShardsConfig},
    signal::Signal,
    state::{Ended, State, Waiting},
    stats::Alone,
    stop::{OVER, RUNNING},
    ties,
    toolbox::Host,
    worker::{Local, Seat},
};

/// What an engine is made of.
#[doc(hidden)]
#[derive(Debug)]
pub struct EngineConfig {
    /// Places for workers; 0 for an executor on one thread.
    pub seats: usize,
    /// The number of this executor in pids.
    pub node: u32,
    /// Bounds.
    pub limits: Limits,
    /// The length of a tick.
    pub resolution: Resolution,
    /// How late a shard may be before the metronome acts, in ticks.
    pub grace_ticks: u64,
    /// After how many looks without a request the metronome stops to watch.
    pub quiet_looks_max: u32,
}

/// What the workers, handles and processes of one executor share.
#[doc(hidden)]
pub struct Engine {
    host: Box<dyn Host>,
    pub(crate) idle: Idle,
    pub(crate) metronome: Metronome,
    pub(crate) injector: Injector<Queued>,
    pub(crate) seats: Box<[Padded<Seat>]>,
    pub(crate) shards: Shards<Fire>,
    registry: Registry,
    pub(crate) memory: Memory,
    commands: Commands,
    limits: Limits,
    resolution: Resolution,
    node: u32,
    pub(crate) stage: AtomicU32,
    /// Processes that threads outside made and ended; workers count in their seats.
    pub(crate) spawned: Striped,
    pub(crate) finished: Striped,
    /// What its thread counts, if it has no workers.
    pub(crate) alone: Alone,
    pub(crate) stale_completions: AtomicU64,
    pub(crate) drop_panics: AtomicU64,
    pub(crate) metronome_restarts: AtomicU64,
}

impl Engine {
    /// An engine without workers.
    ///
    /// # Errors
    /// If two handlers have the same number.
    #[expect(clippy::new_ret_no_self, reason = "an engine is of no use but shared")]
    pub fn new(
        host: Box<dyn Host>,
        config: &EngineConfig,
        commands: Commands,
    ) -> Result<EngineRef, StartError> {
        commands.check()?;
        let seats = config.seats.max(1);
        let start = host.tick_of(host.nanos());
        let shards = ShardsConfig { seats, capacity: config.limits.timers_max(), start };
        Ok(EngineRef::new(Self {
            host,
            idle: Idle::new(seats),
            metronome: Metronome::new(config.grace_ticks, config.quiet_looks_max),
            injector: Injector::new(),
            seats: (0..config.seats).map(|_| Padded(Seat::new())).collect(),
            shards: Shards::new(shards).keeping_garbage(),
            registry: Registry::new(config.limits.processes_max().min(CAPACITY_MAX)),
            memory: Memory::new(),
            commands,
            limits: config.limits,
            resolution: config.resolution,
            node: config.node,
            stage: AtomicU32::new(RUNNING),
            spawned: Striped::new(),
            finished: Striped::new(),
            alone: Alone::default(),
            stale_completions: AtomicU64::new(0),
            drop_panics: AtomicU64::new(0),
            metronome_restarts: AtomicU64::new(0),
        }))
    }

    #[doc(hidden)]
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn step_budget_nanos(&self) -> u64 {
        u64::try_from(self.limits.step_budget_max().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.host.nanos()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        let tick = self.host.tick_of(self.host.nanos());
        TimerInstant::new(tick, self.resolution)
    }

    /// The latest tick at which a worker has looked at the clock: cheaper than
    /// [`now`](Self::now), and behind by as long as the workers sleep. Not for deadlines.
    #[must_use]
    pub fn coarse_now(&self) -> Tick {
        Tick::new(self.seats.iter().map(|seat| seat.coarse_now()).max().unwrap_or(0))
    }

    /// The length of a tick.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// The worker of this engine that the caller's thread is.
    #[inline]
    pub(crate) fn local(&self) -> Option<&Local> {
        let local = self.host.local();
        // SAFETY: the host gives what a worker has set on this thread, which is valid until it sets
        // something else (`Host`, 1).
        let local = unsafe { local.as_ref() }?;
        local.is_of(self).then_some(local)
    }

    pub(crate) fn count_drop_panic(&self) {
        // Relaxed: a statistic.
        self.drop_panics.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_stale_completion(&self) {
        // Relaxed: a statistic.
        self.stale_completions.fetch_add(1, Relaxed);
    }
}

/// Making processes ready.
impl Engine {
    /// Queues a process that somebody woke.
    #[inline]
    pub(crate) fn schedule_woken(&self, entry: Entry) {
        match self.local() {
            Some(local) => local.push_woken(self, entry),
            None => self.inject(entry),
        }
    }

    /// Queues a process that was just made.
    #[inline]
    fn schedule_new(&self, local: Option<&Local>, entry: Entry) {
        match local {
            Some(local) => {
                local.push(self, entry);
                self.notify_one();
            }
            None => self.inject(entry),
        }
    }

    /// Queues a process that goes on.
    #[inline]
    fn schedule_again(&self, entry: Entry) {
        match self.local() {
            Some(local) => local.push(self, entry),
            None => self.inject(entry),
        }
    }

    /// Queues a process that was woken and is in no hurry.
    pub(crate) fn schedule_last(&self, entry: Entry) {
        self.schedule_new(self.local(), entry);
    }

    pub(crate) fn inject(&self, entry: Entry) {
        let pushed = self.injector.push(entry);
        // The injector is closed only when all processes have ended, and those are not queued.
        debug_assert!(pushed.is_ok(), "a process was queued after the end of its engine");
        self.notify_one();
        // Relaxed: behind the fence of the notification (see `stop`, rule 3). An executor on one
        // thread has none, and does not need it: whatever its wakers queue, it has waited for.
        let is_over = !self.seats.is_empty() && self.stage.load(Relaxed) == OVER;
        if is_over && !mutant!("publish-ignores-end") {
            self.end_queued();
        }
    }

    /// Wakes a worker if work that was just made visible needs one.
    #[inline]
    pub(crate) fn notify_one(&self) {
        if self.seats.is_empty() {
            self.host.unpark(0);
        } else if self.idle.should_wake() {
            self.wake_one();
        }
    }

    #[cold]
    pub(crate) fn wake_one(&self) {
        if let Some(seat) = self.idle.wake_one() {
            self.host.unpark(seat);
        }
    }

    /// Whether there is work that any worker may take. Whoever decides by it has fenced.
    pub(crate) fn has_shared_work(&self) -> bool {
        !self.injector.is_empty() || self.seats.iter().any(|seat| seat.has_ring())
    }

    /// Makes the metronome look now.
    pub(crate) fn call_metronome(&self) {
        // An arm at the beginning of time: whatever it sleeps for is longer.
        let _ = self.metronome.note_arm(0);
        self.host.unpark_metronome();
    }

    /// To be called by a worker that has just become awake, before it runs anything: the metronome
    /// must not sleep for longer than a step may take.
    pub(crate) fn tell_awake(&self, now: Tick) {
        if self.metronome.note_awake(now.get()) {
            self.host.unpark_metronome();
        }
    }

    /// Whether a worker is awake. Whoever decides by it has fenced.
    pub(crate) fn has_awake(&self) -> bool {
        let is_awake =
            |(seat, place): (usize, &Padded<Seat>)| place.is_taken() && !self.idle.is_parked(seat);
        self.seats.iter().enumerate().any(is_awake)
    }

    /// Wakes the worker of a seat, if it sleeps.
    pub(crate) fn wake_seat(&self, seat: usize) {
        if self.seats.is_empty() {
            self.host.unpark(0);
        } else if self.idle.wake_seat(seat) {
            self.host.unpark(seat);
        }
    }
}

/// Running processes.
impl Engine {
    /// Gives a process its turn. The caller took the entry from a run queue. Says whether it had
    /// more to do than the turn had room for.
    pub(crate) fn run(&self, entry: Entry) -> bool {
        let Some(life) = self.begin(entry) else { return false };
        let mut verdict = None;
        let guarded = self.host.guarded(&mut || {
            // SAFETY: `begin` made this thread the runner.
            verdict = Some(unsafe { self.step(life.as_ptr()) });
        });
        let verdict = match (guarded, verdict) {
            // SAFETY: a turn that panics has not slept, so this thread still is the runner.
            (Err(caught), _) => unsafe { self.after_panic(life.as_ptr(), caught) },
            (Ok(()), Some(verdict)) => verdict,
            (Ok(()), None) => unreachable!("the host did not call what it was to guard"),
        };
        let is_again = matches!(verdict, Verdict::Again);
        self.conclude(life, verdict);
        is_again
    }

    /// As [`run`](Self::run), for a caller that guards many turns by one call: if a panic gets
    /// there, `running` tells whose turn it was, to be ended by [`bury`](Self::bury).
    #[inline]
    pub(crate) fn run_in_guard(&self, entry: Entry, running: &Cell<Option<NonNull<Head>>>) {
        let Some(life) = self.begin(entry) else { return };
        running.set(Some(life.as_ptr()));
        // SAFETY: `begin` made this thread the runner.
        let verdict = unsafe { self.step(life.as_ptr()) };
        running.set(None);
        self.conclude(life, verdict);
    }

    /// Ends the process whose turn was ended by a panic, or tells it.
    ///
    /// # Safety
    ///
    /// It is what `running` had when the panic was caught.
    pub(crate) unsafe fn bury(&self, running: NonNull<Head>, caught: Caught) {
        // SAFETY: the life of the process was in the hands of the turn that was unwound, which
        // does not drop it.
        let life = ManuallyDrop::new(unsafe { CellRef::from_raw(running) });
        // SAFETY: as in `run`.
        let verdict = unsafe { self.after_panic(running, caught) };
        self.conclude(life, verdict);
    }

    /// What becomes of a process whose turn was ended by a panic.
    ///
    /// # Safety
    ///
    /// As for [`step`](Self::step).
    unsafe fn after_panic(&self, head: NonNull<Head>, caught: Caught) -> Verdict {
        // SAFETY: the runner has the life of the process.
        match unsafe { head.as_ref() }.vtable.panicked {
            // SAFETY: by the contract; the table is that of the cell.
            Some(panicked) => unsafe { panicked(head, self, caught) },
            None => Verdict::End(Ending::Exit(Exit::panicked(caught))),
        }
    }

    /// Makes this thread the runner, unless the process is to be ended. Its life is not dropped by
    /// itself: while the process waits, that is nowhere.
    #[inline]
    fn begin(&self, entry: Entry) -> Option<ManuallyDrop<CellRef>> {
        let life = ManuallyDrop::new(entry.into_ref());
        if start(life.head()) {
            self.finish(ManuallyDrop::into_inner(life), Ending::Exit(Exit::terminated()));
            return None;
        }
        Some(life)
    }

    /// # Safety
    ///
    /// This thread is the runner. After [`Verdict::Parked`] it is not, and the head may be gone.
    #[inline]
    unsafe fn step(&self, head: NonNull<Head>) -> Verdict {
        // SAFETY: the runner has the life of the process.
        let step = unsafe { head.as_ref() }.vtable.step;
        // SAFETY: by the contract; the table is that of the cell.
        unsafe { step(head, self) }
    }

    /// Does what the step has asked for.
    #[inline]
    fn conclude(&self, life: ManuallyDrop<CellRef>, verdict: Verdict) {
        let waiting = match verdict {
            Verdict::Parked => return, // perhaps gone: `life` is an address only
            Verdict::Wait(waiting) => waiting,
            Verdict::Dispatch(Next::Wait) => {
                self.dispatch(&life);
                Waiting::Blocked
            }
            Verdict::Dispatch(Next::Again) => {
                self.dispatch(&life);
                return self.go_on(ManuallyDrop::into_inner(life));
            }
            Verdict::Again => return self.go_on(ManuallyDrop::into_inner(life)),
            Verdict::End(ending) => return self.finish(ManuallyDrop::into_inner(life), ending),
        };
        // After this another worker may run it, or even end it, unless it is ready: then its life
        // is still here.
        match life.head().word.end(waiting) {
            Ended::Waiting => {}
            Ended::Ready => {
                self.schedule_again(Entry::from_ref(ManuallyDrop::into_inner(life)));
            }
        }
    }

    /// Gives a process another turn, whose runner this thread is.
    #[inline]
    fn go_on(&self, life: CellRef) {
        let head = life.head();
        if head.vtable.custom.is_some() {
            // Relaxed: a hint.
            head.is_in_turn.store(false, Relaxed);
        } else {
            head.word.again();
        }
        self.schedule_again(Entry::from_ref(life));
    }

    /// Hands the commands of a step to their handlers.
    fn dispatch(&self, life: &CellRef) {
        let head = life.head();
        let incarnation = head.word.generation();
        // SAFETY: this thread is the runner, and the table is that of the cell.
        while let Some(request) = unsafe { (head.vtable.next_request)(head) } {
            let answer = Answer::new(life.clone(), request.tag, incarnation);
            let mut call = Some((request, answer));
            // A panic drops the answer, which then answers by itself.
            let guarded = self.host.guarded(&mut || {
                if let Some((request, answer)) = call.take() {
                    self.commands.dispatch(request, answer);
                }
            });
            if let Err(caught) = guarded {
                self.discard(caught);
            }
        }
    }

    /// Ends a process whose runner this thread is.
    fn finish(&self, life: CellRef, ending: Ending) {
        // Not given back by a panic that no host catches: a body that was not dropped here must
        // not be dropped by another thread.
        let life = ManuallyDrop::new(life);
        let head = life.head();
        let table = head.vtable;
        let reason = self.reason_of(&ending);
        if !matches!(ending, Ending::Kept) {
            // SAFETY: this thread is the runner, and the table is that of the cell.
            self.contain(&mut || unsafe { (table.close)(head) });
            // Each panic leaves less to drop.
            // SAFETY: as above.
            while !self.contain(&mut || unsafe { (table.drop_body)(head) }) {}
        }
        // SAFETY: as above.
        unsafe { (table.store)(head, ending) };
        ties::tell_end(head, self, &reason);
        // Before the completion, which publishes it: who has joined a process finds it counted.
        match self.local() {
            Some(local) => local.seat_of(self).count_finished(),
            None => self.finished.add(head.slot().index() as usize, 1),
        }
        let finished = head.word.complete();
        if finished.join_waker {
            // SAFETY: only a future or a process is joined.
            let joiner = unsafe { &Joinable::of(head).joiner };
            // SAFETY: the bit says that the slot is the completer's.
            let waker = joiner.with_mut(|joiner| unsafe { (*joiner).take() });
            if let Some(waker) = waker {
                self.wake_foreign(waker);
            }
        }
        if !finished.joined {
            // SAFETY: nobody joins, so the output is still the runner's.
            self.contain(&mut || unsafe { (table.drop_output)(head) });
        }
        drop(ManuallyDrop::into_inner(life));
        // Relaxed: a waiter looks again by itself, this only saves it time.
        if self.stage.load(Relaxed) != RUNNING {
            self.host.stop_progressed();
        }
    }
}

/// Making, finding and ending processes.
impl Engine {
    pub(crate) fn reserve(&self, local: Option<&Local>) -> Option<Reserved<'_>> {
        match local {
            Some(local) => local.with_cache(|cache| self.registry.reserve(Some(cache))),
            None => self.registry.reserve(None),
        }
    }

    fn count_spawned(&self, local: Option<&Local>, index: u32) {
        match local {
            Some(local) => local.seat_of(self).count_spawned(),
            None => self.spawned.add(index as usize, 1),
        }
    }

    /// A cell was freed: its slot is free too.
    pub(crate) fn vacate(&self, last: Last<'_>) {
        match self.local() {
            Some(local) => local.with_cache(|cache| self.registry.vacate(last, Some(cache))),
            None => self.registry.vacate(last, None),
        }
    }

    /// A worker leaves: the slots that it kept for itself are for all.
    pub(crate) fn give_back_cache(&self, cache: &mut Cache) {
        self.registry.flush(cache);
    }

    /// Starts a future as a process.
    ///
    /// # Safety
    ///
    /// The engine runs it on this thread only, or the future and its output are `Send`.
    #[doc(hidden)]
    pub unsafe fn spawn<F>(this: &EngineRef, future: F) -> Join<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if this.is_stopping() {
            return Join::refused(Exit::refused_stopping());
        }
        let local = this.local();
        let Some(reserved) = this.reserve(local) else {
            return Join::refused(Exit::refused_full());
        };
        let slot = reserved.slot();
        let head = task::new(this.clone(), slot, future);
        // One reference for the life, one for who joins.
        let join = this.publish(local, reserved, head, TWO, |_| {});
        Join::new(join)
    }

    /// Makes a cell known and queues it; gives one of its references. `before` is called when the
    /// process can be found and before it has its first turn.
    pub(crate) fn publish(
        &self,
        local: Option<&Local>,
        reserved: Reserved<'_>,
        head: NonNull<Head>,
        refs: NonZeroU32,
        before: impl FnOnce(&Head),
    ) -> CellRef {
        self.count_spawned(local, reserved.index());
        self.registry.occupy(reserved, head.cast(), refs);
        // SAFETY: the cell was just made with this many references: one is the entry's, this is
        // another.
        let cell = unsafe { CellRef::from_raw(head) };
        before(cell.head());
        self.schedule_new(local, Entry::of(cell.head()));
        self.check_published(&cell);
        cell
    }

    /// Starts a process.
    ///
    /// # Errors
    /// The process comes back: if its `init` fails, if there is no room, or after the stop.
    ///
    /// # Safety
    ///
    /// The engine runs it on this thread only, or the process and its messages are `Send`.
    #[doc(hidden)]
    pub unsafe fn submit<P: Process>(
        this: &EngineRef,
        process: P,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        // SAFETY: by the contract.
        unsafe { Self::submit_tied(this, process, method, input, |_| {}) }
    }

    /// As [`submit`](Self::submit); `before` is called before the first turn of the process, with
    /// which it can be tied so that no end of it is missed.
    ///
    /// # Safety
    ///
    /// As `submit`.
    pub(crate) unsafe fn submit_tied<P: Process>(
        this: &EngineRef,
        mut process: P,
        method: &str,
        input: Payloads,
        before: impl FnOnce(&Head),
    ) -> Result<ProcessRef<P::Message>, SubmitError<P>> {
        if this.is_stopping() {
            return Err(SubmitError::stopped(process));
        }
        let local = this.local();
        let Some(reserved) = this.reserve(local) else {
            return Err(SubmitError::full(process));
        };
        let pid = Pid::new(this.node, reserved.index(), reserved.generation());
        match this.init(&mut process, pid, method, input) {
            Ok(()) => {}
            Err(failure) => {
                this.give_back(local, reserved);
                return Err(SubmitError::refused(failure, Some(process)));
            }
        }
        let slot = reserved.slot();
        let head = proc::new(this.clone(), slot, process, this.limits.messages_max());
        let cell = this.publish(local, reserved, head, TWO, before);
        // SAFETY: the cell is that of a process with this message type.
        Ok(unsafe { ProcessRef::new(cell) })
    }

    fn give_back(&self, local: Option<&Local>, reserved: Reserved<'_>) {
        match local {
            Some(local) => local.with_cache(|cache| self.registry.cancel(reserved, Some(cache))),
            None => self.registry.cancel(reserved, None),
        }
    }

    /// Calls `init`; a panic in it is a failure as any other.
    fn init<P: Process>(
        &self,
        process: &mut P,
        pid: Pid,
        method: &str,
        input: Payloads,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut input = Some(input);
        let guarded = self.host.guarded(&mut || {
            result = process.init(pid, method, input.take().unwrap_or_default());
        });
        match guarded {
            Ok(()) => result,
            Err(caught) => {
                let failure = Failure::msg(caught.message());
                self.discard(caught);
                Err(failure)
            }
        }
    }

    /// The live process of a pid.
    pub(crate) fn get(&self, pid: Pid) -> Option<CellRef> {
        if pid.node() != self.node {
            return None;
        }
        let found = match self.registry.get(pid.index(), pid.generation()) {
            Get::Found(found) => found,
            Get::Missing => return None,
            Get::Last(other) => {
                cell::free(other);
                return None;
            }
        };
        let cell = Self::found(found);
        (!cell.head().word.is_complete()).then_some(cell)
    }

    /// The reference that the registry counted.
    fn found(found: Ref<'_>) -> CellRef {
        let head = found.value().cast();
        // Released by the drop of what is made here.
        let _ = found.into_slot();
        // SAFETY: the registry gave a reference to a cell that it was told of.
        unsafe { CellRef::from_raw(head) }
    }

    /// Wakes a process, if it is alive.
    pub(crate) fn wake(&self, pid: Pid) {
        if let Some(cell) = self.get(pid) {
            cell.head().wake();
        }
    }

    /// The live process at an index, whatever its generation.
    pub(crate) fn pid_at(&self, index: u32) -> Option<Pid> {
        let mut pid = None;
        self.for_each_live(|cell| {
            if cell.pid().index() == index {
                pid = Some(cell.pid());
            }
        });
        pid
    }

    /// Ends a process whose entry was taken from a run queue, without stepping it.
    pub(crate) fn end(&self, entry: Entry) {
        let life = entry.into_ref();
        let _ = start(life.head());
        self.finish(life, Ending::Exit(Exit::terminated()));
    }

    /// An empty cache of free slots, for a worker of this engine.
    pub(crate) fn cache(&self) -> Cache {
        // SAFETY: a worker passes it to its own engine only.
        unsafe { self.registry.cache() }
    }

    /// Sends a signal to a process, if it is alive.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal) -> bool {
        self.get(pid).is_some_and(|cell| cell.signal(signal).is_ok())
    }

    /// Sends a message of unknown type.
    ///
    /// # Errors
    /// The message comes back: if there is no such process, it has ended, it is full, or takes
    /// messages of another type.
    pub fn send(&self, to: Pid, message: Payload) -> Result<(), SendError<Payload>> {
        let Some(cell) = self.get(to) else { return Err(SendError::unknown(message)) };
        // SAFETY: the table is that of the cell.
        unsafe { (cell.head().vtable.deliver)(cell.head(), message) }
    }

    /// Asks a process to stop; false if there is no such process.
    pub fn cancel(&self, pid: Pid, reason: &'static str) -> bool {
        self.signal(pid, Signal::Cancel { reason })
    }

    /// Ends a process at its next turn; false if there is no such process.
    pub fn terminate(&self, pid: Pid) -> bool {
        self.get(pid).is_some_and(|cell| cell.head().terminate())
    }

    /// What state a process is in; `None` if there is no such process.
    #[must_use]
    pub fn state(&self, pid: Pid) -> Option<State> {
        self.get(pid).map(|cell| cell.head().state())
    }
}

/// Makes this thread the runner of a process whose entry it has; whether it is to be ended instead.
#[inline]
fn start(head: &Head) -> bool {
    if head.vtable.custom.is_some() {
        // Relaxed: a hint.
        head.is_in_turn.store(true, Relaxed);
        head.word.is_terminated()
    } else {
        head.word.start().terminate
    }
}

/// References of a cell at its birth: that of its life, and that of whoever made it.
pub(crate) const TWO: NonZeroU32 = NonZeroU32::new(2).expect("two is not zero");

/// Counting.
impl Engine {
    pub(crate) fn for_each_live(&self, mut f: impl FnMut(&CellRef)) {
        self.registry.for_each_live(|found| {
            let cell = Self::found(found);
            if !cell.head().word.is_complete() {
                f(&cell);
            }
        });
    }

    /// A look of the metronome panicked.
    pub fn count_metronome_restart(&self) {
        // Relaxed: a statistic.
        self.metronome_restarts.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
