//! What an executor on one thread needs, out of Embassy.

use clockjack_actor::{StartError, SystemBuilder};
use clockjack_exec::Toolbox;
use clockjack_sync::{Counted, mutant};
use clockjack_time::{MonotonicClock, Resolution, Tick, TickDriver, TimerInstant};

use crate::{AlarmDriver, EmbassySystem};

/// Embassy's clock and alarm, for executors of Clockjack; clones share them.
///
/// [`system`](Self::system) makes actors of it. Given to
/// [`RootContext::new`](clockjack_actor::RootContext::new) instead, somebody has to
/// [serve](Self::serve) a clone of it, else no timer wakes the loop.
///
/// It never parks: an executor of Embassy has many tasks and one stack, so that who waits on it
/// stops all others. What would block, as
/// [`blocking_dispatch_loop`](clockjack_actor::RootContext::blocking_dispatch_loop), keeps the
/// processor busy here.
#[derive(Clone, Debug)]
pub struct EmbassyToolbox {
    driver: Counted<AlarmDriver>,
    seed: u64,
}

impl EmbassyToolbox {
    /// A toolbox whose clock begins now.
    ///
    /// Embassy's own tick bounds how fine a resolution makes sense, and a coarser one saves
    /// nothing: the alarm is set for timers, not for ticks.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self { driver: Counted::new(AlarmDriver::new(resolution)), seed: 0 }
    }

    /// Draws what is left open, as the jitter of a backoff and the order of those that are ready,
    /// from a seed; zero keeps the order in which they became ready.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// A system of actors, to be run in a task.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`](clockjack_actor::RootContext::new).
    pub fn system(self, builder: SystemBuilder) -> Result<EmbassySystem, StartError> {
        EmbassySystem::new(self, builder)
    }

    /// Lets ticks arrive for whoever is registered with the [driver](Toolbox::driver), until that
    /// is stopped. A system that [`system`](Self::system) has made does this by itself.
    pub async fn serve(&self) {
        self.driver.serve().await;
    }

    pub(crate) fn alarm(&self) -> &AlarmDriver {
        &self.driver
    }
}

impl Toolbox for EmbassyToolbox {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.driver
    }

    fn driver(&self) -> &dyn TickDriver {
        &*self.driver
    }

    fn park(&self, _until: Option<Tick>) {}

    fn unpark(&self) {
        self.driver.ring();
    }

    fn now(&self) -> TimerInstant {
        if mutant!("embassy-reading-coarse") {
            return self.driver.now();
        }
        self.driver.clock().now_fine()
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}
