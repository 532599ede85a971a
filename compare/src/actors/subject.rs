//! What an actor crate must offer to be measured, and what is said about it beside the figures.
//!
//! A subject is started anew for each run, on one thread that also runs the driver or on two, and
//! is stopped behind it. The driver is a task of the subject, no actor.

use core::future::Future;
use std::io;

use super::part::Part;
use crate::report::Facts;

/// An actor crate under measurement; a value of it is what the driver holds of a running one.
pub(crate) trait Subject: Ground {
    /// What is known about this subject before it runs.
    const FACTS: Facts;

    /// The loads it cannot do.
    const LACKS: &'static [Load] = &[];

    /// What one needs to talk to an actor that plays `P`.
    type Ref<P: Part<Self>>: Clone + Send + Sync + Unpin + 'static;

    /// Starts an actor. It may not have begun yet.
    fn spawn<P: Part<Self>>(
        &self,
        part: P,
        mailbox: Mailbox,
        side: Side,
    ) -> impl Future<Output = Self::Ref<P>> + Send;

    /// Tells an actor with an unbounded mailbox; never waits.
    fn tell<P: Part<Self>>(
        to: &Self::Ref<P>,
        message: P::Message,
    ) -> impl Future<Output = ()> + Send;

    /// Tells an actor with a bounded mailbox, and waits for room where it is full.
    fn send<P: Part<Self>>(
        to: &Self::Ref<P>,
        message: P::Message,
    ) -> impl Future<Output = ()> + Send;

    /// Asks and awaits the answer.
    fn ask<P: Part<Self>>(
        to: &Self::Ref<P>,
        question: P::Question,
    ) -> impl Future<Output = u64> + Send;

    /// Stops all of them the way the crate has for it and forgets them. They may not be gone yet.
    fn stop<P: Part<Self>>(&self, all: Vec<Self::Ref<P>>) -> impl Future<Output = ()> + Send;
}

/// What the tasks and actors of a subject run on.
pub(crate) trait Ground: Clone + Send + Sync + 'static {
    /// Starts the subject, runs the driver that `root` makes and stops it again. With two threads
    /// the driver is on one of those that run the actors.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread or what else it needs.
    fn run<F>(
        threads: Threads,
        root: impl FnOnce(Self) -> F + Send + 'static,
    ) -> io::Result<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;

    /// Starts a plain task, for loads with more than one driver.
    fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static, side: Side);

    /// Lets the others go first.
    fn yield_now() -> impl Future<Output = ()> + Send;
}

/// How many threads run actors and driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    Two,
}

/// Where to start an actor, for crates whose actors do not move: a hint by which two threads share
/// the load as a user would share it. With one thread both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// On the thread that starts it.
    Here,
    /// On the one that does not run the driver.
    There,
}

impl Side {
    /// Every second one there.
    pub(crate) const fn alternating(index: u64) -> Self {
        if index.is_multiple_of(2) { Self::Here } else { Self::There }
    }
}

/// How much a mailbox holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mailbox {
    /// What one writes without a thought: none is asked for, or an unbounded one where one must be.
    Usual,
    Unbounded,
    Bounded(usize),
}

/// What is done. The definitions are those of the suite.
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

    /// True if its figure is what the allocator counts, and not a time.
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
