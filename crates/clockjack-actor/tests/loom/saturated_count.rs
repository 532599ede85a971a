//! Saturated mailboxes that come and go at the same time.

use alloc::sync::Arc;

use clockjack_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

use crate::saturated_count::SaturatedCount;

struct Scene {
    count: SaturatedCount,
    is_pressed: AtomicBool,
}

impl Scene {
    fn add(&self) {
        self.count.add(|is_any| self.is_pressed.store(is_any, Relaxed));
    }

    fn remove(&self) {
        self.count.remove(|is_any| self.is_pressed.store(is_any, Relaxed));
    }
}

/// The last mailbox is relieved while another one becomes saturated and is relieved.
#[test]
fn the_pressure_ends_with_the_last_saturated_mailbox() {
    loom::model(|| {
        let count = SaturatedCount::new();
        let scene = Arc::new(Scene { count, is_pressed: AtomicBool::new(false) });
        scene.add();
        let theirs = Arc::clone(&scene);
        let other = thread::spawn(move || {
            theirs.add();
            theirs.remove();
        });
        scene.remove();
        other.join().expect("the other runner does not panic");
        assert!(!scene.is_pressed.load(Relaxed), "no mailbox is saturated");
    });
}

/// The last mailbox is relieved while another one becomes saturated.
#[test]
fn the_pressure_stays_while_a_mailbox_is_saturated() {
    loom::model(|| {
        let count = SaturatedCount::new();
        let scene = Arc::new(Scene { count, is_pressed: AtomicBool::new(false) });
        scene.add();
        let theirs = Arc::clone(&scene);
        let other = thread::spawn(move || theirs.add());
        scene.remove();
        other.join().expect("the other runner does not panic");
        assert!(scene.is_pressed.load(Relaxed), "one mailbox is saturated");
    });
}
