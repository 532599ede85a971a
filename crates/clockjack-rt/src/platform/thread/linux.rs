//! Thread settings on Linux.
//!
//! On Linux, niceness and scheduling class are properties of a thread, although POSIX specifies
//! them for a process.
#![expect(unsafe_code, reason = "the class of a thread, which is set through libc alone")]

use core::{mem::MaybeUninit, num::NonZeroU64, time::Duration};
use std::{io, thread};

use clockjack_actor::system::RealtimeClass;
use clockjack_sync::backoff::SPINS_MAX;
use rustix::{
    process::setpriority_process,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack},
};

/// Sets a slack of one nanosecond; zero would restore the default.
pub(crate) fn sleep_precisely() -> bool {
    set_current_timer_slack(Some(NonZeroU64::MIN)).is_ok()
}

/// The CPUs that this thread may run on; empty if the kernel does not report them.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// The kernel returns "invalid" if no CPU of the set exists and is allowed.
pub(crate) fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

/// Restricts this thread to these CPUs. The kernel ignores CPUs that do not exist or are not
/// allowed, as long as one is left; this function refuses them, and then changes nothing.
pub(crate) fn run_on(cpus: &[u32]) -> io::Result<()> {
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        let at = usize::try_from(*cpu).unwrap_or(usize::MAX);
        if at >= CpuSet::MAX_CPU {
            return Err(no_such_cpu(*cpu));
        }
        wanted.set(at);
    }
    let before = sched_getaffinity(None)?;
    let set = sched_setaffinity(None, &wanted);
    if let (Err(_), [only]) = (&set, cpus) {
        return Err(no_such_cpu(*only));
    }
    set?;
    let is_set = sched_getaffinity(None)?;
    let missing = |cpu: &&u32| usize::try_from(**cpu).is_ok_and(|cpu| !is_set.is_set(cpu));
    if let Some(missing) = cpus.iter().find(missing) {
        sched_setaffinity(None, &before)?;
        return Err(no_such_cpu(*missing));
    }
    Ok(())
}

fn no_such_cpu(cpu: u32) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("this process has no cpu {cpu}"))
}

/// Sets the niceness of this thread only: for the kernel, zero is the calling thread.
pub(crate) fn set_niceness(niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(None, niceness)?)
}

/// Sets the real-time class and priority of this thread.
pub(crate) fn set_realtime(class: RealtimeClass, priority: i32) -> io::Result<()> {
    let policy = match class {
        RealtimeClass::Fifo => libc::SCHED_FIFO,
        RealtimeClass::RoundRobin => libc::SCHED_RR,
    };
    // SAFETY: `sched_param` consists of integers only, for which zero is a valid value.
    let mut param = unsafe { MaybeUninit::<libc::sched_param>::zeroed().assume_init() };
    param.sched_priority = priority;
    // SAFETY: the function has no precondition.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the thread is the calling one, so it exists; the parameters are only read.
    match unsafe { libc::pthread_setschedparam(this, policy, &raw const param) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// How long a real-time thread leaves its processor to others at first; the time doubles with each
/// attempt that fails, [so many times](DOUBLINGS_MAX).
const REALTIME_WAIT: Duration = Duration::from_micros(20);
/// Five milliseconds: a holder that needs that long is itself preempted by others.
const DOUBLINGS_MAX: u32 = 8;
/// From this number of failed attempts on, a thread of the normal class yields.
const YIELDS_FROM: u32 = 1_024;

/// See [`backoff`](clockjack_sync::backoff): blocks a real-time thread, since a yield would not let
/// the normal thread run that it has preempted.
pub(crate) fn wait_for_other_thread(n_failed: u32) {
    // SAFETY: the function has no precondition; zero is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR) {
        let n_waits = n_failed.saturating_sub(SPINS_MAX).min(DOUBLINGS_MAX);
        thread::sleep(REALTIME_WAIT * (1 << n_waits));
    } else if n_failed >= YIELDS_FROM {
        thread::yield_now();
    } else {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use rustix::{
        process::getpriority_process,
        thread::{current_timer_slack, sched_getcpu},
    };

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
        let allowed = allowed_cpus();
        let last = *allowed.last().unwrap();
        apart(|| {
            pin_to_cpu(last).unwrap();
            assert_eq!(sched_getcpu(), last);
            assert_eq!(allowed_cpus(), [last]);
        });
        assert_eq!(allowed_cpus(), allowed);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let refused = pin_to_cpu(cpu).unwrap_err();
            assert!(refused.is_no_such_cpu(), "{refused}");
            assert_eq!(refused.cpu(), cpu);
        }
    }

    /// Calls a function on a temporary thread.
    fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(call).join().unwrap())
    }

    fn allowed() -> Vec<u32> {
        allowed_cpus().into_iter().map(|cpu| cpu.try_into().unwrap()).collect()
    }

    #[test]
    fn a_set_of_cpus_is_taken_whole_or_not_at_all() {
        let before = allowed();
        let some = &before[..before.len().div_ceil(2)];
        apart(|| {
            run_on(some).unwrap();
            assert_eq!(allowed(), some);
            let with_another = [some[0], 1023];
            let refused = run_on(&with_another).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(refused.to_string(), "this process has no cpu 1023");
            assert_eq!(allowed(), some, "nothing has changed");
            assert_eq!(run_on(&[9999]).unwrap_err().to_string(), "this process has no cpu 9999");
        });
        assert_eq!(allowed(), before);
    }

    #[test]
    fn niceness_is_for_the_calling_thread_only() {
        let before = getpriority_process(None).unwrap();
        let nicer = (before + 3).min(19);
        let of_other = apart(|| {
            set_niceness(nicer).unwrap();
            getpriority_process(None).unwrap()
        });
        assert_eq!((of_other, getpriority_process(None).unwrap()), (nicer, before));
    }

    #[test]
    fn a_priority_that_the_class_has_not_is_refused() {
        for class in [RealtimeClass::Fifo, RealtimeClass::RoundRobin] {
            let refused = apart(|| set_realtime(class, 100).unwrap_err());
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        }
    }
}
