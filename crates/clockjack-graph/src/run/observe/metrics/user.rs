//! Metrics of components: counters and histograms, by name.
//!
//! A component requests one by its name and gets a handle, which it may keep and pass to its tasks:
//! from then on there is no lookup and no allocation. The only label is the component, so their
//! number is bounded by the number of components times [`NAMES_MAX`]. A name has one kind in the
//! whole run.
//!
//! In a parallel epoch, the counts of a call are taken back at the end of the epoch if the call
//! does not count, because a region before it failed. Values of a histogram are recorded only then,
//! in the order of one thread, so that their sum is the same to the last digit.

use core::{
    mem::discriminant,
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::{Arc, Mutex};

use clockjack_observe::{Counter, SingleWriter};

use super::{Metric, MetricKind};
use crate::{
    compile::Plan,
    lock::lock,
    run::engine::{
        context_error::{ContextError, Refusal},
        current_position::{self, CurrentPosition},
    },
};

/// Names that one component may have.
pub(crate) const NAMES_MAX: usize = 64;

/// The longest name, in bytes.
const NAME_LEN_MAX: usize = 128;

/// The quantiles of a histogram are computed from this number of newest values.
pub(crate) const SAMPLES_MAX: usize = 1024;

/// How many values a histogram buffers in a parallel epoch; further ones are recorded at once.
const STAGED_MAX: usize = 0x1_0000;

/// The reserved prefix of the runtime's own metrics.
const RESERVED: &str = "runtime.";

/// A count that never decreases. Clones are the same counter.
#[derive(Clone, Debug, Default)]
pub struct UserCounter(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    all: Counter,
    /// The part of `all` that was counted in parallel epochs.
    parallel: Counter,
    /// The value of `parallel` at the end of the last epoch. Only the coordinator uses it.
    parallel_before: AtomicUsize,
    /// The part of `all` that does not count.
    revoked: Counter<SingleWriter>,
}

impl UserCounter {
    /// Adds `n`.
    pub fn add(&self, n: usize) {
        self.0.all.add(n);
        if current_position::note_count() {
            // The coordinator reads it after all workers of the epoch are done.
            self.0.parallel.add(n);
        }
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.all.since(self.0.revoked.get()) as u64
    }

    /// The epoch is over; `is_kept`: whether its counts are kept.
    fn apply_buffered(&self, is_kept: bool) {
        // Relaxed: only the coordinator uses it.
        let before = self.0.parallel_before.load(Ordering::Relaxed);
        let n = self.0.parallel.since(before);
        self.0.parallel_before.store(before.wrapping_add(n), Ordering::Relaxed);
        if !is_kept {
            self.0.revoked.add(n);
        }
    }
}

/// The distribution of values. Clones are the same histogram.
///
/// Count, minimum, maximum and mean cover all values; quantiles cover the newest 1,024.
#[derive(Clone, Debug)]
pub struct UserHistogram(Arc<Mutex<Samples>>);

/// Values, of which the newest are kept.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    /// A ring buffer: the next value goes to `count % SAMPLES_MAX`.
    newest: Vec<f64>,
    /// Values of this parallel epoch.
    staged: Vec<(CurrentPosition, f64)>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        let newest = Vec::with_capacity(SAMPLES_MAX);
        Self { count: 0, min: 0.0, max: 0.0, sum: 0.0, newest, staged: Vec::new() }
    }

    pub(crate) fn put(&mut self, value: f64) {
        let is_first = self.count == 0;
        self.min = if is_first { value } else { self.min.min(value) };
        self.max = if is_first { value } else { self.max.max(value) };
        self.sum += value;
        if self.newest.len() < SAMPLES_MAX {
            self.newest.push(value);
        } else {
            let at = usize::try_from(self.count % SAMPLES_MAX as u64).unwrap_or(0);
            self.newest[at] = value;
        }
        self.count += 1;
    }

    /// Records the buffered values of regions that count.
    fn apply_buffered(&mut self, counts: impl Fn(u32) -> bool) {
        let mut staged = core::mem::take(&mut self.staged);
        // The sort is stable: values of one position stay in order.
        staged.sort_by_key(|(at, _)| *at);
        for (at, value) in staged.drain(..) {
            if counts(at.position) {
                self.put(value);
            }
        }
        self.staged = staged;
    }

    /// The summary, without buffered values; all zero before the first value.
    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    pub(crate) fn summary(&self) -> HistogramSummary {
        let Self { count, min, max, sum, .. } = *self;
        let mut sorted = self.newest.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |part| quantile(&sorted, part);
        let avg = if count == 0 { 0.0 } else { sum / count as f64 };
        HistogramSummary { count, min, max, avg, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }
}

/// A histogram summarised in seven numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramSummary {
    /// The number of values.
    pub count: u64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The mean.
    pub avg: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl UserHistogram {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Samples::new())))
    }

    /// Records a value. Ignores NaN.
    pub fn record(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        let position = CurrentPosition::current();
        let mut samples = lock(&self.0);
        match position {
            Some(position) if samples.staged.len() < STAGED_MAX => {
                samples.staged.push((position, value));
                drop(samples);
                current_position::note_count();
            }
            _ => samples.put(value),
        }
    }

    /// The current summary; all zero before the first value.
    #[must_use]
    pub fn summary(&self) -> HistogramSummary {
        let mut samples = lock(&self.0).clone();
        samples.apply_buffered(|_| true);
        samples.summary()
    }
}

/// The quantile of sorted values, by linear interpolation; zero if there are none.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among a thousand"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part * last as f64;
    let below = place.floor() as usize;
    let (a, b) = (sorted[below], sorted[(below + 1).min(last)]);
    a + (b - a) * (place - place.floor())
}

/// All counters and histograms of a run.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Mutex<Vec<Vec<Entry>>>>);

/// A metric of a component.
struct Entry {
    name: String,
    what: What,
    /// The position in this parallel epoch at which it was created.
    made_in: Option<CurrentPosition>,
}

enum What {
    Counter(UserCounter),
    Histogram(UserHistogram),
}

impl Registry {
    pub(crate) fn new(n_components: usize) -> Self {
        Self(Arc::new(Mutex::new((0..n_components).map(|_| Vec::new()).collect())))
    }

    pub(crate) fn counter(&self, of: usize, name: &str) -> Result<UserCounter, ContextError> {
        let made = || What::Counter(UserCounter::default());
        self.find(of, name, made, |what| match what {
            What::Counter(counter) => Some(counter.clone()),
            What::Histogram(_) => None,
        })
    }

    pub(crate) fn histogram(&self, of: usize, name: &str) -> Result<UserHistogram, ContextError> {
        let made = || What::Histogram(UserHistogram::new());
        self.find(of, name, made, |what| match what {
            What::Histogram(histogram) => Some(histogram.clone()),
            What::Counter(_) => None,
        })
    }

    fn find<R>(
        &self,
        of: usize,
        name: &str,
        make: impl FnOnce() -> What,
        take: impl FnOnce(&What) -> Option<R>,
    ) -> Result<R, ContextError> {
        let other_kind = || ContextError(Refusal::MetricKind { name: name.into() });
        let mut all = lock(&self.0);
        if let Some(entry) = all[of].iter().find(|entry| entry.name == name) {
            return take(&entry.what).ok_or_else(other_kind);
        }
        if !is_name(name) {
            let (name, reserved) = (name.into(), RESERVED);
            let len_max = NAME_LEN_MAX;
            return Err(ContextError(Refusal::MetricName { name, reserved, len_max }));
        }
        if all[of].len() >= NAMES_MAX {
            let (name, limit) = (name.into(), NAMES_MAX);
            return Err(ContextError(Refusal::MetricsFull { name, limit }));
        }
        let made = make();
        let is_other =
            |entry: &Entry| entry.name == name && discriminant(&entry.what) != discriminant(&made);
        if all.iter().flatten().any(is_other) {
            return Err(other_kind());
        }
        let taken = take(&made).ok_or_else(other_kind);
        let made_in = CurrentPosition::current().filter(|_| current_position::note_count());
        all[of].push(Entry { name: name.into(), what: made, made_in });
        taken
    }

    /// A parallel epoch is over: takes back what does not count.
    pub(crate) fn apply_buffered(
        &self,
        position_of: impl Fn(usize) -> Option<u32>,
        counts: impl Fn(u32) -> bool,
    ) {
        let mut all = lock(&self.0);
        for (component, entries) in all.iter_mut().enumerate() {
            let Some(position) = position_of(component) else { continue };
            entries.retain_mut(|entry| {
                match &entry.what {
                    What::Counter(counter) => counter.apply_buffered(counts(position)),
                    What::Histogram(histogram) => lock(&histogram.0).apply_buffered(&counts),
                }
                entry.made_in.take().is_none_or(|at| counts(at.position))
            });
        }
    }

    /// All metrics, in the order of components, then of names.
    pub(crate) fn collect(&self, plan: &Plan) -> Vec<Metric> {
        let mut all = lock(&self.0);
        let mut list = Vec::new();
        for (entries, planned) in all.iter_mut().zip(&plan.components) {
            // By name: which task or invocation came first depends on threads.
            entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            for Entry { name, what, .. } in entries.iter() {
                let mut add = |name: String, kind, value| {
                    list.push(Metric::of_component(name, kind, &planned.spec.id, value));
                };
                match what {
                    What::Counter(counter) => {
                        add(name.clone(), MetricKind::Counter, as_f64(counter.value()));
                    }
                    What::Histogram(histogram) => {
                        let summary = histogram.summary();
                        let count = as_f64(summary.count);
                        add(format!("{name}.count"), MetricKind::Counter, count);
                        let HistogramSummary { min, max, avg, p50, p95, p99, .. } = summary;
                        let rest = [
                            ("min", min),
                            ("max", max),
                            ("avg", avg),
                            ("p50", p50),
                            ("p95", p95),
                            ("p99", p99),
                        ];
                        for (part, value) in rest {
                            add(format!("{name}.{part}"), MetricKind::Gauge, value);
                        }
                    }
                }
            }
        }
        list
    }
}

fn is_name(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= NAME_LEN_MAX
        && name.chars().all(is_fit)
        && !name.starts_with(RESERVED)
}

#[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
fn as_f64(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values_in_proportion() {
        let histogram = UserHistogram::new();
        for value in [40.0, 10.0, 30.0, 20.0] {
            histogram.record(value);
        }
        let summary = histogram.summary();
        assert_eq!((summary.count, summary.min, summary.max), (4, 10.0, 40.0));
        assert_eq!((summary.avg, summary.p50), (25.0, 25.0));
        assert!((summary.p95 - 38.5).abs() < 1e-9, "{}", summary.p95);
        assert!((summary.p99 - 39.7).abs() < 1e-9, "{}", summary.p99);
    }

    #[test]
    fn a_histogram_without_values_is_all_zero() {
        let summary = UserHistogram::new().summary();
        assert_eq!((summary.count, summary.avg, summary.p99), (0, 0.0, 0.0));
    }

    #[test]
    fn quantiles_are_of_the_newest_and_the_rest_of_all() {
        let histogram = UserHistogram::new();
        histogram.record(-1e9);
        histogram.record(f64::NAN);
        for _ in 0..SAMPLES_MAX {
            histogram.record(5.0);
        }
        let summary = histogram.summary();
        assert_eq!(summary.count, SAMPLES_MAX as u64 + 1);
        assert_eq!((summary.min, summary.p50), (-1e9, 5.0));
        assert_eq!(quantile(&[5.0; 3], 0.0), 5.0, "the oldest has gone");
        assert!(!lock(&histogram.0).newest.contains(&-1e9));
    }

    #[test]
    fn names_of_a_component_are_bounded_and_of_one_kind() {
        let registry = Registry::new(2);
        for n in 0..NAMES_MAX {
            registry.counter(0, &format!("n{n}")).expect("there is room");
        }
        assert!(registry.counter(0, "more").expect_err("it is one too many").is_full());
        registry.counter(1, "more").expect("each has its own");
        registry.counter(0, "n0").expect("it is there").add(2);
        registry.counter(0, "n0").expect("it is the same").add(3);
        assert_eq!(registry.counter(0, "n0").expect("it is there").value(), 5);
        assert!(registry.histogram(0, "n0").expect_err("it counts").is_of_other_kind());
        assert!(registry.histogram(1, "n0").expect_err("there, too").is_of_other_kind());
        for wrong in ["", "runtime.x", "7up", "a b", &"x".repeat(NAME_LEN_MAX + 1)] {
            assert!(registry.counter(1, wrong).expect_err(wrong).is_invalid_name());
        }
    }
}
