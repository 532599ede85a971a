//! The place of a timer among messages: on workers, where another worker fires the timers of an
//! actor while its handler runs, and on one thread with the clock of the operating system.

use core::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use std::{sync::Arc, thread};

use clockjack_rt::{
    OsClock, Parker, Runtime, RuntimeConfig,
    actor::{ActorSystem, RootContext, Toolbox},
};
use clockjack_testing::InTime;
use clockjack_time::{ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::{
    in_time::ShutdownInTime as _,
    timer_order::{Device, Msg, Seen, check},
};

/// Far beyond what a loaded machine needs; what takes longer hangs.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn neither_a_timer_nor_a_receive_timeout_overtakes_a_message_on_any_number_of_workers() {
    for workers in [1, 2, 4] {
        let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
        let runtime = InTime::new(
            Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
            RuntimeConfig::DEFAULT.drop_timeout,
        );
        let all: Vec<_> = (0..10)
            .map(|_| {
                let seen = Seen::default();
                let device = runtime.spawn_anonymous(Device::props(&seen)).unwrap();
                device.tell(Msg::Begin).unwrap();
                (device, seen)
            })
            .collect();
        for (device, seen) in all {
            runtime.block_on(runtime.system().when_stopped(&device));
            check(&seen);
        }
        drop(runtime.shutdown_in_time(LONG));
    }
}

/// The services of one thread.
struct OneThread {
    clock: OsClock,
    driver: Arc<ManualDriver>,
    parker: Parker,
}

impl Toolbox for OneThread {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &*self.driver
    }

    fn park(&self, until: Option<Tick>) {
        self.parker.park(until.map(|tick| self.clock.instant_of(tick)));
    }

    fn unpark(&self) {
        self.parker.unpark();
    }
}

/// A thread that is what a timer interrupt is on a board: the ticks of the clock arrive, whatever
/// the thread of the actors does.
fn deliver_ticks(clock: OsClock, driver: &ManualDriver, is_over: &AtomicBool) {
    // Relaxed: the flag publishes nothing.
    while !is_over.load(Relaxed) {
        let arrived = driver.now().tick();
        let now = clock.now().tick();
        driver.inject(now.saturating_since(arrived));
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn neither_a_timer_nor_a_receive_timeout_overtakes_a_message_on_one_thread() {
    let clock = OsClock::new(Resolution::MILLI);
    let driver = Arc::new(ManualDriver::new(Resolution::MILLI));
    let host = OneThread { clock, driver: Arc::clone(&driver), parker: Parker::new() };
    let mut root = RootContext::new(host, ActorSystem::builder("t")).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| deliver_ticks(clock, &driver, &is_over));
        for n in 0..10 {
            let seen = Seen::default();
            let device = root.spawn(&format!("{n}"), Device::props(&seen)).unwrap();
            device.tell(Msg::Begin).unwrap();
            root.blocking_dispatch_loop(|| device.is_stopped());
            check(&seen);
        }
        is_over.store(true, Relaxed);
    });
}
