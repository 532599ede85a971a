//! What a message travels in.

use core::fmt;

use clockjack_exec::Pid;
use clockjack_sched::{ExecutionBatch, Parcel};

use crate::{
    header::AnyActor,
    pool_box::{InSystem, PoolBox},
};

/// A message with what travels with it.
///
/// The header has room for the context of a trace and for an absolute deadline, so that using them
/// later costs no `tell` anything; and for what a scheduled message brings along.
pub(crate) struct Envelope<M> {
    pub(crate) header: Header,
    pub(crate) msg: M,
}

/// What travels with every message.
#[derive(Default)]
pub(crate) struct Header {
    /// Trace and span, as W3C trace context has them; zero is none.
    #[expect(dead_code, reason = "room that traces will use without making messages larger")]
    pub(crate) trace: [u64; 2],
    /// When the sender loses interest, in nanoseconds of the system's clock; zero is never.
    #[expect(dead_code, reason = "room that deadlines will use without making messages larger")]
    pub(crate) deadline: u64,
    /// What came along: the scheduler's parcel.
    pub(crate) attached: Option<PoolBox<Attached>>,
}

/// What may come along with a message.
pub(crate) struct Attached {
    /// Whom the message is for, or was once.
    pub(crate) receiver: AnyActor,
    /// Decided at the dequeue: whether the message is still wanted.
    pub(crate) parcel: Option<Parcel>,
    /// Of a message that was put back: how many runs it stands for.
    pub(crate) batch: Option<ExecutionBatch>,
    /// In whose name the scheduler has sent it.
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

    /// With something that comes along.
    pub(crate) fn with(msg: M, attached: Attached) -> Self {
        let attached = Some(PoolBox::new(attached));
        Self { header: Header { attached, ..Header::default() }, msg }
    }

    /// The same with another message.
    pub(crate) fn map<N>(self, f: impl FnOnce(M) -> N) -> Envelope<N> {
        Envelope { header: self.header, msg: f(self.msg) }
    }

    /// Whether it was cancelled on its way, so that nobody misses it.
    pub(crate) fn is_cancelled(&self) -> bool {
        let parcel = self.header.attached.as_ref().and_then(|attached| attached.parcel.as_ref());
        parcel.is_some_and(Parcel::is_cancelled)
    }
}

impl<M> fmt::Debug for Envelope<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").finish_non_exhaustive()
    }
}
