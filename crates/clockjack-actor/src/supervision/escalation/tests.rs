//! Sinks and the queue of what they gave back.

use alloc::{
    format,
    string::{String, ToString as _},
    sync::Arc,
    vec,
};
use core::panic::AssertUnwindSafe;
use std::{
    panic::catch_unwind,
    sync::{Mutex, OnceLock},
    thread,
};

use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;
use crate::{ActorPath, failure_info::FailureReport};

type Log = Arc<Mutex<Vec<String>>>;

fn pid(index: u32) -> Pid {
    Pid::new(1, index, core::num::NonZeroU64::MIN)
}

fn info(reason: &str) -> FailureInfo {
    let path = ActorPath::root().child("user").child("a");
    FailureInfo::new(pid(9), path, FailureReport::new(reason))
}

fn reasons(infos: &[FailureInfo]) -> Vec<String> {
    infos.iter().map(|info| info.reason.to_string()).collect()
}

fn seen(log: &Log) -> Vec<String> {
    core::mem::take(&mut *log.lock().unwrap())
}

/// Records what it receives, under its name, and returns the first `refusals`.
fn sink(name: &'static str, log: &Log, mut refusals: usize) -> impl EscalationSink + use<> {
    let log = log.clone();
    Custom::new(move |info| {
        log.lock().unwrap().push(format!("{name} {}", info.reason));
        let Some(rest) = refusals.checked_sub(1) else { return Ok(()) };
        refusals = rest;
        Err(info)
    })
}

#[test]
fn what_a_sink_gives_back_is_offered_in_each_cycle_until_it_is_taken() {
    let log = Log::default();
    let escalations = Escalations::new(sink("s", &log, 3), 9);
    escalations.offer(info("1")).unwrap();
    escalations.offer(info("2")).unwrap();
    assert_eq!(escalations.n_waiting(), 2);
    assert_eq!(escalations.retry(), 1);
    assert_eq!(escalations.retry(), 1);
    assert_eq!(escalations.retry(), 0);
    assert_eq!(seen(&log), ["s 1", "s 2", "s 1", "s 2", "s 1"]);
    assert_eq!((escalations.n_waiting(), escalations.n_dropped()), (0, 0));
}

#[test]
fn without_a_sink_all_waits_to_be_taken() {
    let escalations = Escalations::without_sink(2);
    escalations.offer(info("1")).unwrap();
    escalations.offer(info("2")).unwrap();
    assert_eq!(escalations.retry(), 0);
    let refused = escalations.offer(info("3")).unwrap_err();
    assert_eq!(refused.reason.to_string(), "3");
    assert_eq!(escalations.n_dropped(), 1);
    assert_eq!(reasons(&escalations.take_escalations()), ["1", "2"]);
    assert_eq!(reasons(&escalations.take_escalations()), [""; 0]);
    assert!(format!("{escalations:?}").contains("n_dropped: 1"));
}

#[test]
fn a_sink_may_escalate_itself_and_that_waits_for_the_next_cycle() {
    let log = Log::default();
    let queue: Arc<OnceLock<Escalations>> = Arc::default();
    let sink = {
        // Not held by what it holds.
        let (log, queue) = (log.clone(), Arc::downgrade(&queue));
        Custom::new(move |info: FailureInfo| {
            log.lock().unwrap().push(info.reason.to_string());
            let queue = queue.upgrade().unwrap();
            let queue = queue.get().unwrap();
            if info.reason.text() == "1" {
                queue.offer(self::info("2")).unwrap();
                // There is one sink, and it is here.
                assert_eq!(queue.retry(), 0);
            }
            Ok(())
        })
    };
    let queue = queue.get_or_init(|| Escalations::new(sink, 9));
    queue.offer(info("1")).unwrap();
    assert_eq!(seen(&log), ["1"]);
    assert_eq!(queue.retry(), 1);
    assert_eq!(seen(&log), ["2"]);
}

#[test]
fn what_several_escalate_at_once_is_taken_waits_or_comes_back() {
    const EACH: usize = 300;
    let log = Log::default();
    let sink = {
        let (log, mut refusals) = (log.clone(), 0..100);
        Custom::new(move |info: FailureInfo| {
            if refusals.next().is_some() {
                return Err(info);
            }
            log.lock().unwrap().push(info.reason.to_string());
            Ok(())
        })
    };
    let queue = Escalations::new(sink, 50);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..EACH {
                    // The queue counts returned failures.
                    drop(queue.offer(info(&n.to_string())));
                }
            });
        }
        (0..EACH).for_each(|_| assert!(queue.retry() <= 51));
    });
    assert_eq!(seen(&log).len() + queue.n_waiting() + queue.n_dropped(), 2 * EACH);
}

#[test]
fn the_sinks_of_a_composite_that_took_it_do_not_see_it_again() {
    let log = Log::default();
    let composite = Composite::new()
        .with(sink("a", &log, 0))
        .with(sink("b", &log, 2))
        .with(sink("c", &log, 1))
        .with(sink("d", &log, 0));
    let escalations = Escalations::new(composite, 9);
    escalations.offer(info("1")).unwrap();
    assert_eq!(seen(&log), ["a 1", "b 1", "c 1", "d 1"]);
    assert_eq!(escalations.retry(), 0);
    assert_eq!(seen(&log), ["b 1", "c 1"]);
    assert_eq!(escalations.retry(), 1);
    assert_eq!(seen(&log), ["b 1"]);
    // The next one is for all again.
    escalations.offer(info("2")).unwrap();
    assert_eq!(seen(&log), ["a 2", "b 2", "c 2", "d 2"]);
}

#[test]
fn a_composite_within_a_composite_keeps_its_own_notes() {
    let log = Log::default();
    let inner = Composite::new().with(sink("a", &log, 0)).with(sink("b", &log, 2));
    let outer = Composite::new().with(sink("c", &log, 1)).with(inner);
    let escalations = Escalations::new(outer, 9);
    escalations.offer(info("1")).unwrap();
    assert_eq!(seen(&log), ["c 1", "a 1", "b 1"]);
    assert_eq!(escalations.retry(), 0);
    assert_eq!(seen(&log), ["c 1", "b 1"]);
    assert_eq!(escalations.retry(), 1);
    assert_eq!(seen(&log), ["b 1"]);
}

#[test]
fn the_notes_of_one_composite_mean_nothing_to_another() {
    let log = Log::default();
    let mut one = Composite::new().with(sink("a", &log, 0)).with(sink("b", &log, 1));
    let mut other = Composite::new().with(sink("c", &log, 0)).with(sink("d", &log, 0));
    let back = one.handle(info("1")).unwrap_err();
    assert!(other.handle(back).is_ok());
    assert_eq!(seen(&log), ["a 1", "b 1", "c 1", "d 1"]);
    // Nor are they left on what is taken out of the queue.
    let back = Composite::new().with(sink("e", &log, 1));
    let escalations = Escalations::new(back, 1);
    escalations.offer(info("2")).unwrap();
    assert!(escalations.take_escalations()[0].returned().is_none());
}

#[test]
fn the_parent_sees_it_one_level_up_however_often_it_is_offered() {
    let log = Log::default();
    let mut n_offers = 0;
    let parent = {
        let log = log.clone();
        ParentGuardian::new(pid(4), move |info| {
            n_offers += 1;
            let line = format!("{} {} {:?}", info.actor, info.path, info.stage);
            log.lock().unwrap().push(line);
            if n_offers < 3 { Err(info) } else { Ok(()) }
        })
    };
    let escalations = Escalations::new(parent, 9);
    escalations.offer(info("1")).unwrap();
    escalations.retry();
    assert_eq!(escalations.retry(), 1);
    assert_eq!(seen(&log), ["{1|4.1} /user Escalated { hops: 1 }"; 3]);
}

#[test]
fn the_root_tells_all_and_takes_all() {
    let log = Log::default();
    let tell = |name: &'static str| {
        let log = log.clone();
        move |info: &FailureInfo| {
            log.lock().unwrap().push(format!("{name} {} {:?}", info.reason, info.stage));
        }
    };
    let mut root = Root::new()
        .listener(tell("l1"))
        .handler(tell("replaced"))
        .handler(tell("h"))
        .listener(tell("l2"))
        .publisher(tell("p"));
    assert!(root.handle(info("1")).is_ok());
    assert_eq!(seen(&log), ["p 1 Root", "h 1 Root", "l1 1 Root", "l2 1 Root"]);
}

#[test]
fn a_failure_goes_from_child_to_parent_to_root_through_sinks_of_sinks() {
    let log = Log::default();
    let root = {
        let log = log.clone();
        Root::new().handler(move |info| log.lock().unwrap().push(info.to_string()))
    };
    let top = Escalations::new(root, 9);
    let user = Escalations::new(ParentGuardian::new(pid(1), move |info| top.offer(info)), 9);
    let a = Escalations::new(ParentGuardian::new(pid(2), move |info| user.offer(info)), 9);
    a.offer(info("1")).unwrap();
    assert_eq!(seen(&log), ["/user/a {1|9.1}: 1, escalated to /"]);
}

#[test]
fn a_sink_that_panics_has_not_taken_it_and_holds_up_nobody() {
    let log = Log::default();
    let mut is_ready = false;
    let sink = {
        let log = log.clone();
        Custom::new(move |info: FailureInfo| {
            log.lock().unwrap().push(info.reason.to_string());
            if info.reason.text() == "bad" {
                panic!("it said so");
            }
            if core::mem::replace(&mut is_ready, true) { Ok(()) } else { Err(info) }
        })
    };
    let escalations = Escalations::new(sink, 9);
    let panics = |call: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(call)).is_err();
    assert!(panics(&mut || escalations.offer(info("bad")).unwrap()));
    assert_eq!(escalations.n_waiting(), 1);
    escalations.offer(info("good")).unwrap();
    assert!(panics(&mut || assert_eq!(escalations.retry(), 0)));
    // Now the other is first, and gets through before the panic.
    assert!(panics(&mut || assert_eq!(escalations.retry(), 0)));
    assert_eq!(seen(&log), ["bad", "good", "bad", "good", "bad"]);
    assert_eq!(reasons(&escalations.take_escalations()), ["bad"]);
}

proptest! {
    /// Nothing is lost or duplicated: each offered failure was taken, waits, or was returned.
    #[test]
    fn the_books_of_the_queue_balance(
        refusals in proptest::collection::vec(any::<bool>(), 0..100),
        offers in proptest::collection::vec(any::<bool>(), 0..60),
        waiting_max in 0_usize..5,
    ) {
        let log = Log::default();
        let mut refusals = refusals.into_iter();
        let sink = {
            let log = log.clone();
            Custom::new(move |info: FailureInfo| {
                if refusals.next().unwrap_or(false) {
                    return Err(info);
                }
                log.lock().unwrap().push(info.reason.to_string());
                Ok(())
            })
        };
        let escalations = Escalations::new(sink, waiting_max);
        let (mut offered, mut ended) = (vec![], vec![]);
        for (n, is_offer) in offers.into_iter().enumerate() {
            if !is_offer {
                escalations.retry();
                continue;
            }
            offered.push(n.to_string());
            if let Err(back) = escalations.offer(info(&n.to_string())) {
                ended.push(back.reason.to_string());
            }
            prop_assert_eq!(escalations.n_dropped(), ended.len());
            assert!(escalations.n_waiting() <= waiting_max);
        }
        ended.extend(seen(&log));
        ended.extend(reasons(&escalations.take_escalations()));
        offered.sort();
        ended.sort();
        prop_assert_eq!(offered, ended);
    }
}
