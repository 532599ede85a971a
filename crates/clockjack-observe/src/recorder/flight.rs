//! The rings of one executor: one per worker, and one for all other threads.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_sync::{
    Arc,
    primitive::{
        atomic::{AtomicUsize, Ordering::Relaxed},
        hint,
    },
    spin_lock::SpinLock,
};

use super::{Ring, Writer};
use crate::event::{Event, Record, WorkerId};

/// How often a thread that is not a worker tries to claim the common ring. Another thread holds the
/// claim for about twenty instructions.
const CLAIM_ATTEMPTS: usize = 64;

/// The rings of one executor; see the [module](super).
///
/// # Examples
///
/// ```
/// use clockjack_observe::event::{Event, WorkerId};
/// use clockjack_observe::recorder::FlightRecorder;
///
/// let recorder = FlightRecorder::new(2, 64);
/// let worker = WorkerId(1);
/// let mut writer = recorder.writer(worker).expect("no other thread is worker 1");
/// writer.write(5, Event::WorkerStarted { worker });
/// recorder.write_outside(7, Event::ShutdownStarted { tasks: 0 }); // on any thread
///
/// let rings = recorder.records_since(0);
/// assert_eq!(rings.len(), 2, "one of a worker, one of the other threads");
/// assert_eq!(recorder.missed(), 0);
/// ```
pub struct FlightRecorder {
    /// The rings of the workers; created when a worker starts for the first time.
    workers: Box<[SpinLock<Option<Arc<Ring>>>]>,
    /// Every other thread claims its writer for each record.
    outside: Ring,
    missed: AtomicUsize,
    n_slots: usize,
}

impl FlightRecorder {
    /// Creates a recorder for up to `workers` workers, with rings of `n_slots` slots each.
    ///
    /// # Panics
    ///
    /// As [`Ring::new`].
    #[must_use]
    pub fn new(workers: usize, n_slots: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| SpinLock::new(None)).collect(),
            outside: Ring::new(n_slots),
            missed: AtomicUsize::new(0),
            n_slots,
        }
    }

    /// The writer of a worker's ring, which the first call creates; `None` if there is no such
    /// worker, or if another thread has the writer.
    #[must_use]
    pub fn writer(&self, worker: WorkerId) -> Option<Writer<Arc<Ring>>> {
        let place = self.workers.get(usize::from(worker.0))?;
        // Allocated before the lock is taken.
        let new = place.with(|ring| ring.is_none()).then(|| Arc::new(Ring::new(self.n_slots)));
        let ring = place.with(|ring| {
            if ring.is_none() {
                *ring = new;
            }
            ring.clone()
        });
        Writer::claim(ring?)
    }

    /// Records an event of a thread that is not a worker. Never waits: if several threads write at
    /// the same time, a record may be lost, which is [counted](Self::missed).
    pub fn write_outside(&self, at_ns: u64, event: Event) {
        for _ in 0..CLAIM_ATTEMPTS {
            if let Some(mut writer) = self.claim_outside() {
                return writer.write(at_ns, event);
            }
            hint::spin_loop();
        }
        // Relaxed: a number for display.
        self.missed.fetch_add(1, Relaxed);
    }

    pub(super) fn claim_outside(&self) -> Option<Writer<&Ring>> {
        Writer::claim(&self.outside)
    }

    /// The number of records that were lost because several threads that are not workers wrote at
    /// the same time. Records that were overwritten are not counted.
    #[must_use]
    pub fn missed(&self) -> usize {
        // Relaxed: a number for display.
        self.missed.load(Relaxed)
    }

    /// The kept records from `since_ns` on, for each ring that has any: those of the workers first,
    /// then those of all other threads under [`WorkerId::OUTSIDE`].
    #[must_use]
    pub fn records_since(&self, since_ns: u64) -> Vec<(WorkerId, Vec<Record>)> {
        let read = |ring: &Ring| {
            // Limited: a busy writer adds records while they are read.
            let all = ring.reader().take(ring.kept_max());
            all.filter(|record| record.at_ns >= since_ns).collect::<Vec<_>>()
        };
        let workers = self.workers.iter().zip(0..).filter_map(|(place, index)| {
            let ring = place.with(|ring| ring.clone())?;
            Some((WorkerId(index), read(&ring)))
        });
        let outside = core::iter::once_with(|| (WorkerId::OUTSIDE, read(&self.outside)));
        workers.chain(outside).filter(|(_, records)| !records.is_empty()).collect()
    }
}

impl fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightRecorder")
            .field("outside", &self.outside)
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}
