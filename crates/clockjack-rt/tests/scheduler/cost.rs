//! What an actor's timer costs on an idle pool, by the counters of the executor and the scheduler.

use core::time::Duration;
use std::sync::mpsc;

use clockjack_rt::{
    PoolConfig, Runtime,
    actor::{Actor, ActorRef, ActorSystem, Context, Failure, Next},
};

use crate::{LONG, eventually::eventually, ms};

const N_ROUNDS: u64 = 50;
const DELAY: Duration = ms(5);

enum Msg {
    Arm,
    ArmAndCancel,
    Fired,
}

struct Timed(mpsc::Sender<()>);

impl Actor for Timed {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Arm => cx.timers().single("t", DELAY, Msg::Fired)?,
            Msg::ArmAndCancel => {
                cx.timers().single("t", DELAY, Msg::Fired)?;
                cx.timers().cancel("t");
                self.0.send(())?;
            }
            Msg::Fired => self.0.send(())?,
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
        let (exec, sched) = (rt.pool().stats(), rt.system().scheduler().metrics());
        Self {
            polls: exec.steps,
            armed: exec.timers_armed,
            inserted: sched.accepted_total,
            fired: sched.fired_total,
        }
    }
}

fn idle_system(workers: usize) -> (Runtime, ActorRef<Msg>, mpsc::Receiver<()>) {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("t"), config).unwrap();
    let (sender, receiver) = mpsc::channel();
    let timed = rt.spawn("timed", move || Timed(sender.clone())).unwrap();
    // One round, so that everything has started.
    timed.tell(Msg::Arm).unwrap();
    receiver.recv_timeout(LONG).unwrap();
    eventually("the first timer is over", || rt.system().scheduler().metrics().active_total == 0);
    (rt, timed, receiver)
}

#[test]
fn a_timer_that_fires_costs_one_wake_up_and_one_insertion() {
    for workers in [1, 2] {
        let (rt, timed, receiver) = idle_system(workers);
        let before = Counts::of(&rt);
        for _ in 0..N_ROUNDS {
            timed.tell(Msg::Arm).unwrap();
            receiver.recv_timeout(LONG).unwrap();
        }
        let after = Counts::of(&rt);
        // One poll for the message that arms, one for the timer. The last one of before may be
        // counted late.
        let polls = after.polls - before.polls;
        assert!(polls <= 2 * N_ROUNDS + 1, "{polls} polls for {N_ROUNDS} timers");
        assert_eq!(after.armed, before.armed, "nothing goes through the executor's wheel");
        assert_eq!(after.inserted - before.inserted, N_ROUNDS);
        assert_eq!(after.fired - before.fired, N_ROUNDS);
    }
}

#[test]
fn a_timer_that_is_cancelled_costs_no_wake_up_and_one_insertion() {
    for workers in [1, 2] {
        let (rt, timed, receiver) = idle_system(workers);
        let before = Counts::of(&rt);
        for _ in 0..N_ROUNDS {
            timed.tell(Msg::ArmAndCancel).unwrap();
            receiver.recv_timeout(LONG).unwrap();
        }
        // When this one fires, the time of all others has come.
        timed.tell(Msg::Arm).unwrap();
        receiver.recv_timeout(LONG).unwrap();
        let after = Counts::of(&rt);
        let polls = after.polls - before.polls;
        // One for each message, one for the last timer, and one of before.
        assert!(polls <= N_ROUNDS + 3, "{polls} polls for {N_ROUNDS} timers");
        assert_eq!(after.armed, before.armed, "nothing goes through the executor's wheel");
        assert_eq!(after.inserted - before.inserted, N_ROUNDS + 1);
        assert_eq!(after.fired - before.fired, 1);
    }
}
