//! Records of the flight recorder, seen in a trace that was made of them.
#![cfg(all(feature = "alloc", not(loom)))]

extern crate alloc;

#[path = "support/perfetto.rs"]
mod perfetto_trace;

use clockjack_observe::{
    Event, Record,
    event::{
        ComponentId, Encoded, GraphId, Kind, ProcessId, ShardId, SlotId, StepStatus, UnparkCause,
        WorkerId,
    },
    perfetto,
    recorder::{Recorder, Ring},
    timeline::Timeline,
};
use perfetto_trace::{Opened, open};
use proptest::prelude::*;

const P: ProcessId = ProcessId(7);
const W: WorkerId = WorkerId(0);

fn woken(at_ns: u64) -> Record {
    Record::new(at_ns, Event::ProcessWoken { process: P, worker: W })
}

fn started(at_ns: u64) -> Record {
    Record::new(at_ns, Event::StepStarted { process: P, worker: W })
}

fn ended(at_ns: u64, ran_ns: u64) -> Record {
    Record::new(at_ns, Event::StepEnded { process: P, status: StepStatus::Idle, ran_ns })
}

fn traced(rings: &[&[Record]]) -> Opened {
    let mut timeline = Timeline::new();
    let names: Vec<String> = (0..rings.len()).map(|index| format!("worker {index}")).collect();
    let parent = timeline.track("system", None);
    let rings = names.iter().map(|name| &**name).zip(rings.iter().map(|ring| ring.iter().copied()));
    timeline.add_records(Some(parent), rings);
    open(&perfetto::encode(&timeline)).expect("the trace is sound")
}

/// `name@start+duration` of every slice.
fn slices(trace: &Opened) -> Vec<String> {
    let line = |slice: &perfetto_trace::Slice| {
        let duration = slice.duration_ns.map_or(String::new(), |ns| format!("+{ns}"));
        let mark = if slice.args.iter().any(|(name, _)| name == "unfinished") { "?" } else { "" };
        format!("{}@{}{duration}{mark}", slice.name, slice.start_ns)
    };
    trace.slices.iter().map(line).collect()
}

/// Start times of both ends of every flow.
fn flows(trace: &Opened) -> Vec<(u64, u64)> {
    let at = |index: usize| trace.slices[index].start_ns;
    trace.flows.iter().map(|&(_, from, to)| (at(from), at(to))).collect()
}

#[test]
fn what_begins_and_ends_is_a_span_and_the_rest_are_instants() {
    let (graph, component) = (GraphId(1), ComponentId(3));
    let trace = traced(&[&[
        Record::new(0, Event::WorkerParked { worker: W, until_ns: u64::MAX }),
        Record::new(9, Event::WorkerUnparked { worker: W, cause: UnparkCause::Notified }),
        started(10),
        Record::new(11, Event::EpochStarted { graph, epoch: 5 }),
        Record::new(16, Event::ComponentRan { graph, component, ran_ns: 4 }),
        Record::new(17, Event::EpochCommitted { graph, epoch: 5, values: 2 }),
        Record::new(18, Event::Mark { code: 1, value: 2 }),
        ended(20, 10),
    ]]);
    let expected = ["parked@0+9", "process 7@10+10", "epoch@11+6", "component 3@12+4", "mark@18"];
    assert_eq!(slices(&trace), expected);
    assert_eq!(trace.slices[3].parent, Some(2), "the component ran in the epoch");
    let arg = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected =
        [arg("process", "7"), arg("worker", "0"), arg("status", "idle"), arg("ran_ns", "10")];
    assert_eq!(trace.slices[1].args, expected);
}

#[test]
fn half_a_span_is_drawn_as_far_as_it_is_known() {
    let other = ProcessId(8);
    let trace = traced(&[&[
        ended(20, 10),
        started(30),
        Record::new(40, Event::StepStarted { process: other, worker: W }),
        ended(60, 5),
        started(70),
        woken(75),
    ]]);
    let expected = [
        "process 7@10+10",  // its begin was forgotten
        "process 7@30+10?", // its end is missing: another step began
        "process 8@40+15?", // its end is missing: another step ended
        "process 7@55+5",   // its begin is missing
        "process 7@70+5?",  // still runs
        "process_woken@75",
    ];
    assert_eq!(slices(&trace), expected);
}

#[test]
fn causes_point_to_what_they_caused_also_from_ring_to_ring() {
    let timer = SlotId::new(ShardId(0), 4);
    let waker = [
        Record::new(1, Event::ProcessSpawned { process: P, worker: W }),
        Record::new(2, Event::TimerArmed { timer, delay_ticks: 8 }),
        woken(12), // while it runs: for the next step
        woken(13), // adds nothing
        Record::new(15, Event::TimerFired { timer, late_ticks: 0 }),
        Record::new(16, Event::TimerFired { timer, late_ticks: 0 }),
    ];
    let runner = [started(10), ended(14, 4), started(20), ended(21, 1), started(30), ended(31, 1)];
    let trace = traced(&[&waker, &runner]);
    assert_eq!(flows(&trace), [(1, 10), (2, 15), (12, 20)]);
}

#[test]
fn a_ring_alone_keeps_the_order_of_what_takes_no_time() {
    let trace = traced(&[&[woken(5), started(5), woken(5), ended(5, 0), started(5), ended(5, 0)]]);
    assert_eq!(trace.flows, [(1, 0, 1), (2, 2, 3)]);
}

#[test]
fn a_live_ring_becomes_a_trace() {
    static FLIGHT: Recorder<64> = Recorder::new();
    let mut writer = FLIGHT.writer().expect("nobody else writes");
    for n in 0..200 {
        for Record { at_ns, event } in [woken(n * 10), started(n * 10 + 1), ended(n * 10 + 5, 4)] {
            writer.write(at_ns, event);
        }
    }
    let mut timeline = Timeline::new();
    timeline.add_records(None, [("worker 0", FLIGHT.tail(63))]);
    let trace = open(&perfetto::encode(&timeline)).expect("the trace is sound");
    assert_eq!(slices(&trace).len(), 42, "21 wake-ups and 21 steps");
    assert_eq!(trace.flows.len(), 21);
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
        let n_slices = traced(&rings).slices.len();
        // Two records at most make one span.
        prop_assert!(n_slices <= n_records && n_records <= 2 * n_slices);
    }
}
