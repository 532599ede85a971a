//! The error of what a component requests from its [`GraphContext`](super::context::GraphContext).

use core::fmt;

/// A task, a state or a metric that the run refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextError(pub(crate) Refusal);

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// As many tasks are running as the run allows.
    TasksFull { limit: usize },
    /// The port of a task is not an output of this component.
    ForeignOutput,
    /// Another component writes this state.
    ForeignState { key: String },
    /// The component has the largest number of metrics.
    MetricsFull { name: String, limit: usize },
    /// The metric exists with the other kind, for this component or another one.
    MetricKind { name: String },
    /// The name of the metric has other characters than letters, digits, `_` and `.`, is too long,
    /// or is reserved.
    MetricName { name: String, reserved: &'static str, len_max: usize },
}

impl ContextError {
    /// Whether a limit is reached: of running tasks, where a later attempt may succeed, or of the
    /// metrics of a component, which is permanent.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.0, Refusal::TasksFull { .. } | Refusal::MetricsFull { .. })
    }

    /// Whether a metric of this name is of the other kind, counter or histogram. Permanent.
    #[must_use]
    pub fn is_of_other_kind(&self) -> bool {
        matches!(self.0, Refusal::MetricKind { .. })
    }

    /// Whether the name of a metric is invalid. Permanent.
    #[must_use]
    pub fn is_invalid_name(&self) -> bool {
        matches!(self.0, Refusal::MetricName { .. })
    }
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Refusal::TasksFull { limit } => write!(f, "{limit} tasks are already running"),
            Refusal::ForeignOutput => f.write_str("the output is not one of this component"),
            Refusal::ForeignState { key } => {
                write!(f, "state `{key}` is written by another component")
            }
            Refusal::MetricsFull { name, limit } => {
                write!(f, "`{name}` exceeds the limit of {limit} metrics per component")
            }
            Refusal::MetricKind { name } => write!(f, "`{name}` already exists with another kind"),
            Refusal::MetricName { name, reserved, len_max } => write!(
                f,
                "`{name}` is not a valid name: a name begins with a letter, not with \
                 `{reserved}`, and has at most {len_max} letters, digits, `_` and `.`"
            ),
        }
    }
}

impl core::error::Error for ContextError {}
