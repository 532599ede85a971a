//! The ring recorder without a model checker: edge cases, and conservation of records under load.
#![cfg(all(feature = "alloc", not(loom)))]

use std::thread;

use clockjack_observe::{
    Event, Record,
    event::{TaskId, WorkerId},
    recorder::{FlightRecorder, Ring, Writer},
};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicBool, Ordering},
};

/// A record in which each word contains the number, so that a mix of two records is detected.
fn numbered(n: u64) -> Record {
    let task = TaskId(u32::try_from(n % (1 << 32)).unwrap());
    Record::new(n, Event::TaskPolled { task, messages: 0, ran_ns: !n })
}

fn write(writer: &mut Writer<impl core::ops::Deref<Target = Ring>>, n: u64) {
    let Record { at_ns, event } = numbered(n);
    writer.write(at_ns, event);
}

#[test]
fn records_come_out_in_the_order_written() {
    let ring = Ring::new(8);
    let (mut writer, mut reader) = (Writer::claim(&ring).unwrap(), ring.reader());
    assert_eq!(reader.read(), None);
    (0..7).for_each(|n| write(&mut writer, n));
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), (0..7).map(numbered).collect::<Vec<_>>());
    assert_eq!((reader.lost(), ring.written()), (0, 7));
}

#[test]
fn the_oldest_give_way_and_are_counted() {
    for written in 0..40 {
        let ring = Ring::new(8);
        let (mut writer, mut reader) = (Writer::claim(&ring).unwrap(), ring.reader());
        (0..written).for_each(|n| write(&mut writer, n));
        let lost = written.saturating_sub(ring.kept_max() as u64);
        let read: Vec<_> = reader.by_ref().collect();
        assert_eq!(read, (lost..written).map(numbered).collect::<Vec<_>>());
        assert_eq!(reader.lost(), lost, "{written} written");
    }
}

#[test]
fn a_late_reader_starts_at_the_oldest_kept_and_has_lost_nothing() {
    for written in [0, 1, 3, 4, 5, 9, 100] {
        let ring = Ring::new(4);
        let mut writer = Writer::claim(&ring).unwrap();
        (0..written).for_each(|n| write(&mut writer, n));
        let mut reader = ring.reader();
        let oldest = written.saturating_sub(3);
        assert_eq!(
            reader.by_ref().collect::<Vec<_>>(),
            (oldest..written).map(numbered).collect::<Vec<_>>()
        );
        assert_eq!(reader.lost(), 0);
    }
}

#[test]
fn two_readers_each_get_everything() {
    let ring = Ring::new(4);
    let mut writer = Writer::claim(&ring).unwrap();
    let (mut quick, mut slow) = (ring.reader(), ring.reader());
    for n in 0..12 {
        write(&mut writer, n);
        assert_eq!(quick.read(), Some(numbered(n)));
    }
    assert_eq!(slow.by_ref().collect::<Vec<_>>(), (9..12).map(numbered).collect::<Vec<_>>());
    assert_eq!((quick.lost(), slow.lost()), (0, 9));
}

#[test]
fn there_is_one_writer_at_a_time_and_the_next_continues() {
    let ring = Ring::new(4);
    let mut first = Writer::claim(&ring).unwrap();
    write(&mut first, 0);
    assert!(Writer::claim(&ring).is_none());
    drop(first);
    let mut second = Writer::claim(&ring).unwrap();
    write(&mut second, 1);
    assert_eq!(ring.reader().collect::<Vec<_>>(), [numbered(0), numbered(1)]);
}

#[test]
fn handles_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Writer<&'static Ring>>();
    is_send::<Writer<Arc<Ring>>>();
}

#[test]
fn the_number_of_slots_is_rounded_up() {
    for (n_slots, kept_max) in [(0, 1), (1, 1), (2, 1), (3, 3), (100, 127), (128, 127)] {
        assert_eq!(Ring::new(n_slots).kept_max(), kept_max, "{n_slots}");
    }
}

/// One writer and two readers at full speed. Each reader sees increasing numbers and complete
/// records, and read + lost = written.
fn stress(n_slots: usize, written: u64) {
    let done = AtomicBool::new(false);
    let ring = Ring::new(n_slots);
    let mut writer = Writer::claim(&ring).expect("there is no other writer");
    let readers: Vec<_> = (0..2).map(|_| ring.reader()).collect();
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
    assert_eq!(ring.written() as u64, written);
}

#[test]
fn under_load_no_record_is_torn_and_none_vanishes_in_a_tiny_ring() {
    stress(2, 200_000);
    stress(4, 200_000);
}

#[test]
fn under_load_no_record_is_torn_and_none_vanishes_in_a_larger_ring() {
    stress(256, 400_000);
}

#[test]
fn each_worker_has_a_ring_of_its_own_and_other_threads_share_one() {
    let recorder = FlightRecorder::new(2, 8);
    assert!(recorder.records_since(0).is_empty());
    assert!(recorder.writer(WorkerId(2)).is_none(), "there is no such worker");
    let mut writer = recorder.writer(WorkerId(1)).unwrap();
    assert!(recorder.writer(WorkerId(1)).is_none(), "it has a writer");
    (0..3).for_each(|n| write(&mut writer, n));
    recorder.write_outside(5, numbered(5).event);
    let expected =
        vec![(WorkerId(1), vec![numbered(1), numbered(2)]), (WorkerId::OUTSIDE, vec![numbered(5)])];
    assert_eq!(recorder.records_since(1), expected);
    drop(writer);
    let mut next = recorder.writer(WorkerId(1)).unwrap();
    write(&mut next, 6);
    let expected = vec![(WorkerId(1), vec![numbered(6)])];
    assert_eq!(recorder.records_since(6), expected, "the next worker continues the ring");
}

#[test]
fn threads_that_write_at_once_lose_only_what_is_counted() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let recorder = FlightRecorder::new(0, 1 << 17);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            scope.spawn(move || {
                for n in 0..EACH {
                    let n = thread * EACH + n;
                    recorder.write_outside(n, numbered(n).event);
                }
            });
        }
    });
    let rings = recorder.records_since(0);
    let (_, records) = &rings[0];
    assert!(records.iter().all(|record| *record == numbered(record.at_ns)), "torn");
    assert_eq!((records.len() + recorder.missed()) as u64, THREADS * EACH);
}
