//! The load: how many actors there are, which keys each of them arms, replaces and cancels, and
//! which delays the timers have. The same for every subject and every run.

use core::iter;
use core::time::Duration;

use super::subject::Case;
use crate::receiver::Ends;
use crate::rng::Rng;

/// The seed of all delays. Another seed gives other delays and, within noise, equal figures.
const SEED: u64 = 42;

/// Keys of the one actor of `arm-cancel`: this many timers are armed before they are cancelled.
const N_KEYS_ARM_CANCEL: u32 = 64;
/// Actors of `arm-fire`; each has at most one armed timer.
const N_ACTORS_ARM_FIRE: u32 = 1_000;
/// Keys of each actor of `keyed-100k`.
const N_KEYS_KEYED: u32 = 100;

/// `keyed-100k`: the half of the keys that is armed twice, the quarter that is cancelled, and the
/// quarter that is armed once and fires.
const REPLACED: Keys = Keys { first: 0, step: 2, end: N_KEYS_KEYED };
const CANCELLED: Keys = Keys { first: 1, step: 4, end: N_KEYS_KEYED };
const KEPT: Keys = Keys { first: 3, step: 4, end: N_KEYS_KEYED };

/// The number of different delays of a load, after which they repeat.
const N_FRACTIONS: usize = 4_096;

/// Keys of one actor: from `first` to below `end`, each `step`-th.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    first: u32,
    step: u32,
    end: u32,
}

impl Keys {
    const fn up_to(end: u32) -> Self {
        Self { first: 0, step: 1, end }
    }

    /// The keys of an actor with `n_keys` keys.
    pub(crate) fn of(self, n_keys: u32) -> impl Iterator<Item = u32> {
        (self.first..self.end.min(n_keys)).step_by(self.step as usize)
    }
}

/// When timers are due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Horizon {
    /// After 30 to 90 s: longer than any pass.
    Far,
    /// After 150 to 250 ms, so that every subject has armed all of its timers before.
    Soon,
    /// After 1 to 4 ms.
    Short,
}

impl Horizon {
    /// The shortest delay, and by how much the longest is longer.
    const fn range(self) -> (Duration, Duration) {
        match self {
            Self::Far => (Duration::from_secs(30), Duration::from_secs(60)),
            Self::Soon => (Duration::from_millis(150), Duration::from_millis(100)),
            Self::Short => (Duration::from_millis(1), Duration::from_millis(3)),
        }
    }
}

/// What the driver asks of every actor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// Arms these keys; timers that they have are replaced.
    Arm(Keys, Horizon),
    /// Cancels the timers of these keys.
    Cancel(Keys),
}

/// What the driver does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Sends a command to all actors and waits until each has carried it out.
    Send(Command),
    /// Waits, so that a subject whose timer is a task has run that task.
    Pause,
}

/// The work of the actors of a case with `n` timers.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) case: Case,
    pub(crate) n: u32,
    pub(crate) n_actors: u32,
    pub(crate) steps: Vec<Step>,
    /// The variation of the delays, in parts of 65536.
    fractions: Vec<u32>,
}

/// The part of a load that one actor does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) n_keys: u32,
    /// Timers that the actor arms one after the other, each when the previous one has fired.
    pub(crate) n_chained: u32,
}

impl Load {
    pub(crate) fn new(case: Case, n: u32) -> Self {
        let mut rng = Rng::new(SEED);
        let fractions = iter::repeat_with(|| rng.below(1 << 16)).take(N_FRACTIONS).collect();
        let n_actors = match case {
            Case::ArmCancel => 1,
            Case::ArmFire => n.min(N_ACTORS_ARM_FIRE),
            Case::Keyed => n.div_ceil(N_KEYS_KEYED),
        };
        Self { case, n, n_actors, steps: steps(case, n), fractions }
    }

    /// The part of the actor with this index.
    pub(crate) const fn share(&self, index: u32) -> Share {
        let n_rest = self.n % self.n_actors;
        let n_own = self.n / self.n_actors + if index < n_rest { 1 } else { 0 };
        match self.case {
            Case::ArmCancel => Share { n_keys: N_KEYS_ARM_CANCEL, n_chained: 0 },
            Case::ArmFire => Share { n_keys: 1, n_chained: n_own - 1 },
            Case::Keyed => Share { n_keys: n_own, n_chained: 0 },
        }
    }

    /// The delay at this position in the sequence of delays.
    pub(crate) fn delay(&self, horizon: Horizon, place: usize) -> Duration {
        let (shortest, spread) = horizon.range();
        shortest + spread * self.fractions[place % N_FRACTIONS] / (1 << 16)
    }

    /// How many timers must fire and how many must be dropped; the sum is the number of calls that
    /// arm one.
    pub(crate) fn expected(&self) -> Ends {
        match self.case {
            Case::ArmCancel => Ends { fired: 0, dropped: self.n },
            Case::ArmFire => Ends { fired: self.n, dropped: 0 },
            Case::Keyed => {
                let n_of = |keys: Keys| {
                    let n_of_actor = |index| keys.of(self.share(index).n_keys).map(|_| 1).sum();
                    (0..self.n_actors).map::<u32, _>(n_of_actor).sum::<u32>()
                };
                let (n_replaced, n_cancelled) = (n_of(REPLACED), n_of(CANCELLED));
                Ends { fired: self.n - n_cancelled, dropped: n_replaced + n_cancelled }
            }
        }
    }
}

fn steps(case: Case, n: u32) -> Vec<Step> {
    let arm = |keys, horizon| Step::Send(Command::Arm(keys, horizon));
    let cancel = |keys| Step::Send(Command::Cancel(keys));
    match case {
        Case::ArmCancel => {
            let n_last = n % N_KEYS_ARM_CANCEL;
            let full = iter::repeat_n(N_KEYS_ARM_CANCEL, (n / N_KEYS_ARM_CANCEL) as usize);
            let all = full.chain((n_last > 0).then_some(n_last)).map(Keys::up_to);
            all.flat_map(|keys| [arm(keys, Horizon::Far), cancel(keys)]).collect()
        }
        Case::ArmFire => vec![arm(Keys::up_to(1), Horizon::Short)],
        Case::Keyed => vec![
            arm(REPLACED, Horizon::Far),
            arm(CANCELLED, Horizon::Far),
            arm(KEPT, Horizon::Soon),
            Step::Pause,
            arm(REPLACED, Horizon::Soon),
            cancel(CANCELLED),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Command, Ends, Horizon, Load, Step};

    const SIZES: [u32; 8] = [1, 2, 3, 64, 65, 100, 1_030, 100_000];

    /// The calls that arm and that cancel, counted along the steps of all actors.
    fn calls(load: &Load) -> (u32, u32) {
        let (mut n_armed, mut n_cancelled) = (0, 0);
        for share in (0..load.n_actors).map(|index| load.share(index)) {
            n_armed += share.n_chained;
            for step in &load.steps {
                match step {
                    Step::Send(Command::Arm(keys, _)) => {
                        n_armed += keys.of(share.n_keys).map(|_| 1).sum::<u32>();
                    }
                    Step::Send(Command::Cancel(keys)) => {
                        n_cancelled += keys.of(share.n_keys).map(|_| 1).sum::<u32>();
                    }
                    Step::Pause => {}
                }
            }
        }
        (n_armed, n_cancelled)
    }

    #[test]
    fn every_timer_that_is_armed_fires_or_is_cancelled_or_is_replaced() {
        for case in Case::ALL {
            for n in SIZES {
                let load = Load::new(case, n);
                let (n_armed, n_cancelled) = calls(&load);
                let Ends { fired, dropped } = load.expected();
                assert_eq!(fired + dropped, n_armed, "{case:?} {n}");
                // A replaced key is armed twice, so the calls beyond n are replacements.
                assert_eq!(dropped, n_cancelled + (n_armed - n), "{case:?} {n}");
                assert_eq!(fired + n_cancelled, n, "{case:?} {n}");
            }
        }
    }

    #[test]
    fn a_hundred_thousand_keyed_timers_are_a_hundred_of_each_of_a_thousand_actors() {
        let load = Load::new(Case::Keyed, 100_000);
        assert_eq!(load.n_actors, 1_000);
        assert!((0..1_000).all(|index| load.share(index).n_keys == 100), "{load:?}");
        assert_eq!(load.expected(), Ends { fired: 75_000, dropped: 75_000 });
    }

    #[test]
    fn delays_are_spread_over_their_horizon() {
        let load = Load::new(Case::ArmFire, 1);
        for horizon in [Horizon::Far, Horizon::Soon, Horizon::Short] {
            let (shortest, spread) = horizon.range();
            let delays = || (0..10_000).map(|place| load.delay(horizon, place));
            let (first, last) = (delays().min(), delays().max());
            let (first, last) = (first.expect("there are delays"), last.expect("there are delays"));
            assert!(first >= shortest && first < shortest + spread / 100, "{first:?}");
            assert!(last < shortest + spread && last > shortest + spread / 100 * 99, "{last:?}");
        }
    }
}
