//! Hand-written actors: one tokio task with an unbounded channel per actor; a timer is a task that
//! sleeps and sends, cancelled by its `JoinHandle`.

use core::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::subject::{Mail, Subject};
use super::tasks::{Handles, SendAfter, TaskTimers};
use super::user::{After, TimerUser};
use crate::actors::subject::Side;
use crate::actors::tokio::TokioMpsc;
use crate::report::{Facts, Standing};

impl SendAfter for UnboundedSender<Mail> {
    type Output = ();

    fn send_after(&self, delay: Duration, mail: Mail) -> JoinHandle<()> {
        let own = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            assert!(own.send(mail).is_ok(), "an actor stops after its last timer");
        })
    }
}

async fn act(
    mut user: TimerUser,
    own: UnboundedSender<Mail>,
    mut mailbox: UnboundedReceiver<Mail>,
) {
    let mut handles = Handles::default();
    user.started();
    while let Some(mail) = mailbox.recv().await {
        let mut timers = TaskTimers { own: &own, handles: &mut handles };
        if user.receive(mail, &mut timers) == After::Stop {
            return;
        }
    }
}

impl Subject for TokioMpsc {
    const FACTS: Facts = Facts {
        name: "tokio-mpsc",
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "no actor crate: a task and a channel per actor, a task with `sleep` per timer, \
               aborted by its `JoinHandle`",
    };

    type Ref = UnboundedSender<Mail>;

    async fn start(&self, user: TimerUser, _: Side) -> UnboundedSender<Mail> {
        let (own, mailbox) = unbounded_channel();
        drop(tokio::spawn(act(user, own.clone(), mailbox)));
        own
    }

    async fn send(to: &UnboundedSender<Mail>, mail: Mail) {
        assert!(to.send(mail).is_ok(), "an actor stops after its last message");
    }
}
