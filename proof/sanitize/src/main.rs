//! Shows that a sanitizer reports errors: `race`, `use-after-free` and `leak` are faults, `sound`
//! is correct.
//!
//! `cargo xtask sanitize` builds it like the tests of the crates and runs it first. A build
//! without instrumentation, or a run-time that reports nothing, would pass every test. `sound` uses
//! the parts of std for which a build with an uninstrumented std gives false reports.
#![expect(unsafe_code, reason = "the planted faults are what unsafe code can do wrong")]
#![expect(clippy::print_stderr, reason = "a program of the command line")]
#![expect(clippy::disallowed_methods, reason = "the detached thread is deliberate")]

use core::{cell::UnsafeCell, hint::black_box};
use std::{
    process::ExitCode,
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
};

/// Rounds of each thread: enough that two of them overlap on one core too.
const N_ROUNDS: u32 = 100_000;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("sound") => sound(),
        Some("race") => race(),
        Some("use-after-free") => use_after_free(),
        Some("leak") => leak(),
        other => {
            eprintln!("sound, race, use-after-free or leak, not {other:?}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Hands values from thread to thread by everything that std has for it.
fn sound() {
    let total = Arc::new((Mutex::new(0_u32), Condvar::new()));
    let (sender, receiver) = mpsc::channel();
    for n in 0..4 {
        let (total, sender) = (Arc::clone(&total), sender.clone());
        thread::spawn(move || {
            sender.send(Box::new(n)).expect("the receiver lives until all have sent");
            *total.0.lock().expect("nobody panics") += n;
            total.1.notify_one();
        });
    }
    drop(sender);
    assert_eq!(receiver.iter().map(|n| *n).sum::<u32>(), 6);
    let sum = total.0.lock().expect("nobody panics");
    drop(total.1.wait_while(sum, |sum| *sum < 6).expect("nobody panics"));
}

/// A counter that claims to be shareable.
struct Unguarded(UnsafeCell<u32>);

// SAFETY: there is none; this is the planted fault.
unsafe impl Sync for Unguarded {}

impl Unguarded {
    fn add(&self) {
        // SAFETY: there is none; two threads are here at once.
        unsafe { *self.0.get() += 1 };
    }
}

fn race() {
    let counter = Unguarded(UnsafeCell::new(0));
    let add = || (0..N_ROUNDS).for_each(|_| black_box(&counter).add());
    thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
}

fn use_after_free() {
    let value = Box::into_raw(Box::new(black_box(7_u32)));
    // SAFETY: the pointer came from `into_raw` and was not given back yet.
    drop(unsafe { Box::from_raw(value) });
    // SAFETY: there is none; the value is gone.
    black_box(unsafe { value.read_volatile() });
}

fn leak() {
    // More than one block, so that a pointer left in a register or on the stack hides not all.
    for n in 0..64_usize {
        core::mem::forget(black_box(vec![n; 64]));
    }
}
