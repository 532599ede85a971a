//! What a run showed, as text for people and as JSON for programs.
//!
//! Everything follows from the plan. The JSON is a mirror with its own types, so that renaming a
//! field here changes nothing for its readers.

use core::fmt;

use clockjack_observe::dump::Unit;
use clockjack_sched::{CatchUp, SchedulerMetrics};
use serde::Serialize;

use super::{
    check::{Count, Counts, Digest},
    heard::Heard,
    length,
    plan::{Plan, Ticks},
};

/// The result of a run in which every check held.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) ticks: Ticks,
    /// By the books, before the close.
    pub(crate) counts: Counts,
    /// By the scheduler, before the close.
    pub(crate) metrics: SchedulerMetrics,
    pub(crate) heard: Heard,
    pub(crate) digest: Digest,
    /// Records of the log, the close included.
    pub(crate) n_records: usize,
    pub(crate) dump: Option<String>,
}

impl Report {
    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["jobs", "calls", "runs", "cancelled", "completed", "alive"];
        write!(f, "{:<12}", "")?;
        names.iter().try_for_each(|name| write!(f, "{name:>11}"))?;
        writeln!(f)?;
        let Counts { once, fixed_rate, fixed_delay } = self.counts;
        let rows = [
            ("once", once),
            ("fixed rate", fixed_rate),
            ("fixed delay", fixed_delay),
            ("all", self.counts.all()),
        ];
        for (name, count) in rows {
            let Count { jobs, calls, runs, cancelled, completed } = count;
            write!(f, "{name:<12}{jobs:>11}{calls:>11}{runs:>11}{cancelled:>11}")?;
            writeln!(f, "{completed:>11}{:>11}", count.active())?;
        }
        Ok(())
    }

    fn write_run(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ticks { end, middle, stall, .. } = self.ticks;
        let resolution = self.plan.resolution;
        writeln!(f, "virtual time  {:?}, {end} ticks of {resolution}", length(resolution, end))?;
        let policy = match self.plan.policy {
            CatchUp::Individually => "each missed run by itself",
            CatchUp::Folded => "missed runs are one call",
        };
        if stall > 0 {
            let (at, by) = (length(resolution, middle), length(resolution, stall));
            writeln!(f, "stall         the clock leaps by {by:?} at {at:?}; {policy}")?;
        } else {
            writeln!(f, "stall         none, so nothing is late; try --stall 20s")?;
        }
        writeln!(f, "log           {} records; --trace keeps them", self.n_records)?;
        writeln!(f, "digest        {:#018x}, the same for this plan everywhere", self.digest.0)?;
        writeln!(
            f,
            "checks        all held: none early, none late but by the leap, rates on their"
        )?;
        writeln!(f, "              grid, one-shots once, nothing after a cancel, nothing lost;")?;
        writeln!(f, "              metrics, stream, log and handles agree with the books")
    }

    fn write_metrics(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.metrics;
        writeln!(f, "Metrics, before the close")?;
        let rows = [
            [("active_total", m.active_total as u64), ("periodic_total", m.periodic_total as u64)],
            [("accepted_total", m.accepted_total), ("fired_total", m.fired_total)],
            [("executed_total", m.executed_total), ("cancelled_total", m.cancelled_total)],
            [("failed_total", m.failed_total), ("dropped_total", m.dropped_total)],
            [("quota_limit", m.quota_limit as u64), ("slots_total", m.slots_total as u64)],
            [
                ("drift_compensations", m.drift_compensations),
                ("diagnostics_dropped", m.diagnostics_dropped as u64),
            ],
        ];
        for [(left, one), (right, other)] in rows {
            writeln!(f, "  {left:<20}{one:>12}    {right:<20}{other:>12}")?;
        }
        let scaled = |ns| Unit::Nanoseconds.scale(ns).to_string();
        for (name, summary) in [("lateness", &m.lateness), ("drift", &m.drift)] {
            write!(f, "  {name:<20}count {}  mean {}", summary.count, scaled(summary.mean))?;
            writeln!(f, "  p50 {}  max {}", scaled(summary.p50), scaled(summary.max))?;
        }
        Ok(())
    }

    fn write_warnings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Warnings, with the first of each kind")?;
        if self.heard.warnings.is_empty() {
            return writeln!(f, "  none");
        }
        for warning in &self.heard.warnings {
            writeln!(f, "  {} {}", warning.count, warning.name)?;
            write_wrapped(f, &warning.first)?;
        }
        Ok(())
    }

    /// One line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let resolution = self.plan.resolution;
        let nanos = |ticks| length(resolution, ticks).as_nanos();
        let json = Json {
            command: "jobs",
            plan: JsonPlan {
                jobs: self.plan.jobs,
                seed: self.plan.seed,
                length_ns: nanos(self.ticks.end),
                resolution_ns: resolution.nanos().get(),
                cancel_percent: self.plan.cancel_percent,
                stall_ns: nanos(self.ticks.stall),
                policy: match self.plan.policy {
                    CatchUp::Individually => "individually",
                    CatchUp::Folded => "folded",
                },
                dump_at_ns: self.ticks.dump_at.map(nanos),
            },
            once: JsonCount::of(self.counts.once),
            fixed_rate: JsonCount::of(self.counts.fixed_rate),
            fixed_delay: JsonCount::of(self.counts.fixed_delay),
            log_records: self.n_records,
            digest: format!("{:#018x}", self.digest.0),
            metrics: JsonMetrics::of(&self.metrics),
            warnings: self.heard.warnings.iter().map(JsonWarning::of).collect(),
            dump: self.dump.as_deref(),
        };
        let mut text = serde_json::to_string(&json).expect("numbers and strings always serialize");
        text.push('\n');
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dump) = &self.dump {
            writeln!(f, "{dump}")?;
        }
        let Plan { jobs, seed, .. } = self.plan;
        let whole = length(self.plan.resolution, self.ticks.end);
        writeln!(f, "{jobs} jobs in {whole:?} of virtual time, seed {seed}\n")?;
        self.write_counts(f)?;
        writeln!(f)?;
        self.write_run(f)?;
        writeln!(f)?;
        self.write_metrics(f)?;
        writeln!(f)?;
        self.write_warnings(f)
    }
}

/// Writes words indented by four, in lines of eighty columns.
fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    const COLUMNS: usize = 80;
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() <= COLUMNS {
            write!(f, " {word}")?;
            column += 1 + word.len();
        } else {
            write!(f, "{}    {word}", if column > 0 { "\n" } else { "" })?;
            column = 4 + word.len();
        }
    }
    writeln!(f)
}

#[derive(Serialize)]
struct Json<'r> {
    command: &'static str,
    plan: JsonPlan,
    once: JsonCount,
    fixed_rate: JsonCount,
    fixed_delay: JsonCount,
    log_records: usize,
    digest: String,
    metrics: JsonMetrics,
    warnings: Vec<JsonWarning<'r>>,
    dump: Option<&'r str>,
}

#[derive(Serialize)]
struct JsonPlan {
    jobs: u32,
    seed: u64,
    length_ns: u128,
    resolution_ns: u32,
    cancel_percent: u8,
    stall_ns: u128,
    policy: &'static str,
    dump_at_ns: Option<u128>,
}

#[derive(Serialize)]
struct JsonCount {
    jobs: u32,
    calls: u64,
    runs: u64,
    cancelled: u32,
    completed: u32,
    alive: u32,
}

impl JsonCount {
    const fn of(count: Count) -> Self {
        let alive = count.active();
        let Count { jobs, calls, runs, cancelled, completed } = count;
        Self { jobs, calls, runs, cancelled, completed, alive }
    }
}

#[derive(Serialize)]
struct JsonMetrics {
    active_total: usize,
    periodic_total: usize,
    accepted_total: u64,
    fired_total: u64,
    executed_total: u64,
    cancelled_total: u64,
    failed_total: u64,
    dropped_total: u64,
    quota_limit: usize,
    slots_total: usize,
    drift_compensations: u64,
    diagnostics_dropped: usize,
    lateness_max_ns: u64,
    drift_max_ns: u64,
}

impl JsonMetrics {
    const fn of(metrics: &SchedulerMetrics) -> Self {
        Self {
            active_total: metrics.active_total,
            periodic_total: metrics.periodic_total,
            accepted_total: metrics.accepted_total,
            fired_total: metrics.fired_total,
            executed_total: metrics.executed_total,
            cancelled_total: metrics.cancelled_total,
            failed_total: metrics.failed_total,
            dropped_total: metrics.dropped_total,
            quota_limit: metrics.quota_limit,
            slots_total: metrics.slots_total,
            drift_compensations: metrics.drift_compensations,
            diagnostics_dropped: metrics.diagnostics_dropped,
            lateness_max_ns: metrics.lateness.max,
            drift_max_ns: metrics.drift.max,
        }
    }
}

#[derive(Serialize)]
struct JsonWarning<'r> {
    name: &'static str,
    count: u64,
    first: &'r str,
}

impl<'r> JsonWarning<'r> {
    fn of(warning: &'r super::heard::HeardWarning) -> Self {
        Self { name: warning.name, count: warning.count, first: &warning.first }
    }
}
