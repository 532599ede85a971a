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
use clockjack_sched::{DispatcherId, SchedulerConfig, Warning};
use clockjack_testing::keeps_deadline;
use clockjack_time::{
    DriverStatus, InterruptDriver, ManualClock, MonotonicClock, Resolution, Tick, TickDriver,
};

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

/// A system on a board, its interrupt, and the warnings of its scheduler.
fn on_board(config: SchedulerConfig) -> (RootContext, Arc<InterruptDriver>, Log) {
    let ticks = Arc::new(InterruptDriver::new(Resolution::MILLI));
    let builder = ActorSystem::builder("board").scheduler(config);
    let mut root = RootContext::new(Board(Arc::clone(&ticks)), builder).unwrap();
    let warnings = Log::default();
    let to = warnings.clone();
    let props = Props::from_fn(move |_cx, event: SystemEvent| {
        if let SystemEvent::Scheduler(warning) = event {
            to.add(match warning {
                Warning::DriverSilent { silent_for } => format!("silent for {silent_for:?}"),
                Warning::DriverCatchUpExceeded { ticks, .. } => format!("caught up with {ticks}"),
                other => format!("{other:?}"),
            });
        }
        Ok(Next::Stay)
    });
    let listener = root.spawn("warnings", props).unwrap();
    root.system().events().subscribe(EventKinds::SCHEDULER, listener);
    root.run_until_idle();
    (root, ticks, warnings)
}

fn interrupts(ticks: &InterruptDriver, n: u32) {
    (0..n).for_each(|_| ticks.notify_tick());
}

#[test]
fn ticks_that_are_handled_in_time_are_no_backpressure() {
    let (mut root, ticks, warnings) = on_board(SchedulerConfig::DEFAULT);
    for _ in 0..500 {
        ticks.notify_tick();
        root.blocking_dispatch_loop({
            let mut rounds = 0;
            move || {
                rounds += 1;
                rounds > 1
            }
        });
        assert_eq!(ticks.current_status(), DriverStatus::Ok);
    }
    assert!(ticks.poll_tick().is_none());
    assert_eq!(root.system().scheduler().jobs().diagnostics().driver_jitter(), Duration::ZERO);
    assert!(warnings.take().is_empty());
}

#[test]
fn a_context_that_is_late_reports_jitter_and_the_ticks_that_it_catches_up_with() {
    let config = SchedulerConfig { catch_up_limit: 99, ..SchedulerConfig::DEFAULT };
    let (mut root, ticks, warnings) = on_board(config);
    let jobs = root.system().scheduler().jobs().clone();
    jobs.schedule_once_fn(Duration::from_millis(200), DispatcherId::DEFAULT, |_| ()).unwrap();
    root.run_until_idle();
    // The context sleeps, and nothing is due before tick 200.
    interrupts(&ticks, 150);
    root.run_until_idle();
    assert_eq!(jobs.diagnostics().driver_jitter(), Duration::ZERO);
    assert_eq!((jobs.metrics().drift_compensations, warnings.take().len()), (0, 0));
    // A hundred ticks after the deadline.
    interrupts(&ticks, 150);
    root.next_wake();
    assert_eq!(jobs.diagnostics().driver_jitter(), Duration::from_millis(100));
    assert_eq!(jobs.metrics().drift_compensations, 100);
    root.run_until_idle();
    assert_eq!(warnings.take(), ["caught up with 100"]);
    ticks.notify_tick();
    root.run_until_idle();
    assert_eq!(jobs.diagnostics().driver_jitter(), Duration::ZERO);
}

#[test]
fn the_end_of_a_system_stops_and_flushes_the_driver() {
    let (mut root, ticks, _) = on_board(SchedulerConfig::DEFAULT);
    assert!(ticks.register(Waker::noop().clone()).unwrap_err().is_already_registered());
    let _end = root.system().shutdown();
    root.run_until_idle();
    assert!(root.system().when_terminated().report().is_some());
    assert_eq!(ticks.current_status(), DriverStatus::Suspended);
    // The clock continues, and the ticks are accounted for.
    interrupts(&ticks, 3);
    let flushed = DriverStatus::Flushed { drained: 0, pending_ticks: 3 };
    assert_eq!(ticks.stop_and_flush(), flushed);
    drop(root);
    let (root, ticks, _) = on_board(SchedulerConfig::DEFAULT);
    let second = Duration::from_secs(1);
    assert!(keeps_deadline(second, || root.shutdown(second)).is_clean());
    assert_eq!(ticks.current_status(), DriverStatus::Suspended);
}

#[test]
fn a_close_of_the_scheduler_reports_the_ticks_that_the_driver_drained() {
    let (root, ticks, _) = on_board(SchedulerConfig::DEFAULT);
    interrupts(&ticks, 3);
    let report = root.system().scheduler().jobs().shutdown();
    assert_eq!(report.driver, Some(DriverStatus::Flushed { drained: 3, pending_ticks: 0 }));
}

static FALLBACKS: AtomicU32 = AtomicU32::new(0);

#[test]
fn a_silent_driver_is_reported_and_the_fallback_of_the_board_runs() {
    let driver_timeout = Duration::from_millis(100);
    let config = SchedulerConfig { driver_timeout, ..SchedulerConfig::DEFAULT };
    let (mut root, ticks, warnings) = on_board(config);
    let reference: &ManualClock = Box::leak(Box::new(ManualClock::new(Resolution::MILLI)));
    root.watch_driver(reference, |_| _ = FALLBACKS.fetch_add(1, SeqCst));
    let mut run = |n: u32, comes: bool| {
        for _ in 0..n {
            reference.advance(Duration::from_millis(10));
            interrupts(&ticks, if comes { 10 } else { 0 });
            root.run_until_idle();
        }
    };
    run(50, true);
    assert_eq!(warnings.take().len(), 0);
    for silences in 1..=2 {
        run(30, false);
        assert_eq!(warnings.take(), ["silent for 110ms"]);
        assert_eq!(FALLBACKS.load(SeqCst), silences);
        run(5, true);
    }
    assert_eq!(warnings.take().len(), 0);
}
