//! A future that is not ready at once.

use core::{future::poll_fn, task::Poll};

/// Is ready at the second poll.
pub(crate) async fn pause() {
    let mut is_second = false;
    poll_fn(move |cx| {
        if is_second {
            return Poll::Ready(());
        }
        is_second = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
