//! Futures of an actor: asynchronous work that runs while the actor lives on.
//!
//! | call | user messages | control messages, signals | other futures |
//! |---|---|---|---|
//! | [`Context::spawn_future`], [`Context::ask`] | continue | continue | continue |
//! | [`wait`](Context::wait) | stay in the mailbox | continue | continue |
//! | [`wait_mut`](Context::wait_mut) | stay in the mailbox | wait | wait |
//!
//! Stop and restart take effect at once in all three cases.
//!
//! # Order
//!
//! A future is first polled after the handler that has started it has returned, before the next
//! user message. After that, it is polled whenever it was woken: only woken futures are polled, in
//! the order in which they were woken. The continuation of a future runs right after the poll that
//! has finished it, so before all user messages that are in the mailbox at that time. Waiting
//! signals and control messages go first. Each poll of a future counts as a message in the budget
//! of the actor's poll.
//!
//! # Failures
//!
//! A returned error, or a panic, of the future or of its continuation is a failure of the actor, as
//! in a handler. A future that has panicked is not polled again, whatever the supervisor decides.
//!
//! # Cancellation
//!
//! A future belongs to the incarnation of the actor that has started it. It is dropped, together
//! with its continuation, when the actor stops or restarts: before
//! [`PostStop`](crate::Signal::PostStop) and [`PreRestart`](crate::Signal::PreRestart). A panic in
//! such a drop does not affect the actor. A waker that still exists does nothing from then on.
//!
//! # Memory
//!
//! One future, with its continuation, that fits into the
//! [buffer](crate::Props::future_buffer_bytes) of the actor needs no memory of its own; others are
//! boxed. [`wait_mut`](Context::wait_mut) moves the actor into a box and back; the box is kept for
//! the next time.
//!
//! # Timers
//!
//! The waker is that of the future and not that of the actor's task. So a
//! [`Sleep`](clockjack_exec::Sleep) that finds its executor by the waker does not find it: create
//! one from a handle, or use the delays of the system's scheduler.

mod asks;
mod slots;
mod task;
pub(crate) mod wake;
pub(crate) mod waker;

use self::{
    slots::Exclusivity,
    task::{Lent, Task, Then},
};
pub(crate) use self::{slots::Futures, task::LentFuture};
use crate::{
    Actor, ActorError, Context, Failure, IntoNext, Next,
    cell::{PENDING, Stage},
    error::ActorErrorKind,
    props::FUTURES_MAX,
    testing::Effect,
};

impl<A: Actor> Context<'_, A> {
    /// Starts a future; the actor continues with other messages in the meantime. `then` is called
    /// with the output, between two messages.
    ///
    /// The future is dropped with this incarnation of the actor; see the [module](self) for order
    /// and failures.
    ///
    /// # Errors
    ///
    /// Returns the future and `then`: if too many futures are running, if the actor stops, or if
    /// there is no room in a sealed system.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{Actor, Context, Failure, Next};
    /// # struct Client { host: Option<String> }
    /// # async fn look_up() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # impl Actor for Client {
    /// #     type Msg = ();
    /// fn receive(&mut self, cx: &mut Context<'_, Self>, _: ()) -> Result<Next, Failure> {
    ///     cx.spawn_future(look_up(), |me, _cx, host| {
    ///         me.host = Some(host?);
    ///         Ok(())
    ///     })?;
    ///     Ok(Next::Stay)
    /// }
    /// # }
    /// ```
    pub fn spawn_future<F, T, R>(&mut self, future: F, then: T) -> Result<(), ActorError<(F, T)>>
    where
        F: Future + Send + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> R + Send + 'static,
        R: IntoNext,
    {
        self.begin(future, then, Exclusivity::Shared)
    }

    /// As [`spawn_future`](Self::spawn_future), for an actor that stays on its thread: nothing
    /// needs to be `Send`.
    ///
    /// # Errors
    ///
    /// As there; also if the actor may change threads.
    pub fn spawn_local_future<F, T, R>(
        &mut self,
        future: F,
        then: T,
    ) -> Result<(), ActorError<(F, T)>>
    where
        F: Future + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> R + 'static,
        R: IntoNext,
    {
        if !self.poll.handle().is_local() {
            return Err(ActorError::new(ActorErrorKind::NotLocal, (future, then)));
        }
        self.begin(future, then, Exclusivity::Shared)
    }

    /// Waits for a future: user messages stay in the mailbox until `then` was called with the
    /// output. Control messages, signals and other futures continue.
    ///
    /// # Errors
    ///
    /// As [`spawn_future`](Self::spawn_future); also if the actor already waits for another future.
    pub fn wait<F, T, R>(&mut self, future: F, then: T) -> Result<(), ActorError<(F, T)>>
    where
        F: Future + Send + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> R + Send + 'static,
        R: IntoNext,
    {
        self.begin(future, then, Exclusivity::Exclusive)
    }

    /// Waits for a future that borrows the actor. `f` is called when the handler has returned.
    /// Until the future is ready, nothing else runs except a stop or a restart, which drop the
    /// future first.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait); returns `f`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use clockjack_actor::{Actor, Context, Failure, Next};
    /// # struct Socket;
    /// # impl Socket { async fn flush(&mut self) -> Result<(), std::io::Error> { Ok(()) } }
    /// # struct Client { socket: Socket }
    /// # impl Actor for Client {
    /// #     type Msg = ();
    /// fn receive(&mut self, cx: &mut Context<'_, Self>, _: ()) -> Result<Next, Failure> {
    ///     cx.wait_mut(|me| {
    ///         Box::pin(async move {
    ///             me.socket.flush().await?;
    ///             Ok(())
    ///         })
    ///     })?;
    ///     Ok(Next::Stay)
    /// }
    /// # }
    /// ```
    pub fn wait_mut<F, R>(&mut self, f: F) -> Result<(), ActorError<F>>
    where
        F: for<'a> FnOnce(&'a mut A) -> LentFuture<'a, R> + Send + 'static,
        R: IntoNext + 'static,
    {
        if let Some(kind) = self.refusal::<Lent<F, R>>(Exclusivity::Lent) {
            return Err(ActorError::new(kind, f));
        }
        let task = Task::lent(&mut self.state.rare().futures.buffer, f);
        self.insert(task, Exclusivity::Lent);
        Ok(())
    }

    fn begin<F, T, R>(
        &mut self,
        future: F,
        then: T,
        exclusivity: Exclusivity,
    ) -> Result<(), ActorError<(F, T)>>
    where
        F: Future + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> R + 'static,
        R: IntoNext,
    {
        // The closure below has the layout of `then`.
        if let Some(kind) = self.refusal::<Then<F, T>>(exclusivity) {
            return Err(ActorError::new(kind, (future, then)));
        }
        let then =
            move |me: &mut A, cx: &mut Context<'_, A>, output| then(me, cx, output).into_next();
        self.begin_allowed(future, then, exclusivity);
        Ok(())
    }

    /// Starts a future that was not [refused](Self::refusal).
    fn begin_allowed<F, T>(&mut self, future: F, then: T, exclusivity: Exclusivity)
    where
        F: Future + 'static,
        T: FnOnce(&mut A, &mut Context<'_, A>, F::Output) -> Result<Next, Failure> + 'static,
    {
        let task = Task::then(&mut self.state.rare().futures.buffer, future, then);
        self.insert(task, exclusivity);
    }

    /// Why a task of this type cannot start now, if it cannot.
    fn refusal<B>(&mut self, exclusivity: Exclusivity) -> Option<ActorErrorKind> {
        if self.state.stage != Stage::Running {
            return Some(ActorErrorKind::Stopping);
        }
        let settings = self.state.settings.as_ref();
        let max = settings.map_or(FUTURES_MAX, |settings| settings.futures_max);
        let is_sealed = self.poll.shared().header.system().is_sealed();
        let futures = &self.state.rare().futures;
        if exclusivity != Exclusivity::Shared && futures.is_waiting() {
            return Some(ActorErrorKind::AlreadyWaiting);
        }
        if futures.len() >= usize::from(max) {
            return Some(ActorErrorKind::TooManyFutures);
        }
        let needs_no_memory = futures.buffer.fits::<B>()
            && (exclusivity != Exclusivity::Lent || futures.loan.has_place());
        (is_sealed && !needs_no_memory).then_some(ActorErrorKind::Sealed)
    }

    fn insert(&mut self, task: Task<A>, exclusivity: Exclusivity) {
        let me = crate::actor_ref::untyped(self.poll.self_ref());
        let span = self.state.current_span(&self.poll.shared().header);
        self.state.rare().futures.insert(&me, task, span, exclusivity);
        self.state.record(|| match exclusivity {
            Exclusivity::Shared => Effect::FutureStarted,
            Exclusivity::Exclusive | Exclusivity::Lent => Effect::FutureAwaited,
        });
        self.state.set(PENDING, true);
    }
}
