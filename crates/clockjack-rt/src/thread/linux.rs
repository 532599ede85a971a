//! What a thread sets for itself on Linux.

use core::num::NonZeroU64;
use std::io;

use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// A slack of one nanosecond; zero would mean the default again.
pub(crate) fn sleep_precisely() -> bool {
    set_current_timer_slack(Some(NonZeroU64::MIN)).is_ok()
}

/// The kernel calls the input invalid if none of the set is both there and allowed.
pub(crate) fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::{current_timer_slack, sched_getaffinity, sched_getcpu};

    use super::*;
    use crate::thread::{pin_to_cpu, sleep_precisely};

    #[test]
    fn precise_sleep_is_for_the_calling_thread_only() {
        let before = current_timer_slack().unwrap();
        let of_other = thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert!(sleep_precisely());
                current_timer_slack().unwrap()
            });
            other.join().unwrap()
        });
        assert_eq!((of_other, current_timer_slack().unwrap()), (1, before));
    }

    #[test]
    fn a_bound_thread_runs_on_its_cpu() {
        let allowed = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).rfind(|cpu| allowed.is_set(*cpu)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                pin_to_cpu(last).unwrap();
                assert_eq!(sched_getcpu(), last);
                assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            });
        });
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let refused = pin_to_cpu(cpu).unwrap_err();
            assert!(refused.is_no_such_cpu(), "{refused}");
            assert_eq!(refused.cpu(), cpu);
        }
    }
}
