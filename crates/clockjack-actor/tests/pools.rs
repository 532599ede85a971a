//! Memory: after a warm-up, starting and stopping actors, jobs that send messages, failures and
//! system messages allocate nothing.
//!
//! Allocations are counted per thread, so that concurrent tests do not disturb each other.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "nothing is logged here, that would allocate")]
#[path = "support/bench.rs"]
mod bench;

use core::time::Duration;

use bench::start;
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Props, RootContext, Scope,
    Signal, StaticError, Strategy,
};
use clockjack_testing::allocation::Counting;

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// The number of allocations in a hundred runs, after some warm-up runs.
fn allocations(mut run: impl FnMut()) -> u64 {
    (0..50).for_each(|_| run());
    allocations_cold(|| (0..100).for_each(|_| run()))
}

/// The number of allocations in the first run.
fn allocations_cold(run: impl FnOnce()) -> u64 {
    COUNTING.during(run).1.allocations
}

static NO_PAPER: StaticError = StaticError::new(1, "no paper");
const MS: Duration = Duration::from_millis(1);

/// Fails at each message but zero; a signal is fine.
struct Printer;

impl Actor for Printer {
    type Msg = u32;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: u32) -> Result<Next, Failure> {
        if msg == 0 { Ok(Next::Stay) } else { Err(NO_PAPER.failure()) }
    }
}

/// Has a printer as its child, and counts the signals about it.
struct Office {
    heard: u32,
}

enum Paper {
    Watch(ActorRef<u32>),
    Unwatch(ActorRef<u32>),
    Heard(u32),
    Tick,
    Timer(u32),
    TimeOut,
}

impl Actor for Office {
    type Msg = Paper;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.spawn_child("printer", || Printer)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Paper) -> Result<Next, Failure> {
        match msg {
            Paper::Watch(who) => cx.watch(&who)?,
            Paper::Unwatch(who) => cx.unwatch(&who),
            Paper::Heard(n) => assert_eq!(core::mem::take(&mut self.heard), n),
            Paper::Tick => self.heard += 1,
            Paper::Timer(n) => cx.timers().single(u64::from(n), MS, Paper::Tick)?,
            Paper::TimeOut => cx.set_receive_timeout(MS),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if !matches!(signal, Signal::PostStop | Signal::PreRestart) {
            self.heard += 1;
        }
        Ok(Next::Stay)
    }
}

/// An office that restarts its printer, and that printer.
fn office(root: &mut RootContext, strategy: Strategy) -> (ActorRef<Paper>, ActorRef<u32>) {
    let props = Props::new(|| Office { heard: 0 }).supervise_children(Scope::OneForOne, strategy);
    let office = root.spawn("office", props).unwrap();
    root.run_until_idle();
    let printer = root.system().lookup("/user/office/printer").unwrap();
    (office, printer)
}

#[test]
fn an_actor_that_comes_after_another_has_gone_allocates_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let others = [0, 3].map(|n_others| {
        for n in 0..n_others {
            root.spawn(&format!("other-{n}"), || Printer).unwrap();
        }
        allocations(|| {
            let one = root.spawn("one", || Printer).unwrap();
            one.tell(0).unwrap();
            root.run_until_idle();
            root.system().stop(&one).unwrap();
            root.run_until_idle();
            assert!(one.is_stopped());
        })
    });
    assert_eq!(others, [0, 0], "alone, and beside others");
}

#[test]
fn a_message_that_is_scheduled_allocates_nothing() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (office, _) = office(&mut root, Strategy::stop());
    let sent = allocations(|| {
        let jobs = root.system().scheduler();
        jobs.schedule_once(MS, &office, Paper::Tick).unwrap();
        jobs.schedule_once(5 * MS, &office, Paper::Tick).unwrap().cancel();
        clock.advance(2 * MS);
        root.run_until_idle();
        office.tell(Paper::Heard(1)).unwrap();
        root.run_until_idle();
        assert!(!office.is_stopped(), "not exactly one message has come");
    });
    assert_eq!(sent, 0);
}

#[test]
fn messages_that_are_scheduled_repeatedly_allocate_nothing() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let printer = root.spawn("printer", || Printer).unwrap();
    let sent = allocations(|| {
        let jobs = root.system().scheduler();
        let rate = jobs.schedule_at_fixed_rate(MS, MS, &printer, 0).unwrap();
        let delay = jobs.schedule_with_fixed_delay(MS, MS, &printer, 0).unwrap();
        for _ in 0..5 {
            clock.advance(MS);
            root.run_until_idle();
        }
        assert!(rate.cancel() && delay.cancel());
        root.run_until_idle();
    });
    assert_eq!(sent, 0);
    assert!(!printer.is_stopped());
}

#[test]
fn a_failure_with_a_static_text_and_its_restart_allocate_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let own = root.spawn("own", Props::new(|| Printer).supervise(Strategy::restart())).unwrap();
    let itself = allocations(|| {
        own.tell(1).unwrap();
        root.run_until_idle();
    });
    assert_eq!(itself, 0);
    let (office, printer) = office(&mut root, Strategy::restart());
    let by_parent = allocations(|| {
        printer.tell(1).unwrap();
        root.run_until_idle();
        office.tell(Paper::Heard(1)).unwrap();
        root.run_until_idle();
        assert!(!office.is_stopped(), "it has not heard of exactly one failure");
    });
    assert_eq!(by_parent, 0);
}

#[test]
fn an_order_that_is_more_than_a_bit_allocates_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let strategy = Strategy::restart().stash(7);
    let (_office, printer) = office(&mut root, strategy);
    let restarts = allocations(|| {
        printer.tell(1).unwrap();
        root.run_until_idle();
    });
    assert_eq!(restarts, 0);
    assert!(!printer.is_stopped());
}

#[test]
fn fires_of_timers_and_of_the_receive_time_out_allocate_nothing() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let (office, _) = office(&mut root, Strategy::stop());
    let timers = allocations(|| {
        office.tell(Paper::Timer(0)).unwrap();
        office.tell(Paper::Timer(1)).unwrap();
        root.run_until_idle();
        clock.advance(MS);
        root.run_until_idle();
        office.tell(Paper::Heard(2)).unwrap();
        root.run_until_idle();
        assert!(!office.is_stopped(), "not exactly two timers have come");
    });
    assert_eq!(timers, 0);
    office.tell(Paper::TimeOut).unwrap();
    root.run_until_idle();
    let time_outs = allocations(|| {
        clock.advance(MS);
        root.run_until_idle();
    });
    assert_eq!(time_outs, 0);
    office.tell(Paper::Heard(150)).unwrap();
    root.run_until_idle();
    assert!(!office.is_stopped(), "not every time-out has come");
}

#[test]
fn the_end_of_one_that_is_watched_is_told_without_memory() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (office, _) = office(&mut root, Strategy::stop());
    let all: Vec<_> = (0..3).map(|n| root.spawn(&format!("{n}"), || Printer).unwrap()).collect();
    // So that there is room for signals.
    root.system().stop(&all[0]).unwrap();
    for who in &all {
        office.tell(Paper::Watch(who.clone())).unwrap();
    }
    root.run_until_idle();
    office.tell(Paper::Heard(1)).unwrap();
    root.run_until_idle();
    let told = allocations_cold(|| {
        office.tell(Paper::Unwatch(all[1].clone())).unwrap();
        root.run_until_idle();
        root.system().stop(&all[1]).unwrap();
        root.system().stop(&all[2]).unwrap();
        root.run_until_idle();
    });
    assert_eq!(told, 0);
    office.tell(Paper::Heard(1)).unwrap();
    root.run_until_idle();
    assert!(!office.is_stopped(), "it was not told of exactly one end");
}

#[test]
fn in_a_sealed_system_the_first_failure_allocates_nothing() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (office, printer) = office(&mut root, Strategy::restart());
    let alone = root.spawn("alone", || Printer).unwrap();
    root.seal();
    root.run_until_idle();
    let first = allocations_cold(|| {
        printer.tell(1).unwrap();
        alone.tell(1).unwrap();
        root.run_until_idle();
    });
    assert!(alone.is_stopped() && !printer.is_stopped());
    office.tell(Paper::Heard(1)).unwrap();
    root.run_until_idle();
    assert!(!office.is_stopped(), "it has not heard of exactly one failure");
    assert_eq!(first, 0);
}

#[test]
fn in_a_sealed_system_a_bounded_mailbox_takes_what_it_has_room_for_and_allocates_nothing() {
    for room in [1, 4, 16, 17, 112] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let props = Props::new(|| Printer).mailbox(Mailbox::bounded(room));
        let printer = root.spawn("printer", props).unwrap();
        root.run_until_idle();
        root.seal();
        root.run_until_idle();
        let told = allocations_cold(|| {
            for _ in 0..50 {
                (0..room).for_each(|_| printer.tell(0).unwrap());
                assert!(printer.tell(0).unwrap_err().is_full());
                root.run_until_idle();
            }
        });
        assert_eq!(told, 0, "with room for {room}");
    }
}
