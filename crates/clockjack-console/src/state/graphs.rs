//! Graphs: the counters of the last two inspections.

use std::collections::BTreeMap;

use clockjack_graph::run::{LiveLane, Metrics};

use super::{float, seconds_between};
use crate::{Target, view::Number};

/// The counters of all graphs, by name.
#[derive(Default)]
pub(crate) struct Graphs(BTreeMap<String, GraphRates>);

/// The last inspection of a graph, and an earlier one to compare it with, as in
/// [`Rates`](super::Rates).
#[derive(Clone, Default)]
pub(crate) struct GraphRates {
    pub(crate) lanes: Vec<LiveLane>,
    pub(crate) metrics: Metrics,
    at_ns: u64,
    middle: Option<Reading>,
    before: Option<Reading>,
}

/// What was read at one time.
#[derive(Clone)]
struct Reading {
    at_ns: u64,
    lanes: Vec<LiveLane>,
    metrics: Metrics,
}

impl Graphs {
    /// Reads all graphs, and asks them for their next figures.
    pub(crate) fn advance(&mut self, target: &Target, now_ns: u64) {
        let graphs = target.graphs();
        self.0.retain(|name, _| graphs.iter().any(|(other, _)| other == name));
        for (name, run) in graphs {
            let one = self.0.entry(name).or_default();
            one.push(Reading { at_ns: now_ns, lanes: run.live(), metrics: run.metrics() });
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&GraphRates> {
        self.0.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &GraphRates)> {
        self.0.iter()
    }
}

impl GraphRates {
    fn push(&mut self, new: Reading) {
        // Before the first epoch that somebody has asked for, all figures are zeros.
        if new.lanes.iter().any(|lane| lane.epochs > 0) {
            let is_due =
                |middle: &Reading| new.at_ns.saturating_sub(middle.at_ns) >= super::WINDOW_NS;
            let is_first = self.middle.is_none();
            if self.middle.as_ref().is_none_or(is_due) {
                self.before = self.middle.replace(new.clone());
            }
            if self.before.is_none() && !is_first {
                self.before.clone_from(&self.middle);
            }
        }
        (self.at_ns, self.lanes, self.metrics) = (new.at_ns, new.lanes, new.metrics);
    }

    fn seconds(&self) -> Option<f64> {
        seconds_between(self.before.as_ref()?.at_ns, self.at_ns)
    }

    /// The sum of a figure over all lanes; unknown before the graph has published any.
    pub(crate) fn sum(&self, of: impl Fn(&LiveLane) -> u64) -> Number {
        let is_known = self.lanes.iter().any(|lane| lane.epochs > 0);
        is_known.then(|| float(self.lanes.iter().map(of).sum())).into()
    }

    /// By how much a figure of all lanes, or of one, has grown within the last window.
    pub(crate) fn grown(&self, lane: Option<&str>, of: impl Fn(&LiveLane) -> u64) -> Option<u64> {
        let sum = |lanes: &[LiveLane]| -> u64 {
            let is_it = |one: &&LiveLane| lane.is_none_or(|lane| one.lane == lane);
            lanes.iter().filter(is_it).map(&of).sum()
        };
        Some(sum(&self.lanes).saturating_sub(sum(&self.before.as_ref()?.lanes)))
    }

    /// As [`grown`](Self::grown), per second.
    pub(crate) fn rate(&self, lane: Option<&str>, of: impl Fn(&LiveLane) -> u64) -> Number {
        let rate = || Some(float(self.grown(lane, of)?) / self.seconds()?);
        rate().into()
    }

    /// The value of a metric; unknown if the graph has published none.
    pub(crate) fn metric(&self, name: &str, of: &str) -> Number {
        self.metrics.get(name, of).into()
    }

    /// By how much a metric has grown within the last window.
    pub(crate) fn metric_grown(&self, name: &str, of: &str) -> Option<f64> {
        Some(self.metrics.get(name, of)? - self.before.as_ref()?.metrics.get(name, of)?)
    }

    /// By how much a metric grows per second.
    pub(crate) fn metric_rate(&self, name: &str, of: &str) -> Number {
        let rate = || Some(self.metric_grown(name, of)? / self.seconds()?);
        rate().into()
    }

    /// The names of what a kind of metric is about, such as all `channel_id`s.
    pub(crate) fn labels(&self, kind: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for metric in self.metrics.iter() {
            if let Some((label, name)) = &metric.label
                && *label == kind
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        names
    }
}
