//! Checks a lane for fields that contradict each other and fields without effect.

use crate::{
    compile::{capability, report::Report},
    describe::{LaneSpec, LaneType},
    diagnostic::{Code, Diagnostic},
};

/// The niceness values of the operating system.
const NICE: core::ops::RangeInclusive<i64> = -20..=19;

/// The real-time priorities of the operating system.
const RT_PRIORITY: core::ops::RangeInclusive<i64> = 1..=99;

pub(super) fn check(lane: &LaneSpec, report: &mut Report<'_>) {
    let mut wrong = |field: &'static str, text: String, help: &str| {
        let path = format!("lanes.{}.{field}", lane.id);
        let found = Diagnostic::new(Code::InvalidLanePolicy, path, text);
        report.push(found.at(lane.spans.get(field)).help(help));
    };
    if !(lane.hz.is_finite() && lane.hz >= 0.0) {
        wrong("hz", format!("`hz` is {}", lane.hz), "use a non-negative number");
    }
    if lane.lane_type == LaneType::FixedRate && lane.wall_clock_enabled && lane.period_ns() == 0 {
        wrong(
            "wall_clock_enabled",
            "a wall-clock lane has no period".into(),
            "set `period_ms` or `hz`",
        );
    }
    if !NICE.contains(&lane.nice_priority) {
        let text = format!("`nice_priority` is {}", lane.nice_priority);
        wrong("nice_priority", text, "use a number from -20 to 19");
    }
    match lane.rt_policy.as_str() {
        "none" => {}
        "fifo" | "rr" => {
            if !RT_PRIORITY.contains(&lane.rt_priority) {
                let text = format!(
                    "`rt_priority` is {} with `rt_policy: {}`",
                    lane.rt_priority, lane.rt_policy
                );
                wrong("rt_priority", text, "use a number from 1 to 99");
            }
        }
        other => {
            let text = format!("unknown real-time policy `{other}`");
            wrong("rt_policy", text, "use `none`, `fifo` or `rr`");
        }
    }
    for (field, why) in capability::advice(lane) {
        let path = format!("lanes.{}.{field}", lane.id);
        report.advise(Code::AdvisoryLaneFieldIgnored, path, lane.spans.get(field), why);
    }
}
