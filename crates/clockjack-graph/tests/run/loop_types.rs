//! What the types of loops add to iterating: all or nothing, one call for all messages, one
//! iteration per epoch.

use std::sync::{Arc, Mutex};

use clockjack_graph::{
    Binder, Clock, CommitLog, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor,
    Execute, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Registry, RunError,
    RunOptions, RunReport, Snapshot,
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    parts::{Seen, registry},
    teller,
};

/// What members were called with: epoch, who, how many messages.
type Calls = Arc<Mutex<Vec<(u64, String, usize)>>>;

/// A member that counts its calls, which is its state, and publishes the count.
#[derive(Default)]
struct Member {
    calls: Calls,
    n: u64,
    fails_at: u64,
    converges_at: u64,
    a: Input<f64>,
    b: Input<f64>,
    out: Output<f64>,
    aside: Output<f64>,
}

impl Member {
    const A: InputPort<f64> = InputPort::new("a");
    const B: InputPort<f64> = InputPort::new("b");
    const OUT: OutputPort<f64> = OutputPort::new("out");
    const ASIDE: OutputPort<f64> = OutputPort::new("aside");
}

impl Component for Member {
    const TYPE: &'static str = "member";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
            .inputs(Self::A, Need::Optional)
            .inputs(Self::B, Need::Optional)
            .output(Self::OUT)
            .output(Self::ASIDE)
            .config(ConfigField::new("fails_at", ConfigKind::Int))
            .config(ConfigField::new("converges_at", ConfigKind::Int))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.a = ports.input(Self::A);
        self.b = ports.input(Self::B);
        self.out = ports.output(Self::OUT);
        self.aside = ports.output(Self::ASIDE);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.fails_at = config.get("fails_at")?.unwrap_or(0);
        self.converges_at = config.get("converges_at")?.unwrap_or(0);
        Ok(())
    }
}

impl Execute for Member {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1;
        let n_messages = cx.drain(self.a).count() + cx.drain(self.b).count();
        self.calls.lock().unwrap().push((cx.epoch(), cx.component_id().into(), n_messages));
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let n = self.n as f64;
        cx.publish(self.out, n)?;
        cx.publish(self.aside, n)?;
        cx.write_state(&format!("n of {}", cx.component_id()), n)?;
        if self.converges_at > 0 {
            cx.report_loop_convergence(self.n.is_multiple_of(self.converges_at), None, "");
        }
        if cx.epoch() == self.fails_at {
            return Err(Failure::msg("told to fail"));
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        let component_type = Self::TYPE.into();
        Ok(Some(Snapshot { component_type, version: 1, payload: self.n.to_le_bytes().into() }))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.n = u64::from_le_bytes(snapshot.payload.as_slice().try_into()?);
        Ok(())
    }
}

struct Ran {
    seen: Vec<(u64, f64)>,
    calls: Vec<(u64, String, usize)>,
    log: Vec<u8>,
    result: Result<RunReport, RunError>,
}

impl Ran {
    /// The state of a member at the end.
    fn state(&self, id: &str) -> u64 {
        let report = match &self.result {
            Ok(report) => report,
            Err(error) => error.report().expect("it has begun"),
        };
        let found = report.snapshots.iter().find(|(of, _)| of == id).expect("it has one");
        u64::from_le_bytes(found.1.payload.as_slice().try_into().unwrap())
    }
}

/// A source of so many messages an epoch, a loop of `x` and `y`, and what keeps the outputs of `y`.
fn run(policy: &str, x: &str, y: &str, epochs: u64) -> Ran {
    let keeps = "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
                 event_sources: [{ type: message, input: in }], \
                 trigger_policy: { type: any_input }";
    let member =
        |id: &str, source: &str, more: &str| format!("id: {id}, type: member, {source}{more}");
    let by = |inputs: &str| {
        format!(
            "event_sources: [{{ type: message, inputs: [{inputs}] }}], \
             trigger_policy: {{ type: any_input }}, "
        )
    };
    let queue = "policy: { mode: queue, capacity: 16 }";
    let mut text = teller::graph(
        "main: { type: event_loop }",
        &[
            "id: src, type: count, execution: { lane: main }, boundary: { role: input }",
            &member("x", &by("a, b"), x),
            &member("y", &by("a"), y),
            keeps,
        ],
        &[
            &format!("id: given, kind: immediate, from: src.out, to: x.a, {queue}"),
            &format!("id: there, kind: immediate, from: x.out, to: y.a, {queue}"),
            &format!("id: back, kind: immediate, from: y.out, to: x.b, {queue}"),
            &format!("id: result, kind: immediate, from: y.aside, to: out.in, {queue}"),
        ],
    );
    text += &format!(
        "composite_loops:\n  - {{ id: both, components: [x, y], loop_policy: {{ {policy} }} }}\n"
    );
    let (seen, calls) = (Seen::default(), Calls::default());
    let made_with = Arc::clone(&calls);
    let types: Registry = registry(&seen)
        .register_with(move || Member { calls: Arc::clone(&made_with), ..Member::default() });
    let (time, log) = (ManualTime::start(), CommitLog::in_memory());
    let options = RunOptions::steps(epochs).clock(Clock::Virtual).snapshots().commit_log(&log);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let result = time.block_on(run);
    let seen = seen.lock().unwrap().iter().map(|(epoch, _, n)| (*epoch, *n)).collect();
    let calls = calls.lock().unwrap().clone();
    Ran { seen, calls, log: log.bytes(), result }
}

const MAIN: &str = "execution: { lane: main }";
const GOES_ON: &str = "execution: { lane: main, on_error: continue }";

#[test]
fn a_transaction_that_fails_leaves_nothing_behind() {
    let fails = format!("{GOES_ON}, config: {{ fails_at: 2 }}");
    let ran = run("type: transaction, max_iterations: 1", MAIN, &fails, 3);
    let report = ran.result.as_ref().expect("it goes on");
    // In the second epoch `x` had run already: its state is rolled back, too.
    assert_eq!((ran.state("x"), ran.state("y")), (2, 2));
    assert_eq!(ran.seen, [(1, 1.0), (3, 2.0)]);
    assert!(!report.faults.is_empty());
    assert!(report.faults.iter().all(|fault| fault.component == "y" && fault.epoch == 2));
    assert_eq!(report.metrics.get("runtime.loop.error", "both"), Some(1.0));
    assert_eq!(report.metrics.total("runtime.state.committed_write_count"), 2.0);
    // Another type keeps what its members have become.
    let ran = run("type: coalesced_event, max_iterations: 1", MAIN, &fails, 3);
    assert_eq!((ran.state("x"), ran.state("y")), (3, 3));
}

#[test]
fn a_transaction_that_fails_leaves_no_commit_of_its_members_in_the_log() {
    let fails = format!("{GOES_ON}, config: {{ fails_at: 2 }}");
    let policy = "type: transaction, max_iterations: 1";
    // A call that fails publishes nothing. If `y` fails, `x` has published to it before.
    let first = run(policy, &fails, MAIN, 2);
    let second = run(policy, MAIN, &fails, 2);
    assert_eq!(first.log, second.log);
    let whole = run(policy, MAIN, MAIN, 2);
    assert!(whole.log.len() > second.log.len(), "the log has the commits of what succeeds");
    assert!(whole.log.starts_with(&second.log), "the two logs differ only in that epoch's end");
}

#[test]
fn the_states_before_a_transaction_that_ended_the_run_are_what_is_snapshotted() {
    let fails = format!("{MAIN}, config: {{ fails_at: 3 }}");
    let ran = run("type: transaction, max_iterations: 1", MAIN, &fails, 9);
    assert!(ran.result.is_err());
    // In the second epoch both were called for `src` and for the message from the loop.
    assert_eq!((ran.state("x"), ran.state("y")), (3, 3));
}

#[test]
fn a_coalesced_event_calls_a_member_once_for_all_that_has_come() {
    // `x` hears `src` and, in the second epoch, what `y` has published in the first.
    let calls_of_x = |policy: &str| {
        let ran = run(policy, MAIN, MAIN, 3);
        ran.result.expect("nothing fails");
        let mine = ran.calls.iter().filter(|(_, id, _)| id == "x");
        mine.map(|(epoch, _, n)| (*epoch, *n)).collect::<Vec<_>>()
    };
    let coalesced = calls_of_x("type: coalesced_event, max_iterations: 1");
    assert_eq!(coalesced, [(1, 1), (2, 2), (3, 2)]);
    let each = calls_of_x("type: transaction, max_iterations: 1");
    assert_eq!(&each[..3], [(1, 1), (2, 1), (2, 1)]);
}

#[test]
fn an_async_task_makes_one_iteration_an_epoch_and_shows_its_outputs_at_the_end() {
    let converges = format!("{MAIN}, config: {{ converges_at: 3 }}");
    let ran = run("type: async_task, max_iterations: 10", MAIN, &converges, 7);
    let report = ran.result.as_ref().expect("nothing fails");
    let iterations: Vec<u64> =
        ran.calls.iter().filter(|(_, id, _)| id == "y").map(|(epoch, ..)| *epoch).collect();
    assert!(iterations.is_sorted());
    assert!(!ran.seen.is_empty());
    assert!(ran.seen.iter().all(|(epoch, _)| *epoch > 1), "it was held: {:?}", ran.seen);
    let n_epochs = ran.calls.iter().map(|(epoch, ..)| epoch).max().copied();
    assert_eq!(n_epochs, Some(7));
    assert_eq!(report.metrics.get("runtime.loop.iterations", "both"), Some(7.0));
}

/// A source, a loop of two members that do what they are told, and what keeps what `y` publishes.
fn acting(src: &str, policy: &str, on_error: &str) -> String {
    let member = |id: &str| {
        format!(
            "id: {id}, type: acts, execution: {{ lane: main, on_error: {on_error} }}, \
             event_sources: [{{ type: message, input: a }}], trigger_policy: {{ type: any_input }}"
        )
    };
    let queue = "policy: { mode: queue, capacity: 16 }";
    let text = teller::graph(
        "main: { type: event_loop }",
        &[
            &format!("id: src, type: acts, execution: {{ lane: main }}{src}"),
            &member("x"),
            &member("y"),
            "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
             event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input }",
        ],
        &[
            &format!("id: in, kind: immediate, from: src.out, to: x.a, {queue}"),
            &format!("id: there, kind: immediate, from: x.out, to: y.a, {queue}"),
            &format!("id: back, kind: immediate, from: y.out, to: x.a, {queue}"),
            &format!("id: result, kind: immediate, from: y.out, to: out.in, {queue}"),
        ],
    );
    text + &format!(
        "composite_loops:\n  - {{ id: both, components: [x, y], loop_policy: {{ {policy} }} }}\n"
    )
}

#[test]
fn an_async_task_goes_on_although_the_next_tick_is_far_away() {
    let far = ", event_sources: [{ type: timer, period_ms: 10000 }]";
    let text = acting(far, "type: async_task, max_iterations: 4", "fail_fast");
    let act: Act = Arc::new(|cx, a, out| {
        let n = cx.latest(a).copied().unwrap_or(0.0);
        Ok(cx.publish(out, n + 1.0)?)
    });
    let (time, seen) = (ManualTime::start(), Seen::default());
    let options = RunOptions::until_stopped().clock(Clock::Wall);
    let graph = compile(&text, &with_acts(registry(&seen), act));
    let run = graph.start(time.system(), options).expect("it starts");
    time.settle();
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|(epoch, _, n)| (*epoch, *n)).collect();
    assert_eq!(seen, [(4, 3.0), (4, 5.0), (4, 7.0), (4, 9.0)]);
    run.stop();
    time.block_on(run).expect("nothing fails");
}

#[test]
fn what_a_call_has_written_stays_when_the_next_one_of_its_step_fails() {
    let read = Arc::new(Mutex::new(vec![]));
    let noted = Arc::clone(&read);
    let act: Act = Arc::new(move |cx, a, out| {
        let epoch = cx.epoch();
        match (cx.component_id(), cx.latest(a).copied()) {
            ("src", _) => {
                noted.lock().unwrap().push(cx.state::<f64>("x").copied());
                let all = if epoch == 1 { &[1.0, 2.0][..] } else { &[] };
                all.iter().try_for_each(|x| Ok(cx.publish(out, *x)?))
            }
            ("x", Some(x)) => {
                cx.write_state("x", x)?;
                if x < 2.0 { Ok(()) } else { Err(Failure::msg("told to fail")) }
            }
            _ => Ok(()),
        }
    });
    let text = acting("", "type: fixed_point, max_iterations: 4", "continue");
    let time = ManualTime::start();
    let graph = compile(&text, &with_acts(registry(&Seen::default()), act));
    let options = RunOptions::steps(3).clock(Clock::Virtual);
    let run = graph.start(time.system(), options).expect("it starts");
    time.block_on(run).expect("it goes on");
    assert_eq!(*read.lock().unwrap(), [None, Some(1.0), Some(1.0)]);
}
