//! A recorder with heap storage, for a capacity that is known only at run time.

use alloc::boxed::Box;
use core::{error, fmt};

use super::{Control, Ring, SLOTS_MAX, SLOTS_MIN, describe, sealed, slot::Slot};

/// A recorder whose capacity is chosen at run time; the same protocol as
/// [`Recorder`](super::Recorder).
///
/// # Examples
///
/// A worker owns the writer, and every other owner of the recorder can read:
///
/// ```
/// use std::sync::Arc;
///
/// use clockjack_observe::event::{Event, WorkerId};
/// use clockjack_observe::recorder::{HeapRecorder, Reader, Writer};
///
/// let recorder = Arc::new(HeapRecorder::new(1 << 12)?);
/// let mut writer = Writer::claim(Arc::clone(&recorder)).expect("nobody else writes");
/// std::thread::scope(|scope| {
///     scope.spawn(move || writer.write(5, Event::WorkerStarted { worker: WorkerId(1) }));
/// });
/// assert_eq!(Reader::new(recorder).count(), 1);
/// # Ok::<(), clockjack_observe::recorder::CapacityError>(())
/// ```
pub struct HeapRecorder {
    control: Control,
    slots: Box<[Slot]>,
}

impl HeapRecorder {
    /// Creates a recorder with `n_slots` slots, which keeps the last `n_slots - 1` records.
    ///
    /// # Errors
    ///
    /// If `n_slots` is not a power of two between 2 and [`SLOTS_MAX`]. Permanent.
    ///
    /// # Panics
    ///
    /// As any allocation does, if memory is exhausted.
    pub fn new(n_slots: usize) -> Result<Self, CapacityError> {
        if !n_slots.is_power_of_two() || !(SLOTS_MIN..=SLOTS_MAX).contains(&n_slots) {
            return Err(CapacityError { n_slots });
        }
        let slots = (0..n_slots).map(|_| Slot::new()).collect();
        Ok(Self { control: Control::new(), slots })
    }
}

impl Ring for HeapRecorder {}

impl sealed::Storage for HeapRecorder {
    #[inline(always)]
    fn control(&self) -> &Control {
        &self.control
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

impl fmt::Debug for HeapRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f, "HeapRecorder")
    }
}

/// An invalid number of slots. Permanent: choose a power of two, at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    n_slots: usize,
}

impl CapacityError {
    /// The requested number of slots.
    #[must_use]
    pub const fn n_slots(&self) -> usize {
        self.n_slots
    }
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a power of two from {SLOTS_MIN} to {SLOTS_MAX}", self.n_slots)
    }
}

impl error::Error for CapacityError {}
