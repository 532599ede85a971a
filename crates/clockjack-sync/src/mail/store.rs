//! Where the values are: blocks, and the directories that find the block of a position.
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
    mutant,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU8,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    primitive_array,
};

/// The slot is claimed or not even that.
pub(super) const UNWRITTEN: u8 = 0;
/// The slot has its value.
pub(super) const WRITTEN: u8 = 1;
/// The claim was given up, and there is no value.
pub(super) const ABANDONED: u8 = 2;

/// Marks a start that is set; positions have their lowest bits free.
const IS_SET: Word = 1;

type Entry<T> = AtomicPtr<Block<T>>;

/// The values of as many positions as it has slots.
pub(super) struct Block<T> {
    flags: [AtomicU8; SLOTS],
    slots: [UnsafeCell<MaybeUninit<T>>; SLOTS],
}

/// The slot of the box itself (rule 11).
pub(super) struct InlineSlot<T> {
    flag: AtomicU8,
    value: UnsafeCell<Loose<T>>,
}

/// A value that does not make what it is in more aligned than a word.
#[repr(C, packed(8))]
struct Loose<T>(MaybeUninit<T>);

impl<T> InlineSlot<T> {
    /// Whether values have their place at their alignment.
    pub(super) const FITS: bool = align_of::<T>() == align_of::<Loose<T>>();

    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self {
                flag: AtomicU8::new(UNWRITTEN),
                value: UnsafeCell::new(Loose(MaybeUninit::uninit())),
            }
        }
    }

    /// What became of the claim, if there is one.
    #[inline]
    pub(super) fn flag(&self) -> u8 {
        // Acquire: pairs with `put`, so that the value is there.
        self.flag.load(Acquire)
    }

    /// Writes the value.
    ///
    /// # Safety
    ///
    /// Values fit, the caller has claimed the tray, and this is its only use of the claim.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as for blocks")]
    pub(super) unsafe fn put(&self, value: T) {
        self.value.with_mut(|cell| {
            // SAFETY: the cell is valid, aligned, and by the caller's promise nobody else uses it.
            unsafe { cell.cast::<T>().write(value) };
        });
        let order = if mutant!("mail-tray-relaxed") { Relaxed } else { Release };
        // Release: pairs with `flag`.
        self.flag.store(WRITTEN, order);
    }

    /// Says that the claim will have no value.
    pub(super) fn abandon(&self) {
        // Release: pairs with `flag`.
        self.flag.store(ABANDONED, Release);
    }

    /// Hands the value to `f`, which moves out of it what it wants; nothing is left of the claim.
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

    /// Forgets the claim, which was used. For the consumer.
    #[inline]
    pub(super) fn clear(&self) {
        // Relaxed: the next claim comes behind the exchange by which the consumer goes idle.
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

    /// Makes it as new; its values were taken.
    fn clear(&mut self) {
        self.flags = primitive_array![AtomicU8::new(UNWRITTEN); SLOTS];
    }

    /// What became of a slot's claim.
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
            // SAFETY: the cell is valid, and by the caller's promise nobody else uses it.
            let cell = unsafe { &mut *cell };
            cell.write(value);
        });
        let order = if mutant!("mail-relaxed-written") { Relaxed } else { Release };
        // Release: pairs with `flag`.
        self.flags[slot].store(WRITTEN, order);
    }

    /// Says that the slot of a claim will have no value.
    pub(super) fn abandon(&self, slot: usize) {
        // Release: pairs with `flag`; it is the producer's last access to the block.
        self.flags[slot].store(ABANDONED, Release);
    }

    /// Hands the value of a slot to `f`, which moves out of it what it wants.
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
            // SAFETY: the cell is valid, and the producer has left it with the flag.
            let cell = unsafe { &*cell };
            // SAFETY: the flag says that it is initialized, and it is not taken twice.
            unsafe { cell.assume_init_read() }
        })
    }
}

/// The directories of one generation, and the blocks in them.
pub(super) struct Root<T> {
    level_0: [Entry<T>; LEVEL_0_ENTRIES],
    /// Of each level above 0 its first entry, null before the level is used.
    directories: [AtomicPtr<Entry<T>>; LEVELS - 1],
    /// Of each level above 0 its first position and [`IS_SET`], or zero.
    level_starts: [AtomicWord; LEVELS - 1],
    cursor: UnsafeCell<ConsumerCursor>,
}

/// What only the consumer knows.
#[derive(Clone, Copy, Debug, Default)]
struct ConsumerCursor {
    /// The level of the block that it takes from.
    level: usize,
    /// The level to which blocks are offered, and the first position to which none was.
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

    /// The block of a claimed position, which is made if it is not there (rule 4).
    ///
    /// # Safety
    ///
    /// The caller has claimed the position with this root's generation and that level, and has not
    /// yet used the claim.
    #[inline]
    pub(super) unsafe fn claimed_block(&self, at: Tail) -> NonNull<Block<T>> {
        let entry = match at.level() {
            0 => &self.level_0[tail::entry(0, at.position())],
            // SAFETY: the claim keeps the level's directory, by the caller's promise.
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
        // SAFETY: the directory stays while a claim of its level is unused.
        unsafe { entry.as_ref() }
    }

    /// Makes so many blocks from a position on, but for those that are there. Level 0 has as many
    /// entries at least.
    pub(super) fn reserve(&self, first: Word, blocks: usize) {
        for n in 0..blocks {
            let position = first.wrapping_add(n as Word * BLOCK);
            let entry = &self.level_0[tail::entry(0, position)];
            // Relaxed: only null or not counts, and `install` decides.
            if entry.load(Relaxed).is_null() {
                install(entry, Block::new());
            }
        }
    }

    /// Says where a level begins; called by who claimed its first position.
    #[cold]
    pub(super) fn begin_level(&self, at: Tail) {
        // Release: pairs with `seek`.
        self.level_starts[at.level() - 1].store(at.position() | IS_SET, Release);
    }

    /// The entry of a position in a level's directory, if there is one.
    ///
    /// # Safety
    ///
    /// The caller is the consumer and has not yet left the level.
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

    /// The block of the consumer's position, if its level is known and the block is there.
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
            if start == 0 && !mutant!("mail-level-by-tail") {
                return None;
            }
            if ahead(head, start & !IS_SET) < 0 && !mutant!("mail-level-by-tail") {
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

    /// The block of a position that was passed without it, if one is there (rule 11).
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
        // A level whose start is not known yet begins behind this position: who raised it at this
        // one has said so before its claim was used.
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

    /// Takes back what was offered to a level that is over, and its directory (rule 6).
    ///
    /// # Safety
    ///
    /// The caller is the consumer, and all positions of the level were taken.
    #[cold]
    unsafe fn leave_level(&self, level: usize, head: Word, tail: Tail) {
        let directory = level.checked_sub(1).and_then(|index| {
            // Relaxed: nobody else uses the level any more.
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
            // Relaxed: as above; a block that is offered was cleared by the consumer itself.
            if let Some(block) = NonNull::new(entry.load(Relaxed)) {
                entry.store(ptr::null_mut(), Relaxed);
                // SAFETY: it was in the directory and is out of it, and nobody has a claim in it.
                let block = unsafe { Box::from_raw(block.as_ptr()) };
                self.recycle(block, head.wrapping_sub(BLOCK), tail);
            }
        }
    }

    /// Takes a block out of its directory and offers it again (rules 5 and 6).
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
        // Relaxed: published with `freed`, before which nobody looks for another block here.
        entry.store(ptr::null_mut(), Relaxed);
        // SAFETY: out of the directory; every claim in it was used, and its user is gone.
        let mut block = unsafe { Box::from_raw(block.as_ptr()) };
        block.clear();
        self.recycle(block, block_start(last), tail);
    }

    /// Puts a clean block where producers will look next, or frees it; `retired` is the last block
    /// that was taken out.
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
            // SAFETY: only the consumer calls this, and it is not beyond the tail's level.
            let Some(entry) = (unsafe { self.entry(level, cursor.recycle_next) }) else { break };
            cursor.recycle_next = cursor.recycle_next.wrapping_add(BLOCK);
            // Release: pairs with the loads of entries, so that the flags are clear.
            if entry.compare_exchange(ptr::null_mut(), made, Release, Relaxed).is_ok() {
                self.set_cursor(cursor);
                return;
            }
        }
        self.set_cursor(cursor);
        // SAFETY: made from a box above, and seen by nobody.
        drop(unsafe { Box::from_raw(made) });
    }

    /// Whether at most one block is there and no directory but the first.
    pub(super) fn is_small(&self) -> bool {
        // Relaxed: only null or not counts.
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
            // Relaxed: `&mut self` proves that nobody else is here.
            if let Some(block) = NonNull::new(entry.load(Relaxed)) {
                entry.store(ptr::null_mut(), Relaxed);
                // SAFETY: made from a box, and out of the only entry that had it.
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

/// Puts a block into an entry unless one is there, and gives the one that is.
#[cold]
fn install<T>(entry: &Entry<T>, block: Box<Block<T>>) -> NonNull<Block<T>> {
    let made = NonNull::from(Box::leak(block));
    let order = if mutant!("mail-relaxed-install") { Relaxed } else { Release };
    // Release: pairs with the loads of entries. Acquire: who loses uses the winner's.
    match entry.compare_exchange(ptr::null_mut(), made.as_ptr(), order, Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: made from a box above, and seen by nobody.
            drop(unsafe { Box::from_raw(made.as_ptr()) });
            NonNull::new(there).expect("the exchange failed since it is not null")
        }
    }
}

/// Puts the directory of a level into its place unless it is there, and gives the one that is.
#[cold]
fn install_directory<T>(place: &AtomicPtr<Entry<T>>, level: usize) -> NonNull<Entry<T>> {
    let directory: Box<[Entry<T>]> =
        (0..tail::entries(level)).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
    let made = NonNull::from(Box::leak(directory)).cast::<Entry<T>>();
    // Release: pairs with the loads of `directories`. Acquire: who loses uses the winner's.
    match place.compare_exchange(ptr::null_mut(), made.as_ptr(), Release, Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: made above, with this level's length, and seen by nobody.
            drop(unsafe { directory_from(made.as_ptr(), level) });
            NonNull::new(there).expect("the exchange failed since it is not null")
        }
    }
}

/// # Safety
///
/// The pointer was made from a box of as many entries as the level has, and is given up here.
unsafe fn directory_from<T>(first: *mut Entry<T>, level: usize) -> Box<[Entry<T>]> {
    let slice = ptr::slice_from_raw_parts_mut(first, tail::entries(level));
    // SAFETY: by the caller's promise.
    unsafe { Box::from_raw(slice) }
}
