//! Two clocks read together: CPU time and wall time.
//!
//! CPU time excludes the time in which another process had the core, which is most of the noise on
//! a shared machine. It is the time of one thread if a subject works on the measuring thread, and
//! the time of the process if the subject has workers. Reading it is a system call, which takes as
//! long as dozens of timer operations: the cost of a reading is measured once and subtracted from
//! every interval.

use core::time::Duration;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::stats;

/// The length of an interval on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Elapsed {
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
}

impl Elapsed {
    fn less(self, overhead: Self) -> Self {
        Self {
            cpu_ns: (self.cpu_ns - overhead.cpu_ns).max(0.0),
            wall_ns: (self.wall_ns - overhead.wall_ns).max(0.0),
        }
    }
}

/// Which CPU time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The CPU time of the calling thread.
    Thread,
    /// The CPU time of all threads of this process, including those that have exited.
    Process,
}

impl Scope {
    /// The CPU time used since the start.
    pub(crate) fn cpu(self) -> Duration {
        let spent = clock_gettime(match self {
            Self::Thread => ClockId::ThreadCPUTime,
            Self::Process => ClockId::ProcessCPUTime,
        });
        let secs = u64::try_from(spent.tv_sec).expect("CPU time is not negative");
        let nanos = u32::try_from(spent.tv_nsec).expect("the fraction is below one second");
        Duration::new(secs, nanos)
    }
}

/// A stopwatch that corrects for the cost of its readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    scope: Scope,
    overhead: Elapsed,
}

impl Watch {
    /// The number of readings from which the cost of one is computed.
    const N_CALIBRATIONS: usize = 1_001;

    /// Measures the cost of an empty interval.
    pub(crate) fn calibrated(scope: Scope) -> Self {
        let blank = Self { scope, overhead: Elapsed::default() };
        let empty: Vec<Elapsed> = (0..Self::N_CALIBRATIONS).map(|_| blank.time(|| ()).1).collect();
        let median = |pick: fn(&Elapsed) -> f64| {
            let samples: Vec<f64> = empty.iter().map(pick).collect();
            stats::median(&samples).expect("there is at least one calibration")
        };
        Self {
            scope,
            overhead: Elapsed {
                cpu_ns: median(|elapsed| elapsed.cpu_ns),
                wall_ns: median(|elapsed| elapsed.wall_ns),
            },
        }
    }

    /// Starts an interval. An interval of a thread's CPU time must be stopped on the same thread.
    #[inline]
    pub(crate) fn start(self) -> Started {
        // Wall time outside, so that it includes the interval of the CPU time.
        let wall = Instant::now();
        Started { watch: self, wall, cpu: self.scope.cpu() }
    }

    /// Runs `work` and measures it.
    #[inline]
    pub(crate) fn time<R>(self, work: impl FnOnce() -> R) -> (R, Elapsed) {
        let started = self.start();
        let result = work();
        (result, started.stop())
    }
}

/// A started interval, for work that is not a closure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    watch: Watch,
    wall: Instant,
    cpu: Duration,
}

impl Started {
    /// Stops the interval and returns its length.
    #[inline]
    pub(crate) fn stop(self) -> Elapsed {
        let cpu = self.watch.scope.cpu().saturating_sub(self.cpu);
        let wall = self.wall.elapsed();
        let elapsed = Elapsed { cpu_ns: cpu.as_nanos() as f64, wall_ns: wall.as_nanos() as f64 };
        elapsed.less(self.watch.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Watch};
    use core::hint::black_box;
    use core::time::Duration;

    #[test]
    fn work_costs_cpu_time_and_the_result_comes_back() {
        let watch = Watch::calibrated(Scope::Thread);
        let spin = || {
            let start = Scope::Thread.cpu();
            let mut turns = 0_u64;
            while Scope::Thread.cpu() < start + Duration::from_millis(2) {
                turns = black_box(turns + 1);
            }
            turns
        };
        let (turns, elapsed) = watch.time(spin);
        assert!(turns > 0, "no turn in two milliseconds");
        assert!(elapsed.cpu_ns >= 1_900_000.0, "{elapsed:?}");
        assert!(elapsed.wall_ns >= 1_900_000.0, "{elapsed:?}");
    }

    #[test]
    fn an_interval_is_never_negative() {
        let watch = Watch::calibrated(Scope::Thread);
        for _ in 0..1_000 {
            let ((), elapsed) = watch.time(|| ());
            assert!(elapsed.cpu_ns >= 0.0, "{elapsed:?}");
            assert!(elapsed.wall_ns >= 0.0, "{elapsed:?}");
        }
    }
    #[test]
    fn the_work_of_another_thread_counts_for_the_process_and_not_for_this_thread() {
        let elsewhere = || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let start = Scope::Thread.cpu();
                    while Scope::Thread.cpu() < start + Duration::from_millis(20) {}
                });
            });
        };
        let ((), process) = Watch::calibrated(Scope::Process).time(elsewhere);
        let ((), thread) = Watch::calibrated(Scope::Thread).time(elsewhere);
        assert!(process.cpu_ns >= 19_000_000.0, "{process:?}");
        assert!(thread.cpu_ns < 10_000_000.0, "{thread:?}");
    }
}
