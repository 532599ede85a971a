//! Failures of actors, one line each, and refused messages, on standard error or in `tracing`.
//!
//! The log is a listener of the system ([`SystemBuilder::on_failure`]), so it runs on the thread
//! that has decided about the failure, before the decision is carried out: the line is written even
//! if the program exits next. Refusals are counted by the system, which calls the log at most once
//! per minute, and at its end ([`SystemBuilder::on_refusals`]). A line that standard error refuses
//! is lost; the program continues.

mod rate_limit;

use core::fmt::{self, Write as _};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use clockjack_actor::{
    ActorPath, ActorSystem, Directive, EscalationStage, FailureInfo, MailboxRefusals, SystemBuilder,
};
use clockjack_sync::waker::AtomicWaker;

use self::rate_limit::{RateLimit, Verdict};
use crate::{OsInstant, failure_trace};

/// Whether failures of actors and refused messages are logged.
///
/// By default, each failure that stops or restarts an actor is one line on standard error:
///
/// ```text
/// clockjack[shop]: actor /user/printer failed while handling Job: out of paper; the actor stops
/// ```
///
/// A failure that a strategy resumes is not logged. With the feature `tracing`, and if the thread
/// has a `tracing` subscriber, the line is an event instead, as the `TracingBridge` writes it; if
/// there is a bridge that forwards such events, the bridge alone writes it.
///
/// An actor that fails again and again does not flood the log: in each second, at most 3 failures
/// per actor and at most 20 in all are written. On standard error, the last line before that says
/// so. The number of failures that were not written follows, with the next failure or at the
/// shutdown. A `TracingBridge` writes all failures.
///
/// A full mailbox that returns messages to their senders is a line of the same log, a second after
/// the first of them, and then, as long as messages are refused, after 1, 2, 4 .. 60 minutes and at
/// the shutdown:
///
/// ```text
/// clockjack[shop]: actor /user/printer: the mailbox was full and has refused 1000 messages
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureLog {
    /// Write failures and refusals.
    #[default]
    On,
    /// Write nothing.
    Off,
}

/// How many failures of top-level actors are kept. Nobody takes them from a runtime that does not
/// [run](crate::Runtime::run).
const TOP_LEVEL_MAX: usize = 64;

/// The log of one system; also keeps the failures that can end [`Runtime::run`](crate::Runtime).
#[derive(Debug)]
pub(crate) struct Failures {
    system: Box<str>,
    log: FailureLog,
    limit: Mutex<RateLimit>,
    /// The newest failures that stop a child of `/user`, oldest first, until they are taken. Each
    /// is kept, and not only the last one: the actor of an earlier one may stop later.
    top_level: Mutex<VecDeque<FailureInfo>>,
    /// The first failure that has reached the root.
    root: Mutex<Option<FailureInfo>>,
    waker: AtomicWaker,
}

impl Failures {
    /// Adds the log to a system.
    pub(crate) fn install(builder: SystemBuilder, log: FailureLog) -> (SystemBuilder, Arc<Self>) {
        let failures = Arc::new(Self {
            system: builder.name().into(),
            log,
            limit: Mutex::default(),
            top_level: Mutex::default(),
            root: Mutex::new(None),
            waker: AtomicWaker::new(),
        });
        let listener = Arc::clone(&failures);
        let mut builder = builder.on_failure(move |system, info| listener.add(system, info));
        if log == FailureLog::On {
            let listener = Arc::clone(&failures);
            builder =
                builder.on_refusals(move |system, info| listener.write_refusals(system, info));
        }
        (builder, failures)
    }

    /// Writes a warning.
    pub(crate) fn warn(&self, text: fmt::Arguments<'_>) {
        if !failure_trace::warn(&self.system, text) {
            self.print(text);
        }
    }

    /// Writes how many failures were not written, if there are any.
    pub(crate) fn flush(&self) {
        let n_suppressed = lock(&self.limit).take_suppressed();
        self.report_suppressed(n_suppressed);
    }

    /// Takes the oldest failure that stops a child of `/user`.
    pub(crate) fn take_top_level(&self) -> Option<FailureInfo> {
        lock(&self.top_level).pop_front()
    }

    /// Takes the failure that has reached the root.
    pub(crate) fn take_root(&self) -> Option<FailureInfo> {
        lock(&self.root).take()
    }

    /// Woken for each failure that stops a child of `/user`.
    pub(crate) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    fn add(&self, system: &ActorSystem, info: &FailureInfo) {
        if self.log == FailureLog::On && info.directive != Some(Directive::Resume) {
            self.write(system, info);
        }
        if info.stage == EscalationStage::Root {
            lock(&self.root).get_or_insert_with(|| info.clone());
        } else if info.directive == Some(Directive::Stop) && is_top_level(&info.path) {
            self.add_top_level(info.clone());
            self.waker.wake();
        }
    }

    fn add_top_level(&self, info: FailureInfo) {
        let mut all = lock(&self.top_level);
        let oldest = if all.len() >= TOP_LEVEL_MAX { all.pop_front() } else { None };
        all.push_back(info);
        drop(all);
        // Outside of the lock.
        drop(oldest);
    }

    fn write(&self, system: &ActorSystem, info: &FailureInfo) {
        if failure_trace::is_bridged(system, info) {
            // The bridge writes all of them, so none is to be counted.
            return;
        }
        let verdict = lock(&self.limit).check(OsInstant::now(), info.origin().1);
        // Outside of the lock: standard error may block.
        let Verdict::Write { n_suppressed, is_last } = verdict else { return };
        self.report_suppressed(n_suppressed);
        if failure_trace::failure(&self.system, info) {
            return;
        }
        let more = if is_last { "; more failures in this second are only counted" } else { "" };
        self.print(format_args!("{}{more}", FailureLine(info)));
    }

    fn write_refusals(&self, system: &ActorSystem, refusals: &MailboxRefusals) {
        let is_bridged = failure_trace::bridges_refusals(system);
        if is_bridged || failure_trace::refusals(&self.system, refusals) {
            return;
        }
        self.print(format_args!("actor {}: {refusals}", refusals.path));
    }

    fn report_suppressed(&self, n: u64) {
        match n {
            0 => {}
            1 => self.warn(format_args!("1 more failure was counted and not written")),
            n => self.warn(format_args!("{n} more failures were counted and not written")),
        }
    }

    /// Prints a line, in one write.
    fn print(&self, text: fmt::Arguments<'_>) {
        let line = format!("clockjack[{}]: {text}\n", self.system);
        // Nobody is left to be told that standard error is closed.
        drop(io::stderr().write_all(line.as_bytes()));
    }
}

impl Drop for Failures {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A failure as one line of text.
struct FailureLine<'a>(&'a FailureInfo);

impl fmt::Display for FailureLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.0;
        write!(f, "actor {} failed", info.origin().1)?;
        if let Some(message_type) = info.message_type {
            write!(f, " while handling {message_type}")?;
        }
        f.write_str(": ")?;
        write!(OneLine(f), "{}", info.reason)?;
        let who = match info.stage {
            EscalationStage::Initial => "; the actor ",
            EscalationStage::Root => return f.write_str("; the failure has reached the root"),
            _ => {
                write!(f, "; escalated to {}, which ", info.path)?;
                ""
            }
        };
        match info.directive {
            Some(Directive::Restart) => write!(f, "{who}restarts"),
            Some(Directive::Stop) => write!(f, "{who}stops"),
            Some(other) => write!(f, "{who}has the decision {other}"),
            None => f.write_str("; the actor was already stopping or restarting"),
        }
    }
}

/// Escapes line breaks and other control characters.
struct OneLine<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|char| match char.is_control() {
            true => write!(self.0, "{}", char.escape_default()),
            false => self.0.write_char(char),
        })
    }
}

fn is_top_level(path: &ActorPath) -> bool {
    path.depth() == 2 && path.parent().is_some_and(|above| above.name() == "user")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No user code runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use clockjack_actor::{FailureReport, Pid};

    use super::*;

    fn check(change: impl FnOnce(&mut FailureInfo), expected: &str) {
        let path = ActorPath::root().child("user").child("printer");
        let reason = FailureReport::new("out of\npaper\x1b[2J");
        let mut info = FailureInfo::new(Pid::new(1, 2, NonZeroU64::MIN), path, reason);
        change(&mut info);
        assert_eq!(FailureLine(&info).to_string(), expected);
    }

    #[test]
    fn a_line_has_path_message_cause_and_decision_and_no_line_break() {
        let cause = "out of\\npaper\\u{1b}[2J";
        check(
            |info| {
                info.message_type = Some("shop::Job");
                info.directive = Some(Directive::Stop);
            },
            &format!(
                "actor /user/printer failed while handling shop::Job: {cause}; the actor stops"
            ),
        );
        check(
            |info| info.directive = Some(Directive::Restart),
            &format!("actor /user/printer failed: {cause}; the actor restarts"),
        );
        check(
            |_| (),
            &format!(
                "actor /user/printer failed: {cause}; the actor was already stopping or restarting"
            ),
        );
        let up = |info: &mut FailureInfo| *info = info.escalate_to_parent(info.actor);
        check(
            |info| {
                up(info);
                info.directive = Some(Directive::Restart);
            },
            &format!("actor /user/printer failed: {cause}; escalated to /user, which restarts"),
        );
        check(
            |info| (0..2).for_each(|_| up(info)),
            &format!("actor /user/printer failed: {cause}; the failure has reached the root"),
        );
    }

    #[test]
    fn only_children_of_user_are_at_the_top() {
        let user = ActorPath::root().child("user");
        assert!(is_top_level(&user.child("a")));
        assert!(!is_top_level(&user.child("a").child("user").child("b")));
        assert!(!is_top_level(&user));
        assert!(!is_top_level(&ActorPath::root().child("system").child("a")));
    }
}
