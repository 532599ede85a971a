//! What a component sees of the run during a call.

use core::{fmt, sync::atomic::Ordering, time::Duration};
use std::sync::Arc;

use clockjack_exec::Failure;

use super::{
    context_error::{ContextError, Refusal},
    env::Env,
};
use crate::{
    component::{Input, Output},
    data::{Data, Value},
    run::{
        flow::{
            blackboard::Write,
            message::{Message, MessageId, Meta, Stamp},
            outbox::{Outbox, Refused},
            tasks::TaskStart,
        },
        observe::{
            component_log::LogLevel,
            metrics::{UserCounter, UserHistogram},
        },
    },
};

/// Flag in the port number of a message: its value was returned as an update.
const READ: u16 = 1 << 15;

/// Flag in the port number of a message: its value was taken.
const TAKEN: u16 = 1 << 14;

/// Mask of the port number without the flags.
pub(crate) const PORT: u16 = TAKEN - 1;

/// Whether a message belongs to this input, and its value was not taken.
#[inline]
fn is_at(message: &Message, port: u16) -> bool {
    message.meta.port & (PORT | TAKEN) == port
}

/// Whether the value of a message was taken.
#[inline]
pub(crate) fn is_taken(message: &Message) -> bool {
    message.meta.port & TAKEN != 0
}

/// What a component sees of the run during a call: the values at its inputs, its outputs, and the
/// time.
pub struct GraphContext<'a> {
    pub(crate) messages: &'a mut [Message],
    pub(crate) last_seen: LastSeen<'a>,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) call: Call<'a>,
}

/// The last messages of inputs before this invocation, from input `first` on.
#[derive(Clone, Copy)]
pub(crate) struct LastSeen<'a> {
    pub(crate) first: u16,
    pub(crate) last: &'a [Message],
}

/// The data of one invocation.
pub(crate) struct Call<'a> {
    pub(crate) env: &'a Env,
    pub(crate) component: usize,
    pub(crate) id: &'a Arc<str>,
    pub(crate) info: &'a CallInfo,
    pub(crate) report: Option<ConvergenceReport>,
    pub(crate) saw_cancel: bool,
}

/// What is known about a call before it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallInfo {
    /// The index among overlapping invocations.
    pub(crate) invocation: usize,
    pub(crate) missed_runs: u64,
    /// No input has more than one message.
    pub(crate) is_one_each: bool,
    pub(crate) iteration: Option<LoopIteration>,
    /// The number of the call, if the component is on a chain; else zero.
    pub(crate) chain_call: u64,
}

impl CallInfo {
    /// An ordinary call.
    pub(crate) const DEFAULT: Self =
        Self { invocation: 0, missed_runs: 0, is_one_each: true, iteration: None, chain_call: 0 };
}

/// The progress of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIteration {
    /// From zero.
    pub index: u32,
    /// The largest number of iterations.
    pub max: u32,
}

/// What the members of a loop reported in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ConvergenceReport {
    pub(crate) converged: bool,
    pub(crate) residual: Option<f64>,
    pub(crate) reason: &'static str,
}

impl GraphContext<'_> {
    /// The newest value at an input: that of this invocation, or the last one seen there.
    #[must_use]
    #[inline]
    pub fn latest<T: Data>(&self, port: Input<T>) -> Option<&T> {
        self.newest(port)?.value.get()
    }

    /// The newest value at an input, if it came with this invocation and was not returned by
    /// `update` or `drain` before.
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

    /// Takes the oldest value of this invocation at an input out of the message. That is possible
    /// if there is no other reader: for numbers, if the output of the publisher has one edge, and
    /// for edges with `copy_policy: copy` or `move_only`. A component whose invocations may overlap
    /// needs one of these policies.
    ///
    /// The first value that is taken from an output may be a copy, which counts in
    /// `payload_copy_count`. With `copy_policy: move_only` none is.
    pub fn take<T: Data>(&mut self, port: Input<T>) -> Option<T> {
        let wanted = number(port)?;
        let found = self.messages.iter_mut().find(|one| is_at(one, wanted))?;
        let value = core::mem::replace(&mut found.value, Value::new(()));
        match value.take() {
            Ok(taken) => {
                found.meta.port |= TAKEN;
                if taken.is_copy {
                    self.call.env.note_copy(found.meta.edge);
                }
                Some(taken.value)
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

    /// All values of this invocation at an input, the oldest first. They do not count as returned.
    pub(crate) fn arrived<T: Data>(&self, port: Input<T>) -> impl Iterator<Item = &T> {
        let wanted = number(port);
        let is_wanted = move |one: &&Message| wanted.is_some_and(|wanted| is_at(one, wanted));
        self.messages.iter().filter(is_wanted).filter_map(|one| one.value.get())
    }

    /// The timestamp of the newest value at an input, if its publisher has given one.
    #[must_use]
    pub fn stamp<T: Data>(&self, port: Input<T>) -> Option<Stamp> {
        self.newest(port)?.meta.stamp()
    }

    /// Whether the newest value at an input was older than its edge's deadline when it was read.
    #[must_use]
    pub fn is_late<T: Data>(&self, port: Input<T>) -> bool {
        self.newest(port).is_some_and(|message| message.meta.is_late)
    }

    /// Publishes a value. It becomes visible after this invocation has succeeded; no reader is
    /// called from here.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if an edge has no room for it.
    #[inline]
    pub fn publish<T: Data>(&mut self, port: Output<T>, value: T) -> Result<(), PublishError<T>> {
        self.stage(port, value, None)
    }

    /// Publishes a value with a timestamp.
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

    /// Runs a future concurrently with the graph. Its result is published at this output, at the
    /// beginning of an epoch after the future has completed. A failure of the future is a failure
    /// of this component.
    ///
    /// # Errors
    ///
    /// [`ContextError`], if as many tasks are running as the run allows.
    pub fn submit_task<T, F>(&mut self, port: Output<T>, work: F) -> Result<(), ContextError>
    where
        T: Data,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let work = Box::pin(async move { work.await.map(|value| Some(Value::owned(value))) });
        self.begin_task(port, TaskStart::Now(work))
    }

    /// As [`submit_task`](Self::submit_task), for a future that may have no result, or that is
    /// created at the end of the epoch.
    pub(crate) fn begin_task<T: Data>(
        &mut self,
        port: Output<T>,
        begin: TaskStart,
    ) -> Result<(), ContextError> {
        let Some(port) = port.index() else { return Err(ContextError(Refusal::ForeignOutput)) };
        let from = (self.call.component, self.call.info.invocation);
        let cause = (self.correlation(), self.call.info.chain_call);
        self.call.env.tasks.submit(from, port, cause, begin)
    }

    /// A value of the blackboard, as of the beginning of the epoch.
    #[must_use]
    pub fn state<T: Data>(&self, key: &str) -> Option<&T> {
        self.call.env.count_state_read();
        self.call.env.blackboard.get(key)?.value.get()
    }

    /// Writes a value to the blackboard. It becomes visible in the next epoch, if this invocation
    /// succeeds. A name belongs to the first component that writes it.
    ///
    /// # Errors
    ///
    /// [`ContextError`], if another component owns the name.
    pub fn write_state<T: Data>(&mut self, key: &str, value: T) -> Result<(), ContextError> {
        let writer = self.call.component;
        if self.call.env.blackboard.get(key).is_some_and(|entry| entry.writer != writer) {
            return Err(ContextError(Refusal::ForeignState { key: key.into() }));
        }
        let value = Value::new(value);
        self.outbox.writes.push(Write { key: key.into(), value, writer });
        // Relaxed: the coordinator reads it after all workers of the epoch are done.
        self.call.env.is_written.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Reports the convergence of the loop around this component. Reports of one iteration are
    /// combined: the loop has converged if any report says so; the last residual and reason count.
    /// Has no effect outside a loop.
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

    /// The progress of the loop around this component.
    #[must_use]
    pub fn loop_iteration(&self) -> Option<LoopIteration> {
        self.call.info.iteration
    }

    /// Whether the run is stopping. A component with long calls polls this now and then.
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

    /// How many ticks of its timer before this one had no invocation.
    #[must_use]
    pub fn missed_runs(&self) -> u64 {
        self.call.info.missed_runs
    }

    /// A counter of this component, by name. The component may keep it, and pass it to tasks.
    ///
    /// # Errors
    ///
    /// [`ContextError`], if the name is invalid, belongs to a histogram, or is one too many.
    pub fn counter(&self, name: &str) -> Result<UserCounter, ContextError> {
        self.call.env.user.counter(self.call.component, name)
    }

    /// A histogram of this component, by name. The component may keep it, and pass it to tasks.
    ///
    /// # Errors
    ///
    /// [`ContextError`], if the name is invalid, belongs to a counter, or is one too many.
    pub fn histogram(&self, name: &str) -> Result<UserHistogram, ContextError> {
        self.call.env.user.histogram(self.call.component, name)
    }

    /// Writes a line to the [component log](crate::ComponentLog) of the run, with the epoch
    /// and the component. Without a component log nothing is formatted.
    pub fn log(&self, level: LogLevel, line: impl fmt::Display) {
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

    /// The seed for components that draw random numbers: the same for the whole run, as its
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
        // Its index if every input has one message, or if it is the only message of the first
        // input.
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

    /// The correlation id of this invocation: that of its first message, or the id of that message
    /// if it has none.
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
            // The output has no edge.
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
    /// Whether an edge had no room. A later attempt may succeed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.refused == Refused::Full
    }

    /// Whether the port is not bound to this component.
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
