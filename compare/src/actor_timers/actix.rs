//! actix: `notify_later`, a future in the context of the actor, cancelled by its `SpawnHandle`.

use core::time::Duration;

use actix::prelude::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, SpawnHandle,
};

use super::subject::{Mail, Subject, Timers};
use super::tasks::Handles;
use super::user::{After, TimerUser};
use crate::actors::actix::{Actix, start_on};
use crate::actors::subject::Side;
use crate::report::{Facts, Standing};

pub(crate) struct Host {
    user: TimerUser,
    handles: Handles<SpawnHandle>,
}

impl Message for Mail {
    type Result = ();
}

impl Actor for Host {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.user.started();
    }
}

impl Handler<Mail> for Host {
    type Result = ();

    fn handle(&mut self, mail: Mail, context: &mut Context<Self>) {
        let mut timers = ContextTimers { context, handles: &mut self.handles };
        if self.user.receive(mail, &mut timers) == After::Stop {
            context.stop();
        }
    }
}

struct ContextTimers<'a> {
    context: &'a mut Context<Host>,
    handles: &'a mut Handles<SpawnHandle>,
}

impl Timers for ContextTimers<'_> {
    fn arm(&mut self, key: u32, delay: Duration, mail: Mail) {
        let handle = self.context.notify_later(mail, delay);
        if let Some(old) = self.handles.replace(key, handle) {
            self.context.cancel_future(old);
        }
    }

    fn cancel(&mut self, key: u32) {
        if let Some(handle) = self.handles.take(key) {
            self.context.cancel_future(handle);
        }
    }

    fn fired(&mut self, key: u32) {
        self.handles.take(key);
    }
}

impl Subject for Actix {
    const FACTS: Facts = Facts {
        name: "actix",
        package: Some("actix"),
        standing: Standing::Rival,
        note: "`notify_later` and `cancel_future`; actors do not move: the driver's thread and one \
               arbiter share them; each wake-up of an actor polls all of its timers",
    };

    type Ref = Addr<Host>;

    async fn start(&self, user: TimerUser, side: Side) -> Addr<Host> {
        start_on(side, move |_| Host { user, handles: Handles::default() })
    }

    async fn send(to: &Addr<Host>, mail: Mail) {
        to.do_send(mail);
    }
}
