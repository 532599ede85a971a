//! A task that registers and waits, and threads that wake it. A lost wake-up is a deadlock, which
//! loom reports.

use alloc::{sync::Arc as Plain, task::Wake};
use core::task::Waker;

use clockjack_sync::{
    primitive::atomic::{AtomicBool, Ordering::Relaxed},
    waker::AtomicWaker,
};
use loom::{
    sync::Arc,
    thread::{self, Thread},
};

use crate::model_within;

/// Wakes a thread of the model.
struct UnparkWaker(Thread);

impl Wake for UnparkWaker {
    fn wake(self: Plain<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Plain<Self>) {
        self.0.unpark();
    }
}

/// What a task waits for, in words that order nothing by themselves.
struct Scene {
    slot: AtomicWaker,
    flags: [AtomicBool; 2],
}

impl Scene {
    fn new() -> Arc<Self> {
        let flags = [AtomicBool::new(false), AtomicBool::new(false)];
        Arc::new(Self { slot: AtomicWaker::new(), flags })
    }

    fn notify(this: &Arc<Self>, flag: usize) -> thread::JoinHandle<()> {
        let scene = Arc::clone(this);
        thread::spawn(move || {
            scene.flags[flag].store(true, Relaxed);
            scene.slot.wake();
        })
    }

    /// Polls until the first `n` flags are set, with a new waker for each poll, or one for all.
    /// Returns the first waker.
    fn wait(&self, n: usize, is_one_waker: bool) -> Plain<UnparkWaker> {
        let unpark = Plain::new(UnparkWaker(thread::current()));
        let mut waker = Waker::from(Plain::clone(&unpark));
        loop {
            self.slot.register(&waker);
            if self.flags[..n].iter().all(|flag| flag.load(Relaxed)) {
                break;
            }
            thread::park();
            // A registrar that meets a notifier has woken itself; let the notifier continue.
            thread::yield_now();
            if !is_one_waker {
                waker = Waker::from(Plain::new(UnparkWaker(thread::current())));
            }
        }
        drop(self.slot.take());
        unpark
    }
}

#[test]
fn a_task_that_registers_and_looks_is_woken_by_who_acts_and_wakes() {
    for is_one_waker in [true, false] {
        model_within(3, move || {
            let scene = Scene::new();
            let notifier = Scene::notify(&scene, 0);
            let other = Arc::clone(&scene);
            let task = thread::spawn(move || other.wait(1, is_one_waker));
            notifier.join().unwrap();
            let unpark = task.join().unwrap();
            assert_eq!(Plain::strong_count(&unpark), 1, "a waker was not dropped, or twice");
        });
    }
}

#[test]
fn a_notifier_that_finds_another_at_the_cell_is_waked_for() {
    model_within(3, || {
        let scene = Scene::new();
        let notifiers = [Scene::notify(&scene, 0), Scene::notify(&scene, 1)];
        let other = Arc::clone(&scene);
        let task = thread::spawn(move || other.wait(2, true));
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
        let unpark = task.join().unwrap();
        assert_eq!(Plain::strong_count(&unpark), 1, "a waker was not dropped, or twice");
    });
}

#[test]
fn of_two_registrars_each_is_registered_or_woken() {
    model_within(3, || {
        let slot = Arc::new(AtomicWaker::new());
        let wakes = Plain::new(WakeCounter::default());
        let register = || {
            let (slot, wakes) = (Arc::clone(&slot), Plain::clone(&wakes));
            thread::spawn(move || slot.register(&Waker::from(wakes)))
        };
        let (one, two) = (register(), register());
        one.join().unwrap();
        two.join().unwrap();
        let is_registered = slot.take().is_some();
        let n_wakes = wakes.0.load(core::sync::atomic::Ordering::SeqCst);
        assert!(is_registered || n_wakes > 0, "neither registered nor woken");
        assert_eq!(Plain::strong_count(&wakes), 1, "a waker was not dropped, or twice");
    });
}

/// Counts, in a word that orders nothing in the model.
#[derive(Default)]
struct WakeCounter(core::sync::atomic::AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Plain<Self>) {
        self.0.fetch_add(1, core::sync::atomic::Ordering::SeqCst);
    }
}
