//! A stand-in for `clockjack-actor`: the types that generated code names, and a [`Stage`] that the
//! test drives. It has two message kinds and one future at a time, and nothing else of the real
//! crate.

#![expect(unreachable_pub, reason = "this module replaces a crate")]

use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

/// Handles messages.
pub trait Actor: Sized + 'static {
    /// Its messages.
    type Msg: 'static;

    /// Runs before the first message.
    fn started(&mut self, _cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    /// Handles one message.
    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Self::Msg) -> Result<Next, Failure>;

    /// Handles one signal.
    fn signal(&mut self, _cx: &mut Context<'_, Self>, _signal: Signal) -> Result<Next, Failure> {
        Ok(Next::Unhandled)
    }
}

/// What an actor does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It continues.
    Stay,
    /// It stops.
    Stop,
    /// It did not handle the message.
    Unhandled,
}

/// What happens to an actor.
#[derive(Debug, PartialEq, Eq)]
pub enum Signal {
    /// It has stopped.
    PostStop,
}

/// Why a handler failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Refused> for Failure {
    fn from(_: Refused) -> Self {
        Failure("a future is in flight already".to_owned())
    }
}

type Lent<'a> = Pin<Box<dyn Future<Output = Result<Next, Failure>> + Send + 'a>>;
type Waiting<A> = Box<dyn for<'a> FnOnce(&'a mut A) -> Lent<'a> + Send>;

/// The operations of an actor while it handles a message.
pub struct Context<'a, A: Actor> {
    waiting: &'a mut Option<Waiting<A>>,
    target: &'a ActorRef<A::Msg>,
}

impl<A: Actor> Context<'_, A> {
    /// The actor's own ref.
    pub fn self_ref(&self) -> ActorRef<A::Msg> {
        self.target.clone()
    }

    /// Lends the actor to a future.
    pub fn wait_mut<F>(&mut self, f: F) -> Result<(), Refused>
    where
        F: for<'a> FnOnce(&'a mut A) -> Lent<'a> + Send + 'static,
    {
        if self.waiting.is_some() {
            return Err(Refused);
        }
        *self.waiting = Some(Box::new(f));
        Ok(())
    }
}

/// The actor already has a future.
#[derive(Debug)]
pub struct Refused;

/// The address of an actor.
pub struct ActorRef<M> {
    lanes: Arc<Mutex<Lanes<M>>>,
}

struct Lanes<M> {
    control: VecDeque<M>,
    user: VecDeque<M>,
    is_stopped: bool,
}

impl<M> Clone for ActorRef<M> {
    fn clone(&self) -> Self {
        ActorRef { lanes: Arc::clone(&self.lanes) }
    }
}

impl<M: 'static> ActorRef<M> {
    /// Sends a message.
    pub fn tell(&self, msg: M) -> Result<(), SendError<M>> {
        let mut lanes = self.lanes.lock().unwrap();
        if lanes.is_stopped {
            return Err(SendError(msg));
        }
        lanes.user.push_back(msg);
        Ok(())
    }

    /// Sends a message that is handled before all others.
    pub fn tell_control(&self, msg: M) -> Result<(), SendError<M>> {
        let mut lanes = self.lanes.lock().unwrap();
        if lanes.is_stopped {
            return Err(SendError(msg));
        }
        lanes.control.push_back(msg);
        Ok(())
    }

    /// Sends a message that is answered.
    pub fn ask<R, F: FnOnce(ReplyTo<R>) -> M>(&self, request: F, timeout: Duration) -> Ask<R> {
        let slot = Arc::new(Mutex::new(None));
        let msg = request(ReplyTo { slot: Arc::clone(&slot) });
        // Refused or not, a dropped message drops its `ReplyTo`, which notifies the asker.
        drop(self.tell(msg));
        Ask { slot, timeout }
    }
}

/// The error contains the message.
pub struct SendError<M>(pub M);

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError")
    }
}

/// The address of an answer.
pub struct ReplyTo<R> {
    slot: Arc<Mutex<Option<R>>>,
}

impl<R> ReplyTo<R> {
    /// Sends the answer.
    pub fn reply(self, answer: R) {
        *self.slot.lock().unwrap() = Some(answer);
    }
}

/// A future answer.
#[must_use]
pub struct Ask<R> {
    slot: Arc<Mutex<Option<R>>>,
    /// The timeout of the call.
    pub timeout: Duration,
}

impl<R> Ask<R> {
    /// The answer, if it has arrived.
    pub fn answer(&self) -> Option<R> {
        self.slot.lock().unwrap().take()
    }

    /// Whether no answer can arrive any more.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }
}

/// The support code of generated code: the file of the real crate.
#[path = "../../../clockjack-actor/src/generated.rs"]
pub mod generated;

/// Polls of one future, before it counts as stuck.
const POLLS_MAX: usize = 100;

/// An actor and its mailbox, driven by the test.
pub struct Stage<A: Actor> {
    /// The actor.
    pub actor: A,
    /// Its ref.
    pub target: ActorRef<A::Msg>,
}

impl<A: Actor> Stage<A> {
    /// An actor that has not started.
    pub fn new(actor: A) -> Self {
        let lanes = Lanes { control: VecDeque::new(), user: VecDeque::new(), is_stopped: false };
        Stage { actor, target: ActorRef { lanes: Arc::new(Mutex::new(lanes)) } }
    }

    /// Runs the hook `started`.
    pub fn start(&mut self) -> Result<Next, Failure> {
        self.turn(|actor, cx| actor.started(cx))
    }

    /// Runs the hook `signal`.
    pub fn signal(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.turn(|actor, cx| actor.signal(cx, signal))
    }

    /// Handles one message.
    pub fn handle(&mut self) -> Option<Result<Next, Failure>> {
        let msg = {
            let mut lanes = self.target.lanes.lock().unwrap();
            let first = lanes.control.pop_front();
            first.or_else(|| lanes.user.pop_front())
        };
        msg.map(|msg| self.turn(|actor, cx| actor.receive(cx, msg)))
    }

    /// Handles all messages, none of which may fail or stop the actor.
    pub fn run(&mut self) {
        while let Some(outcome) = self.handle() {
            assert_eq!(outcome, Ok(Next::Stay));
        }
    }

    /// Takes no more messages.
    pub fn stop(&mut self) {
        self.target.lanes.lock().unwrap().is_stopped = true;
    }

    fn turn(
        &mut self,
        f: impl FnOnce(&mut A, &mut Context<'_, A>) -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let mut waiting = None;
        let mut cx = Context { waiting: &mut waiting, target: &self.target };
        let outcome = f(&mut self.actor, &mut cx);
        match waiting {
            Some(waiting) => finish(waiting(&mut self.actor)),
            None => outcome,
        }
    }
}

fn finish<T>(mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> T {
    let mut cx = TaskContext::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
    panic!("still pending after {POLLS_MAX} polls");
}
