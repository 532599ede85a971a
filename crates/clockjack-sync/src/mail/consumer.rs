//! The consumer's side of the [protocol](super): taking values, going idle, and freeing memory.
#![expect(unsafe_code, reason = "only the consumer takes values and frees blocks")]

use alloc::boxed::Box;
use core::{
    mem::{ManuallyDrop, needs_drop},
    ptr::{self, NonNull},
};

use super::{
    Mailbox, Pop, Position,
    producer::LATE_MAX,
    store::{ABANDONED, Block, InlineSlot, Root, UNWRITTEN, WRITTEN},
    tail::{NOTIFIED, ONE, PARKED, RESERVE_MAX, SLOTS, Tail, ahead, block_start, slot},
};
use crate::{
    mail_word::{Signed, Word},
    primitive::{
        IS_MODEL,
        atomic::{
            AtomicU32,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
        hint,
    },
};

/// How often the lock of an evicting mailbox is tried: its holder needs some nanoseconds.
const TRIES: usize = if IS_MODEL { 1 } else { 128 };

/// Proof that the consumer has seen the mailbox empty; going idle requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyToken(Tail);

/// The result of [`Mailbox::pop_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popped<R> {
    /// The oldest value.
    Item(R),
    /// Nothing.
    Empty(EmptyToken),
    /// The oldest value cannot be taken yet, as for [`Pop::Retry`].
    Retry,
}

/// What is at the consumer's position.
enum Found<T> {
    /// A value, at this location.
    Value(Location<T>),
    /// A claim that was abandoned.
    Abandoned(Location<T>),
    Empty,
    Retry,
}

/// Where the value of the consumer's position is.
enum Location<T> {
    Inline,
    Block(NonNull<Block<T>>),
}

/// What a shrink keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    OneBlock,
    Nothing,
}

/// Holds the lock of an evicting mailbox.
pub(super) struct ConsumerGuard<'a>(&'a AtomicU32);

impl<T> Mailbox<T> {
    /// Takes the oldest value, and frees its room. It never waits.
    ///
    /// [`Pop::Retry`] means that the oldest position is claimed and not yet written, or, in an
    /// evicting mailbox, that a producer is evicting: try again later, and do not go idle.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer: no two calls of the unsafe functions of one mailbox run at
    /// the same time, and a call happens before the next one, for instance by being made on the
    /// same thread or under a lock.
    #[inline]
    pub unsafe fn pop(&self) -> Pop<T> {
        if self.is_evicting() {
            // SAFETY: the caller is the only consumer except for threads that hold the lock.
            return unsafe { self.pop_locked() };
        }
        // SAFETY: the caller is the only consumer.
        unsafe { self.pop_one() }
    }

    /// As [`pop`](Self::pop), but `read` moves the value out, and may leave parts of it that need
    /// no drop. If the mailbox is empty, the consumer can go idle at once, by
    /// [`try_idle_with`](Self::try_idle_with).
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop). `read` moves everything out of the value that is to be dropped,
    /// once; and does not panic.
    #[inline]
    pub unsafe fn pop_with<R>(&self, read: impl FnOnce(*const T) -> R) -> Popped<R> {
        if self.inline_slot.flag() == WRITTEN {
            let head = self.head();
            // SAFETY: written, and the claim is cleared, so the value is taken once.
            let value = unsafe { self.inline_slot.take_with(read) };
            // SAFETY: by the caller's promise.
            unsafe { self.pass(&Location::Inline, head) };
            self.publish_one();
            return Popped::Item(value);
        }
        if !self.is_evicting() {
            let head = self.head();
            let flag = if let Some(block) = NonNull::new(self.block()) {
                let index = slot(head);
                // SAFETY: only the consumer frees a block, after it has taken its last position.
                let cells = unsafe { block.as_ref() };
                let flag = cells.flag(index);
                if flag == WRITTEN {
                    // SAFETY: written, and `head` moves on, so it is taken once.
                    let value = unsafe { cells.take_with(index, read) };
                    if index == SLOTS - 1 {
                        // SAFETY: by the caller's promise; all its values were taken.
                        unsafe { self.retire(block, head) };
                    }
                    self.publish_one();
                    return Popped::Item(value);
                }
                flag
            } else {
                UNWRITTEN
            };
            // Acquire: as in `find`.
            let tail = self.tail(Acquire);
            if flag == UNWRITTEN && tail.position() == head {
                return Popped::Empty(EmptyToken(tail));
            }
        }
        // SAFETY: by the caller's promise.
        unsafe { self.pop_with_slow(read) }
    }

    /// # Safety
    ///
    /// As for [`pop_with`](Self::pop_with).
    #[cold]
    unsafe fn pop_with_slow<R>(&self, read: impl FnOnce(*const T) -> R) -> Popped<R> {
        // SAFETY: by the caller's promise.
        if let Pop::Item(value) = unsafe { self.pop() } {
            let value = ManuallyDrop::new(value);
            return Popped::Item(read(&raw const *value));
        }
        // SAFETY: as above. If a producer has claimed since, its value is about to be written.
        unsafe { self.empty_token() }.map_or(Popped::Retry, Popped::Empty)
    }

    /// As [`pop`](Self::pop), but takes only a value whose position is before `limit`.
    /// Here [`Pop::Empty`] means that the consumer has reached the limit: no value before the limit
    /// is left, and others may be behind it.
    /// Rule 14.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn pop_before(&self, limit: Position) -> Pop<T> {
        let _guard = if self.is_evicting() {
            // A producer that evicts may move the consumer's position across the limit, so the
            // comparison is made under the lock.
            let Some(guard) = self.lock() else { return Pop::Retry };
            Some(guard)
        } else {
            None
        };
        // SAFETY: the caller is the only consumer, or holds the lock.
        unsafe { self.pop_one_while(|head| self.is_before(head, limit)) }
    }

    /// Takes the oldest value as [`pop`](Self::pop) does, but its room stays taken until
    /// [`free`](Self::free): for a consumer that stores values elsewhere before it handles them.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    ///
    /// # Panics
    ///
    /// If the mailbox evicts: a held value cannot be evicted.
    pub unsafe fn pop_held(&self) -> Pop<T> {
        // SAFETY: by the caller's promise.
        unsafe { self.pop_held_while(|_| true) }
    }

    /// As [`pop_held`](Self::pop_held), but takes only a value whose position is before `limit`, as
    /// [`pop_before`](Self::pop_before) does.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    ///
    /// # Panics
    ///
    /// As [`pop_held`](Self::pop_held).
    pub unsafe fn pop_held_before(&self, limit: Position) -> Pop<T> {
        // SAFETY: by the caller's promise.
        unsafe { self.pop_held_while(|head| self.is_before(head, limit)) }
    }

    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    #[inline]
    unsafe fn pop_held_while(&self, may_take: impl Fn(Word) -> bool) -> Pop<T> {
        assert!(!self.is_evicting(), "values of an evicting mailbox cannot be held");
        loop {
            let head = self.head();
            if !may_take(head) {
                return Pop::Empty;
            }
            // SAFETY: the caller is the only consumer, and this is its position.
            let popped = match unsafe { self.find(head) } {
                // SAFETY: as above, and it was found there.
                Found::Value(place) => Some(unsafe { self.take(&place, head) }),
                Found::Abandoned(place) => {
                    // SAFETY: as above.
                    unsafe { self.pass(&place, head) };
                    None
                }
                Found::Empty => return Pop::Empty,
                Found::Retry => return Pop::Retry,
            };
            // Relaxed: only the consumer uses it. Below the capacity, since each value has room.
            self.held.store(self.held.load(Relaxed) + 1, Relaxed);
            if let Some(value) = popped {
                return Pop::Item(value);
            }
            // SAFETY: as above, and one more is held.
            unsafe { self.free(1) };
        }
    }

    /// Frees the room of `n` values that [`pop_held`](Self::pop_held) returned.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    ///
    /// # Panics
    ///
    /// If fewer are held.
    pub unsafe fn free(&self, n: usize) {
        assert!(!self.is_evicting(), "values of an evicting mailbox cannot be held");
        // Relaxed: only the consumer uses it.
        let held = self.held.load(Relaxed);
        let left = u32::try_from(n).ok().and_then(|n| held.checked_sub(n));
        let left = left.unwrap_or_else(|| panic!("{n} freed, {held} held"));
        self.held.store(left, Relaxed);
        // Relaxed: only the consumer writes it.
        let freed = self.freed.load(Relaxed);
        self.publish(freed.wrapping_add((held - left) as Word * ONE));
    }

    /// Puts the consumer to sleep (*idle*), unless a value is inside or claimed, the consumer was
    /// [notified](Self::notify), or room is [reserved for waiters](Self::reserve_for_waiters), who
    /// must be let in first. It also returns false if another thread changes the mailbox at that
    /// moment. After `true`, the next push tells its caller to wake the consumer.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    #[inline]
    pub unsafe fn try_idle(&self) -> bool {
        // SAFETY: by the caller's promise.
        let seen = unsafe { self.empty_token() };
        // SAFETY: as above, and the borrow keeps the mailbox alive.
        seen.is_some_and(|seen| unsafe { Self::try_idle_with(self, seen) })
    }

    /// The token that going idle requires; none if a value is inside or claimed.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    #[inline]
    pub unsafe fn empty_token(&self) -> Option<EmptyToken> {
        // Acquire: pairs with the claims; a consumer that sees a claim looks for its value next.
        let tail = self.tail(Acquire);
        (tail.position() == self.head()).then_some(EmptyToken(tail))
    }

    /// As [`try_idle`](Self::try_idle), with the token of an earlier check. It takes an address,
    /// because the mailbox may be freed as soon as the consumer sleeps: the thread that wakes the
    /// consumer may also stop it. So this function touches nothing of the mailbox after the
    /// exchange, and borrows nothing but one atomic during the exchange.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop), of the mailbox at this address, which exists until the consumer
    /// sleeps. The token comes from the same mailbox.
    #[inline]
    pub unsafe fn try_idle_with(this: *const Self, seen: EmptyToken) -> bool {
        let EmptyToken(tail) = seen;
        if tail.is_notified() || tail.has_waiters() {
            return false;
        }
        // SAFETY: the mailbox exists; the borrow ends before the exchange.
        let has_inline_slot = unsafe { (*this).has_inline_slot() };
        // SAFETY: as above, and only an atomic is borrowed in the exchange.
        let word = unsafe { &(*this).tail };
        let idle = if has_inline_slot { tail.idle().with_inline_slot() } else { tail.idle() }.0;
        // Release: pairs with the claim that clears *idle*; the thread that then wakes the consumer
        // sees everything that the consumer did before it slept. Acquire: a consumer that sees a
        // claim looks for its value. On success the tail is still the one of the token, so it is
        // still at the consumer's position.
        word.compare_exchange(tail.0, idle, AcqRel, Acquire).is_ok()
    }

    /// Puts the consumer to sleep (*parked*) although values may be inside: no push wakes it, only
    /// [`notify`](Self::notify) does. False if the consumer was notified since its last
    /// [`ack`](Self::ack).
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn park(&self) -> bool {
        // SAFETY: by the caller's promise; the borrow keeps the mailbox alive.
        unsafe { Self::park_at(self) }
    }

    /// As [`park`](Self::park), for a consumer whose mailbox may be freed as soon as it sleeps.
    ///
    /// # Safety
    ///
    /// As for [`try_idle_with`](Self::try_idle_with).
    pub unsafe fn park_at(this: *const Self) -> bool {
        // SAFETY: the mailbox exists, and the exchange borrows only one atomic of it.
        let word = unsafe { &(*this).tail };
        // Acquire: pairs with `notify`; a consumer that was notified looks for the reason.
        let mut tail = Tail(word.load(Acquire));
        loop {
            if tail.is_notified() {
                return false;
            }
            // AcqRel: the notifier sees all that the consumer has done. The loop ends: only a
            // claim, a close or a notification interferes, and the room bounds the claims.
            match word.compare_exchange(tail.0, tail.0 | PARKED, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Notifies the consumer of work that was left elsewhere: an idle or parked consumer does not
    /// sleep any more, and no consumer goes to sleep before it has [acknowledged](Self::ack). True
    /// if the consumer slept: then this caller has to wake it. Any thread may call this.
    pub fn notify(&self) -> bool {
        // Relaxed: the exchange decides.
        let mut tail = self.tail(Relaxed);
        loop {
            // AcqRel: a consumer that acknowledges sees the work that was left; and the thread that
            // wakes the consumer sees what the consumer has done. The loop repeats only after
            // another thread changed the word.
            match self.tail.compare_exchange_weak(tail.0, tail.notified().0, AcqRel, Relaxed) {
                Ok(_) => return tail.is_asleep(),
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Acknowledges a notification. The consumer calls this before it looks for the work.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn ack(&self) {
        // Relaxed: a later notification is for the next `ack`, before which the consumer does not
        // sleep.
        if self.tail(Relaxed).is_notified() {
            // Acquire: pairs with `notify`.
            self.tail.fetch_and(!NOTIFIED, AcqRel);
        }
    }

    /// Whether the consumer sleeps.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        // Relaxed: a hint.
        self.tail(Relaxed).is_asleep()
    }

    /// Allocates all memory that values within the capacity need, so that no push allocates any
    /// more until [`shrink`](Self::shrink) or [`release`](Self::release) frees it, except a
    /// [late](Self::push_late) one beyond the capacity. Returns false and allocates nothing if the
    /// capacity is above [`RESERVE_MAX`].
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn reserve(&self) -> bool {
        if self.capacity() > RESERVE_MAX {
            return false;
        }
        // Relaxed: only the consumer changes the generation.
        let root = self.root(self.tail(Relaxed));
        // Claimed positions lie within the capacity from `freed` on, so they touch at most one
        // block more than the capacity fills. A block that is taken out goes to the first entry
        // ahead that has none (`Root::recycle`), long before a producer reaches that entry.
        let blocks = self.capacity().div_ceil(SLOTS) + 1;
        // Relaxed: only the consumer writes it.
        let first = block_start(self.freed.load(Relaxed));
        // SAFETY: an unsafe function of the consumer, which alone frees a root.
        unsafe { root.as_ref() }.reserve(first, blocks);
        true
    }

    /// Frees all but one block, if the mailbox is empty; returns whether at most one is left. It
    /// allocates nothing.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn shrink(&self) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { self.shrink_to(Keep::OneBlock) }
    }

    /// Frees all memory of the mailbox, if it is empty; returns whether none is left.
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    pub unsafe fn release(&self) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { self.shrink_to(Keep::Nothing) }
    }

    /// # Safety
    ///
    /// The caller is the only consumer; in an evicting mailbox, because it holds the lock.
    #[inline]
    pub(super) unsafe fn pop_one(&self) -> Pop<T> {
        // SAFETY: by the caller's promise.
        unsafe { self.pop_one_while(|_| true) }
    }

    /// Takes the oldest value, unless the closure refuses its position.
    ///
    /// # Safety
    ///
    /// As for `pop_one`.
    #[inline]
    unsafe fn pop_one_while(&self, may_take: impl Fn(Word) -> bool) -> Pop<T> {
        loop {
            let head = self.head();
            if !may_take(head) {
                return Pop::Empty;
            }
            // SAFETY: the caller is the only consumer, and this is its position.
            match unsafe { self.find(head) } {
                Found::Value(place) => {
                    // SAFETY: as above, and the value was found there. It goes into the result at
                    // once, so that it is copied once.
                    let popped = Pop::Item(unsafe { self.take(&place, head) });
                    self.publish_one();
                    return popped;
                }
                Found::Abandoned(place) => {
                    // SAFETY: as above.
                    unsafe { self.pass(&place, head) };
                    self.publish_one();
                }
                Found::Empty => return Pop::Empty,
                Found::Retry => return Pop::Retry,
            }
        }
    }

    /// # Safety
    ///
    /// As for [`pop`](Self::pop), in an evicting mailbox.
    unsafe fn pop_locked(&self) -> Pop<T> {
        let Some(_guard) = self.lock() else { return Pop::Retry };
        // SAFETY: the lock makes the only consumer.
        unsafe { self.pop_one() }
    }

    /// Finds the value at the consumer's position.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer, and `head` is its position.
    #[inline]
    unsafe fn find(&self, head: Word) -> Found<T> {
        match self.inline_slot.flag() {
            UNWRITTEN => {}
            WRITTEN => return Found::Value(Location::Inline),
            _ => return Found::Abandoned(Location::Inline),
        }
        let block = match NonNull::new(self.block()) {
            Some(block) => block,
            // SAFETY: by the caller's promise.
            None => match unsafe { self.seek(head) } {
                Pop::Item(block) => block,
                Pop::Empty => return Found::Empty,
                Pop::Retry => return Found::Retry,
            },
        };
        // SAFETY: only the consumer frees a block, after it has taken its last position.
        match unsafe { block.as_ref() }.flag(slot(head)) {
            WRITTEN => Found::Value(Location::Block(block)),
            ABANDONED => Found::Abandoned(Location::Block(block)),
            // Acquire: pairs with `close`; a consumer that finds it closed sees what came before.
            _ if self.tail(Acquire).position() == head => Found::Empty,
            _ => Found::Retry,
        }
    }

    /// Takes the value that was found; the caller counts it.
    ///
    /// # Safety
    ///
    /// As for `find`, which has returned this location; and the caller advances the position.
    #[inline]
    unsafe fn take(&self, place: &Location<T>, head: Word) -> T {
        let value = match place {
            // SAFETY: written, and the claim is cleared, so the value is taken once.
            Location::Inline => unsafe { self.inline_slot.take() },
            Location::Block(block) => {
                // SAFETY: only the consumer frees a block, after it has taken its last position.
                let block = unsafe { block.as_ref() };
                // SAFETY: written, and taken once, since the position moves on.
                unsafe { block.take(slot(head)) }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { self.pass(place, head) };
        value
    }

    /// Passes a position, and takes its block out if it was the last position of the block.
    ///
    /// # Safety
    ///
    /// As for `find`; the position was found, its value is taken if there was one, and the caller
    /// advances the position.
    #[inline]
    unsafe fn pass(&self, place: &Location<T>, head: Word) {
        let is_last = slot(head) == SLOTS - 1;
        match place {
            Location::Inline => {
                // Also if the claim was abandoned.
                self.inline_slot.clear();
                if is_last {
                    // SAFETY: by the caller's promise.
                    unsafe { self.retire_passed(head) };
                }
            }
            // SAFETY: by the caller's promise; all its values were taken.
            Location::Block(block) if is_last => unsafe { self.retire(*block, head) },
            Location::Block(_) => {}
        }
    }

    /// Takes out the block of a position that was the last of the block and whose value was in the
    /// inline slot, if a producer has installed that block.
    ///
    /// # Safety
    ///
    /// As for `pass`.
    #[cold]
    unsafe fn retire_passed(&self, last: Word) {
        // Acquire: pairs with the claims: the level they used.
        let tail = self.tail(Acquire);
        // Acquire: pairs with the exchange that put it there.
        let Some(root) = NonNull::new(self.roots[tail.generation()].load(Acquire)) else { return };
        // SAFETY: only the consumer frees a root.
        let root = unsafe { root.as_ref() };
        // SAFETY: by the caller's promise; the claim was used before the tail was read.
        if let Some(block) = unsafe { root.passed_block(last, tail) } {
            // SAFETY: as above, and no producer has a claim in it.
            unsafe { self.retire(block, last) };
        }
    }

    /// Finds the block of the consumer's position.
    ///
    /// # Safety
    ///
    /// As for `find`.
    #[cold]
    unsafe fn seek(&self, head: Word) -> Pop<NonNull<Block<T>>> {
        // Acquire: pairs with the claims and with `close`.
        let tail = self.tail(Acquire);
        if tail.position() == head {
            return Pop::Empty;
        }
        // Acquire: pairs with the exchange that put it there.
        let Some(root) = NonNull::new(self.roots[tail.generation()].load(Acquire)) else {
            return Pop::Retry;
        };
        // SAFETY: only the consumer frees a root.
        let root = unsafe { root.as_ref() };
        // SAFETY: by the caller's promise; the tail is beyond it.
        let Some(block) = (unsafe { root.seek(head, tail) }) else { return Pop::Retry };
        self.set_block(block.as_ptr());
        Pop::Item(block)
    }

    /// Takes a block out whose last value was taken.
    ///
    /// # Safety
    ///
    /// The caller is the only consumer, and has taken every value of the block up to `last`.
    #[cold]
    unsafe fn retire(&self, block: NonNull<Block<T>>, last: Word) {
        self.set_block(ptr::null_mut());
        // Acquire: pairs with the claims: the level they used.
        let tail = self.tail(Acquire);
        // Relaxed: the block was found through it.
        let root = NonNull::new(self.roots[tail.generation()].load(Relaxed));
        let root = root.expect("a block is in a root");
        // SAFETY: only the consumer frees a root.
        let root = unsafe { root.as_ref() };
        // SAFETY: by the caller's promise.
        unsafe { root.retire(block, last, tail) };
    }

    /// Frees the memory of an empty mailbox (rule 7).
    ///
    /// # Safety
    ///
    /// As for [`pop`](Self::pop).
    unsafe fn shrink_to(&self, keep: Keep) -> bool {
        let _guard = if self.is_evicting() {
            let Some(guard) = self.lock() else { return false };
            Some(guard)
        } else {
            None
        };
        let head = self.head();
        // Acquire: pairs with the claims.
        let mut tail = self.tail(Acquire);
        // Acquire: pairs with the exchange that put it there.
        let root = self.roots[tail.generation()].load(Acquire);
        if tail.position() != head {
            return false;
        }
        let Some(root) = NonNull::new(root) else { return true };
        // SAFETY: only the consumer frees a root.
        if keep == Keep::OneBlock && unsafe { root.as_ref() }.is_small() {
            return true;
        }
        // AcqRel: a producer that claims with the new generation sees that the other root is empty.
        // The loop ends: only a close interferes, or a claim, which ends the loop.
        while let Err(now) =
            self.tail.compare_exchange(tail.0, tail.in_next_generation().0, AcqRel, Acquire)
        {
            tail = Tail(now);
            if tail.position() != head {
                return false;
            }
        }
        self.set_block(ptr::null_mut());
        // Relaxed: published by the exchange of the next shrink, before which no thread reads it.
        self.roots[tail.generation()].store(ptr::null_mut(), Relaxed);
        // SAFETY: no claim of the old generation is unused, and none will be made.
        let mut old = unsafe { Box::from_raw(root.as_ptr()) };
        if keep == Keep::OneBlock {
            old.reset(head);
            self.reinstall(tail.in_next_generation(), old);
        }
        true
    }

    /// Puts a cleared root into the new generation, unless a producer was faster.
    fn reinstall(&self, tail: Tail, root: Box<Root<T>>) {
        let made = Box::into_raw(root);
        let place = &self.roots[tail.generation()];
        // Release: pairs with the loads of roots.
        if place.compare_exchange(ptr::null_mut(), made, Release, Relaxed).is_err() {
            // SAFETY: made from a box above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    /// The lock of an evicting mailbox, if it becomes free within a few tries.
    pub(super) fn lock(&self) -> Option<ConsumerGuard<'_>> {
        for _ in 0..TRIES {
            // Acquire: pairs with the unlock. Relaxed on failure: nothing is read then.
            if self.held.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                return Some(ConsumerGuard(&self.held));
            }
            hint::spin_loop();
        }
        None
    }

    /// Whether the mailbox uses its inline slot.
    #[inline]
    const fn has_inline_slot(&self) -> bool {
        InlineSlot::<T>::FITS && !self.is_evicting()
    }

    /// The consumer's position. In an evicting mailbox `held` is the lock, and no value is held.
    #[inline]
    fn head(&self) -> Word {
        // Relaxed: only the consumer writes them.
        let freed = self.freed.load(Relaxed);
        if self.is_evicting() {
            return freed;
        }
        freed.wrapping_add(self.held.load(Relaxed) as Word * ONE)
    }

    /// Whether the consumer's position is before the limit. A limit is never further ahead than the
    /// mailbox is deep, except for one that the position has left behind by half of its range.
    fn is_before(&self, head: Word, limit: Position) -> bool {
        let left = ahead(limit.0, head);
        left > 0 && left <= (self.capacity() + LATE_MAX) as Signed
    }

    #[inline]
    fn publish_one(&self) {
        // Relaxed: only the consumer writes it.
        self.publish(self.freed.load(Relaxed).wrapping_add(ONE));
    }

    #[inline]
    fn publish(&self, freed: Word) {
        // Release: pairs with `reload_freed` and `len`: entries of what was freed are clear.
        self.freed.store(freed, Release);
    }

    #[inline]
    fn block(&self) -> *mut Block<T> {
        self.block.with(|block| {
            // SAFETY: only the consumer calls this, and there is one at a time.
            unsafe { *block }
        })
    }

    fn set_block(&self, to: *mut Block<T>) {
        self.block.with_mut(|block| {
            // SAFETY: as above.
            unsafe { *block = to }
        });
    }
}

impl Drop for ConsumerGuard<'_> {
    fn drop(&mut self) {
        // Release: pairs with the exchange of the next.
        self.0.store(0, Release);
    }
}

impl<T> Drop for Mailbox<T> {
    /// Drops the values inside, also if the drop of one panics, and frees the memory.
    fn drop(&mut self) {
        struct DropRemaining<'a, T>(&'a Mailbox<T>);
        impl<T> DropRemaining<'_, T> {
            fn drop_all(&self) {
                // SAFETY: `&mut` in the caller proves that no other thread uses it.
                while let Pop::Item(value) = unsafe { self.0.pop_one() } {
                    drop(value);
                }
            }
        }
        impl<T> Drop for DropRemaining<'_, T> {
            fn drop(&mut self) {
                self.drop_all();
                for root in &self.0.roots {
                    // Relaxed: as above; the thread that dropped the last handle acquired what
                    // others did.
                    if let Some(root) = NonNull::new(root.load(Relaxed)) {
                        // SAFETY: made from a box, and the mailbox is gone.
                        drop(unsafe { Box::from_raw(root.as_ptr()) });
                    }
                }
            }
        }
        let remaining = DropRemaining(self);
        if needs_drop::<T>() {
            remaining.drop_all();
        }
    }
}
