//! Components that process numbers: pass on, check, delay, or compute in a task.
//!
//! Each publishes only for values that arrived with its invocation, so that no value is published
//! twice.

use core::{future::poll_fn, task::Poll, time::Duration};
use std::collections::VecDeque;

use clockjack_exec::Failure;

use super::{
    boundary::to_f64,
    state::{snapshot_of, words_of},
};
use crate::{
    Component,
    component::{Config, ConfigError, Execute, ExecuteShared, Input, Output, Snapshot},
    run::GraphContext,
};

/// `identity`: publishes its input unchanged. Its invocations may overlap.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "identity", title = "Identity")]
pub(super) struct Identity {
    /// The input.
    #[input]
    r#in: Input<f64>,
    /// The same values.
    #[output]
    out: Output<f64>,
}

impl ExecuteShared for Identity {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            cx.publish(self.out, value)?;
        }
        Ok(())
    }
}

/// `validator`: publishes numbers from `min` to `max`. The setting `on_bad` decides what happens to
/// others and to NaN: `drop` them, `clamp` them to the nearest bound (NaN is dropped), or `fail`.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "validator", title = "Range check")]
pub(super) struct Validator {
    /// The input.
    #[input]
    r#in: Input<f64>,
    /// The valid values.
    #[output]
    out: Output<f64>,
    /// The invalid values, unchanged.
    #[output]
    bad: Output<f64>,
    #[config]
    min: f64,
    #[config]
    max: f64,
    #[config(default = "drop", one_of("drop", "clamp", "fail"))]
    on_bad: String,
}

/// The result of the range check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RangeCheck {
    Good,
    /// The value is invalid; the replacement is published instead, if there is one.
    Bad(Option<f64>),
    Fail,
}

impl Validator {
    pub(super) fn check(&self, value: f64) -> RangeCheck {
        if self.min <= value && value <= self.max {
            return RangeCheck::Good;
        }
        match self.on_bad.as_str() {
            "fail" => RangeCheck::Fail,
            "clamp" if value < self.min => RangeCheck::Bad(Some(self.min)),
            "clamp" if value > self.max => RangeCheck::Bad(Some(self.max)),
            _ => RangeCheck::Bad(None),
        }
    }
}

impl Execute for Validator {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            match self.check(value) {
                RangeCheck::Good => cx.publish(self.out, value)?,
                RangeCheck::Bad(instead) => {
                    cx.publish(self.bad, value)?;
                    if let Some(instead) = instead {
                        cx.publish(self.out, instead)?;
                    }
                }
                RangeCheck::Fail => {
                    let (min, max) = (self.min, self.max);
                    let text = format!("{value} is not between {min} and {max}");
                    return Err(Failure::msg(text));
                }
            }
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        Ok(check_min_max(self.min, self.max)?)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        check_min_max(config.need("min")?, config.need("max")?)
    }
}

/// Checks that `min` is not greater than `max`.
///
/// # Errors
///
/// [`ConfigError`], if `max` is below `min`, or if one of them is NaN.
pub(super) fn check_min_max(min: f64, max: f64) -> Result<(), ConfigError> {
    if min <= max {
        Ok(())
    } else {
        Err(ConfigError::new("max", format!("{max} is less than `min`, which is {min}")))
    }
}

/// `delay`: publishes the value that arrived `depth` values ago. Before that it publishes
/// `initial`, if that is set.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "delay", title = "Delay")]
pub(super) struct Delay {
    /// The input.
    #[input]
    r#in: Input<f64>,
    /// The value that arrived `depth` values ago.
    #[output]
    out: Output<f64>,
    #[config(default = 1, min = 1, max = 65536)]
    depth: usize,
    #[config]
    initial: Option<f64>,
    waiting: VecDeque<f64>,
}

impl Delay {
    /// Stores a value and returns the one that is due. One value goes out for each value that comes
    /// in, also after `depth` was reduced: surplus values are discarded.
    pub(super) fn shift(&mut self, value: f64) -> Option<f64> {
        self.waiting.push_back(value);
        while self.waiting.len() > self.depth + 1 {
            self.waiting.pop_front();
        }
        if self.waiting.len() > self.depth { self.waiting.pop_front() } else { self.initial }
    }
}

impl Execute for Delay {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            if let Some(earlier) = self.shift(value) {
                cx.publish(self.out, earlier)?;
            }
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.waiting.reserve(self.depth + 1);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.waiting.clear();
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, Failure> {
        Ok(Some(snapshot_of::<Self>(self.waiting.iter().map(|value| value.to_bits()))))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let words = words_of::<Self>(snapshot)?;
        self.waiting = words.into_iter().map(f64::from_bits).collect();
        Ok(())
    }
}

/// `async_worker`: multiplies by `gain` in an asynchronous task; the product is published in a
/// later epoch. The task completes at its `polls`-th poll.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "async_worker", title = "Asynchronous worker")]
pub(super) struct AsyncWorker {
    /// The input.
    #[input]
    r#in: Input<f64>,
    /// The product.
    #[output]
    out: Output<f64>,
    #[config(default = 1.0)]
    gain: f64,
    #[config(default = 1, min = 1, max = 1000000)]
    polls: u64,
}

impl Execute for AsyncWorker {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            cx.submit_task(self.out, product(self.gain, value, self.polls))?;
        }
        Ok(())
    }
}

/// Returns the product at the `polls`-th poll.
pub(super) async fn product(gain: f64, value: f64, polls: u64) -> Result<f64, Failure> {
    let mut left = polls;
    poll_fn(|cx| {
        left = left.saturating_sub(1);
        if left == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    Ok(gain * value)
}

/// `rate_probe`: measures how many values arrive per second, in the run's own time. It publishes at
/// most once per `window_ms`: at the first value after the end of the window.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "rate_probe", title = "Rate probe")]
pub(super) struct RateProbe {
    /// The values to count. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<f64>,
    /// Values per second.
    #[output]
    rate: Output<f64>,
    #[config(default = 1000, min = 1, max = 86400000)]
    window_ms: u64,
    /// The start of the window; the values that opened it do not count.
    since: Option<Duration>,
    count: u64,
}

impl RateProbe {
    /// Counts values and returns the rate if the window is over.
    pub(super) fn count(&mut self, n: u64, now: Duration) -> Option<f64> {
        let Some(since) = self.since else {
            self.since = Some(now);
            return None;
        };
        self.count += n;
        let passed = now.saturating_sub(since);
        if passed < Duration::from_millis(self.window_ms) {
            return None;
        }
        let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let rate = to_f64(self.count) * 1e9 / to_f64(nanos);
        (self.since, self.count) = (Some(now), 0);
        Some(rate)
    }
}

impl Execute for RateProbe {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let n = cx.drain(self.r#in).count();
        let now = cx.now();
        if n > 0
            && let Some(rate) = self.count(n as u64, now)
        {
            cx.publish(self.rate, rate)?;
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        (self.since, self.count) = (None, 0);
        Ok(())
    }
}
