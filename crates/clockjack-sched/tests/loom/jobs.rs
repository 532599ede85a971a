//! The protocol of `shard.md`, through a whole scheduler.
//!
//! The law: of each job that was accepted, either it ran or a cancel of it said true, once; what
//! was refused came back; and in the end no slot, no permit and no payload is left. loom itself
//! reports two threads that touch a table or a slot at a time.

use alloc::{sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use clockjack_sched::{
    Cancellable, CloseReport, DispatcherId, FireContext, ScheduleErrorKind, Scheduler,
    SchedulerConfig,
    model::{Held, held},
};
use clockjack_time::{Resolution, Tick};
use loom::thread;

use crate::{counting_task::CountingTask, host::Host};

const D: DispatcherId = DispatcherId::DEFAULT;

pub(crate) const fn ticks(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A scheduler, its time and what it has done. The counters are not loom's, so that they add no
/// order of their own.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) host: Host,
    pub(crate) ran: Arc<AtomicU32>,
}

impl World {
    pub(crate) fn new() -> Self {
        let host = Host::default();
        let config = SchedulerConfig {
            resolution: Resolution::MILLI,
            quota: 8,
            capacity: 8,
            overflow_capacity: 8,
            ..SchedulerConfig::DEFAULT
        };
        let scheduler = Scheduler::new(config, host.clone()).expect("a sound configuration");
        Self { scheduler, host, ran: Arc::default() }
    }

    pub(crate) fn at(&self, tick: u64) {
        self.host.now.store(tick, SeqCst);
    }

    /// What a job does: it counts. What it captures is counted by the `Arc`.
    fn count(&self) -> impl FnMut(&FireContext) + Send + use<> {
        let ran = self.ran.clone();
        move |_| {
            ran.fetch_add(1, SeqCst);
        }
    }

    fn once(&self, delay: u64) -> Result<Cancellable, ScheduleErrorKind> {
        let job = self.scheduler.schedule_once_fn(ticks(delay), D, self.count());
        job.map_err(|refused| refused.kind())
    }

    fn every(&self, delay: u64) -> Cancellable {
        let job =
            self.scheduler.schedule_at_fixed_rate_fn(ticks(delay), ticks(delay), D, self.count());
        job.expect("open and there is room")
    }

    pub(crate) fn turn(&self) -> Option<Tick> {
        let turn = self.scheduler.poll_shard(0, 0, 100);
        assert!(!turn.is_more, "a hundred runs are more than there are jobs");
        turn.next_wake
    }

    pub(crate) fn spawn<R: 'static>(
        &self,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let world = self.clone();
        thread::spawn(move || f(&world))
    }

    pub(crate) fn ran(&self) -> u32 {
        self.ran.load(SeqCst)
    }

    /// Nothing is left: all handles must be gone, all jobs over.
    fn settle(self) {
        self.turn();
        let left = held(&self.scheduler);
        let nothing = Held { slots: 0, permits: 0, due: 0, remote_ops: 0, ..left };
        assert_eq!(left, nothing, "something is left");
        let metrics = self.scheduler.metrics();
        assert_eq!(metrics.active_total, 0, "a job lives on");
        assert_eq!(metrics.accepted_total, metrics.executed_total + metrics.cancelled_total);
        assert_eq!(Arc::strong_count(&self.ran), 1, "a payload was not dropped");
    }
}

/// Explores what is done in a new world, of which nothing must be left in the end.
pub(crate) fn model(scene: impl Fn(&World) + Sync + Send + 'static) {
    loom::model(move || {
        let world = World::new();
        scene(&world);
        world.settle();
    });
}

pub(crate) fn once_each(report: &CloseReport) {
    assert_eq!(report.accepted, report.executed + report.cancelled, "{report}");
}

#[test]
fn a_cancel_by_note_against_the_close_is_reported_as_a_cancel() {
    model(|world| {
        let job = world.once(5).expect("open");
        let canceller = world.spawn(move |_| job.cancel());
        let report = world.scheduler.shutdown();
        canceller.join().expect("no panic");
        once_each(&report);
        assert_eq!((report.accepted, report.cancelled, report.still_running), (1, 1, 0));
        assert_eq!(world.ran(), 0);
    });
}

#[test]
fn a_mark_that_is_granted_during_the_close_is_kept() {
    model(|world| {
        let job = world.once(5).expect("open");
        let marker = world.spawn(move |_| job.run_on_close());
        let report = world.scheduler.shutdown();
        let is_marked = marker.join().expect("no panic");
        once_each(&report);
        assert_eq!(
            (report.executed, report.run_on_close),
            (u64::from(is_marked), u64::from(is_marked))
        );
        assert_eq!(world.ran(), u32::from(is_marked));
    });
}

#[test]
fn of_a_schedule_with_the_lease_and_one_by_note_against_a_turn_each_runs_once() {
    model(|world| {
        world.at(5);
        let posters: Vec<_> =
            (0..2).map(|_| world.spawn(|world| drop(world.once(0).expect("open")))).collect();
        world.turn();
        for poster in posters {
            poster.join().expect("no panic");
        }
        world.turn();
        assert_eq!(world.ran(), 2);
    });
}

#[test]
fn two_posts_during_one_lease_find_one_slot_in_stock_each_or_wait() {
    model(|world| {
        let posters: Vec<_> =
            (0..2).map(|_| world.spawn(|world| drop(world.once(3).expect("open")))).collect();
        drop(world.once(3).expect("open"));
        for poster in posters {
            poster.join().expect("no panic");
        }
        world.at(3);
        world.turn();
        assert_eq!(world.ran(), 3);
    });
}

#[test]
fn a_cancel_against_the_expiry_is_a_run_or_a_cancel() {
    model(|world| {
        let job = world.once(2).expect("open");
        world.at(2);
        let canceller = world.spawn(move |_| (job.cancel(), job.is_cancelled()));
        world.turn();
        let (cancelled, is_cancelled) = canceller.join().expect("no panic");
        assert_eq!(cancelled, is_cancelled);
        world.turn();
        assert_eq!(world.ran(), u32::from(!cancelled));
    });
}

#[test]
fn of_two_cancels_against_a_turn_at_most_one_wins() {
    model(|world| {
        let job = world.once(2).expect("open");
        world.at(2);
        let cancellers: Vec<_> = (0..2)
            .map(|_| {
                let job = job.clone();
                world.spawn(move |_| u32::from(job.cancel()))
            })
            .collect();
        drop(job);
        world.turn();
        let won: u32 = cancellers.into_iter().map(|one| one.join().expect("no panic")).sum();
        world.turn();
        assert_eq!(world.ran() + won, 1);
    });
}

#[test]
fn two_turns_run_a_job_once() {
    model(|world| {
        drop(world.once(2).expect("open"));
        world.at(2);
        let turner = world.spawn(|world| {
            world.turn();
        });
        world.turn();
        turner.join().expect("no panic");
        assert_eq!(world.ran(), 1);
    });
}

#[test]
fn a_post_against_the_close_is_in_the_report_or_refused() {
    model(|world| {
        let poster = world.spawn(|world| {
            let ran = world.ran.clone();
            let run = move |_: &FireContext| {
                ran.fetch_add(1, SeqCst);
            };
            match world.scheduler.schedule_once_fn(ticks(3), D, run) {
                Ok(job) => Some(job),
                Err(refused) => {
                    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
                    drop(refused.into_inner());
                    None
                }
            }
        });
        let report = world.scheduler.shutdown();
        let job = poster.join().expect("no panic");
        once_each(&report);
        assert_eq!(report.accepted, u64::from(job.is_some()));
        assert!(job.as_ref().is_none_or(Cancellable::is_cancelled));
        drop(job);
        assert_eq!(world.ran(), 0);
    });
}

#[test]
fn a_post_against_the_close_and_a_lease_between_them_is_exact() {
    model(|world| {
        let poster = world.spawn(|world| world.once(3).is_ok());
        let other = world.spawn(|world| world.once(3).is_ok());
        let report = world.scheduler.shutdown();
        let accepted = [poster, other].map(|one| u64::from(one.join().expect("no panic")));
        once_each(&report);
        assert_eq!(report.accepted, accepted.iter().sum::<u64>());
        assert_eq!(world.ran(), 0);
    });
}

/// A poller that was to wake early, and now has no reason to, goes to sleep concurrently with a
/// remote schedule.
fn retire_against_a_post(world: &World, later: Option<u64>) {
    let early = world.once(3).expect("open");
    let late = later.map(|delay| world.once(delay).expect("open"));
    assert_eq!(world.turn(), Some(Tick::new(3)));
    assert!(early.cancel());
    drop((early, late));
    world.host.calls.store(0, SeqCst);
    let poster = world.spawn(|world| drop(world.once(5).expect("open")));
    let next = world.turn();
    poster.join().expect("no panic");
    let called = world.host.calls.load(SeqCst) > 0;
    assert!(called || next == Some(Tick::new(5)), "the runner sleeps until {next:?}");
    world.at(9);
    world.turn();
    assert_eq!(world.ran(), 1 + u32::from(later.is_some()));
}

#[test]
fn a_runner_that_retires_until_it_is_called_sees_a_note_or_is_called() {
    model(|world| retire_against_a_post(world, None));
}

#[test]
fn a_runner_that_retires_for_long_sees_a_note_or_is_called() {
    model(|world| retire_against_a_post(world, Some(9)));
}

#[test]
fn a_slot_is_freed_once_when_handles_drop_while_the_job_completes() {
    model(|world| {
        let job = world.once(2).expect("open");
        let other = job.clone();
        world.at(2);
        let first = world.spawn(move |_| drop(job));
        let second = world.spawn(move |_| drop(other));
        world.turn();
        first.join().expect("no panic");
        second.join().expect("no panic");
        assert_eq!(world.ran(), 1);
    });
}

#[test]
fn a_slot_is_freed_once_when_a_cancel_notes_it_and_handles_drop() {
    model(|world| {
        let job = world.once(9).expect("open");
        let other = job.clone();
        let canceller = world.spawn(move |_| job.cancel());
        let dropper = world.spawn(move |_| drop(other));
        world.turn();
        assert!(canceller.join().expect("no panic"), "nothing is due");
        dropper.join().expect("no panic");
        assert_eq!(world.ran(), 0);
    });
}

#[test]
fn a_slot_that_is_freed_by_note_is_used_again_by_another_job() {
    model(|world| {
        let job = world.once(2).expect("open");
        world.at(2);
        let dropper = world.spawn(move |_| drop(job));
        let poster = world.spawn(|world| drop(world.once(0).expect("open")));
        world.turn();
        dropper.join().expect("no panic");
        poster.join().expect("no panic");
        world.turn();
        assert_eq!(world.ran(), 2);
    });
}

#[test]
fn a_cancel_of_a_periodic_job_against_its_completion_ends_it() {
    model(|world| {
        let job = world.every(2);
        world.at(2);
        let canceller = world.spawn(move |_| job.cancel());
        world.turn();
        assert!(canceller.join().expect("no panic"), "a periodic job can always be cancelled");
        let before = world.ran();
        assert!(before <= 1);
        world.at(9);
        world.turn();
        assert_eq!(world.ran(), before, "it runs no more");
    });
}

#[test]
fn a_cancel_from_a_periodic_handler_against_another_is_won_once() {
    model(|world| {
        let (won, ran) = (Arc::new(AtomicU32::new(0)), world.ran.clone());
        let own = Arc::new(std::sync::Mutex::new(None::<Cancellable>));
        let (won_inside, own_inside) = (won.clone(), own.clone());
        let run = move |_: &FireContext| {
            ran.fetch_add(1, SeqCst);
            let job = own_inside.lock().expect("no panic").take();
            if let Some(job) = job {
                won_inside.fetch_add(u32::from(job.cancel()), SeqCst);
            }
        };
        let job = world.scheduler.schedule_with_fixed_delay_fn(ticks(2), ticks(2), D, run);
        let job = job.expect("open");
        *own.lock().expect("no panic") = Some(job.clone());
        world.at(2);
        let canceller = world.spawn(move |_| u32::from(job.cancel()));
        world.turn();
        let won_outside = canceller.join().expect("no panic");
        world.at(9);
        world.turn();
        assert_eq!(won.load(SeqCst) + won_outside, 1);
        assert!(world.ran() <= 1, "cancelled in its first run at the latest");
        drop(own.lock().expect("no panic").take());
    });
}

#[test]
fn a_periodic_job_that_runs_is_cancelled_by_the_close() {
    model(|world| {
        drop(world.every(2));
        world.at(2);
        let turner = world.spawn(|world| {
            world.turn();
        });
        let report = world.scheduler.shutdown();
        turner.join().expect("no panic");
        assert_eq!((report.accepted, report.executed, report.cancelled), (1, 0, 1));
        let ran = world.ran();
        assert!(ran <= 1);
        world.at(9);
        world.turn();
        assert_eq!(world.ran(), ran);
    });
}

#[test]
fn a_one_shot_that_is_due_at_the_close_runs_once() {
    model(|world| {
        drop(world.once(2).expect("open"));
        world.at(2);
        let turner = world.spawn(|world| {
            world.turn();
        });
        let report = world.scheduler.shutdown();
        turner.join().expect("no panic");
        assert_eq!((report.accepted, report.executed, report.cancelled), (1, 1, 0));
        assert_eq!(world.ran(), 1);
    });
}

#[test]
fn a_task_is_told_of_its_cancel_once_and_does_not_run() {
    model(|world| {
        let told = Arc::new(AtomicU32::new(0));
        let task = CountingTask { ran: world.ran.clone(), told: told.clone() };
        let job = world.scheduler.schedule_once_task(ticks(2), D, task).expect("open");
        world.at(2);
        let canceller = world.spawn(move |_| u32::from(job.cancel()));
        world.turn();
        let won = canceller.join().expect("no panic");
        world.turn();
        assert_eq!((world.ran(), told.load(SeqCst)), (1 - won, won));
    });
}
