//! The process: a user-defined unit that an executor runs step by step.

pub mod builtin;
pub mod command;
pub mod exit;
pub(crate) mod links;
pub mod payload;
pub mod pid;
mod pid_set;
pub(crate) mod process_ref;
pub(crate) mod signal;

use alloc::{boxed::Box, vec::Vec};

use crate::{
    command::{Command, Request, UNKNOWN_METHOD},
    exit::ExitReason,
    failure::Failure,
    payload::{Payload, Payloads},
    pid::Pid,
};

pub use crate::task::process::Events;

/// A number by which a process recognises the completion of its command. The executor returns it
/// unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// A unit that runs in steps; each step gets the events since the last one.
///
/// One worker at a time calls `step`, and never after the process has ended; a call sees everything
/// that the earlier calls did. Between steps the process occupies no thread.
///
/// # Examples
///
/// ```
/// use clockjack_exec::{Event, Events, Failure, Payload, Process, StepOutput};
///
/// /// Adds up what it is sent, until it is asked to stop.
/// #[derive(Default)]
/// struct Sum(u64);
///
/// impl Process for Sum {
///     type Message = u64;
///
///     fn step(
///         &mut self,
///         events: &mut Events<'_, u64>,
///         out: &mut StepOutput,
///     ) -> Result<(), Failure> {
///         for event in events {
///             match event {
///                 Event::Message(n) => self.0 += n,
///                 Event::Cancel { .. } => {
///                     out.done(Payload::new(self.0));
///                     return Ok(());
///                 }
///                 _ => {}
///             }
///         }
///         out.idle();
///         Ok(())
///     }
/// }
/// ```
pub trait Process: 'static {
    /// The type of its messages.
    type Message: 'static;

    /// Prepares the process for its first step: `method` names the entry point, `input` holds its
    /// arguments. Called on the thread that submits, before any other thread can see the process.
    ///
    /// # Errors
    ///
    /// After a failure the process is not started: the submitter gets it back. By default any
    /// method except the empty one is refused, because the process has no entry points of that
    /// name.
    fn init(&mut self, pid: Pid, method: &str, input: Payloads) -> Result<(), Failure> {
        let _ = (pid, input);
        if method.is_empty() { Ok(()) } else { Err(UNKNOWN_METHOD.failure()) }
    }

    /// Takes events and does its work. There may be no events.
    ///
    /// The process writes into `out` what it wants next; if it writes nothing, it is stepped again.
    ///
    /// # Errors
    ///
    /// A failure ends the process.
    fn step(
        &mut self,
        events: &mut Events<'_, Self::Message>,
        out: &mut StepOutput,
    ) -> Result<(), Failure>;

    /// Releases what the process holds. Called once, when it has ended in whatever way.
    fn close(&mut self) {}
}

/// An event of a process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<M> {
    /// A message.
    Message(M),
    /// A command that the process yielded has completed. Completions arrive in the order in which
    /// the commands completed.
    YieldComplete {
        /// The tag of the command.
        tag: Tag,
        /// The reply, or the failure.
        result: Result<Payload, Failure>,
    },
    /// A request to stop. The process may clean up first, over several steps.
    Cancel {
        /// The reason.
        reason: &'static str,
    },
    /// A process that this one monitors has ended.
    Exit {
        /// The process that has ended.
        pid: Pid,
        /// How it ended.
        reason: ExitReason,
    },
    /// A process that this one is linked to has failed, and this one traps that
    /// ([`StepOutput::trap_links`]).
    LinkDown {
        /// The process that has failed.
        pid: Pid,
        /// How it ended.
        reason: ExitReason,
    },
}

/// What a process wants after a step.
#[derive(Debug, Default)]
pub(crate) enum Status {
    #[default]
    Continue,
    Wait,
    Idle,
    Done(Payload),
    Upgrade(Upgrade),
}

/// The process that replaces this one.
pub(crate) struct Upgrade {
    /// A `Box<dyn ErasedProcess<M>>` of the process's own message type.
    pub(crate) process: Payload,
    pub(crate) method: &'static str,
    pub(crate) input: Payloads,
}

impl core::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Upgrade").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The output of a step: what the process wants next. It is empty when the step begins.
///
/// Commands are executed after the step. While one is pending, the process waits, whatever else the
/// step asked for, except that it ended the process.
#[derive(Debug, Default)]
pub struct StepOutput {
    pub(crate) status: Status,
    pub(crate) requests: Vec<Request>,
    pub(crate) trap_links: Option<bool>,
}

impl StepOutput {
    /// Requests a command. Its completion arrives as an event with this tag.
    pub fn yield_command<C: Command>(&mut self, tag: Tag, command: C) {
        self.requests.push(Request { tag, id: C::ID, command: Payload::new(command) });
    }

    /// Waits for an event; there is nothing else to do.
    ///
    /// Only a new event ends the wait: events that the step has left in `events` do not. Take them
    /// all first, or request nothing and be stepped again.
    pub fn idle(&mut self) {
        self.status = Status::Idle;
    }

    /// Waits for the completion of a command, or another event.
    pub fn wait(&mut self) {
        self.status = Status::Wait;
    }

    /// Ends the process with a result. Commands yielded in the same step are not executed.
    pub fn done(&mut self, result: Payload) {
        self.status = Status::Done(result);
    }

    /// Replaces the process by another, with the same pid and the same waiting messages: the old
    /// one is closed, the new one is initialised with the method and the input. The new process
    /// does not receive completions of commands of the old one.
    ///
    /// A process with another message type cannot replace this one: then this one ends with a
    /// failure, as it does if the new one's `init` fails.
    pub fn upgrade<P>(&mut self, process: P, method: &'static str, input: Payloads)
    where
        P: Process + Send,
    {
        let process: Box<dyn ErasedProcess<P::Message>> = Box::new(process);
        let process = Payload::new(process);
        self.status = Status::Upgrade(Upgrade { process, method, input });
    }

    /// Sets whether the failure of a linked process ends this one (false, the default) or arrives
    /// as [`Event::LinkDown`] (true).
    pub fn trap_links(&mut self, trap: bool) {
        self.trap_links = Some(trap);
    }
}

/// A process of which only the message type is known.
pub(crate) trait ErasedProcess<M>: Send {
    fn init(&mut self, pid: Pid, method: &str, input: Payloads) -> Result<(), Failure>;
    fn step(&mut self, events: &mut Events<'_, M>, out: &mut StepOutput) -> Result<(), Failure>;
    fn close(&mut self);
}

impl<P: Process + Send> ErasedProcess<P::Message> for P {
    fn init(&mut self, pid: Pid, method: &str, input: Payloads) -> Result<(), Failure> {
        Process::init(self, pid, method, input)
    }

    fn step(
        &mut self,
        events: &mut Events<'_, P::Message>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        Process::step(self, events, out)
    }

    fn close(&mut self) {
        Process::close(self);
    }
}
