//! The interface of a measured actor crate: actors whose handlers arm and cancel timers.
//!
//! The tasks of a subject run on the [`ActorRuntime`] of the suite `actors`.

use core::future::Future;
use core::time::Duration;

use super::load::Command;
use super::user::TimerUser;
use crate::actors::subject::{ActorRuntime, Side};
use crate::receiver::Shot;
use crate::report::Facts;

/// An actor crate under measurement.
pub(crate) trait Subject: ActorRuntime {
    /// The properties of this subject.
    const FACTS: Facts;

    /// The handle by which the driver sends to an actor.
    type Ref: Send + Sync + 'static;

    /// Starts an actor with an unbounded or the default mailbox. The actor may not have started yet
    /// when this returns.
    fn start(&self, user: TimerUser, side: Side) -> impl Future<Output = Self::Ref> + Send;

    /// Sends to an actor; never waits for room.
    fn send(to: &Self::Ref, mail: Mail) -> impl Future<Output = ()> + Send;
}

/// A message to an actor.
#[derive(Debug)]
pub(crate) enum Mail {
    /// From the driver.
    Command(Command),
    /// From the timer of this key.
    Fired(u32, Shot),
    /// From the driver: the last message.
    Stop,
}

/// The timers of the actor whose handler runs: the calls that are measured.
pub(crate) trait Timers {
    /// Sends `mail` to this actor once, `delay` from now. A timer that the key has is cancelled.
    fn arm(&mut self, key: u32, delay: Duration, mail: Mail);

    /// Cancels the timer that the key has: its mail is dropped and never handled.
    fn cancel(&mut self, key: u32);

    /// Called when the mail of a timer is handled: the key has no timer any more.
    fn fired(&mut self, key: u32);
}

/// The cases. The documentation of the suite defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Arm far timers and cancel all of them.
    ArmCancel,
    /// Arm a short timer, handle its message, arm the next.
    ArmFire,
    /// Arm keyed timers, replace some, cancel some, and let the others fire.
    #[value(name = "keyed-100k")]
    Keyed,
}

impl Case {
    pub(crate) const ALL: [Self; 3] = [Self::ArmCancel, Self::ArmFire, Self::Keyed];

    /// The name in tables and JSON, the same as on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ArmCancel => "arm-cancel",
            Self::ArmFire => "arm-fire",
            Self::Keyed => "keyed-100k",
        }
    }
}
