//! A first actor: it is told something, and asked something.
//!
//! `cargo run --example hello`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::prelude::*;

/// What a greeter can be told.
enum Msg {
    Greet(String),
    /// A question brings along where the answer goes.
    Count(ReplyTo<u64>),
}

#[derive(Default)]
struct Greeter {
    greeted: u64,
}

impl Actor for Greeter {
    type Msg = Msg;

    // One message at a time: the state is ours, and needs no lock.
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

    // To tell is not to wait. What comes from one sender is handled in its order.
    greeter.tell(Msg::Greet("world".into()))?;
    greeter.tell(Msg::Greet("moon".into()))?;

    // So when this is answered, both have been greeted.
    let greeted = rt.block_on(greeter.ask(Msg::Count, Duration::from_secs(10)))?;
    println!("{greeted} greeted by {}", greeter.path());
    Ok(()) // the runtime is dropped here, which stops its actors in good order
}
