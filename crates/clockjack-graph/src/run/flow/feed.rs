//! Feeds: values from outside of the graph.

use core::{
    fmt,
    future::poll_fn,
    marker::PhantomData,
    task::{Poll, Waker},
};

use super::{
    inbox::{Inbox, InboxRefusal, Incoming},
    message::Stamp,
};
use crate::{
    data::{Data, Value},
    run::setup::wiring::Port,
};

/// Feeds values to a run, from any thread or actor. They become visible at the beginning of its
/// next epoch, in the order in which they were published.
pub struct Feed<T> {
    inbox: Inbox,
    port: Port,
    carries: PhantomData<fn(T)>,
}

impl<T: Data> Feed<T> {
    pub(crate) fn new(inbox: Inbox, port: Port) -> Self {
        Self { inbox, port, carries: PhantomData }
    }

    /// Publishes a value.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if as many values wait for the next epoch as the run allows,
    /// or if the run has ended.
    pub fn publish(&self, value: T) -> Result<(), FeedRefused<T>> {
        self.offer(value, None, None)
    }

    /// Publishes a value with a timestamp.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_stamped(&self, value: T, stamp: Stamp) -> Result<(), FeedRefused<T>> {
        self.offer(value, Some(stamp), None)
    }

    /// Publishes a value when there is room. A future that is dropped before it is ready has
    /// published nothing.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the run has ended.
    pub async fn send(&self, value: T) -> Result<(), FeedRefused<T>> {
        let mut value = Some(value);
        poll_fn(|cx| {
            let offered = value.take().expect("it is polled until it is ready");
            match self.offer(offered, None, Some(cx.waker())) {
                Err(refused) if refused.is_full() => {
                    value = Some(refused.into_inner());
                    Poll::Pending
                }
                done => Poll::Ready(done),
            }
        })
        .await
    }

    fn offer(
        &self,
        value: T,
        stamp: Option<Stamp>,
        waiter: Option<&Waker>,
    ) -> Result<(), FeedRefused<T>> {
        // As a value with one reader, so that it can be returned whole if it is refused.
        let value = Value::owned(value);
        let item = match self.port {
            Port::Input { edge, .. } => Incoming::Fed { edge, value, stamp },
            Port::Output { component, index: port } => {
                Incoming::FedOut { component, port, value, stamp }
            }
        };
        self.inbox.put_or_wait(item, waiter).map_err(|(item, refusal)| {
            let (Incoming::Fed { value, .. } | Incoming::FedOut { value, .. }) = item else {
                unreachable!("a refused item is returned as it was")
            };
            let value = value.take().expect("it has one reader").value;
            FeedRefused { value, refusal }
        })
    }
}

impl<T> Clone for Feed<T> {
    fn clone(&self) -> Self {
        Self { inbox: self.inbox.clone(), port: self.port, carries: PhantomData }
    }
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("port", &self.port).finish_non_exhaustive()
    }
}

/// A value that was refused.
pub struct FeedRefused<T> {
    value: T,
    refusal: InboxRefusal,
}

impl<T> FeedRefused<T> {
    /// Whether there was no room. A later attempt may succeed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refusal == InboxRefusal::Full
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.refusal == InboxRefusal::Closed
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The error without the value.
    pub fn discard(self) -> FeedRefused<()> {
        FeedRefused { value: (), refusal: self.refusal }
    }
}

impl<T> fmt::Debug for FeedRefused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedRefused").field("refusal", &self.refusal).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for FeedRefused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.refusal {
            InboxRefusal::Full => {
                "the feed is full: as many values wait for the next epoch as the run allows"
            }
            InboxRefusal::Closed => "the run has ended",
        })
    }
}

impl<T> core::error::Error for FeedRefused<T> {}
