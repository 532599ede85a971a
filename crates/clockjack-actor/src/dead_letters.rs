//! The address of the dead letters: what is sent there is told as one, and handled by nobody.
//!
//! It is an address of the guardian `/system`, mapped so that only the type of a message arrives;
//! the message itself is dropped by its sender. So any type may be sent there without a box.

use core::any::{TypeId, type_name};

use crate::{Actor, ActorPath, ActorRef, Context, DeadLetterReason, Failure, Next, Signal};

/// The name below the root that such letters were addressed to.
const NAME: &str = "$dead-letters";

/// What a message that was sent to the dead letters leaves behind.
pub(crate) struct Letter {
    message_type: &'static str,
    id: TypeId,
}

impl Letter {
    fn of<M: 'static>(msg: M) -> Self {
        drop(msg);
        Self { message_type: type_name::<M>(), id: TypeId::of::<M>() }
    }
}

/// The guardian of the actors that the system itself needs.
pub(crate) struct SystemGuardian;

impl Actor for SystemGuardian {
    type Msg = Letter;

    fn receive(&mut self, cx: &mut Context<'_, Self>, letter: Letter) -> Result<Next, Failure> {
        let recipient = ActorPath::root().child(NAME);
        let reason = DeadLetterReason::Addressed;
        cx.system().inner().dead_letter_of(&recipient, letter.message_type, letter.id, reason);
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// The address for messages of this type.
pub(crate) fn address<M: 'static>(letters: &ActorRef<Letter>) -> ActorRef<M> {
    letters.map(Letter::of::<M>)
}
