//! The ring recorder without a model checker: edges, and a conservation law under load.
#![cfg(not(loom))]

extern crate alloc;

use alloc::sync::Arc;
use core::{ops::Deref, ptr};
use std::thread;

use clockjack_observe::{
    Event, Record,
    recorder::{Reader, Recorder, Ring, Writer},
};
use clockjack_sync::primitive::atomic::{AtomicBool, Ordering};

/// A record in which each word tells the number, so that a mix of two shows.
fn numbered(n: u64) -> Record {
    Record::new(n, Event::Mark { code: u32::try_from(n % (1 << 32)).unwrap(), value: !n })
}

fn write<P: Deref<Target: Ring>>(writer: &mut Writer<P>, n: u64) {
    let Record { at_ns, event } = numbered(n);
    writer.write(at_ns, event);
}

#[test]
fn records_come_out_in_the_order_written() {
    let recorder = Recorder::<8>::new();
    let (mut writer, mut reader) = (recorder.writer().unwrap(), recorder.reader());
    assert_eq!(reader.read(), None);
    (0..7).for_each(|n| write(&mut writer, n));
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), (0..7).map(numbered).collect::<Vec<_>>());
    assert_eq!((reader.lost(), recorder.dropped(), recorder.written()), (0, 0, 7));
}

#[test]
fn the_oldest_give_way_and_are_counted() {
    for written in 0..40 {
        let recorder = Recorder::<8>::new();
        let (mut writer, mut reader) = (recorder.writer().unwrap(), recorder.reader());
        (0..written).for_each(|n| write(&mut writer, n));
        let lost = written.saturating_sub(recorder.kept_max() as u64);
        assert_eq!(recorder.dropped() as u64, lost, "before anybody read");
        let read: Vec<_> = reader.by_ref().collect();
        assert_eq!(read, (lost..written).map(numbered).collect::<Vec<_>>());
        assert_eq!((reader.lost(), recorder.dropped() as u64), (lost, lost), "{written} written");
    }
}

#[test]
fn a_late_reader_starts_at_the_oldest_kept_and_has_lost_nothing() {
    for written in [0, 1, 3, 4, 5, 9, 100] {
        let recorder = Recorder::<4>::new();
        let mut writer = recorder.writer().unwrap();
        (0..written).for_each(|n| write(&mut writer, n));
        let mut reader = recorder.reader();
        let oldest = written.saturating_sub(3);
        assert_eq!(
            reader.by_ref().collect::<Vec<_>>(),
            (oldest..written).map(numbered).collect::<Vec<_>>()
        );
        assert_eq!(reader.lost(), 0);
        assert_eq!(recorder.dropped() as u64, oldest);
    }
}

#[test]
fn a_tail_shows_the_last_records_and_consumes_nothing() {
    let recorder = Recorder::<8>::new();
    let mut writer = recorder.writer().unwrap();
    assert_eq!(recorder.tail(3).count(), 0);
    (0..20).for_each(|n| write(&mut writer, n));
    let last: Vec<_> = recorder.tail(3).collect();
    assert_eq!(last, (17..20).map(numbered).collect::<Vec<_>>());
    assert_eq!(recorder.tail(usize::MAX).count(), 7);
    assert_eq!(recorder.dropped(), 13, "a look does not count as seeing");
    (20..27).for_each(|n| write(&mut writer, n));
    assert_eq!(recorder.dropped(), 20);
}

#[test]
fn two_readers_each_get_everything_and_the_one_in_front_decides_what_was_dropped() {
    let recorder = Recorder::<4>::new();
    let mut writer = recorder.writer().unwrap();
    let (mut quick, mut slow) = (recorder.reader(), recorder.reader());
    for n in 0..12 {
        write(&mut writer, n);
        assert_eq!(quick.read(), Some(numbered(n)));
    }
    assert_eq!(slow.by_ref().collect::<Vec<_>>(), (9..12).map(numbered).collect::<Vec<_>>());
    assert_eq!((quick.lost(), slow.lost(), recorder.dropped()), (0, 9, 0));
}

#[test]
fn there_is_one_writer_at_a_time_and_the_next_continues() {
    let recorder = Recorder::<4>::new();
    let mut first = recorder.writer().unwrap();
    write(&mut first, 0);
    let refused = recorder.writer().unwrap_err();
    assert_eq!(refused.to_string(), "the recorder has a writer already");
    assert!(ptr::eq(refused.into_inner(), &recorder));
    drop(first);
    let mut second = recorder.writer().unwrap();
    write(&mut second, 1);
    assert_eq!(recorder.reader().collect::<Vec<_>>(), [numbered(0), numbered(1)]);
}

#[test]
fn handles_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Writer<&'static Recorder<8>>>();
    is_send::<Writer<Arc<Recorder<8>>>>();
    is_send::<Reader<Arc<Recorder<8>>>>();
}

#[test]
fn a_slot_has_twenty_four_bytes() {
    assert_eq!(size_of::<Recorder<128>>() - size_of::<Recorder<64>>(), 64 * 24);
}

/// One writer and two readers at full speed. Each reader sees rising numbers, whole records, and
/// read + lost = written.
fn stress<R: Ring + Send + Sync>(recorder: Arc<R>, written: u64) {
    let done = AtomicBool::new(false);
    let mut writer = Writer::claim(Arc::clone(&recorder)).expect("nobody else writes");
    let readers: Vec<_> = (0..2).map(|_| Reader::new(Arc::clone(&recorder))).collect();
    thread::scope(|scope| {
        let done = &done;
        for mut reader in readers {
            scope.spawn(move || {
                let (mut read, mut next) = (0, 0);
                loop {
                    let is_last_round = done.load(Ordering::Acquire);
                    while let Some(record) = reader.read() {
                        assert_eq!(record, numbered(record.at_ns), "torn");
                        assert!(record.at_ns >= next, "{} after {next}", record.at_ns);
                        next = record.at_ns + 1;
                        read += 1;
                    }
                    if is_last_round {
                        break;
                    }
                }
                assert_eq!(next, written, "the last record is always read");
                assert_eq!(read + reader.lost(), written);
            });
        }
        scope.spawn(move || {
            (0..written).for_each(|n| write(&mut writer, n));
            done.store(true, Ordering::Release);
        });
    });
    assert_eq!(recorder.written() as u64, written);
    assert!(recorder.dropped() as u64 <= written);
}

#[test]
fn under_load_no_record_is_torn_and_none_vanishes_in_a_tiny_ring() {
    stress(Arc::new(Recorder::<2>::new()), 200_000);
    stress(Arc::new(Recorder::<4>::new()), 200_000);
}

#[test]
fn under_load_no_record_is_torn_and_none_vanishes_in_a_larger_ring() {
    stress(Arc::new(Recorder::<256>::new()), 400_000);
}

#[cfg(feature = "alloc")]
mod heap {
    use clockjack_observe::recorder::HeapRecorder;

    use super::{Arc, Ring, stress};

    #[test]
    fn the_heap_form_keeps_the_same_law() {
        stress(Arc::new(HeapRecorder::new(64).unwrap()), 200_000);
    }

    #[test]
    fn a_capacity_that_is_no_power_of_two_is_refused() {
        for n in [0, 1, 3, 100, usize::MAX, 1 << (usize::BITS - 1)] {
            let error = HeapRecorder::new(n).unwrap_err();
            assert_eq!(error.n_slots(), n);
            assert!(error.to_string().starts_with(&n.to_string()));
        }
        assert_eq!(HeapRecorder::new(2).unwrap().kept_max(), 1);
    }
}
