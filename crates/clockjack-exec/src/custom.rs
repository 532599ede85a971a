//! Cells whose body another crate makes: how `clockjack-actor` puts actors into the executor
//! without a second allocation, a box a message or a second state word.
//!
//! A custom cell is a head like all others, behind it a *front* of the maker's type, which
//! everyone who has a reference can reach, and behind that the *body*, which only the runner
//! touches. What the front holds and how it is filled is the maker's affair: whoever has left
//! something in it calls [`CustomRef::wake`].
//!
//! The state word of a custom process says Running for all its life. Whether it sleeps is decided
//! by a word of its front, so that whoever leaves something there finds out by the same
//! read-modify-write whether it has to queue the process:
//!
//! 1. A body that has nothing to do says so ([`Outcome::Sleep`]) and does not sleep itself: it is
//!    borrowed, exclusively, until its turn has returned. Then the executor, still the runner, puts
//!    it to sleep ([`Body::sleep`]), by an exchange that fails if somebody has called since the
//!    body looked; if so it has another turn soon. From the exchange on another thread may have
//!    its next turn, or may even free the cell: so whoever makes it has the cell by its address
//!    and borrows at most the word, and nothing of the cell is touched any more.
//! 2. Whoever leaves something calls ([`Body::unpark`]), by a read-modify-write of the same word
//!    that ends the sleep and is remembered until the body looks; exactly one finds it asleep, and
//!    queues it ([`CustomRef::queue`], or [`CustomRef::wake`] for both).
//! 3. The executor ends a process by force when a turn begins, and so calls it after it has said so
//!    in the state word. A body that looks because it was called looks at that word as well
//!    ([`Turn::is_terminated`]): if it went to sleep instead, its next turn would never begin.
//!
//! A panic in a turn does not end the process: the body is told ([`Body::panicked`]) and decides.
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
    cell::{self, CellRef, Custom, Ending, Head, VTable, Verdict},
    engine::{Engine, TWO},
    engine_ref::EngineRef,
    error::SendError,
    exit::Caught,
    handle::Handle,
    payload::Payload,
    pid::Pid,
    state::State,
    ties::{self, Told},
};

/// The body of a custom cell: what its runner, and nobody else, touches.
pub trait Body: Sized + 'static {
    /// What everybody can reach who has a reference. It is dropped with the last reference, on
    /// whatever thread that is.
    type Front: 'static;

    /// What it may sleep for, and what it has seen that lets it.
    type Sleep: Copy;

    /// What whoever has a reference of unknown type may ask: the type of its messages, say.
    fn kind() -> TypeId;

    /// What reports call it.
    fn name() -> &'static str {
        type_name::<Self>()
    }

    /// What reports call that which it is sent.
    fn input() -> &'static str {
        type_name::<Self::Front>()
    }
    /// Somebody has something for the process: leaves a mark that its runner will see, and ends its
    /// sleep. True if it slept.
    fn unpark(front: &Self::Front) -> bool;

    /// Whether it sleeps.
    fn is_parked(front: &Self::Front) -> bool;

    /// Puts the process to sleep, unless there is a reason not to; whether it sleeps (rule 1 of
    /// the [module](self)). If not, the next turn finds that reason.
    ///
    /// # Safety
    ///
    /// The caller is the runner, has the body borrowed no more, and knows the address as that of
    /// the front of the process. The front is there as long as the process does not sleep; after
    /// that neither this nor the caller touches it, or has it borrowed as an argument.
    unsafe fn sleep(front: NonNull<Self::Front>, how: Self::Sleep) -> bool;

    /// One turn. It is never called at the same time twice, nor after it has said
    /// [`Outcome::End`].
    fn step(&mut self, turn: &Turn<'_, Self::Front>) -> Outcome<Self::Sleep>;

    /// The last turn was ended by a panic, which came out of whatever it had called. No code that
    /// may panic is to be called here: that is for the next turn.
    fn panicked(&mut self, turn: &Turn<'_, Self::Front>, caught: Caught) -> Outcome<Self::Sleep>;

    /// The executor ends the process by force. The body is dropped after this.
    fn ended(&mut self, turn: &Turn<'_, Self::Front>);
}

/// What is to become of a custom process after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<S> {
    /// It has another turn soon.
    Again,
    /// It is to be put to sleep (rule 1 of the [module](self)).
    Sleep(S),
    /// It is over.
    End,
}

/// One turn of a custom process.
pub struct Turn<'t, F> {
    head: &'t Head,
    engine: &'t Engine,
    _front: PhantomData<&'t F>,
}

impl<'t, F: 'static> Turn<'t, F> {
    /// What everybody can reach.
    #[must_use]
    #[inline]
    pub fn front(&self) -> &'t F {
        // SAFETY: a turn is made for the head of a cell with this front.
        unsafe { &(*core::ptr::from_ref(self.head).cast::<Prefix<F>>()).front }
    }

    /// The same turn for who knows the beginning of the front only.
    ///
    /// # Safety
    ///
    /// `F` begins with a `G`, at the same alignment.
    #[must_use]
    #[inline]
    pub unsafe fn of_prefix<G: 'static>(&self) -> Turn<'t, G> {
        Turn { head: self.head, engine: self.engine, _front: PhantomData }
    }

    /// A reference to the process itself.
    #[must_use]
    pub fn me(&self) -> CustomRef<F> {
        // SAFETY: whoever is in a turn has the life of the process, which is counted.
        unsafe { self.head.slot().acquire() };
        // SAFETY: the reference that was just counted is given away.
        let cell = unsafe { CellRef::from_raw(NonNull::from(self.head)) };
        CustomRef { cell, _front: PhantomData }
    }

    /// The process's name.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.head.pid()
    }

    /// A fresh reading of the time, in nanoseconds since the executor's start.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.engine.nanos()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.engine.now()
    }

    /// How many events a turn may take.
    #[must_use]
    pub fn throughput(&self) -> usize {
        self.engine.limits().throughput_max()
    }

    /// How long a turn may take, in nanoseconds.
    #[must_use]
    pub fn budget_nanos(&self) -> u64 {
        self.engine.step_budget_nanos()
    }

    /// A handle of the executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.head.engine).clone())
    }

    /// Whether the executor ends the process instead of its next turn. Whoever was called looks at
    /// this too, and does not sleep if so: nobody calls it again.
    #[must_use]
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.head.word.is_terminated()
    }

    /// Whether the executor has asked the process to stop since the last call, and why.
    #[must_use]
    #[inline]
    pub fn take_cancel(&self) -> Option<&'static str> {
        if self.head.lane.is_empty() { None } else { self.take_signals() }
    }

    #[cold]
    fn take_signals(&self) -> Option<&'static str> {
        let mut cancelled = None;
        // A custom process has no links: nothing ends it from here.
        let _ = ties::take_signals(self.head, self.engine, |told| {
            if let Told::Cancel { reason } = told {
                cancelled.get_or_insert(reason);
            }
        });
        cancelled
    }

    /// Calls something of the user's, and catches a panic in it, where the host can.
    ///
    /// # Errors
    ///
    /// The panic.
    pub fn guarded(&self, call: &mut dyn FnMut()) -> Result<(), Caught> {
        self.engine.host().guarded(call)
    }

    /// Drops a value of the user's; a panic in it is contained and counted.
    pub fn drop_contained<T>(&self, value: T) {
        self.engine.drop_contained(value);
    }

    /// Drops what was thrown, which may throw again.
    pub fn discard(&self, caught: Caught) {
        self.engine.discard(caught);
    }
}

impl<F> fmt::Debug for Turn<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("pid", &self.head.pid()).finish_non_exhaustive()
    }
}

/// What is the same for all cells with a front of this type.
#[repr(C)]
struct Prefix<F> {
    head: Head,
    front: F,
}

#[repr(C)]
struct CustomCell<B: Body> {
    prefix: Prefix<B::Front>,
    body: UnsafeCell<Option<B>>,
}

/// A counted reference to a custom process with a front of this type. One word: its address.
#[repr(transparent)]
pub struct CustomRef<F> {
    cell: CellRef,
    _front: PhantomData<F>,
}

// SAFETY: a reference gives `&F` to any thread (needs `F: Sync`), and the one that lets go last
// drops the `F` (needs `F: Send`); the rest of the cell is made for sharing.
unsafe impl<F: Send + Sync> Send for CustomRef<F> {}
// SAFETY: as above.
unsafe impl<F: Send + Sync> Sync for CustomRef<F> {}

impl<F: 'static> CustomRef<F> {
    #[inline]
    fn prefix(&self) -> &Prefix<F> {
        // SAFETY: the reference was made for a cell with this front, which is `repr(C)`, and keeps
        // it alive; only shared borrows of the prefix are made.
        unsafe { self.cell.as_ptr().cast::<Prefix<F>>().as_ref() }
    }

    /// Queues the process, whose sleep the caller has ended (rule 2).
    ///
    /// # Safety
    ///
    /// It slept, and it is this caller who has ended that.
    #[inline]
    pub unsafe fn queue(&self) {
        let head = self.cell.head();
        // Relaxed: a hint; until it is queued it is this caller's.
        head.is_in_turn.store(false, Relaxed);
        head.engine.schedule_woken(cell::Entry::of(head));
    }

    /// Gives the process a turn, unless it has one anyway. What it is to find was left before.
    #[inline]
    pub fn wake(&self) {
        self.cell.head().wake();
    }

    /// As [`wake`](Self::wake), but behind all that is queued where this is called: for a process
    /// that has the more to do in its turn the later that is.
    #[inline]
    pub fn wake_last(&self) {
        self.cell.head().wake_last();
    }

    /// The process's name.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.cell.pid()
    }

    /// What its maker calls its [kind](Body::kind).
    #[must_use]
    pub fn kind(&self) -> Option<TypeId> {
        self.cell.head().vtable.custom.map(|custom| (custom.kind)())
    }

    /// What reports call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        (self.cell.head().vtable.name)()
    }

    /// What reports call that which it is sent.
    #[must_use]
    pub fn input(&self) -> &'static str {
        self.cell.head().vtable.custom.map_or("", |custom| (custom.input)())
    }

    /// What it does, at about this time.
    #[must_use]
    pub fn state(&self) -> State {
        self.cell.head().state()
    }

    /// Whether it is over, as the executor sees it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.cell.head().word.is_complete()
    }

    /// A waker that gives the process a turn.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::clone(&cell::borrowed_waker(self.cell.head()))
    }

    /// A handle of its executor.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new((*self.cell.head().engine).clone())
    }

    /// What it keeps in the link that run queues need no more.
    ///
    /// # Safety
    ///
    /// The process is in its last turn, or over.
    #[must_use]
    pub unsafe fn spare_link(&self) -> *mut () {
        self.cell.head().link.spare()
    }

    /// Keeps something there.
    ///
    /// # Safety
    ///
    /// As [`spare_link`](Self::spare_link), and nobody else does so meanwhile.
    pub unsafe fn set_spare_link(&self, value: *mut ()) {
        self.cell.head().link.set_spare(value);
    }

    /// Its address, with the count.
    #[must_use]
    pub fn into_raw(self) -> NonNull<()> {
        self.cell.into_raw().cast()
    }

    /// Its address; it stays valid as long as there is a reference.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> NonNull<()> {
        self.cell.as_ptr().cast()
    }

    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw) of a reference to a cell whose front
    /// begins with an `F`, at the same alignment, and its count is given away.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: by the contract.
        Self { cell: unsafe { CellRef::from_raw(raw.cast()) }, _front: PhantomData }
    }

    /// Whether both are the same process.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.cell.as_ptr() == other.cell.as_ptr()
    }
}

impl<F: 'static> Deref for CustomRef<F> {
    type Target = F;

    #[inline]
    fn deref(&self) -> &F {
        &self.prefix().front
    }
}

impl<F> Clone for CustomRef<F> {
    #[inline]
    fn clone(&self) -> Self {
        Self { cell: self.cell.clone(), _front: PhantomData }
    }
}

impl<F> fmt::Debug for CustomRef<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomRef").field(&self.cell.pid()).finish()
    }
}

/// Why a custom process was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStarted {
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
/// [`NotStarted`]; then nothing was called.
///
/// # Safety
///
/// The engine runs it on this thread only, or the body is `Send`.
pub unsafe fn start<B: Body>(
    engine: &EngineRef,
    make: impl FnOnce() -> (B::Front, B),
    before: impl FnOnce(&CustomRef<B::Front>),
) -> Result<CustomRef<B::Front>, NotStarted> {
    if engine.is_stopping() {
        return Err(NotStarted::Stopping);
    }
    let local = engine.local();
    let Some(reserved) = engine.reserve(local) else {
        return Err(NotStarted::Full);
    };
    let (front, body) = make();
    let head = Head::new(engine.clone(), reserved.slot(), Table::<B>::TABLE, false);
    let body = UnsafeCell::new(Some(body));
    let cell = engine.memory.make(CustomCell { prefix: Prefix { head, front }, body });
    let cell = engine.publish(local, reserved, cell.cast(), TWO, |head| {
        // SAFETY: the cell is alive, and the reference is not given back.
        let cell = unsafe { CellRef::from_raw(NonNull::from(head)) };
        before(&ManuallyDrop::new(CustomRef { cell, _front: PhantomData }));
    });
    Ok(CustomRef { cell, _front: PhantomData })
}

/// Takes a process that is ready and gives it a turn, as a worker does: for models in which threads
/// stand in for the workers of an executor that has none. Busy if another takes at the same time.
///
/// # Safety
///
/// What the engine runs is `Send`, and nothing else runs it meanwhile.
#[cfg(loom)]
#[doc(hidden)]
pub unsafe fn run_next(engine: &EngineRef) -> Pop<()> {
    match engine.injector.take_batch(1) {
        Pop::Item(batch) => {
            batch.into_iter().for_each(|entry| _ = engine.run(entry));
            Pop::Item(())
        }
        Pop::Empty => Pop::Empty,
        Pop::Busy => Pop::Busy,
    }
}

struct Table<B>(B);

impl<B: Body> Table<B> {
    const TABLE: &'static VTable = &VTable {
        step: step::<B>,
        next_request: no_request,
        close: close::<B>,
        drop_body: drop_body::<B>,
        store: store_nothing,
        drop_output: nothing,
        take_output: take_nothing,
        deliver: refuse,
        free: free::<B>,
        name: B::name,
        panicked: Some(panicked::<B>),
        custom: Some(&Custom {
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
/// The head is that of a `CustomCell<B>`, and the caller is its runner, and is so when the call
/// returns.
#[inline]
unsafe fn with_body<B: Body, R>(head: NonNull<Head>, call: impl FnOnce(&mut Option<B>) -> R) -> R {
    let cell = head.cast::<CustomCell<B>>().as_ptr();
    // SAFETY: the head is the first field of a `repr(C)` cell of this type.
    let body = unsafe { &(*cell).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| call(unsafe { &mut *body }))
}

/// # Safety
///
/// The head is that of a `CustomCell<B>`.
unsafe fn front<B: Body>(head: &Head) -> &B::Front {
    // SAFETY: by the contract.
    unsafe { &(*core::ptr::from_ref(head).cast::<Prefix<B::Front>>()).front }
}

unsafe fn unpark<B: Body>(head: &Head) -> bool {
    // SAFETY: the table is that of the cell.
    B::unpark(unsafe { front::<B>(head) })
}

unsafe fn is_parked<B: Body>(head: &Head) -> bool {
    // SAFETY: the table is that of the cell.
    B::is_parked(unsafe { front::<B>(head) })
}

fn turn<'t, B: Body>(head: &'t Head, engine: &'t Engine) -> Turn<'t, B::Front> {
    Turn { head, engine, _front: PhantomData }
}

/// Has a turn, and then puts the body to sleep if that is what it says.
///
/// # Safety
///
/// The head is that of a `CustomCell<B>`, and the caller is its runner; after
/// [`Verdict::Parked`] it is not, and the head may be gone.
#[inline]
unsafe fn have_turn<B: Body>(
    head: NonNull<Head>,
    engine: &Engine,
    call: impl FnOnce(&mut B, &Turn<'_, B::Front>) -> Outcome<B::Sleep>,
) -> Verdict {
    let turn = |body: &mut Option<B>| match body {
        // SAFETY: the runner has the life of the process.
        Some(body) => call(body, &turn::<B>(unsafe { head.as_ref() }, engine)),
        None => Outcome::End,
    };
    if mutant!("custom-sleeps-borrowed") {
        let all = |body: &mut Option<B>| {
            // SAFETY: none, another may have the body while it is borrowed here.
            let verdict = unsafe { settle::<B>(head, turn(body)) };
            // A model sees others go on only where this thread gives way.
            hint::spin_loop();
            verdict
        };
        // SAFETY: as above.
        return unsafe { with_body(head, all) };
    }
    // SAFETY: by the contract.
    let outcome = unsafe { with_body(head, turn) };
    // SAFETY: by the contract, and the borrow has ended.
    unsafe { settle::<B>(head, outcome) }
}

/// What becomes of the process. No reference to the cell is an argument here, or lives through the
/// sleep.
///
/// # Safety
///
/// As for [`have_turn`]; the body is not borrowed.
#[inline]
unsafe fn settle<B: Body>(head: NonNull<Head>, outcome: Outcome<B::Sleep>) -> Verdict {
    let how = match outcome {
        Outcome::Again => return Verdict::Again,
        Outcome::Sleep(how) => how,
        Outcome::End => return Verdict::End(Ending::Result(Payload::unit())),
    };
    let cell = head.cast::<Prefix<B::Front>>().as_ptr();
    // SAFETY: the head is the first field of a `repr(C)` cell with this front, which is there.
    let front = unsafe { &raw mut (*cell).front };
    // SAFETY: the address of a field of a live cell is not null.
    let front = unsafe { NonNull::new_unchecked(front) };
    // SAFETY: the caller is the runner, and has borrowed nothing. If it sleeps, that is the last.
    if unsafe { B::sleep(front, how) } { Verdict::Parked } else { Verdict::Again }
}

unsafe fn step<B: Body>(head: NonNull<Head>, engine: &Engine) -> Verdict {
    // SAFETY: the caller is the runner.
    unsafe { have_turn::<B>(head, engine, B::step) }
}

unsafe fn panicked<B: Body>(head: NonNull<Head>, engine: &Engine, caught: Caught) -> Verdict {
    // SAFETY: the caller is the runner.
    unsafe { have_turn::<B>(head, engine, |body, turn| body.panicked(turn, caught)) }
}

unsafe fn close<B: Body>(head: &Head) {
    let call = |body: &mut Option<B>| {
        if let Some(body) = body {
            body.ended(&turn::<B>(head, &head.engine));
        }
    };
    // SAFETY: the caller is the runner.
    unsafe { with_body(NonNull::from(head), call) }
}

unsafe fn drop_body<B: Body>(head: &Head) {
    // SAFETY: the caller is the runner.
    let body = unsafe { with_body(NonNull::from(head), Option::<B>::take) };
    drop(body);
}

unsafe fn store_nothing(_: &Head, _: Ending) {}

unsafe fn nothing(_: &Head) {}

unsafe fn take_nothing(_: &Head, _: *mut ()) {}

unsafe fn no_request(_: &Head) -> Option<crate::command::Request> {
    None
}

unsafe fn refuse(_: &Head, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}

unsafe fn free<B: Body>(head: NonNull<Head>) -> EngineRef {
    let cell = head.cast::<CustomCell<B>>();
    // SAFETY: the cell was made by `start` with this type, and the caller has its last reference.
    let inside = unsafe { &mut (*cell.as_ptr()).prefix.head };
    debug_assert!(inside.word.is_complete(), "a process that is alive was freed");
    // SAFETY: the cell is dropped without looking at the field again.
    let engine = unsafe { ManuallyDrop::take(&mut inside.engine) };
    // SAFETY: as above; it came from the memory of its executor.
    unsafe { engine.memory.free(cell) };
    engine
}
