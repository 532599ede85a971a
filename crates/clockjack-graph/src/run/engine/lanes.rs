//! The ticks of a domain's lanes: when each is due, and what happens to missed ticks.

use super::region::earlier;
use crate::{
    compile::Plan,
    describe::{LaneType, OverrunPolicy},
};

/// The lanes of a domain.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(crate) list: Vec<LaneClock>,
}

/// The clock of a lane.
#[derive(Debug)]
pub(crate) struct LaneClock {
    /// Index of the lane in the plan.
    pub(crate) lane: usize,
    lane_type: LaneType,
    /// Zero: every epoch is a tick, or the lane has no ticks.
    period_ns: u64,
    budget_ns: u64,
    policy: OverrunPolicy,
    next_ns: u64,
    /// When the calls of its last tick ended.
    busy_until_ns: u64,
    is_due: bool,
    pub(crate) counts: LaneCounts,
}

/// `runtime.scheduler.*` of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneCounts {
    pub(crate) ticks: u64,
    pub(crate) overruns: u64,
    pub(crate) skipped: u64,
    pub(crate) lateness_max_ns: u64,
    pub(crate) jitter_ns: u64,
}

/// The result of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TickEnd {
    pub(crate) is_overrun: bool,
    pub(crate) n_skipped: u64,
}

impl Lanes {
    pub(crate) fn new(plan: &Plan, is_mine: impl Fn(usize) -> bool) -> Self {
        let mine = plan.lanes.iter().enumerate().filter(|(index, _)| is_mine(*index));
        let list = mine.map(|(lane, planned)| {
            let spec = &planned.spec;
            let is_fixed = spec.lane_type == LaneType::FixedRate;
            let period_ns = if is_fixed { spec.period_ns() } else { 0 };
            let budget_ns = spec.tick_budget_ms.saturating_mul(1_000_000);
            LaneClock {
                lane,
                lane_type: spec.lane_type,
                period_ns,
                budget_ns: if budget_ns > 0 { budget_ns } else { period_ns },
                policy: spec.overrun_policy,
                next_ns: 0,
                busy_until_ns: 0,
                is_due: false,
                counts: LaneCounts::default(),
            }
        });
        Self { list: list.collect() }
    }

    /// The next tick of all lanes with a period. A tick at the end of time never happens.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        let paced = self.list.iter().filter(|lane| lane.period_ns > 0);
        paced.map(LaneClock::next_start).min().filter(|next_ns| *next_ns < u64::MAX)
    }

    /// Marks the lanes whose components are called at this time. `is_step_requested`: the host has
    /// requested a step of its `manual_step` lanes.
    pub(crate) fn begin(&mut self, now_ns: u64, is_step_requested: bool, is_due: &mut [bool]) {
        for lane in &mut self.list {
            lane.is_due = match lane.lane_type {
                LaneType::ManualStep => is_step_requested,
                _ => lane.period_ns == 0 || lane.next_start() <= now_ns,
            };
            is_due[lane.lane] = lane.is_due;
        }
    }

    /// The epoch has ended: schedules the next ticks. `ended_ns` says when the calls of a lane have
    /// ended; in simulated time calls take no time, unless the run has a model of their costs.
    pub(crate) fn end(
        &mut self,
        began_ns: u64,
        ended_ns: impl Fn(usize) -> u64,
        mut report: impl FnMut(&LaneClock, TickEnd),
    ) {
        for lane in &mut self.list {
            if lane.is_due && lane.lane_type == LaneType::FixedRate {
                let end = lane.end(began_ns, ended_ns(lane.lane));
                report(lane, end);
            }
        }
    }

    /// The next tick of a lane, or another time that is earlier.
    pub(crate) fn next_of(&self, other: Option<u64>) -> Option<u64> {
        earlier(self.next_tick(), other)
    }
}

impl LaneClock {
    /// When the next tick begins: when it is due, and not before the last one has ended.
    fn next_start(&self) -> u64 {
        self.next_ns.max(self.busy_until_ns)
    }

    fn end(&mut self, began_ns: u64, ended_ns: u64) -> TickEnd {
        self.counts.ticks += 1;
        self.busy_until_ns = ended_ns;
        let took_ns = ended_ns.saturating_sub(began_ns);
        let is_overrun = self.budget_ns > 0 && took_ns > self.budget_ns;
        if is_overrun {
            self.counts.overruns += 1;
            self.counts.jitter_ns = took_ns - self.budget_ns;
        }
        if self.period_ns == 0 {
            return TickEnd { is_overrun, n_skipped: 0 };
        }
        let (scheduled_ns, period_ns) = (self.next_ns, self.period_ns);
        let lateness_ns = ended_ns.saturating_sub(scheduled_ns.saturating_add(period_ns));
        self.counts.lateness_max_ns = self.counts.lateness_max_ns.max(lateness_ns);
        // The grid of ticks never moves, so no policy changes the phase. Ticks before the end of
        // the epoch are missed; a tick that is due exactly then is not.
        let n_missed = ended_ns.saturating_sub(scheduled_ns).saturating_sub(1) / period_ns;
        let (n_periods, n_skipped) = match self.policy {
            _ if lateness_ns == 0 => (1, 0),
            OverrunPolicy::DropTick => (n_missed + 1, n_missed),
            OverrunPolicy::SkipNext => (n_missed + 2, n_missed + 1),
            OverrunPolicy::CatchUpOnce => (n_missed, n_missed - 1),
        };
        self.next_ns = scheduled_ns.saturating_add(period_ns.saturating_mul(n_periods));
        self.counts.skipped += n_skipped;
        TickEnd { is_overrun, n_skipped }
    }
}
