//! Where a walk is, in the words of reports: `edges.y.policy.capacity`. Only written out for a
//! fault.

use super::{Reader, brief, key_text};
use crate::describe::tree::Node;

/// A step down.
#[derive(Clone, Copy, Debug)]
pub(in crate::describe) enum Step<'t> {
    /// Into a field.
    Field(&'static str),
    /// Into what a key of a free map stands for.
    Key(&'t str),
    /// Into an item of a list: called by its id, if it has one.
    Item(usize, &'t Node<'t>),
}

impl Reader<'_> {
    pub(super) fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            let name = match step {
                Step::Field(name) | Step::Key(name) => brief(name),
                Step::Item(index, node) => {
                    let mut pairs = self.tree.pairs(node);
                    match pairs.find(|[key, _]| key_text(key) == Some("id")) {
                        Some([_, id]) if key_text(id).is_some() => {
                            brief(key_text(id).unwrap_or_default())
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
