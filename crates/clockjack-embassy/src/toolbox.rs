//! The platform services of a single-threaded executor, provided by Embassy.

use clockjack_actor::{StartError, SystemBuilder};
use clockjack_exec::Toolbox;
use clockjack_sync::Arc;
use clockjack_time::{MonotonicClock, Resolution, Tick, TickDriver, TimerInstant};

use crate::{AlarmDriver, EmbassySystem};

/// Embassy's clock and alarm for Clockjack's executors. Clones share them.
///
/// [`system`](Self::system) creates an actor system on it. If it is passed to
/// [`RootContext::new`](clockjack_actor::RootContext::new) instead, a task must
/// [serve](Self::serve) a clone of it; otherwise no timer wakes the loop.
///
/// It never parks: an Embassy executor runs many tasks on one stack, so a task that blocks stops
/// all others. A blocking call such as
/// [`blocking_dispatch_loop`](clockjack_actor::RootContext::blocking_dispatch_loop) spins here.
#[derive(Clone, Debug)]
pub struct EmbassyToolbox {
    driver: Arc<AlarmDriver>,
    seed: u64,
}

impl EmbassyToolbox {
    /// Creates a toolbox whose clock begins now.
    ///
    /// A resolution finer than Embassy's own tick makes no sense, and a coarser one saves nothing:
    /// the alarm is set per timer, not per tick.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self { driver: Arc::new(AlarmDriver::new(resolution)), seed: 0 }
    }

    /// Sets the seed for random choices, such as the jitter of a backoff and the order of ready
    /// tasks. Zero keeps the order in which tasks became ready.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Creates an actor system, to be run in a task.
    ///
    /// # Errors
    ///
    /// As [`RootContext::new`](clockjack_actor::RootContext::new).
    pub fn system(self, builder: SystemBuilder) -> Result<EmbassySystem, StartError> {
        EmbassySystem::new(self, builder)
    }

    /// Lets ticks arrive for the waker that is registered with the [driver](Toolbox::driver), until
    /// the driver is stopped. A system that [`system`](Self::system) created does this itself.
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
        self.driver.wake_server();
    }

    fn now(&self) -> TimerInstant {
        self.driver.clock().now_fine()
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}
