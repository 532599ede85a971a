//! Inspections: what actors do, read from outside, for tools that look at a running system.
//!
//! An inspection reads words that exist anyway. It sends nothing, wakes nobody, and allocates
//! nothing in the system. A view of an actor lives as long as one call of a closure: between two
//! calls there is no reference, so an inspection keeps no actor alive.

use alloc::{string::String, vec::Vec};
use core::fmt;

use clockjack_exec::{Handle, Pid, State, custom_task};

use crate::{
    ActorPath, ActorSystem,
    cell::{
        children::{Direction, Start, read_some},
        header::{ActorHeader, AnyActor, FAILED, STOP, STOPPED, SUSPEND_ONE, WAITERS},
        shared, spawn,
    },
};

/// Slots of a registry that a search for the askers of open asks looks at.
const ASKER_SLOTS_MAX: u32 = 65_536;
/// Slots that one call of a search looks at.
const SLICE: u32 = 1_024;
/// Children that are read at a time.
const CHILDREN_AT_A_TIME: usize = 256;

/// What an actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActorStage {
    /// It has nothing to do.
    Idle,
    /// It has something to do, and waits for a worker.
    Queued,
    /// A worker runs it.
    Running,
    /// It handles nothing until something else has happened; mostly one of its futures is to
    /// complete.
    Waiting,
    /// Its parent or a host has suspended it.
    Suspended,
    /// It has failed, and its supervisor has not decided yet.
    Failed,
    /// It is being restarted.
    Restarting,
    /// It is stopping, or has stopped.
    Stopping,
}

/// An actor, during an inspection.
#[derive(Clone, Copy)]
pub struct ActorView<'a>(&'a AnyActor);

impl ActorView<'_> {
    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.0.pid()
    }

    /// Its path. A clone of it keeps no actor alive.
    #[must_use]
    pub fn path(&self) -> &ActorPath {
        &self.0.path
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.0.name()
    }

    /// The name of the type of its messages.
    #[must_use]
    pub fn message_type(&self) -> &'static str {
        self.0.input()
    }

    /// How many messages are in its mailbox, and how many may be.
    #[must_use]
    pub fn mailbox(&self) -> (usize, usize) {
        self.0.messages_waiting()
    }

    /// How many messages its mailbox has accepted, and how many of them have left it; both wrap
    /// around. Control messages and timers do not pass through the mailbox.
    #[must_use]
    pub fn positions(&self) -> (usize, usize) {
        // Those that have left first: so they are never more.
        let freed = self.0.messages_taken();
        (shared::accepted(self.0).0, freed)
    }

    /// How many messages its full mailbox has returned to their senders.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.0.refused()
    }

    /// How often it was restarted.
    #[must_use]
    pub fn restarts(&self) -> usize {
        self.0.restarts()
    }

    /// Whether senders wait for room in its mailbox.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.0.flags() & WAITERS != 0
    }

    /// How many direct children it has.
    #[must_use]
    pub fn n_children(&self) -> usize {
        self.0.children().map_or(0, |children| children.with(|children| children.len()))
    }

    /// What it does, at about this time.
    #[must_use]
    pub fn stage(&self) -> ActorStage {
        let flags = self.0.flags();
        if flags & (STOP | STOPPED) != 0 {
            return ActorStage::Stopping;
        }
        if flags & FAILED != 0 {
            return ActorStage::Failed;
        }
        if self.0.is_restarting() {
            return ActorStage::Restarting;
        }
        if flags >= SUSPEND_ONE {
            return ActorStage::Suspended;
        }
        match self.0.state() {
            State::Complete => ActorStage::Stopping,
            State::Running => ActorStage::Running,
            State::Idle | State::Blocked if shared::accepted(self.0).1 => ActorStage::Idle,
            State::Idle | State::Blocked => ActorStage::Waiting,
            State::Ready => ActorStage::Queued,
        }
    }

    /// Its parent.
    #[must_use]
    pub fn parent(&self) -> Option<ActorView<'_>> {
        self.0.parent.as_ref().map(ActorView)
    }
}

impl fmt::Debug for ActorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorView").field("path", &*self.0.path).finish_non_exhaustive()
    }
}

/// An ask whose answer is awaited.
#[derive(Clone, Debug)]
pub struct OpenAsk {
    /// The actor that waits; `None` if it was not found.
    pub from: Option<ActorPath>,
    /// The actor that was asked.
    pub to: ActorPath,
}

impl ActorSystem {
    /// Calls `found` with each live actor of this system that runs on an executor, among `n` slots
    /// of the executor's registry from this index on. Returns the index to continue with; `None` if
    /// there are no further slots.
    ///
    /// An actor that lives during all of a walk is found once.
    #[doc(hidden)]
    pub fn inspect_slots(
        &self,
        executor: &Handle,
        from: u32,
        n: u32,
        mut found: impl FnMut(ActorView<'_>),
    ) -> Option<u32> {
        let system = core::ptr::from_ref(self.inner());
        let check = |actor: &AnyActor| {
            if core::ptr::eq(actor.system(), system) {
                found(ActorView(actor));
            }
        };
        find_actors(executor, from, n, check)
    }

    /// Calls `inspect` with the actor at a path; `None` if there is none.
    #[doc(hidden)]
    pub fn inspect_path<R>(
        &self,
        path: &str,
        inspect: impl FnOnce(ActorView<'_>) -> R,
    ) -> Option<R> {
        let actor = self.actor_at(path)?;
        Some(inspect(ActorView(&actor)))
    }

    /// Calls `found` with at most `n` children of the actor at a path, the oldest first, after
    /// those that are skipped. Returns whether there are more; `None` if there is no such actor.
    ///
    /// Skipping takes time that is linear in the number of skipped children, and constant memory.
    #[doc(hidden)]
    pub fn inspect_children(
        &self,
        path: &str,
        skip: usize,
        n: usize,
        mut found: impl FnMut(ActorView<'_>),
    ) -> Option<bool> {
        let actor = self.actor_at(path)?;
        let Some(children) = actor.children() else { return Some(false) };
        let (mut skip, mut n) = (skip, n);
        let mut last: Option<AnyActor> = None;
        loop {
            let start = last.as_ref().map_or(Start::Begin, Start::After);
            let page = read_some(children, Direction::OldestFirst, start, CHILDREN_AT_A_TIME);
            let is_last = page.len() < CHILDREN_AT_A_TIME;
            for child in &page {
                if skip > 0 {
                    skip -= 1;
                } else if n == 0 {
                    return Some(true);
                } else {
                    n -= 1;
                    found(ActorView(child));
                }
            }
            if is_last {
                return Some(false);
            }
            last = page.into_iter().next_back();
        }
    }

    /// At most `max` asks in which an actor waits for the answer of another one, and takes no
    /// messages in the meantime.
    #[doc(hidden)]
    #[must_use]
    pub fn inspect_asks(&self, executors: &[Handle], max: usize) -> Vec<OpenAsk> {
        let edges = self.inner().asks().edges(max);
        let mut known: Vec<(usize, ActorPath)> = Vec::new();
        // Only addresses are compared: the actor behind the address of an edge may be gone.
        let is_asker = |at: usize| edges.iter().any(|edge| edge.0 == at);
        for executor in executors.iter().filter(|_| !edges.is_empty()) {
            let mut next = Some(0);
            while let Some(from) = next.filter(|from| *from < ASKER_SLOTS_MAX) {
                next = find_actors(executor, from, SLICE, |actor| {
                    let at = actor.as_raw().as_ptr().addr();
                    if is_asker(at) {
                        known.push((at, actor.path.clone()));
                    }
                });
            }
        }
        let asks = edges.into_iter().map(|(from, _, target)| {
            let from = known.iter().find(|(at, _)| *at == from);
            OpenAsk { from: from.map(|(_, path)| path.clone()), to: target.into_path() }
        });
        asks.collect()
    }

    fn actor_at(&self, path: &str) -> Option<AnyActor> {
        let names: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let guardians = self.inner().root_guardian()?;
        if names == [""] {
            return Some(guardians);
        }
        spawn::find(&guardians, &names)
    }

    /// The actor at a path and its supervisors, the root first: the path of each, what it does, and
    /// how often it was restarted.
    #[doc(hidden)]
    #[must_use]
    pub fn inspect_supervisors(&self, path: &str) -> Vec<(String, ActorStage, usize)> {
        let Some(actor) = self.actor_at(path) else { return Vec::new() };
        let mut chain = Vec::new();
        let mut next = Some(&actor);
        while let Some(actor) = next {
            let view = ActorView(actor);
            chain.push((alloc::format!("{}", view.path()), view.stage(), view.restarts()));
            next = actor.parent.as_ref();
        }
        chain.reverse();
        chain
    }
}

#[expect(unsafe_code, reason = "states what the cells of actors begin with")]
fn find_actors(executor: &Handle, from: u32, n: u32, found: impl FnMut(&AnyActor)) -> Option<u32> {
    // SAFETY: only the cells of actors have this prefix, whose type is private to this crate, and
    // their shared part begins with the header, at the same alignment.
    unsafe { custom_task::find_in::<ActorHeader>(executor.executor(), from, n, found) }
}
