//! The deadline of a shutdown: kept, whatever the program under test does.

#![expect(clippy::disallowed_methods, reason = "the real clock is the subject")]

use core::{
    ops::{Deref, DerefMut},
    time::Duration,
};
use std::{sync::mpsc, thread, time::Instant};

/// How long after its deadline a shutdown may return: it stops by force what has not stopped.
pub const GRACE: Duration = Duration::from_millis(100);

/// The interval at which the lateness of the machine is sampled.
const SAMPLE: Duration = Duration::from_millis(5);

/// Calls a shutdown with this deadline, and returns its report.
///
/// While the shutdown runs, another thread samples how late this machine wakes a thread that
/// sleeps. A machine that is busy with other programs gets that much more time, because the
/// shutdown is as late as it is.
///
/// # Panics
///
/// If the shutdown takes longer than its deadline, [`GRACE`] and the lateness of the machine.
#[track_caller]
pub fn keeps_deadline<R>(deadline: Duration, shutdown: impl FnOnce() -> R) -> R {
    let watch = Watch::begin();
    let report = shutdown();
    watch.end(deadline);
    report
}

/// For a shutdown where no thread can start that would measure the time, as in the destructor of a
/// thread-local variable on Windows. The test that calls this asserts the time by itself, on
/// another thread.
pub fn caller_asserts_deadline<R>(shutdown: impl FnOnce() -> R) -> R {
    shutdown()
}

/// As [`keeps_deadline`], for a shutdown that is awaited.
///
/// # Panics
///
/// As [`keeps_deadline`].
pub async fn awaits_deadline<R>(deadline: Duration, shutdown: impl Future<Output = R>) -> R {
    let watch = Watch::begin();
    let report = shutdown.await;
    watch.end(deadline);
    report
}

/// A value whose drop shuts something down, and must keep this deadline.
#[derive(Debug)]
pub struct InTime<T> {
    /// `None` while it is dropped or returned.
    value: Option<T>,
    deadline: Duration,
}

impl<T> InTime<T> {
    /// Asserts the deadline of the drop of this value.
    pub const fn new(value: T, deadline: Duration) -> Self {
        Self { value: Some(value), deadline }
    }

    /// Returns the value, whose drop is not asserted any more.
    pub fn into_inner(mut self) -> T {
        self.value.take().expect("nobody else takes it")
    }
}

impl<T> Deref for InTime<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is not dropped yet")
    }
}

impl<T> DerefMut for InTime<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is not dropped yet")
    }
}

impl<T> Drop for InTime<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        // The test has failed already, and a second panic would abort.
        if !thread::panicking() {
            keeps_deadline(self.deadline, || drop(value));
        }
    }
}

/// Measures a shutdown, and the lateness of the machine meanwhile.
struct Watch {
    begun: Instant,
    stop: mpsc::Sender<()>,
    sampler: thread::JoinHandle<Duration>,
}

impl Watch {
    fn begin() -> Self {
        let (stop, is_over) = mpsc::channel::<()>();
        let sampler = thread::spawn(move || worst_lateness(&is_over, Instant::now));
        Self { begun: Instant::now(), stop, sampler }
    }

    #[track_caller]
    fn end(self, deadline: Duration) {
        let took = self.begun.elapsed();
        drop(self.stop);
        let machine = self.sampler.join().expect("the sampler does not panic");
        check(took, deadline, machine);
    }
}

/// Checks a shutdown that took this long, on a machine that was this late.
#[track_caller]
fn check(took: Duration, deadline: Duration, machine: Duration) {
    // Several waits of one shutdown can each be late.
    let limit = deadline.saturating_add(GRACE).saturating_add(machine.saturating_mul(4));
    assert!(
        took <= limit,
        "a shutdown with a deadline of {deadline:?} took {took:?} (lateness of the machine: \
         {machine:?})"
    );
}

/// Sleeps again and again until the channel closes; returns by how much it overslept at worst.
fn worst_lateness(is_over: &mpsc::Receiver<()>, mut now: impl FnMut() -> Instant) -> Duration {
    let mut worst = Duration::ZERO;
    loop {
        let begun = now();
        let received = is_over.recv_timeout(SAMPLE);
        // Also the last one: if the machine stalled, the shutdown may be over before this thread
        // wakes, and then the stall is in no other sample.
        worst = worst.max(now().saturating_duration_since(begun).saturating_sub(SAMPLE));
        if received != Err(mpsc::RecvTimeoutError::Timeout) {
            return worst;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_that_keeps_its_deadline_returns_its_report() {
        assert_eq!(keeps_deadline(Duration::from_secs(1), || 7), 7);
    }

    #[test]
    #[should_panic(expected = "a shutdown with a deadline of 10ms took 111ms")]
    fn a_shutdown_that_overruns_its_deadline_panics() {
        check(Duration::from_millis(111), Duration::from_millis(10), Duration::ZERO);
    }

    /// Sleeps when it is dropped.
    struct Slow(Duration);

    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(self.0);
        }
    }

    #[test]
    #[should_panic(expected = "a shutdown with a deadline of 0ns took")]
    fn a_drop_that_overruns_its_deadline_panics() {
        drop(InTime::new(Slow(Duration::from_secs(1)), Duration::ZERO));
    }

    #[test]
    fn a_value_that_is_returned_is_dropped_without_a_deadline() {
        let slow = InTime::new(Slow(Duration::from_millis(200)), Duration::ZERO);
        assert_eq!(slow.0, Duration::from_millis(200));
        drop(slow.into_inner());
    }

    #[test]
    fn a_late_machine_gives_more_time() {
        let [took, machine] = [500, 98].map(Duration::from_millis);
        check(took, Duration::from_millis(10), machine);
    }

    #[test]
    fn a_stall_in_the_last_sample_counts() {
        let (stop, is_over) = mpsc::channel::<()>();
        drop(stop);
        let begun = Instant::now();
        let mut times = [begun, begun + Duration::from_millis(405)].into_iter();
        let worst = worst_lateness(&is_over, || times.next().expect("there is one sample"));
        assert_eq!(worst, Duration::from_millis(400));
    }
}
