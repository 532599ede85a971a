//! The producers' side: claims and what becomes of them, rules 1 to 4, 9 and 11 of the
//! [protocol](super).
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
    mutant,
    primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
    push_error::{PushError, Refusal},
};

/// How often an evicting push makes room before it says full: somebody else took it each time.
const EVICTIONS_MAX: usize = 16;

/// What a push that was accepted has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the consumer sleeps for ever if nobody wakes it"]
pub struct Pushed {
    /// Whether the consumer was idle, and it is this caller who has to wake it.
    pub wake: bool,
}

/// What [`Mailbox::reserve_for_waiters`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "only if it is barred there is something to wait for"]
pub enum WaiterReservation {
    /// The box was full, and room goes to those who wait from here on.
    Reserved,
    /// There is room, and nobody waits: push.
    HasRoom,
    /// The box is closed.
    Closed,
}

/// Room for one value that nobody else can take.
///
/// What others push later is behind it: the consumer is busy until the permit is written or
/// dropped. Dropping gives the room back when the consumer comes by.
///
/// The duty to wake the consumer comes with the permit. Whoever lets one go that
/// [`wakes`](Self::wakes) must wake the consumer, even if nothing was written: others rely on it.
#[must_use = "what is pushed later waits for the permit"]
pub struct Permit<'a, T> {
    mailbox: &'a Mailbox<T>,
    at: Tail,
    wake: bool,
}

impl<T> Mailbox<T> {
    /// Appends a value.
    ///
    /// One compare-exchange, repeated when another push or a close was faster; it never waits for
    /// others.
    ///
    /// # Errors
    ///
    /// The value comes back if the box is closed or full.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as measured")]
    pub fn push(&self, value: T) -> Result<Pushed, PushError<T>> {
        match self.try_claim() {
            Ok(permit) => Ok(permit.write(value)),
            Err(refusal) => Err(PushError::new(value, refusal)),
        }
    }

    /// Reserves room for a value that is made afterwards.
    ///
    /// # Errors
    ///
    /// If the box is closed or full.
    #[inline]
    pub fn claim(&self) -> Result<Permit<'_, T>, PushError<()>> {
        self.try_claim().map_err(|refusal| PushError::new((), refusal))
    }

    /// Appends a value, and if the box is full takes the oldest out for it, which is handed to
    /// `evicted`. Only for boxes made by [`evicting`](Self::evicting).
    ///
    /// # Errors
    ///
    /// The value comes back if the box is closed; or full, if others are at its oldest value or
    /// take the room that was made: this push may then have evicted something all the same.
    ///
    /// # Panics
    ///
    /// If the box does not evict; or what `evicted` panics with.
    pub fn push_or_evict(
        &self,
        value: T,
        mut evicted: impl FnMut(T),
    ) -> Result<Pushed, PushError<T>> {
        assert!(self.is_evicting(), "the box was not made to evict");
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

    /// Keeps room that will be free from everybody but the consumer, for those who wait for it
    /// elsewhere (rule 10), unless there is room now or never will be.
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
            // AcqRel: pairs with the claims in both directions: what comes later is refused.
            match self.tail.compare_exchange(tail.0, tail.with_waiters().0, AcqRel, Acquire) {
                Ok(_) => return WaiterReservation::Reserved,
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Ends what [`bar`](Self::reserve_for_waiters) has begun: nobody waits any more.
    pub fn release_reservation(&self) {
        // Release: who claims afterwards comes behind those who waited.
        self.tail.fetch_and(!Tail(0).with_waiters().0, AcqRel);
    }

    /// Reserves room as [`claim`](Self::claim) does, in spite of a [`bar`](Self::reserve_for_waiters): for one of
    /// those who wait. For the consumer, so that they are let in in order; the duty to wake it is
    /// its own.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    pub fn claim_for_waiter(&self) -> Result<Permit<'_, T>, PushError<()>> {
        self.try_claim_as(true).map_err(|refusal| PushError::new((), refusal))
    }

    /// Claims the next position (rule 1).
    #[inline]
    fn try_claim(&self) -> Result<Permit<'_, T>, Refusal> {
        self.try_claim_as(false)
    }

    /// As [`try_claim`](Self::try_claim); `waits` if it is for one of those who wait for room.
    #[inline]
    fn try_claim_as(&self, waits: bool) -> Result<Permit<'_, T>, Refusal> {
        // Acquire: pairs with the exchanges of others, so that what they knew of `freed` is the
        // least that is known here.
        let mut tail = self.tail(Acquire);
        let mut is_first = true;
        loop {
            if tail.is_restricted() {
                if tail.is_closed() && (is_first || !mutant!("mail-closed-not-rechecked")) {
                    return Err(Refusal::Closed);
                }
                if tail.has_waiters() && !waits && !mutant!("mail-bar-ignored") {
                    return Err(Refusal::Full);
                }
            }
            // Acquire: pairs with `reload_freed`, and by it with the consumer's store: the entries of
            // what was freed are clear.
            let seen = self.freed_cache.load(Acquire);
            // Negative: the tail was read too long ago, and the exchange will fail.
            let inside = ahead(tail.position(), seen);
            let room = tail.reach().min(self.capacity() as Signed);
            let at = if inside < room { tail } else { self.reload_freed(tail, seen)? };
            is_first = false;
            // AcqRel: as for the load; and what is known here goes to the next.
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

    /// Looks at `freed` itself: full, or the word to claim from, perhaps at a higher level.
    #[cold]
    fn reload_freed(&self, tail: Tail, seen: Word) -> Result<Tail, Refusal> {
        // Acquire: pairs with the consumer's store.
        let freed = self.freed.load(Acquire);
        if freed != seen {
            // Release: hands on what was acquired. Relaxed on failure: another was here, and the
            // next look finds what it left.
            let _ = self.freed_cache.compare_exchange(seen, freed, Release, Relaxed);
        }
        // `freed` is read after the tail: if this says full, it was so when the tail was read.
        if ahead(tail.position(), freed) >= self.capacity() as Signed {
            return Err(Refusal::Full);
        }
        let raise = tail.is_beyond_level(freed) && !mutant!("mail-level-kept");
        Ok(if raise { tail.raised() } else { tail })
    }

    /// The root of a claim's generation, which is made if it is not there.
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
        // Release: pairs with the loads of roots. Acquire: who loses uses the winner's.
        match root.compare_exchange(ptr::null_mut(), made.as_ptr(), Release, Acquire) {
            Ok(_) => made,
            Err(there) => {
                // SAFETY: made from a box above, and seen by nobody.
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
        // SAFETY: an unused claim keeps the root of its generation (rule 7).
        let root = unsafe { root.as_ref() };
        // SAFETY: by the caller's promise.
        unsafe { root.claimed_block(at) }
    }

    /// Takes the oldest value out of a box that was full (rule 9).
    fn evict(&self) -> Pop<T> {
        if mutant!("mail-evict-unlocked") {
            // SAFETY: none, that is the fault.
            return unsafe { self.pop_one() };
        }
        let Some(_guard) = self.lock() else { return Pop::Retry };
        // The consumer may have been faster, and then there is room.
        if self.len() < self.capacity() {
            return Pop::Empty;
        }
        // SAFETY: in an evicting box the lock makes the only consumer.
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
    // Always: the value is then made where it will stand, and not copied there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "saves a copy of the value, as measured")]
    pub fn write(self, value: T) -> Pushed {
        let permit = ManuallyDrop::new(self);
        if permit.at.has_inline_slot() {
            // SAFETY: the permit is the claim of the tray, and is gone afterwards.
            unsafe { permit.mailbox.inline_slot.put(value) };
            return Pushed { wake: permit.wake };
        }
        // SAFETY: the permit is the claim, and it is used here only.
        let block = unsafe { permit.mailbox.claimed_block(permit.at) };
        // SAFETY: an unused claim keeps its block (rule 5).
        let block = unsafe { block.as_ref() };
        // SAFETY: the permit is the claim, and is gone afterwards.
        unsafe { block.put(slot(permit.at.position()), value) };
        Pushed { wake: permit.wake }
    }

    /// Gives the room back, and tells the duty that remains.
    pub fn cancel(self) -> Pushed {
        Pushed { wake: self.wake }
    }
}

impl<T> Drop for Permit<'_, T> {
    /// Leaves a mark that the consumer passes over.
    fn drop(&mut self) {
        if mutant!("mail-permit-forgotten") {
            return;
        }
        if self.at.has_inline_slot() {
            self.mailbox.inline_slot.abandon();
            return;
        }
        // SAFETY: the permit is the claim, and it was not written.
        let block = unsafe { self.mailbox.claimed_block(self.at) };
        // SAFETY: an unused claim keeps its block (rule 5).
        let block = unsafe { block.as_ref() };
        block.abandon(slot(self.at.position()));
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("wakes", &self.wake).finish_non_exhaustive()
    }
}
