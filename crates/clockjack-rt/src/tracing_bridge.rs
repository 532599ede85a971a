//! Forwards the events of an actor system to `tracing`.
//!
//! Events arrive in two ways. A failure at the root arrives through the failure hub, on the thread
//! of the root and before the system terminates because of it, so it is certainly written. All
//! other events arrive through the event stream at an actor, [`PATH`], which writes them, so no
//! other actor waits for the subscriber. When this actor stops, it writes what is [pending].
//!
//! *Why there is no feedback loop*: events about that actor are not written. Otherwise a
//! subscriber that panics would cause an event about its own panic, without end.

mod pending;
mod pressure;

use core::{fmt, time::Duration};
use std::{borrow::Cow, sync::Arc};

use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, Context, EscalationStage, EventKinds, EventStream,
    Failure, FailureInfo, LifecycleStep, MailboxRefusals, Next, Props, Signal, StartError,
    Strategy, SystemEvent, SystemMessage, hub::Subscription,
};
use clockjack_sched::Warning;
use clockjack_time::{Tick, TimerInstant};
use tracing::{debug, error, warn};

use self::{
    pending::PendingEvents,
    pressure::{PressureLog, PressureSum},
};
use crate::{OsInstant, catch_panic};

/// The target of all events.
const TARGET: &str = "clockjack";

/// The name of the actor below `/system`.
const NAME: &str = "tracing";

/// The path of the actor that writes events.
const PATH: &str = "/system/tracing";

/// How long the actor may take at its stop to write events of the level WARN.
const WARNINGS_MAX: Duration = Duration::from_secs(5);
/// How long the actor may take at its stop until it leaves out events of the level DEBUG.
const OTHERS_MAX: Duration = Duration::from_secs(1);

/// Forwards the events of an actor system to `tracing`, with the target `clockjack`.
///
/// | event | level | fields |
/// |---|---|---|
/// | a failure that was escalated to the root | ERROR | `pid`, `path`, `reason`, `stage` |
/// | any other failure, with the decision | WARN | `pid`, `path`, `reason`, `directive` |
/// | a dead letter | WARN | `path`, `reason`, `message_type` |
/// | a full mailbox that stops its actor | WARN | `path`, `reason` |
/// | an actor that does not stop, an ask cycle | WARN | `path`, `reason` |
/// | refused messages, at most once per minute | WARN | `path` (the worst mailbox), `reason` |
/// | pressure on the scheduler, at most once per minute | WARN | `reason` |
/// | a handler that does not return | WARN | `pid`, `path`, `reason`, `message_type` |
/// | another warning of the scheduler | WARN | `reason` |
/// | events that were lost because they arrived too fast | WARN | `reason` |
/// | a message that was not handled | DEBUG | `pid`, `path`, `reason`, `message_type` |
/// | pressure began or ended | DEBUG | `reason` |
/// | an actor has started, restarted or stopped | DEBUG | `pid`, `path`, `step` |
///
/// All events have the field `system`, the name of the system; failures also have `restarts`, and
/// `code` and `message_type` if there is one. Failures at the root are written on the thread of the
/// root, all other events by an actor below `/system`. When this actor stops with its system, it
/// writes what it has not written yet: warnings for at most five seconds, and the rest within the
/// first second; a warning has the number of those that were left out. If the actor falls behind,
/// the oldest pending events are lost, as for every subscriber of the event stream.
///
/// The `tracing` subscriber must be the global one, or be set on the threads of the runtime:
/// `tracing::subscriber::with_default` sets the subscriber of one thread only.
///
/// # Examples
///
/// ```
/// use clockjack_rt::{Runtime, TracingBridge, actor::ActorSystem};
///
/// // In a start hook, so that no event is missed. The bridge stays until the system stops.
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
    /// Forwards the events of a system until it stops.
    ///
    /// # Errors
    ///
    /// If there is a bridge already, if the failure hub has too many subscribers, or if the system
    /// is terminating or sealed.
    pub fn install(system: &ActorSystem) -> Result<Self, StartError> {
        let without = EventKinds::SUPPRESSED_DEAD_LETTER | EventKinds::TICK_RATE;
        Self::install_kinds(system, EventKinds::ALL.without(without))
    }

    /// As [`install`](Self::install), for events of these kinds. Failures at the root are always
    /// forwarded.
    ///
    /// A kind without a subscriber costs an actor one load, so leave out lifecycle events if the
    /// `tracing` subscriber ignores the level DEBUG.
    ///
    /// # Errors
    ///
    /// As [`install`](Self::install).
    pub fn install_kinds(system: &ActorSystem, kinds: EventKinds) -> Result<Self, StartError> {
        let name: Box<str> = system.name().into();
        let at_root = move |info: &FailureInfo| write_root_failure(&name, info);
        let mut at_root =
            Some(system.failure_hub().subscribe(at_root).map_err(|full| not_installed(&full))?);
        let name: Arc<str> = system.name().into();
        let pending = PendingEvents::default();
        let (writer_name, writer_pending) = (Arc::clone(&name), pending.clone());
        let make = move || Writer {
            system: Arc::clone(&writer_name),
            pending: writer_pending.clone(),
            pressure: PressureLog::default(),
            _at_root: at_root.take(),
        };
        // If the `tracing` subscriber panics, only the current event is lost.
        let props = Props::new(make).supervise(Strategy::resume());
        let writer = system.spawn_system(NAME, props).map_err(|refused| {
            let is_taken = refused.is_name_taken();
            if is_taken { StartError::name_taken(NAME) } else { not_installed(&refused) }
        })?;
        // Called by publishers, for an event that the mailbox has room for.
        let writer = writer.map(move |event| {
            if let Some(event) = pending.push(event) {
                write_event(&name, &event);
            }
            EventArrived
        });
        let bridge = Self { writer, events: system.events().clone() };
        if !bridge.events.subscribe(kinds, bridge.writer.clone()) {
            bridge.uninstall();
            return Err(StartError::stopped());
        }
        Ok(bridge)
    }

    /// Stops forwarding. Events that have not been written yet are written.
    pub fn uninstall(self) {
        self.events.unsubscribe(&self.writer);
        // If this is refused, the actor has stopped with its system.
        _ = self.writer.try_send_system(SystemMessage::Stop);
    }
}

fn not_installed(why: &dyn fmt::Display) -> StartError {
    StartError::thread(&format_args!("cannot install the tracing bridge: {why}"))
}

/// Whether a bridge of the system forwards events of any of these kinds.
pub(crate) fn forwards(system: &ActorSystem, kinds: EventKinds) -> bool {
    let writer = system.lookup::<EventArrived>(PATH);
    writer.is_ok_and(|writer| system.events().delivers_to(writer.pid(), kinds))
}

/// Whether the system has a bridge, which forwards the failures at the root in any case.
pub(crate) fn is_installed(system: &ActorSystem) -> bool {
    system.lookup::<EventArrived>(PATH).is_ok()
}

/// The notice of an event that is [pending].
struct EventArrived;

/// The actor that writes the events it receives.
struct Writer {
    system: Arc<str>,
    pending: PendingEvents,
    pressure: PressureLog,
    /// Unsubscribes when this actor is dropped.
    _at_root: Option<Subscription>,
}

impl Actor for Writer {
    type Msg = EventArrived;

    fn receive(&mut self, cx: &mut Context<'_, Self>, _: EventArrived) -> Result<Next, Failure> {
        let Some(event) = self.pending.pop() else { return Ok(Next::Stay) };
        let now_ns = now_ns(cx);
        let due = self.pressure.take_due(now_ns, is_under_pressure(cx));
        self.note_pressure(now_ns, &event);
        // Before the subscriber is called, which may panic.
        self.wait_for_window(cx, now_ns);
        self.write_pressure(due);
        write_event(&self.system, &event);
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let now_ns = now_ns(cx);
        match signal {
            Signal::ReceiveTimeout => {
                let due = self.pressure.take_due(now_ns, is_under_pressure(cx));
                self.wait_for_window(cx, now_ns);
                self.write_pressure(due);
            }
            Signal::PostStop => self.write_pending(now_ns, is_under_pressure(cx)),
            _ => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

impl Writer {
    /// Arms the receive timeout to the end of the window. It is armed again with each event, so it
    /// is late if events arrive all the time, but then the next event ends the window.
    fn wait_for_window(&self, cx: &mut Context<'_, Self>, now_ns: u64) {
        match self.pressure.window_end_ns() {
            Some(end_ns) => {
                cx.set_receive_timeout(Duration::from_nanos(end_ns.saturating_sub(now_ns)));
            }
            None => cx.cancel_receive_timeout(),
        }
    }

    fn note_pressure(&mut self, now_ns: u64, event: &SystemEvent) {
        if let SystemEvent::Scheduler(Warning::BackpressureState { engaged, reason }) = *event {
            self.pressure.note(now_ns, engaged, reason);
        }
    }

    /// Writes what is left at the stop, warnings first. A subscriber that panics costs the event
    /// that it panics at, and one that is slow delays the stop by a bounded time.
    fn write_pending(&mut self, now_ns: u64, is_under_pressure: bool) {
        let pending = self.pending.close();
        pending.iter().for_each(|event| self.note_pressure(now_ns, event));
        let sum = self.pressure.take(now_ns, is_under_pressure);
        write_catching_panics(|| self.write_pressure(sum));
        let (warnings, others): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_warning);
        let start = OsInstant::now();
        let mut n_left_out = 0_u64;
        for (events, max) in [(warnings, WARNINGS_MAX), (others, OTHERS_MAX)] {
            for event in events {
                if OsInstant::now().saturating_since(start) < max {
                    write_catching_panics(|| write_event(&self.system, &event));
                } else {
                    n_left_out += 1;
                }
            }
        }
        if n_left_out > 0 {
            let text = "events were not written because the system has stopped";
            write_text(&self.system, format_args!("{n_left_out} {text}"));
        }
    }

    fn write_pressure(&self, sum: Option<PressureSum>) {
        if let Some(sum) = sum {
            warn!(target: TARGET, system = &*self.system, reason = %sum, "warning");
        }
    }
}

fn write_catching_panics(write: impl FnOnce()) {
    let mut write = Some(write);
    if let Err(caught) = catch_panic(&mut || write.take().into_iter().for_each(|write| write())) {
        caught.drop_caught(catch_panic);
    }
}

/// Whether an event has at least the level WARN.
fn is_warning(event: &SystemEvent) -> bool {
    !matches!(
        event,
        SystemEvent::Lifecycle(_)
            | SystemEvent::Unhandled(_)
            | SystemEvent::Scheduler(Warning::BackpressureState { .. })
    )
}

fn write_root_failure(system: &str, info: &FailureInfo) {
    let (pid, path) = info.origin();
    let (stage, restarts) = (info.hops(), info.restart_stats.restarts);
    let (reason, code, message_type) = (&info.reason, info.reason.code(), info.message_type);
    error!(
        target: TARGET, system, %pid, %path, %reason, stage, restarts, code, message_type,
        "a failure was escalated to the root"
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
            let reason = "the actor did not handle the message";
            debug!(target: TARGET, system, %pid, %path, reason, message_type, "unhandled");
        }
        SystemEvent::Stuck(stuck) => {
            let (pid, path, message_type) = (stuck.pid, &stuck.path, stuck.message_type);
            let reason = format_args!("the handler has been running for {:?}", stuck.running_for);
            warn!(target: TARGET, system, %pid, %path, %reason, message_type, "stuck");
        }
        SystemEvent::Scheduler(warning @ Warning::BackpressureState { .. }) => {
            debug!(target: TARGET, system, reason = %warning, "pressure");
        }
        other => write_warning(system, other),
    }
}

/// Failures at the root arrive through the hub and are skipped here.
fn write_failure(system: &str, info: &FailureInfo) {
    if info.stage != EscalationStage::Root && !is_mine(&info.path) {
        write_decided(system, info);
    }
}

/// Writes a failure with the decision about it.
pub(crate) fn write_decided(system: &str, info: &FailureInfo) {
    if info.stage == EscalationStage::Root {
        return write_root_failure(system, info);
    }
    let (pid, path, reason) = (info.actor, &info.path, &info.reason);
    let (restarts, code, message_type) =
        (info.restart_stats.restarts, reason.code(), info.message_type);
    let directive = info.directive.map(tracing::field::display);
    warn!(
        target: TARGET, system, %pid, %path, %reason, restarts, code, message_type, directive,
        "failure"
    );
}

/// Writes a warning of the host.
pub(crate) fn write_text(system: &str, reason: fmt::Arguments<'_>) {
    warn!(target: TARGET, system, %reason, "warning");
}

/// Writes which mailbox has refused the most messages.
pub(crate) fn write_refusals(system: &str, refusals: &MailboxRefusals) {
    let path = Some(&*refusals.path.to_string());
    warn!(target: TARGET, system, path, reason = %refusals, "warning");
}

fn write_warning(system: &str, event: &SystemEvent) {
    let (path, reason): (Option<Cow<'_, str>>, Cow<'_, str>) = match event {
        SystemEvent::MailboxOverflow(path) => {
            (Some(path.to_string().into()), "the mailbox is full, and the actor is stopped".into())
        }
        SystemEvent::MailboxRefusals(refusals) => return write_refusals(system, refusals),
        SystemEvent::Straggler(path) => (
            Some(path.to_string().into()),
            "the actor was asked to stop and has not stopped".into(),
        ),
        SystemEvent::AskCycle(cycle) => {
            let paths: Vec<_> = cycle.paths.iter().map(ActorPath::to_string).collect();
            (Some(paths.join(" ").into()), "the actors wait for answers of each other".into())
        }
        SystemEvent::Scheduler(warning) => (None, warning.to_string().into()),
        SystemEvent::EventsDropped(n) => (
            None,
            format!("{n} events were lost because they arrived faster than they were written")
                .into(),
        ),
        other => (None, format!("{other:?}").into()),
    };
    let path = path.as_deref();
    warn!(target: TARGET, system, path, reason = &*reason, "warning");
}

/// The time since the start of the system's clock.
fn now_ns(cx: &Context<'_, Writer>) -> u64 {
    let now = cx.now();
    let elapsed = now.since(TimerInstant::new(Tick::ZERO, now.resolution()));
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether the scheduler is under pressure at present: an event about a change may be lost.
fn is_under_pressure(cx: &Context<'_, Writer>) -> bool {
    cx.system().scheduler().jobs().is_under_pressure()
}

fn is_mine(path: &ActorPath) -> bool {
    path.depth() == 2 && path.to_string() == PATH
}
