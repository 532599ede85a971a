//! kameo: `tell(..).send_after`, a tokio task, cancelled by its `JoinHandle`.

use core::time::Duration;

use kameo::error::{Infallible, SendError};
use kameo::mailbox;
use kameo::prelude::{Actor, ActorRef, Context, Message, Spawn};
use tokio::task::JoinHandle;

use super::subject::{Mail, Subject};
use super::tasks::{Handles, SendAfter, TaskTimers};
use super::user::{After, TimerUser};
use crate::actors::kameo::Kameo;
use crate::actors::subject::Side;
use crate::report::{Facts, Standing};

pub(crate) struct Host {
    user: TimerUser,
    handles: Handles<JoinHandle<Result<(), SendError<Mail>>>>,
}

impl Actor for Host {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(host: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        host.user.started();
        Ok(host)
    }
}

impl Message<Mail> for Host {
    type Reply = ();

    async fn handle(&mut self, mail: Mail, context: &mut Context<Self, ()>) {
        let mut timers = TaskTimers { own: context.actor_ref(), handles: &mut self.handles };
        if self.user.receive(mail, &mut timers) == After::Stop {
            context.stop();
        }
    }
}

impl SendAfter for ActorRef<Host> {
    type Output = Result<(), SendError<Mail>>;

    fn send_after(&self, delay: Duration, mail: Mail) -> JoinHandle<Self::Output> {
        self.tell(mail).send_after(delay)
    }
}

impl Subject for Kameo {
    const FACTS: Facts = Facts {
        name: "kameo",
        package: Some("kameo"),
        standing: Standing::Rival,
        note: "`tell(..).send_after`, one tokio task per timer, aborted by its `JoinHandle`; \
               without its feature `tracing`",
    };

    type Ref = ActorRef<Host>;

    async fn start(&self, user: TimerUser, _: Side) -> ActorRef<Host> {
        let host = Host { user, handles: Handles::default() };
        Host::spawn_with_mailbox(host, mailbox::unbounded())
    }

    async fn send(to: &ActorRef<Host>, mail: Mail) {
        assert!(to.tell(mail).await.is_ok(), "an actor stops after its last message");
    }
}
