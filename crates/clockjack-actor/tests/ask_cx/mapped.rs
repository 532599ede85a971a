//! `Context::ask`: the answer is mapped by the actor and comes as a message.

use core::fmt;

use clockjack_actor::{ActorRef, ActorSystem, AskError, Failure, Mailbox, Next, Props, Strategy};

use super::{Log, Msg, SECOND, bench::start, listen, node, order, say, stop};

/// Has an actor ask for the double of `n`, and say what it was answered.
fn ask_double(actor: &ActorRef<Msg>, target: &ActorRef<Msg>, n: u64) {
    let target = target.clone();
    let told = order(move |_, cx| {
        let map = |_: &mut _, answer| Ok(Msg::Say(format!("{answer:?}")));
        cx.ask(&target, |to| Msg::Double(n, to), SECOND, map).unwrap();
    });
    actor.tell(told).unwrap();
}

/// Has an actor ask for what nobody answers for now, and say what became of it.
fn ask_kept(actor: &ActorRef<Msg>, target: &ActorRef<Msg>) {
    let target = target.clone();
    let told = order(move |_, cx| {
        let map = |_: &mut _, answer: Result<u64, AskError>| {
            Ok(Msg::Say(answer.map_or_else(|error| error.to_string(), |n| n.to_string())))
        };
        cx.ask(&target, Msg::Keep, SECOND, map).unwrap();
    });
    actor.tell(told).unwrap();
}

fn answer_kept(target: &ActorRef<Msg>, n: u64) {
    target.tell(order(move |me, _| me.kept.drain(..).for_each(|to| to.reply(n)))).unwrap();
}

#[test]
fn an_answer_is_mapped_by_the_actor_and_comes_behind_what_is_in_the_mailbox() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let server = root.spawn("server", node(&Log::default())).unwrap();
    let actor = root.spawn("a", node(&log)).unwrap();
    let target = server.clone();
    let told = order(move |_, cx| {
        let here = std::thread::current().id();
        let n = 21;
        let ask = cx.ask(
            &target,
            |to| Msg::Double(n, to),
            SECOND,
            move |me, answer| {
                assert_eq!(std::thread::current().id(), here);
                me.n += answer?;
                me.log.add("mapped");
                Ok(Msg::Say(format!("n {}", me.n)))
            },
        );
        ask.unwrap();
        // Both are in the mailbox before the answer is there.
        cx.self_ref().tell(say("first")).unwrap();
    });
    actor.tell(told).unwrap();
    // Lets the first handle its order and what follows, then the answer, and what has come before
    // its message.
    root.run_until_idle();
    assert_eq!(log.take(), ["first", "mapped", "n 42"]);
    let (target, me) = (server, actor.clone());
    let told = order(move |_, cx| {
        cx.ask(
            &target,
            |to| Msg::Double(1, to),
            SECOND,
            move |_, answer| {
                me.tell(say("before")).unwrap();
                Ok(Msg::Say(format!("{answer:?}")))
            },
        )
        .unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["before", "Ok(2)"]);
}

#[test]
fn a_hundred_asks_are_answered_in_order() {
    for capacity in [1000, 3] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let losses = listen(&mut root);
        let log = Log::default();
        let server = root.spawn("server", node(&Log::default())).unwrap();
        let props = Props::new(node(&log)).mailbox(Mailbox::bounded(capacity)).futures(100, 0);
        let actor = root.spawn("a", props).unwrap();
        let told = order(move |_, cx| {
            for n in 0..100 {
                let map = |_: &mut _, answer: Result<u64, _>| Ok(Msg::Say(answer?.to_string()));
                cx.ask(&server, |to| Msg::Double(n, to), SECOND, map).unwrap();
            }
        });
        actor.tell(told).unwrap();
        root.run_until_idle();
        let expected: Vec<_> = (0..100).map(|n| (n * 2).to_string()).collect();
        assert_eq!(log.take(), expected, "capacity {capacity}");
        assert!(losses.take().is_empty());
    }
}

#[test]
fn a_map_that_fails_or_panics_fails_the_actor() {
    for panics in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let server = root.spawn("server", node(&Log::default())).unwrap();
        let props = Props::new(node(&log)).supervise(Strategy::restart());
        let actor = root.spawn("a", props).unwrap();
        let told = order(move |_, cx| {
            cx.ask(
                &server,
                |to| Msg::Double(1, to),
                SECOND,
                move |_, _| {
                    assert!(!panics, "it was asked to");
                    Err(Failure::msg("no"))
                },
            )
            .unwrap();
        });
        actor.tell(told).unwrap();
        root.run_until_idle();
        actor.tell(say("alive")).unwrap();
        root.run_until_idle();
        assert_eq!(log.take(), ["PreRestart", "alive"], "panics: {panics}");
    }
}

#[test]
fn an_ask_without_answer_is_mapped_too_and_names_target_message_and_time_out() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let letters = listen(&mut root);
    let log = Log::default();
    let server = root.spawn("server", node(&Log::default())).unwrap();
    let actor = root.spawn("a", node(&log)).unwrap();
    ask_kept(&actor, &server);
    root.run_until_idle();
    assert!(log.take().is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    let head = "/user/server has not answered a message of type ask_cx::Msg: ";
    assert_eq!(log.take(), [format!("{head}timed out after 1s")]);
    answer_kept(&server, 1);
    root.run_until_idle();
    assert_eq!(letters.take(), ["/temp/ask-0.0 u64 LateReply"]);
    server.tell(stop()).unwrap();
    root.run_until_idle();
    ask_kept(&actor, &server);
    root.run_until_idle();
    assert_eq!(log.take(), [format!("{head}already terminated (timeout 1s)")]);
    assert_eq!(letters.take(), ["/user/server Msg Stopped"]);
    let told = order(move |_, cx| {
        let map = |_: &mut _, answer: Result<u64, AskError>| {
            Ok(Msg::Say(format!("{}", answer.unwrap_err().is_refused())))
        };
        cx.ask(&server, |_| panic!("no request is made"), Default::default(), map).unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["true"]);
    assert!(letters.take().is_empty());
}

#[test]
fn a_restart_and_a_stop_drop_the_asks_under_way() {
    for stops in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let letters = listen(&mut root);
        let log = Log::default();
        let server = root.spawn("server", node(&Log::default())).unwrap();
        let props = Props::new(node(&log)).supervise(Strategy::restart());
        let actor = root.spawn("a", props).unwrap();
        ask_kept(&actor, &server);
        root.run_until_idle();
        let fail =
            Msg::Do(Box::new(
                move |_, _| {
                    if stops { Ok(Next::Stop) } else { Err(Failure::msg("failed")) }
                },
            ));
        actor.tell(fail).unwrap();
        root.run_until_idle();
        assert_eq!(log.take(), [if stops { "PostStop" } else { "PreRestart" }]);
        answer_kept(&server, 1);
        root.run_until_idle();
        assert!(log.take().is_empty(), "an answer to an earlier value has come");
        assert_eq!(letters.take(), ["/temp/ask-0.0 u64 LateReply"]);
    }
}

#[test]
fn an_answer_that_comes_in_a_wait_is_handled_after_it() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let server = root.spawn("server", node(&Log::default())).unwrap();
    let actor = root.spawn("a", node(&log)).unwrap();
    let silent = server.clone();
    ask_double(&actor, &server, 4);
    let told = order(move |_, cx| {
        cx.wait(silent.ask(Msg::Keep, SECOND), |me, _, _| {
            me.log.add("waited");
            Ok(Next::Stay)
        })
        .unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    clock.advance(SECOND);
    root.run_until_idle();
    assert_eq!(log.take(), ["waited", "Ok(8)"]);
}

#[test]
fn what_is_not_begun_sends_nothing_and_gives_the_map_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let server = root.spawn("server", node(&Log::default())).unwrap();
    let actor = root.spawn("a", Props::new(node(&log)).futures(1, 0)).unwrap();
    ask_kept(&actor, &server);
    let told = order(move |me, cx| {
        let map = |_: &mut _, answer: Result<u64, _>| Ok(Msg::Say(answer?.to_string()));
        let request = |_| panic!("no request is made");
        let refused = cx.ask(&server, request, SECOND, map).unwrap_err();
        me.log.add(format!("{:?}", refused.is_too_many_futures()));
        let map = refused.into_inner();
        assert!(map(me, Ok(7)).is_ok());
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["true"]);
}

#[derive(Debug)]
struct Custom(u32);

impl fmt::Display for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "custom {}", self.0)
    }
}

impl core::error::Error for Custom {}

#[test]
fn a_status_is_unwrapped_its_text_becomes_an_error_and_a_custom_error_is_kept() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let server = root.spawn("server", node(&Log::default())).unwrap();
    let actor = root.spawn("a", node(&log)).unwrap();
    for failure in [Failure::msg("plain text"), Custom(7).into()] {
        let target = server.clone();
        let told = order(move |_, cx| {
            let map = |_: &mut _, answer: Result<u64, Failure>| {
                let failure = answer.unwrap_err();
                let custom = failure.downcast_ref::<Custom>().map(|custom| custom.0);
                Ok(Msg::Say(format!("{failure} {custom:?}")))
            };
            cx.ask_with_status(&target, |to| Msg::Fail(failure, to), SECOND, map).unwrap();
        });
        actor.tell(told).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["plain text None", "custom 7 Some(7)"]);
    server.tell(stop()).unwrap();
    root.run_until_idle();
    let told = order(move |_, cx| {
        let map = |_: &mut _, answer: Result<u64, Failure>| {
            let is_stopped = answer.unwrap_err().downcast_ref().map(AskError::is_stopped);
            Ok(Msg::Say(format!("{is_stopped:?}")))
        };
        cx.ask_with_status(&server, |to| Msg::Fail(Custom(1).into(), to), SECOND, map).unwrap();
    });
    actor.tell(told).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["Some(true)"]);
}
