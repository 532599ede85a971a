//! How many failures are written: a fixed window with a limit per actor and a limit for all.

use core::time::Duration;

use clockjack_actor::ActorPath;

use crate::OsInstant;

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(1);
/// The failures of one actor that are written in a window: an actor that fails in a loop leaves
/// room for the others.
const PER_ACTOR_MAX: u32 = 3;
/// The failures that are written in a window.
const ALL_MAX: usize = 20;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    began: Option<OsInstant>,
    /// The actors whose failures were written in this window, with their number; at most
    /// [`ALL_MAX`].
    written: Vec<(ActorPath, u32)>,
    n_written: usize,
    n_suppressed: u64,
}

/// What happens to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is written.
    Write {
        /// The number of failures that were suppressed in earlier windows and not reported yet.
        n_suppressed: u64,
        /// Whether the next failure of this actor in this window is suppressed.
        is_last: bool,
    },
    /// It is only counted.
    Suppress,
}

impl RateLimit {
    /// Decides about a failure of the actor at `path`.
    pub(super) fn check(&mut self, now: OsInstant, path: &ActorPath) -> Verdict {
        let began = *self.began.get_or_insert(now);
        let mut n_suppressed = 0;
        if now.saturating_since(began) >= WINDOW {
            self.began = Some(now);
            self.written.clear();
            self.n_written = 0;
            n_suppressed = self.take_suppressed();
        }
        let index = self.written.iter().position(|(other, _)| other == path);
        let n = index.map_or(0, |index| self.written[index].1);
        if n >= PER_ACTOR_MAX || self.n_written >= ALL_MAX {
            self.n_suppressed = self.n_suppressed.saturating_add(1);
            return Verdict::Suppress;
        }
        match index {
            Some(index) => self.written[index].1 += 1,
            None => self.written.push((path.clone(), 1)),
        }
        self.n_written += 1;
        Verdict::Write {
            n_suppressed,
            is_last: n + 1 == PER_ACTOR_MAX || self.n_written == ALL_MAX,
        }
    }

    /// Takes the number of suppressed failures that were not reported yet.
    pub(super) fn take_suppressed(&mut self) -> u64 {
        core::mem::take(&mut self.n_suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(name: &str) -> ActorPath {
        ActorPath::root().child("user").child(name)
    }

    fn write(n_suppressed: u64, is_last: bool) -> Verdict {
        Verdict::Write { n_suppressed, is_last }
    }

    #[test]
    fn an_actor_that_fails_in_a_loop_is_counted_and_leaves_room_for_others() {
        let (mut limit, now) = (RateLimit::default(), OsInstant::now());
        let [bad, good] = ["bad", "good"].map(actor);
        let verdicts: Vec<_> = (0..100).map(|_| limit.check(now, &bad)).collect();
        assert_eq!(verdicts[..3], [write(0, false), write(0, false), write(0, true)]);
        assert!(verdicts[3..].iter().all(|verdict| *verdict == Verdict::Suppress));
        assert_eq!(limit.check(now, &good), write(0, false));
        let later = now.saturating_add(WINDOW);
        assert_eq!(limit.check(later, &good), write(97, false), "the next window tells the number");
        assert_eq!(limit.check(later, &bad), write(0, false), "once");
    }

    #[test]
    fn many_actors_share_one_limit_and_the_rest_is_not_forgotten() {
        let (mut limit, now) = (RateLimit::default(), OsInstant::now());
        let n_written =
            (0..1_000).filter(|n| limit.check(now, &actor(&format!("{n}"))) != Verdict::Suppress);
        assert_eq!(n_written.count(), ALL_MAX);
        assert!(limit.written.len() <= ALL_MAX, "the memory is bounded");
        assert_eq!(limit.take_suppressed(), 1_000 - ALL_MAX as u64);
        assert_eq!(limit.take_suppressed(), 0);
    }
}
