//! A future that the test completes, and that records its polls and its drop.

use core::{
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::sync::Mutex;

use alloc::sync::Arc;

use super::bench::Log;

#[derive(Default)]
struct Inner {
    output: Option<u32>,
    waker: Option<Waker>,
    polls: usize,
}

/// The handle that completes the future.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<Inner>>);

impl Gate {
    /// Completes the future and wakes its task.
    pub(crate) fn open(&self, output: u32) {
        self.0.lock().unwrap().output = Some(output);
        self.wake();
    }

    /// Wakes the task spuriously.
    pub(crate) fn wake(&self) {
        let waker = self.0.lock().unwrap().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How often the future was polled.
    pub(crate) fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }

    /// The waker of the last poll.
    pub(crate) fn waker(&self) -> Option<Waker> {
        self.0.lock().unwrap().waker.clone()
    }

    /// The future.
    pub(crate) fn passing(&self, log: &Log) -> Passing {
        Passing { gate: self.clone(), log: log.clone() }
    }
}

/// Ready when the gate is open.
pub(crate) struct Passing {
    gate: Gate,
    log: Log,
}

impl Future for Passing {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        let mut inner = self.gate.0.lock().unwrap();
        inner.polls += 1;
        match inner.output.take() {
            Some(output) => Poll::Ready(output),
            None => {
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.log.add("future dropped");
    }
}
