//! Samples of what each worker runs: shares of time with their error, and polls that last.

use std::collections::BTreeMap;

use clockjack_exec::Handle;

use super::float;
use crate::view::Number;

/// The largest number of tasks that are distinguished within a window.
const TASKS_MAX: usize = 4_096;
/// How long a window is; shares are those of the current one and of the one before.
const WINDOW_NS: u64 = 1_000_000_000;
/// The largest number of workers that are distinguished.
const WORKERS_MAX: usize = 1_024;
/// What a 95 % confidence interval spans, in standard deviations to either side.
const Z_95: f64 = 1.96;

/// A task: the index of its executor in the list of executors, and that in the registry.
pub(crate) type Place = (usize, u32);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Samples {
    workers: Vec<WorkerSamples>,
    current: Window,
    previous: Window,
    /// The time of the last sample that the sampling thread took.
    last_ns: Option<u64>,
    pub(crate) lost: u64,
}

#[derive(Default)]
struct Window {
    begin_ns: Option<u64>,
    /// How many samples were taken.
    n: u64,
    tasks: BTreeMap<Place, u64>,
}

/// What was seen of a worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSamples {
    pub(crate) executor: usize,
    pub(crate) worker: usize,
    /// The task that it was seen running at the last sample, the number of the poll, and since
    /// when.
    pub(crate) running: Option<(u32, u32, u64)>,
    pub(crate) longest_ns: u64,
    /// Samples in which it was busy, in the current window and in the one before.
    busy: [u64; 2],
    seen: [u64; 2],
}

/// A part of `n` samples, and its error: that of a proportion, plus the resolution of one sample.
fn proportion(hits: u64, n: u64) -> Number {
    if n == 0 {
        return Number::UNKNOWN;
    }
    let (p, n) = (float(hits) / float(n), float(n));
    Number::sampled(p, Z_95 * (p * (1.0 - p) / n).sqrt() + 1.0 / n)
}

impl Samples {
    /// Looks at all workers once.
    pub(crate) fn take(&mut self, executors: &[(String, Handle)], now_ns: u64) {
        if self.current.begin_ns.is_none_or(|begin| now_ns.saturating_sub(begin) >= WINDOW_NS) {
            self.rotate(now_ns);
        }
        self.current.n += 1;
        for (index, (_, handle)) in executors.iter().enumerate() {
            handle.executor().sample(|worker, poll| self.see(index, worker, poll, now_ns));
        }
    }

    /// Counts samples that the sampling thread should have taken since its last one.
    pub(crate) fn count_lost(&mut self, now_ns: u64, period_ns: u64) {
        let gap = self.last_ns.map_or(0, |last| now_ns.saturating_sub(last));
        // A thread that comes one period late has lost nothing that matters.
        self.lost += (gap / period_ns.max(1)).saturating_sub(2);
        self.last_ns = Some(now_ns);
    }

    fn rotate(&mut self, now_ns: u64) {
        let next = Window { begin_ns: Some(now_ns), ..Window::default() };
        self.previous = core::mem::replace(&mut self.current, next);
        // A worker that was not seen for two windows has left.
        self.workers.retain(|worker| worker.seen.iter().any(|n| *n > 0));
        for worker in &mut self.workers {
            worker.busy = [0, worker.busy[0]];
            worker.seen = [0, worker.seen[0]];
        }
    }

    fn see(&mut self, executor: usize, worker: usize, poll: Option<(u32, u32)>, now_ns: u64) {
        let known =
            self.workers.iter().position(|one| (one.executor, one.worker) == (executor, worker));
        let at = match known {
            Some(at) => at,
            None if self.workers.len() == WORKERS_MAX => return,
            None => {
                let (busy, seen) = ([0; 2], [0; 2]);
                let new =
                    WorkerSamples { executor, worker, running: None, longest_ns: 0, busy, seen };
                self.workers.push(new);
                self.workers.len() - 1
            }
        };
        let one = &mut self.workers[at];
        one.seen[0] += 1;
        let Some((task, number)) = poll else {
            one.running = None;
            return;
        };
        one.busy[0] += 1;
        let since = match one.running {
            Some((same_task, same_poll, since)) if (same_task, same_poll) == (task, number) => {
                since
            }
            _ => now_ns,
        };
        one.running = Some((task, number, since));
        one.longest_ns = one.longest_ns.max(now_ns.saturating_sub(since));
        let tasks = &mut self.current.tasks;
        if tasks.len() < TASKS_MAX || tasks.contains_key(&(executor, task)) {
            *tasks.entry((executor, task)).or_default() += 1;
        }
    }

    /// The part of the last seconds in which a worker was running this task.
    pub(crate) fn share_of(&self, place: Place) -> Number {
        let hits = |window: &Window| window.tasks.get(&place).copied().unwrap_or(0);
        let n = self.current.n + self.previous.n;
        proportion(hits(&self.current) + hits(&self.previous), n)
    }

    /// The tasks that ran the longest, with their shares.
    pub(crate) fn top(&self, n: usize) -> Vec<(Place, Number)> {
        let mut places: Vec<Place> =
            self.current.tasks.keys().chain(self.previous.tasks.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        let mut all: Vec<_> =
            places.into_iter().map(|place| (place, self.share_of(place))).collect();
        all.sort_by(|a, b| b.1.or_zero().total_cmp(&a.1.or_zero()));
        all.truncate(n);
        all
    }

    pub(crate) fn workers(&self) -> &[WorkerSamples] {
        &self.workers
    }

    /// The part of their time in which all workers were busy.
    pub(crate) fn busy(&self) -> Number {
        let (busy, seen) = self.workers.iter().fold((0, 0), |(busy, seen), one| {
            (busy + one.busy.iter().sum::<u64>(), seen + one.seen.iter().sum::<u64>())
        });
        proportion(busy, seen)
    }

    pub(crate) fn bytes(&self) -> usize {
        let tasks = self.current.tasks.len() + self.previous.tasks.len();
        tasks * 48 + self.workers.len() * size_of::<WorkerSamples>()
    }
}

impl WorkerSamples {
    /// The part of the last seconds in which it was busy.
    pub(crate) fn busy(&self) -> Number {
        proportion(self.busy.iter().sum(), self.seen.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sample of one worker every millisecond, busy with task 7 in the first `of_ten` of ten.
    fn sampled(of_ten: u64) -> Samples {
        let mut samples = Samples::default();
        for ms in 0..2_000 {
            if ms % 1_000 == 0 {
                samples.rotate(ms * MS);
            }
            samples.current.n += 1;
            let number = u32::try_from(ms).unwrap();
            samples.see(0, 0, (ms % 10 < of_ten).then_some((7, number)), ms * MS);
        }
        samples
    }

    #[test]
    fn a_share_is_within_the_error_that_it_states() {
        for of_ten in [0, 1, 4, 9, 10] {
            let samples = sampled(of_ten);
            let truth = float(of_ten) / 10.0;
            for number in [samples.share_of((0, 7)), samples.busy(), samples.workers()[0].busy()] {
                let crate::view::Tag::Sampled(error) = number.tag else { panic!("{number:?}") };
                assert!((number.or_zero() - truth).abs() <= error, "{of_ten}: {number:?}");
                assert!(error < 0.03, "{of_ten}: {number:?}");
            }
        }
    }

    #[test]
    fn nothing_is_known_without_samples() {
        assert!(Samples::default().share_of((0, 7)).is_unknown());
        assert!(Samples::default().busy().is_unknown());
    }

    #[test]
    fn the_length_of_a_poll_is_seen_as_long_as_its_number_stays() {
        let mut samples = Samples::default();
        for (ms, number) in [(0, 1), (10, 1), (20, 1), (30, 3)] {
            samples.see(0, 0, Some((7, number)), ms * MS);
        }
        let worker = &samples.workers()[0];
        assert_eq!(worker.longest_ns, 20 * MS);
        assert_eq!(worker.running, Some((7, 3, 30 * MS)));
    }

    #[test]
    fn what_is_sampled_is_bounded() {
        let mut samples = Samples::default();
        for task in 0..100_000 {
            samples.see(0, usize::try_from(task).unwrap() % 5_000, Some((task, 1)), 1);
        }
        assert!(samples.current.tasks.len() <= TASKS_MAX && samples.workers.len() <= WORKERS_MAX);
    }

    #[test]
    fn a_sampling_thread_that_comes_late_has_lost_samples() {
        let mut samples = Samples::default();
        for ms in [0, 1, 2, 12] {
            samples.count_lost(ms * MS, MS);
        }
        assert_eq!(samples.lost, 8);
    }
}
