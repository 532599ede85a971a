//! How soon other workers begin what a worker leaves that blocks: its timers, what it
//! has woken, what it has started. Prints how many of a hundred begin within five milliseconds.
//!
//! `takeover [MILLIS] [timer|woken|started]`: for how long it blocks, 200 ms by default, and which
//! of the three.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use core::{task::Waker, time::Duration};
use std::{
    sync::{Arc, Mutex, mpsc},
    task::Wake,
    thread,
};

use clockjack_rt::{
    OsInstant, PoolConfig, WorkerPool,
    exec::{Commands, Handle, Timer},
};

const TRIALS: usize = 100;
const BLOCK_MILLIS: u64 = 200;
const WANTED: Duration = Duration::from_millis(5);

type Report = mpsc::Sender<Duration>;
/// Leaves something to do to others; a timer is to be kept until it has fired.
type Leave = fn(&Handle, Report) -> Option<Timer>;

/// Reports how late it is when it is woken.
struct Late {
    due: OsInstant,
    report: Mutex<Report>,
}

impl Wake for Late {
    fn wake(self: Arc<Self>) {
        let late = OsInstant::now().saturating_since(self.due);
        let report = self.report.lock().expect("nobody panics here");
        report.send(late).expect("it is waited for");
    }
}

/// Arms a timer on this worker.
fn leave_timer(pool: &Handle, report: Report) -> Option<Timer> {
    let after = Duration::from_millis(3);
    let due = OsInstant::now().saturating_add(after);
    let mut timer = pool.timer();
    let late = Arc::new(Late { due, report: Mutex::new(report) });
    timer.arm(after, late.into()).expect("the pool runs");
    Some(timer)
}

/// Starts a process on this worker.
fn leave_started(_: &Handle, report: Report) -> Option<Timer> {
    let due = OsInstant::now();
    drop(clockjack_rt::spawn_future(async move {
        report.send(OsInstant::now().saturating_since(due)).expect("it is waited for");
    }));
    None
}

/// Wakes a process on this worker.
fn leave_woken(_: &Handle, report: Report) -> Option<Timer> {
    let (waits, is_waiting) = mpsc::channel::<Waker>();
    let (wake, woken) = mpsc::channel::<OsInstant>();
    drop(clockjack_rt::spawn_future(async move {
        let mut waits = Some(waits);
        let due = core::future::poll_fn(move |cx| match woken.try_recv() {
            Ok(due) => core::task::Poll::Ready(due),
            Err(_) => {
                if let Some(waits) = waits.take() {
                    drop(waits.send(cx.waker().clone()));
                }
                core::task::Poll::Pending
            }
        });
        let due = due.await;
        let late = OsInstant::now().saturating_since(due);
        report.send(late).expect("it is waited for");
    }));
    let waker = is_waiting.recv().expect("another worker runs it");
    wake.send(OsInstant::now()).expect("it waits");
    waker.wake();
    None
}

fn main() {
    let mut args = std::env::args().skip(1);
    let millis = args.next().map_or(BLOCK_MILLIS, |arg| arg.parse().expect("a number of ms"));
    let block = Duration::from_millis(millis);
    let only = args.next();
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("two threads start");
    let cases: [(&str, Leave); 3] =
        [("timer", leave_timer), ("woken", leave_woken), ("started", leave_started)];
    for (name, leave) in cases {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut lates: Vec<Duration> = (0..TRIALS)
            .map(|_| {
                let (report, late) = mpsc::channel();
                let handle = pool.handle();
                let blocked = pool.spawn_future(async move {
                    let timer = leave(&handle, report);
                    thread::sleep(block);
                    timer
                });
                let late = late.recv().expect("it is done in the end");
                drop(pool.block_on(blocked).expect("it only sleeps"));
                late
            })
            .collect();
        lates.sort();
        let n = lates.iter().filter(|late| **late <= WANTED).count();
        let (median, worst) = (lates[TRIALS / 2], lates[TRIALS - 1]);
        println!("{name}: {n} of {TRIALS} within {WANTED:?}; median {median:?}, worst {worst:?}");
    }
}
