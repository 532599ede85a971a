//! The task of a future: each poll of the task polls the future once.
#![expect(unsafe_code, reason = "pins a future in its cell, and stores its output in its place")]

use alloc::{borrow::Cow, boxed::Box};
use core::{
    any::type_name,
    cell::Cell,
    mem::ManuallyDrop,
    panic::Location,
    pin::Pin,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
    task::{Context, Poll},
};

use clockjack_sync::primitive::UnsafeCell;

use super::{Header, HeaderRef, JoinableHeader, PollOutcome, TaskResult, VTable, borrowed_waker};
use crate::{
    error::SendError,
    executor::ExecutorShared,
    executor_ref::ExecutorRef,
    exit::JoinError,
    payload::Payload,
    process::links::{self, ReceivedSignal},
    registry::Slot,
    state::WaitKind,
};

/// The cell of a future.
#[repr(C)]
struct FutureCell<F: Future> {
    header: FutureHeader,
    body: UnsafeCell<FutureBody<F>>,
}

/// The beginning of the cell of every future.
#[repr(C)]
pub(crate) struct FutureHeader {
    joinable: JoinableHeader,
    info: FutureInfo,
}

/// What a dump says of a future.
pub(crate) struct FutureInfo {
    spawned_at: &'static Location<'static>,
    /// Boxed, because most futures have no name.
    name: Option<Box<Cow<'static, str>>>,
    /// Where the future waits, since its last poll; null if it is not known. The atomic is that of
    /// `core`, and not one that models replace: it is a hint for dumps with one writer, the runner.
    waits_at: AtomicPtr<Location<'static>>,
}

impl FutureInfo {
    pub(crate) fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }

    pub(crate) fn name(&self) -> Option<Cow<'static, str>> {
        self.name.as_deref().cloned()
    }

    pub(crate) fn waits_at(&self) -> Option<&'static Location<'static>> {
        // Relaxed: a hint; what it points to is a constant of the program.
        let location = self.waits_at.load(Relaxed);
        // SAFETY: it is null, or came from a `&'static`.
        unsafe { location.as_ref() }
    }

    fn set_waits_at(&self, location: Option<&'static Location<'static>>) {
        let location = location.map_or(ptr::null_mut(), |it| ptr::from_ref(it).cast_mut());
        // Relaxed: as above.
        self.waits_at.store(location, Relaxed);
    }
}

/// What a dump says of a task, if it is a future.
///
/// # Safety
///
/// The pointer is that of a cell, which lives as long as the result is used.
pub(crate) unsafe fn info<'t>(header: NonNull<Header>) -> Option<&'t FutureInfo> {
    // SAFETY: by the contract.
    if !unsafe { header.as_ref() }.vtable.is_future {
        return None;
    }
    // SAFETY: the vtable says that the cell begins with a `FutureHeader`; the field is only shared.
    Some(unsafe { &(*header.cast::<FutureHeader>().as_ptr()).info })
}

/// Notes where a task waits, if it is a future.
///
/// # Safety
///
/// The pointer is that of a live cell.
pub(crate) unsafe fn set_waits_at(header: NonNull<Header>, location: &'static Location<'static>) {
    // SAFETY: by the contract.
    if let Some(info) = unsafe { info(header) } {
        info.set_waits_at(Some(location));
    }
}

/// What the storage holds that future and output share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    Future,
    Output,
    Nothing,
}

struct FutureBody<F: Future> {
    contents: Cell<Contents>,
    storage: FutureOrOutput<F>,
}

/// A future, and later its output; `contents` says which.
union FutureOrOutput<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, JoinError>>,
}

/// Creates the cell of a future; its references are not counted yet.
pub(crate) fn new<F: Future + 'static>(
    executor: ExecutorRef,
    slot: NonNull<Slot>,
    future: F,
    name: Option<Cow<'static, str>>,
    spawned_at: &'static Location<'static>,
) -> NonNull<Header> {
    let header = Header::new(executor, slot, VTableOf::<F>::TABLE, true);
    let waits_at = AtomicPtr::new(ptr::null_mut());
    let info = FutureInfo { spawned_at, name: name.map(Box::new), waits_at };
    let header = FutureHeader { joinable: JoinableHeader::new(header), info };
    let storage = FutureOrOutput { future: ManuallyDrop::new(future) };
    let body = UnsafeCell::new(FutureBody { contents: Cell::new(Contents::Future), storage });
    NonNull::from(Box::leak(Box::new(FutureCell { header, body }))).cast()
}

struct VTableOf<F>(F);

impl<F: Future + 'static> VTableOf<F> {
    const TABLE: &'static VTable = &VTable {
        poll: poll::<F>,
        next_request: no_request,
        close: nothing,
        drop_body: drop_future::<F>,
        store: store::<F>,
        drop_output: drop_output::<F>,
        take_output: take_output::<F>,
        deliver: refuse,
        free: free::<F>,
        name: type_name::<F>,
        is_future: true,
        on_panic: None,
        custom: None,
    };
}

/// The body, for the runner, or for the joiner after the completion.
///
/// # Safety
///
/// The header is that of a `FutureCell<F>`, and the state lets the caller, and nobody else, touch
/// the body; the borrow ends before that changes.
unsafe fn body<F: Future>(header: HeaderRef<'_>) -> &mut FutureBody<F> {
    let cell = header.as_ptr().cast::<FutureCell<F>>().as_ptr();
    // SAFETY: the header is at the beginning of a `repr(C)` cell of this type, and the pointer is
    // that of the whole cell.
    let body = unsafe { &(*cell).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| unsafe { &mut *body })
}

unsafe fn poll<F: Future>(header: NonNull<Header>, executor: &ExecutorShared) -> PollOutcome {
    // SAFETY: the runner holds the task's own reference, also after this.
    let info = unsafe { &(*header.cast::<FutureHeader>().as_ptr()).info };
    info.set_waits_at(None);
    // SAFETY: as above.
    let header = unsafe { HeaderRef::new(header) };
    let mut has_more_signals = false;
    if links::has_signals(header) {
        let mut cancelled = None;
        let received = links::take_signals(header, executor, |received| {
            if let ReceivedSignal::Cancel { reason } = received {
                cancelled.get_or_insert(reason);
            }
        });
        match received {
            Ok(has_more) => has_more_signals = has_more,
            Err(exit) => return PollOutcome::Finished(TaskResult::Error(exit)),
        }
        if let Some(reason) = cancelled {
            return PollOutcome::Finished(TaskResult::Error(JoinError::cancelled(reason)));
        }
    }
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<F>(header) };
    debug_assert!(body.contents.get() == Contents::Future, "a task that has ended was polled");
    let waker = borrowed_waker(header);
    let mut context = Context::from_waker(&waker);
    // SAFETY: the storage holds the future.
    let future: &mut F = unsafe { &mut body.storage.future };
    // SAFETY: the cell is on the heap, and the future is not moved out of it, but dropped in place.
    let future = unsafe { Pin::new_unchecked(future) };
    match future.poll(&mut context) {
        // Nobody notifies a second time about signals that are left.
        Poll::Pending if has_more_signals => PollOutcome::PollAgain,
        Poll::Pending => PollOutcome::Wait(WaitKind::Idle),
        Poll::Ready(output) => {
            // SAFETY: the caller is the runner.
            unsafe { drop_future::<F>(header) };
            // SAFETY: the future is dropped, and `body` is not used while the call borrows it.
            unsafe { store_output::<F>(header, Ok(output)) };
            PollOutcome::Finished(TaskResult::Stored)
        }
    }
}

unsafe fn drop_future<F: Future>(header: HeaderRef<'_>) {
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<F>(header) };
    if body.contents.get() == Contents::Future {
        // First, so that a panic does not lead to a second drop.
        body.contents.set(Contents::Nothing);
        // SAFETY: the storage held the future.
        let future = unsafe { &mut body.storage.future };
        // SAFETY: the storage is not read as a future again.
        unsafe { ManuallyDrop::drop(future) };
    }
}

/// # Safety
///
/// As for [`body`]; the storage is empty.
unsafe fn store_output<F: Future>(header: HeaderRef<'_>, output: Result<F::Output, JoinError>) {
    // SAFETY: by the contract.
    let body = unsafe { body::<F>(header) };
    debug_assert!(body.contents.get() == Contents::Nothing, "the storage is occupied");
    body.storage.output = ManuallyDrop::new(output);
    body.contents.set(Contents::Output);
}

unsafe fn store<F: Future>(header: HeaderRef<'_>, ending: TaskResult) {
    let exit = match ending {
        TaskResult::Stored => return,
        TaskResult::Error(exit) => exit,
        TaskResult::Output(_) => unreachable!("a future ends with its output"),
    };
    // SAFETY: the caller is the runner, and has dropped the future.
    unsafe { store_output::<F>(header, Err(exit)) };
}

unsafe fn drop_output<F: Future>(header: HeaderRef<'_>) {
    let mut output: Option<Result<F::Output, JoinError>> = None;
    // SAFETY: the caller owns the output.
    unsafe { take_output::<F>(header, (&raw mut output).cast()) };
}

unsafe fn take_output<F: Future>(header: HeaderRef<'_>, into: *mut ()) {
    // SAFETY: the caller owns the output.
    let body = unsafe { body::<F>(header) };
    if body.contents.get() == Contents::Output {
        body.contents.set(Contents::Nothing);
        // SAFETY: the storage held the output.
        let output = unsafe { &mut body.storage.output };
        // SAFETY: the storage is not read as an output again.
        let output = unsafe { ManuallyDrop::take(output) };
        let into = into.cast::<Option<Result<F::Output, JoinError>>>();
        // SAFETY: the caller gave the address of such an option.
        unsafe { *into = Some(output) };
    }
}

unsafe fn free<F: Future>(header: NonNull<Header>) -> ExecutorRef {
    // SAFETY: `new` boxed the cell with this type, and the caller has its last reference.
    let mut cell = unsafe { Box::from_raw(header.cast::<FutureCell<F>>().as_ptr()) };
    debug_assert!(cell.header.joinable.header.state.is_complete(), "a live task was freed");
    // SAFETY: the cell is dropped without using the field again.
    unsafe { ManuallyDrop::take(&mut cell.header.joinable.header.executor) }
}

unsafe fn no_request(_: HeaderRef<'_>) -> Option<crate::command::Request> {
    None
}

unsafe fn nothing(_: HeaderRef<'_>) {}

unsafe fn refuse(_: HeaderRef<'_>, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}
