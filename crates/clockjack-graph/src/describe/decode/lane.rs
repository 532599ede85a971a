//! `lanes.<id>`.

use super::{not_taken, pick, set, some_text};
use crate::describe::{
    fields::{self, Kind},
    reader::Reader,
    spec::{LaneOverflow, LaneSpec, LaneType, Marks, OnPolicyError, OverrunPolicy},
    tree::Node,
};

/// A lane. One whose type cannot be read is taken for an event loop, so that the rest is looked at.
pub(super) fn lane<'t>(
    reader: &mut Reader<'t>,
    id: String,
    node: &'t Node<'t>,
) -> Option<LaneSpec> {
    let mut lane = LaneSpec::new(&id, LaneType::EventLoop);
    let mut marks = Marks { item: node.span, ..Marks::default() };
    let is_map =
        reader.section(&fields::LANE, node, &mut marks, |reader, field, value| match field.name {
            "type" => pick(&mut lane.lane_type, LaneType::ALL, reader.name(field, value)),
            "hz" => set(&mut lane.hz, reader.number(value)),
            "period_ms" => set(&mut lane.period_ms, reader.millis(field, value)),
            "tick_budget_ms" => set(&mut lane.tick_budget_ms, reader.millis(field, value)),
            "wall_clock_enabled" => set(&mut lane.wall_clock_enabled, reader.bool(value)),
            "overrun_policy" => {
                pick(&mut lane.overrun_policy, OverrunPolicy::ALL, reader.name(field, value));
            }
            "max_threads" => set(&mut lane.max_threads, reader.count(field, value)),
            "queue_capacity" => set(&mut lane.queue_capacity, reader.count(field, value)),
            "overflow" => pick(&mut lane.overflow, LaneOverflow::ALL, reader.name(field, value)),
            "aging_picks" => set(&mut lane.aging_picks, reader.count(field, value)),
            "max_callback_ms" => set(&mut lane.max_callback_ms, reader.millis(field, value)),
            "thread_name" => lane.thread_name = some_text(reader, value),
            "priority" => set(&mut lane.priority, reader.whole(field, value)),
            "cpu_affinity" => lane.cpu_affinity = reader.counts(value),
            "nice_priority" => set(&mut lane.nice_priority, reader.whole(field, value)),
            "rt_policy" => {
                let Kind::Name(names, _) = field.kind else { not_taken(field) };
                let name = reader.name(field, value).map(|index| names[index].to_owned());
                set(&mut lane.rt_policy, name);
            }
            "rt_priority" => set(&mut lane.rt_priority, reader.whole(field, value)),
            "isolation_intent" => set(&mut lane.isolation_intent, some_text(reader, value)),
            "on_policy_error" => {
                pick(&mut lane.on_policy_error, OnPolicyError::ALL, reader.name(field, value));
            }
            _ => not_taken(field),
        });
    lane.marks = marks;
    is_map.then_some(lane)
}
