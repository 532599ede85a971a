//! The envelope of a message: its metadata.

use core::fmt;

use clockjack_exec::Pid;
use clockjack_sched::{ExecutionBatch, PendingDelivery};

use crate::carried_span::CarriedSpan;
use crate::cell::{
    header::AnyActor,
    pool_box::{InSystem, PoolBox},
};

/// A message with its metadata.
pub(crate) struct Envelope<M> {
    /// Attachments: those of a scheduled message, and a span.
    pub(crate) attached: Option<PoolBox<Attached>>,
    pub(crate) msg: M,
}

/// What may be attached to a message.
pub(crate) struct Attached {
    /// The actor that the message is for, or was for originally.
    pub(crate) receiver: AnyActor,
    /// Says when the message is taken out whether it was cancelled.
    pub(crate) delivery: Option<PendingDelivery>,
    /// For a message that was unstashed: how many runs it represents.
    pub(crate) batch: Option<ExecutionBatch>,
    /// The sender on whose behalf the scheduler has sent it.
    pub(crate) sender: Option<Pid>,
    /// The span in which it was sent.
    pub(crate) span: CarriedSpan,
}

impl InSystem for Attached {
    fn member(&self) -> &AnyActor {
        &self.receiver
    }
}

impl<M> Envelope<M> {
    #[inline]
    pub(crate) fn new(msg: M) -> Self {
        Self { attached: None, msg }
    }

    /// With attachments.
    pub(crate) fn with(msg: M, attached: Attached) -> Self {
        Self { attached: Some(PoolBox::new(attached)), msg }
    }

    /// With the span that is current on this thread, if there is one and nothing is attached yet. A
    /// scheduled message stays a root.
    pub(crate) fn in_current_span(self, receiver: &AnyActor) -> Self {
        if self.attached.is_some() {
            return self;
        }
        self.carrying(receiver, CarriedSpan::current(receiver))
    }

    /// With a span, if there is one. Nothing else is attached.
    pub(crate) fn carrying(self, receiver: &AnyActor, span: CarriedSpan) -> Self {
        if span.is_none() {
            return self;
        }
        let receiver = receiver.clone();
        let attached = Attached { receiver, delivery: None, batch: None, sender: None, span };
        Self::with(self.msg, attached)
    }

    /// The same envelope with another message.
    pub(crate) fn map<N>(self, f: impl FnOnce(M) -> N) -> Envelope<N> {
        Envelope { attached: self.attached, msg: f(self.msg) }
    }

    /// Whether it was cancelled on its way; then it is no dead letter.
    pub(crate) fn is_cancelled(&self) -> bool {
        let delivery = self.attached.as_ref().and_then(|attached| attached.delivery.as_ref());
        delivery.is_some_and(PendingDelivery::is_cancelled)
    }
}

impl<M> fmt::Debug for Envelope<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").finish_non_exhaustive()
    }
}
