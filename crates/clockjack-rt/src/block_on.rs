//! Running one future on a thread that waits for it.

use core::{
    cell::Cell,
    pin::pin,
    task::{Context, Poll, Waker},
};
use std::{sync::Arc, task::Wake};

use crate::{OsInstant, Parker, host};

/// Ends the sleep of the thread that waits.
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
    /// Kept, because threads that wait once wait again; not here while a call uses it.
    static CACHED: Cell<Option<Arc<Unparker>>> = const { Cell::new(None) };
}

/// Polls a future until it is ready, and sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    block_on_until(future, OsInstant::MAX).expect("that time never comes")
}

/// As [`block_on`], until some time. It needs no timer of a pool, whose workers may all be stuck.
pub(crate) fn block_on_until<F: Future>(future: F, until: OsInstant) -> Option<F::Output> {
    assert!(
        !host::is_worker(),
        "block_on was called on a worker, which would wait for itself: await there, or use \
         spawn_blocking"
    );
    let mut future = pin!(future);
    // A nested call, as from a drop, gets its own: a token is not for two.
    let cached = CACHED.try_with(Cell::take).ok().flatten();
    let unparker = cached.unwrap_or_else(|| Arc::new(Unparker(Parker::new())));
    let waker = Waker::from(Arc::clone(&unparker));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => {
                // At the end of a thread there is nothing to keep it for.
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
