//! A flag with a waker: the simplest way for one task to wake another, the same for every subject.
//!
//! One side sets the flag, the other waits for it. A flag that is set while no task waits stays
//! set; setting it twice is the same as once. The lock is held for a few instructions and never
//! while a waker runs, so that the wake itself is measured.

use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct WakeFlag {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_rung: bool,
    waiter: Option<Waker>,
}

impl WakeFlag {
    /// Sets the flag and wakes the waiting task.
    pub(crate) fn set(&self) {
        let waiter = {
            let mut state = self.lock();
            state.is_rung = true;
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Waits until the flag is set and clears it.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| {
            // Clone and drop the waker outside of the lock: both run code of the subject.
            let waker = context.waker().clone();
            let (poll, _old) = {
                let mut state = self.lock();
                if core::mem::take(&mut state.is_rung) {
                    (Poll::Ready(()), Some(waker))
                } else {
                    (Poll::Pending, state.waiter.replace(waker))
                }
            };
            poll
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under the lock, so a poisoned state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::WakeFlag;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};

    #[test]
    fn a_ring_is_kept_for_who_comes_later_and_taken_once() {
        let flag = WakeFlag::default();
        let mut context = Context::from_waker(Waker::noop());
        flag.set();
        flag.set();
        assert!(pin!(flag.wait()).poll(&mut context).is_ready());
        let mut second = pin!(flag.wait());
        assert!(second.as_mut().poll(&mut context).is_pending());
        flag.set();
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
