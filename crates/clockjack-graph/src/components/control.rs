//! The four parts of a control loop, and the simplest of each: what is measured, what is believed,
//! what is ordered, what happens.
//!
//! A step is one invocation, and `dt` says how long it is meant to be. So a loop does the same in
//! virtual time, at any speed, and on a machine that is late.

use clockjack_exec::Failure;
use clockjack_sync::mutant;

use super::{
    plain::in_order,
    state::{exact, keeps, snapshot_of},
};
use crate::{
    Component,
    component::{Config, ConfigError, Execute, Input, Output, Snapshot},
    run::GraphContext,
};

/// `sensor`: measures, `gain * value + bias`, in steps of `resolution` if that is not 0.
///
/// Before there is a value it measures 0: so a loop which is closed behind it can begin.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "sensor", title = "Sensor")]
pub struct Sensor {
    /// What is.
    #[input(optional)]
    r#in: Input<f64>,
    /// What is measured.
    #[output]
    out: Output<f64>,
    #[config(default = 1.0)]
    gain: f64,
    #[config(default = 0.0)]
    bias: f64,
    #[config(default = 0.0, min = 0.0)]
    resolution: f64,
}

impl Sensor {
    pub(super) fn measure(&self, value: f64) -> f64 {
        let exact = self.gain * value + self.bias;
        // Rounding down is exact on every machine.
        if self.resolution > 0.0 {
            self.resolution * (exact / self.resolution + 0.5).floor()
        } else {
            exact
        }
    }
}

impl Execute for Sensor {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let value = cx.latest(self.r#in).copied().unwrap_or(0.0);
        cx.publish(self.out, self.measure(value))?;
        Ok(())
    }
}

/// `estimator`: smooths, `estimate += alpha * (value - estimate)`; the first value is the first
/// estimate. In a loop it says that it has converged when it moves by no more than `tolerance`.
/// What is no finite number changes nothing: one such reading does not stay for ever.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "estimator", title = "Estimator")]
pub struct Estimator {
    /// What is measured.
    #[input]
    r#in: Input<f64>,
    /// What is believed.
    #[output]
    out: Output<f64>,
    #[config(default = 0.5, min = 0.0, max = 1.0)]
    alpha: f64,
    #[config(default = 1e-9, min = 0.0)]
    tolerance: f64,
    estimate: Option<f64>,
}

impl Estimator {
    /// Takes a value; how far the estimate has moved.
    pub(super) fn correct(&mut self, value: f64) -> f64 {
        let before = self.estimate.unwrap_or(value);
        let after = before + self.alpha * (value - before);
        if after.is_finite() {
            self.estimate = Some(after);
        }
        after - before
    }
}

impl Execute for Estimator {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let Some(value) = cx.update(self.r#in).copied() else { return Ok(()) };
        let moved = self.correct(value).abs();
        if cx.loop_iteration().is_some() {
            let reason = "the estimate moves by no more than its tolerance";
            cx.report_loop_convergence(moved <= self.tolerance, Some(moved), reason);
        }
        if let Some(estimate) = self.estimate {
            cx.publish(self.out, estimate)?;
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.estimate = None;
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        Ok(Some(snapshot_of::<Self>(self.estimate.map(f64::to_bits))))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.estimate = exact::<Self, 1>(snapshot)?.map(|[bits]| f64::from_bits(bits));
        Ok(())
    }
}

/// `controller`: orders, `kp * error + ki * sum of error * dt`, between `min` and `max`. While the
/// order is at a limit, the sum does not grow beyond what the limit needs. An error that is no
/// number is not in the sum: only its own order is none, too.
///
/// What is wanted comes over `target`, or is the setting `setpoint` as long as nothing has.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "controller", title = "PI controller")]
pub struct Controller {
    /// What is.
    #[input]
    r#in: Input<f64>,
    /// What is wanted.
    #[input(optional)]
    target: Input<f64>,
    /// What is ordered.
    #[output]
    out: Output<f64>,
    #[config(default = 0.0)]
    setpoint: f64,
    #[config(default = 1.0)]
    kp: f64,
    #[config(default = 0.0, min = 0.0)]
    ki: f64,
    #[config(default = 0.01, min = 0.0)]
    dt: f64,
    #[config(default = -1.0)]
    min: f64,
    #[config(default = 1.0)]
    max: f64,
    /// The part of the order that comes from the past.
    integral: f64,
}

impl Controller {
    pub(super) fn order(&mut self, target: f64, value: f64) -> f64 {
        let error = target - value;
        let past = self.integral + self.ki * error * self.dt;
        if mutant!("graph-controller-winds-up") {
            self.integral = past;
        } else if !past.is_nan() {
            self.integral = limited(past, self.min, self.max);
        }
        limited(self.kp * error + self.integral, self.min, self.max)
    }
}

/// The nearest number between two. Unlike `clamp` it never panics: whatever the settings are, a
/// component fails, if at all, by its result.
pub(super) fn limited(value: f64, min: f64, max: f64) -> f64 {
    if value > max {
        max
    } else if value < min {
        min
    } else {
        value
    }
}

impl Execute for Controller {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let target = cx.latest(self.target).copied().unwrap_or(self.setpoint);
        if let Some(value) = cx.update(self.r#in).copied() {
            let order = self.order(target, value);
            cx.publish(self.out, order)?;
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        Ok(in_order(self.min, self.max)?)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        in_order(config.get("min")?.unwrap_or(-1.0), config.get("max")?.unwrap_or(1.0))
    }

    keeps!(integral);
}

/// `actuator`: what happens, a thing that follows its orders slowly, by `dt / tau * (order -
/// position)`. It stands at the output boundary; its position goes back over a delayed edge. An
/// order that is no finite number moves nothing.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "actuator", title = "Actuator", role = "output")]
pub struct Actuator {
    /// What is ordered.
    #[input]
    r#in: Input<f64>,
    /// Where it is.
    #[output]
    position: Output<f64>,
    #[config(default = 0.01, min = 0.0)]
    dt: f64,
    #[config(default = 0.1, min = 1e-9)]
    tau: f64,
    at: f64,
}

impl Actuator {
    pub(super) fn follow(&mut self, order: f64) -> f64 {
        // A step longer than `tau` would shoot beyond the order.
        let part = limited(self.dt / self.tau, 0.0, 1.0);
        if order.is_finite() {
            self.at += part * (order - self.at);
        }
        self.at
    }
}

impl Execute for Actuator {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(order) = cx.update(self.r#in).copied() {
            let position = self.follow(order);
            cx.publish(self.position, position)?;
        }
        Ok(())
    }

    keeps!(at);
}
