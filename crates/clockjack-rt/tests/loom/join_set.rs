//! The queue of a join set: no task that has finished is missed. A set that is not woken is a
//! deadlock, which loom reports.

use core::task::Waker;
use std::{sync::Arc, task::Wake};

use clockjack_rt::Parker;
use clockjack_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

use crate::woken::{Entry, WokenQueue};

/// The waker of the set's thread.
struct Unparker(Parker);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A task and its join handle: finished or not. Relaxed: the queue must publish it.
#[derive(Default)]
struct Task {
    is_finished: AtomicBool,
}

/// Ends a task on another thread (rules 1 and 2).
fn finish(task: &Arc<Task>, key: u64, queue: &Arc<WokenQueue>) -> thread::JoinHandle<()> {
    let entry = Arc::new(Entry::new(key, Arc::clone(queue)));
    let task = Arc::clone(task);
    thread::spawn(move || {
        task.is_finished.store(true, Relaxed);
        entry.wake();
    })
}

#[test]
fn a_set_waits_for_no_task_that_has_finished() {
    loom::model(|| {
        let queue = Arc::new(WokenQueue::new());
        let tasks: [Arc<Task>; 2] = Default::default();
        let finishers: Vec<_> =
            (0..).zip(&tasks).map(|(key, task)| finish(task, key, &queue)).collect();
        let unparker = Arc::new(Unparker(Parker::new()));
        let waker = Waker::from(Arc::clone(&unparker));
        let mut n_joined = 0;
        while n_joined < tasks.len() {
            match queue.pop_or_register(&waker) {
                Some(key) => {
                    let task = &tasks[usize::try_from(key).unwrap()];
                    assert!(task.is_finished.load(Relaxed), "woken before it has finished");
                    n_joined += 1;
                }
                None => {
                    unparker.0.park(None);
                }
            }
        }
        assert_eq!(queue.pop(), None);
        for finisher in finishers {
            finisher.join().unwrap();
        }
    });
}
