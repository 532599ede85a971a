//! How futures end before they are ready: by failures, restarts, stops.

use clockjack_actor::{ActorRef, ActorSystem, Next, Props, Strategy};

use super::{
    Order,
    bench::{Log, start},
    fail,
    gate::{Gate, Passing},
    order, say, scripted_actor,
};

fn begin(actor: &ActorRef<Order>, future: Passing, is_exclusive: bool) {
    let told = order(move |_, cx| {
        if is_exclusive {
            cx.wait(future, |me, _, _| {
                me.log.add("then");
                Ok(Next::Stay)
            })
            .unwrap();
        } else {
            cx.spawn_future(future, |me, _, _| {
                me.log.add("then");
                Ok(Next::Stay)
            })
            .unwrap();
        }
    });
    actor.tell(told).unwrap();
}

#[test]
fn a_restart_drops_futures_before_the_hook_and_their_wakers_do_nothing_then() {
    for is_exclusive in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let (log, gate) = (Log::default(), Gate::default());
        let props = Props::new(scripted_actor(&log)).supervise(Strategy::restart());
        let actor = root.spawn("a", props).unwrap();
        begin(&actor, gate.passing(&log), is_exclusive);
        root.run_until_idle();
        assert_eq!(log.take(), ["started"]);
        actor.tell_control(fail()).unwrap();
        say(&actor, "after");
        root.run_until_idle();
        let restart = ["future dropped", "PreRestart", "actor dropped with 0", "started", "after"];
        assert_eq!(log.take(), restart, "exclusive: {is_exclusive}");
        gate.open(1);
        root.run_until_idle();
        assert!(log.take().is_empty());
        assert_eq!(gate.polls(), 1);
    }
}

#[test]
fn a_stop_drops_futures_before_the_hook_also_in_a_wait() {
    for is_exclusive in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let (log, gate) = (Log::default(), Gate::default());
        let actor = root.spawn("a", scripted_actor(&log)).unwrap();
        begin(&actor, gate.passing(&log), is_exclusive);
        root.run_until_idle();
        root.system().stop(&actor).unwrap();
        root.run_until_idle();
        let stop = ["started", "future dropped", "PostStop", "actor dropped with 0"];
        assert_eq!(log.take(), stop, "exclusive: {is_exclusive}");
        gate.open(1);
        drop(actor);
        root.run_until_idle();
        assert_eq!(gate.polls(), 1);
    }
}

#[test]
fn a_host_that_ends_drops_the_futures_of_its_actors() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    begin(&actor, gate.passing(&log), true);
    root.run_until_idle();
    drop(root);
    assert!(log.take().contains(&"future dropped".to_owned()));
    gate.open(1);
    drop((actor, gate));
}

#[test]
fn a_panic_in_a_poll_is_a_failure_of_the_actor_and_the_future_is_not_polled_again() {
    for strategy in [Strategy::resume(), Strategy::restart()] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let is_resumed = format!("{strategy:?}") == format!("{:?}", Strategy::resume());
        let actor = root.spawn("a", Props::new(scripted_actor(&log)).supervise(strategy)).unwrap();
        let held = Gate::default().passing(&log);
        actor
            .tell(order(move |me, cx| {
                me.sum = 1;
                let future = async move {
                    let _held = held;
                    panic!("in a poll")
                };
                cx.wait(future, |_, _, ()| Ok(Next::Stop)).unwrap();
            }))
            .unwrap();
        actor.tell(order(|me, _| me.log.add(format!("sum {}", me.sum)))).unwrap();
        root.run_until_idle();
        let lines = log.take();
        assert_eq!(lines.first().map(String::as_str), Some("started"));
        assert_eq!(lines.iter().filter(|line| *line == "future dropped").count(), 1);
        let sum = if is_resumed { "sum 1" } else { "sum 0" };
        assert_eq!(lines.last().map(String::as_str), Some(sum));
    }
}

#[test]
fn errors_and_panics_of_what_comes_after_a_future_are_failures_too() {
    for is_panic in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let props = Props::new(scripted_actor(&log)).supervise(Strategy::restart());
        let actor = root.spawn("a", props).unwrap();
        actor
            .tell(order(move |_, cx| {
                cx.wait(async {}, move |me, _, ()| {
                    me.sum = 9;
                    assert!(!is_panic, "afterwards");
                    Err::<(), _>(clockjack_actor::Failure::msg("afterwards"))
                })
                .unwrap();
            }))
            .unwrap();
        say(&actor, "after");
        root.run_until_idle();
        let expected = ["started", "PreRestart", "actor dropped with 9", "started", "after"];
        assert_eq!(log.take(), expected, "panic: {is_panic}");
    }
}

/// Panics when it is dropped.
struct Grudge(Log);

impl Drop for Grudge {
    fn drop(&mut self) {
        self.0.add("grudge");
        panic!("in a drop");
    }
}

#[test]
fn panics_in_the_drops_of_futures_are_contained_each() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let props = Props::new(scripted_actor(&log)).supervise(Strategy::restart());
    let actor = root.spawn("a", props).unwrap();
    let to = log.clone();
    actor
        .tell(order(move |_, cx| {
            for _ in 0..2 {
                let grudge = Grudge(to.clone());
                let future = async move {
                    let _grudge = grudge;
                    core::future::pending::<()>().await;
                };
                cx.spawn_future(future, |_, _, ()| Ok(Next::Stay)).unwrap();
            }
        }))
        .unwrap();
    root.run_until_idle();
    actor.tell(fail()).unwrap();
    say(&actor, "after");
    root.run_until_idle();
    assert_eq!(
        log.take(),
        ["started", "grudge", "grudge", "PreRestart", "actor dropped with 0", "started", "after"]
    );
}

#[test]
fn a_future_may_stop_its_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let other = Gate::default().passing(&log);
    actor
        .tell(order(move |_, cx| {
            cx.spawn_future(other, |_, _, _| Ok(Next::Stay)).unwrap();
            cx.spawn_future(async {}, |_, _, ()| Ok(Next::Stop)).unwrap();
        }))
        .unwrap();
    say(&actor, "never");
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "future dropped", "PostStop", "actor dropped with 0"]);
}

struct Late(Log);

impl clockjack_actor::Actor for Late {
    type Msg = ();

    fn receive(
        &mut self,
        _: &mut clockjack_actor::Context<'_, Self>,
        (): (),
    ) -> Result<Next, clockjack_actor::Failure> {
        Ok(Next::Stop)
    }

    fn signal(
        &mut self,
        cx: &mut clockjack_actor::Context<'_, Self>,
        _: clockjack_actor::Signal,
    ) -> Result<Next, clockjack_actor::Failure> {
        let refused = cx.spawn_future(async {}, |_, _, ()| Ok(Next::Stay)).unwrap_err();
        assert!(refused.is_stopping());
        self.0.add(refused.to_string());
        Ok(Next::Stay)
    }
}

#[test]
fn an_actor_that_stops_starts_no_future() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let actor = root.spawn("a", move || Late(to.clone())).unwrap();
    actor.tell(()).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["the future was not started: the actor is stopping"]);
}

#[test]
fn a_waker_that_outlives_its_actor_is_harmless() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    begin(&actor, gate.passing(&log), false);
    root.run_until_idle();
    let waker = gate.waker().unwrap();
    // It is on the woken list when the actor stops.
    waker.wake_by_ref();
    root.system().stop(&actor).unwrap();
    drop(actor);
    root.run_until_idle();
    waker.wake_by_ref();
    drop(gate);
    drop(root);
    waker.wake();
}
