//! One-shots, and what holds for all deliveries.

use core::time::Duration;

use clockjack_sched::{
    DeliverySink, DeliveryTask, DiagnosticEvent, EventKinds, JobSpec, JobState, LogKind,
    PendingDelivery, ScheduleErrorKind, Warning, model::held,
};

use crate::support::{Mailbox, advance, manual, ms, scheduler, text, told};

#[test]
fn a_message_arrives_when_its_delivery_is_accepted() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it"));
    let job = job.expect("open");
    assert_eq!(manual.advance(ms(4)), 0);
    assert_eq!((manual.advance(ms(1)), mailbox.len()), (1, 1));
    assert_eq!(job.state(), JobState::Sent);
    assert!(!job.is_completed() && !job.is_cancelled());

    manual.advance(ms(3));
    let mut delivery = mailbox.accept().expect("not cancelled");
    assert_eq!((text(&mut delivery), told(&delivery)), ("it", (5, 8, 1)));
    assert_eq!((job.state(), job.is_completed()), (JobState::Executing, false));
    assert!(!job.cancel(), "its run has begun");
    drop(delivery);
    assert!(job.is_completed());
    assert_eq!(mailbox.letters(), 0);
    assert_eq!(manual.scheduler().metrics().discarded_total, 0);
}

#[test]
fn a_cancel_wins_over_a_delivery_that_lies_in_the_mailbox() {
    for spec in [JobSpec::once(ms(5)), JobSpec::fixed_rate(ms(5), ms(5))] {
        let (manual, mailbox) = (manual(), Mailbox::default());
        let job = manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open");
        manual.advance(ms(5));
        assert!(job.cancel() && job.is_cancelled() && !job.cancel());
        manual.advance(ms(50));
        assert_eq!((mailbox.len(), mailbox.told_cancelled()), (1, 0));

        assert!(mailbox.accept().is_none(), "it was cancelled");
        manual.run_due();
        assert_eq!((mailbox.told_cancelled(), mailbox.letters()), (1, 0));
        let metrics = manual.scheduler().metrics();
        assert_eq!((metrics.discarded_total, metrics.cancelled_total), (1, 1));
        assert_eq!((metrics.executed_total, metrics.active_total), (0, 0));
        drop(job);
        assert_eq!(held(manual.scheduler()).slots, 0);
    }
}

#[test]
fn a_cancel_of_one_that_waits_tells_its_task() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it"));
    assert!(job.expect("open").cancel());
    manual.advance(ms(10));
    assert_eq!((mailbox.told_cancelled(), mailbox.letters(), mailbox.len()), (1, 0, 0));
}

#[test]
fn a_delivery_that_is_dropped_unaccepted_is_complete_and_counted() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it"));
    manual.advance(ms(5));
    let delivery = mailbox.take().expect("it was sent");
    assert!(!delivery.is_cancelled());
    drop(delivery);
    assert!(job.expect("open").is_completed());
    let metrics = manual.scheduler().metrics();
    assert_eq!((metrics.discarded_total, metrics.executed_total, metrics.failed_total), (1, 1, 0));
    assert_eq!(mailbox.letters(), 0);
}

#[test]
fn a_receiver_that_is_gone_takes_the_message_for_dead_letters_and_ends_the_job() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let job = manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it"));
    manual.advance(ms(5));
    let mut delivery = mailbox.accept().expect("not cancelled");
    assert_eq!(text(&mut delivery), "it");
    delivery.complete_job();
    assert!(job.expect("open").is_completed());
}

#[test]
fn deliveries_that_are_due_in_one_tick_are_sent_in_the_order_of_registration() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let texts = ["a", "b", "c", "d", "e"];
    for letter in texts {
        let job =
            manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter(letter));
        drop(job.expect("open"));
    }
    manual.advance(ms(5));
    assert_eq!(texts.map(|_| text(&mut mailbox.accept().expect("not cancelled"))), texts);
}

#[test]
fn a_job_without_delay_is_sent_within_the_call_that_schedules_it() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    let spec = JobSpec::once(Duration::ZERO);
    drop(manual.scheduler().schedule_delivery(spec, mailbox.letter("it")).expect("open"));
    assert_eq!(told(&mailbox.accept().expect("not cancelled")), (0, 0, 1));
}

#[test]
fn a_refused_task_comes_back() {
    let (manual, mailbox) = (manual(), Mailbox::default());
    manual.scheduler().shutdown();
    let refused = manual.scheduler().schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it"));
    let refused = refused.expect_err("closed");
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
    assert_eq!(refused.into_inner().text, "it");
}

#[test]
fn the_log_tells_when_it_was_sent_and_by_whom_and_that_it_was_discarded() {
    let (scheduler, host) = scheduler(1);
    let mailbox = Mailbox::default();
    scheduler.diagnostics().enable_log(100);
    let job =
        scheduler.schedule_delivery(JobSpec::once(ms(5)), mailbox.letter("it")).expect("open");
    advance(&host, 7);
    scheduler.poll_shard(0, 3, 10);
    advance(&host, 2);
    assert!(job.cancel());
    drop(mailbox.take());
    let trace = scheduler.diagnostics().trace();
    let line = |record: &clockjack_sched::LogRecord| {
        (record.kind, record.deadline.get(), record.at.get(), record.runs, record.executor)
    };
    let lines: Vec<_> = trace.records().iter().map(line).collect();
    assert_eq!(
        lines,
        [
            (LogKind::Schedule, 5, 0, 0, 0),
            (LogKind::Fire, 5, 7, 1, 3),
            (LogKind::Discard, 5, 9, 1, 0),
            (LogKind::Cancel, 5, 9, 0, 0),
        ]
    );
}

/// Accepts its deliveries at once, on the thread of the poll, or panics while it owns them.
struct AtOnce {
    panics: bool,
}

impl DeliverySink for AtOnce {
    fn deliver(self, delivery: PendingDelivery) {
        let delivery = delivery.accept().expect("nobody cancels it");
        assert!(!self.panics, "as it was asked to");
        drop(delivery);
    }
}

struct Hasty {
    panics: bool,
}

impl DeliveryTask for Hasty {
    type Sink = AtOnce;

    const NOTIFY_CANCEL: bool = false;

    fn sink(&self) -> AtOnce {
        AtOnce { panics: self.panics }
    }

    fn cancelled(&mut self) {
        unreachable!("it did not want to be told");
    }
}

#[test]
fn a_delivery_may_be_accepted_and_dropped_before_the_sink_returns() {
    let manual = manual();
    let spec = JobSpec::fixed_delay(ms(5), ms(5));
    let job = manual.scheduler().schedule_delivery(spec, Hasty { panics: false }).expect("open");
    assert_eq!(manual.advance(ms(20)), 4);
    assert!(job.cancel());
    manual.advance(ms(5));
    assert_eq!(manual.scheduler().metrics().active_total, 0);
}

#[test]
fn a_sink_that_panics_is_told_and_its_job_goes_on() {
    let manual = manual();
    let warnings = manual.scheduler().diagnostics().subscribe(EventKinds::WARNING, 8);
    let mut warnings = warnings.expect("one is not too many");
    let spec = JobSpec::fixed_rate(ms(5), ms(5));
    let job = manual.scheduler().schedule_delivery(spec, Hasty { panics: true }).expect("open");
    manual.advance(ms(5));
    let event = warnings.try_next();
    assert!(
        matches!(event, Some(DiagnosticEvent::Warned(Warning::HandlerFailed { .. }))),
        "{event:?}"
    );
    assert_eq!(job.state(), JobState::Scheduled);
}
