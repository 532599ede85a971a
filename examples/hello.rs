//! A first actor: tell and ask.
//!
//! `cargo run --example hello`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::prelude::*;

/// The messages of a greeter.
enum Msg {
    Greet(String),
    /// A question carries the address for its answer.
    Count(ReplyTo<u64>),
}

#[derive(Default)]
struct Greeter {
    greeted: u64,
}

impl Actor for Greeter {
    type Msg = Msg;

    // One message at a time: the actor owns its state and needs no lock.
    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Greet(name) => {
                self.greeted += 1;
                println!("hello, {name}");
            }
            Msg::Count(reply_to) => reply_to.reply(self.greeted),
        }
        Ok(Next::Stay)
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("hello")?;
    let greeter = rt.spawn("greeter", Greeter::default)?;

    // `tell` does not wait. Messages from one sender are handled in order.
    greeter.tell(Msg::Greet("world".into()))?;
    greeter.tell(Msg::Greet("moon".into()))?;

    // So both have been greeted before this is answered.
    let greeted = rt.block_on(greeter.ask(Msg::Count, Duration::from_secs(10)))?;
    println!("{greeted} greeted by {}", greeter.path());
    Ok(()) // dropping the runtime shuts it down gracefully
}
