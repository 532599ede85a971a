//! Deliveries of jobs that repeat: one is out at the most, and its drop is the end of a run.

use core::{panic::AssertUnwindSafe, sync::atomic::Ordering::SeqCst};
use std::panic::catch_unwind;

use clockjack_sched::{DiagnosticEvent, EventKinds, JobSpec, JobState, LogKind, Policy, Warning};

use crate::support::{Mailbox, advance, folded, manual, ms, scheduler, told};

#[test]
fn a_fixed_delay_counts_from_the_drop_of_the_delivery() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let spec = JobSpec::fixed_delay(ms(5), ms(10));
    let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
    manual.advance(ms(8));
    let delivery = mailbox.accept().expect("not cancelled");
    assert_eq!(told(&delivery), (5, 8, 1));
    manual.advance(ms(92));
    assert_eq!(mailbox.len(), 0, "the run is not complete");
    drop(delivery);
    assert_eq!(job.state(), JobState::Scheduled);
    manual.advance(ms(9));
    assert_eq!(mailbox.len(), 0);
    manual.advance(ms(1));
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (110, 110, 1));
}

#[test]
fn a_fixed_delay_counts_from_the_drop_of_a_delivery_that_was_not_accepted_too() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let spec = JobSpec::fixed_delay(ms(5), ms(10));
    drop(manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open"));
    manual.advance(ms(25));
    drop(mailbox.take().expect("it was sent"));
    manual.advance(ms(9));
    assert_eq!(mailbox.len(), 0);
    manual.advance(ms(1));
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (35, 35, 1));
}

#[test]
fn one_delivery_of_a_slow_receiver_folds_what_has_come_due_when_it_is_accepted() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = manual.scheduler().schedule_delivery(folded(10, 10), mailbox.letter("it"));
    let job = job.expect("open");
    for _ in 0..1_000 {
        manual.advance(ms(10));
        assert_eq!(mailbox.len(), 1, "one is out at the most");
    }
    let delivery = mailbox.accept().expect("not cancelled");
    assert_eq!(told(&delivery), (10, 10_000, 1_000));
    assert_eq!(delivery.fire().batch().missed_runs, 999);
    // What comes due while it is open is for the next.
    manual.advance(ms(30));
    assert_eq!(mailbox.len(), 0);
    drop(delivery);
    manual.run_due();
    let delivery = mailbox.accept().expect("not cancelled");
    assert_eq!(told(&delivery), (10_010, 10_030, 3));
    drop(delivery);
    manual.run_due();
    assert_eq!((mailbox.len(), job.state()), (0, JobState::Scheduled));
    manual.advance(ms(10));
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (10_040, 10_040, 1));

    let trace = manual.scheduler().diagnostics().trace();
    assert!(trace.records().iter().any(|record| record.kind == LogKind::Fold));
    let mut ran = 0;
    for record in trace.records() {
        if matches!(record.kind, LogKind::Fire | LogKind::Fold) {
            assert_eq!(record.deadline.get(), 10 + 10 * ran, "on its grid");
            ran += u64::from(record.runs);
        }
    }
    assert_eq!(ran, 1_004);
}

#[test]
fn what_was_owed_to_a_slow_receiver_is_sent_one_by_one() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let spec = JobSpec::fixed_rate(ms(10), ms(10));
    let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
    for _ in 0..1_000 {
        manual.advance(ms(10));
        assert_eq!(mailbox.len(), 1, "one is out at the most");
    }
    for n in 1..=1_000 {
        assert_eq!(mailbox.len(), 1);
        assert_eq!(told(&mailbox.accept().expect("not cancelled")), (10 * n, 10_000, 1));
        manual.run_due();
    }
    assert_eq!((mailbox.len(), job.state()), (0, JobState::Scheduled));
}

#[test]
fn a_delivery_that_is_dropped_unaccepted_is_followed_by_the_next() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    drop(manual.scheduler().schedule_delivery(folded(10, 10), mailbox.letter("it")).expect("open"));
    manual.advance(ms(35));
    drop(mailbox.take().expect("it was sent"));
    manual.run_due();
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (20, 35, 2));
    assert_eq!(manual.scheduler().metrics().discarded_total, 1);
}

#[test]
fn a_receiver_that_panics_completes_the_run_and_the_job_goes_on() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let spec = JobSpec::fixed_delay(ms(5), ms(10));
    let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
    manual.advance(ms(7));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let delivery = mailbox.accept().expect("not cancelled");
        assert!(delivery.fire().late().is_zero(), "it is late, and so this panics");
    }));
    assert!(caught.is_err());
    assert_eq!(job.state(), JobState::Scheduled);
    manual.advance(ms(10));
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (17, 17, 1));
    let metrics = manual.scheduler().metrics();
    assert_eq!((metrics.failed_total, metrics.discarded_total), (0, 0));
}

#[test]
fn a_cancel_of_an_accepted_delivery_is_the_end_after_this_run() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    drop(manual.scheduler().schedule_delivery(folded(10, 10), mailbox.letter("other")));
    let spec = JobSpec::fixed_rate(ms(5), ms(10));
    let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
    manual.advance(ms(5));
    let delivery = mailbox.accept().expect("not cancelled");
    assert!(job.cancel());
    drop(delivery);
    manual.run_due();
    assert_eq!((mailbox.told_cancelled(), mailbox.letters()), (1, 1));
    assert_eq!(manual.scheduler().metrics().discarded_total, 0, "it was opened");
}

#[test]
fn a_job_whose_receiver_is_gone_ends_quietly() {
    for opens in [false, true] {
        let (manual, mailbox) = (manual(), Mailbox::default());
        let warnings = manual.scheduler().diagnostics().subscribe(EventKinds::WARNING, 8);
        let mut warnings = warnings.expect("one is not too many");
        let spec = JobSpec::fixed_rate(ms(10), ms(10));
        let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
        manual.advance(ms(40));
        if opens {
            mailbox.accept().expect("not cancelled").complete_job();
        } else {
            mailbox.take().expect("it was sent").complete_job();
        }
        assert!(job.is_completed());
        manual.advance(ms(100));
        assert_eq!((mailbox.len(), mailbox.letters(), mailbox.told_cancelled()), (0, 0, 0));
        let metrics = manual.scheduler().metrics();
        assert_eq!((metrics.executed_total, metrics.active_total, metrics.failed_total), (1, 0, 0));
        assert!(warnings.try_next().is_none());
    }
}

#[test]
fn a_delivery_that_lies_too_long_meets_the_backlog_limit_and_is_not_accepted() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let warnings = manual.scheduler().diagnostics().subscribe(EventKinds::WARNING, 8);
    let mut warnings = warnings.expect("one is not too many");
    let policy = Policy::DEFAULT.backlog_limit(3);
    let spec = JobSpec::fixed_rate(ms(10), ms(10)).policy(policy);
    let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
    manual.advance(ms(40));
    assert!(!job.is_cancelled(), "three are owed behind the one that is out");
    manual.advance(ms(10));
    assert!(job.is_cancelled());
    let Some(DiagnosticEvent::Warned(warning)) = warnings.try_next() else {
        panic!("nobody was told");
    };
    assert!(matches!(warning, Warning::BacklogExceeded { backlog: 4, limit: 3, .. }), "{warning}");
    assert!(mailbox.accept().is_none());
    manual.run_due();
    assert_eq!((mailbox.told_cancelled(), mailbox.letters()), (1, 0));
}

#[test]
fn the_runner_is_called_when_a_delivery_comes_back_and_the_job_is_due_sooner_than_it_sleeps() {
    let (scheduler, host) = scheduler(1);
    let was_called = || host.calls.swap(0, SeqCst) > 0;
    let mailbox = Mailbox::default();
    let delay = JobSpec::fixed_delay(ms(5), ms(10));
    drop(scheduler.schedule_delivery(delay, mailbox.letter("delay")).expect("open"));
    advance(&host, 5);
    assert_eq!(scheduler.poll_shard(0, 0, 10).next_wake, None);
    was_called();
    drop(mailbox.accept());
    assert!(was_called(), "it is due in ten ticks, and the runner sleeps until it is called");

    // One run is pending when the first delivery is dropped, and none when the second is.
    let rate = JobSpec::fixed_rate(ms(1), ms(6));
    drop(scheduler.schedule_delivery(rate, mailbox.letter("rate")).expect("open"));
    advance(&host, 8);
    scheduler.poll_shard(0, 0, 10);
    was_called();
    drop(mailbox.accept());
    assert!(was_called(), "it is due again");
    scheduler.poll_shard(0, 0, 10);
    drop(mailbox.accept());
    assert!(!was_called(), "the runner knows when it is due next");
}
