//! A system of actors: a supervised tree with messages, timers, watches, restarts and stops.
//!
//! Each message carries its sender and its number, and each timer carries its deadline. An oracle
//! next to the system derives from these what must happen; it does not rely on reports of the
//! system.

mod node;
mod oracle;
mod plan;

use core::time::Duration;

use clockjack_actor::{
    ActorSystem, Cancellable, DeadLetterReason, DispatcherId, Pid, SystemMessage, Termination,
    TerminationReport,
};

use self::{
    node::{find, props, tell},
    oracle::{Fate, Lifecycle, Shared},
    plan::{AMPLE_RESERVE, Action, is_below, name},
};
use crate::{
    context::{Mode, SimContext},
    fault::Class,
    host::single_thread::SingleThreadHost,
    invariant::Invariant,
    random::Stream,
    run::{Description, Phases, Workload, run_phases},
};

/// The maximum number of ticks that handlers may consume per step of the workload.
const SLOW_MAX: u64 = 60;
/// The number of messages of a flood.
const FLOOD: u64 = 24;
/// The duration of the drain phase in ticks; longer than all restart backoffs together.
const DRAIN_TICKS: u64 = 3_000;
/// The delay of the jobs that occupy the scheduler: longer than a run, apart from jumps of the
/// clock.
const CROWD_DELAY: Duration = Duration::from_secs(86_400);
/// How often a system without a driver is polled at a time: more often than it has tasks to run.
const TURNS_WITHOUT_DRIVER: usize = 100;
/// How often the end of a shutdown is polled, and the time between two polls in ticks.
const SHUTDOWN_POLLS: u64 = 400;
const SHUTDOWN_POLL_TICKS: u64 = 25;

/// Supervision, message order, conservation, death watch and timers of actors.
#[derive(Clone, Copy, Debug)]
pub struct Actors;

impl Workload for Actors {
    fn description(&self) -> Description {
        use Class::{ClockBack, ClockDrift, DriverStall, MailFlood, OddStop, StartFails};
        use Invariant::{
            A1, A2, A3, A5, A6, A7, A8, A11, A12, A13, L1, M1, S1, S2, T1, T2, T3, T4, X1,
        };
        Description {
            name: "actors",
            faults: &[
                Class::EVERYDAY,
                &[ClockDrift, ClockBack, DriverStall, StartFails, MailFlood, OddStop],
            ],
            invariants: &[
                A1, A2, A3, A5, A6, A7, A8, A11, A12, A13, T1, T2, T3, T4, X1, M1, S1, S2, L1,
            ],
            least_records: 120,
            least_comparisons: 300,
        }
    }

    fn run(&self, sim: &SimContext) {
        let shared = Shared::new(sim, plan::draw(sim));
        let mut builder = ActorSystem::builder("actors").shutdown_on_escalation(false);
        if let Some(crowd) = shared.crowd {
            builder = builder.scheduler(crowd.config());
        }
        match SingleThreadHost::start(sim, builder) {
            Ok(host) => WorkloadRun::new(sim, shared.clone(), host).execute(),
            Err(error) => sim.check(Invariant::M1, false, || format!("start failed: {error}")),
        }
        // Breaks the reference cycle between the oracle and the actors.
        let known = core::mem::take(&mut shared.oracle().known);
        drop(known);
    }
}

struct WorkloadRun {
    sim: SimContext,
    shared: Shared,
    host: SingleThreadHost,
    work: Stream,
    steps: u64,
    pace: u64,
    busy: u64,
    failing: u64,
    /// The jobs of users that occupy the scheduler.
    crowd: Vec<Cancellable>,
    crowding: Stream,
}

impl WorkloadRun {
    fn new(sim: &SimContext, shared: Shared, host: SingleThreadHost) -> Self {
        Self {
            sim: sim.clone(),
            shared,
            host,
            work: sim.stream("work"),
            steps: sim.setting("steps", 80, 220),
            pace: sim.setting("pace", 1, 40),
            busy: sim.setting("busy", 2, 7),
            failing: sim.setting("failing", 0, 8),
            crowd: Vec::new(),
            crowding: sim.stream("crowding"),
        }
    }

    fn execute(mut self) {
        self.spawn_missing();
        let (sim, steps) = (self.sim.clone(), self.steps);
        run_phases(&sim, steps, &mut self);
    }

    fn n_nodes(&self) -> usize {
        self.shared.plans.len()
    }

    fn is_top(&self, index: usize) -> bool {
        self.shared.plans[index].above.is_none()
    }

    /// Spawns the top-level actors that do not exist.
    fn spawn_missing(&mut self) {
        for index in 0..self.n_nodes() {
            if self.is_top(index) {
                // Spawning fails if the name is taken.
                let spawned = self.host.root().spawn(&name(index), props(&self.shared, index));
                if let Ok(spawned) = spawned {
                    self.shared.oracle().is_spawned(spawned.pid());
                    let (restarts, within) = self.shared.plans[index].limit.unwrap_or_default();
                    self.sim.record("spawn", &[index as u64, restarts, within]);
                }
            }
        }
    }

    fn send(&mut self) {
        let n_nodes = self.n_nodes();
        let to = self.work.index(n_nodes);
        let action = Action::draw(&mut self.work, n_nodes, self.failing);
        let lane = u8::from(self.work.chance(1_000));
        tell(self.host.system(), &self.shared, 0, to, (lane, action));
    }

    fn disturb(&mut self) {
        if let Some(size) = self.sim.fault(Class::MailFlood) {
            let to = pick(size, self.n_nodes());
            for _ in 0..FLOOD {
                tell(self.host.system(), &self.shared, 0, to, (0, Action::Work));
            }
        }
        if let Some(size) = self.sim.fault(Class::OddStop) {
            let index = pick(size, self.n_nodes());
            if let Some(who) = find(self.host.system(), &self.shared, index) {
                self.shared.oracle().exempt(index);
                let is_sent = who.try_send_system(SystemMessage::Stop).is_ok();
                self.sim.record("odd-stop", &[index as u64, u64::from(is_sent)]);
            }
        }
        if self.work.chance(800) {
            self.cancel_one();
        }
    }

    /// Users occupy the scheduler, until it refuses their jobs, or leave it.
    fn crowd(&mut self) {
        if self.shared.crowd.is_none() {
            return;
        }
        if self.crowding.chance(7_000) {
            let jobs = self.host.system().scheduler().jobs();
            let schedule =
                || jobs.schedule_once_fn(CROWD_DELAY, DispatcherId::DEFAULT, |_| ()).ok();
            self.crowd.extend(core::iter::from_fn(schedule));
        } else {
            self.crowd.drain(..).for_each(|job| _ = job.cancel());
        }
        self.sim.record("crowd", &[self.crowd.len() as u64]);
    }

    /// A user closes the scheduler of an idle system, and the actors live on.
    fn close_scheduler_early(&mut self) {
        if !self.shared.crowd.is_some_and(|crowd| crowd.closes_early) || !self.run_until_idle() {
            return;
        }
        self.sim.record("close-early", &[self.sim.now()]);
        self.host.system().scheduler().jobs().shutdown();
        self.crowd.clear();
        self.shared.scheduler_closed();
        self.run_until_idle();
    }

    /// Cancels a scheduled message, which may already be delivered.
    fn cancel_one(&mut self) {
        let n_jobs = self.shared.oracle().jobs.len();
        if n_jobs > 0 {
            let at = self.work.index(n_jobs);
            self.cancel_job(at);
        }
    }

    /// Cancels a job of the list. Returns whether the job was still pending.
    fn cancel_job(&self, at: usize) -> bool {
        let (job, id) = self.shared.oracle().jobs.swap_remove(at);
        let is_closed = self.host.system().scheduler().jobs().is_closed();
        let was_cancelled = job.is_cancelled();
        self.sim.check(Invariant::T3, is_closed || !was_cancelled, || {
            format!("the job of message {id} is cancelled, but nobody has cancelled it")
        });
        if was_cancelled {
            self.shared.is_cancelled_by_shutdown(id);
        }
        let fate = self.shared.oracle().fates[id];
        if fate == Fate::Sent {
            self.shared.oracle().fates[id] = Fate::Returned;
        }
        let is_won = job.cancel();
        self.sim.record("cancel", &[id as u64, u64::from(is_won)]);
        self.sim.check(Invariant::T3, is_won == (fate == Fate::Sent), || {
            format!("the cancel of message {id}, which was {fate:?}, says {is_won}")
        });
        if !is_won && fate == Fate::Sent {
            self.shared.oracle().fates[id] = Fate::Sent;
        }
        is_won
    }

    /// Runs until the system is idle, if it gets there; then checks that it is.
    fn run_until_idle(&mut self) -> bool {
        let is_idle = self.run_host();
        if is_idle {
            self.host.check_idle_state();
            self.shared.check_idle_state();
        }
        is_idle
    }

    /// Runs until the system sleeps. The close of the scheduler has stopped the driver, whose ticks
    /// would wake the system: from then on it is polled as long as something waits for its time.
    fn run_host(&mut self) -> bool {
        if !self.shared.oracle().is_scheduler_closed {
            return self.host.run_until_idle();
        }
        (0..TURNS_WITHOUT_DRIVER).for_each(|_| self.host.step_if_woken());
        true
    }

    /// Stops a top-level actor of an idle system, and checks the order in which the actors stop.
    fn stop_and_check_order(&mut self, index: usize) {
        let Some(who) = find(self.host.system(), &self.shared, index) else { return };
        if !self.is_top(index) {
            return;
        }
        let before = self.shared.oracle().stopped.len();
        let alive = self.alive(Some(index));
        self.shared.oracle().exempt(index);
        let is_sent = self.host.system().stop(&who).is_ok();
        self.sim.record("stop-in-order", &[index as u64, u64::from(is_sent)]);
        if self.run_until_idle() {
            self.check_order(&alive, before);
        }
    }

    /// The started actors at or below `top`, or all: index and pid.
    fn alive(&self, top: Option<usize>) -> Vec<(usize, Pid)> {
        let plans = &self.shared.plans;
        let oracle = self.shared.oracle();
        let is_meant = |index| top.is_none_or(|top| is_below(plans, index, top));
        let values = oracle.values.values();
        let alive =
            values.filter(|value| value.lifecycle == Lifecycle::Started && is_meant(value.index));
        alive.map(|value| (value.index, value.pid)).collect()
    }

    /// All of these actors were stopped together, from the top: children must stop in the reverse
    /// order of their start, and before their parents.
    fn check_order(&self, alive: &[(usize, Pid)], before: usize) {
        let oracle = self.shared.oracle();
        let ended: Vec<Pid> = oracle.stopped[before..].iter().map(|(_, pid)| *pid).collect();
        let place = |pid: &Pid| ended.iter().position(|one| one == pid);
        for (index, pid) in alive {
            self.sim.check(Invariant::A5, place(pid).is_some(), || {
                format!("actor {index} did not stop")
            });
            let above = self.shared.plans[*index].above;
            for (other, sibling) in alive {
                if other == index || self.shared.plans[*other].above != above {
                    continue;
                }
                let is_later = oracle.order_of(*pid) > oracle.order_of(*sibling);
                let is_first = place(pid) < place(sibling);
                self.sim.check(Invariant::A5, is_later == is_first, || {
                    format!("actors {index} and {other} stop in the wrong order")
                });
            }
            let parent = alive.iter().find(|(one, _)| Some(*one) == above);
            let is_fine = parent.is_none_or(|(_, parent)| place(parent) > place(pid));
            self.sim
                .check(Invariant::A5, is_fine, || format!("actor {index} stops after its parent"));
        }
    }

    fn wait_for_end(&mut self, end: &Termination) -> Option<TerminationReport> {
        for _ in 0..SHUTDOWN_POLLS {
            self.host.deliver_ticks();
            self.run_host();
            if let Some(report) = end.report() {
                return Some(report);
            }
            self.host.advance(SHUTDOWN_POLL_TICKS);
        }
        None
    }

    /// Objects that are dropped after the report are dropped here: tasks that were woken for it
    /// run.
    fn finish(&mut self) {
        self.sim.heal();
        self.host.deliver_ticks();
        self.run_host();
        let is_closed = self.host.system().scheduler().jobs().is_closed();
        self.sim.check(Invariant::S2, is_closed, || "the scheduler is open after shutdown".into());
        // Actors may have scheduled messages during the shutdown. Those that were not sent before
        // the scheduler closed were cancelled by the close, so nothing is left to cancel.
        while !self.shared.oracle().jobs.is_empty() {
            let is_pending = self.cancel_job(0);
            self.sim.check(Invariant::S2, !is_pending, || "a job is pending after shutdown".into());
        }
    }

    /// No actor is left, and every message is accounted for.
    fn check_end(&self) {
        let metrics = self.host.system().metrics();
        let reasons = [
            DeadLetterReason::Stopped,
            DeadLetterReason::MailboxFull,
            DeadLetterReason::Evicted,
            DeadLetterReason::StashFull,
            DeadLetterReason::NoReceiver,
        ];
        let letters: usize = reasons.iter().map(|reason| metrics.dead_letters(*reason)).sum();
        let oracle = self.shared.oracle();
        let n_left = oracle.values.len() as u64;
        let n_on_the_way = oracle.fates.iter().filter(|fate| **fate == Fate::Sent).count() as u64;
        let n_dropped = oracle.n_dropped;
        drop(oracle);
        self.sim.record("end", &[n_dropped, letters as u64]);
        self.sim.check_equal(Invariant::S2, "remaining actor values", n_left, 0);
        self.sim.check_equal(Invariant::S2, "live actors", metrics.live as u64, 0);
        self.sim.check_equal(Invariant::A3, "unaccounted messages", n_on_the_way, 0);
        self.sim.check_equal(Invariant::A3, "dropped messages", n_dropped, letters as u64);
        // Jobs of users, however many there are, take no place of the reserve.
        if self.shared.crowd.is_some_and(|crowd| crowd.reserve == AMPLE_RESERVE) {
            let n_beyond = self.host.system().scheduler().jobs().metrics().reserve_exceeded_total;
            self.sim.check_equal(Invariant::M1, "jobs beyond the reserve", n_beyond, 0);
        }
    }
}

impl Phases for WorkloadRun {
    fn step(&mut self) {
        self.sim.allow_slowness(SLOW_MAX);
        self.crowd();
        for _ in 0..self.work.below(self.busy * 2) {
            self.send();
        }
        self.disturb();
        if self.work.chance(1_500) {
            self.spawn_missing();
        }
        let ticks = self.work.below(self.pace * 2);
        self.host.advance(ticks);
        // Sometimes the workload continues before the system is idle.
        if self.work.chance(2_500) {
            self.host.step_if_woken();
        } else if self.run_until_idle() && self.work.chance(500) {
            let index = self.work.index(self.n_nodes());
            self.stop_and_check_order(index);
        }
    }

    /// No more faults: every live actor responds, and all due timers fire.
    fn drain(&mut self) {
        self.sim.heal();
        self.host.deliver_ticks();
        self.close_scheduler_early();
        let until = self.sim.now() + DRAIN_TICKS;
        while self.sim.now() < until && !self.sim.is_broken() {
            self.sim.allow_slowness(SLOW_MAX);
            self.host.advance(self.pace.max(10));
            let is_idle = self.run_until_idle();
            self.sim.check(Invariant::L1, is_idle, || {
                "the system is not idle although no faults occur".into()
            });
        }
        self.shared.check_restarts();
        self.spawn_missing();
        self.run_until_idle();
        for index in 0..self.n_nodes() {
            let Some(who) = find(self.host.system(), &self.shared, index) else {
                let is_top = self.is_top(index);
                self.sim.check(Invariant::L1, !is_top, || format!("actor {index} does not exist"));
                continue;
            };
            let probe = self.shared.oracle().fates.len();
            let is_taken = tell(self.host.system(), &self.shared, 0, index, (0, Action::Work));
            self.run_until_idle();
            let fate = self.shared.oracle().fates[probe];
            let is_fine = is_taken && fate == Fate::Handled;
            self.sim.check(Invariant::L1, is_fine, || {
                format!("actor {index}, stopped {}: a message is {fate:?}", who.is_stopped())
            });
        }
    }

    /// Shuts the system down: at an arbitrary time, or from an idle state, which allows checking
    /// the order.
    fn shutdown(&mut self) {
        while !self.shared.oracle().jobs.is_empty() {
            self.cancel_job(0);
        }
        let is_in_order = self.sim.mode() == Mode::Liveness;
        let (alive, before) = (self.alive(None), self.shared.oracle().stopped.len());
        for index in 0..self.n_nodes() {
            self.shared.oracle().exempt(index);
        }
        let end = self.host.system().shutdown();
        self.sim.record("terminate", &[self.sim.now()]);
        let Some(report) = self.wait_for_end(&end) else {
            return self.sim.check(Invariant::S2, false, || "the system does not shut down".into());
        };
        self.sim.check(Invariant::S2, report.is_clean(), || format!("{report:?}"));
        if is_in_order {
            self.check_order(&alive, before);
        }
        self.finish();
        self.check_end();
        let again = self.host.system().shutdown().report();
        self.sim.check(Invariant::S2, again.as_ref() == Some(&report), || {
            "a second shutdown has a different result".into()
        });
    }
}

/// An index derived from the size of a fault.
fn pick(size: u64, len: usize) -> usize {
    usize::try_from(size % len.max(1) as u64).unwrap_or(0)
}
