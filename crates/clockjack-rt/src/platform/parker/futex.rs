//! Sleeping on a futex (Linux).
//!
//! Futexes are from Franke, Russell and Kirkwood ("Fuss, futexes and furwocks: fast userlevel
//! locking in Linux", 2002).
//!
//! `FUTEX_WAIT_BITSET` takes an absolute deadline of `CLOCK_MONOTONIC`, so an interrupted sleep
//! continues to the same deadline, and nothing is computed between reading a clock and sleeping.
//! The kernel compares the word under the lock of its queue, which a wake takes, too: rule 4 of
//! [`parker`](crate::parker).

use core::num::NonZeroU32;

use clockjack_sync::primitive::atomic::AtomicU32;
use rustix::{
    io::Errno,
    thread::futex::{self, Flags, Timespec},
};

use crate::{
    clock::OsInstant,
    parker::{RawParker, Sleep, Slept},
};

/// A parker that sleeps on a futex.
pub type Parker = RawParker<Futex>;

/// The kernel's queue of sleepers. It needs no memory in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Futex;

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Sleep for Futex {
    fn sleep(&self, word: &AtomicU32, expected: u32, until: Option<OsInstant>) -> Slept {
        let until = until.map(timespec);
        // Any bit wakes: there is one sleeper, so the bits need not distinguish sleepers.
        let every_bit = NonZeroU32::MAX;
        match futex::wait_bitset(word, Flags::PRIVATE, expected, until.as_ref(), every_bit) {
            // Woken; or the word had changed already; or a signal.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Slept::Awake,
            Err(Errno::TIMEDOUT) => Slept::TimedOut,
            Err(other) => panic!("futex wait failed: {other}"),
        }
    }

    fn wake(&self, word: &AtomicU32) {
        let woken = futex::wake(word, Flags::PRIVATE, 1);
        assert!(woken.is_ok(), "futex wake failed: {woken:?}");
    }
}

/// The kernel clamps seconds beyond its range.
fn timespec(instant: OsInstant) -> Timespec {
    let nanos = instant.as_nanos();
    let secs = i64::try_from(nanos / NANOS_PER_SEC);
    let rest = (nanos % NANOS_PER_SEC).try_into();
    Timespec {
        tv_sec: secs.expect("a u64 of nanoseconds has 34 bits of seconds"),
        tv_nsec: rest.expect("less than 10^9, which 32 bits hold"),
    }
}
