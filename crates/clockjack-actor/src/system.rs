//! A system of actors: its guardians, its scheduler, its events, its end.

mod builder;
mod dispatchers;
mod ends;
mod guardian;
mod listed;
mod metrics;
mod own_thread;
mod shutdown;
mod termination;

use alloc::{boxed::Box, string::ToString as _, vec::Vec};
use core::{
    any::{TypeId, type_name},
    fmt,
    mem::ManuallyDrop,
    task::Waker,
    time::Duration,
};

use clockjack_exec::{Handle, Pid, memory::Memory};
use clockjack_sched::{Cancellable, DELAY_TICKS_MAX, DispatcherId, FireContext};
use clockjack_sync::{
    Counted,
    lock::Lock,
    mutant,
    prim::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    splitmix,
};
use clockjack_time::TickSpan;

use self::listed::Listed;
pub use self::{
    builder::{FailedStart, HostParts, SystemBuilder},
    dispatchers::{DispatcherConfig, DispatcherHost, DispatcherKind, Pinned},
    ends::Stopped,
    metrics::SystemMetrics,
    own_thread::{OwnThread, PolicyAnswer, PolicyAnswers, RealtimeClass, ThreadPolicy},
    shutdown::ShutdownTask,
    termination::{Termination, TerminationReport},
};
use crate::{
    ActorPath, ActorRef, Directive, EventKinds, FailureEventHub, FailureInfo, IntoProps,
    LookupError, MsgOf, NotAChild, Receptionist, Scheduler, SpawnError,
    ask::{pool::Pool, waiting::Asks},
    base::{AnyActor, Core, PREPARE, STOP, Tell},
    dead_letters::{self, Letter},
    escalation::Escalations,
    events::{
        DeadLetter, DeadLetterReason, EventStream, Lifecycle, LifecycleStep, RootFailure,
        SystemEvent,
    },
    notes::Tick,
    shutdown::Reason,
    spawn,
};

/// A system of actors, to be cloned and given away.
pub struct ActorSystem(Counted<SystemInner>);

/// In the word of handles: the last actor has ended.
const ENDED: usize = 1;
/// In the word of handles: one of them.
const HANDLE: usize = 2;

/// What the actors of a system share.
pub(crate) struct SystemInner {
    name: Box<str>,
    /// The system itself, not counted: so it can be lent to those who hold it anyway.
    me: Lock<Option<ManuallyDrop<ActorSystem>>>,
    default: Handle,
    scheduler: Scheduler,
    events: EventStream,
    seed: u64,
    guardians: Lock<Option<Guardians>>,
    /// Where failures are made public that have come up to the root.
    hub: FailureEventHub,
    escalations: Escalations,
    /// Whether there is a sink that could take what it has refused once.
    has_sink: bool,
    on_escalation: Lock<Vec<Counted<OnEscalation>>>,
    /// Who keeps numbers of failures at the root; none while it is lent.
    root_observer: Lock<Option<RootObserver>>,
    terminates_on_escalation: bool,
    patience: Duration,
    graves: Lock<Graves>,
    end: termination::End,
    ending: shutdown::Ending,
    ends: ends::Ends,
    listed: Listed,
    meters: metrics::Meters,
    receptionist: Receptionist,
    /// Messages whose loss is of no interest.
    suppressed: Vec<TypeId>,
    /// How many handles there are, and whether the system has ended.
    handles: AtomicUsize,
    /// The address of the dead letters. It keeps this alive, so it goes with the last handle, or
    /// with the last actor, whichever is later.
    letters: Lock<Option<ActorRef<Letter>>>,
    is_sealed: AtomicBool,
    dispatchers: dispatchers::Dispatchers,
    slots: Pool,
    asks: Asks,
}

type OnEscalation = Box<dyn Fn(&FailureInfo) + Send + Sync>;

type RootObserver = Box<dyn FnMut(&RootFailure) + Send>;

/// Cells that nobody but their freed children has held.
#[derive(Default)]
struct Graves {
    cells: Vec<AnyActor>,
    /// Somebody takes them.
    is_busy: bool,
}

/// The actors at the top.
#[derive(Clone)]
struct Guardians {
    root: AnyActor,
    user: AnyActor,
    system: AnyActor,
}

impl ActorSystem {
    /// What a system of this name is to be like.
    #[must_use]
    pub fn builder(name: &str) -> SystemBuilder {
        SystemBuilder::new(name)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Starts an actor below `/user`.
    ///
    /// # Errors
    ///
    /// The props come back: for a name that is taken or is none, props that cannot be, if there is
    /// no room, or if the system terminates.
    pub fn spawn<P>(&self, name: &str, props: P) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Actor: Send,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        match self.0.user() {
            Some(user) => spawn::spawn_sent(&user, true, name, props),
            None => Err(SpawnError::new(crate::SpawnErrorKind::Stopping, props)),
        }
    }

    /// Stops an actor below `/user`.
    ///
    /// # Errors
    ///
    /// [`NotAChild`], if it stands elsewhere.
    pub fn stop<M: 'static>(&self, top_level: &ActorRef<M>) -> Result<(), NotAChild> {
        let actor = top_level.any();
        let is_below = |user: &AnyActor| actor.parent.as_ref().is_some_and(|up| up.ptr_eq(user));
        let is_child =
            self.0.guardians.with(|all| all.as_ref().map(|guardians| is_below(&guardians.user)));
        let Some(is_child) = is_child else { return Ok(()) };
        if !is_child {
            return Err(NotAChild { path: actor.path.clone() });
        }
        actor.order(STOP);
        Ok(())
    }

    /// The actor at a path, as `/user/a/b`.
    ///
    /// # Errors
    ///
    /// [`LookupError`]: for a text that is no path, if nobody is there, or if who is there takes
    /// other messages.
    pub fn lookup<M: 'static>(&self, path: &str) -> Result<ActorRef<M>, LookupError> {
        let names = path.strip_prefix('/').map(|rest| rest.split('/').collect::<Vec<_>>());
        let names = match names {
            Some(names) if names.iter().all(|name| !name.is_empty()) => names,
            _ => return Err(LookupError::NotAPath(path.to_string())),
        };
        let found = self.0.guardians().and_then(|guardians| spawn::find(&guardians.root, &names));
        let found = found.ok_or_else(|| LookupError::NotFound(path.to_string()))?;
        let other = || LookupError::OtherMessages(found.path.clone());
        spawn::typed(&found).ok_or_else(other)
    }

    /// The paths of all actors, each before those below it.
    #[must_use]
    pub fn tree(&self) -> Vec<ActorPath> {
        let guardians = self.0.guardians();
        let all = guardians.map_or_else(Vec::new, |guardians| spawn::below(&guardians.root));
        all.iter().map(|actor| actor.path.clone()).collect()
    }

    /// Takes the failures that have come up to the root and that no sink has taken, the oldest
    /// first. Without a sink, that is all of them.
    #[must_use = "what is taken is not offered to any sink again"]
    pub fn take_escalations(&self) -> Vec<FailureInfo> {
        self.0.escalations.take_escalations()
    }

    /// Where each failure is made public that has come up to the root: when it is on the
    /// [event stream](Self::events), and before the builder's listeners and its sink are told. A
    /// subscriber is called on the thread of the root; if it panics, the others are told all the
    /// same.
    ///
    /// It may be kept beyond the end of the system, and is silent then.
    #[must_use]
    pub fn failure_hub(&self) -> &FailureEventHub {
        &self.0.hub
    }

    /// The executor that actors run on, unless their props name another dispatcher: for what is no
    /// actor and is to share its workers and its clock.
    #[must_use]
    pub fn executor(&self) -> Handle {
        self.0.default.clone()
    }

    /// The executor of a dispatcher, if there is such a one.
    #[must_use]
    pub fn executor_of(&self, dispatcher: DispatcherId) -> Option<Handle> {
        self.0.executor(dispatcher)
    }

    /// What sends messages and runs jobs by the clock.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// What tells of everything that happens.
    #[must_use]
    pub fn events(&self) -> &EventStream {
        &self.0.events
    }

    /// Where actors are found by what they offer.
    #[must_use]
    pub fn receptionist(&self) -> &Receptionist {
        &self.0.receptionist
    }

    /// An address whose messages become dead letters, for
    /// [this reason](DeadLetterReason::Addressed). A message is dropped where it is sent.
    #[must_use]
    pub fn dead_letters<M: 'static>(&self) -> ActorRef<M> {
        let letters = self.0.letters.with(|letters| letters.clone());
        dead_letters::address(&letters.expect("it is there as long as there is a handle"))
    }

    /// Starts an actor below `/system`, one that others rely on: it is stopped after all below
    /// `/user`.
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
            Some(guardians) => spawn::spawn_sent(&guardians.system, true, name, props),
            None => Err(SpawnError::new(crate::SpawnErrorKind::Stopping, props)),
        }
    }

    /// Waits until the system has terminated, for whatever reason.
    pub fn when_terminated(&self) -> Termination {
        Termination::new(self.clone())
    }

    pub(crate) fn inner(&self) -> &SystemInner {
        &self.0
    }
}

impl SystemInner {
    pub(crate) fn user(&self) -> Option<AnyActor> {
        self.guardians.with(|all| all.as_ref().map(|guardians| guardians.user.clone()))
    }

    fn guardians(&self) -> Option<Guardians> {
        self.guardians.with(|guardians| guardians.clone())
    }

    /// The system, lent.
    #[expect(unsafe_code, reason = "lends what it does not count")]
    pub(crate) fn handle(&self) -> &ActorSystem {
        let me = self.me.with(|me| me.as_ref().map(|me| core::ptr::from_ref::<ActorSystem>(me)));
        let me = me.expect("it is set before the first actor is started");
        // SAFETY: it stands in `self`, is set once and never changed.
        unsafe { &*me }
    }

    pub(crate) fn events(&self) -> &EventStream {
        &self.events
    }

    /// What runs jobs by the clock.
    pub(crate) fn jobs(&self) -> &clockjack_sched::Scheduler {
        &self.scheduler
    }

    /// The executor of a dispatcher that is not the default one.
    pub(crate) fn executor(&self, dispatcher: DispatcherId) -> Option<Handle> {
        self.dispatchers.find(dispatcher)
    }

    /// An actor was started on a dispatcher.
    pub(crate) fn started_on(&self, dispatcher: DispatcherId) {
        if dispatcher != DispatcherId::DEFAULT {
            self.dispatchers.started(dispatcher);
        }
    }

    /// The executor whose timers end asks.
    pub(crate) fn default_executor(&self) -> &Handle {
        &self.default
    }

    /// Memory of those who have ended, for the next ones.
    pub(crate) fn memory(&self) -> &Memory {
        self.default.engine().memory()
    }

    /// Where answers are left.
    pub(crate) fn slots(&self) -> &Pool {
        &self.slots
    }

    /// The asks in flight between actors, which are known by the addresses of their cells.
    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    pub(crate) fn is_sealed(&self) -> bool {
        // Acquire: pairs with `seal`.
        self.is_sealed.load(Acquire)
    }

    pub(crate) fn seal(&self) {
        // Release: what was made before is made.
        self.is_sealed.store(true, Release);
        self.hub.seal();
        let guardians = self.guardians();
        for actor in guardians.iter().flat_map(|guardians| spawn::below(&guardians.root)) {
            actor.line_or_new();
            actor.order(PREPARE);
        }
    }

    /// Tells of a message that will not be handled.
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
        self.meters.dead_letter(reason, is_suppressed);
        let kind = if is_suppressed {
            EventKinds::SUPPRESSED_DEAD_LETTER
        } else {
            EventKinds::DEAD_LETTER
        };
        if !self.events.wants(kind) {
            return;
        }
        let letter = DeadLetter { recipient: recipient.clone(), message_type, reason };
        self.events.publish(&if is_suppressed {
            SystemEvent::SuppressedDeadLetter(letter)
        } else {
            SystemEvent::DeadLetter(letter)
        });
    }

    /// Which actors may stand in a table of the system's.
    pub(crate) fn listed(&self) -> &Listed {
        &self.listed
    }

    /// An actor was spawned.
    pub(crate) fn spawned(&self, pid: Pid) {
        self.meters.spawned(pid);
    }

    /// An actor has started, was made anew or has ended.
    pub(crate) fn stepped(&self, pid: Pid, core: &Core, step: LifecycleStep) {
        self.meters.stepped(pid, step);
        if step == LifecycleStep::Stopped && self.listed.may_have(pid) {
            self.events.forget(pid);
            self.receptionist.forget(pid);
            self.ends.forget(pid, &self.default);
        }
        if self.events.wants(EventKinds::LIFECYCLE) {
            let path = core.path.clone();
            self.events.publish(&SystemEvent::Lifecycle(Lifecycle { pid, path, step }));
        }
        if step == LifecycleStep::Stopped && is_user_guardian(core) {
            // Without effect if the system ends anyway.
            self.terminate(Reason::new("the user guardian has stopped"));
        }
    }

    pub(crate) fn mailbox_overflowed(&self, path: &ActorPath) {
        self.events.publish(&SystemEvent::MailboxOverflow(path.clone()));
    }

    /// An actor has failed, and what becomes of it was decided.
    pub(crate) fn failed(&self, info: &FailureInfo) {
        self.meters.failed(info.actor);
        if self.events.wants(EventKinds::FAILURE) {
            self.events.publish(&SystemEvent::Failure(info.clone()));
        }
    }

    /// A failure has come up to the root, where nobody can decide any more. Whether the system
    /// goes on; then those below are to be told what becomes of them.
    pub(crate) fn root_failed(
        &self,
        mut info: FailureInfo,
        guarded: &dyn Fn(&mut dyn FnMut()),
    ) -> bool {
        info.directive = Some(Directive::Stop);
        self.observe_root(&info, guarded);
        self.failed(&info);
        if !mutant!("root-failure-unpublished") {
            self.hub.publish_with(&info, |tell| guarded(tell));
        }
        let listeners = self.on_escalation.with(|list| list.clone());
        for listener in listeners {
            guarded(&mut || listener(&info));
        }
        let text = info.to_string();
        if self.has_sink {
            // Those that wait are older.
            guarded(&mut || _ = self.escalations.retry());
        }
        let mut offer = Some(info);
        // What a sink refuses is kept, and offered again; if there is no room for it, it is
        // counted there.
        guarded(&mut || _ = offer.take().map(|info| self.escalations.offer(info)));
        if self.terminates_on_escalation {
            self.terminate(Reason::new(text));
        }
        !self.terminates_on_escalation
    }

    /// Leaves numbers of a failure at the root with who keeps them: before anybody's code runs that
    /// could fail on its account.
    fn observe_root(&self, info: &FailureInfo, guarded: &dyn Fn(&mut dyn FnMut())) {
        // It is user code, so it runs outside of the lock. Only the root's own turn comes here.
        let Some(mut observer) = self.root_observer.with(Option::take) else { return };
        let failure = RootFailure::new(self.default.engine().host().nanos(), info);
        guarded(&mut || observer(&failure));
        self.root_observer.with(|place| *place = Some(observer));
    }

    /// Offers to the sink once more what it has refused.
    pub(crate) fn retry_escalations(&self, guarded: &dyn Fn(&mut dyn FnMut())) {
        if self.has_sink {
            crate::cell::retry(&self.escalations, guarded);
        }
    }

    /// What has come up to the root, if there is a sink for it.
    pub(crate) fn escalations(&self) -> Option<&Escalations> {
        self.has_sink.then_some(&self.escalations)
    }

    /// How long a child that was told to stop is waited for before that is told.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The actor with this pid; for hosts, it looks at all of them.
    pub(crate) fn find(&self, pid: Pid) -> Option<AnyActor> {
        let guardians = self.guardians()?;
        spawn::below(&guardians.root).into_iter().find(|actor| actor.pid() == pid)
    }

    /// Lets go of the parent of a cell that was freed, outside of any other such call: else a long
    /// line of parents would need a piece of the stack each.
    pub(crate) fn bury(&self, cell: Option<AnyActor>) {
        let Some(cell) = cell else { return };
        let is_busy = self.graves.with(|graves| {
            graves.cells.push(cell);
            core::mem::replace(&mut graves.is_busy, true)
        });
        if is_busy {
            // Who is at it, on this thread or another one, takes it.
            return;
        }
        // The last of them may be what keeps the system.
        let kept = self.handle().clone();
        loop {
            let next = kept.0.graves.with(|graves| {
                let next = graves.cells.pop();
                graves.is_busy = next.is_some();
                next
            });
            if next.is_none() {
                break;
            }
            drop(next);
        }
    }

    /// The last actor has ended.
    pub(crate) fn root_ended(&self) {
        let guardians = self.guardians.with(Option::take);
        self.events.close();
        self.receptionist.close();
        let settled = self.end.root_gone();
        self.settled(settled);
        // AcqRel: pairs with the last handle's; one of the two sees the other.
        let before = self.handles.fetch_or(ENDED, AcqRel);
        if before < HANDLE {
            drop(self.letters.with(Option::take));
        }
        drop(guardians);
    }

    /// The system, counted, but not as a handle.
    fn keep(&self) -> Counted<Self> {
        self.handle().0.clone()
    }

    /// Tells an actor something when some time has passed, or as much of that as a job may wait;
    /// none if that cannot be.
    pub(crate) fn after(&self, delay: Duration, actor: AnyActor, tick: Tick) -> Option<Delay> {
        // Made now, so that the fire needs nothing.
        actor.line_or_new();
        let tell = move |_: &FireContext| actor.tick(tick);
        let part = delay.min(self.delay_max());
        let until_nanos = (part < delay).then(|| {
            let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
            self.nanos().saturating_add(nanos)
        });
        let job = self.scheduler.schedule_once_fn(part, DispatcherId::DEFAULT, tell).ok()?;
        Some(Delay { job, until_nanos })
    }

    /// What is left of a delay whose job has come.
    pub(crate) fn rest_of(&self, delay: Option<Delay>) -> Option<Duration> {
        let rest = delay?.until_nanos?.saturating_sub(self.nanos());
        (rest > 0).then(|| Duration::from_nanos(rest))
    }

    /// The longest delay of a job.
    pub(crate) fn delay_max(&self) -> Duration {
        self.scheduler.resolution().duration(TickSpan::new(DELAY_TICKS_MAX))
    }

    /// The `n`th number of the stream that belongs to a path.
    pub(crate) fn random(&self, path: &ActorPath, n: u64) -> u64 {
        let mut state = self.seed ^ n.wrapping_mul(splitmix::STEP);
        for above in path.up() {
            for &byte in above.name().as_bytes() {
                state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            state = splitmix::mix(state);
        }
        splitmix::mix(state)
    }
}

/// A delay that is under way.
pub(crate) struct Delay {
    job: Cancellable,
    /// When it is over, if it is longer than a job may wait.
    until_nanos: Option<u64>,
}

impl Delay {
    pub(crate) fn cancel(&self) {
        self.job.cancel();
    }
}

/// Whether this is `/user`. Its end, for whatever reason, is that of the system.
fn is_user_guardian(core: &Core) -> bool {
    let is_below_root = core.parent.as_ref().is_some_and(|above| above.parent.is_none());
    is_below_root && core.path.name() == "user"
}

/// Calls what may be the user's; a panic in it is contained, where the host can. False if there was
/// one.
pub(crate) fn contained(executor: &Handle, call: &mut dyn FnMut()) -> bool {
    let host = executor.engine().host();
    let Err(caught) = host.guarded(call) else { return true };
    let mut caught = Some(caught);
    if let Err(again) = host.guarded(&mut || drop(caught.take())) {
        // Who knows what that does when it is dropped.
        core::mem::forget(again);
    }
    false
}

/// Wakes somebody; what that may throw is contained.
fn wake_contained(executor: &Handle, waker: Waker) {
    let mut waker = Some(waker);
    contained(executor, &mut || {
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    });
}

impl Clone for ActorSystem {
    fn clone(&self) -> Self {
        // Relaxed: made from one that is there, or by an actor that has not ended.
        self.0.handles.fetch_add(HANDLE, Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for ActorSystem {
    fn drop(&mut self) {
        // AcqRel: pairs with the end of the last actor; one of the two sees the other.
        let before = self.0.handles.fetch_sub(HANDLE, AcqRel);
        if before == HANDLE | ENDED && !mutant!("letters-outlive-handles") {
            drop(self.0.letters.with(Option::take));
        }
    }
}

impl fmt::Debug for ActorSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorSystem").field("name", &self.0.name).finish_non_exhaustive()
    }
}
