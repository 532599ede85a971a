//! Hand-written actors: one tokio task with a tokio channel per actor.

use tokio::sync::{mpsc, oneshot};

use super::on_tokio::OnTokio;
use super::part::{Next, Part};
use super::subject::{Mailbox, Side, Subject};
use crate::report::{Facts, Standing};

#[derive(Clone, Copy)]
pub(crate) struct TokioMpsc;

impl OnTokio for TokioMpsc {
    const SELF: Self = Self;
}

pub(crate) enum Mail<P: Part<TokioMpsc>> {
    Tell(P::Message),
    Ask(P::Question, oneshot::Sender<u64>),
}

/// The sending end of either channel.
pub(crate) enum Sender<T> {
    Unbounded(mpsc::UnboundedSender<T>),
    Bounded(mpsc::Sender<T>),
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Unbounded(sender) => Self::Unbounded(sender.clone()),
            Self::Bounded(sender) => Self::Bounded(sender.clone()),
        }
    }
}

impl<T> Sender<T> {
    fn tell(&self, mail: T) {
        let sent = match self {
            Self::Unbounded(sender) => sender.send(mail).is_ok(),
            Self::Bounded(sender) => sender.try_send(mail).is_ok(),
        };
        assert!(sent, "no message is sent to a stopped actor");
    }

    async fn send(&self, mail: T) {
        let sent = match self {
            Self::Unbounded(sender) => sender.send(mail).is_ok(),
            Self::Bounded(sender) => sender.send(mail).await.is_ok(),
        };
        assert!(sent, "no message is sent to a stopped actor");
    }
}

/// Whether an actor continues.
enum After {
    Stay,
    Leave,
}

fn handle<P: Part<TokioMpsc>>(part: &mut P, mail: Mail<P>) -> After {
    let message = match mail {
        Mail::Tell(message) => message,
        Mail::Ask(question, reply_to) => {
            reply_to.send(part.answer(question)).expect("the asking task waits for the answer");
            return After::Stay;
        }
    };
    match part.receive(message) {
        Next::Stay => {}
        Next::Tell(to, message) => to.tell(Mail::Tell(message)),
        Next::TellAndLeave(to, message) => {
            to.tell(Mail::Tell(message));
            return After::Leave;
        }
        Next::Leave => return After::Leave,
        Next::Spawn(n_children) => {
            for index in 0..n_children {
                let (child, _) = part.child(index);
                let child = start(child, Mailbox::Usual);
                child.tell(Mail::Tell(part.greeting(&child)));
            }
        }
    }
    After::Stay
}

fn start<P: Part<TokioMpsc>>(mut part: P, mailbox: Mailbox) -> Sender<Mail<P>> {
    match mailbox {
        Mailbox::Usual | Mailbox::Unbounded => {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            tokio::spawn(async move {
                part.member().started();
                while let Some(mail) = receiver.recv().await {
                    if matches!(handle(&mut part, mail), After::Leave) {
                        break;
                    }
                }
            });
            Sender::Unbounded(sender)
        }
        Mailbox::Bounded(most) => {
            let (sender, mut receiver) = mpsc::channel(most);
            tokio::spawn(async move {
                part.member().started();
                while let Some(mail) = receiver.recv().await {
                    if matches!(handle(&mut part, mail), After::Leave) {
                        break;
                    }
                }
            });
            Sender::Bounded(sender)
        }
    }
}

impl Subject for TokioMpsc {
    const FACTS: Facts = Facts {
        name: "tokio-mpsc",
        package: Some("tokio"),
        standing: Standing::Reference,
        note: "no actor crate: a task and a channel per actor, `oneshot` for answers",
    };

    type Ref<P: Part<Self>> = Sender<Mail<P>>;

    async fn spawn<P: Part<Self>>(&self, part: P, mailbox: Mailbox, _: Side) -> Sender<Mail<P>> {
        start(part, mailbox)
    }

    async fn tell<P: Part<Self>>(to: &Sender<Mail<P>>, message: P::Message) {
        to.tell(Mail::Tell(message));
    }

    async fn send<P: Part<Self>>(to: &Sender<Mail<P>>, message: P::Message) {
        to.send(Mail::Tell(message)).await;
    }

    async fn ask<P: Part<Self>>(to: &Sender<Mail<P>>, question: P::Question) -> u64 {
        let (reply_to, answer) = oneshot::channel();
        to.send(Mail::Ask(question, reply_to)).await;
        answer.await.expect("no question is sent to a stopped actor")
    }

    async fn stop<P: Part<Self>>(&self, all: Vec<Sender<Mail<P>>>) {
        // An actor stops when its last sender is dropped.
        drop(all);
    }
}
