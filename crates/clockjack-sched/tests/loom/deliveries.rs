//! Deliveries against cancels, the close and polls. The invariant is that of jobs; a message that
//! was opened is one that ran.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Mutex;

use clockjack_sched::{
    AcceptedDelivery, Cancellable, CatchUp, DeliverySink, DeliveryTask, JobSpec, PendingDelivery,
    Policy, Repeat,
};
use clockjack_time::Tick;

use crate::jobs::{World, model, once_each, ticks};

/// Where deliveries lie. It is not loom's, so it adds no order of its own.
type Mailbox = Arc<Mutex<Vec<PendingDelivery>>>;

struct Letter {
    to: Mailbox,
    ran: Arc<AtomicU32>,
}

struct Route(Mailbox);

impl DeliverySink for Route {
    fn deliver(self, delivery: PendingDelivery) {
        self.0.lock().expect("no holder panics").push(delivery);
    }
}

impl DeliveryTask for Letter {
    type Sink = Route;

    const NOTIFY_CANCEL: bool = false;

    fn sink(&self) -> Route {
        Route(self.to.clone())
    }
}

fn take(mailbox: &Mailbox) -> Option<PendingDelivery> {
    mailbox.lock().expect("no holder panics").pop()
}

/// A job whose first run, due at tick 2, was sent.
fn sent(world: &World, spec: JobSpec) -> (Mailbox, Cancellable, PendingDelivery) {
    let mailbox = Mailbox::default();
    let letter = Letter { to: mailbox.clone(), ran: world.ran.clone() };
    let job = world.scheduler.schedule_delivery(spec, letter).map_err(|refused| refused.kind());
    world.at(2);
    world.turn();
    let delivery = take(&mailbox).expect("it was due");
    (mailbox, job.expect("open"), delivery)
}

/// Opens a delivery, and reads its message.
fn read(delivery: PendingDelivery) -> Option<AcceptedDelivery> {
    let mut delivery = delivery.accept()?;
    let letter = delivery.task_mut::<Letter>().expect("it was made of one");
    letter.ran.fetch_add(1, SeqCst);
    Some(delivery)
}

#[test]
fn a_delivery_is_accepted_or_cancelled_and_never_both() {
    model(|world| {
        let (_mailbox, job, delivery) = sent(world, JobSpec::once(ticks(2)));
        let canceller = world.spawn(move |_| (job.cancel(), job.is_cancelled()));
        let opened = read(delivery).is_some();
        let (cancelled, is_cancelled) = canceller.join().expect("no panic");
        assert_eq!((cancelled, is_cancelled), (!opened, !opened));
        assert_eq!(world.ran(), u32::from(opened));
    });
}

#[test]
fn a_delivery_that_is_dropped_unaccepted_is_completed_or_cancelled() {
    model(|world| {
        let (_mailbox, job, delivery) = sent(world, JobSpec::once(ticks(2)));
        let canceller = world.spawn(move |_| job.cancel());
        drop(delivery);
        let cancelled = u64::from(canceller.join().expect("no panic"));
        let metrics = world.scheduler.metrics();
        assert_eq!((metrics.cancelled_total, metrics.executed_total), (cancelled, 1 - cancelled));
        assert_eq!((metrics.discarded_total, world.ran()), (1, 0));
    });
}

#[test]
fn a_periodic_job_that_is_cancelled_while_its_delivery_is_accepted_and_dropped_ends_once() {
    model(|world| {
        let folded = Policy::DEFAULT.catch_up(CatchUp::Folded);
        let spec = JobSpec::fixed_rate(ticks(2), ticks(2)).policy(folded);
        let (mailbox, job, delivery) = sent(world, spec);
        let canceller = world.spawn(move |_| job.cancel());
        let opened = read(delivery).is_some();
        assert!(canceller.join().expect("no panic"), "it repeats, so a cancel wins");
        world.at(9);
        world.turn();
        assert!(take(&mailbox).is_none(), "it was sent after its cancel");
        assert_eq!(world.ran(), u32::from(opened));
        assert_eq!(world.scheduler.metrics().discarded_total, u64::from(!opened));
    });
}

/// A poller that has found the delivery due and the close: one of them decides.
#[test]
fn a_delivery_that_is_due_at_the_close_is_sent_before_it_or_cancelled() {
    model(|world| {
        let mailbox = Mailbox::default();
        let letter = Letter { to: mailbox.clone(), ran: world.ran.clone() };
        let job = world.scheduler.schedule_delivery(JobSpec::once(ticks(2)), letter);
        let job = job.map_err(|refused| refused.kind()).expect("open");
        world.at(2);
        let poller = world.spawn(|world| {
            world.turn();
        });
        let report = world.scheduler.shutdown();
        poller.join().expect("no panic");
        once_each(&report);
        let delivery = take(&mailbox);
        assert_eq!(report.executed, u64::from(delivery.is_some()));
        assert!(!job.cancel(), "the report has counted it");
        assert_eq!(delivery.and_then(read).is_some(), report.executed == 1);
        drop(job);
    });
}

fn against_the_close(world: &World, spec: JobSpec, opens: bool) {
    let (mailbox, job, delivery) = sent(world, spec);
    let receiver = world.spawn(move |_| {
        if opens {
            drop(read(delivery));
        } else {
            drop(delivery);
        }
    });
    let report = world.scheduler.shutdown();
    receiver.join().expect("no panic");
    once_each(&report);
    assert_eq!(report.executed, u64::from(job.is_completed()));
    assert_eq!(report.cancelled, u64::from(job.is_cancelled()));
    let metrics = world.scheduler.metrics();
    assert_eq!(
        (metrics.executed_total, metrics.cancelled_total),
        (report.executed, report.cancelled)
    );
    if matches!(spec.repeat, Repeat::Once) {
        assert_eq!((world.ran(), report.executed), (u32::from(opens), 1));
    }
    assert!(take(&mailbox).is_none(), "nothing is sent by the close");
}

#[test]
fn a_delivery_that_is_accepted_during_the_close_is_executed() {
    model(|world| against_the_close(world, JobSpec::once(ticks(2)), true));
}

#[test]
fn a_delivery_that_is_dropped_during_the_close_is_executed() {
    model(|world| against_the_close(world, JobSpec::once(ticks(2)), false));
}

#[test]
fn a_periodic_delivery_that_is_dropped_during_the_close_is_cancelled() {
    model(|world| against_the_close(world, JobSpec::fixed_delay(ticks(2), ticks(2)), false));
}

#[test]
fn a_delivery_that_comes_back_while_the_next_run_comes_due_is_followed_by_it() {
    model(|world| {
        let (mailbox, job, delivery) = sent(world, JobSpec::fixed_rate(ticks(2), ticks(2)));
        world.at(4);
        world.host.calls.store(0, SeqCst);
        let receiver = world.spawn(move |_| drop(delivery));
        world.turn();
        receiver.join().expect("no panic");
        let mut next = take(&mailbox);
        let called = world.host.calls.load(SeqCst) > 0;
        assert!(next.is_some() || called, "nobody sends what is owed");
        if next.is_none() {
            world.turn();
            next = take(&mailbox);
        }
        assert!(next.is_some(), "a run was lost");
        assert!(take(&mailbox).is_none(), "two deliveries of one job are out");
        assert!(job.cancel());
        drop((next, job));
    });
}

#[test]
fn a_runner_that_retires_while_a_delivery_comes_back_wakes_for_its_delay_or_is_called() {
    model(|world| {
        let (_mailbox, job, delivery) = sent(world, JobSpec::fixed_delay(ticks(2), ticks(5)));
        world.host.calls.store(0, SeqCst);
        let receiver = world.spawn(move |_| drop(delivery));
        let next = world.turn();
        receiver.join().expect("no panic");
        let called = world.host.calls.load(SeqCst) > 0;
        assert!(called || next == Some(Tick::new(7)), "the runner sleeps until {next:?}");
        assert!(job.cancel());
        drop(job);
    });
}
