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

use core::time::Duration;

use bench::Log;
use clockjack_actor::{
    Actor, ActorRef, Context, EventKinds, Failure, Next, ReplyTo, RootContext, Signal, SystemEvent,
};

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

/// Logs the losses and cycles of a system.
struct Listener(Log);

impl Actor for Listener {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        match event {
            SystemEvent::DeadLetter(letter) => {
                let kind = letter.message_type.rsplit("::").next().unwrap();
                self.0.add(format!("{} {} {:?}", letter.recipient, kind, letter.reason));
            }
            SystemEvent::AskCycle(cycle) => {
                let paths: Vec<_> = cycle.paths.iter().map(ToString::to_string).collect();
                self.0.add(format!("cycle {}", paths.join(" ")));
            }
            _ => {}
        }
        Ok(Next::Stay)
    }
}

fn listen(root: &mut RootContext) -> Log {
    let log = Log::default();
    let to = log.clone();
    let listener: ActorRef<_> = root.spawn("listener", move || Listener(to.clone())).unwrap();
    root.system().events().subscribe(EventKinds::DEAD_LETTER | EventKinds::ASK_CYCLE, listener);
    log
}
