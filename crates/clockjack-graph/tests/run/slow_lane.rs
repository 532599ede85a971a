//! A lane with its own clock that hangs in a call, and a faster lane that goes on publishing for
//! it: what waits in between is bounded, and what does not fit is counted as the edge says.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex,
    mpsc::{self, Receiver, Sender},
};

use clockjack_graph::{
    Clock, Component, Data, DataError, Execute, Failure, Graph, GraphContext, Input, Output,
    Registry, RunOptions, RunReport, RunStopReason,
    describe::GraphFile,
    run::{LossCause, LossPlace},
};

use crate::{
    teller::graph,
    threads::{LONG, runtime, wall},
};

/// What the test and the components share.
struct Shared {
    /// Parcels that were not dropped yet.
    n_live: AtomicUsize,
    n_published: AtomicU64,
    n_seen: AtomicU64,
    /// Written once per call of `src`: whether its parcel was accepted.
    beats: Sender<bool>,
    /// Written once per call of `dst`.
    entered: Sender<()>,
    /// A call of `dst` waits until the other end is dropped.
    gate: Mutex<Receiver<()>>,
}

/// The ends that the test holds.
struct Ends {
    beats: Receiver<bool>,
    entered: Receiver<()>,
    gate: Sender<()>,
}

fn shared() -> (Arc<Shared>, Ends) {
    let ((beats, beats_end), (entered, entered_end)) = (mpsc::channel(), mpsc::channel());
    let (gate_end, gate) = mpsc::channel();
    let shared = Shared {
        n_live: AtomicUsize::new(0),
        n_published: AtomicU64::new(0),
        n_seen: AtomicU64::new(0),
        beats,
        entered,
        gate: Mutex::new(gate),
    };
    (Arc::new(shared), Ends { beats: beats_end, entered: entered_end, gate: gate_end })
}

/// A payload that is counted as long as somebody keeps it.
struct Parcel(Arc<Shared>);

impl Parcel {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.n_live.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.0.n_live.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Data for Parcel {
    const SCHEMA: &'static str = "parcel";

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(1);
    }

    fn decode(_: &[u8]) -> Result<Self, DataError> {
        Err(DataError::new(Self::SCHEMA, "it does not decode"))
    }
}

/// Publishes a parcel per call, or reads them behind a gate.
#[derive(Component)]
#[component(type = "post")]
struct Post {
    shared: Arc<Shared>,
    #[input(optional)]
    a: Input<Parcel>,
    #[output]
    out: Output<Parcel>,
}

impl Execute for Post {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        if cx.component_id() == "dst" {
            let n_seen = cx.drain(self.a).count() as u64;
            shared.n_seen.fetch_add(n_seen, Ordering::SeqCst);
            let _ = shared.entered.send(());
            // The other end is never written to: it is dropped.
            let _ = shared.gate.lock().unwrap().recv();
            return Ok(());
        }
        let mut is_accepted = true;
        if cx.component_id() == "src" {
            shared.n_published.fetch_add(1, Ordering::SeqCst);
            is_accepted = cx.publish(self.out, Parcel::new(&shared)).is_ok();
        }
        let _ = shared.beats.send(is_accepted);
        Ok(())
    }
}

fn compile(text: &str, shared: &Arc<Shared>) -> Graph {
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let shared = Arc::clone(shared);
    let types = Registry::new().register_with(move || Post {
        shared: Arc::clone(&shared),
        a: Input::default(),
        out: Output::default(),
    });
    file.compile(&types).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// `from` in a lane of a millisecond, `dst` in another one, and an edge of this kind and policy.
fn text(from: &str, kind: &str, policy: &str) -> String {
    graph(
        &format!("{}, {}", wall("fast", ""), wall("slow", "")),
        &[
            &format!("id: {from}, type: post, execution: {{ lane: fast }}"),
            "id: dst, type: post, execution: { lane: slow }, \
             event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }",
        ],
        &[&format!("id: e, kind: {kind}, from: {from}.out, to: dst.a, policy: {{ {policy} }}")],
    )
}

/// Waits until the fast lane has called its component this often from now on.
fn await_beats(ends: &Ends, n: usize) {
    ends.beats.try_iter().for_each(drop);
    for _ in 0..n {
        ends.beats.recv_timeout(LONG).expect("the fast lane goes on");
    }
}

/// How many messages the edge lost, by cause, except those on their way at the end.
fn lost(report: &RunReport) -> Vec<(LossCause, u64)> {
    let edge = LossPlace::Edge("e".into());
    let lost = report.losses.iter().filter(|loss| !loss.is_run_ended());
    lost.inspect(|loss| assert_eq!(loss.place, edge, "{loss}"))
        .map(|loss| (loss.cause, loss.count))
        .collect()
}

/// The policy of an edge, how many unread messages it keeps, and what happens to the others.
const POLICIES: &[(&str, &str, usize, LossCause)] = &[
    ("delay", "mode: latest", 1, LossCause::Overwritten),
    ("state", "mode: latched", 1, LossCause::Overwritten),
    ("delay", "mode: previous_tick", 1, LossCause::Overwritten),
    ("async", "mode: queue, capacity: 3", 3, LossCause::Overwritten),
    ("delay", "mode: ring_buffer, capacity: 3, overflow: drop_oldest", 3, LossCause::EdgeFull),
    ("delay", "mode: barrier, capacity: 3, overflow: drop_oldest", 3, LossCause::EdgeFull),
    ("delay", "mode: queue, capacity: 3, overflow: drop_newest", 3, LossCause::EdgeFull),
    ("async", "mode: queue, capacity: 3, overflow: reject", 3, LossCause::Refused),
    ("delay", "mode: latest, overflow: reject", 1, LossCause::Refused),
    ("delay", "mode: previous_tick, overflow: reject", 1, LossCause::Refused),
];

#[test]
fn what_a_hanging_lane_does_not_read_is_bounded_and_counted_as_its_edge_says() {
    let rt = runtime();
    for (kind, policy, capacity, cause) in POLICIES {
        let (shared, ends) = shared();
        let graph = compile(&text("src", kind, policy), &shared);
        let options = RunOptions::until_stopped().clock(Clock::Wall);
        let run = graph.start(rt.system(), options).expect("it starts");
        ends.entered.recv_timeout(LONG).expect("`dst` is called");
        await_beats(&ends, 50);
        // As many in the channel, as many on their way, one that `src` has in its hands, one that
        // is deferred to the next epoch, and one that `dst` reads.
        let n_live = shared.n_live.load(Ordering::SeqCst);
        assert!(n_live <= 2 * capacity + 3, "{kind}, {policy}: {n_live} payloads are kept");
        drop(ends.gate);
        ends.entered.recv_timeout(LONG).expect("`dst` goes on");
        run.stop();
        let report = rt.block_on(run).expect("nothing fails");

        let (published, seen) =
            [&shared.n_published, &shared.n_seen].map(|n| n.load(Ordering::SeqCst)).into();
        let n_lost: u64 = report.losses.iter().map(|loss| loss.count).sum();
        assert_eq!(published, seen + n_lost, "{kind}, {policy}: {:?}", report.losses);
        let lost = lost(&report);
        assert!(
            matches!(lost[..], [(of, n)] if of == *cause && n >= 50 - 2 * *capacity as u64 - 3),
            "{kind}, {policy}: {lost:?}"
        );
        let edge = report.edge("e").expect("there is such an edge");
        let n_counted = edge.dropped + edge.overwritten + edge.rejected;
        assert_eq!(n_counted, lost[0].1, "{kind}, {policy}: {edge:?}");
        assert_eq!(shared.n_live.load(Ordering::SeqCst), 0, "{kind}, {policy}");
    }
}

#[test]
fn what_is_fed_past_a_lane_to_a_hanging_one_is_bounded_too() {
    let policy = "mode: queue, capacity: 3, overflow: reject";
    let (rt, (shared, ends)) = (runtime(), shared());
    let graph = compile(&text("idle", "delay", policy), &shared);
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = graph.start(rt.system(), options).expect("it starts");
    let feed = run.feed::<Parcel>("idle.out").expect("it is such an output");
    feed.publish(Parcel::new(&shared)).map_err(|refused| refused.discard()).expect("there is room");
    ends.entered.recv_timeout(LONG).expect("`dst` is called");
    for _ in 0..40 {
        let fed = feed.publish(Parcel::new(&shared));
        fed.map_err(|refused| refused.discard()).expect("there is room");
    }
    // The first of these calls may have begun before the last value was fed.
    await_beats(&ends, 3);
    let n_live = shared.n_live.load(Ordering::SeqCst);
    assert!(n_live <= 3 + 1, "{n_live} payloads are kept");
    drop(ends.gate);
    ends.entered.recv_timeout(LONG).expect("`dst` goes on");
    run.stop();
    let report = rt.block_on(run).expect("nothing fails");
    assert_eq!(lost(&report), [(LossCause::Refused, 40 - 3)], "{:?}", report.losses);
    assert_eq!(report.edge("e").map(|edge| (edge.published, edge.rejected)), Some((4, 37)));
}

#[test]
fn an_edge_that_fails_fast_ends_the_run_when_its_reader_hangs() {
    let policy = "mode: queue, capacity: 3, overflow: fail_fast";
    let (rt, (shared, ends)) = (runtime(), shared());
    let graph = compile(&text("src", "delay", policy), &shared);
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let run = graph.start(rt.system(), options).expect("it starts");
    // Whether `dst` was called before depends on the two threads; if so, it hangs until now.
    while ends.beats.recv_timeout(LONG).expect("the edge is full at some time") {}
    drop(ends.gate);
    let failed = rt.block_on(run).expect_err("the edge is full");
    let fault = failed.fault().expect("it names the component");
    assert_eq!(fault.component, "src", "{fault}");
    assert_eq!(failed.report().map(|report| report.stop), Some(RunStopReason::Error));
}
