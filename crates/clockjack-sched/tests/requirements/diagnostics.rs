//! R5: virtual time, the log, the stream and the dump.

use alloc::{sync::Arc, task::Wake};
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
};

use clockjack_sched::{EventKinds, ScheduleErrorKind, SchedulerConfig};

use crate::bench::{HERE, events, listen_to, manual, ms, secs};

/// Counts its wakes.
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A listener that sleeps must not have to wait until somebody takes a turn, which may be in an
/// hour.
#[test]
fn r5_3_a_listener_that_waits_is_woken_by_a_schedule_a_refusal_and_a_cancel() {
    let manual = manual(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let mut stream = listen_to(scheduler, EventKinds::ALL);
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&bell));

    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    let job = scheduler.schedule_once_fn(secs(3600), HERE, |_| ()).unwrap();
    assert_eq!(bell.0.load(SeqCst), 1, "scheduled");
    events(&mut stream);
    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    let refused = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::QuotaExceeded);
    assert_eq!(bell.0.load(SeqCst), 2, "refused");
    events(&mut stream);
    assert_eq!(stream.poll_next(&mut Context::from_waker(&waker)), Poll::Pending);
    assert!(job.cancel());
    assert_eq!(bell.0.load(SeqCst), 3, "cancelled");

}
