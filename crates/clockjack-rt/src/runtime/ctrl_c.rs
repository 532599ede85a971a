//! Ctrl-C, shared out among the runtimes that run.
//!
//! One handler for the program is set when it is first needed, and stays. Those who listen stand
//! in a list; the first Ctrl-C tells all of them. It ends the program at once if nobody listens,
//! as without the handler, or if somebody who was told is still there: that is the second one.

use core::{
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
    task::{Context, Poll},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clockjack_sync::waker::AtomicWaker;

/// What shells expect of a program that was interrupted: 128 and the number of the signal.
const INTERRUPTED_EXIT_CODE: i32 = 130;

static LISTENERS: Mutex<Vec<Arc<ListenerState>>> = Mutex::new(Vec::new());
static IS_HANDLER_SET: OnceLock<bool> = OnceLock::new();

#[derive(Debug, Default)]
struct ListenerState {
    is_notified: AtomicBool,
    waker: AtomicWaker,
}

/// One who listens, until it is dropped.
#[derive(Debug)]
pub(super) struct CtrlCListener(Arc<ListenerState>);

impl CtrlCListener {
    /// Begins to listen. If the program has a handler of its own already, nothing is ever heard.
    pub(super) fn new() -> Self {
        let state = Arc::new(ListenerState::default());
        listeners().push(Arc::clone(&state));
        IS_HANDLER_SET.get_or_init(|| ctrlc::try_set_handler(handle_ctrl_c).is_ok());
        Self(state)
    }

    /// Ready once it was heard.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        // Acquire: pairs with `handle_ctrl_c`.
        if self.0.is_notified.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for CtrlCListener {
    fn drop(&mut self) {
        listeners().retain(|state| !Arc::ptr_eq(state, &self.0));
    }
}

fn listeners() -> MutexGuard<'static, Vec<Arc<ListenerState>>> {
    // Nothing is left half done by a panic under this lock.
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called by a thread of the handler's, not by a signal.
fn handle_ctrl_c() {
    let listeners = listeners().clone();
    // AcqRel: pairs with `poll`, and whoever comes second sees it.
    let is_second =
        listeners.iter().fold(false, |was, state| state.is_notified.swap(true, AcqRel) | was);
    if listeners.is_empty() || is_second {
        std::process::exit(INTERRUPTED_EXIT_CODE);
    }
    listeners.iter().for_each(|state| state.waker.wake());
}
