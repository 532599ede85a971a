//! The flight recorder: a bounded ring with one writer and any number of readers.
//!
//! The algorithm resembles a seqlock (Boehm, "Can seqlocks get along with programming language
//! memory models?", 2012): a reader copies a slot and then checks that the writer has not begun to
//! overwrite it. `head` serves as the sequence number of all slots.
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
//! the next writer, on any thread, sees the `head` of the previous one.
//!
//! *Dropped records.* `frontier` is the furthest position that any [`Reader`] of [`Ring::reader`]
//! has reached. A reader that moves it over records that it did not get adds their number to
//! `dropped`. Readers of [`Ring::tail`] only observe and do not move it.
//!
//! # Limits
//!
//! Positions are `usize` and wrap. On a 32-bit target, a reader that pauses for 2^31 records or
//! more miscounts its losses, and a reader that is interrupted between R2 and R4 for exactly a
//! multiple of 2^32 records (within `N`) could return a mixed record. On 64-bit targets, neither
//! happens within centuries.

mod reader;
mod slot;
mod writer;

#[cfg(feature = "alloc")]
mod heap;
#[cfg(test)]
mod tests;

use core::fmt;

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed},
    },
};

#[cfg(feature = "alloc")]
pub use heap::{CapacityError, HeapRecorder};
pub use reader::Reader;
use slot::Slot;
pub use writer::{ClaimError, Writer};

use crate::construct::{const_fn, filled};

/// The largest number of slots: positions must be comparable across a wrap-around.
pub const SLOTS_MAX: usize = 1 << (usize::BITS - 2);

/// The smallest number of slots: one to read and one to write.
pub const SLOTS_MIN: usize = 2;

/// A recorder with `N` inline slots, for a `static` or a struct. It keeps the last `N - 1`
/// records.
///
/// `N` must be a power of two, at least 2; other values do not compile. Size: 24 × `N` bytes and
/// three cache lines of control words.
///
/// # Examples
///
/// ```
/// use clockjack_observe::event::{Event, Record, WorkerId};
/// use clockjack_observe::recorder::{Recorder, Ring};
///
/// static FLIGHT: Recorder<256> = Recorder::new();
///
/// let mut writer = FLIGHT.writer().expect("this is the only writer");
/// let mut reader = FLIGHT.reader();
/// writer.write(1_000, Event::WorkerStarted { worker: WorkerId(0) });
///
/// let record = reader.read().expect("one was written");
/// assert_eq!(record, Record::new(1_000, Event::WorkerStarted { worker: WorkerId(0) }));
/// assert_eq!(reader.read(), None);
/// assert_eq!(reader.lost(), 0);
/// ```
///
/// ```compile_fail
/// let recorder = clockjack_observe::recorder::Recorder::<100>::new();
/// ```
pub struct Recorder<const N: usize> {
    control: Control,
    slots: [Slot; N],
}

impl<const N: usize> Recorder<N> {
    const_fn! {
        /// Creates an empty recorder.
        pub fn new() -> Self {
            const {
                assert!(N.is_power_of_two(), "N is a power of two");
                assert!(N >= SLOTS_MIN, "N is at least 2");
                assert!(N <= SLOTS_MAX, "N is at most SLOTS_MAX");
            }
            Self { control: Control::new(), slots: filled![Slot::new(); N] }
        }
    }
}

impl<const N: usize> Default for Recorder<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Recorder<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f, "Recorder")
    }
}

/// The common interface of recorders with inline and with heap storage. Sealed.
pub trait Ring: sealed::Storage {
    /// The maximum number of records that are kept: one less than the number of slots.
    fn kept_max(&self) -> usize {
        self.slots().len() - 1
    }

    /// The number of records written so far, with wrap-around.
    fn written(&self) -> usize {
        // Relaxed: a number for display.
        self.control().head.load(Relaxed)
    }

    /// The number of records that were overwritten before any reader of [`reader`](Self::reader)
    /// got them, with wrap-around.
    ///
    /// Exact while no reader is active; concurrently with a reader it may be too low for a moment.
    /// With several readers, a record counts as dropped if the foremost reader did not get it. On a
    /// 32-bit target, a reader must read at least once per 2^31 records.
    fn dropped(&self) -> usize {
        let control = self.control();
        let head = control.head.load(Acquire); // pairs with W3, for `oldest`
        // Relaxed: numbers for display; no memory is accessed through them.
        let (dropped, frontier) = (control.dropped.load(Relaxed), control.frontier.load(Relaxed));
        let oldest = oldest(self, head);
        let unseen = if is_before(frontier, oldest) { oldest.wrapping_sub(frontier) } else { 0 };
        dropped.wrapping_add(unseen)
    }

    /// Claims the writer.
    ///
    /// # Errors
    ///
    /// If there is a writer already. Transient: that writer can be dropped.
    fn writer(&self) -> Result<Writer<&Self>, ClaimError<&Self>>
    where
        Self: Sized,
    {
        Writer::claim(self)
    }

    /// Creates a reader that starts at the oldest kept record.
    fn reader(&self) -> Reader<&Self>
    where
        Self: Sized,
    {
        Reader::new(self)
    }

    /// Creates a reader of at most the last `n` records and all later ones. It only observes: it
    /// does not affect [`dropped`](Self::dropped).
    fn tail(&self, n: usize) -> Reader<&Self>
    where
        Self: Sized,
    {
        Reader::tail(self, n)
    }
}

impl<const N: usize> Ring for Recorder<N> {}

impl<const N: usize> sealed::Storage for Recorder<N> {
    #[inline(always)]
    fn control(&self) -> &Control {
        &self.control
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

mod sealed {
    use super::{Control, Slot};

    /// Access to the control words and the slots.
    pub trait Storage {
        fn control(&self) -> &Control;
        /// The slots; their number is a power of two.
        fn slots(&self) -> &[Slot];
    }
}

/// The shared words of a ring, apart from its slots.
#[derive(Debug)]
pub struct Control {
    /// Written only by the writer, at every record.
    head: Padded<AtomicUsize>,
    /// Written by readers.
    frontier: Padded<AtomicUsize>,
    dropped: AtomicUsize,
    claimed: AtomicBool,
}

impl Control {
    const_fn! {
        fn new() -> Self {
            Self {
                head: Padded(AtomicUsize::new(0)),
                frontier: Padded(AtomicUsize::new(0)),
                dropped: AtomicUsize::new(0),
                claimed: AtomicBool::new(false),
            }
        }
    }
}

/// Whether position `a` comes before `b`, across wrap-around.
fn is_before(a: usize, b: usize) -> bool {
    b.wrapping_sub(a).wrapping_sub(1) < isize::MAX as usize
}

/// The oldest position kept when `head` was loaded with acquire.
///
/// A small `head` means either a new ring or one whose position has wrapped. The last slot
/// distinguishes the two: it is written before `head` reaches `N` for the first time, and is never
/// blank again.
fn oldest<R: sealed::Storage + ?Sized>(ring: &R, head: usize) -> usize {
    let slots = ring.slots();
    if head < slots.len() && slots[slots.len() - 1].is_blank() {
        0
    } else {
        head.wrapping_sub(slots.len() - 1)
    }
}

fn describe<R: Ring>(ring: &R, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    f.debug_struct(name)
        .field("kept_max", &ring.kept_max())
        .field("written", &ring.written())
        .field("dropped", &ring.dropped())
        .finish()
}
