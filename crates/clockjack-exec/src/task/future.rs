//! The task of a future: each poll of the task polls the future once.
#![expect(unsafe_code, reason = "pins a future in its cell, and stores its output in its place")]

use alloc::boxed::Box;
use core::{
    any::type_name,
    cell::Cell,
    mem::ManuallyDrop,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll},
};

use clockjack_sync::primitive::UnsafeCell;

use super::{Header, JoinableHeader, PollOutcome, TaskResult, VTable, borrowed_waker};
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
    joinable: JoinableHeader,
    body: UnsafeCell<FutureBody<F>>,
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
) -> NonNull<Header> {
    let header = Header::new(executor, slot, VTableOf::<F>::TABLE, true);
    let storage = FutureOrOutput { future: ManuallyDrop::new(future) };
    let body = UnsafeCell::new(FutureBody { contents: Cell::new(Contents::Future), storage });
    NonNull::from(Box::leak(Box::new(FutureCell { joinable: JoinableHeader::new(header), body })))
        .cast()
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
#[expect(clippy::mut_from_ref, reason = "the state says who owns the body")]
unsafe fn body<F: Future>(header: &Header) -> &mut FutureBody<F> {
    let cell = core::ptr::from_ref(header).cast::<FutureCell<F>>();
    // SAFETY: the header is at the beginning of a `repr(C)` cell of this type.
    let body = unsafe { &(*cell).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| unsafe { &mut *body })
}

unsafe fn poll<F: Future>(header: NonNull<Header>, executor: &ExecutorShared) -> PollOutcome {
    // SAFETY: the runner holds the task's own reference, also after this.
    let header = unsafe { header.as_ref() };
    if !header.signals.is_empty() {
        let mut cancelled = None;
        let received = links::take_signals(header, executor, |received| {
            if let ReceivedSignal::Cancel { reason } = received {
                cancelled.get_or_insert(reason);
            }
        });
        if let Err(exit) = received {
            return PollOutcome::Finished(TaskResult::Error(exit));
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

unsafe fn drop_future<F: Future>(header: &Header) {
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
unsafe fn store_output<F: Future>(header: &Header, output: Result<F::Output, JoinError>) {
    // SAFETY: by the contract.
    let body = unsafe { body::<F>(header) };
    debug_assert!(body.contents.get() == Contents::Nothing, "the storage is occupied");
    body.storage.output = ManuallyDrop::new(output);
    body.contents.set(Contents::Output);
}

unsafe fn store<F: Future>(header: &Header, ending: TaskResult) {
    let exit = match ending {
        TaskResult::Stored => return,
        TaskResult::Error(exit) => exit,
        TaskResult::Output(_) => unreachable!("a future ends with its output"),
    };
    // SAFETY: the caller is the runner, and has dropped the future.
    unsafe { store_output::<F>(header, Err(exit)) };
}

unsafe fn drop_output<F: Future>(header: &Header) {
    let mut output: Option<Result<F::Output, JoinError>> = None;
    // SAFETY: the caller owns the output.
    unsafe { take_output::<F>(header, (&raw mut output).cast()) };
}

unsafe fn take_output<F: Future>(header: &Header, into: *mut ()) {
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
    debug_assert!(cell.joinable.header.state.is_complete(), "a live task was freed");
    // SAFETY: the cell is dropped without using the field again.
    unsafe { ManuallyDrop::take(&mut cell.joinable.header.executor) }
}

unsafe fn no_request(_: &Header) -> Option<crate::command::Request> {
    None
}

unsafe fn nothing(_: &Header) {}

unsafe fn refuse(_: &Header, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}
