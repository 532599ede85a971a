//! Brings the warnings of the scheduler to the event stream, while somebody wants them.
//!
//! A future on the system's executor reads a subscription to the scheduler's diagnostics. It is
//! started by the first who wants warnings and ends when nobody does any more.
//!
//! Roles: *lookers*, who have changed what is wanted, and the *reader*, the future.
//!
//! 1. A looker that finds warnings wanted and no reader, under the lock, starts one. One that finds
//!    a reader wakes it.
//! 2. The reader leaves its waker and then looks whether warnings are wanted. If not it ends, and
//!    that is one step under the lock. So either its look finds the change or the looker's wake
//!    comes after the waker.

use core::{future::poll_fn, task::Poll};

use clockjack_exec::Handle;
use clockjack_sched::{DiagnosticEvent, EventKinds as Kinds, Subscription};
use clockjack_sync::{Counted, lock::Lock, waker::AtomicWaker};

use super::{
    EventKinds, SystemEvent,
    stream::{Inner, Publish as _},
};

/// How many warnings wait to be read.
const WARNINGS_MAX: usize = 64;

/// See the [module](self).
pub(super) struct Bridge {
    has_reader: Lock<bool>,
    reader: AtomicWaker,
}

impl Bridge {
    pub(super) fn new() -> Self {
        Self { has_reader: Lock::new(false), reader: AtomicWaker::new() }
    }

    /// What is wanted has changed.
    pub(super) fn update(&self, stream: &Counted<Inner>, executor: &Handle) {
        let starts = self.has_reader.with(|has| {
            let starts = !*has && stream.wants(EventKinds::SCHEDULER);
            *has |= starts;
            starts
        });
        if !starts {
            return self.reader.wake();
        }
        let slot = ReaderSlot(Some(stream.clone()));
        if let Ok(warnings) = stream.scheduler.diagnostics().subscribe(Kinds::WARNING, WARNINGS_MAX)
        {
            // If it is refused for want of room, the next who subscribes tries again.
            drop(executor.spawn(read(slot, warnings)));
        }
    }
}

/// The reader's place, which is free again when it ends, also by force.
struct ReaderSlot(Option<Counted<Inner>>);

impl Drop for ReaderSlot {
    fn drop(&mut self) {
        if let Some(stream) = self.0.take() {
            stream.bridge.has_reader.with(|has| *has = false);
        }
    }
}

async fn read(mut slot: ReaderSlot, mut warnings: Subscription) {
    let Some(stream) = slot.0.clone() else { return };
    loop {
        let next = poll_fn(|cx| {
            stream.bridge.reader.register(cx.waker());
            let is_unwanted = stream.bridge.has_reader.with(|has| {
                *has = stream.wants(EventKinds::SCHEDULER);
                !*has
            });
            if is_unwanted {
                // It has been given up already, and may be another's by now.
                slot.0 = None;
                return Poll::Ready(None);
            }
            warnings.poll_next(cx)
        });
        match next.await {
            Some(DiagnosticEvent::Warned(warning)) => {
                stream.publish(&SystemEvent::Scheduler(warning));
            }
            Some(_) => {}
            None => return,
        }
    }
}
