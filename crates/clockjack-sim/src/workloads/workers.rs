//! Several workers on one thread, turned by hand in any order: who steals from whom, who comes and
//! who leaves, who wakes late.

mod test_future;

use alloc::{boxed::Box, format, sync::Arc, vec::Vec};

use clockjack_exec::{
    Commands, Handle, Limits,
    engine::{Engine, EngineConfig},
    engine_ref::EngineRef,
    watch::Watch,
    worker::hand::{Hand, Turned},
};

use self::test_future::Shared;
use crate::{
    clock::RESOLUTION,
    context::{Mode, SimContext},
    fault::Class,
    host::executor::{ExecutorHost, ExecutorState, Rest},
    invariant::Invariant,
    random::Stream,
    run::{Description, Workload},
};

/// For how many ticks steps may be slow between two looks from outside.
const SLOW_MAX: u64 = 50;
/// After how many turns in one moment the workers count as never idle.
const TURNS_MAX: u64 = 30_000;
/// After how long in one step a worker is reported.
const REPORT_AFTER_NANOS: u64 = 1_000_000_000;
/// How far behind all sleeps are over, in ticks.
const SLEEPS_MAX: u64 = 500;

/// The executor with several workers: wake-ups, conservation, timers of workers that come and go.
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

    fn play(&self, sim: &SimContext) {
        let seats = usize::try_from(sim.setting("seats", 1, 5)).unwrap_or(1);
        let executor_state = ExecutorState::new(sim, seats);
        let messages = usize::try_from(sim.setting("messages", 4, 40)).unwrap_or(4);
        let config = EngineConfig {
            seats,
            node: 0,
            limits: Limits::DEFAULT.messages(messages).processes(1 << 10),
            resolution: RESOLUTION,
            grace_ticks: 2,
            quiet_looks_max: 2,
        };
        let host = Box::new(ExecutorHost(Arc::clone(&executor_state)));
        match Engine::new(host, &config, Commands::new()) {
            Ok(engine) => WorkloadRun::new(sim, &executor_state, engine, seats).play(),
            Err(error) => sim.check(Invariant::M1, false, || format!("no start: {error}")),
        }
        let n_left = Arc::strong_count(&executor_state) as u64 - 1;
        sim.check_equal(Invariant::S2, "engines that are left", n_left, 0);
    }
}

struct WorkloadRun {
    sim: SimContext,
    shared: Shared,
    executor_state: Arc<ExecutorState>,
    engine: EngineRef,
    workers: Vec<Option<(Hand, Rest)>>,
    watch: Watch,
    metronome: Rest,
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
        engine: EngineRef,
        seats: usize,
    ) -> Self {
        Self {
            sim: sim.clone(),
            shared: Shared::new(sim, Handle::new(engine.clone())),
            executor_state: Arc::clone(executor_state),
            engine,
            workers: (0..seats).map(|_| None).collect(),
            watch: Watch::new(seats, REPORT_AFTER_NANOS),
            metronome: Rest::Awake,
            work: sim.stream("work"),
            order: sim.stream("order"),
            steps: sim.setting("steps", 80, 250),
            pace: sim.setting("pace", 1, 40),
            busy: sim.setting("busy", 2, 8),
        }
    }

    fn play(mut self) {
        (0..self.workers.len()).for_each(|seat| self.come(seat));
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
        self.end();
    }

    fn come(&mut self, seat: usize) {
        if self.workers[seat].is_none() {
            self.sim.note("come", &[seat as u64]);
            self.workers[seat] = Some((Hand::new(&self.engine, seat), Rest::Awake));
        }
    }

    fn step(&mut self) {
        self.sim.allow_slowness(SLOW_MAX);
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
        }
        self.disturb();
        // Nobody is there: not for long.
        if !self.has_workers() && self.work.chance(3_000) {
            self.come(0);
        }
        self.pass();
        if self.run() {
            self.check_quiet();
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
                self.sim.note("kill", &[at, u64::from(is_found)]);
            }
        }
    }

    /// Workers come and go, at any moment.
    fn churn(&mut self) {
        let n_seats = self.workers.len();
        let seat = |size: u64| usize::try_from(size % n_seats as u64).unwrap_or(0);
        if let Some(size) = self.sim.fault(Class::WorkerLeaves)
            && self.workers[seat(size)].is_some()
        {
            self.sim.note("dismiss", &[seat(size) as u64]);
            self.engine.dismiss(seat(size));
        }
        if let Some(size) = self.sim.fault(Class::WorkerComes) {
            self.come(seat(size));
        }
    }

    fn pass(&mut self) {
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

    /// Turns whoever is awake or was woken, in any order, until nobody is. Whether it came to that:
    /// no wake was held back.
    fn run(&mut self) -> bool {
        let mut is_complete = true;
        for _ in 0..TURNS_MAX {
            let now = self.sim.clock().raw();
            let mut awake: Vec<usize> = Vec::new();
            for (seat, hand) in self.workers.iter().enumerate() {
                let Some((_, rest)) = hand else { continue };
                let is_awake = *rest == Rest::Awake;
                if !is_awake && !rest.is_over(now) && !self.executor_state.is_called(seat) {
                    if self.sim.fault(Class::SpuriousWake).is_some() {
                        awake.push(seat);
                    }
                    continue;
                }
                if !is_awake && self.sim.fault(Class::LateWake).is_some() {
                    is_complete = false;
                    continue;
                }
                awake.push(seat);
            }
            if self.metronome.is_over(now) || self.executor_state.is_metronome_called() {
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
            let seat = awake[self.order.index(awake.len())];
            self.turn(seat);
            self.churn();
        }
        self.sim.check(Invariant::X1, false, || format!("not idle after {TURNS_MAX} turns"));
        false
    }

    fn turn(&mut self, seat: usize) {
        if seat == self.workers.len() {
            self.executor_state.answer_metronome();
            let until = self.watch.look(&self.engine, |_| {});
            self.metronome = Rest::Asleep(until.map(clockjack_time::Tick::get));
            return;
        }
        self.executor_state.answer(seat);
        let Some((hand, rest)) = &mut self.workers[seat] else { return };
        let turned = hand.turn();
        *rest = Rest::of(turned);
        if turned == Turned::Left {
            self.sim.note("left", &[seat as u64]);
            self.workers[seat] = None;
        }
    }

    fn has_workers(&self) -> bool {
        self.workers.iter().any(Option::is_some)
    }

    /// Nobody has anything to do: no token is unseen, no sleep is overdue, all is accounted for.
    fn check_quiet(&mut self) {
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
        sim.note("quiet", &[now, live]);
    }

    /// Nothing fails any more: every token is seen and every sleep ends.
    fn drain(&mut self) {
        self.sim.heal();
        self.come(0);
        self.run();
        // One that was asked to leave before has left by now.
        self.come(0);
        self.shared.oracle().actions = None;
        let n_cards = self.shared.oracle().futures.len();
        (0..n_cards).for_each(|index| self.shared.give(index));
        let behind = self.sim.now() - self.sim.clock().raw();
        for _ in 0..3 {
            let is_quiet = self.run();
            self.sim.check(Invariant::L1, is_quiet, || "not quiet though nothing fails".into());
            self.check_quiet();
            self.sim.clock().advance(behind + SLEEPS_MAX);
        }
        let is_quiet = self.run();
        let n_asleep =
            self.shared.oracle().futures.iter().filter(|record| record.due.is_some()).count();
        self.sim.check(Invariant::L1, is_quiet && n_asleep == 0, || format!("{n_asleep} sleep on"));
    }

    /// Ends it all.
    fn end(&mut self) {
        self.sim.heal();
        self.shared.oracle().actions = None;
        let is_first = self.engine.stop();
        self.sim.check(Invariant::S2, is_first && !self.engine.stop(), || "stopped twice".into());
        (0..self.workers.len()).for_each(|seat| self.come(seat));
        self.run();
        self.engine.terminate_all(|_| {});
        self.run();
        let (joins, refs) = {
            let mut oracle = self.shared.oracle();
            (core::mem::take(&mut oracle.joins), core::mem::take(&mut oracle.refs))
        };
        let refused = self.shared.handle.spawn(async {});
        self.sim.check(Invariant::S2, refused.pid().is_none(), || "taken after the end".into());
        drop((refused, joins, refs));
        self.workers.iter_mut().for_each(|hand| *hand = None);
        self.engine.close_timers();
        self.engine.close();
        let stats = self.engine.stats();
        self.sim.note("end", &[stats.spawned, stats.stolen]);
        self.sim.check_equal(Invariant::S2, "alive", stats.spawned - stats.finished, 0);
        let oracle = self.shared.oracle();
        self.sim.check_equal(Invariant::X3, "ended", oracle.n_ended, oracle.n_spawned);
    }
}
