//! Clockjack's own actors, on a runtime with one worker or with two.

use alloc::sync::Arc;
use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, Write};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure as ActorFailure, Limits, Next as After, Props,
    ReplyTo,
};
use clockjack_rt::{Runtime, RuntimeConfig};

use super::part::{Next, Part};
use super::subject::{ActorRuntime, Mailbox, Side, Subject, Threads};
use crate::report::{Facts, Standing};

/// Every load waits until its actors have stopped, so this deadline is never reached.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// A typical value. Every question is answered, so the time-out never expires.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Room for a tree of a million leaves and for a million messages in one mailbox.
const LIMITS: Limits = Limits::DEFAULT.processes(1 << 21).messages(1 << 21);

/// The names of the children of an actor.
const CHILD_NAMES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[derive(Clone)]
pub(crate) struct Clockjack {
    system: ActorSystem,
    /// How many actors the driver has named.
    n_named: Arc<AtomicU64>,
}

/// The actor that runs a part.
struct Host<P>(P);

pub(crate) enum Mail<P: Part<Clockjack>> {
    Tell(P::Message),
    Ask(P::Question, ReplyTo<u64>),
}

impl<P: Part<Clockjack>> Actor for Host<P> {
    type Msg = Mail<P>;

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<After, ActorFailure> {
        self.0.member().started();
        Ok(After::Stay)
    }

    fn receive(
        &mut self,
        context: &mut Context<'_, Self>,
        mail: Mail<P>,
    ) -> Result<After, ActorFailure> {
        let part = &mut self.0;
        let message = match mail {
            Mail::Tell(message) => message,
            Mail::Ask(question, reply_to) => {
                reply_to.reply(part.answer(question));
                return Ok(After::Stay);
            }
        };
        match part.receive(message) {
            Next::Stay => {}
            Next::Tell(to, message) => tell::<P>(to, message),
            Next::TellAndLeave(to, message) => {
                tell::<P>(to, message);
                return Ok(After::Stop);
            }
            Next::Leave => return Ok(After::Stop),
            Next::Spawn(n_children) => {
                for (index, name) in (0..n_children).zip(CHILD_NAMES) {
                    let (child, _) = part.child(index);
                    let child = context.spawn_child(name, factory(Host(child))).ok();
                    let child = child.expect("there is room for the tree");
                    tell::<P>(&child, part.greeting(&child));
                }
            }
        }
        Ok(After::Stay)
    }
}

/// The factory of an actor that is never restarted.
pub(crate) fn factory<A: Send + 'static>(actor: A) -> impl FnMut() -> A + Send + 'static {
    let mut actor = Some(actor);
    move || actor.take().expect("no actor fails, so none is restarted")
}

impl Clockjack {
    /// Calls `spawn` with an unused name.
    pub(crate) fn with_name<R>(&self, spawn: impl FnOnce(&ActorSystem, &str) -> R) -> R {
        // Relaxed: the numbers only have to be distinct.
        let number = self.n_named.fetch_add(1, Ordering::Relaxed);
        let mut room = [0; 16];
        let mut rest = &mut room[..];
        write!(rest, "{number:x}").expect("a number has at most sixteen digits");
        let n_free = rest.len();
        let name = str::from_utf8(&room[..room.len() - n_free]).expect("digits are UTF-8");
        spawn(&self.system, name)
    }
}

fn tell<P: Part<Clockjack>>(to: &ActorRef<Mail<P>>, message: P::Message) {
    let sent = to.tell(Mail::Tell(message));
    assert!(sent.is_ok(), "no message is sent to a stopped actor");
}

impl Subject for Clockjack {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-actor"),
        standing: Standing::Ours,
        note: "children are supervised, and each question has a time-out",
    };

    type Ref<P: Part<Self>> = ActorRef<Mail<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, mailbox: Mailbox, _: Side) -> ActorRef<Mail<P>> {
        let factory = factory(Host(part));
        let spawned = self.with_name(|system, name| match mailbox {
            Mailbox::Usual => system.spawn(name, factory).ok(),
            Mailbox::Unbounded => {
                let mailbox = clockjack_actor::Mailbox::unbounded();
                system.spawn(name, Props::new(factory).mailbox(mailbox)).ok()
            }
            Mailbox::Bounded(most) => {
                let mailbox = clockjack_actor::Mailbox::bounded(most);
                system.spawn(name, Props::new(factory).mailbox(mailbox)).ok()
            }
        });
        spawned.expect("the name is unused and there is room")
    }

    async fn tell<P: Part<Self>>(to: &ActorRef<Mail<P>>, message: P::Message) {
        tell::<P>(to, message);
    }

    async fn send<P: Part<Self>>(to: &ActorRef<Mail<P>>, message: P::Message) {
        let sent = to.send(Mail::Tell(message)).await;
        assert!(sent.is_ok(), "no message is sent to a stopped actor");
    }

    async fn ask<P: Part<Self>>(to: &ActorRef<Mail<P>>, question: P::Question) -> u64 {
        let answer = to.ask(|reply_to| Mail::Ask(question, reply_to), ASK_TIMEOUT).await;
        answer.expect("no question is sent to a stopped actor")
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<ActorRef<Mail<P>>>) {
        for actor in &all {
            self.system.stop(actor).expect("the driver started it");
        }
    }
}

impl ActorRuntime for Clockjack {
    fn run<F>(
        threads: Threads,
        root: impl FnOnce(Self) -> F + Send + 'static,
    ) -> io::Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let n_workers = match threads {
            Threads::One => 1,
            Threads::Two => 2,
        };
        let config = RuntimeConfig { workers: Some(n_workers), ..RuntimeConfig::DEFAULT };
        let runtime = Runtime::start_with(ActorSystem::builder("compare").limits(LIMITS), config);
        let runtime = runtime.map_err(io::Error::other)?;
        let subject = Self { system: runtime.system().clone(), n_named: Arc::default() };
        let joined = runtime.block_on(runtime.pool().spawn_future(root(subject)));
        drop(runtime.shutdown(STOP_DEADLINE));
        Ok(joined.expect("no load panics or is cancelled"))
    }

    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static, _: Side) {
        drop(clockjack_rt::spawn_future(task));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        clockjack_rt::yield_now()
    }
}
