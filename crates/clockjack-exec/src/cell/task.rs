//! A future as a process: each step polls it once.
#![expect(unsafe_code, reason = "pins a future in its cell, and keeps its output beside it")]

use alloc::boxed::Box;
use core::{
    any::type_name,
    cell::Cell,
    mem::ManuallyDrop,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll},
};

use clockjack_sync::prim::UnsafeCell;

use super::{Ending, Head, Joinable, VTable, Verdict, borrowed_waker};
use crate::{
    engine::Engine,
    engine_ref::EngineRef,
    error::SendError,
    exit::Exit,
    payload::Payload,
    registry::Slot,
    state::Waiting,
    ties::{self, Told},
};

/// The cell of a future.
#[repr(C)]
struct TaskCell<F: Future> {
    front: Joinable,
    body: UnsafeCell<Body<F>>,
}

/// What is in the room that future and output share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Future,
    Output,
    Nothing,
}

struct Body<F: Future> {
    holds: Cell<Holds>,
    room: Room<F>,
}

/// A future, and after it its output; `holds` tells which.
union Room<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Result<F::Output, Exit>>,
}

/// Makes the cell of a future; its references are not counted yet.
pub(crate) fn new<F: Future + 'static>(
    engine: EngineRef,
    slot: NonNull<Slot>,
    future: F,
) -> NonNull<Head> {
    let head = Head::new(engine, slot, Table::<F>::TABLE, true);
    let room = Room { future: ManuallyDrop::new(future) };
    let body = UnsafeCell::new(Body { holds: Cell::new(Holds::Future), room });
    NonNull::from(Box::leak(Box::new(TaskCell { front: Joinable::new(head), body }))).cast()
}

struct Table<F>(F);

impl<F: Future + 'static> Table<F> {
    const TABLE: &'static VTable = &VTable {
        step: step::<F>,
        next_request: no_request,
        close: nothing,
        drop_body: drop_future::<F>,
        store: store::<F>,
        drop_output: drop_output::<F>,
        take_output: take_output::<F>,
        deliver: refuse,
        free: free::<F>,
        name: type_name::<F>,
        panicked: None,
        custom: None,
    };
}

/// The body, for the runner, or for the joiner after the completion.
///
/// # Safety
///
/// The head is that of a `TaskCell<F>`, and the caller is the one that the state word lets touch
/// the body; the borrow ends before anybody else is.
#[expect(clippy::mut_from_ref, reason = "the state word says whose the body is")]
unsafe fn body<F: Future>(head: &Head) -> &mut Body<F> {
    let cell = core::ptr::from_ref(head).cast::<TaskCell<F>>();
    // SAFETY: the head is at the beginning of a `repr(C)` cell of this type.
    let body = unsafe { &(*cell).body };
    // SAFETY: the caller is the only one that touches the body.
    body.with_mut(|body| unsafe { &mut *body })
}

unsafe fn step<F: Future>(head: NonNull<Head>, engine: &Engine) -> Verdict {
    // SAFETY: the runner has the life of the process, also after this.
    let head = unsafe { head.as_ref() };
    if !head.lane.is_empty() {
        let mut cancelled = None;
        let told = ties::take_signals(head, engine, |told| {
            if let Told::Cancel { reason } = told {
                cancelled.get_or_insert(reason);
            }
        });
        if let Err(exit) = told {
            return Verdict::End(Ending::Exit(exit));
        }
        if let Some(reason) = cancelled {
            return Verdict::End(Ending::Exit(Exit::cancelled(reason)));
        }
    }
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<F>(head) };
    debug_assert!(body.holds.get() == Holds::Future, "a task that has ended was stepped");
    let waker = borrowed_waker(head);
    let mut context = Context::from_waker(&waker);
    // SAFETY: the room holds the future.
    let future: &mut F = unsafe { &mut body.room.future };
    // SAFETY: the cell is on the heap and the future is not moved out of it, but dropped in place.
    let future = unsafe { Pin::new_unchecked(future) };
    match future.poll(&mut context) {
        Poll::Pending => Verdict::Wait(Waiting::Idle),
        Poll::Ready(output) => {
            // SAFETY: the caller is the runner.
            unsafe { drop_future::<F>(head) };
            // SAFETY: the future is dropped, and `body` is not used while that borrows it.
            unsafe { put::<F>(head, Ok(output)) };
            Verdict::End(Ending::Kept)
        }
    }
}

unsafe fn drop_future<F: Future>(head: &Head) {
    // SAFETY: the caller is the runner.
    let body = unsafe { body::<F>(head) };
    if body.holds.get() == Holds::Future {
        // First, so that a panic does not make it be dropped again.
        body.holds.set(Holds::Nothing);
        // SAFETY: the room held the future.
        let future = unsafe { &mut body.room.future };
        // SAFETY: the room is not read as a future again.
        unsafe { ManuallyDrop::drop(future) };
    }
}

/// # Safety
///
/// As for [`body`]; the room is empty.
unsafe fn put<F: Future>(head: &Head, output: Result<F::Output, Exit>) {
    // SAFETY: by the contract.
    let body = unsafe { body::<F>(head) };
    debug_assert!(body.holds.get() == Holds::Nothing, "the room is taken");
    body.room.output = ManuallyDrop::new(output);
    body.holds.set(Holds::Output);
}

unsafe fn store<F: Future>(head: &Head, ending: Ending) {
    let exit = match ending {
        Ending::Kept => return,
        Ending::Exit(exit) => exit,
        Ending::Result(_) => unreachable!("a future ends with its output"),
    };
    // SAFETY: the caller is the runner, and has dropped the future.
    unsafe { put::<F>(head, Err(exit)) };
}

unsafe fn drop_output<F: Future>(head: &Head) {
    let mut output: Option<Result<F::Output, Exit>> = None;
    // SAFETY: the output is the caller's.
    unsafe { take_output::<F>(head, (&raw mut output).cast()) };
}

unsafe fn take_output<F: Future>(head: &Head, into: *mut ()) {
    // SAFETY: the output is the caller's.
    let body = unsafe { body::<F>(head) };
    if body.holds.get() == Holds::Output {
        body.holds.set(Holds::Nothing);
        // SAFETY: the room held the output.
        let output = unsafe { &mut body.room.output };
        // SAFETY: the room is not read as an output again.
        let output = unsafe { ManuallyDrop::take(output) };
        let into = into.cast::<Option<Result<F::Output, Exit>>>();
        // SAFETY: the caller gave the address of such an option.
        unsafe { *into = Some(output) };
    }
}

unsafe fn free<F: Future>(head: NonNull<Head>) -> EngineRef {
    // SAFETY: the cell was boxed by `new` with this type, and the caller has its last reference.
    let mut cell = unsafe { Box::from_raw(head.cast::<TaskCell<F>>().as_ptr()) };
    debug_assert!(cell.front.head.word.is_complete(), "a process that is alive was freed");
    // SAFETY: the cell is dropped without looking at the field again.
    unsafe { ManuallyDrop::take(&mut cell.front.head.engine) }
}

unsafe fn no_request(_: &Head) -> Option<crate::command::Request> {
    None
}

unsafe fn nothing(_: &Head) {}

unsafe fn refuse(_: &Head, message: Payload) -> Result<(), SendError<Payload>> {
    Err(SendError::wrong_type(message))
}
