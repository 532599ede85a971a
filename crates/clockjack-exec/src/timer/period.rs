//! A period without drift, even if it is not a whole number of ticks.
//!
//! Due times are counted in nanoseconds from the first, which is the edge of a tick, and each is
//! rounded up to an edge separately. So one may be late by less than a tick, and the next is not
//! later because of that.

use core::time::Duration;

use clockjack_time::{Resolution, Tick};

/// A period; see the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    nanos: u64,
    nanos_per_tick: u64,
    /// The tick edge of the next due time.
    due: Tick,
    /// How long before that edge the exact due time is: less than a tick.
    lead_nanos: u64,
}

impl Period {
    /// A period shorter than a tick is one tick.
    pub(crate) fn new(every: Duration, first: Tick, resolution: Resolution) -> Self {
        let nanos_per_tick = u64::from(resolution.nanos().get());
        let nanos = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(nanos_per_tick);
        Self { nanos, nanos_per_tick, due: first, lead_nanos: 0 }
    }

    /// When it is due next.
    pub(crate) fn due(&self) -> Tick {
        self.due
    }

    /// Skips all due times that have passed except the last; returns how many were skipped.
    pub(crate) fn catch_up(&mut self, now: Tick) -> u64 {
        let Some(ticks) = now.get().checked_sub(self.due.get()) else { return 0 };
        let behind = ticks.saturating_mul(self.nanos_per_tick).saturating_add(self.lead_nanos);
        let missed = behind / self.nanos;
        self.advance(missed * self.nanos);
        missed
    }

    /// Advances to the next due time.
    pub(crate) fn advance_to_next(&mut self) {
        self.advance(self.nanos);
    }

    fn advance(&mut self, nanos: u64) {
        match nanos.checked_sub(self.lead_nanos) {
            Some(beyond @ 1..) => {
                let ticks = beyond.div_ceil(self.nanos_per_tick);
                self.due = Tick::new(self.due.get().saturating_add(ticks));
                self.lead_nanos = ticks.saturating_mul(self.nanos_per_tick).saturating_sub(beyond);
            }
            _ => self.lead_nanos -= nanos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOLUTIONS: [u32; 5] = [1, 999, 1_000, 1_000_000, u32::MAX];

    fn period(nanos: u64, first: u64, resolution: u32) -> Period {
        let resolution = Resolution::from_nanos(resolution).expect("not zero");
        Period::new(Duration::from_nanos(nanos), Tick::new(first), resolution)
    }

    /// The edge of due time `k`, by plain arithmetic.
    fn edge(first: u64, k: u64, nanos: u64, resolution: u32) -> u64 {
        let resolution = u128::from(resolution);
        let nanos = u128::from(nanos).max(resolution);
        let due = u128::from(first) * resolution + u128::from(k) * nanos;
        u64::try_from(due.div_ceil(resolution)).expect("a few steps")
    }

    #[test]
    fn each_due_time_is_the_first_edge_at_or_behind_its_multiple() {
        for resolution in RESOLUTIONS {
            let tick = u64::from(resolution);
            for nanos in [0, 1, tick - 1, tick, tick + 1, 3 * tick / 2, 17 * tick - 1, 50_000_001] {
                for first in [0, 7, 1 << 40] {
                    let mut period = period(nanos, first, resolution);
                    for k in 0..100 {
                        let due = edge(first, k, nanos, resolution);
                        assert_eq!(period.due().get(), due, "{k} of {nanos} ns in {resolution}");
                        period.advance_to_next();
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_over_is_left_out_and_counted_and_the_multiples_stay() {
        for resolution in RESOLUTIONS {
            let tick = u64::from(resolution);
            for nanos in [1, tick, 3 * tick / 2, 10 * tick + 1] {
                let mut period = period(nanos, 5, resolution);
                let mut k = 0;
                for late in [0, 1, 2, 9, 10, 11, 1_000_003] {
                    let now = period.due().get() + late;
                    k += period.catch_up(Tick::new(now));
                    assert_eq!(period.due().get(), edge(5, k, nanos, resolution));
                    assert!(period.due().get() <= now, "none that is ahead is left out");
                    period.advance_to_next();
                    k += 1;
                    assert!(period.due().get() > now, "all that are over are");
                    assert_eq!(period.catch_up(Tick::new(now)), 0, "one that is ahead is not over");
                }
            }
        }
    }

    #[test]
    fn the_longest_period_and_the_last_tick_are_the_end() {
        let mut period = period(u64::MAX, u64::MAX - 1, 1);
        period.advance_to_next();
        assert_eq!(period.due(), Tick::MAX);
        period.advance_to_next();
        assert_eq!((period.due(), period.catch_up(Tick::MAX)), (Tick::MAX, 0));
    }
}
