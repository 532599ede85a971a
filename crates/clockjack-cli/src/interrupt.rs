//! Ctrl-C as a flag that the command polls, instead of a signal that stops the process.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Whether the user wants the command to stop. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a stop.
    pub fn request(&self) {
        // Relaxed: the flag publishes no other data; a thread that sees the flag late stops late.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes Ctrl-C set this flag, unless other code in this process handles Ctrl-C. If all flags
    /// are already set, the next Ctrl-C exits the process immediately: a run that does not stop
    /// must not block the terminal.
    pub(crate) fn listen(&self) {
        LISTENERS.add(self);
        let on_ctrl_c = || {
            if !LISTENERS.request_all() {
                std::process::exit(i32::from(crate::exit_code::INTERRUPTED));
            }
        };
        // Without a handler, Ctrl-C stops the process as usual. A handler that an earlier call of
        // the command has installed uses the same static list, so it also sets this flag.
        let _is_set = ctrlc::try_set_handler(on_ctrl_c);
    }
}

/// A process has one Ctrl-C handler, but a command can be called any number of times.
static LISTENERS: Listeners = Listeners(Mutex::new(Vec::new()));

/// The flags that Ctrl-C sets. Flags of completed commands are removed.
struct Listeners(Mutex<Vec<Weak<AtomicBool>>>);

impl Listeners {
    fn add(&self, interrupt: &Interrupt) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|one| one.strong_count() > 0);
        list.push(Arc::downgrade(&interrupt.0));
    }

    /// Sets all flags. Returns whether at least one of them was not set before.
    fn request_all(&self) -> bool {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupts = list.iter().filter_map(Weak::upgrade).map(Interrupt);
        interrupts.fold(false, |is_new, interrupt| {
            let was_requested = interrupt.is_requested();
            interrupt.request();
            is_new || !was_requested
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_process_is_asked_and_then_there_is_none_left_to_ask() {
        let listeners = Listeners(Mutex::new(Vec::new()));
        let first = Interrupt::new();
        listeners.add(&first);
        assert!(listeners.request_all() && first.is_requested());
        assert!(!listeners.request_all(), "it does not drain");
        // A second command uses the same handler, even while the first command still runs.
        let second = Interrupt::new();
        listeners.add(&second);
        assert!(listeners.request_all() && second.is_requested());
        drop((first, second));
        let third = Interrupt::new();
        listeners.add(&third);
        assert_eq!(listeners.0.lock().map(|list| list.len()).ok(), Some(1), "none is kept");
    }
}
