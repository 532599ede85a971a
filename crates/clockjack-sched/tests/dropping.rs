//! What becomes of jobs whose scheduler goes without a shutdown.

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use clockjack_sched::{
    DispatcherId, FireContext, HandlerError, ManualRunner, SchedulerConfig, SchedulerTask,
};

const ANY: DispatcherId = DispatcherId::DEFAULT;

/// Counts in hundreds how often it was notified of a cancel, in ones how often it was dropped, and
/// in ten thousands how often it ran.
struct CountingTask(Arc<AtomicU32>);

impl SchedulerTask for CountingTask {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        self.0.fetch_add(10_000, SeqCst);
        Ok(())
    }

    fn cancelled(&mut self) {
        self.0.fetch_add(100, SeqCst);
    }
}

impl Drop for CountingTask {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_job_is_cancelled_and_told_when_its_scheduler_goes() {
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).unwrap();
    let (told, second) = (Arc::new(AtomicU32::new(0)), Duration::from_secs(1));
    let scheduler = manual.scheduler();
    let once = scheduler.schedule_once_task(second, ANY, CountingTask(Arc::clone(&told))).unwrap();
    let marked =
        scheduler.schedule_once_task(second, ANY, CountingTask(Arc::clone(&told))).unwrap();
    assert!(marked.run_on_close());
    let again = scheduler
        .schedule_at_fixed_rate_task(second, second, ANY, CountingTask(Arc::clone(&told)))
        .unwrap();
    drop(manual);
    assert!(once.is_cancelled() && again.is_cancelled() && marked.is_cancelled());
    assert_eq!(told.load(SeqCst), 303);
    assert!(!once.cancel());
}

#[test]
fn a_close_task_is_dropped_and_does_not_run_when_its_scheduler_goes() {
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).unwrap();
    let kept = Arc::new(());
    let held = Arc::clone(&kept);
    let task = move || {
        drop(held);
        panic!("it runs")
    };
    manual.scheduler().register_on_close(task, clockjack_sched::TaskRunPriority::User).unwrap();
    assert_eq!(Arc::strong_count(&kept), 2);
    drop(manual);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_reader_of_the_stream_hears_of_the_end() {
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).unwrap();
    let kinds = clockjack_sched::EventKinds::ALL;
    let mut stream = manual.scheduler().diagnostics().subscribe(kinds, 8).unwrap();
    let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(stream.poll_next(&mut cx).is_pending());
    drop(manual);
    assert!(stream.poll_next(&mut cx).is_ready());
}
