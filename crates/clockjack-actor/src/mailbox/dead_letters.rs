//! The dead-letter reference: every message sent to it is reported as a dead letter.
//!
//! The reference points to the guardian `/system` and is mapped, so that only the type of a message
//! arrives there; the sender drops the message itself. So messages of any type can be sent without
//! boxing.

use core::any::{TypeId, type_name};

use crate::{Actor, ActorPath, ActorRef, Context, DeadLetterReason, Failure, Next, Signal};

/// The name under the root that dead letters report as their recipient.
const NAME: &str = "$dead-letters";

/// The type of a message that was sent to the dead letters.
pub(crate) struct DeadLetterInfo {
    message_type: &'static str,
    id: TypeId,
}

impl DeadLetterInfo {
    fn of<M: 'static>(msg: M) -> Self {
        drop(msg);
        Self { message_type: type_name::<M>(), id: TypeId::of::<M>() }
    }
}

/// The guardian `/system`: the parent of the actors that the system itself needs.
pub(crate) struct SystemGuardian;

impl Actor for SystemGuardian {
    type Msg = DeadLetterInfo;

    fn receive(
        &mut self,
        cx: &mut Context<'_, Self>,
        info: DeadLetterInfo,
    ) -> Result<Next, Failure> {
        let recipient = ActorPath::root().child(NAME);
        let reason = DeadLetterReason::Addressed;
        cx.system().inner().dead_letter_of(&recipient, info.message_type, info.id, reason);
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// The dead-letter reference for messages of type `M`.
pub(crate) fn address<M: 'static>(guardian: &ActorRef<DeadLetterInfo>) -> ActorRef<M> {
    guardian.map(DeadLetterInfo::of::<M>)
}
