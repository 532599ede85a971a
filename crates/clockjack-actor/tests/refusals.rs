//! Registrations are refused in a system that is sealed, and in one that has terminated.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use core::time::Duration;

use bench::{Log, start};
use clockjack_actor::{
    ActorRef, ActorSystem, DispatcherId, EventKinds, Next, Props, RootContext, ServiceKey,
    SystemEvent, shutdown::Phase,
};
use clockjack_sched::ScheduleErrorKind;

fn listener(root: &mut RootContext, log: &Log) -> ActorRef<SystemEvent> {
    let log = log.clone();
    let props = Props::from_fn(move |_, event: SystemEvent| {
        log.add(format!("{:?}", event.kind()));
        Ok(Next::Stay)
    });
    root.spawn("listener", props).unwrap()
}

#[test]
fn a_sealed_system_takes_no_subscribers_tasks_or_hooks_and_says_so() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let early = listener(&mut root, &log);
    let timed = log.clone();
    let props = Props::from_fn(move |cx, times: u32| {
        timed.add(format!("{times} left"));
        if times > 0 {
            cx.timers().single("again", Duration::from_millis(1), times - 1)?;
        }
        Ok(Next::Stay)
    });
    let blinker = root.spawn("blinker", props).unwrap();
    let system = root.system().clone();
    let queue = system.failure_hub().subscribe_queue(4).unwrap();
    assert!(system.on_terminated(|_| ()));
    root.run_until_idle();
    root.seal();

    assert!(!system.events().subscribe(EventKinds::ALL, early.clone()));
    assert_eq!(system.events().subscribers(), 0);
    let refused = system.failure_hub().subscribe(|_| ()).unwrap_err();
    assert!(refused.is_sealed(), "{refused}");
    assert!(system.failure_hub().subscribe_queue(1).unwrap_err().is_sealed());
    assert_eq!(system.failure_hub().n_subscribers(), 1);
    let key = ServiceKey::<SystemEvent>::new("listeners");
    assert!(system.receptionist().register(&key, &early).is_err());
    let refused = system.on_shutdown(Phase::SERVICE_STOP, "late", async { Ok(()) }).unwrap_err();
    assert!(refused.is_sealed() && !refused.is_late(), "{refused}");
    let refused = system.on_shutdown_await(Phase::SERVICE_STOP, "late", &early, None).unwrap_err();
    assert!(refused.is_sealed(), "{refused}");
    let told = log.clone();
    assert!(!system.on_terminated(move |_| told.add("never")));
    let refused = root.spawn("late", Props::from_fn(|_, (): ()| Ok(Next::Stay))).unwrap_err();
    assert!(refused.is_sealed());

    // Everything that exists continues, including timers.
    blinker.tell(2).unwrap();
    for _ in 0..3 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(log.take(), ["2 left", "1 left", "0 left"]);
    let end = system.shutdown();
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean(), "a sealed system can be ended");
    let told = log.clone();
    assert!(system.on_terminated(move |_| told.add("at once")));
    assert_eq!(log.take(), ["at once"]);
    assert!(queue.drain().is_empty());
}

#[test]
fn a_system_that_has_ended_takes_nothing_any_more_and_says_so() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let gone = listener(&mut root, &log);
    let system = root.system().clone();
    assert!(system.events().subscribe(EventKinds::LIFECYCLE, gone.clone()));
    root.run_until_idle();
    log.take();
    let end = system.shutdown();
    root.run_until_idle();
    assert!(end.report().is_some());
    log.take();

    assert!(!system.events().subscribe(EventKinds::ALL, gone.clone()));
    assert_eq!(system.events().subscribers(), 0);
    let key = ServiceKey::<SystemEvent>::new("listeners");
    assert!(system.receptionist().register(&key, &gone).is_err());
    let refused = system.on_shutdown(Phase::SERVICE_STOP, "late", async { Ok(()) }).unwrap_err();
    assert!(refused.is_late(), "{refused}");
    let refused = system.on_shutdown_await(Phase::SERVICE_STOP, "late", &gone, None).unwrap_err();
    assert!(refused.is_late(), "{refused}");
    let props = || Props::from_fn(|_, (): ()| Ok(Next::Stay));
    assert!(system.spawn("late", props()).unwrap_err().is_stopping());
    assert!(system.spawn_system("late", props()).unwrap_err().is_stopping());
    assert!(root.spawn("late", props()).unwrap_err().is_stopping());
    assert!(system.lookup::<SystemEvent>("/user/listener").is_err());
    let (jobs, ms, any) = (system.scheduler(), Duration::from_millis(1), DispatcherId::DEFAULT);
    let event = SystemEvent::EventsDropped(1);
    let refused = jobs.schedule_once(ms, &gone, event).unwrap_err();
    assert!(matches!(refused.kind(), ScheduleErrorKind::ReceiverGone), "{refused}");
    root.block_on(system.when_stopped(&gone));
    // Closures run until their host shuts down the scheduler, which happens after the root has
    // stopped.
    drop(root);
    let refused = jobs.jobs().schedule_once_fn(ms, any, |_| ()).unwrap_err();
    assert!(matches!(refused.kind(), ScheduleErrorKind::Closed), "{refused}");
    assert!(log.take().is_empty());
}
