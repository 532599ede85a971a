//! The envelope of a message: its metadata.

use core::fmt;

use clockjack_exec::Pid;
use clockjack_sched::{ExecutionBatch, PendingDelivery};

use crate::cell::{
    header::AnyActor,
    pool_box::{InSystem, PoolBox},
};

/// A message with its metadata.
///
/// The header reserves room for a trace context and for an absolute deadline, so that using them
/// later does not make `tell` slower; and for what a scheduled message carries.
pub(crate) struct Envelope<M> {
    pub(crate) header: Header,
    pub(crate) msg: M,
}

/// The metadata of every message.
#[derive(Default)]
pub(crate) struct Header {
    /// Trace and span, as in W3C Trace Context; zero is none.
    #[expect(dead_code, reason = "room that traces will use without making messages larger")]
    pub(crate) trace: [u64; 2],
    /// When the message expires, in nanoseconds of the system's clock; zero is never.
    #[expect(dead_code, reason = "room that deadlines will use without making messages larger")]
    pub(crate) deadline: u64,
    /// Attachments: those of a scheduled message.
    pub(crate) attached: Option<PoolBox<Attached>>,
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
}

impl InSystem for Attached {
    fn member(&self) -> &AnyActor {
        &self.receiver
    }
}

impl<M> Envelope<M> {
    #[inline]
    pub(crate) fn new(msg: M) -> Self {
        Self { header: Header::default(), msg }
    }

    /// With attachments.
    pub(crate) fn with(msg: M, attached: Attached) -> Self {
        let attached = Some(PoolBox::new(attached));
        Self { header: Header { attached, ..Header::default() }, msg }
    }

    /// The same envelope with another message.
    pub(crate) fn map<N>(self, f: impl FnOnce(M) -> N) -> Envelope<N> {
        Envelope { header: self.header, msg: f(self.msg) }
    }

    /// Whether it was cancelled on its way; then it is no dead letter.
    pub(crate) fn is_cancelled(&self) -> bool {
        let delivery =
            self.header.attached.as_ref().and_then(|attached| attached.delivery.as_ref());
        delivery.is_some_and(PendingDelivery::is_cancelled)
    }
}

impl<M> fmt::Debug for Envelope<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").finish_non_exhaustive()
    }
}
