//! The state of a task: one atomic word that decides who enqueues the task, who polls it, who owns
//! its output and who wakes its joiner.
//!
//! The word contains no data. The queues, the events, the output and the slot of the joiner's waker
//! are elsewhere; this word says who owns them at any moment. The design is that of `task/state.rs`
//! in tokio, with the reference count moved to the [registry](crate::registry).
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
//! The arrows are the methods of [`AtomicState`], without the prefix `transition`.
//!
//! ```text
//!    new                   to_running                  to_complete
//!   ─────► Ready ─────────────────────────► Running ──────────────► Complete
//!            ▲     to_ready, or                │
//!            │     to_waiting if notified      │
//!            ├─────────────────────────────────┤
//!            │                                 │ to_waiting
//!            │        notify, terminate        ▼
//!            └────────────────────── Blocked or Idle
//! ```
//!
//! *Ready* is NOTIFIED without RUNNING and COMPLETE. *Blocked* and *Idle* have none of the three
//! bits and differ only in BLOCKED. No decision depends on BLOCKED; it exists for observers.
//!
//! # Roles
//!
//! * A **notifier** is any thread that has an event for the task: [`notify`](AtomicState::notify),
//!   [`terminate`](AtomicState::terminate).
//! * The **runner** is the thread that holds the task's `Runnable`, from
//!   [`transition_to_running`](AtomicState::transition_to_running) up to
//!   [`transition_to_waiting`](AtomicState::transition_to_waiting),
//!   [`transition_to_ready`](AtomicState::transition_to_ready) or
//!   [`transition_to_complete`](AtomicState::transition_to_complete).
//! * The **joiner** is the one thread, if any, that claimed the output: the creator, by
//!   [`new(true)`](AtomicState::new), or the winner of [`claim_join`](AtomicState::claim_join).
//!
//! # Rules
//!
//! 1. A Ready task is in exactly one run queue, or the thread that made it Ready is about to put it
//!    there; a task in any other state is in no queue, except custom tasks, which are always
//!    Running and have a word of their own. The creator enqueues a new task, the
//!    notifier that got [`NotifyAction::Enqueue`] enqueues a waiting task, and the runner enqueues
//!    its own.
//! 2. A notifier pushes its event first and then sets NOTIFIED. It always does so by a
//!    read-modify-write, even if the bit is already set: the read-modify-write publishes the event.
//! 3. `transition_to_running` clears NOTIFIED before the runner reads the events. So either this
//!    poll sees an event, or the notifier of that event sets NOTIFIED again and there is another
//!    poll.
//! 4. Only the runner sets and clears RUNNING, and only the runner clears NOTIFIED. Therefore the
//!    runner's transitions cannot fail: each is one unconditional read-modify-write, or a loop.
//! 5. COMPLETE is set once and never cleared. After that nobody enqueues the task.
//! 6. The runner owns the output until it sets COMPLETE. If there is a joiner at that moment, the
//!    joiner owns the output from then on. Otherwise, if the creator was the joiner, the runner
//!    keeps the output and drops it; if the task was created without a joiner, the runner leaves
//!    the output in the cell, for a thread that claims it later or until the cell is freed.
//! 7. The joiner owns the waker slot while WAKER is clear, and the completing runner owns it while
//!    WAKER is set. A runner that completes the task and finds WAKER set moves the waker out and
//!    wakes it. COMPLETE freezes WAKER: the joiner neither sets nor clears it afterwards.
//! 8. A joiner that leaves sets DROPPED; from then on JOINED and WAKER have no meaning. A task has
//!    at most one joiner in its life: a second joiner could find the first one still using the
//!    slot.
//! 9. Every caller holds a reference to the task; this word frees nothing.
//!
//! # Why no event is lost and no task runs twice
//!
//! All changes are read-modify-writes of one word, so they have one order. Consider a notifier's
//! `notify` and the `transition_to_waiting` of a poll that did not see the event. If `notify` is
//! first, the runner finds NOTIFIED and enqueues the task. If `transition_to_waiting` is first,
//! `notify` finds neither RUNNING nor NOTIFIED, and the notifier enqueues the task. Between two
//! polls there is exactly one change from waiting to Ready, and the thread that makes it holds the
//! only `Runnable`. The next poll sees what the notifier wrote: `transition_to_running` acquires,
//! and every change after `notify` continues the release sequence that `notify` began. Data that is
//! written between becoming Ready and being enqueued, such as the queue link, is published by the
//! queue.
//!
//! A single compare-exchange in place of the runner's unconditional transition would break this: if
//! a notifier sets its bit between the runner's load and its exchange, the exchange fails, and the
//! task stays Running in no queue.
//!
//! # Why it cannot hang
//!
//! No call waits. `transition_to_ready`, `publish_join_waker` and `reclaim_join_waker` loop, and
//! repeat only after another thread has changed the word. Between two polls the notifiers change
//! the word at most twice, once for each of their bits; the runner's changes wait for nobody; and
//! the joiner changes the word once per poll of its `JoinHandle`.
#![doc(hidden)]

use core::fmt;

use clockjack_sync::{
    const_unless_loom,
    primitive::atomic::{
        AtomicU32, Ordering,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// A runner polls the task.
const RUNNING: u32 = 1;
/// There is an event that no poll has seen.
const NOTIFIED: u32 = 1 << 1;
/// The kind of waiting, if the task waits: set for Blocked, clear for Idle.
const BLOCKED: u32 = 1 << 2;
/// The task has ended and never runs again.
const COMPLETE: u32 = 1 << 3;
/// The task ends at its next poll instead of being polled.
const TERMINATE: u32 = 1 << 4;
/// There is, or was, a joiner.
const JOINED: u32 = 1 << 5;
/// The completing runner owns the slot of the joiner's waker.
const JOIN_WAKER: u32 = 1 << 6;
/// The joiner has left.
const JOIN_DROPPED: u32 = 1 << 7;
/// What `upgrade` adds: the lowest bit of the generation, whose highest bit is the top of the word.
const GENERATION_ONE: u32 = 1 << GENERATION_SHIFT;
const GENERATION_SHIFT: u32 = 8;

/// The atomic state of one task; see the [module](self) for the protocol.
pub struct AtomicState(AtomicU32);

/// Where a task is in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// In a run queue, or about to be put there.
    Ready,
    /// Being polled.
    Running,
    /// Waiting for the completion of a command that it has yielded.
    Blocked,
    /// Waiting for any event.
    Idle,
    /// Ended.
    Complete,
}

/// What a notifier has to do after it has set NOTIFIED.
#[must_use = "a task that is ready and in no queue never runs again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotifyAction {
    /// The task was waiting and is ready now: put it into a run queue.
    Enqueue,
    /// Nothing: the task will be polled again anyway.
    Already,
    /// Nothing: the task has ended and reads no more events.
    Complete,
}

/// How a task waits after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// For the completion of a command that it has yielded.
    Blocked,
    /// For any event.
    Idle,
}

/// What a runner has to do with a task that wants to wait.
#[must_use = "a task that is ready and in no queue never runs again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitTransition {
    /// Release it: the next notifier enqueues it.
    Waiting,
    /// Put it into a run queue: it was notified during the poll.
    Ready,
}

/// What a runner learns at the start of a poll.
#[must_use = "a task that is terminated must not be polled again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PollStart {
    /// The task ends now instead of being polled.
    pub terminate: bool,
}

/// What a runner has to do for a task that it has completed.
#[must_use = "somebody owns the output, and the joiner waits"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The joiner owns the output. If false, the runner still owns it, and drops or keeps it.
    pub joined: bool,
    /// There is a waker in the slot: move it out and wake it.
    pub join_waker: bool,
}

/// What a joiner that has left must clean up.
#[must_use = "nobody else drops what the joiner owns"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoinHandleDrop {
    /// The task completed before: the joiner owns the output, unless it was taken already.
    pub owns_output: bool,
    /// The joiner owns the waker slot for good, whether there is a waker in it or not.
    pub owns_waker_slot: bool,
}

/// The task is complete, so the joiner's call changed nothing.
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
        /// The state of a new task. It is Ready, and its creator enqueues it.
        ///
        /// With `joined` the creator is the joiner.
        #[must_use]
        pub const fn new(joined: bool) -> Self {
            Self(AtomicU32::new(if joined { NOTIFIED | JOINED } else { NOTIFIED }))
        }
    }

    const_unless_loom! {
        /// The state of a [custom task](crate::custom_task), which is Running for its whole life:
        /// another word decides who enqueues it.
        #[must_use]
        pub const fn running() -> Self {
            Self(AtomicU32::new(RUNNING))
        }
    }

    /// Whether the task ends at its next poll.
    #[inline]
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        // Acquire: pairs with `terminate`.
        self.0.load(Acquire) & TERMINATE != 0
    }

    /// Announces an event that the caller has already pushed.
    pub fn notify(&self) -> NotifyAction {
        self.set_notified(NOTIFIED)
    }

    /// Requests that the task ends at its next poll.
    pub fn terminate(&self) -> NotifyAction {
        self.set_notified(TERMINATE | NOTIFIED)
    }

    fn set_notified(&self, bits: u32) -> NotifyAction {
        // Release: publishes the event to the next `transition_to_running` (rule 2). Acquire: pairs
        // with the release in `transition_to_waiting`, so that the thread that enqueues the task
        // may use what the last runner used.
        let before = self.0.fetch_or(bits, AcqRel);
        if before & COMPLETE != 0 {
            NotifyAction::Complete
        } else if before & (RUNNING | NOTIFIED) == 0 {
            NotifyAction::Enqueue
        } else {
            NotifyAction::Already
        }
    }

    /// Ready to Running, by the holder of the `Runnable`, which is the runner from now on.
    ///
    /// Call this before reading the events.
    pub fn transition_to_running(&self) -> PollStart {
        // Acquire: pairs with the notifiers' releases, so that this poll sees their events, and
        // with the release of the last runner. Both bits are known, so the xor sets one and clears
        // the other.
        let before = self.0.fetch_xor(NOTIFIED | RUNNING, Acquire);
        debug_assert_eq!(
            before & (NOTIFIED | RUNNING | COMPLETE),
            NOTIFIED,
            "only a ready task is polled: {:?}",
            Bits(before)
        );
        PollStart { terminate: before & TERMINATE != 0 }
    }

    /// Running to Blocked or Idle, or to Ready if the task was notified during the poll. By the
    /// runner.
    pub fn transition_to_waiting(&self, kind: WaitKind) -> WaitTransition {
        let want = match kind {
            WaitKind::Blocked => BLOCKED,
            WaitKind::Idle => 0,
        };
        // Relaxed: only runners write these two bits, and this runner has acquired what the last
        // one wrote.
        let mine = self.0.load(Relaxed) & (RUNNING | BLOCKED);
        debug_assert_ne!(mine & RUNNING, 0, "only the runner ends a poll");
        // Release: pairs with the acquire in `set_notified` and in the next
        // `transition_to_running`, so that the next runner sees what this one wrote.
        let before = self.0.fetch_xor(mine ^ want, Release);
        if before & NOTIFIED != 0 { WaitTransition::Ready } else { WaitTransition::Waiting }
    }

    /// Running to Ready, whether the task was notified or not. By the runner, which enqueues the
    /// task.
    pub fn transition_to_ready(&self) {
        // Release: pairs with the acquire in the next `transition_to_running`, as in
        // `transition_to_waiting`. Relaxed on failure: the value only goes into the next attempt.
        let changed = self.0.fetch_update(Release, Relaxed, |now| {
            debug_assert_ne!(now & RUNNING, 0, "only the runner ends a poll: {:?}", Bits(now));
            Some((now | NOTIFIED) & !RUNNING)
        });
        debug_assert!(changed.is_ok(), "the closure refuses nothing");
    }

    /// Running to Complete. By the runner, after it has stored the output.
    pub fn transition_to_complete(&self) -> Completion {
        // Release: publishes the output to every acquire of the joiner. Acquire: pairs with the
        // release in `publish_join_waker`, so that the runner sees the waker.
        let before = self.0.fetch_xor(RUNNING | COMPLETE, AcqRel);
        debug_assert_eq!(
            before & (RUNNING | COMPLETE),
            RUNNING,
            "only the runner completes: {:?}",
            Bits(before)
        );
        let joined = before & (JOINED | JOIN_DROPPED) == JOINED;
        Completion { joined, join_waker: joined && before & JOIN_WAKER != 0 }
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        // Acquire: pairs with the release of `transition_to_complete`, so that the caller sees the
        // output.
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// Whether the task is ready, or was notified since its current poll began.
    #[must_use]
    pub fn is_notified(&self) -> bool {
        // Relaxed: a hint. A thread that relies on it begins a poll, which acquires.
        self.0.load(Relaxed) & NOTIFIED != 0
    }

    /// Whether the task was asked to terminate.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        // Relaxed: only the bit matters; nothing was written before it.
        self.0.load(Relaxed) & TERMINATE != 0
    }

    /// The state at some moment of the call.
    ///
    /// The joiner that sees [`State::Complete`] may take the output.
    #[must_use]
    pub fn load(&self) -> State {
        // Acquire: pairs with the release in `transition_to_complete`, so that the caller sees the
        // output.
        Bits(self.0.load(Acquire)).state()
    }

    /// How often the process was upgraded, modulo 2 to the power of 24.
    #[must_use]
    pub fn generation(&self) -> u32 {
        // Relaxed: only the number matters. Another thread that compares it learns what was true at
        // some moment; the runner, which alone changes it, knows it exactly.
        self.0.load(Relaxed) >> GENERATION_SHIFT
    }

    /// Begins the next generation and returns its number. By the runner.
    pub fn upgrade(&self) -> u32 {
        // Relaxed: only the runner touches the new incarnation, and the end of its poll publishes
        // it. The sum wraps at the top of the word, so it touches no other bit.
        let before = self.0.fetch_add(GENERATION_ONE, Relaxed);
        before.wrapping_add(GENERATION_ONE) >> GENERATION_SHIFT
    }

    /// Makes the caller the joiner, even of a complete task: the runner keeps the output of a task
    /// that was created without a joiner (rule 6). False if there is or was another joiner.
    #[must_use = "only the joiner may call the other methods of the joiner"]
    pub fn claim_join(&self) -> bool {
        // Relaxed: the bit gives no access yet; the joiner's later calls acquire.
        self.0.fetch_or(JOINED, Relaxed) & JOINED == 0
    }

    /// Passes the slot, into which the joiner has put a waker, to the runner that will complete the
    /// task. By the joiner, while it owns the slot.
    ///
    /// # Errors
    ///
    /// If the task is complete. Then the joiner keeps the slot, nobody will wake it, and the output
    /// is available.
    pub fn publish_join_waker(&self) -> Result<(), AlreadyComplete> {
        // Release: publishes the waker to `transition_to_complete`.
        self.unless_complete(Release, |now| now | JOIN_WAKER)
    }

    /// Takes the slot back, to inspect or replace the waker. By the joiner.
    ///
    /// # Errors
    ///
    /// If the task is complete. Then the completing runner keeps the slot, if it owned it, and the
    /// output is available.
    pub fn reclaim_join_waker(&self) -> Result<(), AlreadyComplete> {
        // Relaxed: the completing runner has not touched the slot, or the task would be complete.
        self.unless_complete(Relaxed, |now| now & !JOIN_WAKER)
    }

    /// One step of the joiner, which a complete task refuses (rule 7).
    fn unless_complete(
        &self,
        success: Ordering,
        step: impl Fn(u32) -> u32,
    ) -> Result<(), AlreadyComplete> {
        // Acquire: pairs with the release in `transition_to_complete`: a refused joiner takes the
        // output.
        self.0
            .fetch_update(success, Acquire, |now| (now & COMPLETE == 0).then(|| step(now)))
            .map(drop)
            .map_err(|_complete| AlreadyComplete)
    }

    /// The joiner leaves. Afterwards it cleans up what the result names, and nothing else.
    pub fn drop_join_handle(&self) -> JoinHandleDrop {
        // Acquire: pairs with the release in `transition_to_complete`, so that the joiner can drop
        // the output. Nothing is published: a completing runner that sees this bit does not touch
        // what the joiner owns.
        let before = self.0.fetch_or(JOIN_DROPPED, Acquire);
        debug_assert_eq!(
            before & (JOINED | JOIN_DROPPED),
            JOINED,
            "the joiner leaves once: {:?}",
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
        // Relaxed: for people to read.
        Bits(self.0.load(Relaxed)).fmt(f)
    }
}

/// A value of the word.
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

    /// A state in its first poll.
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
