//! The trigger of a component: decides when messages make an invocation, and which messages.
//!
//! The run evaluates it when it comes to the component; a trigger has no clock of its own. Messages
//! that the policy cannot use yet wait in [`Pending`] queues, which are bounded; dropped messages
//! are counted. The order in which messages are consumed is fixed: `any_input` and similar policies
//! take inputs in the order of their names, all others in declared order; the channels of one input
//! in the order of the description; and the messages of each channel in the order of arrival.
//!
//! ```text
//! popped from channels = delivered + coalesced_count + timeout_drop_count + pending_drop_count
//! + time_sync_drop_count + late_drop_count + condition_suppressed_count + still pending
//! ```
//!
//! A trigger gives two guarantees to the coordinator, which advances time. If
//! [`Trigger::might_be_ready`] returns false, [`Trigger::collect`] changes nothing. And at the time
//! that [`Trigger::next_due`] returns, `collect` makes an invocation or drops a message, also
//! without a new message. So no run is stuck at a point in time for ever.
//!
//! With an `any_input` policy without interval, latency and watermark (`is_direct`) no message is
//! ever pending: messages go from the channels directly to the component, and messages beyond the
//! limit stay in the channels.

mod build;
pub(crate) mod invocations;
mod policy;
#[cfg(test)]
mod tests;
pub(crate) mod timer;

use core::ops::Range;

pub(crate) use invocations::{EventKind, Invocations};
use policy::Policy;
use timer::Timer;

use super::{
    channel::Channel,
    message::{Message, Meta},
    pending::Pending,
};
use crate::{data::Value, describe::ClockDomain};

/// The counters, by the names of `runtime.trigger.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TriggerCounters {
    /// Invocations.
    pub(crate) ready_count: u64,
    /// Evaluations at which something was pending or due, but no invocation was made.
    pub(crate) suppressed_count: u64,
    /// Messages that a newer one at the same input replaced: with `coalesce` or `debounce`, and
    /// with `all_inputs` (or the condition `all_inputs_ready`) where all edges of the input keep
    /// only the newest message.
    pub(crate) coalesced_count: u64,
    /// Messages that waited longer than `max_latency_ms`.
    pub(crate) timeout_drop_count: u64,
    /// Batches.
    pub(crate) batch_flush_count: u64,
    /// Messages that `time_sync` found too old for the others.
    pub(crate) time_sync_drop_count: u64,
    /// Messages too far behind the watermark.
    pub(crate) late_drop_count: u64,
    /// Messages beyond the bound of their input.
    pub(crate) pending_drop_count: u64,
    /// Messages without the timestamp that the condition requires.
    pub(crate) condition_suppressed_count: u64,
    /// Those of `suppressed_count` that were inside `min_interval_ms`.
    pub(crate) rate_limit_suppressed_count: u64,
}

/// An input of a trigger.
#[derive(Debug)]
struct TriggerInput {
    port: u16,
    /// The kind of event that a message here is.
    kind: EventKind,
    /// Its channels among those of the component.
    channels: Range<usize>,
    /// Only the newest message is kept.
    newest_only: bool,
    pending: Pending,
}

/// The trigger of a component; see the [module](self).
#[derive(Debug)]
pub(crate) struct Trigger {
    policy: Policy,
    /// Messages go directly from the channels to the component.
    is_direct: bool,
    /// A set of one message per input may do so: each input has one channel, and messages do not
    /// expire.
    may_skip_pending: bool,
    /// Pending messages at all inputs.
    n_pending: usize,
    /// There is no invocation before this time.
    not_before_ns: u64,
    min_interval_ns: u64,
    /// Zero: none.
    max_latency_ns: u64,
    /// Only for a `watermark` trigger.
    lateness_ns: Option<u64>,
    /// The greatest timestamp of each clock.
    watermarks: [u64; ClockDomain::ALL.len()],
    /// When it was last evaluated.
    seen_ns: u64,
    /// In declared order.
    inputs: Vec<TriggerInput>,
    /// Indices of `inputs` in the order of their names.
    by_name: Vec<usize>,
    timers: Vec<Timer>,
    counters: TriggerCounters,
}

impl Trigger {
    /// The counters.
    pub(crate) fn counters(&self) -> &TriggerCounters {
        &self.counters
    }

    /// Starts the timers, when the component starts or restarts.
    pub(crate) fn start(&mut self, now_ns: u64) {
        for timer in &mut self.timers {
            timer.start(now_ns);
        }
    }

    /// It makes an invocation in every epoch, without any event: such a graph is never idle.
    #[cfg(test)]
    pub(crate) fn is_manual(&self) -> bool {
        self.policy == Policy::Always
    }

    /// Pending messages.
    pub(crate) fn n_pending(&self) -> usize {
        self.n_pending
    }

    /// Whether there may be an invocation now. If not, [`collect`](Self::collect) would change
    /// nothing.
    #[inline]
    pub(crate) fn might_be_ready(&self, now_ns: u64, channels: &[Channel]) -> bool {
        match self.policy {
            Policy::Never => false,
            Policy::Always => now_ns >= self.not_before_ns,
            Policy::Timers => self.timers.iter().any(|timer| timer.next_due_ns <= now_ns),
            _ => self.n_pending > 0 || self.has_update(channels),
        }
    }

    #[inline]
    fn has_update(&self, channels: &[Channel]) -> bool {
        let mut inputs = self.inputs.iter();
        inputs.any(|input| channels[input.channels.clone()].iter().any(Channel::has_update))
    }

    /// The earliest time at which there can be an invocation without a new message: a timer, the
    /// window of a batch, the end of an interval with something pending. A time in the past means
    /// now. `None` for a manual trigger without an interval: it is ready in every epoch,
    /// independent of time.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let due_ns = match self.policy {
            Policy::Never => None,
            Policy::Always => (self.min_interval_ns > 0).then_some(self.not_before_ns),
            Policy::Timers => self.timers.iter().map(|timer| timer.next_due_ns).min(),
            _ if self.n_pending == 0 => None,
            Policy::Any | Policy::Newest => Some(self.seen_ns),
            Policy::All | Policy::Stamped | Policy::TimeSync { .. } => {
                self.has_set().then_some(self.seen_ns)
            }
            Policy::Batch { size, window_ns } => {
                if self.is_full_batch(size) {
                    Some(self.seen_ns)
                } else {
                    window_ns.and_then(|window_ns| self.window_end(window_ns))
                }
            }
        };
        due_ns.map(|due_ns| due_ns.max(self.not_before_ns))
    }

    /// Whether it may become ready by time alone.
    pub(crate) fn depends_on_time(&self) -> bool {
        match self.policy {
            Policy::Never => false,
            Policy::Always => self.min_interval_ns > 0,
            _ => !self.is_direct,
        }
    }

    /// The input, if one message of its only channel is all that the trigger needs.
    pub(crate) fn single(&self) -> Option<u16> {
        match self.inputs.as_slice() {
            [input] if self.is_direct && input.channels == (0..1) => Some(input.port),
            _ => None,
        }
    }

    /// Whether it may make more than one invocation at a time.
    pub(crate) fn makes_several(&self) -> bool {
        matches!(self.policy, Policy::Any | Policy::Timers) && self.min_interval_ns == 0
    }

    /// Whether it makes exactly one invocation per epoch.
    pub(crate) fn is_steady(&self) -> bool {
        self.policy == Policy::Always && self.min_interval_ns == 0
    }

    /// Whether it needs one message of each of the first `n_inputs` inputs, directly from their
    /// only channels.
    pub(crate) fn is_set_of(&self, n_inputs: usize) -> bool {
        let is_nth = |(nth, input): (usize, &TriggerInput)| {
            usize::from(input.port) == nth && input.channels == (nth..nth + 1)
        };
        self.may_skip_pending
            && self.inputs.len() == n_inputs
            && self.inputs.iter().enumerate().all(is_nth)
    }

    /// Takes such a set, if there is one and nothing else to check, as [`collect`](Self::collect)
    /// would; returns whether there was one. Overwrites the messages in `out`, which hold no
    /// values.
    #[inline(always)]
    pub(crate) fn collect_set(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        out: &mut [Message],
    ) -> bool {
        if self.n_pending > 0 || !channels.iter().all(|channel| channel.can_open(now_ns)) {
            return false;
        }
        for (port, (channel, place)) in (0..).zip(channels.iter_mut().zip(out)) {
            if let Some((message, _)) = channel.open(now_ns) {
                let value = core::mem::replace(&mut message.value, Value::UNIT);
                place.put(value, Meta { port, ..message.meta });
            }
        }
        self.seen_ns = now_ns;
        self.counters.ready_count += 1;
        true
    }

    /// Counts invocations of its [single](Self::single) channel that were made without it.
    #[inline]
    pub(crate) fn note_ready(&mut self, n_made: u64) {
        self.counters.ready_count += n_made;
    }

    /// The next tick of its timers, if it has any.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        if self.policy == Policy::Timers { self.next_due() } else { None }
    }

    fn window_end(&self, window_ns: u64) -> Option<u64> {
        let oldest = self.inputs.iter().filter_map(|input| input.pending.oldest_ns()).min()?;
        Some(oldest.saturating_add(window_ns))
    }

    fn is_full_batch(&self, size: usize) -> bool {
        size > 0 && self.n_pending >= size
    }

    /// Something is pending at each input.
    fn has_set(&self) -> bool {
        self.inputs.iter().all(|input| !input.pending.is_empty())
    }

    /// Appends the invocations that can be made now, at most `limit`, to `out`; returns how many.
    /// `channels` are those of the component in the order of `in_edges`.
    #[inline]
    pub(crate) fn collect(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        limit: usize,
        out: &mut Invocations,
    ) -> usize {
        if limit == 0 {
            return 0;
        }
        let n_made = match self.policy {
            Policy::Any if self.is_direct => self.collect_direct(now_ns, channels, limit, out),
            Policy::Never => 0,
            Policy::Always => self.collect_manual(now_ns, out),
            Policy::Timers => self.collect_timers(now_ns, limit, out),
            _ => self.collect_pending(now_ns, channels, limit, out),
        };
        self.counters.ready_count += n_made as u64;
        n_made
    }

    #[inline]
    fn collect_direct(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        limit: usize,
        out: &mut Invocations,
    ) -> usize {
        let mut n_made = 0;
        for index in &self.by_name {
            let input = &self.inputs[*index];
            for channel in &mut channels[input.channels.clone()] {
                while channel.has_update() && n_made < limit {
                    let Some(message) = channel.pop(now_ns) else { break };
                    out.add(input.port, message);
                    out.close(input.kind, now_ns);
                    n_made += 1;
                }
            }
        }
        n_made
    }

    fn collect_manual(&mut self, now_ns: u64, out: &mut Invocations) -> usize {
        if now_ns < self.not_before_ns {
            return 0;
        }
        out.close(EventKind::Manual, now_ns);
        self.begin_interval(now_ns);
        1
    }

    fn collect_timers(&mut self, now_ns: u64, limit: usize, out: &mut Invocations) -> usize {
        let mut n_made = 0;
        while n_made < limit {
            let earliest = self.timers.iter_mut().min_by_key(|timer| timer.next_due_ns);
            let Some(timer) = earliest.filter(|timer| timer.next_due_ns <= now_ns) else { break };
            if now_ns < self.not_before_ns {
                if n_made == 0 {
                    self.counters.suppressed_count += 1;
                    self.counters.rate_limit_suppressed_count += 1;
                }
                break;
            }
            let Some(ticks) = timer.fire(now_ns) else { break };
            let invocation = out.close(EventKind::Timer, ticks.scheduled_ns);
            invocation.runs = ticks.runs;
            invocation.missed_runs = ticks.missed_runs;
            n_made += 1;
            self.begin_interval(now_ns);
        }
        n_made
    }

    fn begin_interval(&mut self, now_ns: u64) {
        if self.min_interval_ns > 0 {
            self.not_before_ns = now_ns.saturating_add(self.min_interval_ns);
        }
    }

    fn collect_pending(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        limit: usize,
        out: &mut Invocations,
    ) -> usize {
        self.seen_ns = now_ns;
        if self.may_skip_pending && self.n_pending == 0 && self.all_have_update(channels) {
            return self.collect_set_direct(now_ns, channels, out);
        }
        if self.max_latency_ns > 0 && self.n_pending > 0 {
            self.expire(now_ns);
        }
        self.take_in(now_ns, channels);
        if self.n_pending == 0 {
            return 0;
        }
        if now_ns < self.not_before_ns {
            self.counters.suppressed_count += 1;
            self.counters.rate_limit_suppressed_count += 1;
            return 0;
        }
        let n_made = self.make(now_ns, limit, out);
        if n_made > 0 {
            self.begin_interval(now_ns);
        } else {
            self.counters.suppressed_count += 1;
        }
        n_made
    }

    fn all_have_update(&self, channels: &[Channel]) -> bool {
        self.inputs.iter().all(|input| channels[input.channels.start].has_update())
    }

    /// One message of each input, directly from its channel; what is left there becomes pending.
    fn collect_set_direct(
        &mut self,
        now_ns: u64,
        channels: &mut [Channel],
        out: &mut Invocations,
    ) -> usize {
        let mut has_more = false;
        for input in &self.inputs {
            let channel = &mut channels[input.channels.start];
            if let Some(message) = channel.pop(now_ns) {
                out.add(input.port, message);
            }
            has_more |= channel.has_update();
        }
        let kind = self.inputs.first().map_or(EventKind::Message, |input| input.kind);
        out.close(kind, now_ns);
        if has_more {
            self.take_in(now_ns, channels);
        }
        1
    }

    /// Drops messages that have waited too long.
    #[cold]
    fn expire(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.max_latency_ns);
        for input in &mut self.inputs {
            let n_expired = input.pending.expire(since_ns);
            self.n_pending -= n_expired;
            self.counters.timeout_drop_count += n_expired as u64;
        }
    }

    /// Empties the channels of all inputs. The order of inputs, by name, matters for watermarks
    /// only.
    fn take_in(&mut self, now_ns: u64, channels: &mut [Channel]) {
        for nth in 0..self.by_name.len() {
            let index = self.by_name[nth];
            for channel in &mut channels[self.inputs[index].channels.clone()] {
                while let Some(message) = channel.pop(now_ns) {
                    self.take_in_one(index, now_ns, message);
                }
            }
        }
    }

    #[inline]
    fn take_in_one(&mut self, index: usize, now_ns: u64, message: Message) {
        let waited_ns = now_ns.saturating_sub(message.meta.received_ns);
        if self.max_latency_ns > 0 && waited_ns > self.max_latency_ns {
            self.counters.timeout_drop_count += 1;
        } else if self.lateness_ns.is_some_and(|lateness_ns| self.is_behind(&message, lateness_ns))
        {
            self.counters.late_drop_count += 1;
        } else if self.inputs[index].pending.push(message) {
            if self.inputs[index].newest_only {
                self.counters.coalesced_count += 1;
            } else {
                self.counters.pending_drop_count += 1;
            }
        } else {
            self.n_pending += 1;
        }
    }

    /// Whether a message is too far behind the greatest timestamp of its clock. Updates the
    /// greatest timestamp.
    fn is_behind(&mut self, message: &Message, lateness_ns: u64) -> bool {
        let Some(stamp) = message.meta.stamp() else { return false };
        let watermark = &mut self.watermarks[stamp.domain as usize];
        *watermark = (*watermark).max(stamp.ns);
        stamp.ns < watermark.saturating_sub(lateness_ns)
    }
}
