//! The body of an actor's cell: what its runner does in a turn.
//!
//! # Order in a turn
//!
//! Before each user message the runner looks at the bits of the cell, one load. If any is up, or
//! something was left over, it *attends* to, in this order: children that have ended, notes of the
//! system, orders of the supervisor, and, if the actor is running and not suspended, signals,
//! control messages, futures, and messages that were put back. Then comes the mailbox.
//!
//! A turn that finds nothing to do says what the actor is to [sleep](Sleep) for, and does not
//! sleep itself: the executor sees to that when the turn has returned, and the body is borrowed no
//! more, by [`Cell::sleep`]. If something has come meanwhile, there is another turn.
//!
//! # Stages
//!
//! ```text
//!            factory, started
//!   Unborn ────────────────────► Running ──── Next::Stop, STOP ────► Stopping ──► Draining ──► end
//!     ▲ │                          │ ▲                                 ▲
//!     │ │ failure                  │ │ RESUME                          │ STOP
//!     │ └───────────► rule ◄───────┘ │                                 │
//!     │                 │            │                                 │
//!     │                 ├──────► Failed, waits for its parent ─────────┤
//!     │                 │            │ RESTART                         │
//!     │                 ├──────► Restarting, waits for children and back-off
//!     └─────────────────┼────────────┘                                 │
//!                       └──────────────────────────────────────────────┘
//! ```
//!
//! In every stage but Running, user messages stay where they are; but while a restart is waited
//! for, they are taken out of the mailbox and kept, as many as its strategy says, so that senders
//! find room. A stop ends all of them.
//!
//! # Who waits for whom
//!
//! 1. An actor that stops, or is made anew without its children, tells them to stop one after
//!    another, the newest first, and waits for each. If one takes longer than the system's
//!    patience, that is told, and the next one is told to stop too; so a child that never stops
//!    keeps its parent, but none of its siblings.
//! 2. One that has failed waits for its parent, which holds a note of it. If the parent is over,
//!    the note comes back and the actor stops; if it ends later, it tells all its children to.
//! 3. Its children are suspended meanwhile, each once, which the parent's entry for the child
//!    knows: so they are let go exactly as often, whoever has come or gone between. One that is
//!    suspended does the same to its own children in its next turn, and lets them go when it goes
//!    on itself. So all below hold still, level by level, as in Pekko's classic actors: one
//!    further down may still handle what it has until the one above it has had a turn. What an
//!    actor settles by its own strategies, at once, suspends nobody.
//! 4. A back-off waits for a timer. Without room for one it does not wait.
//!
//! # Panics
//!
//! Handlers, and closures behind futures, run unguarded: a panic unwinds to the worker, which
//! tells [`Cell::panicked`], and that is a failure like an `Err`. Everything else that is the
//! user's is called in a guard: factories, hooks, strategies, drops.

mod lifecycle;
mod pending;
mod polling;
mod priority;
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

pub(crate) use lifecycle::drop_reported;
pub(crate) use supervise::retry;
pub(crate) use vtable::{AnyTurn, any};
use vtable::{CellVTable, TypedCell};

use clockjack_exec::{
    Coded, Failure, Pid,
    custom::{self, Body, Turn},
    exit::Caught,
};
use clockjack_sched::ExecutionBatch;
use clockjack_sync::{
    mail::{Mailbox, Pop, Popped, Seen},
    mutant,
};

use crate::{
    Actor, Context, Next, Scope, Signal, Strategy,
    adapter::Adapters,
    control::Control,
    envelope::{Attached, Envelope},
    events::{SystemEvent, Unhandled},
    failure_info::Panicked,
    futures::Futures,
    header::{AnyActor, STOP, WOKEN},
    pool_box::PoolBox,
    props::Settings,
    shared::ActorShared,
    strategy::StrategyState,
    system::Delay,
    system_queue::PreallocatedNode,
    timers::ActorTimers,
};

/// After how many messages the time that a turn has used is looked at, at most.
const MESSAGES_PER_CHECK: usize = 8;

/// For how many signals, and how many fires of timers, an actor of a sealed system has room before
/// it takes more.
const SIGNALS_PREPARED: usize = 4;

/// Where an actor is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not made yet, or to be made again.
    NotStarted,
    /// Handles messages.
    Running,
    /// Has failed, and waits for what its parent decides.
    Failed,
    /// To be made again, once its children have ended and the time for it has come.
    Restarting,
    /// To end, once its children have.
    Stopping,
    /// Has ended, but for messages that others are about to put into its mailbox.
    Draining,
}

/// Something is left over that no bit tells of.
pub(crate) const PENDING: u8 = 1;
/// It was made and has started once.
pub(crate) const WAS_STARTED: u8 = 1 << 1;
/// Its parent has a strategy for it.
pub(crate) const SUPERVISED: u8 = 1 << 2;
/// Something of the stash is to be put back when the handler returns.
pub(crate) const UNSTASH_REQUESTED: u8 = 1 << 5;
/// Its messages have priorities.
pub(crate) const HAS_PRIORITIES: u8 = 1 << 3;
/// It was told to stop from outside.
pub(crate) const WAS_STOPPED: u8 = 1 << 4;
/// A receive time-out is set.
pub(crate) const HAS_RECEIVE_TIMEOUT: u8 = 1 << 6;
/// It was set by the handler that runs, and begins when that returns.
pub(crate) const STARTS_TIMEOUT: u8 = 1 << 7;

/// The body of an actor's cell; see the [module](self).
pub(crate) struct Cell<A: Actor, F> {
    pub(crate) actor: Option<A>,
    pub(crate) factory: F,
    pub(crate) state: CellState<A>,
}

/// All of a cell but the actor and its factory: what a context reaches.
pub(crate) struct CellState<A: Actor> {
    status: CellStatus,
    pub(crate) settings: Option<Box<Settings<A>>>,
    pub(crate) rare: Option<Box<RareState<A>>>,
}

/// Where a cell stands; of a [`CellState`], whatever its types are.
pub(crate) struct CellStatus {
    pub(crate) stage: Stage,
    pub(crate) flags: u8,
}

/// What only some actors have.
pub(crate) struct RareState<A: Actor> {
    untyped: UntypedRareState,
    /// Control messages that have come and were not handled yet.
    pub(crate) control: VecDeque<Control<A::Msg>>,
    /// Messages that were kept through a restart: to be handled before those in the mailbox.
    pub(crate) replay: VecDeque<Envelope<A::Msg>>,
    pub(crate) stash: VecDeque<Envelope<A::Msg>>,
    /// Those that were put back: to be handled before those that were kept.
    pub(crate) unstashed: VecDeque<Envelope<A::Msg>>,
    /// Messages by their priority, taken out of the mailbox.
    pub(crate) by_priority: priority::PriorityQueue<A::Msg>,
    /// Timers, and what else it has to do with time.
    pub(crate) timers: Option<Box<ActorTimers<A::Msg>>>,
    pub(crate) futures: Futures<A>,
    pub(crate) adapters: Adapters<A::Msg>,
}

/// Those who want to know of the end, each with the node that it will be told in.
pub(crate) type Watchers = BTreeMap<Pid, (AnyActor, PreallocatedNode)>;

/// Of what only some actors have, that which is the same for all types.
#[derive(Default)]
pub(crate) struct UntypedRareState {
    /// Signals that have come and were not handled yet.
    pub(crate) signals: VecDeque<PendingSignal>,
    /// For how many more messages there is room, while a restart is waited for.
    pub(crate) room: usize,
    /// How many of the stash are to be put back when the handler returns.
    pub(crate) unstash: usize,
    pub(crate) watching: BTreeMap<Pid, Watch>,
    pub(crate) watchers: Watchers,
    /// The strategies for itself, innermost first, and what they remember.
    pub(crate) strategies: Vec<StrategyState>,
    /// The strategy for children.
    pub(crate) for_children: Option<(Scope, Strategy)>,
    /// Children that wait for a decision that was escalated.
    pub(crate) suspended: BTreeMap<Pid, AnyActor>,
    /// Its children are suspended, because it has failed or is suspended itself.
    pub(crate) children_are_suspended: bool,
    /// How many times a host has suspended it: fewer than its word has room for, where its parent
    /// counts too.
    pub(crate) host_suspensions: u8,
    /// The child that was told to stop last, and is waited for.
    pub(crate) stopping_child: Option<AnyActor>,
    /// A panic of a handler, to be decided about, and the type of the message, if it was of one.
    pub(crate) panicked: Option<(Failure, Option<&'static str>)>,
    /// What runs is no handler of messages, but that of signals or a future.
    pub(crate) in_other_handler: bool,
    /// Why it ends.
    pub(crate) reason: Option<crate::FailureReport>,
    /// Which back-off it waits for; zero if for none.
    pub(crate) backoff: u32,
    pub(crate) backoffs: u32,
    pub(crate) backoff_timer: Option<Delay>,
    /// Which wait for a child it is; counts.
    pub(crate) stop_wait: u32,
    pub(crate) stop_timer: Option<Delay>,
    pub(crate) keeps_children: bool,
    /// Its parent has ordered the restart that is under way, and is told of its end.
    pub(crate) is_commanded: bool,
    /// Of the message that is being handled.
    pub(crate) batch: Option<ExecutionBatch>,
    pub(crate) sender: Option<Pid>,
    /// How often it was made anew.
    pub(crate) restarts: u32,
    pub(crate) last_restart_nanos: Option<u64>,
    /// How many numbers were drawn from its stream.
    pub(crate) draws: u64,
    /// The failure of a child that it fails with.
    pub(crate) escalated: Option<crate::FailureInfo>,
    /// What it has done by its context, if a test wants to know.
    pub(crate) effects: Option<Vec<crate::testing::Effect>>,
}

/// A signal that waits, or a message that stands in its place.
pub(crate) enum PendingSignal {
    Signal(Signal),
    /// The one that has ended, and what was to be told then: a message of the actor's.
    Message(Pid, Box<dyn Any>),
}

/// One that is watched.
pub(crate) struct Watch {
    /// What is to be told instead of a signal, if the end has not come: a message of the actor's.
    pub(crate) message: Option<Box<dyn Any>>,
    /// Whether there is, or was, such a message.
    pub(crate) is_by_message: bool,
    /// The end has come, and waits to be told.
    pub(crate) is_terminated: bool,
    /// For the case that it is watched no more; none of a child.
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
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// Whether it is on its way to its end.
    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Stopping | Stage::Draining)
    }
}

impl<A: Actor> CellState<A> {
    pub(crate) fn new(settings: Option<Box<Settings<A>>>, is_supervised: bool) -> Self {
        let flags = if is_supervised { SUPERVISED } else { 0 };
        let mut this =
            Self { status: CellStatus { stage: Stage::NotStarted, flags }, settings, rare: None };
        if let Some(settings) = &mut this.settings {
            if settings.priority.is_some() {
                this.status.flags |= HAS_PRIORITIES;
            }
            let strategies = core::mem::take(&mut settings.strategies);
            let children = settings.children.take();
            if !strategies.is_empty() || children.is_some() {
                let rare = this.rare.get_or_insert_default();
                rare.strategies = strategies.into_iter().map(StrategyState::new).collect();
                rare.for_children = children;
            }
            let (_, buffer_bytes) = settings.futures;
            if buffer_bytes > 0 {
                this.rare.get_or_insert_default().futures.reserve_buffer(buffer_bytes);
            }
        }
        this
    }

    pub(crate) fn rare(&mut self) -> &mut RareState<A> {
        self.rare.get_or_insert_default()
    }

    /// Makes now what a failure would need later.
    pub(crate) fn prepare(&mut self) {
        let rare = self.rare();
        rare.signals.reserve(SIGNALS_PREPARED);
        rare.control.reserve(SIGNALS_PREPARED);
    }

    /// Whether the strategy for children has been set.
    pub(crate) fn supervises(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.for_children.is_some())
    }
}

/// A turn of an actor whose messages are of type `M`.
pub(crate) type TurnOf<'t, M> = Turn<'t, ActorShared<M>>;

/// How a turn ends.
pub(crate) type Outcome = custom::Outcome<ParkMode>;

/// What an actor sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkMode {
    /// A message, or a note. The mailbox was empty.
    Idle(Seen),
    /// There is nothing to do before a note comes; the mailbox is left alone.
    Wait,
}

/// How far a turn may go. A turn of one or two messages does not even look at it.
struct Budget {
    n_taken: usize,
    /// At how many the limit, or the clock, is looked at next.
    check_at: usize,
    until: Option<u64>,
}

/// How many messages are handled before the clock is read for the first time.
const UNTIMED_MESSAGES: usize = 2;

impl Budget {
    const fn new() -> Self {
        Self { n_taken: 0, check_at: UNTIMED_MESSAGES, until: None }
    }

    /// Counts a message; false if the turn is over.
    #[inline]
    fn take<M: 'static>(&mut self, turn: &TurnOf<'_, M>) -> bool {
        if self.n_taken == self.check_at && !self.check(&any(turn)) {
            return false;
        }
        self.n_taken += 1;
        true
    }

    /// Looks at limit and clock, the more often the slower the messages are.
    #[cold]
    fn check(&mut self, turn: &AnyTurn<'_>) -> bool {
        let left = turn.throughput().saturating_sub(self.n_taken);
        if left == 0 {
            return false;
        }
        let (now, budget) = (turn.nanos(), turn.budget_nanos());
        let until = *self.until.get_or_insert_with(|| now.saturating_add(budget));
        if now >= until {
            return false;
        }
        // Known to be fast only when the clock was read before, and as many more would take what is
        // left at the most.
        let (left_nanos, n_timed) = (until - now, (self.n_taken - UNTIMED_MESSAGES) as u64);
        let spent = budget.saturating_sub(left_nanos).saturating_mul(MESSAGES_PER_CHECK as u64);
        let is_fast = n_timed > 0 && spent <= left_nanos.saturating_mul(n_timed);
        self.check_at = self.n_taken + if is_fast { MESSAGES_PER_CHECK.min(left) } else { 1 };
        true
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Body for Cell<A, F> {
    type Front = ActorShared<A::Msg>;
    type Sleep = ParkMode;

    fn kind() -> TypeId {
        TypeId::of::<A::Msg>()
    }

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn input() -> &'static str {
        type_name::<A::Msg>()
    }

    fn unpark(shared: &ActorShared<A::Msg>) -> bool {
        // Not beside STOP, which stays up: a runner that was called finds a bit in any case.
        if shared.header.flags() & STOP == 0 {
            shared.header.set_flags(WOKEN);
        }
        shared.mail.call()
    }

    fn is_parked(shared: &ActorShared<A::Msg>) -> bool {
        shared.mail.is_asleep()
    }

    #[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
    #[inline]
    unsafe fn sleep(shared: NonNull<ActorShared<A::Msg>>, how: ParkMode) -> bool {
        // SAFETY: the front is there until it sleeps.
        let mail = unsafe { &raw const (*shared.as_ptr()).mail };
        match how {
            ParkMode::Idle(seen) => {
                // SAFETY: the caller is the runner, and the box is there until it sleeps.
                let slept = unsafe { Mailbox::idle_from(mail, seen) };
                if !slept {
                    // SAFETY: it does not sleep, so this still is the runner.
                    restore_woken(unsafe { shared.as_ref() });
                }
                slept
            }
            // SAFETY: as above.
            ParkMode::Wait => unsafe { Mailbox::park_at(mail) },
        }
    }

    fn step(&mut self, turn: &TurnOf<'_, A::Msg>) -> Outcome {
        let shared = turn.front();
        let mut budget = Budget::new();
        loop {
            let is_calm = self.is_running() && self.state.flags & PENDING == 0;
            if shared.header.flags() != 0 || !is_calm {
                if !mutant!("actor-look-forgotten") {
                    acknowledge(shared);
                }
                if turn.is_terminated() && !mutant!("actor-force-unseen") {
                    // The next turn is the end.
                    return Outcome::Again;
                }
                if turn.take_cancel().is_some() {
                    shared.header.set_flags(STOP);
                }
                if let Some(outcome) = self
                    .with_untyped(turn, |cell, turn| cell.handle_system_messages(turn, &mut budget))
                {
                    return outcome;
                }
            }
            if !budget.take(turn) {
                return Outcome::Again;
            }
            if self.state.has(HAS_PRIORITIES)
                && let Some(priority) = self.state.priority()
            {
                match self.next_by_priority(turn, priority) {
                    Popped::Item(envelope) => self.receive_envelope(turn, envelope),
                    Popped::Empty(seen) => return Outcome::Sleep(ParkMode::Idle(seen)),
                    Popped::Busy => return Outcome::Again,
                }
                continue;
            }
            match next_message(shared) {
                Popped::Item((None, msg)) => self.receive(turn, msg),
                Popped::Item((attached, msg)) => self.receive_attached(turn, attached, msg),
                Popped::Empty(seen) => return Outcome::Sleep(ParkMode::Idle(seen)),
                Popped::Busy => return Outcome::Again,
            }
        }
    }

    fn panicked(&mut self, turn: &TurnOf<'_, A::Msg>, caught: Caught) -> Outcome {
        let failure = panic_failure(&caught);
        turn.discard(caught);
        let rare = self.state.rare();
        let in_other_handler = core::mem::take(&mut rare.in_other_handler);
        let message_type = (!in_other_handler).then(type_name::<A::Msg>);
        self.drop_polled(turn);
        self.state.finish_run(false);
        // What is done about it calls much that is not this crate's: that is for the next turn.
        let earlier = self.state.rare().panicked.replace((failure, message_type));
        turn.drop_contained(earlier);
        self.state.set(PENDING, true);
        Outcome::Again
    }

    fn ended(&mut self, turn: &TurnOf<'_, A::Msg>) {
        self.with_untyped(turn, |cell, turn| cell.force_stop(turn));
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
    fn receive(&mut self, turn: &TurnOf<'_, A::Msg>, msg: A::Msg) {
        if self.state.flags & HAS_RECEIVE_TIMEOUT != 0 {
            self.receive_with_timers(turn, msg);
            return;
        }
        let Some(actor) = &mut self.actor else { return };
        let mut cx = Context::new(&mut self.state, turn);
        let result = actor.receive(&mut cx, msg);
        self.handle_result::<A::Msg>(turn, result);
    }

    /// Handles a user message in its envelope.
    fn receive_envelope(&mut self, turn: &TurnOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        self.receive_attached(turn, envelope.header.attached, envelope.msg);
    }

    /// What a handler has returned.
    #[inline]
    pub(crate) fn handle_result<T>(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        result: Result<Next, Failure>,
    ) {
        self.handle_result_of(turn, result, type_name::<T>());
    }

    /// The same for what is known by its name.
    #[inline]
    fn handle_result_of(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        result: Result<Next, Failure>,
        name: &'static str,
    ) {
        match result {
            Ok(Next::Stay) => {}
            Ok(Next::Stop) => self.stop(turn),
            Ok(Next::Unhandled) => unhandled(&any(turn), name),
            Err(failure) => self.fail(turn, failure, name),
        }
        if self.state.flags & (UNSTASH_REQUESTED | STARTS_TIMEOUT) != 0 {
            self.apply_deferred(turn);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Does what is the same for all types.
    #[inline]
    fn with_untyped<R>(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        what: impl FnOnce(&mut dyn CellVTable, &AnyTurn<'_>) -> R,
    ) -> R {
        what(&mut TypedCell { cell: self, turn }, &any(turn))
    }

    /// It wants to stop.
    #[cold]
    fn stop(&mut self, turn: &TurnOf<'_, A::Msg>) {
        self.with_untyped(turn, |cell, turn| cell.stop(turn, None));
    }

    /// It has failed in the handler of something of this name.
    #[cold]
    fn fail(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Failure, name: &'static str) {
        self.with_untyped(turn, |cell, turn| cell.fail(turn, failure, Some(name)));
    }

    /// Does what a handler has asked for, for when it returns.
    #[cold]
    fn apply_deferred(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.state.has(UNSTASH_REQUESTED) {
            self.state.unstash();
        }
        if self.state.has(STARTS_TIMEOUT) {
            self.state.set(STARTS_TIMEOUT, false);
            self.state.restart_receive_timeout(turn);
        }
    }
}

/// An actor that watches another must care for its end.
pub(crate) static DEATH_PACT: Coded =
    Coded::new(20, "an actor that it watches has ended, and it did not handle that");

fn panic_failure(caught: &Caught) -> Failure {
    Panicked::new(caught.message()).into()
}

#[cold]
fn unhandled(turn: &AnyTurn<'_>, message_type: &'static str) {
    let header = turn.front();
    header.system().events().publish(&SystemEvent::Unhandled(Unhandled {
        pid: turn.pid(),
        path: header.path.clone(),
        message_type,
    }));
}

impl<A: Actor> CellState<A> {
    /// Puts stashed messages in front of the mailbox, behind those that were put there before.
    pub(crate) fn unstash(&mut self) {
        self.flags &= !UNSTASH_REQUESTED;
        let Some(rare) = &mut self.rare else { return };
        let n = core::mem::take(&mut rare.unstash).min(rare.stash.len());
        // In front of what was put back earlier and not handled yet? No: those are older.
        for _ in 0..n {
            rare.unstashed.extend(rare.stash.pop_front());
        }
        if !rare.unstashed.is_empty() && !mutant!("actor-unstash-unseen") {
            self.flags |= PENDING;
        }
    }
}

#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn pop<M: 'static>(shared: &ActorShared<M>) -> Pop<Envelope<M>> {
    // SAFETY: called in a turn only, and a cell has one runner at a time.
    unsafe { shared.mail.pop() }
}

/// Makes the memory of the mailbox now, if its bound is small enough to do that.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn reserve<M: 'static>(shared: &ActorShared<M>) {
    if !mutant!("actor-mailbox-unreserved") {
        // SAFETY: as in `pop`.
        unsafe { shared.mail.reserve() };
    }
}

/// Notes that the runner looks at what it was called for.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn acknowledge<M: 'static>(shared: &ActorShared<M>) {
    // SAFETY: as in `pop`.
    unsafe { shared.mail.look() }
}

/// What an actor with nothing to do goes idle from; none if something has come after all.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn empty_token<M: 'static>(shared: &ActorShared<M>) -> Option<Seen> {
    // SAFETY: as in `pop`.
    unsafe { shared.mail.see_empty() }
}

/// There was nothing to take, and yet it may not sleep. If that is because it was called, then the
/// bit of that call may have been taken down already: the caller raises it before it calls, and a
/// look between the two takes the bit alone. So it is raised again, or it would never look. One
/// that waits for a note looks in any case.
#[cold]
fn restore_woken<M: 'static>(shared: &ActorShared<M>) {
    if !mutant!("actor-call-unseen") {
        shared.header.set_flags(WOKEN);
    }
}

/// The next message and what came along. The rest of the header is left where it is, which needs no
/// drop.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
#[inline]
fn next_message<M: 'static>(shared: &ActorShared<M>) -> Popped<(Option<PoolBox<Attached>>, M)> {
    let read = |envelope: *const Envelope<M>| {
        // SAFETY: the mailbox hands out a valid value.
        let attached = unsafe { &raw const (*envelope).header.attached };
        // SAFETY: as above.
        let msg = unsafe { &raw const (*envelope).msg };
        // SAFETY: a field of a valid value, which is read once.
        let attached = unsafe { attached.read() };
        // SAFETY: as above.
        let msg = unsafe { msg.read() };
        (attached, msg)
    };
    // SAFETY: as in `pop`; what is not read are numbers.
    unsafe { shared.mail.pop_by(read) }
}
