//! Registrations are refused in a system that is sealed, and in one that has terminated. Refused
//! messages are counted, and the worst mailbox is reported.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use core::time::Duration;

use bench::{Log, start};
use clockjack_actor::{
    ActorRef, ActorSystem, DispatcherId, EventKinds, Mailbox, Next, Props, RootContext, ServiceKey,
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

fn bounded(root: &mut RootContext, name: &str, capacity: usize) -> ActorRef<u32> {
    let props = Props::from_fn(|_, _: u32| Ok(Next::Stay)).mailbox(Mailbox::bounded(capacity));
    root.spawn(name, props).unwrap()
}

/// Writes each report of refusals.
fn reporter(root: &mut RootContext, log: &Log) -> ActorRef<SystemEvent> {
    let log = log.clone();
    let props = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::MailboxRefusals(refusals) = event {
            log.add(format!("{} {refusals}", refusals.path));
        }
        Ok(Next::Stay)
    });
    let reporter = root.spawn("reporter", props).unwrap();
    assert!(root.system().events().subscribe(EventKinds::WARNINGS, reporter.clone()));
    reporter
}

#[test]
fn refused_messages_are_counted_per_actor_and_per_system() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let [one, two] = ["one", "two"].map(|name| bounded(&mut root, name, 4));
    root.run_until_idle();
    for n in 0..1004 {
        assert_eq!(one.tell(n).is_ok(), n < 4);
    }
    for n in 0..10 {
        assert_eq!(two.map(|n: u8| n.into()).tell(n).is_ok(), n < 4);
    }
    assert_eq!((one.refused(), two.refused()), (1000, 6));
    let metrics = root.system().metrics();
    assert_eq!((metrics.refused_full, metrics.refused_stopped), (1006, 0));

    root.run_until_idle();
    root.system().stop(&one).unwrap();
    root.run_until_idle();
    one.tell(0).unwrap_err();
    one.tell_control(0).unwrap_err();
    drop(one.ask(|_: clockjack_actor::ReplyTo<()>| 0, Duration::from_secs(1)));
    let metrics = root.system().metrics();
    assert_eq!((metrics.refused_full, metrics.refused_stopped), (1006, 3));
    assert_eq!(one.refused(), 1000, "it had room, and was gone");
}

#[test]
fn a_sender_that_waits_for_room_is_not_refused() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    one.tell(1).unwrap();
    let sending = one.send(2);
    root.run_until_idle();
    drop(sending);
    assert_eq!((one.refused(), root.system().metrics().refused_full), (0, 0));
}

#[test]
fn the_worst_mailbox_is_reported_after_a_second_and_then_more_and_more_seldom() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let [one, two] = ["one", "two"].map(|name| bounded(&mut root, name, 1));
    root.run_until_idle();
    let refuse = |actor: &ActorRef<u32>, n: u32| {
        let n_refused = (0..=n).filter(|n| actor.tell(*n).is_err()).count();
        assert_eq!(n_refused, n as usize);
    };
    let mut seconds = |n: u64| {
        for _ in 0..n {
            root.run_until_idle();
            clock.advance(Duration::from_secs(1));
        }
        root.run_until_idle();
        log.take()
    };
    refuse(&one, 3);
    refuse(&two, 1000);
    let told = "/user/two the mailbox was full and has refused 1000 messages; \
                other mailboxes have refused 3";
    assert_eq!(seconds(1), [told]);
    assert_eq!(seconds(60), [""; 0], "nothing is refused any more");
    // The pause is over.
    refuse(&one, 1);
    assert_eq!(seconds(1), ["/user/one the mailbox was full and has refused 1 message"]);
    // A cause that persists: the pauses are of 2 and of 4 minutes.
    let mut reports = Vec::new();
    for minute in 0..10 {
        refuse(&one, 5);
        let told = seconds(60);
        reports.extend(told.iter().map(|told| (minute, told.clone())));
    }
    let refused = |n| format!("/user/one the mailbox was full and has refused {n} messages");
    assert_eq!(reports, [(1, refused(10)), (5, refused(20))]);
}

#[test]
fn a_listener_is_called_without_subscribers_and_at_the_termination() {
    let log = Log::default();
    let told = log.clone();
    let builder = ActorSystem::builder("t")
        .on_refusals(|_, _| panic!("a listener may panic"))
        .on_refusals(move |system, refusals| {
            told.add(format!("{} {} {refusals}", system.name(), refusals.path));
        });
    let (mut root, clock) = start(builder);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    for n in 0..4 {
        _ = one.tell(n);
    }
    root.run_until_idle();
    assert!(log.take().is_empty());
    clock.advance(Duration::from_secs(1));
    root.run_until_idle();
    assert_eq!(log.take(), ["t /user/one the mailbox was full and has refused 3 messages"]);
    for n in 0..3 {
        _ = one.tell(n);
    }
    let end = root.system().shutdown();
    root.run_until_idle();
    assert!(end.report().is_some());
    assert_eq!(log.take(), ["t /user/one the mailbox was full and has refused 2 messages"]);
    drop(root);
    assert!(log.take().is_empty());
}

#[test]
fn a_sealed_system_does_not_call_listeners_before_it_terminates() {
    let log = Log::default();
    let told = log.clone();
    let builder = ActorSystem::builder("t").on_refusals(move |_, refusals| {
        told.add(format!("{} {refusals}", refusals.path));
    });
    let (mut root, clock) = start(builder);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    _ = one.tell(0);
    _ = one.tell(0);
    root.seal();
    assert_eq!(log.take(), ["/user/one the mailbox was full and has refused 1 message"]);
    for _ in 0..3 {
        for n in 0..4 {
            _ = one.tell(n);
        }
        root.run_until_idle();
        clock.advance(Duration::from_secs(3600));
    }
    assert!(log.take().is_empty());
    assert_eq!(one.refused(), 11);
}

#[test]
fn the_worst_of_many_mailboxes_is_found() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let actors: Vec<_> = (0..100).map(|n| bounded(&mut root, &format!("a{n}"), 1)).collect();
    root.run_until_idle();
    actors.iter().for_each(|actor| actor.tell(0).unwrap());
    for round in 0..50 {
        for (n, actor) in actors.iter().enumerate() {
            if n == 77 || n % 50 == round {
                actor.tell(0).unwrap_err();
            }
        }
    }
    root.run_until_idle();
    clock.advance(Duration::from_secs(1));
    root.run_until_idle();
    let told = log.take();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("/user/a77 "), "{told:?}");
    assert_eq!(actors[77].refused(), 50);
}

#[test]
fn a_sealed_system_reports_refusals_without_a_job() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    root.seal();
    root.run_until_idle();
    let mut minutes = |n: u64| {
        for _ in 0..4 {
            _ = one.tell(0);
        }
        root.run_until_idle();
        clock.advance(Duration::from_secs(60 * n));
        log.take()
    };
    let told = |n| [format!("/user/one the mailbox was full and has refused {n} messages")];
    assert_eq!(minutes(1), told(3));
    assert_eq!(minutes(1), told(3));
    assert_eq!(minutes(1), [""; 0]);
    assert_eq!(minutes(1), told(6));
    assert_eq!(one.refused(), 12);
}

#[test]
fn without_a_scheduler_reports_are_as_seldom_as_with_one() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    root.system().scheduler().jobs().shutdown();
    let mut minute = || {
        for _ in 0..4 {
            _ = one.tell(0);
        }
        root.run_until_idle();
        clock.advance(Duration::from_secs(60));
        log.take()
    };
    let told = |n| [format!("/user/one the mailbox was full and has refused {n} messages")];
    assert_eq!(minute(), told(3));
    assert_eq!(minute(), told(3));
    assert_eq!(minute(), [""; 0]);
    assert_eq!(minute(), told(6));
    assert_eq!(one.refused(), 12);
}

#[test]
fn a_report_that_the_close_of_the_scheduler_drops_does_not_end_the_reports() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    one.tell(0).unwrap();
    one.tell(0).unwrap_err();
    // The job of the report is scheduled, and never runs.
    root.run_until_idle();
    root.system().scheduler().jobs().shutdown();
    root.run_until_idle();
    assert!(log.take().is_empty());
    let mut minute = || {
        for _ in 0..4 {
            _ = one.tell(0);
        }
        root.run_until_idle();
        clock.advance(Duration::from_secs(60));
        log.take()
    };
    let told = |n| [format!("/user/one the mailbox was full and has refused {n} messages")];
    assert_eq!(minute(), told(4), "those before the close, too");
    assert_eq!(minute(), told(3));
    assert_eq!(minute(), [""; 0]);
}

#[test]
fn no_listener_is_called_by_a_sender() {
    for is_closed in [false, true] {
        let log = Log::default();
        let told = log.clone();
        let builder = ActorSystem::builder("t")
            .on_refusals(move |_, refusals| told.add(refusals.to_string()));
        let (mut root, clock) = start(builder);
        let one = bounded(&mut root, "one", 1);
        root.run_until_idle();
        if is_closed {
            root.system().scheduler().jobs().shutdown();
        }
        for n_hours in 1..4 {
            one.tell(0).unwrap();
            one.tell(0).unwrap_err();
            assert!(log.take().is_empty(), "hour {n_hours}, closed: {is_closed}");
            root.run_until_idle();
            clock.advance(Duration::from_secs(3600));
            root.run_until_idle();
            assert_eq!(log.take(), ["the mailbox was full and has refused 1 message"]);
        }
    }
}

#[test]
fn the_seal_reports_what_was_refused_before_it() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    reporter(&mut root, &log);
    let one = bounded(&mut root, "one", 1);
    root.run_until_idle();
    for _ in 0..4 {
        _ = one.tell(0);
    }
    root.seal();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/one the mailbox was full and has refused 3 messages"]);
    // The job of the first report leaves the refusals to the next sender.
    for _ in 0..3 {
        _ = one.tell(0);
    }
    root.run_until_idle();
    clock.advance(Duration::from_secs(60));
    root.run_until_idle();
    for _ in 0..2 {
        _ = one.tell(0);
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/one the mailbox was full and has refused 3 messages"]);
}
