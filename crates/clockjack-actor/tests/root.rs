//! A single-threaded system: what is woken, and what a full mailbox does.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::{sync::Arc, task::Wake};
use core::{
    future::pending,
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorSystem, Context, EventKinds, Failure, Mailbox, Next, Overflow, Props, RootContext,
    SystemEvent, Toolbox,
};
use clockjack_sched::SchedulerConfig;
use clockjack_time::{InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// A board whose interrupt the test calls.
struct Board(Arc<InterruptDriver>);

impl Toolbox for Board {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.0
    }
    fn driver(&self) -> &dyn TickDriver {
        &*self.0
    }
    fn park(&self, _until: Option<Tick>) {}
    fn unpark(&self) {}
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Timed(Log);

impl Actor for Timed {
    type Msg = &'static str;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().single("late", Duration::from_millis(3), "late")?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: &'static str) -> Result<Next, Failure> {
        self.0.add(msg);
        Ok(Next::Stay)
    }
}

/// Polls until there is nothing to do; returns whether the system continues.
fn drain(root: &mut RootContext, cx: &mut TaskContext<'_>) {
    while pin!(root.dispatch_next()).poll(cx) == Poll::Ready(true) {}
}

#[test]
fn a_task_that_awaits_the_next_dispatch_sleeps_until_a_message_or_a_tick() {
    let ticks = Arc::new(InterruptDriver::new(Resolution::MILLI));
    let mut root =
        RootContext::new(Board(Arc::clone(&ticks)), ActorSystem::builder("board")).unwrap();
    let log = Log::default();
    let to = log.clone();
    let actor = root.spawn("timed", move || Timed(to.clone())).unwrap();
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = TaskContext::from_waker(&waker);
    drain(&mut root, &mut cx);
    // The task waits, although a timer is armed, and nothing has woken it since.
    wakes.0.store(0, SeqCst);
    assert!(pin!(root.dispatch_next()).poll(&mut cx).is_pending());
    assert_eq!(wakes.0.load(SeqCst), 0);

    actor.tell("told").unwrap();
    assert!(wakes.0.load(SeqCst) > 0);
    drain(&mut root, &mut cx);
    assert_eq!(log.take(), ["told"]);

    for _ in 0..4 {
        wakes.0.store(0, SeqCst);
        ticks.notify_tick();
        assert!(wakes.0.load(SeqCst) > 0);
        drain(&mut root, &mut cx);
    }
    assert_eq!(log.take(), ["late"]);
}

#[test]
fn a_root_that_is_gone_leaves_the_driver_to_others() {
    let ticks = Arc::new(InterruptDriver::new(Resolution::MILLI));
    for _ in 0..2 {
        let board = Board(Arc::clone(&ticks));
        let mut root = RootContext::new(board, ActorSystem::builder("board")).unwrap();
        drain(&mut root, &mut TaskContext::from_waker(Waker::noop()));
        assert!(ticks.register(Waker::noop().clone()).is_err());
    }
    assert!(ticks.register(Waker::noop().clone()).is_ok());
}

#[test]
fn a_dispatch_of_a_system_that_has_terminated_is_none() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let mut cx = TaskContext::from_waker(Waker::noop());
    drain(&mut root, &mut cx);
    let _end = root.system().shutdown();
    drain(&mut root, &mut cx);
    assert_eq!(pin!(root.dispatch_next()).poll(&mut cx), Poll::Ready(false));
}

#[test]
fn a_mailbox_that_overflows_stops_its_actor_also_while_that_waits_for_a_future() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (seen, lost) = (Log::default(), Log::default());
    let to = lost.clone();
    let events = root.spawn(
        "events",
        Props::from_fn(move |_cx, event: SystemEvent| {
            if let SystemEvent::MailboxOverflow(path) = event {
                to.add(path.to_string());
            }
            Ok(Next::Stay)
        }),
    );
    root.system().events().subscribe(EventKinds::MAILBOX_OVERFLOW, events.unwrap());
    let to = seen.clone();
    let props = Props::from_fn(move |cx, n: u32| {
        to.add(n.to_string());
        cx.wait(pending::<()>(), |_, _, ()| Ok(Next::Stay))?;
        Ok(Next::Stay)
    });
    let mailbox = Mailbox::bounded(1).overflow(Overflow::StopActor);
    let actor = root.spawn("a", props.mailbox(mailbox)).unwrap();
    actor.tell(1).unwrap();
    root.run_until_idle();
    // The actor awaits a future, and does not read its mailbox.
    actor.tell(2).unwrap();
    root.run_until_idle();
    let refused = actor.tell(3).unwrap_err();
    assert!(refused.is_stopped());
    assert_eq!(refused.into_inner(), 3);
    root.run_until_idle();
    assert!(actor.is_stopped());
    assert_eq!(seen.take(), ["1"]);
    assert_eq!(lost.take(), ["/user/a"]);
}

#[test]
fn what_a_bounded_turn_leaves_is_due_now_and_not_at_the_next_timer() {
    let ticks = Arc::new(InterruptDriver::new(Resolution::MILLI));
    let mut root =
        RootContext::new(Board(Arc::clone(&ticks)), ActorSystem::builder("board")).unwrap();
    let log = Log::default();
    let actors: Vec<_> = (0..200)
        .map(|n| {
            let to = log.clone();
            root.spawn(&format!("a{n}"), move || Timed(to.clone())).unwrap()
        })
        .collect();
    root.run_until_idle();
    let timer = root.next_wake();
    assert!(timer.is_some_and(|tick| tick > ticks.now().tick()), "{timer:?}");
    for actor in &actors {
        actor.tell("now").unwrap();
    }
    // A round of 64 actors: sleeping until the timer would keep the others waiting.
    assert_eq!(root.next_wake(), Some(ticks.now().tick()));
    root.run_until_idle();
    assert_eq!((log.take().len(), root.next_wake()), (200, timer));
}

#[test]
fn a_setting_of_the_scheduler_that_only_the_host_can_make_is_refused() {
    let default = SchedulerConfig::DEFAULT;
    let refused = [
        SchedulerConfig { shards: 2, ..default.clone() },
        SchedulerConfig { start: Tick::new(7), ..default.clone() },
        SchedulerConfig { resolution: Resolution::MICRO, ..default.clone() },
    ];
    let start = |config| {
        let board = Board(Arc::new(InterruptDriver::new(Resolution::MILLI)));
        RootContext::new(board, ActorSystem::builder("board").scheduler(config))
    };
    for config in refused {
        let error = start(config).expect_err("the setting would have no effect");
        assert!(error.to_string().contains("the host determines"), "{error}");
    }
    assert!(start(SchedulerConfig { quota: 5, ..default }).is_ok());
}
