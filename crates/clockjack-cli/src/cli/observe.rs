//! The arguments of `observe`: a run, what is told of it while it goes on, and what must hold.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};
use clockjack_graph::compile::Plan;
use clockjack_graph::run::trace::expand;
use clockjack_graph::run::{Metrics, TraceLog, TraceRecord};
use serde_json::{Value, json};

use super::graph::Surroundings;
use super::options::{GraphArgs, load_or_tell};
use super::run::{NOTE, RECORDS_MAX, RunBounds, chrome_text, compile, conclude, metrics_text};
use super::{Streams, exit_codes};
use crate::exit_code;
use crate::failure::Failure;
use crate::graph::load::Told;
use crate::render;
use crate::run::assertions::{Assertions, Watch, check_name};
use crate::run::bench::fnv1a64;
use crate::run::observe::artifact::{Artifact, EVENTS};
use crate::run::observe::{self, Counts, Filter, Level};
use crate::run::{self, Ran, Wanted, events, summary};

const EXAMPLES: &str = "\
Examples:
  clockjack observe cell.yaml --for 10s --clock wall     what is amiss, and counts, as they come
  clockjack observe cell.yaml --observe-level detailed   every epoch and every call
  clockjack observe cell.yaml --assert must.yaml         exits with 9 if something does not hold
  clockjack observe cell.yaml --record seen              all of it in a directory, with a trace

Lines come in this order: symbol_table, graph_validated, plan_ready, events, assertions,
assertion_result, final_summary. Each event says how exact it is: exact, aggregated (it counts all
since the last frame), sampled; of the whole, lossy or partial if records were lost.

A file of assertions:
  assertion_schema_version: \"1\"
  assertions:
    - {id: no-overrun, type: never, event: fixed_rate_overrun}
    - {id: own-lane, type: always, event: component_begin, where: {lane: control}}
    - {id: calls, type: metric_gte, metric: runtime.component.execution_count, value: 10}
    - {id: order, type: sequence, events: [component_begin, component_end]}
  Types: counter_equals, metric_equals, metric_lte, metric_gte, always, never, eventually,
  within_events, within_epochs, sequence. Assertions see all events, also those that are not
  printed; if records were lost, none about events holds.";

/// Run a graph file and print events while they happen; check assertions about them
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{EXAMPLES}"), &[0, 2, 3, 5, 9, 130]))]
pub(super) struct ObserveArgs {
    /// How much is told.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Summary)]
    observe_level: Level,

    /// Records that wait to be told; older ones go first, and are counted. At most 16777216.
    #[arg(long, value_name = "N", default_value_t = 1 << 16,
        value_parser = value_parser!(u32).range(1..=RECORDS_MAX))]
    event_buffer_capacity: u32,

    /// How often what has happened is told, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 50,
        value_parser = value_parser!(u32).range(1..))]
    ui_frame_ms: u32,

    /// Only events of these components.
    #[arg(long, value_name = "ID")]
    include_component: Vec<String>,

    /// Only events of these edges.
    #[arg(long, value_name = "ID")]
    include_channel: Vec<String>,

    /// Only events of these kinds, at whatever level they are.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    include_event: Vec<String>,

    /// No events of these kinds.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    exclude_event: Vec<String>,

    /// Of events of this kind only one of so many.
    #[arg(long, value_name = "KIND:N", value_parser = sample)]
    sample_event: Vec<(String, u64)>,

    /// Check these assertions.
    #[arg(long = "assert", value_name = "FILE")]
    assertions: Option<PathBuf>,

    /// Exit with 9 if an assertion does not hold; this is so unless the other is given.
    #[arg(long, overrides_with = "no_fail_on_assertion_fail")]
    fail_on_assertion_fail: bool,

    /// Tell of assertions that do not hold, and exit as if they did.
    #[arg(long, overrides_with = "fail_on_assertion_fail")]
    no_fail_on_assertion_fail: bool,

    /// Exit with 9 if records were lost.
    #[arg(long)]
    fail_on_observer_drop: bool,

    /// Keep all of it in this directory, which must not hold a recording yet; of the trace the
    /// newest 1048576 records.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// What to print: one object a line, only the last of them, or a summary for people.
    #[arg(long, value_enum, default_value_t = ObserveFormat::Ndjson)]
    format: ObserveFormat,

    #[command(flatten)]
    bounds: RunBounds,

    #[command(flatten)]
    graph: GraphArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObserveFormat {
    /// For people.
    Human,
    /// One object.
    #[value(name = "json-summary", alias = "json")]
    JsonSummary,
    /// One object a line, as soon as it is known.
    Ndjson,
}

/// A kind of events, for the parser of arguments.
fn kind(text: &str) -> Result<String, String> {
    match observe::kind_named(text) {
        Some(kind) => Ok(kind.to_owned()),
        None => Err(observe::no_such_kind(text)),
    }
}

fn sample(text: &str) -> Result<(String, u64), String> {
    let (name, every) = text.split_once(':').ok_or("not a kind, a colon and a number")?;
    let every = every.parse().ok().filter(|every| *every > 0);
    Ok((kind(name)?, every.ok_or("not a whole number above zero")?))
}

impl ObserveArgs {
    pub(super) fn run(
        &self,
        of: Surroundings<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let (text, assertions) = self.read_assertions()?;
        let told = match self.format {
            ObserveFormat::Human => Told::Text,
            ObserveFormat::JsonSummary => Told::Json,
            ObserveFormat::Ndjson => Told::Ndjson,
        };
        let source = self.graph.read()?;
        let loaded = load_or_tell(&source, of, told, streams)?;
        self.check_names(&assertions, &loaded.plan)?;
        let mut artifact = self.record.as_deref().map(Artifact::create).transpose()?;
        let copy = artifact.as_mut().map(|one| one.open(EVENTS, "events, a line each"));
        let log = (self.observe_level > Level::Off)
            .then(|| TraceLog::new(self.event_buffer_capacity as usize));
        let wanted = Wanted { trace: log.clone(), ..self.bounds.wanted() };
        let (plan, graph) = (loaded.plan.clone(), compile(&loaded.file, of.registry));
        let interrupt = streams.interrupt.clone();
        interrupt.listen();
        let run_id = format!("{:016x}-{}", fnv1a64(&source.bytes), wanted.seed);
        let mut session = Session {
            plan: &plan,
            log: log.as_ref(),
            watch: assertions.watch(),
            filter: self.filter(),
            counts: Counts::default(),
            stream: Stream {
                is_on: self.format == ObserveFormat::Ndjson,
                has_lost_its_reader: false,
                out: &mut *streams.out,
                copy: copy.transpose()?,
                run_id: run_id.clone(),
                numbers: BTreeMap::new(),
                n: 0,
            },
            kept: artifact.is_some().then(Kept::default),
        };
        session.introduce(wanted.seed)?;
        let mut broken = None;
        let frame = Duration::from_millis(self.ui_frame_ms.into());
        let ran = run::run_looking(graph, &wanted, &interrupt, frame, |stopper| {
            if broken.is_none() {
                broken = session.frame(&stopper.metrics()).err();
                // Nobody reads any more: the run comes to its end, too.
                if broken.is_some() || session.stream.has_lost_its_reader {
                    interrupt.request();
                }
            }
        })?;
        if let Some(failure) = broken {
            return Err(failure);
        }
        let end = session.finish(&ran)?;
        if let Some(artifact) = artifact {
            let kept = session.kept.take().unwrap_or_default();
            let about = json!({
                "run_id": run_id,
                "graph": plan.name,
                "seed": wanted.seed,
                "n_trace_dropped": kept.n_dropped,
            });
            let given = Given { source: &source.bytes, assertions: text.as_deref() };
            keep(artifact, &plan, &ran, &Vec::from(kept.records), &given, &end, about)?;
        }
        let has_reader = !session.stream.has_lost_its_reader;
        self.conclude(&plan, &ran, &end, has_reader, streams)
    }

    fn read_assertions(&self) -> Result<(Option<String>, Assertions), Failure> {
        let Some(path) = &self.assertions else { return Ok((None, Assertions::default())) };
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| Failure::assertions_input(path, error))?;
        let parsed = Assertions::parse(&text);
        let parsed = parsed.map_err(|why| Failure::not_assertions(path, why))?;
        Ok((Some(text), parsed))
    }

    /// Whether the graph has what the arguments and the assertions name.
    fn check_names(&self, assertions: &Assertions, plan: &Plan) -> Result<(), Failure> {
        if let Some(path) = &self.assertions {
            assertions.check_names(plan).map_err(|why| Failure::not_assertions(path, why))?;
        }
        let components = self.include_component.iter().map(|id| ("component_id", id));
        let channels = self.include_channel.iter().map(|id| ("channel_id", id));
        let mut all = components.chain(channels);
        all.try_for_each(|(field, id)| check_name(plan, field, id)).map_err(Failure::unknown_name)
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

    /// Prints what is not printed yet, and says it all with the exit code: a failed run says more
    /// than an assertion about it. A reader that went away has ended the run, not interrupted it:
    /// what must hold is held against the part that ran.
    fn conclude(
        &self,
        plan: &Plan,
        ran: &Ran,
        end: &End,
        has_reader: bool,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let text = match self.format {
            ObserveFormat::Ndjson => String::new(),
            ObserveFormat::JsonSummary => format!("{}\n", end.summary),
            ObserveFormat::Human => {
                let mut out = summary::text(plan, ran);
                for one in end.results.iter().filter(|one| one["ok"] == false) {
                    let (id, seen) = (&one["id"], &one["observed"]);
                    out.push_str(&format!("assertion {id} failed: saw {seen}\n"));
                }
                if end.n_dropped > 0 {
                    out.push_str(&format!("{} records were lost\n", end.n_dropped));
                }
                out
            }
        };
        super::write_result(streams, &text)?;
        let code = match summary::exit_code(ran, None) {
            exit_code::INTERRUPTED if !has_reader => exit_code::OK,
            code => code,
        };
        let has_failed = (!end.holds && !self.no_fail_on_assertion_fail)
            || (self.fail_on_observer_drop && end.n_dropped > 0);
        if code == exit_code::OK && has_failed {
            return conclude(exit_code::ASSERTION_FAILED);
        }
        conclude(code)
    }
}

/// A run that is observed.
struct Session<'s> {
    plan: &'s Plan,
    log: Option<&'s TraceLog>,
    watch: Watch<'s>,
    filter: Filter,
    counts: Counts,
    stream: Stream<'s>,
    /// All records, if they are to be kept.
    kept: Option<Kept>,
}

/// The newest records of a run that is recorded. A run may go on for days; this does not grow.
#[derive(Default)]
struct Kept {
    records: VecDeque<TraceRecord>,
    n_dropped: u64,
}

impl Kept {
    const MAX: usize = 1 << 20;

    fn extend(&mut self, records: Vec<TraceRecord>) {
        self.records.extend(records);
        let n_over = self.records.len().saturating_sub(Self::MAX);
        self.records.drain(..n_over);
        self.n_dropped += n_over as u64;
    }
}

/// How it ended.
struct End {
    holds: bool,
    results: Vec<Value>,
    summary: Value,
    n_dropped: u64,
}

impl Session<'_> {
    /// What comes before the first event.
    fn introduce(&mut self, seed: u64) -> Result<(), Failure> {
        let plan = self.plan;
        self.stream.put(symbols(plan))?;
        let n_diagnostics = plan.diagnostics.len();
        self.stream.put(json!({"kind": "graph_validated", "n_diagnostics": n_diagnostics}))?;
        let order: Vec<&str> = plan.regions.iter().map(|region| region.id.as_str()).collect();
        self.stream.put(json!({"kind": "plan_ready", "region_order": order}))?;
        let what = ("run_started", "info", "exact");
        self.tell(observe::told("run", what, 0, json!({}), json!({"seed": seed})))
    }

    /// All that has happened since the last frame.
    fn frame(&mut self, metrics: &Metrics) -> Result<(), Failure> {
        let records = self.log.map(TraceLog::take).unwrap_or_default();
        for record in expand(self.plan, &records) {
            self.counts.record(&record);
            let Some(kind) = observe::kind_of(record.name) else { continue };
            // Few are, and making one of them costs more than all the rest.
            if !self.is_wanted(kind) {
                self.watch.pass_over();
                continue;
            }
            if let Some(event) = observe::event(self.plan, &record) {
                self.tell(event)?;
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.extend(records);
        }
        for event in self.counts.events(self.plan, metrics) {
            self.tell(event)?;
        }
        Ok(())
    }

    /// Whether anybody looks at events of this kind.
    fn is_wanted(&self, kind: &str) -> bool {
        (self.stream.is_used() && self.filter.may_pass(kind)) || self.watch.is_about(kind)
    }

    fn tell(&mut self, mut event: Value) -> Result<(), Failure> {
        self.watch.event(&event);
        if self.filter.pass(&mut event) { self.stream.put(event) } else { Ok(()) }
    }

    /// What comes after the run.
    fn finish(&mut self, ran: &Ran) -> Result<End, Failure> {
        let metrics = ran.report.as_ref().map(|report| report.metrics.clone()).unwrap_or_default();
        self.frame(&metrics)?;
        let at_ns = self.counts.mono_ns();
        for fault in ran.report.iter().flat_map(|report| &report.faults) {
            let kind = if fault.component.is_empty() { "runtime_error" } else { "component_error" };
            let ids = json!({"component_id": fault.component, "epoch_id": fault.epoch});
            let about = json!({"message": fault.message, "phase": fault.phase.name()});
            self.tell(observe::told("run", (kind, "error", "exact"), at_ns, ids, about))?;
        }
        let n_dropped = self.log.map_or(0, TraceLog::n_dropped);
        if n_dropped > 0 {
            let what = ("observer_drop_summary", "warning", "lossy");
            let about = json!({"count": n_dropped});
            self.tell(observe::told("run", what, at_ns, json!({}), about))?;
        }
        let stop = ran.report.as_ref().map(|report| report.stop.name());
        let what = ("run_finished", "info", "exact");
        let about = json!({"stop_reason": stop, "ok": ran.error.is_none()});
        self.tell(observe::told("run", what, at_ns, json!({}), about))?;
        // Who did not look has not seen whether anything happened.
        let is_partial = n_dropped > 0 || self.log.is_none();
        let (holds, results) = self.watch.results(&metrics, is_partial);
        for result in &results {
            self.stream.put(result.clone())?;
        }
        self.stream.put(json!({"kind": "assertion_result", "ok": holds, "n": results.len()}))?;
        let mut last = summary::head(self.plan, ran);
        last["kind"] = "final_summary".into();
        let exactness = match (self.log, n_dropped) {
            (None, _) => "partial",
            (Some(_), 0) => "exact",
            (Some(_), _) => "lossy",
        };
        last["exactness"] = exactness.into();
        last["n_dropped"] = n_dropped.into();
        last["n_events"] = self.watch.n_events().into();
        last["assertions_ok"] = holds.into();
        last["assertions"] = results.clone().into();
        self.stream.put(last.clone())?;
        Ok(End { holds, results, summary: last, n_dropped })
    }
}

/// What the run was made from.
struct Given<'g> {
    source: &'g [u8],
    assertions: Option<&'g str>,
}

/// Fills the directory of a recording.
fn keep(
    mut artifact: Artifact,
    plan: &Plan,
    ran: &Ran,
    records: &[TraceRecord],
    given: &Given<'_>,
    end: &End,
    about: Value,
) -> Result<(), Failure> {
    let line = |value: &Value| format!("{value}\n");
    artifact.put("graph.yaml", "the file as it was", given.source)?;
    let normalized = render::draw(plan, render::Form::Json);
    artifact.put("graph.normalized.json", "the graph with everything expanded", normalized)?;
    artifact.put("plan.json", "the plan", line(&plan.to_json()))?;
    let mermaid = render::draw(plan, render::Form::Mermaid);
    artifact.put("graph.mmd", "a Mermaid flowchart", mermaid)?;
    artifact.put("summary.json", "how it ended", line(&end.summary))?;
    if let Some(text) = given.assertions {
        artifact.put("assertions.yaml", "what must hold", text)?;
    }
    let results = json!({"ok": end.holds, "assertions": end.results});
    artifact.put("assertion_results.json", "what holds", line(&results))?;
    if let Some(report) = &ran.report {
        artifact.put(
            "metrics.json",
            "all counts",
            line(&summary::metrics_json(&report.metrics)),
        )?;
        let text = metrics_text(&report.metrics, &ran.host)?;
        artifact.put("metrics.prom", "all counts, for Prometheus", text)?;
        artifact.put("health.json", "what was amiss", line(&summary::health_json(report)))?;
    }
    let trace: String =
        expand(plan, records).iter().map(|record| line(&events::event(plan, record))).collect();
    artifact.put("trace.ndjson", "the trace, a line a record", trace)?;
    let drawn = chrome_text(plan, records)?;
    artifact.put("trace.chrome.json", "the trace, for chrome://tracing and Perfetto", drawn)?;
    artifact.finish(about)
}

/// The names that events may have in them.
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

/// Where events are printed, each with its number.
struct Stream<'w> {
    is_on: bool,
    /// Whether it was on, and the reader went away.
    has_lost_its_reader: bool,
    out: &'w mut dyn Write,
    copy: Option<(PathBuf, fs::File)>,
    run_id: String,
    /// By part of the stream.
    numbers: BTreeMap<String, u64>,
    n: u64,
}

impl Stream<'_> {
    /// Whether what is put there goes anywhere.
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
                (self.is_on, self.has_lost_its_reader) = (false, true);
                Ok(())
            }
            written => written.map_err(Failure::output),
        }
    }
}
