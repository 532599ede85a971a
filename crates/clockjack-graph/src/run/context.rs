//! What a component sees of the run while it is called.

use core::{fmt, sync::atomic::Ordering, time::Duration};
use std::sync::Arc;

use clockjack_exec::Failure;

use super::{
    blackboard::{StateRefused, Write},
    component_log::Level,
    env::Env,
    message::{Message, MessageId, Meta, Stamp},
    metrics::{Counter, Histogram, MetricRefused},
    outbox::{Outbox, Refused},
    tasks::{TaskRefused, TaskStart},
};
use crate::{
    component::{Input, Output},
    data::{Data, Value},
};

/// In the number of an message's input: it was given out as an update.
const READ: u16 = 1 << 15;

/// In the number of an message's input: its value was taken.
const TAKEN: u16 = 1 << 14;

/// The number of an message's input. Inputs are fewer than the marks.
pub(crate) const PORT: u16 = TAKEN - 1;

/// Whether an message is at this input, and still there.
#[inline]
fn is_at(message: &Message, port: u16) -> bool {
    message.meta.port & (PORT | TAKEN) == port
}

/// Whether the value of an message was taken.
#[inline]
pub(crate) fn is_taken(message: &Message) -> bool {
    message.meta.port & TAKEN != 0
}

/// What a component sees of the run while it is called: the values at its inputs, where to publish,
/// and the time.
pub struct GraphContext<'a> {
    pub(crate) messages: &'a mut [Message],
    pub(crate) last_seen: LastSeen<'a>,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) call: Call<'a>,
}

/// What was at inputs before this invocation: at this one, and those after it.
#[derive(Clone, Copy)]
pub(crate) struct LastSeen<'a> {
    pub(crate) first: u16,
    pub(crate) last: &'a [Message],
}

/// What belongs to one invocation.
pub(crate) struct Call<'a> {
    pub(crate) env: &'a Env,
    pub(crate) component: usize,
    pub(crate) id: &'a Arc<str>,
    pub(crate) info: &'a CallInfo,
    pub(crate) report: Option<ConvergenceReport>,
    pub(crate) saw_cancel: bool,
}

/// What there is to say of a call before it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    /// Which of those that overlap.
    pub(crate) invocation: usize,
    pub(crate) missed_runs: u64,
    /// No input has more than one message.
    pub(crate) is_one_each: bool,
    pub(crate) iteration: Option<LoopIteration>,
}

impl CallInfo {
    /// Nothing special.
    pub(crate) const DEFAULT: Self =
        Self { invocation: 0, missed_runs: 0, is_one_each: true, iteration: None };
}

/// Where a loop stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIteration {
    /// From zero.
    pub index: u32,
    /// How many there are at most.
    pub max: u32,
}

/// What members have said of their loop in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ConvergenceReport {
    pub(crate) converged: bool,
    pub(crate) residual: Option<f64>,
    pub(crate) reason: &'static str,
}

impl GraphContext<'_> {
    /// The newest value at an input: of this invocation, or the last one that was seen there.
    #[must_use]
    #[inline]
    pub fn latest<T: Data>(&self, port: Input<T>) -> Option<&T> {
        self.newest(port)?.value.get()
    }

    /// The newest value at an input, if this invocation brought it and it was not given out yet.
    #[must_use]
    pub fn update<T: Data>(&mut self, port: Input<T>) -> Option<&T> {
        let wanted = number(port)?;
        let found = self.messages.iter_mut().rev().find(|one| is_at(one, wanted))?;
        if found.meta.port & READ != 0 {
            return None;
        }
        found.meta.port |= READ;
        found.value.get()
    }

    /// The oldest value of this invocation at an input, itself. There is one if nobody else can
    /// have it: a number, or what came over a `move_only` edge.
    pub fn take<T: Data>(&mut self, port: Input<T>) -> Option<T> {
        let wanted = number(port)?;
        let found = self.messages.iter_mut().find(|one| is_at(one, wanted))?;
        let value = core::mem::replace(&mut found.value, Value::new(()));
        match value.take() {
            Ok(value) => {
                found.meta.port |= TAKEN;
                Some(value)
            }
            Err(value) => {
                found.value = value;
                None
            }
        }
    }

    /// All values of this invocation at an input, the oldest first.
    pub fn drain<T: Data>(&mut self, port: Input<T>) -> impl Iterator<Item = &T> {
        let wanted = number(port);
        self.messages.iter_mut().filter_map(move |one| {
            if !wanted.is_some_and(|wanted| is_at(one, wanted)) {
                return None;
            }
            one.meta.port |= READ;
            one.value.get()
        })
    }

    /// All values of this invocation at an input, the oldest first; they count as not given out.
    pub(crate) fn arrived<T: Data>(&self, port: Input<T>) -> impl Iterator<Item = &T> {
        let wanted = number(port);
        let is_wanted = move |one: &&Message| wanted.is_some_and(|wanted| is_at(one, wanted));
        self.messages.iter().filter(is_wanted).filter_map(|one| one.value.get())
    }

    /// When what the newest value at an input tells of happened, if who published it has said so.
    #[must_use]
    pub fn stamp<T: Data>(&self, port: Input<T>) -> Option<Stamp> {
        self.newest(port)?.meta.stamp()
    }

    /// Whether the newest value at an input was older than its edge's deadline when it was read.
    #[must_use]
    pub fn is_late<T: Data>(&self, port: Input<T>) -> bool {
        self.newest(port).is_some_and(|message| message.meta.is_late)
    }

    /// Publishes a value. Nobody sees it before this invocation has succeeded; nothing downstream
    /// is called from here.
    ///
    /// # Errors
    ///
    /// The value comes back, if an edge has no room for it.
    #[inline]
    pub fn publish<T: Data>(&mut self, port: Output<T>, value: T) -> Result<(), PublishError<T>> {
        self.stage(port, value, None)
    }

    /// Publishes a value that tells of something at this time.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_stamped<T: Data>(
        &mut self,
        port: Output<T>,
        value: T,
        stamp: Stamp,
    ) -> Result<(), PublishError<T>> {
        self.stage(port, value, Some(stamp))
    }

    /// Runs a future beside the graph. What it gives is published at this output, at the beginning
    /// of an epoch after it has ended; a failure of it is a failure of this component.
    ///
    /// # Errors
    ///
    /// [`TaskRefused`], if as many are under way as the run allows.
    pub fn submit_task<T, F>(&mut self, port: Output<T>, work: F) -> Result<(), TaskRefused>
    where
        T: Data,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let work = Box::pin(async move { work.await.map(|value| Some(Value::owned(value))) });
        self.begin_task(port, TaskStart::Now(work))
    }

    /// As [`submit_task`](Self::submit_task), for a future that may give nothing, or that is made
    /// when the epoch is over.
    pub(crate) fn begin_task<T: Data>(
        &mut self,
        port: Output<T>,
        begin: TaskStart,
    ) -> Result<(), TaskRefused> {
        let Some(port) = port.index() else { return Err(TaskRefused::unbound()) };
        let from = (self.call.component, self.call.info.invocation);
        self.call.env.tasks.submit(from, port, self.correlation(), begin)
    }

    /// A value of the blackboard, as of the beginning of the epoch.
    #[must_use]
    pub fn state<T: Data>(&self, key: &str) -> Option<&T> {
        self.call.env.count_state_read();
        self.call.env.blackboard.get(key)?.value.get()
    }

    /// Writes a value to the blackboard. It is seen in the next epoch, if this invocation succeeds.
    /// A name belongs to the first component that has written it.
    ///
    /// # Errors
    ///
    /// [`StateRefused`], if another component owns the name.
    pub fn write_state<T: Data>(&mut self, key: &str, value: T) -> Result<(), StateRefused> {
        let writer = self.call.component;
        if self.call.env.blackboard.get(key).is_some_and(|entry| entry.writer != writer) {
            return Err(StateRefused { key: key.into() });
        }
        let value = Value::new(value);
        self.outbox.writes.push(Write { key: key.into(), value, writer });
        // Relaxed: the coordinator looks at it when all who work on the epoch are done.
        self.call.env.is_written.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Says how far the loop around this component has come. Reports of one iteration are taken
    /// together: one that has converged is enough, the last residual and reason count. Outside a
    /// loop it says nothing.
    pub fn report_loop_convergence(
        &mut self,
        converged: bool,
        residual: Option<f64>,
        reason: &'static str,
    ) {
        let report = self.call.report.get_or_insert_default();
        report.converged |= converged;
        report.residual = residual.or(report.residual);
        report.reason = reason;
    }

    /// Where the loop around this component stands.
    #[must_use]
    pub fn loop_iteration(&self) -> Option<LoopIteration> {
        self.call.info.iteration
    }

    /// Whether the run is to stop. A component that takes long looks at it now and then.
    #[must_use]
    pub fn cancel_requested(&mut self) -> bool {
        let requested = self.call.env.is_stopping();
        self.call.saw_cancel |= requested;
        requested
    }

    /// The number of the epoch, from one.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.call.env.epoch
    }

    /// The time of the epoch, since the run began.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.call.env.now_ns)
    }

    /// How many ticks of its timer went by before this one without an invocation.
    #[must_use]
    pub fn missed_runs(&self) -> u64 {
        self.call.info.missed_runs
    }

    /// A counter of this component's own, by its name. It may be kept, and handed to tasks.
    ///
    /// # Errors
    ///
    /// [`MetricRefused`], for what is no name, one of a histogram, or one too many.
    pub fn counter(&self, name: &str) -> Result<Counter, MetricRefused> {
        self.call.env.user.counter(self.call.component, name)
    }

    /// A histogram of this component's own, by its name. It may be kept, and handed to tasks.
    ///
    /// # Errors
    ///
    /// [`MetricRefused`], for what is no name, one of a counter, or one too many.
    pub fn histogram(&self, name: &str) -> Result<Histogram, MetricRefused> {
        self.call.env.user.histogram(self.call.component, name)
    }

    /// Writes a line to the [component_log](super::component_log) of the run, with the epoch and who says it.
    /// Without a component_log nothing is formatted.
    pub fn log(&self, level: Level, line: impl fmt::Display) {
        if let Some(component_log) = &self.call.env.component_log {
            let Call { env, component, id, .. } = &self.call;
            component_log.write(
                level,
                (env.epoch, env.now_ns),
                (*component, id),
                &env.graph,
                &line,
            );
        }
    }

    /// What a component that draws numbers begins with: the same for all of a run, as its
    /// [options](crate::RunOptions::seed) say.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.call.env.seed
    }

    /// The name of the graph.
    #[must_use]
    pub fn graph_name(&self) -> &str {
        &self.call.env.graph
    }

    /// The id of this component.
    #[must_use]
    pub fn component_id(&self) -> &str {
        self.call.id
    }

    #[inline]
    fn newest<T: Data>(&self, port: Input<T>) -> Option<&Message> {
        let wanted = number(port)?;
        // Where it is if all inputs have one, and where the only one of the first input is.
        if self.call.info.is_one_each
            && let Some(one) = self.messages.get(usize::from(wanted))
            && is_at(one, wanted)
        {
            return Some(one);
        }
        let fresh = self.messages.iter().rev().find(|one| is_at(one, wanted));
        fresh.or_else(|| {
            let last =
                self.last_seen.last.get(usize::from(wanted.checked_sub(self.last_seen.first)?));
            last.filter(|one| !one.is_none())
        })
    }

    /// The message that began what this invocation goes on with: that of the first it was called
    /// with, or that one itself.
    #[inline]
    fn correlation(&self) -> MessageId {
        let Some(first) = self.messages.first() else { return MessageId::default() };
        let inherited = first.meta.correlation;
        if inherited.is_none() { first.id() } else { inherited }
    }

    #[inline(always)]
    fn stage<T: Data>(
        &mut self,
        port: Output<T>,
        value: T,
        stamp: Option<Stamp>,
    ) -> Result<(), PublishError<T>> {
        let correlation = self.correlation();
        let published_ns = self.call.env.now_ns;
        match self.outbox.admit(port.below(u16::MAX)) {
            Ok(Some(room)) => {
                let meta = Meta { published_ns, correlation, ..Meta::default() };
                room.put(value, meta.stamped(stamp));
                Ok(())
            }
            // Nobody is there to see it.
            Ok(None) => Ok(()),
            Err(refused) => Err(PublishError { value, refused }),
        }
    }
}

impl fmt::Debug for GraphContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphContext")
            .field("component", &self.call.id)
            .field("epoch", &self.call.env.epoch)
            .finish_non_exhaustive()
    }
}

/// The number of an input, if it is bound.
#[inline]
fn number<T>(port: Input<T>) -> Option<u16> {
    port.below(PORT + 1)
}

/// A value that was not published.
pub struct PublishError<T> {
    value: T,
    refused: Refused,
}

impl<T> PublishError<T> {
    /// Whether an edge had no room. That may be otherwise in a later epoch.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refused == Refused::Full
    }

    /// Whether the key is of no output of this component: it was not bound.
    #[must_use]
    pub fn is_unbound(&self) -> bool {
        self.refused == Refused::Unbound
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The error without the value.
    pub fn discard(self) -> PublishError<()> {
        PublishError { value: (), refused: self.refused }
    }
}

impl<T> fmt::Debug for PublishError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishError").field("refused", &self.refused).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for PublishError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.refused {
            Refused::Unbound => "the output is not one of this component",
            Refused::Full => "an edge of this output has no room",
        })
    }
}

impl<T> core::error::Error for PublishError<T> {}
