//! Signals of Unix: the self-pipe trick (D. J. Bernstein, "The self-pipe trick").
//!
//! # Protocol
//!
//! Roles: the *handler*, which interrupts any thread at any instruction, and the *signal thread*.
//!
//! 1. The handler writes the number of its signal, one byte, into a socket pair. It does nothing
//!    else: it takes no lock and allocates nothing.
//! 2. The signal thread reads one byte after the other and passes each signal on. The thread is
//!    started before the first handler is installed, and never ends.
//! 3. A child process that was forked without `exec` has the handler, but no signal thread, and its
//!    end of the pair is that of its parent. There, the handler exits the child, as the signal
//!    would without a handler, or ignores the signal, if the program was started so.
//!
//! *Why no signal is lost*: the pair keeps what is written until the thread reads it. A write fails
//! only if some hundred thousand signals wait.
//!
//! The crate `signal-hook-registry` installs the handler. It keeps a handler that was installed
//! before and calls it, too; tokio uses the same registry, so both receive the signals.
#![expect(unsafe_code, reason = "signal handlers are an interface of C")]

use core::{ffi::c_int, mem::MaybeUninit, ptr};
use std::{
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::net::UnixStream,
    },
    sync::{Mutex, PoisonError},
};

use super::signals::{Installed, SignalKind};
use crate::thread::{self, ThreadConfig};

/// The end of the socket pair that handlers write to; never closed.
static WRITER: Mutex<Option<UnixStream>> = Mutex::new(None);

/// Installs a handler, so that `deliver` is called on the signal thread for each signal of this
/// kind. The caller calls this once per kind, and always with the same function.
///
/// SIGINT stays ignored if the process was started with SIGINT ignored. A shell does that for a
/// job in the background of a script: Ctrl-C is then meant for other processes of the terminal.
pub(crate) fn install(kind: SignalKind, deliver: fn(SignalKind)) -> io::Result<Installed> {
    let number = number_of(kind);
    let was_ignored = is_ignored(number)?;
    if kind == SignalKind::Interrupt && was_ignored {
        return Ok(Installed::unless_ignored(true));
    }
    let writer = writer(deliver)?;
    register(number, was_ignored, writer)?;
    Ok(Installed::Handled { was_ignored })
}

fn number_of(kind: SignalKind) -> c_int {
    match kind {
        SignalKind::Interrupt => libc::SIGINT,
        SignalKind::Terminate => libc::SIGTERM,
        SignalKind::Hangup => libc::SIGHUP,
    }
}

fn kind_of(number: u8) -> Option<SignalKind> {
    let all = [SignalKind::Interrupt, SignalKind::Terminate, SignalKind::Hangup];
    all.into_iter().find(|kind| number_of(*kind) == c_int::from(number))
}

fn is_ignored(number: c_int) -> io::Result<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the new action is null, so nothing changes; the old one is written to a local of the
    // right type.
    if unsafe { libc::sigaction(number, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all bytes were zero, which is a valid value, and the call has overwritten them.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

/// The end of the socket pair for handlers. The first call creates the pair and starts the thread.
fn writer(deliver: fn(SignalKind)) -> io::Result<RawFd> {
    let mut place = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(writer) = &*place {
        return Ok(writer.as_raw_fd());
    }
    let (mut reader, writer) = UnixStream::pair()?;
    // A handler must not wait, whatever the thread does.
    writer.set_nonblocking(true)?;
    let config = ThreadConfig { name: "cj-signals".into(), ..ThreadConfig::DEFAULT };
    let pass_on = move || {
        let mut number = [0];
        // An interrupted read is repeated by `read_exact`.
        while reader.read_exact(&mut number).is_ok() {
            if let Some(kind) = kind_of(number[0]) {
                deliver(kind);
            }
        }
    };
    // The thread is detached: it runs as long as the process.
    drop(thread::start(&config, pass_on)?);
    Ok(place.insert(writer).as_raw_fd())
}

fn register(number: c_int, was_ignored: bool, writer: RawFd) -> io::Result<()> {
    let byte = u8::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: no precondition.
    let owner = unsafe { libc::getpid() };
    let on_signal = move || {
        // SAFETY: no precondition; async-signal-safe (POSIX).
        if unsafe { libc::getpid() } != owner {
            if was_ignored {
                return;
            }
            // SAFETY: no precondition; async-signal-safe. It runs no destructors of the parent.
            unsafe { libc::_exit(128 + number) };
        }
        // SAFETY: the pointer is to one readable byte, and the descriptor stays open; `write` is
        // async-signal-safe. The registry restores `errno`.
        unsafe { libc::write(writer, ptr::from_ref(&byte).cast(), 1) };
    };
    // SAFETY: the action calls only async-signal-safe functions and does not panic.
    unsafe { signal_hook_registry::register(number, on_signal) }.map(drop)
}
