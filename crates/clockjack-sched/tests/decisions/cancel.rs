//! A5, A6, A12, A17: the states of a job, cancels, failures and handles.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};

use clockjack_sched::{
    BatchMode, Cancellable, DispatchedRun, DumpFormat, ExecutionBatch, FireContext, HandlerError,
    JobState, SchedulerConfig, SchedulerTask, Warning,
};
use clockjack_time::{ClockKind, Resolution};

use crate::bench::{Diary, ELSEWHERE, HERE, Host, listen, ms, plain, secs, warnings};

type Later = Arc<OnceLock<Cancellable>>;

#[test]
fn a05_a_one_shot_goes_from_scheduled_over_queued_and_executing_to_completed() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let jobs: [Later; 2] = Default::default();
    for _ in &jobs {
        let (seen, known) = (Arc::clone(&seen), jobs.clone());
        let f = move |_: &FireContext| {
            let states = known.each_ref().map(|job| job.get().unwrap().state());
            seen.lock().unwrap().push(states);
        };
        let job = scheduler.schedule_once_fn(ms(10), HERE, f).unwrap();
        assert_eq!(job.state(), JobState::Scheduled);
        let free = jobs.iter().find(|job| job.get().is_none()).unwrap();
        assert!(free.set(job).is_ok());
    }
    manual.advance(ms(10));
    let expected =
        [[JobState::Executing, JobState::Queued], [JobState::Completed, JobState::Executing]];
    assert_eq!(*seen.lock().unwrap(), expected);
    for job in &jobs {
        let job = job.get().unwrap();
        assert!(job.is_completed() && !job.is_cancelled() && !job.cancel());
    }
}

#[test]
fn a05_a_job_ended_by_its_handler_is_completed_and_told() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let fail = |_: &FireContext| Err::<(), _>("broken");
    let jobs = [
        scheduler.schedule_once_fn(ms(10), HERE, fail).unwrap(),
        scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, fail).unwrap(),
        scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), HERE, fail).unwrap(),
    ];
    assert_eq!(manual.advance(ms(100)), 3);
    for job in jobs {
        assert!(job.is_completed() && !job.is_cancelled() && !job.cancel());
    }
    assert_eq!(warnings(&mut stream).len(), 3);
    let metrics = scheduler.metrics();
    assert_eq!((metrics.executed_total, metrics.failed_total), (3, 3));
    assert_eq!((metrics.cancelled_total, metrics.active_total), (0, 0));
}

#[test]
fn a06_a_one_shot_that_runs_cannot_be_cancelled() {
    let manual = plain();
    let own = Later::default();
    let (known, answers) = (Arc::clone(&own), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&answers);
    let f = move |_: &FireContext| {
        let own = known.get().unwrap();
        told.lock().unwrap().push((own.cancel(), own.is_cancelled()));
    };
    assert!(own.set(manual.scheduler().schedule_once_fn(ms(10), HERE, f).unwrap()).is_ok());
    manual.advance(ms(10));
    assert_eq!(*answers.lock().unwrap(), [(false, false)]);
    assert!(own.get().unwrap().is_completed());
}

/// Cancels itself in its third run, and records whether it was notified and dropped.
struct Suicide {
    own: Later,
    answers: Arc<Mutex<Vec<bool>>>,
    told: Arc<AtomicUsize>,
}

impl SchedulerTask for Suicide {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        let mut answers = self.answers.lock().unwrap();
        let own = self.own.get().unwrap();
        let is_third = answers.len() == 2;
        answers.push(is_third && own.cancel() && !own.cancel() && own.is_cancelled());
        Ok(())
    }

    fn cancelled(&mut self) {
        self.told.fetch_add(1, SeqCst);
    }
}

#[test]
fn a06_a_periodic_job_can_be_cancelled_from_its_own_handler() {
    for is_rate in [true, false] {
        let manual = plain();
        let scheduler = manual.scheduler();
        let (own, told) = (Later::default(), Arc::new(AtomicUsize::new(0)));
        let answers = Arc::new(Mutex::new(Vec::new()));
        let task = Suicide {
            own: Arc::clone(&own),
            answers: Arc::clone(&answers),
            told: Arc::clone(&told),
        };
        let job = if is_rate {
            scheduler.schedule_at_fixed_rate_task(ms(10), ms(10), HERE, task)
        } else {
            scheduler.schedule_with_fixed_delay_task(ms(10), ms(10), HERE, task)
        };
        assert!(own.set(job.unwrap()).is_ok());
        manual.advance(ms(200));
        assert_eq!(*answers.lock().unwrap(), [false, false, true]);
        assert_eq!(told.load(SeqCst), 1);
        let metrics = scheduler.metrics();
        assert_eq!((metrics.cancelled_total, metrics.executed_total), (1, 0));
        assert_eq!(metrics.active_total, 0);
    }
}

/// Pending runs do not keep a cancelled job alive.
#[test]
fn a06_a_cancel_while_it_runs_leaves_out_what_is_owed() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let own = Later::default();
    let diary = Diary::default();
    let (known, write) = (Arc::clone(&own), diary.clone());
    let f = move |fire: &FireContext| {
        write.note("job", fire);
        if write.len() == 2 {
            known.get().unwrap().cancel();
        }
    };
    let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    assert!(own.set(job).is_ok());
    manual.clock().advance(ms(100));
    manual.run_due();
    manual.advance(ms(100));
    assert_eq!(diary.len(), 2);
}

#[test]
fn a12_an_error_and_a_panic_are_the_same_and_touch_nobody_else() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let diary = Diary::default();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, diary.writer("before")).unwrap();
    let fail = |_: &FireContext| Err::<(), _>("broken");
    scheduler.schedule_at_fixed_rate_fn(ms(20), ms(10), HERE, fail).unwrap();
    let burst = |_: &FireContext| -> () { panic!("burst") };
    let panics = scheduler.schedule_with_fixed_delay_fn(ms(20), ms(10), HERE, burst).unwrap();
    scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, diary.writer("after")).unwrap();
    manual.advance(ms(50));
    assert_eq!(diary.names(), ["before", "after"].repeat(5));
    assert!(panics.is_completed());
    let heard: Vec<_> = warnings(&mut stream)
        .into_iter()
        .map(|warning| match warning {
            Warning::HandlerFailed { job, error, batch } => (job.number, error, batch),
            other => panic!("{other}"),
        })
        .collect();
    let single = ExecutionBatch::single;
    let expected = [
        (2, HandlerError::new("broken"), single(BatchMode::FixedRate)),
        (3, HandlerError::panic("burst"), single(BatchMode::FixedDelay)),
    ];
    assert_eq!(heard, expected);
}

/// Nothing of the scheduler is locked while code of the user's runs: handlers, callbacks, drops.
#[test]
fn a12_a_handler_a_callback_and_a_drop_may_call_the_scheduler() {
    struct Caller(clockjack_sched::Scheduler, Arc<AtomicUsize>);
    impl Caller {
        fn call(&self) {
            let job = self.0.schedule_once_fn(secs(1), HERE, |_| ());
            if let Ok(job) = job {
                assert!(job.cancel());
            }
            drop((self.0.metrics(), self.0.diagnostics().trace()));
            self.0.dump(DumpFormat::Text, &mut String::new()).unwrap();
            self.1.fetch_add(1, SeqCst);
        }
    }
    impl Drop for Caller {
        fn drop(&mut self) {
            self.call();
        }
    }
    impl SchedulerTask for Caller {
        fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
            self.call();
            Ok(())
        }

        fn cancelled(&mut self) {
            self.call();
        }
    }
    let manual = plain();
    let scheduler = manual.scheduler();
    let calls = Arc::new(AtomicUsize::new(0));
    let caller = || Caller(scheduler.clone(), Arc::clone(&calls));
    scheduler.schedule_once_task(ms(10), HERE, caller()).unwrap();
    manual.advance(ms(10));
    assert_eq!(calls.load(SeqCst), 2, "run and drop");
    let told = scheduler.schedule_once_task(ms(10), HERE, caller()).unwrap();
    let caught = caller();
    let plain = scheduler.schedule_once_fn(ms(10), HERE, move |_| caught.call()).unwrap();
    assert!(told.cancel() && plain.cancel());
    manual.advance(ms(10));
    assert_eq!(calls.load(SeqCst), 5, "told, and two drops");
    scheduler.schedule_at_fixed_rate_task(ms(10), ms(10), HERE, caller()).unwrap();
    scheduler.shutdown();
    assert_eq!(calls.load(SeqCst), 7, "told and dropped by the close");
}

#[test]
fn a12_a_handler_may_shut_the_scheduler_down() {
    let manual = plain();
    let scheduler = manual.scheduler().clone();
    let report = Arc::new(Mutex::new(None));
    let put = Arc::clone(&report);
    let f = move |_: &FireContext| *put.lock().unwrap() = Some(scheduler.shutdown());
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, f).unwrap();
    let other = manual.scheduler().schedule_once_fn(ms(50), HERE, |_| ()).unwrap();
    assert_eq!(manual.advance(ms(100)), 1);
    let report = report.lock().unwrap().take().unwrap();
    assert_eq!((report.accepted, report.executed, report.cancelled), (2, 0, 2));
    assert_eq!(report.still_running, 1);
    assert!(other.is_cancelled());
}

#[test]
fn a17_dropping_a_handle_cancels_nothing_and_a_guard_does() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let write = |name| diary.writer(name);
    drop(scheduler.schedule_once_fn(ms(10), HERE, write("dropped")).unwrap());
    drop(scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, write("rate")).unwrap());
    let guard = scheduler.schedule_once_fn(ms(10), HERE, write("guarded")).unwrap();
    let seen = guard.clone();
    drop(guard.cancel_on_drop());
    assert!(seen.is_cancelled());
    let guard = scheduler.schedule_once_fn(ms(10), HERE, write("kept")).unwrap().cancel_on_drop();
    assert_eq!(guard.state(), JobState::Scheduled);
    drop(guard.keep());
    manual.advance(ms(20));
    assert_eq!(diary.names(), ["dropped", "rate", "kept", "rate"]);
}

/// What lies with a dispatcher has not begun.
#[test]
fn a06_a_periodic_job_that_its_dispatcher_has_not_begun_does_not_begin_after_a_cancel() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let diary = Diary::default();
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), ELSEWHERE, diary.writer("rate"));
    let delay =
        scheduler.schedule_with_fixed_delay_fn(ms(10), ms(10), ELSEWHERE, diary.writer("delay"));
    let once = scheduler.schedule_once_fn(ms(10), ELSEWHERE, diary.writer("once")).unwrap();
    host.clock.advance(ms(10));
    scheduler.poll_shard(0, 0, usize::MAX);
    let works = host.take_work();
    assert_eq!(works.len(), 3);
    let jobs = [rate.unwrap(), delay.unwrap()];
    assert!(jobs.iter().all(Cancellable::cancel));
    assert!(!once.cancel(), "it is decided");
    works.into_iter().for_each(DispatchedRun::run);
    scheduler.poll_shard(0, 0, usize::MAX);
    assert_eq!(diary.names(), ["once"]);
    assert!(jobs.iter().all(Cancellable::is_cancelled) && once.is_completed());
    assert_eq!(scheduler.metrics().active_total, 0);
}

#[test]
fn a07_a_run_that_waits_for_its_dispatcher_is_told_how_late_it_begins() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    let (tell, told) = std::sync::mpsc::channel();
    let job = move |fire: &FireContext| tell.send(*fire);
    scheduler.schedule_once_fn(ms(10), ELSEWHERE, job).unwrap();
    host.clock.advance(ms(20));
    scheduler.poll_shard(0, 0, usize::MAX);
    host.clock.advance(ms(30));
    host.take_work().into_iter().for_each(DispatchedRun::run);
    let fire = told.try_recv().unwrap();
    assert_eq!((fire.due().get(), fire.now().ticks, fire.late()), (1, 5, ms(40)));
}
