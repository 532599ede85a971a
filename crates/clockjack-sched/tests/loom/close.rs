//! Registrars, a canceller and a closer: each task has one end.

use alloc::sync::Arc as Plain;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use clockjack_sched::{CloseTasks, HandlerError, TaskRunHandle, TaskRunPriority::User};
use loom::{sync::Arc, thread};

/// What became of tasks. Plain counters, so that they order nothing in the model.
#[derive(Default)]
struct Ends {
    ran: AtomicUsize,
    cancelled: AtomicUsize,
    refused: AtomicUsize,
    dropped: AtomicUsize,
}

impl Ends {
    fn all(&self) -> [usize; 4] {
        [&self.ran, &self.cancelled, &self.refused, &self.dropped].map(|count| count.load(SeqCst))
    }
}

/// The content of a task, in memory that loom watches for leaks.
struct Content {
    ends: Plain<Ends>,
    _leak: Arc<()>,
}

impl Drop for Content {
    fn drop(&mut self) {
        self.ends.dropped.fetch_add(1, SeqCst);
    }
}

type Shared = (Arc<CloseTasks>, Plain<Ends>);

fn shared() -> Shared {
    (Arc::new(CloseTasks::new()), Plain::default())
}

fn register((tasks, ends): &Shared) -> Option<TaskRunHandle> {
    let content = Content { ends: ends.clone(), _leak: Arc::new(()) };
    let task = move || -> Result<(), HandlerError> {
        content.ends.ran.fetch_add(1, SeqCst);
        Ok(())
    };
    let registered = tasks.register(task, User);
    if registered.is_err() {
        ends.refused.fetch_add(1, SeqCst);
    }
    registered.ok()
}

fn cancel((tasks, ends): &Shared, handle: TaskRunHandle) {
    if tasks.cancel(handle) {
        ends.cancelled.fetch_add(1, SeqCst);
    }
}

fn close((tasks, _): &Shared) {
    for task in tasks.close() {
        task.run().unwrap();
    }
}

#[test]
fn a_registration_during_a_close_is_run_or_refused() {
    loom::model(|| {
        let shared = shared();
        let other = shared.clone();
        let registrar = thread::spawn(move || {
            register(&other);
        });
        close(&shared);
        registrar.join().unwrap();
        let [ran, cancelled, refused, dropped] = shared.1.all();
        assert_eq!((ran + refused, cancelled, dropped), (1, 0, 1));
        assert!(shared.0.is_empty());
    });
}

#[test]
fn a_task_is_cancelled_by_one_of_two() {
    loom::model(|| {
        let shared = shared();
        let handle = register(&shared).unwrap();
        let other = shared.clone();
        let canceller = thread::spawn(move || cancel(&other, handle));
        cancel(&shared, handle);
        canceller.join().unwrap();
        close(&shared);
        assert_eq!(shared.1.all(), [0, 1, 0, 1]);
    });
}

#[test]
fn a_task_is_cancelled_or_taken_by_the_close() {
    loom::model(|| {
        let shared = shared();
        let handle = register(&shared).unwrap();
        let other = shared.clone();
        let canceller = thread::spawn(move || cancel(&other, handle));
        close(&shared);
        canceller.join().unwrap();
        let [ran, cancelled, refused, dropped] = shared.1.all();
        assert_eq!((ran + cancelled, refused, dropped), (1, 0, 1));
    });
}

#[test]
fn two_registrars_that_both_bring_a_buffer_lose_no_task() {
    loom::model(|| {
        let shared = shared();
        let other = shared.clone();
        let registrar = thread::spawn(move || register(&other).unwrap());
        let mine = register(&shared).unwrap();
        let theirs = registrar.join().unwrap();
        assert_ne!(mine, theirs);
        assert_eq!(shared.0.len(), 2);
        cancel(&shared, theirs);
        close(&shared);
        assert_eq!(shared.1.all(), [1, 1, 0, 2]);
    });
}
