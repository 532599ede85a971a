//! Expands the records of a run to all events that they represent.

use super::{NONE, TraceName, TraceRecord};
use crate::{compile::Plan, describe::EdgeKind};

/// All events of these records, sorted by start time.
///
/// A span comes with its beginning and its end; the value of the end is its duration. A value on an
/// immediate edge was published when it became visible; the publication comes before the commit.
/// Equal times keep the order of a run without a clock: an epoch begins before everything inside it
/// and ends after it, and so does an iteration of a loop.
#[must_use]
pub fn expand(plan: &Plan, records: &[TraceRecord]) -> Vec<TraceRecord> {
    let mut all = Expander { plan, out: Vec::with_capacity(records.len() * 2), ends: Vec::new() };
    for record in records {
        all.add(record);
    }
    all.end_while(|_| true);
    let mut out = all.out;
    out.sort_by_key(|record| record.start_ns);
    out
}

struct Expander<'p> {
    plan: &'p Plan,
    out: Vec<TraceRecord>,
    /// Ends of spans that may contain the next record, the innermost last.
    ends: Vec<TraceRecord>,
}

impl Expander<'_> {
    fn add(&mut self, record: &TraceRecord) {
        let plan = self.plan;
        if record.name == TraceName::SchedulerIteration {
            self.end_while(|_| true);
        } else {
            let is_of_loop = |end: &TraceRecord| end.name == TraceName::LoopIterationEnd;
            self.end_while(|end| is_of_loop(end) && !is_inside(plan, record, end));
        }
        let Some((begin, end)) = ends_of(record.name) else {
            if record.name == TraceName::ChannelCommit && is_immediate(plan, record.edge) {
                self.out.push(TraceRecord { name: TraceName::ChannelPublish, ..*record });
            }
            self.out.push(*record);
            return;
        };
        let end_ns = record.start_ns.saturating_add(record.duration_ns);
        let value = record.duration_ns;
        let end = TraceRecord { name: end, start_ns: end_ns, duration_ns: 0, value, ..*record };
        self.out.push(TraceRecord { name: begin, duration_ns: 0, ..*record });
        self.out.push(*record);
        let is_leaf = record.name == TraceName::ComponentExecute;
        if is_leaf {
            self.out.push(end);
        } else {
            self.ends.push(end);
        }
    }

    /// Ends spans, the innermost first, while `is_over` holds.
    fn end_while(&mut self, is_over: impl Fn(&TraceRecord) -> bool) {
        while let Some(end) = self.ends.pop_if(|end| is_over(end)) {
            self.out.push(end);
        }
    }
}

/// The names of the beginning and the end of a span.
const fn ends_of(name: TraceName) -> Option<(TraceName, TraceName)> {
    Some(match name {
        TraceName::SchedulerIteration => {
            (TraceName::SchedulerIterationBegin, TraceName::SchedulerIterationEnd)
        }
        TraceName::ComponentExecute => {
            (TraceName::ComponentExecuteBegin, TraceName::ComponentExecuteEnd)
        }
        TraceName::FixedRateTick => (TraceName::FixedRateTickBegin, TraceName::FixedRateTickEnd),
        TraceName::LoopIteration => (TraceName::LoopIterationBegin, TraceName::LoopIterationEnd),
        _ => return None,
    })
}

/// Whether an edge of the plan is immediate.
pub(in crate::run::observe) fn is_immediate(plan: &Plan, edge: u32) -> bool {
    plan.edges.get(edge as usize).is_some_and(|edge| edge.kind == EdgeKind::Immediate)
}

/// Whether a record belongs to an iteration of a loop: it is about a member, or about a publication
/// of a member.
fn is_inside(plan: &Plan, record: &TraceRecord, iteration: &TraceRecord) -> bool {
    if record.name.phase() == "loop" {
        return false;
    }
    let component = match (record.component, plan.edges.get(record.edge as usize)) {
        (NONE, Some(edge)) => edge.from.0,
        (component, _) => component as usize,
    };
    let region = |component: usize| plan.components.get(component).map(|one| one.region);
    region(component).is_some_and(|one| Some(one) == region(iteration.component as usize))
}
