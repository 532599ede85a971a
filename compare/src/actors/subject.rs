//! The interface of a measured actor crate, and its description in the report.
//!
//! A subject is started for each run, on one thread that also runs the driver or on two, and is
//! stopped after the run. The driver is a task of the subject, not an actor.

use core::future::Future;
use std::io;

use super::part::Part;
use crate::report::Facts;

/// An actor crate under measurement; the driver owns a value of this type while the subject runs.
pub(crate) trait Subject: ActorRuntime {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The loads that it does not support.
    const LACKS: &'static [Load] = &[];

    /// A reference to an actor that runs `P`.
    type Ref<P: Part<Self>>: Clone + Send + Sync + Unpin + 'static;

    /// Starts an actor. The actor may not have started yet when this returns.
    fn spawn<P: Part<Self>>(
        &self,
        part: P,
        mailbox: Mailbox,
        side: Side,
    ) -> impl Future<Output = Self::Ref<P>> + Send;

    /// Sends to an actor with an unbounded mailbox; never waits.
    fn tell<P: Part<Self>>(
        to: &Self::Ref<P>,
        message: P::Message,
    ) -> impl Future<Output = ()> + Send;

    /// Sends to an actor with a bounded mailbox, and waits for room if it is full.
    fn send<P: Part<Self>>(
        to: &Self::Ref<P>,
        message: P::Message,
    ) -> impl Future<Output = ()> + Send;

    /// Asks and awaits the answer.
    fn ask<P: Part<Self>>(
        to: &Self::Ref<P>,
        question: P::Question,
    ) -> impl Future<Output = u64> + Send;

    /// Stops all of them in the crate's own way and drops the references. They may not have stopped
    /// yet when this returns.
    fn stop<P: Part<Self>>(&self, all: Vec<Self::Ref<P>>) -> impl Future<Output = ()> + Send;
}

/// The runtime of the tasks and actors of a subject.
pub(crate) trait ActorRuntime: Clone + Send + Sync + 'static {
    /// Starts the subject, runs the driver that `root` creates and stops the subject. With two
    /// threads the driver is on one of those that run the actors.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread or another resource.
    fn run<F>(
        threads: Threads,
        root: impl FnOnce(Self) -> F + Send + 'static,
    ) -> io::Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Starts a plain task, for loads with more than one driver.
    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static, side: Side);

    /// Yields to other tasks.
    fn yield_now() -> impl Future<Output = ()> + Send;
}

/// The number of threads that run the actors and the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    Two,
}

/// Where to start an actor, for crates whose actors stay on one thread: a hint to divide the load
/// between two threads as a user would. With one thread both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// On the thread that starts it.
    Here,
    /// On the thread that does not run the driver.
    There,
}

impl Side {
    /// Every second one on the other thread.
    pub(crate) const fn alternating(index: u64) -> Self {
        if index.is_multiple_of(2) { Self::Here } else { Self::There }
    }
}

/// The capacity of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mailbox {
    /// The default mailbox, or an unbounded one if the crate requires a choice.
    Usual,
    Unbounded,
    Bounded(usize),
}

/// The loads. The documentation of the suite defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    PingPong,
    Tell,
    Tell64,
    TellBounded,
    Mpsc4,
    Ask,
    Spawn,
    Stop,
    Ring,
    Skynet,
    Big,
    Memory,
    AllocsTell,
    AllocsTell64,
}

/// What is measured: a load on one thread or on two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) load: Load,
    pub(crate) threads: Threads,
    /// The name on the command line, in tables and in JSON.
    pub(crate) name: &'static str,
}

impl Case {
    pub(crate) const ALL: [Self; 24] = [
        Self::one("ping_pong", Load::PingPong),
        Self::one("tell", Load::Tell),
        Self::one("tell_64", Load::Tell64),
        Self::one("tell_bounded", Load::TellBounded),
        Self::one("mpsc4", Load::Mpsc4),
        Self::one("ask", Load::Ask),
        Self::one("spawn", Load::Spawn),
        Self::one("stop", Load::Stop),
        Self::one("ring", Load::Ring),
        Self::one("skynet", Load::Skynet),
        Self::one("big", Load::Big),
        Self::one("memory", Load::Memory),
        Self::one("allocs_tell", Load::AllocsTell),
        Self::one("allocs_tell_64", Load::AllocsTell64),
        Self::two("ping_pong_2t", Load::PingPong),
        Self::two("tell_2t", Load::Tell),
        Self::two("tell_bounded_2t", Load::TellBounded),
        Self::two("mpsc4_2t", Load::Mpsc4),
        Self::two("ask_2t", Load::Ask),
        Self::two("spawn_2t", Load::Spawn),
        Self::two("stop_2t", Load::Stop),
        Self::two("ring_2t", Load::Ring),
        Self::two("skynet_2t", Load::Skynet),
        Self::two("big_2t", Load::Big),
    ];

    const fn one(name: &'static str, load: Load) -> Self {
        Self { load, threads: Threads::One, name }
    }

    const fn two(name: &'static str, load: Load) -> Self {
        Self { load, threads: Threads::Two, name }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.name
    }
}

impl Load {
    /// The unit of its figures.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Memory => "bytes",
            Self::AllocsTell | Self::AllocsTell64 => "allocs",
            _ => "ns",
        }
    }

    /// Whether the figure is a count of the allocator and not a time.
    pub(crate) const fn is_counted(self) -> bool {
        matches!(self, Self::Memory | Self::AllocsTell | Self::AllocsTell64)
    }
}

impl clap::ValueEnum for Case {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name))
    }
}
