//! Many futures at a time: the bound, fairness, threads that wake.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use clockjack_actor::{ActorSystem, Next, Props};

use super::{
    bench::{Log, start},
    gate::Gate,
    order, say, scripted_actor,
};

#[test]
fn more_than_the_bound_are_refused_and_come_back() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, gate) = (Log::default(), Gate::default());
    let actor = root.spawn("a", Props::new(scripted_actor(&log)).futures(2, 0)).unwrap();
    let futures = [0, 1, 2].map(|_| gate.passing(&log));
    actor
        .tell(order(move |me, cx| {
            let [one, two, three] = futures;
            cx.spawn_future(one, |_, _, _| Ok(Next::Stay)).unwrap();
            cx.wait(two, |_, _, _| Ok(Next::Stay)).unwrap();
            let refused = cx.spawn_future(three, |_, _, _| Ok(Next::Stay)).unwrap_err();
            assert!(refused.is_too_many_futures());
            me.log.add("refused");
            drop(refused.into_inner());
        }))
        .unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "refused", "future dropped"]);
}

#[test]
fn a_thousand_futures_are_each_polled_only_when_they_were_woken() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", Props::new(scripted_actor(&log)).futures(1_000, 0)).unwrap();
    let gates: Vec<Gate> = (0..1_000).map(|_| Gate::default()).collect();
    let quiet = Log::default();
    let futures: Vec<_> = gates.iter().map(|gate| gate.passing(&quiet)).collect();
    actor
        .tell(order(move |_, cx| {
            for future in futures {
                cx.spawn_future(future, |me, _, output| {
                    me.sum += output;
                    Ok(Next::Stay)
                })
                .unwrap();
            }
        }))
        .unwrap();
    say(&actor, "message");
    root.run_until_idle();
    assert_eq!(log.take(), ["started", "message"]);
    assert!(gates.iter().all(|gate| gate.polls() == 1));
    gates[7].wake();
    gates[7].wake();
    root.run_until_idle();
    assert_eq!(gates[7].polls(), 2);
    for gate in gates.iter().rev() {
        gate.open(1);
    }
    root.run_until_idle();
    assert_eq!(gates.iter().map(Gate::polls).sum::<usize>(), 2_001);
    actor.tell(order(|me, _| me.log.add(format!("sum {}", me.sum)))).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["sum 1000"]);
}

#[test]
fn futures_that_are_always_ready_to_be_polled_do_not_starve_a_stop() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", scripted_actor(&log)).unwrap();
    actor
        .tell(order(|_, cx| {
            let busy = core::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                core::task::Poll::<()>::Pending
            });
            cx.wait(busy, |_, _, ()| Ok(Next::Stay)).unwrap();
        }))
        .unwrap();
    let mut turns = 0;
    let to_stop = actor.clone();
    let system = root.system().clone();
    root.blocking_dispatch_loop(|| {
        turns += 1;
        if turns == 10 {
            system.stop(&to_stop).unwrap();
        }
        assert!(turns < 1_000, "the stop was starved");
        to_stop.is_stopped()
    });
    assert_eq!(log.take(), ["started", "PostStop", "actor dropped with 0"]);
}

/// Every output arrives exactly once, no matter which thread opens the gates.
#[test]
fn what_threads_open_arrives_once_each() {
    const THREADS: usize = 3;
    const EACH: usize = 200;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, quiet) = (Log::default(), Log::default());
    let max = u16::try_from(THREADS * EACH).unwrap();
    let actor = root.spawn("a", Props::new(scripted_actor(&log)).futures(max, 64)).unwrap();
    let gates: Vec<Gate> = (0..THREADS * EACH).map(|_| Gate::default()).collect();
    let futures: Vec<_> = gates.iter().map(|gate| gate.passing(&quiet)).collect();
    let done = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&done);
    actor
        .tell(order(move |_, cx| {
            for future in futures {
                let counted = Arc::clone(&counted);
                cx.spawn_future(future, move |_, _, output| {
                    counted.fetch_add(output, Relaxed);
                    Ok(Next::Stay)
                })
                .unwrap();
            }
        }))
        .unwrap();
    root.run_until_idle();
    thread::scope(|scope| {
        for part in gates.chunks(EACH) {
            scope.spawn(move || {
                for gate in part {
                    gate.wake();
                    gate.open(1);
                }
            });
        }
        let all = u32::from(max);
        while done.load(Relaxed) < all {
            root.run_until_idle();
            thread::yield_now();
        }
    });
    root.run_until_idle();
    assert_eq!(done.load(Relaxed), u32::from(max));
}
