//! A run that stops with its owner.

use core::{
    fmt,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    graph::GraphRun,
    run::{RunError, RunReport},
};

/// A run that is stopped when this value is dropped. An actor that keeps it in its state, or that
/// [spawned](clockjack_actor::Context::spawn_future) it as a future, stops the run when the actor stops or
/// restarts.
///
/// Like the underlying [`GraphRun`], it is a future of the run's report.
#[must_use = "dropped, it stops the run"]
pub struct OwnedRun(GraphRun);

impl GraphRun {
    /// Stops the run when the returned value is dropped.
    pub fn stop_on_drop(self) -> OwnedRun {
        OwnedRun(self)
    }
}

impl Deref for OwnedRun {
    type Target = GraphRun;

    fn deref(&self) -> &GraphRun {
        &self.0
    }
}

impl Future for OwnedRun {
    type Output = Result<RunReport, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Drop for OwnedRun {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl fmt::Debug for OwnedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedRun").field(&self.0).finish()
    }
}
