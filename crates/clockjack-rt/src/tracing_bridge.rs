//! What a system tells, as events of `tracing`.
//!
//! Two ways lead here. A failure at the root comes by the hub of failures, on the thread of the
//! root and before the system ends on its account, so it is written for certain. All else comes by
//! the event stream to an actor, [`PATH`], and is written there, so nobody waits for who writes.
//!
//! *Why it feeds nothing to itself*: events about that actor are not written. Else a writer that
//! panics would be told of its panic without end.

use core::{error::Error, fmt};
use std::borrow::Cow;

use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, Context, EscalationStage, EventKinds, EventStream,
    Failure, FailureInfo, LifecycleStep, Next, Props, SpawnErrorKind, Strategy, SystemEvent,
    SystemMessage,
    hub::{HubFull, Subscription},
};
use tracing::{debug, error, warn};

/// The target of all events.
const TARGET: &str = "clockjack";

/// The name of the actor below `/system`.
const NAME: &str = "tracing";

/// Where the actor stands that writes events.
const PATH: &str = "/system/tracing";

/// Writes what a system tells as events of `tracing`, with the target `clockjack`.
///
/// | event | level | fields |
/// |---|---|---|
/// | a failure that has come up to the root | ERROR | `pid`, `path`, `reason`, `stage` |
/// | any other failure, and what was decided | WARN | `pid`, `path`, `reason`, `directive` |
/// | a dead letter | WARN | `path`, `reason`, `message_type` |
/// | a full mailbox, an actor that does not stop, an ask cycle | WARN | `path`, `reason` |
/// | a handler that does not return | WARN | `pid`, `path`, `reason`, `message_type` |
/// | a warning of the scheduler | WARN | `reason` |
/// | events that were lost, since they came faster than they were written | WARN | `reason` |
/// | a message that was not handled | DEBUG | `pid`, `path`, `reason`, `message_type` |
/// | an actor was started, restarted or has stopped | DEBUG | `pid`, `path`, `step` |
///
/// All have `system`, the name of the system; failures also `restarts`, and `code` if there is one.
/// Failures at the root are written on the thread of the root, all else by an actor below
/// `/system`; what that has not written yet when it ends with its system is lost, and counted as
/// dead letters. If it falls behind, the oldest that wait are lost, as for every subscriber of the
/// event stream.
///
/// The subscriber must be the one of the whole program, or that of the threads of the runtime:
/// `tracing::subscriber::with_default` sets that of one thread only.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, TracingBridge, actor::ActorSystem};
///
/// // At the start, so that nothing is missed. It stays until the system ends.
/// let builder = ActorSystem::builder("shop").on_start(|system| {
///     TracingBridge::install(system)?;
///     Ok(())
/// });
/// let rt = Runtime::start(builder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TracingBridge {
    writer: ActorRef<SystemEvent>,
    events: EventStream,
}

impl TracingBridge {
    /// Writes all events of a system until that ends.
    ///
    /// # Errors
    ///
    /// If there is a bridge already, the hub of failures has too many subscribers, or the system
    /// terminates or was sealed.
    pub fn install(system: &ActorSystem) -> Result<Self, InstallError> {
        let without = EventKinds::SUPPRESSED_DEAD_LETTER;
        Self::install_kinds(system, EventKinds::ALL.without(without))
    }

    /// As [`install`](Self::install), for events of these kinds. Failures at the root are written
    /// whatever these are.
    ///
    /// Kinds that nobody wants cost their actors one load, so it is worth leaving out lifecycles
    /// where the subscriber does not take events of the level DEBUG.
    ///
    /// # Errors
    ///
    /// As [`install`](Self::install).
    pub fn install_kinds(system: &ActorSystem, kinds: EventKinds) -> Result<Self, InstallError> {
        let name: Box<str> = system.name().into();
        let at_root = move |info: &FailureInfo| write_root_failure(&name, info);
        let mut at_root = Some(system.failure_hub().subscribe(at_root).map_err(InstallError::Hub)?);
        let name: Box<str> = system.name().into();
        let make = move || Writer { system: name.clone(), _at_root: at_root.take() };
        // A subscriber of tracing's that panics costs the event that it panicked at.
        let props = Props::new(make).supervise(Strategy::resume());
        let refused = |kind| InstallError::Actor(kind);
        let spawned = system.spawn_system(NAME, props);
        let writer = spawned.map_err(|error| refused(error.kind().clone()))?;
        let bridge = Self { writer, events: system.events().clone() };
        if !bridge.events.subscribe(kinds, bridge.writer.clone()) {
            bridge.uninstall();
            return Err(refused(SpawnErrorKind::Stopping));
        }
        Ok(bridge)
    }

    /// Writes nothing any more. What it has not written yet is lost.
    pub fn uninstall(self) {
        self.events.unsubscribe(&self.writer);
        // Refused, it has ended with its system.
        _ = self.writer.try_send_system(SystemMessage::Stop);
    }
}

/// A bridge that was not installed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// The hub of failures takes no more subscribers.
    Hub(HubFull),
    /// The actor that writes was not started; for a name that is taken, there is a bridge already.
    Actor(SpawnErrorKind),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub(full) => write!(f, "no bridge to tracing: {full}"),
            Self::Actor(kind) => write!(f, "no bridge to tracing: {kind}"),
        }
    }
}

impl Error for InstallError {}

/// Writes what it is told.
struct Writer {
    system: Box<str>,
    /// Ends with this actor.
    _at_root: Option<Subscription>,
}

impl Actor for Writer {
    type Msg = SystemEvent;

    fn receive(&mut self, _: &mut Context<'_, Self>, event: SystemEvent) -> Result<Next, Failure> {
        write_event(&self.system, &event);
        Ok(Next::Stay)
    }
}

fn write_root_failure(system: &str, info: &FailureInfo) {
    let (pid, path) = info.origin();
    let (stage, restarts) = (info.hops(), info.restart_stats.restarts);
    let (reason, code) = (&info.reason, info.reason.code());
    error!(
        target: TARGET, system, %pid, %path, %reason, stage, restarts, code,
        "a failure has come up to the root"
    );
}

fn write_event(system: &str, event: &SystemEvent) {
    match event {
        SystemEvent::Failure(info) => write_failure(system, info),
        SystemEvent::Lifecycle(life) => {
            let (pid, path) = (life.pid, &life.path);
            let step = match life.step {
                LifecycleStep::Started => "started",
                LifecycleStep::Restarted => "restarted",
                LifecycleStep::Stopped => "stopped",
                _ => "changed",
            };
            debug!(target: TARGET, system, %pid, %path, step, "lifecycle");
        }
        SystemEvent::DeadLetter(letter) | SystemEvent::SuppressedDeadLetter(letter) => {
            let (path, reason, message_type) =
                (&letter.recipient, letter.reason, letter.message_type);
            if !is_mine(path) {
                warn!(target: TARGET, system, %path, %reason, message_type, "dead letter");
            }
        }
        SystemEvent::Unhandled(message) => {
            let (pid, path, message_type) = (message.pid, &message.path, message.message_type);
            let reason = "its actor did not know what to do with it";
            debug!(target: TARGET, system, %pid, %path, reason, message_type, "unhandled");
        }
        SystemEvent::Stuck(stuck) => {
            let (pid, path, message_type) = (stuck.pid, &stuck.path, stuck.message_type);
            let reason = format_args!("its handler runs for {:?}", stuck.running_for);
            warn!(target: TARGET, system, %pid, %path, %reason, message_type, "stuck");
        }
        other => write_warning(system, other),
    }
}

/// Those at the root come by the hub.
fn write_failure(system: &str, info: &FailureInfo) {
    if info.stage == EscalationStage::Root || is_mine(&info.path) {
        return;
    }
    let (pid, path, reason) = (info.actor, &info.path, &info.reason);
    let (restarts, code) = (info.restart_stats.restarts, reason.code());
    let directive = info.directive.map(tracing::field::display);
    warn!(target: TARGET, system, %pid, %path, %reason, restarts, code, directive, "failure");
}

fn write_warning(system: &str, event: &SystemEvent) {
    let (path, reason): (Option<Cow<'_, str>>, Cow<'_, str>) = match event {
        SystemEvent::MailboxOverflow(path) => {
            (Some(path.to_string().into()), "its mailbox is full, and it is stopped for it".into())
        }
        SystemEvent::Straggler(path) => {
            (Some(path.to_string().into()), "it was told to stop and has not ended".into())
        }
        SystemEvent::AskCycle(cycle) => {
            let paths: Vec<_> = cycle.paths.iter().map(ActorPath::to_string).collect();
            (Some(paths.join(" ").into()), "they wait for answers of each other".into())
        }
        SystemEvent::Scheduler(warning) => (None, warning.to_string().into()),
        SystemEvent::EventsDropped(n) => {
            (None, format!("{n} events came faster than they were written").into())
        }
        other => (None, format!("{other:?}").into()),
    };
    let path = path.as_deref();
    warn!(target: TARGET, system, path, reason = &*reason, "warning");
}

fn is_mine(path: &ActorPath) -> bool {
    path.depth() == 2 && path.to_string() == PATH
}
