//! Lanes on threads: which component is called where, what was requested from the operating system,
//! and a commit log for each lane with its own clock.

use core::{cell::RefCell, time::Duration};
use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    sync::{Arc, Mutex, mpsc},
    thread::{self, ThreadId},
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, Component, Execute, Failure, Graph, GraphContext, Input, Output, Registry,
    RunError, RunOptions, RunReport, RunStopReason,
    describe::GraphFile,
    run::{LaneReport, commit_log::MAGIC},
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_testkit::ManualTime;

use crate::teller::graph;

/// How long a thread without work has to end.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a component has seen on the thread on which it was called.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    who: String,
    thread: ThreadId,
    name: Option<String>,
    pub(crate) processors: String,
    pub(crate) niceness: i64,
    pub(crate) policy: u64,
}

/// Everything that was seen, and who is notified of threads that end.
#[derive(Default)]
pub(crate) struct Log {
    seen: Vec<Seen>,
    got: Vec<(String, f64)>,
    ends: Option<mpsc::Sender<ThreadId>>,
}

pub(crate) type Shared = Arc<Mutex<Log>>;

/// Reports the end of its thread.
struct Farewell(mpsc::Sender<ThreadId>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

thread_local! {
    static FAREWELL: RefCell<Option<Farewell>> = const { RefCell::new(None) };
}

/// A component that records where it is called, and passes a number on.
#[derive(Component)]
#[component(type = "look")]
struct Look {
    log: Shared,
    n: f64,
    #[input(optional, multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl Execute for Look {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let who = cx.component_id().to_owned();
        let mut log = self.log.lock().unwrap();
        log.got.extend(cx.drain(self.a).map(|x| (who.clone(), *x)));
        let (thread, name) = (thread::current().id(), thread::current().name().map(str::to_owned));
        let (processors, niceness, policy) = of_this_thread();
        log.seen.push(Seen { who, thread, name, processors, niceness, policy });
        if let Some(ends) = &log.ends {
            let _ = FAREWELL.try_with(|farewell| {
                farewell.borrow_mut().get_or_insert_with(|| Farewell(ends.clone()));
            });
        }
        self.n += 1.0;
        cx.publish(self.out, self.n)?;
        Ok(())
    }
}

/// The processors, the niceness and the class of this thread, where there is a `/proc` to tell.
pub(crate) fn of_this_thread() -> (String, i64, u64) {
    let of = |name: &str| fs::read_to_string(format!("/proc/thread-self/{name}"));
    let (Ok(status), Ok(stat)) = (of("status"), of("stat")) else { return Default::default() };
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    // Behind the name, which may contain anything, comes the third field.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let niceness = fields[19 - 3].parse().unwrap();
    (line.unwrap().trim().into(), niceness, fields[41 - 3].parse().unwrap())
}

pub(crate) fn compile(text: &str, log: &Shared) -> Graph {
    let log = Arc::clone(log);
    let make =
        move || Look { log: Arc::clone(&log), n: 0.0, a: Input::default(), out: Output::default() };
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let registry = Registry::new().register_with(make);
    file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

pub(crate) fn runtime() -> Runtime {
    let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("lanes"), config).unwrap()
}

/// A source in a lane.
pub(crate) fn look(id: &str, lane: &str) -> String {
    format!("id: {id}, type: look, execution: {{ lane: {lane} }}")
}

/// A component in a lane that is called for each message.
fn reads(id: &str, lane: &str) -> String {
    format!(
        "{}, event_sources: [{{ type: message, input: a }}], trigger_policy: {{ type: any_input }}",
        look(id, lane)
    )
}

/// A lane of a millisecond by the wall clock.
pub(crate) fn wall(id: &str, more: &str) -> String {
    format!("{id}: {{ type: fixed_rate, period_ms: 1, wall_clock_enabled: true{more} }}")
}

/// One component in the lane `own`, run for three ticks by the wall clock.
pub(crate) fn run_lane(lane: &str, clock: Clock) -> (Vec<Seen>, Result<RunReport, RunError>) {
    let (text, log) = (graph(lane, &[&look("x", "own")], &[]), Shared::default());
    let rt = runtime();
    let options = RunOptions::steps(3).clock(clock);
    let run = compile(&text, &log).start(rt.system(), options);
    let result = run.and_then(|run| rt.block_on(run));
    let seen = core::mem::take(&mut log.lock().unwrap().seen);
    (seen, result)
}

pub(crate) fn lane_of<'r>(report: &'r RunReport, id: &str) -> &'r LaneReport {
    report.lanes.iter().find(|lane| lane.lane == id).unwrap()
}

/// The reason for which a field is advice.
pub(crate) fn why<'r>(lane: &'r LaneReport, field: &str) -> &'r str {
    let advice = lane.advisory.iter().find(|advice| advice.field == field);
    advice.map_or_else(|| panic!("`{field}` is no advice: {lane:?}"), |advice| &advice.why)
}

#[test]
fn each_lane_of_the_wall_clock_has_a_thread_and_it_ends_with_the_run() {
    let lanes = format!(
        "main: {{ type: event_loop }}, {}, {}, iso: {{ type: isolated_thread }}",
        wall("fast", ""),
        wall("slow", ", thread_name: by-name")
    );
    let parts = [look("m", "main"), look("f", "fast"), look("g", "fast"), look("s", "slow")];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let iso = look("i", "iso");
    let text = graph(&lanes, &[&parts[..], &[&iso]].concat(), &[]);
    let rt = runtime();
    for round in 0..20 {
        let (log, (ends, ended)) = (Shared::default(), mpsc::channel());
        log.lock().unwrap().ends = Some(ends);
        let options = RunOptions::steps(4).clock(Clock::Wall);
        let run = compile(&text, &log).start(rt.system(), options).unwrap();
        let threads: Vec<bool> = run.lanes().iter().map(|lane| lane.has_thread).collect();
        assert_eq!(threads, [false, true, true, true]);
        let report = rt.block_on(run).unwrap();
        assert_eq!(
            lane_of(&report, "slow").enforced,
            ["period_ms", "wall_clock_enabled", "thread_name"]
        );
        let mut log = log.lock().unwrap();
        // Those of the workers stay.
        log.ends = None;
        let threads_of = |who: &[&str]| -> BTreeSet<String> {
            let mine = log.seen.iter().filter(|seen| who.contains(&seen.who.as_str()));
            mine.map(|seen| format!("{:?} {:?}", seen.thread, seen.name)).collect()
        };
        let (fast, slow, iso) = (threads_of(&["f", "g"]), threads_of(&["s"]), threads_of(&["i"]));
        for (threads, name) in [(&fast, "fast"), (&slow, "by-name"), (&iso, "iso")] {
            assert_eq!(threads.len(), 1, "round {round}: {threads:?}");
            assert!(threads.iter().all(|one| one.ends_with(&format!("Some({name:?})"))));
            assert!(threads.is_disjoint(&threads_of(&["m"])), "it is nobody else's");
        }
        let mut left: Vec<ThreadId> =
            log.seen.iter().filter(|seen| seen.who != "m").map(|seen| seen.thread).collect();
        left.sort_by_key(|id| format!("{id:?}"));
        left.dedup();
        assert_eq!(left.len(), 3);
        while !left.is_empty() {
            let gone = ended.recv_timeout(LONG).expect("its thread ends");
            left.retain(|id| *id != gone);
        }
    }
}

/// Two components that wait for each other.
const RING: [&str; 2] =
    ["id: e, kind: delay, from: r.out, to: s.a", "id: f, kind: delay, from: s.out, to: r.a"];

#[test]
fn a_bounded_run_ends_with_its_lanes_though_others_wait() {
    let lanes = format!("main: {{ type: event_loop }}, {}", wall("own", ""));
    let text = graph(&lanes, &[&look("x", "own"), &reads("r", "main"), &reads("s", "main")], &RING);
    let rt = runtime();
    for _ in 0..20 {
        let (log, options) = (Shared::default(), RunOptions::steps(5).clock(Clock::Wall));
        let run = compile(&text, &log).start(rt.system(), options).unwrap();
        let report = rt.block_on(run).unwrap();
        assert_eq!((report.stop, report.epochs), (RunStopReason::TickBound, 5 + 1));
    }
}

#[test]
fn a_run_for_some_time_ends_though_nothing_comes() {
    let lanes = "main: { type: event_loop }";
    let text = graph(lanes, &[&reads("r", "main"), &reads("s", "main")], &RING);
    let options = RunOptions::run_for(Duration::from_millis(5)).clock(Clock::Wall);
    let (time, log) = (ManualTime::start(), Shared::default());
    let before = time.now();
    let run = compile(&text, &log).start(time.system(), options).unwrap();
    let report = time.block_on(run).unwrap();
    assert_eq!((report.stop, report.epochs), (RunStopReason::DurationBound, 1));
    assert_eq!(time.now().since(before), Duration::from_millis(5));
}

#[test]
fn two_runs_of_a_graph_share_no_thread() {
    let text = graph(&wall("own", ""), &[&look("x", "own")], &[]);
    let (rt, logs) = (runtime(), [Shared::default(), Shared::default()]);
    let options = || RunOptions::steps(5).clock(Clock::Wall);
    let [one, other] =
        logs.each_ref().map(|log| compile(&text, log).start(rt.system(), options()).unwrap());
    rt.block_on(one).unwrap();
    rt.block_on(other).unwrap();
    let [one, other] = logs.map(|log| log.lock().unwrap().seen[0].thread);
    assert_ne!(one, other);
}

#[test]
fn a_host_without_threads_says_so_and_the_lane_ticks_all_the_same() {
    let text = graph(&wall("own", ", thread_name: t"), &[&look("x", "own")], &[]);
    let (time, log) = (ManualTime::start(), Shared::default());
    let options = RunOptions::steps(3).clock(Clock::Wall);
    let run = compile(&text, &log).start(time.system(), options).unwrap();
    let report = time.block_on(run).unwrap();
    let lane = lane_of(&report, "own");
    assert!(!lane.has_thread);
    assert!(why(lane, "thread_name").contains("no threads for t"), "{lane:?}");
    assert_eq!((report.epochs, report.elapsed_ns), (3, 2_000_000));

    let insists = text.replace("thread_name: t", "thread_name: t, on_policy_error: fail");
    let options = RunOptions::steps(3).clock(Clock::Wall);
    let refused = compile(&insists, &log).start(time.system(), options).unwrap_err();
    assert!(refused.to_string().starts_with("lane `own` has no thread of its own: "), "{refused}");
}

/// All that can be asked for: what is not there, and what may not be had.
const WISHES: &str = ", nice_priority: 3, cpu_affinity: [1023], rt_policy: fifo, rt_priority: 1\
                      , on_policy_error: fail";

#[test]
fn in_simulated_time_nothing_is_asked_of_the_operating_system() {
    let iso = format!("own: {{ type: isolated_thread{WISHES} }}");
    for (lane, has_thread) in [(wall("own", WISHES), false), (iso, true)] {
        let (seen, result) = run_lane(&lane, Clock::Virtual);
        let report = result.unwrap();
        let lane = lane_of(&report, "own");
        assert_eq!(lane.has_thread, has_thread);
        for field in ["cpu_affinity", "nice_priority", "rt_policy", "rt_priority"] {
            assert_eq!(why(lane, field), "the run is in simulated time");
        }
        assert_eq!(seen.len(), 3);
        let here = of_this_thread();
        for seen in seen {
            assert_eq!((seen.processors, seen.niceness, seen.policy), here, "{}", seen.who);
        }
    }
}

/// The next number of a log.
fn number(rest: &mut &[u8]) -> u64 {
    let (mut n, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first().expect("it is whole");
        *rest = after;
        n |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            return n;
        }
    }
}

/// So many bytes as the next number of a log says.
fn bytes<'l>(rest: &mut &'l [u8]) -> &'l [u8] {
    let length = usize::try_from(number(rest)).unwrap();
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    bytes
}

/// A record of a log: its tag, its edge, time or count, and its value.
pub(crate) type Record = (char, u64, Option<f64>);

/// The lane of a log, and its records.
pub(crate) fn records(log: &[u8]) -> (Option<String>, Vec<Record>) {
    let mut rest = log.strip_prefix(MAGIC).expect("it begins as all do");
    bytes(&mut rest);
    let (mut lane, mut records) = (None, Vec::new());
    while let Some((tag, after)) = rest.split_first() {
        rest = after;
        match tag {
            b'L' => lane = Some(String::from_utf8(bytes(&mut rest).into()).unwrap()),
            b'E' | b'B' => {
                number(&mut rest);
                records.push((char::from(*tag), number(&mut rest), None));
            }
            tag => {
                let edge = number(&mut rest);
                let last = bytes(&mut rest).last_chunk().expect("a number");
                records.push((char::from(*tag), edge, Some(f64::from_le_bytes(*last))));
            }
        }
    }
    (lane, records)
}

#[test]
fn each_lane_of_the_wall_clock_has_a_log_with_what_came_to_it_in_order() {
    let lanes = format!("main: {{ type: event_loop }}, {}, {}", wall("p", ""), wall("q", ""));
    let policy = "policy: { mode: queue, capacity: 4096, overflow: drop_oldest }";
    let (e, f) = (
        format!("id: e, kind: delay, from: a.out, to: rb.a, {policy}"),
        format!("id: f, kind: async, from: b.out, to: ra.a, {policy}"),
    );
    let sources = [look("m", "main"), look("a", "p"), look("b", "q")];
    let [m, a, b] = sources.each_ref().map(String::as_str);
    let text = graph(&lanes, &[m, a, b, &reads("ra", "p"), &reads("rb", "q")], &[&e, &f]);
    let (rt, log, parts) = (runtime(), Shared::default(), CommitLog::in_memory());
    let options = RunOptions::steps(40).clock(Clock::Wall).commit_log(&parts);
    let run = compile(&text, &log).start(rt.system(), options).unwrap();
    rt.block_on(run).unwrap();
    let log = log.lock().unwrap();
    let (lane, own) = records(&parts.bytes());
    assert_eq!((lane, own.iter().filter(|record| record.0 == 'E').count()), (None, 40));
    assert!(own.iter().all(|record| record.0 == 'E'), "nothing of others is there: {own:?}");
    let mut n_came = 0;
    for (lane, who, edge) in [("p", "ra", 1), ("q", "rb", 0)] {
        let (of, records) = records(&parts.lane_bytes(lane));
        assert_eq!(of.as_deref(), Some(lane));
        let times: Vec<u64> =
            records.iter().filter(|record| record.0 == 'E').map(|record| record.1).collect();
        assert_eq!(times.len(), 40);
        assert!(times.is_sorted(), "{times:?}");
        let came: Vec<f64> = records
            .iter()
            .filter(|record| record.0 == 'A' && record.1 == edge)
            .map(|record| record.2.unwrap())
            .collect();
        let got: Vec<f64> =
            log.got.iter().filter(|(of, _)| of == who).map(|(_, value)| *value).collect();
        n_came += came.len();
        assert_eq!(came, got, "what came to `{who}` is what it got");
        let n_others = records.iter().filter(|record| !['E', 'A'].contains(&record.0)).count();
        assert_eq!(n_others, 0, "what it publishes to others stands in their logs");
    }
    assert!(n_came > 0, "whoever is later gets what the other has published");
}

#[test]
fn a_log_to_a_writer_needs_one_for_each_lane_of_the_wall_clock() {
    #[derive(Clone, Default)]
    struct Bytes(Arc<Mutex<Vec<u8>>>);
    impl Write for Bytes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lanes = format!("main: {{ type: event_loop }}, {}", wall("own", ""));
    let text = graph(&lanes, &[&look("m", "main"), &look("x", "own")], &[]);
    let (rt, log, one, own) = (runtime(), Shared::default(), Bytes::default(), Bytes::default());
    let start = |log_to: &CommitLog, clock| {
        let options = RunOptions::steps(2).clock(clock).commit_log(log_to);
        compile(&text, &log).start(rt.system(), options)
    };
    let refused = start(&CommitLog::to(one.clone()), Clock::Wall).unwrap_err();
    assert!(refused.to_string().contains("no writer for lane `own`"), "{refused}");
    let both = CommitLog::to(one.clone()).lane_to("own", own.clone());
    rt.block_on(start(&both, Clock::Wall).unwrap()).unwrap();
    both.flush().unwrap();
    let of = |bytes: &Bytes| records(&bytes.0.lock().unwrap()).0;
    assert_eq!((of(&one), of(&own)), (None, Some("own".into())));
    // In simulated time there is one domain, and one log.
    let alone = CommitLog::to(Bytes::default());
    rt.block_on(start(&alone, Clock::Virtual).unwrap()).unwrap();
}
