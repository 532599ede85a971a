//! Monitors and links, as in OTP: which processes learn when a process ends.
//!
//! There is no lock. Each process has its own lists of the processes that it is linked to, that it
//! monitors and that monitor it; only its runner touches them. A link or monitor is made and
//! removed by signals between the two processes, so both ends know each other. Signals from one
//! process to another keep their order, so a link that is made and then removed does not remain. A
//! process that ends notifies all processes on its lists, and considers signals that arrived too
//! late to be put on them: closing the signal queue and reading it for the last time are one atomic
//! step.
#![expect(unsafe_code, reason = "the runner has the links of its process to itself")]

use alloc::{boxed::Box, vec::Vec};

use clockjack_time::TimerId;

use crate::{
    executor::ExecutorShared,
    exit::{ExitReason, JoinError},
    failure::Failure,
    payload::Payload,
    pid::Pid,
    process::signal::ProcessSignal,
    process::{Event, Tag},
    task::Header,
};

/// The initial capacity for timers.
const TIMERS_MIN: usize = 4;

/// The links and monitors of a process, and the timers that are cancelled when it ends.
#[derive(Debug, Default)]
pub(crate) struct ProcessLinks {
    /// Processes that monitor this one.
    monitors: Vec<Pid>,
    /// Processes that this one monitors.
    monitored: Vec<Pid>,
    links: Vec<Pid>,
    traps: bool,
    /// The timers of pending commands, and some that have fired already.
    timers: Vec<TimerId>,
}

/// A signal that the process itself receives as an event.
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

/// The links of a process, for its runner.
///
/// The borrow must not be kept across user code or another call of this function.
#[expect(clippy::mut_from_ref, reason = "the state says who owns the links")]
fn links(header: &Header) -> &mut ProcessLinks {
    // SAFETY: only the runner of the process calls the functions of this module; none keeps the
    // borrow when it calls another.
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

/// Sets whether the process receives failures of linked processes as events. By the runner.
pub(crate) fn trap_links(header: &Header, traps: bool) {
    links(header).traps = traps;
}

/// Registers a timer to be cancelled when the process ends. By the runner.
pub(crate) fn keep_timer(header: &Header, executor: &ExecutorShared, id: TimerId) {
    let timers = &mut links(header).timers;
    if timers.len() == timers.capacity() {
        // Remove those that have fired. The room for as many as are left makes this rare, however
        // many there are.
        timers.retain(|id| executor.is_armed(*id));
        timers.reserve(timers.len().max(TIMERS_MIN));
    }
    timers.push(id);
}

/// Handles the signals in the queue, and passes those that the process receives to `tell`. By the
/// runner.
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
                        // The remaining signals are handled all the same: one may be a request to
                        // monitor this process, which must learn of its end.
                        down.get_or_insert(JoinError::link_down(pid, reason));
                    }
                }
            }
        }
    }
    down.map_or(Ok(()), Err)
}

/// Monitors another process. By the runner of the monitoring process; `Ok(false)`: it does already.
pub(crate) fn monitor(header: &Header, other: &Header) -> Result<bool, ProcessSignal> {
    let (me, pid) = (header.pid(), other.pid());
    if links(header).monitored.contains(&pid) {
        return Ok(false);
    }
    other.signal(ProcessSignal::Monitor { monitor: me })?;
    Ok(insert(&mut links(header).monitored, pid))
}

/// Stops monitoring; returns whether the process was monitored. By the runner.
pub(crate) fn demonitor(header: &Header, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = remove(&mut links(header).monitored, pid);
    if did {
        executor.signal(pid, ProcessSignal::Demonitor { monitor: header.pid() });
    }
    did
}

/// Links two processes. By the runner of one of them. Idempotent.
pub(crate) fn link(header: &Header, other: &Header) -> Result<(), ProcessSignal> {
    other.signal(ProcessSignal::Link { peer: header.pid() })?;
    insert(&mut links(header).links, other.pid());
    Ok(())
}

/// Removes the link between two processes; returns whether there was one. By the runner of one of
/// them.
pub(crate) fn unlink(header: &Header, pid: Pid, executor: &ExecutorShared) -> bool {
    let did = remove(&mut links(header).links, pid);
    if did {
        executor.signal(pid, ProcessSignal::Unlink { peer: header.pid() });
    }
    did
}

/// Notifies all linked and monitoring processes that this process has ended, including those whose
/// signal arrived too late to be handled before. By the runner, as its last use of the links.
pub(crate) fn notify_exit(header: &Header, executor: &ExecutorShared, reason: &ExitReason) {
    let late = header.signals.close();
    // SAFETY: this is the runner, and no other borrow of the links is alive.
    let known = header.links.with_mut(|links| unsafe { (*links).take() });
    if known.is_none() && late.is_empty() {
        return;
    }
    let mut known = known.unwrap_or_default();
    for signal in late {
        match signal {
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
    for id in known.timers {
        executor.cancel_timer(id);
    }
}
