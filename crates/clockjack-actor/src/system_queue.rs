//! The notes of an actor: what the system and control messages come by, on a [lane](crate::closable_stack).
//!
//! One word a cell, because most actors never get one. It carries nodes of several kinds in the
//! order in which they came; the runner sorts them. A sender that was accepted raises SYSTEM_QUEUE in the
//! bits of the cell, and wakes it.
//!
//! # Who brings the node
//!
//! What the system says of itself needs no memory when it is said, so it cannot fail for want of
//! it, in a fire of a timer or in a system that is sealed either:
//!
//! * Between a child and its parent goes the [`ParentLink`] of the child, which is there for good: made
//!   with the child if the parent may restart it, or else when the system is sealed, or when the
//!   child first has something to say. [`ChildReport`] go up by its post. What has come up since the
//!   parent has looked last is put together there: of several failures the last counts, for those
//!   before were decided about on account of another child, and of several restarts the last. An
//!   [order](Order) that is more than a bit lies in the line too, the last one counts, and a bit
//!   tells of it. So do last words, of which the report of the end tells.
//! * What comes by the clock comes by the second post of the line, [`TimerEvents`], and each of an
//!   actor's timers has a post of its own, for its slot, with its [`TimerFired`].
//! * A watch brings two nodes with it, made when it begins: one takes it to the one that is
//!   watched, is kept there, and comes back with the end; one is kept by the watcher, for the case
//!   that it loses interest.
//!
//! A node of its own is made for what comes from outside: control messages, what a host puts in by
//! hand, and the start of a child if a strategy has a hook for that.
#![expect(unsafe_code, reason = "owns the nodes of a lock-free list")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, ptr::NonNull, time::Duration};

use clockjack_exec::{Failure, Pid};
use clockjack_sync::{Counted, lock::Lock};

use crate::{
    ActorPath, FailureInfo, FailureReport, SystemMessage, Terminated,
    closable_stack::{ClosableStack, Closed, Link, NodePush, Nodes, ReusableNode},
    control::{Control, TimerFired},
    header::AnyActor,
    strategy::RestartHistory,
};

/// What the system tells a cell.
pub(crate) enum InternalMessage {
    /// Somebody wants to know when this actor ends.
    Watch { watcher: AnyActor },
    /// Somebody does not want to know any more.
    Unwatch { watcher: Pid },
    /// An actor that this one watches has ended.
    Terminated(Terminated),
    /// A child is about to be made, and the strategy for children has a hook for that.
    Starting(ActorPath),
    /// A host has said that this actor is to watch another one.
    WatchFor { who: AnyActor },
    /// Or not to watch it any more.
    UnwatchFor { who: AnyActor },
    /// What a host has put in by hand.
    System(Box<SystemMessage>),
}

/// How an actor is to be made anew.
#[derive(Clone, Copy)]
pub(crate) struct RestartOptions {
    /// How long to wait before.
    pub(crate) delay: Option<Duration>,
    pub(crate) keeps_children: bool,
    /// How many messages are kept meanwhile.
    pub(crate) stash: usize,
}

impl RestartOptions {
    /// At once, with the defaults: what the bit stands for.
    pub(crate) const DEFAULT: Self =
        Self { delay: None, keeps_children: false, stash: crate::strategy::STASH_CAPACITY };

    pub(crate) fn is_default(&self) -> bool {
        self.delay.is_none() && !self.keeps_children && self.stash == Self::DEFAULT.stash
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

/// What a child has said since its parent has looked last.
#[derive(Default)]
pub(crate) struct ChildReport {
    /// It is about this child, which it keeps.
    pub(crate) child: Option<AnyActor>,
    /// It has started again, as the parent has ordered, at this time.
    pub(crate) restarted_nanos: Option<u64>,
    /// It has failed, is suspended and waits for what its parent decides.
    pub(crate) failed: Option<FailedChild>,
}

/// What the clock has said to an actor since it has looked last.
#[derive(Default)]
pub(crate) struct TimerEvents {
    /// The time of a back-off is over; the number says of which.
    pub(crate) backoff: Option<u32>,
    /// Some time has passed since the last child was told to stop; the number says of which wait.
    pub(crate) stop_timeout: Option<u32>,
    /// What a sink has refused is to be offered again.
    pub(crate) retries: bool,
    /// The job of a receive time-out has come; the number says which.
    pub(crate) receive_timeout: Option<u32>,
}

/// One thing that the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    BackoffOver(u32),
    StopTimeout(u32),
    RetryEscalations,
    ReceiveTimeout(u32),
}

impl TimerEvents {
    /// Numbers count up, and only the last one given is ever waited for.
    fn put(&mut self, event: TimerEvent) {
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

/// The one of two numbers of a count that comes later; it may wrap.
fn later(one: Option<u32>, other: u32) -> Option<u32> {
    one.filter(|one| is_later(*one, other)).or(Some(other))
}

/// Whether the first of two numbers of a count comes after the second.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

/// What is decided about a child, if that is more than a bit.
#[derive(Clone, Copy)]
pub(crate) enum SupervisionCommand {
    /// With RESTART: it is to be made anew in this way.
    Restart(RestartOptions),
    /// With RESUME: those whose failures were left to who is above are stopped.
    StopEscalated,
}

/// What goes between an actor and its parent, and by the clock; see the [module](self).
pub(crate) struct ParentLink {
    reports: ReusableNode<ChildReport>,
    timer_events: ReusableNode<TimerEvents>,
    command: Lock<Option<SupervisionCommand>>,
    /// Left by the actor in its last turn, if it ends because of a failure.
    final_failure: Lock<Option<FailureReport>>,
    /// What the strategy of the parent remembers of the actor; none if it has not failed.
    history: Lock<Option<RestartHistory>>,
}

impl ParentLink {
    pub(crate) fn new() -> Self {
        Self {
            reports: ReusableNode::new(CHILD_REPORT),
            timer_events: ReusableNode::new(TIMER_EVENTS),
            command: Lock::new(None),
            final_failure: Lock::new(None),
            history: Lock::new(None),
        }
    }

    /// Leaves what the actor has to say of its end, before it reports that.
    pub(crate) fn set_final_failure(&self, report: FailureReport) {
        self.final_failure.with(|place| *place = Some(report));
    }

    pub(crate) fn take_final_failure(&self) -> Option<FailureReport> {
        self.final_failure.with(Option::take)
    }

    /// For the parent, which gives it back: user code looks at it, outside of the lock.
    pub(crate) fn take_history(&self) -> Option<RestartHistory> {
        self.history.with(Option::take)
    }

    pub(crate) fn put_history(&self, history: RestartHistory) {
        self.history.with(|place| *place = Some(history));
    }

    /// Leaves an order; the caller raises the bit that it comes with. None takes back one that was
    /// not seen.
    pub(crate) fn set_command(&self, command: Option<SupervisionCommand>) {
        self.command.with(|place| *place = command);
    }

    /// How it is to be made anew, if that was said.
    pub(crate) fn take_restart_options(&self) -> Option<RestartOptions> {
        self.command.with(|place| match *place {
            Some(SupervisionCommand::Restart(options)) => {
                *place = None;
                Some(options)
            }
            _ => None,
        })
    }

    /// Whether it was said that it is to settle.
    pub(crate) fn take_stop_escalated(&self) -> bool {
        self.command.with(|place| {
            place.take_if(|command| matches!(command, SupervisionCommand::StopEscalated)).is_some()
        })
    }
}

/// The post of one of an actor's timers.
pub(crate) type TimerNode = Counted<ReusableNode<Option<TimerFired>>>;

pub(crate) fn timer_node() -> TimerNode {
    Counted::new(ReusableNode::new(TIMER_FIRED))
}

/// A node without a note in it.
pub(crate) struct PreallocatedNode(Box<MessageNode>);

impl PreallocatedNode {
    pub(crate) fn new() -> Self {
        Self(Box::new(MessageNode { link: Link::new(INTERNAL), message: None }))
    }
}

/// The end of somebody's life, for whoever watches.
pub(crate) fn terminated(pid: Pid, path: ActorPath) -> InternalMessage {
    InternalMessage::Terminated(Terminated::new(pid, path, None))
}

const INTERNAL: u8 = 0;
const CONTROL: u8 = 1;
const CHILD_REPORT: u8 = 2;
const TIMER_EVENTS: u8 = 3;
const TIMER_FIRED: u8 = 4;

#[repr(C)]
struct MessageNode {
    link: Link,
    message: Option<InternalMessage>,
}

#[repr(C)]
struct ControlNode<M> {
    link: Link,
    item: Control<M>,
}

/// The lane with what this crate hangs on it; see the [module](self).
#[derive(Debug)]
pub(crate) struct SystemQueue(ClosableStack);

// SAFETY: nodes are handed from the sender to the runner by the exchanges of the lane; no two
// threads have one at a time. A note is `Send`; control items of messages that are not are pushed
// by refs that stay on the runner's thread.
unsafe impl Send for SystemQueue {}
// SAFETY: as above.
unsafe impl Sync for SystemQueue {}

impl SystemQueue {
    pub(crate) fn new() -> Self {
        Self(ClosableStack::new())
    }

    /// Leaves a note in a node that is there; it comes back after the end of the actor.
    pub(crate) fn push_in(
        &self,
        mut node: PreallocatedNode,
        message: InternalMessage,
    ) -> Result<(), InternalMessage> {
        node.0.message = Some(message);
        let node = NonNull::from(Box::leak(node.0));
        // SAFETY: it was this caller's, and is the lane's if that takes it.
        unsafe { self.0.push(node.cast()) }.map_err(|Closed| {
            // SAFETY: it came from a box, and nobody has taken it.
            let node = unsafe { Box::from_raw(node.as_ptr()) };
            node.message.expect("it was put there above")
        })
    }

    /// Leaves a control item for the actor, whose messages are of type `M`.
    ///
    /// # Safety
    ///
    /// The lane is that of an actor with this message type.
    pub(crate) unsafe fn push_control<M>(&self, item: Control<M>) -> Result<(), Control<M>> {
        let node =
            NonNull::from(Box::leak(Box::new(ControlNode { link: Link::new(CONTROL), item })));
        // SAFETY: it was just made, and is the lane's if that takes it.
        unsafe { self.0.push(node.cast()) }.map_err(|Closed| {
            // SAFETY: it came from a box, and nobody has taken it.
            unsafe { Box::from_raw(node.as_ptr()) }.item
        })
    }

    /// Leaves news of a child, by its line. What comes back is refused, after the end of the actor.
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
        // SAFETY: the line stands as long as the child's cell, and the load keeps that.
        match unsafe { ReusableNode::send(node, &self.0, put) } {
            NodePush::Linked | NodePush::Merged => None,
            NodePush::Refused(report) => Some(report),
        }
    }

    /// Leaves what the clock says to the actor that this lane and this line are of. After its end
    /// that is of no interest.
    pub(crate) fn push_timer_event(&self, link: &ParentLink, event: TimerEvent) {
        // SAFETY: the line stands as long as the cell, and so as long as this lane; what hangs here
        // is taken before that ends.
        _ = unsafe {
            ReusableNode::send(NonNull::from(&link.timer_events), &self.0, |events| {
                events.put(event)
            })
        };
    }

    /// Leaves the fire of a timer. Gives back what is of no use: this one after the end of the
    /// actor, or one of an earlier timer with the same post that was not looked at yet.
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
        // Counted once more, for the lane.
        let kept = Counted::into_raw(node.clone());
        // SAFETY: it is counted until the runner, or this, has it back.
        let sent = unsafe { ReusableNode::send(kept, &self.0, put) };
        if !matches!(sent, NodePush::Linked) {
            // SAFETY: the count of above, which the lane has not taken.
            drop(unsafe { Counted::from_raw(kept) });
        }
        match sent {
            NodePush::Refused(Some(fired)) => Err(fired),
            _ => Ok(old),
        }
    }

    /// Takes everything that has come, oldest first. For the runner.
    pub(crate) fn take<M>(&self) -> Taken<M> {
        Taken { nodes: self.0.take(), _items: PhantomData }
    }

    /// Accepts nothing from here on, and gives what has come before. For the runner, at the end.
    pub(crate) fn close<M>(&self) -> Taken<M> {
        Taken { nodes: self.0.close(), _items: PhantomData }
    }
}

/// Something taken off the lane.
pub(crate) enum SystemItem<M> {
    /// With the node that it came in.
    Internal(InternalMessage, PreallocatedNode),
    Control(Control<M>),
    ChildReport(ChildReport),
    TimerEvents(TimerEvents),
}

/// What was taken off the lane, in order.
pub(crate) struct Taken<M> {
    nodes: Nodes,
    _items: PhantomData<SystemItem<M>>,
}

impl<M> Iterator for Taken<M> {
    type Item = SystemItem<M>;

    fn next(&mut self) -> Option<SystemItem<M>> {
        loop {
            let (node, kind) = self.nodes.pop()?;
            return Some(match kind {
                CHILD_REPORT => {
                    // SAFETY: a node of this kind is such a post; what keeps it is in the news.
                    SystemItem::ChildReport(unsafe { ReusableNode::<ChildReport>::take(node) })
                }
                TIMER_EVENTS => {
                    // SAFETY: a node of this kind is such a post, of the actor whose lane this is.
                    SystemItem::TimerEvents(unsafe { ReusableNode::<TimerEvents>::take(node) })
                }
                TIMER_FIRED => {
                    // SAFETY: a node of this kind is such a post, counted for the lane.
                    let fired = unsafe { ReusableNode::<Option<TimerFired>>::take(node) };
                    // SAFETY: the count of the lane is given back.
                    drop(unsafe { TimerNode::from_raw(node.cast()) });
                    let Some(fired) = fired else { continue };
                    SystemItem::Control(Control::Timer(fired))
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
