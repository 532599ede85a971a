//! Commands: operations that a process requests and that handlers carry out.
//!
//! A process yields a command with a tag. After the step the worker finds the handler by the
//! command's number and calls it with a [`Completer`], through which the reply returns to the
//! process as an event: at once, or later from any thread. Every command completes exactly once. It
//! completes with a failure if there is no handler, if the type is wrong, or if the handler panics
//! or drops its completer.

use alloc::{boxed::Box, collections::BTreeMap};
use core::{any::type_name, fmt, marker::PhantomData};

use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Relaxed},
    },
};
use clockjack_time::Tick;

use crate::{
    builtin,
    error::StartError,
    executor::ExecutorShared,
    failure::{Failure, StaticError},
    handle::Handle,
    payload::Payload,
    pid::Pid,
    process::Tag,
    process::signal::ProcessSignal,
    task::TaskRef,
    timer::action::IntervalTick,
};

/// The number of a type of command. 0 to 255 are Clockjack's own; use numbers from 256 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u16);

impl CommandId {
    /// The first number for commands of users.
    pub const FIRST_FREE: Self = Self(256);
}

/// An operation that a process may request.
pub trait Command: Send + 'static {
    /// The number by which its handler is found.
    const ID: CommandId;
    /// What a successful reply holds.
    type Reply: Send + 'static;
}

/// There is no handler for the command. Permanent: the set of handlers is fixed at the start.
pub static UNKNOWN_COMMAND: StaticError =
    StaticError::new(1, "there is no handler for the command");
/// Two types of command have the same number, and the handler is for the other one.
pub static WRONG_COMMAND: StaticError =
    StaticError::new(2, "the handler with this number is for another command");
/// The handler dropped the command without a reply, or panicked.
pub static UNANSWERED: StaticError = StaticError::new(3, "the handler gave no reply");
/// There is no live process with this pid.
pub static NO_PROCESS: StaticError = StaticError::new(4, "there is no such process");
/// The process already monitors the other one.
pub static ALREADY_WATCHED: StaticError = StaticError::new(5, "the process is monitored already");
/// A process cannot monitor, link to, or wait for itself.
pub static SELF_REFERENCE: StaticError =
    StaticError::new(6, "a process cannot monitor or link to itself");
/// The executor is shutting down and accepts nothing new.
pub static STOPPING: StaticError = StaticError::new(7, "the executor is shutting down");
/// There is no room for another process, timer or message.
pub static NO_ROOM: StaticError =
    StaticError::new(8, "there is no room for another process, timer or message");
/// The process has no entry point of the requested name. Permanent.
pub static UNKNOWN_METHOD: StaticError =
    StaticError::new(10, "the process has no method of this name");

/// One command on its way from a step to its handler.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) tag: Tag,
    pub(crate) id: CommandId,
    pub(crate) command: Payload,
}

type Handler = Box<dyn Fn(Payload, ErasedCompleter) + Send + Sync>;

/// The handlers of an executor, fixed when it starts.
///
/// # Examples
///
/// ```
/// use clockjack_exec::{Command, CommandId, Commands};
///
/// struct Double(u32);
/// impl Command for Double {
///     const ID: CommandId = CommandId(300);
///     type Reply = u32;
/// }
///
/// let commands = Commands::new().handle(|Double(n), done| done.complete(Ok(2 * n)));
/// ```
#[derive(Default)]
pub struct Commands {
    handlers: BTreeMap<CommandId, Handler>,
    duplicate: Option<CommandId>,
}

impl Commands {
    /// Clockjack's own commands and no others.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of a command. It is called on a worker, after the step that yielded the
    /// command: a handler of long work should start the work and return.
    ///
    /// If a number has a handler already, including Clockjack's own, the start of the executor
    /// fails.
    #[must_use]
    pub fn handle<C: Command>(
        mut self,
        handler: impl Fn(C, Completer<C::Reply>) + Send + Sync + 'static,
    ) -> Self {
        let is_taken = self.handlers.contains_key(&C::ID) || builtin::is_reserved(C::ID);
        if is_taken {
            self.duplicate.get_or_insert(C::ID);
            return self;
        }
        let erased =
            move |command: Payload, completer: ErasedCompleter| match command.downcast::<C>() {
                Ok(command) => handler(command, Completer::new(completer)),
                Err(_) => completer.fail(WRONG_COMMAND.failure()),
            };
        self.handlers.insert(C::ID, Box::new(erased));
        self
    }

    /// Adds a handler of the runtime for one of the numbers below 256.
    #[doc(hidden)]
    #[must_use]
    pub fn handle_reserved<C: Command>(
        mut self,
        handler: impl Fn(C, Completer<C::Reply>) + Send + Sync + 'static,
    ) -> Self {
        let erased =
            move |command: Payload, completer: ErasedCompleter| match command.downcast::<C>() {
                Ok(command) => handler(command, Completer::new(completer)),
                Err(_) => completer.fail(WRONG_COMMAND.failure()),
            };
        self.handlers.insert(C::ID, Box::new(erased));
        self
    }

    /// Checks that every number has one handler.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        match self.duplicate {
            Some(id) => Err(StartError::duplicate_command(id.0)),
            None => Ok(()),
        }
    }

    /// Passes a command to its handler. Handlers are user code: the caller catches panics.
    pub(crate) fn dispatch(&self, request: Request, completer: ErasedCompleter) {
        if let Some(handler) = self.handlers.get(&request.id) {
            handler(request.command, completer);
        } else if builtin::is_reserved(request.id) {
            builtin::dispatch(request.id, request.command, completer);
        } else {
            completer.fail(UNKNOWN_COMMAND.failure());
        }
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

/// A completer without the type of the reply. If it is dropped unused, the command fails.
pub(crate) struct ErasedCompleter {
    task: TaskRef,
    tag: Tag,
    incarnation: u32,
    is_open: bool,
    /// Of an interval.
    ticks: Option<Arc<PendingTicks>>,
}

impl ErasedCompleter {
    pub(crate) fn new(task: TaskRef, tag: Tag, incarnation: u32) -> Self {
        Self { task, tag, incarnation, is_open: true, ticks: None }
    }

    /// The process that yielded the command.
    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    pub(crate) fn executor(&self) -> &ExecutorShared {
        &self.task.header().get().executor
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::new((*self.task.header().executor).clone())
    }

    /// Completes the command successfully, or with the failure that there is no such process.
    pub(crate) fn reply_if(self, did: bool) {
        if did { self.reply(()) } else { self.fail(NO_PROCESS.failure()) }
    }

    /// Drops the completer without completing the command: another one does that.
    pub(crate) fn forget(mut self) {
        self.is_open = false;
    }

    pub(crate) fn reply<R: Send + 'static>(self, reply: R) {
        self.complete(Ok(Payload::new(reply)));
    }

    pub(crate) fn fail(self, failure: Failure) {
        self.complete(Err(failure));
    }

    pub(crate) fn complete(mut self, result: Result<Payload, Failure>) {
        self.is_open = false;
        self.send(result);
    }

    /// Sends one of several replies, for an interval; or adds to the one that the process has not
    /// taken yet.
    pub(crate) fn send_reply(&self, tick: IntervalTick) {
        match &self.ticks {
            // The process is polled for every tick, also if it has left the last one.
            Some(ticks) if !ticks.add(tick) => self.task.header().wake(),
            Some(ticks) => self.send(Ok(Payload::new(Arc::clone(ticks)))),
            None => self.send(Ok(Payload::new(tick))),
        }
    }

    /// A weak completer. Its owner ensures that the command completes.
    pub(crate) fn downgrade(&self) -> WeakCompleter {
        let Self { tag, incarnation, .. } = *self;
        WeakCompleter { pid: self.task.pid(), tag, incarnation, ticks: None }
    }

    /// Whether the process that yielded the command can still receive a reply.
    pub(crate) fn is_receivable(&self) -> bool {
        !self.task.header().state.is_complete()
            && self.task.header().state.generation() == self.incarnation
    }

    fn send(&self, result: Result<Payload, Failure>) {
        let signal =
            ProcessSignal::Complete { tag: self.tag, incarnation: self.incarnation, result };
        // The process has ended: the reply is dropped here.
        drop(self.task.signal(signal));
    }
}

/// A completer that holds no reference to the process, and is of no use once the process has ended.
pub(crate) struct WeakCompleter {
    pid: Pid,
    tag: Tag,
    incarnation: u32,
    ticks: Option<Arc<PendingTicks>>,
}

impl WeakCompleter {
    /// The completer of an interval, which has at most one reply on its way.
    pub(crate) fn repeating(self) -> Self {
        Self { ticks: Some(Arc::new(PendingTicks::default())), ..self }
    }

    /// The completer, if the process is alive.
    pub(crate) fn upgrade(&self, executor: &ExecutorShared) -> Option<ErasedCompleter> {
        let task = executor.get(self.pid)?;
        let mut completer = ErasedCompleter::new(task, self.tag, self.incarnation);
        completer.ticks.clone_from(&self.ticks);
        Some(completer)
    }
}

/// The ticks of an interval that its process has not taken: one reply stands for all of them, so
/// they do not pile up.
///
/// Roles: the *timer*, whichever thread fires it, one at a time; the *runner* of the process. The
/// timer stores when the tick was due, and then adds to the number. If the number was zero, no
/// reply is on its way, and the timer sends one, which holds a reference to this. The runner that
/// takes the reply reads the due time, and then takes the number; the next tick sends the next
/// reply. No tick is lost: the read-modify-writes of the number have an order, and each tick is
/// before the take of its reply or sends another. A tick that is added between the two reads of
/// the runner is counted, and its due time is that of the tick before; so no due time is reported
/// twice.
#[derive(Default)]
pub(crate) struct PendingTicks {
    due: AtomicU64,
    number: AtomicU64,
}

impl PendingTicks {
    /// Adds a tick; true if the caller must send a reply.
    fn add(&self, tick: IntervalTick) -> bool {
        // Relaxed: the addition publishes it.
        self.due.store(tick.due.get(), Relaxed);
        // Release: pairs with `take`. Acquire: the next due time is stored after an earlier take.
        self.number.fetch_add(tick.missed.saturating_add(1), AcqRel) == 0
    }

    /// All ticks since the last call, as one.
    pub(crate) fn take(&self) -> IntervalTick {
        // Relaxed: the signal that led here has published the first; a later one may be read.
        let due = Tick::new(self.due.load(Relaxed));
        // AcqRel: pairs with `add`.
        let number = self.number.swap(0, AcqRel);
        IntervalTick { due, missed: number.saturating_sub(1) }
    }
}

impl Drop for ErasedCompleter {
    fn drop(&mut self) {
        if self.is_open {
            self.send(Err(UNANSWERED.failure()));
        }
    }
}

/// Completes a command, once, from any thread. Dropped without a reply, it sends the failure
/// [`UNANSWERED`].
pub struct Completer<R> {
    completer: ErasedCompleter,
    _reply: PhantomData<fn(R)>,
}

impl<R: Send + 'static> Completer<R> {
    fn new(completer: ErasedCompleter) -> Self {
        Self { completer, _reply: PhantomData }
    }

    /// Completes the command. A reply to a process that has ended is dropped.
    pub fn complete(self, result: Result<R, Failure>) {
        self.completer.complete(result.map(Payload::new));
    }

    /// The pid of the process that yielded the command.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.completer.task().pid()
    }

    /// The tag of the command.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.completer.tag()
    }
}

#[doc(hidden)]
impl Completer<Payload> {
    /// Completes with the value in the payload, not with a payload inside another.
    pub fn complete_with(self, result: Result<Payload, Failure>) {
        self.completer.complete(result);
    }
}

impl<R> fmt::Debug for Completer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer").field("reply", &type_name::<R>()).finish_non_exhaustive()
    }
}
