//! Asks and futures of actors: who asks whom, by which way, and how that ends.
//!
//! Each request carries its number, and so does each answer. Who lets go of a request tells the
//! oracle before the asker can know; who has begun a future that is dropped, too. So it is known of
//! each ask by what it may end.

mod node;
mod run_state;

use alloc::{format, vec::Vec};
use core::time::Duration;

use clockjack_actor::{ActorSystem, DeadLetterReason, SystemMessage};
use clockjack_exec::Join;

use self::{
    node::{Action, Manner, Msg, NodePlan, name, props},
    run_state::{End, How, RunState},
};
use crate::{
    context::SimContext,
    fault::Class,
    host::any::AnyHost,
    invariant::Invariant,
    random::Stream,
    run::{Description, Steps, Workload, play},
};

/// For how many ticks handlers may be slow between two looks from outside.
const SLOW_MAX: u64 = 60;
/// How many messages a flood is.
const FLOOD: u64 = 24;
/// How often is looked whether all has ended once nothing fails, and how long that is each time, in
/// ticks: what an actor was told while it waited may make it wait again.
const CALM_LOOKS: u64 = 2_000;
const CALM_TICKS: u64 = 60;

/// Asks, their time-outs, and futures of actors.
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

    fn play(&self, sim: &SimContext) {
        let seats = usize::try_from(sim.setting("seats", 0, 4)).unwrap_or(0);
        let run_state = RunState::new(sim, sim.setting("futures", 1, 6));
        let builder = ActorSystem::builder("asks").terminate_on_escalation(false);
        match AnyHost::start(sim, builder, seats) {
            Ok(host) => WorkloadRun::new(sim, run_state.clone(), host).play(),
            Err(error) => sim.check(Invariant::M1, false, || format!("no start: {error}")),
        }
        // The oracle hold the actors, and they hold the oracle.
        let refs = core::mem::take(&mut run_state.oracle().refs);
        drop(refs);
    }
}

struct WorkloadRun {
    sim: SimContext,
    run_state: RunState,
    host: AnyHost,
    plans: Vec<NodePlan>,
    /// Asks from outside.
    joins: Vec<Join<()>>,
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

    fn play(mut self) {
        self.spawn_missing();
        let (sim, steps) = (self.sim.clone(), self.steps);
        play(&sim, steps, &mut self);
    }

    /// Starts who is not there.
    fn spawn_missing(&mut self) {
        for index in 0..self.plans.len() {
            let made = props(&self.run_state, index, self.plans[index]);
            // The name may be taken.
            if let Ok(spawned) = self.host.system().spawn(&name(index), made) {
                self.sim.note("spawn", &[index as u64]);
                self.run_state.oracle().refs.insert(index, spawned);
            }
        }
    }

    fn act(&mut self) {
        let n_nodes = self.plans.len();
        let to = self.work.index(n_nodes);
        if self.work.chance(2_500) {
            let manner = Manner::draw(&mut self.work, n_nodes, self.failing);
            let ticks = self.work.between(1, 250);
            return self.ask(to, ticks, manner);
        }
        let action = Action::draw(&mut self.work, n_nodes, self.failing);
        let is_urgent = self.work.chance(1_500);
        let target = self.run_state.oracle().refs.get(&to).cloned();
        // Who has no workers, or has stopped, gives it back.
        if let Some(target) = target {
            let told = if is_urgent {
                target.tell_control(Msg::Urgent(action))
            } else {
                target.tell(Msg::Do(action))
            };
            self.sim.note("tell", &[to as u64, u64::from(told.is_ok())]);
        }
    }

    /// Asks from outside.
    fn ask(&mut self, to: usize, ticks: u64, manner: Manner) {
        let target = self.run_state.oracle().refs.get(&to).cloned();
        let Some(target) = target else { return };
        let ticket = self.run_state.begins(None, How::Outside, Some((to, &target)), ticks);
        let (id, run_state) = (ticket.id, &self.run_state);
        let request = |reply| Msg::Asks(run_state.request(id, reply), manner);
        let ask = target.ask(request, Duration::from_millis(ticks));
        let future = async move {
            let answer = ask.await;
            ticket.ends(End::of(&answer));
        };
        self.joins.push(self.host.system().executor().spawn(future));
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
            let is_told =
                target.is_some_and(|target| target.try_send_system(SystemMessage::Stop).is_ok());
            self.sim.note("odd-stop", &[size % n_nodes, u64::from(is_told)]);
        }
        if let Some(size) = self.sim.fault(Class::Kill)
            && !self.joins.is_empty()
        {
            let join = self.joins.swap_remove(pick(size, self.joins.len() as u64));
            self.sim.note("give-up", &[self.joins.len() as u64]);
            join.cancel();
        }
    }

    /// Runs until all is quiet, if it comes to that; then looks whether it is.
    fn settle(&mut self) -> bool {
        let is_quiet = self.host.settle();
        if is_quiet {
            self.host.check_quiet();
            self.run_state.check_quiet();
        }
        is_quiet
    }
}

impl Steps for WorkloadRun {
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
        self.host.pass(ticks);
        // Some of the time it is disturbed before all is quiet.
        if self.work.chance(2_500) {
            self.host.turn_if_woken();
        } else {
            self.settle();
        }
    }

    /// Nothing fails any more: all that was begun ends, and who is there answers.
    fn drain(&mut self) {
        self.sim.heal();
        self.host.feed();
        let (mut looks_left, mut n_calm) = (CALM_LOOKS, 0);
        let mut n_before = 0;
        // Of the last looks one is behind the longest pause before a restart.
        while n_calm < 3 && looks_left > 0 && !self.sim.is_broken() {
            self.sim.allow_slowness(SLOW_MAX);
            self.host.pass(CALM_TICKS);
            let is_quiet = self.settle();
            self.sim.check(Invariant::L1, is_quiet, || "not quiet though nothing fails".into());
            let n_heard = self.run_state.oracle().n_heard;
            let is_calm = self.run_state.n_open_all() == 0 && n_heard == n_before;
            n_before = n_heard;
            n_calm = if is_calm { n_calm + 1 } else { 0 };
            looks_left -= 1;
        }
        let n_open = self.run_state.n_open_all();
        self.sim.check(Invariant::L1, n_open == 0, || format!("{n_open} futures go on"));
        self.spawn_missing();
        self.settle();
        for to in 0..self.plans.len() {
            let before = self.run_state.n_answered();
            self.ask(to, CALM_TICKS, Manner::Answer { is_back: true });
            self.settle();
            let n = self.run_state.n_answered() - before;
            self.sim.check(Invariant::L1, n == 1, || format!("actor {to} has not answered"));
        }
    }

    fn end(&mut self) {
        self.host.end(&self.sim);
        if self.sim.is_broken() {
            return;
        }
        let late = self.host.system().metrics().dead_letters(DeadLetterReason::LateReply) as u64;
        let n_late = self.run_state.oracle().n_late;
        self.sim.check_equal(Invariant::A3, "late answers", late, n_late);
        self.run_state.check_end();
    }
}
