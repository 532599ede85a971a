//! Makes invocations from pending messages, by policy. The caller has checked the interval; there
//! is at least one message, and a limit of at least one.

use super::{EventKind, Invocations, Policy, Trigger, TriggerInput};

impl Trigger {
    pub(super) fn make(&mut self, now_ns: u64, limit: usize, out: &mut Invocations) -> usize {
        match self.policy {
            Policy::Never | Policy::Always | Policy::Timers => 0,
            Policy::Any => {
                let limit = if self.min_interval_ns > 0 { 1 } else { limit };
                self.make_each(now_ns, limit, out)
            }
            Policy::Newest => self.make_newest(now_ns, out),
            Policy::All => self.make_set(now_ns, out),
            Policy::Stamped => {
                self.drop_unstamped();
                self.make_set(now_ns, out)
            }
            Policy::TimeSync { slop_ns } => {
                self.align(slop_ns);
                self.make_set(now_ns, out)
            }
            Policy::Batch { size, window_ns } => self.make_batch(now_ns, size, window_ns, out),
        }
    }

    /// One invocation per message.
    fn make_each(&mut self, now_ns: u64, limit: usize, out: &mut Invocations) -> usize {
        let mut n_made = 0;
        for index in &self.by_name {
            let input = &mut self.inputs[*index];
            while n_made < limit {
                let Some(message) = input.pending.pop() else { break };
                out.add(input.port, message);
                out.close(input.kind, now_ns);
                n_made += 1;
            }
        }
        self.n_pending -= n_made;
        n_made
    }

    /// One invocation with the newest message of each input that has one. An input keeps at most
    /// one.
    fn make_newest(&mut self, now_ns: u64, out: &mut Invocations) -> usize {
        let mut kind = None;
        for index in &self.by_name {
            let input = &mut self.inputs[*index];
            if let Some(message) = input.pending.pop() {
                out.add(input.port, message);
                kind = kind.or(Some(input.kind));
            }
        }
        self.n_pending = 0;
        out.close(kind.unwrap_or(EventKind::Message), now_ns);
        1
    }

    /// One invocation with a message of each input, if each has one.
    fn make_set(&mut self, now_ns: u64, out: &mut Invocations) -> usize {
        if !self.has_set() {
            return 0;
        }
        for input in &mut self.inputs {
            if let Some(message) = input.pending.pop() {
                out.add(input.port, message);
                self.n_pending -= 1;
            }
        }
        let kind = self.inputs.first().map_or(EventKind::Message, |input| input.kind);
        out.close(kind, now_ns);
        1
    }

    /// Drops messages without a timestamp that are ahead of one with a timestamp.
    fn drop_unstamped(&mut self) {
        for input in &mut self.inputs {
            while input.pending.front().is_some_and(|message| message.meta.stamp().is_none()) {
                input.pending.pop();
                self.n_pending -= 1;
                self.counters.condition_suppressed_count += 1;
            }
        }
    }

    /// Drops the oldest first message until all first messages are close enough or cannot be
    /// compared.
    fn align(&mut self, slop_ns: u64) {
        while let Some(oldest) = misaligned(&self.inputs, slop_ns) {
            self.inputs[oldest].pending.pop();
            self.n_pending -= 1;
            self.counters.time_sync_drop_count += 1;
        }
    }

    /// One invocation with up to `size` messages, input by input, if there are so many or the
    /// oldest has waited for the whole window.
    fn make_batch(
        &mut self,
        now_ns: u64,
        size: usize,
        window_ns: Option<u64>,
        out: &mut Invocations,
    ) -> usize {
        let window_end = window_ns.and_then(|window_ns| self.window_end(window_ns));
        let is_over = window_end.is_some_and(|end_ns| end_ns <= now_ns);
        if !self.is_full_batch(size) && !is_over {
            return 0;
        }
        let mut n_wanted = if size == 0 { usize::MAX } else { size };
        let mut kind = None;
        for input in &mut self.inputs {
            while n_wanted > 0
                && let Some(message) = input.pending.pop()
            {
                out.add(input.port, message);
                kind = kind.or(Some(input.kind));
                n_wanted -= 1;
                self.n_pending -= 1;
            }
        }
        out.close(kind.unwrap_or(EventKind::Message), now_ns).is_batch = true;
        self.counters.batch_flush_count += 1;
        1
    }
}

/// The input with the oldest first message, if the first messages are too far apart. `None` if an
/// input has no message, or one without a timestamp of the same clock.
fn misaligned(inputs: &[TriggerInput], slop_ns: u64) -> Option<usize> {
    if slop_ns == 0 {
        return None;
    }
    let domain = inputs.first()?.pending.front()?.meta.stamp()?.domain;
    let mut oldest = (u64::MAX, 0);
    let mut newest_ns = 0;
    for (index, input) in inputs.iter().enumerate() {
        let stamp = input.pending.front()?.meta.stamp().filter(|stamp| stamp.domain == domain)?;
        oldest = oldest.min((stamp.ns, index));
        newest_ns = newest_ns.max(stamp.ns);
    }
    (newest_ns - oldest.0 > slop_ns).then_some(oldest.1)
}
