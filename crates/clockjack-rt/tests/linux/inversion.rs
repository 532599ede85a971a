//! A real-time thread that meets a lock of a normal thread which it has preempted.
#![expect(unsafe_code, reason = "class, CPU and processor time of a thread are set through libc")]

use core::{
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};
use std::{thread, time::Instant};

use clockjack_rt::thread::{ThreadConfig, pin_to_cpu, start};
use clockjack_sync::spin_lock::SpinLock;

/// How much processor time the holder needs until it unlocks.
const WORK: Duration = Duration::from_millis(300);

/// The processor time of the calling thread.
fn cpu_time() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a local of the right type.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr()) }, 0);
    // SAFETY: the call has succeeded, and has written it.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Makes the calling thread a real-time thread; false if the system does not allow that.
fn become_realtime() -> bool {
    // SAFETY: `sched_param` consists of integers only, for which zero is a valid value.
    let mut param = unsafe { MaybeUninit::<libc::sched_param>::zeroed().assume_init() };
    param.sched_priority = 1;
    // SAFETY: zero is the calling thread, and the parameters are only read.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

static LOCK: SpinLock<u32> = SpinLock::new(0);
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// The first CPU that this process may use; in a container that need not be CPU 0.
fn first_cpu() -> usize {
    // SAFETY: `cpu_set_t` consists of integers only, for which zero is a valid value.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    // SAFETY: zero is the calling thread, and the pointer is to a local of this size.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    assert_eq!(got, 0);
    let max = usize::try_from(libc::CPU_SETSIZE).unwrap();
    // SAFETY: the number is below the size of the set.
    (0..max).find(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).expect("this thread runs somewhere")
}

#[test]
#[expect(clippy::print_stderr, reason = "says that nothing could be checked")]
fn a_real_time_thread_does_not_spin_for_a_holder_that_it_has_preempted() {
    let (config, cpu) = (ThreadConfig::DEFAULT, first_cpu());
    let holder = start(&config, move || {
        pin_to_cpu(cpu).unwrap();
        LOCK.with(|value| {
            IS_HELD.store(true, SeqCst);
            let begun = cpu_time();
            while cpu_time() - begun < WORK {
                core::hint::spin_loop();
            }
            *value += 1;
        });
    });
    let waiter = start(&config, move || {
        pin_to_cpu(cpu).unwrap();
        while !IS_HELD.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        if !become_realtime() {
            return None;
        }
        let (begun, started) = (cpu_time(), Instant::now());
        LOCK.with(|value| assert_eq!(*value, 1));
        Some((cpu_time() - begun, started.elapsed()))
    });
    let spent = waiter.unwrap().join().unwrap();
    holder.unwrap().join().unwrap();
    match spent {
        // Spinning takes 95 % of the processor: the share at which the kernel stops real-time
        // threads. If the holder has finished early, there was nothing to wait for.
        Some((spent, elapsed)) => {
            let is_short = spent < Duration::from_millis(10);
            assert!(is_short || spent < elapsed / 4, "{spent:?} of {elapsed:?}");
        }
        None => eprintln!("not checked: this system allows no real-time threads"),
    }
}
