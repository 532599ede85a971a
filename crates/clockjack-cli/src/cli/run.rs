//! The arguments of the commands that run a graph: run, trace, bench. `observe` has a file of its
//! own.

use core::time::Duration;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum, value_parser};
use clockjack_graph::compile::Plan;
use clockjack_graph::describe::GraphFile;
use clockjack_graph::run::timeline::timeline;
use clockjack_graph::run::trace::expand;
use clockjack_graph::run::{Journal, Level, Metrics, TraceLog, TraceRecord};
use clockjack_graph::{Clock, CommitLog, Graph, Registry};
use clockjack_observe::{chrome, perfetto};
use serde_json::Value;

use super::graph::{Surroundings, keep_apart, output_beside};
use super::options::{Format, GraphArgs, ProgressMode, load_or_tell};
use super::{Streams, exit_codes, write_result, write_to};
use crate::exit_code;
use crate::failure::Failure;
use crate::graph::load::{Loaded, Told};
use crate::output::OutputFile;
use crate::run::bench::{Measured, fnv1a64};
use crate::run::host::HostCount;
use crate::run::{self, Ran, Wanted, events, summary};
use crate::span;

pub(super) const NOTE: &str = "\
Without a bound, a run in virtual time makes 1000 epochs, and one by the wall clock goes on until
Ctrl-C. In virtual time nothing sleeps, and the commit log is the same, byte for byte, for any
number of workers.

DURATION is a whole number and one of ns, us, ms, s, m, h, d: 250ms.";

/// Records of a trace that are kept, at most: there is room for all of them from the beginning.
pub(super) const RECORDS_MAX: i64 = 1 << 24;

/// How long a run goes on, by which clock and on how many workers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How to run")]
pub(super) struct RunBounds {
    /// At most this many epochs.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    steps: Option<u64>,

    /// At most this long, by the clock of the run.
    #[arg(long = "for", value_name = "DURATION", value_parser = span::parse)]
    length: Option<Duration>,

    /// Until there is nothing to do and nothing can come.
    #[arg(long)]
    until_idle: bool,

    /// Simulated time, or that of the system.
    #[arg(long, value_enum, default_value_t = ClockMode::Virtual)]
    clock: ClockMode,

    /// How many threads work; one for each processor if it is not said.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    workers: Option<u16>,

    /// Decides everything that is random. Equal seeds give equal runs.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClockMode {
    Virtual,
    Wall,
}

impl RunBounds {
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            steps: self.steps,
            length: self.length,
            until_idle: self.until_idle,
            clock: match self.clock {
                ClockMode::Virtual => Clock::Virtual,
                ClockMode::Wall => Clock::Wall,
            },
            workers: self.workers.map(usize::from),
            seed: self.seed,
            commit_log: None,
            trace: None,
            journal: None,
        }
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  clockjack run cell.yaml                               a thousand epochs in virtual time
  clockjack run cell.yaml --for 10s --clock wall        ten seconds by the clock on the wall
  clockjack run cell.yaml --workers 8 --commit-log a    what was committed, in its one order
  clockjack run cell.yaml --trace cell.pftrace          for ui.perfetto.dev
  clockjack run cell.yaml --metrics cell.prom           for Prometheus
  clockjack run cell.yaml --log info                    with what its components say";

/// Run a graph file
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{RUN_EXAMPLES}"), &[0, 2, 3, 5, 7, 130]))]
pub(super) struct RunArgs {
    /// Write what is committed to this file, in compiled order. By the wall clock, a lane that
    /// keeps its own time has a log by itself: FILE.LANE, with what came to it from others.
    #[arg(long, value_name = "FILE")]
    commit_log: Option<PathBuf>,

    /// Write a trace to this file: for Perfetto if it ends in .pftrace, else for Chrome.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Records that the trace keeps; older ones go first. At most 16777216.
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
        value_parser = value_parser!(u32).range(..=RECORDS_MAX))]
    trace_capacity: u32,

    /// Write all metrics to this file, as Prometheus reads them: those of the graph, and those of
    /// the executor, the scheduler and the actors below it.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,

    /// Print what components have to say, from this level on, on standard error, while they say
    /// it; no line about lanes is drawn then.
    #[arg(long, value_enum, value_name = "LEVEL")]
    log: Option<LogLevel>,

    /// Exit with 7 if more ticks than this took too long.
    #[arg(long, value_name = "N")]
    max_overruns: Option<u64>,

    /// What to print: a summary, one object, or one object a record.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Whether to draw a line about each lane on standard error; `auto` draws them on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    #[command(flatten)]
    bounds: RunBounds,

    #[command(flatten)]
    graph: GraphArgs,
}

impl RunArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let loaded = self.graph.load(of, self.format.told(), streams)?;
        let written = [&self.commit_log, &self.trace, &self.metrics].into_iter().flatten();
        keep_apart(&[self.graph.path()], written)?;
        let files = Files {
            trace: self.trace.as_deref().map(OutputFile::at).transpose()?,
            metrics: self.metrics.as_deref().map(OutputFile::at).transpose()?,
        };
        let mut wanted = self.bounds.wanted();
        if let Some(path) = &self.commit_log {
            wanted.commit_log = Some(commit_log(path, &loaded.plan, wanted.clock)?);
        }
        if self.trace.is_some() {
            wanted.trace = Some(TraceLog::new(self.trace_capacity as usize));
        }
        wanted.journal = self.log.map(LogLevel::journal);
        let plan = loaded.plan.clone();
        let ran = run_with_line(loaded, of.registry, &wanted, self.progress, streams)?;
        let kept = self.keep(&files, &plan, &ran, &wanted);
        let text = match self.format {
            Format::Human => summary::text(&plan, &ran),
            Format::Json => format!("{}\n", summary::json(&plan, &ran)),
            Format::Ndjson => summary::lines(&plan, &ran),
        };
        write_result(streams, &text)?;
        // Only now: a file that could not be written is no reason to hide how the run went.
        kept?;
        conclude(summary::exit_code(&ran, self.max_overruns))
    }

    /// Writes all files that were asked for, or as many as can be. The first failure counts.
    fn keep(&self, files: &Files, plan: &Plan, ran: &Ran, wanted: &Wanted) -> Result<(), Failure> {
        let logged = match (&self.commit_log, &wanted.commit_log) {
            (Some(path), Some(log)) => {
                log.flush().map_err(|error| Failure::file_output(path, error))
            }
            _ => Ok(()),
        };
        let traced = match (&files.trace, &wanted.trace) {
            (Some(file), Some(log)) => write_trace(file, plan, log),
            _ => Ok(()),
        };
        let counted = match (&files.metrics, &ran.report) {
            (Some(file), Some(report)) => {
                metrics_text(&report.metrics, &ran.host).and_then(|text| file.write(text))
            }
            _ => Ok(()),
        };
        logged.and(traced).and(counted)
    }
}

/// What of that which components say is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// For who looks for a fault.
    Debug,
    /// Every step.
    Trace,
}

impl LogLevel {
    /// Lines between two looks at a run, at most; what is lost is counted.
    const LINES_MAX: usize = 1 << 16;

    fn journal(self) -> Journal {
        let least = match self {
            Self::Error => Level::Error,
            Self::Warn => Level::Warn,
            Self::Info => Level::Info,
            Self::Debug => Level::Debug,
            Self::Trace => Level::Trace,
        };
        Journal::new(Self::LINES_MAX).least(least)
    }
}

/// What is written after a run.
struct Files {
    trace: Option<OutputFile>,
    metrics: Option<OutputFile>,
}

/// The log of a run: a file for each domain.
fn commit_log(path: &Path, plan: &Plan, clock: Clock) -> Result<CommitLog, Failure> {
    let create = |path: &Path| {
        let file = File::create(path).map(BufWriter::new);
        file.map_err(|error| Failure::file_output(path, error))
    };
    let mut log = CommitLog::to(create(path)?);
    for lane in plan.lanes.iter().filter(|lane| lane.domain > 0 && clock != Clock::Virtual) {
        let id = lane.spec.id.as_str();
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{id}"));
        log = log.lane_to(id, create(Path::new(&name))?);
    }
    Ok(log)
}

pub(super) fn conclude(code: u8) -> Result<(), Failure> {
    if code == exit_code::OK { Ok(()) } else { Err(Failure::told(code)) }
}

/// A graph that can run; it was checked already.
pub(super) fn compile(file: &GraphFile, registry: &Registry) -> Graph {
    file.compile(registry).expect("the same file was compiled just now")
}

/// Runs a graph with a line about each of its lanes, or with what its components have to say.
fn run_with_line(
    loaded: Loaded,
    registry: &Registry,
    wanted: &Wanted,
    progress: ProgressMode,
    streams: &mut Streams<'_>,
) -> Result<Ran, Failure> {
    let graph = compile(&loaded.file, registry);
    let interrupt = streams.interrupt.clone();
    interrupt.listen();
    if let Some(journal) = &wanted.journal {
        // A line that cannot be written is left out: the run is not about them.
        let ran = run::run(graph, wanted, &interrupt, |_| {
            for record in journal.take() {
                let _said = writeln!(streams.err, "{record}");
            }
        })?;
        if journal.n_dropped() > 0 {
            let n_dropped = journal.n_dropped();
            let _said = writeln!(streams.err, "{n_dropped} lines of components were lost");
        }
        return Ok(ran);
    }
    let began = Instant::now();
    let mut line = progress.on(streams);
    run::run(graph, wanted, &interrupt, |stopper| {
        line.say(|| summary::live(&stopper.live(), began.elapsed().as_millis()));
    })
}

pub(super) fn metrics_text(metrics: &Metrics, host: &[HostCount]) -> Result<String, Failure> {
    summary::prometheus(metrics, host).map_err(|error| Failure::no_export(error.to_string()))
}

/// Writes a trace in the form that the name of the file asks for.
fn write_trace(file: &OutputFile, plan: &Plan, log: &TraceLog) -> Result<(), Failure> {
    let records = log.take();
    if file.path().extension().is_some_and(|ending| ending == "pftrace") {
        return file.write(perfetto::encode(&timeline(plan, &records)));
    }
    file.write(chrome_text(plan, &records)?)
}

/// A trace as Chrome reads it.
pub(super) fn chrome_text(plan: &Plan, records: &[TraceRecord]) -> Result<String, Failure> {
    let mut text = String::new();
    let written = chrome::write(&mut text, &timeline(plan, records));
    written.map_err(|_| Failure::no_export("no room".into()))?;
    Ok(text)
}

const TRACE_EXAMPLES: &str = "\
Examples:
  clockjack trace cell.yaml --steps 3                          what happened, line by line
  clockjack trace cell.yaml --format chrome > cell.json        for chrome://tracing
  clockjack trace cell.yaml --format perfetto -o cell.pftrace  for ui.perfetto.dev";

/// Run a graph file and print what happened
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{TRACE_EXAMPLES}"), &[0, 2, 3, 5, 130]))]
pub(super) struct TraceArgs {
    /// What to print.
    #[arg(long, value_enum, default_value_t = TraceFormat::Human)]
    format: TraceFormat,

    /// Write it to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Records that are kept; older ones go first, and are counted. At most 16777216.
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
        value_parser = value_parser!(u32).range(..=RECORDS_MAX))]
    capacity: u32,

    #[command(flatten)]
    bounds: RunBounds,

    #[command(flatten)]
    graph: GraphArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// A line a record, for people.
    Human,
    /// One object.
    Json,
    /// One object a record.
    Ndjson,
    /// For chrome://tracing and ui.perfetto.dev.
    Chrome,
    /// For ui.perfetto.dev, in its own form.
    Perfetto,
}

impl TraceArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let told = match self.format {
            TraceFormat::Json => Told::Json,
            TraceFormat::Ndjson => Told::Ndjson,
            _ => Told::Text,
        };
        let loaded = self.graph.load(of, told, streams)?;
        let file = output_beside(self.graph.path(), self.output.as_ref())?;
        let log = TraceLog::new(self.capacity as usize);
        let wanted = Wanted { trace: Some(log.clone()), ..self.bounds.wanted() };
        let plan = loaded.plan.clone();
        let ran = run_with_line(loaded, of.registry, &wanted, ProgressMode::None, streams)?;
        write_to(file.as_ref(), streams, self.show(&plan, &ran, &log)?)?;
        if let Some(error) = &ran.error {
            // Where it cannot be said, the exit code says it.
            let _said = writeln!(streams.err, "clockjack: the run failed: {error}");
        }
        conclude(summary::exit_code(&ran, None))
    }

    fn show(&self, plan: &Plan, ran: &Ran, log: &TraceLog) -> Result<Vec<u8>, Failure> {
        let n_dropped = log.n_dropped();
        let records = log.take();
        let told = expand(plan, &records);
        let all = || told.iter().map(|record| events::event(plan, record));
        let text = match self.format {
            TraceFormat::Human => {
                let mut out: String = all().map(|event| trace_line(&event)).collect();
                out.push_str(&format!("{} records, {n_dropped} dropped\n", told.len()));
                out
            }
            TraceFormat::Json => {
                let mut value = summary::head(plan, ran);
                value["trace_schema_version"] = events::SCHEMA_VERSION.into();
                value["n_dropped"] = n_dropped.into();
                value["trace"] = all().collect();
                format!("{value}\n")
            }
            TraceFormat::Ndjson => all().map(|event| format!("{event}\n")).collect(),
            TraceFormat::Chrome => chrome_text(plan, &records)?,
            TraceFormat::Perfetto => {
                return Ok(perfetto::encode(&timeline(plan, &records)));
            }
        };
        Ok(text.into_bytes())
    }
}

/// A record for people: when, what, of whom.
fn trace_line(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or("");
    let whom = ["component_id", "channel_id", "lane"].map(text);
    let whom = whom.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ");
    let [at, epoch, took] = ["start_offset_ns", "epoch_id", "duration_ns"]
        .map(|name| event[name].as_u64().unwrap_or(0));
    format!("{at:>14} ns  epoch {epoch:<6} {:<30} {took:>9} ns  {whom}\n", text("name"))
}

const BENCH_EXAMPLES: &str = "\
Examples:
  clockjack bench cell.yaml                            three runs of a thousand epochs
  clockjack bench cell.yaml --steps 100000 --runs 10   longer, and more often";

/// Run a graph file several times in virtual time and tell how long it took
#[derive(Debug, Args)]
#[command(after_help = exit_codes(BENCH_EXAMPLES, &[0, 2, 3, 5, 130]))]
pub(super) struct BenchArgs {
    /// Epochs of a run.
    #[arg(long, value_name = "N", default_value_t = run::STEPS_DEFAULT,
        value_parser = value_parser!(u64).range(1..))]
    steps: u64,

    /// Runs; each with loading, checking and set-up.
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = value_parser!(u32).range(1..=10_000))]
    runs: u32,

    /// How many threads work; one for each processor if it is not said.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    workers: Option<u16>,

    /// What to print: a text, or one object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Whether to draw a progress line on standard error; `auto` draws it on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    #[command(flatten)]
    graph: GraphArgs,
}

impl BenchArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let source = self.graph.read()?;
        let plan = load_or_tell(&source, of, self.format.told(), streams)?.plan;
        let mut measured = Measured {
            graph: plan.name,
            graph_hash: fnv1a64(&source.bytes),
            steps: self.steps,
            calls: 0,
            n_ok: 0,
            times: Vec::new(),
        };
        let workers = self.workers.map(usize::from);
        let wanted = Wanted { workers, ..Wanted::steps(self.steps) };
        let interrupt = streams.interrupt.clone();
        interrupt.listen();
        let mut code = exit_code::OK;
        let mut line = self.progress.on(streams);
        for n in 0..self.runs {
            line.show("running", n.into(), self.runs.into());
            let began = Instant::now();
            let (loaded, _) = source.load(of.registry);
            let loaded = loaded.expect("the same bytes were compiled just now");
            let graph = compile(&loaded.file, of.registry);
            let ran = run::run(graph, &wanted, &interrupt, |_| ())?;
            measured.times.push(began.elapsed());
            measured.calls += ran.report.as_ref().map_or(0, |report| report.executions);
            match summary::exit_code(&ran, None) {
                exit_code::OK => measured.n_ok += 1,
                other => code = other,
            }
            if ran.was_interrupted {
                break;
            }
        }
        drop(line);
        let text = match self.format {
            Format::Human => measured.text(),
            Format::Json | Format::Ndjson => format!("{}\n", measured.json()),
        };
        write_result(streams, &text)?;
        conclude(code)
    }
}
