//! The flight recorder: bounded rings of records, one ring per worker.
//!
//! A [`Ring`] has one writer at a time and any number of readers. The algorithm resembles a seqlock
//! (Boehm, "Can seqlocks get along with programming language memory models?", 2012): a reader
//! copies a slot and then checks that the writer has not begun to overwrite it. `head` serves as
//! the sequence number of all slots. A [`FlightRecorder`] has a ring per worker and one more for
//! all other threads.
//!
//! The writer never waits, never fails and never reads anything that a reader wrote. When the ring
//! is full, the writer overwrites the oldest record, and readers learn how many records they lost.
//!
//! # Protocol
//!
//! Roles: one [`Writer`], claimed through a flag; any number of [`Reader`]s, each with its own
//! cursor. Shared memory: `head`, the number of records written so far, and `N` slots (a power of
//! two) of 24 bytes, each made of atomic words. Record number `i` is in slot `i mod N`. The ring
//! *keeps* the last `N - 1` records: slot `head mod N` belongs to the writer.
//!
//! ```text
//!                  head - (N-1)                      head
//!                      |                              |
//!    .. overwritten .. [ kept, readable, N - 1 records ] (slot being filled)
//!                          ^ cursor of a reader
//! ```
//!
//! Writing record `h`, where `head == h`:
//!
//! * **W1** `fence(Release)`.
//! * **W2** Store the words of the record into slot `h mod N`, relaxed.
//! * **W3** Store `h + 1` into `head`, release.
//!
//! Reading record `i`:
//!
//! * **R1** Load `head`, acquire. If it equals `i`, there is nothing to read. If it is beyond `i +
//!   N - 1`, the record was overwritten: count the lost records, advance the cursor, start again.
//! * **R2** Load the words of slot `i mod N`, relaxed.
//! * **R3** `fence(Acquire)`.
//! * **R4** Load `head` again, relaxed. If it is beyond `i + N - 1`, discard the words and go to
//!   R1. Otherwise they are record `i`.
//!
//! *A reader returns only what was written.* R1 saw `i + 1` or more, so it synchronizes with W3 of
//! record `i` or of a later one, and the words of record `i` happen before R2: R2 loads them or
//! newer ones. Suppose a word is newer, from record `j`, `j >= i + N`. The fence W1 of `j` precedes
//! that store and the fence R3 follows that load, so W1 synchronizes with R3, and the store of
//! `head = j` before W1 happens before R4. R4 then loads at least `j`, which is beyond `i + N - 1`,
//! and the reader discards the words. So a reader never returns a mix of two records, nor a record
//! under a wrong number.
//!
//! *No record disappears uncounted.* A cursor advances by one per returned record and otherwise
//! only by the number of records that it counts as lost, so for each reader `read + lost` is the
//! distance that its cursor has moved.
//!
//! *No call hangs.* The writer has no loop. A reader stops after a fixed number of attempts. Each
//! failed attempt means that the writer has gone round the ring meanwhile; the reader then aims
//! closer to `head`, which the writer takes longer to overwrite.
//!
//! *Claiming.* A writer takes the flag with an acquire swap and returns it with a release store, so
//! the next writer, on any thread, sees the `head` of the previous one. A worker keeps its writer.
//! Other threads claim the writer of their common ring for each record: a spin lock whose loser
//! retries a few times and then drops its record, which is counted.
//!
//! # Limits
//!
//! Positions are `usize` and wrap. On a 32-bit target, a reader that pauses for 2^31 records or
//! more miscounts its losses, and a reader that is interrupted between R2 and R4 for exactly a
//! multiple of 2^32 records (within `N`) could return a mixed record. On 64-bit targets, neither
//! happens within centuries.

mod flight;
mod reader;
mod slot;
mod writer;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::fmt;

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed},
    },
};

pub use flight::FlightRecorder;
pub use reader::Reader;
use slot::Slot;
pub use writer::Writer;

/// The largest number of slots: positions must be comparable across a wrap-around.
const SLOTS_MAX: usize = 1 << (usize::BITS - 2);

/// The smallest number of slots: one to read and one to write.
const SLOTS_MIN: usize = 2;

/// A bounded ring of records with one writer at a time; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_observe::event::{Event, Record, WorkerId};
/// use clockjack_observe::recorder::{Ring, Writer};
///
/// let ring = Ring::new(256);
/// let mut writer = Writer::claim(&ring).expect("this is the only writer");
/// let mut reader = ring.reader();
/// writer.write(1_000, Event::WorkerStarted { worker: WorkerId(0) });
///
/// let record = reader.read().expect("one was written");
/// assert_eq!(record, Record::new(1_000, Event::WorkerStarted { worker: WorkerId(0) }));
/// assert_eq!(reader.read(), None);
/// assert_eq!(reader.lost(), 0);
/// ```
pub struct Ring {
    /// Written only by the writer, at every record.
    head: Padded<AtomicUsize>,
    is_claimed: AtomicBool,
    /// Their number is a power of two.
    slots: Box<[Slot]>,
}

impl Ring {
    /// Creates an empty ring of `n_slots` slots, rounded up to a power of two. It keeps one record
    /// less than it has slots, and needs 24 bytes per slot.
    ///
    /// # Panics
    ///
    /// If `n_slots` is more than a quarter of the address space.
    #[must_use]
    pub fn new(n_slots: usize) -> Self {
        assert!(n_slots <= SLOTS_MAX, "{n_slots} slots are more than {SLOTS_MAX}");
        let n_slots = n_slots.max(SLOTS_MIN).next_power_of_two();
        Self {
            head: Padded(AtomicUsize::new(0)),
            is_claimed: AtomicBool::new(false),
            slots: (0..n_slots).map(|_| Slot::new()).collect(),
        }
    }

    /// The maximum number of records that are kept: one less than the number of slots.
    #[must_use]
    pub fn kept_max(&self) -> usize {
        self.slots.len() - 1
    }

    /// The number of records written so far, with wrap-around.
    #[must_use]
    pub fn written(&self) -> usize {
        // Relaxed: a number for display.
        self.head.load(Relaxed)
    }

    /// Creates a reader that starts at the oldest kept record. It does not count earlier records as
    /// lost.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }

    /// The position of the oldest kept record.
    ///
    /// A small `head` means either a new ring or one whose position has wrapped. The last slot
    /// distinguishes the two: it is written before `head` reaches `N` for the first time, and is
    /// never blank again.
    fn oldest(&self) -> usize {
        // Acquire: pairs with W3, for `is_blank`.
        let head = self.head.load(Acquire);
        if head < self.slots.len() && self.slots[self.kept_max()].is_blank() {
            0
        } else {
            head.wrapping_sub(self.kept_max())
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("kept_max", &self.kept_max())
            .field("written", &self.written())
            .finish_non_exhaustive()
    }
}
