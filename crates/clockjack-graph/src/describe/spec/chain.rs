//! A chain with a latency budget.

use super::FieldSpans;

/// A chain: how long data may take from one component to another.
///
/// A call of `to` has a latency if data of `from` reached it: the time from the beginning of the
/// call of `from` to the end of the call of `to`. If data of several calls of `from` reached it,
/// that of the oldest counts. Data travels with the messages that a component is called with;
/// feedback inside of the chain is not followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainSpec {
    /// The id; by default both ends, as `from:to`.
    pub id: String,
    /// The component in which the data begins.
    pub from: String,
    /// The component that the data must reach.
    pub to: String,
    /// The latency budget in milliseconds.
    pub max_ms: u64,
    /// The location of each field.
    pub spans: FieldSpans,
}

impl ChainSpec {
    /// Names a chain without an id after its ends.
    pub(crate) fn set_default_id(&mut self) {
        if self.id.is_empty() {
            self.id = format!("{}:{}", self.from, self.to);
        }
    }
}
