//! A `tracing` span for each task.
//!
//! The span is created when the task is spawned, is entered for the time of each poll, and is
//! closed when the task has ended. If no subscriber is interested in it, the task is spawned
//! without it. The span has no parent, because a task may outlive the span that was current when it
//! was spawned; the fields say where that was.
#![expect(unsafe_code, reason = "pins the future inside of its span, and drops it there")]

use core::{
    mem::ManuallyDrop,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};
use std::borrow::Cow;

use clockjack_exec::{Handle, JoinHandle};
use tracing::{Level, Span};

/// The target of all spans of tasks.
const TARGET: &str = "clockjack::task";

/// Runs a future as a task, in a span if a subscriber wants one.
#[track_caller]
pub(crate) fn spawn_on<F>(
    handle: &Handle,
    name: Option<Cow<'static, str>>,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let span = span_of(name.as_deref(), Location::caller());
    match (name, span.is_disabled()) {
        (Some(name), true) => handle.spawn_named(name, future),
        (None, true) => handle.spawn_future(future),
        (Some(name), false) => handle.spawn_named(name, InSpan::new(span, future)),
        (None, false) => handle.spawn_future(InSpan::new(span, future)),
    }
}

fn span_of(name: Option<&str>, spawned_at: &Location<'_>) -> Span {
    tracing::span!(
        target: TARGET,
        parent: None,
        Level::DEBUG,
        "task",
        name,
        file = spawned_at.file(),
        line = spawned_at.line(),
    )
}

/// A future that is polled and dropped inside of its span.
struct InSpan<F> {
    span: Span,
    future: ManuallyDrop<F>,
}

impl<F> InSpan<F> {
    fn new(span: Span, future: F) -> Self {
        Self { span, future: ManuallyDrop::new(future) }
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: nothing is moved out of `self`, and the future is pinned again below.
        let this = unsafe { self.get_unchecked_mut() };
        let _entered = this.span.enter();
        // SAFETY: `self` was pinned, so the future is not moved until it is dropped in place.
        unsafe { Pin::new_unchecked(&mut *this.future) }.poll(cx)
    }
}

impl<F> Drop for InSpan<F> {
    fn drop(&mut self) {
        let _entered = self.span.enter();
        // SAFETY: it is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.future) };
    }
}
