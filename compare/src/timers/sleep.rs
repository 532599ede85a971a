//! `tokio::time::Sleep`, boxed and polled once, as in a future that waits for a time-out.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Waker};

use tokio::time::{Instant, Sleep, sleep_until};

use super::paused::{Guest, PausedRuntime, Step};
use super::subject::{Cancel, Facts, Fired, Ids, Role};

pub(crate) struct TokioSleep {
    wakes: Arc<Wakes>,
    waker: Waker,
}

impl Guest for TokioSleep {
    const FACTS: Facts = Facts {
        name: "tokio-Sleep",
        package: Some("tokio"),
        role: Role::Crate,
        cancel: Cancel::Frees,
        ids: Ids::Lost,
        note: "boxed, inside a paused current-thread runtime; a fire is the wake alone",
    };

    type Key = Pin<Box<Sleep>>;

    fn new() -> Self {
        let wakes = Arc::new(Wakes(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        Self { wakes, waker }
    }

    fn insert(&mut self, deadline: Instant, _id: u32) -> Self::Key {
        let mut sleep = Box::pin(sleep_until(deadline));
        let mut context = Context::from_waker(&self.waker);
        // The first poll inserts it into tokio's wheel.
        assert!(sleep.as_mut().poll(&mut context).is_pending(), "the deadline lies ahead");
        sleep
    }

    fn cancel(&mut self, key: Self::Key) {
        drop(key);
    }

    /// A fire is the wake of the timer's task; the poll of the future afterwards is not included.
    fn advance(&mut self, runtime: &mut PausedRuntime, to_ms: u64, step: Step) -> Fired {
        let before = self.wakes.count();
        runtime.advance(to_ms, step, || ());
        Fired { count: self.wakes.count() - before, id_sum: 0 }
    }
}

/// Counts the wakes of all timers that share it.
struct Wakes(AtomicU64);

impl Wakes {
    fn count(&self) -> u64 {
        // Relaxed: all wakes happen on the thread that reads, nothing is published.
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Relaxed: a count on one thread, nothing is published.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
