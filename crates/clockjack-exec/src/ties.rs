//! Monitors and links: who is told when a process ends.
//!
//! Nothing is locked: each process has its own list of those that it is tied to, which only its
//! runner touches, and a tie is made and undone by signals between the two (spec: both ends index
//! each other). Signals from one process to another keep their order, so a tie that is made and
//! undone is not there. A process that ends tells everybody on its lists, and takes what arrived
//! too late to be put on them into account: the end of the lane and the last look at it are one
//! step.
#![expect(unsafe_code, reason = "the runner has the ties of its process to itself")]

use alloc::{boxed::Box, vec::Vec};

use clockjack_sync::mutant;
use clockjack_time::TimerId;

use crate::{
    cell::Head,
    engine::Engine,
    exit::{Exit, ExitReason},
    failure::Failure,
    payload::Payload,
    pid::Pid,
    process::{Event, Tag},
    signal::Signal,
};

/// For how many timers there is room at first.
const TIMERS_MIN: usize = 4;

/// Whom a process is tied to, and what goes when it ends.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    /// Those that want to know when this one ends.
    watchers: Vec<Pid>,
    /// Those whose end this one wants to know.
    watched: Vec<Pid>,
    links: Vec<Pid>,
    traps: bool,
    /// The timers of commands that it waits for, and some that have fired.
    timers: Vec<TimerId>,
}

/// A signal that the process itself is to be told.
#[derive(Debug)]
pub(crate) enum Told {
    Complete { tag: Tag, result: Result<Payload, Failure> },
    Cancel { reason: &'static str },
    Exit { pid: Pid, reason: ExitReason },
    LinkDown { pid: Pid, reason: ExitReason },
}

impl<M> From<Told> for Event<M> {
    fn from(told: Told) -> Self {
        match told {
            Told::Complete { tag, result } => Self::YieldComplete { tag, result },
            Told::Cancel { reason } => Self::Cancel { reason },
            Told::Exit { pid, reason } => Self::Exit { pid, reason },
            Told::LinkDown { pid, reason } => Self::LinkDown { pid, reason },
        }
    }
}

/// The ties of a process, for its runner.
///
/// The borrow must not be kept across user code or another call of this function.
#[expect(clippy::mut_from_ref, reason = "the state word says whose the ties are")]
fn ties(head: &Head) -> &mut Ties {
    // SAFETY: the functions of this module are called by the runner of the process, which is alone
    // with it; none keeps the borrow when it calls another.
    let ties = head.ties.with_mut(|ties| unsafe { &mut *ties });
    ties.get_or_insert_with(Box::default)
}

fn remove(list: &mut Vec<Pid>, pid: Pid) -> bool {
    let at = list.iter().position(|known| *known == pid);
    at.map(|at| list.remove(at)).is_some()
}

fn insert(list: &mut Vec<Pid>, pid: Pid) -> bool {
    let is_new = !list.contains(&pid);
    if is_new {
        list.push(pid);
    }
    is_new
}

/// Whether failures of linked processes are told. By the runner.
pub(crate) fn trap_links(head: &Head, traps: bool) {
    ties(head).traps = traps;
}

/// Has a timer disarmed when the process ends. By the runner.
pub(crate) fn keep_timer(head: &Head, engine: &Engine, id: TimerId) {
    let timers = &mut ties(head).timers;
    if timers.len() == timers.capacity() {
        // Those that have fired go. Room for as many as are left makes this rare, however many.
        timers.retain(|id| engine.is_armed(*id));
        timers.reserve(timers.len().max(TIMERS_MIN));
    }
    timers.push(id);
}

/// Works off what the system sent, and hands on what the process is to be told. By the runner.
pub(crate) fn take_signals(
    head: &Head,
    engine: &Engine,
    mut tell: impl FnMut(Told),
) -> Result<(), Exit> {
    let incarnation = head.word.generation();
    let mut down = None;
    for signal in head.lane.take() {
        match signal {
            Signal::Complete { tag, incarnation: asked, result } => {
                if asked == incarnation {
                    tell(Told::Complete { tag, result });
                } else {
                    engine.count_stale_completion();
                    engine.drop_contained(result);
                }
            }
            Signal::Cancel { reason } => tell(Told::Cancel { reason }),
            Signal::Watch { watcher } => _ = insert(&mut ties(head).watchers, watcher),
            Signal::Unwatch { watcher } => _ = remove(&mut ties(head).watchers, watcher),
            Signal::Link { peer } => _ = insert(&mut ties(head).links, peer),
            Signal::Unlink { peer } => _ = remove(&mut ties(head).links, peer),
            Signal::Exit { pid, reason } => {
                if remove(&mut ties(head).watched, pid) {
                    tell(Told::Exit { pid, reason });
                }
            }
            Signal::LinkExit { pid, reason } => {
                let ties = ties(head);
                if remove(&mut ties.links, pid) && reason.is_failure() {
                    if ties.traps {
                        tell(Told::LinkDown { pid, reason });
                    } else {
                        // The rest is worked off all the same: who wants to know of this
                        // process's end may be in it.
                        down.get_or_insert(Exit::link_down(pid, reason));
                    }
                }
            }
        }
    }
    down.map_or(Ok(()), Err)
}

/// Watches another process. By the runner of the one that watches; `Ok(false)`: it does already.
pub(crate) fn watch(head: &Head, other: &Head) -> Result<bool, Signal> {
    let (me, pid) = (head.pid(), other.pid());
    if ties(head).watched.contains(&pid) {
        return Ok(false);
    }
    other.signal(Signal::Watch { watcher: me })?;
    Ok(insert(&mut ties(head).watched, pid))
}

/// Watches no longer; says whether it did. By the runner.
pub(crate) fn unwatch(head: &Head, pid: Pid, engine: &Engine) -> bool {
    let did = remove(&mut ties(head).watched, pid);
    if did {
        engine.signal(pid, Signal::Unwatch { watcher: head.pid() });
    }
    did
}

/// Ties two processes together. By the runner of one of them. Idempotent.
pub(crate) fn link(head: &Head, other: &Head) -> Result<(), Signal> {
    other.signal(Signal::Link { peer: head.pid() })?;
    insert(&mut ties(head).links, other.pid());
    Ok(())
}

/// Unties two processes; says whether they were tied. By the runner of one of them.
pub(crate) fn unlink(head: &Head, pid: Pid, engine: &Engine) -> bool {
    let did = remove(&mut ties(head).links, pid);
    if did {
        engine.signal(pid, Signal::Unlink { peer: head.pid() });
    }
    did
}

/// Tells everybody that the process has ended, those included whose signal came too late to be
/// looked at before. By the runner, as the last that it does with the ties.
pub(crate) fn tell_end(head: &Head, engine: &Engine, reason: &ExitReason) {
    let late = head.lane.close();
    // SAFETY: this is the runner, and no other borrow of the ties is alive.
    let known = head.ties.with_mut(|ties| unsafe { (*ties).take() });
    if known.is_none() && late.is_empty() {
        return;
    }
    let mut known = known.unwrap_or_default();
    for signal in late {
        match signal {
            Signal::Watch { .. } if mutant!("ties-late-watch-lost") => {}
            Signal::Watch { watcher } => _ = insert(&mut known.watchers, watcher),
            Signal::Unwatch { watcher } => _ = remove(&mut known.watchers, watcher),
            Signal::Link { peer } => _ = insert(&mut known.links, peer),
            Signal::Unlink { peer } => _ = remove(&mut known.links, peer),
            Signal::Exit { pid, .. } => _ = remove(&mut known.watched, pid),
            Signal::LinkExit { pid, .. } => _ = remove(&mut known.links, pid),
            Signal::Complete { result, .. } => engine.drop_contained(result),
            Signal::Cancel { .. } => {}
        }
    }
    let pid = head.pid();
    for watcher in known.watchers {
        engine.signal(watcher, Signal::Exit { pid, reason: reason.clone() });
    }
    for peer in known.links {
        engine.signal(peer, Signal::LinkExit { pid, reason: reason.clone() });
    }
    for watched in known.watched {
        engine.signal(watched, Signal::Unwatch { watcher: pid });
    }
    if mutant!("ties-timers-outlive") {
        return;
    }
    for id in known.timers {
        engine.disarm(id);
    }
}
