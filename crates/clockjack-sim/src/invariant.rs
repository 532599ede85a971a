//! The invariants that every run must keep, and how often each was checked.

use core::fmt;

/// The maximum number of violations that are stored per run.
const VIOLATIONS_KEPT: usize = 16;

macro_rules! invariants {
    ($($invariant:ident: $text:literal,)*) => {
        /// An invariant. The letter names its area: `T` time, `X` executor, `A` actors, `G` graphs,
        /// `N` nodes, `M` limits, `S` shutdown, `L` liveness, `D` and `W` the simulation itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Invariant {
            $(#[doc = $text] $invariant,)*
        }

        impl Invariant {
            /// All invariants.
            pub const ALL: &[Self] = &[$(Self::$invariant),*];

            /// The identifier.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$invariant => stringify!($invariant),)*
                }
            }

            /// The description.
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
    T2: "never lost: on an idle system, everything that was due and not cancelled has run",
    T3: "cancel is final: it succeeds at most once, and afterwards nothing runs",
    T4: "no drift: a fixed rate runs at multiples of its period, a fixed delay counts from the \
         end of a run",
    T5: "no overlap: runs of a periodic job never overlap, and an error stops only its own job",
    T7: "FIFO: jobs that are due in the same tick run in the order of their registration",
    T8: "no leak: completed and cancelled jobs occupy no slots",
    X1: "no lost wake-up: on an idle system, no task is ready",
    X2: "exclusive: one worker at a time steps a process, never after its end, and it is dropped \
         once",
    X3: "conservation: every started task has finished or is alive",
    X5: "a panic stops only the task in which it occurs",
    A1: "an actor handles one message at a time",
    A2: "messages from one sender to one receiver arrive in order",
    A3: "no lost messages: every accepted message is handled or dead-lettered, exactly once",
    A5: "restarts respect their limit, and children stop in reverse order",
    A6: "one notification per watch",
    A7: "a restart keeps the mailbox, and the failed message is not delivered again",
    A8: "no handler of a stopped actor runs",
    M1: "limits are respected, and a rejected item is returned to the caller",
    S1: "shutdown tasks run exactly once, in order of priority",
    S2: "after shutdown nothing is left, nothing is accepted, and a second shutdown has no effect",
    S3: "no deadline is overrun by our own work: a shutdown begins nothing after its deadline, and \
         reports what it leaves",
    L1: "after the last fault, all requested work completes in time",
    D1: "equal seeds give equal traces",
    W1: "a run does and checks enough work to be meaningful",
    A9: "each ask ends exactly once: with a reply, a timeout, or the stop of the receiver",
    A10: "a future ends no later than its actor, and a waiting actor handles no messages",
    A11: "a group of children ends the newest first and starts the oldest first",
    A12: "an actor that is to restart restarts, or stops; a full or closed scheduler changes \
          neither that nor its backoff",
    A13: "a timer overtakes no message that was sent before the timer was due",
    G1: "threads have no influence: one worker and several workers produce the same commit log",
    G2: "messages of an edge arrive in the order of their publication, exactly once",
    G3: "an edge respects its capacity, and each of its messages is in exactly one place",
    G4: "every value that is seen was published by a call that succeeded",
    G5: "a component never runs concurrently with its predecessors, and a lane respects its limit",
    N1: "between nodes, messages of a stream arrive in order, at most once, and losses are counted \
         exactly",
    N2: "between nodes, an ask ends once: with its own answer, by its deadline, or with its node",
    N3: "between nodes, the end of an actor is reported once, with its cause, and nothing \
         follows; a node that is lost never returns",
    N7: "nodes that have read the log up to the same entry agree on members and services",
    N8: "no window of a channel or a link is exceeded, and all credit is returned",
}

const N_INVARIANTS: usize = Invariant::ALL.len();

impl Invariant {
    /// The index among all invariants.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the invariant is about progress after the last fault. A run for safety has faults
    /// until its end and cannot check such an invariant.
    pub(crate) const fn needs_liveness(self) -> bool {
        matches!(self, Self::L1 | Self::A12)
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// The violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The time in ticks of the simulated clock.
    pub tick: u64,
    /// What was observed.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, tick, text } = self;
        write!(f, "{invariant} at tick {tick}: {text} ({})", invariant.text())
    }
}

/// Counts checks and collects violations.
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
    /// Checks an invariant; `text` describes the violation.
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
