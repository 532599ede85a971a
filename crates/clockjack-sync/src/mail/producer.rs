//! The producers' side of the [protocol](super): claims, their use, and late pushes.
#![expect(unsafe_code, reason = "a claim is the right to write a slot")]

use alloc::boxed::Box;
use core::{fmt, mem::ManuallyDrop, ptr, ptr::NonNull};

use super::{
    Mailbox, Pop,
    store::{Block, Root},
    tail::{Tail, ahead, slot},
};
use crate::{
    mail_word::{Signed, Word},
    primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
    push_error::{PushError, Refusal},
};

/// How often an evicting push makes room before it reports full: each time another producer took
/// the room.
const EVICTIONS_MAX: usize = 16;

/// By how many values [late pushes](Mailbox::push_late) may exceed the capacity: more threads than
/// are between their check for room and their push at the same time. The last level of directories
/// has room for them.
pub(super) const LATE_MAX: usize = 64;

/// The result of an accepted push: whether its caller has to wake the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the consumer sleeps for ever if nobody wakes it"]
pub struct Pushed {
    /// Whether the consumer was idle, and this caller has to wake it.
    pub wake: bool,
}

/// The result of [`Mailbox::reserve_for_waiters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a sender may wait only if the room was reserved"]
pub enum WaiterReservation {
    /// The mailbox is full, and from now on free room is reserved for waiters.
    Reserved,
    /// There is room, and no sender waits: push.
    HasRoom,
    /// The mailbox is closed.
    Closed,
}

/// Room for one value, which no other producer can take.
///
/// Values that others push later are behind it: the consumer gets [`Pop::Retry`] until the permit
/// is written or dropped. If the permit is dropped, its room is free when the consumer passes it.
///
/// The permit carries the obligation to wake the consumer. A holder that drops or cancels a permit
/// that [`wakes`](Self::wakes) must wake the consumer, even if nothing was written: other producers
/// rely on it.
#[must_use = "values that are pushed later wait for the permit"]
pub struct Permit<'a, T> {
    mailbox: &'a Mailbox<T>,
    at: Tail,
    wake: bool,
}

impl<T> Mailbox<T> {
    /// Appends a value.
    ///
    /// One compare-exchange, repeated when another push or a close was faster; it never waits for
    /// other threads.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the mailbox is closed or full.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as measured")]
    pub fn push(&self, value: T) -> Result<Pushed, PushError<T>> {
        match self.try_claim() {
            Ok(permit) => Ok(permit.write(value)),
            Err(refusal) => Err(PushError::new(value, refusal)),
        }
    }

    /// Whether a push would be accepted now; for a sender that makes its value afterwards, and then
    /// pushes the value by [`push_late`](Self::push_late). Rule 13.
    ///
    /// # Errors
    ///
    /// If the mailbox is closed, or full, or if its room is reserved for waiters.
    pub fn check_room(&self) -> Result<(), PushError<()>> {
        // Acquire: as in `try_claim`.
        let tail = self.tail(Acquire);
        if tail.is_closed() {
            return Err(PushError::new((), Refusal::Closed));
        }
        // Acquire: pairs with the consumer's store. Read after the tail, as in `reload_freed`.
        let freed = self.freed.load(Acquire);
        if tail.has_waiters() || ahead(tail.position(), freed) >= self.capacity() as Signed {
            return Err(PushError::new((), Refusal::Full));
        }
        Ok(())
    }

    /// Appends the value of a sender that has [found room](Self::check_room) before it made the
    /// value. If other senders have taken the room since, the value is accepted nevertheless, up to
    /// 64 values beyond the capacity; also while room is reserved for waiters. Rule 13.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the mailbox is closed, or if it is that much too full.
    pub fn push_late(&self, value: T) -> Result<Pushed, PushError<T>> {
        match self.try_claim_as(true, self.capacity() + LATE_MAX) {
            Ok(permit) => Ok(permit.write(value)),
            Err(refusal) => Err(PushError::new(value, refusal)),
        }
    }

    /// Claims room for a value that is made afterwards. The consumer takes nothing that is behind
    /// the claim, so the holder of the permit runs no user code: see
    /// [`check_room`](Self::check_room).
    ///
    /// # Errors
    ///
    /// If the mailbox is closed or full.
    #[inline]
    pub fn claim(&self) -> Result<Permit<'_, T>, PushError<()>> {
        self.try_claim().map_err(|refusal| PushError::new((), refusal))
    }

    /// Appends a value; if the mailbox is full, takes the oldest value out first and passes it to
    /// `evicted`. Only for mailboxes made by [`evicting`](Self::evicting).
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the mailbox is closed; or full, if another thread is
    /// taking its oldest value, or if others take the room that this push made: this push may then
    /// have evicted a value nevertheless.
    ///
    /// # Panics
    ///
    /// If the mailbox does not evict; or if `evicted` panics.
    pub fn push_or_evict(
        &self,
        value: T,
        mut evicted: impl FnMut(T),
    ) -> Result<Pushed, PushError<T>> {
        assert!(self.is_evicting(), "the mailbox was not made to evict");
        let mut rounds = 0;
        let refusal = loop {
            match self.try_claim() {
                Ok(permit) => return Ok(permit.write(value)),
                Err(Refusal::Full) if rounds < EVICTIONS_MAX => {}
                Err(refusal) => break refusal,
            }
            rounds += 1;
            match self.evict() {
                Pop::Item(oldest) => evicted(oldest),
                Pop::Empty => {}
                Pop::Retry => break Refusal::Full,
            }
        };
        Err(PushError::new(value, refusal))
    }

    /// Reserves the room that becomes free for senders that wait elsewhere (rule 10), unless there
    /// is room now or the mailbox is closed. From then on only the consumer can claim.
    pub fn reserve_for_waiters(&self) -> WaiterReservation {
        // Acquire: as in `try_claim`.
        let mut tail = self.tail(Acquire);
        loop {
            if tail.is_closed() {
                return WaiterReservation::Closed;
            }
            if tail.has_waiters() {
                return WaiterReservation::Reserved;
            }
            // Acquire: pairs with the consumer's store. Read after the tail, as in `reload_freed`.
            let freed = self.freed.load(Acquire);
            if ahead(tail.position(), freed) < self.capacity() as Signed {
                return WaiterReservation::HasRoom;
            }
            // AcqRel: pairs with the claims in both directions: later claims are refused.
            match self.tail.compare_exchange(tail.0, tail.with_waiters().0, AcqRel, Acquire) {
                Ok(_) => return WaiterReservation::Reserved,
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Ends the reservation of [`reserve_for_waiters`](Self::reserve_for_waiters): no sender waits
    /// any more.
    pub fn release_reservation(&self) {
        // Release: a producer that claims afterwards comes behind those that waited.
        self.tail.fetch_and(!Tail(0).with_waiters().0, AcqRel);
    }

    /// Claims room for one of the waiters, in spite of a
    /// [reservation](Self::reserve_for_waiters). Only the consumer calls this, so that waiters get
    /// their room in order; it does not have to wake itself.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    pub fn claim_for_waiter(&self) -> Result<Permit<'_, T>, PushError<()>> {
        self.try_claim_as(true, self.capacity()).map_err(|refusal| PushError::new((), refusal))
    }

    /// Claims the next position (rule 1).
    #[inline]
    fn try_claim(&self) -> Result<Permit<'_, T>, Refusal> {
        self.try_claim_as(false, self.capacity())
    }

    /// As [`try_claim`](Self::try_claim); `ignores_waiters` if the claim is for one of the waiters,
    /// or late.
    #[inline]
    fn try_claim_as(
        &self,
        ignores_waiters: bool,
        capacity: usize,
    ) -> Result<Permit<'_, T>, Refusal> {
        // Acquire: pairs with the exchanges of other producers: the `freed` read below is at least
        // as new as the one that they used.
        let mut tail = self.tail(Acquire);
        loop {
            if tail.is_restricted() {
                if tail.is_closed() {
                    return Err(Refusal::Closed);
                }
                if tail.has_waiters() && !ignores_waiters {
                    return Err(Refusal::Full);
                }
            }
            // Acquire: pairs with `reload_freed`, and through it with the consumer's store: the
            // entries of freed blocks are clear.
            let seen = self.freed_cache.load(Acquire);
            // Negative: the tail is outdated, and the exchange will fail.
            let inside = ahead(tail.position(), seen);
            let room = tail.reach().min(capacity as Signed);
            let at = if inside < room { tail } else { self.reload_freed(tail, seen, capacity)? };
            // Acquire: as for the load. Release: the next producer knows at least this `freed`.
            match self.tail.compare_exchange_weak(tail.0, at.claimed().0, AcqRel, Acquire) {
                Ok(_) => {
                    if at.level() != tail.level() {
                        // SAFETY: this thread has the claim of the position.
                        unsafe { self.root(at).as_ref() }.begin_level(at);
                    }
                    return Ok(Permit { mailbox: self, at, wake: tail.is_idle() });
                }
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Reads `freed` itself: full, or the word to claim from, perhaps at a higher level.
    #[cold]
    fn reload_freed(&self, tail: Tail, seen: Word, capacity: usize) -> Result<Tail, Refusal> {
        // Acquire: pairs with the consumer's store.
        let freed = self.freed.load(Acquire);
        if freed != seen {
            // Release: passes on what was acquired. Relaxed on failure: another producer has
            // refreshed the copy, and the next load finds its value.
            let _ = self.freed_cache.compare_exchange(seen, freed, Release, Relaxed);
        }
        // `freed` is read after the tail: if this reports full, the mailbox was full when the tail
        // was read.
        if ahead(tail.position(), freed) >= capacity as Signed {
            return Err(Refusal::Full);
        }
        let raise = tail.is_beyond_level(freed);
        Ok(if raise { tail.raised() } else { tail })
    }

    /// The root of a claim's generation; it is allocated if it does not exist.
    #[inline]
    pub(super) fn root(&self, at: Tail) -> NonNull<Root<T>> {
        let root = &self.roots[at.generation()];
        // Acquire: pairs with the exchange that put it there.
        NonNull::new(root.load(Acquire)).unwrap_or_else(|| self.install_root(at))
    }

    #[cold]
    fn install_root(&self, at: Tail) -> NonNull<Root<T>> {
        let made = NonNull::from(Box::leak(Root::new()));
        let root = &self.roots[at.generation()];
        // Release: pairs with the loads of roots. Acquire: the loser uses the winner's root.
        match root.compare_exchange(ptr::null_mut(), made.as_ptr(), Release, Acquire) {
            Ok(_) => made,
            Err(there) => {
                // SAFETY: made from a box above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(made.as_ptr()) });
                NonNull::new(there).expect("the exchange failed since it is not null")
            }
        }
    }

    /// The block of a claim.
    ///
    /// # Safety
    ///
    /// The caller has the claim and has not used it.
    #[inline]
    unsafe fn claimed_block(&self, at: Tail) -> NonNull<Block<T>> {
        let root = self.root(at);
        // SAFETY: an unused claim keeps the root of its generation alive (rule 7).
        let root = unsafe { root.as_ref() };
        // SAFETY: by the caller's promise.
        unsafe { root.claimed_block(at) }
    }

    /// Takes the oldest value out of a mailbox that was full (rule 9).
    fn evict(&self) -> Pop<T> {
        let Some(_guard) = self.lock() else { return Pop::Retry };
        // The consumer may have been faster; then there is room.
        if self.len() < self.capacity() {
            return Pop::Empty;
        }
        // SAFETY: in an evicting mailbox the holder of the lock is the only consumer.
        unsafe { self.pop_one() }
    }
}

impl<T> Permit<'_, T> {
    /// Whether the consumer was idle, and the holder of this permit has to wake it.
    #[must_use]
    pub const fn wakes(&self) -> bool {
        self.wake
    }

    /// Writes the value.
    // Always: the value is then built in its slot, and not copied there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as measured")]
    pub fn write(self, value: T) -> Pushed {
        let permit = ManuallyDrop::new(self);
        if permit.at.has_inline_slot() {
            // SAFETY: the permit is the claim of the inline slot, and is consumed here.
            unsafe { permit.mailbox.inline_slot.put(value) };
            return Pushed { wake: permit.wake };
        }
        // SAFETY: the permit is the claim, and it is used here only.
        let block = unsafe { permit.mailbox.claimed_block(permit.at) };
        // SAFETY: an unused claim keeps its block alive (rule 5).
        let block = unsafe { block.as_ref() };
        // SAFETY: the permit is the claim, and is consumed here.
        unsafe { block.put(slot(permit.at.position()), value) };
        Pushed { wake: permit.wake }
    }

    /// Abandons the claim; the result says whether the caller still has to wake the consumer.
    pub fn cancel(self) -> Pushed {
        Pushed { wake: self.wake }
    }
}

impl<T> Drop for Permit<'_, T> {
    /// Marks the slot as abandoned; the consumer skips it.
    fn drop(&mut self) {
        if self.at.has_inline_slot() {
            self.mailbox.inline_slot.abandon();
            return;
        }
        // SAFETY: the permit is the claim, and it was not written.
        let block = unsafe { self.mailbox.claimed_block(self.at) };
        // SAFETY: an unused claim keeps its block alive (rule 5).
        let block = unsafe { block.as_ref() };
        block.abandon(slot(self.at.position()));
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("wakes", &self.wake).finish_non_exhaustive()
    }
}
