//! An executor with several workers on one thread, stepped in random order: work stealing, workers
//! that join and leave, and late wake-ups.

mod test_future;

use std::sync::Arc;

use clockjack_exec::{
    Commands, Handle, Limits,
    executor::{ExecutorConfig, ExecutorShared},
    executor_ref::ExecutorRef,
    watchdog::Watchdog,
    worker::manual::{ManualStep, ManualWorker},
};

use self::test_future::Shared;
use crate::{
    clock::RESOLUTION,
    context::{Mode, SimContext},
    fault::Class,
    host::executor::{ExecutorHost, ExecutorState, SleepState},
    invariant::Invariant,
    random::Stream,
    run::{Description, Workload},
};

/// The maximum number of ticks that polls may consume per step of the workload.
const SLOW_MAX: u64 = 50;
/// After this many steps without a pause, the executor counts as never idle.
const STEPS_MAX: u64 = 30_000;
/// After this time in one poll, a worker is reported.
const REPORT_AFTER_NANOS: u64 = 1_000_000_000;
/// After this many ticks, all sleeps are over.
const SLEEPS_MAX: u64 = 500;

/// The executor with several workers: wake-ups, conservation, and timers of workers that join and
/// leave.
#[derive(Clone, Copy, Debug)]
pub struct Workers;

impl Workload for Workers {
    fn description(&self) -> Description {
        use Class::{ClockBack, Kill, MailFlood, MetronomeLate, WorkerComes, WorkerLeaves};
        use Invariant::{A2, L1, M1, S2, T1, T2, X1, X2, X3};
        Description {
            name: "workers",
            faults: &[
                Class::EVERYDAY,
                &[ClockBack, MailFlood, Kill, WorkerLeaves, WorkerComes, MetronomeLate],
            ],
            invariants: &[X1, X2, X3, T1, T2, A2, M1, S2, L1],
            least_records: 200,
            least_comparisons: 200,
        }
    }

    fn run(&self, sim: &SimContext) {
        let n_workers = usize::try_from(sim.setting("seats", 1, 5)).unwrap_or(1);
        let executor_state = ExecutorState::new(sim, n_workers);
        let messages = usize::try_from(sim.setting("messages", 4, 40)).unwrap_or(4);
        let config = ExecutorConfig {
            workers: n_workers,
            node: 0,
            limits: Limits::DEFAULT.messages(messages).processes(1 << 10),
            resolution: RESOLUTION,
            tolerance_ticks: 2,
            quiet_polls_max: 2,
        };
        let host = Box::new(ExecutorHost(Arc::clone(&executor_state)));
        match ExecutorShared::new(host, &config, Commands::new()) {
            Ok(engine) => WorkloadRun::new(sim, &executor_state, engine, n_workers).execute(),
            Err(error) => sim.check(Invariant::M1, false, || format!("start failed: {error}")),
        }
        let n_left = Arc::strong_count(&executor_state) as u64 - 1;
        sim.check_equal(Invariant::S2, "remaining executors", n_left, 0);
    }
}

struct WorkloadRun {
    sim: SimContext,
    shared: Shared,
    executor_state: Arc<ExecutorState>,
    engine: ExecutorRef,
    workers: Vec<Option<(ManualWorker, SleepState)>>,
    watch: Watchdog,
    watchdog: SleepState,
    work: Stream,
    order: Stream,
    steps: u64,
    pace: u64,
    busy: u64,
}

impl WorkloadRun {
    fn new(
        sim: &SimContext,
        executor_state: &Arc<ExecutorState>,
        engine: ExecutorRef,
        n_workers: usize,
    ) -> Self {
        Self {
            sim: sim.clone(),
            shared: Shared::new(sim, Handle::new(engine.clone())),
            executor_state: Arc::clone(executor_state),
            engine,
            workers: (0..n_workers).map(|_| None).collect(),
            watch: Watchdog::new(n_workers, REPORT_AFTER_NANOS),
            watchdog: SleepState::Awake,
            work: sim.stream("work"),
            order: sim.stream("order"),
            steps: sim.setting("steps", 80, 250),
            pace: sim.setting("pace", 1, 40),
            busy: sim.setting("busy", 2, 8),
        }
    }

    fn execute(mut self) {
        (0..self.workers.len()).for_each(|worker| self.join(worker));
        for _ in 0..self.busy * 3 {
            self.shared.spawn();
        }
        for _ in 0..self.sim.setting("processes", 1, 4) {
            self.shared.submit();
        }
        for _ in 0..self.steps {
            self.step();
            if self.sim.is_broken() {
                break;
            }
        }
        if self.sim.mode() == Mode::Liveness && !self.sim.is_broken() {
            self.drain();
        }
        self.shutdown();
    }

    fn join(&mut self, worker: usize) {
        if self.workers[worker].is_none() {
            self.sim.record("come", &[worker as u64]);
            self.workers[worker] =
                Some((ManualWorker::new(&self.engine, worker), SleepState::Awake));
        }
    }

    fn step(&mut self) {
        self.sim.allow_slowness(SLOW_MAX);
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
        }
        self.disturb();
        // No worker is left: one must join soon.
        if !self.has_workers() && self.work.chance(3_000) {
            self.join(0);
        }
        self.advance();
        if self.run() {
            self.check_idle_state();
        }
    }

    fn act(&mut self) {
        let (n_cards, n_tills) = {
            let oracle = self.shared.oracle();
            (oracle.futures.len(), oracle.processes.len())
        };
        match self.work.below(10) {
            0..6 => self.shared.give(self.work.index(n_cards)),
            6 => self.shared.spawn(),
            _ => self.shared.send(self.work.index(n_tills)),
        }
    }

    fn disturb(&mut self) {
        if let Some(size) = self.sim.fault(Class::MailFlood) {
            let n_tills = self.shared.oracle().processes.len() as u64;
            let to = usize::try_from(size % n_tills.max(1)).unwrap_or(0);
            (0..60).for_each(|_| self.shared.send(to));
        }
        if let Some(size) = self.sim.fault(Class::Kill) {
            let oracle = self.shared.oracle();
            let at = size % oracle.futures.len().max(1) as u64;
            let pid =
                oracle.joins.get(&usize::try_from(at).unwrap_or(0)).and_then(|join| join.pid());
            drop(oracle);
            if let Some(pid) = pid {
                let is_found = self.engine.terminate(pid);
                self.sim.record("kill", &[at, u64::from(is_found)]);
            }
        }
    }

    /// Workers join and leave at arbitrary times.
    fn churn(&mut self) {
        let n_workers = self.workers.len();
        let worker = |size: u64| usize::try_from(size % n_workers as u64).unwrap_or(0);
        if let Some(size) = self.sim.fault(Class::WorkerLeaves)
            && self.workers[worker(size)].is_some()
        {
            self.sim.record("dismiss", &[worker(size) as u64]);
            self.engine.request_worker_stop(worker(size));
        }
        if let Some(size) = self.sim.fault(Class::WorkerComes) {
            self.join(worker(size));
        }
    }

    fn advance(&mut self) {
        let mut ticks = self.work.below(self.pace * 2);
        if let Some(size) = self.sim.fault(Class::ClockJump) {
            ticks += [300, 3_000, 1 << 21][usize::try_from(size % 3).unwrap_or(0)];
        }
        if self.sim.fault(Class::ClockStill).is_some() {
            ticks = 0;
        }
        let clock = self.sim.clock();
        if let Some(size) = self.sim.fault(Class::ClockBack) {
            clock.go_back(1 + size % 60);
        }
        clock.advance(ticks);
    }

    /// Steps workers that are awake or were woken, in random order, until none is. Returns whether
    /// the executor is idle: false if a wake-up was delayed.
    fn run(&mut self) -> bool {
        let mut is_complete = true;
        for _ in 0..STEPS_MAX {
            let now = self.sim.clock().raw();
            let mut awake: Vec<usize> = Vec::new();
            for (worker, manual_worker) in self.workers.iter().enumerate() {
                let Some((_, sleep)) = manual_worker else { continue };
                let is_awake = *sleep == SleepState::Awake;
                if !is_awake && !sleep.is_over(now) && !self.executor_state.is_woken(worker) {
                    if self.sim.fault(Class::SpuriousWake).is_some() {
                        awake.push(worker);
                    }
                    continue;
                }
                if !is_awake && self.sim.fault(Class::LateWake).is_some() {
                    is_complete = false;
                    continue;
                }
                awake.push(worker);
            }
            if self.watchdog.is_over(now) || self.executor_state.is_watchdog_woken() {
                if self.sim.fault(Class::MetronomeLate).is_none() {
                    awake.push(self.workers.len());
                } else {
                    is_complete = false;
                }
            }
            if awake.is_empty() {
                return is_complete;
            }
            is_complete = true;
            let worker = awake[self.order.index(awake.len())];
            self.step_worker(worker);
            self.churn();
        }
        self.sim.check(Invariant::X1, false, || format!("not idle after {STEPS_MAX} turns"));
        false
    }

    fn step_worker(&mut self, worker: usize) {
        if worker == self.workers.len() {
            self.executor_state.clear_watchdog_wake();
            let until = self.watch.poll(&self.engine, |_| {});
            self.watchdog = SleepState::Asleep(until.map(clockjack_time::Tick::get));
            return;
        }
        self.executor_state.clear_wake(worker);
        let Some((manual_worker, sleep)) = &mut self.workers[worker] else { return };
        let step = manual_worker.step();
        *sleep = SleepState::of(step);
        if step == ManualStep::Stopped {
            self.sim.record("left", &[worker as u64]);
            self.workers[worker] = None;
        }
    }

    fn has_workers(&self) -> bool {
        self.workers.iter().any(Option::is_some)
    }

    /// No task has anything to do: no token is unseen, no sleep is overdue, and all tasks are
    /// accounted for.
    fn check_idle_state(&mut self) {
        if !self.has_workers() {
            return;
        }
        let now = self.sim.clock().raw();
        let sim = self.sim.clone();
        let oracle = self.shared.oracle();
        for (index, record) in
            oracle.futures.iter().enumerate().filter(|(_, record)| !record.is_over)
        {
            let tokens = record.tokens;
            sim.check(Invariant::X1, tokens == 0, || format!("future {index} has {tokens} tokens"));
            sim.check(Invariant::T2, record.due.is_none_or(|due| due > now), || {
                format!("the sleep of future {index} is due: {:?}", record.due)
            });
        }
        for (index, record) in
            oracle.processes.iter().enumerate().filter(|(_, record)| !record.is_over)
        {
            let n = record.sent.len();
            sim.check(Invariant::X1, n == 0, || format!("process {index} has {n} messages"));
        }
        let stats = self.engine.stats();
        let live = stats.spawned - stats.finished;
        sim.check_equal(Invariant::X3, "spawned", stats.spawned, oracle.n_spawned);
        sim.check_equal(Invariant::X3, "alive", live, oracle.n_spawned - oracle.n_ended);
        sim.record("quiet", &[now, live]);
    }

    /// No more faults: every token is seen, and every sleep ends.
    fn drain(&mut self) {
        self.sim.heal();
        self.join(0);
        self.run();
        // A worker that was asked to leave before has left by now.
        self.join(0);
        self.shared.oracle().actions = None;
        let n_cards = self.shared.oracle().futures.len();
        (0..n_cards).for_each(|index| self.shared.give(index));
        let behind = self.sim.now() - self.sim.clock().raw();
        for _ in 0..3 {
            let is_idle = self.run();
            self.sim.check(Invariant::L1, is_idle, || {
                "the system is not idle although no faults occur".into()
            });
            self.check_idle_state();
            self.sim.clock().advance(behind + SLEEPS_MAX);
        }
        let is_idle = self.run();
        let n_asleep =
            self.shared.oracle().futures.iter().filter(|record| record.due.is_some()).count();
        self.sim.check(Invariant::L1, is_idle && n_asleep == 0, || {
            format!("{n_asleep} sleeps have not ended")
        });
    }

    /// Shuts the executor down.
    fn shutdown(&mut self) {
        self.sim.heal();
        self.shared.oracle().actions = None;
        let is_first = self.engine.begin_shutdown();
        self.sim.check(Invariant::S2, is_first && !self.engine.begin_shutdown(), || {
            "stopped twice".into()
        });
        (0..self.workers.len()).for_each(|worker| self.join(worker));
        self.run();
        self.engine.terminate_all(|_| {});
        self.run();
        let (joins, refs) = {
            let mut oracle = self.shared.oracle();
            (core::mem::take(&mut oracle.joins), core::mem::take(&mut oracle.refs))
        };
        let refused = self.shared.handle.spawn_future(async {});
        self.sim.check(Invariant::S2, refused.pid().is_none(), || {
            "a task was accepted after shutdown".into()
        });
        drop((refused, joins, refs));
        self.workers.iter_mut().for_each(|manual_worker| *manual_worker = None);
        self.engine.close_timers();
        self.engine.close_run_queue();
        let stats = self.engine.stats();
        self.sim.record("end", &[stats.spawned, stats.stolen]);
        self.sim.check_equal(Invariant::S2, "alive", stats.spawned - stats.finished, 0);
        let oracle = self.shared.oracle();
        self.sim.check_equal(Invariant::X3, "ended", oracle.n_ended, oracle.n_spawned);
    }
}
