//! The ready queue of a parallel epoch and its workers, compiled from the very files that ship. The
//! [`harness`] is what they work on.

/// The code under test, which does not depend on graphs.
#[path = "../../src/run/engine/helpers/dependencies.rs"]
mod dependencies;
/// The lock of the code under test.
mod primitive {
    pub(super) use loom::sync::{Mutex, MutexGuard};
}
/// The code under test, which does not depend on graphs.
#[path = "../../src/run/engine/helpers/ready_queue.rs"]
mod ready_queue;
/// The code under test, which does not depend on graphs.
#[expect(dead_code, reason = "the models use what the races are about")]
#[path = "../../src/run/engine/helpers/shared.rs"]
mod shared;

#[path = "helpers/harness.rs"]
mod harness;
#[path = "helpers/models.rs"]
mod models;
