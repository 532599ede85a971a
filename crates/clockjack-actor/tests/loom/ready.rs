//! Wake flags of futures: wakers against the runner.

use alloc::{sync::Arc, vec::Vec};

use clockjack_sync::{
    Arc as SyncArc,
    primitive::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};
use loom::thread;

use crate::wake::{Notify, WakeFlagRef, WokenList};

/// Counts how often it was notified.
struct Count(Arc<AtomicUsize>);

impl Notify for Count {
    fn notify(&self) {
        self.0.fetch_add(1, AcqRel);
    }
}

fn woken_list() -> (SyncArc<WokenList<Count>>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (SyncArc::new(WokenList::new(Count(Arc::clone(&count)))), count)
}

fn taken(woken: &WokenList<Count>) -> Vec<WakeFlagRef<Count>> {
    let mut all = Vec::new();
    woken.take(|flag| all.push(flag));
    all
}

/// A poll sees what a waker did before its wake-up, also if another waker was faster.
#[test]
fn what_was_done_before_a_wake_is_seen_by_the_poll_after_it() {
    loom::model(|| {
        let (woken, notified) = woken_list();
        let flag = WakeFlagRef::new_queued(woken.clone(), 0);
        assert!(flag.clear_queued());
        let done = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let wakers = [0, 1].map(|i| {
            let (flag, done) = (flag.clone(), Arc::clone(&done));
            thread::spawn(move || {
                // Relaxed: the wake-up publishes it.
                done[i].store(true, Relaxed);
                flag.wake();
            })
        });
        let (mut polls, mut saw_all) = (0, false);
        let mut runner = || {
            for flag in taken(&woken) {
                assert!(flag.clear_queued());
                polls += 1;
                // Relaxed: as above.
                saw_all = done.iter().all(|done| done.load(Relaxed));
            }
        };
        runner();
        for waker in wakers {
            waker.join().unwrap();
        }
        runner();
        assert!(saw_all, "the last poll missed what was done before a ring");
        assert_eq!(notified.load(Acquire), polls, "each time it hung there was a poll");
        woken.close();
    });
}

/// A list that closes drops a flag that is being woken, so neither leaks.
#[test]
fn a_wake_concurrent_with_the_close_leaves_nothing_behind() {
    loom::model(|| {
        let (woken, count) = woken_list();
        let flag = WakeFlagRef::new_queued(woken.clone(), 0);
        assert!(flag.clear_queued());
        let rung = flag.clone();
        let waker = thread::spawn(move || rung.wake());
        flag.set_done();
        drop(flag);
        woken.close();
        drop(woken);
        waker.join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1, "the owner was let go");
    });
}

/// A flag that a stale waker may still wake is not reused.
#[test]
fn a_flag_is_reused_only_when_nobody_else_has_it() {
    loom::model(|| {
        let (woken, notified) = woken_list();
        let flag = WakeFlagRef::new_queued(woken.clone(), 0);
        assert!(flag.clear_queued());
        flag.set_done();
        let stale = flag.clone();
        let waker = thread::spawn(move || stale.wake());
        if let Some(renewed) = flag.reuse(1) {
            assert!(renewed.clear_queued());
            assert_eq!(renewed.label(), 1);
        }
        waker.join().unwrap();
        assert_eq!(notified.load(Acquire), 0, "a stale ring was heard");
        woken.close();
    });
}
