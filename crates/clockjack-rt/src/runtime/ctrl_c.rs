//! Distributes Ctrl-C to all runtimes that wait in `Runtime::run`.
//!
//! The first listener installs one handler for the program, which is never removed. Listeners are
//! kept in a list; the first Ctrl-C notifies all of them. Ctrl-C exits the program at once if the
//! list is empty, as it would without the handler, or if a notified listener still exists: that is
//! the second Ctrl-C.

use core::{
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
    task::{Context, Poll},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clockjack_sync::waker::AtomicWaker;

/// The exit code that shells expect of an interrupted program: 128 plus the signal number.
const INTERRUPTED_EXIT_CODE: i32 = 130;

static LISTENERS: Mutex<Vec<Arc<ListenerState>>> = Mutex::new(Vec::new());
static IS_HANDLER_SET: OnceLock<bool> = OnceLock::new();

#[derive(Debug, Default)]
struct ListenerState {
    is_notified: AtomicBool,
    waker: AtomicWaker,
}

/// A registration for Ctrl-C, until it is dropped.
#[derive(Debug)]
pub(super) struct CtrlCListener(Arc<ListenerState>);

impl CtrlCListener {
    /// Registers a listener. If the program has its own handler already, it is never notified.
    pub(super) fn new() -> Self {
        let state = Arc::new(ListenerState::default());
        listeners().push(Arc::clone(&state));
        IS_HANDLER_SET.get_or_init(|| ctrlc::try_set_handler(handle_ctrl_c).is_ok());
        Self(state)
    }

    /// Ready once Ctrl-C was pressed.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        // Acquire: pairs with the swap in `handle_ctrl_c`.
        if self.0.is_notified.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for CtrlCListener {
    fn drop(&mut self) {
        listeners().retain(|state| !Arc::ptr_eq(state, &self.0));
    }
}

fn listeners() -> MutexGuard<'static, Vec<Arc<ListenerState>>> {
    // No code under this lock leaves the list in an inconsistent state when it panics.
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handler's own thread calls this function; it does not run in a signal handler.
fn handle_ctrl_c() {
    let listeners = listeners().clone();
    // AcqRel: pairs with the load in `poll`, and a second Ctrl-C sees the first one's swap.
    let is_second =
        listeners.iter().fold(false, |was, state| state.is_notified.swap(true, AcqRel) | was);
    if listeners.is_empty() || is_second {
        std::process::exit(INTERRUPTED_EXIT_CODE);
    }
    listeners.iter().for_each(|state| state.waker.wake());
}
