//! The arguments of `observe`: a run, the events that are printed during the run, and assertions
//! about them.

use core::time::Duration;
use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Read as _, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, value_parser};
use clockjack_graph::{
    compile::Plan,
    run::{Metrics, TraceLog, TraceRecord, trace::expand},
};
use serde_json::{Value, json};

use super::{
    Streams, exit_codes,
    graph::Env,
    options::{GraphArgs, load_or_report},
    run::{
        INTERRUPTED_NOTE, NOTE, RECORDS_MAX, RunBounds, chrome_text, compile, draw, exit_with,
        metrics_text,
    },
};
use crate::{
    exit_code,
    failure::Failure,
    format::Format,
    render,
    run::{
        self, Moment, RunResult, RunSettings,
        assertions::{AssertionChecker, Assertions, check_name},
        bench::fnv1a64,
        events,
        observe::{self, Counts, Filter, Level, artifact::Artifact},
        summary,
    },
};

const EXAMPLES: &str = "\
Examples:
  clockjack observe cell.yaml --for 10s --clock wall     problems and counters, as they happen
  clockjack observe cell.yaml --observe-level detailed   every epoch and every call
  clockjack observe cell.yaml --assert must.yaml         exit with 9 if an assertion fails
  clockjack observe cell.yaml --deny-loss                exit with 9 if a message was lost
  clockjack observe cell.yaml --record seen              record everything in a directory

The order of the lines is: symbol_table, graph_validated, plan_ready, events, assertions,
assertion_result, final_summary. Each event states its exactness: exact, aggregated (a count since
the previous frame) or sampled. The final summary is lossy or partial if records were lost.

An assertion file:
  assertion_schema_version: \"1\"
  assertions:
    - {id: no-overrun, type: never, event: fixed_rate_overrun}
    - {id: own-lane, type: always, event: component_begin, where: {lane: control}}
    - {id: calls, type: metric_gte, metric: runtime.component.execution_count, value: 10}
    - {id: order, type: sequence, events: [component_begin, component_end]}
  Types: counter_equals, metric_equals, metric_lte, metric_gte, always, never, eventually,
  within_events, within_epochs, sequence. Assertions see all events, including those that are not
  printed. If records were lost, every assertion about events fails.";

/// Run a graph file, print events as they happen, and check assertions
#[derive(Debug, Args)]
#[command(after_help = exit_codes(
    &format!("{NOTE}\n\n{INTERRUPTED_NOTE}\n\n{EXAMPLES}"),
    &[0, 2, 3, 5, 9, 130, 143]
))]
pub(super) struct ObserveArgs {
    /// How many events are printed.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Summary)]
    observe_level: Level,

    /// Number of records that the event buffer holds; if it is full, the oldest records are dropped
    /// and counted. At most 16777216.
    #[arg(long, value_name = "N", default_value_t = 1 << 16,
        value_parser = value_parser!(u32).range(1..=RECORDS_MAX))]
    event_buffer_capacity: u32,

    /// Interval at which new events are printed, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 50,
        value_parser = value_parser!(u32).range(1..))]
    ui_frame_ms: u32,

    /// Print only events of this component; can be repeated.
    #[arg(long, value_name = "ID")]
    include_component: Vec<String>,

    /// Print only events of this edge; can be repeated.
    #[arg(long, value_name = "ID")]
    include_channel: Vec<String>,

    /// Print only events of this kind, whatever their level; can be repeated.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    include_event: Vec<String>,

    /// Print no events of this kind; can be repeated.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    exclude_event: Vec<String>,

    /// Print only every Nth event of this kind; can be repeated.
    #[arg(long, value_name = "KIND:N", value_parser = sample)]
    sample_event: Vec<(String, u64)>,

    /// Check the assertions in this file.
    #[arg(long = "assert", value_name = "FILE")]
    assertions: Option<PathBuf>,

    /// Exit with code 9 if an assertion fails; this is the default.
    #[arg(long, overrides_with = "no_fail_on_assertion_fail")]
    fail_on_assertion_fail: bool,

    /// Report failed assertions, but do not change the exit code.
    #[arg(long, overrides_with = "fail_on_assertion_fail")]
    no_fail_on_assertion_fail: bool,

    /// Exit with code 9 if records were lost.
    #[arg(long)]
    fail_on_observer_drop: bool,

    /// Exit with code 9 if a message was lost: dropped, replaced, refused or discarded. Messages
    /// that are on their way when the run ends are not lost.
    #[arg(long)]
    deny_loss: bool,

    /// Record the run in this directory, which must not contain a recording yet. The trace keeps
    /// the newest 1048576 records.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Output format: one JSON object per line, only the final JSON object, or a summary for
    /// people.
    #[arg(long, value_enum, default_value_t = ObserveFormat::Ndjson)]
    format: ObserveFormat,

    #[command(flatten)]
    bounds: RunBounds,

    #[command(flatten)]
    graph: GraphArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObserveFormat {
    /// A text summary.
    Human,
    /// One JSON object: the final summary.
    #[value(name = "json-summary", alias = "json")]
    JsonSummary,
    /// One JSON object per line, as soon as it is available.
    Ndjson,
}

/// The maximum size of an assertion file.
const ASSERTION_BYTES_MAX: u64 = 1 << 20;

/// The text of a file, which may be endless.
fn read_up_to(path: &Path, max: u64) -> io::Result<String> {
    let mut text = String::new();
    let n_read = File::open(path)?.take(max + 1).read_to_string(&mut text)?;
    if n_read as u64 > max {
        let text = format!("the file is longer than {max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(text)
}

/// Parses an event kind.
fn kind(text: &str) -> Result<String, String> {
    match observe::find_kind(text) {
        Some(kind) => Ok(kind.to_owned()),
        None => Err(observe::unknown_kind_message(text)),
    }
}

fn sample(text: &str) -> Result<(String, u64), String> {
    let (name, every) = text.split_once(':').ok_or("expected KIND:N")?;
    let every = every.parse().ok().filter(|every| *every > 0);
    Ok((kind(name)?, every.ok_or("expected a whole number above zero after the colon")?))
}

impl ObserveArgs {
    pub(super) fn run(&self, env: Env<'_>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let (text, assertions) = self.read_assertions()?;
        let format = match self.format {
            ObserveFormat::Human => Format::Human,
            ObserveFormat::JsonSummary => Format::Json,
            ObserveFormat::Ndjson => Format::Ndjson,
        };
        let source = self.graph.read()?;
        let loaded = load_or_report(&source, env, format, streams)?;
        self.check_names(&assertions, &loaded.plan)?;
        let artifact = self.record.as_deref().map(Artifact::create).transpose()?;
        let (artifact, copy) = artifact.unzip();
        let log = (self.observe_level > Level::Off)
            .then(|| TraceLog::new(self.event_buffer_capacity as usize));
        let settings = RunSettings { trace: log.clone(), ..self.bounds.settings() };
        let (plan, graph) = (loaded.plan.clone(), compile(&loaded.file, env.registry));
        let interrupt = streams.interrupt.clone();
        interrupt.listen(settings.clock, streams.err);
        let run_id = format!("{:016x}-{}", fnv1a64(&source.bytes), settings.seed);
        let mut session = Session {
            plan: &plan,
            log: log.as_ref(),
            checker: assertions.checker(),
            filter: self.filter(),
            counts: Counts::default(),
            stream: Stream {
                is_on: self.format == ObserveFormat::Ndjson,
                is_pipe_closed: false,
                out: &mut *streams.out,
                copy,
                run_id: run_id.clone(),
                numbers: BTreeMap::new(),
                n: 0,
            },
            kept: artifact.is_some().then(RecordBuffer::default),
        };
        session.write_header(settings.seed)?;
        let mut broken = None;
        let frame = Duration::from_millis(self.ui_frame_ms.into());
        let result = run::run_with_interval(graph, &settings, &interrupt, frame, |moment| {
            let stopper = match moment {
                Moment::Frame(stopper) => stopper,
                // A note that cannot be written changes nothing about the run.
                Moment::Note(text) => return drop(writeln!(streams.err, "{text}")),
            };
            if broken.is_none() {
                broken = session.frame(&stopper.metrics()).err();
                // The reader of the output has closed the pipe: stop the run, too.
                if broken.is_some() || session.stream.is_pipe_closed {
                    interrupt.request();
                }
            }
        })?;
        if let Some(failure) = broken {
            return Err(failure);
        }
        let end = session.finish(&result)?;
        if let Some(artifact) = artifact {
            let kept = session.kept.take().unwrap_or_default();
            let about = json!({
                "run_id": run_id,
                "graph": plan.name,
                "seed": settings.seed,
                "n_trace_dropped": kept.n_dropped,
            });
            let inputs = Inputs { source: &source.bytes, assertions: text.as_deref() };
            let records = Vec::from(kept.records);
            write_recording(artifact, &plan, &result, &records, &inputs, &end, about)?;
        }
        let has_reader = !session.stream.is_pipe_closed;
        self.finish(&plan, &result, &end, has_reader, streams)
    }

    fn read_assertions(&self) -> Result<(Option<String>, Assertions), Failure> {
        let Some(path) = &self.assertions else { return Ok((None, Assertions::default())) };
        let text = read_up_to(path, ASSERTION_BYTES_MAX);
        let text = text.map_err(|error| Failure::assertions_input(path, error))?;
        let parsed = Assertions::parse(&text);
        let parsed = parsed.map_err(|why| Failure::not_assertions(path, &why))?;
        Ok((Some(text), parsed))
    }

    /// Checks that the graph contains the names in the arguments and the assertions.
    fn check_names(&self, assertions: &Assertions, plan: &Plan) -> Result<(), Failure> {
        if let Some(path) = &self.assertions {
            assertions.check_names(plan).map_err(|why| Failure::not_assertions(path, &why))?;
        }
        let components = self.include_component.iter().map(|id| ("component_id", id));
        let channels = self.include_channel.iter().map(|id| ("channel_id", id));
        let mut all = components.chain(channels);
        all.try_for_each(|(field, id)| check_name(plan, field, id)).map_err(Failure::usage)
    }

    fn filter(&self) -> Filter {
        Filter {
            level: self.observe_level,
            components: self.include_component.clone(),
            channels: self.include_channel.clone(),
            include: self.include_event.clone(),
            exclude: self.exclude_event.clone(),
            samples: self.sample_event.iter().cloned().collect(),
            n_seen: BTreeMap::new(),
        }
    }

    /// Prints the remaining output and returns the exit code. A failed run takes precedence over a
    /// failed assertion. A closed pipe stops the run but does not count as an interruption: the
    /// assertions are checked against the part that ran.
    fn finish(
        &self,
        plan: &Plan,
        result: &RunResult,
        end: &ObserveResult,
        has_reader: bool,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let text = match self.format {
            ObserveFormat::Ndjson => String::new(),
            ObserveFormat::JsonSummary => format!("{}\n", end.summary),
            ObserveFormat::Human => {
                let mut out = summary::text(plan, result);
                for one in end.results.iter().filter(|one| one["ok"] == false) {
                    let (id, seen) = (&one["id"], &one["observed"]);
                    out.push_str(&format!("assertion {id} failed: observed {seen}\n"));
                }
                if end.n_dropped > 0 {
                    out.push_str(&format!("{} records were lost\n", end.n_dropped));
                }
                out
            }
        };
        super::write_result(streams, &text)?;
        let code = match summary::exit_code(result, summary::Demands::default()) {
            exit_code::INTERRUPTED if !has_reader => exit_code::OK,
            code => code,
        };
        let has_lost = result.report.as_ref().is_some_and(|report| report.n_lost() > 0);
        let has_failed = (!end.holds && !self.no_fail_on_assertion_fail)
            || (self.deny_loss && has_lost)
            || (self.fail_on_observer_drop && end.n_dropped > 0);
        if code == exit_code::OK && has_failed {
            return exit_with(exit_code::ASSERTION_FAILED);
        }
        exit_with(code)
    }
}

/// A run under observation.
struct Session<'s> {
    plan: &'s Plan,
    log: Option<&'s TraceLog>,
    checker: AssertionChecker<'s>,
    filter: Filter,
    counts: Counts,
    stream: Stream<'s>,
    /// The newest records, if the run is recorded.
    kept: Option<RecordBuffer>,
}

/// The newest records of a recorded run. A run may take days, so the buffer is bounded.
#[derive(Default)]
struct RecordBuffer {
    records: VecDeque<TraceRecord>,
    n_dropped: u64,
}

impl RecordBuffer {
    const MAX: usize = 1 << 20;

    fn extend(&mut self, records: Vec<TraceRecord>) {
        self.records.extend(records);
        let n_over = self.records.len().saturating_sub(Self::MAX);
        self.records.drain(..n_over);
        self.n_dropped += n_over as u64;
    }
}

/// The results of an observed run.
struct ObserveResult {
    holds: bool,
    results: Vec<Value>,
    summary: Value,
    n_dropped: u64,
}

impl Session<'_> {
    /// Writes the lines before the first event.
    fn write_header(&mut self, seed: u64) -> Result<(), Failure> {
        let plan = self.plan;
        self.stream.put(symbols(plan))?;
        let n_diagnostics = plan.diagnostics.len();
        self.stream.put(json!({"kind": "graph_validated", "n_diagnostics": n_diagnostics}))?;
        let order: Vec<&str> = plan.regions.iter().map(|region| region.id.as_str()).collect();
        self.stream.put(json!({"kind": "plan_ready", "region_order": order}))?;
        let what = ("run_started", "info", "exact");
        self.emit(observe::summary_event("run", what, 0, json!({}), json!({"seed": seed})))
    }

    /// Emits all events since the previous frame.
    fn frame(&mut self, metrics: &Metrics) -> Result<(), Failure> {
        let records = self.log.map(TraceLog::take).unwrap_or_default();
        for record in expand(self.plan, &records) {
            self.counts.record(&record);
            let Some(kind) = observe::kind_of(record.name) else { continue };
            // Few events are wanted, and building one costs more than skipping all the others.
            if !self.is_wanted(kind) {
                self.checker.skip_event();
                continue;
            }
            if let Some(event) = observe::event(self.plan, &record) {
                self.emit(event)?;
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.extend(records);
        }
        for event in self.counts.events(self.plan, metrics) {
            self.emit(event)?;
        }
        Ok(())
    }

    /// Whether events of this kind are printed, recorded or used by an assertion.
    fn is_wanted(&self, kind: &str) -> bool {
        (self.stream.is_used() && self.filter.may_pass(kind)) || self.checker.is_about(kind)
    }

    fn emit(&mut self, mut event: Value) -> Result<(), Failure> {
        self.checker.event(&event);
        if self.filter.pass(&mut event) { self.stream.put(event) } else { Ok(()) }
    }

    /// Emits the final events, assertion results and summary.
    fn finish(&mut self, result: &RunResult) -> Result<ObserveResult, Failure> {
        let metrics = result.metrics().cloned().unwrap_or_default();
        self.frame(&metrics)?;
        let at_ns = self.counts.mono_ns();
        for fault in result.report.iter().flat_map(|report| &report.faults) {
            let kind = if fault.component.is_empty() { "runtime_error" } else { "component_error" };
            let ids = json!({"component_id": fault.component, "epoch_id": fault.epoch});
            let about = json!({"message": fault.message, "phase": fault.phase.name()});
            self.emit(observe::summary_event("run", (kind, "error", "exact"), at_ns, ids, about))?;
        }
        let n_dropped = self.log.map_or(0, TraceLog::n_dropped);
        if n_dropped > 0 {
            let what = ("observer_drop_summary", "warning", "lossy");
            let about = json!({"count": n_dropped});
            self.emit(observe::summary_event("run", what, at_ns, json!({}), about))?;
        }
        let stop = result.report.as_ref().map(|report| report.stop.name());
        let what = ("run_finished", "info", "exact");
        let about = json!({"stop_reason": stop, "ok": result.error.is_none()});
        self.emit(observe::summary_event("run", what, at_ns, json!({}), about))?;
        // Without a log no events were seen, so assertions about events cannot hold.
        let is_partial = n_dropped > 0 || self.log.is_none();
        let (holds, results) = self.checker.results(&metrics, is_partial);
        for record in &results {
            self.stream.put(record.clone())?;
        }
        self.stream.put(json!({"kind": "assertion_result", "ok": holds, "n": results.len()}))?;
        let mut last = summary::head(self.plan, result);
        last["kind"] = "final_summary".into();
        let exactness = match (self.log, n_dropped) {
            (None, _) => "partial",
            (Some(_), 0) => "exact",
            (Some(_), _) => "lossy",
        };
        last["exactness"] = exactness.into();
        last["n_dropped"] = n_dropped.into();
        last["n_events"] = self.checker.n_events().into();
        last["assertions_ok"] = holds.into();
        last["losses"] = summary::losses_json(self.plan, result).into();
        last["assertions"] = results.clone().into();
        self.stream.put(last.clone())?;
        Ok(ObserveResult { holds, results, summary: last, n_dropped })
    }
}

/// The inputs of the run.
struct Inputs<'g> {
    source: &'g [u8],
    assertions: Option<&'g str>,
}

/// Writes all files of a recording.
fn write_recording(
    mut artifact: Artifact,
    plan: &Plan,
    result: &RunResult,
    records: &[TraceRecord],
    inputs: &Inputs<'_>,
    end: &ObserveResult,
    about: Value,
) -> Result<(), Failure> {
    let line = |value: &Value| format!("{value}\n");
    artifact.put("graph.yaml", "the graph file, unchanged", inputs.source)?;
    let normalized = render::draw(plan, render::Form::Json);
    artifact.put("graph.normalized.json", "the graph with everything expanded", normalized)?;
    artifact.put("plan.json", "the plan", line(&plan.to_json()))?;
    let mermaid = render::draw(plan, render::Form::Mermaid);
    artifact.put("graph.mmd", "a Mermaid flowchart", mermaid)?;
    artifact.put("summary.json", "the result of the run", line(&end.summary))?;
    if let Some(text) = inputs.assertions {
        artifact.put("assertions.yaml", "the assertions", text)?;
    }
    let results = json!({"ok": end.holds, "assertions": end.results});
    artifact.put("assertion_results.json", "the results of the assertions", line(&results))?;
    if let Some(metrics) = result.metrics() {
        artifact.put("metrics.json", "all metrics", line(&summary::metrics_json(metrics)))?;
        let text = metrics_text(metrics, &result.host)?;
        artifact.put("metrics.prom", "all metrics, in Prometheus format", text)?;
    }
    if let Some(report) = &result.report {
        artifact.put("health.json", "health events", line(&summary::health_json(report)))?;
    }
    let trace: String =
        expand(plan, records).iter().map(|record| line(&events::event(plan, record))).collect();
    artifact.put("trace.ndjson", "the trace, one record per line", trace)?;
    let drawn = chrome_text(&draw(plan, records, result))?;
    artifact.put("trace.chrome.json", "the trace, for chrome://tracing and Perfetto", drawn)?;
    artifact.finish(about)
}

/// The names that can occur in events.
fn symbols(plan: &Plan) -> Value {
    let components: Vec<&str> = plan.components.iter().map(|one| one.spec.id.as_str()).collect();
    let channels: Vec<&str> = plan.edges.iter().map(|one| one.id.as_str()).collect();
    let lanes: Vec<&str> = plan.lanes.iter().map(|one| one.spec.id.as_str()).collect();
    json!({
        "kind": "symbol_table",
        "graph": plan.name,
        "components": components,
        "channels": channels,
        "lanes": lanes,
    })
}

/// The event stream. Every event gets a sequence number.
struct Stream<'w> {
    is_on: bool,
    /// Whether the stream was printed until the reader closed the pipe.
    is_pipe_closed: bool,
    out: &'w mut dyn Write,
    copy: Option<(PathBuf, File)>,
    run_id: String,
    /// The next sequence number per part of the stream.
    numbers: BTreeMap<String, u64>,
    n: u64,
}

impl Stream<'_> {
    /// Whether events are printed or recorded.
    const fn is_used(&self) -> bool {
        self.is_on || self.copy.is_some()
    }

    fn put(&mut self, mut event: Value) -> Result<(), Failure> {
        if !self.is_used() {
            return Ok(());
        }
        let stream = event["stream_id"].as_str().unwrap_or("frame").to_owned();
        let number = self.numbers.entry(stream.clone()).or_insert(0);
        event["observe_schema_version"] = events::SCHEMA_VERSION.into();
        event["run_id"] = self.run_id.as_str().into();
        event["display_seq"] = self.n.into();
        event["local_seq"] = (*number).into();
        event["stream_id"] = stream.into();
        *number += 1;
        self.n += 1;
        let line = format!("{event}\n");
        if let Some((path, copy)) = &mut self.copy {
            let written = copy.write_all(line.as_bytes());
            written.map_err(|error| Failure::file_output(path, error))?;
        }
        if !self.is_on {
            return Ok(());
        }
        match self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                (self.is_on, self.is_pipe_closed) = (false, true);
                Ok(())
            }
            written => written.map_err(Failure::output),
        }
    }
}
