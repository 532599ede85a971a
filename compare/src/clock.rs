//! Two clocks read together: the CPU time of this thread, which is the figure, and wall time.
//!
//! CPU time leaves out the moments in which another process had the core, which on a shared machine
//! is most of the noise. Reading it is a system call, as long as dozens of timer operations: its
//! own cost is measured once and taken off every interval.

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

/// A stopwatch that knows what looking at it costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    overhead: Elapsed,
}

impl Watch {
    /// Readings from which the cost of one is taken.
    const N_CALIBRATIONS: usize = 1_001;

    /// Measures what an empty interval costs.
    pub(crate) fn calibrated() -> Self {
        let blank = Self { overhead: Elapsed::default() };
        let empty: Vec<Elapsed> = (0..Self::N_CALIBRATIONS).map(|_| blank.time(|| ()).1).collect();
        let median = |pick: fn(&Elapsed) -> f64| {
            let samples: Vec<f64> = empty.iter().map(pick).collect();
            stats::median(&samples).expect("there is at least one calibration")
        };
        Self {
            overhead: Elapsed {
                cpu_ns: median(|elapsed| elapsed.cpu_ns),
                wall_ns: median(|elapsed| elapsed.wall_ns),
            },
        }
    }

    /// Runs `work` and says how long it took.
    #[inline]
    pub(crate) fn time<R>(&self, work: impl FnOnce() -> R) -> (R, Elapsed) {
        let wall = Instant::now();
        let cpu = thread_cpu();
        let result = work();
        let cpu = thread_cpu().saturating_sub(cpu);
        let wall = wall.elapsed();
        let elapsed = Elapsed { cpu_ns: cpu.as_nanos() as f64, wall_ns: wall.as_nanos() as f64 };
        (result, elapsed.less(self.overhead))
    }
}

/// The CPU time this thread has used since it started.
fn thread_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let secs = u64::try_from(spent.tv_sec).expect("a thread has used no negative time");
    let nanos = u32::try_from(spent.tv_nsec).expect("the fraction is below one second");
    Duration::new(secs, nanos)
}

#[cfg(test)]
mod tests {
    use super::{Watch, thread_cpu};
    use core::hint::black_box;
    use core::time::Duration;

    #[test]
    fn work_costs_cpu_time_and_the_result_comes_back() {
        let watch = Watch::calibrated();
        let spin = || {
            let start = thread_cpu();
            let mut turns = 0_u64;
            while thread_cpu() < start + Duration::from_millis(2) {
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
        let watch = Watch::calibrated();
        for _ in 0..1_000 {
            let ((), elapsed) = watch.time(|| ());
            assert!(elapsed.cpu_ns >= 0.0, "{elapsed:?}");
            assert!(elapsed.wall_ns >= 0.0, "{elapsed:?}");
        }
    }
}
