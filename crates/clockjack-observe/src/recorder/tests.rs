//! Positions that wrap around, which no test from outside can reach on a 64-bit target.

use clockjack_sync::primitive::atomic::Ordering::Relaxed;

use super::{Recorder, Ring, is_before};
use crate::event::{Event, Record};

const SLOTS: usize = 8;
const FILL: u64 = SLOTS as u64;

fn numbered(n: u64) -> Record {
    Record::new(n, Event::Mark { code: 7, value: !n })
}

/// A ring that has come to `head`, full of records numbered up to `FILL - 1`.
fn ring_at(head: usize) -> Recorder<SLOTS> {
    let recorder = Recorder::new();
    let start = head.wrapping_sub(SLOTS);
    recorder.control.head.store(start, Relaxed);
    recorder.control.frontier.store(start, Relaxed);
    let mut writer = recorder.writer().expect("nobody else writes");
    (0..FILL).for_each(|n| writer.write(n, numbered(n).event));
    drop(writer);
    recorder
}

#[test]
fn order_and_counts_survive_the_wrap_of_positions() {
    for before_wrap in 0..20 {
        for step in 1..=12 {
            let recorder = ring_at(0_usize.wrapping_sub(before_wrap));
            let mut writer = recorder.writer().expect("nobody else writes");
            let mut reader = recorder.reader();
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
            assert_eq!(recorder.dropped() as u64, reader.lost() + 1);
            assert_eq!(recorder.tail(3).count(), 3);
        }
    }
}

#[test]
fn a_new_reader_just_after_the_wrap_gets_all_that_is_kept() {
    for after_wrap in 0..SLOTS {
        let recorder = ring_at(after_wrap);
        assert!(recorder.reader().eq((1..FILL).map(numbered)), "head {after_wrap}");
    }
}

#[test]
fn positions_compare_across_the_wrap() {
    assert!(is_before(usize::MAX, 0));
    assert!(is_before(0, 1));
    assert!(!is_before(0, 0));
    assert!(!is_before(1, 0));
    assert!(!is_before(5, usize::MAX));
}
