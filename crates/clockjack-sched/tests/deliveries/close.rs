//! The close, while deliveries are out.

use clockjack_sched::{CloseReport, JobSpec, JobState, Scheduler, model::held};

use crate::support::{Mailbox, folded, manual, ms, told};

fn once(scheduler: &Scheduler, delay: u64, mailbox: &Mailbox) -> clockjack_sched::Cancellable {
    let job = scheduler.schedule_delivery(JobSpec::once(ms(delay)), mailbox.letter("once"));
    job.expect("open")
}

/// Executed, cancelled, run by the close, still running.
fn counts(report: &CloseReport) -> (u64, u64, u64, u64) {
    assert_eq!(report.accepted, report.executed + report.cancelled, "{report}");
    (report.executed, report.cancelled, report.run_on_close, report.still_running)
}

/// The report was exact, whatever came back since; and nothing is left.
fn settled(scheduler: &Scheduler, report: &CloseReport, mailbox: &Mailbox) {
    let metrics = scheduler.metrics();
    let now = (metrics.accepted_total, metrics.executed_total, metrics.cancelled_total);
    assert_eq!(now, (report.accepted, report.executed, report.cancelled));
    let left = held(scheduler);
    assert_eq!((left.slots, left.due, left.remote_ops, mailbox.letters()), (0, 0, 0, 0));
}

#[test]
fn a_one_shot_that_was_sent_counts_as_executed_and_a_periodic_job_is_cancelled() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    let job = once(scheduler, 5, &mailbox);
    let every = scheduler.schedule_delivery(folded(5, 5), mailbox.letter("every")).expect("open");
    manual.advance(ms(12));
    let report = scheduler.shutdown();
    assert_eq!(counts(&report), (1, 1, 0, 2));
    assert!(every.is_cancelled() && !job.is_cancelled());
    assert!(!job.cancel() && !every.cancel(), "the close has decided");
    assert_eq!(mailbox.told_cancelled(), 0, "they are out");

    assert_eq!(told(&mailbox.accept().expect("it was not cancelled")), (5, 12, 1));
    assert!(mailbox.accept().is_none());
    assert_eq!(mailbox.told_cancelled(), 1, "told by who gave it back");
    drop((job, every));
    settled(scheduler, &report, &mailbox);
}

#[test]
fn a_one_shot_that_was_cancelled_while_it_was_out_counts_as_cancelled() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    let job = once(scheduler, 5, &mailbox);
    manual.advance(ms(5));
    assert_eq!(mailbox.len(), 1, "it is out");
    assert!(job.cancel());
    let report = scheduler.shutdown();
    assert_eq!(counts(&report), (0, 1, 0, 1));
    assert!(mailbox.accept().is_none());
    drop(job);
    settled(scheduler, &report, &mailbox);
}

#[test]
fn deliveries_that_are_accepted_at_the_close_are_executed() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    let job = once(scheduler, 5, &mailbox);
    drop(scheduler.schedule_delivery(folded(5, 5), mailbox.letter("every")).expect("open"));
    manual.advance(ms(5));
    let open = [mailbox.accept(), mailbox.accept()];
    let report = scheduler.shutdown();
    // A job that repeats is cancelled by the close, as everywhere.
    assert_eq!(counts(&report), (1, 1, 0, 2));
    assert_eq!(job.state(), JobState::Executing);
    drop((open, job));
    settled(scheduler, &report, &mailbox);
}

#[test]
fn what_is_due_at_the_close_is_not_sent() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    drop(once(scheduler, 5, &mailbox));
    drop(scheduler.schedule_delivery(folded(5, 5), mailbox.letter("every")).expect("open"));
    manual.clock().advance(ms(50));
    let report = scheduler.shutdown();
    assert_eq!((counts(&report), mailbox.len()), ((0, 2, 0, 0), 0));
    assert!(report.is_clean(), "{report}");
    settled(scheduler, &report, &mailbox);
}

/// A run of a job that repeats would be cancelled while it travels, and count as both.
#[test]
fn a_mark_on_a_job_that_repeats_is_none() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    for spec in [folded(50, 50), JobSpec::fixed_delay(ms(50), ms(50))] {
        let spec = JobSpec { run_on_close: true, ..spec };
        let job = scheduler.schedule_delivery(spec, mailbox.letter("every")).expect("open");
        assert!(!job.run_on_close());
    }
    let report = scheduler.shutdown();
    assert_eq!((counts(&report), mailbox.len()), ((0, 2, 0, 0), 0));
    settled(scheduler, &report, &mailbox);
}

/// Marks are for handlers. A message that is due in 50 ms must not arrive before.
#[test]
fn a_delivery_cannot_be_marked_and_the_close_does_not_send_it_early() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    let job = once(scheduler, 50, &mailbox);
    assert!(!job.run_on_close());
    let spec = JobSpec { run_on_close: true, ..JobSpec::once(ms(50)) };
    drop(scheduler.schedule_delivery(spec, mailbox.letter("once")).expect("open"));
    let report = scheduler.shutdown();
    assert_eq!((counts(&report), mailbox.len()), ((0, 2, 0, 0), 0));
    assert!(job.is_cancelled());
    drop(job);
    settled(scheduler, &report, &mailbox);
}

#[test]
fn deliveries_that_the_close_cancels_in_their_thousands_need_no_stack() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let scheduler = manual.scheduler();
    let n = 5_000;
    for _ in 0..n {
        let letter = Returning { letter: mailbox.letter("back") };
        let job = scheduler.schedule_delivery(JobSpec::once(ms(50)), letter);
        drop(job.map_err(|refused| refused.kind()));
    }
    manual.clock().advance(ms(50));
    let report = scheduler.shutdown();
    assert_eq!(counts(&report), (0, n, 0, 0));
    settled(scheduler, &report, &mailbox);
}

/// Its receiver is gone.
struct Returning {
    #[expect(dead_code, reason = "it is counted")]
    letter: crate::support::Letter,
}

struct Gone;

impl clockjack_sched::DeliverySink for Gone {
    fn deliver(self, delivery: clockjack_sched::PendingDelivery) {
        delivery.complete_job();
    }
}

impl clockjack_sched::DeliveryTask for Returning {
    type Sink = Gone;

    fn sink(&self) -> Gone {
        Gone
    }
}

#[test]
fn a_delivery_outlives_its_scheduler() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = once(manual.scheduler(), 5, &mailbox);
    manual.advance(ms(5));
    drop(manual);
    assert!(!job.is_cancelled() && !job.cancel(), "it was sent");
    assert_eq!(told(&mailbox.accept().expect("it was sent")), (5, 5, 1));
    assert!(job.is_completed());
    assert_eq!((mailbox.told_cancelled(), mailbox.letters()), (0, 0));
}
