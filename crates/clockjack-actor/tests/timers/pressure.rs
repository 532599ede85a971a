//! Pressure: what full mailboxes and the platform do to the quota of the scheduler.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, Ordering::SeqCst};

use clockjack_actor::{
    Actor, ActorSystem, Backoff, Context, DispatcherId, Failure, Mailbox, Next, Overflow, Props,
    RootContext, Signal, Strategy, Toolbox,
};
use clockjack_sched::{PanicPayload, ScheduleErrorKind, SchedulerConfig};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::{MonotonicClock, Resolution, Tick, TickDriver};

use crate::{
    bench::Log,
    scripted_actor::{Stage, ms},
};

fn builder() -> clockjack_actor::SystemBuilder {
    let config = SchedulerConfig { quota: 8, ..SchedulerConfig::DEFAULT };
    ActorSystem::builder("t").scheduler(config)
}

/// An actor that writes the quota that is in force while it handles a message.
fn spawn_reader(root: &mut RootContext, mailbox: Mailbox) -> (clockjack_actor::ActorRef<u8>, Log) {
    let log = Log::default();
    let write = log.clone();
    let props = Props::from_fn(move |cx: &mut Context<'_, _>, _: u8| {
        let limit = cx.system().scheduler().jobs().metrics().quota_limit;
        write.add(limit.to_string());
        Ok(Next::Stay)
    });
    let reader = root.spawn("reader", props.mailbox(mailbox)).unwrap();
    root.run_until_idle();
    (reader, log)
}

#[test]
fn a_full_mailbox_halves_the_quota_until_it_is_half_empty() {
    for overflow in [Overflow::Fail, Overflow::DropNewest, Overflow::DropOldest] {
        let mut stage = Stage::with(builder());
        let mailbox = Mailbox::bounded(4).overflow(overflow);
        let (reader, log) = spawn_reader(&mut stage.root, mailbox);
        for n in 0..4 {
            reader.tell(n).unwrap();
        }
        stage.root.run_until_idle();
        assert_eq!(log.take(), ["8"; 4], "it was full and has refused nothing");
        for n in 0..5 {
            assert_eq!(reader.tell(n).is_err(), n == 4 && overflow == Overflow::Fail);
        }
        stage.root.run_until_idle();
        assert_eq!(log.take(), ["4", "4", "8", "8"], "{overflow:?}");
    }
}

#[test]
fn an_actor_that_stops_with_a_full_mailbox_releases_the_pressure() {
    let mut stage = Stage::with(builder());
    let log = stage.log.clone();
    let props = Props::from_fn(move |cx: &mut Context<'_, _>, _: u8| {
        let jobs = cx.system().scheduler().jobs().clone();
        log.add(jobs.metrics().quota_limit.to_string());
        let mut accepted = 0;
        let any = DispatcherId::DEFAULT;
        while let Ok(job) = jobs.schedule_once_fn(ms(10), any, |_| ()) {
            accepted += 1;
            drop(job);
        }
        let refused = jobs.schedule_once_fn(ms(10), any, |_| ()).unwrap_err();
        assert_eq!((accepted, refused.kind()), (4, ScheduleErrorKind::Backpressured));
        Ok(Next::Stop)
    });
    let actor = stage.root.spawn("a", props.mailbox(Mailbox::bounded(4))).unwrap();
    stage.root.run_until_idle();
    while actor.tell(0).is_ok() {}
    stage.root.run_until_idle();
    assert!(actor.is_stopped());
    assert_eq!(stage.heard(), ["4"]);
    assert_eq!(stage.root.system().scheduler().jobs().metrics().quota_limit, 8);
}

/// The quota that is in force.
fn quota(root: &RootContext) -> usize {
    root.system().scheduler().jobs().metrics().quota_limit
}

#[test]
fn a_mailbox_that_is_emptied_for_a_restart_releases_the_pressure() {
    let mut stage = Stage::with(builder());
    let props = Props::from_fn(|cx: &mut Context<'_, _>, _: u8| {
        assert_eq!(cx.system().scheduler().jobs().metrics().quota_limit, 4);
        Err::<Next, Failure>(Failure::msg("now"))
    });
    let backoff = Strategy::restart().backoff(Backoff::new(ms(1_000), ms(1_000)));
    let props = props.mailbox(Mailbox::bounded(4)).supervise(backoff);
    let actor = stage.root.spawn("a", props).unwrap();
    stage.root.run_until_idle();
    while actor.tell(0).is_ok() {}
    stage.root.run_until_idle();
    assert_eq!(quota(&stage.root), 8);
}

#[test]
fn a_mailbox_that_is_emptied_for_a_stop_releases_the_pressure_before_the_children_stop() {
    for has_priorities in [false, true] {
        let mut stage = Stage::with(builder());
        let log = stage.log.clone();
        let props = Props::from_fn(move |cx: &mut Context<'_, _>, n: u8| {
            if n == 0 {
                let to = log.clone();
                cx.spawn_child("child", move || Child(to.clone()))?;
                return Ok(Next::Stay);
            }
            log.add(cx.system().scheduler().jobs().metrics().quota_limit.to_string());
            Ok(Next::Stop)
        });
        let mut props = props.mailbox(Mailbox::bounded(4));
        if has_priorities {
            props = props.priority(|n| *n);
        }
        let actor = stage.root.spawn("a", props).unwrap();
        actor.tell(0).unwrap();
        stage.root.run_until_idle();
        while actor.tell(1).is_ok() {}
        stage.root.run_until_idle();
        assert!(actor.is_stopped());
        assert_eq!(stage.heard(), ["4", "8 at the stop of the child"], "{has_priorities}");
    }
}

/// Writes the quota that is in force when it stops.
struct Child(Log);

impl Actor for Child {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            let limit = cx.system().scheduler().jobs().metrics().quota_limit;
            self.0.add(format!("{limit} at the stop of the child"));
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_full_mailbox_does_not_make_each_control_message_cost_a_poll() {
    let mut stage = Stage::with(builder());
    let (reader, log) = spawn_reader(&mut stage.root, Mailbox::bounded(4));
    while reader.tell(0).is_ok() {}
    for n in 0..20 {
        reader.tell_control(n).unwrap();
    }
    let polls = stage.root.run_until_idle();
    assert_eq!(log.take().len(), 24);
    assert!(polls <= 3, "{polls} polls");
}

/// A platform that says how loaded it is.
struct Loaded {
    inner: ByHand,
    level: Arc<AtomicU8>,
}

impl Toolbox for Loaded {
    fn clock(&self) -> &dyn MonotonicClock {
        self.inner.clock()
    }

    fn driver(&self) -> &dyn TickDriver {
        self.inner.driver()
    }

    fn park(&self, until: Option<Tick>) {
        self.inner.park(until);
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        self.inner.catch_unwind(call)
    }

    fn backpressure_pct(&self) -> Option<u8> {
        Some(self.level.load(SeqCst))
    }
}

#[test]
fn a_loaded_platform_halves_the_quota_from_80_percent_on_until_40() {
    let level = Arc::new(AtomicU8::new(0));
    let (inner, _clock) = ByHand::new(Resolution::MILLI);
    let host = Loaded { inner, level: Arc::clone(&level) };
    let mut root = RootContext::new(host, builder()).unwrap();
    for (percent, quota) in [(0, 8), (79, 8), (80, 4), (41, 4), (40, 8), (79, 8), (100, 4), (0, 8)]
    {
        level.store(percent, SeqCst);
        root.run_until_idle();
        let limit = root.system().scheduler().jobs().metrics().quota_limit;
        assert_eq!(limit, quota, "{percent} %");
    }
}
