//! A system of actors that a task of tokio's drives.

use core::{cell::Cell, time::Duration};
use std::{rc::Rc, thread};

use clockjack_rt::{
    TokioSystem, TokioToolbox,
    actor::{Actor, ActorRef, ActorSystem, Context, Failure, Next, ReplyTo},
};
use clockjack_testing::awaits_deadline;
use clockjack_time::Resolution;
use tokio::{
    runtime::Builder,
    task::{LocalSet, yield_now},
    time::{Instant, timeout},
};

use crate::{
    LONG, one_thread,
    timer_order::{self, Device, Seen},
    two_threads, within,
};

fn system() -> TokioSystem {
    let toolbox = TokioToolbox::new(Resolution::MILLI);
    toolbox.system(ActorSystem::builder("inside")).expect("there is room for the guardians")
}

/// Adds, and tells what it has; is not `Send`, and need not be.
struct Sum(Rc<Cell<u64>>);

enum Msg {
    Add(u64),
    Get(ReplyTo<u64>),
    Panic,
}

impl Actor for Sum {
    type Msg = Msg;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => self.0.set(self.0.get() + n),
            Msg::Get(reply) => reply.reply(self.0.get()),
            Msg::Panic => panic!("told to"),
        }
        Ok(Next::Stay)
    }
}

fn sum(system: &mut TokioSystem) -> (ActorRef<Msg>, Rc<Cell<u64>>) {
    let total = Rc::new(Cell::new(0));
    let shared = Rc::clone(&total);
    let actor = system.spawn("sum", move || Sum(Rc::clone(&shared)));
    (actor.expect("there is room"), total)
}

/// Reports itself to go on, for ever.
struct Restless(Rc<Cell<u64>>);

impl Actor for Restless {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.0.set(self.0.get() + 1);
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    }
}

/// Counts at a rate.
struct Pulse(Rc<Cell<u32>>);

impl Actor for Pulse {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_rate("pulse", Duration::from_millis(2), || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.0.set(self.0.get() + 1);
        Ok(Next::Stay)
    }
}

#[test]
fn messages_of_other_threads_reach_actors_whose_task_sleeps() {
    within(&one_thread(), async {
        let mut system = system();
        let (actor, total) = sum(&mut system);
        let send = |actor: ActorRef<Msg>| {
            // With pauses, so that the task finds nothing to do in between.
            thread::spawn(move || {
                for _ in 0..200 {
                    actor.tell(Msg::Add(1)).expect("there is room");
                    thread::yield_now();
                }
            })
        };
        let senders = [send(actor.clone()), send(actor.clone())];
        system.run_until(|| total.get() == 400).await;
        for sender in senders {
            sender.join().expect("nothing is refused");
        }
        let answer = actor.ask(Msg::Get, LONG);
        assert_eq!(system.drive(answer).await.unwrap(), 400);
        assert!(awaits_deadline(LONG, system.shutdown(LONG)).await.is_clean());
    });
}

#[test]
fn tokio_tasks_go_on_beside_an_actor_that_never_rests() {
    within(&one_thread(), async {
        let mut system = system();
        let turns = Rc::new(Cell::new(0));
        let counted = Rc::clone(&turns);
        system.spawn("restless", move || Restless(Rc::clone(&counted))).unwrap();
        let other = tokio::spawn(async {
            for _ in 0..100 {
                yield_now().await;
            }
        });
        system.drive(other).await.unwrap();
        assert!(turns.get() >= 100, "a turn between each two of the other: {}", turns.get());
    });
}

#[test]
fn timers_of_actors_wake_a_task_that_sleeps_and_are_not_early() {
    within(&one_thread(), async {
        let mut system = system();
        let pulses = Rc::new(Cell::new(0));
        let counted = Rc::clone(&pulses);
        let begun = Instant::now();
        system.spawn("pulse", move || Pulse(Rc::clone(&counted))).unwrap();
        system.run_until(|| pulses.get() == 5).await;
        assert!(begun.elapsed() >= Duration::from_millis(10), "{:?}", begun.elapsed());
    });
}

#[test]
fn driving_that_is_given_up_goes_on_later_and_loses_nothing() {
    within(&one_thread(), async {
        let mut system = system();
        let (actor, total) = sum(&mut system);
        for n in 1..=100 {
            actor.tell(Msg::Add(n)).unwrap();
            // Given up after a poll or some.
            drop(timeout(Duration::ZERO, system.run()).await);
        }
        actor.tell(Msg::Add(1)).unwrap();
        assert!(total.get() <= 5_050, "the last one comes when somebody drives");
        system.run_until(|| total.get() == 5_051).await;
    });
}

#[test]
fn addresses_go_to_tasks_on_other_threads_of_tokio() {
    within(&two_threads(), async {
        let mut system = system();
        let (actor, _) = sum(&mut system);
        let actors = system.system().clone();
        let local = LocalSet::new();
        let driven = local.run_until(async move {
            let end = tokio::spawn(async move {
                for n in 0..100 {
                    actor.tell(Msg::Add(n)).expect("there is room");
                    yield_now().await;
                }
                let total = actor.ask(Msg::Get, LONG).await;
                drop(actors.shutdown());
                total
            });
            let report = tokio::task::spawn_local(async move { system.run().await });
            (end.await.unwrap().unwrap(), report.await.unwrap())
        });
        let (total, report) = driven.await;
        assert_eq!(total, 4_950);
        assert!(report.is_clean(), "{report:?}");
    });
}

#[test]
fn a_panic_is_an_actors_failure_and_not_the_tasks() {
    within(&one_thread(), async {
        let mut system = system();
        let (actor, total) = sum(&mut system);
        actor.tell(Msg::Add(1)).unwrap();
        actor.tell(Msg::Panic).unwrap();
        let answer = actor.ask(Msg::Get, LONG);
        assert!(system.drive(answer).await.is_err(), "it was stopped by the default strategy");
        assert_eq!(total.get(), 1);
        assert!(awaits_deadline(LONG, system.shutdown(LONG)).await.is_clean());
    });
}

#[test]
fn a_shutdown_whose_time_is_over_names_who_was_ended_by_force() {
    within(&one_thread(), async {
        let mut system = system();
        // More than a turn has steps for.
        for n in 0..300 {
            let total = Rc::default();
            system.spawn(&format!("sum{n}"), move || Sum(Rc::clone(&total))).unwrap();
        }
        let deadline = Duration::ZERO;
        let report = awaits_deadline(deadline, system.shutdown(deadline)).await;
        assert!(!report.stragglers.is_empty(), "{report:?}");
    });
}

#[test]
fn a_tokio_without_timers_will_do_where_there_is_none_to_wait_for() {
    let runtime = Builder::new_current_thread().build().expect("it starts");
    runtime.block_on(async {
        let mut system = system();
        let (actor, total) = sum(&mut system);
        actor.tell(Msg::Add(7)).unwrap();
        system.run_until(|| total.get() == 7).await;
    });
}

#[test]
fn neither_a_timer_nor_a_receive_timeout_overtakes_a_message() {
    within(&one_thread(), async {
        let mut system = system();
        for n in 0..10 {
            let seen = Seen::default();
            let name = format!("device-{n}");
            let device = system.spawn(&name, Device::props(&seen)).expect("there is room");
            device.tell(timer_order::Msg::Begin).expect("there is room");
            let stopped = system.system().when_stopped(&device);
            system.drive(stopped).await;
            timer_order::check(&seen);
        }
    });
}
