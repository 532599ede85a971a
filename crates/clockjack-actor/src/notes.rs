//! The lane of notes of an actor: what the system and control messages come by.
//!
//! One word a cell, because most actors never get one. It carries two kinds of nodes, untyped
//! [`Note`]s and [control items](Control) of the actor's own message type, in the order in which
//! they came; the runner sorts them.
//!
//! # Protocol
//!
//! Roles: *senders*, any number, and the *runner*, the one that steps the actor.
//!
//! 1. A sender hangs its node on the head by a compare-exchange from what it saw to its node, whose
//!    link it has set to what it saw. It repeats if another was faster, and gives up, with the node
//!    in its hands, if it sees CLOSED.
//! 2. The runner takes the whole list by one swap with null and turns it round. Nobody else takes,
//!    so no node that a sender has seen is freed and hung up again between its load and its
//!    exchange.
//! 3. When the actor ends the runner swaps in CLOSED, and has everything that was accepted; after
//!    that nothing is. So accepted and refused are told apart by one word.
//! 4. A sender that was accepted raises NOTES in the bits of the cell, and wakes it.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, ptr, time::Duration};

use clockjack_exec::{Failure, Pid};
use clockjack_sync::prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::{
    ActorPath, FailureInfo, FailureReport, SystemMessage, Terminated,
    base::AnyActor,
    control::{Control, Fire},
};

/// What the system tells a cell.
pub(crate) enum Note {
    /// Somebody wants to know when this actor ends.
    Watch { watcher: AnyActor },
    /// Somebody does not want to know any more.
    Unwatch { watcher: Pid },
    /// An actor that this one watches has ended.
    Terminated(Terminated),
    /// A child has failed, is suspended and waits for what its parent decides.
    Failed(Box<FailedChild>),
    /// A child is about to end because of a failure: its last words.
    LastWords { child: Pid, report: FailureReport },
    /// The supervisor has decided that it is to be made anew, in this way.
    Restart(Renewal),
    /// A child whose restart this actor has ordered has started again, at this time.
    Restarted { child: Pid, path: ActorPath, now_nanos: u64 },
    /// A child is about to be made, and the strategy for children has a hook for that.
    Starting(ActorPath),
    /// The time of a back-off is over; the number says of which.
    BackoffOver(u32),
    /// Some time has passed since the last child was told to stop; the number says of which wait.
    Patience(u32),
    /// What a sink has refused is to be offered again.
    RetryEscalations,
    /// Go on; those whose failures were left to who is above are stopped.
    Settle,
    /// A host has said that this actor is to watch another one.
    WatchFor { who: AnyActor },
    /// Or not to watch it any more.
    UnwatchFor { who: AnyActor },
    /// A timer of the actor's own is due; it takes its place in the control lane.
    Fire(Fire),
    /// The job of a receive time-out has come: the number says which.
    Idle(u32),
    /// What a host has put in by hand.
    System(Box<SystemMessage>),
}

/// How an actor is to be made anew.
#[derive(Clone, Copy)]
pub(crate) struct Renewal {
    /// How long to wait before.
    pub(crate) delay: Option<Duration>,
    pub(crate) keeps_children: bool,
    /// How many messages are kept meanwhile.
    pub(crate) stash: usize,
}

impl Renewal {
    /// At once, with the defaults: what the bit stands for.
    pub(crate) const PLAIN: Self =
        Self { delay: None, keeps_children: false, stash: crate::strategy::STASH_CAPACITY };

    pub(crate) fn is_plain(&self) -> bool {
        self.delay.is_none() && !self.keeps_children && self.stash == Self::PLAIN.stash
    }
}

/// A child that waits for a decision.
pub(crate) struct FailedChild {
    pub(crate) child: AnyActor,
    pub(crate) failure: Failure,
    pub(crate) info: FailureInfo,
    /// Whether no start of it has gone well yet.
    pub(crate) is_startup: bool,
    /// Whether there is a value that could go on.
    pub(crate) can_resume: bool,
}

/// The end of somebody's life, for whoever watches.
pub(crate) fn terminated(pid: Pid, path: ActorPath) -> Note {
    Note::Terminated(Terminated::new(pid, path, None))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Note,
    Control,
}

/// What all nodes begin with.
#[repr(C)]
struct Link {
    next: *mut Link,
    kind: Kind,
}

#[repr(C)]
struct NoteNode {
    link: Link,
    note: Note,
}

#[repr(C)]
struct ControlNode<M> {
    link: Link,
    item: Control<M>,
}

/// The lane; see the [module](self).
pub(crate) struct Notes {
    head: AtomicPtr<Link>,
}

/// Marks a lane that accepts nothing any more. Never followed.
fn closed() -> *mut Link {
    ptr::without_provenance_mut(usize::MAX)
}

// SAFETY: nodes are handed from the sender to the runner by the exchanges of rules 1 and 2, with
// release and acquire; no two threads have one at a time. A note is `Send`; control items of
// messages that are not are pushed by refs that stay on the runner's thread.
unsafe impl Send for Notes {}
// SAFETY: as above.
unsafe impl Sync for Notes {}

impl Notes {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Hangs a node on the lane, or says that it is closed.
    fn hang(&self, node: *mut Link) -> Result<(), ()> {
        // Acquire: a sender that is refused may go on to what the end of the actor has published.
        let mut seen = self.head.load(Acquire);
        loop {
            if seen == closed() {
                return Err(());
            }
            // SAFETY: the node is the caller's until the exchange succeeds.
            unsafe { (*node).next = seen };
            // Release: pairs with the swap of the runner, which then reads the node.
            match self.head.compare_exchange_weak(seen, node, Release, Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Leaves a note; it comes back after the end of the actor.
    pub(crate) fn push(&self, note: Note) -> Result<(), Note> {
        let link = Link { next: ptr::null_mut(), kind: Kind::Note };
        let node = Box::into_raw(Box::new(NoteNode { link, note }));
        self.hang(node.cast()).map_err(|()| {
            // SAFETY: the node was made above and nobody has taken it.
            unsafe { Box::from_raw(node) }.note
        })
    }

    /// Leaves a control item for the actor, whose messages are of type `M`.
    ///
    /// # Safety
    ///
    /// The lane is that of an actor with this message type.
    pub(crate) unsafe fn push_control<M>(&self, item: Control<M>) -> Result<(), Control<M>> {
        let link = Link { next: ptr::null_mut(), kind: Kind::Control };
        let node = Box::into_raw(Box::new(ControlNode { link, item }));
        self.hang(node.cast()).map_err(|()| {
            // SAFETY: the node was made above and nobody has taken it.
            unsafe { Box::from_raw(node) }.item
        })
    }

    /// Takes everything that has come, oldest first. For the runner.
    pub(crate) fn take<M>(&self) -> Taken<M> {
        // Relaxed: a hint, rule 4 makes it enough.
        if self.head.load(Relaxed).is_null() {
            return Taken { next: ptr::null_mut(), _items: PhantomData };
        }
        // Acquire: pairs with the exchanges of the senders.
        Taken::of(self.head.swap(ptr::null_mut(), AcqRel))
    }

    /// Accepts nothing from here on, and gives what has come before. For the runner, at the end.
    pub(crate) fn close<M>(&self) -> Taken<M> {
        // Release: a sender that is refused sees what the end has published.
        Taken::of(self.head.swap(closed(), AcqRel))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let head = self.head.load(Relaxed);
        debug_assert!(
            head.is_null() || head == closed(),
            "the notes of an actor outlived their runner"
        );
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}

/// Something taken off the lane.
pub(crate) enum Item<M> {
    Note(Note),
    Control(Control<M>),
}

/// What was taken off the lane, in order.
pub(crate) struct Taken<M> {
    next: *mut Link,
    _items: PhantomData<Item<M>>,
}

impl<M> Taken<M> {
    fn of(mut newest: *mut Link) -> Self {
        let mut next = ptr::null_mut();
        if newest == closed() {
            newest = ptr::null_mut();
        }
        while !newest.is_null() {
            // SAFETY: the runner has taken the list, so its nodes are its own.
            let older = unsafe { core::mem::replace(&mut (*newest).next, next) };
            next = newest;
            newest = older;
        }
        Self { next, _items: PhantomData }
    }
}

impl<M> Iterator for Taken<M> {
    type Item = Item<M>;

    fn next(&mut self) -> Option<Item<M>> {
        if self.next.is_null() {
            return None;
        }
        let node = self.next;
        // SAFETY: the list is this iterator's own.
        let Link { next, kind } = unsafe { &*node };
        self.next = *next;
        Some(match *kind {
            Kind::Note => {
                // SAFETY: a node of this kind was boxed by `push`.
                Item::Note(unsafe { Box::from_raw(node.cast::<NoteNode>()) }.note)
            }
            Kind::Control => {
                // SAFETY: a node of this kind was boxed by `push_control`, whose caller promised
                // the message type of the actor.
                Item::Control(unsafe { Box::from_raw(node.cast::<ControlNode<M>>()) }.item)
            }
        })
    }
}

impl<M> Drop for Taken<M> {
    fn drop(&mut self) {
        for item in self.by_ref() {
            drop(item);
        }
    }
}
