//! Console events of Windows, by `SetConsoleCtrlHandler`.
//!
//! | event | kind |
//! |---|---|
//! | Ctrl-C, Ctrl-Break | [`SignalKind::Interrupt`] |
//! | the console is closed, the system shuts down | [`SignalKind::Terminate`] |
//! | a user logs off | none: the next handler of the process has it |
//!
//! The event of a user who logs off does not say which user that is, and a service, which goes on,
//! gets it as well. The handler that Windows itself has installed knows the difference: it ends a
//! program of the session, and leaves that of a service alone (Microsoft, article Q149901).
//!
//! # Protocol
//!
//! 1. For each event, the system starts a thread in this process, and that thread calls the
//!    handler. So the handler is ordinary code: it may lock and allocate, and it delivers the event
//!    itself. Deliveries run one after the other, as they do on the signal thread of Unix.
//! 2. After Ctrl-C and Ctrl-Break, the handler returns, and the program goes on.
//! 3. After the events of the second row, Windows ends the process as soon as the handler has
//!    returned. So the handler does not return: its thread ends with the process, when `main`
//!    returns after its drain. Windows itself limits the wait, to 5 seconds for a closed console
//!    and usually to 20 for a shutdown of the system, and then ends the process.
#![expect(unsafe_code, reason = "console events are an interface of C")]

use core::ffi::c_int;
use std::{
    io,
    sync::{Mutex, PoisonError},
    thread,
};

use super::signals::{Installed, SignalKind};

/// `TRUE`: yes, or "the event was handled".
const TRUE: c_int = 1;
/// `FALSE`: no, or "the next handler is to handle the event".
const FALSE: c_int = 0;

type Handler = extern "system" fn(event: u32) -> c_int;

#[link(name = "kernel32")]
unsafe extern "system" {
    /// The handler is a function that the system may call on a thread of its own from now on.
    fn SetConsoleCtrlHandler(handler: Option<Handler>, is_added: c_int) -> c_int;
}

/// What receives the events; `None` until the handler is installed.
static DELIVER: Mutex<Option<fn(SignalKind)>> = Mutex::new(None);

/// Held by the thread that delivers an event.
static TURN: Mutex<()> = Mutex::new(());

/// Installs the handler, so that `deliver` is called for each event of this kind. The caller calls
/// this once per kind, and always with the same function. There is no SIGHUP on Windows: it is
/// accepted, and never occurs.
pub(crate) fn install(kind: SignalKind, deliver: fn(SignalKind)) -> io::Result<Installed> {
    let mut place = DELIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if kind != SignalKind::Hangup && place.is_none() {
        // SAFETY: the handler is a function of this program, and it can be called on any thread at
        // any time.
        if unsafe { SetConsoleCtrlHandler(Some(on_event), TRUE) } == FALSE {
            return Err(io::Error::last_os_error());
        }
        *place = Some(deliver);
    }
    Ok(Installed::unless_ignored(false))
}

fn kind_of(event: u32) -> Option<SignalKind> {
    match event {
        // CTRL_C_EVENT, CTRL_BREAK_EVENT.
        0 | 1 => Some(SignalKind::Interrupt),
        // CTRL_CLOSE_EVENT, CTRL_SHUTDOWN_EVENT.
        2 | 6 => Some(SignalKind::Terminate),
        // CTRL_LOGOFF_EVENT, 5, and whatever else there may be.
        _ => None,
    }
}

/// What the handler does with an event after it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The event is not ours.
    NextHandler,
    /// The program goes on.
    Return,
    /// The process would end if the handler returned.
    StayUntilExit,
}

/// Rules 2 and 3.
fn answer_to(event: u32) -> Answer {
    match kind_of(event) {
        Some(SignalKind::Interrupt) => Answer::Return,
        Some(SignalKind::Terminate) => Answer::StayUntilExit,
        Some(SignalKind::Hangup) | None => Answer::NextHandler,
    }
}

/// The system calls this function on a thread of its own. `deliver` catches panics.
extern "system" fn on_event(event: u32) -> c_int {
    // An event may arrive before `install` has returned: it waits for that here.
    let deliver = *DELIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(kind), Some(deliver)) = (kind_of(event), deliver) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        deliver(kind);
    }
    match answer_to(event) {
        Answer::NextHandler => FALSE,
        Answer::Return => TRUE,
        Answer::StayUntilExit => loop {
            thread::park();
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_kind_and_those_that_end_the_process_wait_for_its_drain() {
        let check = |event, kind, answer| {
            assert_eq!((kind_of(event), answer_to(event)), (kind, answer), "event {event}");
        };
        for event in [0, 1] {
            check(event, Some(SignalKind::Interrupt), Answer::Return);
        }
        for event in [2, 6] {
            check(event, Some(SignalKind::Terminate), Answer::StayUntilExit);
        }
        // 5: a user has logged off, and a service goes on.
        for event in [3, 4, 5, 7, u32::MAX] {
            check(event, None, Answer::NextHandler);
        }
    }
}
