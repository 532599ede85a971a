//! Components for tests, and short ways to run a text.

use std::sync::{Arc, Mutex};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Binder, CommitLog, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor,
    Execute, Failure, GraphContext, Input, InputPort, Need, Output, OutputPort, Parallel, Registry,
    RunError, RunOptions, RunReport,
    describe::{BoundaryRole, GraphFile},
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_testkit::ManualTime;

/// Publishes 1, 2, 3 and so on.
#[derive(Component, Default)]
#[component(type = "count", role = "input")]
pub(crate) struct Count {
    n: f64,
    #[output]
    out: Output<f64>,
}

impl Execute for Count {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1.0;
        cx.publish(self.out, self.n)?;
        Ok(())
    }
}

/// Adds what is at its inputs, times `k`, and fails or panics at a number if it is told to.
#[derive(Default)]
pub(crate) struct Add {
    k: f64,
    fails_at: Option<f64>,
    panics_at: Option<f64>,
    a: Input<f64>,
    b: Input<f64>,
    out: Output<f64>,
}

impl Add {
    const A: InputPort<f64> = InputPort::new("a");
    const B: InputPort<f64> = InputPort::new("b");
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Add {
    const TYPE: &'static str = "add";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE)
            .inputs(Self::A, Need::Required)
            .input(Self::B, Need::Optional)
            .output(Self::OUT)
            .config(ConfigField::new("k", ConfigKind::Float))
            .config(ConfigField::new("fails_at", ConfigKind::Float))
            .config(ConfigField::new("panics_at", ConfigKind::Float))
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.a = ports.input(Self::A);
        self.b = ports.input(Self::B);
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.k = config.get("k")?.unwrap_or(1.0);
        if self.k < 0.0 {
            return Err(ConfigError::new("k", "it is negative"));
        }
        self.fails_at = config.get("fails_at")?;
        self.panics_at = config.get("panics_at")?;
        Ok(())
    }
}

impl Execute for Add {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let (a, b) = (cx.latest(self.a).copied(), cx.latest(self.b).copied());
        let sum = self.k * (a.unwrap_or(0.0) + b.unwrap_or(0.0));
        cx.publish(self.out, sum)?;
        if a.is_some() && a == self.fails_at {
            return Err(Failure::msg("told to fail"));
        }
        assert!(a.is_none() || a != self.panics_at, "told to panic");
        Ok(())
    }
}

/// What has come out of a run: the epoch, who, and the value.
pub(crate) type Seen = Arc<Mutex<Vec<(u64, String, f64)>>>;

/// Keeps what comes.
pub(crate) struct Keep {
    seen: Seen,
    x: Input<f64>,
}

impl Keep {
    const IN: InputPort<f64> = InputPort::new("in");

    pub(crate) fn new(seen: &Seen) -> Self {
        Self { seen: Arc::clone(seen), x: Input::default() }
    }
}

impl Component for Keep {
    const TYPE: &'static str = "keep";

    fn describe() -> Descriptor {
        let this = Descriptor::new(Self::TYPE).role(BoundaryRole::Output);
        Descriptor { open_config: true, ..this.inputs(Self::IN, Need::Required) }
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.x = ports.input(Self::IN);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Keep {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let (epoch, id) = (cx.epoch(), cx.component_id().to_owned());
        for x in cx.drain(self.x) {
            self.seen.lock().unwrap().push((epoch, id.clone(), *x));
        }
        Ok(())
    }
}

/// The types of these tests; what `keep` gets goes to `seen`.
pub(crate) fn registry(seen: &Seen) -> Registry {
    let seen = Arc::clone(seen);
    Registry::new().register::<Count>().register::<Add>().register_with(move || Keep::new(&seen))
}

/// What a run has come to.
pub(crate) struct Ran {
    pub(crate) seen: Vec<(u64, String, f64)>,
    pub(crate) result: Result<RunReport, RunError>,
    pub(crate) log: Vec<u8>,
}

impl Ran {
    /// The values that came to a `keep`, with their epochs.
    pub(crate) fn at(&self, id: &str) -> Vec<(u64, f64)> {
        let mine = self.seen.iter().filter(|(_, who, _)| who == id);
        mine.map(|(epoch, _, x)| (*epoch, *x)).collect()
    }
}

/// Runs a text in virtual time on one thread.
pub(crate) fn run(text: &str, options: RunOptions) -> Ran {
    let (seen, log) = (Seen::default(), CommitLog::in_memory());
    let time = ManualTime::start();
    let file = GraphFile::parse("test.yaml", text).unwrap_or_else(|faults| {
        panic!("{faults}: {faults:#?}");
    });
    let graph = file.compile(&registry(&seen)).unwrap_or_else(|faults| {
        panic!("{faults}: {faults:#?}");
    });
    let run = graph.start(time.system(), options.commit_log(&log));
    let result = match run {
        Ok(run) => time.block_on(run),
        Err(error) => Err(error),
    };
    let seen = core::mem::take(&mut *seen.lock().unwrap());
    Ran { seen, result, log: log.bytes() }
}

/// Runs a text in virtual time on a pool, always shared.
pub(crate) fn run_on_pool(text: &str, options: RunOptions, workers: usize) -> Ran {
    let (seen, log) = (Seen::default(), CommitLog::in_memory());
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("pool"), config).expect("it starts");
    let file = GraphFile::parse("test.yaml", text).expect("it is right");
    let graph = file.compile(&registry(&seen)).expect("it is right");
    let options = options.commit_log(&log).workers(workers).parallel(Parallel::Always);
    let run = graph.start(rt.system(), options);
    let result = match run {
        Ok(run) => rt.block_on(run),
        Err(error) => Err(error),
    };
    let seen = core::mem::take(&mut *seen.lock().unwrap());
    Ran { seen, result, log: log.bytes() }
}
