//! A tokio runtime on the calling thread with a paused clock, and the two subjects that use it.

use alloc::rc::Rc;
use core::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::subject::{Facts, Fired, Subject};

/// A timer store inside the runtime.
pub(crate) trait Guest {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The key that `insert` returns and `cancel` takes.
    type Key;

    /// An empty store; called within the runtime.
    fn new() -> Self;

    /// Arms a timer; called within the runtime.
    fn insert(&mut self, deadline: Instant, id: u32) -> Self::Key;

    /// Cancels a timer that has not fired; called within the runtime.
    fn cancel(&mut self, key: Self::Key);

    /// Advances the clock of the runtime to `to_ms` and fires the timers that become due.
    fn advance(&mut self, runtime: &mut PausedRuntime, to_ms: u64, step: Step) -> Fired;
}

/// The runtime and its store.
pub(crate) struct InTokio<G> {
    // Before the runtime, so that the store is dropped while its timer can still be deregistered.
    guest: G,
    runtime: PausedRuntime,
}

impl<G: Guest> Subject for InTokio<G> {
    const FACTS: Facts = G::FACTS;

    type Key = G::Key;

    fn new() -> Self {
        let runtime = PausedRuntime::new();
        let handle = runtime.handle();
        let _entered = handle.enter();
        Self { guest: G::new(), runtime }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.guest.insert(self.runtime.instant(deadline_ms), id)
    }

    fn cancel(&mut self, key: Self::Key) {
        self.guest.cancel(key);
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        self.guest.advance(&mut self.runtime, to_ms, Step::Whole)
    }

    fn steps(&mut self, to_ms: u64) -> Fired {
        self.guest.advance(&mut self.runtime, to_ms, Step::Millisecond)
    }

    fn within<R>(&mut self, batch: impl FnOnce(&mut Self) -> R) -> R {
        let handle = self.runtime.handle();
        let _entered = handle.enter();
        batch(self)
    }
}

pub(crate) struct PausedRuntime {
    runtime: Rc<Runtime>,
    start: Instant,
    now_ms: u64,
}

impl PausedRuntime {
    fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing that could be refused");
        let start = {
            let _entered = runtime.enter();
            Instant::now()
        };
        Self { runtime: Rc::new(runtime), start, now_ms: 0 }
    }

    /// The runtime, to be entered for a batch while its owner is borrowed.
    fn handle(&self) -> Rc<Runtime> {
        Rc::clone(&self.runtime)
    }

    fn instant(&self, at_ms: u64) -> Instant {
        self.start + Duration::from_millis(at_ms)
    }

    /// Advances the clock to `to_ms`, step by step, and calls `after` after each step.
    ///
    /// Without cooperative budgeting: the budget of a task would make tokio's timers return pending
    /// after some polls.
    pub(crate) fn advance(&mut self, to_ms: u64, step: Step, mut after: impl FnMut()) {
        let whole_ms = to_ms - self.now_ms;
        let (n_steps, step_ms) = match step {
            Step::Whole => (1, whole_ms),
            Step::Millisecond => (whole_ms, 1),
        };
        self.now_ms = to_ms;
        self.runtime.block_on(tokio::task::unconstrained(async {
            for _ in 0..n_steps {
                tokio::time::advance(Duration::from_millis(step_ms)).await;
                after();
            }
        }));
    }
}

/// How far the clock advances per step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Whole,
    Millisecond,
}
