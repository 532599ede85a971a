//! Clockjack's own timers: `Context::timers`, with keys.

use core::time::Duration;

use clockjack_actor::{Actor, ActorRef, Context, Failure as ActorFailure, Next};

use super::subject::{Mail, Subject, Timers};
use super::user::{After, TimerUser};
use crate::actors::clockjack::{Clockjack, factory};
use crate::actors::subject::Side;
use crate::report::{Facts, Standing};

struct Host(TimerUser);

impl Actor for Host {
    type Msg = Mail;

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, ActorFailure> {
        self.0.started();
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, mail: Mail) -> Result<Next, ActorFailure> {
        Ok(match self.0.receive(mail, cx) {
            After::Stay => Next::Stay,
            After::Stop => Next::Stop,
        })
    }
}

impl Timers for Context<'_, Host> {
    fn arm(&mut self, key: u32, delay: Duration, mail: Mail) {
        let armed = self.timers().single(u64::from(key), delay, mail);
        assert!(armed.is_ok(), "a scheduler has room for a million timers");
    }

    fn cancel(&mut self, key: u32) {
        let was_active = self.timers().cancel(u64::from(key));
        assert!(was_active, "what is cancelled is armed and far from due");
    }

    fn fired(&mut self, _key: u32) {
        // The key was free before the handler was called.
    }
}

impl Subject for Clockjack {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-actor"),
        standing: Standing::Ours,
        note: "`cx.timers().single(key, ..)` and `cancel(key)` on a `Runtime`, ticks of 1 ms; \
               what was cancelled or replaced never arrives",
    };

    type Ref = ActorRef<Mail>;

    async fn start(&self, user: TimerUser, _: Side) -> ActorRef<Mail> {
        let started = self.with_name(|system, name| system.spawn(name, factory(Host(user))).ok());
        started.expect("the name is unused and there is room")
    }

    async fn send(to: &ActorRef<Mail>, mail: Mail) {
        assert!(to.tell(mail).is_ok(), "an actor stops after its last message");
    }
}
