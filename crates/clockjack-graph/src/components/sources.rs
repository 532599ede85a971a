//! Components that generate numbers: a constant, a counter, a wave, noise.
//!
//! The output of a [`Source`] depends only on the epoch, and that of [`Noise`] only on its seed and
//! the number of invocations, never on a clock or on a library of the machine.

use clockjack_exec::Failure;
use clockjack_sync::splitmix;

use super::{boundary::to_f64, state::snapshot_fields};
use crate::{
    Component,
    component::{Execute, Output},
    run::GraphContext,
};

/// `constant`: publishes the same number at each invocation.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "constant", title = "Constant")]
pub(super) struct Constant {
    /// The number.
    #[output]
    out: Output<f64>,
    #[config]
    value: f64,
}

impl Execute for Constant {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        cx.publish(self.out, self.value)?;
        Ok(())
    }
}

/// `counter`: publishes `start`, `start + step`, `start + 2 * step`, ..
#[derive(Component, Clone, Debug, Default)]
#[component(type = "counter", title = "Counter")]
pub(super) struct Counter {
    /// The current count.
    #[output]
    out: Output<f64>,
    #[config(default = 0.0)]
    start: f64,
    #[config(default = 1.0)]
    step: f64,
    n: u64,
}

impl Counter {
    pub(super) fn next(&mut self) -> f64 {
        let value = self.start + to_f64(self.n) * self.step;
        self.n += 1;
        value
    }
}

impl Execute for Counter {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let value = self.next();
        cx.publish(self.out, value)?;
        Ok(())
    }

    snapshot_fields!(n);
}

/// `source`: a wave over the epochs, `offset + amplitude * shape((epoch + phase) / period)`.
///
/// `sine` starts at 0 and rises; `saw` rises from -1 to 1; `square` is 1 for half a period and -1
/// for the other half; `step` is 0 for the first `period` epochs and 1 afterwards.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "source", title = "Wave")]
pub(super) struct Source {
    /// The wave.
    #[output]
    out: Output<f64>,
    #[config(default = "sine", one_of("sine", "saw", "square", "step"))]
    shape: String,
    #[config(default = 1.0)]
    amplitude: f64,
    #[config(default = 0.0)]
    offset: f64,
    #[config(default = 100, min = 1, max = 4294967295)]
    period: u64,
    #[config(default = 0)]
    phase: u64,
}

impl Source {
    /// The wave at an epoch.
    pub(super) fn at(&self, epoch: u64) -> f64 {
        let epoch = epoch.wrapping_add(self.phase);
        // The remainder is computed on integers, so that the thousandth period equals the first.
        let part = to_f64(epoch % self.period) / to_f64(self.period);
        let shape = match self.shape.as_str() {
            "saw" => 2.0 * part - 1.0,
            "square" => {
                if part < 0.5 {
                    1.0
                } else {
                    -1.0
                }
            }
            "step" => {
                if epoch < self.period {
                    0.0
                } else {
                    1.0
                }
            }
            _ => sine(part),
        };
        self.offset + self.amplitude * shape
    }
}

impl Execute for Source {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        // Epochs count from one, but a wave starts at zero.
        let value = self.at(cx.epoch().saturating_sub(1));
        cx.publish(self.out, value)?;
        Ok(())
    }
}

/// The sine of a fraction of a full turn, `0 <= turn < 1`, with an error below 1e-6.
///
/// The sine of a library may differ in the last bit between machines; sums and products do not.
pub(super) fn sine(turn: f64) -> f64 {
    // The second half mirrors the first, and each half mirrors its own second quarter.
    let (sign, half) = if turn < 0.5 { (1.0, turn) } else { (-1.0, turn - 0.5) };
    let quarter = if half <= 0.25 { half } else { 0.5 - half };
    let x = quarter * (2.0 * core::f64::consts::PI);
    let xx = x * x;
    // The Taylor series up to the eleventh power, evaluated by Horner's method.
    let series = 1.0
        - xx / 6.0 * (1.0 - xx / 20.0 * (1.0 - xx / 42.0 * (1.0 - xx / 72.0 * (1.0 - xx / 110.0))));
    sign * x * series
}

/// `noise`: numbers uniformly distributed over `-amplitude <= x < amplitude`. The same seed gives
/// the same sequence; the seed of the run is added to the component's own.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "noise", title = "Noise")]
pub(super) struct Noise {
    /// The noise.
    #[output]
    out: Output<f64>,
    #[config(default = 1, min = 0)]
    seed: u64,
    #[config(default = 1.0, min = 0.0)]
    amplitude: f64,
    /// How many numbers were generated.
    n: u64,
}

impl Noise {
    pub(super) fn next(&mut self, run_seed: u64) -> f64 {
        self.n = self.n.wrapping_add(1);
        self.amplitude * (2.0 * unit(self.seed.wrapping_add(run_seed), self.n) - 1.0)
    }
}

/// The `n`-th number of a seed's sequence, `0 <= x < 1`: SplitMix64, which allows random access.
pub(super) fn unit(seed: u64, n: u64) -> f64 {
    let word = splitmix::mix(seed.wrapping_add(n.wrapping_mul(splitmix::STEP)));
    // An `f64` represents 53 bits exactly, and their quotient too.
    to_f64(word >> 11) / to_f64(1 << 53)
}

impl Execute for Noise {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let value = self.next(cx.seed());
        cx.publish(self.out, value)?;
        Ok(())
    }

    snapshot_fields!(n);
}
