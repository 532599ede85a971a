//! Failures for tokio: what a hub publishes, on a broadcast channel.

use core::fmt;

use clockjack_actor::{
    FailureEventHub, FailureInfo,
    hub::{HubFull, Subscription},
};
use tokio::sync::broadcast;

/// Passes on what a [`FailureEventHub`] publishes to a broadcast channel of tokio's, until it is
/// dropped; then its receivers get what is left, and the end.
///
/// Whoever fails is never held up: the channel keeps the newest, and a receiver that is too slow is
/// told how many it has missed, by `RecvError::Lagged`. Without receivers failures go nowhere.
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
    /// A bridge from a hub to a channel that keeps `capacity` failures, at least one.
    ///
    /// # Errors
    ///
    /// If the hub has too many subscribers. Trying again helps when one has gone.
    pub fn new(hub: &FailureEventHub, capacity: usize) -> Result<Self, HubFull> {
        // The channel panics for zero, and for more than this.
        let (sender, _) = broadcast::channel(capacity.clamp(1, usize::MAX / 2));
        let to = sender.clone();
        // An error says that nobody listens.
        let subscription = hub.subscribe(move |info| drop(to.send(info.clone())))?;
        Ok(Self { sender, _subscription: subscription })
    }

    /// A receiver of what is published from now on.
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
