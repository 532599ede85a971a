//! Futures of actors: what they keep the actor from, how they end, what they cost.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;
#[path = "futures/ends.rs"]
mod ends;
#[path = "support/gate.rs"]
mod gate;
#[path = "futures/lent.rs"]
mod lent;
#[path = "futures/many.rs"]
mod many;
#[path = "futures/waits.rs"]
mod waits;

use bench::Log;
use clockjack_actor::{Actor, ActorRef, Context, Failure, Next, Signal};

type Handled = Result<Next, Failure>;

/// An actor that does what it is told.
struct ScriptedActor {
    log: Log,
    sum: u32,
}

type Order = Box<
    dyn FnOnce(&mut ScriptedActor, &mut Context<'_, ScriptedActor>) -> Result<Next, Failure> + Send,
>;

impl Actor for ScriptedActor {
    type Msg = Order;

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.log.add("started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {
        order(self, cx)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.log.add(match signal {
            Signal::Terminated(_) => "Terminated".to_owned(),
            other => format!("{other:?}"),
        });
        Ok(Next::Stay)
    }
}

impl Drop for ScriptedActor {
    fn drop(&mut self) {
        self.log.add(format!("actor dropped with {}", self.sum));
    }
}

fn scripted_actor(log: &Log) -> impl FnMut() -> ScriptedActor + Send + use<> {
    let log = log.clone();
    move || ScriptedActor { log: log.clone(), sum: 0 }
}

/// Makes an order of a closure that cannot fail.
fn order(
    f: impl FnOnce(&mut ScriptedActor, &mut Context<'_, ScriptedActor>) + Send + 'static,
) -> Order {
    Box::new(move |me, cx| {
        f(me, cx);
        Ok(Next::Stay)
    })
}

fn say(actor: &ActorRef<Order>, text: &'static str) {
    actor.tell(order(move |me, _| me.log.add(text))).unwrap();
}

/// What comes after a future: says so.
fn says<T>(
    text: &'static str,
) -> impl FnOnce(&mut ScriptedActor, &mut Context<'_, ScriptedActor>, T) -> Handled + Send {
    move |me, _, _| {
        me.log.add(text);
        Ok(Next::Stay)
    }
}

fn fail() -> Order {
    Box::new(|_, _| Err(Failure::msg("failed")))
}
