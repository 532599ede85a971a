//! An actor that is slow while messages wait and its timers become due. The tests of each host
//! start it, and call [`check`]: neither the timer nor the receive timeout overtakes a message that
//! was there before it.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use clockjack_actor::{Actor, Context, Failure, Mailbox, Next, Props, Signal};

/// After this time the timer fires, and the receive timeout.
const QUIET: Duration = Duration::from_millis(4);
/// How long the slow handler runs.
const SLOW: Duration = Duration::from_millis(16);

/// How many messages wait: more than an actor handles in a turn, after which a host with one
/// thread looks at its timers.
const WAITING: usize = 100;

pub(crate) enum Msg {
    Begin,
    Slow,
    Alive,
    Quiet,
}

/// What was handled so far.
pub(crate) type Seen = Arc<Mutex<Vec<&'static str>>>;

/// Tell it [`Msg::Begin`]; it stops when it has seen everything.
pub(crate) struct Device(Seen);

impl Device {
    pub(crate) fn props(seen: &Seen) -> Props<Self, impl FnMut() -> Self + use<>> {
        let seen = Arc::clone(seen);
        Props::new(move || Self(Arc::clone(&seen))).mailbox(Mailbox::bounded(WAITING + 1))
    }

    /// Returns the number of entries.
    fn add(&self, what: &'static str) -> usize {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(what);
        seen.len()
    }

    /// Stops after all messages, the timer and the timeout.
    fn next(n_seen: usize) -> Next {
        if n_seen < 1 + WAITING + 2 { Next::Stay } else { Next::Stop }
    }
}

/// What was handled by an actor that has stopped.
pub(crate) fn check(seen: &Seen) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Two workers may fire the last two.
    seen[1 + WAITING..].sort_unstable();
    let alive = [["alive"].as_slice(); WAITING].concat();
    let expected = [["slow"].as_slice(), &alive, &["quiet", "timeout"]].concat();
    let place = seen.iter().position(|one| *one != "slow" && *one != "alive");
    assert_eq!(seen, expected, "{place:?}");
}

impl Actor for Device {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Begin => {
                cx.self_ref().tell(Msg::Slow)?;
                cx.set_receive_timeout(QUIET);
            }
            Msg::Slow => {
                for _ in 0..WAITING {
                    cx.self_ref().tell(Msg::Alive)?;
                }
                cx.timers().single("quiet", QUIET, Msg::Quiet)?;
                let until = cx.now().saturating_add(SLOW);
                // The clock is the subject: both timers become due in this handler.
                while cx.now() < until {
                    std::thread::yield_now();
                }
                return Ok(Self::next(self.add("slow")));
            }
            Msg::Alive => return Ok(Self::next(self.add("alive"))),
            Msg::Quiet => return Ok(Self::next(self.add("quiet"))),
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::ReceiveTimeout => {
                cx.cancel_receive_timeout();
                Ok(Self::next(self.add("timeout")))
            }
            _ => Ok(Next::Unhandled),
        }
    }
}
