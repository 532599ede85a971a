//! The budget of a poll: messages and time.

use super::{AnyPoll, PollOf, any};

/// The maximal number of messages between two checks of the time that the poll has used.
const MESSAGES_PER_CHECK: usize = 8;

/// How long a poll may go on. A poll of one or two messages does not even check the limits.
pub(super) struct Budget {
    n_taken: usize,
    /// The number of messages at which limit and clock are checked next.
    check_at: usize,
    until: Option<u64>,
}

/// How many messages are handled before the clock is read for the first time.
const UNTIMED_MESSAGES: usize = 2;

impl Budget {
    pub(super) const fn new() -> Self {
        Self { n_taken: 0, check_at: UNTIMED_MESSAGES, until: None }
    }

    /// Counts a message; false if the budget is used up.
    #[inline]
    pub(super) fn take<M: 'static>(&mut self, poll: &PollOf<'_, M>) -> bool {
        if self.n_taken == self.check_at && !self.check(&any(poll)) {
            return false;
        }
        self.n_taken += 1;
        true
    }

    /// Checks limit and clock; more often the slower the messages are.
    #[cold]
    fn check(&mut self, poll: &AnyPoll<'_>) -> bool {
        let left = poll.throughput().saturating_sub(self.n_taken);
        if left == 0 {
            return false;
        }
        let (now, budget) = (poll.nanos(), poll.budget_nanos());
        let until = *self.until.get_or_insert_with(|| now.saturating_add(budget));
        if now >= until {
            return false;
        }
        // The messages are known to be fast only if the clock was read before, and if as many
        // messages again would take at most the rest of the budget.
        let (left_nanos, n_timed) = (until - now, (self.n_taken - UNTIMED_MESSAGES) as u64);
        let spent = budget.saturating_sub(left_nanos).saturating_mul(MESSAGES_PER_CHECK as u64);
        let is_fast = n_timed > 0 && spent <= left_nanos.saturating_mul(n_timed);
        self.check_at = self.n_taken + if is_fast { MESSAGES_PER_CHECK.min(left) } else { 1 };
        true
    }
}
