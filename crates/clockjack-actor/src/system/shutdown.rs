//! The coordinated shutdown of a system, driven by the system's own executor.
//!
//! The first request spawns the [driver](Driver), a future on the system's executor. It polls the
//! [shutdown engine](crate::shutdown) with the executor's time and sets a timer for the deadline of
//! each phase. In the last phase it stops the root actor and waits for it.
//!
//! Once the report of the termination is set, the thread that has set it closes the scheduler: the
//! close tasks run and the remaining jobs are cancelled. Only then are waiters woken and hooks
//! called, so for a caller that already waits nothing of the scheduler runs behind a system that
//! has terminated. A caller that asks for the report in between sees it while close tasks still
//! run. A host with threads that waits for the termination closes the scheduler itself, on a thread
//! that is no worker, because close tasks may wait for workers.
//!
//! *Why it cannot hang*: each phase has a time-out, including the last one. If phases are skipped,
//! because the shutdown was aborted or began after the last phase, the driver itself stops the root
//! and waits as long as the last phase would. If the driver cannot be spawned or is dropped by
//! force, its drop stops the root at once. The close of the scheduler begins no more handlers after
//! the time-out of the last phase, or after the deadline of the host, if that is earlier.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use clockjack_exec::{Handle, Pid, Timer};
use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
    spin_lock::SpinLock,
};

use super::{
    ActorSystem, HANDLE, SystemInner, Termination, TerminationReport, stop_waiters::Stopped,
    termination::TerminationNotice,
};
use crate::{
    ActorRef, Failure,
    cell::{
        children::{ChildPhase, Direction, read_all},
        header::{AnyActor, STOP, STOPPED, SystemSend as _},
        spawn,
    },
    shutdown::{
        Begin, InvalidConfig, Phase, Progress, Reason, Report, SharedShutdown, ShutdownConfig,
        ShutdownError, TaskFuture, TaskHandle,
    },
};

/// How long close tasks and due jobs may run if the deadline of the host has passed already.
const CLOSE_TIME_MIN: Duration = Duration::from_millis(50);

/// The shutdown state of a system.
pub(super) struct SystemShutdown {
    pub(super) phases: SharedShutdown,
    terminates_system: bool,
    runs_on_terminate: bool,
    /// The time-out of the last phase.
    last_timeout: Duration,
    is_root_stopping: AtomicBool,
    scheduler_close: SpinLock<SchedulerClose>,
}

/// Who closes the scheduler when the system has terminated.
#[derive(Clone, Copy)]
enum SchedulerClose {
    /// The system.
    System,
    /// The system, by this time.
    SystemUntil { nanos: u64 },
    /// The host, which waits for the termination.
    Host,
}

impl SystemShutdown {
    pub(super) fn new(config: &ShutdownConfig) -> Result<Self, InvalidConfig> {
        let phases = SharedShutdown::new(config)?;
        let is_last =
            |one: &&crate::shutdown::PhaseConfig| one.phase == Phase::ACTOR_SYSTEM_TERMINATE;
        let last_timeout =
            config.phases.iter().find(is_last).map_or(Duration::MAX, |one| one.timeout);
        Ok(Self {
            phases,
            terminates_system: config.terminate_actor_system,
            runs_on_terminate: config.run_by_actor_system_terminate,
            last_timeout,
            is_root_stopping: AtomicBool::new(false),
            scheduler_close: SpinLock::new(SchedulerClose::System),
        })
    }
}

/// A handle to cancel a shutdown task. Dropping the handle has no effect on the task.
#[derive(Clone)]
pub struct ShutdownTask {
    system: Arc<SystemInner>,
    task: TaskHandle,
}

impl ShutdownTask {
    /// Cancels the task, if its phase has not begun: the task is dropped without ever being polled.
    /// Returns whether this call has cancelled it.
    pub fn cancel(&self) -> bool {
        self.system.shutdown.phases.cancel(&self.task).is_some()
    }
}

impl fmt::Debug for ShutdownTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShutdownTask").field("task", &self.task).finish_non_exhaustive()
    }
}

impl ActorSystem {
    /// Shuts the system down: runs the phases of its coordinated shutdown, the last of which stops
    /// all actors, and then closes the scheduler, which runs its close tasks. The first call
    /// decides; all callers get the same report.
    ///
    /// If a phase fails and is not configured to recover, the later phases are skipped, but the
    /// actors are stopped all the same, and [`TerminationReport::aborted`] gives the reason. If the
    /// configuration says that `shutdown` does not run the phases, the actors are stopped at once,
    /// and the shutdown tasks are dropped.
    pub fn shutdown(&self) -> Termination {
        self.0.terminate(Reason::ACTOR_SYSTEM_TERMINATE);
        self.when_terminated()
    }

    /// Runs the phases of the shutdown for this reason, either all of them or from the given phase
    /// on. By default that terminates the system; if the configuration says otherwise, the returned
    /// future waits until something else terminates it.
    ///
    /// # Errors
    ///
    /// If there is no such phase, and no shutdown was requested before.
    pub fn shutdown_with(
        &self,
        reason: Reason,
        from: Option<Phase>,
    ) -> Result<Termination, ShutdownError> {
        self.0.run_phases(reason, from)?;
        Ok(self.when_terminated())
    }

    /// The report of the shutdown so far; `None` if no shutdown was requested.
    #[must_use]
    pub fn shutdown_so_far(&self) -> Option<Report> {
        self.0.shutdown.phases.report_so_far()
    }

    /// Adds a task to a phase of the shutdown. Several tasks may have the same name. A task of an
    /// earlier phase may call this function. The returned handle cancels the task.
    ///
    /// # Errors
    ///
    /// Returns the task to the caller if the name is empty, if there is no such phase, if the phase
    /// has begun or will not run any more, if there are too many tasks, or if the system is sealed.
    pub fn on_shutdown(
        &self,
        phase: Phase,
        name: &str,
        task: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<ShutdownTask, ShutdownError> {
        self.add_boxed(phase, name, Box::pin(task))
    }

    fn add_boxed(
        &self,
        phase: Phase,
        name: &str,
        task: TaskFuture,
    ) -> Result<ShutdownTask, ShutdownError> {
        if self.0.is_sealed() {
            return Err(ShutdownError::sealed(phase, name, task));
        }
        let task = self.0.shutdown.phases.add_task(phase, name, task)?;
        Ok(ShutdownTask { system: self.0.clone(), task })
    }

    /// Adds a task that waits until an actor has stopped. When its phase begins, the actor is sent
    /// `stop`, if given: after all messages that it was sent before, and as soon as its mailbox has
    /// room. The task also succeeds if the actor has stopped before.
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
    ) -> Result<ShutdownTask, ShutdownError> {
        let stopped = Stopped::new(actor.any().clone());
        let stop = stop.map(|stop| {
            let actor = actor.clone();
            // An actor that has already stopped needs no message.
            move || async move { drop(actor.send(stop).await) }
        });
        self.add_boxed(phase, name, crate::shutdown::termination(stop, stopped))
    }

    /// Calls `hook` when the system has terminated, on whichever thread that happens; at once if it
    /// has already. Returns false if the hook will never be called, because the system was sealed
    /// and has not terminated.
    pub fn on_terminated(&self, hook: impl FnOnce(&TerminationReport) + Send + 'static) -> bool {
        if self.0.is_sealed() {
            return self.0.termination.report().map(|report| hook(&report)).is_some();
        }
        if let Some((hook, report)) = self.0.termination.add_hook(Box::new(hook)) {
            hook(&report);
        }
        true
    }

    /// For hosts: the shutdown that is about to begin should be complete within `timeout`.
    #[doc(hidden)]
    pub fn set_host_deadline(&self, timeout: Duration) {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let nanos = self.0.now_nanos().saturating_add(nanos);
        let close = SchedulerClose::SystemUntil { nanos };
        self.0.shutdown.scheduler_close.with(|place| *place = close);
    }

    /// For hosts that wait for the termination and then close the scheduler themselves.
    #[doc(hidden)]
    pub fn leave_scheduler_to_host(&self) {
        self.0.shutdown.scheduler_close.with(|place| *place = SchedulerClose::Host);
    }

    /// As [`shutdown`](Self::shutdown), for a reason that the host gives.
    #[doc(hidden)]
    pub fn shutdown_for(&self, reason: Reason) -> Termination {
        self.0.terminate(reason);
        self.when_terminated()
    }

    /// For hosts: a future that completes when this child of `/user` has stopped; `None` if there
    /// is no such child any more.
    #[doc(hidden)]
    #[must_use]
    pub fn when_top_level_stopped(&self, pid: Pid) -> Option<Stopped> {
        self.top_level(|child| child.pid() == pid).map(Stopped::new)
    }

    /// For hosts: a future that completes when some child of `/user` has stopped; `None` if all
    /// have stopped.
    #[doc(hidden)]
    #[must_use]
    pub fn when_any_top_level_stopped(&self) -> Option<Stopped> {
        self.top_level(|child| !child.is_stopped()).map(Stopped::new)
    }

    /// For hosts: whether `/user` has a child that neither has stopped nor is about to.
    #[doc(hidden)]
    #[must_use]
    pub fn has_top_level_actors(&self) -> bool {
        let stays = |child: &AnyActor| child.flags() & (STOP | STOPPED) == 0;
        let Some(newest) = self.top_level(stays) else { return false };
        // A group orders its members to stop one after the other: the phase says earlier than the
        // flag that a member stops. Most systems have no group, so the newest child is enough.
        if !self.stops_with_group(&newest) {
            return true;
        }
        let Some(user) = self.0.user() else { return false };
        let all = user
            .children()
            .map_or_else(Vec::new, |children| read_all(children, Direction::NewestFirst));
        all.iter().any(|child| stays(child) && !self.stops_with_group(child))
    }

    /// Whether a child of `/user` has left, or is to stop because a sibling has failed.
    fn stops_with_group(&self, child: &AnyActor) -> bool {
        let Some(user) = self.0.user() else { return true };
        let phase = user.children().and_then(|all| all.with(|all| all.phase_of(child)));
        matches!(phase, None | Some(ChildPhase::ToStop | ChildPhase::Stopping))
    }

    fn top_level(&self, is_it: impl Fn(&AnyActor) -> bool) -> Option<AnyActor> {
        let user = self.0.user()?;
        let children = user.children()?;
        let newest = children.with(|all| all.newest().cloned())?;
        if is_it(&newest) {
            return Some(newest);
        }
        let all = read_all(children, Direction::NewestFirst);
        all.into_iter().find(is_it)
    }

    /// For hosts: the number of handles to this system. Only the owner of a handle, and an actor,
    /// can start an actor. What only waits for the system or observes it
    /// ([`uncounted`](Self::uncounted)) is not counted.
    #[doc(hidden)]
    #[must_use]
    pub fn n_handles(&self) -> usize {
        // Acquire: pairs with the `fetch_sub` of a dropped handle, so that the caller sees what the
        // owner did with it before.
        self.0.handles.load(Acquire) / HANDLE
    }

    /// For hosts: stop waiting for the actors, which the host is about to stop by force. The actors
    /// that are alive are reported as stragglers to everyone who waits for the termination.
    #[doc(hidden)]
    pub fn force_termination(&self) -> TerminationReport {
        let notice = self.0.termination.force_report(self.0.live_paths(), self.shutdown_so_far());
        self.0.notify_terminated(notice);
        self.forced_report()
    }

    /// For hosts: everything that ran on the host has been stopped.
    #[doc(hidden)]
    pub fn host_stopped(&self) {
        if !self.0.termination.is_root_stopped() {
            self.0.root_stopped();
        }
    }

    /// For hosts that stop a system by force: the report, or, if there is none yet, one that lists
    /// all live actors as stragglers.
    #[doc(hidden)]
    #[must_use]
    pub fn forced_report(&self) -> TerminationReport {
        self.0.termination.report().unwrap_or_else(|| TerminationReport {
            reason: self.0.termination.reason(),
            stragglers: self.tree(),
            shutdown: self.shutdown_so_far(),
        })
    }
}

impl SystemInner {
    /// Terminates the system.
    pub(crate) fn terminate(&self, reason: Reason) {
        if self.shutdown.runs_on_terminate {
            // No phase is named, so none can be unknown.
            let _ = self.run_phases(reason, None);
        } else {
            self.termination.set_reason(reason.as_str());
            self.stop_root();
        }
    }

    fn run_phases(&self, reason: Reason, from: Option<Phase>) -> Result<(), ShutdownError> {
        let shutdown = &self.shutdown;
        let text = String::from(reason.as_str());
        if shutdown.phases.run(reason, from)? == Begin::Already {
            return Ok(());
        }
        self.termination.set_reason(&text);
        self.termination.driver_started();
        let system = self.clone_inner();
        if shutdown.terminates_system {
            let task: TaskFuture = Box::pin(StopRoot(system.clone()));
            let phase = Phase::ACTOR_SYSTEM_TERMINATE;
            // The phase can be refused as too late only if a driver is running, but the driver is
            // spawned below. If there are too many tasks, the driver itself stops the root.
            drop(shutdown.phases.add_task(phase, "stop all actors", task));
        }
        drop(self.default.spawn_future(drive(Driver { system, is_done: false })));
        Ok(())
    }

    /// Sends the root actor the order to stop.
    fn stop_root(&self) {
        // AcqRel: pairs with the Acquire loads of the flag in `StopRoot` and `drive`.
        if !self.shutdown.is_root_stopping.swap(true, AcqRel) {
            let tasks = u32::try_from(self.default.executor().live_len()).unwrap_or(u32::MAX);
            self.record(clockjack_observe::Event::ShutdownStarted { tasks });
        }
        if let Some(guardians) = self.guardians() {
            guardians.root.wake_with(STOP);
        }
    }

    /// Closes the scheduler, unless the host does. Jobs and close tasks have the time of the last
    /// phase.
    fn close_scheduler(&self) {
        let rest = match self.shutdown.scheduler_close.with(|close| *close) {
            SchedulerClose::Host => return,
            SchedulerClose::System => Duration::MAX,
            SchedulerClose::SystemUntil { nanos } => {
                Duration::from_nanos(nanos.saturating_sub(self.now_nanos())).max(CLOSE_TIME_MIN)
            }
        };
        self.jobs().shutdown_within(rest.min(self.shutdown.last_timeout));
    }

    /// Closes the scheduler, wakes everyone who waits for the termination and calls the hooks, if
    /// there is a notice.
    pub(super) fn notify_terminated(&self, notice: Option<TerminationNotice>) {
        let Some(mut notice) = notice else { return };
        self.close_scheduler();
        // Tasks that will not run any more are dropped.
        for task in self.shutdown.phases.discard_tasks() {
            let mut task = Some(task);
            super::call_catching_panics(&self.default, &mut || drop(task.take()));
        }
        for waker in notice.take_wakers() {
            super::wake_catching_panics(&self.default, waker);
        }
        for hook in core::mem::take(&mut notice.hooks) {
            let mut hook = Some(hook);
            super::call_catching_panics(&self.default, &mut || {
                if let Some(hook) = hook.take() {
                    hook(&notice.report);
                }
            });
        }
    }
}

/// The task of the last phase: stops the root actor and waits for it.
struct StopRoot(Arc<SystemInner>);

impl Future for StopRoot {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Acquire: pairs with the swap in `stop_root`.
        if !self.0.shutdown.is_root_stopping.load(Acquire) {
            self.0.stop_root();
        }
        self.0.termination.poll_root(cx).map(Ok)
    }
}

/// Marks the life of the driver future; see the [module](self).
struct Driver {
    system: Arc<SystemInner>,
    is_done: bool,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.is_done {
            self.system.stop_root();
            let notice = self.system.termination.driver_finished(Vec::new(), None);
            self.system.notify_terminated(notice);
        }
    }
}

async fn drive(mut driver: Driver) {
    let system = driver.system.clone();
    let mut timer = DeadlineTimer::new(&system.default);
    let report = poll_fn(|cx| poll_phases(&system, &mut timer, cx)).await;
    let shutdown = &system.shutdown;
    if shutdown.terminates_system {
        // Acquire: as in `StopRoot`.
        if !shutdown.is_root_stopping.load(Acquire) {
            system.stop_root();
            let until = u64::try_from(shutdown.last_timeout.as_nanos())
                .map_or(u64::MAX, |nanos| system.now_nanos().saturating_add(nanos));
            poll_fn(|cx| {
                timer.set(Some(until), system.now_nanos(), cx);
                let is_late = system.now_nanos() >= until;
                if is_late { Poll::Ready(()) } else { system.termination.poll_root(cx) }
            })
            .await;
        }
        let is_late = !system.termination.is_root_stopped();
        let stragglers = if is_late { system.live_paths() } else { Vec::new() };
        driver.is_done = true;
        let notice = system.termination.driver_finished(stragglers, report);
        system.notify_terminated(notice);
    } else {
        // The configuration asks only for the phases, not for the termination of the system.
        driver.is_done = true;
        let notice = system.termination.driver_finished(Vec::new(), None);
        system.notify_terminated(notice);
    }
}

fn poll_phases(
    system: &SystemInner,
    timer: &mut DeadlineTimer,
    cx: &mut Context<'_>,
) -> Poll<Option<Report>> {
    let host = system.default.executor().toolbox();
    let mut guard = |call: &mut dyn FnMut()| {
        host.catch_unwind(call).map_err(|caught| {
            let text = String::from(caught.message());
            let mut caught = Some(caught);
            super::call_catching_panics(&system.default, &mut || drop(caught.take()));
            text
        })
    };
    let now = system.now_nanos();
    match system.shutdown.phases.poll(now, cx, &mut guard) {
        Progress::Idle => Poll::Ready(None),
        Progress::Done(report) => Poll::Ready(Some(report)),
        Progress::Running { deadline_nanos } => {
            timer.set(deadline_nanos, now, cx);
            Poll::Pending
        }
    }
}

/// A timer for one deadline at a time.
struct DeadlineTimer {
    timer: Timer,
    armed_for: Option<u64>,
}

impl DeadlineTimer {
    fn new(executor: &Handle) -> Self {
        Self { timer: executor.timer(), armed_for: None }
    }

    /// Arms the timer to wake the task at this time, unless it is already armed for it.
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
            // No timer is available: polling continuously is better than waiting forever.
            self.armed_for = None;
            cx.waker().wake_by_ref();
        }
    }
}

impl SystemInner {
    pub(super) fn now_nanos(&self) -> u64 {
        self.default.executor().toolbox().nanos()
    }

    /// The paths of all actors that have not stopped.
    fn live_paths(&self) -> Vec<crate::ActorPath> {
        let guardians = self.guardians();
        let all = guardians.map_or_else(Vec::new, |guardians| spawn::descendants(&guardians.root));
        all.iter().map(|actor| actor.path.clone()).collect()
    }
}
