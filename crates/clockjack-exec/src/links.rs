//! Monitors and links: who is received when a process ends.
//!
//! Nothing is locked: each process has its own list of those that it is tied to, which only its
//! runner touches, and a tie is made and undone by signals between the two (spec: both ends index
//! each other). DrainedSignals from one process to another keep their order, so a tie that is made and
//! undone is not there. A process that ends tells everybody on its lists, and takes what arrived
//! too late to be put on them into account: the end of the lane and the last look at it are one
//! step.
#![expect(unsafe_code, reason = "the runner has the links of its process to itself")]

use alloc::{boxed::Box, vec::Vec};

use clockjack_sync::mutant;
use clockjack_time::TimerId;

use crate::{
    executor::ExecutorShared,
    exit::{ExitReason, JoinError},
    failure::Failure,
    payload::Payload,
    pid::Pid,
    process::{Event, Tag},
    signal::ProcessSignal,
    task::Header,
};

/// For how many timers there is room at first.
const TIMERS_MIN: usize = 4;

/// Whom a process is tied to, and what goes when it ends.
#[derive(Debug, Default)]
pub(crate) struct ProcessLinks {
    /// Those that want to know when this one ends.
    monitors: Vec<Pid>,
    /// Those whose end this one wants to know.
    monitored: Vec<Pid>,
    links: Vec<Pid>,
    traps: bool,
    /// The timers of commands that it waits for, and some that have fired.
    timers: Vec<TimerId>,
}

/// A signal that the process itself is to be received.
#[derive(Debug)]
pub(crate) enum ReceivedSignal {
    Complete { tag: Tag, result: Result<Payload, Failure> },
    Cancel { reason: &'static str },
    Exit { pid: Pid, reason: ExitReason },
    LinkDown { pid: Pid, reason: ExitReason },
}

impl<M> From<ReceivedSignal> for Event<M> {
    fn from(received: ReceivedSignal) -> Self {
        match received {
            ReceivedSignal::Complete { tag, result } => Self::YieldComplete { tag, result },
            ReceivedSignal::Cancel { reason } => Self::Cancel { reason },
            ReceivedSignal::Exit { pid, reason } => Self::Exit { pid, reason },
            ReceivedSignal::LinkDown { pid, reason } => Self::LinkDown { pid, reason },
        }
    }
}

/// The ties of a process, for its runner.
///
/// The borrow must not be kept across user code or another call of this function.
#[expect(clippy::mut_from_ref, reason = "the state word says whose the links are")]
fn links(header: &Header) -> &mut ProcessLinks {
    // SAFETY: the functions of this module are called by the runner of the process, which is alone
    // with it; none keeps the borrow when it calls another.
    let links = header.links.with_mut(|links| unsafe { &mut *links });
    links.get_or_insert_with(Box::default)
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

/// Whether failures of linked processes are received. By the runner.
pub(crate) fn trap_links(header: &Header, traps: bool) {
    links(header).traps = traps;
}

/// Has a timer disarmed when the process ends. By the runner.
pub(crate) fn keep_timer(header: &Header, executor: &ExecutorShared, id: TimerId) {
    let timers = &mut links(header).timers;
    if timers.len() == timers.capacity() {
        // Those that have fired go. Room for as many as are left makes this rare, however many.
        timers.retain(|id| executor.is_armed(*id));
        timers.reserve(timers.len().max(TIMERS_MIN));
    }
    timers.push(id);
}

/// Works off what the system sent, and hands on what the process is to be received. By the runner.
pub(crate) fn take_signals(
    header: &Header,
    executor: &ExecutorShared,
    mut tell: impl FnMut(ReceivedSignal),
) -> Result<(), JoinError> {
    let incarnation = header.state.generation();
    let mut down = None;
    for signal in header.signals.take() {
        match signal {
            ProcessSignal::Complete { tag, incarnation: asked, result } => {
                if asked == incarnation {
                    tell(ReceivedSignal::Complete { tag, result });
                } else {
                    executor.count_stale_completion();
                    executor.drop_catching_panic(result);
                }
            }
            ProcessSignal::Cancel { reason } => tell(ReceivedSignal::Cancel { reason }),
            ProcessSignal::Monitor { monitor } => _ = insert(&mut links(header).monitors, monitor),
            ProcessSignal::Demonitor { monitor } => {
                _ = remove(&mut links(header).monitors, monitor)
            }
            ProcessSignal::Link { peer } => _ = insert(&mut links(header).links, peer),
            ProcessSignal::Unlink { peer } => _ = remove(&mut links(header).links, peer),
            ProcessSignal::Exit { pid, reason } => {
                if remove(&mut links(header).monitored, pid) {
                    tell(ReceivedSignal::Exit { pid, reason });
                }
            }
            ProcessSignal::LinkExit { pid, reason } => {
                let own = links(header);
                if remove(&mut own.links, pid) && reason.is_failure() {
                    if own.traps {
                        tell(ReceivedSignal::LinkDown { pid, reason });
                    } else {
                        // The rest is worked off all the same: who wants to know of this
                        // process's end may be in it.
                        down.get_or_insert(JoinError::link_down(pid, reason));
                    }
                }
            }
        }
    }
    down.map_or(Ok(()), Err)
}

/// Watches another process. By the runner of the one that watches; `Ok(false)`: it does already.
pub(crate) fn monitor(header: &Header, other: &Header) -> Result<bool, ProcessSignal> {
    let (me, pid) = (header.pid(), other.pid());
    if links(header).monitored.contains(&pid) {
        return Ok(false);
    }
    other.signal(ProcessSignal::Monitor { monitor: me })?;
    Ok(insert(&mut links(header).monitored, pid))
}

/// Watches no longer; says whether it did. By the runner.
pub(crate) fn demonitor(header: &Header, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = remove(&mut links(header).monitored, pid);
    if did {
        executor.signal(pid, ProcessSignal::Demonitor { monitor: header.pid() });
    }
    did
}

/// ProcessLinks two processes together. By the runner of one of them. Idempotent.
pub(crate) fn link(header: &Header, other: &Header) -> Result<(), ProcessSignal> {
    other.signal(ProcessSignal::Link { peer: header.pid() })?;
    insert(&mut links(header).links, other.pid());
    Ok(())
}

/// Unties two processes; says whether they were tied. By the runner of one of them.
pub(crate) fn unlink(header: &Header, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = remove(&mut links(header).links, pid);
    if did {
        executor.signal(pid, ProcessSignal::Unlink { peer: header.pid() });
    }
    did
}

/// Tells everybody that the process has ended, those included whose signal came too late to be
/// looked at before. By the runner, as the last that it does with the ties.
pub(crate) fn notify_exit(header: &Header, executor: &ExecutorShared, reason: &ExitReason) {
    let late = header.signals.close();
    // SAFETY: this is the runner, and no other borrow of the ties is alive.
    let known = header.links.with_mut(|links| unsafe { (*links).take() });
    if known.is_none() && late.is_empty() {
        return;
    }
    let mut known = known.unwrap_or_default();
    for signal in late {
        match signal {
            ProcessSignal::Monitor { .. } if mutant!("ties-late-watch-lost") => {}
            ProcessSignal::Monitor { monitor } => _ = insert(&mut known.monitors, monitor),
            ProcessSignal::Demonitor { monitor } => _ = remove(&mut known.monitors, monitor),
            ProcessSignal::Link { peer } => _ = insert(&mut known.links, peer),
            ProcessSignal::Unlink { peer } => _ = remove(&mut known.links, peer),
            ProcessSignal::Exit { pid, .. } => _ = remove(&mut known.monitored, pid),
            ProcessSignal::LinkExit { pid, .. } => _ = remove(&mut known.links, pid),
            ProcessSignal::Complete { result, .. } => executor.drop_catching_panic(result),
            ProcessSignal::Cancel { .. } => {}
        }
    }
    let pid = header.pid();
    for monitor in known.monitors {
        executor.signal(monitor, ProcessSignal::Exit { pid, reason: reason.clone() });
    }
    for peer in known.links {
        executor.signal(peer, ProcessSignal::LinkExit { pid, reason: reason.clone() });
    }
    for monitored in known.monitored {
        executor.signal(monitored, ProcessSignal::Demonitor { monitor: pid });
    }
    if mutant!("ties-timers-outlive") {
        return;
    }
    for id in known.timers {
        executor.disarm(id);
    }
}
