//! One thread, actors that are flooded without end, and handlers that take a millisecond: nobody
//! else is late for that.

use alloc::sync::Arc;
use core::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context as TaskContext, Waker},
    time::Duration,
};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, DispatcherId, Failure, Limits, Mailbox, Next, Props,
    RootContext,
};
use clockjack_sched::FireContext;
use clockjack_time::{ManualClock, MonotonicClock, TimerInstant};

use crate::{
    bench::{self, Log},
    scripted_actor::ms,
};

/// By how much anything may be late: 20 ms are promised, and the longest turn here, which has seven
/// messages, may be met twice.
const LATE_MAX: u64 = 16;

#[derive(Clone, Copy, PartialEq)]
enum Lane {
    User,
    Control,
}

/// Tells itself to go on, in each handler, which takes a millisecond.
struct Flooded {
    clock: Arc<ManualClock>,
    lane: Lane,
    log: Log,
    due: TimerInstant,
    /// Sends as many as its mailbox takes, and not only one.
    is_greedy: bool,
    /// Its timer does not wait for messages.
    has_priority: bool,
}

impl Flooded {
    fn arm(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        self.due = cx.now() + ms(10);
        let timers = cx.timers();
        let mut timers = if self.has_priority { timers.priority() } else { timers };
        timers.single("own", ms(10), Msg::Tick)?;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Msg {
    More,
    Tick,
}

impl Actor for Flooded {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.arm(cx)?;
        cx.self_ref().tell(Msg::More)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        self.clock.advance(ms(1));
        match (msg, self.lane) {
            (Msg::Tick, _) => {
                self.log.add(format!("{}", cx.now().since(self.due).as_millis() - 1));
                self.arm(cx)?;
            }
            (Msg::More, Lane::User) => {
                while cx.self_ref().tell(Msg::More).is_ok() && self.is_greedy {}
            }
            (Msg::More, Lane::Control) => cx.self_ref().tell_control(Msg::More)?,
        }
        Ok(Next::Stay)
    }
}

/// Has a timer, and nothing else to do.
struct Timed(TimerInstant, Log);

impl Actor for Timed {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.0 = cx.now() + ms(10);
        cx.timers().single("own", ms(10), ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.1.add(format!("{}", cx.now().since(self.0).as_millis()));
        self.started(cx)
    }
}

struct Flood {
    root: RootContext,
    clock: Arc<ManualClock>,
    flooded: ActorRef<Msg>,
    own: Log,
    other: Log,
}

fn flood(lane: Lane, is_greedy: bool, step_budget: Duration) -> Flood {
    flood_with(lane, is_greedy, step_budget, Mailbox::DEFAULT, true)
}

fn flood_with(
    lane: Lane,
    is_greedy: bool,
    step_budget: Duration,
    mailbox: Mailbox,
    has_priority: bool,
) -> Flood {
    let builder = ActorSystem::builder("t").limits(Limits::DEFAULT.step_budget(step_budget));
    let (mut root, clock) = bench::start(builder);
    let (own, other) = (Log::default(), Log::default());
    let (to, due) = (other.clone(), clock.now());
    root.spawn("timed", move || Timed(due, to.clone())).unwrap();
    let (log, time) = (own.clone(), Arc::clone(&clock));
    let make = move || {
        let (clock, log) = (Arc::clone(&time), log.clone());
        Flooded { clock, lane, log, due, is_greedy, has_priority }
    };
    let flooded = root.spawn("flooded", Props::new(make).mailbox(mailbox)).unwrap();
    Flood { root, clock, flooded, own, other }
}

impl Flood {
    fn now(&self) -> u64 {
        self.clock.now().ticks
    }

    /// Turns the crank for so many milliseconds, or until it is done.
    fn run(&mut self, n: u64, is_done: impl Fn(&Self) -> bool) {
        let until = self.now() + n;
        let mut cx = TaskContext::from_waker(Waker::noop());
        while self.now() < until && !is_done(self) {
            let _ = pin!(self.root.dispatch_next()).poll(&mut cx);
        }
    }
}

fn each_kind(check: impl Fn(Flood)) {
    for lane in [Lane::User, Lane::Control] {
        for is_greedy in [false, true] {
            for budget in [ms(1), ms(5)] {
                check(flood(lane, is_greedy, budget));
            }
        }
    }
}

/// Of one timer after the other: by how many milliseconds each was late.
fn assert_in_time(log: &Log) {
    assert_late_by(log, LATE_MAX);
}

fn assert_late_by(log: &Log, late_max: u64) {
    let late: Vec<u64> = log.take().iter().map(|line| line.parse().unwrap()).collect();
    assert!(late.len() > 30, "{late:?}");
    assert!(late.iter().all(|late| *late <= late_max), "{late:?}");
}

#[test]
fn a_flooded_actor_has_its_timers_with_priority_in_time() {
    each_kind(|mut flood| {
        flood.run(1_000, |_| false);
        assert_in_time(&flood.own);
    });
}

/// A timer waits for the messages that were there before it, which take a millisecond each, and not
/// for those that came later.
#[test]
fn the_timers_of_a_flooded_actor_wait_for_one_mailbox_at_most() {
    for capacity in [1, 4, 8] {
        for budget in [ms(1), ms(5)] {
            let mailbox = Mailbox::bounded(capacity);
            let mut flood = flood_with(Lane::User, true, budget, mailbox, false);
            flood.run(1_000, |_| false);
            assert_late_by(&flood.own, LATE_MAX + u64::try_from(capacity).unwrap());
        }
    }
}

#[test]
fn a_flooded_actor_does_not_hold_up_another_ones_timers() {
    each_kind(|mut flood| {
        flood.run(1_000, |_| false);
        assert_in_time(&flood.other);
    });
}

#[test]
fn a_flooded_actor_stops_in_time() {
    each_kind(|mut flood| {
        flood.run(100, |_| false);
        let at = flood.now();
        flood.root.system().stop(&flood.flooded).unwrap();
        flood.run(1_000, |flood| flood.flooded.is_stopped());
        assert!(flood.flooded.is_stopped());
        assert!(flood.now() <= at + LATE_MAX, "{} ms late", flood.now() - at);
    });
}

#[test]
fn a_message_of_the_scheduler_to_another_actor_is_in_time() {
    each_kind(|mut flood| {
        flood.run(100, |_| false);
        let came = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&came);
        let at = flood.now();
        let props = Props::from_fn(move |_: &mut Context<'_, _>, (): ()| {
            told.store(true, Relaxed);
            Ok(Next::Stay)
        });
        let ear = flood.root.spawn("ear", props).unwrap();
        let jobs = flood.root.system().scheduler();
        jobs.schedule_once(ms(10), &ear, ()).unwrap();
        flood.run(1_000, |_| came.load(Relaxed));
        assert!(flood.now() <= at + 10 + 20, "{} ms late", flood.now() - at - 10);
    });
}

#[test]
fn many_actors_that_are_ready_do_not_hold_up_jobs() {
    let (mut root, clock) = bench::start(ActorSystem::builder("t"));
    for n in 0..100 {
        let time = Arc::clone(&clock);
        let slow = Props::from_fn(move |cx: &mut Context<'_, _>, (): ()| {
            time.advance(ms(1));
            cx.self_ref().tell(())?;
            Ok(Next::Stay)
        });
        root.spawn(&format!("slow-{n}"), slow).unwrap().tell(()).unwrap();
    }
    let (log, time) = (Log::default(), Arc::clone(&clock));
    let to = log.clone();
    let note = move |fire: &FireContext| {
        to.add(format!("{}", time.now().ticks - fire.due().get()));
    };
    let jobs = root.system().scheduler();
    jobs.jobs().schedule_at_fixed_rate_fn(ms(10), ms(10), DispatcherId::DEFAULT, note).unwrap();
    let mut cx = TaskContext::from_waker(Waker::noop());
    while clock.now().ticks < 1_000 {
        let _ = pin!(root.dispatch_next()).poll(&mut cx);
    }
    assert_in_time(&log);
}
