//! Actors that wait for answers of each other: cycles are reported.

use clockjack_actor::{ActorRef, ActorSystem, Context, Next, ReplyTo, RootContext};

use super::{Log, Msg, Node, SECOND, bench::start, listen, node, order};

fn nodes<const N: usize>(root: &mut RootContext, log: &Log) -> [ActorRef<Msg>; N] {
    let mut names = ["a", "b", "c"].into_iter();
    [(); N].map(|()| root.spawn(names.next().unwrap(), node(log)).unwrap())
}

/// Waits for an answer of the first of these, which waits for one of the next before it gives it,
/// and so on. Then says what has come, and answers.
fn wait_in_turn(
    cx: &mut Context<'_, Node>,
    mut line: alloc::vec::IntoIter<ActorRef<Msg>>,
    to: Option<ReplyTo<u64>>,
) {
    let Some(next) = line.next() else {
        return to.into_iter().for_each(|to| to.reply(7));
    };
    let request = move |to| {
        let question = move |_: &mut Node, cx: &mut Context<'_, Node>, to| {
            wait_in_turn(cx, line, Some(to));
        };
        Msg::Answer(Box::new(question), to)
    };
    cx.wait(next.ask(request, SECOND), |me, _, answer| {
        me.log.add(match answer {
            Ok(n) => n.to_string(),
            Err(error) => format!("timed out: {}", error.is_timed_out()),
        });
        to.into_iter().for_each(|to| to.reply(7));
        Ok(Next::Stay)
    })
    .unwrap();
}

fn check(line: &[usize], told: &[&str]) {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let cycles = listen(&mut root);
    let log = Log::default();
    let nodes = nodes::<3>(&mut root, &log);
    let mut line = line.iter().map(|n| nodes[*n].clone()).collect::<Vec<_>>().into_iter();
    let first = line.next().unwrap();
    first.tell(order(move |_, cx| wait_in_turn(cx, line, None))).unwrap();
    root.run_until_idle();
    assert_eq!(cycles.take(), told);
    assert_eq!(log.take().is_empty(), !told.is_empty(), "only a cycle waits for its time");
    clock.advance(SECOND);
    root.run_until_idle();
    let at_last = cycles.take();
    assert!(!at_last.iter().any(|line| line.starts_with("cycle")), "told again: {at_last:?}");
}

#[test]
fn two_that_wait_for_each_other_are_told_of_once() {
    check(&[0, 1, 0], &["cycle /user/a /user/b"]);
}

#[test]
fn three_that_wait_for_each_other_are_told_of_once() {
    check(&[0, 1, 2, 0], &["cycle /user/a /user/b /user/c"]);
}

#[test]
fn of_a_line_only_the_cycle_in_it_is_told_of() {
    check(&[2, 0, 1, 0], &["cycle /user/a /user/b"]);
}

#[test]
fn a_line_that_ends_is_no_cycle() {
    check(&[0, 1, 2], &[]);
}

#[test]
fn who_is_answered_already_waits_for_nobody() {
    for is_dropped in [false, true] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let cycles = listen(&mut root);
        let log = Log::default();
        let [a, b] = nodes(&mut root, &log);
        let itself = a.clone();
        let told = order(move |_, cx| {
            let request = move |to| {
                let question = move |_: &mut Node, cx: &mut Context<'_, Node>, to: ReplyTo<u64>| {
                    // The asker sees it in its next poll, after this one has asked.
                    if is_dropped {
                        drop(to)
                    } else {
                        to.reply(7)
                    }
                    cx.wait(itself.ask(|to| Msg::Double(1, to), SECOND), |me, _, answer| {
                        me.log.add(format!("b {answer:?}"));
                        Ok(Next::Stay)
                    })
                    .unwrap();
                };
                Msg::Answer(Box::new(question), to)
            };
            cx.wait(b.ask(request, SECOND), |me, _, answer| {
                me.log.add(format!("a {}", answer.is_ok()));
                Ok(Next::Stay)
            })
            .unwrap();
        });
        a.tell(told).unwrap();
        root.run_until_idle();
        assert!(cycles.take().is_empty(), "an answer was under way");
        assert_eq!(log.take(), [format!("a {}", !is_dropped), "b Ok(2)".to_owned()]);
    }
}

#[test]
fn who_goes_on_meanwhile_is_not_on_a_cycle() {
    // The first continues with other messages, the second does so or not.
    for goes_on in [true, false] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let cycles = listen(&mut root);
        let log = Log::default();
        let [a, b] = nodes(&mut root, &log);
        let itself = a.clone();
        let request = move |to| {
            let question = move |_: &mut Node, cx: &mut Context<'_, Node>, to: ReplyTo<u64>| {
                let ask = itself.ask(|to| Msg::Double(5, to), SECOND);
                let then = |_: &mut Node, _: &mut Context<'_, Node>, answer: Result<u64, _>| {
                    to.reply(answer? + 1);
                    Ok(Next::Stay)
                };
                if goes_on {
                    cx.spawn_future(ask, then).unwrap();
                } else {
                    cx.wait(ask, then).unwrap();
                }
            };
            Msg::Answer(Box::new(question), to)
        };
        let told = order(move |_, cx| {
            let map = |_: &mut _, answer| Ok(Msg::Say(format!("{answer:?}")));
            cx.ask(&b, request, SECOND, map).unwrap();
        });
        a.tell(told).unwrap();
        root.run_until_idle();
        assert!(cycles.take().is_empty());
        assert_eq!(log.take(), ["Ok(11)"]);
    }
}

#[test]
fn what_was_given_up_is_forgotten() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let cycles = listen(&mut root);
    let log = Log::default();
    let [a, b] = nodes(&mut root, &log);
    let target = b.clone();
    let told = order(move |_, cx| {
        cx.wait(target.ask(Msg::Keep, SECOND), |_, _, _| Ok(Next::Stay)).unwrap();
    });
    a.tell(told).unwrap();
    root.run_until_idle();
    clock.advance(SECOND);
    root.run_until_idle();
    let target = a.clone();
    let told = order(move |_, cx| {
        cx.wait(target.ask(Msg::Keep, SECOND), |_, _, _| Ok(Next::Stay)).unwrap();
    });
    b.tell(told).unwrap();
    root.run_until_idle();
    assert!(cycles.take().is_empty());
}
