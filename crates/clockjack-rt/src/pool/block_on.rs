//! Runs one future on the calling thread, which sleeps while the future waits.

use core::{
    cell::Cell,
    pin::pin,
    task::{Context, Poll, Waker},
};
use std::{sync::Arc, task::Wake};

use super::host;
use crate::{OsInstant, Parker};

/// The waker: unparks the thread that waits.
struct Unparker(Parker);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// Cached between calls, because threads that block once often block again; `None` while a
    /// call uses it.
    static CACHED: Cell<Option<Arc<Unparker>>> = const { Cell::new(None) };
}

/// Polls a future until it is ready, and sleeps between polls.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    block_on_until(future, OsInstant::MAX).expect("that time never comes")
}

/// As [`block_on`], with a deadline. It uses no timer of a pool, because all workers may be stuck.
pub(crate) fn block_on_until<F: Future>(future: F, until: OsInstant) -> Option<F::Output> {
    assert!(
        !host::is_worker(),
        "block_on was called on a worker thread, which would wait for itself: use `.await` or \
         spawn_blocking there"
    );
    let mut future = pin!(future);
    // A nested call, for example in a destructor, gets its own parker: two calls cannot share one
    // token.
    let cached = CACHED.try_with(Cell::take).ok().flatten();
    let unparker = cached.unwrap_or_else(|| Arc::new(Unparker(Parker::new())));
    let waker = Waker::from(Arc::clone(&unparker));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => {
                // While the thread exits, there is nothing to cache it in.
                let _ = CACHED.try_with(|cached| cached.set(Some(unparker)));
                return Some(output);
            }
            Poll::Pending if until == OsInstant::MAX => {
                unparker.0.park(None);
            }
            Poll::Pending if OsInstant::now() >= until => return None,
            Poll::Pending => {
                unparker.0.park(Some(until));
            }
        }
    }
}
