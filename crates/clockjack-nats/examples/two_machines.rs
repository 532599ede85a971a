//! Two machines: an actor on one node, and a client on another that tells, asks and watches it.
//!
//! ```sh
//! nats-server -js &
//! cargo run -p clockjack-nats --example two_machines -- serve nats://127.0.0.1:4222 &
//! cargo run -p clockjack-nats --example two_machines -- call nats://127.0.0.1:4222
//! ```
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::time::Duration;
use std::sync::mpsc;

use clockjack_macros::Wire;
use clockjack_nats::{NatsConfig, join};
use clockjack_net::Net;
use clockjack_rt::{
    Runtime,
    actor::{Actor, ActorRef, Context, Failure, Listing, Next, ReplyTo, ServiceKey, Signal},
};

/// The messages travel: they have a name, and the compiler checks that each field can be sent.
#[derive(Wire)]
#[wire(id = "demo.Counter")]
enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
}

/// An actor like any other.
#[derive(Default)]
struct Counter(u64);

impl Actor for Counter {
    type Msg = Msg;

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Add(n) => self.0 += n,
            Msg::Sum(to) => to.reply(self.0),
        }
        Ok(Next::Stay)
    }
}

fn key() -> ServiceKey<Msg> {
    ServiceKey::new("counter")
}

fn serve(rt: &Runtime, net: &Net) -> Result<(), Failure> {
    let counter = rt.spawn("counter", Counter::default)?;
    // All nodes that share this key see its registrations.
    net.share(&key())?.forever();
    rt.system().receptionist().register(&key(), &counter)?;
    println!("the counter is shared");
    // Until the process is killed.
    loop {
        std::thread::park();
    }
}

struct Client {
    counter: Option<ActorRef<Msg>>,
    out: mpsc::Sender<String>,
}

impl Actor for Client {
    type Msg = Listing<Msg>;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let me = cx.self_ref();
        // Nothing here depends on machines.
        cx.system().receptionist().subscribe(&key(), &me)?;
        Ok(Next::Stay)
    }

    fn receive(
        &mut self,
        cx: &mut Context<'_, Self>,
        found: Listing<Msg>,
    ) -> Result<Next, Failure> {
        let Some(counter) = found.services().first().cloned() else { return Ok(Next::Stay) };
        cx.watch(&counter)?;
        counter.tell(Msg::Add(2))?;
        let sum = counter.ask(Msg::Sum, Duration::from_secs(5));
        cx.spawn_future(sum, |me: &mut Self, _: &mut Context<'_, Self>, sum| {
            me.out.send(format!("the sum is {}", sum?))?;
            Ok(Next::Stay)
        })?;
        self.counter = Some(counter);
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::Terminated(end) = &signal
            && end.is_lost()
        {
            self.counter = None;
            self.out.send("the node of the counter is lost".into())?;
        }
        Ok(Next::Stay)
    }
}

fn call(rt: &Runtime, net: &Net) -> Result<(), Failure> {
    net.share(&key())?.forever();
    let (out, lines) = mpsc::channel();
    rt.spawn("client", move || Client { counter: None, out: out.clone() })?;
    for line in lines {
        println!("{line}");
        if line.ends_with("is lost") {
            break;
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, url] = arguments.as_slice() else {
        return Err(Failure::msg("usage: two_machines serve|call nats://127.0.0.1:4222"));
    };
    let rt = Runtime::new("demo")?;
    let net = rt.block_on(join(rt.system(), NatsConfig::new(url, "demo", what)))?;
    match what.as_str() {
        "serve" => serve(&rt, &net),
        _ => call(&rt, &net),
    }
}
