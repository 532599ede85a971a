//! actix: actors stay on the thread that started them: here that of the system or, with two
//! threads, also that of one arbiter.

use core::cell::RefCell;
use core::future::Future;
use std::io;

use actix::prelude::{
    Actor, ActorContext, Addr, Arbiter, ArbiterHandle, Context, Handler, Message, SendError, System,
};

use super::part::{Next, Part};
use super::subject::{ActorRuntime, Mailbox, Side, Subject, Threads};
use crate::report::{Facts, Standing};

thread_local! {
    /// On the driver's thread: the second arbiter, if there is one.
    static THERE: RefCell<Option<ArbiterHandle>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy)]
pub(crate) struct Actix;

/// The actor that runs a part.
pub(crate) struct Host<P>(P);

struct TellMsg<M>(M);
struct AskMsg<Q>(Q);
struct Stop;

impl<M: 'static> Message for TellMsg<M> {
    type Result = ();
}

impl<Q: 'static> Message for AskMsg<Q> {
    type Result = u64;
}

impl Message for Stop {
    type Result = ();
}

impl<P: Part<Actix>> Actor for Host<P> {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.0.member().started();
    }
}

impl<P: Part<Actix>> Handler<TellMsg<P::Message>> for Host<P> {
    type Result = ();

    fn handle(&mut self, message: TellMsg<P::Message>, context: &mut Context<Self>) {
        let part = &mut self.0;
        match part.receive(message.0) {
            Next::Stay => {}
            Next::Tell(to, message) => to.do_send(TellMsg(message)),
            Next::TellAndLeave(to, message) => {
                to.do_send(TellMsg(message));
                context.stop();
            }
            Next::Leave => context.stop(),
            Next::Spawn(n_children) => {
                for index in 0..n_children {
                    let (child, side) = part.child(index);
                    let child = start(child, Mailbox::Usual, side);
                    child.do_send(TellMsg(part.greeting(&child)));
                }
            }
        }
    }
}

impl<P: Part<Actix>> Handler<AskMsg<P::Question>> for Host<P> {
    type Result = u64;

    fn handle(&mut self, asked: AskMsg<P::Question>, _: &mut Context<Self>) -> u64 {
        self.0.answer(asked.0)
    }
}

impl<P: Part<Actix>> Handler<Stop> for Host<P> {
    type Result = ();

    fn handle(&mut self, _: Stop, context: &mut Context<Self>) {
        context.stop();
    }
}

/// The arbiter of this side, or `None` if that is the calling thread.
fn arbiter(side: Side) -> Option<ArbiterHandle> {
    match side {
        Side::Here => None,
        Side::There => THERE.with_borrow(Clone::clone),
    }
}

fn start<P: Part<Actix>>(part: P, mailbox: Mailbox, side: Side) -> Addr<Host<P>> {
    let host = move |context: &mut Context<Host<P>>| {
        // `do_send` ignores the bound.
        if let Mailbox::Bounded(most) = mailbox {
            context.set_mailbox_capacity(most);
        }
        Host(part)
    };
    start_on(side, host)
}

/// Starts the actor that `make` creates on the thread of this side.
pub(crate) fn start_on<A: Actor<Context = Context<A>>>(
    side: Side,
    make: impl FnOnce(&mut Context<A>) -> A + Send + 'static,
) -> Addr<A> {
    match arbiter(side) {
        Some(arbiter) => A::start_in_arbiter(&arbiter, make),
        None => A::create(make),
    }
}

impl Subject for Actix {
    const FACTS: Facts = Facts {
        name: "actix",
        package: Some("actix"),
        standing: Standing::Rival,
        note: "actors do not move: the driver's thread and one arbiter share the loads of two \
               threads; a full mailbox is tried again after a yield",
    };

    type Ref<P: Part<Self>> = Addr<Host<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, mailbox: Mailbox, side: Side) -> Addr<Host<P>> {
        start(part, mailbox, side)
    }

    async fn tell<P: Part<Self>>(to: &Addr<Host<P>>, message: P::Message) {
        to.do_send(TellMsg(message));
    }

    async fn send<P: Part<Self>>(to: &Addr<Host<P>>, message: P::Message) {
        let mut message = TellMsg(message);
        loop {
            match to.try_send(message) {
                Ok(()) => return,
                Err(SendError::Full(back)) => message = back,
                Err(SendError::Closed(_)) => {
                    panic!("no message is sent to a stopped actor")
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn ask<P: Part<Self>>(to: &Addr<Host<P>>, question: P::Question) -> u64 {
        to.send(AskMsg(question)).await.expect("no question is sent to a stopped actor")
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<Addr<Host<P>>>) {
        for actor in &all {
            actor.do_send(Stop);
        }
    }
}

impl ActorRuntime for Actix {
    fn run<F>(
        threads: Threads,
        root: impl FnOnce(Self) -> F + Send + 'static,
    ) -> io::Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let system = System::new();
        let (output, there) = system.block_on(async move {
            let there = (threads == Threads::Two).then(Arbiter::new);
            THERE.set(there.as_ref().map(Arbiter::handle));
            let output = root(Self).await;
            THERE.set(None);
            (output, there)
        });
        if let Some(there) = there {
            there.stop();
            there.join().expect("no load panics");
        }
        Ok(output)
    }

    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static, side: Side) {
        match arbiter(side) {
            Some(arbiter) => assert!(arbiter.spawn(task), "the arbiter outlives the load"),
            None => drop(actix::spawn(task)),
        }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}
