//! Ctrl-C as a wish that somebody looks at, instead of the end of the process.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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

    /// Lets Ctrl-C ask, unless somebody else in this process listens to it. Once all have been
    /// asked, the next one ends the process at once: a run that does not drain must not hold a
    /// terminal.
    pub(crate) fn listen(&self) {
        LISTENERS.add(self);
        let on_ctrl_c = || {
            if !LISTENERS.ask() {
                std::process::exit(i32::from(crate::exit_code::INTERRUPTED));
            }
        };
        // Without a handler Ctrl-C ends the process, as it does everywhere. One that an earlier
        // call of the command has set knows of this wish, too.
        let _is_set = ctrlc::try_set_handler(on_ctrl_c);
    }
}

/// A process has one handler, and a command can be called in it any number of times.
static LISTENERS: Listeners = Listeners(Mutex::new(Vec::new()));

/// Who is to be asked. Those of commands that have ended are forgotten.
struct Listeners(Mutex<Vec<Weak<AtomicBool>>>);

impl Listeners {
    fn add(&self, interrupt: &Interrupt) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|one| one.strong_count() > 0);
        list.push(Arc::downgrade(&interrupt.0));
    }

    /// Asks all. Whether one of them had not been asked before.
    fn ask(&self) -> bool {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = list.iter().filter_map(Weak::upgrade).map(Interrupt);
        asked.fold(false, |is_new, interrupt| {
            let was_asked = interrupt.is_requested();
            interrupt.request();
            is_new || !was_asked
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
        assert!(listeners.ask() && first.is_requested());
        assert!(!listeners.ask(), "it does not drain");
        // A second command, also while the first is there, hears the same handler.
        let second = Interrupt::new();
        listeners.add(&second);
        assert!(listeners.ask() && second.is_requested());
        drop((first, second));
        let third = Interrupt::new();
        listeners.add(&third);
        assert_eq!(listeners.0.lock().map(|list| list.len()).ok(), Some(1), "none is kept");
    }
}
