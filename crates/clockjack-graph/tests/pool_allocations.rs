//! Memory on pools: a warm epoch allocates nothing, on any number of workers, on any thread.
//!
//! Epochs run on several threads here, so the allocations of all threads of the process are
//! counted: those of the workers, of the watchdog and of the test harness. Therefore this binary
//! has one test. What is counted is everything between two calls of the first component.

use core::{
    fmt::Write as _,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::io;

use clockjack_graph::{
    Blob, BufferPool, Clock, CommitLog, Component, Execute, ExecuteShared, Failure, GraphContext,
    Input, Output, Parallel, Registry, RunOptions, RunReport, TraceLog, describe::GraphFile,
};
use clockjack_rt::{Runtime, RuntimeConfig, actor::ActorSystem};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// The allocations at the first and at the last epoch that counts. Relaxed: the join of the run
/// orders them.
static AT_FIRST: AtomicUsize = AtomicUsize::new(0);
static AT_LAST: AtomicUsize = AtomicUsize::new(0);

/// Epochs before anything is counted.
const WARM_UP: u64 = 200;

/// Epochs in which nothing may be allocated.
const COUNTED: u64 = 2_000;

/// How many regions may run at the same time, and how many calls of a reentrant component.
const WIDTH: usize = 16;

/// Calls per epoch: of the meter, of what runs in parallel behind it, and as many again.
const N_CALLS: u64 = 1 + 2 * WIDTH as u64;

/// Publishes the number of its epoch, and looks how much was allocated.
#[derive(Component, Default)]
#[component(type = "meter")]
struct Meter {
    #[output]
    out: Output<f64>,
}

impl Execute for Meter {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        match cx.epoch() {
            WARM_UP => AT_FIRST.store(COUNTING.allocations_of_all(), Relaxed),
            epoch if epoch == WARM_UP + COUNTED => {
                AT_LAST.store(COUNTING.allocations_of_all(), Relaxed);
            }
            _ => {}
        }
        #[expect(clippy::cast_precision_loss, reason = "epochs are few")]
        cx.publish(self.out, cx.epoch() as f64)?;
        Ok(())
    }
}

/// Adds one to what comes; its invocations may overlap.
#[derive(Component, Default)]
#[component(type = "plus")]
struct Plus {
    #[input(multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl ExecuteShared for Plus {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.a) {
            cx.publish(self.out, value + 1.0)?;
        }
        Ok(())
    }
}

/// Bytes of a frame.
const FRAME: usize = 1 << 20;

/// Where the last frame of each stage of the pipeline is. Relaxed: a stage runs after the one
/// before it, which the run orders.
static ADDRESS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// A stage of a perception pipeline: makes a frame of what it gets, in a buffer of its own pool.
/// The first stage is the camera.
#[derive(Component)]
#[component(type = "stage")]
struct Stage {
    #[input(optional)]
    a: Input<Blob>,
    #[output]
    out: Output<Blob>,
    #[config]
    number: i64,
    pool: BufferPool,
}

impl Stage {
    fn new() -> Self {
        let (a, out) = (Input::default(), Output::default());
        Self { a, out, number: 0, pool: BufferPool::blocks(FRAME, 8 * FRAME) }
    }
}

impl Execute for Stage {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let at = usize::try_from(self.number).expect("it is small");
        let mut made = self.pool.loan_unfilled(FRAME)?;
        if at == 0 {
            made.fill(u8::try_from(cx.epoch() % 251).expect("below 251"));
        } else {
            let frame = cx.latest(self.a).expect("it is called for a frame");
            let sent_at = ADDRESS[at - 1].load(Relaxed);
            assert_eq!(frame.as_ptr().addr(), sent_at, "the frame itself, and no copy");
            made.copy_from_slice(frame);
            made[at] ^= 0xff;
        }
        ADDRESS[at].store(made.as_ptr().addr(), Relaxed);
        cx.publish(self.out, made.freeze())?;
        Ok(())
    }
}

/// Gets the last frame, and keeps nothing.
#[derive(Component, Default)]
#[component(type = "planner", role = "output")]
struct Planner {
    #[input]
    a: Input<Blob>,
    n_frames: u64,
}

impl Execute for Planner {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let frame = cx.latest(self.a).expect("it is called for a frame");
        assert_eq!(frame.as_ptr().addr(), ADDRESS[3].load(Relaxed), "the frame itself");
        self.n_frames += 1;
        Ok(())
    }
}

/// A camera, three stages behind it on a pool, and a planner; and the meter, on its own.
fn perception() -> String {
    let mut text = head("");
    for n in 0..4 {
        let lane = if n == 0 { "main" } else { "pool" };
        let execution = format!("execution: {{ lane: {lane} }}, config: {{ number: {n} }}");
        writeln!(text, "  - {{ id: f{n}, type: stage, {execution} }}").unwrap();
    }
    text.push_str(
        "  - { id: plan, type: planner, execution: { lane: main }, boundary: { role: output } }\n\
         edges:\n",
    );
    for (n, to) in ["f1", "f2", "f3", "plan"].into_iter().enumerate() {
        writeln!(text, "  - {{ id: e{n}, kind: immediate, from: f{n}.out, to: {to}.a }}").unwrap();
    }
    text
}

/// The beginning of a graph with a meter on its own lane and a pool.
fn head(pool: &str) -> String {
    format!(
        "schema_version: 1\ngraph: {{ name: g, kind: internal_test }}\n\
         lanes: {{ main: {{ type: event_loop }}, alone: {{ type: isolated_thread }}, \
         pool: {{ type: thread_pool, max_threads: {WIDTH}, queue_capacity: 32, {pool} }} }}\n\
         components:\n\x20 - {{ id: s0, type: meter, execution: {{ lane: main }} }}\n"
    )
}

/// A meter, and as many regions behind it that run in parallel; then one that is called with the
/// result of each. One of them has a thread of its own.
fn wide() -> String {
    let mut text = head("");
    for n in 0..WIDTH {
        let lane = if n == 3 { "alone" } else { "pool" };
        writeln!(text, "  - {{ id: p{n}, type: plus, execution: {{ lane: {lane} }} }}").unwrap();
    }
    text.push_str("  - { id: z, type: plus, execution: { lane: main } }\nedges:\n");
    for n in 0..WIDTH {
        writeln!(text, "  - {{ id: a{n}, kind: immediate, from: s0.out, to: p{n}.a }}").unwrap();
        writeln!(text, "  - {{ id: b{n}, kind: immediate, from: p{n}.out, to: z.a }}").unwrap();
    }
    text
}

/// A meter, and two reentrant components behind it with as many invocations each.
fn reentrant() -> String {
    let mut text = head("");
    for at in 0..2 {
        let execution = "{ lane: pool, reentrant: true }";
        writeln!(text, "  - {{ id: r{at}, type: plus, execution: {execution} }}").unwrap();
    }
    text.push_str("edges:\n");
    for n in 0..WIDTH {
        for at in 0..2 {
            let ends = format!("from: s0.out, to: r{at}.a");
            writeln!(text, "  - {{ id: e{at}x{n}, kind: immediate, {ends} }}").unwrap();
        }
    }
    text
}

/// Runs a text on so many workers, and returns the allocations of the epochs that count.
fn allocated(text: &str, n_workers: usize, options: RunOptions) -> (usize, RunReport) {
    let registry = Registry::new().register::<Meter>().register_shared::<Plus>();
    let registry = registry.register_with(Stage::new).register::<Planner>();
    let file = GraphFile::parse("test.yaml", text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let config = RuntimeConfig { workers: Some(n_workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(ActorSystem::builder("memory"), config).unwrap();
    let options = options.clock(Clock::Virtual).parallel(Parallel::Always);
    let run = graph.start(runtime.system(), options).unwrap();
    let report = runtime.block_on(run).unwrap();
    let n_allocations = AT_LAST.swap(0, Relaxed) - AT_FIRST.swap(0, Relaxed);
    (n_allocations, report)
}

fn steps() -> RunOptions {
    RunOptions::steps(WARM_UP + COUNTED)
}

/// Frames of 1 MB with one reader each are not copied, and no epoch allocates.
fn perceive() {
    for n_workers in [1, 4] {
        let (n_allocations, report) = allocated(&perception(), n_workers, steps());
        assert_eq!(n_allocations, 0, "on {n_workers} workers");
        assert_eq!(report.executions, 6 * (WARM_UP + COUNTED), "on {n_workers} workers");
        let n_copied = report.metrics.total("runtime.channel.payload_copy_count");
        assert!(n_copied.abs() < 0.5, "{n_copied} on {n_workers} workers");
    }
}

#[test]
fn a_warm_epoch_allocates_nothing_on_any_thread_of_a_pool() {
    perceive();
    for n_workers in [1, 2, 3, 4, 8] {
        for (name, text) in [("wide", wide()), ("reentrant", reentrant())] {
            let (n_allocations, report) = allocated(&text, n_workers, steps());
            assert_eq!(n_allocations, 0, "{name} on {n_workers} workers");
            assert_eq!(report.executions, N_CALLS * (WARM_UP + COUNTED), "{name}");
            // An isolated lane makes every epoch parallel, even with one worker.
            let is_parallel = n_workers > 1 || name == "wide";
            assert_eq!(report.parallel_epochs > COUNTED, is_parallel, "{name} on {n_workers}");
            let (trace, log) = (TraceLog::new(256), CommitLog::to(io::sink()));
            let options = steps().trace(&trace).commit_log(&log).timing_every(1);
            let (n_allocations, _) = allocated(&text, n_workers, options);
            assert_eq!(n_allocations, 0, "{name} on {n_workers} workers, recorded");
        }
    }
}
