//! The actors: they carry out actions, fail where a fault occurs, and report to the oracle.

use core::time::Duration;

use clockjack_actor::{Actor, ActorRef, ActorSystem, Context, Failure, Key, Next, Props, Signal};

use super::{
    oracle::{Armed, Lifecycle, Repeat, RestartHistory, Shared, TrackedMessage, Value},
    plan::{Action, is_below, name, path},
};
use crate::{fault::Class, invariant::Invariant, run::inject_panic};

/// The messages of the actors.
pub(super) enum Msg {
    /// An action, and whether the message comes from the stash.
    Do(TrackedMessage, Action, bool),
    /// A timer event: its key and its id.
    TimerFired(u64, u64),
}

pub(super) struct Node {
    shared: Shared,
    index: usize,
    value: u64,
    is_started: bool,
}

/// The props of an actor of the plan.
pub(super) fn props(
    shared: &Shared,
    index: usize,
) -> Props<Node, impl FnMut() -> Node + Send + use<>> {
    let plan = shared.plans[index];
    let shared = shared.clone();
    let props = Props::new(move || {
        let mut oracle = shared.oracle();
        oracle.n_values += 1;
        let value = oracle.n_values;
        drop(oracle);
        Node { shared: shared.clone(), index, value, is_started: false }
    });
    let mut props = props.stash(4).mailbox(plan.mailbox());
    if let Some(strategy) = plan.itself() {
        props = props.supervise(strategy);
    }
    if let Some((scope, strategy)) = plan.children() {
        props = props.supervise_children(scope, strategy);
    }
    props
}

/// Sends an action to an actor, if it exists. Returns whether the mailbox accepted the message.
pub(super) fn tell(
    system: &ActorSystem,
    shared: &Shared,
    from: u64,
    to: usize,
    (lane, action): (u8, Action),
) -> bool {
    let Some(target) = find(system, shared, to) else { return false };
    let msg = Msg::Do(shared.message(from, to, lane), action, false);
    let sent = if lane == 0 { target.tell(msg) } else { target.tell_control(msg) };
    let is_taken = sent.is_ok();
    if let Err(refused) = sent
        && let Msg::Do(message, ..) = refused.into_inner()
    {
        message.returned();
    }
    shared.sim.record("tell", &[from, to as u64, action.code(), u64::from(is_taken)]);
    is_taken
}

/// The actor of the plan, if it exists.
pub(super) fn find(system: &ActorSystem, shared: &Shared, to: usize) -> Option<ActorRef<Msg>> {
    let found: ActorRef<Msg> = system.lookup(&path(&shared.plans, to)).ok()?;
    shared.oracle().known.insert(found.pid(), found.clone());
    Some(found)
}

impl Actor for Node {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let Self { shared, index, value, .. } = self;
        let (sim, pid) = (&shared.sim, cx.pid());
        sim.record("start", &[*index as u64, *value]);
        shared.begins(pid, *index);
        {
            let mut oracle = shared.oracle();
            oracle.values.insert(*value, Value { index: *index, lifecycle: Lifecycle::Born, pid });
            if shared.plans[*index].limit.is_some() {
                let history = oracle.restart_histories.entry(*index).or_default();
                if history.pid != Some(pid) {
                    *history = RestartHistory::of(pid);
                }
            }
            oracle.is_spawned(pid);
            oracle.known.insert(pid, cx.self_ref());
        }
        self.is_started = true;
        let n_nodes = self.shared.plans.len();
        for child in 0..n_nodes {
            if self.shared.plans[child].above == Some(self.index) {
                // Spawning fails if the name is taken by a child that was kept over a restart.
                if let Ok(spawned) = cx.spawn_child(&name(child), props(&self.shared, child)) {
                    self.shared.oracle().is_spawned(spawned.pid());
                }
            }
        }
        let is_counted = self.shared.plans[self.index].limit.is_some();
        if !is_counted && self.shared.sim.fault(Class::StartFails).is_some() {
            return Err(Failure::msg("injected start failure"));
        }
        if let Some(value) = self.shared.oracle().values.get_mut(&self.value) {
            value.lifecycle = Lifecycle::Started;
        }
        self.shared.has_started(pid);
        if let Some(ticks) = self.shared.receive_timeout_of(self.index) {
            cx.set_receive_timeout(Duration::from_millis(ticks));
            self.shared.signal_handled(self.value);
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let shared = self.shared.clone();
        shared.enters(self.value);
        let key = if let Msg::TimerFired(key, _) = &msg { Some(*key) } else { None };
        let _running = RunningCall { shared: &shared, value: self.value, key };
        let action = match msg {
            Msg::TimerFired(key, id) => {
                let runs = cx.scheduler_batch().map_or(1, |batch| u64::from(batch.runs.get()));
                shared.sim.record("ring", &[self.value, key, id, runs, shared.now()]);
                shared.timer_fires(self.value, key, id, runs);
                Action::Work
            }
            Msg::Do(message, action, is_unstashed) => {
                let fields = [self.index as u64, message.from, message.seq, action.code()];
                shared.sim.record("do", &fields);
                if !is_unstashed {
                    shared.arrives(&message);
                }
                match self.stash(cx, message, action, is_unstashed) {
                    Some(action) => action,
                    None => return Ok(Next::Stay),
                }
            }
        };
        self.inject_faults()?;
        self.perform(cx, action)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let fields = [self.index as u64, self.value];
        match signal {
            Signal::PreRestart => {
                self.shared.sim.record("restart", &fields);
                self.shared.ends(self.value, self.index, true);
            }
            Signal::PostStop => {
                self.shared.sim.record("stop", &fields);
                self.shared.ends(self.value, self.index, false);
                self.check_children_ended();
            }
            Signal::Terminated(end) => {
                self.shared.sim.record("told", &fields);
                self.shared.notified(cx.pid(), end.pid);
                self.shared.signal_handled(self.value);
            }
            Signal::ReceiveTimeout => {
                self.shared.sim.record("timeout", &fields);
                self.shared.receive_timeout_fires(self.value);
                self.shared.signal_handled(self.value);
            }
            _ => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

impl Node {
    /// Stashes the message if the action asks for that; otherwise returns the action to perform
    /// now.
    fn stash(
        &self,
        cx: &mut Context<'_, Self>,
        message: TrackedMessage,
        action: Action,
        is_unstashed: bool,
    ) -> Option<Action> {
        if action == Action::Stash && !is_unstashed {
            return match cx.stash(Msg::Do(message, Action::Work, true)) {
                Ok(()) => None,
                Err(full) => {
                    if let Msg::Do(message, ..) = full.into_inner() {
                        self.shared.handled(&message);
                    }
                    Some(Action::Work)
                }
            };
        }
        self.shared.handled(&message);
        Some(action)
    }

    /// The faults of a handler.
    fn inject_faults(&self) -> Result<(), Failure> {
        let sim = &self.shared.sim;
        sim.may_be_slow();
        if sim.fault(Class::HandlerError).is_some() {
            return self.fail();
        }
        if sim.fault(Class::HandlerPanic).is_some() {
            drop(self.fail());
            inject_panic();
        }
        Ok(())
    }

    /// Fails, after informing the oracle.
    fn fail(&self) -> Result<(), Failure> {
        let now = self.shared.now();
        self.shared.sim.record("fail", &[self.index as u64, self.value, now]);
        if let Some(history) = self.shared.oracle().restart_histories.get_mut(&self.index) {
            history.failed = Some(now);
        }
        Err(Failure::msg("injected failure"))
    }

    fn perform(&self, cx: &mut Context<'_, Self>, action: Action) -> Result<Next, Failure> {
        let shared = &self.shared;
        let from = self.index as u64 + 1;
        match action {
            Action::Work | Action::Stash => {}
            Action::Fail => self.fail()?,
            Action::Stop => return Ok(Next::Stop),
            Action::Forward { to, lane, hops } => {
                let next = match hops {
                    0 | 1 => Action::Work,
                    _ => {
                        Action::Forward { to: (to + 1) % shared.plans.len(), lane, hops: hops - 1 }
                    }
                };
                tell(cx.system(), shared, from, to, (lane, next));
            }
            Action::Arm { key, ticks } => self.arm(cx, key, ticks, Repeat::Single),
            Action::Rate { key, ticks } => self.arm(cx, key, ticks, Repeat::Rate(ticks)),
            Action::Delay { key, ticks } => self.arm(cx, key, ticks, Repeat::Delay(ticks)),
            Action::Disarm { key } => self.disarm(cx, key),
            Action::Watch { to } | Action::Unwatch { to } => self.watch(cx, to, action)?,
            Action::Unstash => cx.unstash_all(),
            Action::Schedule { to, ticks } => self.schedule(cx, to, ticks),
        }
        Ok(Next::Stay)
    }

    fn arm(&self, cx: &mut Context<'_, Self>, key: u64, ticks: u64, repeat: Repeat) {
        let id = {
            let mut oracle = self.shared.oracle();
            oracle.n_timers += 1;
            oracle.n_timers
        };
        let (name, after) = (Key::from(key), Duration::from_millis(ticks));
        let mut timers = cx.timers();
        let is_armed = match repeat {
            Repeat::Single => timers.single(name, after, Msg::TimerFired(key, id)).is_ok(),
            Repeat::Rate(_) => {
                timers.fixed_rate(name, after, move || Msg::TimerFired(key, id)).is_ok()
            }
            Repeat::Delay(_) => {
                timers.fixed_delay(name, after, move || Msg::TimerFired(key, id)).is_ok()
            }
        };
        if is_armed {
            let due = self.shared.now() + ticks;
            self.shared.oracle().timers.insert((self.value, key), Armed { id, due, repeat });
        }
        self.shared.sim.record("arm", &[self.value, key, id, u64::from(is_armed)]);
    }

    fn disarm(&self, cx: &mut Context<'_, Self>, key: u64) {
        let is_won = cx.timers().cancel(Key::from(key));
        let was_armed = self.shared.oracle().timers.remove(&(self.value, key)).is_some();
        self.shared.sim.record("disarm", &[self.value, key, u64::from(is_won)]);
        let is_closed = self.shared.oracle().is_scheduler_closed;
        self.shared.sim.check(Invariant::T3, is_closed || is_won == was_armed, || {
            format!("the cancel of timer {key} says {is_won}, it was armed: {was_armed}")
        });
    }

    fn watch(&self, cx: &mut Context<'_, Self>, to: usize, action: Action) -> Result<(), Failure> {
        // A restart drops the watches on descendants, which the oracle does not model.
        if is_below(&self.shared.plans, to, self.index) {
            return Ok(());
        }
        let Some(who) = find(cx.system(), &self.shared, to) else { return Ok(()) };
        let pair = (cx.pid(), who.pid());
        if matches!(action, Action::Watch { .. }) {
            cx.watch(&who)?;
            self.shared.oracle().watches.insert(pair);
        } else {
            cx.unwatch(&who);
            self.shared.oracle().watches.remove(&pair);
        }
        Ok(())
    }

    /// Schedules a message to another actor.
    fn schedule(&self, cx: &mut Context<'_, Self>, to: usize, ticks: u64) {
        let Some(target) = find(cx.system(), &self.shared, to) else { return };
        // The scheduler determines the order of scheduled messages, so each one gets a sender id of
        // its own.
        let from = {
            let mut oracle = self.shared.oracle();
            oracle.n_timers += 1;
            (1 << 32) + oracle.n_timers
        };
        let mut message = self.shared.message(from, to, 0);
        message.is_scheduled(ticks);
        let id = message.id;
        let msg = Msg::Do(message, Action::Work, false);
        match cx.schedule_once(Duration::from_millis(ticks), &target, msg) {
            Ok(job) => {
                // Nobody may send it before its time, not even a close.
                let is_marked = job.run_on_close();
                self.shared.sim.check(Invariant::S1, !is_marked, || {
                    format!("message {id} is marked to be sent by the close, before its time")
                });
                self.shared.oracle().jobs.push((job, id));
            }
            Err(refused) => {
                if let Msg::Do(message, ..) = refused.into_inner() {
                    message.returned();
                }
            }
        }
    }

    /// All descendants must have stopped before.
    fn check_children_ended(&self) {
        let plans = &self.shared.plans;
        let oracle = self.shared.oracle();
        let is_left = |value: &&Value| {
            let is_child = value.index != self.index && is_below(plans, value.index, self.index);
            is_child && value.lifecycle != Lifecycle::Ended
        };
        let left = oracle.values.values().find(is_left).copied();
        self.shared.sim.check(Invariant::A5, left.is_none(), || {
            format!("actor {} stops before {left:?}", self.index)
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut oracle = self.shared.oracle();
        oracle.values.remove(&self.value);
        let value = self.value;
        oracle.timers.retain(|(owner, _), _| *owner != value);
        oracle.receive_timeouts.remove(&value);
        if self.is_started {
            self.shared.sim.record("drop", &[self.index as u64, self.value]);
        }
    }
}

/// A running handler.
struct RunningCall<'s> {
    shared: &'s Shared,
    value: u64,
    key: Option<u64>,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.shared.leaves(self.value, self.key);
    }
}
