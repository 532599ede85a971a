//! Sick programs in virtual time: each has one illness, which is found first; and a healthy one.

#[path = "support/look.rs"]
mod look;

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, AskError, Context, Failure, Mailbox, Next, Props, ReplyTo, Strategy,
};
use clockjack_console::{
    Target, Watcher, findings::Thresholds, inspect, query::Query, view::Finding,
};
use clockjack_graph::{
    Binder, Component, Config, ConfigError, Descriptor, Execute, GraphContext, GraphRun, Input,
    InputPort, Need, Output, OutputPort, Registry, RunOptions, describe::GraphFile,
};
use clockjack_testkit::ManualTime;
use look::{look, look_at, seconds};
use serde_json::json;

const SECOND_NS: u64 = 1_000_000_000;

/// The codes of all findings, the worst first.
fn codes(target: &Target) -> Vec<String> {
    inspect::findings(target).rows.into_iter().map(|one| one.code).collect()
}

/// The first finding, which must have this code.
#[track_caller]
fn first(target: &Target, code: &str) -> Finding {
    let all = inspect::findings(target).rows;
    let first = all.first().unwrap_or_else(|| panic!("no finding, and {code} was expected"));
    assert_eq!(first.code, code, "{all:#?}");
    first.clone()
}

/// Fails on `true`.
struct Shop;

impl Actor for Shop {
    type Msg = bool;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, fails: bool) -> Result<Next, Failure> {
        if fails { Err(Failure::msg("out of stock")) } else { Ok(Next::Stay) }
    }
}

fn shop() -> impl clockjack_actor::IntoProps<Actor = Shop> {
    Props::new(|| Shop).mailbox(Mailbox::bounded(100))
}

#[test]
fn a_healthy_program_has_no_finding() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let shop = time.spawn("shop", shop());
    for _ in 0..20 {
        for _ in 0..50 {
            shop.tell(false).unwrap();
        }
        seconds(&time, &watcher, 1);
        assert_eq!(inspect::findings(&target).rows, []);
    }
}

#[test]
fn what_is_wrong_is_unknown_while_nobody_looks() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let found = inspect::findings(&target);
    assert_eq!((found.looked_ms, found.rows), (None, vec![]));
    assert_eq!(inspect::overview(&target).looked_ms, None);
    assert_eq!(serde_json::to_value(inspect::findings(&target)).unwrap()["looked_ms"], json!(null));
    let watcher = Watcher::new(&target);
    assert_eq!(inspect::findings(&target).looked_ms, None, "nobody has looked yet");
    seconds(&time, &watcher, 3);
    assert_eq!(inspect::findings(&target).looked_ms, Some(3_000));
    assert_eq!(inspect::overview(&target).looked_ms, Some(3_000));
    // A watcher that looks no more, because its thread has panicked.
    time.advance(Duration::from_secs(6));
    let found = inspect::findings(&target);
    assert_eq!((found.looked_ms, found.rows[0].code.as_str()), (None, "S14"));
    assert!(found.rows[0].text.contains("has not looked for 6.0 s"), "{}", found.rows[0].text);
    look(&watcher);
    assert_eq!(inspect::findings(&target).rows, []);
    drop(watcher);
    assert_eq!(inspect::findings(&target).looked_ms, None);
}

#[test]
fn findings_that_need_a_longer_look_are_undecided_until_then() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let undecided = || -> Vec<String> {
        inspect::findings(&target).undecided.into_iter().map(|one| one.code).collect()
    };
    look(&watcher);
    assert_eq!(undecided(), ["S01", "S03", "S04", "S06", "S11", "S13"]);
    // For as long as `doctor` looks.
    seconds(&time, &watcher, 3);
    assert_eq!(undecided(), ["S04", "S11"]);
    let of_s11 = inspect::overview(&target).undecided.pop().unwrap();
    assert_eq!(of_s11.why, "needs a look of 600.0 s");
    seconds(&time, &watcher, 57);
    assert_eq!(undecided(), ["S11"]);
    seconds(&time, &watcher, 540);
    assert_eq!(undecided(), Vec::<String>::new());
}

/// Asks the other one when it is told to, and answers when it is asked.
struct Talker {
    other: Option<ActorRef<Talk>>,
}

enum Talk {
    Meet(ActorRef<Self>),
    Begin,
    Asked(ReplyTo<u32>),
}

impl Actor for Talker {
    type Msg = Talk;

    fn receive(&mut self, cx: &mut Context<'_, Self>, talk: Talk) -> Result<Next, Failure> {
        match talk {
            Talk::Meet(other) => self.other = Some(other),
            Talk::Asked(reply_to) => reply_to.reply(7),
            Talk::Begin => {
                let Some(other) = self.other.clone() else { return Ok(Next::Stay) };
                let wait = Duration::from_secs(3_600);
                let ask = other.ask(Talk::Asked, wait);
                cx.wait(ask, |_: &mut Self, _, _: Result<u32, AskError>| Next::Stay)?;
            }
        }
        Ok(Next::Stay)
    }
}

#[test]
fn s02_names_actors_that_wait_for_each_other() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let [a, b, c] =
        ["a", "b", "c"].map(|name| time.spawn(name, Props::new(|| Talker { other: None })));
    for (from, to) in [(&a, &b), (&b, &c), (&c, &a)] {
        from.tell(Talk::Meet(to.clone())).unwrap();
    }
    time.settle();
    a.tell(Talk::Begin).unwrap();
    let watcher = Watcher::new(&target);
    seconds(&time, &watcher, 1);
    assert_eq!(inspect::findings(&target).rows, [], "an ask alone is no cycle");
    let asks = inspect::asks(&target, &Query::default());
    assert_eq!(asks.rows, [], "it was answered");
    for actor in [&a, &b, &c] {
        actor.tell(Talk::Begin).unwrap();
    }
    seconds(&time, &watcher, 2);
    let found = first(&target, "S02");
    assert_eq!(found.subject, "/user/a");
    assert!(found.text.contains("/user/a -> /user/b -> /user/c -> /user/a"), "{}", found.text);
    let asks = inspect::asks(&target, &Query::default());
    assert_eq!(asks.rows.len(), 3);
    assert!(asks.rows.iter().all(|ask| ask.is_in_cycle));
}

#[test]
fn s02_is_undecided_if_the_actors_that_ask_are_not_found() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    // Asks of actors in the first 65,536 slots are looked at.
    for n in 0..66_000 {
        time.spawn(&format!("a{n}"), shop());
    }
    time.set_rounds_max(1_000_000);
    let [a, b] = ["x", "y"].map(|name| time.spawn(name, Props::new(|| Talker { other: None })));
    for (from, to) in [(&a, &b), (&b, &a)] {
        from.tell(Talk::Meet(to.clone())).unwrap();
    }
    let watcher = Watcher::new(&target);
    seconds(&time, &watcher, 1);
    let has_s02 = || inspect::findings(&target).undecided.iter().any(|one| one.code == "S02");
    assert!(!has_s02(), "nobody asks");
    a.tell(Talk::Begin).unwrap();
    b.tell(Talk::Begin).unwrap();
    seconds(&time, &watcher, 1);
    assert!(!codes(&target).contains(&"S02".to_owned()), "it is seen, and this test needs more");
    assert!(has_s02());
}

#[test]
fn s03_names_a_mailbox_that_refuses_messages_at_once() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let shop = time.spawn("shop", shop());
    time.settle();
    for _ in 0..100 {
        shop.tell(false).unwrap();
    }
    shop.tell(false).unwrap_err();
    let watcher = Watcher::new(&target);
    look(&watcher);
    let found = first(&target, "S03");
    assert_eq!(found.subject, "/user/shop");
    assert!(found.text.contains("100 of 100, 1 message was refused"), "{}", found.text);
    // It has room again.
    seconds(&time, &watcher, 15);
    assert_eq!(inspect::findings(&target).rows, []);
}

#[test]
fn s03_names_a_mailbox_that_is_nearly_full_for_two_seconds() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let shop = time.spawn("shop", shop());
    let watcher = Watcher::new(&target);
    time.settle();
    for _ in 0..90 {
        shop.tell(false).unwrap();
    }
    // The system does not run, so the mailbox stays as it is.
    let now = target.now_ns();
    // Within the three seconds for which `doctor` looks.
    for half in 0..4 {
        look_at(&watcher, now + half * SECOND_NS / 2);
        assert!(!codes(&target).contains(&"S03".to_owned()), "{half}");
    }
    look_at(&watcher, now + 2 * SECOND_NS);
    let found = inspect::findings(&target).rows.into_iter().find(|one| one.code == "S03").unwrap();
    assert_eq!((found.subject.as_str(), found.since_ms), ("/user/shop", 2_000));
    // What was seen long ago says nothing about now.
    watcher.advance(now + 40 * SECOND_NS);
    assert!(!codes(&target).contains(&"S03".to_owned()));
}

#[test]
fn s03_is_over_when_a_mailbox_has_room_again_even_if_it_is_half_full() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let shop = time.spawn("shop", Props::new(|| Shop).mailbox(Mailbox::bounded(10)));
    let watcher = Watcher::new(&target);
    time.settle();
    // Suspended, so that its mailbox keeps what it has.
    for _ in 0..6 {
        shop.tell(false).unwrap();
    }
    let now = target.now_ns();
    look_at(&watcher, now);
    for _ in 0..4 {
        shop.tell(false).unwrap();
    }
    shop.tell(false).unwrap_err();
    look_at(&watcher, now + SECOND_NS);
    assert_eq!(first(&target, "S03").subject, "/user/shop");
    let is_refused = |seconds: u64| {
        look_at(&watcher, now + seconds * SECOND_NS);
        codes(&target).contains(&"S03".to_owned())
    };
    time.settle();
    for _ in 0..6 {
        shop.tell(false).unwrap();
    }
    assert!(is_refused(9), "what was refused a moment ago is reported for a while");
    assert!(!is_refused(20));
}

#[test]
fn s04_names_an_actor_that_restarts_again_and_again() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let feed = time.spawn("feed", Props::new(|| Shop).supervise(Strategy::restart()));
    for n in 0..6 {
        feed.tell(true).unwrap();
        seconds(&time, &watcher, 1);
        if n < 3 {
            assert_eq!(inspect::findings(&target).rows, [], "three restarts are no storm");
        }
    }
    let found = first(&target, "S04");
    assert_eq!(found.subject, "/user/feed");
    assert!(found.text.contains("out of stock"), "{}", found.text);
    seconds(&time, &watcher, 61);
    assert_eq!(inspect::findings(&target).rows, []);
    drop(time.take_failures());
}

#[test]
fn s05_names_the_recipient_of_most_dead_letters() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let gone = time.spawn("gone", shop());
    time.settle();
    time.system().stop(&gone).unwrap();
    seconds(&time, &watcher, 1);
    let letters = time.system().dead_letters::<bool>();
    for _ in 0..5 {
        for _ in 0..11 {
            let _ = gone.tell(false);
            letters.tell(true).unwrap();
        }
        seconds(&time, &watcher, 1);
    }
    let found = first(&target, "S05");
    let groups = inspect::deadletters(&target);
    assert_eq!(found.subject, groups.rows[0].recipient);
    assert_eq!(groups.rows[0].message_type, "bool");
    let total: f64 = groups.rows.iter().filter_map(|row| row.count.value).sum();
    let by_reason: f64 = groups.by_reason.iter().filter_map(|(_, n)| n.value).sum();
    assert!(total >= 55.0 && total <= by_reason, "{groups:?}");
    seconds(&time, &watcher, 2);
    assert_eq!(inspect::findings(&target).rows, []);
}

#[test]
fn s05_is_no_finding_for_a_few_dead_letters_within_a_moment() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let letters = time.system().dead_letters::<bool>();
    for quarter in 0..12 {
        if quarter % 4 == 0 {
            (0..4).for_each(|_| letters.tell(true).unwrap());
        }
        time.advance(Duration::from_millis(250));
        time.settle();
        look(&watcher);
        // Four per second, and sixteen per second of a quarter of a second.
        assert_eq!(inspect::findings(&target).rows, [], "{quarter}");
    }
    let groups = inspect::deadletters(&target).rows;
    assert!(groups[0].rate.value.is_some_and(|rate| rate <= 8.0), "{groups:?}");
}

/// Starts a child for each message, and never stops one.
struct Leaky;

impl Actor for Leaky {
    type Msg = usize;

    fn receive(&mut self, cx: &mut Context<'_, Self>, n: usize) -> Result<Next, Failure> {
        for _ in 0..n {
            cx.spawn_anonymous_child(Props::new(|| Shop))?;
        }
        Ok(Next::Stay)
    }
}

/// Lets eleven minutes pass, in each of which an actor starts so many children.
fn growth(children: usize) -> (ManualTime, Target, Watcher) {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    let leaky = time.spawn("door", Props::new(|| Leaky));
    leaky.tell(100).unwrap();
    for _ in 0..11 {
        time.settle();
        look(&watcher);
        leaky.tell(children).unwrap();
        time.advance(Duration::from_secs(60));
    }
    look(&watcher);
    (time, target, watcher)
}

#[test]
fn s11_names_the_parent_under_which_actors_grow() {
    let (_time, target, _watcher) = growth(5);
    let found = first(&target, "S11");
    assert_eq!(found.subject, "/user/door");
    assert!(found.text.contains("for 10 minutes"), "{}", found.text);
}

#[test]
fn a_number_of_actors_that_stays_is_no_finding() {
    let (_time, target, _watcher) = growth(0);
    assert_eq!(inspect::findings(&target).rows, []);
}

#[test]
fn s13_names_a_clock_that_does_not_advance() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    time.settle();
    let now = target.now_ns();
    for half_seconds in 0..4 {
        look_at(&watcher, now + half_seconds * SECOND_NS / 2);
        assert_eq!(inspect::findings(&target).rows, []);
    }
    look_at(&watcher, now + 3 * SECOND_NS);
    assert_eq!(first(&target, "S13").subject, "clock");
    time.advance(Duration::from_secs(5));
    look_at(&watcher, now + 4 * SECOND_NS);
    assert_eq!(inspect::findings(&target).rows, []);
}

#[test]
fn s14_tells_that_samples_were_lost() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let watcher = Watcher::new(&target);
    time.settle();
    for second in 0..3 {
        time.advance(Duration::from_secs(1));
        watcher.sample(target.now_ns());
        watcher.advance(target.now_ns());
        if second == 0 {
            assert_eq!(inspect::findings(&target).rows, []);
        }
    }
    assert_eq!(first(&target, "S14").subject, "console");
    // It is reported for a while: nobody sees what is shown for a quarter of a second.
    seconds(&time, &watcher, 5);
    assert_eq!(first(&target, "S14").subject, "console");
    seconds(&time, &watcher, 6);
    assert_eq!(inspect::findings(&target).rows, []);
}

/// Publishes three values per call, for an edge that holds one.
#[derive(Default)]
struct Burst {
    out: Output<f64>,
    n: u64,
}

impl Burst {
    const OUT: OutputPort<f64> = OutputPort::new("out");
}

impl Component for Burst {
    const TYPE: &'static str = "burst";

    fn describe() -> Descriptor {
        Descriptor { open_config: true, ..Descriptor::new(Self::TYPE).output(Self::OUT) }
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self.out = ports.output(Self::OUT);
    }

    fn configure(&mut self, config: &Config) -> Result<(), ConfigError> {
        self.n = config.get("n")?.unwrap_or(1);
        Ok(())
    }
}

impl Execute for Burst {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        for _ in 0..self.n {
            // A refusal is counted by the edge.
            let _ = cx.publish(self.out, 1.0);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sink {
    _input: Input<f64>,
}

impl Sink {
    const IN: InputPort<f64> = InputPort::new("in");
}

impl Component for Sink {
    const TYPE: &'static str = "sink";

    fn describe() -> Descriptor {
        Descriptor::new(Self::TYPE).inputs(Self::IN, Need::Optional)
    }

    fn bind(&mut self, ports: &mut Binder<'_>) {
        self._input = ports.input(Self::IN);
    }

    fn configure(&mut self, _: &Config) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Execute for Sink {
    fn execute(&mut self, _cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A graph whose source publishes so many values per epoch for an edge that holds two.
fn cell(n: u64, period_ms: u64) -> (ManualTime, Target, GraphRun) {
    let time = ManualTime::start();
    let text = format!(
        "schema_version: 1\n\
         graph: {{ name: cell, kind: internal_test }}\n\
         lanes:\n  main: {{ type: fixed_rate, period_ms: {period_ms} }}\n\
         components:\n\
         \x20 - {{ id: camera, type: burst, execution: {{ lane: main }}, config: {{ n: {n} }} }}\n\
         \x20 - {{ id: detect, type: sink, execution: {{ lane: main }}, \
         event_sources: [{{ type: message, input: in }}], \
         trigger_policy: {{ type: any_input }} }}\n\
         edges:\n\
         \x20 - {{ id: frames, kind: immediate, from: camera.out, to: detect.in, \
         policy: {{ mode: queue, capacity: 2, overflow: drop_oldest }} }}\n"
    );
    let registry = Registry::new().register::<Burst>().register::<Sink>();
    let file = GraphFile::parse("t.yaml", &text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = file.compile(&registry).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let run = graph.start(time.system(), RunOptions::until_stopped()).unwrap();
    let target = Target::of_system(time.system());
    target.add_graph("cell", &run);
    (time, target, run)
}

/// A graph as [`cell`] makes it, ten times per second, and who has looked at it for a while.
fn edge(n: u64) -> (ManualTime, Target, Watcher) {
    let (time, target, _run) = cell(n, 100);
    let watcher = Watcher::new(&target);
    for _ in 0..6 {
        time.advance(Duration::from_secs(1));
        look(&watcher);
    }
    (time, target, watcher)
}

#[test]
fn s09_names_an_edge_that_drops_messages() {
    let (_time, target, _watcher) = edge(5);
    let found = first(&target, "S09");
    assert_eq!(found.subject, "cell/frames");
    assert!(found.text.contains("dropped"), "{}", found.text);
    let view = inspect::graph(&target, "cell").unwrap();
    assert!(view.graph.is_running && view.graph.epochs_rate.or_zero() > 5.0, "{view:?}");
    let frames = &view.edges[0];
    assert!(frames.drops.or_zero() >= 10.0 && frames.depth.is_unknown(), "{frames:?}");
    assert_eq!(view.components.len(), 2);
    assert!(inspect::graph(&target, "other").is_none());
    assert_eq!(inspect::graphs(&target).rows.len(), 1);
}

#[test]
fn a_slow_graph_runs_until_it_has_ended() {
    let (time, target, run) = cell(1, 2_000);
    let is_running = || inspect::graphs(&target).rows[0].is_running;
    assert!(is_running(), "without a watcher, too");
    let watcher = Watcher::new(&target);
    for n in 0..40 {
        time.advance(Duration::from_millis(250));
        look(&watcher);
        assert!(is_running(), "{n}");
        assert!(inspect::graph(&target, "cell").unwrap().graph.is_running, "{n}");
    }
    run.stop();
    time.settle();
    assert!(!is_running());
}

#[test]
fn an_edge_that_has_room_is_no_finding() {
    let (_time, target, _watcher) = edge(2);
    assert_eq!(inspect::findings(&target).rows, []);
}

#[test]
fn thresholds_are_those_of_the_target() {
    let time = ManualTime::start();
    let target = Target::of_system(time.system());
    let mut thresholds = Thresholds::default();
    thresholds.restarts_per_minute = 0;
    target.set_thresholds(thresholds.clone());
    assert_eq!(target.clone().thresholds(), thresholds);
    let watcher = Watcher::new(&target);
    let feed = time.spawn("feed", Props::new(|| Shop).supervise(Strategy::restart()));
    feed.tell(true).unwrap();
    seconds(&time, &watcher, 1);
    assert_eq!(first(&target, "S04").subject, "/user/feed");
    drop(time.take_failures());
}
