//! Settings of components of running graphs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A setting of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Param {
    /// The graph, by the name under which the program has shown it.
    pub graph: String,
    /// The component and the name of the setting, as `component.field`.
    pub setting: String,
    /// The value that is in force.
    pub value: Value,
    /// Whether the setting has no value, so that the component uses its default.
    pub is_default: bool,
}

/// A setting that was changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ParamChange {
    /// The graph, by the name under which the program has shown it.
    pub graph: String,
    /// The component and the name of the setting, as `component.field`.
    pub setting: String,
    /// The value that was in force when the change was requested; `null` also if there was none.
    pub old: Value,
    /// The value that is in force now.
    pub new: Value,
    /// How many changes the run has taken, with this one.
    pub version: u64,
}
