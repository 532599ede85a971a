//! The sink keeps one record a key, a bounded number of them, and counts the rest.

use super::{Health, HealthKey, HealthKind, HealthSink, NONE, Notes, SINK_CAPACITY};

fn key(kind: HealthKind, edge: u32) -> HealthKey {
    HealthKey { edge, ..HealthKey::new(kind, 0, NONE, "reject") }
}

fn event(edge: u32, occurrence_count: u64, sequence: u64) -> Health {
    Health {
        key: key(HealthKind::ChannelOverflow, edge),
        occurrence_count,
        sequence,
        depth: 1,
        capacity: 1,
        observed_ns: sequence,
    }
}

#[test]
fn events_with_the_same_key_are_one_record_with_the_data_of_the_last() {
    let mut sink = HealthSink::new(SINK_CAPACITY);
    sink.record(event(1, 1, 10));
    sink.record(event(2, 1, 11));
    sink.record(event(1, 3, 12));
    let records: Vec<_> = sink.records().copied().collect();
    assert_eq!(records, [event(1, 4, 12), event(2, 1, 11)]);
    assert_eq!(sink.counters().event_count, 5);
    assert_eq!(sink.counters().coalesced_count, 3);
}

#[test]
fn a_full_sink_drops_its_oldest_record_and_counts_it() {
    let mut sink = HealthSink::new(2);
    for edge in 0..5 {
        sink.record(event(edge, 1, 0));
    }
    let edges: Vec<_> = sink.records().map(|record| record.key.edge).collect();
    assert_eq!(edges, [3, 4]);
    assert_eq!(sink.counters().dropped_count, 3);
}

#[test]
fn every_event_is_in_a_record_or_counted_as_coalesced_or_dropped() {
    for capacity in [0, 1, 3, 8] {
        let mut sink = HealthSink::new(capacity);
        let mut n_taken = 0;
        for step in 0_u64..200 {
            let edge = u32::try_from(step * 7 % 11).expect("it is less than eleven");
            sink.record(event(edge, step % 4, step));
            if step % 9 == 0 && sink.take().is_some() {
                n_taken += 1;
            }
        }
        let counters = sink.counters();
        let n_inside = sink.records().count() as u64;
        assert!(n_inside <= capacity as u64);
        assert_eq!(counters.event_count, (0..200).map(|step| step % 4).sum::<u64>());
        assert_eq!(
            counters.event_count,
            counters.coalesced_count + counters.dropped_count + n_taken + n_inside,
            "capacity {capacity}"
        );
    }
}

#[test]
fn notes_are_handed_on_once_with_how_often_and_the_last() {
    let mut notes = Notes::default();
    notes.add(HealthKind::ChannelStaleDrop, 4, 1, 40);
    notes.add(HealthKind::ChannelOverflow, 5, 2, 50);
    notes.add(HealthKind::ChannelStaleDrop, 6, 3, 60);
    assert!(notes.is_any());
    let mut sink = HealthSink::new(SINK_CAPACITY);
    notes.drain_into(key(HealthKind::TaskReject, 9), 7, &mut sink);
    notes.drain_into(key(HealthKind::TaskReject, 9), 7, &mut sink);
    assert!(!notes.is_any());
    let overflow = sink.take().expect("one of each kind");
    assert_eq!((overflow.key.kind, overflow.occurrence_count), (HealthKind::ChannelOverflow, 1));
    let stale = sink.take().expect("one of each kind");
    assert_eq!(stale.key, key(HealthKind::ChannelStaleDrop, 9));
    assert_eq!((stale.occurrence_count, stale.sequence, stale.depth), (2, 6, 3));
    assert_eq!((stale.capacity, stale.observed_ns), (7, 60));
    assert!(sink.take().is_none());
}

#[test]
fn each_kind_says_which_part_of_the_runtime_it_is_of() {
    let sources: Vec<_> = HealthKind::ALL.iter().map(|kind| kind.source()).collect();
    let of_channels = ["channel"; 4];
    let others = ["task", "scheduler", "chain", "channel", "component"];
    assert_eq!(sources, [&of_channels[..], &others].concat());
}
