//! Traces that are made from records of the flight recorder.
#![cfg(all(feature = "alloc", not(loom)))]

extern crate alloc;

#[path = "support/perfetto.rs"]
mod perfetto_trace;

use clockjack_observe::{
    Event, Record,
    event::{ActorId, Encoded, Kind, TaskId, WorkerId},
    perfetto,
    recorder::{Ring, Writer},
    timeline::Timeline,
};
use perfetto_trace::{Opened, open};
use proptest::prelude::*;

const T: TaskId = TaskId(7);
const W: WorkerId = WorkerId(0);

fn woken(at_ns: u64) -> Record {
    Record::new(at_ns, Event::TaskWoken { task: T })
}

fn polled(at_ns: u64, ran_ns: u64) -> Record {
    Record::new(at_ns, Event::TaskPolled { task: T, messages: 2, ran_ns })
}

fn traced(rings: &[&[Record]]) -> Opened {
    let mut timeline = Timeline::new();
    let names: Vec<String> = (0..rings.len()).map(|index| format!("worker {index}")).collect();
    let parent = timeline.track("system", None);
    let rings = names.iter().map(|name| &**name).zip(rings.iter().map(|ring| ring.iter().copied()));
    let nine = |actor: ActorId| (actor == ActorId::new(3, 9)).then(|| "/user/nine".into());
    timeline.add_records(Some(parent), 3, rings, &nine);
    open(&perfetto::encode(&timeline)).expect("the trace is sound")
}

/// `name@start+duration` of every slice.
fn slices(trace: &Opened) -> Vec<String> {
    let line = |slice: &perfetto_trace::Slice| {
        let duration = slice.duration_ns.map_or(String::new(), |ns| format!("+{ns}"));
        format!("{}@{}{duration}", slice.name, slice.start_ns)
    };
    trace.slices.iter().map(line).collect()
}

/// Start times of both ends of every flow.
fn flows(trace: &Opened) -> Vec<(u64, u64)> {
    let at = |index: usize| trace.slices[index].start_ns;
    trace.flows.iter().map(|&(_, from, to)| (at(from), at(to))).collect()
}

#[test]
fn what_has_a_duration_is_a_span_and_the_rest_are_instants() {
    let nine = TaskId(9);
    let trace = traced(&[&[
        Record::new(9, Event::WorkerParked { worker: W, parked_ns: 9 }),
        Record::new(18, Event::ActorStarted { actor: ActorId::new(3, 9), parent: ActorId::NONE }),
        polled(20, 10),
        Record::new(25, Event::TaskPolled { task: nine, messages: 0, ran_ns: 3 }),
    ]]);
    let expected = ["parked@0+9", "task 7@10+10", "actor_started@18", "/user/nine@22+3"];
    assert_eq!(slices(&trace), expected);
    let arg = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(trace.slices[1].args, [arg("task", "7"), arg("messages", "2"), arg("ran_ns", "10")]);
    let expected = [arg("actor", "3.9"), arg("parent", "none"), arg("name", "/user/nine")];
    assert_eq!(trace.slices[2].args, expected);
}

#[test]
fn causes_point_to_what_they_caused_also_from_ring_to_ring() {
    let waker = [
        Record::new(1, Event::TaskSpawned { task: T }),
        woken(12), // while it runs: for the next poll
        woken(13), // adds nothing
    ];
    let runner = [polled(14, 4), polled(21, 1), polled(31, 1)];
    let trace = traced(&[&waker, &runner]);
    assert_eq!(flows(&trace), [(1, 10), (12, 20)]);
}

#[test]
fn a_live_ring_becomes_a_trace() {
    let ring = Ring::new(64);
    let mut writer = Writer::claim(&ring).expect("there is no other writer");
    for n in 0..200 {
        for Record { at_ns, event } in [woken(n * 10), polled(n * 10 + 5, 4)] {
            writer.write(at_ns, event);
        }
    }
    let mut timeline = Timeline::new();
    timeline.add_records(None, 0, [("worker 0", ring.reader())], &|_| None);
    let trace = open(&perfetto::encode(&timeline)).expect("the trace is sound");
    assert_eq!(slices(&trace).len(), 63, "31 wake-ups and 32 polls");
    assert_eq!(trace.flows.len(), 31);
}

prop_compose! {
    /// Any event of any kind with small numbers, at any of a few times.
    fn records()(
        at_ns in 0..20_u64, kind in prop::sample::select(Kind::ALL), seeds in any::<[u64; 8]>(),
    ) -> Record {
        let mut word = u128::from(kind.code());
        let mut shift = u8::BITS;
        for (field, seed) in kind.fields().iter().zip(seeds) {
            word |= u128::from(seed % 4 % field.max.saturating_add(1)) << shift;
            shift += field.bits;
        }
        let encoded = Encoded::from_bytes(word.to_le_bytes());
        Record::new(at_ns, Event::decode(encoded).expect("every field is in its range"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_make_a_sound_trace(
        rings in prop::collection::vec(prop::collection::vec(records(), 0..60), 0..4),
    ) {
        let n_records: usize = rings.iter().map(Vec::len).sum();
        let rings: Vec<&[Record]> = rings.iter().map(|ring| &**ring).collect();
        prop_assert_eq!(traced(&rings).slices.len(), n_records);
    }
}
