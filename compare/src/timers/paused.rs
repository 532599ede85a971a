//! A tokio runtime on the calling thread whose clock stands still until it is moved, for the two
//! subjects that live inside tokio.

use alloc::rc::Rc;
use core::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

pub(crate) struct PausedRuntime {
    runtime: Rc<Runtime>,
    start: Instant,
    now_ms: u64,
}

impl PausedRuntime {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn handle(&self) -> Rc<Runtime> {
        Rc::clone(&self.runtime)
    }

    pub(crate) fn instant(&self, at_ms: u64) -> Instant {
        self.start + Duration::from_millis(at_ms)
    }

    /// Moves the clock to `to_ms`, `step_ms` at a time, and calls `after` behind each step.
    ///
    /// Without constraint: a task's budget would make tokio's timers pretend to be pending after
    /// some polls.
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

/// How far the clock moves at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Whole,
    Millisecond,
}
