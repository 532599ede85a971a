//! Running one future on a thread that waits for it.

use alloc::{sync::Arc, task::Wake};
use core::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use crate::{Parker, host};

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
    /// Kept, because threads that wait once wait again.
    static UNPARKER: Arc<Unparker> = Arc::new(Unparker(Parker::new()));
}

/// Polls a future until it is ready, and sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !host::is_worker(),
        "block_on was called on a worker, which would wait for itself: await there, or use \
         spawn_blocking"
    );
    let mut future = pin!(future);
    // A nested call, as from a drop, gets its own: tokens are not for two.
    let unparker = UNPARKER.with(Arc::clone);
    let waker = Waker::from(Arc::clone(&unparker));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                unparker.0.park(None);
            }
        }
    }
}
