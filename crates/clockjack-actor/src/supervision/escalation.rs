//! Escalation sinks: the receivers of failures that no supervisor handled.
//!
//! An [`EscalationSink`] receives escalated failures. A sink that cannot accept a failure now
//! returns it, and the failure is offered again in the next cycle.
//!
//! # Protocol
//!
//! Roles: *callers*, any number, on any thread, which offer, retry and take; and the *sink*, which
//! belongs to the queue and is used by one caller at a time. The sink is user code, so it runs
//! outside of the queue's lock, and it may itself cause an escalation.
//!
//! 1. An offered failure goes to the sink at once. If the sink returns it, or is in use by another
//!    caller, or is itself the caller, the failure waits in the queue.
//! 2. A cycle offers each waiting failure once more, the oldest first. Returned failures wait
//!    again.
//! 3. The queue is bounded. A failure that finds no room is returned to the caller and counted.
//! 4. A sink that panics has not accepted the failure: the failure waits again, behind the others.
//!    So a failure that makes its sink panic does not block the others, and no failure is lost.
//! 5. [`Composite`] offers each failure to several sinks. The failure itself records which of them
//!    have returned it, so the other sinks do not see it twice; after a panic (rule 4) they may.
//!
//! *Why it cannot hang*: no caller waits for a sink that is in use, and a cycle makes as many
//! offers as there were waiting failures when it began.
//!
//! A later failure may be accepted before an earlier one, if the sink returned the earlier one.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::fmt;

use clockjack_exec::Pid;
use clockjack_sync::{Arc, spin_lock::SpinLock};

use crate::{
    failure_info::{EscalationStage, FailureInfo},
    room::with_room,
};

/// Receives failures that no supervisor handled.
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
///         // A returned failure is offered again.
///         let Some(room) = self.room.checked_sub(1) else { return Err(info) };
///         self.room = room;
///         println!("{}: {}", info.path, info.reason);
///         Ok(())
///     }
/// }
/// # let _ = Pager { room: 1 };
/// ```
pub trait EscalationSink: Send + 'static {
    /// Handles a failure.
    ///
    /// # Errors
    ///
    /// The failure itself, if the sink cannot accept it now; it is offered again in the next cycle.
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo>;
}

impl<S: EscalationSink + ?Sized> EscalationSink for Box<S> {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        (**self).handle(info)
    }
}

/// A sink that passes failures to the parent, escalated by one level.
pub struct ParentGuardian<F> {
    parent: Pid,
    deliver: F,
}

impl<F> ParentGuardian<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    /// A sink that passes failures to `deliver`, escalated to the parent with this pid.
    pub fn new(parent: Pid, deliver: F) -> Self {
        Self { parent, deliver }
    }
}

impl<F> EscalationSink for ParentGuardian<F>
where
    F: FnMut(FailureInfo) -> Result<(), FailureInfo> + Send + 'static,
{
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        // Return the original failure; otherwise each retry would escalate it by one more level.
        (self.deliver)(info.escalate_to_parent(self.parent)).map_err(|_| info)
    }
}

impl<F> fmt::Debug for ParentGuardian<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentGuardian").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// A sink that is a closure.
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

/// A sink that passes each failure to several sinks.
///
/// If some sinks return a failure, the composite returns it. When it is offered again, only those
/// sinks see it, each in the form in which it returned it.
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
    /// Distinguishes the records of this composite from those of others.
    id: Arc<CompositeId>,
}

impl Composite {
    /// A composite without sinks. It accepts every failure and does nothing.
    pub fn new() -> Self {
        Self { sinks: Vec::new(), id: Arc::new(CompositeId) }
    }

    /// Adds a sink after the others.
    pub fn with(mut self, sink: impl EscalationSink) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// The number of sinks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sinks.len()
    }

    /// Whether there are no sinks.
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
        let noted = info.returned().filter(|returned| Arc::ptr_eq(&returned.id, &self.id)).cloned();
        info.set_returned(None);
        let mut returned = Vec::new();
        for (index, sink) in self.sinks.iter_mut().enumerate() {
            let offer = match &noted {
                Some(returned) => returned.to(index),
                _ => Some(&info),
            };
            if let Some(Err(back)) = offer.map(|offer| sink.handle(offer.clone())) {
                returned.push((index, back));
            }
        }
        if returned.is_empty() {
            return Ok(());
        }
        info.set_returned(Some(Arc::new(ReturnedBySinks { id: self.id.clone(), returned })));
        Err(info)
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite").field("n_sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

/// The record, on a failure, of the sinks of a composite that returned it.
pub(crate) struct ReturnedBySinks {
    id: Arc<CompositeId>,
    /// The indices of the sinks, in ascending order, each with the failure that it returned.
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

/// Identified by its address.
struct CompositeId;

type Listener = Box<dyn FnMut(&FailureInfo) + Send>;

/// The sink at the root: reports each failure to all listeners, and accepts all.
///
/// Publishers are called first, so that a failure is recorded before other user code runs because
/// of it; then the handler, then the listeners.
///
/// # Examples
///
/// ```
/// use clockjack_actor::escalation::Root;
///
/// let sink = Root::new()
///     .publisher(|info| eprintln!("{info}"))
///     .handler(|info| println!("the system terminates because of {}", info.origin().1));
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
    /// A root sink without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a publisher: a log, a hub, a counter.
    pub fn publisher(mut self, publish: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.publishers.push(Box::new(publish));
        self
    }

    /// Sets the handler, which decides what happens to the system; replaces an earlier one.
    pub fn handler(mut self, handle: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.handler = Some(Box::new(handle));
        self
    }

    /// Adds a listener.
    pub fn listener(mut self, listen: impl FnMut(&FailureInfo) + Send + 'static) -> Self {
        self.listeners.push(Box::new(listen));
        self
    }
}

impl EscalationSink for Root {
    fn handle(&mut self, mut info: FailureInfo) -> Result<(), FailureInfo> {
        info.stage = EscalationStage::Root;
        let all = self.publishers.iter_mut().chain(&mut self.handler).chain(&mut self.listeners);
        all.for_each(|listener| listener(&info));
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

/// The most refused failures that wait for another attempt.
pub(crate) const ESCALATIONS_MAX: usize = 1_000;

/// A sink, and the failures that it returned.
pub(crate) struct Escalations {
    inner: SpinLock<Inner>,
    waiting_max: usize,
}

struct Inner {
    /// `None` while a caller uses it.
    sink: Option<Box<dyn EscalationSink>>,
    waiting: VecDeque<FailureInfo>,
    n_dropped: usize,
    /// A cycle is scheduled.
    is_armed: bool,
}

impl Escalations {
    pub(crate) fn new(sink: impl EscalationSink, waiting_max: usize) -> Self {
        let sink: Box<dyn EscalationSink> = Box::new(sink);
        let waiting = VecDeque::new();
        let inner = Inner { sink: Some(sink), waiting, n_dropped: 0, is_armed: false };
        Self { inner: SpinLock::new(inner), waiting_max }
    }

    /// Without a sink: all failures wait until [`take_escalations`](Self::take_escalations) takes
    /// them.
    pub(crate) fn without_sink(waiting_max: usize) -> Self {
        Self::new(Custom::new(Err), waiting_max)
    }

    /// Offers a failure to the sink. If the sink returns it or is in use, the failure waits.
    ///
    /// # Errors
    ///
    /// The failure itself, if it would have to wait and there is no room. It is counted as dropped.
    pub(crate) fn offer(&self, info: FailureInfo) -> Result<(), FailureInfo> {
        match self.take_sink() {
            Some(mut guard) => guard.handle(info).or_else(|back| self.enqueue(back)),
            None => self.enqueue(info),
        }
    }

    /// Offers all waiting failures once more. Returns how many were accepted; 0 if the sink is in
    /// use.
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

    /// Takes all waiting failures, the oldest first.
    pub(crate) fn take_escalations(&self) -> Vec<FailureInfo> {
        let waiting = self.inner.with(|inner| core::mem::take(&mut inner.waiting));
        let mut taken = Vec::from(waiting);
        taken.iter_mut().for_each(|info| info.set_returned(None));
        taken
    }

    /// The number of waiting failures; if there are any, a cycle is due.
    pub(crate) fn n_waiting(&self) -> usize {
        self.inner.with(|inner| inner.waiting.len())
    }

    /// Whether the caller has to schedule another cycle: something waits, and no cycle is
    /// scheduled.
    pub(crate) fn arm(&self) -> bool {
        self.inner.with(|inner| {
            let is_due = !inner.waiting.is_empty() && !inner.is_armed;
            inner.is_armed |= is_due;
            is_due
        })
    }

    /// The scheduled cycle has run, or will not run.
    pub(crate) fn disarm(&self) {
        self.inner.with(|inner| inner.is_armed = false);
    }

    /// The number of failures that found no room. Wraps.
    pub(crate) fn n_dropped(&self) -> usize {
        self.inner.with(|inner| inner.n_dropped)
    }

    fn take_sink(&self) -> Option<SinkGuard<'_>> {
        let sink = self.inner.with(|inner| inner.sink.take())?;
        Some(SinkGuard { owner: self, sink: Some(sink), offered: None, attempt: Attempt::First })
    }

    fn enqueue(&self, info: FailureInfo) -> Result<(), FailureInfo> {
        let enqueue = |inner: &mut Inner| {
            if inner.waiting.len() >= self.waiting_max {
                inner.n_dropped = inner.n_dropped.wrapping_add(1);
                return Err(info);
            }
            inner.waiting.push_back(info);
            Ok(())
        };
        with_room(&self.inner, |inner| &mut inner.waiting, enqueue)
    }

    /// Puts a failure back that has waited before. If another one has taken its room meanwhile, the
    /// queue exceeds its bound by one.
    fn requeue(&self, info: FailureInfo) {
        let requeue = |inner: &mut Inner| inner.waiting.push_back(info);
        with_room(&self.inner, |inner| &mut inner.waiting, requeue);
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

/// The sink, taken by one caller. Dropping the guard returns the sink, also during a panic.
struct SinkGuard<'a> {
    owner: &'a Escalations,
    /// `None` only after the drop.
    sink: Option<Box<dyn EscalationSink>>,
    /// A copy of the failure that the sink handles at present; still set in the drop if the sink
    /// panics.
    offered: Option<FailureInfo>,
    attempt: Attempt,
}

/// Whether the offered failure was in the queue before.
#[derive(Clone, Copy)]
enum Attempt {
    First,
    Retry,
}

impl SinkGuard<'_> {
    fn handle(&mut self, info: FailureInfo) -> Result<(), FailureInfo> {
        self.offered = Some(info.clone());
        let sink = self.sink.as_mut().expect("only the drop takes the sink");
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
            // If there is no room, `enqueue` counts the failure as dropped.
            (Some(info), Attempt::First) => drop(self.owner.enqueue(info)),
        }
        let sink = self.sink.take();
        let none = self.owner.inner.with(|inner| core::mem::replace(&mut inner.sink, sink));
        debug_assert!(none.is_none(), "the sink was taken twice");
    }
}

#[cfg(test)]
mod tests;
