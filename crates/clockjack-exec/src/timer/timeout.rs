//! A future with a time limit.
#![expect(unsafe_code, reason = "pins the future inside of the time-out")]

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{Sleep, sleep};
use crate::error::TimerError;

/// Limits the time of a future. The time counts from the first poll.
///
/// The time-out finds its executor by the waker of the task that awaits it, as [`sleep`] does.
/// [`Handle::timeout`](crate::Handle::timeout) works everywhere.
///
/// # Examples
///
/// ```
/// use clockjack_exec::{JoinHandle, TimerError, timeout};
/// use core::time::Duration;
///
/// async fn within_a_second(answer: JoinHandle<u32>) -> Option<u32> {
///     match timeout(Duration::from_secs(1), answer).await {
///         Ok(joined) => joined.ok(),
///         Err(error) if error.is_elapsed() => None,
///         Err(error) => panic!("{error}"), // there was no room for the timer
///     }
/// }
/// ```
pub fn timeout<F: IntoFuture>(after: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(sleep(after), future.into_future())
}

/// A future with a time limit: the output of the future, or an error after the time has passed.
///
/// In each poll the future comes first: if it is ready, its output is returned, however late that
/// is. A future that never yields cannot be timed out.
///
/// # Errors
///
/// [`TimerError::is_elapsed`] if the time has passed. Otherwise as [`Sleep`]: if the timer is
/// refused while the future is not ready, nothing would limit its time.
///
/// # Cancellation
///
/// After an error the future is not dropped, and not polled again. Dropping the time-out drops the
/// future and cancels the timer.
#[must_use = "a time-out does nothing unless it is awaited"]
pub struct Timeout<F> {
    future: F,
    sleep: Sleep,
}

impl<F> Timeout<F> {
    #[doc(hidden)]
    pub fn new(sleep: Sleep, future: F) -> Self {
        Self { future, sleep }
    }

    /// The future inside.
    pub const fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns the future, without a limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimerError>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future is not moved out of `self`, and is pinned again below.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: `self` was pinned, so the future is not moved until it is dropped; `into_inner`
        // needs a time-out that is not pinned, or an `Unpin` one.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        // Without the budget of the task: a future that uses up the budget in every poll would
        // otherwise keep its own time-out from being noticed.
        this.sleep
            .poll_deadline(cx)
            .map(|slept| Err(slept.err().unwrap_or_else(TimerError::elapsed)))
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}
