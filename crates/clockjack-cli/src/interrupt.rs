//! Ctrl-C, and a request to terminate, as a wish that somebody looks at, instead of the end of the
//! process.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants the command to come to an end. Clones share the wish.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks.
    pub fn request(&self) {
        // Relaxed: nothing is published with it; who sees it late stops late.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets Ctrl-C and its like ask, if nobody in this process listens to it already. The second
    /// one ends the process at once: a run that does not drain must not hold a terminal.
    pub(crate) fn listen(&self) {
        let interrupt = self.clone();
        let on_ctrl_c = move || {
            if interrupt.is_requested() {
                std::process::exit(i32::from(crate::exit_code::INTERRUPTED));
            }
            interrupt.request();
        };
        // Without a handler Ctrl-C ends the process, as it does everywhere.
        let _is_set = ctrlc::try_set_handler(on_ctrl_c);
    }
}
