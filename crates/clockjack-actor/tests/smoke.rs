//! The first steps with actors.

#[path = "support/bench.rs"]
mod bench;

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, Signal, Strategy,
};

struct Node {
    log: Log,
    below: Vec<&'static str>,
}

enum Msg {
    Say(&'static str),
    Fail,
    Panic,
    Stop,
}

impl Actor for Node {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.log.add(format!("{} started", cx.path()));
        for name in &self.below {
            let log = self.log.clone();
            cx.spawn_child(name, move || Node { log: log.clone(), below: Vec::new() })?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Say(text) => self.log.add(text),
            Msg::Fail => return Err(Failure::msg("failed")),
            Msg::Panic => panic!("panicked"),
            Msg::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.log.add(format!("{} {signal:?}", cx.path()));
        Ok(Next::Stay)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.log.add("dropped");
    }
}

#[test]
fn messages_are_handled_in_order() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let actor = root.spawn("a", move || Node { log: to.clone(), below: Vec::new() }).unwrap();
    actor.tell(Msg::Say("one")).unwrap();
    actor.tell(Msg::Say("two")).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a started", "one", "two"]);
}

#[test]
fn children_stop_before_their_parent_the_newest_first() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let actor = root.spawn("a", move || Node { log: to.clone(), below: vec!["x", "y"] }).unwrap();
    root.run_until_idle();
    log.take();
    actor.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(
        log.take(),
        [
            "/user/a/y PostStop",
            "dropped",
            "/user/a/x PostStop",
            "dropped",
            "/user/a PostStop",
            "dropped"
        ]
    );
    assert!(actor.is_stopped());
    assert!(actor.tell(Msg::Stop).unwrap_err().is_stopped());
}

#[test]
fn an_error_and_a_panic_restart_it_alike() {
    for fault in [|| Msg::Fail, || Msg::Panic] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let to = log.clone();
        let props = Props::new(move || Node { log: to.clone(), below: Vec::new() });
        let actor = root.spawn("a", props.supervise(Strategy::restart())).unwrap();
        actor.tell(fault()).unwrap();
        actor.tell(Msg::Say("after")).unwrap();
        root.run_until_idle();
        assert_eq!(
            log.take(),
            ["/user/a started", "/user/a PreRestart", "dropped", "/user/a started", "after"]
        );
    }
}

struct Watcher(Log);

impl Actor for Watcher {
    type Msg = ActorRef<Msg>;

    fn receive(&mut self, cx: &mut Context<'_, Self>, who: ActorRef<Msg>) -> Result<Next, Failure> {
        cx.watch(&who)?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::Terminated(end) = signal {
            self.0.add(format!("{} ended", end.path));
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_watcher_is_told_of_an_end_also_if_that_was_before() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (to, quiet) = (log.clone(), Log::default());
    let watcher = root.spawn("w", move || Watcher(to.clone())).unwrap();
    let actor = root.spawn("a", move || Node { log: quiet.clone(), below: Vec::new() }).unwrap();
    watcher.tell(actor.clone()).unwrap();
    root.run_until_idle();
    assert!(log.take().is_empty());
    actor.tell(Msg::Stop).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a ended"]);
    watcher.tell(actor).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a ended"]);
}

#[test]
fn a_system_terminates_and_says_so() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    root.spawn("a", move || Node { log: to.clone(), below: vec!["x"] }).unwrap();
    root.run_until_idle();
    log.take();
    let end = root.system().shutdown();
    assert!(end.report().is_none());
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean());
    assert_eq!(log.take(), ["/user/a/x PostStop", "dropped", "/user/a PostStop", "dropped"]);
}

#[test]
fn a_closure_returns_nothing_a_next_or_a_result_of_either() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let told = log.clone();
    let nothing = Props::from_fn(move |_, text: String| told.add(text));
    let told = log.clone();
    let parsed = Props::from_fn(move |_, text: String| {
        told.add(format!("{}", text.parse::<u32>()? + 1));
        Ok(())
    });
    let next = Props::from_fn(|_, _: String| Next::Stop);
    let both = Props::from_fn(|_, text: String| {
        text.parse::<u32>()?;
        Ok(Next::Stop)
    });
    let actors = [
        root.spawn("nothing", nothing).unwrap(),
        root.spawn("parsed", parsed).unwrap(),
        root.spawn("next", next).unwrap(),
        root.spawn("both", both).unwrap(),
    ];
    for actor in &actors {
        actor.tell("7".into()).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["7", "8"]);
    assert_eq!(actors.each_ref().map(ActorRef::is_stopped), [false, false, true, true]);
    actors[1].tell("no number".into()).unwrap();
    root.run_until_idle();
    assert!(actors[1].is_stopped(), "an error is a failure");
}

#[test]
fn an_actor_that_stops_itself_ends_when_its_handler_returns() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let told = log.clone();
    let actor = root
        .spawn(
            "a",
            Props::from_fn(move |cx, n: u32| {
                if n == 1 {
                    cx.stop_self();
                }
                told.add(format!("handled {n}"));
            }),
        )
        .unwrap();
    for n in 0..3 {
        actor.tell(n).unwrap();
    }
    root.run_until_idle();
    assert_eq!(log.take(), ["handled 0", "handled 1"]);
    assert!(actor.is_stopped());
}

#[test]
fn the_system_chooses_names_that_no_caller_can_choose() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let told = log.clone();
    let parent = Props::from_fn(move |cx, (): ()| {
        for _ in 0..2 {
            let child = cx.spawn_anonymous_child(Props::from_fn(|_, (): ()| ()))?;
            told.add(child.path().to_string());
        }
        Ok(())
    });
    let parent = root.system().spawn_anonymous(parent).unwrap();
    parent.tell(()).unwrap();
    root.run_until_idle();
    assert_eq!(parent.path().to_string(), "/user/$1");
    assert_eq!(log.take(), ["/user/$1/$2", "/user/$1/$3"]);
    // One that is free.
    assert!(root.spawn("$9", Props::from_fn(|_, (): ()| ())).is_err());
}
