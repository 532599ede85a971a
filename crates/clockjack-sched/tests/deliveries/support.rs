//! A mailbox, letters that go there, and schedulers whose time a test moves.

use alloc::{collections::VecDeque, sync::Arc};
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_sched::{
    AcceptedDelivery, CatchUp, DeliverySink, DeliveryTask, JobSpec, ManualRunner, PendingDelivery,
    Policy, Scheduler, SchedulerConfig,
};
use clockjack_time::Resolution;

use crate::host::{Host, guard};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A scheduler in virtual time with ticks of a millisecond, which catches panics and logs.
pub(crate) fn manual() -> ManualRunner {
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        log_capacity: 1_000,
        ..SchedulerConfig::DEFAULT
    };
    ManualRunner::with_catch_unwind(config, guard).expect("it is not for production")
}

/// Where deliveries lie until somebody takes them.
#[derive(Clone, Default)]
pub(crate) struct Mailbox {
    deliveries: Arc<Mutex<VecDeque<PendingDelivery>>>,
    /// How many letters were notified of their cancel.
    cancelled: Arc<AtomicU32>,
    /// Counts what refers to it: letters that were not dropped.
    token: Arc<()>,
}

impl Mailbox {
    pub(crate) fn letter(&self, text: &'static str) -> Letter {
        Letter { text, to: self.clone(), token: Arc::clone(&self.token) }
    }

    pub(crate) fn take(&self) -> Option<PendingDelivery> {
        self.deliveries.lock().expect("no holder panics").pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.deliveries.lock().expect("no holder panics").len()
    }

    /// Takes a delivery out that is there, and opens it if it was not cancelled.
    pub(crate) fn accept(&self) -> Option<AcceptedDelivery> {
        self.take().expect("a delivery lies in the mailbox").accept()
    }

    pub(crate) fn told_cancelled(&self) -> u32 {
        self.cancelled.load(SeqCst)
    }

    /// Letters that live.
    pub(crate) fn letters(&self) -> usize {
        // Each letter has its own, and one in the mailbox that it knows.
        let mailboxes = Arc::strong_count(&self.deliveries);
        Arc::strong_count(&self.token) - mailboxes
    }
}

pub(crate) struct Letter {
    pub(crate) text: &'static str,
    to: Mailbox,
    #[expect(dead_code, reason = "it is counted")]
    token: Arc<()>,
}

impl DeliverySink for Mailbox {
    fn deliver(self, delivery: PendingDelivery) {
        self.deliveries.lock().expect("no holder panics").push_back(delivery);
    }
}

impl DeliveryTask for Letter {
    type Sink = Mailbox;

    fn sink(&self) -> Mailbox {
        self.to.clone()
    }

    fn cancelled(&mut self) {
        self.to.cancelled.fetch_add(1, SeqCst);
    }
}

pub(crate) fn text(delivery: &mut AcceptedDelivery) -> &'static str {
    delivery.task_mut::<Letter>().expect("it was made of one").text
}

/// Due, opened at, runs.
pub(crate) fn told(delivery: &AcceptedDelivery) -> (u64, u64, u32) {
    let fire = delivery.fire();
    let late = u64::try_from(fire.late().as_millis()).expect("not so late");
    assert_eq!(fire.now().ticks, fire.due().get() + late, "lateness is that of the opening");
    (fire.due().get(), fire.now().ticks, fire.batch().runs.get())
}

pub(crate) fn folded(initial: u64, period: u64) -> JobSpec {
    let policy = Policy::DEFAULT.catch_up(CatchUp::Folded);
    JobSpec::fixed_rate(ms(initial), ms(period)).policy(policy)
}

/// A host that registers in one shard after the other, and a scheduler on it.
pub(crate) fn scheduler(shards: u32) -> (Scheduler, Host) {
    let host = Host { takes_shards_in_turn: true, ..Host::default() };
    let config =
        SchedulerConfig { resolution: Resolution::MILLI, shards, ..SchedulerConfig::DEFAULT };
    (Scheduler::new(config, host.clone()).expect("a sound configuration"), host)
}

pub(crate) fn advance(host: &Host, by: u64) {
    host.now.fetch_add(by, SeqCst);
}
