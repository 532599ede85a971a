//! Spans of messages: what a host does around each handler, so that a trace shows which message
//! caused which.
//!
//! A system has spans if its builder was given [`MessageSpans`]
//! ([`SystemBuilder::message_spans`](crate::SystemBuilder::message_spans)). Then
//!
//! * every user message that an actor below `/user` handles is handled by
//!   [`MessageSpans::handle`], whatever its way: mailbox, control messages, timers, stash;
//! * a message carries the span that is [current](MessageSpans::current) where it is sent: by
//!   `tell`, `tell_control`, `send`, `ask`, also through a [mapped](crate::ActorRef::map)
//!   reference;
//! * a future of an actor, with its continuation, is polled [inside](MessageSpans::enter) the span
//!   in which it was started, so what it sends has this span as the parent;
//! * a message that is stashed has, when it is handled again, the span in which it was stashed as
//!   the parent;
//! * the messages of timers, of receive timeouts and of the [scheduler](crate::Scheduler) carry
//!   nothing: their spans are roots. A message keeps the span that it carries from closing, and a
//!   periodic timer would keep it open as long as the timer exists.
//!
//! Messages for actors below `/system` have no spans.
//!
//! # How it costs nothing while it is off
//!
//! A reference to an actor that has spans is [mapped](crate::actor_ref) inside: `tell` tests the
//! kind of the reference anyway. The runner tests one bit next to the bit of the receive timeout,
//! by the same instruction. The span is in the attachment of the envelope, next to that of a
//! scheduled message. So a system without spans executes no further instruction per message. A
//! sealed system carries no spans, because an attachment needs memory.

use alloc::boxed::Box;
use core::{any::Any, fmt};

use clockjack_exec::{Failure, Pid};

use crate::{ActorPath, Next, SystemBuilder, carried_span::SpanSource};

/// Surrounds handlers with spans; see the [module](self).
///
/// All methods are called on threads that run actors or send messages, and must not wait. A panic
/// in [`current`](Self::current) unwinds to the sender; a panic in the others is a failure of the
/// actor.
pub trait MessageSpans: Send + Sync + 'static {
    /// The span that is current on this thread; a message that is sent now carries it. `None` if
    /// there is none.
    fn current(&self) -> Option<ParentSpan>;

    /// Calls `handler` once, inside the span of this message, and returns its result. `parent` is
    /// the span that the message carries. If the handler panics, the panic unwinds through this
    /// method, which must close the span all the same.
    ///
    /// # Errors
    ///
    /// Those of the handler.
    fn handle(
        &self,
        message: &HandledMessage<'_>,
        parent: Option<ParentSpan>,
        handler: &mut dyn FnMut() -> Result<Next, Failure>,
    ) -> Result<Next, Failure>;

    /// Calls `poll` once, inside a span that [`current`](Self::current) has returned.
    fn enter(&self, span: &ParentSpan, poll: &mut dyn FnMut());
}

impl SystemBuilder {
    /// Gives each message that an actor below `/user` handles a span. By default, messages have
    /// none.
    ///
    /// The module [`spans`](self) says what carries a span and what it costs. With `tracing`, pass
    /// `clockjack_rt::TracingSpans`.
    #[must_use]
    pub fn message_spans(mut self, spans: impl MessageSpans) -> Self {
        self.spans = SpanSource(Some(Box::new(spans)));
        self
    }
}

/// A span that a message, or a future of an actor, carries: a value of the host's own type.
pub struct ParentSpan(Box<dyn Any + Send + Sync>);

impl ParentSpan {
    /// Keeps a span of the host.
    #[must_use]
    pub fn new<S: Send + Sync + 'static>(span: S) -> Self {
        Self(Box::new(span))
    }

    /// The span of the host, if it has this type.
    #[must_use]
    pub fn get<S: 'static>(&self) -> Option<&S> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for ParentSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentSpan").finish_non_exhaustive()
    }
}

/// A message that an actor is about to handle.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandledMessage<'m> {
    /// The name of the system.
    pub system: &'m str,
    /// The path of the actor.
    pub path: &'m ActorPath,
    /// The process id of the actor.
    pub pid: Pid,
    /// The type of the message.
    pub message_type: &'static str,
}
