//! The address that the answer to a request is sent to.

use core::{any::type_name, fmt, fmt::Write as _};

use crate::{
    ActorPath,
    ask::slot::{ReleasedReplySlot, Replier},
    cell::header::AnyActor,
    events::DeadLetterReason,
};

/// The right and the duty to answer a request, once.
///
/// It is a part of the request. If it is dropped, the asker is notified at once that there will be
/// no answer.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Actor, Context, Failure, Next, ReplyTo};
///
/// enum Msg {
///     Add(u64),
///     Sum(ReplyTo<u64>),
/// }
///
/// struct Adder(u64);
///
/// impl Actor for Adder {
///     type Msg = Msg;
///
///     fn receive(&mut self, _: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
///         match msg {
///             Msg::Add(n) => self.0 += n,
///             Msg::Sum(to) => to.reply(self.0),
///         }
///         Ok(Next::Stay)
///     }
/// }
/// ```
#[must_use = "dropped, it tells the asker that there will be no answer"]
pub struct ReplyTo<R> {
    replier: Replier<R, AnyActor>,
}

impl<R> ReplyTo<R> {
    pub(crate) fn new(replier: Replier<R, AnyActor>) -> Self {
        Self { replier }
    }

    /// Whether an asker waits for the answer. Once false, it stays false.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.replier.is_wanted()
    }
}

impl<R: 'static> ReplyTo<R> {
    /// Answers. If nobody waits for the answer any more, it becomes a dead letter.
    pub fn reply(self, answer: R) {
        if let Err((answer, late)) = self.replier.reply(answer) {
            let system = late.owner().system();
            system.dead_letter::<R>(&path_of(&late), DeadLetterReason::LateReply);
            drop(late);
            drop(answer);
        }
    }

    /// Answers, if an asker waits for the answer.
    ///
    /// # Errors
    ///
    /// Returns the answer if the ask was cancelled: it timed out, or its future was dropped.
    pub fn try_reply(self, answer: R) -> Result<(), R> {
        self.replier.reply(answer).map_err(|(answer, _late)| answer)
    }
}

/// The path of the asker: a temporary one for this ask alone.
fn path_of(late: &ReleasedReplySlot<AnyActor>) -> ActorPath {
    let (number, uses) = late.name();
    let mut name = alloc::string::String::new();
    // Writing to a text does not fail.
    let _ = write!(name, "ask-{number}.{uses}");
    ActorPath::root().child("temp").child(&name)
}

impl<R> fmt::Debug for ReplyTo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyTo")
            .field("answer", &type_name::<R>())
            .field("is_wanted", &self.is_wanted())
            .finish()
    }
}
