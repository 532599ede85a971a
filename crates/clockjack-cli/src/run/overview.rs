//! What `run` prints for people: a line about the run, a table with a line per component, plots of
//! a few edges, and what to try next.
//!
//! The durations of calls depend on the machine. They are in the last two columns of the table, and
//! in the line `took ..`, so that two outputs can be compared without them.

use clockjack_graph::{
    Clock,
    compile::{Plan, PlanComponent},
    run::{LossPlace, RunReport},
};

use super::{
    RunResult,
    summary::{ending, lanes, push_line, remarks, seconds},
};
use crate::plot::{
    number::short,
    text::{self, Style},
    values::RunValues,
};

/// The most components in the table: those with the most calls.
const ROWS_MAX: usize = 50;
/// The longest id in the table, and the longest last value.
const ID_COLUMNS: usize = 21;
const VALUE_COLUMNS: usize = 15;

/// The result of a run as text. `values`: what was recorded.
pub(crate) fn text(
    plan: &Plan,
    result: &RunResult,
    clock: Clock,
    values: Option<&RunValues>,
    style: Style,
) -> String {
    let mut out = String::new();
    if let Some(report) = &result.report {
        head(&mut out, plan, result, report, clock);
        out.push('\n');
        table(&mut out, plan, report, values);
        if clock != Clock::Virtual || has_late_ticks(report) {
            out.push('\n');
            lanes(&mut out, plan, &report.metrics);
        }
        let plot = values.map(|values| values.plot(&plan.name, report.elapsed_ns));
        if let Some(plot) = plot.filter(|plot| !plot.curves.is_empty()) {
            out.push('\n');
            out.push_str(&text::draw(&plot, style));
        }
        let n_before = out.len();
        remarks(&mut out, plan, report);
        if out.len() > n_before {
            out.insert(n_before, '\n');
        }
    }
    out.push_str(&ending(plan, result));
    out
}

fn head(out: &mut String, plan: &Plan, result: &RunResult, report: &RunReport, clock: Clock) {
    let RunReport { stop, epochs, executions, .. } = report;
    let time = seconds(u128::from(report.elapsed_ns));
    let of = if clock == Clock::Virtual { " of virtual time" } else { "" };
    push_line(
        out,
        format_args!(
            "{}: {epochs} epochs, {executions} calls, {time}{of}; ended by {stop}",
            plan.name
        ),
    );
    let n = report.overlap_max;
    let components = if n == 1 { "component" } else { "components" };
    let took = duration(result.wall.as_secs_f64() * 1e9);
    push_line(out, format_args!("took {took}, with at most {n} {components} at the same time"));
}

fn has_late_ticks(report: &RunReport) -> bool {
    let names = ["runtime.scheduler.tick_overrun_count", "runtime.scheduler.skipped_tick_count"];
    names.iter().any(|name| report.metrics.total(name) > 0.0)
}

/// One line per component.
fn table(out: &mut String, plan: &Plan, report: &RunReport, values: Option<&RunValues>) {
    let calls = |component: &PlanComponent| {
        report.component(&component.spec.id).map_or(0, |counts| counts.executions + counts.errors)
    };
    let mut shown: Vec<(usize, &PlanComponent)> = plan.components.iter().enumerate().collect();
    let n_more = shown.len().saturating_sub(ROWS_MAX);
    if n_more > 0 {
        shown.sort_by_key(|(_, component)| core::cmp::Reverse(calls(component)));
        shown.truncate(ROWS_MAX);
        shown.sort_by_key(|(index, _)| *index);
    }
    let longest = shown.iter().map(|(_, one)| one.spec.id.len()).max().unwrap_or(0);
    let width = longest.clamp("component".len(), ID_COLUMNS);
    push_line(
        out,
        format_args!(
            "{:width$} {:>8} {:>8} {:>VALUE_COLUMNS$} {:>6} {:>8} {:>8}",
            "component", "calls", "calls/s", "last value", "drops", "p50", "p99"
        ),
    );
    for (_, component) in shown {
        let id = component.spec.id.as_str();
        let n_calls = calls(component);
        let last = values.and_then(|values| last_value(plan, component, values));
        let last = last.map_or("-".into(), |last| clipped(&last));
        let drops = drops(plan, report, id);
        let time = |name: &str| {
            let found = report.metrics.get(&format!("runtime.component.{name}_duration_ns"), id);
            found.map_or("-".into(), duration)
        };
        let id = shortened(id);
        push_line(
            out,
            format_args!(
                "{id:width$} {n_calls:>8} {:>8} {last:>VALUE_COLUMNS$} {drops:>6} {:>8} {:>8}",
                rate(n_calls, report.elapsed_ns),
                time("p50"),
                time("p99"),
            ),
        );
    }
    if n_more > 0 {
        push_line(out, format_args!("and {n_more} components with fewer calls"));
    }
}

/// The last value at the first output that has one, or at the inputs of a component without
/// outputs.
fn last_value(plan: &Plan, component: &PlanComponent, values: &RunValues) -> Option<String> {
    let is_sink = component.outputs.iter().all(|port| port.edges.is_empty());
    let ports = if is_sink { &component.inputs } else { &component.outputs };
    let edges: Vec<usize> = ports.iter().flat_map(|port| &port.edges).copied().collect();
    values.last_of(plan, &edges)
}

/// The messages to a component that were lost, without those that the end of the run cut off.
fn drops(plan: &Plan, report: &RunReport, id: &str) -> u64 {
    let reads = |edge: &str| {
        let edge = plan.edges.iter().find(|one| one.id == edge);
        edge.is_some_and(|edge| {
            plan.components.get(edge.to.0).is_some_and(|reader| reader.spec.id == id)
        })
    };
    let losses = report.losses.iter().filter(|loss| !loss.is_run_ended());
    let own = losses.filter(|loss| match &loss.place {
        LossPlace::Component(component) => component == id,
        LossPlace::Edge(edge) => reads(edge),
        _ => false,
    });
    own.map(|loss| loss.count).sum()
}

/// Calls per second of the run's time.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
fn rate(n_calls: u64, elapsed_ns: u64) -> String {
    if elapsed_ns == 0 {
        return "-".into();
    }
    let rate = n_calls as f64 * 1e9 / elapsed_ns as f64;
    if rate < 999_999.0 { format!("{rate:.1}") } else { short(rate) }
}

/// Nanoseconds with a unit, in at most eight columns.
fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..999.5 => (ns, "ns"),
        ..999.5e3 => (ns / 1e3, "us"),
        ..999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let n_decimals = usize::from(value < 9.95 && unit != "ns");
    format!("{value:.n_decimals$} {unit}")
}

/// An id that fits: its end, which tells the parts of a subgraph apart. Ids are ASCII.
fn shortened(id: &str) -> String {
    match id.len().checked_sub(ID_COLUMNS) {
        None | Some(0) => id.into(),
        Some(n_over) => format!("..{}", &id[n_over + 2..]),
    }
}

/// A value that fits.
fn clipped(value: &str) -> String {
    if value.chars().count() <= VALUE_COLUMNS {
        return value.into();
    }
    let mut clipped: String = value.chars().take(VALUE_COLUMNS - 2).collect();
    clipped.push_str("..");
    clipped
}

/// What to try next: three commands that work when they are copied.
pub(crate) fn try_next(program: &str, file: &str, plan: &Plan) -> String {
    let [program, file] = [program, file].map(quoted);
    let picture = quoted(&format!("{}.svg", plan.name.replace('/', "-")));
    format!(
        "\nTry next: the graph, the run in real time, and the plot as a picture\n  \
         {program} render {file}\n  \
         {program} run {file} --clock wall --for 5s\n  \
         {program} plot {file} -o {picture}\n"
    )
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "_./:=+-\\".contains(one);
    if word.chars().all(is_plain) && !word.is_empty() {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_eight_columns() {
        let shown = [0.0, 999.4, 999.6, 9960.0, 999_949.0, 25e6, 1.5e9, 86_400e9].map(duration);
        let expected = ["0 ns", "999 ns", "1.0 us", "10 us", "1.0 ms", "25 ms", "1.5 s", "86400 s"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn long_ids_keep_their_end_and_long_values_their_beginning() {
        assert_eq!(shortened("a.bcdefghijklmnopqrst"), "a.bcdefghijklmnopqrst");
        assert_eq!(shortened("house.kitchen.oven.heater"), "..kitchen.oven.heater");
        assert_eq!(clipped("äöüäöüäöüäöüäöü"), "äöüäöüäöüäöüäöü");
        assert_eq!(clipped("0123456789abcdef"), "0123456789abc..");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let shown = ["a/b-c.yaml", "it's", "a b", "$x", ""].map(quoted);
        assert_eq!(shown, ["a/b-c.yaml", "'it'\\''s'", "'a b'", "'$x'", "''"]);
    }
}
