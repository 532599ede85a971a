//! The events of actors, as the flight recorder stores them.

use clockjack_exec::Pid;
use clockjack_observe::{
    Event,
    event::{self, ActorId},
};

use crate::{
    Directive, FailureInfo,
    cell::header::ActorHeader,
    events::{DeadLetterReason, LifecycleStep},
};

pub(crate) fn id(pid: Pid) -> ActorId {
    ActorId::new(u16::try_from(pid.node()).unwrap_or(u16::MAX), pid.index())
}

pub(super) fn lifecycle(pid: Pid, header: &ActorHeader, step: LifecycleStep) -> Event {
    let actor = id(pid);
    match step {
        LifecycleStep::Started => {
            let parent = header.parent.as_ref().map_or(ActorId::NONE, |parent| id(parent.pid()));
            Event::ActorStarted { actor, parent }
        }
        LifecycleStep::Restarted => Event::ActorRestarted { actor },
        LifecycleStep::Stopped => Event::ActorStopped { actor },
    }
}

/// `None` if nobody has decided about the failure.
pub(super) fn failure(info: &FailureInfo) -> Option<Event> {
    let directive = match info.directive? {
        Directive::Resume => event::Directive::Resume,
        Directive::Restart => event::Directive::Restart,
        Directive::Stop => event::Directive::Stop,
        Directive::Escalate => event::Directive::Escalate,
    };
    Some(Event::ActorFailed { actor: id(info.actor), directive })
}

pub(super) fn dead_letter(reason: DeadLetterReason) -> Event {
    Event::DeadLettered { reason: reason.recorded() }
}
