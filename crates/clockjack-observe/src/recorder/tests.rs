//! Positions that wrap around, which no test from outside can reach on a 64-bit target, and the
//! contention for the common ring.

use clockjack_sync::primitive::atomic::Ordering::Relaxed;

use super::{FlightRecorder, Ring, Writer};
use crate::event::{Event, Record, TaskId};

const SLOTS: usize = 8;
const FILL: u64 = SLOTS as u64;

fn numbered(n: u64) -> Record {
    Record::new(n, Event::TaskPolled { task: TaskId(7), messages: 0, ran_ns: !n })
}

/// A ring that has come to `head`, full of records numbered up to `FILL - 1`.
fn ring_at(head: usize) -> Ring {
    let ring = Ring::new(SLOTS);
    ring.head.store(head.wrapping_sub(SLOTS), Relaxed);
    let mut writer = Writer::claim(&ring).expect("nobody else writes");
    (0..FILL).for_each(|n| writer.write(n, numbered(n).event));
    drop(writer);
    ring
}

#[test]
fn order_and_counts_survive_the_wrap_of_positions() {
    for before_wrap in 0..20 {
        for step in 1..=12 {
            let ring = ring_at(0_usize.wrapping_sub(before_wrap));
            let mut writer = Writer::claim(&ring).expect("nobody else writes");
            let mut reader = ring.reader();
            let (mut next, mut read) = (1, 0);
            for n in FILL..FILL + 40 {
                writer.write(n, numbered(n).event);
                if n % step == 0 {
                    for record in reader.by_ref() {
                        assert_eq!(record, numbered(record.at_ns));
                        assert!(record.at_ns >= next, "{} after {next}", record.at_ns);
                        (next, read) = (record.at_ns + 1, read + 1);
                    }
                    assert_eq!(next, n + 1);
                }
            }
            read += reader.by_ref().count() as u64;
            // The ring had dropped record 0 when the reader came.
            assert_eq!(read + reader.lost() + 1, FILL + 40);
        }
    }
}

#[test]
fn a_new_reader_just_after_the_wrap_gets_all_that_is_kept() {
    for after_wrap in 0..SLOTS {
        let ring = ring_at(after_wrap);
        assert!(ring.reader().eq((1..FILL).map(numbered)), "head {after_wrap}");
    }
}

#[test]
fn a_record_that_finds_the_common_ring_claimed_is_dropped_and_counted() {
    let recorder = FlightRecorder::new(0, SLOTS);
    let writer = recorder.claim_outside().expect("nobody else writes");
    recorder.write_outside(1, numbered(1).event);
    drop(writer);
    recorder.write_outside(2, numbered(2).event);
    assert_eq!(recorder.missed(), 1);
    let rings = recorder.records_since(0);
    assert_eq!(rings[0].1, [numbered(2)]);
}
