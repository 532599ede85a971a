//! What numbers pass through: unchanged, joined, checked, late, or by way of a task.
//!
//! Each publishes only for a value that its invocation has brought, so that none is told twice.

use core::{future::poll_fn, task::Poll, time::Duration};
use std::collections::VecDeque;

use clockjack_exec::Failure;
use clockjack_sync::mutant;

use super::{
    boundary::to_f64,
    state::{snapshot_of, words_of},
};
use crate::{
    Component,
    component::{Config, ConfigError, Execute, ExecuteShared, Input, Output, Snapshot},
    run::GraphContext,
};

/// `identity`: passes on what comes. Its invocations may overlap.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "identity", title = "Identity")]
pub struct Identity {
    /// What comes.
    #[input]
    r#in: Input<f64>,
    /// The same.
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

/// `join`: the sum of the latest of both inputs, once both have had a value.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "join", title = "Sum")]
pub struct Join {
    /// One.
    #[input]
    a: Input<f64>,
    /// The other.
    #[input]
    b: Input<f64>,
    /// Their sum.
    #[output]
    out: Output<f64>,
}

impl Execute for Join {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let (Some(a), Some(b)) = (cx.latest(self.a), cx.latest(self.b)) {
            let sum = a + b;
            cx.publish(self.out, sum)?;
        }
        Ok(())
    }
}

/// `validator`: passes on numbers from `min` to `max`. What is done with others, and with NaN, says
/// `on_bad`: `drop` them, `clamp` them to the nearest bound (NaN is dropped), or `fail`.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "validator", title = "Range check")]
pub struct Validator {
    /// What comes.
    #[input]
    r#in: Input<f64>,
    /// What is good.
    #[output]
    out: Output<f64>,
    /// What is not, as it came.
    #[output]
    bad: Output<f64>,
    #[config]
    min: f64,
    #[config]
    max: f64,
    #[config(default = "drop", one_of("drop", "clamp", "fail"))]
    on_bad: String,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Good,
    /// It is bad; this goes on in its place.
    Bad(Option<f64>),
    Fail,
}

impl Validator {
    pub(super) fn verdict(&self, value: f64) -> Verdict {
        if self.min <= value && (value <= self.max || mutant!("graph-validator-has-no-maximum")) {
            return Verdict::Good;
        }
        match self.on_bad.as_str() {
            "fail" => Verdict::Fail,
            "clamp" if value < self.min => Verdict::Bad(Some(self.min)),
            "clamp" if value > self.max => Verdict::Bad(Some(self.max)),
            _ => Verdict::Bad(None),
        }
    }
}

impl Execute for Validator {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while let Some(value) = cx.take(self.r#in) {
            match self.verdict(value) {
                Verdict::Good => cx.publish(self.out, value)?,
                Verdict::Bad(instead) => {
                    cx.publish(self.bad, value)?;
                    if let Some(instead) = instead {
                        cx.publish(self.out, instead)?;
                    }
                }
                Verdict::Fail => {
                    let (min, max) = (self.min, self.max);
                    let text = format!("{value} is not between {min} and {max}");
                    return Err(Failure::msg(text));
                }
            }
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        Ok(in_order(self.min, self.max)?)
    }

    fn validate_config(&self, config: &Config) -> Result<(), ConfigError> {
        in_order(config.need("min")?, config.need("max")?)
    }
}

/// Checks that there can be a number between two settings.
///
/// # Errors
///
/// [`ConfigError`], if `max` is below `min`, or one of them is NaN.
pub(super) fn in_order(min: f64, max: f64) -> Result<(), ConfigError> {
    if min <= max {
        Ok(())
    } else {
        Err(ConfigError::new("max", format!("{max} is below `min`, {min}")))
    }
}

/// `delay`: gives what came `depth` values ago. Before that it gives `initial`, if that is set.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "delay", title = "Delay")]
pub struct Delay {
    /// What comes.
    #[input]
    r#in: Input<f64>,
    /// What came `depth` values ago.
    #[output]
    out: Output<f64>,
    #[config(default = 1, min = 1, max = 65536)]
    depth: usize,
    #[config]
    initial: Option<f64>,
    waiting: VecDeque<f64>,
}

impl Delay {
    /// Takes a value, and gives the one whose turn it is. One value goes out for each that comes
    /// in, also after `depth` was made smaller: what is then too much is left out.
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

/// `async_worker`: multiplies by `gain` in a task beside the graph; the product appears in a later
/// epoch. With `polls` the task is not done before it was polled so often.
#[derive(Component, Clone, Copy, Debug, Default)]
#[component(type = "async_worker", title = "Asynchronous worker")]
pub struct AsyncWorker {
    /// What comes.
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

/// The product, at the `polls`-th look.
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

/// `rate_probe`: how many values a second come, in the run's own time. It tells once in `window_ms`
/// at most: at the first value behind the window.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "rate_probe", title = "Rate probe")]
pub struct RateProbe {
    /// What is counted. Any number of edges may end here.
    #[input(multiple)]
    r#in: Input<f64>,
    /// Values a second.
    #[output]
    rate: Output<f64>,
    #[config(default = 1000, min = 1, max = 86400000)]
    window_ms: u64,
    /// When the window began; the values that opened it do not count.
    since: Option<Duration>,
    count: u64,
}

impl RateProbe {
    /// Counts values, and gives the rate if a window has ended.
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
