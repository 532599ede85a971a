//! xtra on tokio.

use xtra::prelude::{Actor, Address, Context, Handler};

use super::on_tokio::OnTokio;
use super::part::{Next, Part};
use super::subject::{Mailbox, Side, Subject};
use crate::report::{Facts, Standing};

#[derive(Clone, Copy)]
pub(crate) struct Xtra;

impl OnTokio for Xtra {
    const SELF: Self = Self;
}

/// The actor that runs a part.
pub(crate) struct Host<P>(P);

struct TellMsg<M>(M);
struct AskMsg<Q>(Q);

impl<P: Part<Xtra>> Actor for Host<P> {
    type Stop = ();

    async fn started(&mut self, _: &xtra::Mailbox<Self>) -> Result<(), ()> {
        self.0.member().started();
        Ok(())
    }

    async fn stopped(self) {}
}

impl<P: Part<Xtra>> Handler<TellMsg<P::Message>> for Host<P> {
    type Return = ();

    async fn handle(&mut self, message: TellMsg<P::Message>, context: &mut Context<Self>) {
        let part = &mut self.0;
        match part.receive(message.0) {
            Next::Stay => {}
            Next::Tell(to, message) => Xtra::tell::<P>(to, message).await,
            Next::TellAndLeave(to, message) => {
                Xtra::tell::<P>(to, message).await;
                context.stop_self();
            }
            Next::Leave => context.stop_self(),
            Next::Spawn(n_children) => {
                for index in 0..n_children {
                    let (child, _) = part.child(index);
                    let child = spawn(child, Mailbox::Usual);
                    Xtra::tell::<P>(&child, part.greeting(&child)).await;
                }
            }
        }
    }
}

impl<P: Part<Xtra>> Handler<AskMsg<P::Question>> for Host<P> {
    type Return = u64;

    async fn handle(&mut self, asked: AskMsg<P::Question>, _: &mut Context<Self>) -> u64 {
        self.0.answer(asked.0)
    }
}

fn spawn<P: Part<Xtra>>(part: P, mailbox: Mailbox) -> Address<Host<P>> {
    let mailbox = match mailbox {
        Mailbox::Usual | Mailbox::Unbounded => xtra::Mailbox::unbounded(),
        Mailbox::Bounded(most) => xtra::Mailbox::bounded(most),
    };
    xtra::spawn_tokio(Host(part), mailbox)
}

impl Subject for Xtra {
    const FACTS: Facts = Facts {
        name: "xtra",
        package: Some("xtra"),
        standing: Standing::Rival,
        note: "does not keep the order of messages: its mailbox is a heap without sequence numbers",
    };

    type Ref<P: Part<Self>> = Address<Host<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, mailbox: Mailbox, _: Side) -> Address<Host<P>> {
        spawn(part, mailbox)
    }

    async fn tell<P: Part<Self>>(to: &Address<Host<P>>, message: P::Message) {
        let sent = to.send(TellMsg(message)).detach().await;
        assert!(sent.is_ok(), "no message is sent to a stopped actor");
    }

    async fn send<P: Part<Self>>(to: &Address<Host<P>>, message: P::Message) {
        Self::tell::<P>(to, message).await;
    }

    async fn ask<P: Part<Self>>(to: &Address<Host<P>>, question: P::Question) -> u64 {
        to.send(AskMsg(question)).await.expect("no question is sent to a stopped actor")
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<Address<Host<P>>>) {
        // An actor stops when its last address is dropped.
        drop(all);
    }
}
