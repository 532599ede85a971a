//! Threads: starting a named thread, and settings of the current thread.
//!
//! Affinity and timer slack are properties of a thread, so the thread itself sets them after it
//! has started: [`pin_to_cpu`], [`sleep_precisely`].

pub(crate) mod policy;

use core::{error::Error, fmt};
use std::{
    borrow::Cow,
    io,
    thread::{Builder, JoinHandle},
};

use super::{loader, thread_control};

/// The configuration of a new thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadConfig {
    /// The name, as debuggers and panic messages show it. Linux keeps the first 15 bytes.
    pub name: Cow<'static, str>,
    /// The stack size in bytes, or `None` for std's default.
    pub stack_size: Option<usize>,
}

impl ThreadConfig {
    /// No name, and std's default stack size.
    pub const DEFAULT: Self = Self { name: Cow::Borrowed(""), stack_size: None };
}

/// Starts a thread.
///
/// # Errors
///
/// If the system has no more threads or no memory for the stack, which is transient, or if the name
/// contains a zero byte, which is permanent. The closure is dropped.
pub fn start<T, F>(config: &ThreadConfig, run: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // For all threads of the program: one of them may be preempted by a real-time thread.
    clockjack_sync::backoff::set_wait(thread_control::wait_for_other_thread);
    if config.name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a thread name must not contain a zero byte",
        ));
    }
    let mut builder = Builder::new();
    if !config.name.is_empty() {
        builder = builder.name(config.name.clone().into_owned());
    }
    if let Some(bytes) = config.stack_size {
        builder = builder.stack_size(bytes);
    }
    builder.spawn(run)
}

/// Refuses to wait for another thread to start or to end, if that could not happen: on Windows, in
/// the destructor of a thread-local variable. The module [`loader`] explains why.
///
/// # Errors
///
/// On such a thread. A retry there cannot succeed.
pub(crate) fn check_can_wait() -> io::Result<()> {
    if loader::is_locked_by_this_thread() {
        let why = "the destructor of a thread-local variable cannot wait for a thread on Windows";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    Ok(())
}

/// Joins a thread that has left the code of this crate or is about to, so that its thread-local
/// variables are dropped as well. Where no thread can end now, as in [`check_can_wait`], the thread
/// is detached, and ends later. The threads catch the panics of the code that they run, so there is
/// no result.
pub(crate) fn join_or_detach(thread: JoinHandle<()>) {
    if check_can_wait().is_ok() {
        drop(thread.join());
    }
}

/// Requests precise timers for this thread; returns whether the system granted it.
///
/// Linux may delay the timers of a thread by its *timer slack*, usually 50 µs, in order to wake up
/// less often; this function sets the slack to 1 ns. A refusal, for example by a sandbox, is not an
/// error: sleeps are then as late as before, and never early. On other systems there is nothing to
/// set.
pub fn sleep_precisely() -> bool {
    thread_control::sleep_precisely()
}

/// Pins this thread to one CPU.
///
/// # Errors
///
/// [`PinError`]: the CPU does not exist, this process may not use it, or the system does not
/// support affinity. The affinity of the thread is unchanged.
pub fn pin_to_cpu(cpu: usize) -> Result<(), PinError> {
    thread_control::pin_to_cpu(cpu).map_err(|error| PinError { cpu, error })
}

/// A thread could not be pinned to a CPU. Retrying does not help.
#[derive(Debug)]
pub struct PinError {
    cpu: usize,
    error: io::Error,
}

impl PinError {
    /// Whether there is no such CPU, or this process may not use it.
    #[must_use]
    pub fn is_no_such_cpu(&self) -> bool {
        self.error.kind() == io::ErrorKind::InvalidInput
    }

    /// Whether this system does not support affinity.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.error.kind() == io::ErrorKind::Unsupported
    }

    /// The requested CPU.
    #[must_use]
    pub const fn cpu(&self) -> usize {
        self.cpu
    }
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot bind this thread to cpu {}: ", self.cpu)?;
        match self.error.kind() {
            io::ErrorKind::InvalidInput => f.write_str("this process has no such cpu"),
            io::ErrorKind::Unsupported => f.write_str("not supported on this system"),
            _ => self.error.fmt(f),
        }
    }
}

impl Error for PinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_has_the_name_it_was_started_with() {
        let config = ThreadConfig { name: "cj-named".into(), stack_size: Some(1 << 18) };
        let name = start(&config, || thread::current().name().map(str::to_owned));
        assert_eq!(name.unwrap().join().unwrap().as_deref(), Some("cj-named"));

        let name = start(&ThreadConfig::DEFAULT, || thread::current().name().map(str::to_owned));
        assert_eq!(name.unwrap().join().unwrap(), None);
    }

    #[test]
    fn a_zero_byte_in_a_name_is_refused() {
        let config = ThreadConfig { name: "a\0b".into(), ..ThreadConfig::DEFAULT };
        let refused = start(&config, || ()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_refused_pin_says_why() {
        let check = |error: io::Error, reason: &str| {
            let error = PinError { cpu: 7, error };
            assert_eq!(error.to_string(), format!("cannot bind this thread to cpu 7: {reason}"));
            (error.is_no_such_cpu(), error.is_unsupported())
        };
        let no_such_cpu = check(io::ErrorKind::InvalidInput.into(), "this process has no such cpu");
        assert_eq!(no_such_cpu, (true, false));
        let unsupported = check(io::ErrorKind::Unsupported.into(), "not supported on this system");
        assert_eq!(unsupported, (false, true));
        assert_eq!(check(io::Error::other("no"), "no"), (false, false));
    }
}
