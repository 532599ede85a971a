//! What an actor's timer costs on an idle pool, by the counters of the executor and the scheduler.
//!
//! No other thread sends a message while polls are counted: a message that arrives at the end of a
//! poll may be handled in that poll and still wake the task once more.

use core::time::Duration;
use std::sync::mpsc;

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{Actor, ActorRef, ActorSystem, Context, Failure, Next},
};
use clockjack_testing::InTime;

use crate::{LONG, eventually::eventually, ms};

const N_TIMERS: u64 = 50;
/// Polls that no timer causes: the messages of the test and what was still to do before them.
const N_OTHER_POLLS: u64 = 4;
const DELAY: Duration = ms(5);

enum Msg {
    /// Arms a timer and, whenever it fires, the next one: as many as this.
    Arm(u64),
    /// Arms and cancels as many timers as this.
    ArmAndCancel(u64),
    Fired(u64),
}

struct Timed(mpsc::Sender<()>);

impl Timed {
    fn arm(&self, cx: &mut Context<'_, Self>, n_left: u64) -> Result<(), Failure> {
        match n_left {
            0 => Ok(self.0.send(())?),
            _ => Ok(cx.timers().single("t", DELAY, Msg::Fired(n_left - 1))?),
        }
    }
}

impl Actor for Timed {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Arm(n_left) | Msg::Fired(n_left) => self.arm(cx, n_left)?,
            Msg::ArmAndCancel(n) => {
                for _ in 0..n {
                    cx.timers().single("t", DELAY, Msg::Fired(0))?;
                    cx.timers().cancel("t");
                }
            }
        }
        Ok(Next::Stay)
    }
}

/// Counts since the start of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    /// Polls of tasks: each wake-up of a task causes one, or is merged with another.
    polls: u64,
    /// Insertions into the executor's wheel.
    armed: u64,
    /// Jobs that were inserted into the scheduler's wheel.
    inserted: u64,
    /// Runs that the scheduler handed over.
    fired: u64,
}

impl Counts {
    fn of(rt: &Runtime) -> Self {
        let (exec, sched) = (rt.pool().stats(), rt.system().scheduler().jobs().metrics());
        Self {
            polls: exec.steps,
            armed: exec.timers_armed,
            inserted: sched.accepted_total,
            fired: sched.fired_total,
        }
    }
}

fn idle_system(workers: usize) -> (InTime<Runtime>, ActorRef<Msg>, mpsc::Receiver<()>) {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (sender, receiver) = mpsc::channel();
    let timed = rt.spawn("timed", move || Timed(sender.clone())).unwrap();
    // One timer, so that everything has started.
    timed.tell(Msg::Arm(1)).unwrap();
    receiver.recv_timeout(LONG).unwrap();
    eventually("the first timer is over", || {
        rt.system().scheduler().jobs().metrics().active_total == 0
    });
    (rt, timed, receiver)
}

#[test]
fn a_timer_that_fires_costs_one_wake_up_and_one_insertion() {
    for workers in [1, 2] {
        let (rt, timed, receiver) = idle_system(workers);
        let before = Counts::of(&rt);
        timed.tell(Msg::Arm(N_TIMERS)).unwrap();
        receiver.recv_timeout(LONG).unwrap();
        let after = Counts::of(&rt);
        let polls = after.polls - before.polls;
        assert!(polls <= N_TIMERS + N_OTHER_POLLS, "{polls} polls for {N_TIMERS} timers");
        assert_eq!(after.armed, before.armed, "nothing goes through the executor's wheel");
        assert_eq!(after.inserted - before.inserted, N_TIMERS);
        assert_eq!(after.fired - before.fired, N_TIMERS);
    }
}

#[test]
fn a_timer_that_is_cancelled_costs_no_wake_up_and_one_insertion() {
    for workers in [1, 2] {
        let (rt, timed, receiver) = idle_system(workers);
        let before = Counts::of(&rt);
        timed.tell(Msg::ArmAndCancel(N_TIMERS)).unwrap();
        // When this timer fires, the time of all others has come.
        timed.tell(Msg::Arm(1)).unwrap();
        receiver.recv_timeout(LONG).unwrap();
        let after = Counts::of(&rt);
        let polls = after.polls - before.polls;
        assert!(polls <= 1 + N_OTHER_POLLS, "{polls} polls for {N_TIMERS} cancelled timers");
        assert_eq!(after.armed, before.armed, "nothing goes through the executor's wheel");
        assert_eq!(after.inserted - before.inserted, N_TIMERS + 1);
        assert_eq!(after.fired - before.fired, 1);
    }
}
