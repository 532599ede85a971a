//! ractor: `send_after`, a tokio task, cancelled by its `JoinHandle`.

use core::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use tokio::task::JoinHandle;

use super::subject::{Mail, Subject};
use super::tasks::{Handles, SendAfter, TaskTimers};
use super::user::{After, TimerUser};
use crate::actors::ractor::Ractor;
use crate::actors::subject::Side;
use crate::report::{Facts, Standing};

struct Host;

struct State {
    user: TimerUser,
    handles: Handles<JoinHandle<Result<(), MessagingErr<Mail>>>>,
}

impl Actor for Host {
    type Msg = Mail;
    type State = State;
    type Arguments = TimerUser;

    async fn pre_start(
        &self,
        _: ActorRef<Mail>,
        user: TimerUser,
    ) -> Result<State, ActorProcessingErr> {
        user.started();
        Ok(State { user, handles: Handles::default() })
    }

    async fn handle(
        &self,
        own: ActorRef<Mail>,
        mail: Mail,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let mut timers = TaskTimers { own: &own, handles: &mut state.handles };
        if state.user.receive(mail, &mut timers) == After::Stop {
            own.stop(None);
        }
        Ok(())
    }
}

impl SendAfter for ActorRef<Mail> {
    type Output = Result<(), MessagingErr<Mail>>;

    fn send_after(&self, delay: Duration, mail: Mail) -> JoinHandle<Self::Output> {
        Self::send_after(self, delay, || mail)
    }
}

impl Subject for Ractor {
    const FACTS: Facts = Facts {
        name: "ractor",
        package: Some("ractor"),
        standing: Standing::Rival,
        note: "`send_after`, one tokio task per timer, aborted by its `JoinHandle`",
    };

    type Ref = ActorRef<Mail>;

    async fn start(&self, user: TimerUser, _: Side) -> ActorRef<Mail> {
        Actor::spawn(None, Host, user).await.expect("no actor fails to start").0
    }

    async fn send(to: &ActorRef<Mail>, mail: Mail) {
        assert!(to.cast(mail).is_ok(), "an actor stops after its last message");
    }
}
