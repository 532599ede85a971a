//! The load: rounds of work by several threads. After each round the load pauses until it is idle,
//! and the ledger is checked. A watchdog detects a stall.

use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use std::{collections::VecDeque, sync::Arc, thread, time::Instant};

use crate::{
    dice::{Consumer, Dice},
    ledger::{Kind, Ledger},
    subject::{Operation, Subject},
};

/// How long work is started before a pause.
pub(crate) const ROUND: Duration = Duration::from_secs(10);
/// The longest time without any event while entries are open.
const STALL_MAX: Duration = Duration::from_secs(10);
/// The maximum number of open tasks; the submitters wait for a free place.
const OPEN_MAX: u64 = 20_000;
/// How many aborts a submitter may postpone.
const LATER_MAX: usize = 500;
/// The maximum number of workers of the pool.
const WORKERS_MAX: u64 = 6;
/// The poll interval of the waiting threads.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A run in progress.
pub(crate) struct Load<'a> {
    pub(crate) subject: &'a dyn Subject,
    pub(crate) ledger: Arc<Ledger>,
    /// Set by Ctrl-C.
    pub(crate) is_interrupted: &'a AtomicBool,
    pub(crate) started: Instant,
}

/// The random streams, which continue from round to round.
pub(crate) struct Streams {
    submitters: [Dice; 2],
    resizer: Dice,
}

impl Streams {
    /// All streams of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let of = |consumer| Dice::of(seed, consumer);
        Self {
            submitters: [of(Consumer::FirstSubmitter), of(Consumer::SecondSubmitter)],
            resizer: of(Consumer::Resizer),
        }
    }
}

/// The error of a stalled load.
#[derive(Debug)]
pub(crate) struct Stuck;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing happened for {} s", STALL_MAX.as_secs())
    }
}

impl Load<'_> {
    /// One round of work, then a pause until the load is idle, and the check of the ledger.
    pub(crate) fn round(&self, streams: &mut Streams, length: Duration) -> Result<(), Stuck> {
        let end = Instant::now() + length;
        let is_over = || Instant::now() >= end || self.is_interrupted.load(Relaxed);
        thread::scope(|scope| {
            for dice in &mut streams.submitters {
                scope.spawn(|| self.submit(dice, &is_over));
            }
            scope.spawn(|| self.resize(&mut streams.resizer, &is_over));
        });
        self.wait_until_idle()?;
        self.ledger.audit();
        Ok(())
    }

    fn submit(&self, dice: &mut Dice, is_over: &dyn Fn() -> bool) {
        let mut later = VecDeque::new();
        while !is_over() {
            while self.ledger.open(Kind::Task) > OPEN_MAX && !is_over() {
                later.drain(..).for_each(|end: crate::subject::Later| end());
                thread::sleep(POLL_INTERVAL);
            }
            later.extend(self.subject.start(Operation::draw(dice), dice, &self.ledger));
            if later.len() > LATER_MAX || dice.below(4) == 0 {
                later.pop_front().into_iter().for_each(|end| end());
            }
        }
        later.into_iter().for_each(|end| end());
    }

    fn resize(&self, dice: &mut Dice, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            let workers = usize::try_from(1 + dice.below(WORKERS_MAX)).unwrap_or(1);
            if let Err(error) = self.subject.resize(workers) {
                self.ledger.fault(format!("resize to {workers}: {error}"));
            }
            thread::sleep(Duration::from_millis(5 + dice.below(200)));
        }
    }

    /// Waits until no entry is open and the counts of the subject agree.
    fn wait_until_idle(&self) -> Result<(), Stuck> {
        let mut seen = (self.ledger.events(), Instant::now());
        loop {
            let counts = self.subject.counts();
            if self.ledger.is_balanced() && counts.spawned == counts.finished {
                return Ok(());
            }
            let events = self.ledger.events();
            if events != seen.0 {
                seen = (events, Instant::now());
            } else if seen.1.elapsed() > STALL_MAX {
                return Err(Stuck);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Aborts the process if nothing happens for too long, no matter which thread hangs; prints the
    /// state of everything first. Returns when `is_done` is set.
    pub(crate) fn watch(&self, is_done: &AtomicBool, give_up: &dyn Fn()) {
        let mut seen = (self.ledger.events(), Instant::now());
        while !is_done.load(Relaxed) {
            thread::sleep(POLL_INTERVAL * 50);
            let events = self.ledger.events();
            if events != seen.0 {
                seen = (events, Instant::now());
            // A little longer than the pause after a round waits, because the pause prints a better
            // message.
            } else if seen.1.elapsed() > STALL_MAX + STALL_MAX / 2 {
                return give_up();
            }
        }
    }
}
