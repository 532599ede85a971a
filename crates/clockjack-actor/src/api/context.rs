//! [`Context`]: what an actor can do while it handles a message.

use alloc::vec::Vec;
use core::fmt;

use clockjack_exec::Pid;
use clockjack_sched::ExecutionBatch;
use clockjack_time::TimerInstant;

use crate::{
    Actor, ActorError, ActorPath, ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, Timers,
    cell::{
        CellState, PollOf, any,
        children::{Direction, read_all},
        header::{STOP, SystemSend},
        spawn,
    },
    error::ActorErrorKind,
    testing::Effect,
};

/// The handle through which an actor reaches itself, its children, its timers and its system. Every
/// handler receives one.
pub struct Context<'c, A: Actor> {
    pub(crate) state: &'c mut CellState<A>,
    pub(crate) poll: &'c PollOf<'c, A::Msg>,
}

impl<'c, A: Actor> Context<'c, A> {
    #[inline]
    pub(crate) fn new(state: &'c mut CellState<A>, poll: &'c PollOf<'c, A::Msg>) -> Self {
        Self { state, poll }
    }

    /// A reference to this actor.
    #[must_use]
    pub fn self_ref(&self) -> ActorRef<A::Msg> {
        ActorRef::from_cell(self.poll.self_ref())
    }

    /// The process id of this actor.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.poll.pid()
    }

    /// The path of this actor.
    #[must_use]
    pub fn path(&self) -> &ActorPath {
        &self.poll.shared().header.path
    }

    /// The system of this actor.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.poll.shared().header.system().handle()
    }

    /// The current time of the system's clock.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.poll.now()
    }

    /// How many runs of a scheduled job the current message represents; `None` if the scheduler did
    /// not send the message.
    #[must_use]
    pub fn scheduler_batch(&self) -> Option<ExecutionBatch> {
        self.state.rare.as_ref().and_then(|rare| rare.batch)
    }

    /// The actor that scheduled the current message; `None` if the scheduler did not send the
    /// message, or no sender was given.
    #[must_use]
    pub fn sender_pid(&self) -> Option<Pid> {
        self.state.rare.as_ref().and_then(|rare| rare.sender)
    }

    /// The timers of this actor.
    pub fn timers(&mut self) -> Timers<'_, A> {
        Timers::new(self.state, self.poll)
    }

    /// Starts a child.
    ///
    /// # Errors
    ///
    /// Returns the props to the caller if the name is taken or invalid, if the props contradict
    /// each other, if there is no room, or if this actor is stopping.
    pub fn spawn_child<P>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        let parent = crate::actor_ref::untyped(self.poll.self_ref());
        let child = spawn::spawn_send(&parent, self.state.supervises(), name, props)?;
        self.state.record(|| Effect::Spawned { name: name.into() });
        Ok(child)
    }

    /// Starts a child on the thread of this actor. Neither the actor nor its messages need to be
    /// `Send`.
    ///
    /// # Errors
    ///
    /// As [`spawn_child`](Self::spawn_child); also if this actor may move between threads.
    pub fn spawn_local_child<P: IntoProps>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        let parent = crate::actor_ref::untyped(self.poll.self_ref());
        let (supervises, here) = (self.state.supervises(), self.poll.handle());
        let child = spawn::spawn_here(&parent, supervises, here, name, props)?;
        self.state.record(|| Effect::Spawned { name: name.into() });
        Ok(child)
    }

    /// As [`spawn_child`](Self::spawn_child), with a name that the system chooses, like `$7`.
    ///
    /// # Errors
    ///
    /// As [`spawn_child`](Self::spawn_child).
    pub fn spawn_anonymous_child<P>(
        &mut self,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        let parent = crate::actor_ref::untyped(self.poll.self_ref());
        let child = spawn::spawn_anonymous(&parent, self.state.supervises(), props)?;
        self.state.record(|| Effect::Spawned { name: child.path().name().into() });
        Ok(child)
    }

    /// Stops this actor when its handler returns, whatever the handler returns: its children first,
    /// then the actor itself. Returning [`Next::Stop`](crate::Next::Stop) has the same effect.
    pub fn stop_self(&mut self) {
        if self.state.is_recorded() {
            // A test drives the actor. Its host lives on; the test sees the effect.
            self.state.record(|| Effect::StoppedSelf);
        } else {
            crate::actor_ref::untyped(self.poll.self_ref()).wake_with(STOP);
        }
    }

    /// For hosts: as [`stop_self`](Self::stop_self), and watchers learn this cause.
    #[doc(hidden)]
    pub fn stop_self_because(&mut self, cause: crate::TerminationCause) {
        self.state.rare().cause = cause;
        self.stop_self();
    }

    /// Stops a child, after the children of that child. Does nothing if the child has already
    /// stopped.
    ///
    /// # Errors
    ///
    /// If the actor is not a child of this one. Only its parent and the actor
    /// [itself](Self::stop_self) can stop an actor.
    pub fn stop_child<M: 'static>(&mut self, child: &ActorRef<M>) -> Result<(), ActorError<()>> {
        let child = child.any();
        let is_mine = child.parent.as_ref().is_some_and(|parent| parent.pid() == self.pid());
        if !is_mine {
            return Err(ActorError::new(ActorErrorKind::NotAChild(child.path.clone()), ()));
        }
        child.wake_with(STOP);
        self.state.record(|| Effect::Stopped(child.path.clone()));
        Ok(())
    }

    /// The paths of the current children, in the order in which they were started.
    pub fn children(&self) -> impl Iterator<Item = ActorPath> + use<A> {
        let children = self.poll.shared().header.children();
        let paths: Vec<_> = children.map_or_else(Vec::new, |children| {
            let all = read_all(children, Direction::OldestFirst);
            all.into_iter().map(|child| child.path.clone()).collect()
        });
        paths.into_iter()
    }

    /// The child with this name; `None` if there is none, or if it receives messages of another
    /// type.
    #[must_use]
    pub fn child<M: 'static>(&self, name: &str) -> Option<ActorRef<M>> {
        let children = self.poll.shared().header.children()?;
        let child = children.with(|children| children.get(name)?.child().cloned())?;
        spawn::typed(&child)
    }

    /// Watches an actor: this actor receives [`Signal::Terminated`](crate::Signal::Terminated) when
    /// the other one stops, or at once if it has already stopped. Watching an actor twice has no
    /// further effect.
    ///
    /// # Errors
    ///
    /// If the actor is already watched by [`watch_with`](Self::watch_with).
    pub fn watch<M: 'static>(&mut self, who: &ActorRef<M>) -> Result<(), ActorError<()>> {
        self.state.watch(&any(self.poll), who.any(), None).map_err(ActorError::discard)?;
        self.state.record(|| Effect::Watched(who.path()));
        Ok(())
    }

    /// Watches an actor: this actor receives `msg` when the other one stops, instead of a signal.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the actor is already watched. (Messages cannot be
    /// compared, so the second message always counts as a different one.)
    pub fn watch_with<M: 'static>(
        &mut self,
        who: &ActorRef<M>,
        msg: A::Msg,
    ) -> Result<(), ActorError<A::Msg>> {
        self.state.watch(&any(self.poll), who.any(), Some(msg)).map_err(|refused| {
            ActorError::new(refused.kind, refused.given.expect("a message was given"))
        })?;
        self.state.record(|| Effect::WatchedWith(who.path()));
        Ok(())
    }

    /// Stops watching an actor. Its termination is not reported any more, even if it has already
    /// stopped and the report is on its way.
    pub fn unwatch<M: 'static>(&mut self, who: &ActorRef<M>) {
        self.state.unwatch(&any(self.poll), who.any());
        self.state.record(|| Effect::Unwatched(who.path()));
    }

    /// The process ids of the actors that this actor watches.
    #[must_use]
    pub fn watching(&self) -> Vec<Pid> {
        let rare = self.state.rare.as_ref();
        rare.map_or_else(Vec::new, |rare| {
            let watching = rare.watching.iter().filter(|(_, watch)| !watch.is_terminated);
            watching.map(|(pid, _)| *pid).collect()
        })
    }

    /// The process ids of the actors that watch this one, apart from its parent.
    #[must_use]
    pub fn watchers(&self) -> Vec<Pid> {
        let rare = self.state.rare.as_ref();
        rare.map_or_else(Vec::new, |rare| rare.watchers.keys().copied().collect())
    }

    /// Puts a message into the stash, to be handled later.
    ///
    /// # Errors
    ///
    /// Returns the message to the caller if the stash is full.
    pub fn stash(&mut self, msg: A::Msg) -> Result<(), ActorError<A::Msg>> {
        let capacity = self.state.settings.as_ref().map_or(0, |settings| settings.stash);
        if self.stash_len() >= capacity {
            return Err(ActorError::new(ActorErrorKind::StashFull { capacity }, msg));
        }
        let envelope = self.state.put_aside(self.poll, msg);
        self.state.rare().stash.push_back(envelope);
        self.state.record(|| Effect::Stashed);
        Ok(())
    }

    /// The number of stashed messages, including those that were unstashed and are not handled yet.
    #[must_use]
    pub fn stash_len(&self) -> usize {
        let rare = self.state.rare.as_ref();
        rare.map_or(0, |rare| rare.stash.len() + rare.unstashed.len())
    }

    /// Handles all messages that are in the stash now, in order, as soon as this handler returns
    /// and before any newer message. A message that is stashed again stays in the stash.
    pub fn unstash_all(&mut self) {
        self.unstash(usize::MAX);
    }

    /// As [`unstash_all`](Self::unstash_all), but only for the oldest `n` messages.
    pub fn unstash(&mut self, n: usize) {
        if let Some(rare) = &mut self.state.rare
            && !rare.stash.is_empty()
        {
            rare.unstash = rare.unstash.saturating_add(n).min(rare.stash.len());
            let n = rare.unstash;
            self.state.set(crate::cell::UNSTASH_REQUESTED, true);
            self.state.record(|| Effect::Unstashed(n));
        }
    }

    /// Empties the stash and returns its messages, including those that were unstashed and are not
    /// handled yet.
    pub fn clear_stash(&mut self) -> Vec<A::Msg> {
        let Some(rare) = &mut self.state.rare else { return Vec::new() };
        rare.unstash = 0;
        let kept = rare.unstashed.drain(..).chain(rare.stash.drain(..));
        kept.map(|envelope| envelope.msg).collect()
    }
}

impl<A: Actor> fmt::Debug for Context<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("path", self.path()).finish_non_exhaustive()
    }
}
