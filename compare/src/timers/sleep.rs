//! `tokio::time::Sleep`, boxed and polled once, as a future waiting for a time-out holds it.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Waker};

use tokio::time::{Sleep, sleep_until};

use super::paused::{PausedRuntime, Step};
use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

pub(crate) struct TokioSleep {
    runtime: PausedRuntime,
    wakes: Arc<Wakes>,
    waker: Waker,
}

impl TokioSleep {
    /// A fire is the wake of the timer's task; polling the future afterwards is left out.
    fn advance(&mut self, to_ms: u64, step: Step) -> Fired {
        let before = self.wakes.count();
        self.runtime.advance(to_ms, step, || ());
        Fired { count: self.wakes.count() - before, id_sum: 0 }
    }
}

impl Subject for TokioSleep {
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
        Self { runtime: PausedRuntime::new(), wakes, waker }
    }

    fn insert(&mut self, deadline_ms: u64, _id: u32) -> Self::Key {
        let mut sleep = Box::pin(sleep_until(self.runtime.instant(deadline_ms)));
        let mut context = Context::from_waker(&self.waker);
        // The first poll puts it into tokio's wheel.
        assert!(sleep.as_mut().poll(&mut context).is_pending(), "the deadline lies ahead");
        sleep
    }

    fn cancel(&mut self, key: Self::Key) {
        drop(key);
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
