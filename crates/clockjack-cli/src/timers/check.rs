//! The law that every fire is held to, by books that the wheel knows nothing of.
//!
//! The books are the list of deadlines that were drawn; a timer that is through is struck off. So
//! a wheel that fires a timer twice, or early, or one that was cancelled, is found out even if its
//! own data say otherwise.

use core::{error::Error, fmt};

use clockjack_time::Tick;

/// A timer that fired, as the wheel told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fire {
    /// Which timer: how many were registered before it.
    pub(crate) number: u32,
    /// When it was due.
    pub(crate) deadline: Tick,
    /// When it fired.
    pub(crate) now: Tick,
}

/// A law that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    Early { fire: Fire },
    Late { fire: Fire, step_ticks: u32 },
    OutOfOrder { fire: Fire, before: Fire },
    NotArmed { fire: Fire },
    OtherDeadline { fire: Fire, armed_for: u32 },
    CancelRefused { number: u32 },
    OtherCancelled { number: u32, value: u32 },
    CancelledTwice { number: u32 },
    Unaccounted { armed: usize, fired: u32, cancelled: u32, left: usize },
}

/// The books of one run.
#[derive(Debug)]
pub(crate) struct Checker {
    /// By number; [`STRUCK`] for a timer that has fired or was cancelled.
    deadlines: Vec<u32>,
    step_ticks: u32,
    last: Option<Fire>,
    n_fired: u32,
    n_cancelled: u32,
}

/// No deadline that was drawn: these begin at 1.
const STRUCK: u32 = 0;

impl Checker {
    /// Opens the books: deadlines by number, none of them 0, and by how much time moves at once.
    pub(crate) const fn new(deadlines: Vec<u32>, step_ticks: u32) -> Self {
        Self { deadlines, step_ticks, last: None, n_fired: 0, n_cancelled: 0 }
    }

    /// What is to be armed, in order.
    pub(crate) fn deadlines(&self) -> &[u32] {
        &self.deadlines
    }

    /// How many fires were accepted.
    pub(crate) const fn n_fired(&self) -> u32 {
        self.n_fired
    }

    /// How many cancels were accepted.
    pub(crate) const fn n_cancelled(&self) -> u32 {
        self.n_cancelled
    }

    /// Enters a cancel of an armed timer: it must give the timer's own value back.
    pub(crate) fn cancelled(&mut self, number: u32, value: Option<u32>) -> Result<(), Violation> {
        match value {
            None => Err(Violation::CancelRefused { number }),
            Some(value) if value != number => Err(Violation::OtherCancelled { number, value }),
            Some(_) => match self.strike(number) {
                None => Err(Violation::CancelledTwice { number }),
                Some(_) => {
                    self.n_cancelled += 1;
                    Ok(())
                }
            },
        }
    }

    /// Enters a cancel of a timer that was cancelled before: it must find nothing.
    pub(crate) fn cancelled_again(&self, number: u32, value: Option<u32>) -> Result<(), Violation> {
        if value.is_some() { Err(Violation::CancelledTwice { number }) } else { Ok(()) }
    }

    /// Enters a fire: not early, in the first step that reaches it, in order of deadline and
    /// registration, and once.
    pub(crate) fn fired(&mut self, fire: Fire) -> Result<(), Violation> {
        let Some(armed_for) = self.strike(fire.number) else {
            return Err(Violation::NotArmed { fire });
        };
        if fire.deadline.get() != u64::from(armed_for) {
            return Err(Violation::OtherDeadline { fire, armed_for });
        }
        let Some(late) = fire.now.checked_since(fire.deadline) else {
            return Err(Violation::Early { fire });
        };
        if late.get() >= u64::from(self.step_ticks) {
            return Err(Violation::Late { fire, step_ticks: self.step_ticks });
        }
        let place = |fire: Fire| (fire.deadline, fire.number);
        if let Some(before) = self.last
            && place(before) >= place(fire)
        {
            return Err(Violation::OutOfOrder { fire, before });
        }
        self.last = Some(fire);
        self.n_fired += 1;
        Ok(())
    }

    /// Closes the books: all that was armed has fired or was cancelled, and `left`, what the wheel
    /// still has, is nothing.
    pub(crate) fn finish(&self, left: usize) -> Result<(), Violation> {
        let (armed, fired, cancelled) = (self.deadlines.len(), self.n_fired, self.n_cancelled);
        let accounted = u64::from(fired) + u64::from(cancelled);
        if accounted == armed as u64 && left == 0 {
            return Ok(());
        }
        Err(Violation::Unaccounted { armed, fired, cancelled, left })
    }

    /// Strikes a timer off. Gives its deadline, `None` if it was struck before or never was.
    fn strike(&mut self, number: u32) -> Option<u32> {
        let entry = self.deadlines.get_mut(number as usize)?;
        let deadline = core::mem::replace(entry, STRUCK);
        (deadline != STRUCK).then_some(deadline)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Early { fire: Fire { number, deadline, now } } => {
                write!(f, "timer {number} fired at tick {now}, before its deadline {deadline}")
            }
            Self::Late { fire: Fire { number, deadline, now }, step_ticks } => write!(
                f,
                "timer {number} was due at tick {deadline} and fired at {now}: later than a step \
                 of {step_ticks} explains"
            ),
            Self::OutOfOrder { fire, before } => write!(
                f,
                "timer {} of tick {} fired after timer {} of tick {}",
                fire.number, fire.deadline, before.number, before.deadline
            ),
            Self::NotArmed { fire: Fire { number, now, .. } } => write!(
                f,
                "timer {number} fired at tick {now}, but it had fired before, was cancelled, or \
                 never was armed"
            ),
            Self::OtherDeadline { fire: Fire { number, deadline, .. }, armed_for } => {
                write!(f, "timer {number} was armed for tick {armed_for} and fired for {deadline}")
            }
            Self::CancelRefused { number } => {
                write!(f, "timer {number} was armed, but its cancel found nothing")
            }
            Self::OtherCancelled { number, value } => {
                write!(f, "the cancel of timer {number} gave back timer {value}")
            }
            Self::CancelledTwice { number } => write!(f, "timer {number} was cancelled twice"),
            Self::Unaccounted { armed, fired, cancelled, left } => write!(
                f,
                "{armed} armed, but {fired} fired, {cancelled} cancelled and {left} left in the \
                 wheel"
            ),
        }
    }
}

impl Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timers 0 and 1 are due at tick 5, timer 2 at tick 8; time moves by 2.
    fn books() -> Checker {
        Checker::new(vec![5, 5, 8], 2)
    }

    fn fire(number: u32, deadline: u64, now: u64) -> Fire {
        Fire { number, deadline: Tick::new(deadline), now: Tick::new(now) }
    }

    /// All fires but the last are lawful; the last one is refused for `expected`.
    #[track_caller]
    fn refused(fires: &[Fire], expected: Violation) {
        let mut checker = books();
        let (&last, lawful) = fires.split_last().expect("at least one");
        for &fire in lawful {
            assert_eq!(checker.fired(fire), Ok(()));
        }
        assert_eq!(checker.fired(last), Err(expected));
        assert_eq!(checker.n_fired() as usize, lawful.len(), "a refused fire is not counted");
    }

    #[test]
    fn a_lawful_run_closes_the_books() {
        let mut checker = books();
        assert_eq!(checker.fired(fire(0, 5, 6)), Ok(()));
        assert_eq!(checker.cancelled(1, Some(1)), Ok(()));
        assert_eq!(checker.cancelled_again(1, None), Ok(()));
        assert_eq!(checker.fired(fire(2, 8, 8)), Ok(()));
        assert_eq!((checker.n_fired(), checker.n_cancelled()), (2, 1));
        assert_eq!(checker.finish(0), Ok(()));
    }

    #[test]
    fn an_early_fire_is_reported() {
        let early = fire(0, 5, 4);
        refused(&[early], Violation::Early { fire: early });
    }

    #[test]
    fn a_fire_that_missed_the_step_which_reached_it_is_reported() {
        let late = fire(1, 5, 7);
        refused(&[fire(0, 5, 6), late], Violation::Late { fire: late, step_ticks: 2 });
    }

    #[test]
    fn a_tick_that_fires_against_the_order_of_registration_is_reported() {
        let (second, first) = (fire(1, 5, 6), fire(0, 5, 6));
        refused(&[second, first], Violation::OutOfOrder { fire: first, before: second });
    }

    #[test]
    fn a_later_deadline_before_an_earlier_one_is_reported() {
        let (later, earlier) = (fire(2, 8, 8), fire(0, 5, 6));
        refused(&[later, earlier], Violation::OutOfOrder { fire: earlier, before: later });
    }

    #[test]
    fn a_timer_that_fires_twice_or_never_was_is_reported() {
        let again = fire(0, 5, 6);
        refused(&[again, again], Violation::NotArmed { fire: again });
        let unknown = fire(3, 5, 6);
        refused(&[unknown], Violation::NotArmed { fire: unknown });
    }

    #[test]
    fn a_deadline_that_is_not_the_armed_one_is_reported() {
        let moved = fire(2, 7, 8);
        refused(&[moved], Violation::OtherDeadline { fire: moved, armed_for: 8 });
    }

    #[test]
    fn a_fire_after_a_cancel_is_reported() {
        let mut checker = books();
        assert_eq!(checker.cancelled(0, Some(0)), Ok(()));
        let dead = fire(0, 5, 6);
        assert_eq!(checker.fired(dead), Err(Violation::NotArmed { fire: dead }));
    }

    #[test]
    fn a_cancel_that_finds_nothing_or_another_or_the_same_again_is_reported() {
        let mut checker = books();
        assert_eq!(checker.cancelled(0, None), Err(Violation::CancelRefused { number: 0 }));
        let other = Violation::OtherCancelled { number: 0, value: 1 };
        assert_eq!(checker.cancelled(0, Some(1)), Err(other));
        assert_eq!(checker.cancelled(0, Some(0)), Ok(()));
        let twice = Err(Violation::CancelledTwice { number: 0 });
        assert_eq!(checker.cancelled(0, Some(0)), twice);
        assert_eq!(checker.cancelled_again(0, Some(0)), twice);
    }

    #[test]
    fn a_timer_that_is_lost_or_left_over_is_reported() {
        let mut checker = books();
        assert_eq!(checker.fired(fire(0, 5, 6)), Ok(()));
        assert_eq!(checker.cancelled(1, Some(1)), Ok(()));
        let lost = Violation::Unaccounted { armed: 3, fired: 1, cancelled: 1, left: 0 };
        assert_eq!(checker.finish(0), Err(lost));
        assert_eq!(checker.fired(fire(2, 8, 8)), Ok(()));
        let left = Violation::Unaccounted { armed: 3, fired: 2, cancelled: 1, left: 1 };
        assert_eq!(checker.finish(1), Err(left));
    }

    #[test]
    fn a_report_names_timer_and_ticks() {
        let early = Violation::Early { fire: fire(17, 5, 4) };
        assert_eq!(early.to_string(), "timer 17 fired at tick 4, before its deadline 5");
    }
}
