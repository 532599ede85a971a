//! The untyped part of an actor that everybody can reach: who it is, and what it is to look at.
//!
//! # Bits
//!
//! ```text
//! 31      16 15 11     10       9     8      7       6     5       4      3    2       1       0
//! [suspended|STOP_WHEN_IDLE PREPARE WOKEN FAILED WAITERS STOPPED RESTART RESUME STOP FUTURES CHILD_STOPPED SYSTEM_QUEUE]
//! ```
//!
//! A bit is raised by a read-modify-write, after what it is about was left, and then the cell is
//! woken: the state word of the process publishes both. The runner takes the low bits by a swap
//! before it looks at what they are about, so what comes later raises them again.
//!
//! * SYSTEM_QUEUE: something hangs on the lane of [notes](crate::system_queue).
//! * CHILD_STOPPED: a child hangs on the list of [reports](ActorHeader::report).
//! * FUTURES: one of the actor's futures was woken.
//! * WOKEN: somebody has called the runner, perhaps for something that has no bit. Raised before
//!   the call, and by the runner itself if it finds that it was called and sees no bit.
//! * STOP, RESUME, RESTART: what a supervisor has decided. They need no room, so they are never
//!   refused for want of it. STOP stays; of the other two the runner does what is there. What more
//!   there is to say about it lies in the [line](Line::set_order) of the actor by then.
//! * STOPPED: the actor is over.
//! * WAITERS: somebody waits for room in its mailbox. It stays up as long as that is so; see
//!   [`send`](crate::send).
//! * FAILED: it has failed and has said so to its parent, which has not decided yet. The actor
//!   raises it before it says so, and takes it down when it goes on, whyever; the parent takes it
//!   down when it decides about the actor, also on account of another one. ChildReport of a failure that
//!   comes with the bit down is old.
//! * STOP_WHEN_IDLE: it is to stop as soon as it has nothing to do: no message, and no future under way.
//!   It stays.
//! * PREPARE: the system is sealed, so what may be needed later is to be made now.
//! * suspended: how many times somebody above has suspended it.
//!
//! # StoppedChildren
//!
//! A child that has ended hangs its own cell on a list of its parent's, by the link that
//! run queues need no more: so the end of an actor needs no memory. It happens once in its life.
//!
//! Who hangs itself on an empty list raises CHILD_STOPPED and, unless that was up, wakes the parent; who
//! finds others there does not, for the parent takes all of them, in the turn that the first one
//! has asked for or will ask for. The parent takes the whole list at once, after it has taken
//! CHILD_STOPPED down. What a child has to say of its end lies in its own [line](Line) by then.
#![expect(unsafe_code, reason = "hangs cells on the lists of their parents")]

use alloc::boxed::Box;
use core::{fmt, ptr, ptr::NonNull};

use clockjack_exec::custom::CustomRef;
use clockjack_sync::{
    Counted,
    lock::Lock,
    mutant,
    prim::atomic::{
        AtomicPtr, AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

use crate::{
    ActorPath, Overflow,
    children::Children,
    path::OwnPath,
    send::WaitList,
    system::SystemInner,
    system_queue::{
        ChildReport, InternalMessage, ParentLink, PreallocatedNode, SupervisionCommand,
        SystemQueue, TimerEvent,
    },
};

pub(crate) const SYSTEM_QUEUE: u32 = 1;
pub(crate) const CHILD_STOPPED: u32 = 1 << 1;
pub(crate) const FUTURES: u32 = 1 << 2;
pub(crate) const STOP: u32 = 1 << 3;
pub(crate) const RESUME: u32 = 1 << 4;
pub(crate) const RESTART: u32 = 1 << 5;
pub(crate) const STOPPED: u32 = 1 << 6;
pub(crate) const WAITERS: u32 = 1 << 7;
pub(crate) const FAILED: u32 = 1 << 8;
pub(crate) const WOKEN: u32 = 1 << 9;
pub(crate) const PREPARE: u32 = 1 << 10;
pub(crate) const STOP_WHEN_IDLE: u32 = 1 << 11;
pub(crate) const SUSPEND_ONE: u32 = 1 << 16;

/// What the runner takes down when it looks.
const ONE_SHOT: u32 = PREPARE | WOKEN | SYSTEM_QUEUE | CHILD_STOPPED | FUTURES | RESUME | RESTART;

/// From this depth on, a cell that is freed does not let go of its parent within its own drop:
/// each level would take a piece of the stack.
const DEFERRED_DROP_DEPTH: usize = 64;

/// A reference to an actor whose messages are not known.
pub(crate) type AnyActor = CustomRef<ActorHeader>;

/// See the [module](self). As aligned as a front around it, whose mailbox has room for a value that
/// is aligned to eight bytes, also where an address has four.
#[repr(C, align(8))]
pub(crate) struct ActorHeader {
    flags: AtomicU32,
    pub(crate) overflow: Overflow,
    /// Its strategy for children has hooks that want to know when one is started.
    pub(crate) has_hooks: bool,
    /// Its strategy may restart children: these will have something to say, time and again.
    pub(crate) may_restart_children: bool,
    pub(crate) system_queue: SystemQueue,
    /// Children that have ended; each has given a reference to itself.
    stopped_children: AtomicPtr<()>,
    pub(crate) path: OwnPath,
    /// None for the root.
    pub(crate) parent: Option<AnyActor>,
    children: AtomicPtr<Lock<Children>>,
    /// What only some have; made when it is first needed.
    rare: AtomicPtr<RareShared>,
    /// Lives as long as the root's cell, which every cell holds through its parents.
    system: NonNull<SystemInner>,
}

/// What only some actors have beside their cell.
struct RareShared {
    parent_link: ParentLink,
    /// Those who wait for room in the mailbox; made when the first one comes.
    waiters: AtomicPtr<Box<dyn WaitList>>,
}

// SAFETY: the system is shared. Messages that wait in the list are put there and taken out by refs
// that may be where they are, and by the runner. The rest is made for sharing.
unsafe impl Send for ActorHeader {}
// SAFETY: as above.
unsafe impl Sync for ActorHeader {}

impl ActorHeader {
    /// # Safety
    ///
    /// The system lives as long as the cell of this, or any cell above it; without a parent, its
    /// count is given away, by `Counted::into_raw`.
    pub(crate) unsafe fn new(
        path: ActorPath,
        parent: Option<AnyActor>,
        system: NonNull<SystemInner>,
        overflow: Overflow,
    ) -> Self {
        Self {
            flags: AtomicU32::new(0),
            overflow,
            has_hooks: false,
            may_restart_children: false,
            system_queue: SystemQueue::new(),
            stopped_children: AtomicPtr::new(ptr::null_mut()),
            path: OwnPath::new(path),
            parent,
            children: AtomicPtr::new(ptr::null_mut()),
            rare: AtomicPtr::new(ptr::null_mut()),
            system,
        }
    }

    pub(crate) fn system(&self) -> &SystemInner {
        // SAFETY: by the contract of `new`.
        unsafe { self.system.as_ref() }
    }

    pub(crate) fn system_ptr(&self) -> NonNull<SystemInner> {
        self.system
    }

    /// What is up, to be looked at without taking it down.
    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        // Acquire: pairs with `raise`.
        self.flags.load(Acquire)
    }

    /// What is up; what has to be looked at once is taken down. For the runner.
    pub(crate) fn take_flags(&self) -> u32 {
        let flags = self.flags();
        if flags & ONE_SHOT == 0 {
            return flags;
        }
        // Acquire: pairs with `raise`.
        self.flags.fetch_and(!ONE_SHOT, AcqRel)
    }

    /// Raises bits; the caller wakes the cell.
    pub(crate) fn set_flags(&self, flags: u32) -> u32 {
        // Release: pairs with `take_flags`; what the bits are about was left before.
        self.flags.fetch_or(flags, AcqRel)
    }

    /// Takes bits down that are nobody else's to take.
    pub(crate) fn clear_flags(&self, flags: u32) {
        if self.flags() & flags == 0 {
            return;
        }
        // AcqRel: as for `raise`, among those who hold the lock of what the bits are about.
        self.flags.fetch_and(!flags, AcqRel);
    }

    /// Suspends once more, or once less.
    pub(crate) fn suspend(&self, more: bool) {
        if more {
            self.flags.fetch_add(SUSPEND_ONE, AcqRel);
        } else {
            let before = self.flags.fetch_sub(SUSPEND_ONE, AcqRel);
            debug_assert!(before >= SUSPEND_ONE, "resumed more often than suspended");
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.flags() & STOPPED != 0
    }

    /// Hangs a child that has ended on this list. If true, the caller raises CHILD_STOPPED, and wakes.
    pub(crate) fn push_stopped_child(&self, child: AnyActor) -> bool {
        let address = child.as_raw().as_ptr();
        // Relaxed: the exchange decides.
        let mut seen = self.stopped_children.load(Relaxed);
        loop {
            // SAFETY: a cell hangs on one list once in its life, in its last turn, which this is.
            unsafe { child.set_spare_link(seen) };
            // Release: pairs with the swap of the parent's runner.
            match self.stopped_children.compare_exchange_weak(seen, address, Release, Relaxed) {
                // Its count belongs to the list.
                Ok(_) => {
                    core::mem::forget(child);
                    return seen.is_null();
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the children that have reported, oldest first. For the runner.
    pub(crate) fn take_stopped_children(&self) -> StoppedChildren {
        // Acquire: pairs with `report`.
        let mut newest = self.stopped_children.swap(ptr::null_mut(), AcqRel);
        let mut next = ptr::null_mut();
        while let Some(cell) = NonNull::new(newest) {
            // SAFETY: the list holds a reference to each cell on it.
            let cell = core::mem::ManuallyDrop::new(unsafe { AnyActor::from_raw(cell) });
            // SAFETY: the child has hung itself up, in its last turn.
            let older = unsafe { cell.spare_link() };
            // SAFETY: as above; it does not touch the link again.
            unsafe { cell.set_spare_link(next) };
            next = newest;
            newest = older;
        }
        StoppedChildren(next)
    }

    /// The children; none if it never had one.
    pub(crate) fn children(&self) -> Option<&Lock<Children>> {
        // Acquire: pairs with `children_or_new`.
        let children = self.children.load(Acquire);
        // SAFETY: it is one that was made, or no address of one.
        unsafe { children_at(children) }
    }

    /// The children, for who wants to add one; none if it has begun to stop and never had any.
    pub(crate) fn children_or_new(&self) -> Option<&Lock<Children>> {
        // Acquire: pairs with the exchange below.
        let seen = self.children.load(Acquire);
        if !seen.is_null() {
            // SAFETY: as in `children`.
            return unsafe { children_at(seen) };
        }
        let made = Box::into_raw(Box::new(Lock::new(Children::default())));
        // Release: what was just made; pairs with `children`.
        match self.children.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            // SAFETY: it stands in the cell now, which frees it at its end.
            Ok(_) => Some(unsafe { &*made }),
            Err(others) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `children`.
                unsafe { children_at(others) }
            }
        }
    }

    /// From here on no child is added: who adds the first one at the same time either is seen by
    /// who looks at the children after this, or finds that there will be none. For the runner.
    pub(crate) fn close_children(&self) {
        if mutant!("actor-closes-no-first-child") && self.children().is_none() {
            return;
        }
        // Acquire: pairs with the exchange of `children_or_new`; there is nothing to release.
        let closed = self.children.compare_exchange(ptr::null_mut(), CLOSED, AcqRel, Acquire);
        let Err(seen) = closed else { return };
        // SAFETY: as in `children`.
        if let Some(children) = unsafe { children_at(seen) } {
            children.with(|children| children.is_closed = true);
        }
    }
}

/// Stands where a list of children would: there will be none. No list has this address.
const CLOSED: *mut Lock<Children> = ptr::without_provenance_mut(align_of::<Lock<Children>>());

/// The list at an address.
///
/// # Safety
///
/// It is null, [`CLOSED`], or a list that lives for as long as the result is used.
unsafe fn children_at<'a>(children: *mut Lock<Children>) -> Option<&'a Lock<Children>> {
    if children == CLOSED {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { children.as_ref() }
}

impl ActorHeader {
    fn rare(&self) -> Option<&RareShared> {
        // Acquire: pairs with `rare_or_new`.
        let rare = self.rare.load(Acquire);
        // SAFETY: it is not freed before the cell.
        unsafe { rare.as_ref() }
    }

    fn rare_or_new(&self) -> &RareShared {
        if let Some(rare) = self.rare() {
            return rare;
        }
        let waiters = AtomicPtr::new(ptr::null_mut());
        let made = Box::into_raw(Box::new(RareShared { parent_link: ParentLink::new(), waiters }));
        // Release: what was just made; pairs with `side`.
        match self.rare.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            // SAFETY: it stands in the cell now, which frees it at its end.
            Ok(_) => unsafe { &*made },
            Err(others) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `side`.
                unsafe { &*others }
            }
        }
    }

    /// What goes between this actor and its parent; none if nothing ever did.
    pub(crate) fn parent_link(&self) -> Option<&ParentLink> {
        self.rare().map(|rare| &rare.parent_link)
    }

    pub(crate) fn parent_link_or_new(&self) -> &ParentLink {
        &self.rare_or_new().parent_link
    }

    /// Those who wait for room; none if nobody ever did.
    pub(crate) fn wait_list(&self) -> Option<&dyn WaitList> {
        // Acquire: pairs with `wait_list_or`.
        let waiters = self.rare()?.waiters.load(Acquire);
        // SAFETY: it is not freed before the cell.
        unsafe { waiters.as_ref() }.map(|waiters| &**waiters)
    }

    /// Those who wait for room, with a list that is made if there is none.
    pub(crate) fn wait_list_or(&self, make: impl FnOnce() -> Box<dyn WaitList>) -> &dyn WaitList {
        if let Some(waiters) = self.wait_list() {
            return waiters;
        }
        let made = Box::into_raw(Box::new(make()));
        let waiters = &self.rare_or_new().waiters;
        // Release: what was just made; pairs with `wait_list`.
        match waiters.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            // SAFETY: it stands in the cell now, which frees it at its end.
            Ok(_) => unsafe { &**made },
            Err(others) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `wait_list`.
                unsafe { &**others }
            }
        }
    }
}

impl Drop for ActorHeader {
    fn drop(&mut self) {
        self.drop_rare();
        drop(self.take_stopped_children());
        self.drop_children();
        let is_deep = self.path.is_deeper_than(DEFERRED_DROP_DEPTH);
        // The system is there as long as the parent, or its own count of it.
        // SAFETY: by the contract of `new`.
        self.path.release(unsafe { self.system.as_ref() }.memory());
        if self.parent.is_none() {
            // SAFETY: the root was given a counted pointer to its system, and gives it back.
            drop(unsafe { Counted::from_raw(self.system) });
        } else if is_deep && !mutant!("actor-drops-parents-deep") {
            let parent = self.parent.take();
            self.system().defer_drop(parent);
        }
    }
}

impl ActorHeader {
    fn drop_rare(&mut self) {
        let rare = self.rare.load(Relaxed);
        if rare.is_null() {
            return;
        }
        // SAFETY: it came from a box, and the cell is gone.
        let rare = unsafe { Box::from_raw(rare) };
        let waiters = rare.waiters.load(Relaxed);
        if !waiters.is_null() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(waiters) });
        }
    }

    fn drop_children(&mut self) {
        let children = self.children.load(Relaxed);
        if !children.is_null() && children != CLOSED {
            // SAFETY: it came from a box, and the cell is gone.
            drop(unsafe { Box::from_raw(children) });
        }
    }
}

impl fmt::Debug for ActorHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorHeader").field("path", &*self.path).finish_non_exhaustive()
    }
}

/// Children that have ended, in the order in which they did.
pub(crate) struct StoppedChildren(*mut ());

impl Iterator for StoppedChildren {
    type Item = AnyActor;

    fn next(&mut self) -> Option<AnyActor> {
        // SAFETY: the list holds a reference to each cell on it, which is given away here.
        let child = unsafe { AnyActor::from_raw(NonNull::new(self.0)?) };
        // SAFETY: it is over, and the list is this iterator's own.
        self.0 = unsafe { child.spare_link() };
        Some(child)
    }
}

impl Drop for StoppedChildren {
    fn drop(&mut self) {
        for child in self.by_ref() {
            drop(child);
        }
    }
}

/// What others do to an actor of which they do not know more.
pub(crate) trait SystemSend {
    /// Leaves a note and makes the actor look at it; it comes back if the actor is over.
    fn send_internal(&self, message: InternalMessage) -> Result<(), InternalMessage>;
    /// As [`note`](Self::note), in a node that is there.
    fn send_internal_in(
        &self,
        node: PreallocatedNode,
        message: InternalMessage,
    ) -> Result<(), InternalMessage>;
    /// Leaves news of a child, by its line. What comes back is refused: the actor is over.
    fn send_child_report(
        &self,
        child: &AnyActor,
        put: impl FnOnce(&mut ChildReport),
    ) -> Option<ChildReport>;
    /// Leaves what the clock says.
    fn send_timer_event(&self, event: TimerEvent);
    /// Raises bits and makes the actor look at them.
    fn wake_with(&self, flags: u32);
    /// The same with an order that the bits do not say all of.
    fn wake_with_command(&self, flags: u32, command: SupervisionCommand);
}

impl SystemSend for AnyActor {
    fn send_internal(&self, message: InternalMessage) -> Result<(), InternalMessage> {
        self.send_internal_in(PreallocatedNode::new(), message)
    }

    fn send_internal_in(
        &self,
        node: PreallocatedNode,
        message: InternalMessage,
    ) -> Result<(), InternalMessage> {
        self.system_queue.push_in(node, message)?;
        self.wake_with(SYSTEM_QUEUE);
        Ok(())
    }

    fn send_child_report(
        &self,
        child: &AnyActor,
        put: impl FnOnce(&mut ChildReport),
    ) -> Option<ChildReport> {
        let refused = self.system_queue.push_child_report(child, put);
        if refused.is_none() {
            self.wake_with(SYSTEM_QUEUE);
        }
        refused
    }

    fn send_timer_event(&self, event: TimerEvent) {
        self.system_queue.push_timer_event(self.parent_link_or_new(), event);
        self.wake_with(SYSTEM_QUEUE);
    }

    fn wake_with(&self, flags: u32) {
        self.set_flags(flags);
        if !mutant!("actor-order-unwoken") {
            self.wake();
        }
    }

    fn wake_with_command(&self, flags: u32, command: SupervisionCommand) {
        self.parent_link_or_new().set_command(Some(command));
        self.wake_with(flags);
    }
}
