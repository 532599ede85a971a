//! A message is refused while the job that is to report earlier ones is dropped, or while the
//! reporter looks at the window.

use alloc::sync::Arc;

use clockjack_observe::bus::with_bounded_wait;
use clockjack_sync::{
    primitive::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    spin_lock::SpinLock,
};
use loom::thread;

use crate::refusal_window::{Step, Window};

struct Scene {
    window: SpinLock<Window<u8, u8>>,
    /// How many requests the reporter has not read yet.
    requests: AtomicU64,
    /// How many refusals the window has.
    added: AtomicU64,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            window: SpinLock::new(Window::new()),
            requests: AtomicU64::new(0),
            added: AtomicU64::new(0),
        })
    }

    /// What a sender does whose message was refused.
    fn refuse(&self) {
        let needs_reporter = with_bounded_wait(&self.window, |window| {
            window.add(1, &1, |_| Ok(()));
            window.request(true, || 0)
        });
        if let Some(needs_reporter) = needs_reporter {
            self.added.fetch_add(1, Relaxed);
            self.requests.fetch_add(u64::from(needs_reporter), Release);
        }
    }

    /// What the reporter does when it is polled; true if it has scheduled a job.
    fn serve(&self) -> bool {
        if self.requests.swap(0, Acquire) == 0 {
            return false;
        }
        let (step, _) = self.window.with(|window| window.serve(true, 0));
        assert_ne!(step, Step::Report, "there are jobs");
        matches!(step, Step::Schedule(_))
    }

    fn run_job(&self) -> u64 {
        self.window.with(|window| {
            window.job_runs();
            window.take(0).map_or(0, |refusals| refusals.total)
        })
    }

    /// Nobody else does anything any more: whatever the window has is reported.
    fn report_the_rest(&self) -> u64 {
        let mut n_reported = 0;
        while self.serve() {
            n_reported += self.run_job();
        }
        n_reported
    }
}

#[test]
fn a_refusal_that_meets_the_drop_of_the_job_is_reported_with_the_next_one() {
    loom::model(|| {
        let scene = Scene::new();
        scene.refuse();
        assert!(scene.serve(), "a job is pending");
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.refuse())
        };
        scene.window.with(Window::job_is_dropped);
        sender.join().expect("a sender does not panic");
        scene.refuse();
        assert_eq!(scene.report_the_rest(), scene.added.load(Relaxed));
    });
}

#[test]
fn a_refusal_that_meets_the_reporter_is_in_a_report() {
    loom::model(|| {
        let scene = Scene::new();
        scene.refuse();
        let sender = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                scene.refuse();
                scene.refuse();
            })
        };
        let mut n_reported = 0;
        if scene.serve() {
            n_reported += scene.run_job();
        }
        sender.join().expect("a sender does not panic");
        n_reported += scene.report_the_rest();
        assert_eq!(n_reported, scene.added.load(Relaxed));
    });
}
