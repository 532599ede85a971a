//! How a system comes to its end: the phases of its shutdown, driven by its own executor.
//!
//! The first who asks starts the [driver](Driver), a future on the system's executor, which polls
//! the [engine](crate::shutdown) with the executor's time and a timer for the end of each phase.
//! In the last phase it stops the root, and waits.
//!
//! *Why it cannot hang*: each phase has its time, the last one as well. If phases are left out, by
//! an abort or because the shutdown began behind the last one, the driver stops the root by itself
//! and waits as long as the last phase would. If the driver cannot be started or is dropped by
//! force, the root is stopped at once.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use clockjack_exec::{Handle, Timer};
use clockjack_sync::{
    Counted, mutant,
    prim::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
};

use super::{
    ActorSystem, SystemInner, Termination, TerminationReport, ends::Stopped, termination::Settled,
};
use crate::{
    ActorRef, Failure,
    base::{STOP, Tell as _},
    shutdown::{
        Begin, Phase, Progress, Reason, Report, SharedShutdown, ShutdownConfig,
        ShutdownConfigError, ShutdownTaskError, TaskFuture, TaskHandle, UnknownPhase,
    },
    spawn,
};

/// The shutdown of a system.
pub(super) struct Ending {
    pub(super) phases: SharedShutdown,
    ends_system: bool,
    is_run_by_terminate: bool,
    /// How long the last phase may take.
    last: Duration,
    is_root_told: AtomicBool,
}

impl Ending {
    pub(super) fn new(config: &ShutdownConfig) -> Result<Self, ShutdownConfigError> {
        let phases = SharedShutdown::new(config)?;
        let is_last =
            |one: &&crate::shutdown::PhaseConfig| one.phase == Phase::ACTOR_SYSTEM_TERMINATE;
        let last = config.phases.iter().find(is_last).map_or(Duration::MAX, |one| one.timeout);
        Ok(Self {
            phases,
            ends_system: config.terminate_actor_system,
            is_run_by_terminate: config.run_by_actor_system_terminate,
            last,
            is_root_told: AtomicBool::new(false),
        })
    }
}

/// A task of the shutdown that was added, for its cancellation. Dropping it changes nothing.
#[derive(Clone)]
pub struct ShutdownTask {
    system: ActorSystem,
    task: TaskHandle,
}

impl ShutdownTask {
    /// Takes the task back if its phase has not begun; true if that is so and it was not taken
    /// before. It is dropped, never polled.
    pub fn cancel(&self) -> bool {
        self.system.inner().ending.phases.cancel(&self.task).is_some()
    }
}

impl fmt::Debug for ShutdownTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownTask").field("task", &self.task).finish_non_exhaustive()
    }
}

impl ActorSystem {
    /// Ends the system: runs the phases of its shutdown, the last of which stops all actors. The
    /// first call decides; all get the same report.
    ///
    /// If a phase goes wrong that does not recover, the later ones are left out, but the actors are
    /// stopped all the same, and [`TerminationReport::aborted`] says why. If the configuration says
    /// that the end of the system does not run the phases, the actors are stopped at once, and
    /// tasks of the shutdown are dropped.
    pub fn terminate(&self) -> Termination {
        self.0.terminate(Reason::ACTOR_SYSTEM_TERMINATE);
        self.when_terminated()
    }

    /// As [`terminate`](Self::terminate), beginning with this phase.
    ///
    /// # Errors
    ///
    /// If there is no such phase, and nobody has asked before.
    pub fn terminate_from(&self, phase: Phase) -> Result<Termination, UnknownPhase> {
        self.run_shutdown(Reason::ACTOR_SYSTEM_TERMINATE, Some(phase))
    }

    /// Runs the phases of the shutdown for this reason, from the given one on or all of them. By
    /// the configuration that ends the system; if it does not, the future waits until something
    /// else does.
    ///
    /// # Errors
    ///
    /// As [`terminate_from`](Self::terminate_from).
    pub fn run_shutdown(
        &self,
        reason: Reason,
        from: Option<Phase>,
    ) -> Result<Termination, UnknownPhase> {
        self.0.run_phases(reason, from)?;
        Ok(self.when_terminated())
    }

    /// What is known of the shutdown so far; none if nobody has asked for it.
    #[must_use]
    pub fn shutdown_so_far(&self) -> Option<Report> {
        self.0.ending.phases.report_so_far()
    }

    /// Adds a task to a phase of the shutdown. Several may have one name. It may be called from a
    /// task of an earlier phase.
    ///
    /// # Errors
    ///
    /// The task comes back: if the name is empty, there is no such phase, it has begun or will not
    /// come any more, there are too many tasks, or the system is sealed.
    pub fn on_shutdown(
        &self,
        phase: Phase,
        name: &str,
        task: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<(), ShutdownTaskError> {
        self.add_shutdown_task(phase, name, task).map(drop)
    }

    /// As [`on_shutdown`](Self::on_shutdown), for a task that may be taken back.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_shutdown_task(
        &self,
        phase: Phase,
        name: &str,
        task: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<ShutdownTask, ShutdownTaskError> {
        self.add_boxed(phase, name, Box::pin(task))
    }

    fn add_boxed(
        &self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<ShutdownTask, ShutdownTaskError> {
        if self.0.is_sealed() {
            return Err(ShutdownTaskError::sealed(phase, name, task));
        }
        let task = self.0.ending.phases.add_task(phase, name, task)?;
        Ok(ShutdownTask { system: self.clone(), task })
    }

    /// Adds a task that waits until an actor has ended. When its phase begins the actor is sent
    /// `stop`, if that is a message: behind all that it was sent before, and as soon as its mailbox
    /// has room. That it has ended before is as good.
    ///
    /// # Errors
    ///
    /// As [`on_shutdown`](Self::on_shutdown).
    pub fn on_shutdown_await<M: Send + 'static>(
        &self,
        phase: Phase,
        name: &str,
        actor: &ActorRef<M>,
        stop: Option<M>,
    ) -> Result<ShutdownTask, ShutdownTaskError> {
        let ended = Stopped::new(actor.any().clone());
        let stop = stop.map(|stop| {
            let actor = actor.clone();
            // Of one that has ended already nothing is wanted.
            move || async move { drop(actor.send(stop).await) }
        });
        self.add_boxed(phase, name, crate::shutdown::termination(stop, ended))
    }

    /// Calls `call` when the system has terminated, on whatever thread that is; at once if it has.
    /// False if it is never called, because the system was sealed and has not terminated.
    pub fn on_terminated(&self, call: impl FnOnce(&TerminationReport) + Send + 'static) -> bool {
        if self.0.is_sealed() {
            return self.0.end.report().map(|report| call(&report)).is_some();
        }
        if let Some((call, report)) = self.0.end.add_hook(Box::new(call)) {
            call(&report);
        }
        true
    }

    /// As [`terminate`](Self::terminate), for a reason of the host's.
    #[doc(hidden)]
    pub fn terminate_for(&self, reason: Reason) -> Termination {
        self.0.terminate(reason);
        self.when_terminated()
    }

    /// The host waits no longer, and is about to end what is left by force: those are stragglers,
    /// and that is what all who wait are told.
    #[doc(hidden)]
    pub fn give_up(&self) -> TerminationReport {
        let settled = self.0.end.give_up(self.0.alive(), self.shutdown_so_far());
        self.0.settled(settled);
        self.report_by_force()
    }

    /// The host has ended everything that there was.
    #[doc(hidden)]
    pub fn host_ended(&self) {
        if !self.0.end.is_root_gone() {
            self.0.root_ended();
        }
    }

    /// The report, or what it would be if all that is alive now were a straggler. For hosts that
    /// end a system by force.
    #[doc(hidden)]
    #[must_use]
    pub fn report_by_force(&self) -> TerminationReport {
        self.0.end.report().unwrap_or_else(|| TerminationReport {
            reason: self.0.end.reason(),
            stragglers: self.tree(),
            shutdown: self.shutdown_so_far(),
        })
    }
}

impl SystemInner {
    /// Ends the system.
    pub(crate) fn terminate(&self, reason: Reason) {
        if self.ending.is_run_by_terminate {
            // The first phase is always known.
            let _ = self.run_phases(reason, None);
        } else {
            self.end.set_reason(reason.as_str());
            self.stop_root();
        }
    }

    fn run_phases(&self, reason: Reason, from: Option<Phase>) -> Result<(), UnknownPhase> {
        let ending = &self.ending;
        let text = String::from(reason.as_str());
        if ending.phases.run(reason, from)? == Begin::Already {
            return Ok(());
        }
        self.end.set_reason(&text);
        self.end.begin_driver();
        let system = self.keep();
        if ending.ends_system {
            let task: TaskFuture = Box::pin(StopRoot(system.clone()));
            let phase = Phase::ACTOR_SYSTEM_TERMINATE;
            // Too late only if a driver runs, which is started below. If there are too many tasks
            // the driver stops the root by itself.
            drop(ending.phases.add_task(phase, "stop all actors", task));
        }
        drop(self.default.spawn(drive(Driver { system, is_done: false })));
        Ok(())
    }

    /// Tells the root to stop.
    fn stop_root(&self) {
        // AcqRel: only a flag, but others may act by it.
        self.ending.is_root_told.swap(true, AcqRel);
        if let Some(guardians) = self.guardians() {
            guardians.root.order(STOP);
        }
    }

    /// Tells those who wait that the system has ended.
    pub(super) fn settled(&self, settled: Option<Settled>) {
        let Some(mut settled) = settled else { return };
        // Tasks that will not run any more are not kept.
        if !mutant!("shutdown-tasks-kept") {
            for task in self.ending.phases.give_up() {
                let mut task = Some(task);
                super::contained(&self.default, &mut || drop(task.take()));
            }
        }
        for waker in settled.take_wakers() {
            super::wake_contained(&self.default, waker);
        }
        for hook in core::mem::take(&mut settled.hooks) {
            let mut hook = Some(hook);
            super::contained(&self.default, &mut || {
                if let Some(hook) = hook.take() {
                    hook(&settled.report);
                }
            });
        }
    }
}

/// The task of the last phase.
struct StopRoot(Counted<SystemInner>);

impl Future for StopRoot {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Acquire: a flag of this task's own, mostly.
        if !self.0.ending.is_root_told.load(Acquire) {
            self.0.stop_root();
        }
        self.0.end.poll_root(cx).map(Ok)
    }
}

/// Polls the shutdown; see the [module](self).
struct Driver {
    system: Counted<SystemInner>,
    is_done: bool,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.is_done {
            self.system.stop_root();
            let settled = self.system.end.driver_over(Vec::new(), None);
            self.system.settled(settled);
        }
    }
}

async fn drive(mut driver: Driver) {
    let system = driver.system.clone();
    let mut alarm = Alarm::new(&system.default);
    let report = poll_fn(|cx| poll_phases(&system, &mut alarm, cx)).await;
    let ending = &system.ending;
    if ending.ends_system {
        // Acquire: as in `StopRoot`.
        if !ending.is_root_told.load(Acquire) && !mutant!("shutdown-abort-hangs") {
            system.stop_root();
            let until = u64::try_from(ending.last.as_nanos())
                .map_or(u64::MAX, |nanos| system.nanos().saturating_add(nanos));
            poll_fn(|cx| {
                alarm.set(Some(until), system.nanos(), cx);
                let is_late = system.nanos() >= until;
                if is_late { Poll::Ready(()) } else { system.end.poll_root(cx) }
            })
            .await;
        }
        let is_late = !system.end.is_root_gone();
        let stragglers = if is_late { system.alive() } else { Vec::new() };
        driver.is_done = true;
        let settled = system.end.driver_over(stragglers, report);
        system.settled(settled);
    } else {
        // The phases were all that was asked for.
        driver.is_done = true;
        let settled = system.end.driver_over(Vec::new(), None);
        system.settled(settled);
    }
}

fn poll_phases(
    system: &SystemInner,
    alarm: &mut Alarm,
    cx: &mut Context<'_>,
) -> Poll<Option<Report>> {
    let host = system.default.engine().host();
    let mut guard = |call: &mut dyn FnMut()| {
        host.guarded(call).map_err(|caught| {
            let text = String::from(caught.message());
            let mut caught = Some(caught);
            super::contained(&system.default, &mut || drop(caught.take()));
            text
        })
    };
    let now = system.nanos();
    match system.ending.phases.poll(now, cx, &mut guard) {
        Progress::Idle => Poll::Ready(None),
        Progress::Done(report) => Poll::Ready(Some(report)),
        Progress::Running { deadline_nanos } => {
            alarm.set(deadline_nanos, now, cx);
            Poll::Pending
        }
    }
}

/// A timer for one time.
struct Alarm {
    timer: Timer,
    armed_for: Option<u64>,
}

impl Alarm {
    fn new(executor: &Handle) -> Self {
        Self { timer: executor.timer(), armed_for: None }
    }

    /// Wakes the task at this time.
    fn set(&mut self, at: Option<u64>, now: u64, cx: &mut Context<'_>) {
        if at == self.armed_for && (at.is_none() || self.timer.is_armed()) {
            return;
        }
        self.armed_for = at;
        let Some(at) = at.filter(|at| *at != u64::MAX) else {
            self.timer.cancel();
            return;
        };
        let after = Duration::from_nanos(at.saturating_sub(now));
        if self.timer.arm(after, cx.waker().clone()).is_err() {
            // No timer is to be had: to look again and again is better than to wait for ever.
            self.armed_for = None;
            cx.waker().wake_by_ref();
        }
    }
}

impl SystemInner {
    pub(super) fn nanos(&self) -> u64 {
        self.default.engine().host().nanos()
    }

    /// The paths of all that have not ended.
    fn alive(&self) -> Vec<crate::ActorPath> {
        let guardians = self.guardians();
        let all = guardians.map_or_else(Vec::new, |guardians| spawn::below(&guardians.root));
        all.iter().map(|actor| actor.path.clone()).collect()
    }
}
