//! Takes ticks from a driver, and reports to a scheduler how the driver does.
//!
//! This is the one user of the driver contract: [`RunnerLoop`](crate::RunnerLoop) and the root
//! context of `clockjack-actor` call it before they run due jobs.

use alloc::boxed::Box;
use core::time::Duration;

use clockjack_time::{
    DriverStatus, MonotonicClock, Resolution, Tick, TickDriver, TickSpan, TimerInstant,
};

use crate::{Scheduler, Warning, diagnostics::watch::DriverWatch};

/// How many tokens one call takes. Bounded, because a driver that is faster than the loop always
/// has another token, and handlers must run nevertheless.
const TOKENS_MAX: u32 = 64;

/// The ticks that one call has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenTicks {
    /// How many ticks were taken.
    pub ticks: u64,
    /// How many of them came while the loop should have polled: all but the last tick of each
    /// token, and none of those that came while the loop had nothing to do.
    pub catch_up: u64,
    /// The last tick that was taken, in the driver's count; `None` if there was none.
    pub up_to: Option<Tick>,
    /// Whether the driver may have more tokens.
    pub is_more: bool,
}

/// The consumer of a driver's ticks. One loop has one.
#[derive(Debug, Default)]
pub struct DriverTicks {
    /// Boxed, because few loops have one.
    watch: Option<Box<DriverWatch>>,
    /// Ticks that were taken since the start.
    ticks: u64,
    /// Whether the driver has reported lateness at the last call that found ticks.
    has_jitter: bool,
    /// The loop has nothing to do before this tick.
    idle_until: Tick,
}

impl DriverTicks {
    /// Says that the loop has nothing to do before `tick`. Ticks before it are no backlog.
    pub fn set_idle_until(&mut self, tick: Tick) {
        self.idle_until = tick;
    }

    /// Sets whether the loop counts the ticks that are caught up with, because it gets their number
    /// from the driver; otherwise the shards guess it from their deadlines.
    pub fn set_counts_ticks(scheduler: &Scheduler, counts: bool) {
        for shard in &scheduler.inner().shards {
            shard.with_guard(|locked| locked.table.set_driver_reports_ticks(counts));
        }
    }

    /// Watches the driver from now on: see [`RunnerLoop::watch`](crate::RunnerLoop::watch).
    pub fn watch(
        &mut self,
        scheduler: &Scheduler,
        reference: &'static (dyn MonotonicClock + Sync),
        fallback: fn(Duration),
    ) {
        let two_ticks = tick_of(scheduler).duration(TickSpan::new(2));
        let timeout = scheduler.inner().shared.driver_timeout.max(two_ticks);
        let watch = DriverWatch::new(timeout, self.ticks, reference, fallback);
        self.watch = Some(Box::new(watch));
    }

    /// Takes the ticks that have arrived, and reports lateness, ticks that were caught up with, and
    /// a driver that supplies none.
    pub fn take(&mut self, scheduler: &Scheduler, driver: &dyn TickDriver) -> TakenTicks {
        // Read before the tokens are taken: afterwards no tick is pending.
        let status = driver.current_status();
        let mut taken = TakenTicks { is_more: true, ..TakenTicks::default() };
        for _ in 0..TOKENS_MAX {
            let Some(token) = driver.poll_tick() else {
                taken.is_more = false;
                break;
            };
            let catch_up = u64::from(token.catch_up);
            taken.ticks += 1 + catch_up;
            taken.catch_up += catch_up;
            taken.up_to = taken.up_to.max(Some(token.up_to));
        }
        if let Some(up_to) = taken.up_to {
            self.ticks = self.ticks.saturating_add(taken.ticks);
            let late = up_to.saturating_since(self.idle_until).get();
            taken.catch_up = taken.catch_up.min(late);
            self.update_jitter(scheduler, status, late);
            if taken.catch_up > 0 {
                count_catch_up(scheduler, taken.catch_up);
            }
        }
        self.check_driver(scheduler);
        taken
    }

    /// Derives the driver's lateness from its status: how long the oldest tick has waited that the
    /// loop should have taken.
    fn update_jitter(&mut self, scheduler: &Scheduler, status: DriverStatus, late: u64) {
        let pending = match status {
            DriverStatus::Backpressured { pending_ticks } => pending_ticks.min(late),
            _ => 0,
        };
        let has_jitter = pending > 0;
        if has_jitter || self.has_jitter {
            let jitter = tick_of(scheduler).duration(TickSpan::new(pending));
            scheduler.diagnostics().set_driver_jitter(jitter);
        }
        self.has_jitter = has_jitter;
    }

    fn check_driver(&mut self, scheduler: &Scheduler) {
        let Some(watch) = &mut self.watch else { return };
        if scheduler.is_closed() {
            return;
        }
        if let Some((silent_for, fallback)) = watch.observe(self.ticks) {
            scheduler.inner().shared.warn(Warning::DriverSilent { silent_for });
            fallback(silent_for);
        }
    }
}

/// The length of a tick of the driver.
fn tick_of(scheduler: &Scheduler) -> Resolution {
    scheduler.inner().shared.host.driver_tick()
}

#[cold]
fn count_catch_up(scheduler: &Scheduler, catch_up: u64) {
    let inner = scheduler.inner();
    let limit = inner.shards[0].with_guard(|locked| locked.table.count_catch_up(catch_up));
    let behind = TimerInstant::new(Tick::new(catch_up), tick_of(scheduler));
    let ticks = behind.elapsed_tick(inner.shared.resolution).get();
    if ticks > u64::from(limit) {
        inner.shared.warn(Warning::DriverCatchUpExceeded { shard: 0, ticks, limit });
    }
}
