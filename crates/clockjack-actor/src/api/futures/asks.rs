//! Asks of an actor whose answers arrive as messages.
//!
//! # Order
//!
//! If one actor asks another actor several times and that actor answers in some order, then the
//! answers arrive in that order. Futures are polled in the order in which they were woken, and an
//! answer wakes its future. But the first poll of a future happens without a wake-up, and may find
//! an answer before other futures are polled whose answers came earlier. So an ask that finds its
//! answer in the first poll wakes itself and waits for the next poll:
//!
//! 1. An answer that arrives after the first poll wakes the future when the answer is stored.
//! 2. An answer that arrived before the first poll causes a wake-up in the first poll. Every future
//!    that was answered before was woken before: by rule 1, because its answer was complete; or by
//!    this rule, if its first poll was before this one, which is so if it was asked before.

use core::{
    pin::Pin,
    task::{self, Poll},
    time::Duration,
};

use clockjack_exec::Failure;

use super::{slots::Exclusivity, task::Then};
use crate::{
    Actor, ActorError, ActorRef, Ask, AskError, AskWithStatus, Context, Next, ReplyTo,
    events::DeadLetterReason, send::Enqueued,
};

impl<A: Actor> Context<'_, A> {
    /// Asks and continues with other messages; the answer arrives as a message. `map` makes this
    /// message from the answer, or from the error if there is none.
    ///
    /// The actor itself calls `map`, between two messages, so `map` may access the actor and change
    /// it. Its message then goes to the end of the mailbox like any other; if the mailbox is full,
    /// it waits for room there. An error that `map` returns, or a panic in it, is a failure of the
    /// actor.
    ///
    /// The ask counts as a [future](crate::Props::futures_max) of this incarnation of the actor
    /// until `map` was called, and is cancelled with it: on a stop and on a restart. An actor may
    /// ask itself.
    ///
    /// To get a callback with the answer instead, or if the answer is not `Send`, pass
    /// [`ActorRef::ask`] to [`spawn_future`](Self::spawn_future) or
    /// [`spawn_local_future`](Self::spawn_local_future).
    ///
    /// # Errors
    ///
    /// Returns `map`, and does not call `request`: if too many futures are running, if the actor
    /// stops, or if there is no room in a sealed system. An error of the ask itself is passed to
    /// `map`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{Actor, ActorRef, AskError, Context, Failure, Next, ReplyTo};
    /// # use core::time::Duration;
    /// enum Db {
    ///     Find(u32, ReplyTo<String>),
    /// }
    ///
    /// enum Msg {
    ///     Look(u32),
    ///     Found(u32, Result<String, AskError>),
    /// }
    ///
    /// struct Client {
    ///     db: ActorRef<Db>,
    /// }
    ///
    /// impl Actor for Client {
    ///     type Msg = Msg;
    ///
    ///     fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
    ///         match msg {
    ///             Msg::Look(id) => cx.ask(
    ///                 &self.db,
    ///                 |to| Db::Find(id, to),
    ///                 Duration::from_millis(200),
    ///                 move |_me, found| Ok(Msg::Found(id, found)),
    ///             )?,
    ///             Msg::Found(id, host) => println!("{id}: {host:?}"),
    ///         }
    ///         Ok(Next::Stay)
    ///     }
    /// }
    /// ```
    pub fn ask<M, R, F, T>(
        &mut self,
        target: &ActorRef<M>,
        request: F,
        timeout: Duration,
        map: T,
    ) -> Result<(), ActorError<T>>
    where
        M: 'static,
        R: Send + 'static,
        F: FnOnce(ReplyTo<R>) -> M,
        T: FnOnce(&mut A, Result<R, AskError>) -> Result<A::Msg, Failure> + Send + 'static,
    {
        self.ask_by(request, map, |request| target.ask(request, timeout))
    }

    /// As [`ask`](Self::ask), for answers that may be failures: `map` gets an answered failure and
    /// an error of the ask alike as a [`Failure`], as with
    /// [`ActorRef::ask_with_status`](ActorRef::ask_with_status).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ask_with_status<M, R, F, T>(
        &mut self,
        target: &ActorRef<M>,
        request: F,
        timeout: Duration,
        map: T,
    ) -> Result<(), ActorError<T>>
    where
        M: 'static,
        R: Send + 'static,
        F: FnOnce(ReplyTo<Result<R, Failure>>) -> M,
        T: FnOnce(&mut A, Result<R, Failure>) -> Result<A::Msg, Failure> + Send + 'static,
    {
        self.ask_by(request, map, |request| target.ask_with_status(request, timeout))
    }

    /// Asks, if the future can be started.
    fn ask_by<F, T, Q>(
        &mut self,
        request: F,
        map: T,
        ask: impl FnOnce(F) -> Q,
    ) -> Result<(), ActorError<T>>
    where
        Q: Asking + 'static,
        T: FnOnce(&mut A, Q::Output) -> Result<A::Msg, Failure> + 'static,
    {
        if let Some(kind) =
            self.refusal::<Then<Mapped<Q, T>, Deliver<A, Q, T>>>(Exclusivity::Shared)
        {
            return Err(ActorError::new(kind, map));
        }
        let deliver: Deliver<A, Q, T> = deliver::<A, Q, T>;
        let future = Mapped { ask: ask(request), was_polled: false, answer: None, map: Some(map) };
        self.begin_allowed(future, deliver, Exclusivity::Shared);
        Ok(())
    }
}

/// The futures of asks.
trait Asking: Future + Unpin {}

impl<R> Asking for Ask<R> {}
impl<R> Asking for AskWithStatus<R> {}

/// An ask, together with the function that makes a message of its answer.
struct Mapped<Q: Future, T> {
    ask: Q,
    was_polled: bool,
    /// The answer, if the first poll has found it.
    answer: Option<Q::Output>,
    map: Option<T>,
}

impl<Q: Asking, T> Unpin for Mapped<Q, T> {}

impl<Q: Asking, T> Future for Mapped<Q, T> {
    type Output = (Q::Output, T);

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let answer = match this.answer.take() {
            Some(answer) => answer,
            None => match Pin::new(&mut this.ask).poll(cx) {
                Poll::Ready(answer) if this.was_polled => answer,
                Poll::Ready(answer) => {
                    this.was_polled = true;
                    this.answer = Some(answer);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => {
                    this.was_polled = true;
                    return Poll::Pending;
                }
            },
        };
        Poll::Ready((answer, this.map.take().expect("polled after it was ready")))
    }
}

/// The type of [`deliver`].
type Deliver<A, Q, T> =
    fn(&mut A, &mut Context<'_, A>, (<Q as Future>::Output, T)) -> Result<Next, Failure>;

/// Makes a message of an answer, and puts it into the mailbox.
fn deliver<A, Q, T>(
    me: &mut A,
    cx: &mut Context<'_, A>,
    (answer, map): (Q::Output, T),
) -> Result<Next, Failure>
where
    A: Actor,
    Q: Asking,
    T: FnOnce(&mut A, Q::Output) -> Result<A::Msg, Failure>,
{
    let to = cx.self_ref();
    if let Err(refused) = to.offer(map(me, answer)?) {
        enqueue_or_discard(&to, refused.is_full(), refused.into_inner());
    }
    Ok(Next::Stay)
}

/// Lets a message wait for room in the actor's own mailbox; if that is not possible, it is a dead
/// letter.
#[cold]
fn enqueue_or_discard<M: 'static>(to: &ActorRef<M>, is_full: bool, message: M) {
    let system = to.any().system();
    let mut back: Option<M> = None;
    // Waiting needs memory.
    let enqueued = if !is_full {
        back = Some(message);
        Enqueued::Stopped
    } else if system.is_sealed() {
        back = Some(message);
        Enqueued::Full
    } else {
        // No future polls for it, as for a request.
        to.wait_for_room(to.waiting_message(message), true, &mut back)
    };
    let reason = match enqueued {
        Enqueued::Sent | Enqueued::Waits(_) => return,
        Enqueued::Full => DeadLetterReason::MailboxFull,
        Enqueued::Stopped => DeadLetterReason::Stopped,
    };
    system.dead_letter::<M>(&to.any().path, reason);
    drop(back);
}
