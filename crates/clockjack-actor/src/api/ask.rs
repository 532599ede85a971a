//! The ask pattern: a message that requests an answer, and the future of the answer.
//!
//! The request is sent by the call, so it keeps its place among tells. It carries a [`ReplyTo`],
//! the replier's side of a slot that the answer is stored in. Slots are reused: an ask allocates
//! nothing once there are as many slots as are needed at a time, unless the answer is larger than
//! [`slot::INLINE_ANSWER_BYTES`] bytes.
//!
//! The timeout counts from the call and covers everything: waiting for room in the mailbox, and for
//! the answer. A timer is armed when the ask is polled and the answer is not there yet, unless the
//! timer that an earlier ask has left [serves this one too](timer).
//!
//! # Deadlock detection
//!
//! The asker is known if a future of an actor polls the ask and no other waker is in between. If
//! the actor takes no messages until that future is ready, as in [`wait`](crate::Context::wait) and
//! [`wait_mut`](crate::Context::wait_mut), then
//!
//! * an ask to itself fails at once, because the actor would never handle the request;
//! * the ask is an edge of the wait-for graph until it has an answer. When an edge closes a cycle,
//!   the system publishes [`SystemEvent::AskCycle`](crate::SystemEvent::AskCycle). Nothing else
//!   happens to the asks of a cycle: they end by their timeouts.
//!
//! Actors that continue with other messages, as in [`ask`](crate::Context::ask) and
//! [`spawn_future`](crate::Context::spawn_future), may answer each other and themselves in the
//! meantime, and are no edges. It cannot be seen that an actor has passed its [`ReplyTo`] on: that
//! actor still counts as the one that will answer. A sealed system has no graph, because the graph
//! needs memory.

// Public for the models of it.
mod error;
pub(crate) mod graph;
pub(crate) mod pool;
#[doc(hidden)]
pub mod timer;
// Public for the models of it.
#[doc(hidden)]
pub mod slot;
pub(crate) mod waiting;

use core::{
    any::type_name,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use clockjack_exec::{Failure, Handle, Sleep, TimerError, poll_leaf};
use clockjack_time::Tick;

pub use self::error::AskError;
use self::{error::AskErrorKind, slot::ReplyOutcome, waiting::PendingAsk};
use crate::{
    ActorPath, ActorRef, ReplyTo,
    cell::header::{AnyActor, STOP, STOPPED},
    events::DeadLetterReason,
    send::Enqueued,
};

impl<M: 'static> ActorRef<M> {
    /// Sends a message that requests an answer, and waits for the answer.
    ///
    /// `request` puts the [`ReplyTo`] into the message, which is sent by this call, not by the
    /// first poll. If the mailbox is full, the ask waits for room, within the same timeout.
    ///
    /// # Errors
    ///
    /// [`AskError`]: if there was no answer in time; at once, if the actor has stopped (then the
    /// message is a dead letter), stops before it handles the message, or drops the `ReplyTo`; at
    /// once, if the actor itself waits for the answer and takes no messages in the meantime; if the
    /// timeout is zero; if nothing can be allocated because the system is sealed.
    ///
    /// # Cancellation
    ///
    /// Dropping the future cancels the ask: a later answer is a dead letter. The message is handled
    /// nevertheless, unless it still waits for room.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{ActorRef, AskError, ReplyTo};
    /// # use core::time::Duration;
    /// enum Db {
    ///     Find(u32, ReplyTo<String>),
    /// }
    ///
    /// async fn find(db: &ActorRef<Db>) -> Result<String, AskError> {
    ///     db.ask(|to| Db::Find(7, to), Duration::from_millis(200)).await
    /// }
    /// ```
    pub fn ask<R, F>(&self, request: F, timeout: Duration) -> Ask<R>
    where
        F: FnOnce(ReplyTo<R>) -> M,
    {
        let (reply_to, mut ask) = self.begin_ask(timeout);
        let Some(reply_to) = reply_to else { return ask };
        let target = self.any();
        let system = target.system();
        let message = request(reply_to);
        if let Err(refused) = self.offer(message) {
            let is_full = refused.is_full();
            let refused = if is_full {
                self.enqueue_request(refused.into_inner(), &mut ask)
            } else {
                Some((refused.into_inner(), AskErrorKind::Stopped))
            };
            if let Some((message, kind)) = refused {
                let reason = match kind {
                    AskErrorKind::Stopped => DeadLetterReason::Stopped,
                    _ => DeadLetterReason::MailboxFull,
                };
                system.refused(target, kind != AskErrorKind::Stopped);
                system.dead_letter::<M>(&target.path, reason);
                // Drop the replier's side first: then the slot goes back to the pool with the
                // asker's side.
                drop(message);
                ask.state = AskState::Done;
                return ask.failed(&target.path, kind);
            }
        }
        ask.deadline = Deadline::new(system.default_executor(), timeout);
        ask
    }

    /// As [`ask`](Self::ask), for callers that send the request by themselves: returns it with the
    /// future of its answer. The timeout counts from now. Dropping the request is dropping its
    /// [`ReplyTo`].
    ///
    /// # Errors
    ///
    /// If the timeout is zero, or if nothing can be allocated because the system is sealed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{ActorRef, ReplyTo};
    /// # use core::{error::Error, time::Duration};
    /// enum Db {
    ///     Find(u32, ReplyTo<String>),
    /// }
    ///
    /// async fn find(db: &ActorRef<Db>) -> Result<String, Box<dyn Error>> {
    ///     let (request, answer) = db.unsent_ask(|to| Db::Find(7, to), Duration::from_secs(2))?;
    ///     db.send(request).await.map_err(|_| "the database has stopped")?;
    ///     Ok(answer.await?)
    /// }
    /// ```
    pub fn unsent_ask<R, F>(&self, request: F, timeout: Duration) -> Result<(M, Ask<R>), AskError>
    where
        F: FnOnce(ReplyTo<R>) -> M,
    {
        let (reply_to, mut ask) = self.begin_ask(timeout);
        match (reply_to, mem::replace(&mut ask.state, AskState::Done)) {
            (Some(reply_to), waiting) => {
                ask.state = waiting;
                ask.deadline = Deadline::new(self.any().system().default_executor(), timeout);
                Ok((request(reply_to), ask))
            }
            (None, AskState::Failed(error)) => Err(error),
            (None, _) => unreachable!("an ask without a `ReplyTo` has failed"),
        }
    }

    /// The two sides of an ask of this actor; none of the replier if the ask has failed.
    #[inline]
    fn begin_ask<R>(&self, timeout: Duration) -> (Option<ReplyTo<R>>, Ask<R>) {
        let target = self.any();
        let mut ask = Ask::new(type_name::<M>(), timeout);
        if timeout.is_zero() {
            return (None, ask.failed(&target.path, AskErrorKind::ZeroTimeout));
        }
        let system = target.system();
        let Some(slot) = system.slots().take(system.default_executor(), !system.is_sealed()) else {
            return (None, ask.failed(&target.path, AskErrorKind::Sealed));
        };
        let (asker, replier) = slot::pair(slot, target.clone());
        ask.state = AskState::Waiting(PendingAsk::new(asker));
        (Some(ReplyTo::new(replier)), ask)
    }

    /// Lets the request wait for room; returns it if that is not possible.
    #[cold]
    fn enqueue_request<R>(&self, message: M, ask: &mut Ask<R>) -> Option<(M, AskErrorKind)> {
        if self.any().system().is_sealed() {
            return Some((message, AskErrorKind::Full));
        }
        let mut back: Option<M> = None;
        match self.wait_for_room(self.waiting_message(message), true, &mut back) {
            Enqueued::Sent => {}
            Enqueued::Waits(ticket) => ask.ticket = ticket,
            Enqueued::Full => return back.map(|message| (message, AskErrorKind::Full)),
            Enqueued::Stopped => return back.map(|message| (message, AskErrorKind::Stopped)),
        }
        None
    }

    /// As [`ask`](Self::ask), for answers that may be failures: an answered failure and an error of
    /// the ask are both returned as the error.
    ///
    /// # Errors
    ///
    /// The [`Failure`] that was answered; or [`AskError`], in a `Failure`.
    pub fn ask_with_status<R, F>(&self, request: F, timeout: Duration) -> AskWithStatus<R>
    where
        F: FnOnce(ReplyTo<Result<R, Failure>>) -> M,
    {
        AskWithStatus { ask: self.ask(request, timeout) }
    }
}

/// The future of [`ActorRef::ask`].
#[must_use = "the answer is lost if nobody waits for it"]
pub struct Ask<R> {
    state: AskState<R>,
    deadline: Deadline,
    /// The ticket of the request, if it waits for room; else zero.
    ticket: u64,
    message_type: &'static str,
    timeout: Duration,
}

/// The state of an ask.
enum AskState<R> {
    Waiting(PendingAsk<R>),
    /// It failed before it was polled.
    Failed(AskError),
    Done,
}

/// When an ask times out.
enum Deadline {
    /// By a timer of its own.
    Sleep(Sleep),
    /// By the [timer] of its slot.
    SlotTimer(Tick),
    /// It failed before it was polled, or it is done.
    None,
}

impl Deadline {
    /// The timeout counts from now.
    fn new(executor: &Handle, timeout: Duration) -> Self {
        if executor.is_local() {
            Self::Sleep(executor.sleep(timeout))
        } else {
            Self::SlotTimer(executor.deadline_after(timeout))
        }
    }

    /// Whether the timeout has elapsed, for an ask that has just stored its waker.
    fn poll<R>(
        &mut self,
        waiting: &PendingAsk<R>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TimerError>> {
        match self {
            Self::Sleep(sleep) => Pin::new(sleep).poll(cx),
            Self::SlotTimer(deadline) => waiting.poll_until(*deadline),
            Self::None => Poll::Pending,
        }
    }
}

impl<R> Unpin for Ask<R> {}

impl<R> Ask<R> {
    fn new(message_type: &'static str, timeout: Duration) -> Self {
        Self { state: AskState::Done, deadline: Deadline::None, ticket: 0, message_type, timeout }
    }

    fn failed(mut self, target: &ActorPath, kind: AskErrorKind) -> Self {
        self.state = AskState::Failed(self.error_of(target, kind));
        self
    }

    #[cold]
    fn error_of(&self, target: &ActorPath, kind: AskErrorKind) -> AskError {
        AskError::new(kind, target.clone(), self.message_type, self.timeout)
    }

    /// Takes what the replier has stored.
    fn finish(&mut self, waiting: PendingAsk<R>) -> Result<R, AskError> {
        self.deadline = Deadline::None;
        // The target is cloned only if there is no answer.
        let unanswered = waiting.is_dropped().then(|| waiting.target().clone());
        match (waiting.take(), unanswered) {
            (ReplyOutcome::Answered(answer), _) => Ok(answer),
            (ReplyOutcome::Dropped, Some(target)) => Err(self.dropped_error(&target)),
            (ReplyOutcome::Dropped, None) => unreachable!("a completed slot does not change"),
        }
    }

    #[cold]
    fn dropped_error(&self, target: &AnyActor) -> AskError {
        let is_over = target.flags() & (STOP | STOPPED) != 0;
        self.error_of(
            &target.path,
            if is_over { AskErrorKind::Stopped } else { AskErrorKind::Dropped },
        )
    }

    /// Cancels the ask, unless there is an answer after all.
    fn cancel(&mut self, waiting: PendingAsk<R>, kind: AskErrorKind) -> Result<R, AskError> {
        let target = waiting.target().clone();
        self.deadline = Deadline::None;
        let completed = waiting.cancel();
        self.cancel_request(&target);
        match completed {
            None => Err(self.error_of(&target.path, kind)),
            Some(ReplyOutcome::Answered(answer)) => Ok(answer),
            Some(ReplyOutcome::Dropped) => Err(self.dropped_error(&target)),
        }
    }

    /// Removes the request if it still waits for room.
    fn cancel_request(&mut self, target: &AnyActor) {
        if self.ticket == 0 {
            return;
        }
        if let Some(waiters) = target.wait_list() {
            // Messages of an actor that stays on one thread may have to be dropped there.
            let is_local = target.handle().is_local();
            waiters.cancel_request(self.ticket, is_local);
            if is_local {
                target.wake();
            }
        }
        self.ticket = 0;
    }
}

impl<R> Future for Ask<R> {
    type Output = Result<R, AskError>;

    /// # Panics
    ///
    /// If it is polled after it was ready.
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_leaf(cx, |cx| self.get_mut().poll_answer(cx))
    }
}

impl<R> Ask<R> {
    /// As `poll`, without the budget of the task.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<R, AskError>> {
        let this = self;
        let AskState::Waiting(waiting) = &mut this.state else {
            let AskState::Failed(error) = mem::replace(&mut this.state, AskState::Done) else {
                panic!("polled after it was ready");
            };
            return Poll::Ready(Err(error));
        };
        // None if there is an answer.
        let mut kind = None;
        if !waiting.poll(cx.waker()) {
            kind = Some(match this.deadline.poll(waiting, cx) {
                Poll::Ready(Ok(())) => AskErrorKind::TimedOut,
                Poll::Ready(Err(refused)) if refused.is_closed() => AskErrorKind::Stopped,
                Poll::Ready(Err(_)) => AskErrorKind::NoTimer,
                Poll::Pending if waiting.register_edge(cx.waker()) => return Poll::Pending,
                Poll::Pending => AskErrorKind::ToItself,
            });
        }
        let AskState::Waiting(waiting) = mem::replace(&mut this.state, AskState::Done) else {
            unreachable!("the state was checked above");
        };
        Poll::Ready(match kind {
            None => this.finish(waiting),
            Some(kind) => this.cancel(waiting, kind),
        })
    }
}

impl<R> Drop for Ask<R> {
    fn drop(&mut self) {
        if let AskState::Waiting(waiting) = mem::replace(&mut self.state, AskState::Done) {
            drop(self.cancel(waiting, AskErrorKind::TimedOut));
        }
    }
}

impl<R> fmt::Debug for Ask<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("message_type", &self.message_type)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The future of [`ActorRef::ask_with_status`].
#[must_use = "the answer is lost if nobody waits for it"]
pub struct AskWithStatus<R> {
    ask: Ask<Result<R, Failure>>,
}

impl<R> Future for AskWithStatus<R> {
    type Output = Result<R, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ask).poll(cx).map(|answer| answer?)
    }
}

impl<R> fmt::Debug for AskWithStatus<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AskWithStatus").field(&self.ask).finish()
    }
}
