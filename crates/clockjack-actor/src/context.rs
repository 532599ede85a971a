//! What an actor can do while it handles a message.

use alloc::vec::Vec;
use core::fmt;

use clockjack_exec::Pid;
use clockjack_sched::ExecutionBatch;
use clockjack_time::TimerInstant;

use crate::{
    Actor, ActorPath, ActorRef, ActorSystem, IntoProps, MsgOf, NotAChild, SpawnError, StashFull,
    Timers, WatchError,
    base::{STOP, Tell},
    cell::{State, TurnOf, any},
    spawn,
    testing::Effect,
};

/// What an actor is handed with each message: itself, its children, its clock.
pub struct Context<'c, A: Actor> {
    pub(crate) state: &'c mut State<A>,
    pub(crate) turn: &'c TurnOf<'c, A::Msg>,
}

impl<'c, A: Actor> Context<'c, A> {
    #[inline]
    pub(crate) fn new(state: &'c mut State<A>, turn: &'c TurnOf<'c, A::Msg>) -> Self {
        Self { state, turn }
    }

    /// The actor's own address.
    #[must_use]
    pub fn self_ref(&self) -> ActorRef<A::Msg> {
        ActorRef::from_cell(self.turn.me())
    }

    /// Which actor it is.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.turn.pid()
    }

    /// Where it stands.
    #[must_use]
    pub fn path(&self) -> &ActorPath {
        &self.turn.front().core.path
    }

    /// The system that it belongs to.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        self.turn.front().core.system().handle()
    }

    /// The time, read now.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.turn.now()
    }

    /// Of a message that the scheduler has sent: how many runs it stands for.
    #[must_use]
    pub fn scheduler_batch(&self) -> Option<ExecutionBatch> {
        self.state.extra.as_ref().and_then(|extra| extra.batch)
    }

    /// Of a message that the scheduler has sent: in whose name.
    #[must_use]
    pub fn sender_pid(&self) -> Option<Pid> {
        self.state.extra.as_ref().and_then(|extra| extra.sender)
    }

    /// The actor's timers.
    pub fn timers(&mut self) -> Timers<'_, A> {
        Timers::new(self.state, self.turn)
    }

    /// Starts a child.
    ///
    /// # Errors
    ///
    /// The props come back: for a name that is taken or is none, props that cannot be, if there is
    /// no room, or if this actor stops.
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
        let parent = crate::actor_ref::untyped(self.turn.me());
        let child = spawn::spawn_sent(&parent, self.state.supervises(), name, props)?;
        self.state.record(|| Effect::Spawned { name: name.into() });
        Ok(child)
    }

    /// Starts a child on the thread of this actor; nothing needs to be `Send`.
    ///
    /// # Errors
    ///
    /// As [`spawn_child`](Self::spawn_child); also if this actor may change threads.
    pub fn spawn_local_child<P: IntoProps>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        let parent = crate::actor_ref::untyped(self.turn.me());
        let (supervises, here) = (self.state.supervises(), self.turn.handle());
        let child = spawn::spawn_here(&parent, supervises, here, name, props)?;
        self.state.record(|| Effect::Spawned { name: name.into() });
        Ok(child)
    }

    /// Stops a child: its own children first. Stopping one that has stopped is fine.
    ///
    /// # Errors
    ///
    /// [`NotAChild`], if it is none: only a parent stops an actor, and it stops itself by
    /// [`Next::Stop`](crate::Next::Stop).
    pub fn stop_child<M: 'static>(&mut self, child: &ActorRef<M>) -> Result<(), NotAChild> {
        let child = child.any();
        let is_mine = child.parent.as_ref().is_some_and(|parent| parent.pid() == self.pid());
        if !is_mine {
            return Err(NotAChild { path: child.path.clone() });
        }
        child.order(STOP);
        self.state.record(|| Effect::Stopped(child.path.clone()));
        Ok(())
    }

    /// The paths of the children that are there, in the order in which they were started.
    pub fn children(&self) -> impl Iterator<Item = ActorPath> + use<A> {
        let children = self.turn.front().core.children();
        let paths: Vec<_> = children.map_or_else(Vec::new, |children| {
            children.with(|children| children.oldest_first().map(|c| c.path.clone()).collect())
        });
        paths.into_iter()
    }

    /// A child by its name and the type of its messages.
    #[must_use]
    pub fn child<M: 'static>(&self, name: &str) -> Option<ActorRef<M>> {
        let children = self.turn.front().core.children()?;
        let child = children.with(|children| children.get(name)?.child().cloned())?;
        spawn::typed(&child)
    }

    /// Wants to be told, by [`Signal::Terminated`](crate::Signal::Terminated), when an actor ends;
    /// at once if it has. Doing so twice is fine.
    ///
    /// # Errors
    ///
    /// If it is watched by [`watch_with`](Self::watch_with).
    pub fn watch<M: 'static>(&mut self, who: &ActorRef<M>) -> Result<(), WatchError<()>> {
        self.state.watch(&any(self.turn), who.any(), None).map_err(WatchError::discard)?;
        self.state.record(|| Effect::Watched(who.path()));
        Ok(())
    }

    /// Wants to be told `msg` when an actor ends, instead of a signal.
    ///
    /// # Errors
    ///
    /// The message comes back if the actor is watched already: messages cannot be compared, so a
    /// second one is always another one.
    pub fn watch_with<M: 'static>(
        &mut self,
        who: &ActorRef<M>,
        msg: A::Msg,
    ) -> Result<(), WatchError<A::Msg>> {
        self.state.watch(&any(self.turn), who.any(), Some(msg)).map_err(|refused| WatchError {
            path: refused.path,
            message: refused.message.expect("a message was given"),
        })?;
        self.state.record(|| Effect::WatchedWith(who.path()));
        Ok(())
    }

    /// Does not want to be told any more, also if the end has come and was not told yet.
    pub fn unwatch<M: 'static>(&mut self, who: &ActorRef<M>) {
        self.state.unwatch(&any(self.turn), who.any());
        self.state.record(|| Effect::Unwatched(who.path()));
    }

    /// Which actors this one watches.
    #[must_use]
    pub fn watching(&self) -> Vec<Pid> {
        let extra = self.state.extra.as_ref();
        extra.map_or_else(Vec::new, |extra| {
            let watching = extra.watching.iter().filter(|(_, watch)| !watch.has_ended);
            watching.map(|(pid, _)| *pid).collect()
        })
    }

    /// Which actors watch this one, apart from its parent.
    #[must_use]
    pub fn watchers(&self) -> Vec<Pid> {
        let extra = self.state.extra.as_ref();
        extra.map_or_else(Vec::new, |extra| extra.watchers.keys().copied().collect())
    }

    /// Keeps a message for later.
    ///
    /// # Errors
    ///
    /// The message comes back if there is no room for it.
    pub fn stash(&mut self, msg: A::Msg) -> Result<(), StashFull<A::Msg>> {
        let capacity = self.state.settings.as_ref().map_or(0, |settings| settings.stash);
        if self.stash_len() >= capacity {
            return Err(StashFull { capacity, message: msg });
        }
        let envelope = self.state.put_aside(self.turn, msg);
        self.state.extra().stash.push_back(envelope);
        self.state.record(|| Effect::Stashed);
        Ok(())
    }

    /// How many messages are kept, those included that were put back and are not handled yet.
    #[must_use]
    pub fn stash_len(&self) -> usize {
        let extra = self.state.extra.as_ref();
        extra.map_or(0, |extra| extra.stash.len() + extra.unstashed.len())
    }

    /// Handles all messages that are kept now, in order, as soon as this handler returns and before
    /// any newer message. Those that are stashed again stay.
    pub fn unstash_all(&mut self) {
        self.unstash(usize::MAX);
    }

    /// As [`unstash_all`](Self::unstash_all), for the oldest `n` only.
    pub fn unstash(&mut self, n: usize) {
        if let Some(extra) = &mut self.state.extra
            && !extra.stash.is_empty()
        {
            extra.unstash = extra.unstash.saturating_add(n).min(extra.stash.len());
            let n = extra.unstash;
            self.state.set(crate::cell::UNSTASHES, true);
            self.state.record(|| Effect::Unstashed(n));
        }
    }

    /// Forgets the messages that are kept, those included that were put back and are not handled
    /// yet: they are given to the caller.
    pub fn clear_stash(&mut self) -> Vec<A::Msg> {
        let Some(extra) = &mut self.state.extra else { return Vec::new() };
        extra.unstash = 0;
        let kept = extra.unstashed.drain(..).chain(extra.stash.drain(..));
        kept.map(|envelope| envelope.msg).collect()
    }
}

impl<A: Actor> fmt::Debug for Context<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("path", self.path()).finish_non_exhaustive()
    }
}
