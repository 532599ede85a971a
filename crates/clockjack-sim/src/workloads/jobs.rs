//! A scheduler with many jobs, and an oracle with the due time of each job.
//!
//! Each job is a closure that knows its number; the oracle knows when the job must run next. The
//! oracle follows from the definitions of once, fixed rate and fixed delay, and does not rely on
//! reports of the scheduler.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_actor::{ActorSystem, Cancellable, DispatcherId, TaskRunPriority};
use clockjack_sched::{
    BatchMode, FireContext, PressureReason, ScheduleErrorKind, Scheduler, SchedulerConfig,
};

use crate::{
    context::{Mode, SimContext, lock},
    fault::Class,
    host::single_thread::SingleThreadHost,
    invariant::Invariant,
    random::Stream,
    run::{Description, Workload, inject_panic},
};

/// The maximum number of ticks that handlers may consume per step of the workload: without a limit,
/// a busy scheduler would never catch up.
const SLOW_MAX: u64 = 60;
/// The duration of the drain phase in ticks.
const PATIENCE: u64 = 20_000;
/// Microseconds per tick.
const TICK_MICROS: u64 = 1_000;

/// Jobs that run once, at a fixed rate or with a fixed delay; cancelled, failing, late, and at
/// shutdown.
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

    fn run(&self, sim: &SimContext) {
        WorkloadRun::new(sim).execute();
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
    /// Offered, and not yet accepted or rejected; the job may already run.
    Offered,
    Waits,
    Runs,
    Done,
    Cancelled,
    Refused,
}

struct Job {
    kind: Kind,
    /// When the job must run next.
    due: u64,
    state: State,
    /// Whether the job must run at shutdown if it is still pending.
    is_marked: bool,
    handle: Option<Cancellable>,
}

impl State {
    fn is_live(self) -> bool {
        matches!(self, Self::Offered | Self::Waits | Self::Runs)
    }
}

impl Oracle {
    fn next_due(&self) -> Option<u64> {
        let live = self.live.iter().map(|index| &self.jobs[*index]);
        live.filter(|job| job.state.is_live()).map(|job| job.due).min()
    }

    /// Moves a job to another state and returns the previous state.
    fn set(&mut self, index: usize, state: State) -> State {
        let before = core::mem::replace(&mut self.jobs[index].state, state);
        self.n_live -= u64::from(before.is_live());
        self.n_live += u64::from(state.is_live());
        before
    }
}

#[derive(Default)]
struct Oracle {
    jobs: Vec<Job>,
    /// The indices of live jobs; may also contain jobs that are no longer live.
    live: Vec<usize>,
    n_live: u64,
    /// Jobs that were cancelled since the system was last idle: they may keep their slots until it
    /// is idle again.
    n_unreaped: u64,
    accepted: u64,
    /// The last one-shot job that has run, per due time.
    last_of: BTreeMap<u64, usize>,
    closing: bool,
    /// The random actions of handlers.
    actions: Option<Stream>,
    /// Handles of completed jobs, to be dropped outside of handlers.
    spent: Vec<Cancellable>,
    closed: Vec<(u8, u64)>,
}

#[derive(Clone)]
struct RunState {
    sim: SimContext,
    oracle: Arc<Mutex<Oracle>>,
    jobs: Scheduler,
}

impl RunState {
    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    fn now(&self) -> u64 {
        self.sim.now()
    }

    /// Offers a job that first runs after this many microseconds. Returns whether it was accepted.
    fn offer(&self, micros: u64, kind: Kind) -> bool {
        let due = self.now() + micros.div_ceil(TICK_MICROS);
        let quota = self.jobs.metrics().quota_limit as u64;
        let (index, live) = {
            let mut oracle = self.oracle();
            let live = oracle.n_live;
            let job = Job { kind, due, state: State::Refused, is_marked: false, handle: None };
            oracle.jobs.push(job);
            let index = oracle.jobs.len() - 1;
            oracle.set(index, State::Offered);
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
        let mut oracle = self.oracle();
        let is_accepted = offered.is_ok();
        sim.record("offer", &[index as u64, due, u64::from(is_accepted)]);
        match offered {
            Ok(handle) => {
                sim.check(Invariant::M1, live < quota, || format!("{live} live, of {quota}"));
                sim.check(Invariant::S2, !oracle.closing, || {
                    format!("job {index} was accepted during shutdown")
                });
                oracle.accepted += 1;
                if oracle.jobs[index].state == State::Offered {
                    oracle.set(index, State::Waits);
                }
                oracle.jobs[index].handle = Some(handle);
                oracle.live.push(index);
            }
            Err(kind) => {
                let is_room = live + oracle.n_unreaped < quota && kind != ScheduleErrorKind::Closed;
                sim.check(Invariant::M1, !is_room, || format!("{kind:?} with {live} of {quota}"));
                let state = oracle.set(index, State::Refused);
                sim.check(Invariant::M1, state == State::Offered, || {
                    format!("job {index} was rejected and is {state:?}")
                });
            }
        }
        is_accepted
    }

    /// The body of a job.
    fn fire(&self, index: usize, fire: &FireContext) -> Result<(), &'static str> {
        self.begin(index, fire);
        if let Some(size) = self.sim.fault(Class::SlowHandler) {
            self.sim.spend_time(1 + size % 30);
        }
        self.action(index);
        if self.sim.fault(Class::HandlerError).is_some() {
            self.end(index, true);
            return Err("injected failure");
        }
        if self.sim.fault(Class::HandlerPanic).is_some() {
            self.end(index, true);
            inject_panic();
        }
        self.end(index, false);
        Ok(())
    }

    fn begin(&self, index: usize, fire: &FireContext) {
        let (sim, now) = (&self.sim, self.now());
        let (due, runs) = (fire.due().get(), u64::from(fire.batch().runs.get()));
        sim.record("fire", &[index as u64, due, now, runs]);
        let mut oracle = self.oracle();
        let closing = oracle.closing;
        let job = &mut oracle.jobs[index];
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
        oracle.set(index, State::Runs);
        sim.check(Invariant::T4, fire.batch().mode == mode, || format!("{:?}", fire.batch()));
        sim.check(Invariant::T4, runs == 1 || mode == BatchMode::FixedRate, || {
            format!("{runs} runs of job {index}, {mode}")
        });
        if mode == BatchMode::OneShot && !is_last_chance {
            let before = oracle.last_of.insert(due, index);
            sim.check(Invariant::T7, before.is_none_or(|before| before < index), || {
                format!("job {index} runs after {before:?}, both due at {due}")
            });
        }
    }

    /// A run has finished, or is about to.
    fn end(&self, index: usize, fails: bool) {
        let now = self.now();
        let mut oracle = self.oracle();
        let job = &mut oracle.jobs[index];
        self.sim.record("end", &[index as u64, now, u64::from(fails)]);
        if job.state == State::Cancelled {
            return;
        }
        if let Kind::Delay(delay) = job.kind {
            job.due = now + delay;
        }
        let is_over = fails || job.kind == Kind::Once;
        oracle.set(index, if is_over { State::Done } else { State::Waits });
    }

    /// Cancels a job by its handle; the result must agree with the oracle.
    fn cancel(&self, index: usize) {
        let (handle, expected) = {
            let oracle = self.oracle();
            let job = &oracle.jobs[index];
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
        self.sim.record("cancel", &[index as u64, u64::from(is_won)]);
        self.sim.check(Invariant::T3, is_won == expected, || {
            format!("the cancel of job {index} says {is_won}")
        });
        self.sim.check(Invariant::T3, !is_again, || {
            format!("two cancels of job {index} have succeeded")
        });
        let mut oracle = self.oracle();
        if is_won {
            oracle.set(index, State::Cancelled);
            oracle.n_unreaped += 1;
        }
        let is_cancelled = oracle.jobs[index].state == State::Cancelled;
        self.sim.check(Invariant::T3, handle.is_cancelled() == is_cancelled, || {
            format!("the handle and the oracle disagree whether job {index} is cancelled")
        });
        oracle.spent.push(handle);
    }

    /// The actions of a handler on its own job and on others.
    fn action(&self, index: usize) {
        let (choice, other, micros) = {
            let mut oracle = self.oracle();
            let n_jobs = oracle.jobs.len();
            let Some(actions) = &mut oracle.actions else { return };
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

    fn execute(mut self) {
        let config = SchedulerConfig {
            quota: usize::try_from(self.quota).unwrap_or(usize::MAX),
            ..SchedulerConfig::DEFAULT
        };
        let builder = ActorSystem::builder("jobs").scheduler(config);
        let host = match SingleThreadHost::start(&self.sim, builder) {
            Ok(host) => host,
            Err(error) => {
                return self.sim.check(Invariant::M1, false, || format!("start failed: {error}"));
            }
        };
        let oracle = Oracle { actions: Some(self.sim.stream("deeds")), ..Oracle::default() };
        let run_state = RunState {
            sim: self.sim.clone(),
            oracle: Arc::new(Mutex::new(oracle)),
            jobs: host.system().scheduler().jobs().clone(),
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

    /// Breaks the reference cycle between the oracle and the jobs in it.
    fn forget(&mut self) {
        // Dropping the host may run due jobs.
        self.host = None;
        if let Some(run_state) = self.run_state.take() {
            let oracle = core::mem::take(&mut *run_state.oracle());
            drop(oracle);
        }
    }

    fn step(&mut self, run_state: &RunState) {
        run_state.sim.allow_slowness(SLOW_MAX);
        self.act(run_state);
        self.press(run_state);
        let Some(host) = &mut self.host else { return };
        let ticks = self.work.below(self.pace * 2);
        host.advance(ticks);
        // Sometimes the workload continues before the system is idle.
        if self.work.chance(1_500) {
            host.step_if_woken();
        } else if host.run_until_idle() {
            self.check_idle_state(run_state);
        }
    }

    fn act(&mut self, run_state: &RunState) {
        let n_jobs = run_state.oracle().jobs.len();
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
            let live = run_state.oracle().live.clone();
            live.into_iter().for_each(|index| run_state.cancel(index));
        }
    }

    /// Marks a job to run at shutdown.
    fn mark(&mut self, run_state: &RunState, n_jobs: usize) {
        let index = self.work.index(n_jobs);
        let mut oracle = run_state.oracle();
        let job = &mut oracle.jobs[index];
        let is_expected = job.state == State::Waits && job.kind == Kind::Once;
        let Some(handle) = &job.handle else { return };
        let is_marked = handle.run_on_close();
        job.is_marked |= is_marked;
        // A job that is due, but has not run yet, may no longer be pending.
        let is_open = job.due <= run_state.now();
        run_state.sim.check(Invariant::S1, is_marked == is_expected || is_open, || {
            format!("job {index} is marked: {is_marked}")
        });
    }

    /// The delay until the first run in microseconds, and how the job repeats.
    fn draw(&mut self) -> (u64, Kind) {
        let work = &mut self.work;
        let far =
            work.pick(&[(30, 2_000), (30, 300), (5, 30_000), (3, 2_000_000), (1, 900_000_000)]);
        // Most delays are whole ticks, some are not.
        let ticks = work.below(far.unwrap_or(1));
        let sub_tick = if work.chance(2_000) { work.below(TICK_MICROS) } else { 0 };
        let kind = match work.below(10) {
            0..6 => Kind::Once,
            6..8 => Kind::Rate(work.between(20, 400)),
            _ => Kind::Delay(work.between(5, 400)),
        };
        (ticks * TICK_MICROS + sub_tick, kind)
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

    /// The system is idle: nothing may be due, and no completed job may occupy a slot.
    fn check_idle_state(&mut self, run_state: &RunState) {
        let Some(host) = &self.host else { return };
        host.check_idle_state();
        let (spent, n_live) = {
            let mut oracle = run_state.oracle();
            oracle.n_unreaped = 0;
            let mut spent = core::mem::take(&mut oracle.spent);
            let Oracle { jobs, live, .. } = &mut *oracle;
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
        self.sim.record("quiet", &[run_state.now(), n_live]);
    }

    /// No more faults: every job that comes due runs on time, and new jobs are accepted.
    fn drain(&mut self, run_state: &RunState) {
        self.sim.heal();
        self.release(run_state);
        run_state.oracle().actions = None;
        let live = run_state.oracle().live.clone();
        let is_periodic = |index: &usize| run_state.oracle().jobs[*index].kind != Kind::Once;
        let periodic: Vec<usize> = live.into_iter().filter(is_periodic).collect();
        periodic.into_iter().for_each(|index| run_state.cancel(index));
        let until = run_state.now() + PATIENCE;
        let Some(host) = &mut self.host else { return };
        host.deliver_ticks();
        let is_idle = host.run_until_idle();
        self.sim.check(Invariant::L1, is_idle, || {
            "the system is not idle although no faults occur".into()
        });
        let probe = run_state.oracle().jobs.len();
        let is_taken = run_state.offer(5 * TICK_MICROS, Kind::Once);
        let is_full = run_state.oracle().live.len() as u64 >= self.quota;
        self.sim.check(Invariant::L1, is_taken || is_full, || "a job was rejected".into());
        while run_state.now() < until && !self.sim.is_broken() {
            let next = run_state.oracle().next_due();
            let next = next.unwrap_or(until).min(until);
            let Some(host) = &mut self.host else { return };
            host.advance(next.saturating_sub(run_state.now()).max(1));
            let is_idle = host.run_until_idle();
            self.sim.check(Invariant::L1, is_idle, || {
                "the system is not idle although no faults occur".into()
            });
            self.check_idle_state(run_state);
        }
        let state = run_state.oracle().jobs[probe].state;
        self.sim.check(Invariant::L1, !is_taken || state == State::Done, || {
            format!("the last job is {state:?}")
        });
    }

    fn register_close_tasks(&mut self, run_state: &RunState) {
        use TaskRunPriority::{Runtime, SystemCritical, User};
        for number in 0..self.sim.setting("close-tasks", 0, 6) {
            let rank = u8::try_from(self.work.below(3)).unwrap_or(0);
            let priority = [SystemCritical, Runtime, User][usize::from(rank)];
            let shared = run_state.clone();
            let task = move || {
                shared.sim.record("close-task", &[u64::from(rank), number]);
                shared.oracle().closed.push((rank, number));
                Ok(())
            };
            let taken = run_state.jobs.register_on_close(task, priority);
            self.sim.check(Invariant::S1, taken.is_ok(), || "a shutdown task was rejected".into());
        }
    }

    fn close(&mut self, run_state: &RunState) {
        run_state.oracle().closing = true;
        run_state.oracle().actions = None;
        let report = run_state.jobs.shutdown();
        let sim = self.sim.clone();
        let counts = [report.accepted, report.executed, report.cancelled];
        sim.record("closed", &counts);
        let oracle = run_state.oracle();
        sim.check_equal(Invariant::S2, "accepted", report.accepted, oracle.accepted);
        sim.check_equal(
            Invariant::S2,
            "executed and cancelled",
            report.executed + report.cancelled,
            report.accepted,
        );
        let done = oracle.jobs.iter().filter(|job| job.state == State::Done).count() as u64;
        sim.check_equal(Invariant::S2, "executed", report.executed, done);
        sim.check_equal(Invariant::S2, "still running", report.still_running, 0);
        for (index, job) in oracle.jobs.iter().enumerate() {
            let is_missed = job.state.is_live() && job.is_marked;
            sim.check(Invariant::S1, !is_missed, || format!("job {index} did not run at shutdown"));
        }
        let mut expected = oracle.closed.clone();
        expected.sort_unstable();
        sim.check(Invariant::S1, oracle.closed == expected, || {
            format!("the shutdown tasks ran in the order {:?}", oracle.closed)
        });
        let n_tasks = report.close_tasks.succeeded + report.close_tasks.failed;
        sim.check_equal(Invariant::S1, "close tasks", n_tasks, oracle.closed.len() as u64);
        drop(oracle);
        let is_taken = run_state.offer(TICK_MICROS, Kind::Once);
        sim.check(Invariant::S2, !is_taken, || "a job was accepted after shutdown".into());
        let again = run_state.jobs.shutdown();
        sim.check_equal(Invariant::S2, "accepted by a second close", again.accepted, counts[0]);
    }
}
