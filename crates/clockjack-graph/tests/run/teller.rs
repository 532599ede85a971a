//! A component that reports everything: when it begins and ends, what it sees, what is refused.

use core::{cell::RefCell, hint::spin_loop};
use std::{
    sync::{Arc, Mutex},
    thread::{self, ThreadId, yield_now},
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Binder, Clock, CommitLog, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor,
    Execute, ExecuteShared, Failure, Graph, GraphContext, Input, InputPort, Need, Output,
    OutputPort, Parallel, Registry, RunError, RunOptions, RunReport, Stopper, describe::GraphFile,
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_testkit::ManualTime;

/// What a component has reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Begins,
    /// A value of this invocation.
    Saw(f64),
    /// The newest value at its input.
    Latest(Option<f64>),
    Refused,
    Ends(ThreadId),
}

/// What all components have reported, in order.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) lines: Vec<(u64, String, Said)>,
    stopper: Option<Stopper>,
    at_work: Vec<String>,
    /// The most invocations of one component at the same time.
    pub(crate) beside_itself: usize,
    /// The most components at the same time.
    pub(crate) beside_others: usize,
}

/// Shared by all tellers of a run.
#[derive(Clone, Default)]
pub(crate) struct Chronicle(Arc<Mutex<Story>>);

impl Chronicle {
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Story) -> R) -> R {
        look(&mut self.0.lock().unwrap())
    }

    fn say(&self, cx: &GraphContext<'_>, said: Said) {
        let (epoch, id) = (cx.epoch(), cx.component_id().to_owned());
        self.with(|story| match said {
            Said::Begins => {
                story.at_work.push(id.clone());
                let n_own = story.at_work.iter().filter(|one| **one == id).count();
                story.beside_itself = story.beside_itself.max(n_own);
                story.beside_others = story.beside_others.max(story.at_work.len());
                story.lines.push((epoch, id, said));
            }
            Said::Ends(_) => {
                let at = story.at_work.iter().position(|one| *one == id).unwrap();
                story.at_work.swap_remove(at);
                story.lines.push((epoch, id, said));
            }
            _ => story.lines.push((epoch, id, said)),
        });
    }
}

/// What a teller does.
#[derive(Clone, Copy, Default)]
struct Orders {
    /// Publications in each invocation.
    n: u64,
    fails_at: u64,
    stops_at: u64,
    /// It takes its time.
    dawdles: u64,
    converges_at: Option<u64>,
    /// Tasks in each invocation.
    tasks: u64,
}

/// A component that reports everything.
pub(crate) struct Teller {
    chronicle: Chronicle,
    orders: Orders,
    a: Input<f64>,
    out: Output<f64>,
}

impl Teller {
    const A: InputPort<f64> = InputPort::new("a");
    const OUT: OutputPort<f64> = OutputPort::new("out");

    fn new(chronicle: &Chronicle) -> Self {
        Self {
            chronicle: chronicle.clone(),
            orders: Orders::default(),
            a: Input::default(),
            out: Output::default(),
        }
    }

    fn tell(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let (say, orders) = (|cx: &_, said| self.chronicle.say(cx, said), self.orders);
        say(cx, Said::Begins);
        say(cx, Said::Latest(cx.latest(self.a).copied()));
        let seen: Vec<f64> = cx.drain(self.a).copied().collect();
        for value in seen {
            say(cx, Said::Saw(value));
        }
        for nth in 0..orders.n {
            #[expect(clippy::cast_precision_loss, reason = "both are small")]
            let value = cx.epoch() as f64 + nth as f64 / 10.0;
            if cx.publish(self.out, value).is_err() {
                say(cx, Said::Refused);
            }
        }
        for nth in 0..orders.tasks {
            #[expect(clippy::cast_precision_loss, reason = "it is small")]
            let value = nth as f64;
            if cx.submit_task(self.out, async move { Ok(value) }).is_err() {
                say(cx, Said::Refused);
            }
        }
        for _ in 0..orders.dawdles {
            yield_now();
            spin_loop();
        }
        if orders.stops_at == cx.epoch() {
            // On a pool it may run before the test has handed over what stops it.
            while !self.chronicle.with(|story| story.stopper.as_ref().map(Stopper::stop).is_some())
            {
                yield_now();
            }
        }
        if let (Some(at), Some(iteration)) = (orders.converges_at, cx.loop_iteration()) {
            let is_there = u64::from(iteration.index) + 1 >= at;
            cx.report_loop_convergence(is_there, None, "");
        }
        say(cx, Said::Ends(thread::current().id()));
        if orders.fails_at == cx.epoch() {
            return Err(Failure::msg("told to fail"));
        }
        Ok(())
    }
}

impl Component for Teller {
    const TYPE: &'static str = "teller";

    fn describe() -> Descriptor {
        let int = |name| ConfigField::new(name, ConfigKind::Int);
        Descriptor::new(Self::TYPE)
            .inputs(Self::A, Need::Optional)
            .output(Self::OUT)
            .config(int("n"))
            .config(int("fails_at"))
            .config(int("stops_at"))
            .config(int("dawdles"))
            .config(int("converges_at"))
            .config(int("tasks"))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.a = ports.input(Self::A);
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.orders = Orders {
            n: config.get("n")?.unwrap_or(1),
            fails_at: config.get("fails_at")?.unwrap_or(0),
            stops_at: config.get("stops_at")?.unwrap_or(0),
            dawdles: config.get("dawdles")?.unwrap_or(0),
            converges_at: config.get("converges_at")?,
            tasks: config.get("tasks")?.unwrap_or(0),
        };
        Ok(())
    }
}

impl Execute for Teller {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.tell(cx)
    }
}

thread_local! {
    /// Where a teller with overlapping invocations reports: it is created without arguments.
    static LISTENER: RefCell<Chronicle> = RefCell::default();
}

/// A teller whose invocations may overlap.
pub(crate) struct SharedTeller(Teller);

impl Default for SharedTeller {
    fn default() -> Self {
        Self(LISTENER.with_borrow(Teller::new))
    }
}

impl Component for SharedTeller {
    const TYPE: &'static str = "shared_teller";

    fn describe() -> Descriptor {
        Descriptor { component_type: Self::TYPE.into(), ..Teller::describe() }
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }
}

impl ExecuteShared for SharedTeller {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.tell(cx)
    }
}

/// A run of tellers.
pub(crate) struct Told {
    pub(crate) story: Story,
    pub(crate) result: Result<RunReport, RunError>,
    pub(crate) log: Vec<u8>,
}

impl Told {
    /// What a component has said, without beginnings and ends.
    pub(crate) fn saw(&self, id: &str) -> Vec<(u64, f64)> {
        let lines = self.story.lines.iter().filter(|(_, who, _)| who == id);
        let seen = lines.filter_map(|(epoch, _, said)| match said {
            Said::Saw(value) => Some((*epoch, *value)),
            _ => None,
        });
        seen.collect()
    }

    /// How often a component has said this.
    pub(crate) fn count(&self, id: &str, said: &Said) -> usize {
        self.story.lines.iter().filter(|(_, who, what)| who == id && what == said).count()
    }

    /// Who began, in order, in an epoch.
    pub(crate) fn began(&self, epoch: u64) -> Vec<&str> {
        let lines = self.story.lines.iter();
        let begun = lines.filter(|(at, _, said)| *at == epoch && *said == Said::Begins);
        begun.map(|(_, id, _)| id.as_str()).collect()
    }

    /// What happened, also if it ended in a failure.
    pub(crate) fn report(&self) -> &RunReport {
        match &self.result {
            Ok(report) => report,
            Err(error) => error.report().expect("it has begun"),
        }
    }

    /// A number of the report.
    pub(crate) fn metric(&self, name: &str, of: &str) -> u64 {
        let found = self.report().metrics.get(name, of);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        found.map(|value| value as u64).unwrap_or_else(|| panic!("no {name} of {of}"))
    }
}

fn compile(text: &str, chronicle: &Chronicle) -> Graph {
    let chronicle = chronicle.clone();
    LISTENER.set(chronicle.clone());
    let registry = Registry::new()
        .register_with(move || Teller::new(&chronicle))
        .register_shared::<SharedTeller>();
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn tell(
    system: &ActorSystem,
    text: &str,
    options: RunOptions,
    wait: impl FnOnce(clockjack_graph::GraphRun) -> Result<RunReport, RunError>,
) -> Told {
    let (chronicle, log) = (Chronicle::default(), CommitLog::in_memory());
    let run = compile(text, &chronicle).start(system, options.commit_log(&log));
    let run = run.unwrap();
    chronicle.with(|story| story.stopper = Some(run.stopper()));
    let result = wait(run);
    let story = chronicle.with(core::mem::take);
    Told { story, result, log: log.bytes() }
}

/// Runs a text in virtual time on one thread.
pub(crate) fn tell_alone(text: &str, options: RunOptions) -> Told {
    let time = ManualTime::start();
    tell(time.system(), text, options, |run| time.block_on(run))
}

/// Runs a text in virtual time on one thread, with so many steps of its stepped lanes.
pub(crate) fn tell_stepped(text: &str, options: RunOptions, n_steps: u64) -> Told {
    let time = ManualTime::start();
    tell(time.system(), text, options, |run| {
        (0..n_steps).for_each(|_| run.step());
        time.block_on(run)
    })
}

/// Runs a text in virtual time by so many.
pub(crate) fn tell_by(runtime: &Runtime, text: &str, options: RunOptions, workers: usize) -> Told {
    let options = options.clock(Clock::Virtual).workers(workers).parallel(Parallel::Always);
    tell(runtime.system(), text, options, |run| runtime.block_on(run))
}

/// Eight workers.
pub(crate) fn runtime() -> Runtime {
    let config = RuntimeConfig { workers: Some(8), ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("laws"), config).unwrap()
}

/// A text: lanes, components and edges, each a line.
pub(crate) fn graph(lanes: &str, components: &[&str], edges: &[&str]) -> String {
    let list =
        |lines: &[&str]| lines.iter().map(|line| format!("  - {{ {line} }}\n")).collect::<String>();
    let edges = if edges.is_empty() { "  []\n".into() } else { list(edges) };
    format!(
        "schema_version: 1\ngraph: {{ name: laws, kind: internal_test }}\nlanes: {{ {lanes} }}\n\
         components:\n{}edges:\n{edges}",
        list(components)
    )
}

/// A component in the lane `main` that is called in every epoch.
pub(crate) fn source(id: &str, more: &str) -> String {
    format!("id: {id}, type: teller, execution: {{ lane: main }}{more}")
}

/// A component in the lane `main` that is called for each message at its input.
pub(crate) fn reader(id: &str, more: &str) -> String {
    format!(
        "{}, event_sources: [{{ type: message, input: a }}], trigger_policy: {{ type: any_input }}",
        source(id, more)
    )
}
