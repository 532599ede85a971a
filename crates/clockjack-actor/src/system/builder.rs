//! [`SystemBuilder`]: the configuration of a system, and how a host starts one.
#![expect(unsafe_code, reason = "starts the guardians, whose cells keep the system alive")]

use alloc::{
    boxed::Box,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{any::TypeId, fmt, mem::ManuallyDrop, time::Duration};

use clockjack_exec::{
    Commands, Handle, Limits, StartError,
    custom_task::{self, CustomTaskRef},
};
use clockjack_sched::{DispatcherId, PolicyRegistry, Scheduler, SchedulerConfig, TaskRunPriority};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicBool, AtomicUsize},
    spin_lock::SpinLock,
};

use super::{
    ActorSystem, DispatcherConfig, Guardians, OnEscalation, OnFailure, RootObserver, SystemInner,
    dispatchers::Dispatchers, guardian::Guardian, refusals::OnRefusals, shutdown::SystemShutdown,
};
use crate::{
    ActorPath, EscalationSink, EventStream, FailureEventHub, FailureInfo, Mailbox, MailboxRefusals,
    Props, Receptionist, RootFailure, Scope, Strategy, SystemEvent,
    ask::{pool::SlotPool, waiting},
    carried_span::SpanSource,
    cell::{
        Cell,
        header::{ActorHeader, AnyActor},
        shared::ActorShared,
        spawn::{self, Placement},
    },
    escalation::{ESCALATIONS_MAX, Escalations},
    mailbox::dead_letters::SystemGuardian,
    props::Overflow,
    shutdown::ShutdownConfig,
};

/// The default of [`SystemBuilder::stop_timeout`].
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A hook that runs when the system has started.
type OnStart = Box<dyn FnOnce(&ActorSystem) -> Result<(), crate::Failure> + Send>;

/// The configuration of a system, independent of its host.
pub struct SystemBuilder {
    name: String,
    limits: Limits,
    scheduler: SchedulerConfig,
    commands: Commands,
    users: Option<(Scope, Strategy)>,
    hub: FailureEventHub,
    sink: Option<Box<dyn EscalationSink>>,
    on_escalation: Vec<OnEscalation>,
    on_failure: Vec<OnFailure>,
    on_refusals: Vec<OnRefusals>,
    root_observer: Option<RootObserver>,
    dispatchers: Vec<DispatcherConfig>,
    on_start: Vec<OnStart>,
    terminates_on_escalation: bool,
    stop_timeout: Duration,
    shutdown: ShutdownConfig,
    suppressed: Vec<TypeId>,
    pub(crate) spans: SpanSource,
}

/// The parts that a host provides.
#[doc(hidden)]
#[derive(Debug)]
pub struct HostParts {
    /// The executor of the default dispatcher.
    pub executor: Handle,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Other dispatchers.
    pub dispatchers: Vec<(DispatcherId, Handle)>,
    /// Creates further dispatchers, if the host has threads.
    pub dispatcher_host: Option<Box<dyn super::DispatcherHost>>,
    /// The seed of all pseudo-random choices.
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
            on_failure: Vec::new(),
            on_refusals: Vec::new(),
            root_observer: None,
            dispatchers: Vec::new(),
            on_start: Vec::new(),
            terminates_on_escalation: true,
            stop_timeout: STOP_TIMEOUT,
            shutdown: ShutdownConfig::default(),
            suppressed: Vec::new(),
            spans: SpanSource::default(),
        }
    }

    /// The name of the system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the limits of the system.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the configuration of the scheduler. The host determines `resolution`, `start` and
    /// `shards`: the start fails if one of them is not the default.
    #[must_use]
    pub fn scheduler(self, scheduler: SchedulerConfig) -> Self {
        Self { scheduler, ..self }
    }

    /// Sets the policies by which jobs run.
    #[must_use]
    pub fn policies(mut self, policies: PolicyRegistry) -> Self {
        self.scheduler.policies = policies;
        self
    }

    /// Sets the handlers of the commands that processes may yield.
    #[must_use]
    pub fn commands(self, commands: Commands) -> Self {
        Self { commands, ..self }
    }

    /// Sets the strategy for failures of actors under `/user` that their own strategies do not
    /// handle. Without this setting, an actor that fails stops.
    #[must_use]
    pub fn supervise_users(self, scope: Scope, strategy: Strategy) -> Self {
        Self { users: Some((scope, strategy)), ..self }
    }

    /// Sets the sink that receives the failures that have reached the root.
    #[must_use]
    pub fn escalation(self, sink: impl EscalationSink) -> Self {
        Self { sink: Some(Box::new(sink)), ..self }
    }

    /// Sets the hub that broadcasts the failures that have reached the root. By default a system
    /// has its own hub; use this to subscribe before the start, or to share one hub between
    /// systems.
    #[must_use]
    pub fn failure_hub(self, hub: FailureEventHub) -> Self {
        Self { hub, ..self }
    }

    /// Adds a listener that is called with each failure that has reached the root, before any sink.
    #[must_use]
    pub fn on_escalation(
        mut self,
        listener: impl Fn(&FailureInfo) + Send + Sync + 'static,
    ) -> Self {
        let listener: OnEscalation = Box::new(listener);
        self.on_escalation.push(listener);
        self
    }

    /// Adds a listener that is called with each failure of an actor and the
    /// [decision](FailureInfo::directive) about it, on the thread that has decided, before the
    /// decision is carried out. The decision is `None` for a failure that changes nothing, because
    /// the actor is already stopping or restarting. A panic of the listener is caught, where the
    /// host can.
    ///
    /// A listener sees every failure, and delays the actor. A subscriber to the
    /// [event stream](ActorSystem::events) delays nobody, but can miss failures.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::ActorSystem;
    ///
    /// let builder = ActorSystem::builder("shop")
    ///     .on_failure(|system, info| eprintln!("{}: {info}", system.name()));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn on_failure(
        mut self,
        listener: impl Fn(&ActorSystem, &FailureInfo) + Send + Sync + 'static,
    ) -> Self {
        self.on_failure.push(Box::new(listener));
        self
    }

    /// Adds a listener that is called with what
    /// [`SystemEvent::MailboxRefusals`](crate::SystemEvent) reports: full mailboxes have returned
    /// messages to their senders. It is called on the thread that fires the timers of the system
    /// or on that of the root, never on that of a sender, and a last time when the system has
    /// terminated, if there is something to report. A panic of the listener is caught, where the
    /// host can. In a sealed system it is not called, because it may allocate memory; subscribers
    /// are informed there.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::ActorSystem;
    ///
    /// let builder = ActorSystem::builder("shop")
    ///     .on_refusals(|_, refusals| eprintln!("{}: {refusals}", refusals.path));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn on_refusals(
        mut self,
        listener: impl Fn(&ActorSystem, &MailboxRefusals) + Send + Sync + 'static,
    ) -> Self {
        self.on_refusals.push(Box::new(listener));
        self
    }

    /// Sets an observer that receives the numbers of each failure that has reached the root, before
    /// anything else reports the failure; replaces an earlier observer. The observer is called on
    /// the thread of the root, for one failure at a time. If it panics, the failure is reported all
    /// the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{
    ///     ActorSystem,
    ///     observe::recorder::{Ring, Writer},
    /// };
    ///
    /// let flight: &'static Ring = Box::leak(Box::new(Ring::new(64)));
    /// let mut writer = Writer::claim(flight).expect("nobody else writes");
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

    /// Adds a dispatcher, which the host creates before the first actor is started. The start fails
    /// if the host has no threads, if the name is taken, or if the number of threads is 0 or too
    /// large.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{ActorSystem, DispatcherConfig};
    ///
    /// let builder = ActorSystem::builder("shop")
    ///     .dispatcher(DispatcherConfig::pool("reports", 2))
    ///     .dispatcher(DispatcherConfig::pinned("till"));
    /// // The id is known before the system exists, so props can name it at once.
    /// let reports = builder.dispatcher_id("reports").expect("it was added above");
    /// assert_ne!(Some(reports), builder.dispatcher_id("till"));
    /// ```
    #[must_use]
    pub fn dispatcher(mut self, dispatcher: DispatcherConfig) -> Self {
        self.dispatchers.push(dispatcher);
        self
    }

    /// The id that a dispatcher of this builder will have. `Props` name a dispatcher by its id.
    #[must_use]
    pub fn dispatcher_id(&self, name: &str) -> Option<DispatcherId> {
        super::dispatchers::planned(&self.dispatchers, name)
    }

    /// Sets whether a failure that has reached the root terminates the system. The default is true.
    #[must_use]
    pub fn shutdown_on_escalation(self, terminates: bool) -> Self {
        Self { terminates_on_escalation: terminates, ..self }
    }

    /// Sets how long a stopping actor waits for one child before it tells the next child to stop as
    /// well and publishes a [straggler event](crate::SystemEvent::Straggler). The default is one
    /// second.
    #[must_use]
    pub fn stop_timeout(self, timeout: Duration) -> Self {
        Self { stop_timeout: timeout, ..self }
    }

    /// Sets the phases of the coordinated shutdown. The start fails if the configuration is
    /// invalid.
    #[must_use]
    pub fn shutdown(self, shutdown: ShutdownConfig) -> Self {
        Self { shutdown, ..self }
    }

    /// Suppresses the dead letters of a message type: they are published as
    /// [`SystemEvent::SuppressedDeadLetter`](crate::SystemEvent), which only explicit subscribers
    /// to that kind receive.
    #[must_use]
    pub fn suppress_dead_letters_of<M: 'static>(mut self) -> Self {
        self.suppressed.push(TypeId::of::<M>());
        self
    }

    /// Adds a hook that is called when the system has started, before the host returns it.
    #[must_use]
    pub fn on_start(
        mut self,
        start: impl FnOnce(&ActorSystem) -> Result<(), crate::Failure> + Send + 'static,
    ) -> Self {
        self.on_start.push(Box::new(start));
        self
    }

    /// The settings that hosts need.
    ///
    /// # Errors
    ///
    /// If the scheduler has settings that only a host can make.
    #[doc(hidden)]
    pub fn host_config(&mut self) -> Result<(Limits, SchedulerConfig, Commands), StartError> {
        self.scheduler.check_host_settings().map_err(|refused| StartError::thread(&refused))?;
        let commands = core::mem::replace(&mut self.commands, Commands::new());
        Ok((self.limits, self.scheduler.clone(), commands))
    }

    /// Starts the system on a host.
    ///
    /// # Errors
    ///
    /// If a dispatcher cannot be created, if there is no room for the guardians, or if a start hook
    /// has failed.
    #[doc(hidden)]
    pub fn start_on(self, host: HostParts) -> Result<ActorSystem, FailedStart> {
        let has_sink = self.sink.is_some();
        let escalations = match self.sink {
            Some(sink) => Escalations::new(sink, ESCALATIONS_MAX),
            None => Escalations::without_sink(ESCALATIONS_MAX),
        };
        let shutdown =
            SystemShutdown::new(&self.shutdown).map_err(|fault| StartError::thread(&fault))?;
        let dispatchers = Dispatchers::new(host.dispatchers, host.dispatcher_host);
        // Before the system is created, so that a refused dispatcher leaves no system behind.
        dispatchers.make_all(&self.dispatchers)?;
        let (executor, scheduler) = (host.executor, host.scheduler);
        let system = ActorSystem(Arc::new(SystemInner {
            name: self.name.into(),
            uncounted_self: SpinLock::new(None),
            events: EventStream::new(executor.clone(), scheduler.clone()),
            receptionist: Receptionist::new(executor.clone(), scheduler.clone()),
            default: executor,
            scheduler: crate::Scheduler::new(scheduler),
            seed: host.seed,
            guardians: SpinLock::new(None),
            hub: self.hub,
            escalations,
            has_sink,
            stop_timeout: self.stop_timeout,
            deferred_drops: SpinLock::default(),
            on_escalation: self.on_escalation,
            on_failure: self.on_failure,
            on_refusals: self.on_refusals,
            root_observer: SpinLock::new(self.root_observer),
            terminates_on_escalation: self.terminates_on_escalation,
            termination: super::termination::TerminationState::new(),
            shutdown,
            stop_waiters: super::stop_waiters::StopWaiters::new(),
            listed_filter: super::listed_filter::ListedFilter::new(),
            names: AtomicUsize::new(0),
            counters: super::metrics::SystemCounters::new(),
            suppressed: self.suppressed,
            handles: AtomicUsize::new(super::HANDLE),
            dead_letters: SpinLock::default(),
            is_sealed: AtomicBool::new(false),
            dispatchers,
            saturated: super::saturated_count::SaturatedCount::new(),
            refusals: super::refusals::RefusalWindow::new(),
            slots: SlotPool::new(),
            asks: waiting::no_asks(),
            spans: self.spans,
        }));
        // The handle inside the system is not counted; otherwise the system would keep itself
        // alive.
        let raw = Arc::into_raw(system.0.clone());
        // SAFETY: `raw` was just made by `into_raw`. The statement below releases its reference,
        // and the handle that remains is never dropped.
        let uncounted = ManuallyDrop::new(ActorSystem(unsafe { Arc::from_raw(raw) }));
        // SAFETY: as above: of the two handles that share one reference, only this one is dropped.
        drop(unsafe { Arc::from_raw(raw) });
        system.0.uncounted_self.with(|place| *place = Some(uncounted));
        start_guardians(&system, self.users)?;
        if let Err(error) = register_close_tasks(&system) {
            drop(system.shutdown());
            return Err(FailedStart { error, system: Some(system) });
        }
        for start in self.on_start {
            if let Err(failure) = start(&system) {
                drop(system.shutdown());
                let error = StartError::thread(&failure);
                return Err(FailedStart { error, system: Some(system) });
            }
        }
        Ok(system)
    }
}

/// Registers what the system has to do when its scheduler is closed. The close drops the tasks, so
/// the scheduler and the event stream do not keep each other alive.
fn register_close_tasks(system: &ActorSystem) -> Result<(), StartError> {
    let events = system.0.events.clone();
    let publish = move || {
        events.publish(&SystemEvent::SchedulerClosed);
        Ok(())
    };
    // First of all, so that subscribers can still react, if the scheduler is closed before them.
    let registered =
        system.0.scheduler.jobs().register_on_close(publish, TaskRunPriority::SystemCritical);
    registered.map(drop).map_err(|refused| StartError::thread(&refused))
}

/// Why a system did not start.
#[doc(hidden)]
#[derive(Debug)]
pub struct FailedStart {
    pub error: StartError,
    /// The system, if it had already started: it is terminating, and the host shuts it down like
    /// any other.
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
    // The cell of the root keeps the system alive, and all other cells keep the root's alive.
    let kept = Arc::into_raw(system.0.clone());
    let make = || {
        // SAFETY: the root has no parent, and the reference is transferred to the header.
        let header = unsafe { ActorHeader::new(ActorPath::root(), None, kept, Overflow::Fail) };
        let settings = Props::<Guardian, fn() -> Guardian>::new(|| Guardian)
            .supervise_children(Scope::OneForOne, Strategy::escalate());
        let (factory, settings) = settings.into_parts();
        (ActorShared::new(header, 1), Cell::new(factory, settings, false))
    };
    let before = |_: &CustomTaskRef<ActorShared<core::convert::Infallible>>| {};
    let engine = system.0.default.executor();
    // SAFETY: a guardian is `Send`.
    let root =
        unsafe { custom_task::start::<Cell<Guardian, fn() -> Guardian>>(engine, make, before) };
    let root: AnyActor = match root {
        Ok(root) => crate::actor_ref::untyped(root),
        Err(_) => {
            // SAFETY: no cell was created that would release the reference.
            drop(unsafe { Arc::from_raw(kept) });
            return Err(no_room(&""));
        }
    };
    system.0.spawned(root.pid());
    // `/system` first: the children that are started last are stopped first.
    let below = Props::<SystemGuardian, fn() -> SystemGuardian>::new(|| SystemGuardian)
        .mailbox(Mailbox::DEFAULT.overflow(Overflow::DropNewest))
        .supervise_children(Scope::OneForOne, Strategy::stop());
    let (scope, strategy) = users.unwrap_or_else(|| (Scope::OneForOne, Strategy::stop()));
    let users =
        Props::<Guardian, fn() -> Guardian>::new(|| Guardian).supervise_children(scope, strategy);
    let place = Placement::Dispatcher;
    // SAFETY: a guardian is `Send`.
    let below = unsafe { spawn::spawn(&root, true, place, "system", below) };
    let made = below.map_err(|refused| no_room(&refused)).and_then(|below| {
        // SAFETY: as above.
        let user = unsafe { spawn::spawn(&root, true, Placement::Dispatcher, "user", users) };
        Ok((below, user.map_err(|refused| no_room(&refused))?))
    });
    match made {
        Ok((below, user)) => {
            let (user, system_guardian) = (user.any().clone(), below.any().clone());
            let guardians = Guardians { root, user, system: system_guardian };
            system.0.guardians.with(|place| *place = Some(guardians));
            system.0.dead_letters.with(|place| place.address = Some(below));
            Ok(())
        }
        Err(error) => {
            crate::cell::header::SystemSend::wake_with(&root, crate::cell::header::STOP);
            Err(error)
        }
    }
}

impl fmt::Debug for SystemBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
