//! The metrics of a run, by name.

pub(in crate::run::observe) mod table;
pub mod user;

use std::collections::BTreeMap;

pub use table::{MetricDescriptor, MetricScope, MetricStability};
pub use user::{Counter, Histogram, MetricRefused, Summary};

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

/// One value of a metric of the runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, for example `runtime.scheduler.tick_count`.
    pub name: &'static str,
    /// How it changes.
    pub kind: MetricKind,
    /// The label: `lane`, `component_id`, `channel_id`, or none.
    pub label: Option<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

/// One value of a component's own metric.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMetric {
    /// Its name; for a histogram with `.count`, `.min`, `.max`, `.avg`, `.p50`, `.p95` or `.p99`.
    pub name: String,
    /// How it changes.
    pub kind: MetricKind,
    /// The component.
    pub component: String,
    /// The value.
    pub value: f64,
}

/// All metrics of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// In a fixed order: by part of the runtime, then by index in the plan.
    pub list: Vec<Metric>,
    /// The components' own metrics, in the order of components, then of names; and the number of
    /// restarts of each component that was restarted, `runtime.component.restart_count`.
    pub user: Vec<UserMetric>,
}

impl Metrics {
    /// The sum of all values of this name.
    #[must_use]
    pub fn total(&self, name: &str) -> f64 {
        let own = self.list.iter().filter(|one| one.name == name).map(|one| one.value);
        let user = self.user.iter().filter(|one| one.name == name).map(|one| one.value);
        own.chain(user).sum()
    }

    /// Adds the metrics of another part of the run. Values of equal name and label are summed.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.list.is_empty() {
            self.list.clone_from(&other.list);
            return;
        }
        let key = |one: &Metric| (one.name, one.label.clone());
        let places = self.list.iter().enumerate().map(|(at, one)| (key(one), at));
        let places: BTreeMap<_, usize> = places.collect();
        for one in &other.list {
            match places.get(&key(one)) {
                Some(at) => self.list[*at].value += one.value,
                None => self.list.push(one.clone()),
            }
        }
    }

    /// The value of this name and label.
    #[must_use]
    pub fn get(&self, name: &str, of: &str) -> Option<f64> {
        let is_it = |one: &&Metric| {
            one.name == name && one.label.as_ref().is_some_and(|(_, whose)| whose == of)
        };
        let is_user = |one: &&UserMetric| one.name == name && one.component == of;
        let user = || self.user.iter().find(is_user).map(|one| one.value);
        self.list.iter().find(is_it).map(|one| one.value).or_else(user)
    }
}
