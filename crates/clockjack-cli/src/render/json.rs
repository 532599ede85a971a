//! A picture as JSON, for programs that draw it themselves.

use serde_json::{Value, json};

use super::Picture;

pub(super) fn draw(picture: &Picture) -> String {
    let boxes = picture.frames.iter().map(|frame| {
        let parent = frame.parent.map(|index| picture.frames[index].id.as_str());
        json!({"id": frame.id, "kind": frame.kind.name(), "label": frame.label, "in": parent})
    });
    let nodes = picture.nodes.iter().map(|node| {
        json!({
            "id": node.id,
            "type": node.component_type,
            "lane": picture.lanes[node.lane].id,
            "boundary_role": node.role.name(),
            "in": node.frame.map(|index| picture.frames[index].id.as_str()),
        })
    });
    let edges = picture.edges.iter().map(|edge| {
        json!({
            "id": edge.id,
            "kind": edge.kind.name(),
            "from": {"node": picture.nodes[edge.from].id, "port": edge.from_port},
            "to": {"node": picture.nodes[edge.to].id, "port": edge.to_port},
            "label": edge.label,
        })
    });
    let value = json!({
        "graph": picture.name,
        "boxes": boxes.collect::<Vec<Value>>(),
        "nodes": nodes.collect::<Vec<Value>>(),
        "edges": edges.collect::<Vec<Value>>(),
    });
    format!("{value}\n")
}
