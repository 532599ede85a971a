//! The metronome's thread: looks, sleeps, and starts again if a look panics.

use core::{panic::AssertUnwindSafe, time::Duration};
use std::panic::catch_unwind;

use clockjack_exec::{StartError, watch::Watch};

use super::Inner;
use crate::{
    blocking,
    scheduler::Silence,
    thread::{self, ThreadConfig},
};

/// How long after the edge of a tick the metronome looks, so that it does not take the CPU from a
/// worker whose timer is due.
const BEHIND_EDGE: Duration = Duration::from_micros(200);

impl Inner {
    /// Starts the one thread that looks after overdue timers, shards without a keeper and stuck
    /// workers.
    pub(super) fn start_metronome(&self) -> Result<(), StartError> {
        let (engine, threads) = (self.engine.clone(), alloc::sync::Arc::clone(&self.threads));
        let stuck_after = u64::try_from(self.config.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        let on_stuck = self.config.on_stuck;
        let others = alloc::sync::Arc::clone(&self.on_stuck);
        let seats = threads.seats.len();
        let scheduler = alloc::sync::Arc::clone(&self.scheduler);
        let mut silence = Silence::new(scheduler, &self.config.scheduler);
        let config = ThreadConfig { name: "cj-metronome".into(), ..ThreadConfig::DEFAULT };
        let started = thread::start(&config, move || {
            thread::sleep_precisely();
            let mut watch = Watch::new(seats, stuck_after);
            while !engine.is_over() {
                let look = catch_unwind(AssertUnwindSafe(|| {
                    silence.look();
                    watch.look(&engine, |stuck| {
                        if let Some(tell) = others.get() {
                            tell(stuck);
                        }
                        if let Some(report) = on_stuck {
                            report(stuck);
                        }
                    })
                }));
                match look {
                    Ok(until) => {
                        // Not at the edge of the tick itself, where workers wake.
                        let at = |tick| threads.clock.instant_of(tick).saturating_add(BEHIND_EDGE);
                        let until = until.map(at);
                        threads.metronome.park(until);
                    }
                    // Only a report or a waker of the user's panics, and before that it is noted
                    // that it was made: the next look goes on behind it.
                    Err(payload) => {
                        blocking::discard(payload);
                        engine.count_metronome_restart();
                    }
                }
            }
        });
        let metronome = started.map_err(|refused| StartError::thread(&refused))?;
        self.crew().metronome = Some(metronome);
        Ok(())
    }
}
