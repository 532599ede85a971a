//! Message kinds, bounds and losses of a mailbox, and how many messages one poll handles.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use clockjack_actor::{
    ActorRef, ActorSystem, EventKinds, Limits, Mailbox, Next, Overflow, Props, Scope, Strategy,
    SystemMessage, Terminated,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, events, props, run},
};

#[test]
fn the_system_goes_before_control_messages_and_these_before_all_others() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let [w, a] = ["w", "a"].map(|name| root.spawn(name, props(&log)).unwrap());
    let who = a.clone();
    run(&mut root, &w, move |_, cx| {
        cx.watch(&who)?;
        Ok(Next::Stay)
    });
    log.take();
    w.tell(Msg::Say("user 1")).unwrap();
    w.tell_control(Msg::Say("control 1")).unwrap();
    w.tell(Msg::Say("user 2")).unwrap();
    w.tell_control(Msg::Say("control 2")).unwrap();
    let end = Terminated::new(a.pid(), a.path(), None);
    w.try_send_system(SystemMessage::Terminated(end)).unwrap();
    root.run_until_idle();
    let expected = ["w sees a end", "w control 1", "w control 2", "w user 1", "w user 2"];
    assert_eq!(log.take(), expected);
    // A stop overtakes even control messages.
    w.tell_control(Msg::Say("too late")).unwrap();
    root.system().stop(&w).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["w PostStop"]);
}

#[test]
fn a_mailbox_has_room_for_a_thousand_and_gives_back_what_is_beyond() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let a = root.spawn("a", props(&log)).unwrap();
    for _ in 0..1_000 {
        a.tell(Msg::Say("kept")).unwrap();
    }
    let refused = a.tell(Msg::Say("beyond")).unwrap_err();
    assert!(refused.is_full() && !refused.is_stopped());
    assert!(matches!(refused.into_inner(), Msg::Say("beyond")));
    root.run_until_idle();
    assert_eq!(log.take().len(), 1 + 1_000);
    assert!(told.take().is_empty(), "what comes back is not lost");
    a.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let refused = a.tell(Msg::Say("later")).unwrap_err();
    assert!(refused.is_stopped() && matches!(refused.into_inner(), Msg::Say("later")));
}

/// Which of three messages to a mailbox for one message are lost, and why.
fn losses(overflow: Overflow) -> (Vec<String>, Vec<String>) {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let mailbox = Mailbox::bounded(1).overflow(overflow);
    let a = root.spawn("a", props(&log).mailbox(mailbox)).unwrap();
    root.run_until_idle();
    log.take();
    for text in ["one", "two", "three"] {
        a.tell_or_dead_letter(Msg::Say(text));
    }
    root.run_until_idle();
    (log.take(), told.take())
}

#[test]
fn every_loss_is_a_dead_letter_with_its_reason() {
    let full = "dead letter for /user/a: the mailbox is full";
    let evicted = "dead letter for /user/a: a newer message took its place";
    let stopped = "dead letter for /user/a: its receiver has stopped";
    for (overflow, handled, lost) in [
        (Overflow::Fail, "a one", vec![full, full]),
        (Overflow::DropNewest, "a one", vec![full, full]),
        (Overflow::DropOldest, "a three", vec![evicted, evicted]),
        (Overflow::StopActor, "a PostStop", vec![stopped, stopped, stopped]),
    ] {
        let (seen, told) = losses(overflow);
        assert_eq!(seen, [handled], "{overflow:?}");
        assert_eq!(told, lost, "{overflow:?}");
    }
}

#[test]
fn without_a_bound_of_its_own_a_mailbox_has_that_of_the_system() {
    let limits = Limits::DEFAULT.messages(10);
    let (mut root, _) = start(ActorSystem::builder("t").limits(limits));
    let a = root.spawn("a", props(&Log::default()).mailbox(Mailbox::unbounded())).unwrap();
    root.run_until_idle();
    let n_told = (0..100).take_while(|_| a.tell(Msg::Say("more")).is_ok()).count();
    assert_eq!(n_told, 10);
    assert!(a.tell(Msg::Say("more")).unwrap_err().is_full());
    root.run_until_idle();
    assert!(a.tell(Msg::Say("more")).is_ok());
}

#[test]
fn messages_of_the_system_need_no_room() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let mailbox = Mailbox::bounded(1);
    let [a, w] = ["a", "w"].map(|name| root.spawn(name, props(&log).mailbox(mailbox)).unwrap());
    root.run_until_idle();
    log.take();
    for one in [&a, &w] {
        one.tell(Msg::Say("full")).unwrap();
        assert!(one.tell(Msg::Say("beyond")).is_err());
    }
    let order = |order| a.try_send_system(order).unwrap();
    order(SystemMessage::Watch(w.pid()));
    order(SystemMessage::Suspend);
    order(SystemMessage::Resume);
    order(SystemMessage::Restart);
    root.run_until_idle();
    assert_eq!(log.take(), ["a PreRestart", "a started", "a full", "w full"]);
    a.tell(Msg::Say("full")).unwrap();
    w.tell(Msg::Say("full")).unwrap();
    order(SystemMessage::Stop);
    root.run_until_idle();
    assert_eq!(log.take(), ["a PostStop", "w sees a end", "w full"]);
}

#[test]
fn a_sealed_system_has_room_for_orders_failures_and_ends() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let strategy = Strategy::restart();
    let a = root.spawn("a", props(&log).supervise_children(Scope::OneForOne, strategy)).unwrap();
    let to = log.clone();
    run(&mut root, &a, move |_, cx| {
        for name in ["x", "y"] {
            let child = cx.spawn_child(name, props(&to))?;
            cx.watch(&child)?;
        }
        Ok(Next::Stay)
    });
    log.take();
    let [x, y]: [ActorRef<Msg>; 2] =
        ["/user/a/x", "/user/a/y"].map(|path| root.system().lookup(path).unwrap());
    root.seal();
    x.tell(Msg::Fail).unwrap();
    y.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    let mut lines = log.take();
    lines.sort();
    let expected = [
        "a hears that /user/a/x restart (failed of /user/a/x)",
        "a sees y end",
        "a/x PreRestart",
        "a/x started",
        "a/y PostStop",
    ];
    assert_eq!(lines, expected);
    root.system().stop(&a).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a/x PostStop", "a PostStop"]);
}

#[test]
fn at_most_sixty_four_messages_are_handled_in_a_turn() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (count, at) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let to = Arc::clone(&count);
    let flooded = Props::from_fn(move |_, (): ()| {
        to.fetch_add(1, Relaxed);
        Ok(Next::Stay)
    });
    let flooded = root.spawn("flooded", flooded).unwrap();
    let (seen, to) = (Arc::clone(&count), Arc::clone(&at));
    let other = Props::from_fn(move |_, (): ()| {
        to.store(seen.load(Relaxed), Relaxed);
        Ok(Next::Stay)
    });
    let other = root.spawn("other", other).unwrap();
    root.run_until_idle();
    (0..1_000).for_each(|_| flooded.tell(()).unwrap());
    other.tell(()).unwrap();
    root.run_until_idle();
    assert_eq!((at.load(Relaxed), count.load(Relaxed)), (64, 1_000));
}

#[test]
fn what_stops_an_actor_by_its_overflow_comes_back_also_from_a_mapped_address() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::DEAD_LETTER | EventKinds::MAILBOX_OVERFLOW, &told);
    let mailbox = Mailbox::bounded(1).overflow(Overflow::StopActor);
    let a = root.spawn("a", props(&Log::default()).mailbox(mailbox)).unwrap();
    let mapped: ActorRef<&'static str> = a.map(Msg::Say);
    mapped.tell("one").unwrap();
    let refused = mapped.tell("two").unwrap_err();
    assert!(refused.is_stopped());
    assert_eq!(refused.into_inner(), "two");
    root.run_until_idle();
    assert!(a.is_stopped());
    let lost = "dead letter for /user/a: its receiver has stopped";
    assert_eq!(told.take(), ["MailboxOverflow(/user/a)", lost], "only what was in the mailbox");
}

#[test]
fn a_message_that_is_evicted_and_was_cancelled_before_is_no_dead_letter() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::DEAD_LETTER, &told);
    let mailbox = Mailbox::bounded(1).overflow(Overflow::DropOldest);
    let a = root.spawn("a", props(&log).mailbox(mailbox)).unwrap();
    root.run_until_idle();
    a.try_send_system(SystemMessage::Suspend).unwrap();
    let (jobs, second) = (root.system().scheduler().clone(), Duration::from_secs(1));
    let msg = Msg::Say("must not come");
    let job = jobs.schedule_once(second, &a, msg).unwrap();
    clock.advance(second);
    root.run_until_idle();
    assert!(job.cancel());
    a.tell(Msg::Say("newer")).unwrap();
    a.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a newer"]);
    assert!(told.take().is_empty());
}

#[test]
fn whatever_the_limit_a_mailbox_has_room_for_one_and_can_be_made() {
    for (limit, n_kept) in [(0, 1), (usize::MAX, 5)] {
        let limits = Limits::DEFAULT.messages(limit);
        let (mut root, _) = start(ActorSystem::builder("t").limits(limits));
        let log = Log::default();
        let a = root.spawn("a", props(&log).mailbox(Mailbox::unbounded())).unwrap();
        let n_sent = (0..5).filter(|_| a.tell(Msg::Say("kept")).is_ok()).count();
        root.run_until_idle();
        assert_eq!((n_sent, log.take().len()), (n_kept, 1 + n_kept));
    }
}
