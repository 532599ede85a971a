//! A program that the tests look at with a browser: what it does is known, so that the tests know
//! what the page must show. It listens on the port of its first argument, with the token in
//! `CLOCKJACK_TOKEN`, so that it can be started again where it was.

use core::net::SocketAddr;
use std::env;

use clockjack::{
    console::{Bind, Console, Control},
    graph::{GraphFile, Registry, RunOptions},
    prelude::*,
};
use clockjack_console::Token;

/// More than one page has.
const ROOMS: u32 = 250;
/// How often the house tells its clock that it ticks.
const TICK_PERIOD: Duration = Duration::from_millis(10);
/// Every how many ticks somebody calls the ghost.
const TICKS_PER_CALL: u64 = 50;
/// Longer than anybody looks.
const HOUR: Duration = Duration::from_secs(3600);

/// The parent of all. It tells its clock to tick, and calls ghosts that stop; its rooms are idle,
/// and its guest waits for a cook who does not answer.
struct House {
    clock: ActorRef<()>,
    ticks: u64,
}

impl House {
    fn new(system: &ActorSystem) -> Self {
        Self { clock: system.dead_letters(), ticks: 0 }
    }

    /// A ghost stops at the first call, so that the second one is a dead letter. Each has a name of
    /// its own: of several dead letters for the same actor only the first one is an event.
    fn call_a_ghost(&self, cx: &mut Context<'_, Self>) -> Result<(), Failure> {
        let name = format!("ghost-{}", self.ticks / TICKS_PER_CALL);
        let ghost = cx.spawn_child(&name, Props::from_fn(|_cx, (): ()| Next::Stop))?;
        ghost.tell(())?;
        // It may have stopped meanwhile; then there is no dead letter.
        let _refused = ghost.tell(());
        Ok(())
    }
}

impl Actor for House {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.clock = cx.spawn_child("clock", Props::from_fn(|_cx, (): ()| ()))?;
        for number in 0..ROOMS {
            cx.spawn_child(&format!("room-{number:03}"), Props::from_fn(|_cx, (): ()| ()))?;
        }
        let cook = cx.spawn_child("cook", Props::new(Cook::default))?;
        cx.spawn_child("guest", Props::new(move || Guest { cook: cook.clone() }))?;
        cx.timers().fixed_rate("tick", TICK_PERIOD, || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.ticks += 1;
        self.clock.tell(())?;
        if self.ticks.is_multiple_of(TICKS_PER_CALL) {
            self.call_a_ghost(cx)?;
        }
        Ok(Next::Stay)
    }
}

/// Keeps the orders, and answers none.
#[derive(Default)]
struct Cook {
    orders: Vec<ReplyTo<()>>,
}

impl Actor for Cook {
    type Msg = ReplyTo<()>;

    fn receive(&mut self, _: &mut Context<'_, Self>, order: ReplyTo<()>) -> Result<Next, Failure> {
        self.orders.push(order);
        Ok(Next::Stay)
    }
}

/// Waits for the cook.
struct Guest {
    cook: ActorRef<ReplyTo<()>>,
}

impl Actor for Guest {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let meal = self.cook.ask(|reply_to| reply_to, HOUR);
        cx.wait(meal, |_, _, _| Ok(Next::Stay)).map_err(|_| Failure::msg("it waits already"))?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

fn main() -> Result<(), Failure> {
    let port = env::args().nth(1).and_then(|port| port.parse().ok());
    let addr = SocketAddr::from(([127, 0, 0, 1], port.unwrap_or(0)));
    let token = Token::from_env("CLOCKJACK_TOKEN")?;
    let rt = Runtime::new("house")?;
    let text = include_str!("../../examples/robot-cell.yaml");
    let graph = GraphFile::parse("robot-cell.yaml", text)?.compile(&Registry::standard())?;
    let cell = graph.start(rt.system(), RunOptions::until_stopped())?;
    let console = Console::of(&rt).graph("robot-cell", &cell);
    let console = console.control(Control::INSPECT);
    let console = console.bind(Bind::Public { addr, token, hosts: Vec::new() }).open()?;
    let system = rt.system().clone();
    rt.spawn("house", move || House::new(&system))?;
    #[expect(clippy::print_stdout, reason = "the tests read where it is")]
    {
        println!("look at {}", console.url().unwrap_or_default());
    }
    drop(rt.run());
    Ok(())
}
