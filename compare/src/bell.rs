//! A flag with a waker: the least by which one task wakes another, the same for every subject.
//!
//! One side rings, the other waits; a ring that nobody waits for is kept, two are one. The lock is
//! held for a few instructions and never while a waker runs, so that what is measured is the wake.

use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_rung: bool,
    waiter: Option<Waker>,
}

impl Bell {
    /// Rings, and wakes who waits.
    pub(crate) fn ring(&self) {
        let waiter = {
            let mut state = self.lock();
            state.is_rung = true;
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Waits for a ring and takes it.
    pub(crate) async fn rung(&self) {
        poll_fn(|context| {
            // Cloned and dropped outside of the lock: both are the subject's code.
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
        // Nothing panics under the lock, so a poisoned state is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Bell;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};

    #[test]
    fn a_ring_is_kept_for_who_comes_later_and_taken_once() {
        let bell = Bell::default();
        let mut context = Context::from_waker(Waker::noop());
        bell.ring();
        bell.ring();
        assert!(pin!(bell.rung()).poll(&mut context).is_ready());
        let mut second = pin!(bell.rung());
        assert!(second.as_mut().poll(&mut context).is_pending());
        bell.ring();
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
