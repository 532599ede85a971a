//! Backpressure by mailboxes: full mailboxes lower the quota of the scheduler.
//!
//! # Rule
//!
//! A mailbox is *saturated* from the moment at which its actor finds that the mailbox has refused a
//! message and is still more than half full, until at most half of it is used or the actor has
//! stopped. While at least one mailbox is saturated, the scheduler is under pressure of the reason
//! [`Mailboxes`](PressureReason::Mailboxes): the quota is the smaller one of its configuration, and
//! jobs of low priority are refused. The distance between full and half full is the hysteresis: a
//! mailbox that stays nearly full does not change the pressure with each message.
//!
//! # Threads
//!
//! A sender that is refused only sets a flag of the header, so this is safe in interrupts. The
//! runner of the actor sees the flag before its next message and counts the mailbox
//! ([`SaturatedCount`](super::saturated_count::SaturatedCount), which has the protocol).

use clockjack_sched::PressureReason;

use super::SystemInner;
use crate::cell::{
    header::{MAILBOX_FULL, SATURATED},
    shared::ActorShared,
};

impl SystemInner {
    /// One more mailbox is saturated.
    pub(crate) fn mailbox_saturated(&self) {
        self.saturated.add(|is_any| self.set_mailbox_pressure(is_any));
    }

    /// A saturated mailbox has been emptied to its half, or its actor has stopped.
    pub(crate) fn mailbox_relieved(&self) {
        self.saturated.remove(|is_any| self.set_mailbox_pressure(is_any));
    }

    fn set_mailbox_pressure(&self, is_any: bool) {
        self.jobs().set_pressure(PressureReason::Mailboxes, if is_any { 100 } else { 0 });
    }
}

impl<M: 'static> ActorShared<M> {
    /// The mailbox was full: counts it as saturated until at most half of it is used. For the
    /// runner.
    #[cold]
    pub(crate) fn check_saturation(&self) {
        let (header, mail) = (&self.header, &self.mail);
        if mail.len() > mail.capacity() / 2 {
            if header.set_flags(SATURATED) & SATURATED == 0 {
                header.system().mailbox_saturated();
            }
            return;
        }
        self.relieve();
    }

    /// Much of the mailbox may have been taken since the last check: checks again, if the mailbox
    /// was full. For the runner.
    pub(crate) fn check_saturation_again(&self) {
        if self.header.flags() & MAILBOX_FULL != 0 {
            self.check_saturation();
        }
    }

    /// The mailbox is at most half full, or closed and empty. For the runner.
    #[cold]
    fn relieve(&self) {
        let header = &self.header;
        let was_saturated = header.flags() & SATURATED != 0;
        header.clear_flags(MAILBOX_FULL | SATURATED);
        if was_saturated {
            header.system().mailbox_relieved();
        }
    }

    /// The mailbox is closed and empty. Messages that were ranked by priority count as inside until
    /// they are handled, which does not happen any more.
    pub(crate) fn relieve_closed(&self) {
        if self.header.flags() & MAILBOX_FULL != 0 {
            self.relieve();
        }
    }
}
