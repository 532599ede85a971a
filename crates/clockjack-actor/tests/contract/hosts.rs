//! Single-threaded hosts, and the settings of their builder.

use alloc::sync::Arc;
use core::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    task::{Context as TaskContext, Poll, Waker},
};
use std::panic::catch_unwind;

use clockjack_actor::{ActorSystem, Failure, Next, Props, RootContext, Strategy};
use clockjack_sched::TaskRunPriority;
use clockjack_testing::toolbox::{ByHand, Panics};
use clockjack_time::Resolution;

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, props},
};

/// A host that cannot catch panics.
fn bare() -> ByHand {
    let (mut bare, _clock) = ByHand::new(Resolution::MILLI);
    bare.panics = Panics::GoThrough;
    bare
}

fn on_bare() -> RootContext {
    RootContext::new(bare(), ActorSystem::builder("t")).unwrap()
}

#[test]
fn without_a_host_that_catches_a_failure_is_an_error_and_is_supervised() {
    let mut root = on_bare();
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(Strategy::restart())).unwrap();
    a.tell(Msg::Fail).unwrap();
    a.tell(Msg::Born).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a started", "a PreRestart", "a started", "a is 2"]);
}

#[test]
fn what_the_host_does_not_catch_no_strategy_is_asked_about() {
    let mut root = on_bare();
    let log = Log::default();
    let a = root.spawn("a", props(&log).supervise(Strategy::restart())).unwrap();
    a.tell(Msg::Panic).unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| root.run_until_idle())).unwrap_err();
    assert_eq!(caught.downcast_ref::<&str>(), Some(&"panicked"));
    assert_eq!(log.take(), ["a started"]);
}

/// A system in which each message causes the next; counts the messages.
fn endless() -> (RootContext, Arc<AtomicU32>) {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let count = Arc::new(AtomicU32::new(0));
    let to = Arc::clone(&count);
    let props = Props::from_fn(move |cx, (): ()| {
        to.fetch_add(1, Relaxed);
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    });
    root.spawn("a", props).unwrap().tell(()).unwrap();
    (root, count)
}

#[test]
fn a_crank_is_turned_until_it_is_told_to_stop() {
    let (mut root, count) = endless();
    let until = |n: u32| {
        let count = Arc::clone(&count);
        move || count.load(Relaxed) >= n
    };
    let mut cx = TaskContext::from_waker(Waker::noop());
    assert!(pin!(root.run_until(until(100))).poll(&mut cx).is_ready());
    let so_far = count.load(Relaxed);
    assert!(so_far >= 100);
    root.blocking_dispatch_loop(until(so_far + 100));
    assert!(count.load(Relaxed) >= so_far + 100);
    // Not one step more than the question needs.
    let so_far = count.load(Relaxed);
    root.blocking_dispatch_loop(|| true);
    assert!(pin!(root.run_until(|| true)).poll(&mut cx).is_ready());
    assert_eq!(count.load(Relaxed), so_far);
}

#[test]
fn a_crank_stops_with_its_system_but_for_the_one_that_never_does() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let end = root.system().shutdown();
    let mut cx = TaskContext::from_waker(Waker::noop());
    assert!(pin!(root.run_until(|| false)).poll(&mut cx).is_ready());
    assert!(end.report().is_some());
    root.blocking_dispatch_loop(|| false);
    for _ in 0..10 {
        assert!(matches!(pin!(root.run_forever()).poll(&mut cx), Poll::Pending));
    }
}

#[test]
fn a_crank_that_never_stops_runs_all_that_is_ready() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = root.spawn("a", props(&log)).unwrap();
    a.tell(Msg::Say("one")).unwrap();
    let mut cx = TaskContext::from_waker(Waker::noop());
    let mut for_ever = pin!(root.run_forever());
    assert!(for_ever.as_mut().poll(&mut cx).is_pending());
    a.tell(Msg::Say("two")).unwrap();
    assert!(for_ever.as_mut().poll(&mut cx).is_pending());
    assert_eq!(log.take(), ["a started", "a one", "a two"]);
}

#[test]
fn hooks_of_the_start_have_the_scheduler_and_may_start_system_actors() {
    let log = Log::default();
    let (closed, told) = (log.clone(), log.clone());
    let builder = ActorSystem::builder("t")
        .on_start(move |system| {
            let close = move || {
                closed.add("closed");
                Ok(())
            };
            system.scheduler().jobs().register_on_close(close, TaskRunPriority::User)?;
            Ok(())
        })
        .on_start(move |system| {
            let scheduler = system.scheduler().clone();
            let props = Props::from_fn(move |_, text: &'static str| {
                told.add(format!("{text} {}", scheduler.jobs().max_frequency()));
                Ok(Next::Stay)
            });
            system.spawn_system("own", props).map_err(clockjack_actor::SpawnError::discard)?;
            Ok(())
        });
    let (mut root, _) = start(builder);
    root.system().lookup("/system/own").unwrap().tell("has it:").unwrap();
    root.run_until_idle();
    root.system().scheduler().jobs().shutdown();
    assert_eq!(log.take(), ["has it: 1000", "closed"]);
}

#[test]
fn a_hook_of_the_start_that_fails_is_the_failure_of_the_start() {
    let builder = ActorSystem::builder("t").on_start(|_| Err(Failure::msg("not today")));
    let refused = RootContext::new(bare(), builder).unwrap_err();
    assert!(refused.to_string().contains("not today"), "{refused}");
}
