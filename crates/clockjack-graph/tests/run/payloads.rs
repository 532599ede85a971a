//! Who copies a payload, and who may take it: seen by the addresses of texts.

use std::sync::{Arc, Mutex};

use clockjack_graph::{
    Binder, Clock, CommitLog, Component, Config, ConfigError, ConfigField, ConfigKind, Data,
    DataError, Descriptor, Execute, ExecuteShared, Failure, GraphContext, Input, InputPort, Need,
    Output, OutputPort, Registry, RunOptions, RunReport,
};
use clockjack_testkit::ManualTime;

use crate::{acts::compile, teller::graph};

/// Who has seen the text of which epoch at which address.
type Addresses = Arc<Mutex<Vec<(String, usize)>>>;

/// Publishes a text, or looks at one, or takes one.
struct Handles {
    seen: Addresses,
    takes: bool,
    a: Input<String>,
    out: Output<String>,
}

impl Handles {
    const A: InputPort<String> = InputPort::new("a");
    const OUT: OutputPort<String> = OutputPort::new("out");

    fn note(&self, cx: &GraphContext<'_>, address: usize) {
        self.seen.lock().unwrap().push((cx.component_id().into(), address));
    }
}

impl Component for Handles {
    const TYPE: &'static str = "handles";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
            .input(Self::A, Need::Optional)
            .output(Self::OUT)
            .config(ConfigField::new("takes", ConfigKind::Bool))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        (self.a, self.out) = (ports.input(Self::A), ports.output(Self::OUT));
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.takes = config.get("takes")?.unwrap_or(false);
        Ok(())
    }
}

impl Execute for Handles {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if cx.component_id() == "src" {
            let text = format!("a text of epoch {}", cx.epoch());
            self.note(cx, text.as_ptr() as usize);
            return Ok(cx.publish(self.out, text)?);
        }
        let expected = format!("a text of epoch {}", cx.epoch());
        if self.takes {
            let text = cx.take(self.a).ok_or_else(|| Failure::msg("it cannot be taken"))?;
            assert_eq!(text, expected);
            self.note(cx, text.as_ptr() as usize);
        } else {
            let text = cx.latest(self.a).expect("it was called for a text");
            assert_eq!(*text, expected);
            let address = text.as_ptr() as usize;
            self.note(cx, address);
        }
        Ok(())
    }
}

/// Runs `src` and one reader for each policy; returns what each of them saw, and the report.
fn run(policies: &[&str], takes: bool) -> (Vec<Vec<usize>>, RunReport) {
    let reader = |n: usize| {
        format!(
            "id: r{n}, type: handles, execution: {{ lane: main }}, config: {{ takes: {takes} }}, \
             event_sources: [{{ type: message, input: a }}], trigger_policy: {{ type: any_input }}"
        )
    };
    let mut components = vec![String::from("id: src, type: handles, execution: { lane: main }")];
    components.extend((0..policies.len()).map(reader));
    let edge = |(n, policy): (usize, &&str)| {
        format!("id: e{n}, kind: immediate, from: src.out, to: r{n}.a, policy: {{ {policy} }}")
    };
    let edges: Vec<String> = policies.iter().enumerate().map(edge).collect();
    let components: Vec<&str> = components.iter().map(String::as_str).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let text = graph("main: { type: event_loop }", &components, &edges);
    let seen = Addresses::default();
    let of_registry = Arc::clone(&seen);
    let types = Registry::new().register_with(move || Handles {
        seen: Arc::clone(&of_registry),
        takes: false,
        a: Input::default(),
        out: Output::default(),
    });
    let time = ManualTime::start();
    let options = RunOptions::steps(4).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    let seen = seen.lock().unwrap();
    let of = |id: String| {
        let mine = seen.iter().filter(|(who, _)| *who == id);
        mine.map(|(_, address)| *address).collect()
    };
    let mut addresses = vec![of("src".into())];
    addresses.extend((0..policies.len()).map(|n| of(format!("r{n}"))));
    (addresses, report)
}

fn n_copied(report: &RunReport, edge: &str) -> u64 {
    let found = report.metrics.get("runtime.channel.payload_copy_count", edge);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    found.map(|count| count as u64).expect("it is in the table")
}

#[test]
fn a_copy_is_made_for_each_reader_but_one() {
    let (seen, report) = run(&["copy_policy: shared_view", ""], false);
    assert_eq!((&seen[1], &seen[2]), (&seen[0], &seen[0]), "by default all readers share");
    assert_eq!(n_copied(&report, "e0") + n_copied(&report, "e1"), 0);

    let (seen, report) = run(&["copy_policy: copy", "copy_policy: copy"], false);
    assert!(seen[1].iter().zip(&seen[0]).all(|(mine, published)| mine != published));
    assert_eq!(seen[2], seen[0], "the last reader gets the payload itself");
    assert_eq!((n_copied(&report, "e0"), n_copied(&report, "e1")), (4, 0));

    let (seen, report) = run(&["", "copy_policy: copy"], false);
    assert_eq!(seen[1], seen[0]);
    assert!(seen[2].iter().zip(&seen[0]).all(|(mine, published)| mine != published));
    assert_eq!((n_copied(&report, "e0"), n_copied(&report, "e1")), (0, 4));

    let (seen, report) = run(&["copy_policy: copy"], false);
    assert_eq!(seen[1], seen[0], "one reader needs no copy");
    assert_eq!(n_copied(&report, "e0"), 0);
}

#[test]
fn a_text_can_be_taken_wherever_there_is_one_reader() {
    let (seen, report) = run(&["copy_policy: move_only"], true);
    assert_eq!(seen[1], seen[0]);
    assert_eq!(n_copied(&report, "e0"), 0);

    let (seen, report) = run(&["mode: latest"], true);
    assert_eq!(seen[1].len(), 4);
    assert_eq!(n_copied(&report, "e0"), 1, "then the port knows that its reader takes");
    assert_eq!(seen[1][1..], seen[0][1..], "the values themselves");

    let (seen, report) = run(&["copy_policy: copy", "copy_policy: copy"], true);
    assert_eq!((seen[1].len(), seen[2].len()), (4, 4), "each has a text of its own");
    assert_eq!(n_copied(&report, "e0"), 4);
}

/// A value that does not decode, so that nobody can copy it.
struct Opaque;

impl Data for Opaque {
    const SCHEMA: &'static str = "opaque";

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(1);
    }

    fn decode(_: &[u8]) -> Result<Self, DataError> {
        Err(DataError::new(Self::SCHEMA, "it does not decode"))
    }
}

/// Publishes opaque values, or tries to take them.
#[derive(Component, Default)]
#[component(type = "keeper")]
struct Keeper {
    #[input(optional)]
    a: Input<Opaque>,
    #[output]
    out: Output<Opaque>,
}

impl Execute for Keeper {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if cx.component_id() == "src" {
            return Ok(cx.publish(self.out, Opaque)?);
        }
        let is_taken = cx.take(self.a).is_some();
        if is_taken || cx.latest(self.a).is_none() {
            return Err(Failure::msg("a value that cannot be copied is shared"));
        }
        Ok(())
    }
}

#[test]
fn a_payload_that_cannot_be_copied_reaches_every_reader_in_every_epoch() {
    let reader = "type: keeper, execution: { lane: main }, event_sources: [{ type: message, \
                  input: a }], trigger_policy: { type: any_input }";
    let src = "id: src, type: keeper, execution: { lane: main }";
    let components = [src, &format!("id: r0, {reader}"), &format!("id: r1, {reader}")];
    let edge = |n: usize| {
        format!(
            "id: e{n}, kind: immediate, from: src.out, to: r{n}.a, policy: {{ copy_policy: copy }}"
        )
    };
    let text = graph("main: { type: event_loop }", &components, &[&edge(0), &edge(1)]);
    let time = ManualTime::start();
    let options = RunOptions::steps(8).clock(Clock::Virtual);
    let types = Registry::new().register::<Keeper>();
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.executions, 3 * 8, "src and both readers in each epoch");
    assert!(report.losses.is_empty(), "{:?}", report.losses);
}

/// Takes a text in calls that may overlap.
#[derive(Component, Default)]
#[component(type = "overlapping")]
struct Overlapping {
    #[input]
    a: Input<String>,
}

impl ExecuteShared for Overlapping {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        cx.take(self.a).map(drop).ok_or_else(|| Failure::msg("it cannot be taken"))
    }
}

#[test]
fn a_reader_whose_calls_may_overlap_takes_from_an_edge_that_copies() {
    let reader = "id: r, type: overlapping, execution: { lane: main }, event_sources: [{ type: \
                  message, input: a }], trigger_policy: { type: any_input }";
    let src = "id: src, type: says, execution: { lane: main }, config: { text: hello }";
    let edge = "id: e, kind: immediate, from: src.out, to: r.a, policy: { copy_policy: copy }";
    let text = graph("main: { type: event_loop }", &[src, reader], &[edge]);
    let time = ManualTime::start();
    let types = Registry::new().register::<Says>().register_shared::<Overlapping>();
    let options = RunOptions::steps(4).clock(Clock::Virtual);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    assert_eq!(report.executions, 2 * 4);
    assert_eq!(n_copied(&report, "e"), 4);
}

#[test]
fn a_long_payload_is_in_the_commit_log_once_for_all_edges_of_a_kind() {
    let n_in_log = |kind: &str, text: &str| {
        let edges: Vec<String> =
            (0..5).map(|n| format!("id: e{n}, kind: {kind}, from: src.out, to: r{n}.a")).collect();
        let reader = |n: usize| format!("id: r{n}, type: says, execution: {{ lane: main }}");
        let config = format!(", config: {{ text: {text} }}");
        let mut parts = vec![format!("id: src, type: says, execution: {{ lane: main }}{config}")];
        parts.extend((0..5).map(reader));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
        let graph_text = graph("main: { type: event_loop }", &parts, &edges);
        let (time, log) = (ManualTime::start(), CommitLog::in_memory());
        let types = Registry::new().register::<Says>();
        let options = RunOptions::steps(2).clock(Clock::Virtual).commit_log(&log);
        let run = compile(&graph_text, &types).start(time.system(), options).expect("it starts");
        time.block_on(run).expect("nothing fails");
        let bytes = log.bytes();
        bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count()
    };
    let long = "x".repeat(63) + "y";
    assert_eq!(n_in_log("immediate", &long), 2, "once in each epoch");
    assert_eq!(n_in_log("delay", &long), 1, "the second comes after the end");
    assert_eq!(n_in_log("immediate", &long[1..]), 10, "a short one is as short as a reference");
}

/// Publishes the text of its setting, if it has one.
#[derive(Component, Default)]
#[component(type = "says")]
struct Says {
    #[input(optional)]
    a: Input<String>,
    #[output]
    out: Output<String>,
    #[config(default = "")]
    text: String,
}

impl Execute for Says {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if self.text.is_empty() || cx.latest(self.a).is_some() {
            return Ok(());
        }
        Ok(cx.publish(self.out, self.text.clone())?)
    }
}
