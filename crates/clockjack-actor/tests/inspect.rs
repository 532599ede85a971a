//! What actors do, read from outside.

use core::{future::pending, time::Duration};
use std::sync::Arc;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, AskError, Backoff, Context, Failure, Mailbox, Next, Props,
    ReplyTo, RootContext, Scope, Strategy, SystemBuilder, inspect::ActorStage,
};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::{ManualClock, Resolution};

/// A system in virtual time, and its clock.
fn start(builder: SystemBuilder) -> (RootContext, Arc<ManualClock>) {
    let (host, clock) = ByHand::new(Resolution::MILLI);
    (RootContext::new(host, builder).expect("it fits"), clock)
}

const SECOND: Duration = Duration::from_secs(1);

/// What a test tells an actor to do.
enum Order {
    Nothing,
    Fail,
    WaitForEver,
    Ask(ActorRef<Self>),
    Asked(ReplyTo<u32>),
    Spawn(&'static str),
}

struct Worker;

impl Actor for Worker {
    type Msg = Order;

    fn receive(&mut self, cx: &mut Context<'_, Self>, order: Order) -> Result<Next, Failure> {
        match order {
            Order::Nothing => {}
            Order::Asked(reply_to) => reply_to.reply(7),
            Order::Fail => return Err(Failure::msg("told to fail")),
            Order::WaitForEver => cx.wait(pending(), |_: &mut Self, _, ()| Next::Stay)?,
            Order::Ask(other) => {
                let ask = other.ask(Order::Asked, SECOND);
                cx.wait(ask, |_: &mut Self, _, _: Result<u32, AskError>| Next::Stay)?;
            }
            Order::Spawn(name) => {
                cx.spawn_child(name, Props::new(|| Self))?;
            }
        }
        Ok(Next::Stay)
    }
}

fn stage(root: &RootContext, path: &str) -> Option<ActorStage> {
    root.system().inspect_path(path, |actor| actor.stage())
}

#[test]
fn the_stage_of_an_actor_is_visible() {
    let strategy = Strategy::restart().backoff(Backoff::new(SECOND, SECOND));
    let users = ActorSystem::builder("t").supervise_users(Scope::OneForOne, strategy);
    let (mut root, clock) = start(users);
    let a = root.spawn("a", Props::new(|| Worker)).unwrap();
    let of = |root: &RootContext| stage(root, "/user/a");
    root.run_until_idle();
    assert_eq!(of(&root), Some(ActorStage::Idle));
    a.tell(Order::Nothing).unwrap();
    assert_eq!(of(&root), Some(ActorStage::Queued));
    root.run_until_idle();
    a.tell(Order::Fail).unwrap();
    root.run_until_idle();
    assert_eq!(of(&root), Some(ActorStage::Restarting), "its back-off has begun");
    let restarts = |root: &RootContext| root.system().inspect_path("/user/a", |a| a.restarts());
    assert_eq!(restarts(&root), Some(0));
    clock.advance(2 * SECOND);
    root.run_until_idle();
    assert_eq!((of(&root), restarts(&root)), (Some(ActorStage::Idle), Some(1)));
    a.tell(Order::WaitForEver).unwrap();
    a.tell(Order::Nothing).unwrap();
    root.run_until_idle();
    assert_eq!(of(&root), Some(ActorStage::Waiting));
    root.system().stop(&a).unwrap();
    assert_eq!(of(&root), Some(ActorStage::Stopping));
    root.run_until_idle();
    assert_eq!(of(&root), None);
}

#[test]
fn positions_and_refusals_of_a_mailbox_are_visible() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let a = root.spawn("a", Props::new(|| Worker).mailbox(Mailbox::bounded(3))).unwrap();
    root.run_until_idle();
    let read = |root: &RootContext| {
        root.system().inspect_path("/user/a", |a| (a.mailbox(), a.positions(), a.refused()))
    };
    assert_eq!(read(&root), Some(((0, 3), (0, 0), 0)));
    for _ in 0..3 {
        a.tell(Order::Nothing).unwrap();
    }
    assert!(a.tell(Order::Nothing).is_err());
    assert_eq!(read(&root), Some(((3, 3), (3, 0), 1)));
    root.run_until_idle();
    assert_eq!(read(&root), Some(((0, 3), (3, 3), 1)));
}

#[test]
fn children_are_read_page_by_page_and_each_once() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let names: Vec<String> = (0..600).map(|n| format!("c{n:03}")).collect();
    let parent = root.spawn("p", Props::new(|| Worker)).unwrap();
    for name in &names {
        parent.tell(Order::Spawn(Box::leak(name.clone().into_boxed_str()))).unwrap();
    }
    root.run_until_idle();
    let page = |skip, n| {
        let mut found = Vec::new();
        let more = root.system().inspect_children("/user/p", skip, n, |child| {
            found.push(child.path().name().to_owned());
        });
        (found, more)
    };
    for (skip, n) in [(0, 600), (0, 250), (250, 250), (500, 250), (256, 256), (600, 9), (7, 0)] {
        let (found, more) = page(skip, n);
        let end = (skip + n).min(600);
        assert_eq!(found, names[skip..end], "{skip}, {n}");
        assert_eq!(more, Some(end < 600), "{skip}, {n}");
    }
    assert_eq!(root.system().inspect_children("/user/q", 0, 9, |_| {}), None);
    assert_eq!(root.system().inspect_path("/user/p", |p| p.n_children()), Some(600));
}

#[test]
fn a_walk_in_slices_finds_each_actor_of_the_system_once_and_nothing_else() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let parent = root.spawn("p", Props::new(|| Worker)).unwrap();
    for n in 0..100 {
        let name: &'static str = Box::leak(format!("c{n}").into_boxed_str());
        parent.tell(Order::Spawn(name)).unwrap();
    }
    let executor = root.system().executor();
    root.run_until_idle();
    let (mut found, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        next = root.system().inspect_slots(&executor, from, 7, |actor| {
            found.push(actor.path().to_string());
        });
    }
    let mut tree: Vec<String> = root.system().tree().iter().map(ToString::to_string).collect();
    found.sort();
    tree.sort();
    assert_eq!(found, tree);
}

#[test]
fn an_ask_is_visible_as_long_as_its_answer_is_awaited() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let [a, b] = ["a", "b"].map(|name| root.spawn(name, Props::new(|| Worker)).unwrap());
    b.tell(Order::WaitForEver).unwrap();
    root.run_until_idle();
    a.tell(Order::Ask(b)).unwrap();
    root.run_until_idle();
    let executors = [root.system().executor()];
    let asks = |root: &RootContext| {
        let asks = root.system().inspect_asks(&executors, 256);
        let text = |ask: &clockjack_actor::inspect::OpenAsk| {
            format!(
                "{} {}",
                ask.from.as_ref().map_or_else(String::new, ToString::to_string),
                ask.to
            )
        };
        asks.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(asks(&root), ["/user/a /user/b"]);
    assert_eq!(root.system().inspect_asks(&executors, 0).len(), 0);
    clock.advance(2 * SECOND);
    root.run_until_idle();
    assert_eq!(asks(&root), Vec::<String>::new());
}

#[test]
fn supervisors_are_listed_from_the_root_down() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let parent = root.spawn("p", Props::new(|| Worker)).unwrap();
    parent.tell(Order::Spawn("c")).unwrap();
    root.run_until_idle();
    let chain = root.system().inspect_supervisors("/user/p/c");
    let paths: Vec<&str> = chain.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["/", "/user", "/user/p", "/user/p/c"]);
}
