//! Asks and futures of actors: who asks whom, by which way, and how that ends.
//!
//! Each request carries its number, and so does each answer. Who lets go of a request tells the
//! books before the asker can know; who has begun a future that is dropped, too. So it is known of
//! each ask by what it may end.

mod desk;
mod node;

use alloc::{format, vec::Vec};
use core::time::Duration;

use clockjack_actor::{ActorSystem, DeadLetterReason, SystemMessage};
use clockjack_exec::Join;

use self::{
    desk::{Desk, End, How},
    node::{Deed, Manner, Msg, NodePlan, name, props},
};
use crate::{
    fault::Class,
    hall::Hall,
    law::Law,
    random::Stream,
    run::{About, Acts, World, play},
    stage::Stage,
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

impl World for Asks {
    fn about(&self) -> About {
        use Class::{ClockDrift, DriverStall, Kill, MailFlood, OddStop};
        use Law::{A1, A3, A8, A9, A10, L1, M1, S2, T1, T2, X1};
        About {
            name: "asks",
            faults: &[Class::EVERYDAY, &[ClockDrift, DriverStall, MailFlood, OddStop, Kill]],
            laws: &[A1, A3, A8, A9, A10, M1, T1, T2, X1, S2, L1],
            least_records: 120,
            least_comparisons: 300,
        }
    }

    fn play(&self, stage: &Stage) {
        let seats = usize::try_from(stage.setting("seats", 0, 4)).unwrap_or(0);
        let desk = Desk::new(stage, stage.setting("futures", 1, 6));
        let builder = ActorSystem::builder("asks").terminate_on_escalation(false);
        match Hall::start(stage, builder, seats) {
            Ok(hall) => Play::new(stage, desk.clone(), hall).play(),
            Err(error) => stage.check(Law::M1, false, || format!("no start: {error}")),
        }
        // The books hold the actors, and they hold the books.
        let refs = core::mem::take(&mut desk.books().refs);
        drop(refs);
    }
}

struct Play {
    stage: Stage,
    desk: Desk,
    hall: Hall,
    plans: Vec<NodePlan>,
    /// Asks from outside.
    joins: Vec<Join<()>>,
    work: Stream,
    steps: u64,
    pace: u64,
    busy: u64,
    failing: u64,
}

impl Play {
    fn new(stage: &Stage, desk: Desk, hall: Hall) -> Self {
        let mut shape = stage.stream("shape");
        let n_nodes = stage.setting("nodes", 2, 9);
        Self {
            stage: stage.clone(),
            desk,
            hall,
            plans: (0..n_nodes).map(|_| NodePlan::draw(&mut shape)).collect(),
            joins: Vec::new(),
            work: stage.stream("work"),
            steps: stage.setting("steps", 60, 180),
            pace: stage.setting("pace", 1, 40),
            busy: stage.setting("busy", 2, 7),
            failing: stage.setting("failing", 0, 6),
        }
    }

    fn play(mut self) {
        self.spawn_missing();
        let (stage, steps) = (self.stage.clone(), self.steps);
        play(&stage, steps, &mut self);
    }

    /// Starts who is not there.
    fn spawn_missing(&mut self) {
        for index in 0..self.plans.len() {
            let made = props(&self.desk, index, self.plans[index]);
            // The name may be taken.
            if let Ok(spawned) = self.hall.system().spawn(&name(index), made) {
                self.stage.note("spawn", &[index as u64]);
                self.desk.books().refs.insert(index, spawned);
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
        let deed = Deed::draw(&mut self.work, n_nodes, self.failing);
        let is_urgent = self.work.chance(1_500);
        let target = self.desk.books().refs.get(&to).cloned();
        // Who has no room, or has stopped, gives it back.
        if let Some(target) = target {
            let told = if is_urgent {
                target.tell_control(Msg::Urgent(deed))
            } else {
                target.tell(Msg::Do(deed))
            };
            self.stage.note("tell", &[to as u64, u64::from(told.is_ok())]);
        }
    }

    /// Asks from outside.
    fn ask(&mut self, to: usize, ticks: u64, manner: Manner) {
        let target = self.desk.books().refs.get(&to).cloned();
        let Some(target) = target else { return };
        let ticket = self.desk.begins(None, How::Outside, Some((to, &target)), ticks);
        let (id, desk) = (ticket.id, &self.desk);
        let request = |reply| Msg::Asks(desk.request(id, reply), manner);
        let ask = target.ask(request, Duration::from_millis(ticks));
        let future = async move {
            let answer = ask.await;
            ticket.ends(End::of(&answer));
        };
        self.joins.push(self.hall.system().executor().spawn(future));
    }

    fn disturb(&mut self) {
        let n_nodes = self.plans.len() as u64;
        let pick = |size: u64, n: u64| usize::try_from(size % n.max(1)).unwrap_or(0);
        if let Some(size) = self.stage.fault(Class::MailFlood) {
            let target = self.desk.books().refs.get(&pick(size, n_nodes)).cloned();
            if let Some(target) = target {
                (0..FLOOD).for_each(|_| drop(target.tell(Msg::Do(Deed::Work))));
            }
        }
        if let Some(size) = self.stage.fault(Class::OddStop) {
            let target = self.desk.books().refs.get(&pick(size, n_nodes)).cloned();
            let is_told =
                target.is_some_and(|target| target.try_send_system(SystemMessage::Stop).is_ok());
            self.stage.note("odd-stop", &[size % n_nodes, u64::from(is_told)]);
        }
        if let Some(size) = self.stage.fault(Class::Kill)
            && !self.joins.is_empty()
        {
            let join = self.joins.swap_remove(pick(size, self.joins.len() as u64));
            self.stage.note("give-up", &[self.joins.len() as u64]);
            join.cancel();
        }
    }

    /// Runs until all is quiet, if it comes to that; then looks whether it is.
    fn settle(&mut self) -> bool {
        let is_quiet = self.hall.settle();
        if is_quiet {
            self.hall.check_quiet();
            self.desk.check_quiet();
        }
        is_quiet
    }
}

impl Acts for Play {
    fn step(&mut self) {
        self.stage.allow_slowness(SLOW_MAX);
        for _ in 0..self.work.below(self.busy * 2) {
            self.act();
        }
        self.disturb();
        if self.work.chance(1_500) {
            self.spawn_missing();
        }
        let ticks = self.work.below(self.pace * 2);
        self.hall.pass(ticks);
        // Some of the time it is disturbed before all is quiet.
        if self.work.chance(2_500) {
            self.hall.turn_if_woken();
        } else {
            self.settle();
        }
    }

    /// Nothing fails any more: all that was begun ends, and who is there answers.
    fn come_to_rest(&mut self) {
        self.stage.heal();
        self.hall.feed();
        let (mut looks_left, mut n_calm) = (CALM_LOOKS, 0);
        let mut n_before = 0;
        // Of the last looks one is behind the longest pause before a restart.
        while n_calm < 3 && looks_left > 0 && !self.stage.is_broken() {
            self.stage.allow_slowness(SLOW_MAX);
            self.hall.pass(CALM_TICKS);
            let is_quiet = self.settle();
            self.stage.check(Law::L1, is_quiet, || "not quiet though nothing fails".into());
            let n_heard = self.desk.books().n_heard;
            let is_calm = self.desk.n_open_all() == 0 && n_heard == n_before;
            n_before = n_heard;
            n_calm = if is_calm { n_calm + 1 } else { 0 };
            looks_left -= 1;
        }
        let n_open = self.desk.n_open_all();
        self.stage.check(Law::L1, n_open == 0, || format!("{n_open} futures go on"));
        self.spawn_missing();
        self.settle();
        for to in 0..self.plans.len() {
            let before = self.desk.n_answered();
            self.ask(to, CALM_TICKS, Manner::Answer { is_back: true });
            self.settle();
            let n = self.desk.n_answered() - before;
            self.stage.check(Law::L1, n == 1, || format!("actor {to} has not answered"));
        }
    }

    fn end(&mut self) {
        self.hall.end(&self.stage);
        if self.stage.is_broken() {
            return;
        }
        let late = self.hall.system().metrics().dead_letters(DeadLetterReason::LateReply) as u64;
        let n_late = self.desk.books().n_late;
        self.stage.check_equal(Law::A3, "late answers", late, n_late);
        self.desk.check_end();
    }
}
