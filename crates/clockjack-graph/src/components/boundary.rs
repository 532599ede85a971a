//! Boundaries where numbers enter and leave a graph. Those for buffers and frames are in
//! [`buffers`](super::buffers).
//!
//! These components print nothing and use no files. To see values, observe the run.

use clockjack_exec::Failure;

use super::state::snapshot_fields;
use crate::{
    Component,
    component::{Execute, Input, Output},
    run::GraphContext,
};

/// `input`: publishes the values that it is fed with; without such values it follows a pattern.
///
/// `feed` may be left unconnected: a program feeds it from outside. Without a program, `ramp`
/// publishes `start`, `start + step`, .., one value per invocation; `constant` publishes `start`,
/// and `none` publishes nothing.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "input", title = "Input", role = "input")]
pub(super) struct FeedInput {
    /// The values from outside.
    #[input(optional)]
    feed: Input<f64>,
    /// The same values, or the pattern.
    #[output]
    out: Output<f64>,
    #[config(default = "ramp", one_of("ramp", "constant", "none"))]
    pattern: String,
    #[config(default = 0.0)]
    start: f64,
    #[config(default = 1.0)]
    step: f64,
    /// How many values of the pattern were used.
    n: u64,
}

impl FeedInput {
    /// The next value of the pattern.
    pub(super) fn next(&mut self) -> Option<f64> {
        let n = self.n;
        self.n += 1;
        match self.pattern.as_str() {
            "ramp" => Some(self.start + to_f64(n) * self.step),
            "constant" => Some(self.start),
            _ => None,
        }
    }
}

impl Execute for FeedInput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let mut was_fed = false;
        while let Some(value) = cx.take(self.feed) {
            was_fed = true;
            cx.publish(self.out, value)?;
        }
        if !was_fed && let Some(value) = self.next() {
            cx.publish(self.out, value)?;
        }
        Ok(())
    }

    snapshot_fields!(n);
}

/// `output`: consumes numbers. It counts them and keeps the last one; both are part of its
/// snapshot.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "output", title = "Output", role = "output")]
pub(super) struct CountOutput {
    /// The values that leave the graph. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<f64>,
    pub(super) count: u64,
    pub(super) last: f64,
}

impl CountOutput {
    pub(super) fn take(&mut self, value: f64) {
        self.count += 1;
        self.last = value;
    }
}

impl Execute for CountOutput {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        cx.drain(self.r#in).for_each(|value| self.take(*value));
        Ok(())
    }

    snapshot_fields!(count, last);
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "no run counts to 2^53")]
pub(super) fn to_f64(n: u64) -> f64 {
    n as f64
}
