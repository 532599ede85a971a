//! What components log and count in a parallel epoch is as on one thread.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::sync::{Arc, Condvar, Mutex};

use clockjack_graph::{
    Binder, Clock, CommitLog, Component, ComponentLog, Config, ConfigError, ConfigField,
    ConfigKind, Data, DataError, Descriptor, Execute, ExecuteShared, Failure, GraphContext, Input,
    InputPort, LogLevel, Need, Output, OutputPort, Parallel, Registry, RunOptions,
    describe::GraphFile,
    run::{Metric, RunPhase},
};
use clockjack_rt::Runtime;
use clockjack_testkit::ManualTime;

use crate::teller::{graph, runtime};

/// The component that fails.
const FAILS: &str = "b";

/// The epoch in which it does.
const LAST: u64 = 3;

/// Longer than any helper needs to start.
const LONG: Duration = Duration::from_secs(30);

/// How long a component waits that another one may overtake, but need not.
const PAUSE: Duration = Duration::from_millis(20);

/// Where the components meet.
#[derive(Default)]
struct Meeting {
    /// How many components after the failing one have written in the last epoch.
    n_written: Mutex<usize>,
    came: Condvar,
    /// How many it waits for.
    n_wanted: usize,
}

/// Writes a line, counts, and at the end begins a task. One of them fails after all components
/// after it have done so.
struct LogWriter {
    meeting: Arc<Meeting>,
    fails: bool,
    done: Output<f64>,
}

impl LogWriter {
    const DONE: OutputPort<f64> = OutputPort::new("done");
}

impl Component for LogWriter {
    const TYPE: &'static str = "clerk";

    fn describe() -> Descriptor {
        let fails = ConfigField::new("fails", ConfigKind::Bool);
        Descriptor::new(Self::TYPE).output(Self::DONE).config(fails)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.done = ports.output(Self::DONE);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.fails = config.get("fails")?.unwrap_or(false);
        Ok(())
    }
}

impl Execute for LogWriter {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let value = cx.epoch() as f64 / 10.0;
        cx.log(LogLevel::Info, format_args!("{} is at work", cx.component_id()));
        cx.counter("calls")?.add(1);
        cx.histogram("values")?.record(value);
        if cx.epoch() < LAST {
            return Ok(());
        }
        // A name that is new in the epoch that fails.
        cx.counter("last_calls")?.add(1);
        cx.submit_task(self.done, async move { Ok(value) })?;
        let mut n_written = self.meeting.n_written.lock().unwrap();
        if !self.fails {
            *n_written += usize::from(cx.component_id() > FAILS);
            self.meeting.came.notify_all();
            return Ok(());
        }
        let is_alone = |n: &mut usize| *n < self.meeting.n_wanted;
        n_written = self.meeting.came.wait_timeout_while(n_written, LONG, is_alone).unwrap().0;
        assert!(*n_written >= self.meeting.n_wanted, "nobody came to work beside it");
        Err(Failure::msg("the record_of do not balance"))
    }
}

/// What an observer finds after a run.
#[derive(Debug, PartialEq)]
struct RunRecord {
    lines: Vec<String>,
    n_dropped: u64,
    counted: Vec<Metric>,
    n_tasks: f64,
}

/// The record of a run with `workers`; `None` is one thread.
fn record_of(runtime: &Runtime, text: &str, workers: Option<usize>, capacity: usize) -> RunRecord {
    let n_wanted = if workers.is_some() { 3 } else { 0 };
    let meeting = Arc::new(Meeting { n_wanted, ..Meeting::default() });
    let registry = Registry::new()
        .register_with(move || {
            let meeting = Arc::clone(&meeting);
            LogWriter { meeting, fails: false, done: Output::default() }
        })
        .register_with(Numbers::default)
        .register_shared::<SampleRecorder>();
    let file = GraphFile::parse("t.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let log = ComponentLog::new(capacity);
    let options = RunOptions::steps(9).clock(Clock::Virtual).component_log(&log);
    let result = match workers {
        None => {
            let time = ManualTime::start();
            let run = graph.start(time.system(), options).unwrap();
            time.block_on(run)
        }
        Some(workers) => {
            let options = options.workers(workers).parallel(Parallel::Always);
            runtime.block_on(graph.start(runtime.system(), options).unwrap())
        }
    };
    let report = match &result {
        Ok(report) => report,
        Err(error) => error.report().expect("it has begun"),
    };
    let lines = log.take().iter().map(ToString::to_string).collect();
    RunRecord {
        lines,
        n_dropped: log.n_dropped(),
        counted: report.metrics.user.clone(),
        n_tasks: report.metrics.total("runtime.async.accepted_count"),
    }
}

#[test]
fn what_is_written_and_counted_beside_a_failure_is_as_on_one_thread() {
    let runtime = runtime();
    let clerk = |id: &str, fails: bool| {
        format!("id: {id}, type: clerk, execution: {{ lane: main }}, config: {{ fails: {fails} }}")
    };
    let clerks: Vec<String> =
        ["a", "b", "c", "d", "e"].iter().map(|id| clerk(id, *id == FAILS)).collect();
    let clerks: Vec<&str> = clerks.iter().map(String::as_str).collect();
    let text =
        graph("main: { type: thread_pool, max_threads: 4, queue_capacity: 64 }", &clerks, &[]);
    for capacity in [64, 7] {
        let alone = record_of(&runtime, &text, None, capacity);
        let n_lines = 5 + 5 + 2;
        assert_eq!(alone.lines.len(), capacity.min(n_lines));
        assert_eq!(alone.n_dropped, n_lines.saturating_sub(capacity) as u64);
        let n_last = alone.counted.iter().filter(|one| one.name == "last_calls").count();
        assert_eq!(n_last, 2, "those up to the one that fails");
        assert_eq!(alone.n_tasks, 2.0, "of the same two");
        for workers in [2, 3, 4] {
            assert_eq!(
                record_of(&runtime, &text, Some(workers), capacity),
                alone,
                "{workers} workers"
            );
        }
    }
}

/// Numbers that add up to nothing if one of them overtakes the one before it.
const TRIPLE: [f64; 3] = [-1e16, 1e16, 1.0];

/// How often triples are published in an epoch.
const N_TRIPLES: usize = 4;

/// Publishes triples.
#[derive(Default)]
struct Numbers(Output<f64>);

impl Numbers {
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Numbers {
    const TYPE: &'static str = "numbers";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).output(Self::OUT)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0 = ports.output(Self::OUT);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Numbers {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for value in [TRIPLE; N_TRIPLES].concat() {
            cx.publish(self.0, value)?;
        }
        Ok(())
    }
}

/// How often the last of a triple was recorded, and how often it has overtaken the one before it.
static LAST_ONES: Mutex<(usize, usize)> = Mutex::new((0, 0));
static LAST_ONE_CAME: Condvar = Condvar::new();

/// On one thread no call can overtake another.
static MAY_WAIT: AtomicBool = AtomicBool::new(false);

/// Writes down and records each number; its calls overlap.
#[derive(Default)]
struct SampleRecorder(Input<f64>);

impl SampleRecorder {
    const A: InputPort<f64> = InputPort::new("a");
}

impl Component for SampleRecorder {
    const TYPE: &'static str = "weigher";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).input(Self::A, Need::Required)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0 = ports.input(Self::A);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl ExecuteShared for SampleRecorder {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let value = cx.latest(self.0).copied().unwrap_or_default();
        if value > 1.0 && MAY_WAIT.load(Ordering::Relaxed) {
            // Gives the next call the time to overtake, if there is a thread for it.
            let mut last = LAST_ONES.lock().unwrap();
            let before = last.0;
            let is_first = |last: &mut (usize, usize)| last.0 == before;
            last = LAST_ONE_CAME.wait_timeout_while(last, PAUSE, is_first).unwrap().0;
            last.1 += usize::from(last.0 > before);
        }
        cx.log(LogLevel::Info, value);
        cx.counter("weighed")?.add(1);
        cx.histogram("weights")?.record(value);
        if value == TRIPLE[2] {
            LAST_ONES.lock().unwrap().0 += 1;
            LAST_ONE_CAME.notify_all();
        }
        Ok(())
    }
}

#[test]
fn calls_that_overlap_write_and_count_in_the_order_of_one_thread() {
    let runtime = runtime();
    let text = graph(
        "main: { type: thread_pool, max_threads: 4, queue_capacity: 64 }",
        &[
            "id: src, type: numbers, execution: { lane: main }",
            "id: many, type: weigher, execution: { lane: main, reentrant: true }, \
             event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }",
        ],
        &["id: e, kind: immediate, from: src.out, to: many.a, policy: {mode: queue, capacity: 16}"],
    );
    let alone = [1024, 20].map(|capacity| {
        let alone = record_of(&runtime, &text, None, capacity);
        assert_eq!(alone.lines.len(), capacity.min(9 * 3 * N_TRIPLES));
        (capacity, alone)
    });
    MAY_WAIT.store(true, Ordering::Relaxed);
    // On a busy machine helpers may start when all is done: then try again.
    for round in 0..100 {
        for (capacity, alone) in &alone {
            for workers in [2, 4] {
                let shared = record_of(&runtime, &text, Some(workers), *capacity);
                assert_eq!(shared, *alone, "{workers} workers");
            }
        }
        let n_overtaken = LAST_ONES.lock().unwrap().1;
        if round > 1 && n_overtaken > 20 {
            return;
        }
    }
    panic!("they hardly overlapped");
}

/// A value whose encoding panics in the second epoch.
struct PanickingValue {
    epoch: u64,
    is_lit: bool,
}

impl Data for PanickingValue {
    const SCHEMA: &'static str = "fuse";

    fn encode(&self, out: &mut Vec<u8>) {
        assert!(!self.is_lit || self.epoch != 2, "it goes off");
        out.extend(self.epoch.to_le_bytes());
    }

    fn decode(_bytes: &[u8]) -> Result<Self, DataError> {
        Ok(Self { epoch: 0, is_lit: false })
    }
}

/// Publishes one value per epoch. A harmless one gives other threads the time to take a harmful
/// one.
struct PanickingSource {
    n_lit: Arc<Mutex<usize>>,
    lit: Arc<Condvar>,
    may_wait: bool,
    is_lit: bool,
    out: Output<PanickingValue>,
}

impl PanickingSource {
    const OUT: OutputPort<PanickingValue> = OutputPort::new("out");
}

impl Component for PanickingSource {
    const TYPE: &'static str = "match";

    fn describe() -> Descriptor {
        let is_lit = ConfigField::new("is_lit", ConfigKind::Bool);
        Descriptor::new(Self::TYPE).output(Self::OUT).config(is_lit)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.is_lit = config.get("is_lit")?.unwrap_or(false);
        Ok(())
    }
}

impl Execute for PanickingSource {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let mut n_lit = self.n_lit.lock().unwrap();
        if self.is_lit {
            *n_lit += 1;
            self.lit.notify_all();
        } else if self.may_wait {
            let before = *n_lit;
            let is_dark = |n_lit: &mut usize| *n_lit == before;
            n_lit = self.lit.wait_timeout_while(n_lit, PAUSE, is_dark).unwrap().0;
        }
        drop(n_lit);
        let fuse = PanickingValue { epoch: cx.epoch(), is_lit: self.is_lit };
        cx.publish(self.out, fuse).map_err(|refused| Failure::msg(refused.to_string()))
    }
}

/// Takes the values.
#[derive(Default)]
struct ValueSink(Input<PanickingValue>);

impl ValueSink {
    const A: InputPort<PanickingValue> = InputPort::new("a");
}

impl Component for ValueSink {
    const TYPE: &'static str = "bucket";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).inputs(Self::A, Need::Required)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.0 = ports.input(Self::A);
    }

    fn configure(&mut self, _config: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for ValueSink {
    fn execute(&mut self, _cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

#[test]
fn a_panic_while_a_value_is_written_down_ends_the_run_whoever_works() {
    let runtime = runtime();
    let one = |id: &str, is_lit: bool| {
        format!(
            "id: {id}, type: match, execution: {{ lane: main }}, config: {{ is_lit: {is_lit} }}"
        )
    };
    let parts = [one("a", false), one("b", true), one("c", true), one("d", false)];
    let bucket = "id: z, type: bucket, execution: { lane: main }, \
                  event_sources: [{ type: message, input: a }], \
                  trigger_policy: { type: any_input }";
    let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    parts.push(bucket);
    let edge = |id: &str| format!("id: e{id}, kind: immediate, from: {id}.out, to: z.a");
    let edges = ["a", "b", "c", "d"].map(edge);
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let text =
        graph("main: { type: thread_pool, max_threads: 4, queue_capacity: 64 }", &parts, &edges);
    let registry = |may_wait| {
        let (n_lit, lit) = (Arc::default(), Arc::default());
        let made = move || PanickingSource {
            n_lit: Arc::clone(&n_lit),
            lit: Arc::clone(&lit),
            may_wait,
            is_lit: false,
            out: Output::default(),
        };
        Registry::new().register_with(made).register_with(ValueSink::default)
    };
    for workers in [1, 2, 4, 8].repeat(10) {
        let file = GraphFile::parse("t.yaml", &text).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let graph =
            file.compile(&registry(workers > 1)).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let log = CommitLog::in_memory();
        let options = RunOptions::steps(9).clock(Clock::Virtual).commit_log(&log);
        let options = options.workers(workers).parallel(Parallel::Always);
        let result = runtime.block_on(graph.start(runtime.system(), options).unwrap());
        // The fault belongs to no component: none was called.
        let error = result.expect_err("it panics");
        let fault = error.fault().expect("it tells");
        assert_eq!((fault.phase, fault.component.as_str()), (RunPhase::Runtime, ""), "{workers}");
        assert!(error.report().is_some(), "and all were taken down");
    }
}

/// A component whose calls are dear from one epoch up to another: it spins so often.
#[derive(Default)]
struct Busy {
    from: u64,
    until: u64,
    spins: u64,
}

impl Component for Busy {
    const TYPE: &'static str = "busy";

    fn describe() -> Descriptor {
        let numbers = ["from", "until", "spins"].into_iter();
        numbers.fold(Descriptor::new(Self::TYPE), |descriptor, name| {
            descriptor.config(ConfigField::new(name, ConfigKind::Int))
        })
    }

    fn bind(&mut self, _ports: &mut Binder<'_>) {}

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.from = config.get("from")?.unwrap_or(0);
        self.until = config.get("until")?.unwrap_or(0);
        self.spins = config.get("spins")?.unwrap_or(0);
        Ok(())
    }
}

impl Execute for Busy {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if (self.from..self.until).contains(&cx.epoch()) {
            (0..self.spins).for_each(|_| core::hint::spin_loop());
        }
        Ok(())
    }
}

/// How many of the epochs of eight such components ran in parallel.
fn parallel_epochs(runtime: &Runtime, setting: &str, steps: u64) -> u64 {
    let components: Vec<String> = (0..8)
        .map(|n| format!("id: c{n}, type: busy, execution: {{ lane: pool }}, config: {setting}"))
        .collect();
    let components: Vec<&str> = components.iter().map(String::as_str).collect();
    let text = graph("pool: { type: thread_pool, max_threads: 8 }", &components, &[]);
    let file = GraphFile::parse("busy.yaml", &text).expect("it is valid");
    let graph = file.compile(&Registry::new().register::<Busy>()).expect("it is valid");
    let options = RunOptions::steps(steps).clock(Clock::Virtual).parallel(Parallel::Auto);
    let run = graph.start(runtime.system(), options.workers(4)).expect("it starts");
    runtime.block_on(run).expect("it ends well").parallel_epochs
}

#[test]
fn parallel_epochs_end_when_calls_are_cheap_and_begin_when_they_are_dear() {
    let runtime = runtime();
    // The last of the epochs that are measured at the beginning is slow, and no other.
    let n_parallel = parallel_epochs(&runtime, "{ from: 4, until: 5, spins: 50000 }", 4_000);
    assert!(n_parallel < 3_000, "one slow epoch made {n_parallel} of 4,000 parallel");
    let n_parallel = parallel_epochs(&runtime, "{ from: 1000, until: 1500, spins: 5000 }", 1_500);
    assert!(n_parallel > 250, "of 500 slow epochs {n_parallel} ran in parallel");
}
