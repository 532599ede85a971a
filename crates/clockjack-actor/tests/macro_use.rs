//! `#[actor]` together with the crate for which it generates code.

#[path = "support/bench.rs"]
mod bench;
#[path = "support/pause.rs"]
mod pause;

use bench::{Log, start};
use clockjack_actor::{ActorSystem, Context, Failure, Next, Props, Signal, Strategy};
use clockjack_macros::actor;
use pause::pause;

struct Clerk {
    log: Log,
    n: u32,
}

#[actor]
impl Clerk {
    #[started]
    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        self.log.add(format!("{} begins", cx.path()));
    }

    /// Increments the counter.
    #[msg]
    fn inc(&mut self, by: u32) {
        self.n += by;
        self.log.add(format!("n {}", self.n));
    }

    /// Increments the counter after a while, during which it handles nothing else.
    #[msg]
    async fn inc_later(&mut self, by: u32) {
        let before = self.n;
        pause().await;
        assert_eq!(self.n, before, "nobody else had the actor");
        self.n += by;
        self.log.add(format!("later {}", self.n));
    }

    #[msg]
    async fn check_later(&mut self, at_most: u32) -> Result<(), Failure> {
        pause().await;
        if self.n <= at_most { Ok(()) } else { Err(Failure::msg("too many")) }
    }

    #[msg]
    async fn finish_later(&mut self) -> Next {
        pause().await;
        Next::Stop
    }

    #[msg]
    #[control]
    fn urgent(&mut self) {
        self.log.add("urgent");
    }

    #[msg]
    fn check(&mut self, at_most: u32) -> Result<(), Failure> {
        if self.n <= at_most { Ok(()) } else { Err(Failure::msg("too many")) }
    }

    #[msg]
    fn finish(&mut self) -> Result<Next, Failure> {
        Ok(Next::Stop)
    }

    #[signal]
    fn on_signal(&mut self, signal: Signal) {
        self.log.add(format!("{signal:?}"));
    }
}

fn clerk(log: &Log) -> impl FnMut() -> Clerk + Send + use<> {
    let log = log.clone();
    move || Clerk { log: log.clone(), n: 0 }
}

#[test]
fn methods_are_sent_and_handled() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", clerk(&log)).unwrap();
    actor.inc(1).unwrap();
    actor.tell(ClerkMsg::Inc { by: 2 }).unwrap();
    actor.urgent().unwrap();
    actor.finish().unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a begins", "urgent", "n 1", "n 3", "PostStop"]);
    assert!(actor.inc(1).unwrap_err().is_stopped());
}

#[test]
fn async_methods_have_the_actor_to_themselves() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let actor = root.spawn("a", clerk(&log)).unwrap();
    actor.inc_later(5).unwrap();
    actor.inc(1).unwrap();
    actor.inc_later(5).unwrap();
    actor.finish_later().unwrap();
    actor.inc(1).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["/user/a begins", "later 5", "n 6", "later 11", "PostStop"]);
}

#[test]
fn failures_of_methods_are_failures_of_the_actor() {
    for fail in [ClerkMsg::Check { at_most: 0 }, ClerkMsg::CheckLater { at_most: 0 }] {
        let (mut root, _) = start(ActorSystem::builder("t"));
        let log = Log::default();
        let props = Props::new(clerk(&log)).supervise(Strategy::restart());
        let actor = root.spawn("a", props).unwrap();
        actor.inc(1).unwrap();
        actor.tell(fail).unwrap();
        actor.inc(1).unwrap();
        root.run_until_idle();
        let restarted = ["/user/a begins", "n 1", "PreRestart", "/user/a begins", "n 1"];
        assert_eq!(log.take(), restarted);
    }
}
