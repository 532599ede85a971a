//! The diagnostics stream: which events each subscriber gets, and how drops are reported.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    num::NonZeroU32,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::thread;

use clockjack_sched::{
    BatchMode, ExecutionBatch, JobNumber, Warning,
    stream::{Bus, DiagnosticEvent, EventKinds, SUBSCRIPTIONS_MAX, Subscription},
};
use clockjack_sync::Arc as SyncArc;
use clockjack_time::Tick;

const JOB: JobNumber = JobNumber { shard: 1, number: 7 };

fn bus() -> SyncArc<Bus> {
    SyncArc::new(Bus::new())
}

fn all(bus: &SyncArc<Bus>, capacity: usize) -> Subscription {
    Bus::subscribe(bus, EventKinds::ALL, capacity).unwrap()
}

/// An event that is known by a number.
fn event(n: u64) -> DiagnosticEvent {
    DiagnosticEvent::Cancelled { job: JOB, at: Tick::new(n) }
}

fn dropped(dropped: u64) -> DiagnosticEvent {
    DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped })
}

fn read(subscription: &mut Subscription) -> Vec<DiagnosticEvent> {
    core::iter::from_fn(|| subscription.try_next()).collect()
}

/// One event of each kind, with its line.
fn one_of_each() -> [(DiagnosticEvent, EventKinds, &'static str); 5] {
    let (at, due) = (Tick::new(12), Tick::new(10));
    let batch = ExecutionBatch {
        runs: NonZeroU32::new(3).unwrap(),
        missed_runs: 2,
        mode: BatchMode::FixedRate,
    };
    let warning = Warning::QuotaReached { limit: 9, adaptive: true };
    [
        (
            DiagnosticEvent::Scheduled { job: JOB, at: due, due: at, mode: BatchMode::OneShot },
            EventKinds::SCHEDULE,
            "job 1#7: scheduled at 10, due at 12, once",
        ),
        (
            DiagnosticEvent::Fired { job: JOB, due, at, batch, executor: 4 },
            EventKinds::FIRE,
            "job 1#7: fired at 12, 2 ticks late, fixed-rate x3 (2 missed), by 4",
        ),
        (
            DiagnosticEvent::Cancelled { job: JOB, at },
            EventKinds::CANCEL,
            "job 1#7: cancelled at 12",
        ),
        (
            DiagnosticEvent::Warned(warning),
            EventKinds::WARNING,
            "warning: jobs are refused under pressure: the limit is 9 live jobs",
        ),
        (
            DiagnosticEvent::TickRate { ticks: 100, over: Duration::from_secs(1) },
            EventKinds::TICK_RATE,
            "100 ticks in 1s",
        ),
    ]
}

#[test]
fn each_event_has_a_kind_and_one_line() {
    let mut kinds = EventKinds::NONE;
    for (event, kind, line) in one_of_each() {
        assert_eq!(event.kind(), kind);
        assert_eq!(event.to_string(), line);
        assert!(!kinds.intersects(kind));
        kinds |= kind;
    }
    assert_eq!(kinds, EventKinds::ALL);
    assert_eq!(kinds.to_string(), "schedule|fire|cancel|warning|tick-rate");
    assert_eq!(EventKinds::NONE.to_string(), "none");
    assert!(EventKinds::NONE.is_empty());
    assert!(!kinds.without(EventKinds::FIRE).intersects(EventKinds::FIRE));
}

#[test]
fn a_reader_gets_what_it_wants_and_nothing_else() {
    let bus = bus();
    for (event, kind, _) in one_of_each() {
        let mut wanted = Bus::subscribe(&bus, kind, 8).unwrap();
        let mut others = Bus::subscribe(&bus, EventKinds::ALL.without(kind), 8).unwrap();
        let mut nothing = Bus::subscribe(&bus, EventKinds::NONE, 8).unwrap();
        assert_eq!(wanted.kinds(), kind);
        bus.publish(event.clone());
        assert_eq!(read(&mut wanted), [event]);
        assert_eq!(read(&mut others), []);
        assert_eq!(read(&mut nothing), []);
    }
}

#[test]
fn wants_follows_each_coming_and_going_of_each_kind() {
    let bus = bus();
    for (_, kind, _) in one_of_each() {
        assert!(!bus.wants(EventKinds::ALL));
        let first = Bus::subscribe(&bus, kind, 1).unwrap();
        let second = Bus::subscribe(&bus, kind | EventKinds::WARNING, 1).unwrap();
        assert!(bus.wants(kind));
        drop(first);
        assert!(bus.wants(kind));
        let rest = EventKinds::ALL.without(kind).without(EventKinds::WARNING);
        assert!(!bus.wants(rest), "nobody wants {rest}");
        drop(second);
    }
    // As many as a count can reach.
    let many: Vec<_> = (0..SUBSCRIPTIONS_MAX).map(|_| all(&bus, 1)).collect();
    assert!(bus.wants(EventKinds::SCHEDULE));
    assert!(!bus.is_closed());
    drop(many);
    assert!(!bus.wants(EventKinds::ALL));
}

#[test]
fn one_subscription_too_many_is_refused_until_another_ends() {
    let bus = bus();
    let mut live: Vec<_> = (0..SUBSCRIPTIONS_MAX).map(|_| all(&bus, 4)).collect();
    let refused = Bus::subscribe(&bus, EventKinds::ALL, 4).unwrap_err();
    assert_eq!(refused.to_string(), "not subscribed: 16 subscriptions exist");
    bus.publish(event(1));
    let mut gone = live.swap_remove(3);
    assert_eq!(read(&mut gone), [event(1)]);
    drop(gone);
    let mut fresh = all(&bus, 4);
    bus.publish(event(2));
    assert_eq!(read(&mut fresh), [event(2)], "nothing of the one before");
    assert_eq!(read(&mut live[0]), [event(1), event(2)]);
}

#[test]
fn lost_events_are_told_in_their_place_with_the_right_count() {
    let bus = bus();
    let mut slow = all(&bus, 2);
    let mut quick = all(&bus, 64);
    (1..=5).for_each(|n| bus.publish(event(n)));
    assert_eq!(slow.dropped(), 3);
    assert_eq!(slow.try_next(), Some(event(1)));
    // One has room, the next has none again: the count of the first gap goes with 6.
    bus.publish(event(6));
    bus.publish(event(7));
    bus.publish(event(8));
    assert_eq!(read(&mut slow), [event(2), dropped(3), event(6), dropped(2)]);
    assert_eq!(read(&mut slow), []);
    bus.publish(event(9));
    assert_eq!(read(&mut slow), [event(9)], "a loss is told once");
    assert_eq!((slow.dropped(), quick.dropped(), bus.dropped()), (5, 0, 5));
    assert_eq!(read(&mut quick), (1..=9).map(event).collect::<Vec<_>>());
}

#[test]
fn a_capacity_of_zero_is_one_and_a_huge_one_is_no_panic() {
    let bus = bus();
    let (mut one, mut huge) = (all(&bus, 0), all(&bus, usize::MAX));
    bus.publish(event(1));
    bus.publish(event(2));
    assert_eq!(read(&mut one), [event(1), dropped(1)]);
    assert_eq!(read(&mut huge), [event(1), event(2)]);
}

/// Counts its wakes.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn publish_wakes_nobody_and_ring_wakes_once_whoever_waits() {
    let bus = bus();
    let [mut cancels, mut fires] =
        [EventKinds::CANCEL, EventKinds::FIRE].map(|kinds| Bus::subscribe(&bus, kinds, 4).unwrap());
    let (bell, silent) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let (waker, other) = (Waker::from(bell.clone()), Waker::from(silent.clone()));
    let mut cx = Context::from_waker(&waker);
    assert_eq!(cancels.poll_next(&mut cx), Poll::Pending);
    assert_eq!(fires.poll_next(&mut Context::from_waker(&other)), Poll::Pending);
    bus.wake_readers();
    assert_eq!(bell.rung(), 0, "there is nothing to read");
    bus.publish(event(1));
    bus.publish(event(2));
    assert_eq!(bell.rung(), 0, "publish calls no foreign code");
    bus.wake_readers();
    bus.wake_readers();
    assert_eq!((bell.rung(), silent.rung()), (1, 0));
    assert_eq!(cancels.poll_next(&mut cx), Poll::Ready(Some(event(1))));
    assert_eq!(cancels.poll_next(&mut cx), Poll::Ready(Some(event(2))));
    assert_eq!(cancels.poll_next(&mut cx), Poll::Pending);
    drop(cancels);
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1, "a waker outlives its subscription");
}

#[test]
fn a_loss_alone_is_worth_a_wake() {
    let bus = bus();
    let mut slow = all(&bus, 1);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut cx = Context::from_waker(&waker);
    bus.publish(event(1));
    bus.wake_readers();
    assert_eq!(slow.poll_next(&mut cx), Poll::Ready(Some(event(1))));
    assert_eq!(slow.poll_next(&mut cx), Poll::Pending);
    bus.publish(event(2));
    bus.publish(event(3));
    bus.wake_readers();
    assert_eq!(bell.rung(), 1);
    assert_eq!(slow.poll_next(&mut cx), Poll::Ready(Some(event(2))));
    assert_eq!(slow.poll_next(&mut cx), Poll::Ready(Some(dropped(1))));
}

#[test]
fn a_waker_that_panics_does_not_cost_the_others_their_wake() {
    struct Broken;
    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    let bus = bus();
    let (mut first, mut second) = (all(&bus, 1), all(&bus, 1));
    let bell = Arc::new(Bell::default());
    let (broken, waker) = (Waker::from(Arc::new(Broken)), Waker::from(bell.clone()));
    assert_eq!(first.poll_next(&mut Context::from_waker(&broken)), Poll::Pending);
    assert_eq!(second.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    bus.publish(event(1));
    let ring = core::panic::AssertUnwindSafe(|| bus.wake_readers());
    assert!(std::panic::catch_unwind(ring).is_err());
    assert_eq!(bell.rung(), 0);
    bus.wake_readers();
    assert_eq!(bell.rung(), 1);
}

#[test]
fn after_a_close_readers_get_the_rest_and_then_the_end() {
    let bus = bus();
    let mut early = all(&bus, 1);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut cx = Context::from_waker(&waker);
    assert_eq!(early.poll_next(&mut cx), Poll::Pending);
    bus.publish(event(1));
    bus.publish(event(2));
    bus.close();
    bus.publish(event(3));
    bus.wake_readers();
    assert!(bus.is_closed());
    assert_eq!(bell.rung(), 1);
    assert_eq!(early.poll_next(&mut cx), Poll::Ready(Some(event(1))));
    assert_eq!(early.poll_next(&mut cx), Poll::Ready(Some(dropped(1))));
    assert_eq!(early.poll_next(&mut cx), Poll::Ready(None));
    let mut late = all(&bus, 1);
    bus.publish(event(4));
    assert_eq!(late.poll_next(&mut cx), Poll::Ready(None));
    assert_eq!(bus.dropped(), 1, "what comes after the close is not a loss");
}

#[test]
fn next_is_a_future_that_may_be_dropped() {
    let bus = bus();
    let mut reader = all(&bus, 4);
    let mut cx = Context::from_waker(Waker::noop());
    {
        let mut next = core::pin::pin!(reader.next());
        assert_eq!(next.as_mut().poll(&mut cx), Poll::Pending);
        bus.publish(event(1));
    }
    let next = core::pin::pin!(reader.next());
    assert_eq!(next.poll(&mut cx), Poll::Ready(Some(event(1))));
}

#[test]
fn bus_and_subscription_may_go_to_other_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Bus>();
    shared::<SyncArc<Bus>>();
    sent::<Subscription>();
}

/// What a reader got: events, and reported losses.
fn tally(reader: &mut Subscription, into: &mut (u64, u64)) {
    for event in read(reader) {
        match event {
            DiagnosticEvent::Warned(Warning::DiagnosticsDropped { dropped }) => into.1 += dropped,
            _ => into.0 += 1,
        }
    }
}

#[test]
fn events_read_and_events_told_as_lost_are_all_that_were_published() {
    const N_PUBLISHERS: u64 = 3;
    const N_EVENTS: u64 = 20_000;
    let bus = bus();
    let mut reader = all(&bus, 8);
    let mut seen = (0, 0);
    thread::scope(|scope| {
        let publish = || {
            (0..N_EVENTS).for_each(|n| {
                bus.publish(event(n));
                bus.wake_readers();
            })
        };
        let publishers: Vec<_> = (0..N_PUBLISHERS).map(|_| scope.spawn(publish)).collect();
        // Other subscribers come and go concurrently.
        let passer = scope.spawn(|| {
            for n in 0..2_000 {
                let mut passing = all(&bus, 1 + n % 3);
                drop(passing.try_next());
            }
        });
        while !publishers.iter().all(|publisher| publisher.is_finished()) {
            tally(&mut reader, &mut seen);
        }
        passer.join().unwrap();
    });
    tally(&mut reader, &mut seen);
    assert_eq!(seen.0 + seen.1, N_PUBLISHERS * N_EVENTS);
    assert_eq!(reader.dropped() as u64, seen.1);
    drop(reader);
    assert!(!bus.wants(EventKinds::ALL));
}
