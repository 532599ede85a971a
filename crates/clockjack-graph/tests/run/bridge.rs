//! Actors that serve a graph, and actors that own one.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, IntoProps, Mailbox, Next, Props, ReplyTo,
};
use clockjack_graph::{
    Clock, CommitLog, Feed, Graph, OnRefused, Parallel, Registry, RunError, RunOptions, RunReport,
    RunStopReason,
};
use clockjack_rt::Runtime;
use clockjack_testing::keeps_deadline;
use clockjack_testkit::ManualTime;

use crate::{
    acts::compile,
    parts::{Seen, registry},
    teller::{self, graph},
};

const SECOND: Duration = Duration::from_secs(1);

/// A request to double a number.
enum Double {
    This(f64, ReplyTo<f64>),
}

/// An actor that doubles, and records the order of its requests.
fn doubler(asked: &Arc<Mutex<Vec<f64>>>) -> impl Fn() -> Doubler + Clone + use<> {
    let asked = Arc::clone(asked);
    move || Doubler { asked: Arc::clone(&asked) }
}

struct Doubler {
    asked: Arc<Mutex<Vec<f64>>>,
}

impl Actor for Doubler {
    type Msg = Double;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Double) -> Result<Next, Failure> {
        let Double::This(x, reply_to) = msg;
        self.asked.lock().unwrap().push(x);
        reply_to.reply(2.0 * x);
        Ok(Next::Stay)
    }
}

const LANES: &str = "main: { type: event_loop }, pool: { type: thread_pool, max_threads: 4 }";

/// A source, `n` components that ask, and one that keeps the answers.
fn asking(n: usize, more: &str) -> String {
    let mut components: Vec<String> = vec![
        "id: src, type: count, execution: { lane: main }, boundary: { role: input }".into(),
        "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
         event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input }"
            .into(),
    ];
    let mut edges = vec![];
    for at in 0..n {
        components.push(format!(
            "id: call{at}, type: 'actor:double', event_sources: [{{ type: message, input: in }}], \
             trigger_policy: {{ type: any_input }}, {more}"
        ));
        edges.push(format!("id: to{at}, kind: immediate, from: src.out, to: call{at}.in"));
        edges.push(format!(
            "id: from{at}, kind: immediate, from: call{at}.out, to: out.in, \
             policy: {{ mode: queue, capacity: 8 }}"
        ));
    }
    let components: Vec<&str> = components.iter().map(String::as_str).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    graph(LANES, &components, &edges)
}

fn asker(text: &str, seen: &Seen, actor: &ActorRef<Double>, timeout: Duration) -> Graph {
    let types = registry(seen).register_actor("actor:double", actor, Double::This, timeout);
    compile(text, &types)
}

/// Epoch and value of all that was kept.
fn kept(seen: &Seen) -> Vec<(u64, f64)> {
    seen.lock().unwrap().iter().map(|(epoch, _, x)| (*epoch, *x)).collect()
}

fn metric(result: &Result<RunReport, RunError>, name: &str) -> f64 {
    let report = match result {
        Ok(report) => report,
        Err(error) => error.report().expect("it has begun"),
    };
    report.metrics.total(name)
}

/// Runs `n` epochs of a graph of one component that asks this actor.
fn ask_alone<A: Actor<Msg = Double>>(
    more: &str,
    n: u64,
    props: impl IntoProps<Actor = A>,
) -> (Seen, Result<RunReport, RunError>) {
    let (time, seen) = (ManualTime::start(), Seen::default());
    let actor = time.spawn("double", props);
    let graph = asker(&asking(1, more), &seen, &actor, SECOND);
    let run = graph.start(time.system(), RunOptions::steps(n).clock(Clock::Virtual));
    let result = time.block_on(run.expect("it starts"));
    (seen, result)
}

#[test]
fn an_actor_is_asked_and_its_answer_is_seen_in_the_next_epoch() {
    let asked = Arc::default();
    let (seen, result) = ask_alone("execution: { lane: main }", 4, doubler(&asked));
    assert_eq!(kept(&seen), [(2, 2.0), (3, 4.0), (4, 6.0)]);
    assert_eq!(*asked.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(metric(&result, "actor.asked_count"), 4.0);
    assert_eq!(metric(&result, "actor.answered_count"), 4.0);
    assert_eq!(metric(&result, "runtime.async.completed_count"), 4.0, "the last without an epoch");
}

#[test]
fn an_actor_that_does_not_answer_in_time_is_a_failure_of_its_component() {
    let kept_replies = Arc::new(Mutex::new(vec![]));
    let keeps = Arc::clone(&kept_replies);
    let silent = Props::from_fn(move |_cx, msg: Double| {
        keeps.lock().unwrap().push(msg);
        Ok(Next::Stay)
    });
    let (seen, result) = ask_alone("execution: { lane: main, on_error: continue }", 3, silent);
    let report = result.as_ref().expect("it goes on");
    assert!(kept(&seen).is_empty());
    assert_eq!(report.faults.len(), 3);
    assert!(report.faults.iter().all(|fault| fault.component == "call0"));
    assert!(report.faults[0].message.contains("timed out after 1s"), "{}", report.faults[0]);
    assert_eq!(metric(&result, "actor.failed_count"), 3.0);
    assert_eq!(kept_replies.lock().unwrap().len(), 3);
}

#[test]
fn an_actor_that_has_stopped_is_a_failure_of_its_component() {
    let stops = Props::from_fn(|_cx, Double::This(x, reply_to)| {
        reply_to.reply(2.0 * x);
        Ok(Next::Stop)
    });
    let (seen, result) = ask_alone("execution: { lane: main }", 9, stops);
    let error = result.expect_err("it fails fast");
    let fault = error.fault().expect("of a component");
    assert_eq!((fault.component.as_str(), fault.epoch), ("call0", 3));
    assert!(fault.message.contains("already terminated"), "{fault}");
    assert_eq!(kept(&seen), [(2, 2.0)]);
    let report = error.report().expect("it has begun");
    assert_eq!(report.metrics.get("actor.failed_count", "call0"), Some(1.0));
}

#[test]
fn requests_beyond_the_bound_are_refused_counted_and_handled_by_policy() {
    let run = |policy: &str| {
        let (time, seen) = (ManualTime::start(), Seen::default());
        let actor = time.spawn("double", doubler(&Arc::default()));
        let text = graph(
            LANES,
            &[
                &format!(
                    "id: call, type: 'actor:double', execution: {{ lane: main }}, \
                     event_sources: [{{ type: message, input: in }}], \
                     trigger_policy: {{ type: any_input }}, boundary: {{ role: input }}, \
                     config: {{ max_inflight: 2, on_refused: {policy} }}"
                ),
                "id: out, type: keep, execution: { lane: main }, boundary: { role: output }, \
                 event_sources: [{ type: message, input: in }], \
                 trigger_policy: { type: any_input }",
            ],
            &["id: e, kind: immediate, from: call.out, to: out.in, \
               policy: { mode: queue, capacity: 8 }"],
        );
        let graph = asker(&text, &seen, &actor, SECOND);
        let run = graph.start(time.system(), RunOptions::until_idle().clock(Clock::Virtual));
        let run = run.expect("it starts");
        let feed = run.feed::<f64>("call.in").expect("it stands at the border");
        (1..=5).for_each(|n| feed.publish(f64::from(n)).expect("there is room"));
        let result = time.block_on(run);
        assert_eq!(metric(&result, "actor.asked_count"), if result.is_ok() { 5.0 } else { 3.0 });
        (kept(&seen), metric(&result, "actor.refused_count"), result)
    };
    let (kept, n_refused, result) = run("drop");
    result.expect("what is too much is lost");
    assert_eq!((kept, n_refused), (vec![(2, 2.0), (2, 4.0)], 3.0));
    let (_, n_refused, result) = run("fail");
    let error = result.expect_err("what is too much is a failure").to_string();
    assert!(error.contains("too many are in flight"), "{error}");
    assert_eq!(n_refused, 1.0);
}

#[test]
fn a_request_waits_for_room_in_a_full_mailbox() {
    let asked: Arc<Mutex<Vec<f64>>> = Arc::default();
    let props = Props::new(doubler(&asked)).mailbox(Mailbox::bounded(1));
    let (time, seen) = (ManualTime::start(), Seen::default());
    let actor = time.spawn("double", props);
    let graph = asker(&asking(6, "execution: { lane: main }"), &seen, &actor, SECOND);
    let run = graph.start(time.system(), RunOptions::steps(3).clock(Clock::Virtual));
    let result = time.block_on(run.expect("it starts"));
    assert_eq!(metric(&result, "actor.answered_count"), 18.0);
    assert_eq!(kept(&seen).len(), 12);
    assert_eq!(asked.lock().unwrap().len(), 18);
}

#[test]
fn actors_are_asked_in_the_order_of_components_by_any_number_of_workers() {
    let text = asking(6, "execution: { lane: pool }");
    let run = |system: &ActorSystem, options: RunOptions, actor: &ActorRef<Double>| {
        let (seen, log) = (Seen::default(), CommitLog::in_memory());
        let graph = asker(&text, &seen, actor, Duration::from_secs(60));
        let options = options.clock(Clock::Virtual).commit_log(&log);
        (graph.start(system, options).expect("it starts"), log)
    };
    let asked: Arc<Mutex<Vec<f64>>> = Arc::default();
    let time = ManualTime::start();
    let actor = time.spawn("double", doubler(&asked));
    let (alone, expected) = run(time.system(), RunOptions::steps(20), &actor);
    time.block_on(alone).expect("nothing fails");
    let expected_order = core::mem::take(&mut *asked.lock().unwrap());
    let runtime: Runtime = teller::runtime();
    for (nth, workers) in [1, 2, 4, 8].into_iter().enumerate() {
        let actor = runtime.spawn(&format!("double{nth}"), doubler(&asked)).expect("it is spawned");
        let options = RunOptions::steps(20).workers(workers).parallel(Parallel::Always);
        let (run, log) = run(runtime.system(), options, &actor);
        runtime.block_on(run).expect("nothing fails");
        assert_eq!(log.bytes(), expected.bytes(), "{workers} workers");
        assert_eq!(core::mem::take(&mut *asked.lock().unwrap()), expected_order);
    }
}

/// Keeps the first request, and answers the others at once.
fn keeps_the_first(
    first: &Arc<Mutex<Option<ReplyTo<f64>>>>,
) -> impl IntoProps<Actor: Actor<Msg = Double>> + use<> {
    let first = Arc::clone(first);
    Props::from_fn(move |_cx, Double::This(x, reply_to): Double| {
        let mut first = first.lock().unwrap();
        if first.is_none() {
            *first = Some(reply_to);
        } else {
            reply_to.reply(2.0 * x);
        }
        Ok(Next::Stay)
    })
}

#[test]
fn answers_are_seen_in_the_order_of_their_requests_unless_they_need_not() {
    for (is_ordered, before, after) in
        [(true, vec![], vec![-1.0, 4.0, 6.0]), (false, vec![4.0, 6.0], vec![4.0, 6.0, -1.0])]
    {
        let (time, seen, first) = (ManualTime::start(), Seen::default(), Arc::default());
        let actor = time.spawn("late", keeps_the_first(&first));
        let text = OWNED
            .replace("type: add", "type: 'actor:double'")
            .replace("k: 10.0, fails_at: 13.0", &format!("ordered: {is_ordered}"))
            .replace("input: a }", "input: in }");
        let graph = asker(&text, &seen, &actor, SECOND);
        let run = graph.start(time.system(), RunOptions::until_stopped()).expect("it starts");
        let feed = run.feed::<f64>("in.in").expect("it can be fed");
        for x in [1.0, 2.0, 3.0] {
            feed.publish(x).expect("there is room");
        }
        let values = || {
            time.settle();
            kept(&seen).into_iter().map(|(_, x)| x).collect::<Vec<_>>()
        };
        assert_eq!(values(), before);
        first.lock().unwrap().take().expect("it was asked").reply(-1.0);
        assert_eq!(values(), after);
        run.stop();
        time.block_on(run).expect("nothing fails");
    }
}

/// Messages of an actor that owns a graph.
enum Owner {
    In(f64),
    Out(f64),
    Ended(RunStopReason),
    Fail,
}

/// What the owner reports.
#[derive(Debug, PartialEq)]
enum Said {
    Out(f64),
    Ended(RunStopReason),
}

/// An actor that owns a graph and sends its messages through it.
struct Owning {
    tells: ActorRef<Said>,
    types: Registry,
    feed: Option<Feed<f64>>,
}

const OWNED: &str = "
schema_version: 1
graph: { name: owned }
lanes: { main: { type: event_loop } }
components:
  - id: in
    type: add
    event_sources: [{ type: message, input: a }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: input }
    config: { k: 10.0, fails_at: 13.0 }
  - id: out
    type: keep
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: main }
    boundary: { role: output }
edges:
  - { id: e, kind: immediate, from: in.out, to: out.in, policy: { mode: queue, capacity: 128 } }
";

impl Actor for Owning {
    type Msg = Owner;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let outputs = cx.self_ref().map(Owner::Out);
        let options = RunOptions::until_stopped().subscribe("out.in", &outputs, OnRefused::Fail);
        let run = compile(OWNED, &self.types).start(cx.system(), options)?;
        self.feed = Some(run.feed("in.a")?);
        let me = cx.self_ref();
        cx.spawn_future(run.stop_on_drop(), move |_, _, ended| {
            let stop = match &ended {
                Ok(report) => report.stop,
                Err(error) => error.report().expect("it has begun").stop,
            };
            me.tell(Owner::Ended(stop)).map_err(|error| Failure::from(error.discard()))?;
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Owner) -> Result<Next, Failure> {
        match msg {
            Owner::In(x) => self.feed.as_ref().expect("it was started").publish(x)?,
            Owner::Out(x) => self.tells.tell(Said::Out(x))?,
            Owner::Ended(stop) => self.tells.tell(Said::Ended(stop))?,
            Owner::Fail => return Err(Failure::msg("told to fail")),
        }
        Ok(Next::Stay)
    }
}

/// Components hold it: when the last one is dropped, nothing of a run is left.
fn owning(tells: &ActorRef<Said>, seen: &Seen) -> impl Fn() -> Owning + Clone + use<> {
    let (tells, types) = (tells.clone(), registry(seen));
    move || Owning { tells: tells.clone(), types: types.clone(), feed: None }
}

#[test]
fn an_actor_feeds_the_graph_it_owns_and_is_told_its_outputs() {
    let (time, seen) = (ManualTime::start(), Seen::default());
    let probe = time.probe::<Said>();
    let owner = time.spawn("owner", owning(&probe.actor_ref(), &seen));
    for x in [1.0, 2.0, 3.0] {
        owner.tell(Owner::In(x)).expect("there is room");
    }
    assert_eq!(probe.receive_n(3), [Said::Out(10.0), Said::Out(20.0), Said::Out(30.0)]);
    owner.tell(Owner::In(13.0)).expect("there is room");
    probe.expect_eq(Said::Ended(RunStopReason::Error));
}

#[test]
fn a_graph_ends_with_the_actor_that_owns_it() {
    let (time, seen) = (ManualTime::start(), Seen::default());
    let probe = time.probe::<Said>();
    let owner = time.spawn("owner", owning(&probe.actor_ref(), &seen));
    owner.tell(Owner::In(1.0)).expect("there is room");
    probe.expect_eq(Said::Out(10.0));
    let n_alive = Arc::strong_count(&seen);
    owner.tell(Owner::Fail).expect("there is room");
    probe.expect_terminated(&owner);
    time.settle();
    assert!(Arc::strong_count(&seen) < n_alive, "its components are gone");
    probe.expect_none();
}

#[test]
fn a_restarted_actor_owns_a_graph_of_its_own() {
    use clockjack_actor::Strategy;
    let (time, seen) = (ManualTime::start(), Seen::default());
    let probe = time.probe::<Said>();
    let props = Props::new(owning(&probe.actor_ref(), &seen)).supervise(Strategy::restart());
    let owner = time.spawn("owner", props);
    time.settle();
    let n_alive = Arc::strong_count(&seen);
    owner.tell(Owner::Fail).expect("there is room");
    owner.tell(Owner::In(2.0)).expect("there is room");
    probe.expect_eq(Said::Out(20.0));
    assert_eq!(Arc::strong_count(&seen), n_alive, "one graph is there, the other is gone");
}

#[test]
fn an_owned_graph_works_on_a_pool() {
    let (runtime, seen) = (teller::runtime(), Seen::default());
    let (tells, told) = std::sync::mpsc::channel();
    let ear = Props::from_fn(move |_cx, said: Said| {
        tells.send(said).map_err(|_| Failure::msg("nobody listens"))?;
        Ok(Next::Stay)
    });
    let ear = runtime.spawn("ear", ear).expect("it is spawned");
    let owner = runtime.spawn("owner", owning(&ear, &seen)).expect("it is spawned");
    for n in 1..=100 {
        owner.tell_or_dead_letter(Owner::In(f64::from(n) + 100.0));
    }
    for n in 1..=100 {
        let said = told.recv_timeout(Duration::from_secs(60)).expect("it comes");
        assert_eq!(said, Said::Out(10.0 * (f64::from(n) + 100.0)));
    }
    let timeout = Duration::from_secs(60);
    let report = keeps_deadline(timeout, || runtime.shutdown(timeout));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_subscription_that_cannot_be_is_refused_and_changes_no_log() {
    let time = ManualTime::start();
    let probe = time.probe::<f64>();
    let start = |endpoint: &str, log: &CommitLog| {
        let graph = compile(OWNED, &registry(&Seen::default()));
        let options = RunOptions::steps(2).clock(Clock::Virtual).commit_log(log);
        let options = match endpoint {
            "" => options,
            _ => options.subscribe(endpoint, &probe.actor_ref(), OnRefused::Drop),
        };
        graph.start(time.system(), options)
    };
    for (endpoint, why) in [
        ("in.a", "`in.a` cannot be subscribed to: `in` is not an output boundary"),
        ("out.x", "`out.x` cannot be subscribed to: `out` has no input `x`"),
        ("no.x", "`no.x` cannot be subscribed to: there is no component `no`"),
    ] {
        let refused = start(endpoint, &CommitLog::in_memory()).expect_err("it is no output");
        assert_eq!(refused.to_string(), why);
    }
    let (plain, heard) = (CommitLog::in_memory(), CommitLog::in_memory());
    for (endpoint, log) in [("", &plain), ("out.in", &heard)] {
        let run = start(endpoint, log).expect("it starts");
        run.feed::<f64>("in.a").expect("it can be fed").publish(4.0).expect("there is room");
        time.block_on(run).expect("nothing fails");
    }
    assert_eq!(plain.bytes(), heard.bytes());
    probe.expect_eq(40.0);
}

#[test]
fn what_a_subscriber_refuses_is_counted_and_what_failed_is_not_told() {
    let time = ManualTime::start();
    let gone = time.spawn("gone", Props::from_fn(|_cx, _: f64| Ok(Next::Stop)));
    gone.tell(0.0).expect("it is there");
    time.settle();
    for (policy, is_ok) in [(OnRefused::Drop, true), (OnRefused::Fail, false)] {
        let options = RunOptions::steps(2).clock(Clock::Virtual).subscribe("out.in", &gone, policy);
        let graph = compile(OWNED, &registry(&Seen::default()));
        let run = graph.start(time.system(), options).expect("it starts");
        run.feed::<f64>("in.a").expect("it can be fed").publish(4.0).expect("there is room");
        let result = time.block_on(run);
        assert_eq!(result.is_ok(), is_ok);
        assert_eq!(metric(&result, "actor.refused_count"), 1.0);
        assert_eq!(metric(&result, "actor.told_count"), 0.0);
    }
    // The component behind the boundary fails at its input, so the actor gets nothing.
    let probe = time.probe::<f64>();
    let text = OWNED.replace("to: out.in", "to: out.a").replace("input: in }", "input: a }");
    let text = text.replace("type: keep", "type: add\n    config: { fails_at: 40.0 }");
    let text = text.replace(
        "execution: { lane: main }\n    boundary: { role: output }",
        "execution: { lane: main, on_error: continue }\n    boundary: { role: output }",
    );
    let options = RunOptions::steps(2).clock(Clock::Virtual);
    let options = options.subscribe("out.a", &probe.actor_ref(), OnRefused::Fail);
    let graph = compile(&text, &registry(&Seen::default()));
    let run = graph.start(time.system(), options).expect("it starts");
    let feed = run.feed::<f64>("in.a").expect("it can be fed");
    for x in [4.0, 5.0] {
        feed.publish(x).expect("there is room");
    }
    assert_eq!(time.block_on(run).expect("it goes on").faults.len(), 1);
    probe.expect_eq(50.0);
    probe.expect_none();
}
