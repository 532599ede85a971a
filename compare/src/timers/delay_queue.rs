//! `DelayQueue` of `tokio-util`: a hashed hierarchical wheel over a slab, woken by one tokio timer.

use core::task::{Context, Poll, Waker};

use tokio_util::time::{DelayQueue, delay_queue};

use super::paused::{PausedRuntime, Step};
use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

pub(crate) struct TokioDelayQueue {
    // Before the runtime, so that it is dropped while its timer can still be deregistered.
    queue: DelayQueue<u32>,
    runtime: PausedRuntime,
}

impl TokioDelayQueue {
    fn advance(&mut self, to_ms: u64, step: Step) -> Fired {
        let mut fired = Fired::default();
        let queue = &mut self.queue;
        self.runtime.advance(to_ms, step, || {
            let mut context = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some(expired)) = queue.poll_expired(&mut context) {
                fired.note(expired.into_inner());
            }
        });
        fired
    }
}

impl Subject for TokioDelayQueue {
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
        let runtime = PausedRuntime::new();
        let handle = runtime.handle();
        let _entered = handle.enter();
        Self { queue: DelayQueue::new(), runtime }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.queue.insert_at(id, self.runtime.instant(deadline_ms))
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.queue.remove(&key));
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        self.advance(to_ms, Step::Whole)
    }

    fn steps(&mut self, to_ms: u64) -> Fired {
        self.advance(to_ms, Step::Millisecond)
    }

    fn within<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        let handle = self.runtime.handle();
        let _entered = handle.enter();
        batch(self)
    }
}
