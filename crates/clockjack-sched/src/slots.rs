//! Where jobs live: slots that stay where they are, in segments of doubling size.
//!
//! # Who touches what
//!
//! The *holder* of the shard's guard makes and frees segments, takes and gives slots. Everybody who
//! has a pin on a slot may reach its word and its link, without the guard: a segment is freed only
//! when all its slots are free, and a pinned slot is not. The data belongs to the holder, but for a
//! slot out of the stock, which is its poster's until the note is pushed. The payload goes with the
//! job: it is the holder's while the job waits, and the runner's while it runs, or its delivery's
//! while it is sent; both have moved it out of the slot.
#![expect(unsafe_code, reason = "slots are shared, their parts have one owner at a time")]

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, ptr};

use clockjack_sync::{
    prim::{
        self, UnsafeCell,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
    return_stack::{Links, NIL},
};
use clockjack_time::{Class, Resolution, Tick, TickSpan, TimerId};

use crate::{BatchMode, job::Grid, state::AtomicJobState, table::RESERVED_SLOTS};

/// JobSlots of the first segment; each further one has twice as many as the one before it.
const FIRST_BITS: u32 = match (cfg!(loom), prim::IS_SMALL) {
    (true, _) => 2,
    (false, true) => 3,
    (false, false) => 6,
};
/// Segments there may be: enough for 2^30 slots, and on a microcontroller for 2^27.
const SEGMENTS: usize = if cfg!(loom) { 2 } else { 24 };

/// What is so with a job for the time being. Each is of one way to repeat, so there is one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing.
    None,
    /// The clock has jumped, so the runs of its fixed rate are folded this time.
    ClockJump,
    /// It has no timer and will want one again after its fixed delay: a place is kept for it.
    TimerReserved,
}

/// What only the owner of a slot reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct JobData {
    /// Its timer, while it is in the wheel.
    pub(crate) timer: Option<TimerId>,
    /// When it is due next; while it is handed over, when it was due.
    pub(crate) due: Tick,
    pub(crate) scheduled_at: Tick,
    pub(crate) number: u64,
    /// In ticks, rounded up; zero for a one-shot.
    pub(crate) period: u32,
    /// Runs that are due and not handed over.
    pub(crate) pending_runs: u32,
    pub(crate) class: Class,
    pub(crate) mode: BatchMode,
    pub(crate) folds: bool,
    pub(crate) notifies_cancel: bool,
    /// Whether it counts as a job of the table.
    pub(crate) is_live: bool,
    /// Whether it is in the list of those that are due.
    pub(crate) is_listed: bool,
    pub(crate) condition: Condition,
    /// Whether it was told that many of its runs were missed, and it has not caught up since.
    pub(crate) is_burst_reported: bool,
    /// When it was handed over last; the end of time if never.
    pub(crate) last_fire: Tick,
    /// `u32::MAX` for none.
    pub(crate) backlog_limit: u32,
    pub(crate) burst_threshold: u32,
    /// By how much the period is shorter than its ticks.
    pub(crate) excess_ns: u32,
    /// How long before `due` it would be due, if that were not rounded up to a tick.
    pub(crate) phase_ns: u32,
}

impl JobData {
    pub(crate) const EMPTY: Self = Self {
        timer: None,
        due: Tick::ZERO,
        scheduled_at: Tick::ZERO,
        last_fire: Tick::MAX,
        number: 0,
        period: 0,
        excess_ns: 0,
        phase_ns: 0,
        pending_runs: 0,
        backlog_limit: u32::MAX,
        burst_threshold: 0,
        class: Class::Normal,
        mode: BatchMode::OneShot,
        folds: false,
        notifies_cancel: false,
        is_live: false,
        is_listed: false,
        condition: Condition::None,
        is_burst_reported: false,
    };

    /// The due times of a job at a fixed rate.
    #[inline]
    pub(crate) fn grid(&self, resolution: Resolution) -> Grid {
        let (period, excess_ns) = (self.period, self.excess_ns);
        Grid { period, excess_ns, tick_ns: resolution.nanos().get() }
    }
}

/// What has this begins with a cache line.
#[derive(Default)]
#[repr(align(64))]
struct CacheLine;

/// With what a slot begins, on a microcontroller or elsewhere.
trait Alignment {
    type Marker: Default;
}

struct Target<const IS_SMALL: bool>;

impl Alignment for Target<false> {
    type Marker = CacheLine;
}

/// There are no cache lines, and room counts.
impl Alignment for Target<true> {
    type Marker = ();
}

/// A slot begins with a cache line, if there are any: what a job of a closure needs is two of them.
#[repr(C)]
pub(crate) struct JobSlot<P> {
    _align: <Target<{ prim::IS_SMALL }> as Alignment>::Marker,
    pub(crate) state: AtomicJobState,
    link: AtomicU32,
    data: UnsafeCell<JobData>,
    payload: UnsafeCell<Option<P>>,
}

impl<P> JobSlot<P> {
    fn new() -> Self {
        Self {
            _align: Default::default(),
            state: AtomicJobState::new(),
            link: AtomicU32::new(NIL),
            data: UnsafeCell::new(JobData::EMPTY),
            payload: UnsafeCell::new(None),
        }
    }

    /// Reads or changes the data.
    ///
    /// # Safety
    /// The caller owns the data: it holds the guard, or took the slot out of the stock and has not
    /// pushed its note; and it is not in another call of this for the same slot.
    pub(crate) unsafe fn data<R>(&self, f: impl FnOnce(&mut JobData) -> R) -> R {
        self.data.with_mut(|data| {
            // SAFETY: the caller owns it, and there is one call at a time.
            f(unsafe { &mut *data })
        })
    }

    /// Reads or changes the payload.
    ///
    /// # Safety
    /// The caller owns the payload: see the [module](self); and it is not in another call of this
    /// for the same slot.
    pub(crate) unsafe fn payload<R>(&self, f: impl FnOnce(&mut Option<P>) -> R) -> R {
        self.payload.with_mut(|payload| {
            // SAFETY: the caller owns it, and there is one call at a time.
            f(unsafe { &mut *payload })
        })
    }
}

/// The slots of one shard.
pub(crate) struct JobSlots<P> {
    segments: [AtomicPtr<JobSlot<P>>; SEGMENTS],
}

// SAFETY: words and links are made for sharing. Bodies and payloads have one owner at a time, by
// the rules of the module; who becomes the owner does so by the guard, by an exchange of the word
// or by the stack of notes, all of which acquire and release. Payloads move between threads, so `P:
// Send` is needed, and enough: no two threads see one at a time.
unsafe impl<P: Send> Sync for JobSlots<P> {}
// SAFETY: as above: the segments are owned, and so are the payloads in them.
unsafe impl<P: Send> Send for JobSlots<P> {}

const fn segment_len(segment: usize) -> usize {
    1 << (FIRST_BITS as usize + segment)
}

/// The segment of a slot, and its place there. JobSlots are less than 2^30.
#[inline(always)]
const fn locate(slot: u32) -> (usize, usize) {
    let shifted = slot + (1 << FIRST_BITS);
    let segment = shifted.ilog2() - FIRST_BITS;
    (segment as usize, (shifted - (1 << (segment + FIRST_BITS))) as usize)
}

/// The number of the first slot of a segment.
const fn first_of(segment: usize) -> u32 {
    (1 << (segment + FIRST_BITS as usize)) - (1 << FIRST_BITS)
}

impl<P> JobSlots<P> {
    pub(crate) fn new() -> Self {
        Self { segments: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }

    /// A slot that the caller has a pin on, or that is the caller's by the guard or the stock.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u32) -> &JobSlot<P> {
        let (segment, place) = locate(slot);
        // Acquire: pairs with the store in `grow`; a caller without the guard has heard of the slot
        // by something that came after that, so Relaxed would do, but for loom's books.
        let slots = self.segments[segment].load(Ordering::Acquire);
        assert!(!slots.is_null(), "a slot is pinned, so its segment is there");
        // SAFETY: the segment has 2^(FIRST_BITS + segment) slots and `place` is less, by `locate`.
        let slot = unsafe { slots.add(place) };
        // SAFETY: the segment is freed only when all its slots are free, and this one is not. Of
        // its parts only cells are written to.
        unsafe { &*slot }
    }

    fn grow(&self, segment: usize) {
        let slots: Box<[JobSlot<P>]> = (0..segment_len(segment)).map(|_| JobSlot::new()).collect();
        let slots = Box::into_raw(slots).cast::<JobSlot<P>>();
        // Release: pairs with the load in `get`.
        self.segments[segment].store(slots, Ordering::Release);
    }

    /// Frees a segment.
    ///
    /// # Safety
    /// All its slots are free, and the caller holds the guard or is the only one.
    unsafe fn free(&self, segment: usize) {
        // Relaxed: nobody else has anything to do with this segment.
        let slots = self.segments[segment].swap(ptr::null_mut(), Ordering::Relaxed);
        if slots.is_null() {
            return;
        }
        let slots = ptr::slice_from_raw_parts_mut(slots, segment_len(segment));
        // SAFETY: it came from `Box::into_raw` of a slice of this length in `grow`, is taken out of
        // the table by the swap, and nobody has a slot of it.
        drop(unsafe { Box::from_raw(slots) });
    }
}

impl<P> Links for JobSlots<P> {
    fn set_next(&self, index: u32, next: u32) {
        // Relaxed: the head of the stack publishes it.
        self.get(index).link.store(next, Ordering::Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        // Relaxed: the drain has acquired it.
        self.get(index).link.load(Ordering::Relaxed)
    }
}

impl<P> Drop for JobSlots<P> {
    fn drop(&mut self) {
        for segment in 0..SEGMENTS {
            // SAFETY: `&mut self`: nobody else is there. Payloads that are left are dropped with
            // their slots.
            unsafe { self.free(segment) };
        }
    }
}

impl<P> fmt::Debug for JobSlots<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSlots").finish_non_exhaustive()
    }
}

/// Which slots are free: the holder's. They stand in stacks of their own, so that a slot that was
/// not used for long is written and not read when it is taken.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    /// The free slots of each segment.
    stacks: [Vec<u32>; SEGMENTS],
    /// A bit for each segment that has a free slot.
    nonempty: u32,
    /// How many segments there are.
    n_segments: usize,
    /// How many slots there may be.
    slots_max: u32,
    /// Segments below this one are kept for good.
    n_kept: usize,
    /// Since when the last segment was seen to be empty.
    empty_since: Option<Tick>,
    /// Whether a segment was freed since this was asked last.
    has_shrunk: bool,
}

impl FreeSlots {
    pub(crate) fn new(slots_max: u32) -> Self {
        Self {
            stacks: [const { Vec::new() }; SEGMENTS],
            nonempty: 0,
            n_segments: 0,
            slots_max,
            n_kept: 1,
            empty_since: None,
            has_shrunk: false,
        }
    }

    /// Makes room for so many slots at once, which is kept for good.
    pub(crate) fn reserve<P>(&mut self, slots: &JobSlots<P>, n: u32) {
        while self.n_segments < SEGMENTS && first_of(self.n_segments) < n {
            self.add_segment(slots);
        }
        self.n_kept = self.n_segments;
    }

    #[cold]
    fn add_segment<P>(&mut self, slots: &JobSlots<P>) {
        let segment = self.n_segments;
        slots.grow(segment);
        let end = first_of(segment + 1).min(self.slots_max);
        // The lowest on top.
        self.stacks[segment] = (first_of(segment)..end).rev().collect();
        self.nonempty |= 1 << segment;
        self.n_segments += 1;
        self.empty_since = None;
    }

    /// A free slot, with a cleared word. By the holder.
    #[inline(always)]
    pub(crate) fn take<P>(&mut self, slots: &JobSlots<P>) -> Option<u32> {
        if self.nonempty == 0 {
            if self.n_segments == SEGMENTS || first_of(self.n_segments) >= self.slots_max {
                return None;
            }
            self.add_segment(slots);
        }
        let segment = self.nonempty.trailing_zeros() as usize;
        let stack = &mut self.stacks[segment];
        let slot = stack.pop();
        if stack.is_empty() {
            self.nonempty &= !(1 << segment);
        }
        slot
    }

    /// Gives a slot back that nobody pins. By the holder.
    #[inline(always)]
    pub(crate) fn give<P>(&mut self, slots: &JobSlots<P>, slot: u32) {
        let (segment, _) = locate(slot);
        slots.get(slot).state.clear();
        self.stacks[segment].push(slot);
        self.nonempty |= 1 << segment;
    }

    /// How many slots of a segment are in use.
    fn used_of(&self, segment: usize) -> usize {
        let end = first_of(segment + 1).min(self.slots_max);
        (end - first_of(segment)) as usize - self.stacks[segment].len()
    }

    /// Frees the last segment if it was empty for `retention` ticks, and so is half of the one
    /// before: a load that goes up and down does not allocate each time. When to look again, if
    /// ever.
    pub(crate) fn shrink<P>(
        &mut self,
        slots: &JobSlots<P>,
        now: Tick,
        retention: u64,
    ) -> Option<Tick> {
        while self.n_segments > self.n_kept {
            let last = self.n_segments - 1;
            let is_busy = self.used_of(last - 1) > segment_len(last - 1) / 2;
            if self.used_of(last) != 0 || is_busy {
                break;
            }
            let since = *self.empty_since.get_or_insert(now);
            if now.saturating_since(since).get() < retention {
                return Some(since.saturating_add(TickSpan::new(retention)));
            }
            self.nonempty &= !(1 << last);
            self.stacks[last] = Vec::new();
            self.n_segments = last;
            self.has_shrunk = true;
            // SAFETY: no slot of it is in use, and the caller holds the guard.
            unsafe { slots.free(last) };
        }
        self.empty_since = None;
        None
    }

    /// Every slot that may be in use, for who frees none meanwhile.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.end()
    }

    /// The slot behind the last that may be in use. It comes nearer when segments are freed.
    pub(crate) fn end(&self) -> u32 {
        first_of(self.n_segments).min(self.slots_max)
    }

    /// Whether many jobs have lived, and few are left.
    pub(crate) fn has_shrunk(&self) -> bool {
        self.has_shrunk
    }

    pub(crate) fn clear_shrunk(&mut self) {
        self.has_shrunk = false;
    }

    /// Whether the last segment is kept for so few slots that it may be the stock that keeps it.
    pub(crate) fn is_sparse(&self) -> bool {
        let last = self.n_segments.saturating_sub(1);
        self.n_segments > self.n_kept && (1..=RESERVED_SLOTS as usize).contains(&self.used_of(last))
    }

    /// Whether a slot in stock keeps a segment in which there is little else, while there is a free
    /// one below that.
    pub(crate) fn should_replace(&self, slot: u32) -> bool {
        let (segment, _) = locate(slot);
        let is_low = (self.nonempty.trailing_zeros() as usize) < segment;
        is_low && self.used_of(segment) <= RESERVED_SLOTS as usize
    }

    /// How many slots are in use.
    pub(crate) fn used(&self) -> usize {
        (0..self.n_segments).map(|segment| self.used_of(segment)).sum()
    }
}
