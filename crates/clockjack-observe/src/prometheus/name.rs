//! The names of metrics and labels in Prometheus.
//!
//! The mapping is a function of name, kind and unit only. Two names may collide (`a.b` and `a_b`);
//! the parent module detects that.

use alloc::{format, string::String};

use crate::samples::{Kind, Unit};

/// The prefix of every name.
const PREFIX: &str = "clockjack_";

/// The name of a metric: prefix, words, unit, and `_total` for counters. `None` if the name has
/// no letter or digit at all.
pub(super) fn metric_name(name: &str, kind: Kind, unit: Unit) -> Option<String> {
    if !name.contains(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let words: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let stem = words.strip_prefix(PREFIX).unwrap_or(&words);
    let stem =
        if kind == Kind::Counter { stem.strip_suffix("_total").unwrap_or(stem) } else { stem };
    let stem = stem.strip_suffix(unit.suffix()).unwrap_or(stem);
    let unit = match unit {
        Unit::Nanoseconds | Unit::Microseconds | Unit::Milliseconds => Unit::Seconds,
        Unit::Count | Unit::Seconds | Unit::Bytes | Unit::Ticks => unit,
    };
    let total = if kind == Kind::Counter { "_total" } else { "" };
    Some(format!("{PREFIX}{stem}{}{total}", unit.suffix()))
}

/// Whether a label name is valid. `quantile` is reserved in a summary, and names with two leading
/// underscores are reserved by Prometheus.
pub(super) fn is_label_name(label: &str, kind: Kind) -> bool {
    let mut chars = label.chars();
    let starts_valid = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_reserved = label.starts_with("__") || (kind == Kind::Histogram && label == "quantile");
    starts_valid && !is_reserved && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::{Kind, metric_name};
    use crate::{
        Snapshot,
        samples::{Sample, Value},
    };

    fn check(name: &str, kind: Kind, expected: Option<&str>) {
        let value = match kind {
            Kind::Counter => Value::Counter(0),
            Kind::Gauge => Value::Gauge(0),
            Kind::Histogram => Value::Histogram((&Snapshot::<2>::new()).into()),
        };
        let unit = Sample::new(name, value).unit;
        assert_eq!(metric_name(name, kind, unit).as_deref(), expected, "{name}");
    }

    #[test]
    fn names_have_prefix_unit_and_total_once() {
        check(
            "runtime.scheduler.tick_count",
            Kind::Counter,
            Some("clockjack_runtime_scheduler_tick_count_total"),
        );
        check("clockjack_timers_fired_total", Kind::Counter, Some("clockjack_timers_fired_total"));
        check(
            "runtime.x.blocked_ms",
            Kind::Counter,
            Some("clockjack_runtime_x_blocked_seconds_total"),
        );
        check("spent_ns_total", Kind::Counter, Some("clockjack_spent_seconds_total"));
        check("last_duration_ns", Kind::Gauge, Some("clockjack_last_duration_seconds"));
        check("wait_us", Kind::Histogram, Some("clockjack_wait_seconds"));
        check("snapshot_size_bytes", Kind::Gauge, Some("clockjack_snapshot_size_bytes"));
        check("items", Kind::Gauge, Some("clockjack_items"));
        check("größe-1", Kind::Gauge, Some("clockjack_gr__e_1"));
        check("..", Kind::Gauge, None);
        check("", Kind::Gauge, None);
    }
}
