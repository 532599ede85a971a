//! A scheduler on a real clock: what is due comes, in order and not early.

use core::time::Duration;
use std::{sync::mpsc, time::Instant};

use clockjack_rt::sched::{DispatcherId, FireContext, Scheduler};

/// Schedules four jobs, out of order, and waits until they have run.
#[track_caller]
pub(crate) fn assert_four_jobs_run_when_they_are_due(scheduler: &Scheduler) {
    let (sender, receiver) = mpsc::channel();
    for delay in [30, 0, 10, 20].map(Duration::from_millis) {
        let (sender, begun) = (sender.clone(), Instant::now());
        let run = move |fire: &FireContext| sender.send((fire.due(), delay, begun.elapsed()));
        scheduler.schedule_once_fn(delay, DispatcherId::DEFAULT, run).unwrap();
    }
    drop(sender);
    let runs: Vec<_> = receiver.iter().collect();
    assert_eq!(runs.len(), 4);
    // Not in the order of the delays: a loaded machine may take long from one call to the next.
    assert!(runs.is_sorted_by_key(|run| run.0), "{runs:?}");
    assert!(runs.iter().all(|(_, delay, took)| took >= delay), "{runs:?}");
}
