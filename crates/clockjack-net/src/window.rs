//! The windows of links: how many bytes of messages may be on their way from one node to another.
//!
//! A channel bounds the messages for one target. The window of a link bounds the bytes for all
//! targets of a node together, so that many slow targets do not fill the memory of their node. Both
//! halves count bytes from the beginning of the link, each message with [`MESSAGE_OVERHEAD`] more
//! than its body:
//!
//! ```text
//! sender     reserved ≥ sent              a proxy may reserve while reserved < limit
//! receiver   received ≥ freed             limit = freed + LINK_WINDOW
//! ```
//!
//! 1. The last message may exceed the limit: so any credit is enough for any message, and a large
//!    one never waits behind small ones for ever.
//! 2. The receiver frees the bytes of a message when its target has taken it, or when it is
//!    dropped, whatever the reason: [`Held`] does it in its drop.
//! 3. Limits are absolute. A lost grant loses no credit; bytes that were lost on their way are
//!    freed when the sender reports how much it has sent.
//!
//! No waker runs, and nothing is sent, inside of a lock.

use alloc::collections::BTreeMap;
use core::{mem, task::Waker};

use clockjack_actor::ActorRef;
use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_wire::frame::{Frame, MESSAGE_MAX, MESSAGE_OVERHEAD};

use crate::driver::NetMsg;

/// The bytes of messages that a node accepts from another one beyond those that its targets have
/// taken.
pub const LINK_WINDOW: u64 = 8 << 20;

/// After how many freed bytes the receiver grants more.
const GRANT_EVERY: u64 = LINK_WINDOW / 8;

/// How many channels a node opens to another one per second, after a first
/// [`OPENS_BURST`].
pub(crate) const OPENS_PER_SECOND: u64 = 64;

/// How many channels a node opens to another one at once.
pub(crate) const OPENS_BURST: u64 = 1_024;

/// By how much the last message may exceed the limit.
const EXCESS_MAX: u64 = MESSAGE_MAX as u64 + MESSAGE_OVERHEAD;

/// What a message counts.
pub(crate) fn cost(body: &[u8]) -> u64 {
    body.len() as u64 + MESSAGE_OVERHEAD
}

/// The sending half, which the proxies of the actors of one node share.
pub(crate) struct OutLink(SpinLock<OutLinkState>);

struct OutLinkState {
    reserved: u64,
    limit: u64,
    /// The proxies that wait for credit, by their channels.
    waiters: BTreeMap<u64, Waker>,
    /// The limit at the last tick, if a proxy waited: to see whether the link has got on.
    limit_at_tick: Option<u64>,
    /// How many channels may be opened before the next tick.
    opens_left: u64,
}

impl OutLink {
    pub(crate) fn new() -> Self {
        Self(SpinLock::new(OutLinkState {
            reserved: 0,
            limit: LINK_WINDOW,
            waiters: BTreeMap::new(),
            limit_at_tick: None,
            opens_left: OPENS_BURST,
        }))
    }

    /// Whether a channel may be opened now, or its opening be repeated: a receiver ignores more.
    pub(crate) fn take_open(&self) -> bool {
        self.0.with(|state| {
            let may_open = state.opens_left > 0;
            state.opens_left -= u64::from(may_open);
            may_open
        })
    }

    /// A second has passed.
    pub(crate) fn refill_opens(&self) {
        self.0.with(|state| {
            state.opens_left = (state.opens_left + OPENS_PER_SECOND).min(OPENS_BURST);
        });
    }

    /// Reserves the bytes of a message, if there is credit.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        self.0.with(|state| {
            let has_credit = state.reserved < state.limit;
            if has_credit {
                state.reserved += bytes;
            }
            has_credit
        })
    }

    /// The message was not sent after all.
    pub(crate) fn give_back(&self, bytes: u64) {
        let waiters = self.0.with(|state| {
            state.reserved -= bytes;
            state.ready()
        });
        waiters.into_values().for_each(Waker::wake);
    }

    pub(crate) fn has_credit(&self) -> bool {
        self.0.with(|state| state.reserved < state.limit)
    }

    /// Keeps the waker of a channel, unless there is credit. The old waker, or this one, is
    /// returned, to be dropped outside of the lock.
    pub(crate) fn wait(&self, channel: u64, waker: Waker) -> Result<Option<Waker>, Waker> {
        self.0.with(|state| {
            if state.reserved < state.limit {
                return Err(waker);
            }
            Ok(state.waiters.insert(channel, waker))
        })
    }

    /// A channel waits no longer.
    pub(crate) fn forget(&self, channel: u64) {
        let waker = self.0.with(|state| state.waiters.remove(&channel));
        drop(waker);
    }

    /// The receiver allows bytes up to a number.
    pub(crate) fn grant(&self, limit: u64) {
        let waiters = self.0.with(|state| {
            state.limit = state.limit.max(limit);
            state.ready()
        });
        waiters.into_values().for_each(Waker::wake);
    }

    /// Whether a proxy waits now, and waited at the last tick, with no grant in between.
    pub(crate) fn tick(&self) -> bool {
        self.0.with(|state| {
            let waits = !state.waiters.is_empty() && state.reserved >= state.limit;
            let now = waits.then_some(state.limit);
            let before = mem::replace(&mut state.limit_at_tick, now);
            now.is_some() && before == now
        })
    }
}

impl OutLinkState {
    /// Those that wait, if there is credit now.
    fn ready(&mut self) -> BTreeMap<u64, Waker> {
        if self.reserved < self.limit { mem::take(&mut self.waiters) } else { BTreeMap::new() }
    }
}

/// The receiving half, which the driver and the messages that wait for their targets share.
pub(crate) struct InLink {
    from: u64,
    driver: ActorRef<NetMsg>,
    state: SpinLock<InLinkState>,
}

struct InLinkState {
    /// What has arrived, or is lost.
    received: u64,
    /// What the targets have taken, what was dropped, and what is lost.
    freed: u64,
    /// The largest limit that was granted.
    limit: u64,
}

/// A message that has arrived and was not taken yet. Dropping it frees its bytes.
pub(crate) struct Held {
    link: Arc<InLink>,
    bytes: u64,
}

impl InLink {
    pub(crate) fn new(from: u64, driver: ActorRef<NetMsg>) -> Self {
        let state = InLinkState { received: 0, freed: 0, limit: LINK_WINDOW };
        Self { from, driver, state: SpinLock::new(state) }
    }

    /// A message of so many bytes has arrived; `None` if the sender had no credit for it.
    pub(crate) fn arrive(this: &Arc<Self>, bytes: u64) -> Option<Held> {
        let is_allowed = this.state.with(|state| {
            let received = state.received.saturating_add(bytes);
            let is_allowed = received <= state.limit.saturating_add(EXCESS_MAX);
            if is_allowed {
                state.received = received;
            }
            is_allowed
        });
        is_allowed.then(|| Held { link: this.clone(), bytes })
    }

    /// The sender reports how many bytes it has sent before: the others are lost.
    pub(crate) fn sender_reports(&self, sent: u64) {
        self.state.with(|state| {
            // No more than it had credit for: it is not trusted.
            let sent = sent.min(state.limit.saturating_add(EXCESS_MAX));
            let n_lost = sent.saturating_sub(state.received);
            state.received += n_lost;
            state.freed += n_lost;
        });
    }

    pub(crate) fn grant(&self) -> Frame<'static> {
        self.state.with(|state| {
            state.limit = state.limit.max(state.freed.saturating_add(LINK_WINDOW));
            Frame::LinkGrant { limit: state.limit, received: state.received }
        })
    }

    fn free(&self, bytes: u64) {
        let is_due = self.state.with(|state| {
            let before = state.freed;
            state.freed += bytes;
            before / GRANT_EVERY != state.freed / GRANT_EVERY
        });
        if is_due {
            // A driver that has stopped grants nothing any more.
            drop(self.driver.tell(NetMsg::Freed(self.from)));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.link.free(self.bytes);
    }
}

impl core::fmt::Debug for Held {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Held").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use clockjack_testkit::ManualTime;
    use proptest::prelude::*;

    use super::*;

    fn limit_of(link: &InLink) -> u64 {
        let Frame::LinkGrant { limit, .. } = link.grant() else { unreachable!("it is a grant") };
        limit
    }

    proptest! {
        /// Any losses and drops, in any order: the window is never exceeded by more than one
        /// message, no message with credit is refused, and all credit is returned.
        #[test]
        fn no_credit_is_lost_and_no_window_is_exceeded(
            steps in proptest::collection::vec((0..8_u8, 1..MESSAGE_MAX as u64), 1..400),
        ) {
            let time = ManualTime::start();
            let probe = time.probe::<NetMsg>();
            let (out, arrived) = (OutLink::new(), Arc::new(InLink::new(1, probe.actor_ref())));
            let (mut held, mut sent) = (vec![], 0);
            for (step, bytes) in steps {
                match step {
                    0..=3 => {
                        if !out.reserve(bytes) {
                            continue;
                        }
                        sent += bytes;
                        if step > 0 {
                            let got = InLink::arrive(&arrived, bytes);
                            prop_assert!(got.is_some(), "it had credit");
                            held.extend(got);
                        }
                        let waits: u64 = held.iter().map(|one: &Held| one.bytes).sum();
                        prop_assert!(waits <= LINK_WINDOW + EXCESS_MAX);
                    }
                    4 | 5 if !held.is_empty() => drop(held.swap_remove(0)),
                    6 => arrived.sender_reports(sent),
                    _ => out.grant(limit_of(&arrived)),
                }
            }
            held.clear();
            arrived.sender_reports(sent);
            prop_assert_eq!(limit_of(&arrived), sent + LINK_WINDOW);
        }
    }

    #[test]
    fn a_full_window_wakes_its_waiters_when_there_is_credit() {
        let out = OutLink::new();
        assert!(out.wait(1, Waker::noop().clone()).is_err(), "there is credit");
        assert!(out.reserve(LINK_WINDOW - 1) && out.reserve(EXCESS_MAX), "the last may exceed it");
        assert!(!out.reserve(1));
        assert!(out.wait(1, Waker::noop().clone()).is_ok());
        assert!(!out.tick(), "it may get on at once");
        assert!(out.tick());
        out.grant(LINK_WINDOW + 1);
        assert!(!out.has_credit(), "less than what was sent beyond the limit");
        assert!(!out.tick(), "it has got on");
        out.grant(LINK_WINDOW + EXCESS_MAX);
        assert!(out.has_credit());
        assert!(out.0.with(|state| state.waiters.is_empty()), "they are woken");
    }

    #[test]
    fn a_sender_that_ignores_the_window_is_noticed() {
        let time = ManualTime::start();
        let probe = time.probe::<NetMsg>();
        let link = Arc::new(InLink::new(1, probe.actor_ref()));
        let half = InLink::arrive(&link, LINK_WINDOW / 2);
        assert!(half.is_some() && InLink::arrive(&link, LINK_WINDOW / 2 + EXCESS_MAX).is_some());
        drop(half);
        assert!(InLink::arrive(&link, EXCESS_MAX + 1).is_none(), "freed and not granted");
        link.grant();
        assert!(InLink::arrive(&link, 1).is_some());
        link.sender_reports(u64::MAX);
        assert!(limit_of(&link) < 4 * LINK_WINDOW, "a report is not trusted");
    }
}
