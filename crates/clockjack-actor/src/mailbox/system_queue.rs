//! The system queue of an actor: internal messages, control messages, reports of children and timer
//! events, on a [closable stack](clockjack_sync::stack).
//!
//! The queue is one word per cell, because most actors never use it. It holds nodes of several
//! kinds in the order of their arrival; the runner distributes them. A producer whose node was
//! accepted sets SYSTEM_QUEUE in the flag word of the cell and wakes it.
//!
//! # Who owns the node
//!
//! A message that the system itself sends needs no memory at the time it is sent. So sending cannot
//! fail for lack of memory, not even when a timer fires or when the system is sealed:
//!
//! * Child and parent communicate through the [`ParentLink`] of the child, which lives as long as
//!   the child. It is allocated together with the child if the parent may restart it, or else when
//!   the system is sealed, or when the child first sends a report. A [`ChildReport`] goes up in a
//!   reusable node of the link. Reports that the parent has not read yet are merged in the node: of
//!   several failures the last one counts, because the parent has already decided about the earlier
//!   ones, because of a sibling; of several restarts the last one counts. A
//!   [command](SupervisionCommand) that is more than a flag is stored in the link as well; the last
//!   one counts, and a flag announces it. The link also stores the final failure, which the list of
//!   stopped children announces.
//! * Timer events arrive in the second reusable node of the link, as [`TimerEvents`]. Each slot of
//!   an actor's timers has a reusable node of its own, with its [`TimerFired`].
//! * A watch preallocates two nodes: the first one carries the watch to the watched actor, stays
//!   there, and carries the termination back; the second one stays with the watcher, in case it
//!   stops watching.
//!
//! A node is allocated at the time of sending only for what comes from outside: control messages,
//! messages that a host sends by hand, and the start of a child if a strategy has a hook for it.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, ptr::NonNull, time::Duration};

use clockjack_exec::{Failure, Pid};
use clockjack_sync::{Arc, spin_lock::SpinLock, stack::Drained};

use crate::{
    ActorPath, FailureInfo, FailureReport, SystemMessage, Terminated, TerminationCause,
    cell::header::AnyActor,
    mailbox::{
        control::{Control, TimerFired},
        reusable_node::{NodeHead, NodePtr, NodePush, NodeStack, ReusableNode},
    },
    strategy::RestartHistory,
};

/// A message of the system to a cell.
pub(crate) enum InternalMessage {
    /// An actor wants to be notified when this actor stops.
    Watch { watcher: AnyActor },
    /// An actor no longer wants to be notified.
    Unwatch { watcher: Pid },
    /// An actor that this one watches has stopped.
    Terminated(Terminated),
    /// A child is about to be created, and the strategy for children has a hook for that.
    Starting(ActorPath),
    /// A host requests that this actor watches another one.
    WatchFor { who: AnyActor },
    /// A host requests that this actor stops watching another one.
    UnwatchFor { who: AnyActor },
    /// A message that a host has sent by hand.
    System(Box<SystemMessage>),
}

/// How an actor restarts.
#[derive(Clone, Copy)]
pub(crate) struct RestartOptions {
    /// The delay before the restart.
    pub(crate) delay: Option<Duration>,
    pub(crate) keeps_children: bool,
    /// How many messages are kept until the restart has succeeded.
    pub(crate) stash: usize,
    pub(crate) part: RestartPart,
}

/// Which part of a restart a command is about; see [`group`](crate::cell::group).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartPart {
    /// The actor ends its incarnation and starts the next one.
    Whole,
    /// The actor ends its incarnation, reports that, and waits.
    End,
    /// The actor, which waits, starts its next incarnation.
    Start,
}

impl RestartOptions {
    /// At once, with the defaults: the meaning of the flag alone.
    pub(crate) const DEFAULT: Self = Self {
        delay: None,
        keeps_children: false,
        stash: crate::strategy::STASH_CAPACITY,
        part: RestartPart::Whole,
    };

    pub(crate) fn is_default(&self) -> bool {
        let is_plain = self.delay.is_none() && self.part == RestartPart::Whole;
        is_plain && !self.keeps_children && self.stash == Self::DEFAULT.stash
    }
}

/// A child that waits for a decision.
pub(crate) struct FailedChild {
    pub(crate) child: AnyActor,
    pub(crate) failure: Failure,
    pub(crate) info: FailureInfo,
    /// Whether no start of it has succeeded yet.
    pub(crate) is_startup: bool,
    /// Whether there is a value that could continue.
    pub(crate) can_resume: bool,
}

/// What a child has reported since its parent has last read it.
#[derive(Default)]
pub(crate) struct ChildReport {
    /// The child that the report is about; the reference keeps the node alive.
    pub(crate) child: Option<AnyActor>,
    /// The child has restarted, as the parent has commanded, at this time.
    pub(crate) restarted_nanos: Option<u64>,
    /// The incarnation of the child has ended, as the parent has commanded, and the child waits.
    pub(crate) is_down: bool,
    /// The child has failed, is suspended and waits for the decision of its parent.
    pub(crate) failed: Option<FailedChild>,
}

/// The events of the cell's own timers that the actor has not read yet. A timer that the actor has
/// set sends a `TimerFired` instead.
#[derive(Default)]
pub(crate) struct TimerEvents {
    /// A back-off has elapsed; the number says which.
    pub(crate) backoff: Option<u32>,
    /// The stop timeout of a child has elapsed; the number says of which wait.
    pub(crate) stop_timeout: Option<u32>,
    /// What a sink has refused is to be offered again.
    pub(crate) retries: bool,
    /// The job of a receive timeout has fired; the number says which.
    pub(crate) receive_timeout: Option<u32>,
}

/// An event of one of the cell's own timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    BackoffOver(u32),
    StopTimeout(u32),
    RetryEscalations,
    ReceiveTimeout(u32),
}

impl TimerEvents {
    /// Numbers count up, and the actor only ever waits for the latest one.
    pub(crate) fn put(&mut self, event: TimerEvent) {
        match event {
            TimerEvent::BackoffOver(number) => self.backoff = later(self.backoff, number),
            TimerEvent::StopTimeout(number) => self.stop_timeout = later(self.stop_timeout, number),
            TimerEvent::RetryEscalations => self.retries = true,
            TimerEvent::ReceiveTimeout(number) => {
                self.receive_timeout = later(self.receive_timeout, number)
            }
        }
    }
}

/// The later of two numbers of a counter that may wrap around.
fn later(one: Option<u32>, other: u32) -> Option<u32> {
    one.filter(|one| is_later(*one, other)).or(Some(other))
}

/// Whether the first of two numbers of a counter is after the second.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

/// A command to a child that is more than a flag.
#[derive(Clone, Copy)]
pub(crate) enum SupervisionCommand {
    /// With RESTART: the options of the restart.
    Restart(RestartOptions),
    /// With RESUME: the actor stops the children whose failures it has escalated.
    StopEscalated,
}

/// The link between an actor and its parent, and the node of its timer events; see the
/// [module](self).
pub(crate) struct ParentLink {
    reports: ReusableNode<ChildReport>,
    timer_events: ReusableNode<TimerEvents>,
    command: SpinLock<Option<SupervisionCommand>>,
    /// Stored by the actor in its last poll, if it stops because of a failure, or for another cause
    /// than a stop.
    end: SpinLock<Option<(TerminationCause, Option<FailureReport>)>>,
    /// What the strategy of the parent remembers about the actor; none if it has not failed.
    history: SpinLock<Option<RestartHistory>>,
}

impl ParentLink {
    pub(crate) fn new() -> Self {
        Self {
            reports: ReusableNode::new(CHILD_REPORT),
            timer_events: ReusableNode::new(TIMER_EVENTS),
            command: SpinLock::new(None),
            end: SpinLock::new(None),
            history: SpinLock::new(None),
        }
    }

    /// Stores why the actor stops, before the actor announces the stop.
    pub(crate) fn set_end(&self, cause: TerminationCause, report: Option<FailureReport>) {
        self.end.with(|place| *place = Some((cause, report)));
    }

    pub(crate) fn take_end(&self) -> Option<(TerminationCause, Option<FailureReport>)> {
        self.end.with(Option::take)
    }

    /// For the parent, which puts it back afterwards: user code reads it outside of the lock.
    pub(crate) fn take_history(&self) -> Option<RestartHistory> {
        self.history.with(Option::take)
    }

    pub(crate) fn put_history(&self, history: RestartHistory) {
        self.history.with(|place| *place = Some(history));
    }

    /// Stores the parameters of a command; the caller sets its flag. None removes earlier
    /// parameters that were not read.
    pub(crate) fn set_command(&self, command: Option<SupervisionCommand>) {
        self.command.with(|place| *place = command);
    }

    /// The options of a commanded restart, if there are any.
    pub(crate) fn take_restart_options(&self) -> Option<RestartOptions> {
        self.command.with(|place| match *place {
            Some(SupervisionCommand::Restart(options)) => {
                *place = None;
                Some(options)
            }
            _ => None,
        })
    }

    /// Whether the command is [`StopEscalated`](SupervisionCommand::StopEscalated).
    pub(crate) fn take_stop_escalated(&self) -> bool {
        self.command.with(|place| {
            place.take_if(|command| matches!(command, SupervisionCommand::StopEscalated)).is_some()
        })
    }
}

/// The reusable node of one of an actor's timer slots.
pub(crate) type TimerNode = Arc<ReusableNode<Option<TimerFired>>>;

pub(crate) fn timer_node() -> TimerNode {
    Arc::new(ReusableNode::new(TIMER_FIRED))
}

/// A node without a message.
pub(crate) struct PreallocatedNode(Box<MessageNode>);

impl PreallocatedNode {
    pub(crate) fn new() -> Self {
        Self(Box::new(MessageNode { head: NodeHead::new(INTERNAL), message: None }))
    }
}

/// The notification that an actor has stopped, for its watchers.
pub(crate) fn terminated(pid: Pid, path: ActorPath, cause: TerminationCause) -> InternalMessage {
    InternalMessage::Terminated(Terminated::new(pid, path, None).with_cause(cause))
}

const INTERNAL: u8 = 0;
const CONTROL: u8 = 1;
const CHILD_REPORT: u8 = 2;
const TIMER_EVENTS: u8 = 3;
const TIMER_FIRED: u8 = 4;

#[repr(C)]
struct MessageNode {
    head: NodeHead,
    message: Option<InternalMessage>,
}

#[repr(C)]
struct ControlNode<M> {
    head: NodeHead,
    item: Control<M>,
}

/// A closable stack of the nodes that this module defines; see the [module](self).
#[derive(Debug)]
pub(crate) struct SystemQueue(NodeStack);

// SAFETY: the compare-and-swaps of the stack transfer a node from its producer to the runner; no
// two threads own it at a time. An internal message is `Send`; control messages that are not `Send`
// are pushed by references that stay on the runner's thread.
unsafe impl Send for SystemQueue {}
// SAFETY: as above.
unsafe impl Sync for SystemQueue {}

impl SystemQueue {
    pub(crate) fn new() -> Self {
        Self(NodeStack::new())
    }

    /// Pushes a message in a preallocated node; returns the message if the actor has stopped.
    pub(crate) fn push_in(
        &self,
        mut node: PreallocatedNode,
        message: InternalMessage,
    ) -> Result<(), InternalMessage> {
        node.0.message = Some(message);
        let node = NonNull::from(Box::leak(node.0));
        // SAFETY: the caller owned the node; the stack owns it if it accepts it.
        let pushed = self.0.push(unsafe { NodePtr::new(node.cast()) });
        pushed.map(drop).map_err(|_| {
            // SAFETY: it came from a box, and the stack has refused it.
            let node = unsafe { Box::from_raw(node.as_ptr()) };
            node.message.expect("it was put there above")
        })
    }

    /// Pushes a control message for the actor, whose messages are of type `M`.
    ///
    /// # Safety
    ///
    /// The queue is that of an actor with this message type.
    pub(crate) unsafe fn push_control<M>(&self, item: Control<M>) -> Result<(), Control<M>> {
        let node =
            NonNull::from(Box::leak(Box::new(ControlNode { head: NodeHead::new(CONTROL), item })));
        // SAFETY: the node was just allocated; the stack owns it if it accepts it.
        let pushed = self.0.push(unsafe { NodePtr::new(node.cast()) });
        pushed.map(drop).map_err(|_| {
            // SAFETY: it came from a box, and the stack has refused it.
            unsafe { Box::from_raw(node.as_ptr()) }.item
        })
    }

    /// Merges a report about a child into the node of its parent link, and pushes the node if
    /// necessary. Returns the report if the actor has stopped.
    pub(crate) fn push_child_report(
        &self,
        child: &AnyActor,
        put: impl FnOnce(&mut ChildReport),
    ) -> Option<ChildReport> {
        let kept = child.clone();
        let node = NonNull::from(&child.parent_link_or_new().reports);
        let put = |report: &mut ChildReport| {
            put(report);
            report.child.get_or_insert(kept);
        };
        // SAFETY: the link lives as long as the child's cell, which the report in the node keeps
        // alive.
        match unsafe { ReusableNode::send(node, &self.0, put) } {
            NodePush::Linked | NodePush::Merged => None,
            NodePush::Refused(report) => Some(report),
        }
    }

    /// Merges a timer event into the node of the link, which belongs to the same actor as this
    /// queue. After the stop of the actor it is ignored.
    pub(crate) fn push_timer_event(&self, link: &ParentLink, event: TimerEvent) {
        // SAFETY: the link lives as long as the cell, and so as long as this queue; the runner
        // takes the nodes off the queue before the cell is freed.
        _ = unsafe {
            ReusableNode::send(NonNull::from(&link.timer_events), &self.0, |events| {
                events.put(event)
            })
        };
    }

    /// Pushes the event of a timer that has fired. Returns an event that is useless: this one, as
    /// an error, if the actor has stopped; or that of an earlier timer in the same slot that was
    /// not read yet.
    pub(crate) fn push_timer_fired(
        &self,
        node: &TimerNode,
        fired: TimerFired,
    ) -> Result<Option<TimerFired>, TimerFired> {
        let mut old = None;
        let put = |contents: &mut Option<TimerFired>| {
            let is_newer = |there: &TimerFired| is_later(there.generation, fired.generation);
            old = if contents.as_ref().is_some_and(is_newer) {
                Some(fired)
            } else {
                contents.replace(fired)
            };
        };
        // One more reference, which the queue owns.
        let kept = Arc::into_raw(node.clone());
        // SAFETY: the reference count keeps the node until the runner, or this function, releases
        // it.
        let sent = unsafe { ReusableNode::send(kept, &self.0, put) };
        if !matches!(sent, NodePush::Linked) {
            // SAFETY: the reference of above, which the queue has not taken.
            drop(unsafe { Arc::from_raw(kept) });
        }
        match sent {
            NodePush::Refused(Some(fired)) => Err(fired),
            _ => Ok(old),
        }
    }

    /// Takes all nodes, oldest first. For the runner.
    pub(crate) fn take<M>(&self) -> Taken<M> {
        // A producer announces its node by the flag SYSTEM_QUEUE, so a hint suffices here.
        let nodes = if self.0.is_empty() { Drained::new() } else { self.0.drain() };
        Taken { nodes, _items: PhantomData }
    }

    /// Accepts nothing from here on, and takes all nodes that were accepted before. For the runner,
    /// at the stop of the actor.
    pub(crate) fn close<M>(&self) -> Taken<M> {
        Taken { nodes: self.0.close(), _items: PhantomData }
    }
}

impl Drop for SystemQueue {
    fn drop(&mut self) {
        debug_assert!(self.0.is_empty() || self.0.is_closed(), "a node has outlived its runner");
    }
}

/// An item that was taken off the queue.
pub(crate) enum SystemItem<M> {
    /// With the node that it arrived in.
    Internal(InternalMessage, PreallocatedNode),
    Control(Control<M>),
    ChildReport(ChildReport),
    TimerEvents(TimerEvents),
    TimerFired(TimerFired),
}

/// The items that were taken off the queue, in order.
pub(crate) struct Taken<M> {
    nodes: Drained<NodePtr>,
    _items: PhantomData<SystemItem<M>>,
}

impl<M> Iterator for Taken<M> {
    type Item = SystemItem<M>;

    fn next(&mut self) -> Option<SystemItem<M>> {
        loop {
            let node = self.nodes.next()?;
            return Some(match node.kind() {
                CHILD_REPORT => {
                    // SAFETY: a node of this kind is such a reusable node; the report in it keeps
                    // it alive.
                    SystemItem::ChildReport(unsafe { ReusableNode::<ChildReport>::take(node) })
                }
                TIMER_EVENTS => {
                    // SAFETY: a node of this kind is such a reusable node, of the actor that this
                    // queue belongs to.
                    SystemItem::TimerEvents(unsafe { ReusableNode::<TimerEvents>::take(node) })
                }
                TIMER_FIRED => {
                    let kept = node.cast();
                    // SAFETY: a node of this kind is such a reusable node, of which the queue owns
                    // a reference.
                    let fired = unsafe { ReusableNode::<Option<TimerFired>>::take(node) };
                    // SAFETY: releases the reference of the queue.
                    drop(unsafe { TimerNode::from_raw(kept) });
                    let Some(fired) = fired else { continue };
                    SystemItem::TimerFired(fired)
                }
                CONTROL => {
                    // SAFETY: a node of this kind was boxed by `push_control`, whose caller
                    // promised the message type of the actor.
                    SystemItem::Control(
                        unsafe { Box::from_raw(node.cast::<ControlNode<M>>().as_ptr()) }.item,
                    )
                }
                _ => {
                    // SAFETY: a node of this kind came out of a box in `push_in`.
                    let mut node = unsafe { Box::from_raw(node.cast::<MessageNode>().as_ptr()) };
                    let Some(message) = node.message.take() else { continue };
                    SystemItem::Internal(message, PreallocatedNode(node))
                }
            });
        }
    }
}

impl<M> Drop for Taken<M> {
    fn drop(&mut self) {
        for item in self.by_ref() {
            drop(item);
        }
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentLink").finish_non_exhaustive()
    }
}
