//! Panics while user values are dropped or formatted: each is a failure or an event, and nothing
//! more.

use core::{future::pending, time::Duration};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, EventKinds, Failure, Foreign, Mailbox, Next, Props,
    RootContext, Signal, Strategy, SystemMessage,
};

use crate::{
    bench::{Log, start},
    scripted_actor::{Msg, Plan, events, props},
    watch::watch,
};

const SECOND: Duration = Duration::from_secs(1);

/// Panics when it is dropped.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

enum Order {
    Future,
    Timer,
    Message(Bomb),
    Adapter,
    Fail,
}

impl From<Foreign> for Order {
    fn from(_: Foreign) -> Self {
        Self::Fail
    }
}

/// Starts something whose drop panics.
struct Holder;

impl Actor for Holder {
    type Msg = Order;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Order) -> Result<Next, Failure> {
        match msg {
            Order::Future => {
                let bomb = Bomb("a future");
                let future = async move {
                    let _bomb = bomb;
                    pending::<()>().await;
                };
                cx.spawn_future(future, |_, _, ()| Ok(Next::Stay))
                    .map_err(|_| Failure::msg("no room"))?;
            }
            Order::Timer => {
                let msg = Order::Message(Bomb("a timer's message"));
                let set = cx.timers().single("late", SECOND, msg);
                set.map_err(|refused| Failure::msg(refused.to_string()))?;
            }
            Order::Adapter => {
                let bomb = Bomb("an adapter");
                cx.message_adapter(move |_: u8| {
                    let _ = &bomb;
                    Order::Fail
                });
            }
            Order::Message(bomb) => drop(bomb),
            Order::Fail => return Err(Failure::msg("asked to")),
        }
        Ok(Next::Stay)
    }
}

fn holder(root: &mut RootContext, strategy: Strategy) -> ActorRef<Order> {
    root.spawn("a", Props::new(|| Holder).supervise(strategy)).unwrap()
}

#[track_caller]
fn assert_told(told: &Log, text: &str) {
    let lines = told.take();
    assert_eq!(lines.iter().filter(|line| line.contains(text)).count(), 1, "{text}: {lines:?}");
}

#[track_caller]
fn assert_well(root: &mut RootContext) {
    let log = Log::default();
    let well = root.spawn("well", props(&log)).unwrap();
    well.tell(Msg::Say("here")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["well started", "well here"]);
}

#[test]
fn panics_in_the_drops_of_what_an_actor_has_begun_are_told_at_its_restart_and_at_its_stop() {
    let begun = [(|| Order::Future) as fn() -> Order, || Order::Timer, || Order::Adapter];
    for (order, text) in begun.into_iter().zip(["a future", "a timer's message", "an adapter"]) {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let told = Log::default();
        events(&mut root, EventKinds::FAILURE, &told);
        let a = holder(&mut root, Strategy::restart());
        a.tell(order()).unwrap();
        root.run_until_idle();
        assert!(told.take().is_empty());
        a.tell(Order::Fail).unwrap();
        root.run_until_idle();
        assert!(!a.is_stopped());
        assert_told(&told, text);
        a.tell(order()).unwrap();
        root.run_until_idle();
        root.system().stop(&a).unwrap();
        root.run_until_idle();
        assert!(a.is_stopped());
        assert_told(&told, text);
        assert_well(&mut root);
    }
}

#[test]
fn a_panic_in_the_drop_of_a_message_that_is_handled_is_a_failure() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let a = holder(&mut root, Strategy::restart());
    a.tell(Order::Message(Bomb("a message"))).unwrap();
    root.run_until_idle();
    assert_told(&told, "/user/a restart (");
    assert!(!a.is_stopped());
    assert_well(&mut root);
}

#[test]
fn a_panic_in_the_drop_of_what_a_scheduled_message_was_cancelled_with_is_told() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let a = holder(&mut root, Strategy::stop());
    root.run_until_idle();
    let jobs = root.system().scheduler().clone();
    let msg = Order::Message(Bomb("a cancelled message"));
    let job = jobs.schedule_once(SECOND, &a, msg).unwrap();
    // It is in the mailbox by then, and is not taken out.
    a.try_send_system(SystemMessage::Suspend).unwrap();
    clock.advance(SECOND);
    root.run_until_idle();
    assert!(job.cancel());
    a.try_send_system(SystemMessage::Resume).unwrap();
    root.run_until_idle();
    assert_told(&told, "a cancelled message");
    assert!(!a.is_stopped());
    assert_well(&mut root);
}

#[test]
fn a_panic_in_the_drop_of_what_was_to_be_told_of_a_child_is_told_at_the_restart() {
    struct Watcher;
    impl Actor for Watcher {
        type Msg = Option<Bomb>;

        fn receive(
            &mut self,
            cx: &mut Context<'_, Self>,
            msg: Option<Bomb>,
        ) -> Result<Next, Failure> {
            if let Some(bomb) = msg {
                let child = Props::from_fn(|_, (): ()| Ok(Next::Stay));
                let child = cx.spawn_child("child", child)?;
                cx.watch_with(&child, Some(bomb)).map_err(|_| Failure::msg("watched already"))?;
                return Ok(Next::Stay);
            }
            Err(Failure::msg("asked to"))
        }
    }
    let (mut root, _) = start(ActorSystem::builder("t"));
    let told = Log::default();
    events(&mut root, EventKinds::FAILURE, &told);
    let a = root.spawn("a", Props::new(|| Watcher).supervise(Strategy::restart())).unwrap();
    a.tell(Some(Bomb("a notice"))).unwrap();
    root.run_until_idle();
    a.tell(None).unwrap();
    root.run_until_idle();
    assert_told(&told, "a notice");
    assert!(!a.is_stopped());
    assert_well(&mut root);
}

#[test]
fn a_panic_in_a_signal_is_a_failure_that_a_strategy_settles() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let (log, told) = (Log::default(), Log::default());
    events(&mut root, EventKinds::FAILURE, &told);
    let plan = Plan::default().signal(|_, _, signal| {
        assert!(!matches!(signal, Signal::Terminated(_)), "at the end of another");
        None
    });
    let a = root.spawn("a", plan.props(&log).supervise(Strategy::restart())).unwrap();
    let b = root.spawn("b", props(&Log::default())).unwrap();
    watch(&mut root, &a, &b);
    b.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_told(&told, "/user/a restart (");
    assert_eq!(plan.births(), 2);
    assert_well(&mut root);
}

#[test]
fn an_actor_that_tells_itself_to_fail_again_and_again_leaves_turns_for_others_and_stops() {
    const ROUNDS: u32 = 20;
    let (mut root, _) = start(ActorSystem::builder("t"));
    let plan = Plan::default().started(|_, cx| {
        cx.self_ref().tell(Msg::Fail)?;
        Ok(Next::Stay)
    });
    let storm = plan.props(&Log::default()).mailbox(Mailbox::bounded(4));
    let storm = root.spawn("storm", storm.supervise(Strategy::restart())).unwrap();
    let log = Log::default();
    let other = root.spawn("other", props(&log)).unwrap();
    for round in 0..ROUNDS {
        other.tell(Msg::Say("here")).unwrap();
        // A bounded number of steps at a time: the system never becomes idle by itself.
        let before = plan.births();
        root.next_wake();
        assert!(plan.births() - before <= 64 * 64, "restarts in one turn");
        assert!(round == 0 || plan.births() > before, "it goes on");
    }
    let said = log.take().iter().filter(|line| *line == "other here").count();
    assert!(said > ROUNDS as usize - 8, "{said} of {ROUNDS}");
    root.system().stop(&storm).unwrap();
    root.run_until_idle();
    assert!(storm.is_stopped() && !other.is_stopped());
}

#[test]
fn a_panic_in_the_drop_of_a_ranked_timer_does_not_hold_up_the_stop() {
    for fails in [false, true] {
        let (mut root, clock) = start(ActorSystem::builder("t"));
        let (told, log) = (Log::default(), Log::default());
        events(&mut root, EventKinds::FAILURE, &told);
        let to = log.clone();
        let props = Props::from_fn(move |cx: &mut Context<'_, _>, msg: Order| {
            if let Order::Timer = msg {
                cx.spawn_child("child", props(&to))?;
                let make = || Order::Message(Bomb("a ranked timer's message"));
                cx.timers().fixed_rate("often", SECOND, make)?;
                return Ok(Next::Stay);
            }
            core::mem::forget(msg);
            if fails { Err(Failure::msg("asked to")) } else { Ok(Next::Stop) }
        });
        // The message of the timer has the lowest priority, and waits.
        let props = props.priority(|msg| u8::from(!matches!(msg, Order::Message(_))));
        let a = root.spawn("a", props).unwrap();
        a.tell(Order::Timer).unwrap();
        root.run_until_idle();
        clock.advance(SECOND);
        a.tell(Order::Fail).unwrap();
        root.run_until_idle();
        assert!(a.is_stopped());
        assert_eq!(log.take(), ["a/child started", "a/child PostStop"]);
        assert_told(&told, "a ranked timer's message");
    }
}
