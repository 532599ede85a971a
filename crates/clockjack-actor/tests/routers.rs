//! Pools and groups: which routee a message goes to, and what happens to routees.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;
use std::thread;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Context, DeadLetterReason, DispatcherId, EventKinds,
    Failure, Group, Mailbox, Next, Overflow, Pool, Props, RootContext, ServiceKey, Strategy,
    SystemEvent,
    router::{PoolHandle, Resizer},
};
use clockjack_sched::SchedulerConfig;
use clockjack_time::ManualClock;

/// Records which routee got which message.
#[derive(Clone)]
struct Worker(Log);

#[derive(Clone)]
enum Job {
    Do(u64),
    Fail,
    Stop,
}

impl Actor for Worker {
    type Msg = Job;

    fn receive(&mut self, cx: &mut Context<'_, Self>, job: Job) -> Result<Next, Failure> {
        match job {
            Job::Do(n) => self.0.add(format!("{} {n}", cx.path().name())),
            Job::Fail => return Err(Failure::msg("failed")),
            Job::Stop => {
                self.0.add(format!("{} stops", cx.path().name()));
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Stay)
    }
}

fn worker(log: &Log) -> impl FnMut() -> Worker + Clone + Send + Sync + 'static + use<> {
    let log = log.clone();
    move || Worker(log.clone())
}

fn send(to: &ActorRef<Job>, jobs: impl IntoIterator<Item = u64>) {
    for n in jobs {
        to.tell(Job::Do(n)).unwrap();
    }
}

/// What each routee got, in order.
fn by_routee(lines: &[String]) -> BTreeMap<String, Vec<u64>> {
    let mut got: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in lines {
        if let Some((name, n)) = line.split_once(' ')
            && let Ok(n) = n.parse()
        {
            got.entry(name.to_owned()).or_default().push(n);
        }
    }
    got
}

fn letters(root: &RootContext, reason: DeadLetterReason) -> usize {
    root.system().metrics().dead_letters(reason)
}

#[test]
fn a_pool_takes_its_routees_in_turn_and_keeps_the_order_of_each() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = root.spawn("pool", Pool::round_robin(3, worker(&log))).unwrap();
    send(&pool, 0..9);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got["$1"], [0, 3, 6]);
    assert_eq!(got["$2"], [1, 4, 7]);
    assert_eq!(got["$3"], [2, 5, 8]);
    let tree: Vec<_> = root.system().tree().iter().map(ToString::to_string).collect();
    assert!(tree.contains(&"/user/pool/$2".to_owned()), "{tree:?}");
}

#[test]
fn a_broadcast_reaches_all_routees() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = root.spawn("pool", Pool::broadcast(3, worker(&log))).unwrap();
    send(&pool, 0..2);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got.len(), 3);
    assert!(got.values().all(|got| *got == [0, 1]));
}

#[test]
fn messages_of_one_hash_go_to_one_routee_and_few_move_at_a_resize() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let modulus = 100;
    let hash = move |job: &Job| if let Job::Do(n) = job { n % modulus } else { 0 };
    let pool = Pool::consistent_hash(8, hash, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    let home = |root: &mut RootContext| {
        send(&pool, 0..300);
        root.run_until_idle();
        let mut home = BTreeMap::new();
        for (routee, got) in by_routee(&log.take()) {
            for n in got {
                let before = home.insert(n % 100, routee.clone());
                assert!(before.is_none_or(|before| before == routee), "{n} is at two routees");
            }
        }
        home
    };
    let before = home(&mut root);
    assert!(before.values().collect::<BTreeSet<_>>().len() > 4);
    handle.resize(7).unwrap();
    clock.advance(Duration::from_millis(50));
    root.run_until_idle();
    let after = home(&mut root);
    for (key, routee) in &before {
        assert!(routee == "$8" || after[key] == *routee, "{key} moved without need");
    }
}

#[test]
fn the_smallest_mailbox_is_preferred() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = root.spawn("pool", Pool::smallest_mailbox(2, worker(&log))).unwrap();
    root.run_until_idle();
    // One of them has a lot to do already.
    let busy = root.system().lookup::<Job>("/user/pool/$1").unwrap();
    send(&pool, 0..6);
    send(&busy, 100..106);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert!(got["$2"].len() >= 4, "{got:?}");
}

#[test]
fn random_choices_repeat_with_their_seed() {
    let run = |seed| {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let pool = root.spawn("pool", Pool::random(4, seed, worker(&log))).unwrap();
        send(&pool, 0..50);
        root.run_until_idle();
        log.take()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    assert_eq!(by_routee(&run(7)).len(), 4);
}

#[test]
fn routees_that_fail_are_treated_by_the_strategy_of_the_pool() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(2, worker(&log)).supervise(Strategy::restart());
    let pool = root.spawn("pool", pool).unwrap();
    pool.tell(Job::Fail).unwrap();
    send(&pool, 0..3);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got["$1"], [1]);
    assert_eq!(got["$2"], [0, 2]);
    assert_eq!(root.system().metrics().restarts, 1);
}

#[test]
fn a_routee_that_has_stopped_is_replaced_when_it_is_its_turn() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(2, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    pool.tell(Job::Stop).unwrap();
    // Without a strategy a failure stops it.
    pool.tell(Job::Fail).unwrap();
    root.run_until_idle();
    send(&pool, 0..4);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got["$3"], [0, 2]);
    assert_eq!(got["$4"], [1, 3]);
    assert_eq!(handle.len(), 2);
    assert_eq!(root.system().metrics().dead_letters_total(), 0);
}

#[test]
fn a_pool_grows_at_once_and_shrinks_without_losing_messages() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(4, worker(&log));
    let handle = pool.handle();
    assert!(handle.is_empty());
    let pool = root.spawn("pool", pool).unwrap();
    send(&pool, 0..40);
    root.run_until_idle();
    log.take();
    assert_eq!(handle.len(), 4);
    handle.resize(6).unwrap();
    assert_eq!(handle.len(), 6);
    send(&pool, 0..60);
    root.run_until_idle();
    assert_eq!(by_routee(&log.take()).len(), 6);
    let live = root.system().metrics().live;
    // While messages are in flight.
    send(&pool, 0..60);
    handle.resize(1).unwrap();
    send(&pool, 60..80);
    for _ in 0..5 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(20));
    }
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got.values().map(Vec::len).sum::<usize>(), 80);
    assert_eq!(got["$1"].len(), 80, "the router had not looked yet");
    assert_eq!(root.system().metrics().dead_letters_total(), 0);
    assert_eq!(root.system().metrics().live, live - 5);
    assert_eq!((handle.len(), handle.wanted()), (1, 1));
    handle.resize(0).unwrap();
    assert_eq!(handle.len(), 1, "one is the least");
}

#[test]
fn a_retired_routee_handles_what_it_has_before_it_stops() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(2, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    root.run_until_idle();
    let second = root.system().lookup::<Job>("/user/pool/$2").unwrap();
    send(&second, 0..100);
    handle.resize(1).unwrap();
    // The time of the check comes before the router has run.
    clock.advance(Duration::from_millis(20));
    root.run_until_idle();
    assert_eq!(by_routee(&log.take())["$2"].len(), 100);
    clock.advance(Duration::from_millis(20));
    root.run_until_idle();
    assert!(second.is_stopped());
    drop(pool);
}

/// A pool whose second routee has messages, in a system whose scheduler takes no more jobs.
fn pool_without_jobs(
    log: &Log,
    is_closed: bool,
) -> (RootContext, PoolHandle<Job>, [ActorRef<Job>; 2]) {
    let scheduler = SchedulerConfig { quota: 1, internal_reserve: 0, ..SchedulerConfig::DEFAULT };
    let (mut root, _) = start(ActorSystem::builder("t").scheduler(scheduler));
    let pool = Pool::round_robin(2, worker(log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    root.run_until_idle();
    let second = root.system().lookup::<Job>("/user/pool/$2").unwrap();
    let jobs = root.system().scheduler().jobs().clone();
    if is_closed {
        jobs.shutdown();
    } else {
        let hour = Duration::from_secs(3600);
        drop(jobs.schedule_once_fn(hour, DispatcherId::DEFAULT, |_| ()).unwrap());
    }
    send(&second, 0..100);
    (root, handle, [pool, second])
}

#[test]
fn a_routee_retires_although_the_scheduler_takes_no_job() {
    for is_closed in [false, true] {
        let log = Log::default();
        let (mut root, handle, [_pool, second]) = pool_without_jobs(&log, is_closed);
        // The router is idle, so it cannot send anything to this routee any more.
        handle.resize(1).unwrap();
        root.run_until_idle();
        assert_eq!(by_routee(&log.take())["$2"].len(), 100);
        assert!(second.is_stopped());

        let (mut root, handle, [pool, second]) = pool_without_jobs(&log, is_closed);
        // The router has a message, and an old copy of the list.
        send(&pool, [100]);
        handle.resize(1).unwrap();
        assert!(!second.is_stopped());
        root.run_until_idle();
        let got = by_routee(&log.take());
        assert_eq!((got["$1"].len(), got["$2"].len()), (1, 100));
        assert!(second.is_stopped(), "the router has asked it to retire");
    }
}

#[test]
fn a_resizer_grows_a_pool_under_pressure_and_shrinks_it_later() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let resizer = Resizer { routees_max: 5, ..Resizer::DEFAULT };
    let pool = Pool::round_robin(1, worker(&log)).resizer(resizer);
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    send(&pool, 0..200);
    root.run_until_idle();
    assert_eq!(handle.len(), 5);
    assert_eq!(by_routee(&log.take()).values().map(Vec::len).sum::<usize>(), 200);
    for n in 0..100 {
        send(&pool, [n]);
        root.run_until_idle();
        clock.advance(Duration::from_millis(20));
    }
    assert!(handle.len() < 3, "{}", handle.len());
}

#[test]
fn a_full_routee_is_passed_over_and_only_if_all_are_full_something_is_lost() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool =
        Pool::round_robin(2, worker(&log)).routees(|props| props.mailbox(Mailbox::bounded(4)));
    let pool = root.spawn("pool", pool).unwrap();
    root.run_until_idle();
    let first = root.system().lookup::<Job>("/user/pool/$1").unwrap();
    // Before the router runs, one of them is full.
    send(&pool, 0..6);
    send(&first, 100..104);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!(got["$1"], [100, 101, 102, 103]);
    assert_eq!(got["$2"], [0, 1, 2, 3]);
    assert_eq!(letters(&root, DeadLetterReason::MailboxFull), 2);
}

#[test]
fn the_function_for_routees_may_capture_and_the_last_one_counts() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    for capacity in [1_usize, 3] {
        let pool = Pool::round_robin(1, worker(&log))
            .routees(|props| props.mailbox(Mailbox::bounded(100)))
            .routees(move |props| props.mailbox(Mailbox::bounded(capacity)));
        let before = letters(&root, DeadLetterReason::MailboxFull);
        let pool = root.spawn(&format!("pool-{capacity}"), pool).unwrap();
        root.run_until_idle();
        send(&pool, 0..5);
        root.run_until_idle();
        let n_lost = letters(&root, DeadLetterReason::MailboxFull) - before;
        assert_eq!((log.take().len(), n_lost), (capacity, 5 - capacity));
    }
}

#[test]
fn pools_that_cannot_be_are_refused() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let refused = root.spawn("pool", Pool::round_robin(0, worker(&log))).unwrap_err();
    assert!(refused.is_invalid_props());
    let resizer = Resizer { step: 0, ..Resizer::DEFAULT };
    let refused = root.spawn("pool", Pool::round_robin(1, worker(&log)).resizer(resizer));
    assert!(refused.unwrap_err().is_invalid_props());
}

#[test]
fn a_pool_that_ends_takes_its_routees_along_and_leaves_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(3, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    root.run_until_idle();
    let live = root.system().metrics().live;
    root.system().stop(&pool).unwrap();
    root.run_until_idle();
    assert_eq!(root.system().metrics().live, live - 4);
    assert!(handle.is_empty());
    handle.resize(9).unwrap();
    assert!(handle.is_empty());
}

#[test]
fn a_pool_may_be_resized_by_other_threads_while_it_works() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(2, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool.mailbox(Mailbox::unbounded())).unwrap();
    let mut sent = 0;
    thread::scope(|scope| {
        let resizer = scope.spawn(|| {
            for n in 0..200 {
                handle.resize(1 + n % 7).unwrap();
            }
            handle.resize(3).unwrap();
        });
        while !resizer.is_finished() || sent < 2_000 {
            send(&pool, [sent]);
            sent += 1;
            root.run_until_idle();
            clock.advance(Duration::from_millis(1));
        }
    });
    for _ in 0..5 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(20));
    }
    root.run_until_idle();
    assert_eq!(handle.len(), 3);
    assert_eq!(root.system().metrics().dead_letters_total(), 0);
    assert_eq!(log.take().len() as u64, sent);
    // The guardians, the router and its routees.
    assert_eq!(root.system().metrics().live, 3 + 1 + 3);
}

fn registered(root: &mut RootContext, name: &str, log: &Log) -> ActorRef<Job> {
    let worker = worker(log);
    let actor = root.spawn(name, worker).unwrap();
    root.system().receptionist().register(&key(), &actor).unwrap();
    actor
}

fn key() -> ServiceKey<Job> {
    ServiceKey::new("workers")
}

#[test]
fn a_group_follows_the_listing_of_its_key() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let group = root.spawn("group", Group::round_robin(&key())).unwrap();
    send(&group, [0]);
    root.run_until_idle();
    assert_eq!(letters(&root, DeadLetterReason::NoReceiver), 1);
    let a = registered(&mut root, "a", &log);
    let _b = registered(&mut root, "b", &log);
    send(&group, 1..5);
    root.run_until_idle();
    let got = by_routee(&log.take());
    assert_eq!((got["a"].len(), got["b"].len()), (2, 2));
    a.tell(Job::Stop).unwrap();
    root.run_until_idle();
    log.take();
    send(&group, 5..8);
    root.run_until_idle();
    assert_eq!(by_routee(&log.take())["b"], [5, 6, 7]);
    assert_eq!(root.system().metrics().dead_letters_total(), 1);
    root.system().stop(&group).unwrap();
    root.run_until_idle();
    assert_eq!(root.system().receptionist().listed(), 1, "the group has left");
}

#[test]
fn groups_broadcast_hash_and_choose_like_pools() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    for name in ["a", "b", "c"] {
        registered(&mut root, name, &log);
    }
    let all = root.spawn("all", Group::broadcast(&key())).unwrap();
    send(&all, 0..2);
    root.run_until_idle();
    assert!(by_routee(&log.take()).values().all(|got| *got == [0, 1]));
    let hash = |job: &Job| if let Job::Do(n) = job { n % 10 } else { 0 };
    let hashed = root.spawn("hashed", Group::consistent_hash(&key(), hash)).unwrap();
    send(&hashed, 0..100);
    root.run_until_idle();
    let got = by_routee(&log.take());
    for key in 0..10 {
        let homes = got.values().filter(|got| got.iter().any(|n| n % 10 == key)).count();
        assert_eq!(homes, 1, "{key}");
    }
    for (name, group) in
        [("random", Group::random(&key(), 3)), ("small", Group::smallest_mailbox(&key()))]
    {
        let group = root.spawn(name, group).unwrap();
        send(&group, 0..60);
        root.run_until_idle();
        let got = by_routee(&log.take());
        assert_eq!(got.len(), 3, "{name}");
        assert_eq!(got.values().map(Vec::len).sum::<usize>(), 60, "{name}");
    }
}

#[test]
fn what_finds_no_routee_is_told_with_the_path_of_the_router() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let listener = Props::from_fn(move |_, event: SystemEvent| {
        if let SystemEvent::DeadLetter(letter) = event {
            to.add(format!("{} {:?}", letter.recipient, letter.reason));
        }
        Ok(Next::Stay)
    });
    let listener = root.spawn("listener", listener).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER, listener);
    for group in [Group::round_robin(&key()), Group::broadcast(&key())] {
        let group = root.spawn("group", group).unwrap();
        send(&group, [0]);
        root.run_until_idle();
        assert_eq!(log.take(), ["/user/group NoReceiver"]);
        root.system().stop(&group).unwrap();
        root.run_until_idle();
    }
}

#[test]
fn a_routee_that_is_about_to_end_is_replaced_and_its_successor_gets_the_message() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::consistent_hash(1, |_| 0, worker(&log))
        .routees(|routee| routee.mailbox(Mailbox::bounded(1).overflow(Overflow::StopActor)));
    let pool = root.spawn("pool", pool).unwrap();
    root.run_until_idle();
    // Both messages are routed in one poll of the router: the second one stops the first routee.
    send(&pool, 1..=2);
    root.run_until_idle();
    assert_eq!(log.take(), ["$2 2"]);
    send(&pool, 3..=3);
    root.run_until_idle();
    assert_eq!(log.take(), ["$2 3"]);
    assert_eq!(root.system().metrics().spawned, 3 + 1 + 2, "one more, and not one a message");
}

/// Takes a second per job, and handles no other meanwhile.
#[derive(Clone)]
struct Slow(Log);

impl Actor for Slow {
    type Msg = u64;

    fn receive(&mut self, cx: &mut Context<'_, Self>, n: u64) -> Result<Next, Failure> {
        let delay = cx.system().scheduler().jobs().delays().delay(Duration::from_secs(1));
        cx.wait(delay, move |me, cx, _| {
            me.0.add(format!("{} {n}", cx.path().name()));
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    }
}

fn slow(log: &Log) -> impl FnMut() -> Slow + Clone + Send + Sync + 'static + use<> {
    let log = log.clone();
    move || Slow(log.clone())
}

/// Lets time pass, in steps in which timers of routers become due.
fn pass(root: &mut RootContext, clock: &ManualClock, time: Duration) {
    for _ in 0..time.as_millis() / 20 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(20));
    }
    root.run_until_idle();
}

#[test]
fn a_routee_that_is_too_many_ends_what_it_waits_for_before_it_stops() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(2, slow(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    (0..4).for_each(|n| pool.tell(n).unwrap());
    pass(&mut root, &clock, Duration::from_millis(1_200));
    handle.resize(1).unwrap();
    // The second job of each has begun, and no mailbox has a message.
    pass(&mut root, &clock, Duration::from_millis(600));
    assert_eq!(by_routee(&log.take()).len(), 2);
    assert!(root.system().lookup::<u64>("/user/pool/$2").is_ok());
    pass(&mut root, &clock, Duration::from_secs(1));
    let got = by_routee(&log.take());
    assert_eq!((&got["$1"], &got["$2"]), (&vec![2], &vec![3]));
    assert!(root.system().lookup::<u64>("/user/pool/$2").is_err());
}

#[test]
fn a_routee_that_is_too_many_and_about_to_be_restarted_handles_what_was_kept() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let second = Duration::from_secs(1);
    let strategy = Strategy::restart().backoff(Backoff::new(second, second));
    let pool = Pool::round_robin(2, worker(&log)).supervise(strategy);
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    for job in [Job::Do(0), Job::Fail, Job::Do(2), Job::Do(3)] {
        pool.tell(job).unwrap();
    }
    root.run_until_idle();
    handle.resize(1).unwrap();
    pass(&mut root, &clock, 2 * second);
    let got = by_routee(&log.take());
    assert_eq!((&got["$1"], &got["$2"]), (&vec![0, 2], &vec![3]));
    assert!(root.system().lookup::<Job>("/user/pool/$2").is_err());
}

#[test]
fn a_resizer_grows_a_pool_whose_routees_wait_with_messages_behind_them() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let resizer = Resizer { routees_max: 4, ..Resizer::DEFAULT };
    let pool = Pool::round_robin(1, slow(&log)).resizer(resizer);
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    for n in 0..20 {
        pool.tell(n).unwrap();
        pass(&mut root, &clock, Duration::from_millis(20));
    }
    assert!(handle.len() > 1, "all of one are busy, and more is to come");
}

#[test]
fn a_pool_of_many_routees_reaches_all_of_them() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let pool = Pool::round_robin(100, worker(&log));
    let handle = pool.handle();
    let pool = root.spawn("pool", pool).unwrap();
    for n in [100, 64, 130] {
        handle.resize(n).unwrap();
        send(&pool, 0..n as u64);
        root.run_until_idle();
        let got = by_routee(&log.take());
        assert_eq!(got.len(), n);
        assert!(got.values().all(|jobs| jobs.len() == 1), "{got:?}");
    }
}
