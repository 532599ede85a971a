//! Forwards the warnings of the scheduler to the event stream, while there are subscribers for
//! them.
//!
//! A future on the system's executor reads a subscription to the scheduler's diagnostics. The first
//! subscriber to warnings starts it; it completes when there are none left.
//!
//! Roles: *updaters*, which have changed the set of subscribers, and the *reader*, the future.
//!
//! 1. An updater that finds warnings wanted and no reader, under the lock, starts a reader. An
//!    updater that finds a reader wakes it.
//! 2. The reader registers its waker and then checks whether warnings are wanted. If not, it
//!    completes; the check and the withdrawal are one step under the lock. So either the reader's
//!    check sees the change, or the updater's wake comes after the registration of the waker.

use core::{future::poll_fn, task::Poll};

use clockjack_exec::Handle;
use clockjack_sched::{DiagnosticEvent, EventKinds as Kinds, Subscription};
use clockjack_sync::{Arc, spin_lock::SpinLock, waker::AtomicWaker};

use super::{
    EventKinds, SystemEvent,
    stream::{Inner, Publish as _},
};

/// The most warnings that wait to be read.
const WARNINGS_MAX: usize = 64;

/// See the [module](self).
pub(super) struct Bridge {
    has_reader: SpinLock<bool>,
    reader: AtomicWaker,
}

impl Bridge {
    pub(super) fn new() -> Self {
        Self { has_reader: SpinLock::new(false), reader: AtomicWaker::new() }
    }

    /// Called when the set of subscribers has changed.
    pub(super) fn update(&self, stream: &Arc<Inner>, executor: &Handle) {
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
            // If the executor has no room, the next subscription tries again.
            drop(executor.spawn_future(read(slot, warnings)));
        }
    }
}

/// Marks that there is a reader; the drop clears the mark, also if the future is dropped by force.
struct ReaderSlot(Option<Arc<Inner>>);

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
                // The mark is already cleared, and may belong to another reader by now.
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
