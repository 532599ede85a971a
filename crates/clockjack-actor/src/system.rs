//! [`ActorSystem`]: guardians, dispatchers, scheduler, events and shutdown.

mod actor_stats;
mod builder;
mod dispatchers;
mod guardian;
mod listed_filter;
mod metrics;
mod own_thread;
mod pressure;
mod records;
mod refusals;
mod saturated_count;
mod shutdown;
mod stop_waiters;
mod termination;
mod uncounted;

use alloc::{boxed::Box, string::ToString as _, vec::Vec};
use core::{
    any::{TypeId, type_name},
    fmt,
    mem::ManuallyDrop,
    task::Waker,
    time::Duration,
};

use clockjack_exec::{Handle, Pid, memory::Memory};
use clockjack_sched::DispatcherId;
use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    spin_lock::SpinLock,
    splitmix,
};

use self::listed_filter::ListedFilter;
pub(crate) use self::records::id as actor_id;
pub use self::{
    actor_stats::ActorStats,
    builder::{FailedStart, HostParts, SystemBuilder},
    dispatchers::{DispatcherConfig, DispatcherHost, DispatcherKind, Pinned},
    metrics::SystemMetrics,
    own_thread::{OwnThread, PolicyAnswer, PolicyAnswers, RealtimeClass, ThreadPolicy},
    shutdown::ShutdownTask,
    stop_waiters::Stopped,
    termination::{Termination, TerminationReport},
    uncounted::UncountedSystem,
};
use crate::{
    ActorError, ActorPath, ActorRef, Directive, EventKinds, FailureEventHub, FailureInfo,
    IntoProps, LookupError, MsgOf, Receptionist, Scheduler, SpawnError,
    ask::{pool::SlotPool, waiting::Asks},
    carried_span::SpanSource,
    cell::{
        header::{ActorHeader, AnyActor, PREPARE, SATURATED, STOP, SystemSend},
        spawn,
    },
    error::{ActorErrorKind, LookupErrorKind, SpawnErrorKind},
    escalation::Escalations,
    events::{
        DeadLetter, DeadLetterReason, EventStream, Lifecycle, LifecycleStep, RootFailure,
        SystemEvent,
    },
    mailbox::dead_letters,
    room::{Segments, with_room},
    shutdown::Reason,
};

/// A handle to an actor system. Cheap to clone.
pub struct ActorSystem(Arc<SystemInner>);

/// In `handles`: the last actor has stopped.
const TERMINATED: usize = 1;
/// In `handles`: the value of one handle.
const HANDLE: usize = 2;

/// The state that all actors and handles of a system share.
pub(crate) struct SystemInner {
    name: Box<str>,
    /// A handle to this system that does not count as a reference, so that code that keeps the
    /// system alive anyway can borrow it.
    uncounted_self: SpinLock<Option<ManuallyDrop<ActorSystem>>>,
    default: Handle,
    scheduler: Scheduler,
    events: EventStream,
    seed: u64,
    guardians: SpinLock<Option<Guardians>>,
    /// Broadcasts failures that have reached the root.
    hub: FailureEventHub,
    escalations: Escalations,
    /// Whether there is a sink, to which refused failures are offered again.
    has_sink: bool,
    on_escalation: Vec<OnEscalation>,
    on_failure: Vec<OnFailure>,
    on_refusals: Vec<refusals::OnRefusals>,
    /// The observer of failures at the root; `None` while it is being called.
    root_observer: SpinLock<Option<RootObserver>>,
    terminates_on_escalation: bool,
    stop_timeout: Duration,
    deferred_drops: SpinLock<DeferredDrops>,
    termination: termination::TerminationState,
    shutdown: shutdown::SystemShutdown,
    stop_waiters: stop_waiters::StopWaiters,
    listed_filter: ListedFilter,
    /// The number of names that the system has chosen.
    names: AtomicUsize,
    counters: metrics::SystemCounters,
    receptionist: Receptionist,
    /// Message types whose dead letters are suppressed.
    suppressed: Vec<TypeId>,
    /// The number of handles, and whether the last actor has stopped.
    handles: AtomicUsize,
    /// The dead-letter reference. It keeps this structure alive, so it is dropped with the last
    /// handle or after the last actor, whichever comes later.
    dead_letters: SpinLock<uncounted::DeadLetters>,
    is_sealed: AtomicBool,
    dispatchers: dispatchers::Dispatchers,
    saturated: saturated_count::SaturatedCount,
    refusals: refusals::RefusalWindow,
    slots: SlotPool,
    asks: Asks,
    spans: SpanSource,
}

type OnEscalation = Box<dyn Fn(&FailureInfo) + Send + Sync>;

type OnFailure = Box<dyn Fn(&ActorSystem, &FailureInfo) + Send + Sync>;

type RootObserver = Box<dyn FnMut(&RootFailure) + Send>;

/// Actor cells whose last reference was held by a child that has been freed.
#[derive(Default)]
struct DeferredDrops {
    cells: Segments<AnyActor>,
    /// A thread is dropping them.
    is_draining: bool,
}

/// The three guardians.
#[derive(Clone)]
struct Guardians {
    root: AnyActor,
    user: AnyActor,
    system: AnyActor,
}

impl ActorSystem {
    /// A builder for a system with this name.
    #[must_use]
    pub fn builder(name: &str) -> SystemBuilder {
        SystemBuilder::new(name)
    }

    /// The name of the system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Starts an actor under `/user`.
    ///
    /// # Errors
    ///
    /// Returns the props to the caller if the name is taken or invalid, if the props contradict
    /// each other, if there is no room, or if the system is terminating.
    pub fn spawn<P>(&self, name: &str, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        match self.0.user() {
            Some(user) => spawn::spawn_send(&user, true, name, props),
            None => Err(SpawnError::new(SpawnErrorKind::Stopping, props)),
        }
    }

    /// As [`spawn`](Self::spawn), with a name that the system chooses, like `$7`.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_anonymous<P>(&self, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        match self.0.user() {
            Some(user) => spawn::spawn_anonymous(&user, true, props),
            None => Err(SpawnError::new(SpawnErrorKind::Stopping, props)),
        }
    }

    /// Stops an actor that is a direct child of `/user`.
    ///
    /// # Errors
    ///
    /// If the actor is not a direct child of `/user`.
    pub fn stop<M: 'static>(&self, top_level: &ActorRef<M>) -> Result<(), ActorError<()>> {
        let actor = top_level.any();
        let is_below = |user: &AnyActor| actor.parent.as_ref().is_some_and(|up| up.ptr_eq(user));
        let is_child =
            self.0.guardians.with(|all| all.as_ref().map(|guardians| is_below(&guardians.user)));
        let Some(is_child) = is_child else { return Ok(()) };
        if !is_child {
            return Err(ActorError::new(ActorErrorKind::NotAChild(actor.path.clone()), ()));
        }
        actor.wake_with(STOP);
        Ok(())
    }

    /// Looks up the actor at a path like `/user/a/b`.
    ///
    /// # Errors
    ///
    /// [`LookupError`]: if the text is not a path, if there is no actor at the path, or if the
    /// actor receives messages of another type.
    pub fn lookup<M: 'static>(&self, path: &str) -> Result<ActorRef<M>, LookupError> {
        let names = path.strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>());
        let names = match names {
            Some(names) if names.iter().all(|name| !name.is_empty()) => names,
            _ => return Err(LookupError::new(LookupErrorKind::NotAPath, path)),
        };
        let found = self.0.guardians().and_then(|guardians| spawn::find(&guardians.root, &names));
        let found = found.ok_or_else(|| LookupError::new(LookupErrorKind::NotFound, path))?;
        let other = || LookupError::new(LookupErrorKind::OtherMessages, path);
        spawn::typed(&found).ok_or_else(other)
    }

    /// The paths of all actors, each before its descendants.
    #[must_use]
    pub fn tree(&self) -> Vec<ActorPath> {
        self.actors().into_iter().map(|(_, path)| path).collect()
    }

    /// As [`tree`](Self::tree), with the pid of each actor.
    #[must_use]
    pub fn actors(&self) -> Vec<(Pid, ActorPath)> {
        let guardians = self.0.guardians();
        let all = guardians.map_or_else(Vec::new, |guardians| spawn::descendants(&guardians.root));
        all.iter().map(|actor| (actor.pid(), actor.path.clone())).collect()
    }

    /// Removes and returns the failures that have reached the root and that no sink has accepted,
    /// the oldest first. Without a sink, these are all failures at the root.
    #[must_use = "the taken failures are not offered to a sink again"]
    pub fn take_escalations(&self) -> Vec<FailureInfo> {
        self.0.escalations.take_escalations()
    }

    /// The hub that broadcasts each failure that reaches the root: after the [event
    /// stream](Self::events) has published it, and before the builder's listeners and the sink
    /// receive it. Subscribers are called on the thread of the root; if one panics, the others are
    /// called all the same.
    ///
    /// The hub may be kept after the system has terminated; it reports nothing then.
    #[must_use]
    pub fn failure_hub(&self) -> &FailureEventHub {
        &self.0.hub
    }

    /// The executor of the default dispatcher, for futures and processes that are to share its
    /// workers and its clock with the actors.
    #[must_use]
    pub fn executor(&self) -> Handle {
        self.0.default.clone()
    }

    /// The executor of a dispatcher; `None` if there is no such dispatcher.
    #[must_use]
    pub fn executor_of(&self, dispatcher: DispatcherId) -> Option<Handle> {
        self.0.executor(dispatcher)
    }

    /// The scheduler, which sends messages and runs jobs at given times.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// The event stream, which reports what happens in the system.
    #[must_use]
    pub fn events(&self) -> &EventStream {
        &self.0.events
    }

    /// The receptionist, with which actors register services and find those of others.
    #[must_use]
    pub fn receptionist(&self) -> &Receptionist {
        &self.0.receptionist
    }

    /// A reference that turns every message into a dead letter, with [this
    /// reason](DeadLetterReason::Addressed). The message is dropped by the sender.
    #[must_use]
    pub fn dead_letters<M: 'static>(&self) -> ActorRef<M> {
        let dead_letters = self.0.dead_letters.with(|place| place.address.clone());
        dead_letters::address(&dead_letters.expect("present while there is a handle"))
    }

    /// Starts an actor under `/system`, on which other actors rely: it is stopped after all actors
    /// under `/user`.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_system<P>(&self, name: &str, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        match self.0.guardians() {
            Some(guardians) => spawn::spawn_send(&guardians.system, true, name, props),
            None => Err(SpawnError::new(SpawnErrorKind::Stopping, props)),
        }
    }

    /// For hosts: reports a message of type `M` that will not be handled.
    #[doc(hidden)]
    pub fn report_dead_letter<M: 'static>(&self, recipient: &ActorPath, reason: DeadLetterReason) {
        self.0.dead_letter::<M>(recipient, reason);
    }

    /// Returns a future that completes when the system has terminated, for whatever reason.
    pub fn when_terminated(&self) -> Termination {
        Termination::new(self.0.clone())
    }

    pub(crate) fn inner(&self) -> &SystemInner {
        &self.0
    }
}

impl SystemInner {
    pub(crate) fn user(&self) -> Option<AnyActor> {
        self.guardians.with(|all| all.as_ref().map(|guardians| guardians.user.clone()))
    }

    pub(crate) fn root_guardian(&self) -> Option<AnyActor> {
        self.guardians().map(|guardians| guardians.root)
    }

    fn guardians(&self) -> Option<Guardians> {
        self.guardians.with(|guardians| guardians.clone())
    }

    /// Borrows a handle to this system.
    #[expect(unsafe_code, reason = "borrows a handle that is not reference-counted")]
    pub(crate) fn handle(&self) -> &ActorSystem {
        let me = self
            .uncounted_self
            .with(|me| me.as_ref().map(|me| core::ptr::from_ref::<ActorSystem>(me)));
        let me = me.expect("set before the first actor starts");
        // SAFETY: the handle is a field of `self`, and is set once and never changed.
        unsafe { &*me }
    }

    /// The spans of messages.
    pub(crate) fn spans(&self) -> &SpanSource {
        &self.spans
    }

    pub(crate) fn events(&self) -> &EventStream {
        &self.events
    }

    /// The scheduler without the part that sends messages.
    pub(crate) fn jobs(&self) -> &clockjack_sched::Scheduler {
        self.scheduler.jobs()
    }

    /// The executor of a dispatcher other than the default one.
    pub(crate) fn executor(&self, dispatcher: DispatcherId) -> Option<Handle> {
        self.dispatchers.find(dispatcher)
    }

    /// Called when an actor was started on a dispatcher.
    pub(crate) fn actor_started_on(&self, dispatcher: DispatcherId) {
        if dispatcher != DispatcherId::DEFAULT {
            self.dispatchers.started(dispatcher);
        }
    }

    /// The executor of the default dispatcher, whose timers also run the time-outs of asks.
    pub(crate) fn default_executor(&self) -> &Handle {
        &self.default
    }

    /// The pool of memory blocks of stopped actors, for reuse.
    pub(crate) fn memory(&self) -> &Memory {
        self.default.executor().memory()
    }

    /// The pool of reply slots.
    pub(crate) fn slots(&self) -> &SlotPool {
        &self.slots
    }

    /// The pending asks between actors, keyed by the addresses of the actors' cells.
    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    pub(crate) fn is_sealed(&self) -> bool {
        // Acquire: pairs with `seal`.
        self.is_sealed.load(Acquire)
    }

    pub(crate) fn seal(&self) {
        // Release: publishes everything that was allocated before.
        self.is_sealed.store(true, Release);
        self.hub.seal();
        self.report_refusals();
        let guardians = self.guardians();
        for actor in guardians.iter().flat_map(|guardians| spawn::descendants(&guardians.root)) {
            actor.parent_link_or_new();
            actor.wake_with(PREPARE);
        }
    }

    /// Reports a dead letter.
    pub(crate) fn dead_letter<M: 'static>(&self, recipient: &ActorPath, reason: DeadLetterReason) {
        self.dead_letter_of(recipient, type_name::<M>(), TypeId::of::<M>(), reason);
    }

    #[cold]
    pub(crate) fn dead_letter_of(
        &self,
        recipient: &ActorPath,
        message_type: &'static str,
        id: TypeId,
        reason: DeadLetterReason,
    ) {
        let is_suppressed = self.suppressed.contains(&id);
        self.counters.dead_letter(reason, is_suppressed);
        self.record(records::dead_letter(reason));
        let kind = if is_suppressed {
            EventKinds::SUPPRESSED_DEAD_LETTER
        } else {
            EventKinds::DEAD_LETTER
        };
        if !self.events.wants(kind) {
            return;
        }
        let letter = DeadLetter { recipient: recipient.clone(), message_type, reason };
        self.events.publish_quietly(&if is_suppressed {
            SystemEvent::SuppressedDeadLetter(letter)
        } else {
            SystemEvent::DeadLetter(letter)
        });
    }

    /// The number of the next name that the system chooses.
    pub(crate) fn next_name(&self) -> usize {
        // Relaxed: only the number itself matters.
        self.names.fetch_add(1, Relaxed) + 1
    }

    /// The filter that says which actors may be listed in a table.
    pub(crate) fn listed_filter(&self) -> &ListedFilter {
        &self.listed_filter
    }

    /// Called when an actor was spawned.
    pub(crate) fn spawned(&self, pid: Pid) {
        self.counters.spawned(pid);
    }

    /// Called when an actor has started, was restarted or has stopped.
    pub(crate) fn lifecycle_changed(&self, pid: Pid, header: &ActorHeader, step: LifecycleStep) {
        self.counters.lifecycle_changed(pid, step);
        self.record(records::lifecycle(pid, header, step));
        if step == LifecycleStep::Stopped && self.listed_filter.may_contain(pid) {
            self.events.remove_actor(pid);
            self.receptionist.remove_actor(pid);
            self.stop_waiters.wake_waiters_of(pid, &self.default);
        }
        if self.events.wants(EventKinds::LIFECYCLE) {
            let path = header.path.clone();
            self.events.publish(&SystemEvent::Lifecycle(Lifecycle { pid, path, step }));
        }
        if step == LifecycleStep::Stopped && header.flags() & SATURATED != 0 {
            header.clear_flags(SATURATED);
            self.mailbox_relieved();
        }
        if step == LifecycleStep::Stopped && is_user_guardian(header) {
            // Has no effect if the system is already terminating.
            self.terminate(Reason::new("the user guardian has stopped"));
        }
    }

    pub(crate) fn mailbox_overflowed(&self, path: &ActorPath) {
        self.events.publish_quietly(&SystemEvent::MailboxOverflow(path.clone()));
    }

    /// Called when an actor has failed and the decision about the failure, if there is one to make,
    /// has been made: counts the failure, and reports it to the listeners and to the event stream.
    pub(crate) fn failed(&self, info: &FailureInfo) {
        self.counters.failed(info.actor);
        if let Some(event) = records::failure(info) {
            self.record(event);
        }
        for listener in &self.on_failure {
            call_catching_panics(&self.default, &mut || listener(self.handle(), info));
        }
        if self.events.wants(EventKinds::FAILURE) {
            self.events.publish(&SystemEvent::Failure(info.clone()));
        }
    }

    /// Called when a failure has reached the root, where no strategy can decide any more. Returns
    /// whether the system continues; in that case the caller has to tell the descendants what to
    /// do.
    pub(crate) fn root_failed(
        &self,
        mut info: FailureInfo,
        catch_unwind: &dyn Fn(&mut dyn FnMut()),
    ) -> bool {
        info.directive = Some(Directive::Stop);
        self.record(RootFailure::new(0, &info).record().event);
        self.observe_root(&info, catch_unwind);
        self.failed(&info);
        self.hub.publish_with(&info, |call| catch_unwind(call));
        for listener in &self.on_escalation {
            catch_unwind(&mut || listener(&info));
        }
        let text = info.to_string();
        if self.has_sink {
            // The failures that already wait are older, so they are offered first.
            catch_unwind(&mut || _ = self.escalations.retry());
        }
        let mut offer = Some(info);
        // A failure that the sink refuses is kept and offered again. If there is no room to keep
        // it, `offer` counts it as dropped.
        catch_unwind(&mut || _ = offer.take().map(|info| self.escalations.offer(info)));
        if self.terminates_on_escalation {
            self.terminate(Reason::new(text));
        }
        !self.terminates_on_escalation
    }

    /// Gives the numbers of a failure at the root to the observer, before any other user code runs
    /// that could fail because of the failure.
    fn observe_root(&self, info: &FailureInfo, catch_unwind: &dyn Fn(&mut dyn FnMut())) {
        // The observer is user code, so it runs outside of the lock. Only the poll of the root
        // actor calls this function, so there are no concurrent calls.
        let Some(mut observer) = self.root_observer.with(Option::take) else { return };
        let failure = RootFailure::new(self.default.executor().toolbox().nanos(), info);
        catch_unwind(&mut || observer(&failure));
        self.root_observer.with(|place| *place = Some(observer));
    }

    /// Records an event in the flight recorder of the default executor, if it has one.
    fn record(&self, event: clockjack_observe::Event) {
        self.default.executor().record(event);
    }

    /// Offers refused failures to the sink again.
    pub(crate) fn retry_escalations(&self, catch_unwind: &dyn Fn(&mut dyn FnMut())) {
        if self.has_sink {
            crate::cell::retry(&self.escalations, catch_unwind);
        }
    }

    /// The queue of failures at the root, if there is a sink.
    pub(crate) fn escalations(&self) -> Option<&Escalations> {
        self.has_sink.then_some(&self.escalations)
    }

    /// How long a stopping child may take before it is reported as a straggler.
    pub(crate) fn stop_timeout(&self) -> Duration {
        self.stop_timeout
    }

    /// Finds an actor by its pid. Searches the whole tree; for hosts.
    pub(crate) fn find(&self, pid: Pid) -> Option<AnyActor> {
        let guardians = self.guardians()?;
        spawn::descendants(&guardians.root).into_iter().find(|actor| actor.pid() == pid)
    }

    /// Drops the reference that a freed cell held to its parent. Nested calls only enqueue:
    /// dropping each parent inside the drop of its child would use stack space per level of the
    /// tree.
    pub(crate) fn defer_drop(&self, cell: Option<AnyActor>) {
        let Some(cell) = cell else { return };
        let enqueue = |deferred_drops: &mut DeferredDrops| {
            deferred_drops.cells.push(cell);
            core::mem::replace(&mut deferred_drops.is_draining, true)
        };
        let is_draining = with_room(&self.deferred_drops, |all| &mut all.cells, enqueue);
        if is_draining {
            // The thread that drains the list (this one, further up the stack, or another one)
            // drops the cell.
            return;
        }
        // One of the dropped cells may hold the last reference to the system; this handle keeps the
        // system alive during the loop.
        let system = self.handle().clone();
        loop {
            let next = system.0.deferred_drops.with(|deferred_drops| {
                let next = deferred_drops.cells.pop();
                deferred_drops.is_draining = next.is_some();
                next
            });
            if next.is_none() {
                break;
            }
            drop(next);
        }
    }

    /// Called when the last actor has stopped.
    pub(crate) fn root_stopped(&self) {
        let guardians = self.guardians.with(Option::take);
        self.report_refusals();
        self.events.close();
        self.receptionist.close();
        let notice = self.termination.root_stopped();
        self.notify_terminated(notice);
        // AcqRel: pairs with the `fetch_sub` of the last handle. Whichever of the two comes second
        // sees the other and drops the dead-letter reference.
        let before = self.handles.fetch_or(TERMINATED, AcqRel);
        if before < HANDLE {
            drop(self.dead_letters.with(uncounted::DeadLetters::take));
        }
        drop(guardians);
    }

    /// A reference to the shared state that does not count as a handle.
    fn clone_inner(&self) -> Arc<Self> {
        self.handle().0.clone()
    }

    /// The longest delay that a job of the system itself may have.
    pub(crate) fn delay_max(&self) -> Duration {
        self.jobs().internal_delay_max()
    }

    /// The `n`th number of the pseudo-random sequence that belongs to a path.
    pub(crate) fn random(&self, path: &ActorPath, n: u64) -> u64 {
        let mut state = self.seed ^ n.wrapping_mul(splitmix::STEP);
        for above in path.ancestors() {
            for &byte in above.name().as_bytes() {
                state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            state = splitmix::mix(state);
        }
        splitmix::mix(state)
    }
}

/// Whether this is `/user`. When `/user` stops, for whatever reason, the system terminates.
fn is_user_guardian(header: &ActorHeader) -> bool {
    let is_below_root = header.parent.as_ref().is_some_and(|above| above.parent.is_none());
    is_below_root && header.path.name() == "user"
}

/// Calls user code and catches a panic, where the host can. Returns false if the call panicked.
pub(crate) fn call_catching_panics(executor: &Handle, call: &mut dyn FnMut()) -> bool {
    let host = executor.executor().toolbox();
    let Err(caught) = host.catch_unwind(call) else { return true };
    let mut caught = Some(caught);
    if let Err(again) = host.catch_unwind(&mut || drop(caught.take())) {
        // Dropping the second payload could panic again; it is leaked instead.
        core::mem::forget(again);
    }
    false
}

/// Wakes a waker and catches a panic of it.
pub(crate) fn wake_catching_panics(executor: &Handle, waker: Waker) {
    let mut waker = Some(waker);
    call_catching_panics(executor, &mut || {
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    });
}

impl Clone for ActorSystem {
    fn clone(&self) -> Self {
        // Relaxed: cloned from an existing handle, or by an actor that has not stopped.
        self.0.handles.fetch_add(HANDLE, Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for ActorSystem {
    fn drop(&mut self) {
        // AcqRel: pairs with the `fetch_or` in `root_stopped`. Whichever of the two comes second
        // sees the other and drops the dead-letter reference.
        let before = self.0.handles.fetch_sub(HANDLE, AcqRel);
        if before == HANDLE | TERMINATED {
            drop(self.0.dead_letters.with(uncounted::DeadLetters::take));
        }
    }
}

impl fmt::Debug for ActorSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorSystem").field("name", &self.0.name).finish_non_exhaustive()
    }
}
