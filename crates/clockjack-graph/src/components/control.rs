//! Simple components of a control loop: sensor, estimator, controller and actuator.
//!
//! The estimator is exponential smoothing (Brown, 1956); the controller is a PI controller with a
//! clamped integral against windup (Åström and Hägglund, "Advanced PID Control", 2006).
//!
//! A step is one invocation, and the setting `dt` is its nominal length. A loop therefore computes
//! the same results in virtual time, at any speed, and on a machine that is late.

use clockjack_exec::Failure;

use super::{
    plain::check_min_max,
    state::{snapshot_fields, snapshot_of, words_exact},
};
use crate::{
    Component,
    component::{Config, ConfigError, Execute, Input, Output, Snapshot},
    run::GraphContext,
};

/// `sensor`: measures `gain * value + bias`, rounded to multiples of `resolution` unless that is 0.
///
/// Before the first value arrives it measures 0, so that a closed loop can start.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "sensor", title = "Sensor")]
pub(super) struct Sensor {
    /// The actual value.
    #[input(optional)]
    r#in: Input<f64>,
    /// The measured value.
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
        let words_exact = self.gain * value + self.bias;
        // Rounding down is exact on every machine.
        if self.resolution > 0.0 {
            self.resolution * (words_exact / self.resolution + 0.5).floor()
        } else {
            words_exact
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

/// `estimator`: smooths its input by `estimate += alpha * (value - estimate)`; the first value is
/// the first estimate. In a loop it reports convergence when the estimate changes by at most
/// `tolerance`. A value that is not finite is ignored, so that one bad reading has no lasting
/// effect.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "estimator", title = "Estimator")]
pub(super) struct Estimator {
    /// The measured value.
    #[input]
    r#in: Input<f64>,
    /// The estimate.
    #[output]
    out: Output<f64>,
    #[config(default = 0.5, min = 0.0, max = 1.0)]
    alpha: f64,
    #[config(default = 1e-9, min = 0.0)]
    tolerance: f64,
    estimate: Option<f64>,
}

impl Estimator {
    /// Processes a value and returns the change of the estimate.
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
        self.estimate = words_exact::<Self, 1>(snapshot)?.map(|[bits]| f64::from_bits(bits));
        Ok(())
    }
}

/// `controller`: a PI controller, `kp * error + ki * sum of error * dt`, limited to `min` and
/// `max`. While the output is at a limit, the sum does not grow beyond that limit (anti-windup). A
/// NaN error does not enter the sum: it affects only the output of its own step.
///
/// The target is the latest value of `target`, or the setting `setpoint` before the first one.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "controller", title = "PI controller")]
pub(super) struct Controller {
    /// The actual value.
    #[input]
    r#in: Input<f64>,
    /// The target.
    #[input(optional)]
    target: Input<f64>,
    /// The command.
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
    /// The integral part of the command.
    integral: f64,
}

impl Controller {
    pub(super) fn command(&mut self, target: f64, value: f64) -> f64 {
        let error = target - value;
        let past = self.integral + self.ki * error * self.dt;
        if !past.is_nan() {
            self.integral = clamped(past, self.min, self.max);
        }
        clamped(self.kp * error + self.integral, self.min, self.max)
    }
}

/// Clamps a value to two bounds. Unlike `clamp` it never panics, whatever the settings are.
pub(super) fn clamped(value: f64, min: f64, max: f64) -> f64 {
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
            let command = self.command(target, value);
            cx.publish(self.out, command)?;
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        Ok(check_min_max(self.min, self.max)?)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        check_min_max(config.get("min")?.unwrap_or(-1.0), config.get("max")?.unwrap_or(1.0))
    }

    snapshot_fields!(integral);
}

/// `actuator`: a device that follows its command slowly, by `dt / tau * (command - position)` per
/// step. It is an output boundary; its position is fed back over a delay edge. A command that is
/// not finite is ignored.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "actuator", title = "Actuator", role = "output")]
pub(super) struct Actuator {
    /// The command.
    #[input]
    r#in: Input<f64>,
    /// The position.
    #[output]
    position: Output<f64>,
    #[config(default = 0.01, min = 0.0)]
    dt: f64,
    #[config(default = 0.1, min = 1e-9)]
    tau: f64,
    at: f64,
}

impl Actuator {
    pub(super) fn follow(&mut self, command: f64) -> f64 {
        // A step longer than `tau` would overshoot the command.
        let part = clamped(self.dt / self.tau, 0.0, 1.0);
        if command.is_finite() {
            self.at += part * (command - self.at);
        }
        self.at
    }
}

impl Execute for Actuator {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(command) = cx.update(self.r#in).copied() {
            let position = self.follow(command);
            cx.publish(self.position, position)?;
        }
        Ok(())
    }

    snapshot_fields!(at);
}
