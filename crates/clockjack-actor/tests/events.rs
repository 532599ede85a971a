//! The event stream: who receives what, in which order, and what is lost.

#[path = "support/bench.rs"]
mod bench;

use core::time::Duration;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Context, DeadLetterReason, DispatcherId, EventKinds,
    Failure, FnActor, Mailbox, Next, Overflow, Props, RootContext, SchedulerDumpRequest, Strategy,
    SystemEvent,
};
use clockjack_sched::DumpFormat;
use clockjack_testing::keeps_deadline;

/// Records the events that it receives.
struct Listener {
    log: Log,
}

enum Heard {
    Event(SystemEvent),
    Stop,
}

fn line(event: &SystemEvent) -> String {
    match event {
        SystemEvent::Lifecycle(step) => format!("{} {:?}", step.path, step.step),
        SystemEvent::Failure(info) => format!("{} failed: {}", info.path, info.reason),
        SystemEvent::DeadLetter(letter) => format!("dead {} {:?}", letter.recipient, letter.reason),
        SystemEvent::SuppressedDeadLetter(letter) => format!("suppressed {}", letter.recipient),
        SystemEvent::Unhandled(unhandled) => format!("{} unhandled", unhandled.path),
        SystemEvent::Scheduler(warning) => format!("scheduler: {warning:?}"),
        SystemEvent::MailboxOverflow(path) => format!("{path} overflows"),
        SystemEvent::EventsDropped(n) => format!("dropped {n}"),
        other => format!("{other:?}"),
    }
}

impl Actor for Listener {
    type Msg = Heard;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Heard) -> Result<Next, Failure> {
        match msg {
            Heard::Event(event) => self.log.add(line(&event)),
            Heard::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }
}

fn listen(
    root: &mut RootContext,
    name: &str,
    kinds: EventKinds,
    mailbox: Mailbox,
) -> (ActorRef<Heard>, Log) {
    let log = Log::default();
    let to = log.clone();
    let props = Props::new(move || Listener { log: to.clone() }).mailbox(mailbox);
    let listener = root.spawn(name, props).unwrap();
    root.run_until_idle();
    root.system().events().subscribe(kinds, listener.map(Heard::Event));
    (listener, log)
}

#[derive(Clone, Copy)]
enum Do {
    Fail,
    Stop,
    Unhandled,
    Nothing,
}

fn worker() -> impl FnMut(&mut Context<'_, FnActor<Do>>, Do) -> Result<Next, Failure> + Clone + Send
{
    |_, what| match what {
        Do::Fail => Err(Failure::msg("oh")),
        Do::Stop => Ok(Next::Stop),
        Do::Unhandled => Ok(Next::Unhandled),
        Do::Nothing => Ok(Next::Stay),
    }
}

#[test]
fn a_subscriber_is_told_the_kinds_it_asked_for_in_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (_, actors) = listen(&mut root, "l", EventKinds::ACTORS, Mailbox::DEFAULT);
    let (_, lost) = listen(&mut root, "m", EventKinds::LOST_MESSAGES, Mailbox::DEFAULT);
    let props = Props::from_fn(worker()).supervise(Strategy::restart());
    let actor = root.spawn("a", props).unwrap();
    for what in [Do::Fail, Do::Unhandled, Do::Stop, Do::Nothing] {
        actor.tell(what).unwrap();
    }
    root.run_until_idle();
    let told: Vec<_> = actors.take().into_iter().filter(|line| line.contains("/a")).collect();
    assert_eq!(
        told,
        ["/user/a Started", "/user/a failed: oh", "/user/a Restarted", "/user/a Stopped",]
    );
    assert_eq!(lost.take(), ["/user/a unhandled", "dead /user/a Stopped"]);
}

#[test]
fn families_contain_their_kinds_and_others_are_not_told() {
    assert!(EventKinds::ACTORS.contains(EventKinds::LIFECYCLE | EventKinds::FAILURE));
    assert!(EventKinds::ALL_DEAD_LETTERS.contains(EventKinds::SUPPRESSED_DEAD_LETTER));
    assert!(EventKinds::WARNINGS.contains(EventKinds::SCHEDULER));
    assert!(EventKinds::ALL.contains(EventKinds::ACTORS | EventKinds::WARNINGS));
    assert!(!EventKinds::LOST_MESSAGES.intersects(EventKinds::LIFECYCLE));
}

#[test]
fn publishing_to_nobody_is_fine_and_unsubscribing_ends_it() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let events = root.system().events().clone();
    let path = clockjack_actor::ActorPath::root().child("x");
    events.publish(&SystemEvent::MailboxOverflow(path.clone()));
    let (listener, log) = listen(&mut root, "l", EventKinds::MAILBOX_OVERFLOW, Mailbox::DEFAULT);
    events.publish(&SystemEvent::MailboxOverflow(path.clone()));
    root.run_until_idle();
    assert_eq!(log.take(), ["/x overflows"]);
    assert!(events.unsubscribe(&listener.map(Heard::Event)));
    assert!(!events.unsubscribe(&listener.map(Heard::Event)));
    events.publish(&SystemEvent::MailboxOverflow(path));
    root.run_until_idle();
    assert!(log.take().is_empty());
}

#[test]
fn a_second_subscription_sets_other_kinds() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (listener, log) = listen(&mut root, "l", EventKinds::ALL, Mailbox::DEFAULT);
    root.system().events().subscribe(EventKinds::UNHANDLED, listener.map(Heard::Event));
    assert_eq!(root.system().events().subscribers(), 1);
    let actor = root.spawn("a", Props::from_fn(worker())).unwrap();
    actor.tell(Do::Unhandled).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a unhandled"]);
}

/// Publishes numbered events, as paths.
fn publish(root: &RootContext, range: core::ops::Range<usize>) {
    for n in range {
        let path = clockjack_actor::ActorPath::root().child(&n.to_string());
        root.system().events().publish(&SystemEvent::MailboxOverflow(path));
    }
}

#[test]
fn a_slow_subscriber_loses_the_oldest_and_is_told_how_many() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (listener, log) = listen(&mut root, "l", EventKinds::NONE, Mailbox::bounded(2));
    let to = listener.map(Heard::Event);
    let events = root.system().events().clone();
    events.subscribe_bounded(EventKinds::MAILBOX_OVERFLOW, to.clone(), 3);
    publish(&root, 0..50);
    // Two in the mailbox, the newest three wait.
    assert_eq!(events.dropped_by(&to), Some(45));
    assert_eq!(events.dropped(), 45);
    // Nothing is published any more, and no time passes: the subscriber takes the rest as soon as
    // it has room.
    root.run_until_idle();
    let first = ["/0 overflows", "/1 overflows"].into_iter();
    let rest = ["dropped 45", "/47 overflows", "/48 overflows", "/49 overflows"];
    assert_eq!(log.take(), first.chain(rest).collect::<Vec<_>>());
    assert_eq!(root.system().metrics().events_dropped, 45);
}

#[test]
fn a_slow_subscriber_loses_the_oldest_dead_letters_of_actors_that_are_gone() {
    const N: usize = 20;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (listener, log) = listen(&mut root, "l", EventKinds::NONE, Mailbox::bounded(2));
    let gone: Vec<_> = (0..2 + 2 * N)
        .map(|n| root.spawn(&n.to_string(), Props::from_fn(worker())).unwrap())
        .collect();
    gone.iter().for_each(|one| root.system().stop(one).unwrap());
    root.run_until_idle();
    let to = listener.map(Heard::Event);
    root.system().events().subscribe_bounded(EventKinds::DEAD_LETTER, to, N);
    // From then on only the event refers to the path.
    gone.into_iter().for_each(|one| one.tell_or_dead_letter(Do::Nothing));
    root.run_until_idle();
    let line = |n: usize| format!("dead /user/{n} Stopped");
    let mut expected = vec![line(0), line(1), format!("dropped {N}")];
    expected.extend((2 + N..2 + 2 * N).map(line));
    assert_eq!(log.take(), expected);
}

#[test]
fn a_subscriber_that_stops_is_removed_at_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (listener, _) = listen(&mut root, "l", EventKinds::ALL, Mailbox::DEFAULT);
    assert_eq!(root.system().events().subscribers(), 1);
    listener.tell(Heard::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(root.system().events().subscribers(), 0);
    root.system().events().subscribe(EventKinds::ALL, listener.map(Heard::Event));
    assert_eq!(root.system().events().subscribers(), 0);
}

#[test]
fn dead_letters_through_an_adapter_do_not_loop_when_the_subscriber_stops() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (one, _) = listen(&mut root, "l", EventKinds::DEAD_LETTER, Mailbox::DEFAULT);
    let (two, log) = listen(&mut root, "m", EventKinds::DEAD_LETTER, Mailbox::DEFAULT);
    one.tell(Heard::Stop).unwrap();
    // These will be in its mailbox when it stops, and become dead letters themselves.
    let nobody = root.system().dead_letters::<u8>();
    for _ in 0..3 {
        nobody.tell(1).unwrap();
    }
    assert!(root.run_until_idle() < 1_000);
    let told = log.take();
    assert_eq!(told.iter().filter(|line| line.contains("Addressed")).count(), 3);
    assert!(told.len() <= 6, "{told:?}");
    two.tell(Heard::Stop).unwrap();
    assert!(root.run_until_idle() < 1_000);
    assert_eq!(root.system().events().subscribers(), 0);
}

#[test]
fn subscribers_that_drop_dead_letters_do_not_make_more_of_them() {
    for overflow in [Overflow::DropOldest, Overflow::DropNewest] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let mailbox = Mailbox::bounded(1).overflow(overflow);
        let (_, one) = listen(&mut root, "l", EventKinds::DEAD_LETTER, mailbox);
        let (_, two) = listen(&mut root, "m", EventKinds::DEAD_LETTER, mailbox);
        let gone = root.spawn("gone", Props::from_fn(worker())).unwrap();
        gone.tell(Do::Stop).unwrap();
        root.run_until_idle();
        for _ in 0..5 {
            gone.tell_or_dead_letter(Do::Nothing);
        }
        root.run_until_idle();
        assert_eq!(one.take().len(), 1);
        assert_eq!(two.take().len(), 1);
        let metrics = root.system().metrics();
        assert_eq!(metrics.dead_letters(DeadLetterReason::Stopped), 5);
        assert_eq!(metrics.dead_letters_total(), 13);
    }
}

#[test]
fn warnings_of_the_scheduler_come_through_while_somebody_wants_them() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let late = |root: &mut RootContext| {
        // A jump past a job's time causes a warning on a clock that is advanced by hand.
        let scheduler = root.system().scheduler();
        let wait = Duration::from_millis(5);
        drop(scheduler.jobs().schedule_once_fn(wait, DispatcherId::DEFAULT, |_| {}));
        root.run_until_idle();
        clock.advance(Duration::from_secs(100));
        root.run_until_idle();
    };
    late(&mut root);
    let (listener, log) = listen(&mut root, "l", EventKinds::SCHEDULER, Mailbox::DEFAULT);
    root.run_until_idle();
    assert!(log.take().is_empty());
    late(&mut root);
    let told = log.take();
    assert!(told.iter().any(|line| line.starts_with("scheduler: ")), "{told:?}");
    root.system().events().unsubscribe(&listener.map(Heard::Event));
    root.run_until_idle();
    late(&mut root);
    assert!(log.take().is_empty());
    root.system().events().subscribe(EventKinds::WARNINGS, listener.map(Heard::Event));
    late(&mut root);
    assert!(!log.take().is_empty());
}

#[test]
fn a_mapping_that_panics_harms_nobody_else() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (listener, log) = listen(&mut root, "l", EventKinds::NONE, Mailbox::DEFAULT);
    let bad = root.spawn("bad", || Listener { log: Log::default() }).unwrap();
    let events = root.system().events().clone();
    events.subscribe(EventKinds::MAILBOX_OVERFLOW, bad.map(|_| panic!("no")));
    events.subscribe(EventKinds::MAILBOX_OVERFLOW, listener.map(Heard::Event));
    publish(&root, 0..3);
    root.run_until_idle();
    assert_eq!(log.take(), ["/0 overflows", "/1 overflows", "/2 overflows"]);
    assert!(events.dropped() > 0);
}

#[test]
fn metrics_count_lives_restarts_and_failures() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    root.run_until_idle();
    let before = root.system().metrics();
    assert_eq!((before.live, before.spawned, before.stopped), (3, 3, 0));
    let props = || Props::from_fn(worker()).supervise(Strategy::restart());
    let one = root.spawn("a", props()).unwrap();
    let two = root.spawn("b", props()).unwrap();
    one.tell(Do::Fail).unwrap();
    one.tell(Do::Fail).unwrap();
    two.tell(Do::Stop).unwrap();
    root.run_until_idle();
    two.tell_or_dead_letter(Do::Nothing);
    let now = root.system().metrics();
    assert_eq!((now.live, now.spawned, now.started, now.stopped), (4, 5, 5, 1));
    assert_eq!((now.restarts, now.failures), (2, 2));
    assert_eq!(now.dead_letters(DeadLetterReason::Stopped), 1);
    assert_eq!(now.dead_letters(DeadLetterReason::Evicted), 0);
}

/// Runs until the system is idle, but not forever.
fn come_to_rest(root: &mut RootContext) {
    let now = root.system().scheduler().jobs().now().tick();
    let rests = (0..1_000).any(|_| root.next_wake().is_none_or(|at| at > now));
    assert!(rests, "one event makes the next");
}

/// Fails on request.
struct Moody(Box<dyn FnMut(&SystemEvent) -> bool + Send>);

impl Actor for Moody {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        if (self.0)(&event) { Err(Failure::msg("it said so")) } else { Ok(Next::Stay) }
    }
}

#[test]
fn a_listener_that_has_no_room_for_dead_letters_in_a_restart_makes_no_more_of_them() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let mut is_new = true;
    let mut factory = move || {
        let (to, fails) = (to.clone(), core::mem::take(&mut is_new));
        move |event: &SystemEvent| {
            to.add(line(event));
            fails
        }
    };
    let props = Props::new(move || Moody(Box::new(factory())));
    let second = Duration::from_secs(1);
    let strategy = Strategy::restart().backoff(Backoff::new(second, second)).stash(1);
    let listener = root.spawn("listener", props.supervise(strategy)).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER, listener);
    for _ in 0..4 {
        root.system().dead_letters::<u8>().tell(1).unwrap();
        come_to_rest(&mut root);
    }
    clock.advance(second);
    come_to_rest(&mut root);
    assert_eq!(log.take().len(), 2, "the first, and one that was kept");
    assert_eq!(root.system().metrics().dead_letters(DeadLetterReason::StashFull), 2);
}

#[test]
fn a_listener_that_handles_nothing_is_not_told_of_that_itself() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::from_fn(|_, _: SystemEvent| Ok(Next::Unhandled));
    let deaf = root.spawn("deaf", props).unwrap();
    root.system().events().subscribe(EventKinds::ALL, deaf);
    let (_, log) = listen(&mut root, "other", EventKinds::UNHANDLED, Mailbox::DEFAULT);
    let a = root.spawn("a", Props::from_fn(worker())).unwrap();
    a.tell(Do::Unhandled).unwrap();
    come_to_rest(&mut root);
    assert_eq!(log.take(), ["/user/a unhandled"]);
}

#[test]
fn the_ticks_of_a_second_and_the_close_of_the_scheduler_are_events() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (listener, log) = listen(&mut root, "l", EventKinds::NONE, Mailbox::DEFAULT);
    let to = listener.map(Heard::Event);
    root.system().events().subscribe(EventKinds::TICK_RATE | EventKinds::SCHEDULER, to.clone());
    let jobs = root.system().scheduler().jobs().clone();
    let second = Duration::from_secs(1);
    jobs.schedule_at_fixed_rate_fn(second, second, DispatcherId::DEFAULT, |_| ()).unwrap();
    root.run_until_idle();
    for _ in 0..3 {
        clock.advance(second);
        root.run_until_idle();
    }
    let rate = "TickRate(TickRate { ticks: 1000, over: 1s })";
    assert_eq!(log.take(), [rate, rate, rate]);
    // Whoever does not want the rate does not get it.
    root.system().events().subscribe(EventKinds::SCHEDULER, to);
    clock.advance(second);
    root.run_until_idle();
    assert!(log.take().is_empty());
    let report = jobs.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["SchedulerClosed"]);
    assert_eq!(report.close_tasks.succeeded, 1, "the task of the system");
}

#[test]
fn a_dump_of_the_scheduler_is_requested_by_message() {
    let (mut root, _clock) = start(ActorSystem::builder("t"));
    let system = root.system().clone();
    let jobs = system.scheduler().jobs().clone();
    let delay = Duration::from_secs(7);
    let job = jobs.schedule_once_fn(delay, DispatcherId::DEFAULT, |_| ()).unwrap();
    let dumps = system.scheduler_dumps().unwrap();
    assert_eq!(dumps, system.scheduler_dumps().unwrap(), "there is one service");
    for format in [DumpFormat::Text, DumpFormat::Lines] {
        let request = |reply_to| SchedulerDumpRequest { format, reply_to };
        let reply = root.block_on(dumps.ask(request, Duration::from_secs(1))).unwrap();
        let mut expected = String::new();
        jobs.dump(format, &mut expected).unwrap();
        assert_eq!(reply.text, expected);
        assert!(reply.text.contains("7000"), "{}", reply.text);
    }
    assert!(job.cancel());
    let second = Duration::from_secs(1);
    drop(keeps_deadline(second, || root.shutdown(second)));
    assert!(system.scheduler_dumps().unwrap_err().is_stopping());
}
