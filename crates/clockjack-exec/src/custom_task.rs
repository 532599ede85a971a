//! Cells whose body another crate makes: how `clockjack-actor` puts actors into the executor
//! without a second allocation, a box a message or a second state word.
//!
//! A custom cell is a header like all others, behind it a *shared* of the maker's type, which
//! everyone who has a reference can reach, and behind that the *body*, which only the runner
//! touches. What the shared holds and how it is filled is the maker's affair: whoever has left
//! something in it calls [`CustomTaskRef::wake`].
//!
//! The state word of a custom process says Running for all its life. Whether it sleeps is decided
//! by a word of its shared, so that whoever leaves something there finds out by the same
//! read-modify-write whether it has to queue the process:
//!
//! 1. A body that has nothing to do says so ([`CustomPollOutcome::Park`]) and does not sleep itself: it is
//!    borrowed, exclusively, until its turn has returned. Then the executor, still the runner, puts
//!    it to sleep ([`CustomTask::sleep`]), by an exchange that fails if somebody has called since the
//!    body looked; if so it has another turn soon. From the exchange on another thread may have
//!    its next cx, or may even free the task: so whoever makes it has the cell by its address
//!    and borrows at most the word, and nothing of the cell is touched any more.
//! 2. Whoever leaves something calls ([`CustomTask::unpark`]), by a read-modify-write of the same word
//!    that ends the sleep and is remembered until the body looks; exactly one finds it asleep, and
//!    queues it ([`CustomTaskRef::queue`], or [`CustomTaskRef::wake`] for both).
//! 3. The executor ends a process by force when a turn begins, and so calls it after it has said so
//!    in the state word. A body that looks because it was called looks at that word as well
//!    ([`PollContext::is_terminated`]): if it went to sleep instead, its next turn would never begin.
//!
//! A panic in a turn does not end the process: the body is received ([`CustomTask::panicked`]) and decides.
#![expect(unsafe_code, reason = "lays out cells of the maker's types, and calls into them")]

use core::{
    any::{TypeId, type_name},
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull,
    task::Waker,
};

#[cfg(loom)]
use clockjack_sync::mpsc::Pop;
use clockjack_sync::{
    mutant,
    prim::{UnsafeCell, atomic::Ordering::Relaxed, hint},
};
use clockjack_time::TimerInstant;

use crate::{
    error::SendError,
    executor::{ExecutorShared, INITIAL_REFS},
    executor_ref::ExecutorRef,
    exit::PanicPayload,
    handle::Handle,
    links::{self, ReceivedSignal},
    payload::Payload,
    pid::Pid,
    state::State,
    task::{self, CustomVTable, Header, PollOutcome, TaskRef, TaskResult, VTable},
};

/// The body of a custom task: what its runner, and nobody else, touches.
pub trait CustomTask: Sized + 'static {
    /// What everybody can reach who has a reference. It is dropped with the last reference, on
    /// whatever thread that is.
    type Shared: 'static;

    /// What it may sleep for, and what it has seen that lets it.
    type ParkToken: Copy;

    /// What whoever has a reference of unknown type may ask: the type of its messages, say.
    fn kind() -> TypeId;

    /// What reports call it.
    fn name() -> &'static str {
        type_name::<Self>()
    }

    /// What reports call that which it is sent.
    fn input() -> &'static str {
        type_name::<Self::Shared>()
    }
    /// Somebody has something for the process: leaves a mark that its runner will see, and ends its
    /// sleep. True if it slept.
    fn unpark(shared: &Self::Shared) -> bool;

    /// Whether it sleeps.
    fn is_parked(shared: &Self::Shared) -> bool;

    /// Puts the process to sleep, unless there is a reason not to; whether it sleeps (rule 1 of
    /// the [module](self)). If not, the next turn finds that reason.
    ///
    /// # Safety
    ///
    /// The caller is the runner, has the body borrowed no more, and knows the address as that of
    /// the shared of the process. The shared is there as long as the process does not sleep; after
    /// that neither this nor the caller touches it, or has it borrowed as an argument.
    unsafe fn park(shared: NonNull<Self::Shared>, how: Self::ParkToken) -> bool;

    /// One turn. It is never called at the same time twice, nor after it has said
    /// [`CustomPollOutcome::Finished`].
    fn poll(&mut self, cx: &PollContext<'_, Self::Shared>) -> CustomPollOutcome<Self::ParkToken>;

    /// The last turn was ended by a panic, which came out of whatever it had called. No code that
    /// may panic is to be called here: that is for the next turn.
    fn on_panic(
        &mut self,
        cx: &PollContext<'_, Self::Shared>,
        payload: PanicPayload,
    ) -> CustomPollOutcome<Self::ParkToken>;

    /// The executor ends the process by force. The body is dropped after this.
    fn on_terminate(&mut self, cx: &PollContext<'_, Self::Shared>);
}

/// What is to become of a custom process after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomPollOutcome<S> {
    /// It has another turn soon.
    PollAgain,
    /// It is to be put to sleep (rule 1 of the [module](self)).
    Park(S),
    /// It is over.
    Finished,
}

/// One turn of a custom process.
pub struct PollContext<'t, F> {
    header: &'t Header,
    executor: &'t ExecutorShared,
    _shared: PhantomData<&'t F>,
}

impl<'t, F: 'static> PollContext<'t, F> {
    /// What everybody can reach.
    #[must_use]
    #[inline]
    pub fn shared(&self) -> &'t F {
        // SAFETY: a turn is made for the header of a cell with this shared.
        unsafe { &(*core::ptr::from_ref(self.header).cast::<CustomHeader<F>>()).shared }
    }

    /// The same turn for who knows the beginning of the shared only.
    ///
    /// # Safety
    ///
    /// `F` begins with a `G`, at the same alignment.
    #[must_use]
    #[inline]
    pub unsafe fn of_prefix<G: 'static>(&self) -> PollContext<'t, G> {
        PollContext { header: self.header, executor: self.executor, _shared: PhantomData }
    }

    /// A reference to the process itself.
    #[must_use]
    pub fn self_ref(&self) -> CustomTaskRef<F> {
        // SAFETY: whoever is in a turn has the life of the process, which is counted.
        unsafe { self.header.slot().acquire() };
        // SAFETY: the reference that was just counted is given away.
        let task = unsafe { TaskRef::from_raw(NonNull::from(self.header)) };
        CustomTaskRef { task, _shared: PhantomData }
    }

    /// The process's name.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.header.pid()
    }

    /// A fresh reading of the time, in nanoseconds since the executor's start.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.executor.nanos()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.executor.now()
    }

    /// How many events a turn may take.
    #[must_use]
    pub fn throughput(&self) -> usize {
        self.executor.limits().throughput_max()
    }

    /// How long a turn may take, in nanoseconds.
    #[must_use]
    pub fn budget_nanos(&self) -> u64 {
        self.executor.step_budget_nanos()
    }

    /// A handle of the executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.header.executor).clone())
    }

    /// Whether the executor ends the process instead of its next turn. Whoever was called looks at
    /// this too, and does not sleep if so: nobody calls it again.
    #[must_use]
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.header.state.is_terminated()
    }

    /// Whether the executor has asked the process to stop since the last call, and why.
    #[must_use]
    #[inline]
    pub fn take_cancel(&self) -> Option<&'static str> {
        if self.header.signals.is_empty() { None } else { self.take_signals() }
    }

    #[cold]
    fn take_signals(&self) -> Option<&'static str> {
        let mut cancelled = None;
        // A custom process has no links: nothing ends it from here.
        let _ = links::take_signals(self.header, self.executor, |received| {
            if let ReceivedSignal::Cancel { reason } = received {
                cancelled.get_or_insert(reason);
            }
        });
        cancelled
    }

    /// Calls something of the user's, and catches a panic in it, where the toolbox can.
    ///
    /// # Errors
    ///
    /// The panic.
    pub fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.executor.toolbox().catch_unwind(call)
    }

    /// Drops a value of the user's; a panic in it is contained and counted.
    pub fn drop_catching_panic<T>(&self, value: T) {
        self.executor.drop_catching_panic(value);
    }

    /// Drops what was thrown, which may throw again.
    pub fn drop_panic_payload(&self, payload: PanicPayload) {
        self.executor.drop_panic_payload(payload);
    }
}

impl<F> fmt::Debug for PollContext<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollContext").field("pid", &self.header.pid()).finish_non_exhaustive()
    }
}

/// What is the same for all cells with a shared of this type.
#[repr(C)]
struct CustomHeader<F> {
    header: Header,
    shared: F,
}

#[repr(C)]
struct CustomTaskCell<B: CustomTask> {
    header: CustomHeader<B::Shared>,
    body: UnsafeCell<Option<B>>,
}

/// A counted reference to a custom process with a shared of this type. One state: its address.
#[repr(transparent)]
pub struct CustomTaskRef<F> {
    task: TaskRef,
    _shared: PhantomData<F>,
}

// SAFETY: a reference gives `&F` to any thread (needs `F: Sync`), and the one that lets go last
// drops the `F` (needs `F: Send`); the rest of the cell is made for sharing.
unsafe impl<F: Send + Sync> Send for CustomTaskRef<F> {}
// SAFETY: as above.
unsafe impl<F: Send + Sync> Sync for CustomTaskRef<F> {}

impl<F: 'static> CustomTaskRef<F> {
    #[inline]
    fn header(&self) -> &CustomHeader<F> {
        // SAFETY: the reference was made for a cell with this shared, which is `repr(C)`, and keeps
        // it alive; only shared borrows of the header are made.
        unsafe { self.task.as_ptr().cast::<CustomHeader<F>>().as_ref() }
    }

    /// Queues the process, whose sleep the caller has ended (rule 2).
    ///
    /// # Safety
    ///
    /// It slept, and it is this caller who has ended that.
    #[inline]
    pub unsafe fn schedule(&self) {
        let header = self.task.header();
        // Relaxed: a hint; until it is queued it is this caller's.
        header.is_polling.store(false, Relaxed);
        header.executor.schedule_woken(task::Runnable::of(header));
    }

    /// Gives the process a cx, unless it has one anyway. What it is to find was left before.
    #[inline]
    pub fn wake(&self) {
        self.task.header().wake();
    }

    /// As [`wake`](Self::wake), but behind all that is queued where this is called: for a process
    /// that has the more to do in its turn the later that is.
    #[inline]
    pub fn wake_last(&self) {
        self.task.header().wake_last();
    }

    /// The process's name.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.pid()
    }

    /// What its maker calls its [kind](CustomTask::kind).
    #[must_use]
    pub fn kind(&self) -> Option<TypeId> {
        self.task.header().vtable.custom.map(|custom| (custom.kind)())
    }

    /// What reports call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        (self.task.header().vtable.name)()
    }

    /// What reports call that which it is sent.
    #[must_use]
    pub fn input(&self) -> &'static str {
        self.task.header().vtable.custom.map_or("", |custom| (custom.input)())
    }

    /// What it does, at about this time.
    #[must_use]
    pub fn state(&self) -> State {
        self.task.header().state()
    }

    /// Whether it is over, as the executor sees it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// A waker that gives the process a turn.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::clone(&task::borrowed_waker(self.task.header()))
    }

    /// A handle of its executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.task.header().executor).clone())
    }

    /// What it keeps in the link that run queues need no more.
    ///
    /// # Safety
    ///
    /// The process is in its last cx, or over.
    #[must_use]
    pub unsafe fn spare_link(&self) -> *mut () {
        self.task.header().link.spare()
    }

    /// Keeps something there.
    ///
    /// # Safety
    ///
    /// As [`spare_link`](Self::spare_link), and nobody else does so meanwhile.
    pub unsafe fn set_spare_link(&self, value: *mut ()) {
        self.task.header().link.set_spare(value);
    }

    /// Its address, with the count.
    #[must_use]
    pub fn into_raw(self) -> NonNull<()> {
        self.task.into_raw().cast()
    }

    /// Its address; it stays valid as long as there is a reference.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> NonNull<()> {
        self.task.as_ptr().cast()
    }

    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw) of a reference to a cell whose shared
    /// begins with an `F`, at the same alignment, and its count is given away.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: by the contract.
        Self { task: unsafe { TaskRef::from_raw(raw.cast()) }, _shared: PhantomData }
    }

    /// Whether both are the same process.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.task.as_ptr() == other.task.as_ptr()
    }
}

impl<F: 'static> Deref for CustomTaskRef<F> {
    type Target = F;

    #[inline]
    fn deref(&self) -> &F {
        &self.header().shared
    }
}

impl<F> Clone for CustomTaskRef<F> {
    #[inline]
    fn clone(&self) -> Self {
        Self { task: self.task.clone(), _shared: PhantomData }
    }
}

impl<F> fmt::Debug for CustomTaskRef<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomTaskRef").field(&self.task.pid()).finish()
    }
}

/// Why a custom process was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomStartError {
    /// There are as many processes as there may be.
    Full,
    /// The executor stops.
    Stopping,
}

/// Starts a custom process. `make` is called if there is room for it, and `before` when it can be
/// found and before its first turn.
///
/// # Errors
///
/// [`CustomStartError`]; then nothing was called.
///
/// # Safety
///
/// The executor runs it on this thread only, or the body is `Send`.
pub unsafe fn start<B: CustomTask>(
    executor: &ExecutorRef,
    make: impl FnOnce() -> (B::Shared, B),
    before: impl FnOnce(&CustomTaskRef<B::Shared>),
) -> Result<CustomTaskRef<B::Shared>, CustomStartError> {
    if executor.is_stopping() {
        return Err(CustomStartError::Stopping);
    }
    let local = executor.worker_local();
    let Some(reserved) = executor.reserve(local) else {
        return Err(CustomStartError::Full);
    };
    let (shared, body) = make();
    let header = Header::new(executor.clone(), reserved.slot(), VTableOf::<B>::TABLE, false);
    let body = UnsafeCell::new(Some(body));
    let task =
        executor.memory.make(CustomTaskCell { header: CustomHeader { header, shared }, body });
    let task = executor.publish(local, reserved, task.cast(), INITIAL_REFS, |header| {
        // SAFETY: the cell is alive, and the reference is not given back.
        let task = unsafe { TaskRef::from_raw(NonNull::from(header)) };
        before(&ManuallyDrop::new(CustomTaskRef { task, _shared: PhantomData }));
    });
    Ok(CustomTaskRef { task, _shared: PhantomData })
}

/// Takes a process that is ready and gives it a cx, as a worker does: for models in which threads
/// stand in for the workers of an executor that has none. Busy if another takes at the same time.
///
/// # Safety
///
/// What the executor runs is `Send`, and nothing else runs it meanwhile.
#[cfg(loom)]
#[doc(hidden)]
pub unsafe fn run_next(executor: &ExecutorRef) -> Pop<()> {
    match executor.injector.take_batch(1) {
        Pop::Item(batch) => {
            batch.into_iter().for_each(|runnable| _ = executor.poll_task(runnable));
            Pop::Item(())
        }
        Pop::Empty => Pop::Empty,
        Pop::Busy => Pop::Busy,
    }
}

struct VTableOf<B>(B);

impl<B: CustomTask> VTableOf<B> {
    const TABLE: &'static VTable = &VTable {
        poll: poll::<B>,
        next_request: no_request,
        close: close::<B>,
        drop_body: drop_body::<B>,
        store: store_nothing,
        drop_output: nothing,
        take_output: take_nothing,
        deliver: refuse,
        free: free::<B>,
        name: B::name,
        on_panic: Some(on_panic::<B>),
        custom: Some(&CustomVTable {
            kind: B::kind,
            input: B::input,
            unpark: unpark::<B>,
            is_parked: is_parked::<B>,
        }),
    };
}

/// Lends the body out, for no longer than the call: a model sees who else has it meanwhile.
///
/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`, and the caller is its runner, and is so when the call
/// returns.
#[inline]
unsafe fn with_body<B: CustomTask, R>(
    header: NonNull<Header>,
    call: impl FnOnce(&mut Option<B>) -> R,
) -> R {
    let task = header.cast::<CustomTaskCell<B>>().as_ptr();
    // SAFETY: the header is the first field of a `repr(C)` cell of this type.
    let body = unsafe { &(*task).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| call(unsafe { &mut *body }))
}

/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`.
unsafe fn shared_of<B: CustomTask>(header: &Header) -> &B::Shared {
    // SAFETY: by the contract.
    unsafe { &(*core::ptr::from_ref(header).cast::<CustomHeader<B::Shared>>()).shared }
}

unsafe fn unpark<B: CustomTask>(header: &Header) -> bool {
    // SAFETY: the table is that of the cell.
    B::unpark(unsafe { shared_of::<B>(header) })
}

unsafe fn is_parked<B: CustomTask>(header: &Header) -> bool {
    // SAFETY: the table is that of the cell.
    B::is_parked(unsafe { shared_of::<B>(header) })
}

fn context<'t, B: CustomTask>(
    header: &'t Header,
    executor: &'t ExecutorShared,
) -> PollContext<'t, B::Shared> {
    PollContext { header, executor, _shared: PhantomData }
}

/// Has a cx, and then puts the body to sleep if that is what it says.
///
/// # Safety
///
/// The header is that of a `CustomTaskCell<B>`, and the caller is its runner; after
/// [`PollOutcome::Parked`] it is not, and the header may be gone.
#[inline]
unsafe fn poll_body<B: CustomTask>(
    header: NonNull<Header>,
    executor: &ExecutorShared,
    call: impl FnOnce(&mut B, &PollContext<'_, B::Shared>) -> CustomPollOutcome<B::ParkToken>,
) -> PollOutcome {
    let poll = |body: &mut Option<B>| match body {
        // SAFETY: the runner has the life of the process.
        Some(body) => call(body, &context::<B>(unsafe { header.as_ref() }, executor)),
        None => CustomPollOutcome::Finished,
    };
    if mutant!("custom-sleeps-borrowed") {
        let all = |body: &mut Option<B>| {
            // SAFETY: none, another may have the body while it is borrowed here.
            let outcome = unsafe { finish_poll::<B>(header, poll(body)) };
            // A model sees others go on only where this thread gives way.
            hint::spin_loop();
            outcome
        };
        // SAFETY: as above.
        return unsafe { with_body(header, all) };
    }
    // SAFETY: by the contract.
    let outcome = unsafe { with_body(header, poll) };
    // SAFETY: by the contract, and the borrow has ended.
    unsafe { finish_poll::<B>(header, outcome) }
}

/// What becomes of the process. No reference to the cell is an argument here, or lives through the
/// sleep.
///
/// # Safety
///
/// As for [`poll_body`]; the body is not borrowed.
#[inline]
unsafe fn finish_poll<B: CustomTask>(
    header: NonNull<Header>,
    outcome: CustomPollOutcome<B::ParkToken>,
) -> PollOutcome {
    let token = match outcome {
        CustomPollOutcome::PollAgain => return PollOutcome::PollAgain,
        CustomPollOutcome::Park(token) => token,
        CustomPollOutcome::Finished => {
            return PollOutcome::Finished(TaskResult::Output(Payload::unit()));
        }
    };
    let task = header.cast::<CustomHeader<B::Shared>>().as_ptr();
    // SAFETY: the header is the first field of a `repr(C)` cell with this shared, which is there.
    let shared = unsafe { &raw mut (*task).shared };
    // SAFETY: the address of a field of a live cell is not null.
    let shared = unsafe { NonNull::new_unchecked(shared) };
    // SAFETY: the caller is the runner, and has borrowed nothing. If it sleeps, that is the last.
    if unsafe { B::park(shared, token) } { PollOutcome::Parked } else { PollOutcome::PollAgain }
}

unsafe fn poll<B: CustomTask>(header: NonNull<Header>, executor: &ExecutorShared) -> PollOutcome {
    // SAFETY: the caller is the runner.
    unsafe { poll_body::<B>(header, executor, B::poll) }
}

unsafe fn on_panic<B: CustomTask>(
    header: NonNull<Header>,
    executor: &ExecutorShared,
    payload: PanicPayload,
) -> PollOutcome {
    // SAFETY: the caller is the runner.
    unsafe { poll_body::<B>(header, executor, |body, cx| body.on_panic(cx, payload)) }
}

unsafe fn close<B: CustomTask>(header: &Header) {
    let call = |body: &mut Option<B>| {
        if let Some(body) = body {
            body.on_terminate(&context::<B>(header, &header.executor));
        }
    };
    // SAFETY: the caller is the runner.
    unsafe { with_body(NonNull::from(header), call) }
}

unsafe fn drop_body<B: CustomTask>(header: &Header) {
    // SAFETY: the caller is the runner.
    let body = unsafe { with_body(NonNull::from(header), Option::<B>::take) };
    drop(body);
}

unsafe fn store_nothing(_: &Header, _: TaskResult) {}

unsafe fn nothing(_: &Header) {}

unsafe fn take_nothing(_: &Header, _: *mut ()) {}

unsafe fn no_request(_: &Header) -> Option<crate::command::Request> {
    None
}

unsafe fn refuse(_: &Header, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}

unsafe fn free<B: CustomTask>(header: NonNull<Header>) -> ExecutorRef {
    let task = header.cast::<CustomTaskCell<B>>();
    // SAFETY: the cell was made by `start` with this type, and the caller has its last reference.
    let inside = unsafe { &mut (*task.as_ptr()).header.header };
    debug_assert!(inside.state.is_complete(), "a process that is alive was freed");
    // SAFETY: the cell is dropped without looking at the field again.
    let executor = unsafe { ManuallyDrop::take(&mut inside.executor) };
    // SAFETY: as above; it came from the memory of its executor.
    unsafe { executor.memory.free(task) };
    executor
}
