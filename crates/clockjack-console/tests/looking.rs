//! Looking is never control: what a system does in virtual time is the same whether somebody looks
//! at it, at all of its views, or nobody does.
//!
//! The order of delivery is that of a host without a seed. Two actors receive the events for who
//! looks; where an order is drawn at random, they take part in the draw.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use clockjack_actor::{Actor, ActorRef, Context, Failure, Mailbox, Next, Props, Strategy};
use clockjack_console::{
    Target, Watcher, inspect,
    query::{ActorQuery, EventsQuery, Filter, Query, TreeQuery},
};
use clockjack_graph::{GraphFile, Registry, RunOptions, run::CommitLog};
use clockjack_testkit::ManualTime;

/// What the actors did: when, who, what.
type Trace = Arc<Mutex<Vec<(Duration, u32, u64)>>>;

/// Passes a number on, counted down, and fails now and then.
struct Player {
    number: u32,
    others: Vec<ActorRef<Ball>>,
    trace: Trace,
    clock: Arc<dyn Fn() -> Duration>,
}

enum Ball {
    Meet(Vec<ActorRef<Self>>),
    Play(u64),
}

impl Actor for Player {
    type Msg = Ball;

    fn receive(&mut self, cx: &mut Context<'_, Self>, ball: Ball) -> Result<Next, Failure> {
        match ball {
            Ball::Meet(others) => self.others = others,
            Ball::Play(n) => {
                let at = (self.clock)();
                self.trace.lock().unwrap().push((at, self.number, n));
                let next = usize::try_from(n * 7 + u64::from(self.number)).unwrap();
                if n > 0
                    && let Some(other) = self.others.get(next % self.others.len().max(1)).cloned()
                {
                    if n.is_multiple_of(5) {
                        let wait = Duration::from_millis(n % 40);
                        cx.timers().single(n, wait, Ball::Play(n - 1))?;
                    } else {
                        // A full mailbox returns it, which is part of the run.
                        let _returned = other.tell(Ball::Play(n - 1));
                    }
                }
                if n.is_multiple_of(97) {
                    return Err(Failure::msg("dropped the ball"));
                }
            }
        }
        Ok(Next::Stay)
    }
}

const CELL: &str = "
schema_version: 1
graph: { name: cell }
lanes:
  main: { type: fixed_rate, period_ms: 30 }
components:
  - id: sensor
    type: input
    execution: { lane: main }
    boundary: { role: input }
    config: { pattern: ramp }
  - id: display
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - { id: seen, kind: immediate, from: sensor.out, to: display.in }
";

/// Looks at everything that there is.
fn look_at_all(target: &Target) {
    let query = Query { filter: Filter::parse("p depth>=0").unwrap(), ..Query::default() };
    for query in [Query::default(), query] {
        let _rows = inspect::actors(target, &query);
        let _rows = (inspect::jobs(target, &query), inspect::asks(target, &query));
    }
    for at in ["/", "/user", "/user/p1"] {
        let _rows = inspect::tree(target, &TreeQuery { at: at.into(), page: 0 });
        let _actor = inspect::actor(target, &ActorQuery::Path(at.into()));
    }
    let _views = (inspect::overview(target), inspect::workers(target), inspect::timers(target));
    let _views = (inspect::deadletters(target), inspect::findings(target));
    let _views = (inspect::graphs(target), inspect::graph(target, "cell"));
    let _views = (inspect::graph_svg(target, "cell"), inspect::clock(target));
    let _events = inspect::events(target, &EventsQuery::default());
}

/// The trace of the actors, and the commit log of the graph.
fn run(begin: u64, looks: bool) -> (Vec<(Duration, u32, u64)>, Vec<u8>) {
    let time = ManualTime::start();
    let trace = Trace::default();
    let executor = time.system().executor();
    let clock: Arc<dyn Fn() -> Duration> = Arc::new(move || Duration::from_nanos(executor.nanos()));
    let players: Vec<ActorRef<Ball>> = (0..5)
        .map(|number| {
            let (trace, clock) = (trace.clone(), clock.clone());
            let player = move || Player {
                number,
                others: Vec::new(),
                trace: trace.clone(),
                clock: clock.clone(),
            };
            let props = Props::new(player).mailbox(Mailbox::bounded(8));
            time.spawn(&format!("p{number}"), props.supervise(Strategy::resume()))
        })
        .collect();
    let graph = GraphFile::parse("cell.yaml", CELL).unwrap().compile(&Registry::standard());
    let graph = graph.unwrap_or_else(|faults| panic!("{faults:#?}"));
    let log = CommitLog::in_memory();
    let options = RunOptions::until_stopped().commit_log(&log);
    let graph = graph.start(time.system(), options).unwrap();
    let target = Target::of_system(time.system());
    target.add_graph("cell", &graph);
    let watcher = looks.then(|| Watcher::new(&target));
    for player in &players {
        player.tell(Ball::Meet(players.clone())).unwrap();
    }
    time.settle();
    for (n, player) in (200 + begin..).zip(&players) {
        player.tell(Ball::Play(n)).unwrap();
    }
    for _ in 0..60 {
        if let Some(watcher) = &watcher {
            watcher.sample(target.now_ns());
            while !watcher.sweep(target.now_ns()) {}
            watcher.advance(target.now_ns());
            look_at_all(&target);
        }
        time.advance(Duration::from_millis(25));
        time.settle();
    }
    graph.stop();
    time.settle();
    drop((watcher, time.take_failures()));
    let trace = trace.lock().unwrap().clone();
    (trace, log.bytes())
}

#[test]
fn looking_changes_nothing() {
    for begin in 0..20 {
        let (alone, alone_log) = run(begin, false);
        let (seen, seen_log) = run(begin, true);
        assert!(alone.len() > 100 && alone_log.len() > 100, "{} {}", alone.len(), alone_log.len());
        assert!(alone == seen, "the actors from {begin} on");
        assert!(alone_log == seen_log, "the graph, {begin}");
    }
}
