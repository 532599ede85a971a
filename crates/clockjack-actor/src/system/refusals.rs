//! Refused messages: how many there were, and which mailbox refuses the most.
//!
//! A sender whose message is refused gets the message back, and counts the refusal: in the counters
//! of the system, in the header of the actor, and in the *window* of the system, which is what the
//! next report covers. A sender whose message is accepted does nothing of this.
//!
//! # Report
//!
//! The first refusal of a window schedules a report, a second later, so that the report is about
//! more than one message; the pause between two reports grows as [`WarningBackoff`] says. The
//! report names the mailbox that has refused the most messages of the window, and begins the next
//! window. It goes to the listeners of the system, on the thread that reports, and to the event
//! stream. If there are neither listeners nor subscribers, there is no window. The last window is
//! reported when the system has terminated: a program that is overloaded for less than a second is
//! reported, too.
//!
//! The window finds the worst mailbox by the algorithm *Space-Saving* (Metwally, Agrawal, El
//! Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005): it has
//! room for a few mailboxes; one that is not among them replaces the one with the fewest refusals
//! and inherits the number. So the window is small, and a mailbox with more than its share of all
//! refusals is found.
//!
//! # Interrupts
//!
//! A sender may be an interrupt of a small processor, which neither allocates nor frees memory, and
//! does not wait for a lock. So there, and in a sealed system, no job is scheduled and no path is
//! kept: the first refusal that comes after the pause reports its own mailbox. A sender that does
//! not get the lock leaves the window as it is; the counters have its refusal. The seal of a system
//! reports the window, so that no sender frees the paths in it. Listeners are not called there,
//! since a listener may allocate.
//!
//! If the scheduler refuses the job, because it is closed or has no room, the first refusal that
//! comes after the pause reports the window, too.

use alloc::boxed::Box;
use core::{array, time::Duration};

use clockjack_exec::Pid;
use clockjack_observe::{backoff::WarningBackoff, bus::with_bounded_wait};
use clockjack_sched::FireContext;
use clockjack_sync::{primitive::IS_SMALL, spin_lock::SpinLock};

use super::{ActorSystem, SystemInner, call_catching_panics};
use crate::{
    ActorPath,
    cell::header::AnyActor,
    events::{EventKinds, MailboxRefusals, SystemEvent},
};

/// How many mailboxes a window has room for.
const MAILBOXES_MAX: usize = if IS_SMALL { 2 } else { 16 };

/// How long the refusals of the first window are collected.
const COLLECTING: Duration = Duration::from_secs(1);

pub(super) type OnRefusals = Box<dyn Fn(&ActorSystem, &MailboxRefusals) + Send + Sync>;

/// The refusals since the last report; see the [module](self).
pub(super) struct RefusalWindow(SpinLock<Window>);

struct Window {
    mailboxes: [Option<RefusingMailbox>; MAILBOXES_MAX],
    total: u64,
    backoff: WarningBackoff,
    /// A job that reports is scheduled, or a sender is about to schedule it.
    has_job: bool,
    /// The scheduler has refused the last job.
    is_job_refused: bool,
}

struct RefusingMailbox {
    pid: Pid,
    /// None where a sender must not free memory.
    path: Option<ActorPath>,
    refused: u64,
}

type Mailboxes = [Option<RefusingMailbox>; MAILBOXES_MAX];

impl RefusalWindow {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(Window {
            mailboxes: array::from_fn(|_| None),
            total: 0,
            backoff: WarningBackoff::new(),
            has_job: false,
            is_job_refused: false,
        }))
    }
}

impl Window {
    /// Counts a refusal. Returns the number of refusals of this mailbox, and the path of the
    /// mailbox that had to make room.
    fn add(&mut self, actor: &AnyActor, keeps_path: bool) -> (u64, Option<ActorPath>) {
        self.total += 1;
        let pid = actor.pid();
        if let Some(known) = self.mailboxes.iter_mut().flatten().find(|one| one.pid == pid) {
            known.refused += 1;
            return (known.refused, None);
        }
        let count = |one: &Option<RefusingMailbox>| one.as_ref().map_or(0, |one| one.refused);
        let least = self.mailboxes.iter_mut().min_by_key(|one| count(one));
        let least = least.expect("there is room for at least one mailbox");
        let refused = count(least) + 1;
        let path = keeps_path.then(|| actor.path.clone());
        let replaced = least.replace(RefusingMailbox { pid, path, refused });
        (refused, replaced.and_then(|one| one.path))
    }

    /// Begins the next window, and returns the mailboxes and the total of this one.
    fn take(&mut self, now_ns: u64) -> (Mailboxes, u64) {
        self.backoff.note(now_ns);
        self.has_job = false;
        let mailboxes = core::mem::replace(&mut self.mailboxes, array::from_fn(|_| None));
        (mailboxes, core::mem::take(&mut self.total))
    }
}

impl SystemInner {
    /// A message was returned to its sender: because the mailbox is full, or because the actor has
    /// stopped.
    #[cold]
    pub(crate) fn refused(&self, actor: &AnyActor, is_full: bool) {
        self.counters.refused(actor.pid(), is_full);
        if !is_full {
            return;
        }
        let may_allocate = !IS_SMALL && !self.is_sealed();
        actor.count_refused(may_allocate);
        let is_subscribed = self.events.wants(EventKinds::MAILBOX_REFUSALS);
        if may_allocate && (is_subscribed || !self.on_refusals.is_empty()) {
            self.add_to_window(actor);
        } else if is_subscribed {
            self.add_quietly(actor);
        }
    }

    fn add_to_window(&self, actor: &AnyActor) {
        let added = with_bounded_wait(&self.refusals.0, |window| {
            let (_, replaced) = window.add(actor, true);
            (replaced, !core::mem::replace(&mut window.has_job, true))
        });
        let Some((replaced, needs_job)) = added else { return };
        drop(replaced);
        if needs_job {
            self.schedule_report();
        }
    }

    /// As [`add_to_window`](Self::add_to_window), and publishes the report itself. For interrupts,
    /// and for systems that must not allocate.
    fn add_quietly(&self, actor: &AnyActor) {
        let now_ns = self.now_nanos();
        let due = with_bounded_wait(&self.refusals.0, |window| {
            let (refused, _) = window.add(actor, false);
            let is_due = window.backoff.wait_ns(now_ns) == 0;
            is_due.then(|| (refused, window.take(now_ns).1))
        });
        if let Some((refused, total)) = due.flatten() {
            let path = actor.path.clone();
            let report = MailboxRefusals { path, refused, total };
            self.events.publish_quietly(&SystemEvent::MailboxRefusals(report));
        }
    }

    fn schedule_report(&self) {
        let now_ns = self.now_nanos();
        let wait_ns = self.refusals.0.with(|window| {
            let wait_ns = window.backoff.wait_ns(now_ns);
            // An overloaded scheduler is not asked for every message that is refused.
            window.has_job = wait_ns == 0 || !window.is_job_refused;
            window.has_job.then_some(wait_ns)
        });
        let Some(wait_ns) = wait_ns else { return };
        let delay = Duration::from_nanos(wait_ns).max(COLLECTING).min(self.delay_max());
        let system = self.clone_inner();
        let report = move |_: &FireContext| {
            // In a sealed system the senders report.
            if !system.is_sealed() {
                system.report_refusals();
            }
        };
        let is_refused = self.jobs().schedule_internal(delay, report).is_err();
        self.refusals.0.with(|window| {
            window.is_job_refused = is_refused;
            window.has_job &= !is_refused;
        });
        if is_refused && wait_ns == 0 {
            self.report_refusals();
        }
    }

    /// Reports what was refused since the last report: before a seal, and at the termination.
    pub(super) fn flush_refusals(&self) {
        if self.refusals.0.with(|window| window.total > 0) {
            self.report_refusals();
        }
    }

    /// Publishes the report about the current window.
    fn report_refusals(&self) {
        let now_ns = self.now_nanos();
        let (mailboxes, total) = self.refusals.0.with(|window| window.take(now_ns));
        let worst = mailboxes.into_iter().flatten().max_by_key(|one| one.refused);
        if let Some(RefusingMailbox { path: Some(path), refused, .. }) = worst {
            let report = MailboxRefusals { path, refused, total };
            for listener in &self.on_refusals {
                call_catching_panics(&self.default, &mut || listener(self.handle(), &report));
            }
            self.events.publish(&SystemEvent::MailboxRefusals(report));
        }
    }
}
