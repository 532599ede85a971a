//! The process: what an executor runs step by step.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    command::{Command, Request},
    exit::ExitReason,
    failure::Failure,
    payload::{Payload, Payloads},
    pid::Pid,
};

pub use crate::task::process::Events;

/// A number by which a process recognises the completion of what it asked for. The executor only
/// echoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// Something that runs in steps, told what has happened since the last one.
///
/// `step` is called by one worker at a time, never after it has ended the process, and a call sees
/// everything that the calls before it did. Between steps the process costs no thread.
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
    /// What can be sent to it.
    type Message: 'static;

    /// Prepares the process for its first step: `method` names the entry point, `input` holds its
    /// arguments. Called on the thread that submits, before anybody can see the process.
    ///
    /// # Errors
    ///
    /// A failure refuses the process: it is handed back to whoever submitted it. By default any
    /// method but the empty one is refused, because the process has no entry points of that name.
    fn init(&mut self, pid: Pid, method: &str, input: Payloads) -> Result<(), Failure> {
        let _ = (pid, input);
        if method.is_empty() { Ok(()) } else { Err(UnknownMethod.into()) }
    }

    /// Takes events and goes on. There may be none: a process must bear that.
    ///
    /// What it wants next is written into `out`; if nothing is, it is stepped again.
    ///
    /// # Errors
    ///
    /// A failure ends the process with it.
    fn step(
        &mut self,
        events: &mut Events<'_, Self::Message>,
        out: &mut StepOutput,
    ) -> Result<(), Failure>;

    /// Lets go of what the process holds. Called once, when it has ended, however it did.
    fn close(&mut self) {}
}

/// The process has no entry point of the name it was to be started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMethod;

impl core::fmt::Display for UnknownMethod {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the process has no method of this name")
    }
}

impl core::error::Error for UnknownMethod {}

/// What a process is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<M> {
    /// Somebody sent this.
    Message(M),
    /// A command that the process yielded has ended. Completions come in the order in which the
    /// commands ended.
    YieldComplete {
        /// The tag that the command was yielded with.
        tag: Tag,
        /// What came of it.
        result: Result<Payload, Failure>,
    },
    /// The process is asked to stop. It may clean up first, and take its time.
    Cancel {
        /// Why.
        reason: &'static str,
    },
    /// A process that this one monitors has ended.
    Exit {
        /// Which one.
        pid: Pid,
        /// How it ended.
        reason: ExitReason,
    },
    /// A process that this one is linked to has failed, and this one traps that
    /// ([`StepOutput::trap_links`]).
    LinkDown {
        /// Which one.
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

/// How a process goes on as another.
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

/// Where a step writes what it wants; it is empty when the step begins.
///
/// Commands that were yielded are carried out after the step. While one is under way the process
/// waits, whatever else was asked for but the end.
#[derive(Debug, Default)]
pub struct StepOutput {
    pub(crate) status: Status,
    pub(crate) requests: Vec<Request>,
    pub(crate) trap_links: Option<bool>,
}

impl StepOutput {
    /// Asks for a command to be carried out. Its completion comes as an event with this tag.
    pub fn yield_command<C: Command>(&mut self, tag: Tag, command: C) {
        self.requests.push(Request { tag, id: C::ID, command: Payload::new(command) });
    }

    /// Waits for an event; there is nothing else to do.
    ///
    /// For one that comes: events that the step has left in the cursor do not end the wait. Take
    /// them all first, or ask for nothing and be stepped again.
    pub fn idle(&mut self) {
        self.status = Status::Idle;
    }

    /// Waits for the completion of a command, or another event.
    pub fn wait(&mut self) {
        self.status = Status::Wait;
    }

    /// Ends the process with a result. Commands yielded in the same step are not carried out.
    pub fn done(&mut self, result: Payload) {
        self.status = Status::Done(result);
    }

    /// Goes on as another process, with the same pid and the same messages waiting: the old one is
    /// closed, the new one initialised with the method and the input. Commands of the old one that
    /// complete later are not told to the new one.
    ///
    /// A process with another message type cannot take over: then this one ends with a failure, as
    /// it does if the new one's `init` fails.
    pub fn upgrade<P>(&mut self, process: P, method: &'static str, input: Payloads)
    where
        P: Process + Send,
    {
        let process: Box<dyn ErasedProcess<P::Message>> = Box::new(process);
        let process = Payload::new(process);
        self.status = Status::Upgrade(Upgrade { process, method, input });
    }

    /// Whether the failure of a linked process ends this one (false, as at first) or is told to it
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
