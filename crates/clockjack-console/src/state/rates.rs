//! Rates: the differences between two inspections.

use std::collections::{BTreeMap, VecDeque};

use clockjack_actor::SystemMetrics;
use clockjack_exec::{ExecStats, Handle, WorkerStats};

use super::{float, float_of, seconds_between};
use crate::{Target, view::Number};

/// Actors whose last readings are kept.
const FOLLOWED_MAX: usize = 1_024;
/// Actors whose last minute is kept.
const HISTORIES_MAX: usize = 16;
const HISTORY_LEN: usize = 60;
const SECOND_NS: u64 = 1_000_000_000;
/// Rates are those of a window that is at least so long, and at most twice as long. Within the
/// first one, of the time since the first look.
pub(crate) const WINDOW_NS: u64 = SECOND_NS;
/// The lateness of timers is that of this window: a hundredth of a few timers is none of them.
const LATE_WINDOW_NS: u64 = 3 * SECOND_NS;
/// Looks at the lateness that are kept.
const LATE_MAX: usize = 32;

/// What is read at an inspection.
#[derive(Clone, Default)]
pub(crate) struct Counters {
    pub(crate) at_ns: u64,
    pub(crate) system: SystemMetrics,
    /// Of each executor.
    pub(crate) executors: Vec<ExecStats>,
    /// Of each worker, with the index of its executor.
    pub(crate) workers: Vec<(usize, WorkerStats)>,
    pub(crate) injector: usize,
}

/// The last inspection, and an earlier one to compare it with.
#[derive(Default)]
pub(crate) struct Rates {
    pub(crate) last: Option<Counters>,
    /// It becomes `before` once it is [`WINDOW_NS`] old.
    middle: Option<Counters>,
    before: Option<Counters>,
    /// How many timers were how late in all, at the looks of the last [`LATE_WINDOW_NS`].
    late: VecDeque<(u64, [u64; 16])>,
}

impl Counters {
    pub(crate) fn read(target: &Target, executors: &[(String, Handle)], at_ns: u64) -> Self {
        let workers = executors.iter().enumerate().flat_map(|(index, (_, handle))| {
            handle.worker_stats().into_iter().map(move |worker| (index, worker))
        });
        Self {
            at_ns,
            system: target.system().metrics(),
            executors: executors.iter().map(|(_, handle)| handle.stats()).collect(),
            workers: workers.collect(),
            injector: executors.iter().map(|(_, handle)| handle.executor().injector_len()).sum(),
        }
    }

    /// The sum of a figure over all executors.
    pub(crate) fn sum(&self, of: impl Fn(&ExecStats) -> u64) -> u64 {
        self.executors.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Tasks that wait for a worker.
    pub(crate) fn queue(&self) -> usize {
        self.injector + self.workers.iter().map(|(_, worker)| worker.queue_len).sum::<usize>()
    }
}

impl Rates {
    /// Adds an inspection; returns whether the next window begins with it.
    pub(crate) fn push(&mut self, new: Counters) -> bool {
        self.late.retain(|(at_ns, _)| new.at_ns.saturating_sub(*at_ns) <= LATE_WINDOW_NS);
        if self.late.len() == LATE_MAX {
            self.late.pop_front();
        }
        let late = core::array::from_fn(|at| new.sum(|stats| stats.timers_by_lateness[at]));
        self.late.push_back((new.at_ns, late));
        let is_due = |middle: &Counters| new.at_ns.saturating_sub(middle.at_ns) >= WINDOW_NS;
        let is_next = self.middle.as_ref().is_none_or(is_due);
        if is_next {
            self.before = self.middle.replace(new.clone());
        }
        // Until the first window is over, all that is known counts.
        if self.before.is_none() && self.last.is_some() {
            self.before.clone_from(&self.middle);
        }
        self.last = Some(new);
        is_next
    }

    /// The inspections between which the rates are.
    pub(crate) fn window(&self) -> Option<(&Counters, &Counters)> {
        Some((self.before.as_ref()?, self.last.as_ref()?))
    }

    /// The seconds between the inspections of a rate.
    pub(crate) fn seconds(&self) -> Option<f64> {
        seconds_between(self.before.as_ref()?.at_ns, self.last.as_ref()?.at_ns)
    }

    /// By how much a figure grows per second.
    pub(crate) fn rate(&self, of: impl Fn(&Counters) -> u64) -> Number {
        let rate = || {
            let (before, last) = (self.before.as_ref()?, self.last.as_ref()?);
            let grown = of(last).wrapping_sub(of(before));
            // A dispatcher that has left takes its figures along.
            let grown = if grown > u64::MAX / 2 { return None } else { grown };
            Some(float(grown) / self.seconds()?)
        };
        rate().into()
    }

    /// By how much a figure of one worker grows per second.
    pub(crate) fn of_worker(
        &self,
        executor: usize,
        worker: usize,
        of: impl Fn(&ExecStats) -> u64,
    ) -> Number {
        let is_it = |counters: &Counters| {
            let found = counters
                .workers
                .iter()
                .find(|(index, one)| (*index, one.worker) == (executor, worker));
            found.map(|(_, one)| of(&one.counts))
        };
        let rate = || {
            let (before, last) = (self.before.as_ref()?, self.last.as_ref()?);
            let grown = is_it(last)?.checked_sub(is_it(before)?)?;
            Some(float(grown) / self.seconds()?)
        };
        rate().into()
    }

    /// How many timers were how late in the last seconds.
    pub(crate) fn lateness(&self) -> Option<[u64; 16]> {
        let ((_, before), (_, last)) = (self.late.front()?, self.late.back()?);
        if self.late.len() < 2 {
            return None;
        }
        Some(core::array::from_fn(|at| last[at].saturating_sub(before[at])))
    }
}

/// The lateness that 99 of 100 timers do not exceed: the smallest of its range.
pub(crate) fn late_p99(late: &[u64; 16]) -> Option<u64> {
    let n: u64 = late.iter().sum();
    if n == 0 {
        return None;
    }
    let mut rest = n - n / 100;
    for (bucket, count) in late.iter().enumerate() {
        if *count >= rest {
            return Some(if bucket == 0 { 0 } else { 1 << (bucket - 1) });
        }
        rest -= count;
    }
    None
}

/// The range in which a lateness is.
pub(crate) fn late_bucket(ticks: u64) -> usize {
    (u64::BITS - ticks.leading_zeros()).min(15) as usize
}

/// Single actors that are looked at.
#[derive(Default)]
pub(crate) struct Follow {
    readings: BTreeMap<String, Reading>,
    histories: BTreeMap<String, History>,
}

#[derive(Clone, Copy)]
struct Reading {
    pid_hash: u64,
    taken: usize,
    at_ns: u64,
    rate: Option<f64>,
}

/// The last minute of an actor.
#[derive(Default)]
pub(crate) struct History {
    asked_ns: u64,
    last_ns: u64,
    pub(crate) depth: VecDeque<Number>,
    pub(crate) rate: VecDeque<Number>,
}

impl Follow {
    /// The rate of an actor between this reading and an earlier one. Readings in quick succession
    /// have the same rate.
    pub(crate) fn rate(
        &mut self,
        path: &str,
        generation: u64,
        taken: usize,
        now_ns: u64,
    ) -> Option<f64> {
        let new = Reading { pid_hash: generation, taken, at_ns: now_ns, rate: None };
        let Some(old) = self.readings.get(path).copied().filter(|one| one.pid_hash == generation)
        else {
            if self.readings.len() >= FOLLOWED_MAX {
                let oldest = self.readings.iter().min_by_key(|(_, one)| one.at_ns);
                let oldest = oldest.map(|(path, _)| path.clone());
                oldest.map(|path| self.readings.remove(&path));
            }
            self.readings.insert(path.to_owned(), new);
            return None;
        };
        let seconds = seconds_between(old.at_ns, now_ns).filter(|seconds| *seconds >= 0.1);
        let Some(seconds) = seconds else { return old.rate };
        let rate = Some(float_of(taken.wrapping_sub(old.taken)) / seconds);
        self.readings.insert(path.to_owned(), Reading { rate, ..new });
        rate
    }

    /// Somebody looks at this actor.
    pub(crate) fn history(&mut self, path: &str, now_ns: u64) -> Option<&History> {
        if self.histories.len() >= HISTORIES_MAX && !self.histories.contains_key(path) {
            let oldest = self.histories.iter().min_by_key(|(_, one)| one.asked_ns);
            let oldest = oldest.map(|(path, _)| path.clone())?;
            self.histories.remove(&oldest);
        }
        let history = self.histories.entry(path.to_owned()).or_default();
        history.asked_ns = now_ns;
        Some(history)
    }

    /// Adds a second to each history; forgets those that nobody asks for.
    pub(crate) fn advance(&mut self, target: &Target, now_ns: u64) {
        self.histories.retain(|_, one| now_ns.saturating_sub(one.asked_ns) < 60 * SECOND_NS);
        let due = |one: &History| now_ns.saturating_sub(one.last_ns) >= SECOND_NS;
        let paths: Vec<String> = self
            .histories
            .iter()
            .filter(|(_, one)| due(one))
            .map(|(path, _)| path.clone())
            .collect();
        for path in paths {
            let read = target.system().inspect_path(&path, |actor| {
                (actor.mailbox().0, actor.positions().1, actor.pid().generation().get())
            });
            let Some((depth, taken, generation)) = read else { continue };
            let rate = self.rate(&path, generation, taken, now_ns);
            let Some(history) = self.histories.get_mut(&path) else { continue };
            history.last_ns = now_ns;
            for (all, new) in
                [(&mut history.depth, Number::size(depth)), (&mut history.rate, rate.into())]
            {
                if all.len() == HISTORY_LEN {
                    all.pop_front();
                }
                all.push_back(new);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.readings.len() * 128 + self.histories.len() * HISTORY_LEN * 2 * size_of::<Number>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_of_lateness_is_the_range_in_which_the_hundredth_timer_is() {
        let mut late = [0; 16];
        assert_eq!(late_p99(&late), None);
        late[0] = 99;
        late[5] = 1;
        assert_eq!(late_p99(&late), Some(0));
        late[5] = 2;
        assert_eq!(late_p99(&late), Some(16));
    }

    /// What is read at this time, if so many steps were made, and so many timers were late.
    fn counters(at_ms: u64, steps: u64, late: [u64; 2]) -> Counters {
        let mut stats = ExecStats::default();
        stats.steps = steps;
        (stats.timers_by_lateness[0], stats.timers_by_lateness[8]) = (late[0], late[1]);
        Counters { at_ns: at_ms * 1_000_000, executors: vec![stats], ..Counters::default() }
    }

    #[test]
    fn a_rate_is_that_of_a_second_or_two_and_not_of_the_moment_between_two_looks() {
        let mut rates = Rates::default();
        let steps = |counters: &Counters| counters.sum(|stats| stats.steps);
        let mut seen = Vec::new();
        for quarter in 0..40 {
            // A hundred steps at once, every second.
            rates.push(counters(250 * quarter, 100 * (quarter / 4), [0; 2]));
            seen.push(rates.rate(steps).value);
            let seconds = rates.seconds().unwrap_or(0.0);
            assert!(seconds <= 2.0 && (quarter < 4 || seconds >= 1.0), "{seconds}");
        }
        assert_eq!((seen[0], seen[1], seen[4]), (None, Some(0.0), Some(100.0)));
        let is_steady =
            |rate: &Option<f64>| rate.is_some_and(|rate| (50.0..=120.0).contains(&rate));
        assert!(seen[4..].iter().all(is_steady), "{seen:?}");
    }

    #[test]
    fn lateness_is_that_of_the_last_three_seconds() {
        let mut rates = Rates::default();
        assert_eq!(rates.lateness(), None);
        for quarter in 0..40 {
            rates.push(counters(250 * quarter, 0, [10 * quarter, u64::from(quarter >= 20)]));
            let late = rates.lateness();
            assert_eq!(late.is_none(), quarter == 0);
            let expected = (10 * quarter.min(12), u64::from((20..32).contains(&quarter)));
            assert_eq!(late.map_or((0, 0), |late| (late[0], late[8])), expected, "{quarter}");
        }
    }

    #[test]
    fn a_rate_is_the_difference_of_two_readings_of_the_same_actor() {
        let mut follow = Follow::default();
        assert_eq!(follow.rate("/user/a", 1, 100, 0), None);
        assert_eq!(follow.rate("/user/a", 1, 300, 2 * SECOND_NS), Some(100.0));
        assert_eq!(follow.rate("/user/a", 1, 300, 2 * SECOND_NS + 1), Some(100.0));
        // Another actor of the same name.
        assert_eq!(follow.rate("/user/a", 2, 5, 3 * SECOND_NS), None);
        // Counters wrap around.
        assert_eq!(follow.rate("/user/b", 1, usize::MAX, 0), None);
        assert_eq!(follow.rate("/user/b", 1, 4, SECOND_NS), Some(5.0));
    }

    #[test]
    fn actors_that_are_followed_are_bounded() {
        let mut follow = Follow::default();
        for n in 0..5_000 {
            follow.rate(&format!("/user/{n}"), 1, 0, n);
            follow.history(&format!("/user/{n}"), n);
        }
        assert_eq!((follow.readings.len(), follow.histories.len()), (FOLLOWED_MAX, HISTORIES_MAX));
    }
}
