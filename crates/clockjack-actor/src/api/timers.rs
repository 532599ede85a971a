//! Timers of an actor: messages that it sends to itself after a delay.
//!
//! # Roles and rules
//!
//! The **cell** has a table of timers, by key, with the message of each timer, or the closure that
//! makes it. The **scheduler** has one job per timer, which knows the actor, a slot of the table
//! and a generation, and nothing about the message. When the job is due, it sends a `TimerFired`:
//! the two numbers, the place of the event among the user messages, and a [`PendingDelivery`]. The
//! event is not in the mailbox, so a full mailbox cannot lose it; the actor handles it after the
//! messages that were in the mailbox when the timer fired, and before all later ones; the module
//! `cell::in_order` has the protocol. The event of a timer that was set with
//! [priority](Timers::priority) is a control message instead.
//!
//! 1. There is one timer per key. Setting a key again reuses the slot of the old timer with a new
//!    generation. An actor never reuses a generation, not even across restarts.
//! 2. When the runner takes the event, the event is valid if its slot is in use, the generation is
//!    the same, and the scheduler has not cancelled the delivery. Otherwise it is dropped, and the
//!    scheduler counts it. So a timer that was cancelled, replaced, or set by an earlier
//!    incarnation of the actor never arrives, no matter where its event was at that time.
//! 3. A one-shot timer is removed from the table before its message reaches the handler.
//! 4. The cell keeps the accepted delivery until the handler has returned, also by a panic, or, if
//!    the handler has begun a wait, until the wait is over; its drop completes the run. So at most
//!    one event of a timer is in flight, and a fixed delay counts from the end of the handler.
//! 5. Before [`PreRestart`](crate::Signal::PreRestart) and [`PostStop`](crate::Signal::PostStop)
//!    the table is emptied; and once more after these hooks. Nothing else empties it, except
//!    `cancel_all`.
//! 6. A refused request changes nothing: the message is returned, and an earlier timer of the key
//!    continues. (Pekko cancels it first.) So the new job is created before the old one is
//!    cancelled, and for that moment both count in the quota.
//!
//! Nobody blocks here: sending the event is one push on a stack, and the runner alone decides
//! whether it is valid.

mod table;

use alloc::boxed::Box;
use core::{any::type_name, fmt, time::Duration};

use clockjack_exec::Pid;
use clockjack_sched::{
    AcceptedDelivery, Cancellable, DeliverySink, DeliveryTask, DispatcherId, ExecutionBatch,
    JobSpec, PendingDelivery, ScheduleError,
};
use clockjack_time::TimerInstant;

pub(crate) use self::table::{Source, Timer, TimerTable};
use crate::{
    Actor, Context,
    carried_span::{self, CarriedSpan, HAS_SPANS},
    cell::{
        Cell, CellState, HAS_TIMERS, PollOf, any, drop_reported,
        envelope::{Attached, Envelope},
        header::{ActorHeader, AnyActor, SYSTEM_QUEUE, SystemSend},
        in_order::DueTimers,
        pool_box::PoolBox,
        shared::next_position,
    },
    mailbox::{
        control::{Control, TimerFired},
        system_queue::TimerNode,
    },
    receive_timeout::ReceiveTimeout,
    scheduler,
    testing::{Effect, TimerMode},
};

/// The key of a timer: a text, a number, or both.
///
/// # Examples
///
/// ```
/// use clockjack_actor::Key;
///
/// assert_ne!(Key::from("retry"), Key::from(("retry", 7)));
/// assert_eq!(Key::from(7).to_string(), "7");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Name);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Text(&'static str),
    Number(u64),
    Both(&'static str, u64),
}

impl From<&'static str> for Key {
    fn from(text: &'static str) -> Self {
        Self(Name::Text(text))
    }
}

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        Self(Name::Number(number))
    }
}

impl From<(&'static str, u64)> for Key {
    fn from((text, number): (&'static str, u64)) -> Self {
        Self(Name::Both(text, number))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Name::Text(text) => f.write_str(text),
            Name::Number(number) => write!(f, "{number}"),
            Name::Both(text, number) => write!(f, "{text} {number}"),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The timers of one actor and its current runs; allocated on first use.
pub(crate) struct ActorTimers<M> {
    pub(crate) table: TimerTable<M>,
    /// Timers that have fired and wait for their place among the user messages.
    pub(crate) due: DueTimers,
    pub(crate) receive_timeout: ReceiveTimeout,
    /// The run that the current handler was called for.
    pub(crate) run: Option<AcceptedDelivery>,
    /// The run whose handler has begun the wait in progress.
    pub(crate) in_wait: Option<AcceptedDelivery>,
}

impl<M> Default for ActorTimers<M> {
    fn default() -> Self {
        Self {
            table: TimerTable::default(),
            due: DueTimers::default(),
            receive_timeout: ReceiveTimeout::default(),
            run: None,
            in_wait: None,
        }
    }
}

/// The timers of an actor: [`Context::timers`].
///
/// A timer that was cancelled, replaced, or set before a restart never arrives, even if its message
/// was on its way. See the [module](self) for the rules.
///
/// The message of a timer overtakes nothing: it is handled as if the timer had sent it to the actor
/// when it fired, behind the messages that were in the mailbox, and, in a mailbox with priorities,
/// by its priority. A full mailbox does not lose it. [`priority`](Self::priority) is for timers
/// that must not wait.
///
/// # Examples
///
/// ```
/// # use clockjack_actor::{Actor, Context, Failure, Next};
/// # use core::time::Duration;
/// enum Msg {
///     Connected,
///     Beat,
///     TooLate,
/// }
/// # struct Session;
///
/// impl Actor for Session {
///     type Msg = Msg;
///
///     fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
///         cx.timers().single("login", Duration::from_secs(5), Msg::TooLate)?;
///         cx.timers().fixed_rate("beat", Duration::from_secs(10), || Msg::Beat)?;
///         Ok(Next::Stay)
///     }
///
///     fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
///         match msg {
///             Msg::Connected => _ = cx.timers().cancel("login"),
///             Msg::Beat => {}
///             Msg::TooLate => return Ok(Next::Stop),
///         }
///         Ok(Next::Stay)
///     }
/// }
/// ```
pub struct Timers<'c, A: Actor> {
    state: &'c mut CellState<A>,
    poll: &'c PollOf<'c, A::Msg>,
    has_priority: bool,
}

impl<'c, A: Actor> Timers<'c, A> {
    pub(crate) fn new(state: &'c mut CellState<A>, poll: &'c PollOf<'c, A::Msg>) -> Self {
        Self { state, poll, has_priority: false }
    }
}

impl<A: Actor> Timers<'_, A> {
    /// The same timers; those that are set through the result send control messages, as
    /// [`tell_control`](crate::ActorRef::tell_control) does: their messages are handled before the
    /// user messages that wait in the mailbox, and also while the actor
    /// [waits](Context::wait) for a future. For example, to give up a wait:
    ///
    /// ```
    /// # use clockjack_actor::{Actor, Context, Failure};
    /// # use core::time::Duration;
    /// # fn set<A: Actor<Msg = &'static str>>(cx: &mut Context<'_, A>) -> Result<(), Failure> {
    /// cx.timers().priority().single("deadline", Duration::from_secs(5), "give up")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it only affects timers that are set through the result"]
    pub fn priority(self) -> Self {
        Self { has_priority: true, ..self }
    }

    /// Sends `msg` once, after `delay`. The timer is no longer active when the message is handled.
    ///
    /// # Errors
    ///
    /// Returns the message if the scheduler refuses it: because the delay is invalid, because there
    /// is no room, or after its shutdown. An earlier timer of the key then continues.
    pub fn single(
        &mut self,
        key: impl Into<Key>,
        delay: Duration,
        msg: A::Msg,
    ) -> Result<(), ScheduleError<A::Msg>> {
        match self.set(key.into(), JobSpec::once(delay)) {
            Ok(place) => {
                self.fill(place, Source::Once(msg));
                Ok(())
            }
            Err(refused) => Err(refused.map(|()| msg)),
        }
    }

    /// Sends `msg` once, at an instant; at once if the instant has passed.
    ///
    /// # Errors
    ///
    /// As [`single`](Self::single).
    pub fn at(
        &mut self,
        key: impl Into<Key>,
        instant: TimerInstant,
        msg: A::Msg,
    ) -> Result<(), ScheduleError<A::Msg>> {
        let now = self.poll.shared().header.system().jobs().now();
        self.single(key, instant.since(now), msg)
    }

    /// Sends the messages that `msg` makes at a fixed rate, the first one after one period. Runs
    /// that become due while a message is in flight are reported in the
    /// [batch](Context::scheduler_batch) of a later one, or sent one by one, depending on the
    /// policy.
    ///
    /// # Errors
    ///
    /// As [`single`](Self::single); the closure is dropped.
    pub fn fixed_rate(
        &mut self,
        key: impl Into<Key>,
        period: Duration,
        msg: impl FnMut() -> A::Msg + Send + 'static,
    ) -> Result<(), ScheduleError<()>> {
        self.fixed_rate_after(key, period, period, msg)
    }

    /// As [`fixed_rate`](Self::fixed_rate), with the first message after `initial`.
    ///
    /// # Errors
    ///
    /// As [`single`](Self::single); the closure is dropped.
    pub fn fixed_rate_after(
        &mut self,
        key: impl Into<Key>,
        initial: Duration,
        period: Duration,
        msg: impl FnMut() -> A::Msg + Send + 'static,
    ) -> Result<(), ScheduleError<()>> {
        let place = self.set(key.into(), JobSpec::fixed_rate(initial, period))?;
        self.fill(place, Source::Every(Box::new(msg)));
        Ok(())
    }

    /// Sends the messages that `msg` makes: the first one after `delay`, and each further one
    /// `delay` after the handler has returned or the wait that it began is over.
    ///
    /// # Errors
    ///
    /// As [`single`](Self::single); the closure is dropped.
    pub fn fixed_delay(
        &mut self,
        key: impl Into<Key>,
        delay: Duration,
        msg: impl FnMut() -> A::Msg + Send + 'static,
    ) -> Result<(), ScheduleError<()>> {
        self.fixed_delay_after(key, delay, delay, msg)
    }

    /// As [`fixed_delay`](Self::fixed_delay), with the first message after `initial`.
    ///
    /// # Errors
    ///
    /// As [`single`](Self::single); the closure is dropped.
    pub fn fixed_delay_after(
        &mut self,
        key: impl Into<Key>,
        initial: Duration,
        delay: Duration,
        msg: impl FnMut() -> A::Msg + Send + 'static,
    ) -> Result<(), ScheduleError<()>> {
        let place = self.set(key.into(), JobSpec::fixed_delay(initial, delay))?;
        self.fill(place, Source::Every(Box::new(msg)));
        Ok(())
    }

    /// Cancels a timer: its message does not arrive, even if it was already due. False if there is
    /// no such timer.
    pub fn cancel(&mut self, key: impl Into<Key>) -> bool {
        let Some(timers) = self.state.timers_mut() else { return false };
        let key = key.into();
        let Some((slot, _)) = timers.table.place(key) else { return false };
        let Some(cancelled) = self.state.cancel_timer(slot) else { return false };
        if cancelled.was_active {
            self.state.record(|| Effect::TimerCancelled { key });
        }
        cancelled.was_active
    }

    /// Cancels all timers.
    pub fn cancel_all(&mut self) {
        while let Some(cancelled) = self.state.cancel_last_timer() {
            if cancelled.was_active {
                self.state.record(|| Effect::TimerCancelled { key: cancelled.timer.key });
            }
        }
    }

    /// Whether a message of this timer may still arrive.
    #[must_use]
    pub fn is_active(&self, key: impl Into<Key>) -> bool {
        let timers = self.state.rare.as_ref().and_then(|rare| rare.timers.as_ref());
        timers.is_some_and(|timers| timers.table.get(key.into()).is_some_and(Timer::is_active))
    }

    /// Creates the job of a timer. An earlier timer of the key is unchanged until `fill` is called.
    fn set(&mut self, key: Key, spec: JobSpec) -> Result<PreparedTimer, ScheduleError<()>> {
        let header = &self.poll.shared().header;
        let jobs = header.system().jobs();
        let dispatcher = self.state.dispatcher();
        let class = type_name::<A>();
        let spec = spec.policy(scheduler::policy(jobs, dispatcher, None, &header.path, class));
        let timers = &mut self.state.timers_or_new().table;
        let (slot, generation) = timers.choose_slot(key);
        let actor = crate::actor_ref::untyped(self.poll.self_ref());
        let node = timers.node(slot).clone();
        let task = TimerTask { actor, node, slot, generation };
        let job = jobs.schedule_delivery(spec, task).map_err(ScheduleError::discard)?;
        let overriding = timers.get(key).is_some_and(Timer::is_active);
        let (delay, mode) = (spec.delay, TimerMode::of(&spec));
        self.state.record(|| Effect::TimerScheduled { key, delay, mode, overriding });
        Ok(PreparedTimer { key, slot, generation, job })
    }

    fn fill(&mut self, place: PreparedTimer, source: Source<A::Msg>) {
        let PreparedTimer { key, slot, generation, job } = place;
        let has_priority = self.has_priority;
        let timer = Timer { key, generation, job, source, has_priority, is_due: false };
        let timers = self.state.timers_or_new();
        let old = timers.table.insert(slot, timer);
        timers.due.reserve(timers.table.n_slots());
        self.state.set(HAS_TIMERS, true);
        if let Some(old) = old {
            drop(self.state.cancel_removed(slot, &old));
        }
    }
}

impl<A: Actor> fmt::Debug for Timers<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").finish_non_exhaustive()
    }
}

/// A timer that has its job, but not its message yet.
struct PreparedTimer {
    key: Key,
    slot: u32,
    generation: u32,
    job: Cancellable,
}

/// A timer that was removed and cancelled. Its drop calls user code.
struct CancelledTimer<M> {
    timer: Timer<M>,
    /// The message that was made when the timer was ranked by its priority.
    made: Option<M>,
    was_active: bool,
}

/// The scheduler's part of a timer.
struct TimerTask {
    actor: AnyActor,
    /// The node of the slot.
    node: TimerNode,
    slot: u32,
    generation: u32,
}

impl DeliveryTask for TimerTask {
    type Sink = Self;

    const NOTIFY_CANCEL: bool = false;

    fn sink(&self) -> Self {
        let (actor, node) = (self.actor.clone(), self.node.clone());
        Self { actor, node, slot: self.slot, generation: self.generation }
    }
}

impl DeliverySink for TimerTask {
    fn deliver(self, delivery: PendingDelivery) {
        let Self { actor, node, slot, generation } = self;
        // Before the event is pushed: rule 1 of `in_order`.
        let position = next_position(&actor);
        let fired = TimerFired { slot, generation, position, delivery };
        match actor.system_queue.push_timer_fired(&node, fired) {
            // The event of an earlier timer in this slot, which is no longer current.
            Ok(stale) => drop(stale),
            // The actor has stopped, and its timers with it.
            Err(fired) => return fired.delivery.complete_job(),
        }
        actor.wake_with(SYSTEM_QUEUE);
    }
}

impl<A: Actor> CellState<A> {
    pub(crate) fn timers_or_new(&mut self) -> &mut ActorTimers<A::Msg> {
        self.rare().timers.get_or_insert_default()
    }

    pub(crate) fn timers_mut(&mut self) -> Option<&mut ActorTimers<A::Msg>> {
        self.rare.as_mut()?.timers.as_deref_mut()
    }

    /// Removes and cancels a timer.
    fn cancel_timer(&mut self, slot: u32) -> Option<CancelledTimer<A::Msg>> {
        let timer = self.timers_mut()?.table.remove_slot(slot)?;
        let was_active = timer.is_active();
        let made = self.cancel_removed(slot, &timer);
        Some(CancelledTimer { timer, made, was_active })
    }

    /// As [`cancel_timer`](Self::cancel_timer), for any timer.
    fn cancel_last_timer(&mut self) -> Option<CancelledTimer<A::Msg>> {
        let slot = self.timers_mut()?.table.last_slot()?;
        self.cancel_timer(slot)
    }

    /// Cancels a timer that is no longer in this slot, with an event of it that waits. Returns the
    /// message that was made of the event.
    fn cancel_removed(&mut self, slot: u32, timer: &Timer<A::Msg>) -> Option<A::Msg> {
        // First, so that the scheduler counts the event as discarded.
        timer.job.cancel();
        if !timer.is_due {
            return None;
        }
        let rare = self.rare();
        let fired = rare.timers.as_mut().and_then(|timers| timers.due.remove(slot));
        drop(fired);
        rare.by_priority.remove_timer(slot)
    }

    pub(crate) fn dispatcher(&self) -> DispatcherId {
        let settings = self.settings.as_ref();
        settings.map_or(DispatcherId::DEFAULT, |settings| settings.dispatcher)
    }

    /// The envelope of a message that its handler stashes: with its batch.
    pub(crate) fn put_aside(&mut self, poll: &PollOf<'_, A::Msg>, msg: A::Msg) -> Envelope<A::Msg> {
        let (batch, sender) = self.rare.as_ref().map_or((None, None), |e| (e.batch, e.sender));
        let span = self.current_span(&poll.shared().header);
        if batch.is_none() && sender.is_none() && span.is_none() {
            return Envelope::new(msg);
        }
        let receiver = crate::actor_ref::untyped(poll.self_ref());
        Envelope::with(msg, Attached { receiver, delivery: None, batch, sender, span })
    }

    /// The span in which the actor runs now, for what it puts aside or starts.
    pub(crate) fn current_span(&self, header: &ActorHeader) -> CarriedSpan {
        if self.has(HAS_SPANS) { CarriedSpan::current(header) } else { CarriedSpan::default() }
    }

    /// Whether a future that the actor waits for holds back user messages.
    pub(crate) fn is_waiting(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.futures.is_waiting())
    }

    /// Records what the next handler is called for.
    pub(crate) fn start_run(&mut self, batch: Option<ExecutionBatch>, sender: Option<Pid>) {
        let rare = self.rare();
        rare.batch = batch;
        rare.sender = sender;
    }

    /// The handler has returned, or panicked. Its run is complete, unless it `waits`: then it is
    /// complete when the wait is over.
    pub(crate) fn finish_run(&mut self, waits: bool) {
        let Some(rare) = &mut self.rare else { return };
        rare.batch = None;
        rare.sender = None;
        let Some(timers) = &mut rare.timers else { return };
        let Some(run) = timers.run.take() else { return };
        if waits {
            timers.in_wait = Some(run);
        }
    }

    /// Completes the run whose handler has begun a wait, if the wait is over. A wait that follows
    /// immediately counts as the same one.
    pub(crate) fn finish_wait(&mut self) {
        if !self.is_waiting() {
            self.clear_wait();
        }
    }

    fn clear_wait(&mut self) {
        if let Some(timers) = self.timers_mut() {
            timers.in_wait = None;
        }
    }
}

impl<A: Actor, F: FnMut() -> A + 'static> Cell<A, F> {
    /// A timer has fired: handles its message, if it is still valid; or the one that was made of it
    /// before.
    pub(crate) fn timer_fired(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        fired: TimerFired,
        made: Option<A::Msg>,
    ) {
        let TimerFired { slot, generation, position: _, delivery } = fired;
        let Some(timers) = self.state.timers_mut() else { return };
        let Some(timer) = timers.table.current_mut(slot, generation) else { return };
        timer.is_due = false;
        let Some(run) = delivery.accept() else {
            // The scheduler has cancelled it: it was too far behind, or there is a shutdown.
            let timer = timers.table.remove_slot(slot);
            drop_reported(&any(poll), (timer, made));
            return;
        };
        let batch = run.fire().batch();
        timers.run = Some(run);
        // Not inside `catch_unwind`, as a handler: if the closure panics, the run is complete, and
        // the actor has failed.
        let Some(msg) = made.or_else(|| timers.table.take_message(slot)) else { return };
        self.state.start_run(Some(batch), None);
        self.receive_with_timers(poll, msg);
    }

    /// Handles a message with attachments, if it was not cancelled.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive_attached(
        &mut self,
        poll: &PollOf<'_, A::Msg>,
        attached: Option<PoolBox<Attached>>,
        msg: A::Msg,
    ) {
        if let Some(attached) = attached {
            let Attached { receiver: _, delivery, mut batch, sender, span } = attached.into_inner();
            if let Some(delivery) = delivery {
                let Some(run) = delivery.accept() else {
                    drop_reported(&any(poll), msg);
                    return;
                };
                batch = Some(run.fire().batch());
                self.state.timers_or_new().run = Some(run);
            }
            self.state.start_run(batch, sender);
            self.state.rare().span = span;
        }
        self.receive_with_timers(poll, msg);
    }

    /// Handles a message in an actor that uses timers or a receive timeout, or whose messages have
    /// spans.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive_with_timers(&mut self, poll: &PollOf<'_, A::Msg>, msg: A::Msg) {
        let was_waiting = self.state.is_waiting();
        let influences = self.state.influences(&msg);
        let rare = self.state.rare.as_mut();
        let span = rare.map_or_else(CarriedSpan::default, |rare| core::mem::take(&mut rare.span));
        let has_spans = self.state.has(HAS_SPANS);
        let Some(actor) = &mut self.actor else { return };
        let mut cx = Context::new(&mut self.state, poll);
        let receive = || actor.receive(&mut cx, msg);
        let result = if has_spans {
            carried_span::handle(&any(poll), span, type_name::<A::Msg>(), receive)
        } else {
            receive()
        };
        self.state.finish_run(!was_waiting && self.state.is_waiting());
        self.handle_result::<A::Msg>(poll, result);
        if influences {
            self.state.restart_receive_timeout(poll);
        }
    }

    /// Cancels the timers that this incarnation of the actor has set.
    pub(crate) fn cancel_timers(&mut self, poll: &PollOf<'_, A::Msg>) {
        self.state.finish_run(false);
        self.state.clear_wait();
        self.state.cancel_receive_timeout();
        if self.state.timers_mut().is_none() {
            return;
        }
        while let Some(CancelledTimer { timer, made, .. }) = self.state.cancel_last_timer() {
            drop_reported(&any(poll), timer);
            drop_reported(&any(poll), made);
        }
        self.state.rare().control.retain(|item| matches!(item, Control::Message(_)));
    }
}
