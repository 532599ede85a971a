//! What a run showed, as text for people and as JSON for programs.
//!
//! Everything but [`Timing`] follows from the plan. The JSON is a mirror with its own types, so
//! that renaming a field here changes nothing for its readers.

use core::{fmt, time::Duration};

use clockjack_observe::{
    Snapshot,
    dump::{Chart, Unit, write_histogram},
};
use serde::Serialize;

use super::{
    Plan,
    tally::{SUB, Tally},
};

/// The result of a run in which every check held.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) armed: u32,
    pub(crate) cancelled: u32,
    pub(crate) fired: u32,
    /// Where the clock stands.
    pub(crate) virtual_time: Duration,
    pub(crate) n_steps: u64,
    pub(crate) tally: Tally,
    pub(crate) timing: Timing,
}

/// Wall time: of the wheel's operations with the loop around them, and of the whole run with its
/// checks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) arm: Duration,
    pub(crate) cancel: Duration,
    pub(crate) fire: Duration,
    pub(crate) total: Duration,
}

/// How the histograms are drawn: eighty columns, and a screen for both.
const CHART: Chart = Chart { width: 40, rows_max: 16, unit: Unit::Count };

impl Report {
    fn n_idle_steps(&self) -> u64 {
        self.n_steps - self.tally.batch.count()
    }

    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timing { arm, cancel, fire, total } = self.timing;
        writeln!(f, "{:<10}{:>11}{:>12}{:>10}", "", "count", "wall time", "ns each")?;
        let rows = [
            ("armed", self.armed, arm),
            ("cancelled", self.cancelled, cancel),
            ("fired", self.fired, fire),
        ];
        for (name, count, took) in rows {
            let (took_text, each) = (nanoseconds(took), each_ns(took, count));
            match each {
                Some(each) => writeln!(f, "{name:<10}{count:>11}{took_text:>12}{each:>10.1}")?,
                None => writeln!(f, "{name:<10}{count:>11}{took_text:>12}{:>10}", "-")?,
            }
        }
        writeln!(f)?;
        let (step, idle) = (self.plan.step_ms, self.n_idle_steps());
        writeln!(f, "virtual time  {} ms", self.virtual_time.as_millis())?;
        writeln!(
            f,
            "steps         {} of {step} ms, {idle} without a timer; all cost is in `fired`",
            self.n_steps
        )?;
        let note = crate::slow_build_note();
        writeln!(f, "wall time     {} with all checks{note}", nanoseconds(total))?;
        writeln!(f, "order         {:#018x}, the same for this seed everywhere", self.tally.order)?;
        writeln!(
            f,
            "checks        all held: none early, none later than its step, by deadline and"
        )?;
        writeln!(f, "              then by registration, each once, armed = fired + cancelled")
    }

    fn write_lateness(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Lateness, in ticks of 1 ms")?;
        write_histogram(f, &self.tally.late_ticks, Chart { unit: Unit::Ticks, ..CHART })?;
        match self.plan.step_ms {
            1 => writeln!(f, "Virtual time meets every tick, so nothing is late. Try --step-ms 7."),
            step => writeln!(
                f,
                "Time moves by {step} ticks: timers are up to {} late, never early.",
                step - 1
            ),
        }
    }

    /// One line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let json = Json {
            command: "timers",
            plan: JsonPlan {
                count: self.plan.count,
                horizon_ms: self.plan.horizon_ms,
                cancel_percent: self.plan.cancel_percent,
                step_ms: self.plan.step_ms,
                seed: self.plan.seed,
            },
            armed: self.armed,
            cancelled: self.cancelled,
            fired: self.fired,
            virtual_ms: self.virtual_time.as_millis(),
            steps: self.n_steps,
            idle_steps: self.n_idle_steps(),
            order: format!("{:#018x}", self.tally.order),
            fired_per_step: JsonHistogram::of(&self.tally.batch),
            late_ticks: JsonHistogram::of(&self.tally.late_ticks),
            timing: JsonTiming {
                clock: "wall",
                build: crate::BUILD,
                arm_ns: self.timing.arm.as_nanos(),
                cancel_ns: self.timing.cancel.as_nanos(),
                fire_ns: self.timing.fire.as_nanos(),
                total_ns: self.timing.total.as_nanos(),
            },
        };
        let mut text = serde_json::to_string(&json).expect("numbers and strings always serialize");
        text.push('\n');
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { count, horizon_ms, seed, .. } = self.plan;
        writeln!(f, "{count} timers due within {horizon_ms} ms, seed {seed}\n")?;
        self.write_table(f)?;
        writeln!(f, "\nTimers fired in a step")?;
        write_histogram(f, &self.tally.batch, CHART)?;
        writeln!(f)?;
        self.write_lateness(f)
    }
}

fn nanoseconds(duration: Duration) -> impl fmt::Display {
    Unit::Nanoseconds.scale(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn each_ns(took: Duration, count: u32) -> Option<f64> {
    (count != 0).then(|| took.as_secs_f64() * 1e9 / f64::from(count))
}

#[derive(Serialize)]
struct Json {
    command: &'static str,
    plan: JsonPlan,
    armed: u32,
    cancelled: u32,
    fired: u32,
    virtual_ms: u128,
    steps: u64,
    idle_steps: u64,
    order: String,
    fired_per_step: JsonHistogram,
    late_ticks: JsonHistogram,
    timing: JsonTiming,
}

#[derive(Serialize)]
struct JsonPlan {
    count: u32,
    horizon_ms: u32,
    cancel_percent: u8,
    step_ms: u32,
    seed: u64,
}

#[derive(Serialize)]
struct JsonTiming {
    clock: &'static str,
    build: &'static str,
    arm_ns: u128,
    cancel_ns: u128,
    fire_ns: u128,
    total_ns: u128,
}

/// Buckets as `[lowest, highest, count]`, those that hold something.
#[derive(Serialize)]
struct JsonHistogram {
    count: u64,
    mean: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    buckets: Vec<[u64; 3]>,
}

impl JsonHistogram {
    fn of(snapshot: &Snapshot<SUB>) -> Self {
        Self {
            count: snapshot.count(),
            mean: snapshot.mean(),
            min: snapshot.min(),
            max: snapshot.max(),
            buckets: snapshot.buckets().map(|b| [b.lowest, b.highest, b.count]).collect(),
        }
    }
}
