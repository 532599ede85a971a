//! What a system is to be like, and how a host starts it.
#![expect(unsafe_code, reason = "starts the guardians, whose cells keep the system")]

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{any::TypeId, fmt, mem::ManuallyDrop, time::Duration};

use clockjack_exec::{
    Commands, Handle, Limits, StartError,
    custom::{self, CustomRef},
};
use clockjack_sched::{DispatcherId, PolicyRegistry, Scheduler, SchedulerConfig};
use clockjack_sync::{
    Counted,
    lock::Lock,
    prim::atomic::{AtomicBool, AtomicUsize},
};

use super::{
    ActorSystem, DispatcherConfig, Guardians, OnEscalation, RootObserver, SystemInner,
    dispatchers::Dispatchers, guardian::Guardian, shutdown::Ending,
};
use crate::{
    ActorPath, EscalationSink, EventStream, FailureEventHub, FailureInfo, Mailbox, Props,
    Receptionist, RootFailure, Scope, Strategy,
    ask::{pool::Pool, waiting},
    base::{AnyActor, Core},
    cell::Cell,
    dead_letters::SystemGuardian,
    escalation::{ESCALATIONS_MAX, Escalations},
    front::Front,
    props::Overflow,
    shutdown::ShutdownConfig,
    spawn::{self, Where},
};

/// How long a child that was told to stop is waited for, unless set.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Something to be done when the system is there.
type OnStart = Box<dyn FnOnce(&ActorSystem) -> Result<(), crate::Failure> + Send>;

/// What a system is to be like. The same for every host.
pub struct SystemBuilder {
    name: String,
    limits: Limits,
    scheduler: SchedulerConfig,
    commands: Commands,
    users: Option<(Scope, Strategy)>,
    hub: FailureEventHub,
    sink: Option<Box<dyn EscalationSink>>,
    on_escalation: Vec<Counted<OnEscalation>>,
    root_observer: Option<RootObserver>,
    dispatchers: Vec<DispatcherConfig>,
    on_start: Vec<OnStart>,
    terminates_on_escalation: bool,
    patience: Duration,
    shutdown: ShutdownConfig,
    suppressed: Vec<TypeId>,
}

/// What a host has to give.
#[doc(hidden)]
#[derive(Debug)]
pub struct HostParts {
    /// The executor of the default dispatcher.
    pub executor: Handle,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Other dispatchers.
    pub dispatchers: Vec<(DispatcherId, Handle)>,
    /// What makes more of them, if the host has threads.
    pub dispatcher_host: Option<Box<dyn super::DispatcherHost>>,
    /// The seed of every choice that is left open.
    pub seed: u64,
}

impl SystemBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_string(),
            limits: Limits::DEFAULT,
            scheduler: SchedulerConfig::DEFAULT,
            commands: Commands::new(),
            users: None,
            hub: FailureEventHub::new(),
            sink: None,
            on_escalation: Vec::new(),
            root_observer: None,
            dispatchers: Vec::new(),
            on_start: Vec::new(),
            terminates_on_escalation: true,
            patience: STOP_PATIENCE,
            shutdown: ShutdownConfig::default(),
            suppressed: Vec::new(),
        }
    }

    /// How much there may be of everything.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How the scheduler is set. Its resolution is that of the host's clock.
    #[must_use]
    pub fn scheduler(self, scheduler: SchedulerConfig) -> Self {
        Self { scheduler, ..self }
    }

    /// By which policies jobs are run.
    #[must_use]
    pub fn policies(mut self, policies: PolicyRegistry) -> Self {
        self.scheduler.policies = policies;
        self
    }

    /// The handlers of the commands that processes may yield.
    #[must_use]
    pub fn commands(self, commands: Commands) -> Self {
        Self { commands, ..self }
    }

    /// What becomes of actors below `/user` that fail and have not settled that themselves. Without
    /// it they stop.
    #[must_use]
    pub fn supervise_users(self, scope: Scope, strategy: Strategy) -> Self {
        Self { users: Some((scope, strategy)), ..self }
    }

    /// Where failures go that have come up to the root.
    #[must_use]
    pub fn escalation(self, sink: impl EscalationSink) -> Self {
        Self { sink: Some(Box::new(sink)), ..self }
    }

    /// Makes failures public by this hub that have come up to the root, instead of by one of the
    /// system's own: one that somebody has subscribed to already, or that several systems share.
    #[must_use]
    pub fn failure_hub(self, hub: FailureEventHub) -> Self {
        Self { hub, ..self }
    }

    /// Is told of failures that have come up to the root, before any sink.
    #[must_use]
    pub fn on_escalation(mut self, tell: impl Fn(&FailureInfo) + Send + Sync + 'static) -> Self {
        let tell: OnEscalation = Box::new(tell);
        self.on_escalation.push(Counted::new(tell));
        self
    }

    /// Is given the numbers of each failure that has come up to the root, before anybody else is
    /// told of it; replaces an earlier one. It is called on the thread of the root, one failure at
    /// a time; if it panics, the others are told all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{
    ///     ActorSystem,
    ///     observe::recorder::{Recorder, Writer},
    /// };
    ///
    /// static FLIGHT: Recorder<64> = Recorder::new();
    ///
    /// let mut writer = Writer::claim(&FLIGHT).expect("nobody else writes");
    /// let builder = ActorSystem::builder("plane").observe_root(move |failure| {
    ///     let record = failure.record();
    ///     writer.write(record.at_ns, record.event);
    /// });
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn observe_root(self, observe: impl FnMut(&RootFailure) + Send + 'static) -> Self {
        Self { root_observer: Some(Box::new(observe)), ..self }
    }

    /// With a dispatcher, which is made by the host before the first actor is started. One that
    /// cannot be is refused at the start: on a host without threads, for a name that is taken, for
    /// zero threads or more than there can be.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{ActorSystem, DispatcherConfig};
    ///
    /// let builder = ActorSystem::builder("shop")
    ///     .dispatcher(DispatcherConfig::pool("reports", 2))
    ///     .dispatcher(DispatcherConfig::pinned("till"));
    /// // Known before there is a system, so props can name it at once.
    /// let reports = builder.dispatcher_id("reports").expect("it was added above");
    /// assert_ne!(Some(reports), builder.dispatcher_id("till"));
    /// ```
    #[must_use]
    pub fn dispatcher(mut self, dispatcher: DispatcherConfig) -> Self {
        self.dispatchers.push(dispatcher);
        self
    }

    /// The number that a dispatcher of this builder is going to have, by which `Props` name it.
    #[must_use]
    pub fn dispatcher_id(&self, name: &str) -> Option<DispatcherId> {
        super::dispatchers::planned(&self.dispatchers, name)
    }

    /// Whether a failure that has come up to the root terminates the system; it does, if nothing
    /// else is set.
    #[must_use]
    pub fn terminate_on_escalation(self, terminates: bool) -> Self {
        Self { terminates_on_escalation: terminates, ..self }
    }

    /// How long an actor that stops waits for one child before it tells the next one to stop, too,
    /// and [that](crate::SystemEvent::Straggler) is published; a second, if nothing else is set.
    #[must_use]
    pub fn stop_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The phases by which the system ends. One that cannot be is refused at the start.
    #[must_use]
    pub fn shutdown(self, shutdown: ShutdownConfig) -> Self {
        Self { shutdown, ..self }
    }

    /// Marks a type of messages as one whose loss is of no interest: they become
    /// [`SystemEvent::SuppressedDeadLetter`](crate::SystemEvent), which only those are told who
    /// ask for that kind.
    #[must_use]
    pub fn suppress_dead_letters_of<M: 'static>(mut self) -> Self {
        self.suppressed.push(TypeId::of::<M>());
        self
    }

    /// Is called when the system is there, before the host gives it to anybody.
    #[must_use]
    pub fn on_start(
        mut self,
        start: impl FnOnce(&ActorSystem) -> Result<(), crate::Failure> + Send + 'static,
    ) -> Self {
        self.on_start.push(Box::new(start));
        self
    }

    /// What was set, for hosts.
    #[doc(hidden)]
    #[must_use]
    pub fn host_config(&mut self) -> (Limits, SchedulerConfig, Commands) {
        let commands = core::mem::replace(&mut self.commands, Commands::new());
        (self.limits, self.scheduler.clone(), commands)
    }

    /// Starts the system on a host.
    ///
    /// # Errors
    ///
    /// If a dispatcher cannot be made, there is no room for the guardians, or something that was
    /// to be done at the start has failed.
    #[doc(hidden)]
    pub fn start_on(self, host: HostParts) -> Result<ActorSystem, FailedStart> {
        let has_sink = self.sink.is_some();
        let escalations = match self.sink {
            Some(sink) => Escalations::new(sink, ESCALATIONS_MAX),
            None => Escalations::unattended(ESCALATIONS_MAX),
        };
        let ending = Ending::new(&self.shutdown).map_err(|fault| StartError::thread(&fault))?;
        let dispatchers = Dispatchers::new(host.dispatchers, host.dispatcher_host);
        // Before the system: one that is refused leaves none behind.
        dispatchers.make_all(&self.dispatchers)?;
        let (executor, scheduler) = (host.executor, host.scheduler);
        let system = ActorSystem(Counted::new(SystemInner {
            name: self.name.into(),
            me: Lock::new(None),
            events: EventStream::new(executor.clone(), scheduler.clone()),
            receptionist: Receptionist::new(executor.clone(), scheduler.clone()),
            default: executor,
            scheduler: crate::Scheduler::new(scheduler),
            seed: host.seed,
            guardians: Lock::new(None),
            hub: self.hub,
            escalations,
            has_sink,
            patience: self.patience,
            graves: Lock::default(),
            on_escalation: Lock::new(self.on_escalation),
            root_observer: Lock::new(self.root_observer),
            terminates_on_escalation: self.terminates_on_escalation,
            end: super::termination::End::new(),
            ending,
            ends: super::ends::Ends::new(),
            listed: super::listed::Listed::new(),
            meters: super::metrics::Meters::new(),
            suppressed: self.suppressed,
            handles: AtomicUsize::new(super::HANDLE),
            letters: Lock::new(None),
            is_sealed: AtomicBool::new(false),
            dispatchers,
            slots: Pool::new(),
            asks: waiting::no_asks(),
        }));
        // Not counted, so that the system is not kept by itself.
        let me = Counted::into_raw(system.0.clone());
        // SAFETY: it was just made a raw pointer; the count is given back by the line below, and
        // the handle that stays is never dropped.
        let lent = ManuallyDrop::new(ActorSystem(unsafe { Counted::from_raw(me) }));
        // SAFETY: as above: of the two handles to one count, this one is dropped.
        drop(unsafe { Counted::from_raw(me) });
        system.0.me.with(|me| *me = Some(lent));
        start_guardians(&system, self.users)?;
        for start in self.on_start {
            if let Err(failure) = start(&system) {
                drop(system.terminate());
                let error = StartError::thread(&failure);
                return Err(FailedStart { error, system: Some(system) });
            }
        }
        Ok(system)
    }
}

/// Why a system was not started.
#[doc(hidden)]
#[derive(Debug)]
pub struct FailedStart {
    pub error: StartError,
    /// The system, if it had begun: it terminates, and its host ends it as it would any other.
    pub system: Option<ActorSystem>,
}

impl From<StartError> for FailedStart {
    fn from(error: StartError) -> Self {
        Self { error, system: None }
    }
}

fn start_guardians(
    system: &ActorSystem,
    users: Option<(Scope, Strategy)>,
) -> Result<(), StartError> {
    let no_room = |_: &dyn fmt::Display| StartError::thread(&"no room for the guardians");
    // The root's cell keeps the system, and all cells keep the root's.
    let kept = Counted::into_raw(system.0.clone());
    let make = || {
        // SAFETY: it has no parent, and the count is given away.
        let core = unsafe { Core::new(ActorPath::root(), None, kept, Overflow::Fail) };
        let settings = Props::<Guardian, fn() -> Guardian>::new(|| Guardian)
            .supervise_children(Scope::OneForOne, Strategy::escalate());
        let (factory, settings) = settings.into_parts();
        (Front::new(core, 1), Cell::new(factory, settings, false))
    };
    let before = |_: &CustomRef<Front<core::convert::Infallible>>| {};
    let engine = system.0.default.engine();
    // SAFETY: a guardian is `Send`.
    let root = unsafe { custom::start::<Cell<Guardian, fn() -> Guardian>>(engine, make, before) };
    let root: AnyActor = match root {
        Ok(root) => crate::actor_ref::untyped(root),
        Err(_) => {
            // SAFETY: no cell was made that would give it back.
            drop(unsafe { Counted::from_raw(kept) });
            return Err(no_room(&""));
        }
    };
    system.0.spawned(root.pid());
    // `/system` first: those that are started last are stopped first.
    let below = Props::<SystemGuardian, fn() -> SystemGuardian>::new(|| SystemGuardian)
        .mailbox(Mailbox::DEFAULT.overflow(Overflow::DropNewest))
        .supervise_children(Scope::OneForOne, Strategy::stop());
    let (scope, strategy) = users.unwrap_or_else(|| (Scope::OneForOne, Strategy::stop()));
    let users =
        Props::<Guardian, fn() -> Guardian>::new(|| Guardian).supervise_children(scope, strategy);
    let place = Where::Dispatcher;
    // SAFETY: a guardian is `Send`.
    let below = unsafe { spawn::spawn(&root, true, place, "system", below) };
    let made = below.map_err(|refused| no_room(&refused)).and_then(|below| {
        // SAFETY: as above.
        let user = unsafe { spawn::spawn(&root, true, Where::Dispatcher, "user", users) };
        Ok((below, user.map_err(|refused| no_room(&refused))?))
    });
    match made {
        Ok((below, user)) => {
            let (user, system_guardian) = (user.any().clone(), below.any().clone());
            let guardians = Guardians { root, user, system: system_guardian };
            system.0.guardians.with(|place| *place = Some(guardians));
            system.0.letters.with(|place| *place = Some(below));
            Ok(())
        }
        Err(error) => {
            crate::base::Tell::order(&root, crate::base::STOP);
            Err(error)
        }
    }
}

impl fmt::Debug for SystemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
