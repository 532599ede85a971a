//! A close comes to its end while others schedule as fast as they can.
#![cfg(not(loom))]

use core::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{sync::mpsc, thread};

use clockjack_sched::{DispatcherId, ScheduleErrorKind, Scheduler, SchedulerConfig, SchedulerHost};
use clockjack_time::{ClockKind, Resolution, Tick, TimerInstant};

/// Its time advances with each reading.
struct Host(AtomicU64);

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.0.fetch_add(1, SeqCst)), Resolution::MICRO)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "test"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {}

    fn relax(&self) {
        thread::yield_now();
    }
}

/// Schedules until it is refused; says how often it was not, and why in the end.
fn flood(scheduler: &Scheduler, is_on: &mpsc::Sender<()>) -> (u64, ScheduleErrorKind) {
    for accepted in 0_u64.. {
        let delay = Duration::from_millis(accepted % 3);
        let job = scheduler.schedule_once_fn(delay, DispatcherId::DEFAULT, |_| ());
        if let Err(refused) = job {
            return (accepted, refused.kind());
        }
        if accepted == 100 {
            is_on.send(()).unwrap();
        }
    }
    unreachable!("a quota is smaller");
}

#[test]
fn a_close_does_not_wait_for_those_who_schedule_to_pause() {
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
    for _ in 0..20 {
        let scheduler = Scheduler::new(config.clone(), Host(AtomicU64::new(0))).unwrap();
        let (is_on, on) = mpsc::channel();
        let (report, posted) = thread::scope(|scope| {
            let driver = scope.spawn(|| while !scheduler.poll_shard(0, 0, 64).is_over {});
            let posters = [(); 2].map(|()| scope.spawn(|| flood(&scheduler, &is_on.clone())));
            on.recv().unwrap();
            let report = scheduler.shutdown();
            driver.join().unwrap();
            (report, posters.map(|poster| poster.join().unwrap()))
        });
        // Without an end of the close they would have met the quota.
        assert_eq!(posted.map(|(_, end)| end), [ScheduleErrorKind::Closed; 2]);
        assert_eq!(report.accepted, posted.iter().map(|(accepted, _)| accepted).sum::<u64>());
        assert_eq!(report.executed + report.cancelled, report.accepted);
    }
}
