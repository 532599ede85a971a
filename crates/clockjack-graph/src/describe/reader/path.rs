//! The path of the walk as it appears in reports: `edges.y.policy.capacity`. It is formatted only
//! for diagnostics.

use super::{Reader, key_text, truncated};
use crate::describe::tree::YamlNode;

/// A step of the path.
#[derive(Clone, Copy, Debug)]
pub(in crate::describe) enum PathStep<'t> {
    /// Into a field.
    Field(&'static str),
    /// Into the value of a key of a free map.
    Key(&'t str),
    /// Into an item of a list, which is named by its id if it has one.
    Item(usize, &'t YamlNode<'t>),
}

impl Reader<'_> {
    pub(super) fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            let name = match step {
                PathStep::Field(name) | PathStep::Key(name) => truncated(name),
                PathStep::Item(index, node) => {
                    let mut pairs = self.tree.pairs(node);
                    match pairs.find(|[key, _]| key_text(key) == Some("id")) {
                        Some([_, id]) if key_text(id).is_some() => {
                            truncated(key_text(id).unwrap_or_default())
                        }
                        _ => {
                            text.push_str(&format!("[{index}]"));
                            continue;
                        }
                    }
                }
            };
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&name);
        }
        text
    }
}
