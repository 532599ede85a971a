//! Faults: of which kinds, and where.
//!
//! Whoever simulates asks at every place where a fault could be: "of this class, here?" The
//! questions of a class are numbered; such a number is a *point*. Whether there is a fault at a
//! point, and how bad it is, follows from the seed, the class and the point alone. So the faults of
//! a run are a list, and the run can be repeated with a part of it.

use alloc::{collections::BTreeSet, string::String, vec::Vec};
use core::{fmt, str::FromStr};

use crate::random::{CERTAIN, Stream, mix, scale};

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $class:ident = $name:literal,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $($(#[doc = $doc])* $class,)*
        }

        impl Class {
            /// All of them. New ones come last: the place of a class is part of what is drawn.
            pub const ALL: &[Self] = &[$(Self::$class),*];

            /// Its name, in lists and on command lines.
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
    /// The clock goes forward by much at once.
    ClockJump = "clock-jump",
    /// The clock stands still, though ticks come.
    ClockStill = "clock-still",
    /// What the clock is made of goes back.
    ClockBack = "clock-back",
    /// The driver brings no ticks for a while, then all at once.
    DriverStall = "driver-stall",
    /// The scheduler is told that the runtime is under pressure.
    Backpressure = "backpressure",
    /// Time passes in a handler.
    SlowHandler = "slow-handler",
    /// A handler returns an error.
    HandlerError = "handler-error",
    /// A handler panics.
    HandlerPanic = "handler-panic",
    /// A start fails.
    StartFails = "start-fails",
    /// Who was woken wakes late.
    LateWake = "late-wake",
    /// Somebody wakes for no reason.
    SpuriousWake = "spurious-wake",
    /// More messages come than a mailbox has workers for.
    MailFlood = "mail-flood",
    /// An actor is stopped at an odd moment.
    OddStop = "odd-stop",
    /// A process is ended without being asked.
    Kill = "kill",
    /// Timers are armed up to the limit.
    TimerFlood = "timer-flood",
    /// Much is cancelled at once.
    CancelStorm = "cancel-storm",
    /// A worker leaves.
    WorkerLeaves = "worker-leaves",
    /// A worker comes.
    WorkerComes = "worker-comes",
    /// The metronome looks late.
    MetronomeLate = "metronome-late",
    /// A component publishes more than its edges have workers for.
    EdgeFlood = "edge-flood",
}

const N_CLASSES: usize = Class::ALL.len();

impl Class {
    /// What may go wrong wherever there are a clock, handlers and somebody who sleeps.
    pub const EVERYDAY: &[Self] = &[
        Self::ClockJump,
        Self::ClockStill,
        Self::SlowHandler,
        Self::HandlerError,
        Self::HandlerPanic,
        Self::LateWake,
        Self::SpuriousWake,
    ];

    /// Its place among all.
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

/// A fault of a run: the question of this number description this class was answered with yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fault {
    /// Of which kind.
    pub class: Class,
    /// Where, among all places for faults of this kind.
    pub point: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class, self.point)
    }
}

/// A text that names no fault.
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

/// How often there is a fault of each class, of [`CERTAIN`] questions.
pub(crate) type Rates = [u64; N_CLASSES];

/// What became of the questions of each class.
pub(crate) type Counts = [u64; N_CLASSES];

/// The faults of one run.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: u64,
    rates: Rates,
    /// If set, these and no others.
    only: Option<BTreeSet<Fault>>,
    points: Counts,
    fired: Counts,
    log: Vec<Fault>,
    is_healed: bool,
}

impl Faults {
    /// Faults of these classes, as often as this seed says: each class has its own rate, and description
    /// a third of them none at all.
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

    /// These faults, and no others.
    pub(crate) fn only(mut self, faults: &[Fault]) -> Self {
        self.only = Some(faults.iter().copied().collect());
        self
    }

    /// Asks for a fault; its size, any number, if there is one.
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

    /// From here on there are none.
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
            assert_eq!(alloc::format!("{fault}").parse(), Ok(fault));
        }
        for text in ["", "slow-handler", "slow-handler:x", "nothing:3"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
