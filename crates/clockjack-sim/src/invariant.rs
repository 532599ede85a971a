//! What must hold: the invariants that a run is judged by, and how often each was looked at.

use alloc::{string::String, vec::Vec};
use core::fmt;

/// How many violations of a run are kept; all are counted.
const VIOLATIONS_KEPT: usize = 16;

macro_rules! invariants {
    ($($invariant:ident: $text:literal,)*) => {
        /// A invariant, by the letter of its part and a number: `T` time, `X` executor, `A` actors, `G`
        /// graphs, `M` bounds, `S` the end, `D` and `W` the simulation itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Invariant {
            $(#[doc = $text] $invariant,)*
        }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$invariant),*];

            /// What it is called.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$invariant => stringify!($invariant),)*
                }
            }

            /// What it says.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$invariant => $text,)*
                }
            }
        }
    };
}

invariants! {
    T1: "never early: nothing runs before its deadline",
    T2: "never lost: what is due and was not cancelled has run once all is quiet",
    T3: "cancel is final: it succeeds at most once, and then nothing runs",
    T4: "no drift: a fixed rate keeps to its multiples, a fixed delay counts from the end of a run",
    T5: "no overlap: a periodic job never runs beside itself, and an error ends its series only",
    T7: "first come, first fired: what is due in one tick runs in the order of its registration",
    T8: "nothing piles up: what has ended or was cancelled takes no room",
    X1: "no lost wake-up: where all is quiet, nobody has anything to do",
    X2: "one at a time: a process is stepped by one worker, never after its end, and dropped once",
    X3: "conservation: what was started has ended or lives",
    X5: "a panic ends no more than what it belongs to",
    A1: "one message at a time",
    A2: "messages from one sender to one receiver come in order",
    A3: "nothing vanishes: what was accepted is handled or a dead letter, once",
    A5: "restarts are granted as the limit says, and children stop in reverse order",
    A6: "one notice for each watch",
    A7: "a restart keeps the mailbox, and the message that failed does not come again",
    A8: "no handler of a stopped actor runs",
    M1: "a bound is kept, and what is refused comes back",
    S1: "tasks of the close run once, the important ones first",
    S2: "after the end nothing is left, nothing is taken, and a second end changes nothing",
    L1: "once nothing fails any more, what was asked for is done in time",
    D1: "the same seed gives the same trace",
    W1: "a run does enough work, and is looked at often enough, to mean something",
    A9: "each ask ends once: by its answer, in time, or by the end of who was asked",
    A10: "a future of an actor ends with it, and what waits for it waits",
    G1: "threads change nothing: one worker and several leave the same commit log",
    G2: "what is published on an edge comes in that order, and once",
    G3: "an edge holds no more than it may, and each of its messages is in one place",
    G4: "what is seen was published by a call that has succeeded",
    G5: "nobody begins beside those that it waits for, and a lane has no more than it may at work",
}

const N_INVARIANTS: usize = Invariant::ALL.len();

impl Invariant {
    /// Its place among all.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// A invariant was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// When, in ticks of the run's clock.
    pub tick: u64,
    /// By what.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, tick, text } = self;
        write!(f, "{invariant} at tick {tick}: {text} ({})", invariant.text())
    }
}

/// What a run was found to do.
#[derive(Debug)]
pub(crate) struct Checker {
    compared: [u64; N_INVARIANTS],
    violations: Vec<Violation>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { compared: [0; N_INVARIANTS], violations: Vec::new() }
    }
}

impl Checker {
    /// Looks at a invariant once; `text` says what is wrong if it is broken.
    pub(crate) fn check(
        &mut self,
        invariant: Invariant,
        tick: u64,
        is_kept: bool,
        text: impl FnOnce() -> String,
    ) {
        self.compared[invariant.index()] += 1;
        if !is_kept && self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(Violation { invariant, tick, text: text() });
        }
    }

    pub(crate) fn compared(&self) -> &[u64; N_INVARIANTS] {
        &self.compared
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
