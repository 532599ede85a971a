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

/// How many regions may run in parallel, as the number of calls.
const N_WIDE: u64 = WIDTH as u64;

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
    /// It takes the frame instead of looking at it.
    #[config]
    takes: Option<bool>,
    pool: BufferPool,
}

impl Stage {
    fn new() -> Self {
        let (a, out) = (Input::default(), Output::default());
        Self { a, out, number: 0, takes: None, pool: BufferPool::blocks(FRAME, 8 * FRAME) }
    }
}

impl Execute for Stage {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let at = usize::try_from(self.number).expect("it is small");
        let mut made = self.pool.loan_unfilled(FRAME)?;
        if at == 0 {
            made.fill(u8::try_from(cx.epoch() % 251).expect("below 251"));
        } else {
            let taken = if self.takes == Some(true) { cx.take(self.a) } else { None };
            let frame = taken.as_ref().or_else(|| cx.latest(self.a));
            let frame = frame.expect("it is called for a frame");
            let sent_at = ADDRESS[at - 1].load(Relaxed);
            // The first frame that is taken from a port may be a copy.
            let is_first = taken.is_some() && cx.epoch() < WARM_UP;
            let is_same = frame.as_ptr().addr() == sent_at;
            assert!(is_first || is_same, "the frame itself, and no copy");
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

/// A camera, three stages behind it on a pool, and a planner; and the meter, on its own. The edges
/// have this policy, and the stages take their frames or look at them.
fn perception(takes: bool, policy: &str) -> String {
    let mut text = head("");
    for n in 0..4 {
        let lane = if n == 0 { "main" } else { "pool" };
        let config = format!("config: {{ number: {n}, takes: {takes} }}");
        writeln!(text, "  - {{ id: f{n}, type: stage, execution: {{ lane: {lane} }}, {config} }}")
            .unwrap();
    }
    text.push_str(
        "  - { id: plan, type: planner, execution: { lane: main }, boundary: { role: output } }\n\
         edges:\n",
    );
    for (n, to) in ["f1", "f2", "f3", "plan"].into_iter().enumerate() {
        let ends = format!("from: f{n}.out, to: {to}.a");
        // The planner does not take its frame.
        let policy = if to == "plan" { "" } else { policy };
        writeln!(text, "  - {{ id: e{n}, kind: immediate, {ends}, policy: {{ {policy} }} }}")
            .unwrap();
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

/// A meter, and as many members of a Jacobi loop behind it, in a ring: in the first iteration each
/// is called for the meter and for what the one before it left, in the second once.
fn jacobi() -> String {
    let mut text = head("");
    for n in 0..WIDTH {
        writeln!(text, "  - {{ id: p{n}, type: plus, execution: {{ lane: pool }} }}").unwrap();
    }
    text.push_str("edges:\n");
    for n in 0..WIDTH {
        let next = (n + 1) % WIDTH;
        writeln!(text, "  - {{ id: a{n}, kind: immediate, from: s0.out, to: p{n}.a }}").unwrap();
        writeln!(text, "  - {{ id: b{n}, kind: immediate, from: p{n}.out, to: p{next}.a }}")
            .unwrap();
    }
    let members: Vec<String> = (0..WIDTH).map(|n| format!("p{n}")).collect();
    let policy = "type: solver_iteration, mode: jacobi, max_iterations: 2";
    let members = members.join(", ");
    writeln!(
        text,
        "composite_loops: [{{ id: l, components: [{members}], loop_policy: {{ {policy} }} }}]"
    )
    .unwrap();
    text
}

/// Runs a text on so many workers, and returns the allocations of the epochs that count. Runs it
/// again if there were some: the harness allocates when it says, once, that a test is slow.
fn allocated(text: &str, n_workers: usize, options: fn() -> RunOptions) -> (usize, RunReport) {
    let (n_allocations, report) = allocated_once(text, n_workers, options());
    if n_allocations == 0 {
        return (n_allocations, report);
    }
    allocated_once(text, n_workers, options())
}

fn allocated_once(text: &str, n_workers: usize, options: RunOptions) -> (usize, RunReport) {
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

fn recorded() -> RunOptions {
    let (trace, log) = (TraceLog::new(256), CommitLog::to(io::sink()));
    steps().trace(&trace).commit_log(&log).timing_every(1)
}

/// Frames of 1 MB with one reader each are not copied, and no epoch allocates.
fn perceive() {
    // How many copies may be made: none, or the first of each of three ports.
    for (takes, policy, n_copies) in
        [(false, "", 0.0), (true, "", 3.0), (true, "copy_policy: move_only", 0.0)]
    {
        for n_workers in [1, 4] {
            let who = format!("takes: {takes}, {policy}, {n_workers} workers");
            let (n_allocations, report) = allocated(&perception(takes, policy), n_workers, steps);
            assert_eq!(n_allocations, 0, "{who}");
            assert_eq!(report.executions, 6 * (WARM_UP + COUNTED), "{who}");
            let n_copied = report.metrics.total("runtime.channel.payload_copy_count");
            assert!(n_copied <= n_copies, "{n_copied}, {who}");
        }
    }
}

#[test]
fn a_warm_epoch_allocates_nothing_on_any_thread_of_a_pool() {
    perceive();
    for n_workers in [1, 2, 3, 4, 8] {
        let epochs = WARM_UP + COUNTED;
        // In the first epoch, no member of the loop has left anything for the next.
        let of_jacobi = (1 + 3 * N_WIDE) * epochs - N_WIDE;
        for (name, text, n_calls) in [
            ("wide", wide(), (1 + 2 * N_WIDE) * epochs),
            ("reentrant", reentrant(), (1 + 2 * N_WIDE) * epochs),
            ("jacobi", jacobi(), of_jacobi),
        ] {
            let (n_allocations, report) = allocated(&text, n_workers, steps);
            assert_eq!(n_allocations, 0, "{name} on {n_workers} workers");
            assert_eq!(report.executions, n_calls, "{name}");
            // An isolated lane makes every epoch parallel, even with one worker.
            let is_parallel = n_workers > 1 || name == "wide";
            assert_eq!(report.parallel_epochs > COUNTED, is_parallel, "{name} on {n_workers}");
            let (n_allocations, _) = allocated(&text, n_workers, recorded);
            assert_eq!(n_allocations, 0, "{name} on {n_workers} workers, recorded");
        }
    }
}
