//! The law that every run is held to, by books that the scheduler knows nothing of.
//!
//! The books have the tick at which each job must run next. A run strikes that off and enters the
//! one after it: for a fixed rate the next point of the grid that its first run began, for a fixed
//! delay so many ticks after the run. So a scheduler that runs a job early, twice, off its grid or
//! after its cancel is found out, and so is one that forgets a job.

use clockjack_sched::{BatchMode, CatchUp, ExecutionBatch, JobNumber};

use super::violation::Violation;
use crate::rng::mix;

/// A run, as its handler saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Which job: how many were registered before it.
    pub(crate) number: u32,
    /// What the scheduler calls the job.
    pub(crate) job: JobNumber,
    pub(crate) due: u64,
    pub(crate) at: u64,
    pub(crate) batch: ExecutionBatch,
}

/// What the books are opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) policy: CatchUp,
    /// A leap of more ticks than this folds what it has passed, whatever the policy is.
    pub(crate) jump_ticks: u64,
}

/// The books of one run.
#[derive(Debug)]
pub(crate) struct Checker {
    rules: Rules,
    /// By number.
    pages: Vec<Page>,
    /// All that was due by this tick has run.
    settled: u64,
    /// Where the clock stands.
    now: u64,
    leap: Option<Leap>,
    /// Due tick and number of the first run of a job that came last.
    last_first: Option<(u64, u32)>,
    last_at: u64,
    counts: Counts,
    digest: Digest,
}

/// What the books have counted of one kind of job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) jobs: u32,
    /// Calls of handlers.
    pub(crate) calls: u64,
    /// Runs that they stand for.
    pub(crate) runs: u64,
    pub(crate) cancelled: u32,
    /// Jobs that have run for the last time.
    pub(crate) completed: u32,
}

impl Count {
    fn add(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            calls: self.calls + other.calls,
            runs: self.runs + other.runs,
            cancelled: self.cancelled + other.cancelled,
            completed: self.completed + other.completed,
        }
    }

    /// Jobs that live.
    pub(crate) const fn active(&self) -> u32 {
        self.jobs - self.cancelled - self.completed
    }
}

/// What the books have counted, by kind of job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) once: Count,
    pub(crate) fixed_rate: Count,
    pub(crate) fixed_delay: Count,
}

impl Counts {
    pub(crate) fn all(&self) -> Count {
        self.once.add(self.fixed_rate).add(self.fixed_delay)
    }

    const fn of(&mut self, mode: BatchMode) -> &mut Count {
        match mode {
            BatchMode::OneShot => &mut self.once,
            BatchMode::FixedRate => &mut self.fixed_rate,
            BatchMode::FixedDelay => &mut self.fixed_delay,
        }
    }
}

/// A digest of who ran for which tick, when and for how many runs, in order. Equal for equal
/// orders, and otherwise different but for a chance of 2^-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    /// Jobs are numbered from zero on.
    pub(crate) fn enter(&mut self, number: u64, [due, at, runs]: [u64; 3]) {
        // Each step is a bijection of what came before, so no difference is forgotten by itself.
        self.0 = mix(self.0 ^ due).wrapping_add(number);
        self.0 = mix(self.0 ^ at).wrapping_add(runs);
    }
}

#[derive(Clone, Copy, Debug)]
struct Page {
    mode: BatchMode,
    period: u64,
    /// When it must run next.
    state: State,
    has_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due(u64),
    Completed,
    Cancelled,
}

#[derive(Clone, Copy, Debug)]
struct Leap {
    from: u64,
    to: u64,
}

impl Checker {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self {
            rules,
            pages: Vec::new(),
            settled: 0,
            now: 0,
            leap: None,
            last_first: None,
            last_at: 0,
            counts: Counts {
                once: Count { jobs: 0, calls: 0, runs: 0, cancelled: 0, completed: 0 },
                fixed_rate: Count { jobs: 0, calls: 0, runs: 0, cancelled: 0, completed: 0 },
                fixed_delay: Count { jobs: 0, calls: 0, runs: 0, cancelled: 0, completed: 0 },
            },
            digest: Digest(0),
        }
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) const fn digest(&self) -> Digest {
        self.digest
    }

    /// Opens the page of the next job, which is to run `delay` ticks from now.
    pub(crate) fn registered(&mut self, mode: BatchMode, delay: u32, period: u32) {
        let state = State::Due(self.now + u64::from(delay));
        self.pages.push(Page { mode, period: u64::from(period), state, has_run: false });
        self.counts.of(mode).jobs += 1;
    }

    /// The clock has leapt, and nothing has run.
    pub(crate) const fn leapt(&mut self, to: u64) {
        self.leap = Some(Leap { from: self.now, to });
        self.now = to;
    }

    /// Enters a run, while the clock is on its way to `until`.
    pub(crate) fn ran(&mut self, run: Run, until: u64) -> Result<(), Violation> {
        let Some(page) = self.pages.get(run.number as usize).copied() else {
            return Err(Violation::Ended { run });
        };
        let State::Due(due) = page.state else { return Err(Violation::Ended { run }) };
        if run.job != (JobNumber { shard: 0, number: u64::from(run.number) + 1 }) {
            return Err(Violation::OtherName { run });
        }
        if run.due != due {
            return Err(Violation::OtherDue { run, due });
        }
        if run.at < run.due {
            return Err(Violation::Early { run });
        }
        if run.at < self.last_at.max(self.settled) || run.at > until {
            return Err(Violation::OtherTime { run, until });
        }
        let is_leapt = self.leap.is_some_and(|leap| run.at == leap.to && run.due > leap.from);
        if run.at > run.due && !is_leapt {
            return Err(Violation::Late { run });
        }
        self.check_batch(run, page)?;
        let place = (run.due, run.number);
        if !page.has_run {
            if let Some(before) = self.last_first.filter(|before| *before >= place) {
                return Err(Violation::OutOfOrder { run, before: before.1 });
            }
            self.last_first = Some(place);
        }
        self.enter(run, page);
        Ok(())
    }

    /// How many runs one call stands for.
    fn check_batch(&self, run: Run, page: Page) -> Result<(), Violation> {
        let ExecutionBatch { runs, missed_runs, mode } = run.batch;
        let runs = u64::from(runs.get());
        let all = match page.mode {
            BatchMode::FixedRate => (run.at - run.due) / page.period + 1,
            _ => 1,
        };
        let has_jumped = self
            .leap
            .is_some_and(|leap| run.at == leap.to && leap.to - leap.from > self.rules.jump_ticks);
        let is_right = match self.rules.policy {
            CatchUp::Folded => runs == all,
            CatchUp::Individually => runs == 1 || (has_jumped && runs == all),
        };
        if is_right && u64::from(missed_runs) + 1 == runs && mode == page.mode {
            return Ok(());
        }
        Err(Violation::OtherBatch { run, owed: all })
    }

    fn enter(&mut self, run: Run, mut page: Page) {
        let runs = u64::from(run.batch.runs.get());
        page.has_run = true;
        page.state = match page.mode {
            BatchMode::OneShot => State::Completed,
            BatchMode::FixedRate => State::Due(run.due + runs * page.period),
            BatchMode::FixedDelay => State::Due(run.at + page.period),
        };
        self.pages[run.number as usize] = page;
        self.last_at = run.at;
        self.digest.enter(u64::from(run.number), [run.due, run.at, runs]);
        let count = self.counts.of(page.mode);
        count.calls += 1;
        count.runs += runs;
        count.completed += u32::from(page.state == State::Completed);
    }

    /// The clock stands at `now`, and all that was due by then has run.
    pub(crate) const fn settle(&mut self, now: u64) {
        self.now = now;
        self.settled = now;
    }

    /// Enters what a cancel answered.
    pub(crate) fn cancelled(&mut self, number: u32, won: bool) -> Result<(), Violation> {
        self.check_nothing_lost(number)?;
        let page = &mut self.pages[number as usize];
        let is_alive = matches!(page.state, State::Due(_));
        if won != is_alive {
            return Err(Violation::OtherCancel { number, won });
        }
        if won {
            page.state = State::Cancelled;
            let mode = page.mode;
            self.counts.of(mode).cancelled += 1;
        }
        Ok(())
    }

    /// Closes the books: nothing that was due was forgotten.
    pub(crate) fn finish(&self) -> Result<(), Violation> {
        (0..).zip(&self.pages).try_for_each(|(number, _)| self.check_nothing_lost(number))
    }

    /// Whether a handle reports of its job what the books say.
    pub(crate) fn check_handle(&self, number: u32, tells: Tells) -> Result<(), Violation> {
        let state = self.pages[number as usize].state;
        let is_completed = state == State::Completed;
        let is_cancelled = state == State::Cancelled;
        if tells == (Tells { is_completed, is_cancelled }) {
            return Ok(());
        }
        Err(Violation::OtherState { number, tells })
    }

    fn check_nothing_lost(&self, number: u32) -> Result<(), Violation> {
        match self.pages[number as usize].state {
            State::Due(due) if due <= self.settled => {
                Err(Violation::Lost { number, due, now: self.settled })
            }
            _ => Ok(()),
        }
    }
}

/// What a handle says of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tells {
    pub(crate) is_completed: bool,
    pub(crate) is_cancelled: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDIVIDUALLY: Rules = Rules { policy: CatchUp::Individually, jump_ticks: 100 };
    const FOLDED: Rules = Rules { policy: CatchUp::Folded, jump_ticks: 100 };
    const MODES: [BatchMode; 3] = [BatchMode::OneShot, BatchMode::FixedRate, BatchMode::FixedDelay];

    /// Job 0 runs once, 1 at a fixed rate and 2 with a fixed delay: first at tick 5, then each 10.
    fn books(rules: Rules) -> Checker {
        let mut checker = Checker::new(rules);
        checker.registered(BatchMode::OneShot, 5, 0);
        checker.registered(BatchMode::FixedRate, 5, 10);
        checker.registered(BatchMode::FixedDelay, 5, 10);
        checker
    }

    fn folded(number: u32, due: u64, at: u64, missed: u32) -> Run {
        let job = JobNumber { shard: 0, number: u64::from(number) + 1 };
        let mode = MODES.get(number as usize).copied().unwrap_or(BatchMode::OneShot);
        Run { number, job, due, at, batch: ExecutionBatch::folded(missed, mode) }
    }

    fn run(number: u32, due: u64, at: u64) -> Run {
        folded(number, due, at, 0)
    }

    /// All runs but the last are lawful; the last one is refused for `expected`.
    #[track_caller]
    fn refused(checker: &mut Checker, runs: &[Run], expected: Violation) {
        let (&last, lawful) = runs.split_last().expect("at least one");
        for &run in lawful {
            assert_eq!(checker.ran(run, 1_000), Ok(()), "{run:?}");
        }
        let before = (*checker.counts(), checker.digest());
        assert_eq!(checker.ran(last, 1_000), Err(expected));
        assert_eq!((*checker.counts(), checker.digest()), before, "it is not counted");
    }

    #[test]
    fn a_lawful_run_closes_the_books() {
        let mut checker = books(INDIVIDUALLY);
        for run in [run(0, 5, 5), run(1, 5, 5), run(2, 5, 5), run(2, 15, 15), run(1, 15, 15)] {
            assert_eq!(checker.ran(run, 20), Ok(()), "{run:?}");
        }
        checker.settle(20);
        assert_eq!(checker.cancelled(1, true), Ok(()));
        assert_eq!(checker.cancelled(1, false), Ok(()));
        assert_eq!(checker.cancelled(0, false), Ok(()));
        assert_eq!(checker.finish(), Ok(()));
        let all = checker.counts().all();
        assert_eq!((all.jobs, all.calls, all.runs), (3, 5, 5));
        assert_eq!((all.cancelled, all.completed, all.active()), (1, 1, 1));
    }

    #[test]
    fn an_early_run_is_reported() {
        let early = run(0, 5, 4);
        refused(&mut books(INDIVIDUALLY), &[early], Violation::Early { run: early });
    }

    #[test]
    fn a_late_run_is_reported_unless_the_clock_has_leapt_over_it() {
        let late = run(0, 5, 6);
        refused(&mut books(INDIVIDUALLY), &[late], Violation::Late { run: late });
        let mut checker = books(INDIVIDUALLY);
        checker.settle(4);
        checker.leapt(6);
        assert_eq!(checker.ran(late, 6), Ok(()));
        let mut checker = books(INDIVIDUALLY);
        checker.leapt(4);
        refused(&mut checker, &[late], Violation::Late { run: late });
    }

    #[test]
    fn a_one_shot_that_runs_twice_and_a_job_that_never_was_are_reported() {
        let again = run(0, 5, 5);
        refused(&mut books(INDIVIDUALLY), &[again, again], Violation::Ended { run: again });
        let unknown = run(3, 5, 5);
        refused(&mut books(INDIVIDUALLY), &[unknown], Violation::Ended { run: unknown });
    }

    #[test]
    fn a_run_after_a_cancel_is_reported() {
        for number in 0..3 {
            let mut checker = books(INDIVIDUALLY);
            assert_eq!(checker.cancelled(number, true), Ok(()));
            let dead = run(number, 5, 5);
            refused(&mut checker, &[dead], Violation::Ended { run: dead });
        }
    }

    #[test]
    fn a_run_off_the_grid_is_reported() {
        let off = run(1, 16, 16);
        let expected = Violation::OtherDue { run: off, due: 15 };
        refused(&mut books(INDIVIDUALLY), &[run(1, 5, 5), off], expected);
    }

    #[test]
    fn a_fixed_rate_keeps_its_grid_and_a_fixed_delay_counts_from_its_run_when_both_are_late() {
        let mut checker = books(INDIVIDUALLY);
        checker.leapt(8);
        for run in [run(1, 5, 8), run(2, 5, 8), run(1, 15, 15), run(2, 18, 18)] {
            assert_eq!(checker.ran(run, 20), Ok(()), "{run:?}");
        }
    }

    #[test]
    fn runs_are_folded_by_the_policy_or_a_jump_and_by_nothing_else() {
        let after_leap = |rules, to| {
            let mut checker = books(rules);
            checker.leapt(to);
            checker
        };
        assert_eq!(after_leap(FOLDED, 40).ran(folded(1, 5, 40, 3), 40), Ok(()));
        assert_eq!(after_leap(INDIVIDUALLY, 105).ran(folded(1, 5, 105, 10), 105), Ok(()));
        assert_eq!(after_leap(INDIVIDUALLY, 105).ran(run(1, 5, 105), 105), Ok(()));
        let cases = [(FOLDED, 2, 4), (FOLDED, 4, 4), (INDIVIDUALLY, 3, 4)];
        for (rules, missed, owed) in cases {
            let wrong = folded(1, 5, 40, missed);
            let expected = Violation::OtherBatch { run: wrong, owed };
            refused(&mut after_leap(rules, 40), &[wrong], expected);
        }
        let twice = folded(0, 5, 40, 1);
        let expected = Violation::OtherBatch { run: twice, owed: 1 };
        refused(&mut after_leap(FOLDED, 40), &[twice], expected);
    }

    #[test]
    fn first_runs_against_the_order_of_deadline_and_registration_are_reported() {
        let (second, first) = (run(1, 5, 5), run(0, 5, 5));
        let expected = Violation::OutOfOrder { run: first, before: 1 };
        refused(&mut books(INDIVIDUALLY), &[second, first], expected);
    }

    #[test]
    fn a_time_at_which_the_clock_did_not_stand_is_reported() {
        let mut checker = books(INDIVIDUALLY);
        let run = run(0, 5, 5);
        assert_eq!(checker.ran(run, 4), Err(Violation::OtherTime { run, until: 4 }));
        checker.settle(6);
        assert_eq!(checker.ran(run, 10), Err(Violation::OtherTime { run, until: 10 }));
    }

    #[test]
    fn another_name_is_reported() {
        let mut other = run(0, 5, 5);
        other.job.number = 7;
        refused(&mut books(INDIVIDUALLY), &[other], Violation::OtherName { run: other });
    }

    #[test]
    fn a_cancel_with_the_wrong_answer_is_reported() {
        let mut checker = books(INDIVIDUALLY);
        let other = |number, won| Err(Violation::OtherCancel { number, won });
        assert_eq!(checker.cancelled(0, false), other(0, false));
        assert_eq!(checker.cancelled(0, true), Ok(()));
        assert_eq!(checker.cancelled(0, true), other(0, true));
    }

    #[test]
    fn a_job_that_was_forgotten_is_reported() {
        let mut checker = books(INDIVIDUALLY);
        checker.settle(4);
        assert_eq!(checker.finish(), Ok(()));
        checker.settle(5);
        let lost = Err(Violation::Lost { number: 0, due: 5, now: 5 });
        assert_eq!(checker.finish(), lost);
        assert_eq!(checker.cancelled(0, true), lost);
    }

    #[test]
    fn a_handle_that_tells_something_else_is_reported() {
        let mut checker = books(INDIVIDUALLY);
        assert_eq!(checker.ran(run(0, 5, 5), 5), Ok(()));
        assert_eq!(checker.cancelled(1, true), Ok(()));
        let right = [(true, false), (false, true), (false, false)];
        for (number, (is_completed, is_cancelled)) in (0..).zip(right) {
            let tells = Tells { is_completed, is_cancelled };
            assert_eq!(checker.check_handle(number, tells), Ok(()));
            let tells = Tells { is_completed: !is_completed, is_cancelled };
            let other = Err(Violation::OtherState { number, tells });
            assert_eq!(checker.check_handle(number, tells), other);
        }
    }

    #[test]
    fn the_digest_tells_orders_times_and_losses_apart() {
        let digest = |runs: &[(u64, [u64; 3])]| {
            let mut digest = Digest::default();
            runs.iter().for_each(|&(number, run)| digest.enter(number, run));
            digest
        };
        let one = digest(&[(0, [5, 5, 1]), (1, [5, 5, 1])]);
        for other in [
            &[(1, [5, 5, 1]), (0, [5, 5, 1])][..],
            &[(0, [5, 5, 1]), (1, [5, 6, 1])],
            &[(0, [5, 5, 1]), (1, [5, 5, 2])],
            &[(0, [5, 5, 1]), (1, [6, 5, 1])],
            &[(0, [5, 5, 1])],
        ] {
            assert_ne!(digest(other), one, "{other:?}");
        }
    }
}
