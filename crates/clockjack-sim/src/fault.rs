//! Fault injection: the classes of faults, and where they occur.
//!
//! At every place where a fault can occur, the simulation asks whether a fault of a class occurs
//! there. The questions of each class are numbered; such a number is a *point*. Whether a fault
//! occurs at a point, and its size, depend only on the seed, the class and the point. Therefore the
//! faults of a run form a list, and the run can be repeated with a part of the list.

use core::{fmt, str::FromStr};
use std::collections::BTreeSet;

use crate::random::{CERTAIN, Stream, mix, scale};

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $class:ident = $name:literal,)*) => {
        /// A class of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $($(#[doc = $doc])* $class,)*
        }

        impl Class {
            /// All classes. New classes are appended: the index of a class affects the random
            /// numbers.
            pub const ALL: &[Self] = &[$(Self::$class),*];

            /// The name in lists and on command lines.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$class => $name,)*
                }
            }
        }
    };
}

classes! {
    /// The clock runs too fast or too slowly for a while.
    ClockDrift = "clock-drift",
    /// The clock jumps forward.
    ClockJump = "clock-jump",
    /// The clock does not advance, although ticks arrive.
    ClockStill = "clock-still",
    /// The source of the clock goes back.
    ClockBack = "clock-back",
    /// The driver delivers no ticks for a while, then all at once.
    DriverStall = "driver-stall",
    /// The host reports backpressure to the scheduler.
    Backpressure = "backpressure",
    /// A handler consumes time.
    SlowHandler = "slow-handler",
    /// A handler returns an error.
    HandlerError = "handler-error",
    /// A handler panics.
    HandlerPanic = "handler-panic",
    /// The start of an actor fails.
    StartFails = "start-fails",
    /// A wake-up is delivered late.
    LateWake = "late-wake",
    /// A wake-up occurs without a reason.
    SpuriousWake = "spurious-wake",
    /// A mailbox receives more messages than it has capacity for.
    MailFlood = "mail-flood",
    /// An actor is stopped at an arbitrary time.
    OddStop = "odd-stop",
    /// A process is killed.
    Kill = "kill",
    /// Timers are inserted up to the limit.
    TimerFlood = "timer-flood",
    /// Many timers are cancelled at once.
    CancelStorm = "cancel-storm",
    /// A worker leaves.
    WorkerLeaves = "worker-leaves",
    /// A worker joins.
    WorkerComes = "worker-comes",
    /// The watchdog checks late.
    MetronomeLate = "metronome-late",
    /// A component publishes more messages than its edges have capacity for.
    EdgeFlood = "edge-flood",
    /// A pack of frames is lost between a node and the server.
    NetDrop = "net-drop",
    /// A pack of frames arrives twice.
    NetDup = "net-dup",
    /// A node reads late, in order.
    NetDelay = "net-delay",
    /// No pack travels between two nodes for a while.
    NetPartition = "net-partition",
    /// A node does not reach the server for a while.
    NetOffline = "net-offline",
    /// No node reaches the server for a while.
    ServerRestart = "server-restart",
    /// A write to the log is lost.
    WriteLost = "write-lost",
    /// A node does not run for a while.
    NodePause = "node-pause",
    /// The process of a node is killed; it is started again later.
    NodeCrash = "node-crash",
    /// A key of the log ends although it was renewed in time.
    KeyLost = "key-lost",
}

const N_CLASSES: usize = Class::ALL.len();

impl Class {
    /// Faults that apply to every system with a clock, handlers and sleeping threads.
    pub const EVERYDAY: &[Self] = &[
        Self::ClockJump,
        Self::ClockStill,
        Self::SlowHandler,
        Self::HandlerError,
        Self::HandlerPanic,
        Self::LateWake,
        Self::SpuriousWake,
    ];

    /// The index among all classes.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A fault of a run: it occurs at this point of this class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// The class.
    pub class: Class,
    /// The point: the number among all questions of this class.
    pub point: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class, self.point)
    }
}

/// A text that is not a valid fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAFault(String);

impl fmt::Display for NotAFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a fault: write class:point, such as slow-handler:12", self.0)
    }
}

impl core::error::Error for NotAFault {}

impl FromStr for Fault {
    type Err = NotAFault;

    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let parse = || {
            let (name, point) = text.split_once(':')?;
            let class = Class::ALL.iter().copied().find(|class| class.name() == name)?;
            Some(Self { class, point: point.parse().ok()? })
        };
        parse().ok_or_else(|| NotAFault(String::from(text)))
    }
}

/// The fault rate per class, out of [`CERTAIN`].
pub(crate) type Rates = [u64; N_CLASSES];

/// A count per class.
pub(crate) type Counts = [u64; N_CLASSES];

/// The faults of one run.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: u64,
    rates: Rates,
    /// If set, exactly these faults occur.
    only: Option<BTreeSet<Fault>>,
    points: Counts,
    fired: Counts,
    log: Vec<Fault>,
    is_healed: bool,
}

impl Faults {
    /// The fault rates of this seed: each class has its own random rate, which is zero for about a
    /// third of the classes.
    pub(crate) fn drawn(seed: u64, classes: impl IntoIterator<Item = Class>) -> Self {
        let mut rates = [0; N_CLASSES];
        for class in classes {
            let mut stream = Stream::new(seed, class.name());
            let choices = [(3, 0), (2, 50), (2, 200), (2, 600), (1, 2_000)];
            rates[class.index()] = stream.pick(&choices).unwrap_or(0);
        }
        Self {
            seed,
            rates,
            only: None,
            points: [0; N_CLASSES],
            fired: [0; N_CLASSES],
            log: Vec::new(),
            is_healed: false,
        }
    }

    /// Restricts the faults to this list.
    pub(crate) fn only(mut self, faults: &[Fault]) -> Self {
        self.only = Some(faults.iter().copied().collect());
        self
    }

    /// Whether a fault occurs at the next point of a class; returns its size, an arbitrary number.
    pub(crate) fn ask(&mut self, class: Class) -> Option<u64> {
        let index = class.index();
        let point = self.points[index];
        self.points[index] += 1;
        if self.is_healed {
            return None;
        }
        let fault = Fault { class, point };
        let drawn = mix(mix(self.seed ^ mix(index as u64 + 1)) ^ point);
        let is_there = match &self.only {
            Some(only) => only.contains(&fault),
            None => scale(drawn, CERTAIN) < self.rates[index],
        };
        if !is_there {
            return None;
        }
        self.fired[index] += 1;
        self.log.push(fault);
        Some(mix(drawn))
    }

    /// From now on no faults occur.
    pub(crate) fn heal(&mut self) {
        self.is_healed = true;
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }

    pub(crate) fn fired(&self) -> &Counts {
        &self.fired
    }

    pub(crate) fn log(&self) -> &[Fault] {
        &self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Faults {
        Faults::drawn(seed, Class::ALL.iter().copied())
    }

    fn asked(mut faults: Faults) -> Vec<Fault> {
        for _ in 0..2_000 {
            Class::ALL.iter().for_each(|class| _ = faults.ask(*class));
        }
        faults.log
    }

    #[test]
    fn the_faults_of_a_run_can_be_repeated_by_their_list() {
        for seed in 0..20 {
            let all = asked(drawn(seed));
            assert!(!all.is_empty());
            assert_eq!(asked(drawn(seed).only(&all)), all);
            let half: Vec<Fault> = all.iter().copied().step_by(2).collect();
            assert_eq!(asked(drawn(seed).only(&half)), half);
        }
    }

    #[test]
    fn the_size_of_a_fault_does_not_depend_on_the_others() {
        let mut all = drawn(5).only(&[
            Fault { class: Class::ClockJump, point: 3 },
            Fault { class: Class::ClockJump, point: 9 },
        ]);
        let mut one = Faults::drawn(5, []).only(&[Fault { class: Class::ClockJump, point: 9 }]);
        let sizes = |faults: &mut Faults| -> Vec<_> {
            (0..12).map(|_| faults.ask(Class::ClockJump)).collect()
        };
        let (all, one) = (sizes(&mut all), sizes(&mut one));
        assert!(all[3].is_some() && all[9].is_some());
        assert_eq!((all[9], one[3]), (one[9], None));
    }

    #[test]
    fn each_seed_has_a_mixture_of_its_own() {
        let rates: BTreeSet<Rates> = (0..50).map(|seed| *drawn(seed).rates()).collect();
        assert_eq!(rates.len(), 50);
        for class in Class::ALL {
            let n_off = rates.iter().filter(|rates| rates[class.index()] == 0).count();
            assert!((1..50).contains(&n_off), "{class} is off in {n_off} of 50");
        }
    }

    #[test]
    fn nothing_fails_once_it_is_healed() {
        let mut faults = drawn(1);
        faults.heal();
        assert_eq!(asked(faults), []);
    }

    #[test]
    fn a_fault_is_read_as_it_is_written() {
        for class in Class::ALL {
            let fault = Fault { class: *class, point: 12 };
            assert_eq!(std::format!("{fault}").parse(), Ok(fault));
        }
        for text in ["", "slow-handler", "slow-handler:x", "nothing:3"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
