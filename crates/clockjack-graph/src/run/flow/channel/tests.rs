//! What each mode keeps and what each overflow policy loses, one by one.

mod properties;

use super::{Channel, Pushed, Refusal};
use crate::{
    data::Value,
    describe::{EdgeMode, EdgeOverflow, EdgePolicy},
    run::{
        flow::message::{Message, Meta},
        observe::health::{HealthKind, HealthSink},
    },
};

const MS: u64 = 1_000_000;

fn message(value: u64, published_ns: u64) -> Message {
    Message { value: Value::new(value), meta: Meta { published_ns, ..Meta::default() } }
}

fn number(message: &Message) -> u64 {
    *message.value.get::<u64>().expect("the tests send numbers")
}

fn policy(mode: EdgeMode, capacity: u32, overflow: EdgeOverflow) -> EdgePolicy {
    EdgePolicy { mode, capacity, overflow, ..EdgePolicy::default() }
}

fn channel(mode: EdgeMode, capacity: u32, overflow: EdgeOverflow) -> Channel {
    Channel::new(5, &policy(mode, capacity, overflow))
}

fn all(channel: &mut Channel, now_ns: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    channel.drain(now_ns, usize::MAX, |message| numbers.push(number(&message)));
    numbers
}

/// How a push went: `+` accepted, `e` accepted with an eviction, else why it was refused.
fn outcome(pushed: &Pushed) -> char {
    match pushed {
        Pushed::Accepted => '+',
        Pushed::AcceptedEvicting(1) => 'e',
        Pushed::AcceptedEvicting(_) => '?',
        Pushed::Refused(_, Refusal::DroppedNewest) => 'd',
        Pushed::Refused(_, Refusal::WouldBlock) => 'b',
        Pushed::Refused(_, Refusal::Rejected) => 'r',
        Pushed::Refused(_, Refusal::FailFast) => 'f',
    }
}

/// The messages 1 to 4 into a channel of two places, then all that can be read after an epoch.
#[test]
fn each_mode_with_each_overflow_keeps_what_the_table_says() {
    use EdgeMode::{Barrier, Latched, Latest, PreviousTick, Queue, RingBuffer};
    use EdgeOverflow::{Block, DropNewest, DropOldest, FailFast, Overwrite, Reject};
    // mode, overflow, outcomes, read, (drop, overwrite, reject)
    let mut table = Vec::new();
    for mode in [Queue, RingBuffer, Barrier] {
        table.push((mode, Overwrite, "++ee", vec![3, 4], (0, 2, 0)));
        table.push((mode, DropOldest, "++ee", vec![3, 4], (2, 0, 0)));
        table.push((mode, DropNewest, "++dd", vec![1, 2], (2, 0, 0)));
        table.push((mode, Block, "++bb", vec![1, 2], (0, 0, 2)));
        table.push((mode, FailFast, "++ff", vec![1, 2], (0, 0, 2)));
        table.push((mode, Reject, "++rr", vec![1, 2], (0, 0, 2)));
    }
    for mode in [Latest, Latched, PreviousTick] {
        table.push((mode, Overwrite, "+eee", vec![4], (0, 3, 0)));
        table.push((mode, DropOldest, "+eee", vec![4], (3, 0, 0)));
        table.push((mode, DropNewest, "+ddd", vec![1], (3, 0, 0)));
        table.push((mode, Block, "+bbb", vec![1], (0, 0, 3)));
        table.push((mode, FailFast, "+fff", vec![1], (0, 0, 3)));
        table.push((mode, Reject, "+rrr", vec![1], (0, 0, 3)));
    }
    for (mode, overflow, outcomes, read, losses) in table {
        let mut channel = channel(mode, 2, overflow);
        let seen: String = (1..=4).map(|n| outcome(&channel.push(0, message(n, 0)))).collect();
        channel.advance(0);
        assert_eq!(seen, outcomes, "{mode} {overflow}");
        assert_eq!(all(&mut channel, 0), read, "{mode} {overflow}");
        let counters = *channel.counters();
        let (drop, overwrite, reject) =
            (counters.drop_count, counters.overwrite_count, counters.reject_count);
        assert_eq!((drop, overwrite, reject), losses, "{mode} {overflow}");
        assert_eq!(counters.publish_count + reject, 4, "{mode} {overflow}");
        assert_eq!(counters.delivery_count, read.len() as u64, "{mode} {overflow}");
    }
}

#[test]
fn room_is_what_fits_before_a_refusal_and_endless_where_the_oldest_goes() {
    let mut queue = channel(EdgeMode::Queue, 3, EdgeOverflow::Block);
    assert_eq!(queue.room(), 3);
    assert_eq!(outcome(&queue.push(0, message(1, 0))), '+');
    assert_eq!(queue.room(), 2);
    let mut latest = channel(EdgeMode::Latest, 3, EdgeOverflow::Reject);
    assert_eq!(latest.room(), 1);
    assert_eq!(outcome(&latest.push(0, message(1, 0))), '+');
    assert_eq!(latest.room(), 0);
    assert_eq!(latest.refuse(0), Refusal::Rejected);
    assert!(latest.pop(0).is_some());
    assert_eq!(latest.room(), 1);
    assert_eq!(latest.counters().reject_count, 1);
    for overflow in [EdgeOverflow::Overwrite, EdgeOverflow::DropOldest] {
        assert_eq!(channel(EdgeMode::Queue, 1, overflow).room(), u32::MAX);
    }
}

#[test]
fn a_message_gets_its_number_its_edge_and_when_it_came() {
    let mut channel = channel(EdgeMode::Queue, 2, EdgeOverflow::Reject);
    for (n, now_ns) in [(7, 10), (8, 20), (9, 30)] {
        let _ = channel.push(now_ns, message(n, 1));
    }
    let first = channel.pop(30).expect("two were accepted");
    let second = channel.pop(30).expect("two were accepted");
    assert_eq!((first.meta.seq, first.meta.edge, first.meta.received_ns), (1, 5, 10));
    assert_eq!((second.meta.seq, second.meta.edge, second.meta.received_ns), (2, 5, 20));
    assert_eq!(second.meta.published_ns, 1);
    let _ = channel.push(40, message(10, 1));
    assert_eq!(channel.pop(40).map(|message| message.meta.seq), Some(3));
}

#[test]
fn latest_never_backlogs_whatever_its_capacity() {
    let mut channel = channel(EdgeMode::Latest, 8, EdgeOverflow::Overwrite);
    for n in 1..=5 {
        let _ = channel.push(0, message(n, 0));
    }
    assert_eq!(all(&mut channel, 0), [5]);
    assert_eq!(channel.counters().max_depth, 1);
}

#[test]
fn latest_counts_an_overwrite_only_for_a_value_nobody_read() {
    let mut channel = channel(EdgeMode::Latest, 1, EdgeOverflow::Overwrite);
    let _ = channel.push(0, message(1, 0));
    assert_eq!(all(&mut channel, 0), [1]);
    assert_eq!(outcome(&channel.push(0, message(2, 0))), '+');
    assert_eq!(channel.newest(0).map(number), Some(2));
    assert_eq!(outcome(&channel.push(0, message(3, 0))), '+', "looking at it is reading it");
    assert_eq!(channel.counters().overwrite_count, 0);
    assert_eq!(outcome(&channel.push(0, message(4, 0))), 'e');
    assert_eq!(channel.counters().overwrite_count, 1);
    assert_eq!(all(&mut channel, 0), [4]);
    assert_eq!(channel.counters().delivery_count, 3);
}

#[test]
fn what_was_read_from_a_slot_can_be_looked_at_and_is_no_update() {
    for mode in [EdgeMode::Latest, EdgeMode::Latched, EdgeMode::PreviousTick] {
        let mut channel = channel(mode, 1, EdgeOverflow::Overwrite);
        let _ = channel.push(0, message(1, 0));
        channel.advance(0);
        assert!(channel.has_update());
        assert_eq!(channel.newest(0).map(number), Some(1));
        assert!(channel.has_update(), "{mode}: looking takes nothing");
        assert_eq!(all(&mut channel, 0), [1]);
        assert!(!channel.has_update());
        assert!(channel.pop(0).is_none(), "{mode}: each value once");
        assert_eq!(channel.newest(0).map(number), Some(1), "{mode}: the value stays");
        assert_eq!(channel.counters().delivery_count, 1);
    }
}

#[test]
fn a_slot_that_forgets_and_one_with_a_value_for_one_reader_keep_nothing() {
    let mut forgetful = channel(EdgeMode::Latest, 1, EdgeOverflow::Overwrite);
    forgetful.forget_read();
    let _ = forgetful.push(0, message(1, 0));
    assert!(forgetful.pop(0).is_some());
    assert!(forgetful.newest(0).is_none());
    let mut moving = channel(EdgeMode::Latest, 1, EdgeOverflow::Overwrite);
    let text = Message { value: Value::owned(String::from("one")), meta: Meta::default() };
    let _ = moving.push(0, text);
    let taken = moving.pop(0).expect("it was pushed").value.take::<String>();
    assert_eq!(taken.ok().map(|taken| taken.value).as_deref(), Some("one"));
    assert!(moving.newest(0).is_none());
}

/// Puts a message in, opens it, and says its number and that of the one before it.
fn put_and_open(channel: &mut Channel, n: u64) -> (u64, Option<u64>) {
    let Message { value, meta } = message(n, 0);
    assert!(channel.put(0, value, &meta));
    let (opened, last) = channel.open(0).expect("it is plain, and there is one");
    let before = (!last.is_none()).then(|| number(last));
    last.value.clear();
    (number(opened), before)
}

fn that_keeps_the_last() -> Channel {
    let mut channel = channel(EdgeMode::Latest, 1, EdgeOverflow::Overwrite);
    channel.forget_read();
    channel.keep_last();
    channel
}

#[test]
fn a_slot_that_keeps_the_last_one_shows_it_beside_the_next() {
    let mut channel = that_keeps_the_last();
    assert_eq!(put_and_open(&mut channel, 1), (1, None));
    assert_eq!(put_and_open(&mut channel, 2), (2, Some(1)));
    assert!(channel.open(0).is_none(), "each value once");
    assert_eq!(put_and_open(&mut channel, 3), (3, Some(2)));
    assert_eq!(channel.counters().delivery_count, 3);
}

#[test]
fn what_was_taken_is_not_the_last_one_but_the_one_before_is() {
    let mut channel = that_keeps_the_last();
    assert_eq!(put_and_open(&mut channel, 1), (1, None));
    let Message { value, meta } = message(2, 0);
    assert!(channel.put(0, value, &meta));
    assert!(channel.open(0).is_some());
    channel.was_taken();
    assert_eq!(put_and_open(&mut channel, 3), (3, Some(1)));
}

#[test]
fn the_last_one_can_be_lent_whether_or_not_there_is_a_next() {
    let mut channel = that_keeps_the_last();
    assert_eq!(put_and_open(&mut channel, 1), (1, None));
    let last = channel.take_last();
    assert_eq!(number(&last), 1);
    channel.give_last(last);
    let _ = channel.push(0, message(2, 0));
    let _ = channel.push(0, message(3, 0));
    let last = channel.take_last();
    assert_eq!(number(&last), 1);
    assert_eq!(all(&mut channel, 0), [3], "what nobody has read makes room");
    channel.give_last(last);
    assert_eq!(put_and_open(&mut channel, 4), (4, Some(1)));
}

#[test]
fn the_newest_of_a_queue_is_its_last_and_stays() {
    let mut channel = channel(EdgeMode::Queue, 3, EdgeOverflow::Reject);
    assert!(channel.newest(0).is_none());
    let _ = channel.push(0, message(1, 0));
    let _ = channel.push(0, message(2, 0));
    assert_eq!(channel.newest(0).map(number), Some(2));
    assert_eq!(channel.counters().delivery_count, 0);
    assert_eq!(all(&mut channel, 0), [1, 2]);
    assert!(channel.newest(0).is_none());
}

#[test]
fn previous_tick_shows_the_newest_of_the_epoch_before_and_wakes_once() {
    let mut channel = channel(EdgeMode::PreviousTick, 1, EdgeOverflow::Overwrite);
    let _ = channel.push(0, message(1, 0));
    let _ = channel.push(0, message(2, 0));
    assert!(!channel.has_update(), "not in the epoch in which it was published");
    assert!(channel.newest(0).is_none());
    channel.advance(0);
    assert_eq!(all(&mut channel, 0), [2]);
    let _ = channel.push(0, message(3, 0));
    assert_eq!(channel.newest(0).map(number), Some(2), "until the next epoch the old one");
    channel.advance(0);
    assert_eq!(all(&mut channel, 0), [3]);
    channel.advance(0);
    assert!(!channel.has_update(), "nothing new, no update");
    assert_eq!(channel.newest(0).map(number), Some(3));
    let _ = channel.push(0, message(4, 0));
    channel.advance(0);
    let _ = channel.push(0, message(5, 0));
    channel.advance(0);
    assert_eq!(channel.counters().overwrite_count, 2, "1 while it waited, 4 unread");
    assert_eq!(channel.counters().max_depth, 2);
}

#[test]
fn a_barrier_opens_when_it_is_full_and_then_for_all() {
    let mut channel = channel(EdgeMode::Barrier, 3, EdgeOverflow::Reject);
    for n in 1..=2 {
        let _ = channel.push(0, message(n, 0));
        assert!(!channel.has_update());
        assert!(channel.pop(0).is_none());
        assert!(channel.newest(0).is_none());
    }
    let _ = channel.push(0, message(3, 0));
    assert_eq!(channel.newest(0).map(number), Some(3));
    let mut drained = Vec::new();
    assert_eq!(channel.drain(0, 2, |message| drained.push(number(&message))), 2);
    assert_eq!(drained, [1, 2]);
    let _ = channel.push(0, message(4, 0));
    assert_eq!(all(&mut channel, 0), [3], "what came later waits for its own barrier");
    let _ = channel.push(0, message(5, 0));
    let _ = channel.push(0, message(6, 0));
    assert_eq!(all(&mut channel, 0), [4, 5, 6]);
}

#[test]
fn what_is_older_than_its_lifespan_is_dropped_before_delivery() {
    for mode in [EdgeMode::Queue, EdgeMode::Latest, EdgeMode::PreviousTick] {
        let policy = EdgePolicy { lifespan_ms: 5, ..policy(mode, 4, EdgeOverflow::Overwrite) };
        let mut channel = Channel::new(0, &policy);
        let _ = channel.push(0, message(1, 0));
        channel.advance(0);
        assert!(channel.pop(5 * MS).is_some(), "{mode}: as old as that it is delivered");
        let _ = channel.push(0, message(2, 0));
        channel.advance(0);
        assert!(channel.pop(5 * MS + 1).is_none(), "{mode}: older it is not");
        assert!(channel.newest(5 * MS + 1).is_none());
        let counters = channel.counters();
        assert_eq!((counters.stale_drop_count, counters.delivery_count), (1, 1), "{mode}");
        assert_eq!(counters.drop_count, 0, "{mode}: one loss, one counter");
    }
}

#[test]
fn a_stale_message_makes_way_for_the_fresh_one_behind_it() {
    let policy = EdgePolicy { lifespan_ms: 5, ..policy(EdgeMode::Queue, 4, EdgeOverflow::Reject) };
    let mut channel = Channel::new(0, &policy);
    let _ = channel.push(0, message(1, 0));
    let _ = channel.push(4 * MS, message(2, 4 * MS));
    assert_eq!(all(&mut channel, 7 * MS), [2]);
    assert_eq!(channel.counters().stale_drop_count, 1);
}

#[test]
fn a_value_that_was_read_is_forgotten_after_its_lifespan_without_being_counted() {
    let policy =
        EdgePolicy { lifespan_ms: 5, ..policy(EdgeMode::Latched, 1, EdgeOverflow::Overwrite) };
    let mut channel = Channel::new(0, &policy);
    let _ = channel.push(0, message(1, 0));
    assert!(channel.pop(0).is_some());
    assert_eq!(channel.newest(5 * MS).map(number), Some(1));
    assert!(channel.newest(6 * MS).is_none());
    assert_eq!(channel.counters().stale_drop_count, 0);
}

#[test]
fn what_is_older_than_its_deadline_is_delivered_with_a_flag_and_counted() {
    let policy = EdgePolicy { deadline_ms: 2, ..policy(EdgeMode::Queue, 4, EdgeOverflow::Reject) };
    let mut channel = Channel::new(0, &policy);
    for n in 1..=2 {
        let _ = channel.push(0, message(n, 0));
    }
    assert_eq!(channel.pop(2 * MS).map(|message| message.meta.is_late), Some(false));
    assert_eq!(channel.pop(3 * MS + 7).map(|message| message.meta.is_late), Some(true));
    let counters = channel.counters();
    assert_eq!((counters.deadline_miss_count, counters.delivery_count), (1, 2));
    assert_eq!(counters.message_age_ns, 3 * MS + 7);
}

#[test]
fn health_events_tell_of_each_loss_and_of_the_first_time_a_queue_fills() {
    let policy = EdgePolicy {
        lifespan_ms: 5,
        deadline_ms: 2,
        ..policy(EdgeMode::Queue, 2, EdgeOverflow::DropOldest)
    };
    let mut channel = Channel::new(3, &policy);
    for n in 1..=4 {
        let _ = channel.push(0, message(n, 0));
    }
    assert!(channel.pop(3 * MS).is_some());
    assert!(channel.pop(6 * MS).is_none());
    for n in 5..=6 {
        let _ = channel.push(7 * MS, message(n, 7 * MS));
    }
    assert!(channel.has_health());
    let mut sink = HealthSink::new(8);
    channel.drain_health(11, 2, &mut sink);
    assert!(!channel.has_health());
    let told: Vec<_> = sink
        .records()
        .map(|record| (record.key.kind, record.occurrence_count, record.sequence))
        .collect();
    let expected = [
        (HealthKind::ChannelOverflow, 2, 2),
        (HealthKind::ChannelStaleDrop, 1, 4),
        (HealthKind::ChannelDeadlineMiss, 1, 3),
        (HealthKind::BackpressureHighWatermark, 1, 2),
    ];
    assert_eq!(told, expected);
    let key = sink.take().expect("four were told").key;
    assert_eq!((key.component, key.lane, key.edge, key.policy), (11, 2, 3, "drop_oldest"));
    assert_eq!(channel.counters().health_event_count, 5);
}

#[test]
fn a_muted_edge_counts_its_losses_and_makes_no_events() {
    let policy = EdgePolicy {
        emit_health_events: false,
        ..policy(EdgeMode::Queue, 1, EdgeOverflow::Reject)
    };
    let mut channel = Channel::new(0, &policy);
    for n in 1..=3 {
        let _ = channel.push(0, message(n, 0));
    }
    assert!(!channel.has_health());
    let counters = channel.counters();
    assert_eq!((counters.reject_count, counters.health_event_count), (2, 0));
}
