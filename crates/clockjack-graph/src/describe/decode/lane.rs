//! Decodes `lanes.<id>`.

use super::{assign, assign_name, optional_text, unhandled};
use crate::describe::{
    fields::{self, FieldKind},
    reader::Reader,
    spec::{FieldSpans, LaneOverflow, LaneSpec, LaneType, OnPolicyError, OverrunPolicy},
    tree::YamlNode,
};

/// Decodes a lane. A lane with an invalid type is read as an event loop, so that its other fields
/// are checked.
pub(super) fn lane<'t>(
    reader: &mut Reader<'t>,
    id: String,
    node: &'t YamlNode<'t>,
) -> Option<LaneSpec> {
    let mut lane = LaneSpec::new(&id, LaneType::EventLoop);
    let mut spans = FieldSpans { item: node.span, ..FieldSpans::default() };
    let is_map =
        reader.section(&fields::LANE, node, &mut spans, |reader, field, value| match field.name {
            "type" => assign_name(&mut lane.lane_type, LaneType::ALL, reader.name(field, value)),
            "hz" => assign(&mut lane.hz, reader.number(value)),
            "period_ms" => assign(&mut lane.period_ms, reader.millis(field, value)),
            "tick_budget_ms" => assign(&mut lane.tick_budget_ms, reader.millis(field, value)),
            "wall_clock_enabled" => assign(&mut lane.wall_clock_enabled, reader.bool(value)),
            "overrun_policy" => {
                assign_name(
                    &mut lane.overrun_policy,
                    OverrunPolicy::ALL,
                    reader.name(field, value),
                );
            }
            "max_threads" => assign(&mut lane.max_threads, reader.count(field, value)),
            "queue_capacity" => assign(&mut lane.queue_capacity, reader.count(field, value)),
            "overflow" => {
                assign_name(&mut lane.overflow, LaneOverflow::ALL, reader.name(field, value))
            }
            "aging_picks" => assign(&mut lane.aging_picks, reader.count(field, value)),
            "max_callback_ms" => assign(&mut lane.max_callback_ms, reader.millis(field, value)),
            "thread_name" => lane.thread_name = optional_text(reader, value),
            "priority" => assign(&mut lane.priority, reader.whole(field, value)),
            "cpu_affinity" => lane.cpu_affinity = reader.counts(value),
            "nice_priority" => assign(&mut lane.nice_priority, reader.whole(field, value)),
            "rt_policy" => {
                let FieldKind::Name(names, _) = field.kind else { unhandled(field) };
                let name = reader.name(field, value).map(|index| names[index].to_owned());
                assign(&mut lane.rt_policy, name);
            }
            "rt_priority" => assign(&mut lane.rt_priority, reader.whole(field, value)),
            "isolation_intent" => assign(&mut lane.isolation_intent, optional_text(reader, value)),
            "on_policy_error" => {
                assign_name(
                    &mut lane.on_policy_error,
                    OnPolicyError::ALL,
                    reader.name(field, value),
                );
            }
            _ => unhandled(field),
        });
    lane.spans = spans;
    is_map.then_some(lane)
}
