//! Memory: messages, and futures that fit into the room of their actor, allocate nothing once it
//! is warm.
//!
//! Counted per thread, so that concurrent tests do not disturb each other.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "nothing is logged here, that would allocate")]
#[path = "support/bench.rs"]
mod bench;

use core::{future::poll_fn, task::Poll};

use bench::start;
use clockjack_actor::{Actor, ActorSystem, Context, Failure, Next, Props};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// Starts a future for each message, in the way that it is told.
struct Starter {
    done: u32,
}

#[derive(Clone, Copy)]
enum Msg {
    Spawn,
    Wait,
    /// Waits in what comes after a wait.
    WaitTwice,
    /// With a future that does not fit.
    Large,
    Report,
}

/// Is woken once, and ready at its second poll.
fn yielding() -> impl Future<Output = u32> + Send {
    let mut is_second = false;
    poll_fn(move |cx| {
        if is_second {
            return Poll::Ready(1);
        }
        is_second = true;
        // As a waker on another thread does.
        let waker = cx.waker().clone();
        waker.wake();
        Poll::Pending
    })
}

impl Actor for Starter {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let done = |me: &mut Self, _: &mut Context<'_, Self>, output: u32| {
            me.done += output;
            Ok(Next::Stay)
        };
        match msg {
            Msg::Spawn => cx.spawn_future(yielding(), done)?,
            Msg::Wait => cx.wait(yielding(), done)?,
            Msg::WaitTwice => cx.wait(yielding(), move |_, cx, _| {
                cx.wait(yielding(), done)?;
                Ok(Next::Stay)
            })?,
            Msg::Large => {
                let large = [0_u8; 256];
                let future = async move {
                    let output = yielding().await;
                    output + u32::from(large[0])
                };
                if let Err(refused) = cx.wait(future, done) {
                    assert!(refused.is_sealed());
                    self.done += 100;
                }
            }
            Msg::Report => assert_eq!(self.done, 120, "all have ended"),
        }
        Ok(Next::Stay)
    }
}

fn allocations_of(msg: Msg, room_bytes: usize) -> u64 {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::new(|| Starter { done: 0 }).futures(4, room_bytes);
    let actor = root.spawn("a", props).unwrap();
    let mut run = |n| {
        for _ in 0..n {
            actor.tell(msg).unwrap();
            root.run_until_idle();
        }
    };
    run(20);
    let before = COUNTING.allocations();
    run(100);
    let counted = COUNTING.allocations() - before;
    actor.tell(Msg::Report).unwrap();
    root.run_until_idle();
    assert!(!actor.is_stopped(), "not all futures have ended");
    counted
}

#[test]
fn a_future_that_fits_into_the_room_allocates_nothing() {
    for msg in [Msg::Spawn, Msg::Wait, Msg::WaitTwice] {
        assert_eq!(allocations_of(msg, 128), 0);
    }
}

#[test]
fn a_future_that_does_not_fit_is_boxed() {
    assert_eq!(allocations_of(Msg::Spawn, 0), 100);
    assert_eq!(allocations_of(Msg::Large, 128), 100);
}

#[test]
fn a_sealed_system_refuses_what_does_not_fit() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::new(|| Starter { done: 0 }).futures(4, 128);
    let actor = root.spawn("a", props).unwrap();
    root.seal();
    for _ in 0..20 {
        actor.tell(Msg::Wait).unwrap();
    }
    actor.tell(Msg::Large).unwrap();
    actor.tell(Msg::Report).unwrap();
    root.run_until_idle();
    assert!(!actor.is_stopped(), "the fitting ones have ended, the large one was refused");
}

#[test]
fn messages_allocate_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let actor = root.spawn("a", Props::from_fn(|_, _: [u64; 4]| Ok(Next::Stay))).unwrap();
    let mut run = |n| {
        for _ in 0..n {
            (0..50).for_each(|n| actor.tell([n; 4]).unwrap());
            root.run_until_idle();
        }
    };
    run(20);
    let before = COUNTING.allocations();
    run(100);
    assert_eq!(COUNTING.allocations() - before, 0);
}
