//! What runs while a future is pending, and in which order.

use alloc::rc::Rc;
use core::time::Duration;

use clockjack_actor::{ActorSystem, Next};

use super::{
    bench::{Log, start},
    gate::Gate,
    order, say, says, scripted_actor,
};

#[test]
fn a_spawned_future_lets_messages_pass_and_its_output_comes_to_the_actor() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let future = gate.passing(&log);
    actor
        .tell(order(move |_, cx| {
            cx.spawn_future(future, |me, cx, output| {
                me.sum += output;
                me.log.add(format!("{} has {output}", cx.path()));
                Ok(Next::Stay)
            })
            .unwrap();
        }))
        .unwrap();
    say(&actor, "between");
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "between"]);
    assert_eq!(gate.polls(), 1);
    gate.open(7);
    say(&actor, "after");
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "/user/a has 7", "after"]);
    assert_eq!(gate.polls(), 2);
}

#[test]
fn a_wait_holds_user_messages_back_but_not_control_messages_or_signals() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let other = root.spawn("b", scripted_actor(&Log::default())).unwrap();
    let (future, target) = (gate.passing(&log), other.clone());
    actor
        .tell(order(move |_, cx| {
            cx.watch(&target).unwrap();
            cx.wait(future, |me, _, output| {
                me.log.add(format!("got {output}"));
                Ok(Next::Stay)
            })
            .unwrap();
        }))
        .unwrap();
    say(&actor, "one");
    root.run_until_idle();
    say(&actor, "two");
    actor.tell_control(order(|me, _| me.log.add("control"))).unwrap();
    other.tell(Box::new(|_, _| Ok(Next::Stop))).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "control", "Terminated"]);
    gate.open(3);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "got 3", "one", "two"]);
    say(&actor, "three");
    root.run_until_idle();
    assert_eq!(log.take(), ["three"]);
}

#[test]
fn stashed_messages_stay_behind_a_wait() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let props = clockjack_actor::Props::new(scripted_actor(&log)).stash(4);
    let actor = root.spawn("a", props).unwrap();
    let future = gate.passing(&log);
    actor
        .tell(order(move |_, cx| {
            cx.stash(order(|me, _| me.log.add("stashed"))).unwrap();
            cx.unstash_all();
            cx.wait(future, |_, _, _| Ok(Next::Stay)).unwrap();
        }))
        .unwrap();
    say(&actor, "mailbox");
    root.run_until_idle();
    assert_eq!(log.take(), ["started"]);
    gate.open(0);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "stashed", "mailbox"]);
}

#[test]
fn a_spawned_future_ends_while_the_actor_waits_for_another() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, one, two) = (Log::default(), Gate::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let (shared, exclusive) = (one.passing(&log), two.passing(&log));
    actor
        .tell(order(move |_, cx| {
            cx.spawn_future(shared, says("shared")).unwrap();
            cx.wait(exclusive, says("exclusive")).unwrap();
        }))
        .unwrap();
    say(&actor, "message");
    root.run_until_idle();
    one.open(0);
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "future dropped", "shared"]);
    two.open(0);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "exclusive", "message"]);
}

#[test]
fn what_comes_after_a_wait_may_wait_again_before_any_message() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, one, two) = (Log::default(), Gate::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let (first, second) = (one.passing(&log), two.passing(&log));
    actor
        .tell(order(move |_, cx| {
            cx.wait(first, |_, cx, _| {
                cx.wait(second, |me, _, output| {
                    me.log.add(format!("second {output}"));
                    Ok(Next::Stay)
                })?;
                Ok(Next::Stay)
            })
            .unwrap();
        }))
        .unwrap();
    say(&actor, "message");
    root.run_until_idle();
    one.open(1);
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "future dropped"]);
    two.open(2);
    root.run_until_idle();
    assert_eq!(log.take(), ["future dropped", "second 2", "message"]);
}

#[test]
fn a_second_wait_is_refused_and_both_parts_come_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let (one, two) = (gate.passing(&log), Gate::default().passing(&log));
    actor
        .tell(order(move |me, cx| {
            cx.wait(one, |_, _, _| Ok(Next::Stay)).unwrap();
            let refused = cx.wait(two, |_, _, _| Ok(Next::Stop)).unwrap_err();
            assert!(refused.is_already_waiting());
            assert!(cx.wait_mut(|_| Box::pin(async { Ok(Next::Stop) })).is_err());
            let (future, then) = refused.into_inner();
            cx.spawn_future(future, then).unwrap();
            me.log.add("refused");
        }))
        .unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "refused"]);
}

#[test]
fn an_actor_waits_from_its_start_and_for_the_time_of_the_scheduler() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let delay = root.system().scheduler().jobs().delays().delay(Duration::from_millis(5));
    actor
        .tell(order(move |_, cx| {
            cx.wait(delay, |me, _, result| {
                result?;
                me.log.add("later");
                Ok(Next::Stay)
            })
            .unwrap();
        }))
        .unwrap();
    say(&actor, "message");
    root.run_until_idle();
    clock.advance(Duration::from_millis(4));
    root.run_until_idle();
    assert_eq!(log.take(), ["started"]);
    clock.advance(Duration::from_millis(2));
    root.run_until_idle();
    assert_eq!(log.take(), ["later", "message"]);
}

#[test]
fn a_future_that_wakes_itself_while_it_is_polled_is_polled_again() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    let mut left = 3_u32;
    let future = core::future::poll_fn(move |cx| {
        if left == 0 {
            return core::task::Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        core::task::Poll::Pending
    });
    actor
        .tell(order(move |_, cx| {
            cx.spawn_future(future, says("ready")).unwrap();
        }))
        .unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "ready"]);
}

#[test]
fn a_local_future_need_not_be_send() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    actor
        .tell(order(|_, cx| {
            let shared = Rc::new(5);
            let future = async move { *shared };
            cx.spawn_local_future(future, |me, _, output| {
                me.log.add(format!("got {output}"));
                Ok(Next::Stay)
            })
            .unwrap();
        }))
        .unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "got 5"]);
}
