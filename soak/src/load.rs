//! The load: rounds of work by several threads, each ended by a quiet point where the books must
//! balance; and the watchdog over it.

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

/// How long work is started before a quiet point.
pub(crate) const ROUND: Duration = Duration::from_secs(10);
/// How long nothing may happen while something is open.
const STILL_MAX: Duration = Duration::from_secs(10);
/// Tasks that may be open; then the submitters wait.
const OPEN_MAX: u64 = 20_000;
/// Aborts that a submitter leaves for later.
const LATER_MAX: usize = 500;
/// The most workers that the pool is given.
const WORKERS_MAX: u64 = 6;
/// How often the waiting threads look.
const LOOK: Duration = Duration::from_millis(2);

/// A run in progress.
pub(crate) struct Load<'a> {
    pub(crate) subject: &'a dyn Subject,
    pub(crate) ledger: Arc<Ledger>,
    /// Set by Ctrl-C.
    pub(crate) is_interrupted: &'a AtomicBool,
    pub(crate) started: Instant,
}

/// The streams, which go on from round to round.
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

/// Nothing happened for too long.
#[derive(Debug)]
pub(crate) struct Stuck;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing happened for {} s", STILL_MAX.as_secs())
    }
}

impl Load<'_> {
    /// One round of work, then a quiet point and the audit.
    pub(crate) fn round(&self, streams: &mut Streams, length: Duration) -> Result<(), Stuck> {
        let end = Instant::now() + length;
        let is_over = || Instant::now() >= end || self.is_interrupted.load(Relaxed);
        thread::scope(|scope| {
            for dice in &mut streams.submitters {
                scope.spawn(|| self.submit(dice, &is_over));
            }
            scope.spawn(|| self.resize(&mut streams.resizer, &is_over));
        });
        self.settle()?;
        self.ledger.audit();
        Ok(())
    }

    fn submit(&self, dice: &mut Dice, is_over: &dyn Fn() -> bool) {
        let mut later = VecDeque::new();
        while !is_over() {
            while self.ledger.open(Kind::Task) > OPEN_MAX && !is_over() {
                later.drain(..).for_each(|end: crate::subject::Later| end());
                thread::sleep(LOOK);
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

    /// Waits until nothing is open and the subject's own counts agree.
    fn settle(&self) -> Result<(), Stuck> {
        let mut seen = (self.ledger.events(), Instant::now());
        loop {
            let counts = self.subject.counts();
            if self.ledger.is_settled() && counts.spawned == counts.finished {
                return Ok(());
            }
            let events = self.ledger.events();
            if events != seen.0 {
                seen = (events, Instant::now());
            } else if seen.1.elapsed() > STILL_MAX {
                return Err(Stuck);
            }
            thread::sleep(LOOK);
        }
    }

    /// Ends the process if nothing happens for too long, wherever a thread may hang: the state of
    /// everything is shown first. Returns when `is_done` says so.
    pub(crate) fn watch(&self, is_done: &AtomicBool, give_up: &dyn Fn()) {
        let mut seen = (self.ledger.events(), Instant::now());
        while !is_done.load(Relaxed) {
            thread::sleep(LOOK * 50);
            let events = self.ledger.events();
            if events != seen.0 {
                seen = (events, Instant::now());
            // A little longer than a quiet point waits: that one has the better words.
            } else if seen.1.elapsed() > STILL_MAX + STILL_MAX / 2 {
                return give_up();
            }
        }
    }
}
