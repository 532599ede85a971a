//! How many mailboxes are saturated, and a second word that follows whether any is.
//!
//! # Protocol
//!
//! Threads: runners of actors, each of which adds its mailbox or removes it again. The *count* and
//! the *word* (the pressure of the scheduler) are separate, so no single operation changes both.
//!
//! 1. A runner changes the count by a read-modify-write. If that has changed whether the count is
//!    zero, the runner makes the word follow.
//! 2. To follow: read the count, write the word, read the count again. If the count was zero in one
//!    read and not in the other, do the same again.
//!
//! *Why the word is right in the end*: consider the last write of the word. Its thread has read the
//! count again after it, and found what it had written. A change of the count that this read did
//! not see is followed by a write of the word (rule 1), which would be later than the last one. The
//! fences order the change of the count before the write of the word, and the write before the
//! second read. If the first thread only repaired what it had released, without looking again, then
//! its late repair could overwrite the release of another thread, and the pressure would stay.
//!
//! *Why it cannot hang*: a repetition means that another thread has changed the count in between.

use clockjack_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// The number of saturated mailboxes.
pub(crate) struct SaturatedCount(AtomicUsize);

impl SaturatedCount {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// One mailbox more; `set` writes the word.
    pub(crate) fn add(&self, set: impl Fn(bool)) {
        // Relaxed: the fence of `follow` orders it.
        if self.0.fetch_add(1, Relaxed) == 0 {
            self.follow(set);
        }
    }

    /// One mailbox less; `set` writes the word.
    pub(crate) fn remove(&self, set: impl Fn(bool)) {
        // Relaxed: as above.
        if self.0.fetch_sub(1, Relaxed) == 1 {
            self.follow(set);
        }
    }

    /// Rule 2.
    fn follow(&self, set: impl Fn(bool)) {
        loop {
            fence(SeqCst);
            // Relaxed, here and below: the fences order it.
            let is_any = self.0.load(Relaxed) > 0;
            set(is_any);
            fence(SeqCst);
            if (self.0.load(Relaxed) > 0) == is_any {
                return;
            }
        }
    }
}
