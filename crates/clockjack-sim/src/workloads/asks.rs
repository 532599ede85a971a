//! Asks and actor futures: who asks whom, how the asker waits, and how the ask ends.
//!
//! Each request carries its number, and so does each reply. Code that drops a request, or a future
//! that it has started, informs the oracle before the asker can notice. Therefore the oracle knows
//! for each ask how it may end.

mod node;
mod run_state;

use core::time::Duration;

use clockjack_actor::{ActorSystem, DeadLetterReason, SystemMessage};
use clockjack_exec::JoinHandle;

use self::{
    node::{Action, Msg, NodePlan, RequestHandling, name, props},
    run_state::{End, RunState, WaitKind},
};
use crate::{
    context::SimContext,
    fault::Class,
    host::any::AnyHost,
    invariant::Invariant,
    random::Stream,
    run::{Description, Phases, Workload, run_phases},
};

/// The maximum number of ticks that handlers may consume per step of the workload.
const SLOW_MAX: u64 = 60;
/// The number of messages of a flood.
const FLOOD: u64 = 24;
/// How often the drain phase checks whether all futures have ended, and the time between two checks
/// in ticks. A message that arrived while an actor waited can make it wait again.
const DRAIN_POLLS: u64 = 2_000;
const DRAIN_POLL_TICKS: u64 = 60;

/// Asks, their timeouts, and futures of actors.
#[derive(Clone, Copy, Debug)]
pub struct Asks;

impl Workload for Asks {
    fn description(&self) -> Description {
        use Class::{ClockDrift, DriverStall, Kill, MailFlood, OddStop};
        use Invariant::{A1, A3, A8, A9, A10, L1, M1, S2, T1, T2, X1};
        Description {
            name: "asks",
            faults: &[Class::EVERYDAY, &[ClockDrift, DriverStall, MailFlood, OddStop, Kill]],
            invariants: &[A1, A3, A8, A9, A10, M1, T1, T2, X1, S2, L1],
            least_records: 120,
            least_comparisons: 300,
        }
    }

    fn run(&self, sim: &SimContext) {
        let n_workers = usize::try_from(sim.setting("seats", 0, 4)).unwrap_or(0);
        let run_state = RunState::new(sim, sim.setting("futures", 1, 6));
        let builder = ActorSystem::builder("asks").shutdown_on_escalation(false);
        match AnyHost::start(sim, builder, n_workers) {
            Ok(host) => WorkloadRun::new(sim, run_state.clone(), host).execute(),
            Err(error) => sim.check(Invariant::M1, false, || format!("start failed: {error}")),
        }
        // Breaks the reference cycle between the oracle and the actors.
        let refs = core::mem::take(&mut run_state.oracle().refs);
        drop(refs);
    }
}

struct WorkloadRun {
    sim: SimContext,
    run_state: RunState,
    host: AnyHost,
    plans: Vec<NodePlan>,
    /// Asks from outside of the system.
    joins: Vec<JoinHandle<()>>,
    work: Stream,
    steps: u64,
    pace: u64,
    busy: u64,
    failing: u64,
}

impl WorkloadRun {
    fn new(sim: &SimContext, run_state: RunState, host: AnyHost) -> Self {
        let mut shape = sim.stream("shape");
        let n_nodes = sim.setting("nodes", 2, 9);
        Self {
            sim: sim.clone(),
            run_state,
            host,
            plans: (0..n_nodes).map(|_| NodePlan::draw(&mut shape)).collect(),
            joins: Vec::new(),
            work: sim.stream("work"),
            steps: sim.setting("steps", 60, 180),
            pace: sim.setting("pace", 1, 40),
            busy: sim.setting("busy", 2, 7),
            failing: sim.setting("failing", 0, 6),
        }
    }

    fn execute(mut self) {
        self.spawn_missing();
        let (sim, steps) = (self.sim.clone(), self.steps);
        run_phases(&sim, steps, &mut self);
    }

    /// Spawns the actors that do not exist.
    fn spawn_missing(&mut self) {
        for index in 0..self.plans.len() {
            let made = props(&self.run_state, index, self.plans[index]);
            // Spawning fails if the name is taken.
            if let Ok(spawned) = self.host.system().spawn(&name(index), made) {
                self.sim.record("spawn", &[index as u64]);
                self.run_state.oracle().refs.insert(index, spawned);
            }
        }
    }

    fn act(&mut self) {
        let n_nodes = self.plans.len();
        let to = self.work.index(n_nodes);
        if self.work.chance(2_500) {
            let handling = RequestHandling::draw(&mut self.work, n_nodes, self.failing);
            let ticks = self.work.between(1, 250);
            return self.ask(to, ticks, handling);
        }
        let action = Action::draw(&mut self.work, n_nodes, self.failing);
        let is_urgent = self.work.chance(1_500);
        let target = self.run_state.oracle().refs.get(&to).cloned();
        // An actor that has stopped, or whose mailbox is full, rejects the message.
        if let Some(target) = target {
            let sent = if is_urgent {
                target.tell_control(Msg::Urgent(action))
            } else {
                target.tell(Msg::Do(action))
            };
            self.sim.record("tell", &[to as u64, u64::from(sent.is_ok())]);
        }
    }

    /// Asks from outside of the system.
    fn ask(&mut self, to: usize, ticks: u64, handling: RequestHandling) {
        let target = self.run_state.oracle().refs.get(&to).cloned();
        let Some(target) = target else { return };
        let guard = self.run_state.begins(None, WaitKind::Outside, Some((to, &target)), ticks);
        let (id, run_state) = (guard.id, &self.run_state);
        let request = |reply| Msg::Asks(run_state.request(id, reply), handling);
        let ask = target.ask(request, Duration::from_millis(ticks));
        let future = async move {
            let answer = ask.await;
            guard.ends(End::of(&answer));
        };
        self.joins.push(self.host.system().executor().spawn_future(future));
    }

    fn disturb(&mut self) {
        let n_nodes = self.plans.len() as u64;
        let pick = |size: u64, n: u64| usize::try_from(size % n.max(1)).unwrap_or(0);
        if let Some(size) = self.sim.fault(Class::MailFlood) {
            let target = self.run_state.oracle().refs.get(&pick(size, n_nodes)).cloned();
            if let Some(target) = target {
                (0..FLOOD).for_each(|_| drop(target.tell(Msg::Do(Action::Work))));
            }
        }
        if let Some(size) = self.sim.fault(Class::OddStop) {
            let target = self.run_state.oracle().refs.get(&pick(size, n_nodes)).cloned();
            let is_sent =
                target.is_some_and(|target| target.try_send_system(SystemMessage::Stop).is_ok());
            self.sim.record("odd-stop", &[size % n_nodes, u64::from(is_sent)]);
        }
        if let Some(size) = self.sim.fault(Class::Kill)
            && !self.joins.is_empty()
        {
            let join = self.joins.swap_remove(pick(size, self.joins.len() as u64));
            self.sim.record("give-up", &[self.joins.len() as u64]);
            join.cancel();
        }
    }

    /// Runs until the system is idle, if it gets there; then checks that it is.
    fn run_until_idle(&mut self) -> bool {
        let is_idle = self.host.run_until_idle();
        if is_idle {
            self.host.check_idle_state();
            self.run_state.check_idle_state();
        }
        is_idle
    }
}

impl Phases for WorkloadRun {
    fn step(&mut self) {
        self.sim.allow_slowness(SLOW_MAX);
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
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
        } else {
            self.run_until_idle();
        }
    }

    /// No more faults: all futures end, and every live actor replies.
    fn drain(&mut self) {
        self.sim.heal();
        self.host.deliver_ticks();
        let (mut polls_left, mut n_calm) = (DRAIN_POLLS, 0);
        let mut n_before = 0;
        // Three calm checks in a row take longer than the longest restart backoff.
        while n_calm < 3 && polls_left > 0 && !self.sim.is_broken() {
            self.sim.allow_slowness(SLOW_MAX);
            self.host.advance(DRAIN_POLL_TICKS);
            let is_idle = self.run_until_idle();
            self.sim.check(Invariant::L1, is_idle, || {
                "the system is not idle although no faults occur".into()
            });
            let n_heard = self.run_state.oracle().n_heard;
            let is_calm = self.run_state.n_open_all() == 0 && n_heard == n_before;
            n_before = n_heard;
            n_calm = if is_calm { n_calm + 1 } else { 0 };
            polls_left -= 1;
        }
        let n_open = self.run_state.n_open_all();
        self.sim
            .check(Invariant::L1, n_open == 0, || format!("{n_open} futures are still pending"));
        self.spawn_missing();
        self.run_until_idle();
        for to in 0..self.plans.len() {
            let before = self.run_state.n_answered();
            self.ask(to, DRAIN_POLL_TICKS, RequestHandling::Answer { is_back: true });
            self.run_until_idle();
            let n = self.run_state.n_answered() - before;
            self.sim.check(Invariant::L1, n == 1, || format!("actor {to} has not replied"));
        }
    }

    fn shutdown(&mut self) {
        self.host.shutdown(&self.sim);
        if self.sim.is_broken() {
            return;
        }
        let late = self.host.system().metrics().dead_letters(DeadLetterReason::LateReply) as u64;
        let n_late = self.run_state.oracle().n_late;
        self.sim.check_equal(Invariant::A3, "late answers", late, n_late);
        self.run_state.check_end();
    }
}
