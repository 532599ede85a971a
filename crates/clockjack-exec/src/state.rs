//! The state word of a process: the one place where it is decided who enqueues it, who runs it,
//! who has its output and who wakes its joiner.
//!
//! One atomic word and no data. The queues, the events, the output and the slot of the joiner's
//! waker stand elsewhere; this word says to whom they belong at any moment.
//!
//! # Layout
//!
//! ```text
//!    31            8 7       6     5      4         3        2       1        0
//!   [ generation 24 | DROPPED WAKER JOINED TERMINATE COMPLETE BLOCKED NOTIFIED RUNNING ]
//!                     └─ the joiner's ──┘
//! ```
//!
//! # Life cycle
//!
//! ```text
//!    new                    start                      complete
//!   ─────► Ready ─────────────────────────► Running ──────────────► Complete
//!            ▲     again, or end if notified   │
//!            ├─────────────────────────────────┤
//!            │                                 │ end
//!            │        notify, terminate        ▼
//!            └────────────────────── Blocked or Idle
//! ```
//!
//! *Ready* is NOTIFIED without RUNNING and COMPLETE. *Blocked* and *Idle* are none of the three,
//! and differ by BLOCKED only, which nobody decides anything by: it is for those who look.
//!
//! # Roles
//!
//! * A **notifier** is anyone who has an event for the process: [`notify`](AtomicState::notify),
//!   [`terminate`](AtomicState::terminate).
//! * The **runner** is the holder of the process's queue entry, from [`start`](AtomicState::start) up to
//!   [`end`](AtomicState::end), [`again`](AtomicState::again) or [`complete`](AtomicState::complete).
//! * The **joiner** is the one, if any, that claimed the output: the maker, by
//!   [`new(true)`](AtomicState::new), or the winner of [`claim_join`](AtomicState::claim_join).
//!
//! # Rules
//!
//! 1. A process is in one queue while it is Ready, or whoever made it Ready is about to put it
//!    there; otherwise it is in none. The maker enqueues a new one, the notifier that was told
//!    [`NotifyAction::Enqueue`] a waiting one, the runner its own.
//! 2. A notifier pushes its event first and then sets NOTIFIED, always by a read-modify-write,
//!    also if the bit is set already: that is what publishes the event.
//! 3. `start` clears NOTIFIED before the runner looks at the events. So an event is either seen by
//!    this turn, or its notifier sets NOTIFIED again and there is another turn.
//! 4. RUNNING is set and cleared by the runner alone, and NOTIFIED cleared by it alone. Hence its
//!    transitions cannot fail: each is one unconditional read-modify-write, or a loop.
//! 5. COMPLETE is set once and never cleared. After it nobody enqueues the process.
//! 6. The output is the runner's before COMPLETE. If somebody was joined at that moment the output
//!    is the joiner's from then on. Otherwise, if the maker was the joiner, it stays with the
//!    runner, who drops it; if not, the runner leaves it where it is, for one who claims it later,
//!    or for the end of the memory.
//! 7. The slot of the waker is the joiner's while WAKER is clear, and the completer's while it is
//!    set. The completer, if it finds WAKER set, moves the waker out and wakes it. COMPLETE freezes
//!    WAKER: the joiner neither sets nor clears it any more.
//! 8. A joiner that leaves sets DROPPED, and JOINED and WAKER count no longer. There is one
//!    joiner in a life: who comes after it might meet it still at work in the slot.
//! 9. Whoever calls into the word holds a reference to the process; the word frees nothing.
//!
//! # Why nothing is lost and nothing runs twice
//!
//! All changes are read-modify-writes of one state, so they have one order. Take the notifier's and
//! the `end` of the turn that did not see its event: if `notify` is first, `end` finds NOTIFIED and
//! the runner enqueues; if `end` is first, `notify` finds neither RUNNING nor NOTIFIED and the
//! notifier enqueues. Between two starts there is one change from waiting to Ready, and he who
//! makes it holds the one entry. What the notifier wrote is seen by the next turn: `start`
//! acquires, and every change after `notify` continues the release sequence that it began. What is
//! written between becoming Ready and being enqueued, such as a link, is for the queue to publish.
//!
//! A transition of the runner by a lone compare-exchange breaks this: a bit that a notifier sets
//! in between makes it fail, and the process stays Running in no queue.
//!
//! # Why it cannot hang
//!
//! No call waits. `again`, `publish_join_waker` and `reclaim_join_waker` loop, and repeat only
//! after somebody else's change. Between two turns notifiers change the word at most twice, once
//! for each of their bits; the runner's changes wait for nobody; and the joiner changes it once
//! for each poll of its own.
#![doc(hidden)]

use core::fmt;

use clockjack_sync::{
    const_unless_loom, mutant,
    prim::atomic::{
        AtomicU32, Ordering,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Somebody runs it.
const RUNNING: u32 = 1;
/// There is something that it has not looked at.
const NOTIFIED: u32 = 1 << 1;
/// How it waits, if it waits: set for Blocked, clear for Idle.
const BLOCKED: u32 = 1 << 2;
/// It ended; it never runs again.
const COMPLETE: u32 = 1 << 3;
/// It shall end at its next start.
const TERMINATE: u32 = 1 << 4;
/// There is, or was, a joiner.
const JOINED: u32 = 1 << 5;
/// The slot of the joiner's waker belongs to the completer.
const JOIN_WAKER: u32 = 1 << 6;
/// The joiner left.
const JOIN_DROPPED: u32 = 1 << 7;
/// What `upgrade` adds: the lowest bit of the generation, which ends at the top of the state.
const GENERATION_ONE: u32 = 1 << GENERATION_SHIFT;
const GENERATION_SHIFT: u32 = 8;

/// The state word of one process; see the [module](self) for the protocol.
pub struct AtomicState(AtomicU32);

/// Where a process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// In a queue, or about to be put there.
    Ready,
    /// In a turn.
    Running,
    /// WaitKind for the completion of something that it asked for.
    Blocked,
    /// WaitKind for whatever comes.
    Idle,
    /// Over.
    Complete,
}

/// What a notifier has to do.
#[must_use = "a process that was made ready and is in no queue never runs again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotifyAction {
    /// The process was waiting and is ready now: put it in a queue.
    Enqueue,
    /// Nothing: the process will have another turn anyway.
    Already,
    /// Nothing: the process is over, and looks at no event any more.
    Complete,
}

/// How a process waits after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// For the completion of something that it asked for.
    Blocked,
    /// For whatever comes.
    Idle,
}

/// What a runner has to do with a process whose turn is over.
#[must_use = "a process that is ready and in no queue never runs again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitTransition {
    /// Let go of it: the next notifier enqueues it.
    Waiting,
    /// Put it in a queue: it was notified meanwhile.
    Ready,
}

/// What a runner is told at the start of a turn.
#[must_use = "a process that shall end must not have another turn"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PollStart {
    /// The process shall end now instead of having a turn.
    pub terminate: bool,
}

/// What a runner has to do for a process that it completed.
#[must_use = "the output belongs to somebody, and the joiner waits"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The output is the joiner's. If false it is still the runner's, who drops or keeps it.
    pub joined: bool,
    /// There is a waker in the slot: move it out and wake it.
    pub join_waker: bool,
}

/// What a joiner that left has to clear away.
#[must_use = "what the joiner leaves behind nobody else drops"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinHandleDrop {
    /// The process completed before: the output is the joiner's, unless it was taken already.
    pub owns_output: bool,
    /// The slot of the waker, with or without a waker in it, is the joiner's for good.
    pub owns_waker_slot: bool,
}

/// The process is complete, so the call of the joiner changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlreadyComplete;

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
            Self::Complete => "complete",
        })
    }
}

impl AtomicState {
    const_unless_loom! {
        /// The word of a new process. It is Ready, and its maker enqueues it.
        ///
        /// With `joined` the maker is the joiner.
        #[must_use]
        pub const fn new(joined: bool) -> Self {
            Self(AtomicU32::new(if joined { NOTIFIED | JOINED } else { NOTIFIED }))
        }
    }

    const_unless_loom! {
        /// The word of a process that is Running for life: who enqueues it is decided elsewhere.
        #[must_use]
        pub const fn running() -> Self {
            Self(AtomicU32::new(RUNNING))
        }
    }

    /// Whether it shall end at its next start.
    #[inline]
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        // Acquire: pairs with `terminate`.
        self.0.load(Acquire) & TERMINATE != 0
    }

    /// Says that there is an event, which was pushed before.
    pub fn notify(&self) -> NotifyAction {
        // Relaxed: only the planted fault loads here.
        if mutant!("state-notify-by-load") && self.0.load(Relaxed) & (RUNNING | NOTIFIED) != 0 {
            return NotifyAction::Already;
        }
        self.set_notified(NOTIFIED)
    }

    /// Says that the process shall end at its next start.
    pub fn terminate(&self) -> NotifyAction {
        self.set_notified(TERMINATE | NOTIFIED)
    }

    fn set_notified(&self, bits: u32) -> NotifyAction {
        let order = if mutant!("state-notify-release-only") { Release } else { AcqRel };
        // Release: publishes the event to the next `start` (rule 2). Acquire: pairs with the
        // release in `end`, so that who enqueues the process may use what the last runner used.
        let before = self.0.fetch_or(bits, order);
        if before & COMPLETE != 0 {
            NotifyAction::Complete
        } else if before & (RUNNING | NOTIFIED) == 0 {
            NotifyAction::Enqueue
        } else {
            NotifyAction::Already
        }
    }

    /// Ready to Running, by the holder of the queue entry, who is the runner from now on.
    ///
    /// Call it before looking at the events.
    pub fn transition_to_running(&self) -> PollStart {
        let order = if mutant!("state-start-relaxed") { Relaxed } else { Acquire };
        // Acquire: pairs with the notifiers' releases, so that their events are seen, and with the
        // release of the last runner. Both bits are known, so turning them over sets one and
        // clears the other.
        let before = self.0.fetch_xor(NOTIFIED | RUNNING, order);
        debug_assert_eq!(
            before & (NOTIFIED | RUNNING | COMPLETE),
            NOTIFIED,
            "only a ready process is started: {:?}",
            Bits(before)
        );
        PollStart { terminate: before & TERMINATE != 0 }
    }

    /// Running to Blocked or Idle, or to Ready if it was notified in its turn. By the runner.
    pub fn transition_to_waiting(&self, waiting: WaitKind) -> WaitTransition {
        let want = match waiting {
            WaitKind::Blocked => BLOCKED,
            WaitKind::Idle => 0,
        };
        // Relaxed: only runners write these two bits, and what the last one wrote was acquired.
        let mine = self.0.load(Relaxed) & (RUNNING | BLOCKED);
        debug_assert_ne!(mine & RUNNING, 0, "only the runner ends a turn");
        if mutant!("state-end-by-cas") {
            let seen = self.0.load(Relaxed);
            let _ = self.0.compare_exchange(seen, seen ^ mine ^ want, AcqRel, Relaxed);
            return if seen & NOTIFIED != 0 {
                WaitTransition::Ready
            } else {
                WaitTransition::Waiting
            };
        }
        let order = if mutant!("state-end-relaxed") { Relaxed } else { Release };
        // Release: pairs with the acquire in `set_notified` and in the next `start`, so that the
        // next runner finds what this one left.
        let before = self.0.fetch_xor(mine ^ want, order);
        if before & NOTIFIED != 0 { WaitTransition::Ready } else { WaitTransition::Waiting }
    }

    /// Running to Ready, whether it was notified or not. By the runner, who enqueues it.
    pub fn transition_to_ready(&self) {
        // Release: pairs with the acquire in the next `start`, as in `end`. Relaxed: what a failed
        // round saw only makes the next attempt.
        let changed = self.0.fetch_update(Release, Relaxed, |now| {
            debug_assert_ne!(now & RUNNING, 0, "only the runner ends a turn: {:?}", Bits(now));
            Some((now | NOTIFIED) & !RUNNING)
        });
        debug_assert!(changed.is_ok(), "the closure refuses nothing");
    }

    /// Running to Complete. By the runner, after the output was stored.
    pub fn transition_to_complete(&self) -> Completion {
        let order = if mutant!("state-complete-relaxed") { Relaxed } else { AcqRel };
        // Release: publishes the output to every acquire of the joiner. Acquire: pairs with the
        // release in `publish_join_waker`, so that the waker is seen.
        let before = self.0.fetch_xor(RUNNING | COMPLETE, order);
        debug_assert_eq!(
            before & (RUNNING | COMPLETE),
            RUNNING,
            "only the runner completes: {:?}",
            Bits(before)
        );
        let joined = before & (JOINED | JOIN_DROPPED) == JOINED;
        Completion { joined, join_waker: joined && before & JOIN_WAKER != 0 }
    }

    /// Whether something was notified that no start has cleared.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        // Acquire: pairs with the release of `complete`; the output is seen.
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// Whether somebody has notified since the turn began, or it is ready.
    #[must_use]
    pub fn is_notified(&self) -> bool {
        // Relaxed: a hint. Whoever relies on it starts a turn, which acquires.
        self.0.load(Relaxed) & NOTIFIED != 0
    }

    /// Whether the process was told to end.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        // Relaxed: the bit stands for itself; nothing was written before it.
        self.0.load(Relaxed) & TERMINATE != 0
    }

    /// The state at some moment of the call.
    ///
    /// The joiner that sees [`State::Complete`] may take the output.
    #[must_use]
    pub fn load(&self) -> State {
        // Acquire: pairs with the release in `complete`, so that the output is seen.
        Bits(self.0.load(Acquire)).state()
    }

    /// How often the process was upgraded, modulo 2 to the power of 24.
    #[must_use]
    pub fn generation(&self) -> u32 {
        // Relaxed: the number stands for itself. Who compares it from outside learns what was true
        // at some moment; the runner, which alone changes it, knows it exactly.
        self.0.load(Relaxed) >> GENERATION_SHIFT
    }

    /// Begins the next generation and gives its number. By the runner.
    pub fn upgrade(&self) -> u32 {
        // Relaxed: the new incarnation is the runner's own, and published with the end of its
        // turn. The sum wraps at the top of the state, so it touches no other bit.
        let before = self.0.fetch_add(GENERATION_ONE, Relaxed);
        before.wrapping_add(GENERATION_ONE) >> GENERATION_SHIFT
    }

    /// Makes the caller the joiner, also of a process that is complete: its runner keeps the output
    /// of a process that is born without a joiner (rule 6). False if there is or was another.
    #[must_use = "who does not know whether it is the joiner cannot leave"]
    pub fn claim_join(&self) -> bool {
        // Relaxed: the bit gives no access yet; the joiner's later calls acquire.
        self.0.fetch_or(JOINED, Relaxed) & JOINED == 0
    }

    /// Gives the slot, in which a waker was put, to the completer. By the joiner, while the slot
    /// is the joiner's.
    ///
    /// # Errors
    ///
    /// If the process is complete. Then the slot stays the joiner's, nobody will wake it, and the
    /// output is there.
    pub fn publish_join_waker(&self) -> Result<(), AlreadyComplete> {
        if mutant!("state-join-waker-unchecked") {
            self.0.fetch_or(JOIN_WAKER, Release);
            return Ok(());
        }
        // Release: publishes the waker to `complete`.
        self.unless_complete(Release, |now| now | JOIN_WAKER)
    }

    /// Takes the slot back, to look at the waker in it or to replace it. By the joiner.
    ///
    /// # Errors
    ///
    /// If the process is complete. Then the slot stays the completer's, if it was, and the output
    /// is there.
    pub fn reclaim_join_waker(&self) -> Result<(), AlreadyComplete> {
        if mutant!("state-join-waker-torn") {
            self.0.fetch_and(!JOIN_WAKER, AcqRel);
            return Ok(());
        }
        // Relaxed: the completer did not touch the slot, or the process would be complete.
        self.unless_complete(Relaxed, |now| now & !JOIN_WAKER)
    }

    /// One step of the joiner, refused by a complete process (rule 7).
    fn unless_complete(
        &self,
        success: Ordering,
        step: impl Fn(u32) -> u32,
    ) -> Result<(), AlreadyComplete> {
        // Acquire: pairs with the release in `complete`: who is refused takes the output.
        self.0
            .fetch_update(success, Acquire, |now| (now & COMPLETE == 0).then(|| step(now)))
            .map(drop)
            .map_err(|_complete| AlreadyComplete)
    }

    /// The joiner leaves. Afterwards it clears away what it is told, and nothing else.
    pub fn drop_join_handle(&self) -> JoinHandleDrop {
        // Acquire: pairs with the release in `complete`, so that the output can be dropped.
        // Nothing is published: the completer that sees this bit leaves the joiner's things alone.
        let before = self.0.fetch_or(JOIN_DROPPED, Acquire);
        debug_assert_eq!(
            before & (JOINED | JOIN_DROPPED),
            JOINED,
            "the joiner leaves, and once: {:?}",
            Bits(before)
        );
        JoinHandleDrop {
            owns_output: before & COMPLETE != 0,
            owns_waker_slot: before & (COMPLETE | JOIN_WAKER) != COMPLETE | JOIN_WAKER,
        }
    }
}

impl fmt::Debug for AtomicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for the eye.
        Bits(self.0.load(Relaxed)).fmt(f)
    }
}

/// A value of the state.
struct Bits(u32);

impl Bits {
    fn state(&self) -> State {
        if self.0 & COMPLETE != 0 {
            State::Complete
        } else if self.0 & RUNNING != 0 {
            State::Running
        } else if self.0 & NOTIFIED != 0 {
            State::Ready
        } else if self.0 & BLOCKED != 0 {
            State::Blocked
        } else {
            State::Idle
        }
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicState")
            .field("state", &self.state())
            .field("notified", &(self.0 & NOTIFIED != 0))
            .field("terminate", &(self.0 & TERMINATE != 0))
            .field("joined", &(self.0 & (JOINED | JOIN_DROPPED) == JOINED))
            .field("join_waker", &(self.0 & JOIN_WAKER != 0))
            .field("generation", &(self.0 >> GENERATION_SHIFT))
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A word in its first turn.
    fn running() -> AtomicState {
        let state = AtomicState::new(false);
        assert_eq!(state.transition_to_running(), PollStart { terminate: false });
        state
    }

    #[test]
    fn a_new_process_is_ready_and_its_maker_enqueues_it() {
        let state = AtomicState::new(false);
        assert_eq!(state.load(), State::Ready);
        assert_eq!(state.notify(), NotifyAction::Already);
    }

    #[test]
    fn a_waiting_process_is_enqueued_by_its_first_notifier_only() {
        for (kind, expected) in [(WaitKind::Blocked, State::Blocked), (WaitKind::Idle, State::Idle)]
        {
            let state = running();
            assert_eq!(state.transition_to_waiting(kind), WaitTransition::Waiting);
            assert_eq!(state.load(), expected);
            assert_eq!(state.notify(), NotifyAction::Enqueue);
            assert_eq!(state.load(), State::Ready);
            assert_eq!(state.notify(), NotifyAction::Already);
            assert_eq!(state.terminate(), NotifyAction::Already);
        }
    }

    #[test]
    fn how_it_waits_is_told_anew_by_every_turn() {
        let state = running();
        for (kind, expected) in [
            (WaitKind::Blocked, State::Blocked),
            (WaitKind::Blocked, State::Blocked),
            (WaitKind::Idle, State::Idle),
            (WaitKind::Idle, State::Idle),
            (WaitKind::Blocked, State::Blocked),
        ] {
            assert_eq!(state.transition_to_waiting(kind), WaitTransition::Waiting);
            assert_eq!(state.load(), expected);
            assert_eq!(state.notify(), NotifyAction::Enqueue);
            let _ = state.transition_to_running();
            assert_eq!(state.load(), State::Running);
        }
    }

    #[test]
    fn a_process_notified_in_its_turn_is_enqueued_by_its_runner() {
        let state = running();
        assert!(!state.is_notified());
        assert_eq!(state.notify(), NotifyAction::Already);
        assert!(state.is_notified());
        assert_eq!(state.transition_to_waiting(WaitKind::Idle), WaitTransition::Ready);
        assert_eq!(state.load(), State::Ready);
    }

    #[test]
    fn again_makes_it_ready_notified_or_not() {
        for notified in [false, true] {
            let state = running();
            if notified {
                assert_eq!(state.notify(), NotifyAction::Already);
            }
            state.transition_to_ready();
            assert_eq!(state.load(), State::Ready);
            assert_eq!(state.notify(), NotifyAction::Already);
        }
    }

    #[test]
    fn terminate_is_told_at_the_next_start() {
        let state = running();
        assert_eq!(state.terminate(), NotifyAction::Already);
        assert!(state.is_terminating());
        assert_eq!(state.transition_to_waiting(WaitKind::Blocked), WaitTransition::Ready);
        assert_eq!(state.transition_to_running(), PollStart { terminate: true });
    }

    #[test]
    fn nobody_enqueues_a_complete_process() {
        let state = running();
        assert_eq!(state.transition_to_complete(), Completion { joined: false, join_waker: false });
        assert_eq!(state.notify(), NotifyAction::Complete);
        assert_eq!(state.terminate(), NotifyAction::Complete);
        assert_eq!(state.load(), State::Complete);
    }

    #[test]
    fn an_upgrade_counts_and_its_wrap_touches_nothing_else() {
        let state = running();
        assert_eq!(state.generation(), 0);
        assert_eq!(state.upgrade(), 1);
        state.0.fetch_or(!(GENERATION_ONE - 1), Relaxed);
        assert_eq!(state.generation(), (1 << 24) - 1);
        assert_eq!(state.upgrade(), 0);
        assert_eq!(state.0.load(Relaxed), RUNNING);
    }

    #[test]
    fn there_is_one_joiner_in_a_life() {
        assert!(!AtomicState::new(true).claim_join());
        let state = AtomicState::new(false);
        assert!(state.claim_join());
        assert!(!state.claim_join());
        assert_eq!(
            state.drop_join_handle(),
            JoinHandleDrop { owns_output: false, owns_waker_slot: true }
        );
        assert!(!state.claim_join());
        let _ = state.transition_to_running();
        assert_eq!(state.transition_to_complete(), Completion { joined: false, join_waker: false });
    }

    #[test]
    fn a_process_that_completed_alone_can_be_joined_once() {
        let state = running();
        assert_eq!(state.transition_to_complete(), Completion { joined: false, join_waker: false });
        assert!(state.claim_join());
        assert!(!state.claim_join());
        assert_eq!(
            state.drop_join_handle(),
            JoinHandleDrop { owns_output: true, owns_waker_slot: true }
        );
    }

    #[test]
    fn the_waker_published_before_the_completion_is_the_completers() {
        let state = AtomicState::new(true);
        let _ = state.transition_to_running();
        assert_eq!(state.publish_join_waker(), Ok(()));
        assert_eq!(state.transition_to_complete(), Completion { joined: true, join_waker: true });
        assert_eq!(state.reclaim_join_waker(), Err(AlreadyComplete));
        assert_eq!(
            state.drop_join_handle(),
            JoinHandleDrop { owns_output: true, owns_waker_slot: false }
        );
    }

    #[test]
    fn a_waker_that_comes_too_late_stays_the_joiners() {
        let state = AtomicState::new(true);
        let _ = state.transition_to_running();
        assert_eq!(state.transition_to_complete(), Completion { joined: true, join_waker: false });
        assert_eq!(state.publish_join_waker(), Err(AlreadyComplete));
        assert_eq!(
            state.drop_join_handle(),
            JoinHandleDrop { owns_output: true, owns_waker_slot: true }
        );
    }

    #[test]
    fn a_waker_taken_back_or_left_behind_is_not_woken() {
        for taken_back in [false, true] {
            let state = AtomicState::new(true);
            assert_eq!(state.publish_join_waker(), Ok(()));
            if taken_back {
                assert_eq!(state.reclaim_join_waker(), Ok(()));
            }
            let left = JoinHandleDrop { owns_output: false, owns_waker_slot: true };
            assert_eq!(state.drop_join_handle(), left);
            let _ = state.transition_to_running();
            assert_eq!(
                state.transition_to_complete(),
                Completion { joined: false, join_waker: false }
            );
        }
    }
}
