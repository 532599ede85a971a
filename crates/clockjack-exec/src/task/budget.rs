//! The cooperative budget of a task: a future that is always ready does not keep its worker.
//!
//! The design is that of tokio's `task::coop`. Each poll of a task begins with a budget of
//! [`BUDGET`] units. A leaf future of this project (a sleep, a join handle, a send, an ask) takes
//! one unit each time when it is ready. When the budget is used up, every leaf future is pending,
//! whether it is ready or not, and wakes its task. So the task goes to the end of its worker's run
//! queue, and the other tasks and the timers of the worker have their turn.
//!
//! The budget is a byte in the header of the task, and a leaf future finds the header by the waker
//! of its context. So the budget needs no thread-local variable. A leaf future that is polled with
//! another waker, for example inside of `FuturesUnordered` or in `block_on`, has no budget. Only
//! the runner of the task touches the byte: a poll takes place on one thread.
#![expect(unsafe_code, reason = "finds the header of a task by a waker")]

use core::{
    panic::Location,
    pin::Pin,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
    task::{Context, Poll},
};

use super::{future, header_ptr_of};

/// How many leaf futures may be ready in one poll of a task; tokio's number.
pub(crate) const BUDGET: u8 = 128;

/// What is left of the budget of the current poll.
///
/// The atomic is that of `core` and not one that models replace: the byte has one thread at a
/// time, and the transitions of the task order the threads.
pub(crate) struct Budget(AtomicU8);

impl Budget {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(BUDGET))
    }

    /// A poll begins.
    #[inline]
    pub(crate) fn refill(&self) {
        // Relaxed, here and below: only the runner touches it.
        self.0.store(BUDGET, Relaxed);
    }

    fn is_used_up(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    fn take_one(&self) {
        self.0.store(self.0.load(Relaxed).saturating_sub(1), Relaxed);
    }
}

/// Polls a leaf future on the budget of the task that the context wakes, and notes where the task
/// waits. Without such a task, it calls `poll`.
#[doc(hidden)]
#[track_caller]
#[inline]
pub fn poll_leaf<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let waker = cx.waker();
    let Some(task) = header_ptr_of(waker) else { return poll(cx) };
    // SAFETY: the waker, which outlives this call, has or borrows a reference to the task.
    let budget = unsafe { &task.as_ref().budget };
    if budget.is_used_up() {
        waker.wake_by_ref();
        // SAFETY: as above.
        unsafe { future::set_waits_at(task, Location::caller()) };
        return Poll::Pending;
    }
    let polled = poll(cx);
    if polled.is_ready() {
        budget.take_one();
    } else {
        // SAFETY: as above.
        unsafe { future::set_waits_at(task, Location::caller()) };
    }
    polled
}

/// Takes one unit of the task's budget, and yields to other tasks if the budget is used up.
///
/// For a loop whose awaits are all ready and are not leaf futures of this project, for example
/// `try_recv` of another crate's channel, or a loop without an await. Outside of a task it does
/// nothing.
///
/// # Examples
///
/// ```
/// async fn sum(numbers: &[u64]) -> u64 {
///     let mut sum = 0;
///     for number in numbers {
///         sum += number;
///         clockjack_exec::consume_budget().await;
///     }
///     sum
/// }
/// # let _ = sum(&[1, 2]);
/// ```
pub fn consume_budget() -> impl Future<Output = ()> {
    ConsumeBudget
}

/// The future of [`consume_budget`]. Not an `async fn`, so that a dump names the `.await` of the
/// caller.
struct ConsumeBudget;

impl Future for ConsumeBudget {
    type Output = ();

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        poll_leaf(cx, |_| Poll::Ready(()))
    }
}
