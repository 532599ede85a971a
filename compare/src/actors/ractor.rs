//! ractor on tokio.

use core::marker::PhantomData;

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::on_tokio::OnTokio;
use super::part::{Next, Part};
use super::subject::{Load, Mailbox, Side, Subject};
use crate::report::{Facts, Standing};

#[derive(Clone, Copy)]
pub(crate) struct Ractor;

impl OnTokio for Ractor {
    const SELF: Self = Self;
}

/// The actor that runs a part; the part is its state.
struct Host<P>(PhantomData<fn() -> P>);

pub(crate) enum Mail<P: Part<Ractor>> {
    Tell(P::Message),
    Ask(P::Question, RpcReplyPort<u64>),
}

impl<P: Part<Ractor>> Actor for Host<P> {
    type Msg = Mail<P>;
    type State = P;
    type Arguments = P;

    async fn pre_start(&self, _: ActorRef<Mail<P>>, part: P) -> Result<P, ActorProcessingErr> {
        part.member().started();
        Ok(part)
    }

    async fn handle(
        &self,
        own: ActorRef<Mail<P>>,
        mail: Mail<P>,
        part: &mut P,
    ) -> Result<(), ActorProcessingErr> {
        let message = match mail {
            Mail::Tell(message) => message,
            Mail::Ask(question, port) => {
                port.send(part.answer(question)).expect("the asking task waits for the answer");
                return Ok(());
            }
        };
        match part.receive(message) {
            Next::Stay => {}
            Next::Tell(to, message) => cast::<P>(to, message),
            Next::TellAndLeave(to, message) => {
                cast::<P>(to, message);
                own.stop(None);
            }
            Next::Leave => own.stop(None),
            Next::Spawn(n_children) => {
                for index in 0..n_children {
                    let (child, side) = part.child(index);
                    // Boxed, because a future cannot contain itself.
                    let child = Box::pin(Ractor.spawn(child, Mailbox::Usual, side)).await;
                    cast::<P>(&child, part.greeting(&child));
                }
            }
        }
        Ok(())
    }
}

fn cast<P: Part<Ractor>>(to: &ActorRef<Mail<P>>, message: P::Message) {
    let cast = to.cast(Mail::Tell(message));
    assert!(cast.is_ok(), "no message is sent to a stopped actor");
}

impl Subject for Ractor {
    const FACTS: Facts = Facts {
        name: "ractor",
        package: Some("ractor"),
        standing: Standing::Rival,
        note: "has no bounded mailboxes: its allocations are those of an unbounded one",
    };

    const LACKS: &'static [Load] = &[Load::TellBounded];

    type Ref<P: Part<Self>> = ActorRef<Mail<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, _: Mailbox, _: Side) -> ActorRef<Mail<P>> {
        let spawned = Actor::spawn(None, Host(PhantomData), part).await;
        spawned.expect("no part fails to start").0
    }

    async fn tell<P: Part<Self>>(to: &ActorRef<Mail<P>>, message: P::Message) {
        cast::<P>(to, message);
    }

    async fn send<P: Part<Self>>(to: &ActorRef<Mail<P>>, message: P::Message) {
        cast::<P>(to, message);
    }

    async fn ask<P: Part<Self>>(to: &ActorRef<Mail<P>>, question: P::Question) -> u64 {
        match to.call(|port| Mail::Ask(question, port), None).await {
            Ok(CallResult::Success(answer)) => answer,
            _ => panic!("no question is sent to a stopped actor"),
        }
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<ActorRef<Mail<P>>>) {
        for actor in &all {
            actor.stop(None);
        }
    }
}
