//! The untyped header of an actor: identity, position in the tree, and flag word. Everybody who has
//! any reference to the actor can access it.
//!
//! # Flags
//!
//! ```text
//!  31..16  suspended (a count)
//!  15 REFUSALS         14 SATURATED  13 MAILBOX_FULL  12 EVENTS
//!  11 STOP_WHEN_IDLE    8 FAILED     5 RESTART    2 FUTURES
//!  10 PREPARE           7 WAITERS    4 RESUME     1 CHILD_STOPPED
//!   9 WOKEN             6 STOPPED    3 STOP       0 SYSTEM_QUEUE
//! ```
//!
//! A producer stores its data (a node in a queue, a command in the parent link), sets the flag by a
//! read-modify-write, and then wakes the cell (the three steps of `cell`, of which setting the flag
//! is the first). The notification of the mailbox word publishes the data and the flag. The runner
//! clears the one-shot flags by one read-modify-write *before* it reads the data that they
//! announce. So a producer that stores data after the runner has read it also sets its flag after
//! the runner has cleared it, and the next poll sees the flag.
//!
//! * SYSTEM_QUEUE: the [system queue](crate::mailbox::system_queue) is not empty.
//! * CHILD_STOPPED: the list of [stopped children](ActorHeader::push_stopped_child) is not empty.
//! * FUTURES: one of the actor's futures was woken.
//! * WOKEN: a thread has notified the runner, maybe for a reason that has no flag. Set before the
//!   notification, and by the runner itself whenever it fails to go idle (`restore_woken`).
//! * STOP, RESUME, RESTART: commands of the supervisor. A flag needs no memory, so a command can
//!   always be given. STOP is never cleared. If both RESUME and RESTART are set, RESTART wins.
//!   Further parameters of the command are already in the [parent link](ParentLink::set_command) of
//!   the actor when the flag is set.
//! * STOPPED: the actor has stopped.
//! * WAITERS: a sender waits for room in the mailbox. Set as long as this is so; see
//!   [`send`](crate::send).
//! * FAILED: the actor has failed, has reported this to its parent, and the parent has not decided
//!   yet. The actor sets the flag before it sends the report, and clears it when it continues for
//!   any reason. The parent clears it when it decides about the actor, also if it decides because
//!   of a sibling. So a report of a failure that arrives while the flag is clear is stale.
//! * STOP_WHEN_IDLE: the actor is to stop as soon as it has neither a message nor a running future.
//!   Never cleared.
//! * EVENTS: events of the [event stream](crate::EventStream) wait until this actor, a subscriber,
//!   has room for them, or until a thread drops them.
//! * REFUSALS: of the root only: mailboxes have refused messages, which the root is to
//!   [report](crate::system).
//! * PREPARE: the system is sealed, so what may be needed later is to be allocated now.
//! * suspended: how many times the parent or a host has suspended the actor.
//!
//! # Stopped children
//!
//! A child that has stopped pushes its own cell onto a list of its parent, a [closable
//! stack](clockjack_sync::stack) through the link which the run queues no longer need. So stopping
//! an actor allocates nothing. A cell is pushed once in its life.
//!
//! The child that pushes onto an empty list sets CHILD_STOPPED and, if the flag was clear, wakes
//! the parent. A child that finds the list non-empty does neither: the parent takes the whole list
//! in the poll that the first child has requested or is about to request. The parent clears
//! CHILD_STOPPED first and takes the whole list after that, by one swap. The final failure of a
//! child is already in the child's own [parent link](ParentLink) when the child pushes itself.
#![expect(unsafe_code, reason = "hangs cells on the lists of their parents")]

use alloc::boxed::Box;
use core::{fmt, ptr, ptr::NonNull};

use clockjack_exec::custom_task::CustomTaskRef;
use clockjack_observe::Counter;
use clockjack_sync::{
    Arc,
    link::{Link, Linked},
    primitive::atomic::{
        AtomicBool, AtomicPtr, AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    spin_lock::SpinLock,
    stack::ClosableStack,
};

use crate::{
    ActorPath, Overflow,
    cell::{children::Children, counting_slot::CountingSlot},
    mailbox::system_queue::{
        ChildReport, InternalMessage, ParentLink, PreallocatedNode, SupervisionCommand,
        SystemQueue, TimerEvent,
    },
    path::OwnPath,
    send::WaitList,
    system::SystemInner,
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
pub(crate) const EVENTS: u32 = 1 << 12;
/// The mailbox has refused a message because it was full.
pub(crate) const MAILBOX_FULL: u32 = 1 << 13;
/// The mailbox counts as saturated; only the runner sets and clears it.
pub(crate) const SATURATED: u32 = 1 << 14;
/// The root is to report refused messages.
pub(crate) const REFUSALS: u32 = 1 << 15;
pub(crate) const SUSPEND_ONE: u32 = 1 << 16;

/// The flags that the runner clears when it reads them.
const ONE_SHOT: u32 =
    PREPARE | WOKEN | SYSTEM_QUEUE | CHILD_STOPPED | FUTURES | RESUME | RESTART | EVENTS | REFUSALS;

/// A cell at this depth or deeper does not drop its parent within its own drop, because each level
/// would take a part of the stack.
const DEFERRED_DROP_DEPTH: usize = 64;

/// A reference to an actor whose message type is not known.
pub(crate) type AnyActor = CustomTaskRef<ActorHeader>;

/// See the [module](self). Aligned like an [`ActorShared`](crate::cell::shared::ActorShared) around
/// it, whose mailbox has room for a value that is aligned to eight bytes, also where a pointer has
/// four.
#[repr(C, align(8))]
pub(crate) struct ActorHeader {
    flags: AtomicU32,
    pub(crate) overflow: Overflow,
    /// The strategy for children has hooks that are called when a child starts.
    pub(crate) has_hooks: bool,
    /// The strategy for children may restart them, so children will send reports repeatedly.
    pub(crate) may_restart_children: bool,
    /// The first start of a child waits for those of the children that were spawned before it.
    pub(crate) starts_children_in_order: bool,
    pub(crate) system_queue: SystemQueue,
    /// Children that have stopped. The list owns one reference to each.
    stopped_children: ClosableStack<StoppedChild>,
    pub(crate) path: OwnPath,
    /// None for the root.
    pub(crate) parent: Option<AnyActor>,
    children: AtomicPtr<SpinLock<Children>>,
    /// State that only few actors have, allocated on first use; counts the messages that the full
    /// mailbox has returned to their senders.
    rare: CountingSlot<RareShared>,
    /// Lives as long as the cell of the root, which each cell keeps alive through its parents.
    system: NonNull<SystemInner>,
}

/// Shared state that only few actors have.
struct RareShared {
    parent_link: ParentLink,
    /// The senders that wait for room in the mailbox; allocated for the first one.
    waiters: AtomicPtr<Box<dyn WaitList>>,
    restarts: Counter,
    /// Between the begin and the end of a restart; for displays only.
    is_restarting: AtomicBool,
}

impl Drop for RareShared {
    fn drop(&mut self) {
        let waiters = self.waiters.load(Relaxed);
        if !waiters.is_null() {
            // SAFETY: it came from a box, and the cell is gone.
            drop(unsafe { Box::from_raw(waiters) });
        }
    }
}

// SAFETY: the system is shared. Messages in the list of waiters are inserted and removed by
// references that may be on their thread, and by the runner. The rest is made for sharing.
unsafe impl Send for ActorHeader {}
// SAFETY: as above.
unsafe impl Sync for ActorHeader {}

impl ActorHeader {
    /// # Safety
    ///
    /// The system lives as long as the cell of this header, or as any cell above it. Without a
    /// parent, the header takes over a reference count of the system that was released by
    /// `Arc::into_raw`.
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
            starts_children_in_order: false,
            system_queue: SystemQueue::new(),
            stopped_children: ClosableStack::new(),
            path: OwnPath::new(path),
            parent,
            children: AtomicPtr::new(ptr::null_mut()),
            rare: CountingSlot::new(),
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

    /// The flags that are set, without clearing any.
    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        // Acquire: pairs with `set_flags`.
        self.flags.load(Acquire)
    }

    /// The flags that are set; clears the one-shot flags. For the runner.
    pub(crate) fn take_flags(&self) -> u32 {
        let flags = self.flags();
        if flags & ONE_SHOT == 0 {
            return flags;
        }
        // Acquire: pairs with `set_flags`; the data that the flags announce is visible.
        self.flags.fetch_and(!ONE_SHOT, AcqRel)
    }

    /// Sets flags; the caller wakes the cell. Returns the previous flags.
    pub(crate) fn set_flags(&self, flags: u32) -> u32 {
        // Release: pairs with `take_flags`; the data that the flags announce was stored before.
        self.flags.fetch_or(flags, AcqRel)
    }

    /// Clears flags that only the caller may clear now.
    pub(crate) fn clear_flags(&self, flags: u32) {
        if self.flags() & flags == 0 {
            return;
        }
        // AcqRel: as in `set_flags`, among the threads that hold the lock of the data that the
        // flags announce.
        self.flags.fetch_and(!flags, AcqRel);
    }

    /// Increments or decrements the suspend count.
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

    /// Pushes a child that has stopped. If true, the list was empty: the caller sets CHILD_STOPPED
    /// and wakes the parent.
    pub(crate) fn push_stopped_child(&self, child: AnyActor) -> bool {
        // The list is never closed: it is drained for the last time when the parent is dropped.
        self.stopped_children.push(StoppedChild(child)).unwrap_or(false)
    }

    /// Takes the children that have stopped, oldest first. For the runner.
    pub(crate) fn take_stopped_children(&self) -> impl Iterator<Item = AnyActor> + use<> {
        self.stopped_children.drain().map(|child| child.0)
    }

    /// The children; none if the actor never had one.
    pub(crate) fn children(&self) -> Option<&SpinLock<Children>> {
        // Acquire: pairs with `children_or_new`.
        let children = self.children.load(Acquire);
        // SAFETY: the pointer is null, `CLOSED`, or a list that was allocated by `children_or_new`.
        unsafe { children_at(children) }
    }

    /// The children, to add one; none if the actor has begun to stop and never had a child.
    pub(crate) fn children_or_new(&self) -> Option<&SpinLock<Children>> {
        // Acquire: pairs with the compare-and-swap below.
        let seen = self.children.load(Acquire);
        if !seen.is_null() {
            // SAFETY: as in `children`.
            return unsafe { children_at(seen) };
        }
        let made = Box::into_raw(Box::new(SpinLock::new(Children::default())));
        // Release: publishes the new allocation; pairs with `children`.
        match self.children.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            // SAFETY: the cell owns it now, and frees it in its drop.
            Ok(_) => Some(unsafe { &*made }),
            Err(others) => {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `children`.
                unsafe { children_at(others) }
            }
        }
    }

    /// No child is added from here on. If another thread adds the first child concurrently, one of
    /// the two compare-and-swaps is first: either the other thread's, then the runner sees the list
    /// and closes it; or this one, then the other thread finds `CLOSED` and refuses the child. For
    /// the runner.
    pub(crate) fn close_children(&self) {
        // Acquire: pairs with the compare-and-swap of `children_or_new`; there is nothing to
        // release.
        let closed = self.children.compare_exchange(ptr::null_mut(), CLOSED, AcqRel, Acquire);
        let Err(seen) = closed else { return };
        // SAFETY: as in `children`.
        if let Some(children) = unsafe { children_at(seen) } {
            children.with(|children| children.is_closed = true);
        }
    }
}

/// Replaces the pointer to the list of children: there will never be one. No list has this address.
const CLOSED: *mut SpinLock<Children> =
    ptr::without_provenance_mut(align_of::<SpinLock<Children>>());

/// The list at an address.
///
/// # Safety
///
/// The address is null, [`CLOSED`], or that of a list that lives as long as the result is used.
unsafe fn children_at<'a>(children: *mut SpinLock<Children>) -> Option<&'a SpinLock<Children>> {
    if children == CLOSED {
        return None;
    }
    // SAFETY: by the contract.
    unsafe { children.as_ref() }
}

impl ActorHeader {
    fn rare(&self) -> Option<&RareShared> {
        self.rare.get()
    }

    fn rare_or_new(&self) -> &RareShared {
        self.rare.get_or_insert_with(|| RareShared {
            parent_link: ParentLink::new(),
            waiters: AtomicPtr::new(ptr::null_mut()),
            restarts: Counter::new(),
            is_restarting: AtomicBool::new(false),
        })
    }

    /// The link between this actor and its parent; none if it was never used.
    pub(crate) fn parent_link(&self) -> Option<&ParentLink> {
        self.rare().map(|rare| &rare.parent_link)
    }

    pub(crate) fn parent_link_or_new(&self) -> &ParentLink {
        &self.rare_or_new().parent_link
    }

    /// Counts a message that was refused because the mailbox is full. Interrupts may call it.
    pub(crate) fn count_refused(&self) {
        self.rare.count();
    }

    /// How many messages were refused because the mailbox was full.
    pub(crate) fn refused(&self) -> usize {
        self.rare.n_counted()
    }

    /// Counts a restart of the actor. For the runner.
    pub(crate) fn count_restart(&self) {
        self.rare_or_new().restarts.increment();
    }

    /// How often the actor was restarted.
    pub(crate) fn restarts(&self) -> usize {
        self.rare().map_or(0, |rare| rare.restarts.get())
    }

    /// A restart begins or has ended. For the runner.
    pub(crate) fn set_restarting(&self, is_restarting: bool) {
        // Relaxed: for displays; no decision depends on it.
        self.rare_or_new().is_restarting.store(is_restarting, Relaxed);
    }

    /// Whether the actor is being restarted.
    pub(crate) fn is_restarting(&self) -> bool {
        // Relaxed: as above.
        self.rare().is_some_and(|rare| rare.is_restarting.load(Relaxed))
    }

    /// The senders that wait for room; none if there never was one.
    pub(crate) fn wait_list(&self) -> Option<&dyn WaitList> {
        // Acquire: pairs with `wait_list_or`.
        let waiters = self.rare()?.waiters.load(Acquire);
        // SAFETY: it is not freed before the cell.
        unsafe { waiters.as_ref() }.map(|waiters| &**waiters)
    }

    /// The senders that wait for room, in a list that is allocated if there is none.
    pub(crate) fn wait_list_or(&self, make: impl FnOnce() -> Box<dyn WaitList>) -> &dyn WaitList {
        if let Some(waiters) = self.wait_list() {
            return waiters;
        }
        let made = Box::into_raw(Box::new(make()));
        let waiters = &self.rare_or_new().waiters;
        // Release: publishes the new allocation; pairs with `wait_list`.
        match waiters.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            // SAFETY: the cell owns it now, and frees it in its drop.
            Ok(_) => unsafe { &**made },
            Err(others) => {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `wait_list`.
                unsafe { &**others }
            }
        }
    }
}

impl Drop for ActorHeader {
    fn drop(&mut self) {
        self.rare.clear();
        drop(self.take_stopped_children());
        self.drop_children();
        let is_deep = self.path.is_deeper_than(DEFERRED_DROP_DEPTH);
        // The system exists as long as the parent, or as this header's own count of it.
        // SAFETY: by the contract of `new`.
        self.path.release(unsafe { self.system.as_ref() }.memory());
        if self.parent.is_none() {
            // SAFETY: the root owns a reference count of its system, and releases it.
            drop(unsafe { Arc::from_raw(self.system) });
        } else if is_deep {
            let parent = self.parent.take();
            self.system().defer_drop(parent);
        }
    }
}

impl ActorHeader {
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

/// A child on the list of its parent.
struct StoppedChild(AnyActor);

// SAFETY: the reference keeps the cell in place. A cell is pushed once in its life, in its last
// poll, so the link is free and no other handle is turned into it.
unsafe impl Linked for StoppedChild {
    type Handle = Self;

    fn into_link(child: Self) -> NonNull<Link> {
        // SAFETY: as above: the task is in its last poll, or complete.
        unsafe { child.0.into_spare_link() }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: by the contract the link came from `into_link`, and its reference is passed on.
        Self(unsafe { AnyActor::from_spare_link(link) })
    }
}

/// What the system sends to an actor whose message type it does not know.
pub(crate) trait SystemSend {
    /// Pushes a message onto the system queue and wakes the actor; returns the message if the actor
    /// has stopped.
    fn send_internal(&self, message: InternalMessage) -> Result<(), InternalMessage>;
    /// As [`send_internal`](Self::send_internal), in a node that was allocated before.
    fn send_internal_in(
        &self,
        node: PreallocatedNode,
        message: InternalMessage,
    ) -> Result<(), InternalMessage>;
    /// Reports about a child, by the child's parent link. Returns the report if the actor has
    /// stopped.
    fn send_child_report(
        &self,
        child: &AnyActor,
        put: impl FnOnce(&mut ChildReport),
    ) -> Option<ChildReport>;
    /// Delivers a timer event.
    fn send_timer_event(&self, event: TimerEvent);
    /// Sets flags and wakes the actor.
    fn wake_with(&self, flags: u32);
    /// As [`wake_with`](Self::wake_with), with parameters of the command.
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
        self.wake();
    }

    fn wake_with_command(&self, flags: u32, command: SupervisionCommand) {
        self.parent_link_or_new().set_command(Some(command));
        self.wake_with(flags);
    }
}
