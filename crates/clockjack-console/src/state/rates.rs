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

/// The last two inspections.
#[derive(Default)]
pub(crate) struct Rates {
    pub(crate) last: Option<Counters>,
    pub(crate) before: Option<Counters>,
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
    pub(crate) fn push(&mut self, new: Counters) {
        self.before = self.last.replace(new);
    }

    /// The seconds between the last two inspections.
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

    /// How many timers were how late since the inspection before.
    pub(crate) fn lateness(&self) -> Option<[u64; 16]> {
        let (before, last) = (self.before.as_ref()?, self.last.as_ref()?);
        let mut late = [0; 16];
        for (at, late) in late.iter_mut().enumerate() {
            let of = |stats: &ExecStats| stats.timers_by_lateness[at];
            *late = last.sum(of).saturating_sub(before.sum(of));
        }
        Some(late)
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
