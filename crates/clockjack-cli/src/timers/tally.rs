//! What is counted of the fires: how many a step, how late, and in which order.

use clockjack_observe::Snapshot;
use clockjack_time::Tick;

use super::check::Fire;
use crate::rng::mix;

/// Buckets an octave: up to 32 every value has its own.
pub(crate) const SUB: usize = 16;

/// Counts of one run.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Timers fired in a step, over the steps that fired any.
    pub(crate) batch: Snapshot<SUB>,
    /// Ticks from deadline to fire.
    pub(crate) late_ticks: Snapshot<SUB>,
    /// A digest of who fired for which deadline, in order. Equal for equal orders, and otherwise
    /// different but for a chance of 2^-64.
    pub(crate) order: u64,
    /// The step that is being counted, and how many have fired in it.
    step: Option<(Tick, u64)>,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self { batch: Snapshot::new(), late_ticks: Snapshot::new(), order: 0, step: None }
    }

    /// Counts a fire.
    pub(crate) fn fired(&mut self, fire: Fire) {
        match &mut self.step {
            Some((now, n)) if *now == fire.now => *n += 1,
            _ => {
                self.end_step();
                self.step = Some((fire.now, 1));
            }
        }
        self.late_ticks.record(fire.now.saturating_since(fire.deadline).get());
        // Each step is a bijection of what came before, so no difference is forgotten by itself.
        self.order = mix(self.order ^ fire.deadline.get()).wrapping_add(u64::from(fire.number));
    }

    /// Counts the last step.
    pub(crate) fn finish(mut self) -> Self {
        self.end_step();
        self
    }

    fn end_step(&mut self) {
        if let Some((_, n)) = self.step.take() {
            self.batch.record(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(fires: &[(u32, u64, u64)]) -> Tally {
        let mut tally = Tally::new();
        for &(number, deadline, now) in fires {
            tally.fired(Fire { number, deadline: Tick::new(deadline), now: Tick::new(now) });
        }
        tally.finish()
    }

    #[test]
    fn fires_of_one_step_are_one_batch() {
        let tally = tally(&[(0, 1, 7), (1, 3, 7), (2, 7, 7), (3, 8, 14)]);
        let batches: Vec<_> = tally.batch.buckets().map(|b| (b.lowest, b.count)).collect();
        assert_eq!(batches, [(1, 1), (3, 1)]);
        let late: Vec<_> = tally.late_ticks.buckets().map(|b| (b.lowest, b.count)).collect();
        assert_eq!(late, [(0, 1), (4, 1), (6, 2)]);
    }

    #[test]
    fn the_digest_tells_orders_deadlines_and_losses_apart_and_ignores_lateness() {
        let order = |fires: &[(u32, u64, u64)]| tally(fires).order;
        let one = order(&[(0, 5, 5), (1, 5, 5), (2, 9, 9)]);
        assert_eq!(order(&[(0, 5, 8), (1, 5, 8), (2, 9, 16)]), one);
        for other in [
            &[(1, 5, 5), (0, 5, 5), (2, 9, 9)][..],
            &[(0, 5, 5), (1, 6, 6), (2, 9, 9)],
            &[(0, 5, 5), (1, 5, 5)],
            &[(0, 5, 5), (1, 5, 5), (2, 9, 9), (2, 9, 9)],
        ] {
            assert_ne!(order(other), one, "{other:?}");
        }
    }
}
