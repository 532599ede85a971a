//! A component that does what its settings say, and runs of it.

use core::{cell::RefCell, time::Duration};
use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Failure, GraphContext, GraphRun, Input, InputPort, Need, Output, OutputPort,
    Parallel, Registry, RunError, RunOptions, RunReport, Stamp, Stopper,
    compile::Plan,
    component::Snapshot,
    describe::{ClockDomain, GraphFile},
    run::{TraceLog, TraceRecord},
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_testkit::ManualTime;

/// The handle that stops the run, if there is one.
type Holder = Arc<Mutex<Option<Stopper>>>;

/// What a component does in an invocation.
#[derive(Clone, Copy, Default)]
struct Orders {
    publishes: u64,
    tasks: u64,
    /// Waits until this much time has passed.
    spins_us: u64,
    fails_at: u64,
    stops_at: u64,
    /// Checks whether the run is stopping.
    looks: bool,
    /// Publishes the same in every invocation.
    is_constant: bool,
    converges_at: u64,
    writes: bool,
    reads: bool,
    /// The timestamp of its values, and the increment per epoch, which may be negative.
    stamp_ms: Option<i64>,
    stamp_step_ms: i64,
    /// Cannot be reset, and does not support snapshots.
    is_stubborn: bool,
}

/// A component that does what its settings say.
#[derive(Default)]
pub(crate) struct Doer {
    orders: Orders,
    holder: Holder,
    a: Input<f64>,
    b: Input<f64>,
    out: Output<f64>,
}

impl Doer {
    const A: InputPort<f64> = InputPort::new("a");
    const B: InputPort<f64> = InputPort::new("b");
    const OUT: OutputPort<f64> = OutputPort::new("out");

    fn act(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let orders = self.orders;
        let epoch = f64::from(u32::try_from(cx.epoch()).expect("few epochs"));
        for nth in 0..orders.publishes {
            let nth = f64::from(u32::try_from(nth).expect("few"));
            let value = if orders.is_constant { 1.0 } else { epoch + nth / 8.0 };
            // Refusals are counted, and the tests check the counters.
            if let Some(at_ms) = orders.stamp_ms {
                let at_ms = at_ms + orders.stamp_step_ms * i64::try_from(cx.epoch()).expect("few");
                let ns = u64::try_from(at_ms).expect("after the beginning") * 1_000_000;
                let stamp = Stamp { domain: ClockDomain::Device, ns };
                let _ = cx.publish_stamped(self.out, value, stamp);
            } else {
                let _ = cx.publish(self.out, value);
            }
        }
        for _ in 0..orders.tasks {
            let _ = cx.submit_task(self.out, async { Ok(0.5) });
        }
        if orders.writes {
            let _ = cx.write_state("shared", epoch);
        }
        if orders.reads {
            let _ = cx.state::<f64>("shared");
        }
        if orders.stops_at == cx.epoch() {
            while self.holder.lock().unwrap().as_ref().map(Stopper::stop).is_none() {
                std::thread::yield_now();
            }
        }
        if orders.looks {
            let _ = cx.cancel_requested();
        }
        if let Some(iteration) = cx.loop_iteration()
            && orders.converges_at > 0
        {
            let is_there = u64::from(iteration.index) + 1 >= orders.converges_at;
            cx.report_loop_convergence(is_there, Some(2.0), "");
        }
        if orders.spins_us > 0 {
            spin(Duration::from_micros(orders.spins_us));
        }
        if orders.fails_at == cx.epoch() {
            return Err(Failure::msg("told to fail"));
        }
        Ok(())
    }
}

impl Component for Doer {
    const TYPE: &'static str = "doer";

    fn describe() -> Descriptor {
        let int = |name| ConfigField::new(name, ConfigKind::Int);
        let flag = |name| ConfigField::new(name, ConfigKind::Bool);
        Descriptor::new(Self::TYPE)
            .inputs(Self::A, Need::Optional)
            .input(Self::B, Need::Optional)
            .output(Self::OUT)
            .config(int("publishes"))
            .config(int("tasks"))
            .config(int("spins_us"))
            .config(int("fails_at"))
            .config(int("stops_at"))
            .config(flag("looks"))
            .config(flag("is_constant"))
            .config(int("converges_at"))
            .config(flag("writes"))
            .config(flag("reads"))
            .config(int("stamp_ms"))
            .config(int("stamp_step_ms"))
            .config(flag("is_stubborn"))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.a = ports.input(Self::A);
        self.b = ports.input(Self::B);
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.orders = Orders {
            publishes: config.get("publishes")?.unwrap_or(1),
            tasks: config.get("tasks")?.unwrap_or(0),
            spins_us: config.get("spins_us")?.unwrap_or(0),
            fails_at: config.get("fails_at")?.unwrap_or(0),
            stops_at: config.get("stops_at")?.unwrap_or(0),
            looks: config.get("looks")?.unwrap_or(false),
            is_constant: config.get("is_constant")?.unwrap_or(false),
            converges_at: config.get("converges_at")?.unwrap_or(0),
            writes: config.get("writes")?.unwrap_or(false),
            reads: config.get("reads")?.unwrap_or(false),
            stamp_ms: config.get("stamp_ms")?,
            stamp_step_ms: config.get("stamp_step_ms")?.unwrap_or(0),
            is_stubborn: config.get("is_stubborn")?.unwrap_or(false),
        };
        Ok(())
    }
}

impl Execute for Doer {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.act(cx)
    }

    fn reset(&mut self) -> Result<(), Failure> {
        if self.orders.is_stubborn { Err(Failure::msg("it stays as it is")) } else { Ok(()) }
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        if self.orders.is_stubborn {
            return Err(Failure::msg("it keeps that to itself"));
        }
        let component_type = Self::TYPE.into();
        Ok(Some(Snapshot { component_type, version: 1, payload: vec![7; 5] }))
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        // An invalid number is detected when the setting is applied.
        match config.get::<u64>("publishes") {
            Ok(Some(n)) if n > 100 => Err(ConfigError::new("publishes", "it is too much")),
            _ => Ok(()),
        }
    }

    fn restore(&mut self, _: &Snapshot) -> Result<(), Failure> {
        if self.orders.is_stubborn { Err(Failure::msg("it takes nothing")) } else { Ok(()) }
    }
}

thread_local! {
    /// The stop handle for a component whose invocations overlap: its constructor takes no
    /// arguments.
    static HOLDER: RefCell<Holder> = RefCell::default();
}

/// The same component with overlapping invocations.
pub(crate) struct SharedDoer(Doer);

impl Default for SharedDoer {
    fn default() -> Self {
        Self(Doer { holder: HOLDER.with_borrow(Arc::clone), ..Doer::default() })
    }
}

impl Component for SharedDoer {
    const TYPE: &'static str = "shared_doer";

    fn describe() -> Descriptor {
        Descriptor { component_type: Self::TYPE.into(), ..Doer::describe() }
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0.bind(ports);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.0.configure(config)
    }
}

impl ExecuteShared for SharedDoer {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.0.act(cx)
    }
}

#[expect(clippy::disallowed_methods, reason = "a call that takes long by the clock on the wall")]
fn spin(length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length {
        core::hint::spin_loop();
    }
}

/// A finished run.
pub(crate) struct Done {
    pub(crate) plan: Plan,
    /// As returned by the run.
    pub(crate) records: Vec<TraceRecord>,
    pub(crate) n_dropped: u64,
    pub(crate) result: Result<RunReport, RunError>,
}

impl Done {
    /// What happened, also if the run failed.
    pub(crate) fn report(&self) -> &RunReport {
        match &self.result {
            Ok(report) => report,
            Err(error) => error.report().expect("there is always one"),
        }
    }
}

/// The default number of trace records.
const RECORDS_MAX: usize = 1 << 16;

/// Starts a text; `before` may change the run before the test waits for it.
fn start(
    system: &ActorSystem,
    text: &str,
    (options, capacity): (RunOptions, usize),
    before: impl FnOnce(&GraphRun),
    wait: impl FnOnce(GraphRun) -> Result<RunReport, RunError>,
) -> Done {
    let holder = Holder::default();
    HOLDER.set(Arc::clone(&holder));
    let mine = Arc::clone(&holder);
    let registry = Registry::new()
        .register_with(move || Doer { holder: Arc::clone(&mine), ..Doer::default() })
        .register_shared::<SharedDoer>();
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let (plan, log) = (graph.plan().clone(), TraceLog::new(capacity));
    let result = match graph.start(system, options.trace(&log)) {
        Ok(run) => {
            *holder.lock().unwrap() = Some(run.stopper());
            before(&run);
            wait(run)
        }
        Err(error) => Err(error),
    };
    Done { plan, n_dropped: log.n_dropped(), records: log.take(), result }
}

/// Runs a text on one thread, with a clock that advances only while somebody waits.
pub(crate) fn alone(text: &str, options: RunOptions) -> Done {
    alone_with(text, options, |_| ())
}

/// The same, after a change of the run.
pub(crate) fn alone_with(text: &str, options: RunOptions, before: impl FnOnce(&GraphRun)) -> Done {
    let time = ManualTime::start();
    start(time.system(), text, (options, RECORDS_MAX), before, |run| time.block_on(run))
}

/// The same, with a trace of this many records.
pub(crate) fn alone_keeping(capacity: usize, text: &str, options: RunOptions) -> Done {
    let time = ManualTime::start();
    start(time.system(), text, (options, capacity), |_| (), |run| time.block_on(run))
}

/// Runs a text on a pool, by the wall clock if the options say so.
pub(crate) fn by(workers: usize, text: &str, options: RunOptions) -> Done {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("names"), config).expect("it starts");
    let options = options.workers(workers).parallel(Parallel::Always);
    start(rt.system(), text, (options, RECORDS_MAX), |_| (), |run| rt.block_on(run))
}

/// A text of lanes, components, edges and loops, one line each.
pub(crate) fn graph(lanes: &[&str], components: &[&str], edges: &[&str], loops: &[&str]) -> String {
    let list = |name: &str, lines: &[&str]| {
        let lines: String = lines.iter().map(|line| format!("  - {{ {line} }}\n")).collect();
        if lines.is_empty() { format!("{name}: []\n") } else { format!("{name}:\n{lines}") }
    };
    let lanes: String = lanes.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "schema_version: 1\ngraph: {{ name: named, kind: internal_test }}\nlanes:\n{lanes}{}{}{}",
        list("components", components),
        list("edges", edges),
        list("composite_loops", loops),
    )
}

/// A component that is executed in every epoch of its lane.
pub(crate) fn source(id: &str, lane: &str, config: &str) -> String {
    format!("id: {id}, type: doer, execution: {{ lane: {lane} }}, config: {{ {config} }}")
}

/// A component that is executed for each message at its input `a`.
pub(crate) fn reader(id: &str, lane: &str, config: &str) -> String {
    let triggers = "event_sources: [{ type: message, input: a }], \
                    trigger_policy: { type: any_input }";
    format!("{}, {triggers}", source(id, lane, config))
}
