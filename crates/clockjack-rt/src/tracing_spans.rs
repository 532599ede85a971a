//! A `tracing` span for each handled message.

use clockjack_actor::{Failure, HandledMessage, MessageSpans, Next, ParentSpan};
use tracing::{Level, Span, field};

/// The target of the spans of all messages.
const TARGET: &str = "clockjack::message";

/// Gives each message that an actor below `/user` handles a span of `tracing`. Off by default: pass
/// it to [`SystemBuilder::message_spans`](clockjack_actor::SystemBuilder::message_spans).
///
/// The spans have the target `clockjack::message`, the level INFO and the name `message`. Their
/// fields:
///
/// | field | value |
/// |---|---|
/// | `system`, `path`, `pid` | the name of the system, the path and the process id of the actor |
/// | `message_type` | the type of the message |
/// | `error` | if the handler fails: the failure, or `panicked` |
/// | `otel.name`, `otel.status_code` | the same for OpenTelemetry: message type, `ERROR` |
///
/// The **parent** of such a span is the span that was current where the message was sent, by
/// `tell`, `send` or `ask`, in a handler or on any other thread. A future of an actor, with its
/// continuation, runs inside the span in which it was started. Messages of timers and scheduled
/// messages have no parent, because a periodic timer would keep the span that has started it open.
/// The module [`spans`](clockjack_actor::spans) has the rules.
///
/// A span ends when its handler has returned, the futures that the handler has started have ended,
/// and the messages that the handler has sent were handled or lost: `tracing` keeps a span open
/// while it is referred to. A message whose span the subscriber does not want is handled inside the
/// span that the message carries, so a filter does not interrupt a trace.
///
/// While this is on, a message costs an allocation, a call of the subscriber for each of its sides,
/// and what the subscriber does; each reference to an actor is allocated, too. While it is off, it
/// costs nothing. The subscriber must be the global one, as for [`TracingBridge`].
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, TracingSpans, actor::{ActorSystem, Next, Props}};
/// use std::sync::mpsc;
///
/// let rt = Runtime::start(ActorSystem::builder("shop").message_spans(TracingSpans))?;
/// let (sender, receiver) = mpsc::channel();
/// let till = rt.spawn("till", Props::from_fn(move |_cx, cents: u32| {
///     tracing::info!(cents, "sold"); // inside the span of this message
///     sender.send(cents)?;
///     Ok(Next::Stay)
/// }))?;
/// let checkout = tracing::info_span!("checkout").entered(); // the parent of that span
/// till.tell(250)?;
/// drop(checkout);
/// assert_eq!(receiver.recv()?, 250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`TracingBridge`]: crate::TracingBridge
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingSpans;

impl MessageSpans for TracingSpans {
    fn current(&self) -> Option<ParentSpan> {
        let span = Span::current();
        (!span.is_disabled()).then(|| ParentSpan::new(span))
    }

    fn handle(
        &self,
        message: &HandledMessage<'_>,
        parent: Option<ParentSpan>,
        handler: &mut dyn FnMut() -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let parent = parent.as_ref().and_then(ParentSpan::get::<Span>);
        let span = span_of(message, parent);
        if span.is_disabled() {
            let _entered = parent.map(Span::enter);
            return handler();
        }
        let guard = FailedUnlessDefused(&span);
        let result = span.in_scope(handler);
        core::mem::forget(guard);
        if let Err(failure) = &result {
            record_error(&span, &failure);
        }
        result
    }

    fn enter(&self, span: &ParentSpan, poll: &mut dyn FnMut()) {
        match span.get::<Span>() {
            Some(span) => span.in_scope(poll),
            None => poll(),
        }
    }
}

fn span_of(message: &HandledMessage<'_>, parent: Option<&Span>) -> Span {
    let HandledMessage { system, path, pid, message_type, .. } = message;
    tracing::span!(
        target: TARGET,
        parent: parent.and_then(Span::id),
        Level::INFO,
        "message",
        system,
        %path,
        %pid,
        message_type,
        error = field::Empty,
        otel.name = message_type,
        otel.status_code = field::Empty,
    )
}

fn record_error(span: &Span, error: &dyn core::fmt::Display) {
    span.record("error", field::display(error));
    span.record("otel.status_code", "ERROR");
}

/// Dropped by a handler that panics.
struct FailedUnlessDefused<'s>(&'s Span);

impl Drop for FailedUnlessDefused<'_> {
    fn drop(&mut self) {
        record_error(self.0, &"panicked");
    }
}
