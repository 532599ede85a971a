//! The body of an actor's cell: what its runner does in one poll.
//!
//! The *runner* is the worker thread that polls the cell; the executor guarantees that a cell has
//! at most one runner at a time.
//!
//! # Order within a poll
//!
//! Before each user message the runner loads the [flag word](crate::cell::header) of the cell,
//! once. If any flag is set, or if an earlier poll left work behind, the runner [handles system
//! messages](CellVTable) first, in this order: the system queue, children that have stopped,
//! commands of the supervisor, and, if the actor is running and not suspended, signals, control
//! messages, futures, and messages that were unstashed or kept through a restart. Then it takes the
//! next user message from the mailbox, or handles a timer whose place among the user messages it
//! has [reached](in_order).
//!
//! # Going idle
//!
//! A poll that finds nothing to do returns the [`ParkMode`] in which the actor waits. The poll does
//! not park the cell itself: the executor calls [`Cell::park`] after the poll has returned and no
//! longer borrows the body. There are two modes:
//!
//! * [`ParkMode::Idle`]: the actor waits for a message or a wake-up. `park` sets the bit *idle* of
//!   the mailbox word by one compare-and-swap from the word that the poll saw when it found the
//!   mailbox empty. A message that arrived since then, or a wake-up since then, has changed the
//!   word, so the compare-and-swap fails and the executor polls the cell again.
//! * [`ParkMode::Wait`]: the actor waits for a wake-up only, for example while it is suspended.
//!   `park` sets the bit *parked*, also if messages arrive, but not if the word is *notified*.
//!
//! Both modes and all wake-ups change the same word, so the changes have an order: a wake-up
//! between the last check of the poll and the parking makes the parking fail, and a wake-up after
//! the parking finds the bit *idle* or *parked*. No wake-up is lost.
//!
//! A thread that wakes the cell performs three steps, in this order: (1) it sets the flag of its
//! cause, then WOKEN, in the flag word; (2) it notifies the mailbox word, which sets *notified* and
//! clears *idle* and *parked*; (3) if one of these two bits was set, it enqueues the cell. The
//! runner may clear the flags between steps 1 and 2. See `restore_woken` for why this is safe.
//!
//! # Stages
//!
//! ```text
//!            factory, started
//!   Initial ─────────────────► Running ──── Next::Stop, STOP ────► Stopping ─► Draining ─► stopped
//!     ▲ │                          │ ▲                                 ▲
//!     │ │ failure                  │ │ RESUME                          │ STOP
//!     │ └─────────► decide ◄───────┘ │                                 │
//!     │                 │            │                                 │
//!     │                 ├──────► Failed, waits for its parent ─────────┤
//!     │                 │            │ RESTART                         │
//!     │                 ├──────► Restarting, waits for children and back-off
//!     └─────────────────┼────────────┘                                 │
//!                       └──────────────────────────────────────────────┘
//! ```
//!
//! In every stage except Running, user messages stay in the mailbox. There is one exception: while
//! a restart is pending, the runner moves messages from the mailbox into a queue of its own, as
//! many as the strategy allows, so that senders find room. A stop turns all of them into dead
//! letters.
//!
//! # Waiting between parents and children
//!
//! 1. An actor that stops, or restarts without keeping its children, stops its children one after
//!    another, the newest first, and waits for each. If a child takes longer than the system's stop
//!    timeout, the actor publishes this as an event and stops the next child as well. So a child
//!    that never stops blocks its parent, but none of its siblings.
//! 2. An actor that has failed waits for the decision of its parent, which has received a report.
//!    If the parent has already stopped, the report is refused and the actor stops; if the parent
//!    stops later, it stops all of its children.
//! 3. The children of a failed actor are suspended, each exactly once; the parent's entry for the
//!    child records the suspension. So each child is resumed exactly as often, no matter which
//!    children were started or stopped in between. A suspended actor suspends its own children in
//!    its next poll, and resumes them when it continues. So the whole subtree pauses level by
//!    level, as in Pekko's classic actors: an actor further down may still handle messages until
//!    the actor above it was polled. A failure that an actor's own strategies handle at once
//!    suspends nobody.
//! 4. A back-off waits for a [timer of the cell](own_timer): the actor restarts neither before its
//!    delay is over nor never, whatever the scheduler refuses.
//! 5. Children that restart or stop because of a sibling do so as a [group](group): one after
//!    another, and each waits for its turn.
//!
//! # Panics
//!
//! Message handlers, and closures that run after futures, are not wrapped in `catch_unwind` here: a
//! panic unwinds to the worker, which calls [`Cell::on_panic`]; the panic is a failure like an
//! `Err`. All other user code is called inside `catch_unwind`: factories, hooks, strategies, drops.

mod budget;
pub(crate) mod children;
mod counting_slot;
pub(crate) mod envelope;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod in_order;
mod lifecycle;
pub(crate) mod own_timer;
mod pending;
mod polling;
pub(crate) mod pool_box;
mod priority;
pub(crate) mod shared;
pub(crate) mod spawn;
mod supervise;
mod vtable;
mod watching;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use core::{
    any::{Any, TypeId, type_name},
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use budget::Budget;
use in_order::NextInOrder;
pub(crate) use lifecycle::drop_reported;
use own_timer::OwnTimer;
pub(crate) use supervise::retry;
pub(crate) use vtable::{AnyPoll, any};
use vtable::{CellVTable, TypedCell};

use clockjack_exec::{
    Failure, Pid, StaticError,
    custom_task::{self, CustomTask, PollContext},
    exit::PanicPayload,
};
use clockjack_sched::ExecutionBatch;
use clockjack_sync::{
    backoff,
    mail::{EmptyToken, Mailbox, Pop, Popped},
};

use crate::{
    Actor, Context, Next, Signal,
    adapter::Adapters,
    carried_span::{CarriedSpan, HAS_SPANS},
    cell::{
        envelope::{Attached, Envelope},
        header::{AnyActor, MAILBOX_FULL, STOP, WOKEN},
        pool_box::PoolBox,
        shared::ActorShared,
    },
    events::{SystemEvent, Unhandled},
    failure_info::Panicked,
    futures::Futures,
    mailbox::{control::Control, system_queue::PreallocatedNode},
    props::Settings,
    strategy::{ChildStrategy, StrategyState},
    timers::ActorTimers,
};

/// The number of signals, and of timer events, for which an actor of a sealed system preallocates
/// room.
const SIGNALS_PREPARED: usize = 4;

/// The stage of an actor's life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not created yet, or about to be created again.
    Initial,
    /// Handles messages.
    Running,
    /// Has failed, and waits for the decision of its parent.
    Failed,
    /// Will be created again as soon as its children have stopped and the back-off has elapsed.
    Restarting,
    /// Will stop as soon as its children have stopped.
    Stopping,
    /// Has stopped, except that producers may still be about to write messages into its mailbox.
    Draining,
}

/// There is work that no flag of the flag word reports.
pub(crate) const PENDING: u16 = 1;
/// The actor was created and has started at least once.
pub(crate) const WAS_STARTED: u16 = 1 << 1;
/// The parent has a strategy for this actor.
pub(crate) const SUPERVISED: u16 = 1 << 2;
/// Stashed messages are to be unstashed when the current handler returns.
pub(crate) const UNSTASH_REQUESTED: u16 = 1 << 5;
/// The messages of this actor have priorities.
pub(crate) const HAS_PRIORITIES: u16 = 1 << 3;
/// The actor was stopped from outside.
pub(crate) const WAS_STOPPED: u16 = 1 << 4;
/// A receive timeout is set.
pub(crate) const HAS_RECEIVE_TIMEOUT: u16 = 1 << 6;
/// The current handler has set the receive timeout, which starts when the handler returns.
pub(crate) const STARTS_TIMEOUT: u16 = 1 << 7;
/// A timer is set, or was set when the mailbox was last empty: user messages and timers are taken
/// [in order](in_order).
pub(crate) const HAS_TIMERS: u16 = 1 << 8;

/// The body of an actor's cell; see the [module](self).
pub(crate) struct Cell<A: Actor, F> {
    pub(crate) actor: Option<A>,
    pub(crate) factory: F,
    pub(crate) state: CellState<A>,
}

/// Everything in a cell except the actor and its factory: the part that a context can access.
pub(crate) struct CellState<A: Actor> {
    status: CellStatus,
    pub(crate) settings: Option<Box<Settings<A>>>,
    pub(crate) rare: Option<Box<RareState<A>>>,
}

/// Stage and flags of a cell: the part of a [`CellState`] that does not depend on its type
/// parameter.
pub(crate) struct CellStatus {
    pub(crate) stage: Stage,
    pub(crate) flags: u16,
}

/// State that only few actors have; allocated on first use.
pub(crate) struct RareState<A: Actor> {
    untyped: UntypedRareState,
    /// Control messages that have arrived and are not handled yet.
    pub(crate) control: VecDeque<Control<A::Msg>>,
    /// Messages that were kept through a restart; they are handled before those in the mailbox.
    pub(crate) replay: VecDeque<Envelope<A::Msg>>,
    pub(crate) stash: VecDeque<Envelope<A::Msg>>,
    /// Unstashed messages; they are handled before those that were kept through a restart.
    pub(crate) unstashed: VecDeque<Envelope<A::Msg>>,
    /// Messages that were taken out of the mailbox, ordered by priority.
    pub(crate) by_priority: priority::PriorityQueue<A::Msg>,
    /// Timers, receive timeout and scheduled runs.
    pub(crate) timers: Option<Box<ActorTimers<A::Msg>>>,
    pub(crate) futures: Futures<A>,
    pub(crate) adapters: Adapters<A::Msg>,
}

/// The actors that watch this one, each with the preallocated node for its notification.
pub(crate) type Watchers = BTreeMap<Pid, (AnyActor, PreallocatedNode)>;

/// The part of [`RareState`] that does not depend on the type of the actor.
#[derive(Default)]
pub(crate) struct UntypedRareState {
    /// Signals that have arrived and are not handled yet.
    pub(crate) signals: VecDeque<PendingSignal>,
    /// How many of them are failures of children.
    pub(crate) child_failures: u32,
    /// How many more messages may be kept while a restart is pending.
    pub(crate) room: usize,
    /// How many stashed messages are unstashed when the current handler returns.
    pub(crate) unstash: usize,
    pub(crate) watching: BTreeMap<Pid, Watch>,
    pub(crate) watchers: Watchers,
    /// The strategies for the actor itself, innermost first, with their state.
    pub(crate) strategies: Vec<StrategyState>,
    /// The strategy for children.
    pub(crate) for_children: Option<ChildStrategy>,
    /// Children that wait for a decision that was escalated.
    pub(crate) suspended: BTreeMap<Pid, AnyActor>,
    /// The children are suspended, because this actor has failed or is suspended itself.
    pub(crate) children_are_suspended: bool,
    /// How often a host has suspended this actor. A `u8`, so it cannot overflow the 16-bit count in
    /// the flag word, to which the parent's suspensions are added.
    pub(crate) host_suspensions: u8,
    /// The child that was stopped last, and for which the actor waits.
    pub(crate) stopping_child: Option<AnyActor>,
    /// A panic of a handler that awaits a decision, and the type of the message if it was a message
    /// handler.
    pub(crate) panicked: Option<(Failure, Option<&'static str>)>,
    /// The running handler handles a signal or a future, not a message.
    pub(crate) in_other_handler: bool,
    /// Why the actor stops.
    pub(crate) reason: Option<crate::FailureReport>,
    /// What its watchers learn about the stop, if it did not fail.
    pub(crate) cause: crate::TerminationCause,
    /// The number of the back-off that the actor waits for; zero if it waits for none.
    pub(crate) backoff: u32,
    pub(crate) backoffs: u32,
    pub(crate) backoff_timer: Option<OwnTimer>,
    /// The number of the current wait for a child; incremented for each child.
    pub(crate) stop_wait: u32,
    pub(crate) stop_timer: Option<OwnTimer>,
    /// The timer of the next offer to a sink, if it has no job.
    pub(crate) retry_timer: Option<OwnTimer>,
    /// Some timer of the cell itself has no job, so that each poll checks it.
    pub(crate) has_substitutes: bool,
    pub(crate) keeps_children: bool,
    /// The restart in progress waits for the group.
    pub(crate) hold: group::Hold,
    /// What this actor does with several children together.
    pub(crate) group: Option<group::Group>,
    /// The parent has commanded the restart in progress, and gets a report when it has succeeded.
    pub(crate) is_commanded: bool,
    /// Belongs to the message that is being handled.
    pub(crate) batch: Option<ExecutionBatch>,
    pub(crate) sender: Option<Pid>,
    /// The span that the message carries which is about to be handled.
    pub(crate) span: CarriedSpan,
    /// How often the actor was restarted.
    pub(crate) restarts: u32,
    pub(crate) last_restart_nanos: Option<u64>,
    /// How many random numbers were drawn for this actor.
    pub(crate) draws: u64,
    /// The failure of a child that this actor itself now fails with.
    pub(crate) escalated: Option<crate::FailureInfo>,
    /// The effects of the actor on its context, if a test records them.
    pub(crate) effects: Option<Vec<crate::testing::Effect>>,
}

/// A signal that waits, or a message that replaces it.
pub(crate) enum PendingSignal {
    Signal(Signal),
    /// The pid of the actor that has stopped, and the message that replaces the signal. The message
    /// has the type of the watching actor's messages.
    Message(Pid, Box<dyn Any>),
}

/// An actor that is watched.
pub(crate) struct Watch {
    /// The message that replaces the signal, as long as the watched actor runs. It has the type of
    /// the watching actor's messages.
    pub(crate) message: Option<Box<dyn Any>>,
    /// Whether there is, or was, such a message.
    pub(crate) is_by_message: bool,
    /// The watched actor has stopped, and the notification waits in the queue of signals.
    pub(crate) is_terminated: bool,
    /// Preallocated for an unwatch; none if the watched actor is a child.
    pub(crate) node: Option<PreallocatedNode>,
}

impl<A: Actor> Default for RareState<A> {
    fn default() -> Self {
        Self {
            untyped: UntypedRareState::default(),
            control: VecDeque::new(),
            replay: VecDeque::new(),
            stash: VecDeque::new(),
            unstashed: VecDeque::new(),
            by_priority: priority::PriorityQueue::default(),
            timers: None,
            futures: Futures::default(),
            adapters: Adapters::new(),
        }
    }
}

impl<A: Actor> Deref for RareState<A> {
    type Target = UntypedRareState;

    fn deref(&self) -> &UntypedRareState {
        &self.untyped
    }
}

impl<A: Actor> DerefMut for RareState<A> {
    fn deref_mut(&mut self) -> &mut UntypedRareState {
        &mut self.untyped
    }
}

impl<A: Actor> Deref for CellState<A> {
    type Target = CellStatus;

    #[inline]
    fn deref(&self) -> &CellStatus {
        &self.status
    }
}

impl<A: Actor> DerefMut for CellState<A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut CellStatus {
        &mut self.status
    }
}

impl CellStatus {
    #[inline]
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: u16, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// Whether the actor is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Stopping | Stage::Draining)
    }
}

impl<A: Actor> CellState<A> {
    pub(crate) fn new(settings: Option<Box<Settings<A>>>, is_supervised: bool) -> Self {
        let flags = if is_supervised { SUPERVISED } else { 0 };
        let mut this =
            Self { status: CellStatus { stage: Stage::Initial, flags }, settings, rare: None };
        if let Some(settings) = &mut this.settings {
            if settings.priority.is_some() {
                this.status.flags |= HAS_PRIORITIES;
            }
            let strategies = core::mem::take(&mut settings.strategies);
            let children = settings.children.take();
            if !strategies.is_empty() || children.is_some() {
                let rare = this.rare.get_or_insert_default();
                rare.strategies = strategies.into_iter().map(StrategyState::new).collect();
                rare.for_children = children.map(ChildStrategy::new);
            }
            let buffer_bytes = settings.future_buffer_bytes;
            if buffer_bytes > 0 {
                this.rare.get_or_insert_default().futures.reserve_buffer(buffer_bytes);
            }
        }
        this
    }

    pub(crate) fn rare(&mut self) -> &mut RareState<A> {
        self.rare.get_or_insert_default()
    }

    /// Allocates now what a failure would need later.
    pub(crate) fn prepare(&mut self) {
        let rare = self.rare();
        rare.signals.reserve(SIGNALS_PREPARED);
        rare.control.reserve(SIGNALS_PREPARED);
        rare.strategies.iter_mut().for_each(StrategyState::reserve);
        rare.for_children.iter_mut().for_each(ChildStrategy::reserve);
    }

    /// Whether there is a strategy for children.
    pub(crate) fn supervises(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.for_children.is_some())
    }
}

/// One poll of an actor whose messages are of type `M`.
pub(crate) type PollOf<'t, M> = PollContext<'t, ActorShared<M>>;

/// The result of a poll.
pub(crate) type Outcome = custom_task::CustomPollOutcome<ParkMode>;

/// What a parked actor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkMode {
    /// For a message or a wake-up. The token proves that the mailbox was empty.
    Idle(EmptyToken),
    /// For a wake-up only; the mailbox is left alone.
    Wait,
}

impl<A: Actor, F: FnMut() -> A + 'static> CustomTask for Cell<A, F> {
    type Shared = ActorShared<A::Msg>;
    type ParkToken = ParkMode;

    fn kind() -> TypeId {
        TypeId::of::<A::Msg>()
    }

    fn prefix() -> TypeId {
        TypeId::of::<header::ActorHeader>()
    }

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn input() -> &'static str {
        type_name::<A::Msg>()
    }

    fn unpark(shared: &ActorShared<A::Msg>) -> bool {
        // Not next to STOP, which is never cleared: a runner that finds STOP handles system
        // messages anyway.
        if shared.header.flags() & STOP == 0 {
            shared.header.set_flags(WOKEN);
        }
        shared.mail.notify()
    }

    fn is_parked(shared: &ActorShared<A::Msg>) -> bool {
        shared.mail.is_asleep()
    }

    fn messages_taken(shared: &ActorShared<A::Msg>) -> usize {
        shared.mail.taken()
    }

    fn messages_waiting(shared: &ActorShared<A::Msg>) -> (usize, usize) {
        (shared.mail.len(), shared.mail.capacity())
    }

    #[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
    #[inline]
    unsafe fn park(shared: NonNull<ActorShared<A::Msg>>, how: ParkMode) -> bool {
        // SAFETY: the shared part exists until the cell is parked.
        let mail = unsafe { &raw const (*shared.as_ptr()).mail };
        match how {
            ParkMode::Idle(seen) => {
                // SAFETY: the caller is the runner, and the mailbox exists until the cell is
                // parked.
                let slept = unsafe { Mailbox::try_idle_with(mail, seen) };
                if !slept {
                    // SAFETY: the cell is not parked, so this thread still is the runner.
                    restore_woken(unsafe { shared.as_ref() });
                }
                slept
            }
            // SAFETY: as above.
            ParkMode::Wait => unsafe { Mailbox::park_at(mail) },
        }
    }

    fn poll(&mut self, poll: &PollOf<'_, A::Msg>) -> Outcome {
        let shared = poll.shared();
        let mut budget = Budget::new();
        loop {
            let is_calm = self.is_running() && self.state.flags & PENDING == 0;
            if shared.header.flags() != 0 || !is_calm {
                // Acknowledge before the flags are taken. A waker that sets its flag after that
                // also notifies the mailbox after this line, so the cell cannot go idle before the
                // next poll has seen the flag. In the other order this line could erase the
                // notification of a flag that was set after the flags were taken.
                acknowledge(shared);
                if poll.is_terminated() {
                    // The next poll stops the actor by force.
                    return Outcome::PollAgain;
                }
                if poll.take_cancel().is_some() {
                    shared.header.set_flags(STOP);
                }
                if shared.header.flags() & MAILBOX_FULL != 0 {
                    shared.check_saturation();
                }
                if let Some(outcome) = self
                    .with_untyped(poll, |cell, poll| cell.handle_system_messages(poll, &mut budget))
                {
                    return outcome;
                }
            }
            if !budget.take(poll) {
                return Outcome::PollAgain;
            }
            if self.state.flags & (HAS_PRIORITIES | HAS_TIMERS) != 0 {
                match self.next_in_order(poll) {
                    NextInOrder::Message(envelope) => self.receive_envelope(poll, envelope),
                    NextInOrder::Timer(fired, msg) => self.timer_fired(poll, fired, msg),
                    NextInOrder::Again => {}
                    NextInOrder::Empty(seen) => return Outcome::Park(ParkMode::Idle(seen)),
                    NextInOrder::Retry => return poll_again_after_wait(),
                }
                continue;
            }
            match next_message(shared) {
                Popped::Item((None, msg)) => self.receive(poll, msg),
                Popped::Item((attached, msg)) => self.receive_attached(poll, attached, msg),
                Popped::Empty(seen) => return Outcome::Park(ParkMode::Idle(seen)),
                Popped::Retry => return poll_again_after_wait(),
            }
        }
    }

    fn on_panic(&mut self, poll: &PollOf<'_, A::Msg>, caught: PanicPayload) -> Outcome {
        let failure = panic_failure(&caught);
        poll.drop_panic_payload(caught);
        let rare = self.state.rare();
        let in_other_handler = core::mem::take(&mut rare.in_other_handler);
        let message_type = (!in_other_handler).then(type_name::<A::Msg>);
        self.drop_polled(poll);
        self.state.finish_run(false);
        // Handling the failure calls much user code; the next poll does that.
        let earlier = self.state.rare().panicked.replace((failure, message_type));
        poll.drop_catching_panic(earlier);
        self.state.set(PENDING, true);
        Outcome::PollAgain
    }

    fn on_terminate(&mut self, poll: &PollOf<'_, A::Msg>) {
        self.with_untyped(poll, |cell, poll| cell.force_stop(poll));
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    pub(crate) fn new(factory: F, settings: Option<Box<Settings<A>>>, is_supervised: bool) -> Self {
        Self { actor: None, factory, state: CellState::new(settings, is_supervised) }
    }

    fn is_running(&self) -> bool {
        self.state.stage == Stage::Running
    }

    /// Handles a user message.
    #[inline]
    fn receive(&mut self, poll: &PollOf<'_, A::Msg>, msg: A::Msg) {
        if self.state.flags & (HAS_RECEIVE_TIMEOUT | HAS_SPANS) != 0 {
            self.receive_with_timers(poll, msg);
            return;
        }
        let Some(actor) = &mut self.actor else { return };
        let mut cx = Context::new(&mut self.state, poll);
        let result = actor.receive(&mut cx, msg);
        self.handle_result::<A::Msg>(poll, result);
    }

    /// Handles a user message in its envelope.
    fn receive_envelope(&mut self, poll: &PollOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        self.receive_attached(poll, envelope.attached, envelope.msg);
    }

    /// Handles what a handler has returned.
    #[inline]
    pub(crate) fn handle_result<T>(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        result: Result<Next, Failure>,
    ) {
        self.handle_result_of(poll, result, type_name::<T>());
    }

    /// The same for a message type that is given by its name.
    #[inline]
    fn handle_result_of(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        result: Result<Next, Failure>,
        name: &'static str,
    ) {
        match result {
            Ok(Next::Stay) => {}
            Ok(Next::Stop) => self.stop(poll),
            Ok(Next::Unhandled) => unhandled(&any(poll), name),
            Err(failure) => self.fail(poll, failure, name),
        }
        if self.state.flags & (UNSTASH_REQUESTED | STARTS_TIMEOUT) != 0 {
            self.apply_deferred(poll);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Calls untyped code, which is compiled once for all types of actors.
    #[inline]
    fn with_untyped<R>(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        what: impl FnOnce(&mut dyn CellVTable, &AnyPoll<'_>) -> R,
    ) -> R {
        what(&mut TypedCell { cell: self, poll }, &any(poll))
    }

    /// The actor has asked to stop.
    #[cold]
    fn stop(&mut self, poll: &PollOf<'_, A::Msg>) {
        self.with_untyped(poll, |cell, poll| cell.stop(poll, None));
    }

    /// The actor has failed while it handled something of this type name.
    #[cold]
    fn fail(&mut self, poll: &PollOf<'_, A::Msg>, failure: Failure, name: &'static str) {
        self.with_untyped(poll, |cell, poll| cell.fail(poll, failure, Some(name)));
    }

    /// Applies what a handler has requested for the time after its return.
    #[cold]
    fn apply_deferred(&mut self, poll: &PollOf<'_, A::Msg>) {
        if self.state.has(UNSTASH_REQUESTED) {
            self.state.unstash();
        }
        if self.state.has(STARTS_TIMEOUT) {
            self.state.set(STARTS_TIMEOUT, false);
            self.state.restart_receive_timeout(poll);
        }
    }
}

/// An actor that watches another one must handle its termination.
pub(crate) static DEATH_PACT: StaticError =
    StaticError::new(20, "a watched actor has stopped, and the termination was not handled");

fn panic_failure(caught: &PanicPayload) -> Failure {
    Panicked::new(caught.message()).into()
}

#[cold]
fn unhandled(poll: &AnyPoll<'_>, message_type: &'static str) {
    let header = poll.shared();
    header.system().events().publish(&SystemEvent::Unhandled(Unhandled {
        pid: poll.pid(),
        path: header.path.clone(),
        message_type,
    }));
}

impl<A: Actor> CellState<A> {
    /// Moves stashed messages before the mailbox, behind those that were unstashed earlier.
    pub(crate) fn unstash(&mut self) {
        self.flags &= !UNSTASH_REQUESTED;
        let Some(rare) = &mut self.rare else { return };
        let n = core::mem::take(&mut rare.unstash).min(rare.stash.len());
        // Messages that were unstashed earlier and are not handled yet are older, so the new ones
        // go behind them.
        for _ in 0..n {
            rare.unstashed.extend(rare.stash.pop_front());
        }
        if !rare.unstashed.is_empty() {
            self.flags |= PENDING;
        }
    }
}

#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn pop<M: 'static>(shared: &ActorShared<M>) -> Pop<Envelope<M>> {
    // SAFETY: called by the runner within a poll only, and a cell has one runner at a time.
    unsafe { shared.mail.pop() }
}

/// Allocates the memory of the mailbox now, if its bound is small enough.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn reserve<M: 'static>(shared: &ActorShared<M>) {
    // SAFETY: as in `pop`.
    unsafe { shared.mail.reserve() };
}

/// Acknowledges a notification: from here on, a waker that notifies the mailbox makes the next
/// attempt to go idle fail.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn acknowledge<M: 'static>(shared: &ActorShared<M>) {
    // SAFETY: as in `pop`.
    unsafe { shared.mail.ack() }
}

/// A proof that the mailbox is empty, which is required for going idle; none if something has
/// arrived.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn empty_token<M: 'static>(shared: &ActorShared<M>) -> Option<EmptyToken> {
    // SAFETY: as in `pop`.
    unsafe { shared.mail.empty_token() }
}

/// A sender has claimed the next position and not written it yet: it does so soon, unless this
/// thread has preempted the sender.
#[cold]
fn poll_again_after_wait() -> Outcome {
    backoff::wait(1);
    Outcome::PollAgain
}

/// The mailbox was empty, but the cell cannot go idle, because a producer, a waiting sender or a
/// waker was faster. In the case of the waker, the WOKEN flag may be lost:
///
/// 1. Waker: sets its flag and WOKEN in the flag word (`unpark`).
/// 2. Runner: takes the flags, which clears WOKEN, and handles the cause.
/// 3. Waker: notifies the mailbox word.
/// 4. Runner: finds the mailbox empty and fails to go idle, because of step 3.
///
/// The notification of step 3 stays in the mailbox word until the runner acknowledges it, and the
/// runner does so only if a flag is set. Without WOKEN, the next poll would see no flag, would not
/// acknowledge the notification, and would fail to go idle again, forever. So the runner sets WOKEN
/// again. In [`ParkMode::Wait`] this is not necessary: there the runner handles system messages in
/// each poll.
#[cold]
fn restore_woken<M: 'static>(shared: &ActorShared<M>) {
    shared.header.set_flags(WOKEN);
}

/// The next message with its attachment.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
#[inline]
fn next_message<M: 'static>(shared: &ActorShared<M>) -> Popped<(Option<PoolBox<Attached>>, M)> {
    let read = |envelope: *const Envelope<M>| {
        // SAFETY: the mailbox hands out a valid value.
        let attached = unsafe { &raw const (*envelope).attached };
        // SAFETY: as above.
        let msg = unsafe { &raw const (*envelope).msg };
        // SAFETY: a field of a valid value, which is read once.
        let attached = unsafe { attached.read() };
        // SAFETY: as above.
        let msg = unsafe { msg.read() };
        (attached, msg)
    };
    // SAFETY: as in `pop`; all fields are read.
    unsafe { shared.mail.pop_with(read) }
}
