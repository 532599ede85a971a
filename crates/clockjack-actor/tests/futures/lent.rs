//! Futures that borrow their actor.

use core::cell::Cell;
use std::rc::Rc;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, DeadLetterReason, Failure, Next, Props, Scope, Signal,
    Strategy,
};

use super::{
    Order,
    bench::{Log, start},
    gate::Gate,
    order, say, says, scripted_actor,
};

fn lend(actor: &ActorRef<Order>, gate: &Gate, log: &Log) {
    let future = gate.passing(log);
    let told = order(move |_, cx| {
        let lent = cx.wait_mut(|me| {
            Box::pin(async move {
                me.sum += 1;
                me.log.add("lent");
                let output = future.await;
                me.sum += output;
                me.log.add(format!("sum {}", me.sum));
                Ok(Next::Stay)
            })
        });
        lent.unwrap();
    });
    actor.tell(told).unwrap();
}

#[test]
fn a_lent_actor_handles_nothing_until_it_is_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    lend(&actor, &gate, &log);
    say(&actor, "message");
    actor.tell_control(order(|me, _| me.log.add("control"))).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "control", "lent"]);
    actor.tell_control(order(|me, _| me.log.add("control"))).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    gate.open(10);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "sum 11", "control", "message"]);
}

#[test]
fn other_futures_wait_for_a_lent_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, one, two) = (Log::default(), Gate::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let shared = one.passing(&log);
    actor
        .tell(order(move |_, cx| {
            cx.spawn_future(shared, says("shared")).unwrap();
        }))
        .unwrap();
    lend(&actor, &two, &log);
    root.run_until_idle();
    one.open(0);
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "lent"]);
    two.open(1);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "sum 2", "future dropped", "shared"]);
}

#[test]
fn a_stop_takes_the_actor_back_and_it_hears_of_its_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    lend(&actor, &gate, &log);
    root.run_until_idle();
    root.system().stop(&actor).unwrap();
    root.run_until_idle();
    assert_eq!(
        log.take(),
        ["started", "lent", "future dropped", "PostStop", "actor dropped with 1"]
    );
    gate.open(1);
    root.run_until_idle();
    assert!(log.take().is_empty());
}

#[test]
fn a_panic_while_it_is_lent_fails_the_actor_which_is_back_by_then() {
    for (strategy, sum) in [(Strategy::resume(), "sum 5"), (Strategy::restart(), "sum 0")] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let actor = root.spawn("a", Props::new(scripted_actor(&log)).supervise(strategy)).unwrap();
        for in_closure in [true, false] {
            actor
                .tell(order(move |_, cx| {
                    let lent = cx.wait_mut::<_, ()>(move |me| {
                        me.sum = 5;
                        assert!(!in_closure, "before there is a future");
                        Box::pin(async { panic!("in a poll") })
                    });
                    lent.unwrap();
                }))
                .unwrap();
            actor.tell(order(|me, _| me.log.add(format!("sum {}", me.sum)))).unwrap();
            root.run_until_idle();
            assert_eq!(log.take().last().map(String::as_str), Some(sum));
        }
    }
}

#[test]
fn an_error_of_a_future_that_borrows_is_a_failure() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let props = Props::new(scripted_actor(&log)).supervise(Strategy::restart());
    let actor = root.spawn("a", props).unwrap();
    actor
        .tell(order(|_, cx| {
            let lent = cx.wait_mut(|me| {
                Box::pin(async move {
                    me.sum = 3;
                    Err::<(), _>(Failure::msg("failed"))
                })
            });
            lent.unwrap();
        }))
        .unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "PreRestart", "actor dropped with 3", "started"]);
}

#[test]
fn a_host_that_ends_drops_the_future_before_the_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    lend(&actor, &gate, &log);
    root.run_until_idle();
    drop(root);
    let lines = log.take();
    let at = |text: &str| lines.iter().position(|line| line == text);
    assert!(at("future dropped").is_some());
    assert!(at("future dropped") < at("actor dropped with 1"), "{lines:?}");
}

#[test]
fn an_actor_is_lent_again_and_again() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    for _ in 0..100 {
        actor
            .tell(order(|_, cx| {
                let lent = cx.wait_mut(|me| {
                    Box::pin(async move {
                        me.sum += 1;
                        Ok(Next::Stay)
                    })
                });
                lent.unwrap();
            }))
            .unwrap();
    }
    actor.tell(order(|me, _| me.log.add(format!("sum {}", me.sum)))).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "sum 100"]);
}

#[test]
fn a_lent_actor_goes_on_when_a_failure_of_a_child_is_resumed_above() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let props = Props::new(scripted_actor(&log))
        .supervise(Strategy::resume())
        .supervise_children(Scope::OneForOne, Strategy::escalate());
    let actor = root.spawn("a", props).unwrap();
    let quiet = scripted_actor(&Log::default());
    actor.tell(order(move |_, cx| drop(cx.spawn_child("child", quiet)))).unwrap();
    lend(&actor, &gate, &log);
    root.run_until_idle();
    let child = root.system().lookup::<Order>("/user/a/child").unwrap();
    child.tell(super::fail()).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "lent"]);
    gate.open(1);
    root.run_until_idle();
    let lines = log.take();
    assert_eq!(lines.first().map(String::as_str), Some("future dropped"));
    assert_eq!(lines.get(1).map(String::as_str), Some("sum 2"));
    assert!(!actor.is_stopped());
}

/// Waits, and counts the failures of its child.
struct Parent {
    gate: Gate,
    log: Log,
    failures: Rc<Cell<usize>>,
}

impl Actor for Parent {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let child = Props::from_fn(|_cx, (): ()| Err::<Next, _>(Failure::msg("again")));
        cx.spawn_child("child", child).unwrap();
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        let future = self.gate.passing(&self.log);
        let lent = cx.wait_mut(|_me| {
            Box::pin(async move {
                future.await;
                Ok(Next::Stay)
            })
        });
        lent.unwrap();
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if matches!(signal, Signal::ChildFailed(_)) {
            self.failures.set(self.failures.get() + 1);
        }
        Ok(Next::Stay)
    }
}

#[test]
fn the_failures_of_children_that_wait_for_a_lent_actor_are_bounded_and_counted() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate, failures) = (Log::default(), Gate::default(), Rc::new(Cell::new(0)));
    let (to, open, count) = (log.clone(), gate.clone(), failures.clone());
    let make = move || Parent { gate: open.clone(), log: to.clone(), failures: count.clone() };
    let props = Props::new(make).supervise_children(Scope::OneForOne, Strategy::restart());
    let parent = root.spawn("parent", props).unwrap();
    root.run_until_idle();
    let child = root.system().lookup::<()>("/user/parent/child").unwrap();
    parent.tell(()).unwrap();
    root.run_until_idle();
    for _ in 0..1_000 {
        child.tell(()).unwrap();
        root.run_until_idle();
    }
    assert_eq!(failures.get(), 0, "the parent waits");
    gate.open(1);
    root.run_until_idle();
    // From then on there is room again.
    for n in 256..600 {
        assert_eq!(failures.get(), n);
        child.tell(()).unwrap();
        root.run_until_idle();
    }
    let metrics = root.system().metrics();
    let lost = metrics.dead_letters(DeadLetterReason::MailboxFull);
    assert_eq!((metrics.failures, lost), (1_344, 744));
}
