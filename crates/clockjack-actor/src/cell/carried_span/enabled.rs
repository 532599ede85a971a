//! The spans that messages and futures carry; [`spans`](crate::spans) describes the rules.

use alloc::boxed::Box;

use clockjack_exec::Failure;

use crate::{
    ActorPath, Next,
    cell::{AnyPoll, header::ActorHeader},
    spans::{HandledMessage, MessageSpans, ParentSpan},
};

/// The flag of a cell whose messages have spans.
pub(crate) const HAS_SPANS: u16 = 1 << 9;

/// The spans of a system, if it has any.
#[derive(Default)]
pub(crate) struct SpanSource(pub(crate) Option<Box<dyn MessageSpans>>);

/// The span that a message or a future carries, if there is one.
#[derive(Default)]
pub(crate) struct CarriedSpan(Option<ParentSpan>);

impl CarriedSpan {
    /// The span that is current on this thread, for a message to an actor of this system. None in a
    /// sealed system, because a message has no memory for it.
    pub(crate) fn current(actor: &ActorHeader) -> Self {
        let system = actor.system();
        let spans = system.spans().0.as_ref().filter(|_| !system.is_sealed());
        Self(spans.and_then(|spans| spans.current()))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Polls a future inside the span.
    pub(crate) fn enter<R>(&self, actor: &ActorHeader, poll: impl FnOnce() -> R) -> R {
        let (Some(span), Some(spans)) = (&self.0, &actor.system().spans().0) else { return poll() };
        let (mut poll, mut polled) = (Some(poll), None);
        spans.enter(span, &mut || polled = poll.take().map(|poll| poll()));
        polled.expect("the host calls the function once")
    }
}

/// Whether the messages of this actor have spans.
pub(crate) fn has_spans(actor: &ActorHeader) -> bool {
    let is_root = |path: &ActorPath| path.parent().is_none();
    let is_user = |path: &ActorPath| path.name() == "user" && path.parent().is_some_and(is_root);
    actor.system().spans().0.is_some() && actor.path.ancestors().skip(1).any(is_user)
}

/// Calls a message handler inside the span of the message.
pub(crate) fn handle(
    poll: &AnyPoll<'_>,
    carried: CarriedSpan,
    message_type: &'static str,
    handler: impl FnOnce() -> Result<Next, Failure>,
) -> Result<Next, Failure> {
    let header = poll.shared();
    let Some(spans) = &header.system().spans().0 else { return handler() };
    let system = header.system().handle().name();
    let message = HandledMessage { system, path: &header.path, pid: poll.pid(), message_type };
    let mut handler = Some(handler);
    spans.handle(&message, carried.0, &mut || {
        handler.take().map_or(Ok(Next::Stay), |handler| handler())
    })
}
