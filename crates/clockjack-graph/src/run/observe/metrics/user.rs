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
    fmt,
    mem::discriminant,
    sync::atomic::{AtomicU64, Ordering},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{MetricKind, UserMetric};
use crate::{
    compile::Plan,
    run::engine::current_position::{
        CurrentPosition, {self},
    },
};

/// Names that one component may have.
pub const NAMES_MAX: usize = 64;

/// The longest name, in bytes.
const NAME_LEN_MAX: usize = 128;

/// The quantiles of a histogram are computed from this number of newest values.
pub const SAMPLES_MAX: usize = 1024;

/// How many values a histogram buffers in a parallel epoch; further ones are recorded at once.
const STAGED_MAX: usize = 0x1_0000;

/// The reserved prefix of the runtime's own metrics.
const RESERVED: &str = "runtime.";

/// A count that never decreases. Clones are the same counter.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    all: AtomicU64,
    /// The part of `all` that was counted in this parallel epoch, and may have to be taken back.
    buffered: AtomicU64,
}

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        // Relaxed: a count that publishes no other data.
        self.0.all.fetch_add(n, Ordering::Relaxed);
        if current_position::note_count() {
            // Relaxed: the coordinator reads it after all workers of the epoch are done.
            self.0.buffered.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// The count.
    #[must_use]
    pub fn value(&self) -> u64 {
        // Relaxed: as above.
        self.0.all.load(Ordering::Relaxed)
    }

    /// The epoch is over; `is_kept`: whether its counts are kept.
    fn apply_buffered(&self, is_kept: bool) {
        // Relaxed: as in `add`.
        if self.0.buffered.load(Ordering::Relaxed) == 0 {
            return;
        }
        let n = self.0.buffered.swap(0, Ordering::Relaxed);
        if !is_kept {
            self.0.all.fetch_sub(n, Ordering::Relaxed);
        }
    }
}

/// The distribution of values. Clones are the same histogram.
///
/// Count, minimum, maximum and mean cover all values; quantiles cover the newest [`SAMPLES_MAX`].
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Mutex<Samples>>);

#[derive(Clone, Debug)]
struct Samples {
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
    fn put(&mut self, value: f64) {
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
}

/// A histogram summarised in seven numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
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

impl Histogram {
    fn new() -> Self {
        let newest = Vec::with_capacity(SAMPLES_MAX);
        let staged = Vec::new();
        let samples = Samples { count: 0, min: 0.0, max: 0.0, sum: 0.0, newest, staged };
        Self(Arc::new(Mutex::new(samples)))
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
    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    pub fn summary(&self) -> Summary {
        let mut samples = lock(&self.0).clone();
        samples.apply_buffered(|_| true);
        let Samples { count, min, max, sum, newest: mut sorted, .. } = samples;
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |part| quantile(&sorted, part);
        let avg = if count == 0 { 0.0 } else { sum / count as f64 };
        Summary { count, min, max, avg, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
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
    Counter(Counter),
    Histogram(Histogram),
}

impl Registry {
    pub(crate) fn new(n_components: usize) -> Self {
        Self(Arc::new(Mutex::new((0..n_components).map(|_| Vec::new()).collect())))
    }

    pub(crate) fn counter(&self, of: usize, name: &str) -> Result<Counter, MetricRefused> {
        let made = || What::Counter(Counter::default());
        self.find(of, name, made, |what| match what {
            What::Counter(counter) => Some(counter.clone()),
            What::Histogram(_) => None,
        })
    }

    pub(crate) fn histogram(&self, of: usize, name: &str) -> Result<Histogram, MetricRefused> {
        let made = || What::Histogram(Histogram::new());
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
    ) -> Result<R, MetricRefused> {
        let refuse = |why| MetricRefused { name: name.into(), why };
        let mut all = lock(&self.0);
        if let Some(entry) = all[of].iter().find(|entry| entry.name == name) {
            return take(&entry.what).ok_or_else(|| refuse(Why::OtherKind));
        }
        if !is_name(name) {
            return Err(refuse(Why::Name));
        }
        if all[of].len() >= NAMES_MAX {
            return Err(refuse(Why::Full));
        }
        let made = make();
        let is_other =
            |entry: &Entry| entry.name == name && discriminant(&entry.what) != discriminant(&made);
        if all.iter().flatten().any(is_other) {
            return Err(refuse(Why::OtherKind));
        }
        let taken = take(&made).ok_or_else(|| refuse(Why::OtherKind));
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
    pub(crate) fn collect(&self, plan: &Plan) -> Vec<UserMetric> {
        let mut all = lock(&self.0);
        let mut list = Vec::new();
        for (entries, planned) in all.iter_mut().zip(&plan.components) {
            // By name: which task or invocation came first depends on threads.
            entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            for Entry { name, what, .. } in entries.iter() {
                let mut add = |name: String, kind, value| {
                    list.push(UserMetric { name, kind, component: planned.spec.id.clone(), value });
                };
                match what {
                    What::Counter(counter) => {
                        add(name.clone(), MetricKind::Counter, as_f64(counter.value()));
                    }
                    What::Histogram(histogram) => {
                        let summary = histogram.summary();
                        let count = as_f64(summary.count);
                        add(format!("{name}.count"), MetricKind::Counter, count);
                        let Summary { min, max, avg, p50, p95, p99, .. } = summary;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Name,
    Full,
    OtherKind,
}

/// A metric that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRefused {
    name: String,
    why: Why,
}

impl MetricRefused {
    /// Whether the component has the largest number of names. Permanent.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.why == Why::Full
    }

    /// Whether the name exists with the other kind, counter or histogram, for this component or
    /// another one.
    #[must_use]
    pub fn is_of_other_kind(&self) -> bool {
        self.why == Why::OtherKind
    }

    /// Whether the name is invalid: it has other characters than letters, digits, `_` and `.`, is
    /// too long, or is reserved for the runtime.
    #[must_use]
    pub fn is_no_name(&self) -> bool {
        self.why == Why::Name
    }
}

impl fmt::Display for MetricRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.why {
            Why::Name => write!(
                f,
                "`{name}` is not a valid name: a name begins with a letter, not with \
                 `{RESERVED}`, and has at most {NAME_LEN_MAX} letters, digits, `_` and `.`"
            ),
            Why::Full => {
                write!(f, "`{name}` exceeds the limit of {NAMES_MAX} metrics per component")
            }
            Why::OtherKind => write!(f, "`{name}` already exists with another kind"),
        }
    }
}

impl core::error::Error for MetricRefused {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values_in_proportion() {
        let histogram = Histogram::new();
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
        let summary = Histogram::new().summary();
        assert_eq!((summary.count, summary.avg, summary.p99), (0, 0.0, 0.0));
    }

    #[test]
    fn quantiles_are_of_the_newest_and_the_rest_of_all() {
        let histogram = Histogram::new();
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
            assert!(registry.counter(1, wrong).expect_err(wrong).is_no_name());
        }
    }
}
