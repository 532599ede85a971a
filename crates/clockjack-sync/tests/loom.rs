//! Every interleaving of the lock-free parts, in small models: run with `cargo xtask loom`.
//!
//! How these models are written: for each object loom remembers only the *last* access when it
//! looks for steps to reorder, so a thread that loads a word and then changes it hides an earlier
//! load by another thread. Hence the threads start in the order "writers, then readers" and the
//! main thread only joins them: then the readers have something to read in the first execution, and
//! reordering starts from there. The mutants, which must fail, show whether a model explores
//! enough.
#![cfg(loom)]

extern crate alloc;

#[path = "loom/chase_lev.rs"]
mod chase_lev;
#[path = "loom/counter.rs"]
mod counter;
#[path = "loom/index_stack.rs"]
mod index_stack;
#[path = "loom/injector.rs"]
mod injector;
#[path = "loom/mail.rs"]
mod mail;
#[path = "loom/mpsc.rs"]
mod mpsc;
#[path = "loom/ring.rs"]
mod ring;
#[path = "loom/spin_lock.rs"]
mod spin_lock;
#[path = "loom/stack.rs"]
mod stack;
#[path = "loom/tracked.rs"]
mod tracked;
#[path = "loom/waker.rs"]
mod waker;

/// Explores `f` with at most this many preemptions, or fewer if the environment says so. For models
/// that would take minutes without a bound; two preemptions find nearly all faults, as the mutants
/// show.
fn model_within(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(model.preemption_bound.unwrap_or(usize::MAX).min(preemptions));
    model.check(f);
}
