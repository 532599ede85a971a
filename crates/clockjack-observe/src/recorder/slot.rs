//! A slot of a ring: twenty-four bytes as atomic words of the target's width.
//!
//! The words are loaded and stored one by one, relaxed. The protocol of the [recorder](super), not
//! the slot, decides when they belong to one record.

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    construct::{const_fn, filled},
    event::{DecodeError, Encoded, Event, Record},
};

/// The number of words of the time.
const TIME_WORDS: usize = size_of::<u64>() / size_of::<usize>();
/// The number of words of the event.
const EVENT_WORDS: usize = Encoded::BYTES / size_of::<usize>();

/// One record: the time, then the encoded event, low words first.
#[derive(Debug)]
pub(super) struct Slot {
    time: [AtomicUsize; TIME_WORDS],
    event: [AtomicUsize; EVENT_WORDS],
}

const _: () = assert!(TIME_WORDS >= 1);

/// The loaded words of a slot, of one record or of a mix of two.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    at_ns: u64,
    event: u128,
}

impl Slot {
    const_fn! {
        /// Creates a slot that was never written.
        pub(super) fn new() -> Self {
            Self {
                time: filled![AtomicUsize::new(0); TIME_WORDS],
                event: filled![AtomicUsize::new(0); EVENT_WORDS],
            }
        }
    }

    /// W2.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "numbers are cut into words")]
    pub(super) fn store(&self, at_ns: u64, event: Event) {
        // Relaxed: W1 and W3 order these stores.
        let event = event.encode().word();
        for (index, word) in self.time.iter().enumerate() {
            word.store((at_ns >> shift(index)) as usize, Relaxed);
        }
        for (index, word) in self.event.iter().enumerate() {
            word.store((event >> shift(index)) as usize, Relaxed);
        }
    }

    /// R2.
    #[inline(always)]
    pub(super) fn load(&self) -> Loaded {
        // Relaxed: R1 and R3 order these loads.
        let (mut at_ns, mut event) = (0, 0);
        for (index, word) in self.time.iter().enumerate() {
            at_ns |= (word.load(Relaxed) as u64) << shift(index);
        }
        for (index, word) in self.event.iter().enumerate() {
            event |= (word.load(Relaxed) as u128) << shift(index);
        }
        Loaded { at_ns, event }
    }

    /// Whether the slot was never written: the low byte of this word is the code of the event's
    /// kind, and no kind has the code 0.
    pub(super) fn is_blank(&self) -> bool {
        // Relaxed: a caller that has loaded `head` with acquire sees what was stored before it.
        self.event[0].load(Relaxed) == 0
    }
}

impl Loaded {
    /// Decodes the record, if the words belong to one record.
    pub(super) fn decode(self) -> Result<Record, DecodeError> {
        let event = Event::decode(Encoded::from_word(self.event))?;
        Ok(Record::new(self.at_ns, event))
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "an index of at most sixteen")]
const fn shift(index: usize) -> u32 {
    index as u32 * usize::BITS
}
