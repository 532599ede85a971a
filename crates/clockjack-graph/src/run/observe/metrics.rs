//! The metrics of a run, by name.

pub(in crate::run::observe) mod table;
pub(crate) mod user;

use std::{borrow::Cow, collections::BTreeMap};

use clockjack_observe::samples::{Sample, SampleSet, Value};
pub use table::{MetricDescriptor, MetricScope};
pub use user::{HistogramSummary, UserCounter, UserHistogram};

use crate::named::named;

named! {
    /// How a metric changes.
    pub enum MetricKind {
        /// It never decreases.
        Counter = "counter",
        /// It goes up and down.
        Gauge = "gauge",
    }
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, for example `runtime.scheduler.tick_count`. A histogram of a component has several
    /// metrics, whose names end in `.count`, `.min`, `.max`, `.avg`, `.p50`, `.p95` and `.p99`.
    pub name: Cow<'static, str>,
    /// How it changes.
    pub kind: MetricKind,
    /// The label: `lane`, `component_id`, `channel_id`, or none.
    pub label: Option<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

impl Metric {
    /// A metric of a component.
    pub(crate) fn of_component(
        name: impl Into<Cow<'static, str>>,
        kind: MetricKind,
        component: &str,
        value: f64,
    ) -> Self {
        let label = Some(("component_id", component.to_owned()));
        Self { name: name.into(), kind, label, value }
    }
}

/// All metrics of a run, by name, for exporters. [`RunReport`](super::report::RunReport) has typed
/// counts of components and edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// In a fixed order: by part of the runtime, then by index in the plan.
    pub list: Vec<Metric>,
    /// The components' own metrics, in the order of components, then of names; and the number of
    /// restarts of each component that was restarted, `runtime.component.restart_count`.
    pub user: Vec<Metric>,
}

impl Metrics {
    /// All metrics: those of the runtime, then those of components.
    pub fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.list.iter().chain(&self.user)
    }

    /// The sum of all values of this name.
    #[must_use]
    pub fn total(&self, name: &str) -> f64 {
        self.iter().filter(|one| one.name == name).map(|one| one.value).sum()
    }

    /// The value of this name and label.
    #[must_use]
    pub fn get(&self, name: &str, of: &str) -> Option<f64> {
        let is_of = |one: &Metric| one.label.as_ref().is_some_and(|(_, whose)| whose == of);
        self.iter().find(|one| one.name == name && is_of(one)).map(|one| one.value)
    }

    /// Adds all values to a set of samples, for [Prometheus](clockjack_observe::prometheus) and
    /// other exporters, each with these labels in addition to its own. If a program runs several
    /// graphs, a label distinguishes them.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_graph::Stopper;
    /// use clockjack_observe::samples::SampleSet;
    ///
    /// /// For `RuntimeMetrics::add_source` of `clockjack-rt`.
    /// fn source(run: Stopper) -> impl Fn(&mut SampleSet) {
    ///     move |set| {
    ///         // Values are as of the call before: an epoch publishes them on request.
    ///         drop(run.live());
    ///         run.metrics().add_to(set, &[("graph", "arm")]);
    ///     }
    /// }
    /// ```
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and a counter is a whole number"
    )]
    pub fn add_to(&self, set: &mut SampleSet, labels: &[(&str, &str)]) {
        for one in self.iter() {
            let own = one.label.iter().map(|(name, whose)| (*name, whose.as_str()));
            let labels: Vec<_> = labels.iter().copied().chain(own).collect();
            let help = MetricDescriptor::of(&one.name).map_or("", |known| known.description);
            let value = match one.kind {
                MetricKind::Counter => Value::Counter(one.value as u64),
                MetricKind::Gauge => Value::GaugeFloat(one.value),
            };
            set.push(&Sample::new(&one.name, value).labels(&labels).help(help));
        }
    }

    /// The value of this name and label, as a whole number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the counts of the runtime are whole numbers"
    )]
    pub(crate) fn count(&self, name: &str, of: &str) -> Option<u64> {
        self.get(name, of).map(|value| value as u64)
    }

    /// Adds the metrics of another part of the run. Values of equal name and label are summed.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.list.is_empty() {
            self.list.clone_from(&other.list);
            return;
        }
        let key = |one: &Metric| (one.name.clone(), one.label.clone());
        let places = self.list.iter().enumerate().map(|(at, one)| (key(one), at));
        let places: BTreeMap<_, usize> = places.collect();
        for one in &other.list {
            match places.get(&key(one)) {
                Some(at) => self.list[*at].value += one.value,
                None => self.list.push(one.clone()),
            }
        }
    }
}
