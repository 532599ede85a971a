//! The property of receive time-outs: they never fire while a message waits.

use alloc::{collections::BTreeSet, sync::Arc};
use std::sync::Mutex;

use clockjack_actor::{Actor, ActorSystem, Context, Failure, Mailbox, Next, Props, Signal};
use clockjack_time::{ManualClock, MonotonicClock as _};
use proptest::{
    prelude::{prop, prop_assert, prop_assert_eq, prop_oneof, proptest},
    strategy::{Just, Strategy as Generator},
};

use crate::{bench, scripted_actor::ms};

/// How long the actor of the property waits.
const SILENCE: u64 = 8;

/// What the actor of the property knows about its messages.
#[derive(Default)]
struct Heard {
    n_sent: u64,
    n_handled: u64,
    /// When its timers are due.
    timers: BTreeSet<u64>,
    /// When it was last busy with a message that it does not ignore, or with a time-out.
    last: u64,
    n_timeouts: u64,
    faults: Vec<String>,
}

/// The actor of the property: at each time-out, it compares what it has handled with what was sent.
struct Listener {
    clock: Arc<ManualClock>,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Clone, Debug)]
enum Order {
    Say,
    /// Ignored by the receive time-out.
    Ignored,
    /// Takes so long, and sends a message meanwhile.
    Slow(u64),
    Arm(u64),
    Timer(u64),
    Wait(u64),
}

impl Actor for Listener {
    type Msg = Order;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.set_receive_timeout(ms(SILENCE));
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {
        let mut heard = self.heard.lock().unwrap();
        let is_ignored = matches!(order, Order::Ignored);
        match order {
            Order::Timer(due) => _ = heard.timers.remove(&due),
            _ => heard.n_handled += 1,
        }
        match order {
            Order::Say | Order::Ignored | Order::Timer(_) => {}
            Order::Slow(n) => {
                self.clock.advance(ms(n));
                heard.n_sent += u64::from(cx.self_ref().tell(Order::Say).is_ok());
            }
            Order::Arm(n) => {
                let due = self.clock.now().ticks + n;
                if heard.timers.insert(due) {
                    cx.timers().single(due, ms(n), Order::Timer(due))?;
                }
            }
            Order::Wait(n) => {
                let delay = cx.system().scheduler().jobs().delays().delay(ms(n));
                cx.wait(delay, |_, _, _| Ok(Next::Stay))?;
            }
        }
        if !is_ignored {
            heard.last = self.clock.now().ticks;
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if matches!(signal, Signal::ReceiveTimeout) {
            let now = self.clock.now().ticks;
            let mut heard = self.heard.lock().unwrap();
            let n_waiting = heard.n_sent - heard.n_handled;
            let n_timers = heard.timers.range(..now).count();
            if n_waiting > 0 || n_timers > 0 || now < heard.last + SILENCE {
                let last = heard.last;
                heard.faults.push(format!(
                    "at {now}: {n_waiting} messages and {n_timers} timers wait, the last was \
                     handled at {last}"
                ));
            }
            heard.last = now;
            heard.n_timeouts += 1;
        }
        Ok(Next::Stay)
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Tell(Order),
    Pass(u64),
    Run,
}

fn deeds() -> impl Generator<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => Just(Deed::Tell(Order::Say)),
        3 => Just(Deed::Tell(Order::Ignored)),
        2 => (1..20_u64).prop_map(|n| Deed::Tell(Order::Slow(n))),
        2 => (1..20_u64).prop_map(|n| Deed::Tell(Order::Arm(n))),
        1 => (1..20_u64).prop_map(|n| Deed::Tell(Order::Wait(n))),
        4 => (0..12_u64).prop_map(Deed::Pass),
        4 => Just(Deed::Run),
    ];
    prop::collection::vec(deed, 1..60)
}

proptest! {
    /// Whatever waits in the mailbox, or has fired before, is handled before a time-out; and after
    /// everything comes a silence that is noticed.
    #[test]
    fn it_never_fires_while_a_message_waits(deeds in deeds(), capacity in 0..6_usize) {
        let (mut root, clock) = bench::start(ActorSystem::builder("t"));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (of_listener, time) = (Arc::clone(&heard), Arc::clone(&clock));
        let mailbox = match capacity {
            0 => Mailbox::unbounded(),
            n => Mailbox::bounded(n),
        };
        let listener =
            move || Listener { clock: Arc::clone(&time), heard: Arc::clone(&of_listener) };
        let props = Props::new(listener).mailbox(mailbox);
        let props = props.receive_timeout_ignores(|order| matches!(order, Order::Ignored));
        let listener = root.spawn("listener", props).unwrap();
        root.run_until_idle();
        for deed in deeds {
            match deed {
                Deed::Tell(order) => {
                    let is_sent = listener.tell(order).is_ok();
                    heard.lock().unwrap().n_sent += u64::from(is_sent);
                }
                Deed::Pass(n) => _ = clock.advance(ms(n)),
                Deed::Run => _ = root.run_until_idle(),
            }
        }
        for _ in 0..400 {
            root.run_until_idle();
            clock.advance(ms(1));
        }
        let heard = heard.lock().unwrap();
        prop_assert!(heard.faults.is_empty(), "{:?}", heard.faults);
        prop_assert_eq!(heard.n_sent, heard.n_handled);
        prop_assert!(heard.n_timeouts > 0, "the silence at the end");
    }
}
