//! The segmented storage: blocks of slots, and the directories that find the block of a position.
//! `mail.rs` has a drawing.
#![expect(unsafe_code, reason = "blocks are shared through atomic pointers")]

use alloc::boxed::Box;
use core::{
    mem::MaybeUninit,
    ptr::{self, NonNull},
};

use super::tail::{self, BLOCK, LEVEL_0_ENTRIES, LEVELS, SLOTS, Tail, ahead, block_start};
use crate::{
    const_unless_loom,
    mail_word::{AtomicWord, Signed, Word},
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU8,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    primitive_array,
};

/// The slot is not claimed, or claimed and not written yet.
pub(super) const UNWRITTEN: u8 = 0;
/// The slot has its value.
pub(super) const WRITTEN: u8 = 1;
/// The claim was abandoned, and there is no value.
pub(super) const ABANDONED: u8 = 2;

/// Marks a start that is set; positions have their lowest bits free.
const IS_SET: Word = 1;

type Entry<T> = AtomicPtr<Block<T>>;

/// The values of [`SLOTS`] consecutive positions, with a flag each.
pub(super) struct Block<T> {
    flags: [AtomicU8; SLOTS],
    slots: [UnsafeCell<MaybeUninit<T>>; SLOTS],
}

/// The slot in the mailbox itself (rule 11).
pub(super) struct InlineSlot<T> {
    flag: AtomicU8,
    value: UnsafeCell<Loose<T>>,
}

/// A value that does not raise the alignment of its container above that of a word.
#[repr(C, packed(8))]
struct Loose<T>(MaybeUninit<T>);

impl<T> InlineSlot<T> {
    /// Whether the slot satisfies the alignment of its values.
    pub(super) const FITS: bool = align_of::<T>() == align_of::<Loose<T>>();

    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self {
                flag: AtomicU8::new(UNWRITTEN),
                value: UnsafeCell::new(Loose(MaybeUninit::uninit())),
            }
        }
    }

    /// The state of the claim, if there is one.
    #[inline]
    pub(super) fn flag(&self) -> u8 {
        // Acquire: pairs with `put`, so that the value is there.
        self.flag.load(Acquire)
    }

    /// Writes the value.
    ///
    /// # Safety
    ///
    /// Values fit, the caller has claimed the inline slot, and this is its only use of the claim.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as for blocks")]
    pub(super) unsafe fn put(&self, value: T) {
        self.value.with_mut(|cell| {
            // SAFETY: the cell is valid, aligned, and by the caller's promise no other thread uses
            // it.
            unsafe { cell.cast::<T>().write(value) };
        });
        // Release: pairs with `flag`.
        self.flag.store(WRITTEN, Release);
    }

    /// Abandons the claim: there will be no value.
    pub(super) fn abandon(&self) {
        // Release: pairs with `flag`.
        self.flag.store(ABANDONED, Release);
    }

    /// Passes the value to `f`, which moves parts out of it; the claim is cleared.
    ///
    /// # Safety
    ///
    /// The caller is the consumer, has seen the flag [`WRITTEN`], and `f` reads each part once.
    #[inline]
    pub(super) unsafe fn take_with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        // A move out is exclusive, so a model treats it as a write.
        let taken = self.value.with_mut(|cell| f(cell.cast_const().cast()));
        self.clear();
        taken
    }

    /// Moves the value out.
    ///
    /// # Safety
    ///
    /// As for [`take_with`](Self::take_with).
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        let read = |value: *const T| {
            // SAFETY: the flag says that it is initialized, and it is not taken twice.
            unsafe { value.read() }
        };
        // SAFETY: by the caller's promise.
        unsafe { self.take_with(read) }
    }

    /// Clears the claim, which was used. For the consumer.
    #[inline]
    pub(super) fn clear(&self) {
        // Relaxed: the exchange by which the consumer goes idle orders the next claim after this.
        self.flag.store(UNWRITTEN, Relaxed);
    }
}

impl<T> Block<T> {
    fn new() -> Box<Self> {
        Box::new(Self {
            flags: primitive_array![AtomicU8::new(UNWRITTEN); SLOTS],
            slots: primitive_array![UnsafeCell::new(MaybeUninit::uninit()); SLOTS],
        })
    }

    /// Clears the flags; the values were taken.
    fn clear(&mut self) {
        self.flags = primitive_array![AtomicU8::new(UNWRITTEN); SLOTS];
    }

    /// The state of a slot's claim.
    #[inline]
    pub(super) fn flag(&self, slot: usize) -> u8 {
        // Acquire: pairs with `put`, so that the value is there.
        self.flags[slot].load(Acquire)
    }

    /// Writes the value of a slot.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot's position, and this is its only use of the claim.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as measured")]
    pub(super) unsafe fn put(&self, slot: usize, value: T) {
        self.slots[slot].with_mut(|cell| {
            // SAFETY: the cell is valid, and by the caller's promise no other thread uses it.
            let cell = unsafe { &mut *cell };
            cell.write(value);
        });
        // Release: pairs with `flag`.
        self.flags[slot].store(WRITTEN, Release);
    }

    /// Abandons the claim of a slot: there will be no value.
    pub(super) fn abandon(&self, slot: usize) {
        // Release: pairs with `flag`; it is the producer's last access to the block.
        self.flags[slot].store(ABANDONED, Release);
    }

    /// Passes the value of a slot to `f`, which moves parts out of it.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take); `f` reads each part once.
    #[inline]
    pub(super) unsafe fn take_with<R>(&self, slot: usize, f: impl FnOnce(*const T) -> R) -> R {
        // A move out is exclusive, so a model treats it as a write.
        self.slots[slot].with_mut(|cell| f(cell.cast_const().cast()))
    }

    /// Moves the value of a slot out.
    ///
    /// # Safety
    ///
    /// The caller is the consumer, has seen the flag [`WRITTEN`], and takes the value once.
    #[inline]
    pub(super) unsafe fn take(&self, slot: usize) -> T {
        // A move out is exclusive, so a model treats it as a write.
        self.slots[slot].with_mut(|cell| {
            // SAFETY: the cell is valid, and the producer does not touch it after the flag.
            let cell = unsafe { &*cell };
            // SAFETY: the flag says that it is initialized, and it is not taken twice.
            unsafe { cell.assume_init_read() }
        })
    }
}

/// The directories of one generation, and the blocks in them.
pub(super) struct Root<T> {
    level_0: [Entry<T>; LEVEL_0_ENTRIES],
    /// Per level above 0: the first entry of its directory, null before the level is used.
    directories: [AtomicPtr<Entry<T>>; LEVELS - 1],
    /// Per level above 0: its first position and [`IS_SET`], or zero.
    level_starts: [AtomicWord; LEVELS - 1],
    cursor: UnsafeCell<ConsumerCursor>,
}

/// State that only the consumer uses.
#[derive(Clone, Copy, Debug, Default)]
struct ConsumerCursor {
    /// The level of the block that the consumer takes from.
    level: usize,
    /// The level into which blocks are recycled, and the first position that has got none.
    recycle_level: usize,
    recycle_next: Word,
}

impl<T> Root<T> {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            level_0: primitive_array![AtomicPtr::new(ptr::null_mut()); LEVEL_0_ENTRIES],
            directories: primitive_array![AtomicPtr::new(ptr::null_mut()); LEVELS - 1],
            level_starts: primitive_array![AtomicWord::new(0); LEVELS - 1],
            cursor: UnsafeCell::new(ConsumerCursor::default()),
        })
    }

    /// The block of a claimed position; it is allocated if it does not exist (rule 4).
    ///
    /// # Safety
    ///
    /// The caller has claimed the position with this root's generation and that level, and has not
    /// yet used the claim.
    #[inline]
    pub(super) unsafe fn claimed_block(&self, at: Tail) -> NonNull<Block<T>> {
        let entry = match at.level() {
            0 => &self.level_0[tail::entry(0, at.position())],
            // SAFETY: the claim keeps the level's directory alive, by the caller's promise.
            level => unsafe { self.directory_entry(level, at.position()) },
        };
        // Acquire: pairs with the exchange that put the block there, so that it is initialized.
        NonNull::new(entry.load(Acquire)).unwrap_or_else(|| install(entry, Block::new()))
    }

    /// # Safety
    ///
    /// As for [`claimed_block`](Self::claimed_block).
    #[inline]
    unsafe fn directory_entry(&self, level: usize, position: Word) -> &Entry<T> {
        let directory = &self.directories[level - 1];
        // Acquire: pairs with the exchange that put the directory there.
        let first = NonNull::new(directory.load(Acquire))
            .unwrap_or_else(|| install_directory(directory, level));
        // SAFETY: the index is below the directory's length.
        let entry = unsafe { first.add(tail::entry(level, position)) };
        // SAFETY: the directory stays alive while a claim of its level is unused.
        unsafe { entry.as_ref() }
    }

    /// Allocates the missing ones of `blocks` blocks from a position on. Level 0 has at least as
    /// many entries.
    pub(super) fn reserve(&self, first: Word, blocks: usize) {
        for n in 0..blocks {
            let position = first.wrapping_add(n as Word * BLOCK);
            let entry = &self.level_0[tail::entry(0, position)];
            // Relaxed: only null or not null matters, and `install` decides.
            if entry.load(Relaxed).is_null() {
                install(entry, Block::new());
            }
        }
    }

    /// Stores where a level begins; called by the producer that claimed its first position.
    #[cold]
    pub(super) fn begin_level(&self, at: Tail) {
        // Release: pairs with `seek`.
        self.level_starts[at.level() - 1].store(at.position() | IS_SET, Release);
    }

    /// The entry of a position in a level's directory, if there is one.
    ///
    /// # Safety
    ///
    /// The caller is the consumer and has not left the level yet.
    unsafe fn entry(&self, level: usize, position: Word) -> Option<&Entry<T>> {
        let index = tail::entry(level, position);
        if level == 0 {
            return Some(&self.level_0[index]);
        }
        // Acquire: pairs with the exchange in `install_directory`.
        let first = NonNull::new(self.directories[level - 1].load(Acquire))?;
        // SAFETY: the index is below the directory's length.
        let entry = unsafe { first.add(index) };
        // SAFETY: only the consumer frees a directory, when it leaves the level.
        Some(unsafe { entry.as_ref() })
    }

    /// The block of the consumer's position, if its level is known and the block is installed.
    ///
    /// # Safety
    ///
    /// The caller is the consumer, `head` is its position, and it was claimed before `tail` was
    /// read, which is of this root's generation.
    pub(super) unsafe fn seek(&self, head: Word, tail: Tail) -> Option<NonNull<Block<T>>> {
        let mut cursor = self.cursor();
        while cursor.level < tail.level() {
            // Acquire: pairs with `begin_level`.
            let start = self.level_starts[cursor.level].load(Acquire);
            if start == 0 {
                return None;
            }
            if ahead(head, start & !IS_SET) < 0 {
                break;
            }
            cursor.level += 1;
            self.set_cursor(cursor);
            // SAFETY: the caller is the consumer, and all positions of the level were taken.
            unsafe { self.leave_level(cursor.level - 1, head, tail) };
            cursor = self.cursor();
        }
        // SAFETY: the caller is the consumer, and this is its level.
        let entry = unsafe { self.entry(cursor.level, head) }?;
        // Acquire: pairs with the exchange that put the block there.
        NonNull::new(entry.load(Acquire))
    }

    /// The block of a position whose value was in the inline slot, if it is installed (rule 11).
    ///
    /// # Safety
    ///
    /// The caller is the consumer, `passed` is its position, whose claim was used, and `tail` was
    /// read after that and is of this root's generation.
    pub(super) unsafe fn passed_block(
        &self,
        passed: Word,
        tail: Tail,
    ) -> Option<NonNull<Block<T>>> {
        // A level whose start is not stored yet begins behind this position: a producer that raised
        // the level at this position has stored the start before it used its claim.
        // SAFETY: by the caller's promise; where the level is not known the block is of this one.
        let found = unsafe { self.seek(passed, tail) };
        if found.is_some() {
            return found;
        }
        // SAFETY: the caller is the consumer, and this is its level.
        let entry = unsafe { self.entry(self.cursor().level, passed) }?;
        // Acquire: pairs with the exchange that put the block there.
        NonNull::new(entry.load(Acquire))
    }

    /// Collects the blocks that were recycled into a level that the consumer leaves, and frees the
    /// directory (rule 6).
    ///
    /// # Safety
    ///
    /// The caller is the consumer, and all positions of the level were taken.
    #[cold]
    unsafe fn leave_level(&self, level: usize, head: Word, tail: Tail) {
        let directory = level.checked_sub(1).and_then(|index| {
            // Relaxed: no other thread uses the level any more.
            let first = self.directories[index].load(Relaxed);
            self.directories[index].store(ptr::null_mut(), Relaxed);
            // SAFETY: made with this level's length, and just taken out.
            (!first.is_null()).then(|| unsafe { directory_from(first, level) })
        });
        let entries = match &directory {
            Some(directory) => &directory[..],
            None if level == 0 => &self.level_0[..],
            None => return,
        };
        for entry in entries {
            // Relaxed: as above; the consumer itself has cleared a block that it recycled.
            if let Some(block) = NonNull::new(entry.load(Relaxed)) {
                entry.store(ptr::null_mut(), Relaxed);
                // SAFETY: the block is out of the directory, and no producer has a claim in it.
                let block = unsafe { Box::from_raw(block.as_ptr()) };
                self.recycle(block, head.wrapping_sub(BLOCK), tail);
            }
        }
    }

    /// Takes a block out of its directory and recycles it (rules 5 and 6).
    ///
    /// # Safety
    ///
    /// The caller is the consumer, has taken all values of the block, of which `last` is the last
    /// position, and has not yet published that; `tail` is of this root's generation.
    #[cold]
    pub(super) unsafe fn retire(&self, block: NonNull<Block<T>>, last: Word, tail: Tail) {
        // SAFETY: the caller is the consumer, and this is its level.
        let entry = unsafe { self.entry(self.cursor().level, last) };
        let entry = entry.expect("the block was found through its entry");
        // Relaxed: published with `freed`, before which no producer looks for another block here.
        entry.store(ptr::null_mut(), Relaxed);
        // SAFETY: out of the directory; every claim in it was used, and its producer does not touch
        // the block any more.
        let mut block = unsafe { Box::from_raw(block.as_ptr()) };
        block.clear();
        self.recycle(block, block_start(last), tail);
    }

    /// Puts a cleared block where producers will look next, or frees it; `retired` is the last
    /// block that was taken out.
    fn recycle(&self, block: Box<Block<T>>, retired: Word, tail: Tail) {
        let mut cursor = self.cursor();
        let level = tail.level();
        let next = block_start(tail.position().wrapping_add(BLOCK - tail::ONE));
        if cursor.recycle_level != level || ahead(cursor.recycle_next, next) < 0 {
            cursor.recycle_level = level;
            cursor.recycle_next = next;
        }
        let reach = (tail::entries(level) * SLOTS) as Signed;
        let made = Box::into_raw(block);
        while ahead(cursor.recycle_next, retired) <= reach {
            // SAFETY: only the consumer calls this, and its level is not beyond the tail's.
            let Some(entry) = (unsafe { self.entry(level, cursor.recycle_next) }) else { break };
            cursor.recycle_next = cursor.recycle_next.wrapping_add(BLOCK);
            // Release: pairs with the loads of entries, so that the flags are clear.
            if entry.compare_exchange(ptr::null_mut(), made, Release, Relaxed).is_ok() {
                self.set_cursor(cursor);
                return;
            }
        }
        self.set_cursor(cursor);
        // SAFETY: made from a box above, and no other thread has seen it.
        drop(unsafe { Box::from_raw(made) });
    }

    /// Whether there is at most one block and no directory except that of level 0.
    pub(super) fn is_small(&self) -> bool {
        // Relaxed: only null or not null matters.
        let blocks = self.level_0.iter().filter(|entry| !entry.load(Relaxed).is_null()).count();
        blocks <= 1 && self.directories.iter().all(|directory| directory.load(Relaxed).is_null())
    }

    /// Frees all but one block, which becomes the block of `head`.
    pub(super) fn reset(&mut self, head: Word) {
        let mut kept = None;
        self.take_blocks(|block| kept = Some(block));
        self.level_starts = primitive_array![AtomicWord::new(0); LEVELS - 1];
        self.cursor = UnsafeCell::new(ConsumerCursor::default());
        if let Some(mut block) = kept {
            block.clear();
            // Relaxed: published with the root.
            self.level_0[tail::entry(0, head)].store(Box::into_raw(block), Relaxed);
        }
    }

    /// Takes all blocks out and frees the directories.
    fn take_blocks(&mut self, mut taken: impl FnMut(Box<Block<T>>)) {
        let mut take = |entry: &Entry<T>| {
            // Relaxed: `&mut self` proves that no other thread uses it.
            if let Some(block) = NonNull::new(entry.load(Relaxed)) {
                entry.store(ptr::null_mut(), Relaxed);
                // SAFETY: made from a box, and taken out of the only entry that held it.
                taken(unsafe { Box::from_raw(block.as_ptr()) });
            }
        };
        self.level_0.iter().for_each(&mut take);
        for (index, directory) in self.directories.iter().enumerate() {
            // Relaxed: as above.
            if let Some(first) = NonNull::new(directory.load(Relaxed)) {
                directory.store(ptr::null_mut(), Relaxed);
                // SAFETY: made with this level's length, and just taken out.
                let directory = unsafe { directory_from(first.as_ptr(), index + 1) };
                directory.iter().for_each(&mut take);
            }
        }
    }

    fn cursor(&self) -> ConsumerCursor {
        self.cursor.with(|cursor| {
            // SAFETY: only the consumer calls this, and there is one at a time.
            unsafe { *cursor }
        })
    }

    fn set_cursor(&self, kept: ConsumerCursor) {
        self.cursor.with_mut(|cursor| {
            // SAFETY: as above.
            unsafe { *cursor = kept }
        });
    }
}

impl<T> Drop for Root<T> {
    fn drop(&mut self) {
        self.take_blocks(drop);
    }
}

/// Puts a block into an entry unless it holds one, and returns the block of the entry.
#[cold]
fn install<T>(entry: &Entry<T>, block: Box<Block<T>>) -> NonNull<Block<T>> {
    let made = NonNull::from(Box::leak(block));
    // Release: pairs with the loads of entries. Acquire: the loser uses the winner's block.
    match entry.compare_exchange(ptr::null_mut(), made.as_ptr(), Release, Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: made from a box above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made.as_ptr()) });
            NonNull::new(there).expect("the exchange failed since it is not null")
        }
    }
}

/// Installs the directory of a level unless there is one, and returns the one that is installed.
#[cold]
fn install_directory<T>(place: &AtomicPtr<Entry<T>>, level: usize) -> NonNull<Entry<T>> {
    let directory: Box<[Entry<T>]> =
        (0..tail::entries(level)).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
    let made = NonNull::from(Box::leak(directory)).cast::<Entry<T>>();
    // Release: pairs with the loads of `directories`. Acquire: the loser uses the winner's.
    match place.compare_exchange(ptr::null_mut(), made.as_ptr(), Release, Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: made above, with this level's length, and no other thread has seen it.
            drop(unsafe { directory_from(made.as_ptr(), level) });
            NonNull::new(there).expect("the exchange failed since it is not null")
        }
    }
}

/// # Safety
///
/// The pointer was made from a box of as many entries as the level has, and is consumed here.
unsafe fn directory_from<T>(first: *mut Entry<T>, level: usize) -> Box<[Entry<T>]> {
    let slice = ptr::slice_from_raw_parts_mut(first, tail::entries(level));
    // SAFETY: by the caller's promise.
    unsafe { Box::from_raw(slice) }
}
