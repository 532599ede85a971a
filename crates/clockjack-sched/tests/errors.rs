//! Every refusal, provoked: it gives back what was to be delivered, and leaves no trace.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "the tests of decisions need more of it")]
#[path = "requirements/bench.rs"]
mod bench;

use alloc::{string::ToString as _, sync::Arc, vec::Vec};
use core::{
    num::NonZeroU32,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bench::{ELSEWHERE, HERE, Host, guard, manual, ms, picture, plain, secs};
use clockjack_sched::{
    Affinity, BatchMode, Cancellable, CatchUp, DelayError, DispatcherId, EventKinds,
    ExecutionBatch, FireContext, HandlerError, ManualRunner, Policy, PolicyRegistry,
    PressureReason, ScheduleError, ScheduleErrorKind, Scheduler, SchedulerConfig, SchedulerTask,
    TaskRunPriority, TimerPriority, stream::SUBSCRIPTIONS_MAX,
};
use clockjack_time::{ClockKind, Resolution, Tick};

/// Counts how often it is dropped.
struct PendingDelivery(Arc<AtomicUsize>);

impl Drop for PendingDelivery {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl SchedulerTask for PendingDelivery {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(())
    }

    fn cancelled(&mut self) {
        self.0.fetch_add(100, SeqCst);
    }
}

/// All forms are refused for this reason, and nothing is to be seen of it.
fn refused(
    scheduler: &Scheduler,
    (delay, period): (Duration, Duration),
    dispatcher: DispatcherId,
    kind: ScheduleErrorKind,
) {
    let before = picture(scheduler);
    let drops = Arc::new(AtomicUsize::new(0));
    for form in 0..6 {
        let delivery = PendingDelivery(Arc::clone(&drops));
        let closure = |delivery: PendingDelivery| move |_: &FireContext| _ = &delivery;
        let told = match form {
            0 => back(scheduler.schedule_once_fn(delay, dispatcher, closure(delivery)), &drops),
            1 => {
                let f = closure(delivery);
                back(scheduler.schedule_at_fixed_rate_fn(delay, period, dispatcher, f), &drops)
            }
            2 => {
                let f = closure(delivery);
                back(scheduler.schedule_with_fixed_delay_fn(delay, period, dispatcher, f), &drops)
            }
            3 => back(scheduler.schedule_once_task(delay, dispatcher, delivery), &drops),
            4 => {
                let f = delivery;
                back(scheduler.schedule_at_fixed_rate_task(delay, period, dispatcher, f), &drops)
            }
            _ => {
                let f = delivery;
                back(scheduler.schedule_with_fixed_delay_task(delay, period, dispatcher, f), &drops)
            }
        };
        assert_eq!(told, kind, "form {form}");
        assert_eq!(picture(scheduler), before, "form {form}: {kind}");
    }
}

/// Why it was refused; what came back is whole, and is dropped here.
fn back<T>(
    result: Result<Cancellable, ScheduleError<T>>,
    drops: &AtomicUsize,
) -> ScheduleErrorKind {
    let refused = result.expect_err("it is refused");
    let kind = refused.kind();
    assert_eq!(refused.to_string(), alloc::format!("not scheduled: {kind}"));
    let value = refused.into_inner();
    assert_eq!(drops.load(SeqCst), 0, "it came back");
    drop(value);
    assert_eq!(drops.swap(0, SeqCst), 1, "and nobody else had it, nor was told of a cancel");
    kind
}

#[test]
fn a_delay_that_cannot_be_is_invalid() {
    let manual = manual(SchedulerConfig { strict_delays: true, ..SchedulerConfig::DEFAULT });
    let invalid = ScheduleErrorKind::InvalidDelay;
    for delay in [Duration::ZERO, secs(1 << 42), Duration::MAX] {
        refused(manual.scheduler(), (delay, ms(10)), HERE, invalid);
    }
}

#[test]
fn a_period_that_cannot_be_is_invalid() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let before = picture(scheduler);
    for period in [Duration::ZERO, secs(21_474_837), Duration::MAX] {
        let drops = Arc::new(AtomicUsize::new(0));
        let delivery = PendingDelivery(Arc::clone(&drops));
        let back =
            scheduler.schedule_at_fixed_rate_task(ms(0), period, HERE, delivery).unwrap_err();
        assert_eq!(back.kind(), ScheduleErrorKind::InvalidDelay);
        let delivery = back.into_inner();
        let back = scheduler.schedule_with_fixed_delay_task(ms(0), period, HERE, delivery);
        let back = back.unwrap_err();
        assert_eq!(back.kind(), ScheduleErrorKind::InvalidDelay);
        assert_eq!(drops.load(SeqCst), 0, "it was neither dropped nor told");
        drop(back);
        assert_eq!(drops.load(SeqCst), 1);
    }
    assert_eq!(picture(scheduler), before);
}

#[test]
fn the_quota_is_exceeded_by_one() {
    let manual = manual(SchedulerConfig { quota: 2, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    scheduler.schedule_at_fixed_rate_fn(secs(1), secs(1), HERE, |_| ()).unwrap();
    refused(scheduler, (ms(10), ms(10)), HERE, ScheduleErrorKind::QuotaExceeded);
    refused(scheduler, (ms(0), ms(10)), HERE, ScheduleErrorKind::QuotaExceeded);
    assert_eq!(manual.advance(secs(1)), 2);
    scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
}

#[test]
fn the_capacity_is_exceeded_by_one() {
    for is_fixed in [false, true] {
        let manual = manual(SchedulerConfig { capacity: 2, is_fixed, ..SchedulerConfig::DEFAULT });
        let scheduler = manual.scheduler();
        for _ in 0..2 {
            scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
        }
        refused(scheduler, (ms(10), ms(10)), HERE, ScheduleErrorKind::CapacityExceeded);
        assert_eq!(manual.advance(secs(1)), 2);
        scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    }
}

#[test]
fn the_overflow_is_exceeded_by_one() {
    let manual = manual(SchedulerConfig { overflow_capacity: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let far = secs(3600 * 24);
    let job = scheduler.schedule_once_fn(far, HERE, |_| ()).unwrap();
    refused(scheduler, (far, ms(10)), HERE, ScheduleErrorKind::CapacityExceeded);
    scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    assert!(job.cancel());
    scheduler.schedule_once_fn(far, HERE, |_| ()).unwrap();
}

#[test]
fn under_pressure_jobs_are_refused() {
    let low = Policy::DEFAULT.priority(TimerPriority::Low).catch_up(CatchUp::Folded);
    let policies = PolicyRegistry::new().set(Affinity::Dispatcher(ELSEWHERE), low);
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config = SchedulerConfig { quota: 2, policies, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    for reason in [PressureReason::Host, PressureReason::Mailboxes, PressureReason::Dispatcher] {
        scheduler.set_pressure(reason, 100);
        refused(&scheduler, (ms(10), ms(10)), ELSEWHERE, ScheduleErrorKind::Backpressured);
        let job = scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        refused(&scheduler, (ms(10), ms(10)), HERE, ScheduleErrorKind::Backpressured);
        assert!(job.cancel());
        scheduler.set_pressure(reason, 0);
    }
}

#[test]
fn after_the_shutdown_everything_is_closed() {
    let manual = plain();
    let scheduler = manual.scheduler();
    scheduler.shutdown();
    refused(scheduler, (ms(10), ms(10)), HERE, ScheduleErrorKind::Closed);
    refused(scheduler, (ms(0), ms(10)), HERE, ScheduleErrorKind::Closed);
    let drops = Arc::new(AtomicUsize::new(0));
    let delivery = PendingDelivery(Arc::clone(&drops));
    let task = move || {
        drop(delivery);
        Ok(())
    };
    let back = scheduler.register_on_close(task, TaskRunPriority::User).unwrap_err();
    assert_eq!((back.kind(), drops.load(SeqCst)), (ScheduleErrorKind::Closed, 0));
    drop(back.into_inner());
    assert_eq!(drops.load(SeqCst), 1);
}

#[test]
fn a_dispatcher_that_is_not_there_is_a_receiver_that_is_gone() {
    let manual = plain();
    refused(manual.scheduler(), (ms(10), ms(10)), ELSEWHERE, ScheduleErrorKind::ReceiverGone);
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    scheduler.schedule_once_fn(ms(10), ELSEWHERE, |_| ()).unwrap();
    refused(&scheduler, (ms(10), ms(10)), DispatcherId(9), ScheduleErrorKind::ReceiverGone);
}

#[test]
fn one_close_task_too_many_comes_back() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let register = || scheduler.register_on_close(|| Ok(()), TaskRunPriority::User);
    for _ in 0..4096 {
        register().unwrap();
    }
    assert_eq!(register().unwrap_err().kind(), ScheduleErrorKind::CapacityExceeded);
    assert_eq!(scheduler.shutdown().close_tasks.succeeded, 4096);
}

#[test]
fn a_hand_is_refused_in_production() {
    let config = SchedulerConfig { is_production: true, ..SchedulerConfig::DEFAULT };
    let refused = ManualRunner::with_catch_unwind(config.clone(), guard).unwrap_err();
    assert!(refused.is_manual_in_production());
    let host = Host::new(ClockKind::Deterministic, Resolution::TEN_MILLIS);
    let refused = Scheduler::new(config.clone(), host).unwrap_err();
    assert!(refused.is_manual_in_production());
    for kind in [ClockKind::RealtimeHost, ClockKind::RealtimeHardware] {
        let host = Host::new(kind, Resolution::TEN_MILLIS);
        let scheduler = Scheduler::new(config.clone(), host).unwrap();
        assert_eq!((scheduler.metadata().clock, scheduler.metadata().driver), (kind, "bench"));
    }
}

#[test]
fn a_number_of_shards_that_cannot_be_is_refused() {
    for (shards, is_refused) in [(0, true), (1, false), (1025, true)] {
        let config = SchedulerConfig { shards, ..SchedulerConfig::DEFAULT };
        let error = ManualRunner::new(config).err();
        assert_eq!(error.is_some_and(|error| error.is_shards()), is_refused, "{shards}");
    }
}

#[test]
fn ticks_are_injected_by_hand_only() {
    for kind in [ClockKind::RealtimeHost, ClockKind::RealtimeHardware] {
        let host = Host::new(kind, Resolution::TEN_MILLIS);
        let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
        let before = host.clock.is_saturated();
        let refused = scheduler.diagnostics().inject_tick(&host.clock, Tick::new(9));
        assert!(refused.is_err_and(|error| error.is_not_manual()));
        assert_eq!((scheduler.now().tick(), before), (Tick::ZERO, false), "time stands");
    }
}

#[test]
fn one_subscription_too_many_is_refused() {
    let manual = plain();
    let diagnostics = manual.scheduler().diagnostics();
    let subscribe = || diagnostics.subscribe(EventKinds::ALL, 4);
    let mut all: Vec<_> = (0..SUBSCRIPTIONS_MAX).map(|_| subscribe().unwrap()).collect();
    assert!(subscribe().is_err());
    all.pop();
    assert!(subscribe().is_ok());
}

fn poll(scheduler: &Scheduler, delay: Duration) -> Poll<Result<(), DelayError>> {
    let future = pin!(scheduler.delays().delay(delay));
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A delay that cannot be scheduled says so at once, and never that its time has come.
#[test]
fn every_reason_ends_a_delay_with_an_error() {
    fn kind(scheduler: &Scheduler, delay: Duration) -> Option<ScheduleErrorKind> {
        match poll(scheduler, delay) {
            Poll::Ready(Err(error)) => Some(error.kind()),
            Poll::Ready(Ok(())) => panic!("not early"),
            Poll::Pending => None,
        }
    }
    let strict =
        manual(SchedulerConfig { strict_delays: true, quota: 1, ..SchedulerConfig::DEFAULT });
    let scheduler = strict.scheduler();
    assert_eq!(kind(scheduler, ms(0)), Some(ScheduleErrorKind::InvalidDelay));
    assert_eq!(kind(scheduler, Duration::MAX), Some(ScheduleErrorKind::InvalidDelay));
    assert_eq!(kind(scheduler, secs(1)), None);
    assert_eq!(scheduler.metrics().active_total, 0, "a delay that is dropped is cancelled");
    let job = scheduler.schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    assert_eq!(kind(scheduler, secs(1)), Some(ScheduleErrorKind::QuotaExceeded));
    job.cancel();
    scheduler.set_pressure(PressureReason::Host, 100);
    assert_eq!(kind(scheduler, secs(1)), Some(ScheduleErrorKind::Backpressured));
    scheduler.shutdown();
    assert_eq!(kind(scheduler, secs(1)), Some(ScheduleErrorKind::Closed));
    let full = manual(SchedulerConfig { capacity: 1, ..SchedulerConfig::DEFAULT });
    full.scheduler().schedule_once_fn(secs(1), HERE, |_| ()).unwrap();
    assert_eq!(kind(full.scheduler(), secs(1)), Some(ScheduleErrorKind::CapacityExceeded));
}

#[test]
fn a_delay_that_meets_the_close_ends_with_an_error_and_wakes() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut cx = Context::from_waker(Waker::noop());
    let mut closed = pin!(scheduler.delays().delay(secs(1)));
    let mut over = pin!(scheduler.delays().delay(ms(10)));
    assert!(closed.as_mut().poll(&mut cx).is_pending());
    manual.clock().advance(ms(50));
    manual.run_due();
    assert_eq!(over.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    let runs = NonZeroU32::new(5).unwrap();
    let folded = ExecutionBatch { runs, missed_runs: 4, mode: BatchMode::OneShot };
    assert_eq!(over.batch(), Some(folded), "missed ticks are one wake");
    let mut prompt = pin!(scheduler.delays().delay(ms(10)));
    assert_eq!(prompt.batch(), None);
    manual.advance(ms(10));
    assert_eq!(prompt.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(prompt.batch(), Some(ExecutionBatch::single(BatchMode::OneShot)));
    scheduler.shutdown();
    let Poll::Ready(Err(error)) = closed.as_mut().poll(&mut cx) else { panic!("it is over") };
    assert_eq!(error.kind(), ScheduleErrorKind::Closed);
    assert_eq!(closed.batch(), None);
    assert_eq!(error.to_string(), "the delay did not complete: the scheduler was shut down");
}

#[test]
fn a_delay_that_is_given_up_for_room_does_not_say_that_the_scheduler_was_closed() {
    let low = Policy::DEFAULT.priority(TimerPriority::Low);
    let policies = PolicyRegistry::new()
        .set_default(Policy::DEFAULT.priority(TimerPriority::High))
        .set(Affinity::Dispatcher(HERE), low);
    let host = Host::new(ClockKind::RealtimeHost, Resolution::TEN_MILLIS);
    let config = SchedulerConfig { capacity: 1, policies, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let mut cx = Context::from_waker(Waker::noop());
    let mut delay = pin!(scheduler.delays().delay(secs(1)));
    assert!(delay.as_mut().poll(&mut cx).is_pending());
    scheduler.schedule_once_fn(secs(2), ELSEWHERE, |_| ()).unwrap();
    scheduler.poll_shard(0, 0, usize::MAX);
    let Poll::Ready(Err(error)) = delay.as_mut().poll(&mut cx) else { panic!("it was given up") };
    assert_eq!(error.kind(), ScheduleErrorKind::CapacityExceeded);
    assert!(!scheduler.is_closed());
}

/// Else a task that drops a delay at each poll, as a timeout in a loop does, would wake itself for
/// ever.
#[test]
fn a_delay_that_is_dropped_wakes_nobody() {
    struct Count(AtomicUsize);
    impl alloc::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let manual = plain();
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let poll = |delay| {
        let mut delay = Box::pin(manual.scheduler().delays().delay(delay));
        assert!(delay.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        delay
    };
    drop(poll(ms(10)));
    assert_eq!(woken.0.load(SeqCst), 0);
    assert_eq!(Arc::strong_count(&woken), 2, "and keeps no waker");
    let kept = poll(ms(10));
    manual.advance(ms(10));
    assert_eq!(woken.0.load(SeqCst), 1);
    drop(kept);
    assert_eq!(woken.0.load(SeqCst), 1);
}

/// A failure is its text, and says whether it was a panic.
#[test]
fn handler_errors_are_made_of_texts_errors_and_panics() {
    let parsed = "x".parse::<u8>().unwrap_err();
    assert_eq!(HandlerError::from(parsed.clone()).text(), parsed.to_string());
    let panic = HandlerError::panic("burst");
    assert_eq!((panic.to_string().as_str(), panic.is_panic()), ("panicked: burst", true));
    assert!(!HandlerError::new("no").is_panic());
}
