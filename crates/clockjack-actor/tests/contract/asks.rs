//! Answers that may be errors, and a parent that stops.

use core::{
    pin::Pin,
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Next, Props, ReplyTo, Signal,
};

use crate::bench::{Log, start};

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn a_status_is_its_value_or_the_error_that_its_text_says() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let props = Props::from_fn(|_, (n, to): (u32, ReplyTo<Result<u32, Failure>>)| {
        to.reply(if n == 0 { Err(Failure::msg("nothing to halve")) } else { Ok(n / 2) });
        Ok(Next::Stay)
    });
    let halves = root.spawn("halves", props).unwrap();
    let half = halves.ask_with_status(|to| (8, to), LONG);
    assert_eq!(root.block_on(half).unwrap(), 4);
    let none = halves.ask_with_status(|to| (0, to), LONG);
    assert_eq!(root.block_on(none).unwrap_err().to_string(), "nothing to halve");
}

type Question = ReplyTo<u32>;

/// Has a child that asks it, and never answers.
struct Parent {
    log: Log,
    kept: Vec<Question>,
}

struct Child {
    log: Log,
    parent: ActorRef<Option<Question>>,
}

impl Child {
    /// The immediate result of an ask to the parent.
    fn ask(&self, when: &str) {
        let mut ask = self.parent.ask(Some, LONG);
        let polled = Pin::new(&mut ask).poll(&mut TaskContext::from_waker(Waker::noop()));
        self.log.add(match polled {
            Poll::Ready(Err(error)) if error.is_stopped() => format!("{when}: told at once"),
            other => format!("{when}: {other:?}"),
        });
    }
}

impl Actor for Child {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        // It waits for an answer until it stops.
        let ask = self.parent.ask(Some, LONG);
        cx.wait(ask, |child, _, answer| {
            child.log.add(format!("answered: {answer:?}"));
            Ok(Next::Stay)
        })?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            self.ask("in its last hook");
        }
        Ok(Next::Stay)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.ask("in its drop");
    }
}

impl Actor for Parent {
    type Msg = Option<Question>;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let (log, parent) = (self.log.clone(), cx.self_ref());
        cx.spawn_child("child", move || Child { log: log.clone(), parent: parent.clone() })?;
        Ok(Next::Stay)
    }

    fn receive(
        &mut self,
        _: &mut Context<'_, Self>,
        msg: Option<Question>,
    ) -> Result<Next, Failure> {
        match msg {
            Some(question) => self.kept.push(question),
            None => return Ok(Next::Stop),
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_child_that_asks_its_stopping_parent_is_told_at_once_and_holds_nobody_up() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let to = log.clone();
    let parent =
        root.spawn("parent", move || Parent { log: to.clone(), kept: Vec::new() }).unwrap();
    root.run_until_idle();
    parent.tell(None).unwrap();
    root.run_until_idle();
    assert!(parent.is_stopped());
    assert_eq!(log.take(), ["in its last hook: told at once", "in its drop: told at once"]);
}
