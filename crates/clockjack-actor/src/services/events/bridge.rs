//! Forwards one kind of the scheduler's diagnostics, its warnings or its tick rate, to the event
//! stream, while there are subscribers for it.
//!
//! A future on the system's executor reads a subscription to the scheduler's diagnostics. The first
//! subscriber to the events starts it; it completes when there are none left.
//!
//! Roles: *updaters*, which have changed the set of subscribers, and the *reader*, the future.
//!
//! 1. An updater that finds the events wanted and no reader, under the lock, starts a reader. An
//!    updater that finds a reader wakes it.
//! 2. The reader registers its waker and then checks whether the events are wanted. If not, it
//!    completes; the check and the withdrawal are one step under the lock. So either the reader's
//!    check sees the change, or the updater's wake comes after the registration of the waker.

use core::{future::poll_fn, task::Poll};

use clockjack_exec::Handle;
use clockjack_sched::{DiagnosticEvent, EventKinds as Kinds, Subscription};
use clockjack_sync::{Arc, spin_lock::SpinLock, waker::AtomicWaker};

use super::{
    EventKinds, SystemEvent, TickRate,
    stream::{Inner, Publish as _, Publisher},
};

/// The most diagnostics that wait to be read.
const WAITING_MAX: usize = 64;

/// What a bridge forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    Warnings,
    TickRate,
}

impl Forwarded {
    /// The kind of the events.
    const fn events(self) -> EventKinds {
        match self {
            Self::Warnings => EventKinds::SCHEDULER,
            Self::TickRate => EventKinds::TICK_RATE,
        }
    }

    /// The kind of the diagnostics.
    const fn diagnostics(self) -> Kinds {
        match self {
            Self::Warnings => Kinds::WARNING,
            Self::TickRate => Kinds::TICK_RATE,
        }
    }
}

/// See the [module](self).
pub(super) struct Bridge {
    forwarded: Forwarded,
    has_reader: SpinLock<bool>,
    reader: AtomicWaker,
}

impl Bridge {
    pub(super) fn new(forwarded: Forwarded) -> Self {
        Self { forwarded, has_reader: SpinLock::new(false), reader: AtomicWaker::new() }
    }

    /// Called when the set of subscribers has changed.
    pub(super) fn update(&self, stream: &Arc<Inner>, executor: &Handle) {
        let starts = self.has_reader.with(|has| {
            let starts = !*has && stream.wants(self.forwarded.events());
            *has |= starts;
            starts
        });
        if !starts {
            return self.reader.wake();
        }
        let slot = ReaderSlot { stream: Some(stream.clone()), forwarded: self.forwarded };
        let diagnostics = stream.scheduler.diagnostics();
        if let Ok(source) = diagnostics.subscribe(self.forwarded.diagnostics(), WAITING_MAX) {
            // If the executor has no room, the next subscription tries again.
            drop(executor.spawn_future(read(slot, source)));
        }
    }
}

/// Marks that there is a reader; the drop clears the mark, also if the future is dropped by force.
struct ReaderSlot {
    stream: Option<Arc<Inner>>,
    forwarded: Forwarded,
}

impl Drop for ReaderSlot {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.bridge(self.forwarded).has_reader.with(|has| *has = false);
        }
    }
}

async fn read(mut slot: ReaderSlot, mut source: Subscription) {
    let Some(stream) = slot.stream.clone() else { return };
    let bridge = stream.bridge(slot.forwarded);
    loop {
        let next = poll_fn(|cx| {
            bridge.reader.register(cx.waker());
            let is_unwanted = bridge.has_reader.with(|has| {
                *has = stream.wants(slot.forwarded.events());
                !*has
            });
            if is_unwanted {
                // The mark is already cleared, and may belong to another reader by now.
                slot.stream = None;
                return Poll::Ready(None);
            }
            source.poll_next(cx)
        });
        match next.await {
            Some(DiagnosticEvent::Warned(warning)) => {
                stream.publish(&SystemEvent::Scheduler(warning), Publisher::Thread);
            }
            Some(DiagnosticEvent::TickRate { ticks, over }) => {
                let rate = TickRate { ticks, over };
                stream.publish(&SystemEvent::TickRate(rate), Publisher::Thread);
            }
            Some(_) => {}
            None => return,
        }
    }
}
