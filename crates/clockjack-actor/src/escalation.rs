//! Where failures go that nobody below could settle, and how they get there for certain.
//!
//! An [`EscalationSink`] takes what is escalated. One that cannot take it now gives it back, and it
//! is offered again in the next cycle.
//!
//! # Protocol
//!
//! Roles: *callers*, any number, on any thread, who offer, retry and take; the *sink*, which
//! belongs to the queue and is lent to one caller at a time. It is user code, so it runs outside of
//! the queue's lock, and may itself cause an escalation.
//!
//! 1. What is offered goes to the sink at once. If the sink gives it back, or is lent to another
//!    caller, or is itself the caller, it waits in the queue.
//! 2. A cycle offers each that waits once more, the oldest first. What is given back waits again.
//! 3. The queue has a bound. What finds no room comes back to the caller, and is counted.
//! 4. A sink that panics has not taken it: it waits again, behind the others. So a failure that
//!    makes its sink panic holds up nobody, and none is lost.
//! 5. [`Composite`] offers to several. Which of them have still to see it is noted on the failure
//!    itself, so the others do not see it twice; after a panic, rule 4, they may.
//!
//! *Why it cannot hang*: nobody waits for a sink that is lent, and a cycle makes as many offers as
//! waited when it began.
//!
//! What is escalated later may be taken earlier, if the sink gave the earlier one back.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::fmt;

use clockjack_exec::Pid;
use clockjack_sync::{Counted, lock::Lock, mutant};

use crate::failure_info::{EscalationStage, FailureInfo};

/// Takes failures that nobody below could settle.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{EscalationSink, FailureInfo};
///
/// struct Pager {
///     room: usize,
/// }
///
/// impl EscalationSink for Pager {
///     fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
///         // What is given back is offered again.
///         let Some(room) = self.room.checked_sub(1) else { return Err(info) };
///         self.room = room;
///         println!("{}: {}", info.path, info.reason);
///         Ok(())
///     }
/// }
/// # let _ = Pager { room: 1 };
/// ```
pub trait EscalationSink: Send + 'static {
    /// Takes a failure.
    ///
    /// # Errors
    ///
    /// The failure itself, if it cannot be taken now; it is offered again in the next cycle.
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo>;
}

impl<S: EscalationSink + ?Sized> EscalationSink for Box<S> {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        (**self).handle(info)
    }
}

/// Hands failures to the parent, as the parent sees them: one level up.
pub struct ParentGuardian<F> {
    parent: Pid,
    deliver: F,
}

impl<F> ParentGuardian<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    /// A sink that hands to `deliver` what concerns the parent with this pid.
    pub fn new(parent: Pid, deliver: F) -> Self {
        Self { parent, deliver }
    }
}

impl<F> EscalationSink for ParentGuardian<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        // What comes back is as it was, or it would go up one more level with each retry.
        (self.deliver)(info.escalate_to_parent(self.parent)).map_err(|_| info)
    }
}

impl<F> fmt::Debug for ParentGuardian<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentGuardian").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// A closure as a sink.
///
/// # Examples
///
/// ```
/// use clockjack_actor::escalation::{Custom, EscalationSink};
///
/// let mut sink = Custom::new(|info| {
///     println!("{info}");
///     Ok(())
/// });
/// # fn takes(_: &mut impl EscalationSink) {}
/// # takes(&mut sink);
/// ```
pub struct Custom<F>(F);

impl<F> Custom<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    /// A sink that calls `handle`.
    pub fn new(handle: F) -> Self {
        Self(handle)
    }
}

impl<F> EscalationSink for Custom<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        (self.0)(info)
    }
}

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").finish_non_exhaustive()
    }
}

/// Several sinks, all of which get each failure.
///
/// If some give a failure back, the composite gives it back; when it is offered again, only those
/// see it, each as it gave it back.
///
/// # Examples
///
/// ```
/// use clockjack_actor::escalation::{Composite, Custom};
///
/// let sink = Composite::new()
///     .with(Custom::new(|info| Ok(println!("{info}"))))
///     .with(Custom::new(|info| if info.reason.is_panic() { Err(info) } else { Ok(()) }));
/// assert_eq!(sink.len(), 2);
/// ```
#[must_use]
pub struct Composite {
    sinks: Vec<Box<dyn EscalationSink>>,
    /// Tells the notes of this composite from those of others.
    id: Counted<CompositeId>,
}

impl Composite {
    /// Without sinks it takes all and does nothing.
    pub fn new() -> Self {
        Self { sinks: Vec::new(), id: Counted::new(CompositeId) }
    }

    /// With one more sink, which comes after the others.
    pub fn with(mut self, sink: impl EscalationSink) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// How many sinks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sinks.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sinks.is_empty()
    }
}

impl Default for Composite {
    fn default() -> Self {
        Self::new()
    }
}

impl EscalationSink for Composite {
    fn handle(&mut self, mut info: FailureInfo) -> Result<(), FailureInfo> {
        let noted = info.returned().filter(|returned| Counted::ptr_eq(&returned.id, &self.id)).cloned();
        info.set_returned(None);
        let mut returned = Vec::new();
        for (index, sink) in self.sinks.iter_mut().enumerate() {
            let offer = match &noted {
                Some(returned) if !mutant!("composite-attempt-to-all") => returned.to(index),
                _ => Some(&info),
            };
            if let Some(Err(back)) = offer.map(|offer| sink.handle(offer.clone())) {
                returned.push((index, back));
            }
        }
        if returned.is_empty() {
            return Ok(());
        }
        info.set_returned(Some(Counted::new(ReturnedBySinks { id: self.id.clone(), returned })));
        Err(info)
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite").field("n_sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

/// What is noted on a failure that some sinks of a composite gave back.
pub(crate) struct ReturnedBySinks {
    id: Counted<CompositeId>,
    /// The places of the sinks, rising, each with what it gave back.
    returned: Vec<(usize, FailureInfo)>,
}

impl ReturnedBySinks {
    fn to(&self, index: usize) -> Option<&FailureInfo> {
        self.returned.iter().find(|(other, _)| *other == index).map(|(_, info)| info)
    }
}

impl fmt::Debug for ReturnedBySinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.returned.iter().map(|(index, _)| index)).finish()
    }
}

/// Its address is what counts.
struct CompositeId;

type Listener = Box<dyn FnMut(&FailureInfo) + Send>;

/// The end of the way up: tells everybody, and takes all.
///
/// Publishers come first, so that a failure is on record before anybody's code runs on its account;
/// then the handler, then the listeners.
///
/// # Examples
///
/// ```
/// use clockjack_actor::escalation::Root;
///
/// let sink = Root::new()
///     .publisher(|info| eprintln!("{info}"))
///     .handler(|info| println!("the system ends because of {}", info.origin().1));
/// # let _ = sink;
/// ```
#[derive(Default)]
#[must_use]
pub struct Root {
    publishers: Vec<Listener>,
    handler: Option<Listener>,
    listeners: Vec<Listener>,
}

impl Root {
    /// One that tells nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more that makes an event of it: a log, a hub, a counter.
    pub fn publisher(mut self, publish: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.publishers.push(Box::new(publish));
        self
    }

    /// With the one that decides what becomes of the system; replaces an earlier one.
    pub fn handler(mut self, handle: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.handler = Some(Box::new(handle));
        self
    }

    /// With one more that is told.
    pub fn listener(mut self, listen: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.listeners.push(Box::new(listen));
        self
    }
}

impl EscalationSink for Root {
    fn handle(&mut self, mut info: FailureInfo) -> Result<(), FailureInfo> {
        info.stage = EscalationStage::Root;
        let all = self.publishers.iter_mut().chain(&mut self.handler).chain(&mut self.listeners);
        all.for_each(|tell| tell(&info));
        Ok(())
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root")
            .field("n_publishers", &self.publishers.len())
            .field("has_handler", &self.handler.is_some())
            .field("n_listeners", &self.listeners.len())
            .finish()
    }
}

/// How many failures that a sink refuses are kept for another try.
pub(crate) const ESCALATIONS_MAX: usize = 1_000;

/// The sink and what it gave back.
pub(crate) struct Escalations {
    inner: Lock<Inner>,
    waiting_max: usize,
}

struct Inner {
    /// None while it is lent.
    sink: Option<Box<dyn EscalationSink>>,
    waiting: VecDeque<FailureInfo>,
    n_dropped: usize,
    /// A cycle will come.
    is_armed: bool,
}

impl Escalations {
    pub(crate) fn new(sink: impl EscalationSink, waiting_max: usize) -> Self {
        let sink: Box<dyn EscalationSink> = Box::new(sink);
        let waiting = VecDeque::new();
        let inner = Inner { sink: Some(sink), waiting, n_dropped: 0, is_armed: false };
        Self { inner: Lock::new(inner), waiting_max }
    }

    /// Without a sink: all waits until it is taken by [`take_escalations`](Self::take_escalations).
    pub(crate) fn without_sink(waiting_max: usize) -> Self {
        Self::new(Custom::new(Err), waiting_max)
    }

    /// Attempt a failure to the sink. If that gives it back, or is lent to another, it waits.
    ///
    /// # Errors
    ///
    /// The failure itself, if it would have to wait and there is no room. It is counted.
    pub(crate) fn offer(&self, info: FailureInfo) -> Result<(), FailureInfo> {
        match self.take_sink() {
            Some(mut guard) => guard.handle(info).or_else(|back| self.enqueue(back)),
            None => self.enqueue(info),
        }
    }

    /// Attempt all that waits once more; how many of them were taken. None if the sink is lent.
    pub(crate) fn retry(&self) -> usize {
        let Some(mut guard) = self.take_sink() else { return 0 };
        guard.attempt = Attempt::Retry;
        let mut n_taken = 0;
        for _ in 0..self.n_waiting() {
            let Some(info) = self.inner.with(|inner| inner.waiting.pop_front()) else { break };
            match guard.handle(info) {
                Ok(()) => n_taken += 1,
                Err(back) => self.requeue(back),
            }
        }
        n_taken
    }

    /// Takes all that waits, the oldest first.
    pub(crate) fn take_escalations(&self) -> Vec<FailureInfo> {
        let waiting = self.inner.with(|inner| core::mem::take(&mut inner.waiting));
        let mut taken = Vec::from(waiting);
        taken.iter_mut().for_each(|info| info.set_returned(None));
        taken
    }

    /// How many wait; if any do, a cycle is due.
    pub(crate) fn n_waiting(&self) -> usize {
        self.inner.with(|inner| inner.waiting.len())
    }

    /// Whether the caller has to see to it that there is another cycle: something waits, and
    /// nobody does already.
    pub(crate) fn arm(&self) -> bool {
        self.inner.with(|inner| {
            let is_due = !inner.waiting.is_empty() && !inner.is_armed;
            inner.is_armed |= is_due;
            is_due
        })
    }

    /// The cycle has come, or will not.
    pub(crate) fn disarm(&self) {
        self.inner.with(|inner| inner.is_armed = false);
    }

    /// How many found no room. Wraps.
    pub(crate) fn n_dropped(&self) -> usize {
        self.inner.with(|inner| inner.n_dropped)
    }

    fn take_sink(&self) -> Option<SinkGuard<'_>> {
        let sink = self.inner.with(|inner| inner.sink.take())?;
        Some(SinkGuard { owner: self, sink: Some(sink), offered: None, attempt: Attempt::First })
    }

    fn enqueue(&self, info: FailureInfo) -> Result<(), FailureInfo> {
        self.inner.with(|inner| {
            if inner.waiting.len() >= self.waiting_max {
                inner.n_dropped = inner.n_dropped.wrapping_add(1);
                return Err(info);
            }
            inner.waiting.push_back(info);
            Ok(())
        })
    }

    /// For what has waited before: if another has got its room meanwhile, there is one too many.
    fn requeue(&self, info: FailureInfo) {
        self.inner.with(|inner| inner.waiting.push_back(info));
    }
}

impl fmt::Debug for Escalations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Escalations")
            .field("n_waiting", &self.n_waiting())
            .field("waiting_max", &self.waiting_max)
            .field("n_dropped", &self.n_dropped())
            .finish_non_exhaustive()
    }
}

/// The sink, in the hands of one; dropping it gives the sink back, also by a panic.
struct SinkGuard<'a> {
    owner: &'a Escalations,
    /// None only after the drop.
    sink: Option<Box<dyn EscalationSink>>,
    /// A copy of what the sink has at this moment; left behind if it panics.
    offered: Option<FailureInfo>,
    attempt: Attempt,
}

/// Whether what is offered has a place in the queue already.
#[derive(Clone, Copy)]
enum Attempt {
    First,
    Retry,
}

impl SinkGuard<'_> {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        if !mutant!("escalations-forget-at-panic") {
            self.offered = Some(info.clone());
        }
        let sink = self.sink.as_mut().expect("it is given back by the drop only");
        let handled = sink.handle(info);
        self.offered = None;
        handled
    }
}

impl Drop for SinkGuard<'_> {
    fn drop(&mut self) {
        match (self.offered.take(), self.attempt) {
            (None, _) => {}
            (Some(info), Attempt::Retry) => self.owner.requeue(info),
            // If there is no room, it is counted there.
            (Some(info), Attempt::First) => drop(self.owner.enqueue(info)),
        }
        let sink = self.sink.take();
        let none = self.owner.inner.with(|inner| core::mem::replace(&mut inner.sink, sink));
        debug_assert!(none.is_none(), "the sink was guard twice");
    }
}

#[cfg(test)]
mod tests;
