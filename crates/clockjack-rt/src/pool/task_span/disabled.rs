//! Tasks without spans: the feature `tracing` is off.

use std::borrow::Cow;

use clockjack_exec::{Handle, JoinHandle};

/// Runs a future as a task.
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
    match name {
        Some(name) => handle.spawn_named(name, future),
        None => handle.spawn_future(future),
    }
}
