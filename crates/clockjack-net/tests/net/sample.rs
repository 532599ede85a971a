//! The first sample of the contract: tell, ask and watch an actor on another node.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Listing, Next, ReplyTo, ServiceKey, Signal,
};
use clockjack_macros::Wire;
use clockjack_net::Net;
use clockjack_testkit::TestCluster;

#[derive(Wire)]
#[wire(id = "demo.Counter")]
enum Msg {
    Add(u64),
    Sum(ReplyTo<u64>),
}

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

fn serve(system: &ActorSystem, net: &Net) -> Result<(), Failure> {
    let counter = system.spawn("counter", Counter::default).map_err(|refused| refused.discard())?;
    net.share(&key())?.forever();
    system.receptionist().register(&key(), &counter)?;
    Ok(())
}

struct Client {
    counter: Option<ActorRef<Msg>>,
    out: ActorRef<String>,
}

impl Actor for Client {
    type Msg = Listing<Msg>;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let me = cx.self_ref();
        // Nothing here depends on nodes.
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
        let sum = counter.ask(Msg::Sum, Duration::from_secs(1));
        cx.spawn_future(sum, |me: &mut Self, _: &mut Context<'_, Self>, sum| {
            me.out.tell(format!("the sum is {}", sum?))?;
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
            self.out.tell("the node of the counter is lost".into())?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn sample_1_tells_asks_and_watches_an_actor_on_another_node() {
    let cluster = TestCluster::start(2);
    let out = cluster.node(1).probe::<String>().showing();
    let to = out.actor_ref();
    cluster.node(1).spawn("client", move || Client { counter: None, out: to.clone() });
    cluster.net(1).share(&key()).expect("it is the first").forever();
    serve(cluster.node(0).system(), cluster.net(0)).expect("it starts");
    out.expect_eq("the sum is 2".into());
    cluster.crash(0);
    out.expect_eq_within("the node of the counter is lost".into(), Duration::from_secs(5));
    out.expect_none_for(Duration::from_secs(60));
    cluster.node(1).expect_no_failures();
}
