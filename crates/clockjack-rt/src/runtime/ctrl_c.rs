//! Ctrl-C, shared out among the runtimes that run.
//!
//! One handler for the program is set when it is first needed, and stays. Those who listen stand
//! in a list; the first Ctrl-C tells all of them. It ends the program at once if nobody listens,
//! as without the handler, or if somebody who was told is still there: that is the second one.

use alloc::sync::Arc;
use core::{
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
    task::{Context, Poll},
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use clockjack_sync::waker::AtomicWaker;

/// What shells expect of a program that was interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

static LISTENING: Mutex<Vec<Arc<Ear>>> = Mutex::new(Vec::new());
static IS_SET: OnceLock<bool> = OnceLock::new();

#[derive(Debug, Default)]
struct Ear {
    heard: AtomicBool,
    waker: AtomicWaker,
}

/// One who listens, until it is dropped.
#[derive(Debug)]
pub(super) struct Listening(Arc<Ear>);

impl Listening {
    /// Begins to listen. If the program has a handler of its own already, nothing is ever heard.
    pub(super) fn new() -> Self {
        let ear = Arc::new(Ear::default());
        list().push(Arc::clone(&ear));
        IS_SET.get_or_init(|| ctrlc::try_set_handler(interrupted).is_ok());
        Self(ear)
    }

    /// Ready once it was heard.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        // Acquire: pairs with `interrupted`.
        if self.0.heard.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        list().retain(|ear| !Arc::ptr_eq(ear, &self.0));
    }
}

fn list() -> MutexGuard<'static, Vec<Arc<Ear>>> {
    // Nothing is left half done by a panic under this lock.
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called by a thread of the handler's, not by a signal.
fn interrupted() {
    let ears = list().clone();
    // AcqRel: pairs with `poll`, and whoever comes second sees it.
    let is_second = ears.iter().fold(false, |was, ear| ear.heard.swap(true, AcqRel) | was);
    if ears.is_empty() || is_second {
        std::process::exit(INTERRUPTED);
    }
    ears.iter().for_each(|ear| ear.waker.wake());
}
