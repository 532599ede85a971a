//! A scheduler full of jobs, and a book of what each is due for.
//!
//! Each job is a closure that knows its number; the book knows when it must run next. It is kept by
//! the definition of once, fixed rate and fixed delay, and not by what the scheduler says.

use alloc::{collections::BTreeMap, format, sync::Arc, vec::Vec};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard};

use clockjack_actor::{ActorSystem, Cancellable, DispatcherId, Scheduler, TaskRunPriority};
use clockjack_sched::{BatchMode, FireContext, PressureReason, ScheduleErrorKind, SchedulerConfig};

use crate::{
    context::{Mode, SimContext, open},
    fault::Class,
    host::single_thread::SingleThreadHost,
    invariant::Invariant,
    random::Stream,
    run::{Description, Workload, panic_as_told},
};

/// For how many ticks handlers may be slow between two looks at the clock from outside: more, and a
/// busy scheduler would never catch up.
const SLOW_MAX: u64 = 60;
/// How long a run that is to come to its end may go on, in ticks.
const PATIENCE: u64 = 20_000;
/// Micro-seconds in a tick.
const TICK_MICROS: u64 = 1_000;

/// Once, fixed rate and fixed delay, cancelled, failing, late, closed.
#[derive(Clone, Copy, Debug)]
pub struct Jobs;

impl Workload for Jobs {
    fn description(&self) -> Description {
        use Class::{Backpressure, CancelStorm, ClockBack, ClockDrift, DriverStall, TimerFlood};
        use Invariant::{L1, M1, S1, S2, T1, T2, T3, T4, T5, T7, T8, X1};
        Description {
            name: "jobs",
            faults: &[
                Class::EVERYDAY,
                &[ClockDrift, ClockBack, DriverStall, Backpressure, TimerFlood, CancelStorm],
            ],
            invariants: &[T1, T2, T3, T4, T5, T7, T8, M1, S1, S2, L1, X1],
            least_records: 100,
            least_comparisons: 300,
        }
    }

    fn play(&self, sim: &SimContext) {
        WorkloadRun::new(sim).play();
    }
}

/// How a job repeats, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Once,
    Rate(u64),
    Delay(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Asked for, and not yet accepted or refused; it may run already.
    Offered,
    Waits,
    Runs,
    Done,
    Cancelled,
    Refused,
}

struct Job {
    kind: Kind,
    /// When it must run next.
    due: u64,
    state: State,
    /// Whether it is to run at the close, if it still waits then.
    is_marked: bool,
    handle: Option<Cancellable>,
}

impl State {
    fn is_live(self) -> bool {
        matches!(self, Self::Offered | Self::Waits | Self::Runs)
    }
}

impl Book {
    fn next_due(&self) -> Option<u64> {
        let live = self.live.iter().map(|index| &self.jobs[*index]);
        live.filter(|job| job.state.is_live()).map(|job| job.due).min()
    }

    /// Moves a job to another state, and gives the one that it was in.
    fn set(&mut self, index: usize, state: State) -> State {
        let before = core::mem::replace(&mut self.jobs[index].state, state);
        self.n_live -= u64::from(before.is_live());
        self.n_live += u64::from(state.is_live());
        before
    }
}

#[derive(Default)]
struct Book {
    jobs: Vec<Job>,
    /// Indices of those that live, with some that do not any more.
    live: Vec<usize>,
    n_live: u64,
    /// Jobs that were cancelled since all was quiet last: they may keep their workers until then.
    n_unreaped: u64,
    accepted: u64,
    /// The last one-shot that has run of those due at a tick.
    last_of: BTreeMap<u64, usize>,
    closing: bool,
    /// What handlers do is drawn here.
    actions: Option<Stream>,
    /// Handles of jobs that have ended, to be dropped outside of handlers.
    spent: Vec<Cancellable>,
    closed: Vec<(u8, u64)>,
}

#[derive(Clone)]
struct RunState {
    sim: SimContext,
    book: Arc<Mutex<Book>>,
    jobs: Scheduler,
}

impl RunState {
    fn book(&self) -> MutexGuard<'_, Book> {
        open(&self.book)
    }

    fn now(&self) -> u64 {
        self.sim.now()
    }

    /// Offers a job that first runs after so many micro-seconds; whether it was accepted.
    fn offer(&self, micros: u64, kind: Kind) -> bool {
        let due = self.now() + micros.div_ceil(TICK_MICROS);
        let quota = self.jobs.metrics().quota_limit as u64;
        let (index, live) = {
            let mut book = self.book();
            let live = book.n_live;
            let job = Job { kind, due, state: State::Refused, is_marked: false, handle: None };
            book.jobs.push(job);
            let index = book.jobs.len() - 1;
            book.set(index, State::Offered);
            (index, live)
        };
        let (run_state, any) = (self.clone(), DispatcherId::DEFAULT);
        let run = move |fire: &FireContext| run_state.fire(index, fire);
        let delay = Duration::from_micros(micros);
        let period = |ticks| Duration::from_millis(ticks);
        let offered = match kind {
            Kind::Once => self.jobs.schedule_once_fn(delay, any, run).map_err(|e| e.kind()),
            Kind::Rate(ticks) => self
                .jobs
                .schedule_at_fixed_rate_fn(delay, period(ticks), any, run)
                .map_err(|e| e.kind()),
            Kind::Delay(ticks) => self
                .jobs
                .schedule_with_fixed_delay_fn(delay, period(ticks), any, run)
                .map_err(|e| e.kind()),
        };
        let sim = &self.sim;
        let mut book = self.book();
        let is_accepted = offered.is_ok();
        sim.note("offer", &[index as u64, due, u64::from(is_accepted)]);
        match offered {
            Ok(handle) => {
                sim.check(Invariant::M1, live < quota, || format!("{live} live, of {quota}"));
                sim.check(Invariant::S2, !book.closing, || {
                    format!("job {index} was taken at the close")
                });
                book.accepted += 1;
                if book.jobs[index].state == State::Offered {
                    book.set(index, State::Waits);
                }
                book.jobs[index].handle = Some(handle);
                book.live.push(index);
            }
            Err(kind) => {
                let is_room = live + book.n_unreaped < quota && kind != ScheduleErrorKind::Closed;
                sim.check(Invariant::M1, !is_room, || format!("{kind:?} with {live} of {quota}"));
                let state = book.set(index, State::Refused);
                sim.check(Invariant::M1, state == State::Offered, || {
                    format!("job {index} was refused and is {state:?}")
                });
            }
        }
        is_accepted
    }

    /// What a job does.
    fn fire(&self, index: usize, fire: &FireContext) -> Result<(), &'static str> {
        self.begin(index, fire);
        if let Some(size) = self.sim.fault(Class::SlowHandler) {
            self.sim.take_time(1 + size % 30);
        }
        self.action(index);
        if self.sim.fault(Class::HandlerError).is_some() {
            self.end(index, true);
            return Err("as told");
        }
        if self.sim.fault(Class::HandlerPanic).is_some() {
            self.end(index, true);
            panic_as_told();
        }
        self.end(index, false);
        Ok(())
    }

    fn begin(&self, index: usize, fire: &FireContext) {
        let (sim, now) = (&self.sim, self.now());
        let (due, runs) = (fire.due().get(), u64::from(fire.batch().runs.get()));
        sim.note("fire", &[index as u64, due, now, runs]);
        let mut book = self.book();
        let closing = book.closing;
        let job = &mut book.jobs[index];
        let is_last_chance = closing && job.is_marked;
        sim.check(Invariant::T1, now >= due || is_last_chance, || {
            format!("job {index} runs at {now}, due at {due}")
        });
        let invariant = if job.kind == Kind::Once { Invariant::T2 } else { Invariant::T4 };
        let expected = job.due;
        sim.check(invariant, due == expected, || {
            format!("job {index} runs for {due}, expected {expected}")
        });
        let state = job.state;
        sim.check(Invariant::T5, state != State::Runs, || format!("job {index} overlaps"));
        sim.check(Invariant::T2, state != State::Done, || format!("job {index} runs again"));
        sim.check(Invariant::T3, !matches!(state, State::Cancelled | State::Refused), || {
            format!("job {index} runs and is {state:?}")
        });
        let mode = match job.kind {
            Kind::Once => BatchMode::OneShot,
            Kind::Rate(period) => {
                let last = due + (runs - 1) * period;
                sim.check(Invariant::T1, now >= last, || {
                    format!("job {index} runs {runs} times at {now}, the last one due at {last}")
                });
                job.due += runs * period;
                BatchMode::FixedRate
            }
            Kind::Delay(_) => BatchMode::FixedDelay,
        };
        book.set(index, State::Runs);
        sim.check(Invariant::T4, fire.batch().mode == mode, || format!("{:?}", fire.batch()));
        sim.check(Invariant::T4, runs == 1 || mode == BatchMode::FixedRate, || {
            format!("{runs} runs of job {index}, {mode}")
        });
        if mode == BatchMode::OneShot && !is_last_chance {
            let before = book.last_of.insert(due, index);
            sim.check(Invariant::T7, before.is_none_or(|before| before < index), || {
                format!("job {index} runs after {before:?}, both due at {due}")
            });
        }
    }

    /// A run is over, or description to be.
    fn end(&self, index: usize, fails: bool) {
        let now = self.now();
        let mut book = self.book();
        let job = &mut book.jobs[index];
        self.sim.note("end", &[index as u64, now, u64::from(fails)]);
        if job.state == State::Cancelled {
            return;
        }
        if let Kind::Delay(delay) = job.kind {
            job.due = now + delay;
        }
        let is_over = fails || job.kind == Kind::Once;
        book.set(index, if is_over { State::Done } else { State::Waits });
    }

    /// Cancels a job by its handle; what that says must be what the book says.
    fn cancel(&self, index: usize) {
        let (handle, expected) = {
            let book = self.book();
            let job = &book.jobs[index];
            let expected = match job.state {
                State::Offered | State::Waits => true,
                State::Runs => job.kind != Kind::Once,
                State::Done | State::Cancelled | State::Refused => false,
            };
            let Some(handle) = job.handle.clone() else { return };
            (handle, expected)
        };
        let is_won = handle.cancel();
        let is_again = handle.cancel();
        self.sim.note("cancel", &[index as u64, u64::from(is_won)]);
        self.sim.check(Invariant::T3, is_won == expected, || {
            format!("the cancel of job {index} says {is_won}")
        });
        self.sim.check(Invariant::T3, !is_again, || format!("two cancels of job {index} have won"));
        let mut book = self.book();
        if is_won {
            book.set(index, State::Cancelled);
            book.n_unreaped += 1;
        }
        let is_cancelled = book.jobs[index].state == State::Cancelled;
        self.sim.check(Invariant::T3, handle.is_cancelled() == is_cancelled, || {
            format!("job {index} is cancelled, it says, and the book does not, or the other way")
        });
        book.spent.push(handle);
    }

    /// What a handler does beside running: to itself and to others.
    fn action(&self, index: usize) {
        let (choice, other, micros) = {
            let mut book = self.book();
            let n_jobs = book.jobs.len();
            let Some(actions) = &mut book.actions else { return };
            (actions.below(100), actions.index(n_jobs), actions.between(1_000, 400_000))
        };
        match choice {
            0..3 => self.cancel(index),
            3..8 => self.cancel(other),
            8..14 => _ = self.offer(micros, Kind::Once),
            _ => {}
        }
    }
}

struct WorkloadRun {
    sim: SimContext,
    host: Option<SingleThreadHost>,
    run_state: Option<RunState>,
    work: Stream,
    steps: u64,
    pace: u64,
    quota: u64,
    is_pressed: bool,
}

impl WorkloadRun {
    fn new(sim: &SimContext) -> Self {
        let quota = sim.setting("quota", 12, 150);
        Self {
            sim: sim.clone(),
            host: None,
            run_state: None,
            work: sim.stream("work"),
            steps: sim.setting("steps", 100, 300),
            pace: sim.setting("pace", 1, 60),
            quota,
            is_pressed: false,
        }
    }

    fn play(mut self) {
        let config = SchedulerConfig {
            quota: usize::try_from(self.quota).unwrap_or(usize::MAX),
            ..SchedulerConfig::DEFAULT
        };
        let builder = ActorSystem::builder("jobs").scheduler(config);
        let host = match SingleThreadHost::start(&self.sim, builder) {
            Ok(host) => host,
            Err(error) => {
                return self.sim.check(Invariant::M1, false, || format!("no start: {error}"));
            }
        };
        let book = Book { actions: Some(self.sim.stream("deeds")), ..Book::default() };
        let run_state = RunState {
            sim: self.sim.clone(),
            book: Arc::new(Mutex::new(book)),
            jobs: host.system().scheduler().clone(),
        };
        self.host = Some(host);
        self.run_state = Some(run_state.clone());
        self.register_close_tasks(&run_state);
        for _ in 0..self.steps {
            self.step(&run_state);
            if self.sim.is_broken() {
                return self.forget();
            }
        }
        if self.sim.mode() == Mode::Liveness {
            self.drain(&run_state);
        }
        self.close(&run_state);
        self.forget();
    }

    /// Breaks the ring of the book and the jobs in it.
    fn forget(&mut self) {
        // Its end may run what is due.
        self.host = None;
        if let Some(run_state) = self.run_state.take() {
            let book = core::mem::take(&mut *run_state.book());
            drop(book);
        }
    }

    fn step(&mut self, run_state: &RunState) {
        run_state.sim.allow_slowness(SLOW_MAX);
        self.act(run_state);
        self.press(run_state);
        let Some(host) = &mut self.host else { return };
        let ticks = self.work.below(self.pace * 2);
        host.pass(ticks);
        // Some of the time it is disturbed before all is quiet.
        if self.work.chance(1_500) {
            host.turn_if_woken();
        } else if host.settle() {
            self.check_quiet(run_state);
        }
    }

    fn act(&mut self, run_state: &RunState) {
        let n_jobs = run_state.book().jobs.len();
        match self.work.below(10) {
            0..4 => {
                let (micros, kind) = self.draw();
                run_state.offer(micros, kind);
            }
            4..6 if n_jobs > 0 => run_state.cancel(self.work.index(n_jobs)),
            6 if n_jobs > 0 => self.mark(run_state, n_jobs),
            _ => {}
        }
        if self.sim.fault(Class::TimerFlood).is_some() {
            for _ in 0..=self.quota {
                let (micros, _) = self.draw();
                run_state.offer(micros, Kind::Once);
            }
        }
        if self.sim.fault(Class::CancelStorm).is_some() {
            let live = run_state.book().live.clone();
            live.into_iter().for_each(|index| run_state.cancel(index));
        }
    }

    /// Marks a job to be run at the close.
    fn mark(&mut self, run_state: &RunState, n_jobs: usize) {
        let index = self.work.index(n_jobs);
        let mut book = run_state.book();
        let job = &mut book.jobs[index];
        let is_expected = job.state == State::Waits && job.kind == Kind::Once;
        let Some(handle) = &job.handle else { return };
        let is_marked = handle.run_on_close();
        job.is_marked |= is_marked;
        // One that is due, and has not had its turn, may wait no more.
        let is_open = job.due <= run_state.now();
        run_state.sim.check(Invariant::S1, is_marked == is_expected || is_open, || {
            format!("job {index} is marked: {is_marked}")
        });
    }

    /// The delay until the first run in micro-seconds, and how it repeats.
    fn draw(&mut self) -> (u64, Kind) {
        let work = &mut self.work;
        let far =
            work.pick(&[(30, 2_000), (30, 300), (5, 30_000), (3, 2_000_000), (1, 900_000_000)]);
        // Most at the edge of a tick, some beside it.
        let ticks = work.below(far.unwrap_or(1));
        let beside = if work.chance(2_000) { work.below(TICK_MICROS) } else { 0 };
        let kind = match work.below(10) {
            0..6 => Kind::Once,
            6..8 => Kind::Rate(work.between(20, 400)),
            _ => Kind::Delay(work.between(5, 400)),
        };
        (ticks * TICK_MICROS + beside, kind)
    }

    fn press(&mut self, run_state: &RunState) {
        if let Some(size) = self.sim.fault(Class::Backpressure) {
            self.is_pressed = true;
            let percent = u8::try_from(50 + size % 51).unwrap_or(100);
            run_state.jobs.set_pressure(PressureReason::Host, percent);
        } else if self.is_pressed && self.work.chance(2_000) {
            self.release(run_state);
        }
    }

    fn release(&mut self, run_state: &RunState) {
        self.is_pressed = false;
        run_state.jobs.set_pressure(PressureReason::Host, 0);
    }

    /// All is quiet: nothing is due, and nothing is kept that has ended.
    fn check_quiet(&mut self, run_state: &RunState) {
        let Some(host) = &self.host else { return };
        host.check_quiet();
        let (spent, n_live) = {
            let mut book = run_state.book();
            book.n_unreaped = 0;
            let mut spent = core::mem::take(&mut book.spent);
            let Book { jobs, live, .. } = &mut *book;
            let now = run_state.now();
            live.retain(|index| {
                let job = &mut jobs[*index];
                if !job.state.is_live() {
                    spent.extend(job.handle.take());
                    return false;
                }
                run_state.sim.check(
                    Invariant::T2,
                    job.due > now && job.state == State::Waits,
                    || format!("job {index} is {:?}, due at {}", job.state, job.due),
                );
                true
            });
            (spent, live.len() as u64)
        };
        drop(spent);
        let metrics = run_state.jobs.metrics();
        self.sim.check_equal(Invariant::T8, "jobs", metrics.active_total as u64, n_live);
        self.sim.check_equal(Invariant::T8, "places", metrics.slots_total as u64, n_live);
        self.sim.note("quiet", &[run_state.now(), n_live]);
    }

    /// Nothing fails any more: what is due within the patience runs, each at its time, and what is
    /// offered is taken.
    fn drain(&mut self, run_state: &RunState) {
        self.sim.heal();
        self.release(run_state);
        run_state.book().actions = None;
        let live = run_state.book().live.clone();
        let is_periodic = |index: &usize| run_state.book().jobs[*index].kind != Kind::Once;
        let periodic: Vec<usize> = live.into_iter().filter(is_periodic).collect();
        periodic.into_iter().for_each(|index| run_state.cancel(index));
        let until = run_state.now() + PATIENCE;
        let Some(host) = &mut self.host else { return };
        host.feed();
        let is_quiet = host.settle();
        self.sim.check(Invariant::L1, is_quiet, || "not quiet though nothing fails".into());
        let probe = run_state.book().jobs.len();
        let is_taken = run_state.offer(5 * TICK_MICROS, Kind::Once);
        let is_full = run_state.book().live.len() as u64 >= self.quota;
        self.sim.check(Invariant::L1, is_taken || is_full, || "a job is refused".into());
        while run_state.now() < until && !self.sim.is_broken() {
            let next = run_state.book().next_due();
            let next = next.unwrap_or(until).min(until);
            let Some(host) = &mut self.host else { return };
            host.pass(next.saturating_sub(run_state.now()).max(1));
            let is_quiet = host.settle();
            self.sim.check(Invariant::L1, is_quiet, || "not quiet though nothing fails".into());
            self.check_quiet(run_state);
        }
        let state = run_state.book().jobs[probe].state;
        self.sim.check(Invariant::L1, !is_taken || state == State::Done, || {
            format!("the last job is {state:?}")
        });
    }

    fn register_close_tasks(&mut self, run_state: &RunState) {
        use TaskRunPriority::{Runtime, SystemCritical, User};
        for number in 0..self.sim.setting("close-tasks", 0, 6) {
            let rank = u8::try_from(self.work.below(3)).unwrap_or(0);
            let priority = [SystemCritical, Runtime, User][usize::from(rank)];
            let desk_in = run_state.clone();
            let task = move || {
                desk_in.sim.note("close-task", &[u64::from(rank), number]);
                desk_in.book().closed.push((rank, number));
                Ok(())
            };
            let taken = run_state.jobs.register_on_close(task, priority);
            self.sim.check(Invariant::S1, taken.is_ok(), || "a close task is refused".into());
        }
    }

    fn close(&mut self, run_state: &RunState) {
        run_state.book().closing = true;
        run_state.book().actions = None;
        let report = run_state.jobs.shutdown();
        let sim = self.sim.clone();
        let counts = [report.accepted, report.executed, report.cancelled];
        sim.note("closed", &counts);
        let book = run_state.book();
        sim.check_equal(Invariant::S2, "accepted", report.accepted, book.accepted);
        sim.check_equal(
            Invariant::S2,
            "executed and cancelled",
            report.executed + report.cancelled,
            report.accepted,
        );
        let done = book.jobs.iter().filter(|job| job.state == State::Done).count() as u64;
        sim.check_equal(Invariant::S2, "executed", report.executed, done);
        sim.check_equal(Invariant::S2, "still running", report.still_running, 0);
        for (index, job) in book.jobs.iter().enumerate() {
            let is_missed = job.state.is_live() && job.is_marked;
            sim.check(Invariant::S1, !is_missed, || {
                format!("job {index} did not run at the close")
            });
        }
        let mut expected = book.closed.clone();
        expected.sort_unstable();
        sim.check(Invariant::S1, book.closed == expected, || {
            format!("the close tasks ran as {:?}", book.closed)
        });
        let n_tasks = report.close_tasks.succeeded + report.close_tasks.failed;
        sim.check_equal(Invariant::S1, "close tasks", n_tasks, book.closed.len() as u64);
        drop(book);
        let is_taken = run_state.offer(TICK_MICROS, Kind::Once);
        sim.check(Invariant::S2, !is_taken, || "a job was taken after the close".into());
        let again = run_state.jobs.shutdown();
        sim.check_equal(Invariant::S2, "accepted by a second close", again.accepted, counts[0]);
    }
}
