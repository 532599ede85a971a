//! The command by which a process runs blocking work.

use core::fmt;
use std::sync::Arc;

use clockjack_exec::{
    Command, CommandId, Commands, Completer, Failure, Payload,
    command::{NO_ROOM, STOPPING},
};

use crate::BlockingPool;

type Work = Box<dyn FnOnce() -> Result<Payload, Failure> + Send>;

/// Runs a closure that blocks on a thread for blocking work; the reply is the closure's result. If
/// the closure panics, the reply is a failure.
pub struct Blocking(Work);

impl Blocking {
    /// Creates the command, for a process to yield.
    pub fn new<T, F>(work: F) -> Self
    where
        F: FnOnce() -> Result<T, Failure> + Send + 'static,
        T: Send + 'static,
    {
        Self(Box::new(move || work().map(Payload::new)))
    }
}

impl Command for Blocking {
    const ID: CommandId = CommandId(40);
    type Reply = Payload;
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

/// Registers the handler of the command.
pub(crate) fn add_to(commands: Commands, blocking: &Arc<BlockingPool>) -> Commands {
    let blocking = Arc::clone(blocking);
    commands.handle_reserved(move |Blocking(work), done: Completer<Payload>| {
        // The completer is in a shared slot, so that a refused closure can still be answered with
        // the reason of the refusal.
        let slot = Arc::new(std::sync::Mutex::new(Some(done)));
        let theirs = Arc::clone(&slot);
        let take = |slot: &std::sync::Mutex<Option<Completer<Payload>>>| {
            slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        };
        let submitted = blocking.submit(move || {
            if let Some(done) = take(&theirs) {
                done.complete_with(work());
            }
        });
        if let Err(refused) = submitted {
            let failure = if refused.is_closed() { STOPPING.failure() } else { NO_ROOM.failure() };
            if let Some(done) = take(&slot) {
                done.complete(Err(failure));
            }
        }
    })
}
