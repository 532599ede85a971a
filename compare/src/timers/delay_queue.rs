//! `DelayQueue` of `tokio-util`: a hashed hierarchical wheel over a slab, woken by one tokio timer.

use core::task::{Context, Poll, Waker};

use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use super::paused::{Guest, PausedRuntime, Step};
use super::subject::{Cancel, Facts, Fired, Ids, Role};

pub(crate) struct TokioDelayQueue(DelayQueue<u32>);

impl Guest for TokioDelayQueue {
    const FACTS: Facts = Facts {
        name: "DelayQueue",
        package: Some("tokio-util"),
        role: Role::Crate,
        cancel: Cancel::Frees,
        ids: Ids::HandedBack,
        note: "inside a paused current-thread runtime; a step includes tokio's own clock",
    };

    type Key = delay_queue::Key;

    fn new() -> Self {
        Self(DelayQueue::new())
    }

    fn insert(&mut self, deadline: Instant, id: u32) -> Self::Key {
        self.0.insert_at(id, deadline)
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.0.remove(&key));
    }

    fn advance(&mut self, runtime: &mut PausedRuntime, to_ms: u64, step: Step) -> Fired {
        let mut fired = Fired::default();
        runtime.advance(to_ms, step, || {
            let mut context = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some(expired)) = self.0.poll_expired(&mut context) {
                fired.note(expired.into_inner());
            }
        });
        fired
    }
}
