//! Clockjack's own commands: what every process may yield without a user's handler.
//!
//! | command | number | reply |
//! |---|---|---|
//! | [`Send`] | 1 | `()` when the message is in the other's mailbox |
//! | [`Spawn`] | 2 | the [`Pid`] of the new process |
//! | [`Terminate`] | 3 | `()` when the termination is certain |
//! | [`Cancel`] | 4 | `()` when the other process will receive the request |
//! | [`Monitor`], [`Unmonitor`] | 5, 6 | `()`, and an [`Event::Exit`](crate::Event::Exit) later |
//! | [`Link`], [`Unlink`] | 7, 8 | `()` |
//! | [`Exec`] | 9 | the result of the process or future |
//! | [`SleepFor`] | 10 | `()` when the time has come |
//! | [`RepeatEvery`] | 11 | an [`IntervalTick`] each time |
//!
//! A command that fails completes with a code from [`command`](crate::command). Numbers up to 255
//! are reserved for more commands; runtimes add theirs, for example for blocking work.

use alloc::boxed::Box;
use core::{fmt, pin::Pin, time::Duration};

use clockjack_sync::Arc;
use clockjack_time::{Tick, TimerId};

use crate::{
    command::{
        ALREADY_WATCHED, Command, CommandId, ErasedCompleter, NO_PROCESS, NO_ROOM, SELF_REFERENCE,
        STOPPING, UNKNOWN_COMMAND, WRONG_COMMAND,
    },
    error::SubmitError,
    exit::JoinError,
    failure::Failure,
    handle::Handle,
    payload::{Payload, Payloads},
    pid::Pid,
    process::Process,
    process::links,
    task::join::JoinHandle,
    task::{HeaderRef, TaskRef},
    timer::action::{CommandTimer, CurrentTimer, IntervalTick, Repeats, TimerAction},
    timer::period::Period,
};

/// Whether a number is reserved.
pub(crate) fn is_reserved(id: CommandId) -> bool {
    id < CommandId::FIRST_FREE
}

macro_rules! commands {
    ($($id:literal $name:ident -> $reply:ty = $execute:path;)*) => {
        $(impl Command for $name {
            const ID: CommandId = CommandId($id);
            type Reply = $reply;
        })*

        /// Executes one of this module's commands.
        pub(crate) fn dispatch(id: CommandId, command: Payload, completer: ErasedCompleter) {
            match id.0 {
                $($id => match command.downcast::<$name>() {
                    Ok(command) => $execute(command, completer),
                    Err(_) => completer.fail(WRONG_COMMAND.failure()),
                },)*
                _ => completer.fail(UNKNOWN_COMMAND.failure()),
            }
        }
    };
}

commands! {
    1 Send -> () = Send::execute;
    2 Spawn -> Pid = Spawn::execute;
    3 Terminate -> () = Terminate::execute;
    4 Cancel -> () = Cancel::execute;
    5 Monitor -> () = Monitor::execute;
    6 Unmonitor -> () = Unmonitor::execute;
    7 Link -> () = Link::execute;
    8 Unlink -> () = Unlink::execute;
    9 Exec -> Payload = Exec::execute;
    10 SleepFor -> () = SleepFor::execute;
    11 RepeatEvery -> IntervalTick = RepeatEvery::execute;
}

/// Sends a message to a process by its pid.
#[derive(Debug)]
pub struct Send {
    /// The receiver.
    pub to: Pid,
    /// The message, of the type that the process takes.
    pub message: Payload,
}

impl Send {
    fn execute(self, completer: ErasedCompleter) {
        match completer.executor().send(self.to, self.message) {
            Ok(()) => completer.reply(()),
            Err(refused) => completer.fail(refused.discard().into()),
        }
    }
}

/// Starts a process; its second argument is called before the first poll of the process.
type Starter = Box<
    dyn FnOnce(
            &Handle,
            &dyn Fn(HeaderRef<'_>),
        ) -> Result<(Pid, Option<JoinHandle<Payload>>), Failure>
        + core::marker::Send,
>;

/// Starts a process.
pub struct Spawn {
    start: Starter,
    is_linked: bool,
    is_monitored: bool,
}

impl Spawn {
    /// Starts a process.
    pub fn new<P>(process: P) -> Self
    where
        P: Process + core::marker::Send,
        P::Message: core::marker::Send,
    {
        Self::method(process, "", Payloads::new())
    }

    /// Starts a process by one of its methods.
    pub fn method<P>(process: P, method: &'static str, input: Payloads) -> Self
    where
        P: Process + core::marker::Send,
        P::Message: core::marker::Send,
    {
        let start = starter(process, method, input, false);
        Self { start, is_linked: false, is_monitored: false }
    }

    /// Links it to the process that yields this command, before the reply.
    #[must_use]
    pub fn linked(mut self) -> Self {
        self.is_linked = true;
        self
    }

    /// Monitors it for the process that yields this command, before the reply.
    #[must_use]
    pub fn monitored(mut self) -> Self {
        self.is_monitored = true;
        self
    }

    fn execute(self, completer: ErasedCompleter) {
        let header = completer.task().header();
        // The links are made before the first poll, so that the end of even the shortest process is
        // not missed.
        let link_and_monitor = |other: HeaderRef<'_>| {
            // A process that was never polled has not ended, so it accepts both.
            if self.is_linked {
                drop(links::link(header, other));
            }
            if self.is_monitored {
                drop(links::monitor(header, other));
            }
        };
        match (self.start)(&completer.handle(), &link_and_monitor) {
            Ok((pid, _)) => {
                completer.reply(pid);
            }
            Err(failure) => completer.fail(failure),
        }
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("is_linked", &self.is_linked).finish_non_exhaustive()
    }
}

fn starter<P>(process: P, method: &'static str, input: Payloads, joins: bool) -> Starter
where
    P: Process + core::marker::Send,
    P::Message: core::marker::Send,
{
    Box::new(move |handle, before| match handle.submit_linked(process, method, input, before) {
        Ok(process) => Ok((process.pid(), joins.then(|| process.join()))),
        Err(refused) => Err(failure_of(refused)),
    })
}

fn failure_of<P>(refused: SubmitError<P>) -> Failure {
    if refused.is_full() {
        NO_ROOM.failure()
    } else if refused.is_stopped() {
        STOPPING.failure()
    } else {
        refused.into_failure().unwrap_or_else(|| NO_PROCESS.failure())
    }
}

/// Ends a process instead of its next step.
#[derive(Debug)]
pub struct Terminate(pub Pid);

impl Terminate {
    fn execute(self, completer: ErasedCompleter) {
        let did = completer.executor().terminate(self.0);
        completer.reply_if(did);
    }
}

/// Asks a process to stop.
#[derive(Debug)]
pub struct Cancel {
    /// The process.
    pub pid: Pid,
    /// The reason.
    pub reason: &'static str,
}

impl Cancel {
    fn execute(self, completer: ErasedCompleter) {
        let did = completer.executor().cancel(self.pid, self.reason);
        completer.reply_if(did);
    }
}

/// Monitors a process: when it ends, in whatever way, the process that yields this command receives
/// [`Event::Exit`](crate::Event::Exit), once.
#[derive(Debug)]
pub struct Monitor(pub Pid);

impl Monitor {
    fn execute(self, completer: ErasedCompleter) {
        let Some(other) = other_process(&completer, self.0) else {
            return fail_no_other(completer, self.0);
        };
        match links::monitor(completer.task().header(), other.header()) {
            Ok(true) => completer.reply(()),
            Ok(false) => completer.fail(ALREADY_WATCHED.failure()),
            Err(_) => completer.fail(NO_PROCESS.failure()),
        }
    }
}

/// Stops monitoring a process.
#[derive(Debug)]
pub struct Unmonitor(pub Pid);

impl Unmonitor {
    fn execute(self, completer: ErasedCompleter) {
        let did = links::demonitor(completer.task().header(), self.0, completer.executor());
        completer.reply_if(did);
    }
}

/// Links the process that yields this command and another: if one fails, so does the other, unless
/// it [traps](crate::StepOutput::trap_links) that.
#[derive(Debug)]
pub struct Link(pub Pid);

impl Link {
    fn execute(self, completer: ErasedCompleter) {
        let Some(other) = other_process(&completer, self.0) else {
            return fail_no_other(completer, self.0);
        };
        let linked = links::link(completer.task().header(), other.header());
        completer.reply_if(linked.is_ok());
    }
}

/// Removes the link between two processes.
#[derive(Debug)]
pub struct Unlink(pub Pid);

impl Unlink {
    fn execute(self, completer: ErasedCompleter) {
        let did = links::unlink(completer.task().header(), self.0, completer.executor());
        completer.reply_if(did);
    }
}

fn other_process(completer: &ErasedCompleter, pid: Pid) -> Option<TaskRef> {
    (pid != completer.task().pid()).then(|| completer.executor().get(pid)).flatten()
}

fn fail_no_other(completer: ErasedCompleter, pid: Pid) {
    let is_self = pid == completer.task().pid();
    completer.fail(if is_self { SELF_REFERENCE.failure() } else { NO_PROCESS.failure() });
}

type Work = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + core::marker::Send>>;

/// Runs a process or a future to its end, and replies with its result.
pub struct Exec(Run);

enum Run {
    Process(Starter),
    Future(Work),
}

impl Exec {
    /// Runs a process.
    pub fn process<P>(process: P, method: &'static str, input: Payloads) -> Self
    where
        P: Process + core::marker::Send,
        P::Message: core::marker::Send,
    {
        Self(Run::Process(starter(process, method, input, true)))
    }

    /// Runs a future.
    pub fn future<F, T>(future: F) -> Self
    where
        F: Future<Output = Result<T, Failure>> + core::marker::Send + 'static,
        T: core::marker::Send + 'static,
    {
        Self(Run::Future(Box::pin(async move { future.await.map(Payload::new) })))
    }

    fn execute(self, completer: ErasedCompleter) {
        let handle = completer.handle();
        let work: Work =
            match self.0 {
                Run::Future(work) => work,
                Run::Process(start) => match start(&handle, &|_| {}) {
                    Ok((_, Some(join))) => Box::pin(async move {
                        join.await.map_err(|exit: JoinError| Failure::from(exit))
                    }),
                    Ok((_, None)) => return completer.fail(NO_PROCESS.failure()),
                    Err(failure) => return completer.fail(failure),
                },
            };
        // If the future is refused or panics, dropping the completer completes the command with a
        // failure.
        drop(handle.spawn_future(async move { completer.complete(work.await) }));
    }
}

impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec").finish_non_exhaustive()
    }
}

/// Sleeps.
#[derive(Debug)]
pub struct SleepFor(pub Duration);

impl SleepFor {
    fn execute(self, completer: ErasedCompleter) {
        if self.0.is_zero() {
            return completer.reply(());
        }
        let deadline = completer.executor().toolbox().deadline_after(self.0);
        if let Some((id, completer)) = arm(completer, deadline, None) {
            // The timer is cancelled with the process: most sleeps are time-outs that do not
            // expire.
            links::keep_timer(completer.task().header(), completer.executor(), id);
            completer.forget();
        }
    }
}

/// Completes periodically, each time with the tag of this command, until the process ends. A period
/// shorter than a tick is one tick; due times that have passed are skipped. A period that is not a
/// whole number of ticks is kept without drift: each due time is rounded up separately.
///
/// A completion waits until a step takes it. Due times that pass in the meantime do not add another
/// one: the completion then has the latest due time and counts the others as missed.
#[derive(Debug)]
pub struct RepeatEvery(pub Duration);

impl RepeatEvery {
    fn execute(self, completer: ErasedCompleter) {
        let executor = completer.executor();
        let first = executor.toolbox().deadline_after(self.0);
        let period = Period::new(self.0, first, executor.resolution());
        let current = Arc::new(CurrentTimer::default());
        let repeats = Repeats { period, current: current.clone() };
        if let Some((id, completer)) = arm(completer, first, Some(repeats)) {
            current.set(completer.executor(), first, id);
            links::keep_interval(completer.task().header(), current);
            completer.forget();
        }
    }
}

/// Arms the timer of a command; if the timer is refused, the command fails.
fn arm(
    completer: ErasedCompleter,
    deadline: Tick,
    repeats: Option<Repeats>,
) -> Option<(TimerId, ErasedCompleter)> {
    let weak = completer.downgrade();
    let weak = if repeats.is_some() { weak.repeating() } else { weak };
    let command_timer = Box::new(CommandTimer { completer: weak, repeats });
    match completer.executor().arm(deadline, TimerAction::Complete(command_timer)) {
        Ok(id) => Some((id, completer)),
        Err(refused) => {
            let failure = if refused.is_closed() { STOPPING.failure() } else { NO_ROOM.failure() };
            completer.fail(failure);
            None
        }
    }
}
