//! Actors that ask themselves.

use clockjack_actor::{ActorRef, ActorSystem, AskError, Next, ReplyTo};

use super::{Log, Msg, Node, SECOND, bench::start, listen, node, order, say};

fn tell_of(me: &Node, answer: Result<u64, AskError>) {
    me.log.add(match answer {
        Err(error) if error.is_to_itself() => error.to_string(),
        other => format!("{other:?}"),
    });
}

const REFUSED: &str = "/user/a has not answered a message of type ask_cx::Msg: it asks itself, \
                       and takes no messages while it waits (timeout 1s)";

#[test]
fn an_ask_to_oneself_in_a_wait_fails_at_once_and_the_actor_goes_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let letters = listen(&mut root);
    let log = Log::default();
    let actor = root.spawn("a", node(&log)).unwrap();
    let told = order(|_, cx| {
        let ask = cx.self_ref().ask(|to| Msg::Double(1, to), SECOND);
        cx.wait(ask, |me, _, answer| {
            tell_of(me, answer);
            Ok(Next::Stay)
        })
        .unwrap();
    });
    actor.tell(told).unwrap();
    actor.tell(say("after")).unwrap();
    // No time passes.
    root.run_until_idle();
    assert_eq!(log.take(), [REFUSED, "after"]);
    assert_eq!(letters.take(), ["/temp/ask-0.0 u64 LateReply"], "the request was handled then");
}

#[test]
fn so_does_one_while_the_actor_is_lent() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", node(&log)).unwrap();
    let itself = actor.clone();
    let told = order(|_, cx| {
        cx.wait_mut(move |me| {
            Box::pin(async move {
                let answer = itself.ask(|to| Msg::Double(1, to), SECOND).await;
                tell_of(me, answer);
                Ok(Next::Stay)
            })
        })
        .unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), [REFUSED]);
}

#[test]
fn a_mapped_ref_to_oneself_is_oneself() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", node(&log)).unwrap();
    let doubling: ActorRef<ReplyTo<u64>> = actor.map(|to| Msg::Double(1, to));
    let told = order(move |_, cx| {
        cx.wait(doubling.ask(|to| to, SECOND), |me, _, answer| {
            me.log.add(format!("{}", answer.unwrap_err().is_to_itself()));
            Ok(Next::Stay)
        })
        .unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["true"]);
}

#[test]
fn an_answer_that_one_has_given_oneself_before_can_be_waited_for() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", node(&log)).unwrap();
    let told = order(|_, cx| {
        let itself = cx.self_ref();
        let ask = itself.ask(|to| Msg::Double(4, to), SECOND);
        // Behind the request in the mailbox.
        let wait = order(|_, cx| {
            cx.wait(ask, |me, _, answer| {
                tell_of(me, answer);
                Ok(Next::Stay)
            })
            .unwrap();
        });
        itself.tell(wait).unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["Ok(8)"]);
}

#[test]
fn an_actor_that_goes_on_may_ask_itself() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", node(&log)).unwrap();
    let told = order(|_, cx| {
        let itself = cx.self_ref();
        let map = |_: &mut _, answer| Ok(Msg::Say(format!("{answer:?}")));
        cx.ask(&itself, |to| Msg::Double(4, to), SECOND, map).unwrap();
        cx.spawn_future(itself.ask(|to| Msg::Double(5, to), SECOND), |me, _, answer| {
            tell_of(me, answer);
            Ok(Next::Stay)
        })
        .unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["Ok(10)", "Ok(8)"]);
}
