//! Children that ask a parent which stops at that moment, and asks that take too long.

use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, ReplyTo},
};
use clockjack_testing::InTime;

use crate::eventually::eventually;
use crate::in_time::ShutdownInTime as _;

/// Longer than any test is waited for.
const LONG: Duration = Duration::from_secs(3_600);

enum Msg {
    Question(ReplyTo<u32>),
    Stop,
}

/// Keeps the questions of its children, and answers none.
struct Parent {
    kept: Vec<ReplyTo<u32>>,
    asked: Arc<AtomicUsize>,
}

impl Actor for Parent {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        for name in ["x", "y", "z"] {
            let (parent, asked) = (cx.self_ref(), Arc::clone(&self.asked));
            let child = move || Child { parent: parent.clone(), asked: Arc::clone(&asked) };
            cx.spawn_child(name, child)?.tell(())?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Question(to) => self.kept.push(to),
            Msg::Stop => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }
}

/// Asks again and again, and waits for each answer.
struct Child {
    parent: ActorRef<Msg>,
    asked: Arc<AtomicUsize>,
}

impl Actor for Child {
    type Msg = ();

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.asked.fetch_add(1, SeqCst);
        let ask = self.parent.ask(Msg::Question, LONG);
        cx.wait(ask, |_, cx, answer| {
            assert!(answer.is_err(), "nobody answers");
            cx.self_ref().tell(())?;
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    }
}

#[test]
fn children_that_ask_their_stopping_parent_hold_nobody_up() {
    let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    for round in 0..300 {
        let asked = Arc::new(AtomicUsize::new(0));
        let to = Arc::clone(&asked);
        let make = move || Parent { kept: Vec::new(), asked: Arc::clone(&to) };
        let parent = rt.spawn(&format!("p{round}"), make).unwrap();
        // Before the children have asked, while they do, and after it.
        eventually("enough have asked", || asked.load(SeqCst) >= round % 4);
        parent.tell(Msg::Stop).unwrap();
        eventually("it has stopped", || parent.is_stopped());
    }
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}

/// A question that is answered, or kept for ever.
enum Maybe {
    Answered(ReplyTo<u32>),
    Kept(ReplyTo<u32>),
}

#[test]
fn a_time_out_is_neither_early_nor_lost_behind_asks_with_other_time_outs() {
    let config = RuntimeConfig { workers: Some(1), ..RuntimeConfig::DEFAULT };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let kept = Arc::new(Mutex::new(Vec::new()));
    let sometimes = Props::from_fn(move |_, question: Maybe| {
        match question {
            Maybe::Answered(to) => to.reply(7),
            Maybe::Kept(to) => kept.lock().unwrap().push(to),
        }
        Ok(Next::Stay)
    });
    let asked = rt.spawn("sometimes", sometimes).unwrap();
    let asks = rt.pool().spawn_future(async move {
        let (short, middle) = (Duration::from_millis(3), Duration::from_millis(10));
        // The asks before leave timers for later than the next wants, and for earlier.
        for before in [LONG, middle, short] {
            for limit in [middle, short] {
                assert_eq!(asked.ask(Maybe::Answered, before).await.ok(), Some(7));
                let begun = Instant::now();
                let refused = asked.ask(Maybe::Kept, limit).await.unwrap_err();
                assert!(refused.is_timed_out(), "{refused}");
                assert!(begun.elapsed() >= limit, "{limit:?} behind {before:?}");
            }
        }
    });
    rt.block_on(asks).unwrap();
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
