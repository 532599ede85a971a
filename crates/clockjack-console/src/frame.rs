//! Frames: what changed in a view since the last frame that the client got.
//!
//! A view is a JSON object whose member `rows` is a table, or a table alone. A frame has the rows
//! that changed, the keys of those that are gone, the order if it is another one, and all other
//! members if one of them changed. The state that a frame is compared with is that of the last
//! frame which was *sent*: a frame that is skipped, because the client is slow, changes nothing, so
//! that the next one is complete.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What changed in a view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Frame {
    /// The view with its parameters, as it was subscribed to.
    pub view: String,
    /// The number of the frame; the first is 0.
    pub seq: u64,
    /// All members of the view but `rows`, if one has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Map<String, Value>>,
    /// What changed in the table, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowsDelta>,
    /// Why the view cannot be shown now; its last state stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What changed in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RowsDelta {
    /// Rows that are new or have changed, with their keys.
    pub changed: Vec<(String, Value)>,
    /// The keys of rows that are gone.
    pub removed: Vec<String>,
    /// The keys of all rows in their order, if the order is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
}

/// A view as its parts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Parts {
    /// All members but `rows`; `None` if the view is a table alone.
    head: Option<Map<String, Value>>,
    /// With their keys; `None` if the view has no table.
    rows: Option<Vec<(String, Value)>>,
}

/// The members that tell the rows of a view from each other.
fn key_members(view: &str) -> &'static [&'static str] {
    match view {
        "actors" | "tree" => &["pid"],
        "workers" => &["pool", "worker"],
        "jobs" => &["job"],
        "asks" => &["from", "to"],
        "deadletters" => &["recipient", "message_type", "reason"],
        "graphs" => &["name"],
        "events" => &["number"],
        "findings" => &["code", "subject"],
        _ => &[],
    }
}

impl Parts {
    fn of(view: &str, value: Value) -> Self {
        let (head, rows) = match value {
            Value::Array(rows) => (None, Some(rows)),
            Value::Object(mut head) => match head.remove("rows") {
                Some(Value::Array(rows)) => (Some(head), Some(rows)),
                Some(other) => {
                    head.insert("rows".into(), other);
                    (Some(head), None)
                }
                None => (Some(head), None),
            },
            other => (Some(Map::from_iter([("value".to_owned(), other)])), None),
        };
        Self { head, rows: rows.map(|rows| with_keys(view, rows)) }
    }

    fn into_value(self) -> Value {
        let rows = self.rows.map(|rows| rows.into_iter().map(|(_, row)| row).collect());
        let rows = rows.map(Value::Array);
        let Some(mut head) = self.head else { return rows.unwrap_or_default() };
        if let Some(rows) = rows {
            head.insert("rows".into(), rows);
        }
        Value::Object(head)
    }
}

/// Gives each row a key that no other row has.
fn with_keys(view: &str, rows: Vec<Value>) -> Vec<(String, Value)> {
    let members = key_members(view);
    let mut seen = std::collections::BTreeMap::new();
    let keyed = rows.into_iter().enumerate().map(|(index, row)| {
        let part = |name: &&str| match &row[*name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let parts: Vec<String> = members.iter().map(part).collect();
        let mut key = if parts.is_empty() { index.to_string() } else { parts.join(" ") };
        let n: &mut u32 = seen.entry(key.clone()).or_default();
        *n += 1;
        if *n > 1 {
            key.push_str(&format!(" ({n})"));
        }
        (key, row)
    });
    keyed.collect()
}

/// Makes the frames of one view for one client.
#[derive(Debug)]
pub struct Encoder {
    view: String,
    name: String,
    sent: Parts,
    seq: u64,
}

impl Encoder {
    /// Frames of a view, subscribed to as `view`.
    #[must_use]
    pub fn new(view: &str, name: &str) -> Self {
        Self { view: view.to_owned(), name: name.to_owned(), sent: Parts::default(), seq: 0 }
    }

    /// The next frame, which is then as good as sent; `None` if nothing has changed.
    pub fn next(&mut self, value: Value) -> Option<Frame> {
        let parts = Parts::of(&self.name, value);
        let head = if parts.head == self.sent.head { None } else { parts.head.clone() };
        let rows = parts.rows.as_ref().and_then(|rows| self.delta(rows));
        if head.is_none() && rows.is_none() && self.seq > 0 {
            return None;
        }
        self.sent = parts;
        Some(Frame { head, rows, ..self.frame() })
    }

    /// The frame that tells why the view cannot be shown.
    pub fn error(&mut self, error: String) -> Frame {
        Frame { error: Some(error), ..self.frame() }
    }

    fn frame(&mut self) -> Frame {
        let seq = self.seq;
        self.seq += 1;
        Frame { view: self.view.clone(), seq, ..Frame::default() }
    }

    fn delta(&self, rows: &[(String, Value)]) -> Option<RowsDelta> {
        use std::collections::BTreeMap;
        let Some(sent) = &self.sent.rows else {
            let order = Some(rows.iter().map(|(key, _)| key.clone()).collect());
            return Some(RowsDelta { changed: rows.to_vec(), removed: Vec::new(), order });
        };
        let old: BTreeMap<&str, &Value> = sent.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let new: BTreeMap<&str, &Value> = rows.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let is_changed =
            |(key, row): &&(String, Value)| old.get(key.as_str()).is_none_or(|old| *old != row);
        let changed: Vec<_> = rows.iter().filter(is_changed).cloned().collect();
        let removed = old.keys().filter(|key| !new.contains_key(*key));
        let removed: Vec<String> = removed.map(|key| (*key).to_owned()).collect();
        let is_same_order = rows.iter().map(|(key, _)| key).eq(sent.iter().map(|(key, _)| key));
        let order = (!is_same_order).then(|| rows.iter().map(|(key, _)| key.clone()).collect());
        let is_same = changed.is_empty() && removed.is_empty() && order.is_none();
        (!is_same).then_some(RowsDelta { changed, removed, order })
    }
}

/// A view as a client knows it: all frames so far, put together.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    parts: Parts,
    is_complete: bool,
}

impl Mirror {
    /// Applies a frame.
    pub fn apply(&mut self, frame: Frame) {
        if frame.error.is_some() {
            return;
        }
        self.is_complete = true;
        if frame.head.is_some() {
            self.parts.head = frame.head;
        }
        let Some(delta) = frame.rows else { return };
        let rows = self.parts.rows.take().unwrap_or_default();
        let old_order: Vec<String> = rows.iter().map(|(key, _)| key.clone()).collect();
        let mut by_key: std::collections::BTreeMap<String, Value> = rows.into_iter().collect();
        for key in &delta.removed {
            by_key.remove(key);
        }
        by_key.extend(delta.changed);
        let order = delta.order.unwrap_or(old_order);
        let rows = order.into_iter().filter_map(|key| by_key.remove_entry(&key));
        self.parts.rows = Some(rows.collect());
    }

    /// The view; `None` before the first frame.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.is_complete.then(|| self.parts.clone().into_value())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A view with random rows in a random order.
    fn random(next: &mut impl FnMut(u64) -> u64) -> Value {
        let mut rows: Vec<Value> = Vec::new();
        for pid in 0..8 {
            if next(3) > 0 {
                let at = usize::try_from(next(rows.len() as u64 + 1)).unwrap();
                rows.insert(at, json!({ "pid": pid.to_string(), "depth": next(2) }));
            }
        }
        json!({ "rows": rows, "total": next(3) })
    }

    #[test]
    fn a_client_has_the_whole_view_whatever_was_skipped() {
        for seed in 1..200_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut next = move |bound: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % bound
            };
            let (mut encoder, mut mirror) = (Encoder::new("a", "actors"), Mirror::default());
            let mut seq = 0;
            for _ in 0..40 {
                let view = random(&mut next);
                // A skipped frame is not even computed.
                if next(2) == 0 {
                    continue;
                }
                if let Some(frame) = encoder.next(view.clone()) {
                    assert_eq!(frame.seq, seq);
                    seq += 1;
                    let text = serde_json::to_string(&frame).unwrap();
                    mirror.apply(serde_json::from_str(&text).unwrap());
                }
                assert_eq!(mirror.value(), Some(view), "seed {seed}");
            }
        }
    }

    #[test]
    fn only_what_changed_is_sent() {
        let row = |pid: u32, depth: u32| json!({ "pid": pid.to_string(), "depth": depth });
        let view = |rows: Vec<Value>| json!({ "rows": rows, "total": 3 });
        let mut encoder = Encoder::new("a", "actors");
        assert!(encoder.next(view(vec![row(1, 0), row(2, 0), row(3, 0)])).is_some());
        assert_eq!(encoder.next(view(vec![row(1, 0), row(2, 0), row(3, 0)])), None);
        let frame = encoder.next(view(vec![row(1, 0), row(3, 7)])).unwrap();
        assert_eq!(frame.head, None);
        let delta = frame.rows.unwrap();
        assert_eq!(delta.changed, [("3".to_owned(), row(3, 7))]);
        assert_eq!(delta.removed, ["2"]);
    }

    #[test]
    fn a_table_alone_and_a_view_without_a_table_have_frames_too() {
        for view in [
            json!({}),
            json!([{ "code": "S01", "subject": "/a" }]),
            json!([]),
            json!({ "busy": 1 }),
        ] {
            let (mut encoder, mut mirror) = (Encoder::new("f", "findings"), Mirror::default());
            mirror.apply(encoder.next(view.clone()).unwrap());
            assert_eq!(mirror.value(), Some(view));
        }
    }

    #[test]
    fn rows_with_one_key_are_told_apart() {
        let view = json!({ "rows": [{ "from": "a", "to": "b" }, { "from": "a", "to": "b" }] });
        let (mut encoder, mut mirror) = (Encoder::new("asks", "asks"), Mirror::default());
        mirror.apply(encoder.next(view.clone()).unwrap());
        assert_eq!(mirror.value(), Some(view));
    }
}
