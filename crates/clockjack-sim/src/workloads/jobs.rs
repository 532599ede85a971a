//! A scheduler with many jobs, and an oracle with the due time of each job.
//!
//! Each job is a closure that knows its number; the oracle, which is the one of
//! [`clockjack_sched::properties`], knows when the job must run next. It does not rely on reports
//! of the scheduler.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};

use clockjack_actor::{ActorSystem, Cancellable, DispatcherId, TaskRunPriority};
use clockjack_sched::{
    CloseReport, FireContext, JobState, PressureReason, Repeat, ScheduleErrorKind, Scheduler,
    SchedulerConfig,
    properties::{JobOracle, Property, PropertyError, Run},
};
use clockjack_time::{Resolution, Tick};

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
/// The number of close tasks that the system itself registers: one, which publishes the close.
const SYSTEM_CLOSE_TASKS: u64 = 1;
/// Microseconds per tick.
const TICK_MICROS: u64 = 1_000;

/// Jobs that run once, at a fixed rate or with a fixed delay; cancelled, failing, late, and at
/// shutdown.
#[derive(Clone, Copy, Debug)]
pub struct Jobs;

impl Workload for Jobs {
    fn description(&self) -> Description {
        use Class::{Backpressure, CancelStorm, ClockBack, ClockDrift, DriverStall, TimerFlood};
        use Invariant::{L1, M1, S1, S2, S3, T1, T2, T3, T4, T5, T7, T8, X1};
        Description {
            name: "jobs",
            faults: &[
                Class::EVERYDAY,
                &[ClockDrift, ClockBack, DriverStall, Backpressure, TimerFlood, CancelStorm],
            ],
            invariants: &[T1, T2, T3, T4, T5, T7, T8, M1, S1, S2, S3, L1, X1],
            least_records: 100,
            least_comparisons: 300,
        }
    }

    fn run(&self, sim: &SimContext) {
        WorkloadRun::new(sim).execute();
    }
}

/// The oracle of the scheduler, with what the workload knows of its jobs.
struct Expected {
    oracle: JobOracle,
    /// By the number of the job; `None` for a job that was refused or has ended.
    handles: Vec<Option<Cancellable>>,
    /// The numbers of live jobs; may also contain jobs that are no longer live.
    live: Vec<usize>,
    /// Jobs that were cancelled since the system was last idle: they may keep their slots until it
    /// is idle again.
    n_unreaped: u64,
    accepted: u64,
    closing: bool,
    /// The random actions of handlers.
    actions: Option<Stream>,
    /// Handles of completed jobs, to be dropped outside of handlers.
    spent: Vec<Cancellable>,
    closed: Vec<(u8, u64)>,
    overload: Overload,
}

/// A shutdown with a deadline, of a scheduler that has fallen behind.
#[derive(Clone, Copy, Debug, Default)]
struct Overload {
    /// How many ticks every run takes.
    ticks_per_run: u64,
    /// How many runs have taken place, of all that an execution represents.
    n_runs: u64,
    /// The tick from which on the shutdown may begin no run.
    until: Option<u64>,
    /// The longest run of the shutdown in ticks.
    longest: u64,
}

impl Expected {
    const fn new(actions: Option<Stream>) -> Self {
        Self {
            oracle: JobOracle::new(Resolution::MILLI),
            handles: Vec::new(),
            live: Vec::new(),
            n_unreaped: 0,
            accepted: 0,
            closing: false,
            actions,
            spent: Vec::new(),
            closed: Vec::new(),
            overload: Overload { ticks_per_run: 0, n_runs: 0, until: None, longest: 0 },
        }
    }
}

/// The invariant that a violated property belongs to.
fn invariant(property: Property, repeat: Repeat) -> Invariant {
    match property {
        Property::NeverEarly | Property::Monotonic => Invariant::T1,
        Property::RunsOnce | Property::NothingLost => Invariant::T2,
        Property::OnGrid if repeat == Repeat::Once => Invariant::T2,
        Property::CancelIsFinal => Invariant::T3,
        Property::NoOverlap => Invariant::T5,
        Property::InOrder => Invariant::T7,
        _ => Invariant::T4,
    }
}

#[derive(Clone)]
struct RunState {
    sim: SimContext,
    expected: Arc<Mutex<Expected>>,
    jobs: Scheduler,
}

impl RunState {
    fn expected(&self) -> MutexGuard<'_, Expected> {
        lock(&self.expected)
    }

    fn now(&self) -> u64 {
        self.sim.now()
    }

    /// Offers a job that first runs after this many microseconds. Returns whether it was accepted.
    fn offer(&self, micros: u64, repeat: Repeat) -> bool {
        let due = self.now() + micros.div_ceil(TICK_MICROS);
        let quota = self.jobs.metrics().quota_limit as u64;
        let (index, live) = {
            let mut expected = self.expected();
            let live = expected.oracle.n_live() as u64;
            expected.handles.push(None);
            (expected.oracle.offer(repeat, Tick::new(due)), live)
        };
        let (run_state, any) = (self.clone(), DispatcherId::DEFAULT);
        let run = move |fire: &FireContext| run_state.fire(index, fire);
        let delay = Duration::from_micros(micros);
        let offered = match repeat {
            Repeat::Once => self.jobs.schedule_once_fn(delay, any, run).map_err(|e| e.kind()),
            Repeat::FixedRate(period) => {
                self.jobs.schedule_at_fixed_rate_fn(delay, period, any, run).map_err(|e| e.kind())
            }
            Repeat::FixedDelay(period) => self
                .jobs
                .schedule_with_fixed_delay_fn(delay, period, any, run)
                .map_err(|e| e.kind()),
        };
        let sim = &self.sim;
        let mut expected = self.expected();
        let is_accepted = offered.is_ok();
        sim.record("offer", &[index as u64, due, u64::from(is_accepted)]);
        match offered {
            Ok(handle) => {
                sim.check(Invariant::M1, live < quota, || format!("{live} live, of {quota}"));
                sim.check(Invariant::S2, !expected.closing, || {
                    format!("job {index} was accepted during shutdown")
                });
                expected.accepted += 1;
                expected.oracle.accept(index);
                expected.handles[index] = Some(handle);
                expected.live.push(index);
            }
            Err(kind) => {
                let is_room =
                    live + expected.n_unreaped < quota && kind != ScheduleErrorKind::Closed;
                sim.check(Invariant::M1, !is_room, || format!("{kind:?} with {live} of {quota}"));
                let refused = expected.oracle.refuse(index);
                sim.check(Invariant::M1, refused.is_ok(), || {
                    format!("job {index} was rejected: {refused:?}")
                });
            }
        }
        is_accepted
    }

    /// Checks what the oracle says of a job, for each of these invariants.
    fn judge(&self, repeat: Repeat, invariants: &[Invariant], verdict: Result<(), PropertyError>) {
        let violated = verdict.err().map(|error| (invariant(error.property(), repeat), error));
        for &checked in invariants {
            let error = violated.filter(|(invariant, _)| *invariant == checked);
            self.sim.check(checked, error.is_none(), || {
                error.map_or_else(String::new, |(_, error)| error.to_string())
            });
        }
    }

    /// The body of a job.
    fn fire(&self, index: usize, fire: &FireContext) -> Result<(), &'static str> {
        self.begin(index, fire);
        self.consume_time();
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

    /// A handler may be slow, and is if the scheduler is overloaded.
    fn consume_time(&self) {
        let begun = self.now();
        if let Some(size) = self.sim.fault(Class::SlowHandler) {
            self.sim.spend_time(1 + size % 30);
        }
        let ticks = self.expected().overload.ticks_per_run;
        self.sim.clock().advance(ticks);
        let took = self.now() - begun;
        let mut expected = self.expected();
        expected.overload.longest = expected.overload.longest.max(took);
    }

    fn begin(&self, index: usize, fire: &FireContext) {
        use Invariant::{T1, T2, T3, T4, T5, T7};
        let (sim, now) = (&self.sim, self.now());
        let (due, runs) = (fire.due(), u64::from(fire.batch().runs.get()));
        sim.record("fire", &[index as u64, due.get(), now, runs]);
        let mut expected = self.expected();
        expected.overload.n_runs += runs;
        if let Some(until) = expected.overload.until {
            sim.check(Invariant::S3, now < until, || {
                format!("the shutdown runs job {index} at {now}, after its deadline {until}")
            });
        }
        let repeat = expected.oracle.repeat(index);
        let run = Run { due, now: Tick::new(now), batch: fire.batch() };
        let verdict = expected.oracle.begin(index, run);
        self.judge(repeat, &[T1, T2, T3, T4, T5, T7], verdict);
    }

    /// A run has finished, or is about to.
    fn end(&self, index: usize, fails: bool) {
        let now = self.now();
        self.sim.record("end", &[index as u64, now, u64::from(fails)]);
        self.expected().oracle.end(index, Tick::new(now), fails);
    }

    /// Cancels a job by its handle; the result must agree with the oracle.
    fn cancel(&self, index: usize) {
        let Some(handle) = self.expected().handles[index].clone() else { return };
        let is_won = handle.cancel();
        let is_again = handle.cancel();
        self.sim.record("cancel", &[index as u64, u64::from(is_won)]);
        self.sim.check(Invariant::T3, !is_again, || {
            format!("two cancels of job {index} have succeeded")
        });
        let mut expected = self.expected();
        let repeat = expected.oracle.repeat(index);
        let verdict = expected.oracle.cancel(index, is_won);
        self.judge(repeat, &[Invariant::T3], verdict);
        expected.n_unreaped += u64::from(is_won);
        let is_cancelled = expected.oracle.state(index) == JobState::Cancelled;
        self.sim.check(Invariant::T3, handle.is_cancelled() == is_cancelled, || {
            format!("the handle and the oracle disagree whether job {index} is cancelled")
        });
        expected.spent.push(handle);
    }

    /// The actions of a handler on its own job and on others.
    fn action(&self, index: usize) {
        let (choice, other, micros) = {
            let mut expected = self.expected();
            let n_jobs = expected.oracle.n_jobs();
            let Some(actions) = &mut expected.actions else { return };
            (actions.below(100), actions.index(n_jobs), actions.between(1_000, 400_000))
        };
        match choice {
            0..3 => self.cancel(index),
            3..8 => self.cancel(other),
            8..14 => _ = self.offer(micros, Repeat::Once),
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
    /// The number of close tasks that the workload has registered.
    n_close_tasks: u64,
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
            n_close_tasks: 0,
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
        let expected = Expected::new(Some(self.sim.stream("deeds")));
        let run_state = RunState {
            sim: self.sim.clone(),
            expected: Arc::new(Mutex::new(expected)),
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
        if self.sim.setting("overload", 0, 2) == 0 {
            self.close_overloaded(&run_state);
        } else {
            let report = self.begin_close(&run_state, None);
            self.check_close(&run_state, &report);
        }
        self.forget();
    }

    /// Breaks the reference cycle between the jobs and their handles.
    fn forget(&mut self) {
        // Dropping the host may run due jobs.
        self.host = None;
        if let Some(run_state) = self.run_state.take() {
            let expected = core::mem::replace(&mut *run_state.expected(), Expected::new(None));
            drop(expected);
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
        let n_jobs = run_state.expected().oracle.n_jobs();
        match self.work.below(10) {
            0..4 => {
                let (micros, repeat) = self.draw();
                run_state.offer(micros, repeat);
            }
            4..6 if n_jobs > 0 => run_state.cancel(self.work.index(n_jobs)),
            6 if n_jobs > 0 => self.mark(run_state, n_jobs),
            _ => {}
        }
        if self.sim.fault(Class::TimerFlood).is_some() {
            for _ in 0..=self.quota {
                let (micros, _) = self.draw();
                run_state.offer(micros, Repeat::Once);
            }
        }
        if self.sim.fault(Class::CancelStorm).is_some() {
            let live = run_state.expected().live.clone();
            live.into_iter().for_each(|index| run_state.cancel(index));
        }
    }

    /// Marks a job to run at shutdown.
    fn mark(&mut self, run_state: &RunState, n_jobs: usize) {
        let index = self.work.index(n_jobs);
        let mut expected = run_state.expected();
        let Some(handle) = &expected.handles[index] else { return };
        let is_marked = handle.run_on_close();
        let oracle = &mut expected.oracle;
        let is_expected =
            oracle.state(index) == JobState::Scheduled && oracle.repeat(index) == Repeat::Once;
        if is_marked {
            oracle.mark_run_on_close(index);
        }
        // A job that is due, but has not run yet, may no longer be pending.
        let is_open = oracle.due(index) <= Tick::new(run_state.now());
        run_state.sim.check(Invariant::S1, is_marked == is_expected || is_open, || {
            format!("job {index} is marked: {is_marked}")
        });
    }

    /// The delay until the first run in microseconds, and how the job repeats.
    fn draw(&mut self) -> (u64, Repeat) {
        let work = &mut self.work;
        let far =
            work.pick(&[(30, 2_000), (30, 300), (5, 30_000), (3, 2_000_000), (1, 900_000_000)]);
        // Most delays are whole ticks, some are not.
        let ticks = work.below(far.unwrap_or(1));
        let sub_tick = if work.chance(2_000) { work.below(TICK_MICROS) } else { 0 };
        let repeat = match work.below(10) {
            0..6 => Repeat::Once,
            6..8 => Repeat::FixedRate(Duration::from_millis(work.between(20, 400))),
            _ => Repeat::FixedDelay(Duration::from_millis(work.between(5, 400))),
        };
        (ticks * TICK_MICROS + sub_tick, repeat)
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
            let mut expected = run_state.expected();
            expected.n_unreaped = 0;
            let mut spent = core::mem::take(&mut expected.spent);
            let Expected { oracle, handles, live, .. } = &mut *expected;
            let now = Tick::new(run_state.now());
            live.retain(|index| {
                let (state, due) = (oracle.state(*index), oracle.due(*index));
                if !oracle.is_live(*index) {
                    spent.extend(handles[*index].take());
                    return false;
                }
                run_state.sim.check(
                    Invariant::T2,
                    due > now && state == JobState::Scheduled,
                    || format!("job {index} is {state:?}, due at {due}"),
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
        run_state.expected().actions = None;
        let live = run_state.expected().live.clone();
        let is_periodic =
            |index: &usize| run_state.expected().oracle.repeat(*index) != Repeat::Once;
        let periodic: Vec<usize> = live.into_iter().filter(is_periodic).collect();
        periodic.into_iter().for_each(|index| run_state.cancel(index));
        let until = run_state.now() + PATIENCE;
        let Some(host) = &mut self.host else { return };
        host.deliver_ticks();
        let is_idle = host.run_until_idle();
        self.sim.check(Invariant::L1, is_idle, || {
            "the system is not idle although no faults occur".into()
        });
        let probe = run_state.expected().oracle.n_jobs();
        let is_taken = run_state.offer(5 * TICK_MICROS, Repeat::Once);
        let is_full = run_state.expected().live.len() as u64 >= self.quota;
        self.sim.check(Invariant::L1, is_taken || is_full, || "a job was rejected".into());
        while run_state.now() < until && !self.sim.is_broken() {
            let next = run_state.expected().oracle.next_due();
            let next = next.map_or(until, Tick::get).min(until);
            let Some(host) = &mut self.host else { return };
            host.advance(next.saturating_sub(run_state.now()).max(1));
            let is_idle = host.run_until_idle();
            self.sim.check(Invariant::L1, is_idle, || {
                "the system is not idle although no faults occur".into()
            });
            self.check_idle_state(run_state);
        }
        let state = run_state.expected().oracle.state(probe);
        self.sim.check(Invariant::L1, !is_taken || state == JobState::Completed, || {
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
                shared.expected().closed.push((rank, number));
                Ok(())
            };
            let taken = run_state.jobs.register_on_close(task, priority);
            self.n_close_tasks += u64::from(taken.is_ok());
            self.sim.check(Invariant::S1, taken.is_ok(), || "a shutdown task was rejected".into());
        }
    }

    fn begin_close(&self, run_state: &RunState, timeout: Option<Duration>) -> CloseReport {
        {
            let mut expected = run_state.expected();
            expected.closing = true;
            expected.oracle.close();
            expected.actions = None;
        }
        let report = match timeout {
            None => run_state.jobs.shutdown(),
            Some(timeout) => run_state.jobs.shutdown_within(timeout),
        };
        self.sim.record("closed", &[report.accepted, report.executed, report.cancelled]);
        report
    }

    fn check_close(&self, run_state: &RunState, report: &CloseReport) {
        let sim = &self.sim;
        let expected = run_state.expected();
        let oracle = &expected.oracle;
        sim.check_equal(Invariant::S2, "accepted", report.accepted, expected.accepted);
        sim.check_equal(
            Invariant::S2,
            "executed and cancelled",
            report.executed + report.cancelled,
            report.accepted,
        );
        let is_done = |job: &usize| oracle.state(*job) == JobState::Completed;
        let done = (0..oracle.n_jobs()).filter(is_done).count() as u64;
        sim.check_equal(Invariant::S2, "executed", report.executed, done);
        sim.check_equal(Invariant::S2, "still running", report.still_running, 0);
        let is_missed = |job: &usize| oracle.is_live(*job) && oracle.is_run_on_close(*job);
        let n_missed = (0..oracle.n_jobs()).filter(is_missed).count() as u64;
        sim.check(Invariant::S1, n_missed <= report.runs_left, || {
            format!("{n_missed} jobs did not run at shutdown, {} are reported", report.runs_left)
        });
        let mut sorted = expected.closed.clone();
        sorted.sort_unstable();
        sim.check(Invariant::S1, expected.closed == sorted, || {
            format!("the shutdown tasks ran in the order {:?}", expected.closed)
        });
        let tasks = report.close_tasks;
        let (n_run, n_ended) = (expected.closed.len() as u64, tasks.succeeded + tasks.failed);
        let n_expected = self.n_close_tasks + SYSTEM_CLOSE_TASKS;
        sim.check_equal(Invariant::S1, "close tasks", n_ended + tasks.left, n_expected);
        let is_own = |n_own: u64| n_own == SYSTEM_CLOSE_TASKS || tasks.left > 0 && n_own == 0;
        sim.check(Invariant::S1, is_own(n_ended - n_run.min(n_ended)), || {
            format!("{n_run} close tasks ran, {n_ended} are reported")
        });
        drop(expected);
        let is_taken = run_state.offer(TICK_MICROS, Repeat::Once);
        sim.check(Invariant::S2, !is_taken, || "a job was accepted after shutdown".into());
        let again = run_state.jobs.shutdown();
        let (first, again) = (report.accepted, again.accepted);
        sim.check_equal(Invariant::S2, "accepted by a second close", again, first);
    }

    /// Shuts a scheduler down that has fallen behind, with a deadline that is too short for all
    /// runs that are due. Whatever is due, the shutdown begins no run after its deadline, and it
    /// reports each run that it has left out.
    fn close_overloaded(&mut self, run_state: &RunState) {
        self.sim.heal();
        self.release(run_state);
        // Only the jobs of the overload are live, so that it is known which runs are due.
        run_state.expected().actions = None;
        let live = run_state.expected().live.clone();
        live.into_iter().for_each(|index| run_state.cancel(index));
        let Some(host) = &mut self.host else { return };
        host.deliver_ticks();
        host.run_until_idle();
        let mut draw = self.sim.stream("overload-load");
        let (n_jobs, behind) = (draw.between(1, 4), draw.between(50, 900));
        let (ticks_per_run, timeout) = (draw.between(1, 12), draw.between(0, 300));
        let begun = run_state.now();
        let mut grids = Vec::new();
        for _ in 0..n_jobs {
            let (first, period) = (draw.between(1, 20), draw.between(1, 10));
            let repeat = Repeat::FixedRate(Duration::from_millis(period));
            if run_state.offer(first * TICK_MICROS, repeat) {
                grids.push((first, period));
            }
        }
        run_state.sim.clock().advance(behind);
        // Less, if the source of the clock has gone back before.
        let behind = run_state.now() - begun;
        let n_due_of =
            |(first, period): (u64, u64)| (behind + period).saturating_sub(first) / period;
        let n_due: u64 = grids.into_iter().map(n_due_of).sum();
        let (now, until) = (begun + behind, begun + behind + timeout);
        {
            let mut expected = run_state.expected();
            let until = Some(until);
            expected.overload = Overload { ticks_per_run, n_runs: 0, until, longest: 0 };
        }
        let sim = self.sim.clone();
        sim.record("overload", &[now, n_due, ticks_per_run, timeout]);
        let report = self.begin_close(run_state, Some(Duration::from_millis(timeout)));
        let Overload { n_runs, longest, .. } = run_state.expected().overload;
        let over = run_state.now();
        sim.record("overload-over", &[over, n_runs, report.runs_left]);
        sim.check(Invariant::S3, over <= until + longest, || {
            format!("a shutdown with the deadline {until} ends at {over}; a run takes {longest}")
        });
        sim.check_equal(Invariant::S3, "runs and runs left", n_runs + report.runs_left, n_due);
        self.check_close(run_state, &report);
    }
}
