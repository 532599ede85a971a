//! How long frames take through a graph, by the clock of the system, beside what the authors of
//! dora have published for theirs.
//!
//! `cargo run --profile dist -p clockjack-graph --example perception [FRAMES]`: with a thousand
//! frames of each size by default, it takes two minutes. Measure on a machine that does nothing
//! else.
//!
//! The first table has one hop: from the moment before a camera writes a frame into a buffer of
//! its pool to the beginning of the call that gets the frame. The reader is on the lane of the
//! camera, on a lane with a pool of threads, or on a lane with a thread of its own. The figures of
//! dora are of the same kind, from one node to another by its program `examples/benchmark`, which
//! prints averages; a node is a process there, and the machines are not named:
//!
//! * `github.com/dora-rs/dora`, pull request 644, 2024-08-30, a release build
//! * `github.com/dora-rs/dora`, issue 760, 2025-01-21, the main branch of that day
//!
//! The second table has a perception pipeline: a camera, three stages that make a new frame of the
//! one they get, and a planner. A stage looks at its frame or takes it. The time is that from the
//! camera to the planner and contains four writes of a frame.
//!
//! `pool_allocations.rs` tests that such a pipeline copies and allocates nothing.
#![expect(clippy::print_stdout, reason = "an example that prints its result")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch; nothing depends on the time it shows")]

use core::{
    error::Error,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{
    env,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use clockjack_graph::{
    Blob, BufferPool, Clock, Component, Edge, Execute, Failure, Graph, GraphBuilder, GraphContext,
    Input, Lane, Output, Parallel, RunOptions, RunReport, Setup, Trigger,
    describe::{BoundaryRole, Out},
};
use clockjack_rt::Runtime;

/// The sizes of dora's program, and its latencies in microseconds: of the pull request and of the
/// issue. It has no frames of 1 MB.
const SIZES: [(usize, Option<[u32; 2]>); 9] = [
    (8, Some([254, 1005])),
    (64, Some([216, 1031])),
    (512, Some([261, 1036])),
    (4_096, Some([222, 987])),
    (16_384, Some([322, 929])),
    (40_960, Some([253, 951])),
    (409_600, Some([265, 959])),
    (FRAME, None),
    (4_096_000, Some([134, 977])),
];

/// Bytes of a frame of the pipeline.
const FRAME: usize = 1 << 20;

/// Between two frames. Also the largest frame is through before the next one comes.
const PERIOD: Duration = Duration::from_millis(4);

/// Frames before anything is measured.
const WARM_UP: u64 = 50;

/// Whether a reader looks at a frame or takes it.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Looks,
    Takes,
}

/// Where readers are called.
#[derive(Clone, Copy)]
enum Place {
    SameLane,
    Pool,
    OwnThread,
}

impl Place {
    const ALL: [Self; 3] = [Self::SameLane, Self::Pool, Self::OwnThread];

    const fn name(self) -> &'static str {
        match self {
            Self::SameLane => "same lane",
            Self::Pool => "thread pool",
            Self::OwnThread => "own thread",
        }
    }

    fn lane(self) -> Lane {
        match self {
            Self::SameLane => Lane::fixed_rate(PERIOD),
            Self::Pool => Lane::thread_pool(2),
            Self::OwnThread => Lane::isolated_thread(),
        }
    }
}

/// When the newest frame left the camera, and how long the frames took that have arrived.
#[derive(Debug, Default)]
struct Times {
    /// Nanoseconds since the first use of the clock. Relaxed: the frame that follows orders it.
    sent_ns: AtomicU64,
    taken_ns: Mutex<Vec<u64>>,
}

impl Times {
    fn send(&self) {
        self.sent_ns.store(now_ns(), Relaxed);
    }

    fn arrive(&self) {
        let took_ns = now_ns() - self.sent_ns.load(Relaxed);
        self.taken_ns.lock().unwrap_or_else(PoisonError::into_inner).push(took_ns);
    }

    /// So many per cent of the frames were as fast, in microseconds.
    fn percentile_us(&self, per_cent: usize) -> f64 {
        let mut sorted = self.taken_ns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * per_cent).div_ceil(100).max(1) - 1;
        #[expect(clippy::cast_precision_loss, reason = "for a table")]
        sorted.get(rank).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
    }
}

fn now_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    u64::try_from(FIRST.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Publishes a picture that it has.
#[derive(Component)]
#[component(type = "camera", role = "input")]
struct Camera {
    #[output]
    out: Output<Blob>,
    picture: Vec<u8>,
    pool: BufferPool,
    times: Arc<Times>,
}

impl Execute for Camera {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.times.send();
        let mut frame = self.pool.loan_unfilled(self.picture.len())?;
        frame.copy_from_slice(&self.picture);
        cx.publish(self.out, frame.freeze())?;
        Ok(())
    }
}

/// Makes a new frame of the one that it gets.
#[derive(Component)]
#[component(type = "stage")]
struct Stage {
    #[input]
    from: Input<Blob>,
    #[output]
    out: Output<Blob>,
    reads: Reads,
    pool: BufferPool,
}

impl Execute for Stage {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let taken = if self.reads == Reads::Takes { cx.take(self.from) } else { None };
        let Some(frame) = taken.as_ref().or_else(|| cx.latest(self.from)) else { return Ok(()) };
        let mut made = self.pool.loan_unfilled(frame.len())?;
        made.copy_from_slice(frame);
        made[0] ^= 0xff;
        cx.publish(self.out, made.freeze())?;
        Ok(())
    }
}

/// Gets the last frame, and notes how long it took.
#[derive(Component)]
#[component(type = "planner", role = "output")]
struct Planner {
    #[input]
    from: Input<Blob>,
    n_bytes: usize,
    times: Arc<Times>,
}

impl Execute for Planner {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if cx.epoch() > WARM_UP {
            self.times.arrive();
        }
        let n_bytes = cx.latest(self.from).map(|frame| frame.len());
        if n_bytes != Some(self.n_bytes) {
            return Err(Failure::msg("the frame is not the one that was sent"));
        }
        Ok(())
    }
}

/// A camera, so many stages and a planner.
#[derive(Clone, Copy)]
struct Pipeline {
    n_stages: usize,
    n_bytes: usize,
    place: Place,
    reads: Reads,
}

impl Pipeline {
    fn build(self, times: &Arc<Times>) -> Result<Graph, Box<dyn Error>> {
        let Self { n_stages, n_bytes, place, reads } = self;
        let pool = || BufferPool::blocks(n_bytes, 8 * n_bytes);
        let mut graph = Graph::builder("perception");
        graph.lane("cameras", Lane::fixed_rate(PERIOD));
        graph.lane("readers", place.lane());
        let lane = if matches!(place, Place::SameLane) { "cameras" } else { "readers" };
        let on_frame = || Setup::on(lane).trigger(Trigger::AnyInput);
        let camera = Camera {
            out: Output::default(),
            picture: vec![7; n_bytes],
            pool: pool(),
            times: Arc::clone(times),
        };
        let at_border = Setup::on("cameras").boundary(BoundaryRole::Input);
        let mut last = graph.add("camera", camera, at_border).out(Camera::OUT);
        for n in 0..n_stages {
            let (from, out) = (Input::default(), Output::default());
            let stage = Stage { from, out, reads, pool: pool() };
            let added = graph.add(&format!("stage{n}"), stage, on_frame());
            connect(&mut graph, last, added.input(Stage::FROM));
            last = added.out(Stage::OUT);
        }
        let planner = Planner { from: Input::default(), n_bytes, times: Arc::clone(times) };
        let added = graph.add("planner", planner, on_frame().boundary(BoundaryRole::Output));
        connect(&mut graph, last, added.input(Planner::FROM));
        Ok(graph.build()?)
    }

    /// Sends so many frames through it.
    fn run(self, n_frames: u64) -> Result<(Arc<Times>, RunReport), Box<dyn Error>> {
        let times = Arc::new(Times::default());
        let graph = self.build(&times)?;
        let runtime = Runtime::new("perception")?;
        let options = RunOptions::steps(WARM_UP + n_frames).clock(Clock::Wall);
        let run = graph.start(runtime.system(), options.parallel(Parallel::Always))?;
        Ok((times, runtime.block_on(run)?))
    }
}

fn connect(graph: &mut GraphBuilder, from: Out<Blob>, to: clockjack_graph::describe::In<Blob>) {
    graph.connect(from, to, Edge::immediate());
}

fn print_hops(n_frames: u64) -> Result<(), Box<dyn Error>> {
    println!("one hop, us (median / 99th percentile), {n_frames} frames of each size");
    println!(
        "{:>9} {:>19} {:>19} {:>19} {:>9} {:>9}",
        "bytes",
        Place::SameLane.name(),
        Place::Pool.name(),
        Place::OwnThread.name(),
        "dora 644",
        "dora 760"
    );
    for (n_bytes, published) in SIZES {
        print!("{n_bytes:>9}");
        for place in Place::ALL {
            let hop = Pipeline { n_stages: 0, n_bytes, place, reads: Reads::Looks };
            let (times, _) = hop.run(n_frames)?;
            let figures =
                format!("{:.1} / {:.1}", times.percentile_us(50), times.percentile_us(99));
            print!(" {figures:>19}");
        }
        let [release, main] = published
            .map_or([None; 2], |both| both.map(Some))
            .map(|us: Option<u32>| us.map_or_else(|| String::from("-"), |us| us.to_string()));
        println!(" {release:>9} {main:>9}");
    }
    Ok(())
}

fn print_pipelines(n_frames: u64) -> Result<(), Box<dyn Error>> {
    println!("\ncamera, three stages, planner; frames of {FRAME} bytes, us");
    println!(
        "{:<12} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "stages on", "frame is", "median", "99th", "copies", "lost"
    );
    for place in Place::ALL {
        for (reads, how) in [(Reads::Looks, "shared"), (Reads::Takes, "taken")] {
            let pipeline = Pipeline { n_stages: 3, n_bytes: FRAME, place, reads };
            let (times, report) = pipeline.run(n_frames)?;
            let n_copies = report.metrics.total("runtime.channel.payload_copy_count");
            let (half, most) = (times.percentile_us(50), times.percentile_us(99));
            let (place, n_lost) = (place.name(), report.n_lost());
            println!("{place:<12} {how:>8} {half:>10.1} {most:>10.1} {n_copies:>8} {n_lost:>8}");
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let n_frames = match env::args().nth(1) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number of frames"))?,
        None => 1000,
    };
    print_hops(n_frames)?;
    print_pipelines(n_frames)
}
