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

mod attend;
mod lifecycle;
mod polling;
mod priority;
mod supervise;
mod typed;
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

pub(crate) use lifecycle::drop_told;
pub(crate) use supervise::retry;
pub(crate) use typed::{AnyTurn, any};
use typed::{Live, Typed};

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
    base::{AnyActor, STOP, WOKEN},
    control::Control,
    envelope::{Attached, Envelope},
    events::{SystemEvent, Unhandled},
    failure_info::Panicked,
    front::Front,
    futures::Futures,
    notes::Spare,
    pooled::Pooled,
    props::Settings,
    strategy::Layer,
    system::Delay,
    timers::Timed,
};

/// After how many messages the time that a turn has used is looked at, at most.
const MESSAGES_PER_LOOK: usize = 8;

/// For how many signals, and how many fires of timers, an actor of a sealed system has room before
/// it takes more.
const SIGNALS_PREPARED: usize = 4;

/// Where an actor is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not made yet, or to be made again.
    Unborn,
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
pub(crate) const ASKS_PARENT: u8 = 1 << 2;
/// Something of the stash is to be put back when the handler returns.
pub(crate) const UNSTASHES: u8 = 1 << 5;
/// Its messages have priorities.
pub(crate) const RANKS: u8 = 1 << 3;
/// It was told to stop from outside.
pub(crate) const WAS_STOPPED: u8 = 1 << 4;
/// A receive time-out is set.
pub(crate) const LOOKS_AT_TIME: u8 = 1 << 6;
/// It was set by the handler that runs, and begins when that returns.
pub(crate) const SETS_TIMEOUT: u8 = 1 << 7;

/// The body of an actor's cell; see the [module](self).
pub(crate) struct Cell<A: Actor, F> {
    pub(crate) actor: Option<A>,
    pub(crate) factory: F,
    pub(crate) state: State<A>,
}

/// All of a cell but the actor and its factory: what a context reaches.
pub(crate) struct State<A: Actor> {
    mark: Mark,
    pub(crate) settings: Option<Box<Settings<A>>>,
    pub(crate) extra: Option<Box<Extra<A>>>,
}

/// Where a cell stands; of a [`State`], whatever its types are.
pub(crate) struct Mark {
    pub(crate) stage: Stage,
    pub(crate) flags: u8,
}

/// What only some actors have.
pub(crate) struct Extra<A: Actor> {
    life: Life,
    /// Control messages that have come and were not handled yet.
    pub(crate) control: VecDeque<Control<A::Msg>>,
    /// Messages that were kept through a restart: to be handled before those in the mailbox.
    pub(crate) replay: VecDeque<Envelope<A::Msg>>,
    pub(crate) stash: VecDeque<Envelope<A::Msg>>,
    /// Those that were put back: to be handled before those that were kept.
    pub(crate) unstashed: VecDeque<Envelope<A::Msg>>,
    /// Messages by their priority, taken out of the mailbox.
    pub(crate) ranks: priority::Ranks<A::Msg>,
    /// Timers, and what else it has to do with time.
    pub(crate) timed: Option<Box<Timed<A::Msg>>>,
    pub(crate) futures: Futures<A>,
    pub(crate) adapters: Adapters<A::Msg>,
}

/// Those who want to know of the end, each with the node that it will be told in.
pub(crate) type Watchers = BTreeMap<Pid, (AnyActor, Spare)>;

/// Of what only some actors have, that which is the same for all types.
#[derive(Default)]
pub(crate) struct Life {
    /// Signals that have come and were not handled yet.
    pub(crate) signals: VecDeque<Pending>,
    /// For how many more messages there is room, while a restart is waited for.
    pub(crate) room: usize,
    /// How many of the stash are to be put back when the handler returns.
    pub(crate) unstash: usize,
    pub(crate) watching: BTreeMap<Pid, Watch>,
    pub(crate) watchers: Watchers,
    /// The strategies for itself, innermost first, and what they remember.
    pub(crate) layers: Vec<Layer>,
    /// The strategy for children.
    pub(crate) for_children: Option<(Scope, Strategy)>,
    /// Children that wait for a decision that was escalated.
    pub(crate) suspended: BTreeMap<Pid, AnyActor>,
    /// Its children are suspended, because it has failed or is suspended itself.
    pub(crate) holds_children: bool,
    /// How many times a host has suspended it: fewer than its word has room for, where its parent
    /// counts too.
    pub(crate) held_by_host: u8,
    /// The child that was told to stop last, and is waited for.
    pub(crate) awaited: Option<AnyActor>,
    /// A panic of a handler, to be decided about, and the type of the message, if it was of one.
    pub(crate) panicked: Option<(Failure, Option<&'static str>)>,
    /// What runs is no handler of messages, but that of signals or a future.
    pub(crate) is_beside: bool,
    /// Why it ends.
    pub(crate) reason: Option<crate::FailureReport>,
    /// Which back-off it waits for; zero if for none.
    pub(crate) backoff: u32,
    pub(crate) backoffs: u32,
    pub(crate) backoff_timer: Option<Delay>,
    /// Which wait for a child it is; counts.
    pub(crate) patience: u32,
    pub(crate) patience_timer: Option<Delay>,
    pub(crate) keeps_children: bool,
    /// Its parent has ordered the restart that is under way, and is told of its end.
    pub(crate) is_ordered: bool,
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
pub(crate) enum Pending {
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
    pub(crate) has_ended: bool,
    /// For the case that it is watched no more; none of a child.
    pub(crate) spare: Option<Spare>,
}

impl<A: Actor> Default for Extra<A> {
    fn default() -> Self {
        Self {
            life: Life::default(),
            control: VecDeque::new(),
            replay: VecDeque::new(),
            stash: VecDeque::new(),
            unstashed: VecDeque::new(),
            ranks: priority::Ranks::default(),
            timed: None,
            futures: Futures::default(),
            adapters: Adapters::new(),
        }
    }
}

impl<A: Actor> Deref for Extra<A> {
    type Target = Life;

    fn deref(&self) -> &Life {
        &self.life
    }
}

impl<A: Actor> DerefMut for Extra<A> {
    fn deref_mut(&mut self) -> &mut Life {
        &mut self.life
    }
}

impl<A: Actor> Deref for State<A> {
    type Target = Mark;

    #[inline]
    fn deref(&self) -> &Mark {
        &self.mark
    }
}

impl<A: Actor> DerefMut for State<A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Mark {
        &mut self.mark
    }
}

impl Mark {
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
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Stopping | Stage::Draining)
    }
}

impl<A: Actor> State<A> {
    pub(crate) fn new(settings: Option<Box<Settings<A>>>, asks_parent: bool) -> Self {
        let flags = if asks_parent { ASKS_PARENT } else { 0 };
        let mut this = Self { mark: Mark { stage: Stage::Unborn, flags }, settings, extra: None };
        if let Some(settings) = &mut this.settings {
            if settings.priority.is_some() {
                this.mark.flags |= RANKS;
            }
            let layers = core::mem::take(&mut settings.layers);
            let children = settings.children.take();
            if !layers.is_empty() || children.is_some() {
                let extra = this.extra.get_or_insert_default();
                extra.layers = layers.into_iter().map(Layer::new).collect();
                extra.for_children = children;
            }
            let (_, room_bytes) = settings.futures;
            if room_bytes > 0 {
                this.extra.get_or_insert_default().futures.keep_room(room_bytes);
            }
        }
        this
    }

    pub(crate) fn extra(&mut self) -> &mut Extra<A> {
        self.extra.get_or_insert_default()
    }

    /// Makes now what a failure would need later.
    pub(crate) fn prepare(&mut self) {
        let extra = self.extra();
        extra.signals.reserve(SIGNALS_PREPARED);
        extra.control.reserve(SIGNALS_PREPARED);
    }

    /// Whether the strategy for children has been set.
    pub(crate) fn supervises(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.for_children.is_some())
    }
}

/// A turn of an actor whose messages are of type `M`.
pub(crate) type TurnOf<'t, M> = Turn<'t, Front<M>>;

/// How a turn ends.
pub(crate) type Outcome = custom::Outcome<Sleep>;

/// What an actor sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// A message, or a note. The mailbox was empty.
    Idle(Seen),
    /// There is nothing to do before a note comes; the mailbox is left alone.
    Wait,
}

/// How far a turn may go. A turn of one or two messages does not even look at it.
struct Budget {
    n_taken: usize,
    /// At how many the limit, or the clock, is looked at next.
    look_at: usize,
    until: Option<u64>,
}

/// How many messages are handled before the clock is read for the first time.
const UNTIMED: usize = 2;

impl Budget {
    const fn new() -> Self {
        Self { n_taken: 0, look_at: UNTIMED, until: None }
    }

    /// Counts a message; false if the turn is over.
    #[inline]
    fn take<M: 'static>(&mut self, turn: &TurnOf<'_, M>) -> bool {
        if self.n_taken == self.look_at && !self.look(&any(turn)) {
            return false;
        }
        self.n_taken += 1;
        true
    }

    /// Looks at limit and clock, the more often the slower the messages are.
    #[cold]
    fn look(&mut self, turn: &AnyTurn<'_>) -> bool {
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
        let (left_nanos, n_timed) = (until - now, (self.n_taken - UNTIMED) as u64);
        let spent = budget.saturating_sub(left_nanos).saturating_mul(MESSAGES_PER_LOOK as u64);
        let is_fast = n_timed > 0 && spent <= left_nanos.saturating_mul(n_timed);
        self.look_at = self.n_taken + if is_fast { MESSAGES_PER_LOOK.min(left) } else { 1 };
        true
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Body for Cell<A, F> {
    type Front = Front<A::Msg>;
    type Sleep = Sleep;

    fn kind() -> TypeId {
        TypeId::of::<A::Msg>()
    }

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn input() -> &'static str {
        type_name::<A::Msg>()
    }

    fn unpark(front: &Front<A::Msg>) -> bool {
        // Not beside STOP, which stays up: a runner that was called finds a bit in any case.
        if front.core.peek() & STOP == 0 {
            front.core.raise(WOKEN);
        }
        front.mail.call()
    }

    fn is_parked(front: &Front<A::Msg>) -> bool {
        front.mail.is_asleep()
    }

    #[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
    #[inline]
    unsafe fn sleep(front: NonNull<Front<A::Msg>>, how: Sleep) -> bool {
        // SAFETY: the front is there until it sleeps.
        let mail = unsafe { &raw const (*front.as_ptr()).mail };
        match how {
            Sleep::Idle(seen) => {
                // SAFETY: the caller is the runner, and the box is there until it sleeps.
                let slept = unsafe { Mailbox::idle_from(mail, seen) };
                if !slept {
                    // SAFETY: it does not sleep, so this still is the runner.
                    look_again(unsafe { front.as_ref() });
                }
                slept
            }
            // SAFETY: as above.
            Sleep::Wait => unsafe { Mailbox::park_at(mail) },
        }
    }

    fn step(&mut self, turn: &TurnOf<'_, A::Msg>) -> Outcome {
        let front = turn.front();
        let mut budget = Budget::new();
        loop {
            let is_calm = self.is_running() && self.state.flags & PENDING == 0;
            if front.core.peek() != 0 || !is_calm {
                if !mutant!("actor-look-forgotten") {
                    look(front);
                }
                if turn.is_terminated() && !mutant!("actor-force-unseen") {
                    // The next turn is the end.
                    return Outcome::Again;
                }
                if turn.take_cancel().is_some() {
                    front.core.raise(STOP);
                }
                if let Some(outcome) = self.alike(turn, |life, turn| life.attend(turn, &mut budget))
                {
                    return outcome;
                }
            }
            if !budget.take(turn) {
                return Outcome::Again;
            }
            if self.state.has(RANKS)
                && let Some(priority) = self.state.priority()
            {
                match self.next_by_rank(turn, priority) {
                    Popped::Item(envelope) => self.receive_envelope(turn, envelope),
                    Popped::Empty(seen) => return Outcome::Sleep(Sleep::Idle(seen)),
                    Popped::Busy => return Outcome::Again,
                }
                continue;
            }
            match next_message(front) {
                Popped::Item((None, msg)) => self.receive(turn, msg),
                Popped::Item((attached, msg)) => self.receive_attached(turn, attached, msg),
                Popped::Empty(seen) => return Outcome::Sleep(Sleep::Idle(seen)),
                Popped::Busy => return Outcome::Again,
            }
        }
    }

    fn panicked(&mut self, turn: &TurnOf<'_, A::Msg>, caught: Caught) -> Outcome {
        let failure = of_panic(&caught);
        turn.discard(caught);
        let extra = self.state.extra();
        let is_beside = core::mem::take(&mut extra.is_beside);
        let message_type = (!is_beside).then(type_name::<A::Msg>);
        self.end_polled(turn);
        self.state.end_run(false);
        // What is done about it calls much that is not this crate's: that is for the next turn.
        let earlier = self.state.extra().panicked.replace((failure, message_type));
        turn.drop_contained(earlier);
        self.state.set(PENDING, true);
        Outcome::Again
    }

    fn ended(&mut self, turn: &TurnOf<'_, A::Msg>) {
        self.alike(turn, |life, turn| life.cut_short(turn));
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    pub(crate) fn new(factory: F, settings: Option<Box<Settings<A>>>, asks_parent: bool) -> Self {
        Self { actor: None, factory, state: State::new(settings, asks_parent) }
    }

    fn is_running(&self) -> bool {
        self.state.stage == Stage::Running
    }

    /// Handles a user message.
    #[inline]
    fn receive(&mut self, turn: &TurnOf<'_, A::Msg>, msg: A::Msg) {
        if self.state.flags & LOOKS_AT_TIME != 0 {
            self.receive_timed(turn, msg);
            return;
        }
        let Some(actor) = &mut self.actor else { return };
        let mut cx = Context::new(&mut self.state, turn);
        let result = actor.receive(&mut cx, msg);
        self.conclude::<A::Msg>(turn, result);
    }

    /// Handles a user message in its envelope.
    fn receive_envelope(&mut self, turn: &TurnOf<'_, A::Msg>, envelope: Envelope<A::Msg>) {
        self.receive_attached(turn, envelope.header.attached, envelope.msg);
    }

    /// What a handler has returned.
    #[inline]
    pub(crate) fn conclude<T>(&mut self, turn: &TurnOf<'_, A::Msg>, result: Result<Next, Failure>) {
        self.concluded(turn, result, type_name::<T>());
    }

    /// The same for what is known by its name.
    #[inline]
    fn concluded(
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
        if self.state.flags & (UNSTASHES | SETS_TIMEOUT) != 0 {
            self.settle(turn);
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// Does what is the same for all types.
    #[inline]
    fn alike<R>(
        &mut self,
        turn: &TurnOf<'_, A::Msg>,
        what: impl FnOnce(&mut dyn Typed, &AnyTurn<'_>) -> R,
    ) -> R {
        what(&mut Live { cell: self, turn }, &any(turn))
    }

    /// It wants to stop.
    #[cold]
    fn stop(&mut self, turn: &TurnOf<'_, A::Msg>) {
        self.alike(turn, |life, turn| life.stop(turn, None));
    }

    /// It has failed in the handler of something of this name.
    #[cold]
    fn fail(&mut self, turn: &TurnOf<'_, A::Msg>, failure: Failure, name: &'static str) {
        self.alike(turn, |life, turn| life.fail(turn, failure, Some(name)));
    }

    /// Does what a handler has asked for, for when it returns.
    #[cold]
    fn settle(&mut self, turn: &TurnOf<'_, A::Msg>) {
        if self.state.has(UNSTASHES) {
            self.state.put_back();
        }
        if self.state.has(SETS_TIMEOUT) {
            self.state.set(SETS_TIMEOUT, false);
            self.state.restart_idle(turn);
        }
    }
}

/// An actor that watches another must care for its end.
pub(crate) static DEATH_PACT: Coded =
    Coded::new(20, "an actor that it watches has ended, and it did not handle that");

fn of_panic(caught: &Caught) -> Failure {
    Panicked::new(caught.message()).into()
}

#[cold]
fn unhandled(turn: &AnyTurn<'_>, message_type: &'static str) {
    let core = turn.front();
    core.system().events().publish(&SystemEvent::Unhandled(Unhandled {
        pid: turn.pid(),
        path: core.path.clone(),
        message_type,
    }));
}

impl<A: Actor> State<A> {
    /// Puts stashed messages in front of the mailbox, behind those that were put there before.
    pub(crate) fn put_back(&mut self) {
        self.flags &= !UNSTASHES;
        let Some(extra) = &mut self.extra else { return };
        let n = core::mem::take(&mut extra.unstash).min(extra.stash.len());
        // In front of what was put back earlier and not handled yet? No: those are older.
        for _ in 0..n {
            extra.unstashed.extend(extra.stash.pop_front());
        }
        if !extra.unstashed.is_empty() && !mutant!("actor-unstash-unseen") {
            self.flags |= PENDING;
        }
    }
}

#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn pop<M: 'static>(front: &Front<M>) -> Pop<Envelope<M>> {
    // SAFETY: called in a turn only, and a cell has one runner at a time.
    unsafe { front.mail.pop() }
}

/// Makes the memory of the mailbox now, if its bound is small enough to do that.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn reserve<M: 'static>(front: &Front<M>) {
    if !mutant!("actor-mailbox-unreserved") {
        // SAFETY: as in `pop`.
        unsafe { front.mail.reserve() };
    }
}

/// Notes that the runner looks at what it was called for.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn look<M: 'static>(front: &Front<M>) {
    // SAFETY: as in `pop`.
    unsafe { front.mail.look() }
}

/// What an actor with nothing to do goes idle from; none if something has come after all.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
fn see_empty<M: 'static>(front: &Front<M>) -> Option<Seen> {
    // SAFETY: as in `pop`.
    unsafe { front.mail.see_empty() }
}

/// There was nothing to take, and yet it may not sleep. If that is because it was called, then the
/// bit of that call may have been taken down already: the caller raises it before it calls, and a
/// look between the two takes the bit alone. So it is raised again, or it would never look. One
/// that waits for a note looks in any case.
#[cold]
fn look_again<M: 'static>(front: &Front<M>) {
    if !mutant!("actor-call-unseen") {
        front.core.raise(WOKEN);
    }
}

/// The next message and what came along. The rest of the header is left where it is, which needs no
/// drop.
#[expect(unsafe_code, reason = "the runner is the one consumer of the mailbox")]
#[inline]
fn next_message<M: 'static>(front: &Front<M>) -> Popped<(Option<Pooled<Attached>>, M)> {
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
    unsafe { front.mail.pop_by(read) }
}
