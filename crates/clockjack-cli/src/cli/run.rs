//! The arguments of `run`, `trace` and `bench`. `observe` has its own file.

use core::time::Duration;
use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, ValueEnum, value_parser};
use clockjack_graph::{
    Clock, CommitLog, Graph, Parallel, Registry,
    compile::Plan,
    describe::GraphFile,
    run::{
        ComponentLog, LogLevel, Metrics, TraceLog, TraceRecord, timeline::timeline, trace::expand,
    },
};
use clockjack_observe::{chrome, perfetto, samples::SampleSet, timeline::Timeline};
use serde_json::Value;

use super::{
    Streams, exit_codes,
    graph::{Env, check_distinct_files, output_file},
    options::{GraphArgs, ProgressMode, load_or_report},
    plot, write_result, write_to,
};
use crate::{
    exit_code,
    failure::Failure,
    format::Format,
    graph::load::Loaded,
    output::{ClosingWriter, LastFlush, LogFile, LogFiles, OutputFile},
    plot::values::RunValues,
    run::{
        self, Allowed, CallTimes, Moment, RunResult, RunSettings,
        bench::{BenchResult, fnv1a64},
        events, overview, summary,
    },
    span,
};

pub(super) const NOTE: &str = "\
Without a bound, a run in virtual time takes 1000 epochs, and a run with another clock continues
until Ctrl-C or SIGTERM. In virtual time nothing sleeps, and the commit log is byte-for-byte the
same for any number of workers.

DURATION is a whole number with a unit (ns, us, ms, s, m, h or d), for example 250ms.";

pub(super) const INTERRUPTED_NOTE: &str = "\
An interrupted run exits with 130 or 143 even if it lost messages, was late or failed an assertion;
its summary reports the part that ran.";

/// The maximum number of trace records; memory for all of them is allocated up front.
pub(super) const RECORDS_MAX: i64 = 1 << 24;

/// The bounds of a run, its clock and its number of workers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "How to run")]
pub(super) struct RunBounds {
    /// Run at most this many epochs.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    steps: Option<u64>,

    /// Run at most this long, by the clock of the run.
    #[arg(long = "for", value_name = "DURATION", value_parser = span::parse)]
    length: Option<Duration>,

    /// Run until the graph is idle and no more input can arrive.
    #[arg(long)]
    until_idle: bool,

    /// Which clock to use: simulated time, system time, or as the lanes of the file say.
    #[arg(long, value_enum, default_value_t = ClockMode::Virtual)]
    clock: ClockMode,

    /// Number of worker threads; default: one per processor.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    workers: Option<u16>,

    /// Whether independent components run at the same time. It never changes a result.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ParallelMode::Auto)]
    parallel: ParallelMode,

    /// Seed for everything random. Equal seeds give equal runs.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// How long to wait for callbacks in progress after Ctrl-C or SIGTERM. Then the files are
    /// written without waiting, as after a second signal.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span::parse)]
    drain_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClockMode {
    /// All lanes run in simulated time: nothing sleeps, and every run is the same.
    Virtual,
    /// All lanes follow the clock of the system.
    Wall,
    /// Lanes with `wall_clock_enabled` follow the clock of the system. The others run in simulated
    /// time if --steps or --until-idle bounds the run, else they follow the clock of the system,
    /// too.
    Described,
}

/// Whether independent components run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ParallelMode {
    /// Where lanes allow it, and calls are long enough to be worth it.
    Auto,
    /// Where lanes allow it.
    Always,
    /// Never.
    Never,
}

impl RunBounds {
    pub(super) fn settings(&self) -> RunSettings {
        RunSettings {
            steps: self.steps,
            length: self.length,
            until_idle: self.until_idle,
            clock: match self.clock {
                ClockMode::Virtual => Clock::Virtual,
                ClockMode::Wall => Clock::Wall,
                ClockMode::Described => Clock::Described,
            },
            workers: self.workers.map(usize::from),
            parallel: match self.parallel {
                ParallelMode::Auto => Parallel::Auto,
                ParallelMode::Always => Parallel::Always,
                ParallelMode::Never => Parallel::Never,
            },
            seed: self.seed,
            commit_log: None,
            trace: None,
            journal: None,
            call_times: None,
            drain_timeout: self.drain_timeout,
            console: None,
        }
    }

    /// Whether the user gave none of these options.
    pub(super) fn are_default(&self) -> bool {
        let Self { steps, length, until_idle, clock, workers, parallel, seed, drain_timeout } =
            self;
        (steps, length, workers) == (&None, &None, &None)
            && *drain_timeout == run::DRAIN_TIMEOUT
            && (*until_idle, *clock, *parallel, *seed)
                == (false, ClockMode::Virtual, ParallelMode::Auto, 0)
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  clockjack run cell.yaml                               a thousand epochs in virtual time
  clockjack run cell.yaml --for 10s --clock wall        ten seconds of real time
  clockjack run cell.yaml --workers 8 --commit-log a    write all commits, in compiled order
  clockjack run cell.yaml --trace cell.pftrace          write a trace for ui.perfetto.dev
  clockjack run cell.yaml --metrics cell.prom           write metrics for Prometheus
  clockjack run cell.yaml --deny-loss                   exit with 9 if a message was lost
  clockjack run cell.yaml --deny-late                   exit with 7 if data was late
  clockjack run cell.yaml --log info                    print the log messages of components
  clockjack run cell.yaml --plot arm.position           choose the edges that are plotted
  clockjack run cell.yaml --console                     look at it in a browser, in real time

The table shows for each component its calls, its calls per second of the run's time, the last value
at its first output (or at its input, if it has no output), the lost messages, and the median and
the 99th percentile of the duration of its calls. Some calls are measured, by the clock of the
system; everything else in the table is the same on every machine. A dash is an unknown number.";

/// Run a graph file
#[derive(Debug, Args)]
#[command(
    after_help = exit_codes(
        &format!("{NOTE}\n\n{INTERRUPTED_NOTE}\n\n{RUN_EXAMPLES}"),
        &[0, 2, 3, 5, 7, 9, 130, 143]
    )
)]
pub(super) struct RunArgs {
    /// Write the commits to this file, in compiled order. With the wall clock, each lane with its
    /// own time domain gets a separate log, FILE.LANE, which includes the messages that it received
    /// from other lanes.
    #[arg(long, value_name = "FILE")]
    commit_log: Option<PathBuf>,

    /// Write a trace to this file: in Perfetto format if the name ends in .pftrace, otherwise in
    /// Chrome format. With `--clock wall`, the trace also shows what each worker thread did.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Number of records that the trace keeps; the oldest are dropped first. At most 16777216.
    #[arg(long, value_name = "N", default_value_t = 1 << 20,
        value_parser = value_parser!(u32).range(..=RECORDS_MAX))]
    trace_capacity: u32,

    /// Write all metrics to this file in Prometheus format: those of the graph, the executor, the
    /// scheduler and the actors.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,

    /// Print the log messages of components from this level on to standard error, during the run;
    /// this turns the progress line off.
    #[arg(long, value_enum, value_name = "LEVEL")]
    log: Option<LogOption>,

    /// Exit with code 7 if more than this many ticks were late.
    #[arg(long, value_name = "N")]
    max_overruns: Option<u64>,

    /// Exit with code 9 if a message was lost: dropped, replaced, refused or discarded. Messages
    /// that are on their way when the run ends are not lost.
    #[arg(long)]
    deny_loss: bool,

    /// Exit with code 7 if something was late: a chain exceeded its `max_ms`, a message was read
    /// later than `deadline_ms`, or nothing came to an input for longer than `max_silence_ms`.
    #[arg(long)]
    deny_late: bool,

    /// Plot the values on these edges below the table: their ids, or COMPONENT.OUTPUT; `clockjack
    /// plot --help` explains the names. `none` plots and records no values, so that the run has no
    /// more to do than without this output. Default: the edges at the boundary of the graph.
    #[arg(long, value_name = "EDGE,..", value_delimiter = ',')]
    plot: Vec<String>,

    /// Open a console on this machine, and print its URL once on standard error: for a browser, and
    /// for `clockjack top`, `inspect` and `get`. Time passes as it really does: all lanes follow
    /// the clock of the system, unless --clock is described. The console closes with the run.
    #[arg(long)]
    console: bool,

    /// What clients of the console may do.
    #[arg(long, value_enum, value_name = "CLASS", requires = "console",
        default_value_t = Allowed::Inspect)]
    control: Allowed,

    /// Output format: a summary, one JSON object, or one JSON object per record.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// When to show a progress line per lane on standard error; `auto` shows it on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    #[command(flatten)]
    bounds: RunBounds,

    #[command(flatten)]
    graph: GraphArgs,
}

impl RunArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let loaded = self.graph.load(env, self.format, streams)?;
        let mut settings = self.settings();
        let values = self.values(&loaded.plan)?;
        let logs = self.commit_log.as_ref();
        let lanes = own_clocks(&loaded.plan, settings.clock);
        let logs: Vec<PathBuf> =
            logs.map(|path| lanes.map(|lane| lane_log(path, lane)).collect()).unwrap_or_default();
        let written = [&self.commit_log, &self.trace, &self.metrics].into_iter().flatten();
        let written = written.chain(&logs);
        check_distinct_files(&[self.graph.path()], written)?;
        let files = Files {
            trace: self.trace.as_deref().map(OutputFile::at).transpose()?,
            metrics: self.metrics.as_deref().map(OutputFile::at).transpose()?,
        };
        let last_flush = LastFlush::default();
        let path = self.commit_log.as_deref();
        settings.commit_log =
            log_writers(&loaded.plan, settings.clock, path, values.as_ref(), &last_flush)?;
        if self.format == Format::Human {
            settings.call_times =
                Some(if values.is_some() { CallTimes::Many } else { CallTimes::Few });
        }
        if self.trace.is_some() {
            settings.trace = Some(TraceLog::new(self.trace_capacity as usize));
        }
        settings.journal = self.log.map(LogOption::journal);
        let plan = loaded.plan.clone();
        let result = run_with_progress(loaded, env.registry, &settings, self.progress, streams)?;
        last_flush.is_next();
        let written_files = self.write_files(&files, &plan, &result, &settings);
        let text = match self.format {
            Format::Human => self.text(&plan, &result, values.as_ref(), env, streams),
            Format::Json => format!("{}\n", summary::json(&plan, &result)),
            Format::Ndjson => summary::lines(&plan, &result),
        };
        write_result(streams, &text)?;
        // The summary is printed first: a file that cannot be written must not hide the result of
        // the run.
        written_files?;
        let demands = summary::Demands {
            overruns_max: self.max_overruns,
            denies_loss: self.deny_loss,
            denies_late: self.deny_late,
        };
        exit_with(summary::exit_code(&result, demands))
    }

    /// The settings of the run, without its files.
    fn settings(&self) -> RunSettings {
        let settings = self.bounds.settings();
        if !self.console {
            return settings;
        }
        // In virtual time the run would be over before anybody has opened the page.
        let is_virtual = settings.clock == Clock::Virtual;
        let clock = if is_virtual { Clock::Wall } else { settings.clock };
        RunSettings { clock, console: Some(self.control), ..settings }
    }

    /// Where the values of the run are recorded, if that is wanted.
    fn values(&self, plan: &Plan) -> Result<Option<RunValues>, Failure> {
        let is_none = self.plot == ["none"];
        if self.format != Format::Human {
            let is_wanted = !self.plot.is_empty() && !is_none;
            let refused = is_wanted.then(|| Failure::usage("--plot needs --format human"));
            return refused.map_or(Ok(None), Err);
        }
        if is_none {
            return Ok(None);
        }
        Ok(Some(RunValues::new(plan, plot::signals(plan, &self.plot)?)))
    }

    /// The result for people.
    fn text(
        &self,
        plan: &Plan,
        result: &RunResult,
        values: Option<&RunValues>,
        env: Env<'_>,
        streams: &Streams<'_>,
    ) -> String {
        let (clock, style) = (self.settings().clock, plot::style(env.color, streams, false));
        let mut text = overview::text(plan, result, clock, values, style);
        // A user who gives options knows the command.
        if !env.has_options && result.error.is_none() && !result.was_interrupted {
            let file = self.graph.path().to_string_lossy();
            text.push_str(&overview::try_next(env.program, &file, plan));
        }
        text
    }

    /// Writes all requested files, or as many as possible, and returns the first failure.
    fn write_files(
        &self,
        files: &Files,
        plan: &Plan,
        result: &RunResult,
        settings: &RunSettings,
    ) -> Result<(), Failure> {
        let logged = match (&self.commit_log, &settings.commit_log) {
            (Some(path), Some(log)) => {
                log.flush().map_err(|error| Failure::file_output(path, error))
            }
            _ => Ok(()),
        };
        let traced = match (&files.trace, &settings.trace) {
            (Some(file), Some(log)) => write_trace(file, plan, log, result),
            _ => Ok(()),
        };
        let counted = match (&files.metrics, result.metrics()) {
            (Some(file), Some(metrics)) => {
                metrics_text(metrics, &result.host).and_then(|text| file.write(text))
            }
            _ => Ok(()),
        };
        logged.and(traced).and(counted)
    }
}

/// The least severe level of component log messages that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogOption {
    /// Something failed.
    Error,
    /// Something is unusual.
    Warn,
    /// Something happened.
    Info,
    /// Details for debugging.
    Debug,
    /// Every step.
    Trace,
}

impl LogOption {
    /// The maximum number of lines between two polls of the log; lost lines are counted.
    const LINES_MAX: usize = 1 << 16;

    fn journal(self) -> ComponentLog {
        let least = match self {
            Self::Error => LogLevel::Error,
            Self::Warn => LogLevel::Warn,
            Self::Info => LogLevel::Info,
            Self::Debug => LogLevel::Debug,
            Self::Trace => LogLevel::Trace,
        };
        ComponentLog::new(Self::LINES_MAX).least(least)
    }
}

/// The files that are written after a run.
struct Files {
    trace: Option<OutputFile>,
    metrics: Option<OutputFile>,
}

/// The lanes with a clock of their own.
fn own_clocks(plan: &Plan, clock: Clock) -> impl Iterator<Item = &str> {
    let own = plan.lanes.iter().filter(move |lane| lane.domain > 0 && clock != Clock::Virtual);
    own.map(|lane| lane.spec.id.as_str())
}

/// The log file of a lane with a clock of its own: `FILE.LANE`.
fn lane_log(path: &Path, lane: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{lane}"));
    PathBuf::from(name)
}

type LogWriter = ClosingWriter<BufWriter<LogFile>>;

/// The commit log of a run, if there is a file for it or if its values are recorded: a writer for
/// each lane with a clock of its own, and one for the others.
pub(super) fn log_writers(
    plan: &Plan,
    clock: Clock,
    path: Option<&Path>,
    values: Option<&RunValues>,
    last_flush: &LastFlush,
) -> Result<Option<CommitLog>, Failure> {
    if path.is_none() && values.is_none() {
        return Ok(None);
    }
    let files = LogFiles::default();
    let open = |path: &Path| {
        let file = files.open(path);
        file.map(|file| ClosingWriter::new(BufWriter::new(file), last_flush))
    };
    let writer = |path: Option<&Path>| -> Result<Box<dyn Write + Send>, Failure> {
        let file: Option<LogWriter> = path.map(open).transpose()?;
        Ok(match (values, file) {
            (Some(values), file) => Box::new(values.writer(file)),
            (None, Some(file)) => Box::new(file),
            (None, None) => Box::new(io::sink()),
        })
    };
    let mut log = CommitLog::to(writer(path)?);
    for lane in own_clocks(plan, clock) {
        let path = path.map(|path| lane_log(path, lane));
        log = log.lane_to(lane, writer(path.as_deref())?);
    }
    Ok(Some(log))
}

pub(super) fn exit_with(code: u8) -> Result<(), Failure> {
    if code == exit_code::OK { Ok(()) } else { Err(Failure::already_reported(code)) }
}

/// Compiles a graph file that was compiled successfully before.
pub(super) fn compile(file: &GraphFile, registry: &Registry) -> Graph {
    file.compile(registry).expect("the same file was compiled before")
}

/// Runs a graph and shows a progress line per lane, or the log messages of its components.
pub(super) fn run_with_progress(
    loaded: Loaded,
    registry: &Registry,
    settings: &RunSettings,
    progress: ProgressMode,
    streams: &mut Streams<'_>,
) -> Result<RunResult, Failure> {
    let graph = compile(&loaded.file, registry);
    let interrupt = streams.interrupt.clone();
    interrupt.listen(settings.clock, streams.err);
    if let Some(journal) = &settings.journal {
        // A log line that cannot be written is skipped; the run continues.
        let result = run::run(graph, settings, &interrupt, |moment| {
            if let Moment::Note(text) = moment {
                let _written = writeln!(streams.err, "{text}");
            }
            for record in journal.take() {
                let _written = writeln!(streams.err, "{record}");
            }
        })?;
        if journal.n_dropped() > 0 {
            let n_dropped = journal.n_dropped();
            let _written =
                writeln!(streams.err, "{n_dropped} log messages of components were lost");
        }
        return Ok(result);
    }
    let began = Instant::now();
    let mut line = progress.on(streams);
    run::run(graph, settings, &interrupt, |moment| match moment {
        Moment::Frame(stopper) => {
            line.draw_custom(|| summary::live(&stopper.live(), began.elapsed().as_millis()));
        }
        Moment::Note(text) => line.note(text),
    })
}

pub(super) fn metrics_text(metrics: &Metrics, host: &SampleSet) -> Result<String, Failure> {
    summary::prometheus(metrics, host).map_err(Failure::no_export)
}

/// Writes a trace in the format that the file name selects.
fn write_trace(
    file: &OutputFile,
    plan: &Plan,
    log: &TraceLog,
    result: &RunResult,
) -> Result<(), Failure> {
    let drawn = draw(plan, &log.take(), result);
    if file.path().extension().is_some_and(|ending| ending == "pftrace") {
        return file.write(perfetto::encode(&drawn));
    }
    file.write(chrome_text(&drawn)?)
}

/// Draws the graph of a run and, if they were traced, the workers below it.
pub(super) fn draw(plan: &Plan, records: &[TraceRecord], result: &RunResult) -> Timeline {
    let mut drawn = timeline(plan, records);
    if let Some(workers) = &result.workers {
        workers.add_to(&mut drawn);
    }
    drawn
}

/// A trace in Chrome format.
pub(super) fn chrome_text(drawn: &Timeline) -> Result<String, Failure> {
    let mut text = String::new();
    let written = chrome::write(&mut text, drawn);
    written.map_err(|_| Failure::no_export("the trace could not be formatted"))?;
    Ok(text)
}

const TRACE_EXAMPLES: &str = "\
Examples:
  clockjack trace cell.yaml --steps 3                          one line per record
  clockjack trace cell.yaml --format chrome > cell.json        for chrome://tracing
  clockjack trace cell.yaml --format perfetto -o cell.pftrace  for ui.perfetto.dev";

/// Run a graph file and print its trace
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{TRACE_EXAMPLES}"), &[0, 2, 3, 5, 130, 143]))]
pub(super) struct TraceArgs {
    /// Output format. With `--clock wall`, chrome and perfetto also show what each worker thread
    /// did: polls of tasks and actors, timers, steals, sleeps.
    #[arg(long, value_enum, default_value_t = TraceFormat::Human)]
    format: TraceFormat,

    /// Write the trace to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Number of records that the trace keeps; the oldest are dropped first, and are counted. At
    /// most 16777216.
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
    /// One line of text per record.
    Human,
    /// One JSON object.
    Json,
    /// One JSON object per record.
    Ndjson,
    /// Chrome format, for chrome://tracing and ui.perfetto.dev.
    Chrome,
    /// Perfetto's own format, for ui.perfetto.dev.
    Perfetto,
}

impl TraceArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let format = match self.format {
            TraceFormat::Json => Format::Json,
            TraceFormat::Ndjson => Format::Ndjson,
            _ => Format::Human,
        };
        let loaded = self.graph.load(env, format, streams)?;
        let file = output_file(self.graph.path(), self.output.as_ref())?;
        let log = TraceLog::new(self.capacity as usize);
        let settings = RunSettings { trace: Some(log.clone()), ..self.bounds.settings() };
        let plan = loaded.plan.clone();
        let result =
            run_with_progress(loaded, env.registry, &settings, ProgressMode::None, streams)?;
        write_to(file.as_ref(), streams, self.show(&plan, &result, &log)?)?;
        if let Some(error) = &result.error {
            // If standard error cannot be written, the exit code still reports the failure.
            let _written = writeln!(streams.err, "clockjack: the run failed: {error}");
        }
        exit_with(summary::exit_code(&result, summary::Demands::default()))
    }

    fn show(&self, plan: &Plan, result: &RunResult, log: &TraceLog) -> Result<Vec<u8>, Failure> {
        let n_dropped = log.n_dropped();
        let records = log.take();
        let expanded = expand(plan, &records);
        let all = || expanded.iter().map(|record| events::event(plan, record));
        let text = match self.format {
            TraceFormat::Human => {
                let mut out: String = all().map(|event| trace_line(&event)).collect();
                out.push_str(&format!("{} records, {n_dropped} dropped\n", expanded.len()));
                out
            }
            TraceFormat::Json => {
                let mut value = summary::head(plan, result);
                value["trace_schema_version"] = events::SCHEMA_VERSION.into();
                value["n_dropped"] = n_dropped.into();
                value["trace"] = all().collect();
                format!("{value}\n")
            }
            TraceFormat::Ndjson => all().map(|event| format!("{event}\n")).collect(),
            TraceFormat::Chrome => chrome_text(&draw(plan, &records, result))?,
            TraceFormat::Perfetto => {
                return Ok(perfetto::encode(&draw(plan, &records, result)));
            }
        };
        Ok(text.into_bytes())
    }
}

/// A record for people: when it happened, what it is, and what it belongs to.
fn trace_line(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or("");
    let source = ["component_id", "channel_id", "lane"].map(text);
    let source = source.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ");
    let [at, epoch, took] = ["start_offset_ns", "epoch_id", "duration_ns"]
        .map(|name| event[name].as_u64().unwrap_or(0));
    format!("{at:>14} ns  epoch {epoch:<6} {:<30} {took:>9} ns  {source}\n", text("name"))
}

const BENCH_EXAMPLES: &str = "\
Examples:
  clockjack bench cell.yaml                            three runs of a thousand epochs
  clockjack bench cell.yaml --steps 100000 --runs 10   more and longer runs";

/// Run a graph file several times in virtual time and measure the duration
#[derive(Debug, Args)]
#[command(after_help = exit_codes(BENCH_EXAMPLES, &[0, 2, 3, 5, 130, 143]))]
pub(super) struct BenchArgs {
    /// Number of epochs per run.
    #[arg(long, value_name = "N", default_value_t = run::STEPS_DEFAULT,
        value_parser = value_parser!(u64).range(1..))]
    steps: u64,

    /// Number of runs; each includes loading, checking and setup.
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = value_parser!(u32).range(1..=10_000))]
    runs: u32,

    /// Number of worker threads; default: one per processor.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    workers: Option<u16>,

    /// Output format: text or one JSON object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// When to show a progress line on standard error; `auto` shows it on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,

    #[command(flatten)]
    graph: GraphArgs,
}

impl BenchArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let source = self.graph.read()?;
        let plan = load_or_report(&source, env, self.format, streams)?.plan;
        let mut measured = BenchResult {
            graph: plan.name,
            graph_hash: fnv1a64(&source.bytes),
            steps: self.steps,
            calls: 0,
            n_ok: 0,
            times: Vec::new(),
        };
        let workers = self.workers.map(usize::from);
        let settings = RunSettings { workers, ..RunSettings::steps(self.steps) };
        let interrupt = streams.interrupt.clone();
        interrupt.listen(settings.clock, streams.err);
        let mut code = exit_code::OK;
        let mut line = self.progress.on(streams);
        for n in 0..self.runs {
            line.show("running", n.into(), self.runs.into());
            let began = Instant::now();
            let (loaded, _) = source.load(env.registry);
            let loaded = loaded.expect("the same bytes were compiled before");
            let graph = compile(&loaded.file, env.registry);
            let result = run::run(graph, &settings, &interrupt, |moment| {
                if let Moment::Note(text) = moment {
                    line.note(text);
                }
            })?;
            measured.times.push(began.elapsed());
            measured.calls += result.report.as_ref().map_or(0, |report| report.executions);
            match summary::exit_code(&result, summary::Demands::default()) {
                exit_code::OK => measured.n_ok += 1,
                other => code = other,
            }
            if result.was_interrupted {
                break;
            }
        }
        drop(line);
        let text = match self.format {
            Format::Human => measured.text(),
            Format::Json | Format::Ndjson => format!("{}\n", measured.json()),
        };
        write_result(streams, &text)?;
        exit_with(code)
    }
}
