//! `clockjack plan` and `clockjack diff-plan`: a plan as records.

use clockjack_graph::compile::Plan;
pub(crate) use clockjack_graph::compile::diff::PlanDiff;
use serde_json::Value;

/// One JSON object per line: first the properties of the plan, then the items of its lists in
/// order, each with the name of its list.
pub(crate) fn lines(plan: &Plan) -> String {
    let Value::Object(members) = plan.to_json() else { return String::new() };
    let (lists, rest): (Vec<_>, Vec<_>) = members.into_iter().partition(
        |(_, value)| matches!(value, Value::Array(list) if list.iter().any(Value::is_object)),
    );
    let mut head = serde_json::Map::from_iter(rest);
    head.insert(String::from("record"), "plan".into());
    let mut out = format!("{}\n", Value::Object(head));
    for (name, list) in lists {
        let Value::Array(list) = list else { continue };
        for mut item in list {
            item["record"] = name.as_str().into();
            out.push_str(&format!("{item}\n"));
        }
    }
    out
}
