//! A dedicated thread that asks the kernel to be woken at each due time: the best that the machine
//! can do without spinning.

use core::num::NonZeroU64;
use core::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

use super::subject::{PERIOD, Sleeper};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

pub(crate) const SLEEPER: Sleeper = Sleeper {
    facts: Facts {
        name: NAME,
        package: None,
        standing: Standing::Reference,
        note: "a dedicated thread, absolute times, timer slack of 1 ns",
    },
    run,
};

pub(crate) const NAME: &str = "clock_nanosleep";

fn run(n_ticks: u32) -> Result<Vec<Duration>, Failure> {
    // A dedicated thread, because the timer slack is a property of the thread.
    let slept = thread::scope(|scope| {
        let sleeper = thread::Builder::new().name("nanosleep".to_owned());
        let sleeper = sleeper.spawn_scoped(scope, || sleep(n_ticks))?;
        sleeper.join().expect("the thread only sleeps")
    });
    slept.map_err(|source| Failure::start(NAME, source))
}

fn sleep(n_ticks: u32) -> io::Result<Vec<Duration>> {
    set_current_timer_slack(NonZeroU64::new(1))?;
    let mut late = Vec::with_capacity(n_ticks as usize);
    let mut due = now() + PERIOD;
    for _ in 0..n_ticks {
        let until = Timespec::try_from(due).map_err(io::Error::other)?;
        // A signal may wake the thread early, any number of times.
        while let Err(errno) = clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            if errno != Errno::INTR {
                return Err(errno.into());
            }
        }
        let by = now().checked_sub(due).expect("an absolute sleep does not end early");
        late.push(by);
        due += PERIOD;
    }
    Ok(late)
}

fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).expect("monotonic time is not negative")
}
