//! What can be ill.

use core::hint::black_box;
use std::{sync::mpsc, time::Instant};

use clockjack::prelude::*;

/// What is ill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Illness {
    Stuck,
    Cycle,
    Mailbox,
    Restarts,
    Dead,
    Busy,
    Late,
    Overrun,
    Drops,
    Leak,
    Blocking,
}

impl Illness {
    const NAMES: [(&str, Self); 11] = [
        ("stuck", Self::Stuck),
        ("cycle", Self::Cycle),
        ("mailbox", Self::Mailbox),
        ("restarts", Self::Restarts),
        ("dead", Self::Dead),
        ("busy", Self::Busy),
        ("late", Self::Late),
        ("overrun", Self::Overrun),
        ("drops", Self::Drops),
        ("leak", Self::Leak),
        ("blocking", Self::Blocking),
    ];

    /// The illness with this name.
    pub(crate) fn of_name(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(one, _)| *one == name);
        found.map(|(_, illness)| *illness).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("--ill is one of {}", names.join(", "))
        })
    }
}

/// Work for more threads than there are, which waits for what never comes.
pub(crate) fn block(rt: &Runtime) {
    for _ in 0..2000 {
        // The rest has found no room, which is the illness.
        let Ok(_waiting) = rt.spawn_blocking(wait_for_nothing) else { return };
    }
}

fn wait_for_nothing() {
    take(Duration::from_secs(3600));
}

/// Takes so long, as a system call does.
pub(crate) fn take(time: Duration) {
    let (_keep, never) = mpsc::channel::<()>();
    let _nothing = never.recv_timeout(time);
}

/// Computes for so long.
pub(crate) fn compute(time: Duration) -> u64 {
    let begin = Instant::now();
    let mut sum = 1_u64;
    while begin.elapsed() < time {
        sum = (0..1000).fold(sum, |sum, n| sum.rotate_left(5) ^ black_box(n));
    }
    sum
}
