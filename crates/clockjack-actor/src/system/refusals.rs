//! Refused messages: how many there were, and which mailbox refuses the most.
//!
//! A sender whose message is refused gets the message back, and counts the refusal: in the counters
//! of the system, in the header of the actor, and in the [window] of the system, which is what the
//! next report covers. A sender whose message is accepted does nothing of this.
//!
//! # Report
//!
//! The first refusal of a window schedules a report, a second later, so that the report is about
//! more than one message; the pause between two reports grows as
//! [`WarningBackoff`](clockjack_observe::backoff::WarningBackoff) says. The report names the
//! mailbox that has refused the most messages of the window, and begins the next window. It goes to
//! the listeners of the system, on the thread that reports, and to the event stream. If there are
//! neither listeners nor subscribers, there is no window. The last window is reported when the
//! system has terminated: a program that is overloaded for less than a second is reported, too.
//!
//! # Threads
//!
//! A sender may be an interrupt or a signal handler, which has interrupted any code, also code that
//! allocates or holds a lock; or a real-time thread. So a sender only counts, by atomics and under
//! a lock that it tries a bounded number of times; a sender that does not get the lock leaves the
//! window as it is, and the counters have its refusal. It neither allocates nor frees memory, and
//! calls neither the scheduler nor a listener. To have a report made, it sets REFUSALS in the flag
//! word of the root guardian and wakes that, which is what any `tell` to an idle actor does; it
//! finds the root by the parents of the actor that has refused. The root is the *reporter* of the
//! [window]: in its next poll it schedules the job.
//!
//! On small processors, and in a sealed system, no job is scheduled: the root reports, at once if
//! the pause is over. Listeners are not called there, since a listener may allocate; the window is
//! kept for the report at the termination if there are no subscribers. If the scheduler refuses the
//! job, because it is closed or has no room, or drops it, the root reports after the pause, too.

mod window;

use alloc::boxed::Box;
use core::time::Duration;

use clockjack_exec::Pid;
use clockjack_observe::bus::with_bounded_wait;
use clockjack_sched::FireContext;
use clockjack_sync::{Arc, primitive::IS_SMALL, spin_lock::SpinLock};

use self::window::{Step, Window};
use super::{ActorSystem, SystemInner, call_catching_panics};
use crate::{
    ActorPath,
    cell::header::{AnyActor, REFUSALS, SystemSend as _},
    events::{EventKinds, MailboxRefusals, SystemEvent},
};

/// How long the refusals of the first window are collected.
const COLLECTING: Duration = Duration::from_secs(1);

pub(super) type OnRefusals = Box<dyn Fn(&ActorSystem, &MailboxRefusals) + Send + Sync>;

/// The refusals since the last report; see the [module](self).
pub(super) struct RefusalWindow(SpinLock<Window<Pid, ActorPath>>);

impl RefusalWindow {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(Window::new()))
    }
}

/// The job that reports.
struct ReportJob {
    system: Arc<SystemInner>,
    has_run: bool,
}

impl ReportJob {
    fn run(mut self) {
        if self.system.is_sealed() {
            // Sealed since the job was scheduled: listeners are not called any more.
            return;
        }
        self.has_run = true;
        self.system.refusals.0.with(Window::job_runs);
        self.system.report_refusals();
    }
}

impl Drop for ReportJob {
    fn drop(&mut self) {
        if !self.has_run {
            self.system.refusals.0.with(Window::job_is_dropped);
        }
    }
}

impl SystemInner {
    /// A message was returned to its sender: because the mailbox is full, or because the actor has
    /// stopped. Interrupts may call it.
    #[cold]
    pub(crate) fn refused(&self, actor: &AnyActor, is_full: bool) {
        self.counters.refused(actor.pid(), is_full);
        if !is_full {
            return;
        }
        actor.count_refused();
        let is_subscribed = self.events.wants(EventKinds::MAILBOX_REFUSALS);
        if !is_subscribed && self.on_refusals.is_empty() {
            return;
        }
        let has_jobs = self.has_report_jobs();
        let needs_reporter = with_bounded_wait(&self.refusals.0, |window| {
            window.add(actor.pid(), &actor.path, ActorPath::release_unless_last);
            // Without jobs, there is a report before the termination only for subscribers.
            (has_jobs || is_subscribed) && window.request(has_jobs, || self.now_nanos())
        });
        if needs_reporter == Some(true) {
            let mut top = actor;
            while let Some(above) = &top.parent {
                top = above;
            }
            top.wake_with(REFUSALS);
        }
    }

    /// Whether reports are made by jobs, which take memory.
    fn has_report_jobs(&self) -> bool {
        !IS_SMALL && !self.is_sealed()
    }

    /// A sender has asked for a report. For the runner of the root.
    #[cold]
    pub(crate) fn serve_refusals(&self) {
        let (has_jobs, now_ns) = (self.has_report_jobs(), self.now_nanos());
        let (step, retired) = self.refusals.0.with(|window| window.serve(has_jobs, now_ns));
        drop(retired);
        match step {
            Step::Nothing => {}
            Step::Report => self.report_refusals_quietly(),
            Step::Schedule(wait_ns) => self.schedule_report(wait_ns),
        }
    }

    fn schedule_report(&self, wait_ns: u64) {
        let delay = Duration::from_nanos(wait_ns).max(COLLECTING).min(self.delay_max());
        let job = ReportJob { system: self.clone_inner(), has_run: false };
        let is_refused = self.jobs().schedule_internal(delay, move |_: &FireContext| job.run());
        if is_refused.is_err() && wait_ns == 0 {
            self.report_refusals();
        }
    }

    /// Reports what was refused since the last report: before a seal, at the termination, and by
    /// the job.
    pub(super) fn report_refusals(&self) {
        let Some(report) = self.take_refusals() else { return };
        for listener in &self.on_refusals {
            call_catching_panics(&self.default, &mut || listener(self.handle(), &report));
        }
        self.events.publish(&SystemEvent::MailboxRefusals(report));
    }

    /// The same in a system that must not allocate: listeners are not called.
    fn report_refusals_quietly(&self) {
        if let Some(report) = self.take_refusals() {
            self.events.publish_quietly(&SystemEvent::MailboxRefusals(report));
        }
    }

    fn take_refusals(&self) -> Option<MailboxRefusals> {
        let now_ns = self.now_nanos();
        let refusals = self.refusals.0.with(|window| window.take(now_ns))?;
        let total = refusals.total;
        refusals.into_worst().map(|(path, refused)| MailboxRefusals { path, refused, total })
    }
}
