//! Graceful shutdown: refuse new work, finish accepted work, then stop, children first.
//!
//! `cargo run --example graceful_shutdown`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::{actor::shutdown::Phase, prelude::*};

enum Msg {
    /// A number of loaves.
    Order(u32),
    /// Answered with the number of loaves after all earlier orders.
    Finish(ReplyTo<u32>),
}

/// Takes orders.
#[derive(Default)]
struct Bakery {
    oven: Option<ActorRef<Msg>>,
}

impl Actor for Bakery {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.oven = Some(cx.spawn_child("oven", Oven::default)?);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        if let Some(oven) = &self.oven {
            oven.tell(msg)?; // `Finish` too: it stays behind the orders
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            println!("bakery: dark");
        }
        Ok(Next::Stay)
    }
}

/// Bakes, one order after the other.
#[derive(Default)]
struct Oven {
    baked: u32,
}

impl Actor for Oven {
    type Msg = Msg;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Order(loaves) => self.baked += loaves,
            Msg::Finish(reply_to) => reply_to.reply(self.baked),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            println!("oven: cold");
        }
        Ok(Next::Stay)
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("street")?;
    let bakery = rt.spawn("bakery", Bakery::default)?;
    for loaves in [12, 30] {
        bakery.tell(Msg::Order(loaves))?;
    }

    // Phases run one after the other, each with a time limit.
    let system = rt.system();
    system.on_shutdown(Phase::SERVICE_UNBIND, "door", async {
        println!("door: closed, no more customers");
        Ok(())
    })?;
    system.on_shutdown(Phase::SERVICE_REQUESTS_DONE, "orders", async move {
        let loaves = bakery.ask(Msg::Finish, Duration::from_secs(5)).await?;
        println!("orders: {loaves} loaves baked");
        Ok(())
    })?;
    // In the last phase the system stops the actors.

    let report = rt.shutdown(Duration::from_secs(30)); // or Ctrl-C, while `rt.run()` waits
    println!("all in order: {}", report.is_clean());
    Ok(())
}
