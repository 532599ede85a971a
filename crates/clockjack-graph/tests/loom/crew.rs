//! The board of a crew and all who meet there, as they ship. What they work on is a [`stage`].

/// The part under test, which knows nothing of graphs.
#[path = "../../src/run/crew/board.rs"]
mod board;
/// The lock of the part under test.
mod prim {
    pub(super) use loom::sync::{Mutex, MutexGuard};
}
/// The part under test, which knows nothing of graphs.
#[expect(dead_code, reason = "the models use what the races are about")]
#[path = "../../src/run/crew/shared.rs"]
mod shared;
/// The part under test, which knows nothing of graphs.
#[path = "../../src/run/crew/waits.rs"]
mod waits;

#[path = "crew/scenes.rs"]
mod scenes;
#[path = "crew/stage.rs"]
mod stage;
