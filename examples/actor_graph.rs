//! Actors and a graph together: an actor owns a graph that smooths the values it receives, and the
//! graph asks another actor about each result.
//!
//! ```text
//!  told ─▶ owner ─feed─▶ smooth ─▶ judge ─▶ out ─subscription─▶ owner ─▶ says
//!                                   ⇅ ask
//!                                  expert
//! ```
//!
//! `cargo run --example actor_graph --features graph`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::error::Error;

use clockjack::{
    graph::{Feed, GraphFile, OnRefused, Registry, RunOptions},
    prelude::*,
};

/// The graph. The owner registers the type of `judge`.
const GRAPH: &str = "
schema_version: 1
graph: { name: smoothing }
lanes: { main: { type: event_loop } }
components:
  - id: smooth
    type: estimator
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: input }
  - id: judge
    type: 'actor:expert'
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
  - id: out
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - id: smoothed
    kind: immediate
    from: smooth.out
    to: judge.in
    policy: { mode: queue, capacity: 16 }
  - id: judged
    kind: immediate
    from: judge.out
    to: out.in
    policy: { mode: queue, capacity: 16 }
";

/// The question to the expert: how far a number is from eight.
enum Expert {
    Judge(f64, ReplyTo<f64>),
}

/// Messages of the owner.
enum Msg {
    Measured(f64),
    Judged(f64),
}

/// An actor that owns a graph.
struct Owner {
    expert: ActorRef<Expert>,
    says: ActorRef<String>,
    feed: Option<Feed<f64>>,
}

impl Actor for Owner {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let timeout = Duration::from_secs(1);
        let types = Registry::standard().register_actor(
            "actor:expert",
            &self.expert,
            Expert::Judge,
            timeout,
        );
        // Values at the output boundary arrive at this actor as messages.
        let outputs = cx.self_ref().map(Msg::Judged);
        let options = RunOptions::until_stopped().subscribe("out.in", &outputs, OnRefused::Fail);
        let graph = GraphFile::parse("smoothing.yaml", GRAPH)?.compile(&types)?;
        let run = graph.start(cx.system(), options)?;
        self.feed = Some(run.feed("smooth.in")?);
        // The run stops with this actor; if the run fails, this actor fails.
        cx.spawn_future(run.stop_on_drop(), |_, _, ended| {
            ended?;
            Ok(Next::Stop)
        })?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Measured(x) => self.feed.as_ref().expect("it was started").publish(x)?,
            Msg::Judged(off) => self.says.tell(format!("off by {off}"))?,
        }
        Ok(Next::Stay)
    }
}

/// The judgements of these measurements.
fn judged(measured: &[f64]) -> Result<Vec<String>, Box<dyn Error>> {
    let rt = Runtime::new("actor-graph")?;
    let expert = rt.spawn(
        "expert",
        Props::from_fn(|_cx, Expert::Judge(x, reply_to)| reply_to.reply(8.0 - x)),
    )?;
    let (tell, told) = std::sync::mpsc::channel();
    let says = rt.spawn(
        "says",
        Props::from_fn(move |_cx, line: String| {
            tell.send(line)?;
            Ok(())
        }),
    )?;
    let owner = rt.spawn("owner", move || Owner {
        expert: expert.clone(),
        says: says.clone(),
        feed: None,
    })?;
    for x in measured {
        owner.tell(Msg::Measured(*x)).map_err(|refused| refused.discard())?;
    }
    let lines = measured.iter().map(|_| Ok(told.recv_timeout(Duration::from_secs(60))?)).collect();
    drop(rt.shutdown(Duration::from_secs(10)));
    lines
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in judged(&[8.0, 4.0, 8.0])? {
        println!("{line}");
    }
    Ok(())
}
