//! Graphs: a hand-written and a derived component, in code, from a file, and the whole command.

use std::{fs, path::Path};

use clockjack::{
    graph::{
        Binder, Clock, CommitLog, Component, Config, ConfigError, ConfigField, ConfigKind,
        Descriptor, Edge, Execute, Failure, Graph, GraphContext, GraphFile, Input, InputPort, Lane,
        Need, Output, OutputPort, Registry, RunOptions, RunStopReason, Setup, Trigger,
    },
    prelude::*,
};

#[derive(Default)]
struct Gain {
    x: Input<f64>,
    y: Output<f64>,
    k: f64,
}

impl Execute for Gain {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(x) = cx.latest(self.x).copied() {
            cx.publish(self.y, self.k * x)?;
        }
        Ok(())
    }
}

// The code that the derive would generate.
impl Gain {
    const X: InputPort<f64> = InputPort::new("x");
    const Y: OutputPort<f64> = OutputPort::new("y");
}

impl Component for Gain {
    const TYPE: &'static str = "gain";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
            .input(Self::X, Need::Required)
            .output(Self::Y)
            .config(ConfigField::new("k", ConfigKind::Float))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.x = ports.input(Self::X);
        self.y = ports.output(Self::Y);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.k = config.get("k")?.unwrap_or(1.0);
        Ok(())
    }
}

/// The same, derived.
#[derive(Component, Default)]
#[component(type = "derived_gain")]
struct DerivedGain {
    #[input]
    x: Input<f64>,
    #[output]
    y: Output<f64>,
    #[config(default = 1.0)]
    k: f64,
}

impl Execute for DerivedGain {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(x) = cx.latest(self.x).copied() {
            cx.publish(self.y, self.k * x)?;
        }
        Ok(())
    }
}

fn registry() -> Registry {
    Registry::standard().register::<Gain>().register::<DerivedGain>()
}

/// Two amplifiers in a row, on a lane of this kind.
fn cell(lane: &str) -> String {
    format!(
        "schema_version: 1
graph: {{ name: cell }}
lanes:
  main: {{ type: {lane} }}
components:
  - id: src
    type: input
    execution: {{ lane: main }}
    boundary: {{ role: input }}
    config: {{ pattern: none }}
  - id: a
    type: gain
    event_sources: [{{ type: message, input: x }}]
    trigger_policy: {{ type: any_input }}
    execution: {{ lane: main }}
    config: {{ k: 2.0 }}
  - id: b
    type: derived_gain
    event_sources: [{{ type: message, input: x }}]
    trigger_policy: {{ type: any_input }}
    execution: {{ lane: main }}
    config: {{ k: 3.0 }}
  - id: out
    type: output
    event_sources: [{{ type: message, input: in }}]
    trigger_policy: {{ type: any_input }}
    execution: {{ lane: main }}
    boundary: {{ role: output }}
edges:
  - {{ id: fed, kind: immediate, from: src.out, to: a.x }}
  - {{ id: twice, kind: immediate, from: a.y, to: b.x }}
  - {{ id: six_times, kind: immediate, from: b.y, to: out.in }}
"
    )
}

/// Writes a file of this name and returns its path.
fn written(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("a path of text").to_owned()
}

#[test]
fn a_graph_in_code_runs_on_the_threads_of_a_runtime() -> Result<(), Box<dyn core::error::Error>> {
    let rt = Runtime::new("loop")?;
    let mut g = Graph::builder("loop");
    g.lane("control", Lane::fixed_rate(Duration::from_millis(10)));
    let tick = g.add("tick", DerivedGain::default(), Setup::on("control"));
    let a = g.add("a", Gain::default(), Setup::on("control").trigger(Trigger::AnyInput));
    g.connect(a.out(Gain::Y), tick.input(DerivedGain::X), Edge::delay());
    g.connect(tick.out(DerivedGain::Y), a.input(Gain::X), Edge::immediate());
    let report = rt.block_on(g.build()?.start(rt.system(), RunOptions::steps(1000))?)?;
    assert_eq!((report.stop, report.epochs), (RunStopReason::TickBound, 1000));
    Ok(())
}

#[test]
fn a_graph_from_a_file_is_fed_from_outside_and_stopped() -> Result<(), Box<dyn core::error::Error>>
{
    let rt = Runtime::new("cell")?;
    let file = written("gain-fed.yaml", &cell("event_loop"));
    let graph = GraphFile::read(file)?.compile(&registry())?;
    let run = graph.start(rt.system(), RunOptions::until_stopped())?;
    run.feed::<f64>("a.x")?.publish(1.0)?;
    assert!(run.feed::<i64>("a.x").is_err(), "it carries another type");
    run.stop();
    assert_eq!(rt.block_on(run)?.stop, RunStopReason::StopRequested);
    Ok(())
}

#[test]
fn a_graph_from_a_file_runs_in_virtual_time() -> Result<(), Box<dyn core::error::Error>> {
    let text = cell("fixed_rate, period_ms: 10").replace("none", "constant, start: 7.0");
    let graph = GraphFile::parse("cell.yaml", &text)?.compile(&registry())?;
    let time = clockjack::testkit::ManualTime::start();
    let log = CommitLog::in_memory();
    let options = RunOptions::steps(100).clock(Clock::Virtual).commit_log(&log);
    let report = time.block_on(graph.start(time.system(), options)?)?;
    assert_eq!(report.component("out").map(|out| out.executions), Some(100));
    let has = |number: f64| log.bytes().windows(8).any(|bytes| bytes == number.to_le_bytes());
    assert!(has(14.0) && has(42.0), "2 * 7 and 3 * 14 are in the log");
    Ok(())
}

#[test]
fn the_whole_command_knows_the_components() {
    let file = written("gain-cell.yaml", &cell("event_loop"));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = clockjack_cli::Streams::new(&mut out, &mut err);
    // A program says `clockjack_cli::main(registry())`.
    let code = clockjack_cli::run(&registry(), ["cell", "check", &file], &mut streams);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&err));
}
