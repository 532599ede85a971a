//! A `timer` source: due at `start + phase + k * period` of its domain's time.
//!
//! It has no clock: the run asks when it is due, and fires it when that time has come. Several
//! missed ticks become one call, which reports their number.

use crate::describe::EventSourceSpec;

const NS_PER_MS: u64 = 1_000_000;

/// The next tick of a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) next_due_ns: u64,
    pub(crate) period_ns: u64,
    phase_ns: u64,
}

/// Ticks that are combined in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// How many.
    pub(crate) runs: u32,
    /// All but the last.
    pub(crate) missed_runs: u32,
    /// When the last was due.
    pub(crate) scheduled_ns: u64,
}

impl Timer {
    /// The timer of a source, for a run that starts at zero.
    pub(crate) fn new(source: &EventSourceSpec) -> Self {
        let phase_ns = source.phase_ms.saturating_mul(NS_PER_MS);
        let period_ns = source.period_ms.saturating_mul(NS_PER_MS).max(1);
        Self { next_due_ns: phase_ns, period_ns, phase_ns }
    }

    /// The run, or the component in it, starts now.
    pub(crate) fn start(&mut self, now_ns: u64) {
        self.next_due_ns = now_ns.saturating_add(self.phase_ns);
    }

    /// Takes all ticks that are due.
    pub(crate) fn fire(&mut self, now_ns: u64) -> Option<Ticks> {
        let late_ns = now_ns.checked_sub(self.next_due_ns)?;
        // Usually there is one tick: this avoids the division, which costs more than the rest.
        let missed = if late_ns < self.period_ns { 0 } else { late_ns / self.period_ns };
        let scheduled_ns = self.next_due_ns + missed * self.period_ns;
        self.next_due_ns = scheduled_ns.saturating_add(self.period_ns);
        let missed_runs = u32::try_from(missed).unwrap_or(u32::MAX - 1);
        Some(Ticks { runs: missed_runs + 1, missed_runs, scheduled_ns })
    }
}
