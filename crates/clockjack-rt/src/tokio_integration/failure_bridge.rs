//! Forwards failures to a tokio broadcast channel.

use core::fmt;

use clockjack_actor::{
    FailureEventHub, FailureInfo,
    hub::{HubFull, Subscription},
};
use tokio::sync::broadcast;

/// Forwards what a [`FailureEventHub`] publishes to a tokio broadcast channel, until it is dropped;
/// then the receivers get the remaining failures, and the channel closes.
///
/// It never blocks the failing actor: the channel keeps the newest failures, and a receiver that is
/// too slow learns from `RecvError::Lagged` how many it has missed. Without receivers, failures
/// are discarded.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, TokioFailureEventBridge};
///
/// let rt = Runtime::new("shop")?;
/// let bridge = TokioFailureEventBridge::new(rt.system().failure_hub(), 16)?;
/// let mut failures = bridge.subscribe();
/// # type Failures = tokio::sync::broadcast::Receiver<clockjack_rt::actor::FailureInfo>;
/// # async fn print(mut failures: Failures) {
/// while let Ok(info) = failures.recv().await {
///     println!("{info}");
/// }
/// # }
/// # drop(&mut failures);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokioFailureEventBridge {
    sender: broadcast::Sender<FailureInfo>,
    _subscription: Subscription,
}

impl TokioFailureEventBridge {
    /// Creates a bridge from a hub to a channel that keeps `capacity` failures, at least one.
    ///
    /// # Errors
    ///
    /// If the hub has too many subscribers. Retry after a subscriber has left.
    pub fn new(hub: &FailureEventHub, capacity: usize) -> Result<Self, HubFull> {
        // The channel panics for a capacity of zero, and for more than this.
        let (sender, _) = broadcast::channel(capacity.clamp(1, usize::MAX / 2));
        let to = sender.clone();
        // An error means that there are no receivers.
        let subscription = hub.subscribe(move |info| drop(to.send(info.clone())))?;
        Ok(Self { sender, _subscription: subscription })
    }

    /// Creates a receiver for the failures that are published from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<FailureInfo> {
        self.sender.subscribe()
    }
}

impl fmt::Debug for TokioFailureEventBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioFailureEventBridge")
            .field("receivers", &self.sender.receiver_count())
            .finish_non_exhaustive()
    }
}
