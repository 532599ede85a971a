//! What came by on the diagnostics stream.

use clockjack_sched::{DiagnosticEvent, Subscription, Warning};

/// Counts of the stream.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) scheduled: u64,
    pub(crate) fired: u64,
    pub(crate) cancelled: u64,
    /// In the order in which their kinds came first.
    pub(crate) warnings: Vec<HeardWarning>,
}

/// Warnings of one kind.
#[derive(Debug)]
pub(crate) struct HeardWarning {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    /// What the first one said.
    pub(crate) first: String,
}

impl Heard {
    /// Takes all that waits.
    pub(crate) fn listen(&mut self, stream: &mut Subscription) {
        while let Some(event) = stream.try_next() {
            self.enter(&event);
        }
    }

    fn enter(&mut self, event: &DiagnosticEvent) {
        match event {
            DiagnosticEvent::Scheduled { .. } => self.scheduled += 1,
            DiagnosticEvent::Fired { .. } => self.fired += 1,
            DiagnosticEvent::Cancelled { .. } => self.cancelled += 1,
            DiagnosticEvent::Warned(warning) => self.warned(warning),
            _ => {}
        }
    }

    fn warned(&mut self, warning: &Warning) {
        let name = name(warning);
        match self.warnings.iter_mut().find(|known| known.name == name) {
            Some(known) => known.count += 1,
            None => {
                let first = warning.to_string();
                self.warnings.push(HeardWarning { name, count: 1, first });
            }
        }
    }
}

const fn name(warning: &Warning) -> &'static str {
    match warning {
        Warning::DriftExceeded { .. } => "DriftExceeded",
        Warning::DriverCatchUpExceeded { .. } => "DriverCatchUpExceeded",
        Warning::DriverSilent { .. } => "DriverSilent",
        Warning::BurstFire { .. } => "BurstFire",
        Warning::BacklogExceeded { .. } => "BacklogExceeded",
        Warning::QuotaReached { .. } => "QuotaReached",
        Warning::BackpressureState { .. } => "BackpressureState",
        Warning::OverflowNearCapacity { .. } => "OverflowNearCapacity",
        Warning::DroppedLowPriority { .. } => "DroppedLowPriority",
        Warning::HandlerFailed { .. } => "HandlerFailed",
        Warning::TaskRunFailed { .. } => "TaskRunFailed",
        Warning::DiagnosticsDropped { .. } => "DiagnosticsDropped",
        Warning::ClockJump { .. } => "ClockJump",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn warnings_are_counted_by_kind_and_the_first_of_each_is_kept() {
        let mut heard = Heard::default();
        let jump = |secs| Warning::ClockJump { by: Duration::from_secs(secs) };
        let dropped = Warning::DiagnosticsDropped { dropped: 3 };
        for warning in [jump(61), dropped, jump(62)] {
            heard.enter(&DiagnosticEvent::Warned(warning));
        }
        let found: Vec<_> = heard.warnings.iter().map(|w| (w.name, w.count, &*w.first)).collect();
        let jumps = ("ClockJump", 2, "the clock went forward by 61s at once");
        let drops = ("DiagnosticsDropped", 1, "3 diagnostic events were dropped");
        assert_eq!(found, [jumps, drops]);
    }
}
