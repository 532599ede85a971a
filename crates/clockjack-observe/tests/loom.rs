//! The recorder under every interleaving and every stale load that the memory model allows.
//!
//! Rings have two slots, so that the writer overtakes the reader immediately.
#![cfg(loom)]

#[cfg(feature = "alloc")]
#[path = "loom/bus.rs"]
mod bus;

use clockjack_observe::{
    Counter, Event, Histogram, Record, SingleWriter,
    event::{TaskId, WorkerId},
    recorder::{FlightRecorder, Reader, Ring, Writer},
};
use loom::{sync::Arc, thread};

/// A record in which each word contains the number, so that a mix of two records is detected.
fn numbered(n: u64) -> Record {
    Record::new(n, Event::TaskPolled { task: TaskId(0), messages: 0, ran_ns: n << 56 })
}

fn write(writer: &mut Writer<Arc<Ring>>, n: u64) {
    let Record { at_ns, event } = numbered(n);
    writer.write(at_ns, event);
}

/// Reads until the ring is empty; checks that records are complete and their numbers increase.
/// Returns how many.
fn read_all(reader: &mut Reader<'_>, next: &mut u64) -> u64 {
    let mut read = 0;
    while let Some(record) = reader.read() {
        assert_eq!(record, numbered(record.at_ns), "a record is torn");
        assert!(record.at_ns >= *next, "{} came after {next}", record.at_ns);
        *next = record.at_ns + 1;
        read += 1;
    }
    read
}

fn check_conservation(model: &loom::model::Builder, written: u64) {
    model.check(move || {
        let ring = Arc::new(Ring::new(2));
        let mut writer = Writer::claim(Arc::clone(&ring)).unwrap();
        let mut reader = ring.reader();
        let thread = thread::spawn(move || (1..=written).for_each(|n| write(&mut writer, n)));
        let mut next = 1;
        let mut read = read_all(&mut reader, &mut next);
        thread.join().unwrap();
        read += read_all(&mut reader, &mut next);
        assert_eq!(next, written + 1, "the last record is always there");
        assert_eq!(read + reader.lost(), written);
    });
}

#[test]
fn a_reader_gets_whole_records_in_order_and_counts_the_rest() {
    check_conservation(&loom::model::Builder::new(), 3);
}

#[test]
fn a_reader_survives_two_laps_of_the_writer() {
    // Without a bound this model takes minutes; the model above explores three records completely.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    check_conservation(&model, 4);
}

#[test]
fn a_late_reader_starts_at_a_record_that_was_written() {
    // Without a bound this one takes minutes, too.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let ring = Arc::new(Ring::new(2));
        let mut writer = Writer::claim(Arc::clone(&ring)).unwrap();
        let thread = thread::spawn(move || (1..=3).for_each(|n| write(&mut writer, n)));
        read_all(&mut ring.reader(), &mut 1);
        thread.join().unwrap();
    });
}

#[test]
fn the_next_writer_continues_where_the_last_one_ended() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(2));
        let claim_and_write = |ring: &Arc<Ring>, n| {
            Writer::claim(Arc::clone(ring)).map(|mut writer| write(&mut writer, n)).is_some()
        };
        let thread = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || claim_and_write(&ring, 1))
        };
        let here = claim_and_write(&ring, 2);
        let there = thread.join().unwrap();
        let written = usize::from(here) + usize::from(there);
        assert!(written >= 1, "one of two claims succeeds");
        assert_eq!(ring.written(), written);
    });
}

#[test]
fn a_worker_that_starts_gets_the_ring_that_readers_see() {
    loom::model(|| {
        let recorder = Arc::new(FlightRecorder::new(1, 2));
        let thread = {
            let recorder = Arc::clone(&recorder);
            thread::spawn(move || {
                let mut writer = recorder.writer(WorkerId(0)).unwrap();
                writer.write(1, numbered(1).event);
            })
        };
        for (worker, records) in recorder.records_since(0) {
            assert_eq!((worker, records), (WorkerId(0), vec![numbered(1)]));
        }
        thread.join().unwrap();
        assert_eq!(recorder.records_since(0).len(), 1);
    });
}

#[test]
fn shared_cells_lose_no_record_and_sole_cells_are_read_whole() {
    loom::model(|| {
        let shared =
            Arc::new((Counter::<clockjack_observe::Shared>::new(), Counter::<SingleWriter>::new()));
        let thread = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.add(2))
        };
        shared.0.add(1);
        shared.1.add(5);
        thread.join().unwrap();
        assert_eq!((shared.0.get(), shared.1.get()), (3, 5));
    });
}

#[test]
fn extremes_of_a_shared_histogram_survive_a_race() {
    loom::model(|| {
        let histogram = Arc::new(Histogram::<2>::new());
        let thread = {
            let histogram = Arc::clone(&histogram);
            thread::spawn(move || histogram.record(9))
        };
        histogram.record(1);
        thread.join().unwrap();
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.min(), snapshot.max(), snapshot.sum()), (Some(1), Some(9), 10));
    });
}
