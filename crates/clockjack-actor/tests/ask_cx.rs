//! Asks of actors: answers that come as messages, asks to oneself, actors that wait for each other.

extern crate alloc;

#[path = "ask_cx/cycles.rs"]
mod cycles;
#[path = "ask_cx/itself.rs"]
mod itself;
#[path = "ask_cx/mapped.rs"]
mod mapped;

#[path = "support/bench.rs"]
mod bench;
#[path = "support/losses.rs"]
mod losses;

use core::time::Duration;

use bench::Log;
use clockjack_actor::{Actor, Context, Failure, Next, ReplyTo, Signal};
use losses::listen;

const SECOND: Duration = Duration::from_secs(1);

/// An actor that does what it is told, and keeps a log.
struct Node {
    log: Log,
    n: u64,
    kept: Vec<ReplyTo<u64>>,
}

type Order = Box<dyn FnOnce(&mut Node, &mut Context<'_, Node>) -> Result<Next, Failure> + Send>;
type Question = Box<dyn FnOnce(&mut Node, &mut Context<'_, Node>, ReplyTo<u64>) + Send>;

enum Msg {
    Do(Order),
    /// Does what it is told with where the answer goes.
    Answer(Question, ReplyTo<u64>),
    /// Answered at once.
    Double(u64, ReplyTo<u64>),
    /// Kept.
    Keep(ReplyTo<u64>),
    /// Answered by a failure.
    Fail(Failure, ReplyTo<Result<u64, Failure>>),
    Say(String),
}

impl Actor for Node {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Do(order) => return order(self, cx),
            Msg::Answer(question, to) => question(self, cx, to),
            Msg::Double(n, to) => to.reply(n * 2),
            Msg::Keep(to) => self.kept.push(to),
            Msg::Fail(failure, to) => to.reply(Err(failure)),
            Msg::Say(text) => self.log.add(text),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.log.add(format!("{signal:?}"));
        Ok(Next::Stay)
    }
}

fn node(log: &Log) -> impl FnMut() -> Node + Send + use<> {
    let log = log.clone();
    move || Node { log: log.clone(), n: 0, kept: Vec::new() }
}

/// An order that cannot fail.
fn order(f: impl FnOnce(&mut Node, &mut Context<'_, Node>) + Send + 'static) -> Msg {
    Msg::Do(Box::new(move |me, cx| {
        f(me, cx);
        Ok(Next::Stay)
    }))
}

fn stop() -> Msg {
    Msg::Do(Box::new(|_, _| Ok(Next::Stop)))
}

fn say(text: &str) -> Msg {
    Msg::Say(text.to_owned())
}
