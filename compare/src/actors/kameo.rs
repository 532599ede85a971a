//! kameo on tokio.

use kameo::error::Infallible;
use kameo::mailbox;
use kameo::prelude::{Actor, ActorRef, Context, Message, Spawn};

use super::on_tokio::OnTokio;
use super::part::{Next, Part};
use super::subject::{Mailbox, Side, Subject};
use crate::report::{Facts, Standing};

#[derive(Clone, Copy)]
pub(crate) struct Kameo;

impl OnTokio for Kameo {
    const SELF: Self = Self;
}

/// The actor that runs a part.
pub(crate) struct Host<P>(P);

struct TellMsg<M>(M);
struct AskMsg<Q>(Q);

impl<P: Part<Kameo>> Actor for Host<P> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(host: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        host.0.member().started();
        Ok(host)
    }
}

impl<P: Part<Kameo>> Message<TellMsg<P::Message>> for Host<P> {
    type Reply = ();

    async fn handle(&mut self, message: TellMsg<P::Message>, context: &mut Context<Self, ()>) {
        let part = &mut self.0;
        match part.receive(message.0) {
            Next::Stay => {}
            Next::Tell(to, message) => Kameo::tell::<P>(to, message).await,
            Next::TellAndLeave(to, message) => {
                Kameo::tell::<P>(to, message).await;
                context.stop();
            }
            Next::Leave => context.stop(),
            Next::Spawn(n_children) => {
                for index in 0..n_children {
                    let (child, _) = part.child(index);
                    let child = spawn(child, Mailbox::Usual);
                    Kameo::tell::<P>(&child, part.greeting(&child)).await;
                }
            }
        }
    }
}

impl<P: Part<Kameo>> Message<AskMsg<P::Question>> for Host<P> {
    type Reply = u64;

    async fn handle(&mut self, asked: AskMsg<P::Question>, _: &mut Context<Self, u64>) -> u64 {
        self.0.answer(asked.0)
    }
}

fn spawn<P: Part<Kameo>>(part: P, mailbox: Mailbox) -> ActorRef<Host<P>> {
    let mailbox = match mailbox {
        Mailbox::Usual | Mailbox::Unbounded => mailbox::unbounded(),
        Mailbox::Bounded(most) => mailbox::bounded(most),
    };
    Host::spawn_with_mailbox(Host(part), mailbox)
}

impl Subject for Kameo {
    const FACTS: Facts = Facts {
        name: "kameo",
        package: Some("kameo"),
        standing: Standing::Rival,
        note: "without its feature `tracing`; `tell(..).await` boxes a future",
    };

    type Ref<P: Part<Self>> = ActorRef<Host<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, mailbox: Mailbox, _: Side) -> ActorRef<Host<P>> {
        spawn(part, mailbox)
    }

    async fn tell<P: Part<Self>>(to: &ActorRef<Host<P>>, message: P::Message) {
        let sent = to.tell(TellMsg(message)).await;
        assert!(sent.is_ok(), "no message is sent to a stopped actor");
    }

    async fn send<P: Part<Self>>(to: &ActorRef<Host<P>>, message: P::Message) {
        Self::tell::<P>(to, message).await;
    }

    async fn ask<P: Part<Self>>(to: &ActorRef<Host<P>>, question: P::Question) -> u64 {
        let answer = to.ask(AskMsg(question)).await.ok();
        answer.expect("no question is sent to a stopped actor")
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<ActorRef<Host<P>>>) {
        for actor in &all {
            actor.stop_gracefully().await.expect("it is stopped once");
        }
    }
}
