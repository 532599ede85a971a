//! The slots of one shard's jobs: a slab with stable addresses, in segments of doubling size.
//!
//! Segments of doubling size, so that elements never move, are from Dechev, Pirkelbauer and
//! Stroustrup ("Lock-free dynamically resizable arrays", 2006).
//!
//! # Who touches what
//!
//! The thread that holds the shard guard allocates and frees segments, and takes and returns slots.
//! A thread that has a handle to a slot may access its state and its link without the guard: a
//! segment is freed only when all its slots are free, and a slot with a handle is not free.
//!
//! The data of a slot belongs to the guard holder, except for a reserved slot, which belongs to the
//! remote scheduler that took it until that pushes its remote operation. The payload moves with the
//! job: it belongs to the guard holder while the job waits, to the poller while the job runs, and
//! to the delivery while the job is sent. Pollers and deliveries have moved it out of the slot.
#![expect(unsafe_code, reason = "threads share slots; each part has one owner at a time")]

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, ptr};

use clockjack_sync::{
    index_stack::{Links, NIL},
    prefetch::{self, prefetch},
    primitive::{
        self, UnsafeCell,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};
use clockjack_time::{Resolution, Tick, TickSpan, TimerId, TimerPriority};

use crate::{
    BatchMode,
    jobs::{spec::Grid, state::AtomicJobState, table::RESERVED_SLOTS},
};

/// The first segment has 2^FIRST_BITS slots; each further segment has twice as many.
const FIRST_BITS: u32 = match (cfg!(loom), primitive::IS_SMALL) {
    (true, _) => 2,
    (false, true) => 3,
    (false, false) => 6,
};
/// The most segments: enough for 2^30 slots, and on a microcontroller for 2^27.
const SEGMENTS: usize = if cfg!(loom) { 2 } else { 24 };

/// A condition of a job. Each belongs to one kind of repetition, so at most one applies: users
/// cannot mark jobs of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing.
    None,
    /// The clock has jumped, so the pending runs at a fixed rate are folded this time.
    ClockJump,
    /// A job with a fixed delay that has no timer now and needs one later: room is reserved for it.
    TimerReserved,
    /// A one-shot that is in the due list because it is marked to be run at the close.
    Marked,
    /// A one-shot of the runtime: it has a place of the reserve instead of a permit of the quota.
    Internal,
}

/// The data of a job, which only the owner of the slot reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct JobData {
    /// The timer, while it is in the wheel.
    pub(crate) timer: Option<TimerId>,
    /// When the job is due next; while a run is handed over, when that was due.
    pub(crate) due: Tick,
    pub(crate) scheduled_at: Tick,
    pub(crate) number: u64,
    /// In ticks, rounded up; zero for a one-shot.
    pub(crate) period: u32,
    /// Runs that are due and were not handed over yet.
    pub(crate) pending_runs: u32,
    pub(crate) class: TimerPriority,
    pub(crate) mode: BatchMode,
    pub(crate) folds: bool,
    pub(crate) notifies_cancel: bool,
    /// Whether it counts as a live job of the table.
    pub(crate) is_live: bool,
    /// Whether it is in the list of due jobs.
    pub(crate) is_listed: bool,
    pub(crate) condition: Condition,
    /// Whether a burst of missed runs was reported and the job has not caught up since.
    pub(crate) is_burst_reported: bool,
    /// When a run was last handed over; `Tick::MAX` if never.
    pub(crate) last_fire: Tick,
    /// `u32::MAX` for none.
    pub(crate) backlog_limit: u32,
    pub(crate) burst_threshold: u32,
    /// How much longer the rounded period is than the requested one.
    pub(crate) excess_ns: u32,
    /// How long before `due` the job would be due without the rounding up to a tick.
    pub(crate) phase_ns: u32,
}

impl JobData {
    /// How many due runs wait behind an earlier run of the job, which is running or comes next.
    pub(crate) const fn backlog(&self, is_running: bool) -> u32 {
        if is_running { self.pending_runs } else { self.pending_runs.saturating_sub(1) }
    }

    /// Whether it is a job of the runtime that uses the reserve.
    pub(crate) fn is_internal(&self) -> bool {
        self.condition == Condition::Internal
    }

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
        class: TimerPriority::Normal,
        mode: BatchMode::OneShot,
        folds: false,
        notifies_cancel: false,
        is_live: false,
        is_listed: false,
        condition: Condition::None,
        is_burst_reported: false,
    };

    /// The due times of the job at a fixed rate.
    #[inline]
    pub(crate) fn grid(&self, resolution: Resolution) -> Grid {
        let (period, excess_ns) = (self.period, self.excess_ns);
        Grid { period, excess_ns, tick_ns: resolution.nanos().get() }
    }
}

/// The length of a cache line.
const LINE: usize = 64;

/// How many free slots ahead of the one that is taken the memory is prefetched: slots are freed in
/// random order.
const PREFETCH_AHEAD: usize = 4;

/// Aligns the struct that contains it to a cache line.
#[derive(Default)]
#[repr(align(64))]
struct CacheLine;

/// The alignment of a slot, on a microcontroller or elsewhere.
trait Alignment {
    type Marker: Default;
}

struct Target<const IS_SMALL: bool>;

impl Alignment for Target<false> {
    type Marker = CacheLine;
}

/// Microcontrollers have no cache lines, and memory is scarce.
impl Alignment for Target<true> {
    type Marker = ();
}

/// A slot starts at a cache line, if there are any: a job with a closure fits in two of them.
#[repr(C)]
pub(crate) struct JobSlot<P> {
    _align: <Target<{ primitive::IS_SMALL }> as Alignment>::Marker,
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
    /// The caller owns the data: it holds the guard, or took the reserved slot and has not pushed
    /// its remote operation. It must not nest two calls for the same slot.
    pub(crate) unsafe fn data<R>(&self, f: impl FnOnce(&mut JobData) -> R) -> R {
        self.data.with_mut(|data| {
            // SAFETY: the caller owns the data, and calls do not nest.
            f(unsafe { &mut *data })
        })
    }

    /// Reads or changes the payload.
    ///
    /// # Safety
    /// The caller owns the payload, see the [module](self), and must not nest two calls for the
    /// same slot.
    pub(crate) unsafe fn payload<R>(&self, f: impl FnOnce(&mut Option<P>) -> R) -> R {
        self.payload.with_mut(|payload| {
            // SAFETY: the caller owns the payload, and calls do not nest.
            f(unsafe { &mut *payload })
        })
    }
}

/// The slots of one shard.
pub(crate) struct JobSlots<P> {
    segments: [AtomicPtr<JobSlot<P>>; SEGMENTS],
}

// SAFETY: states and links are made for sharing. By the rules of the module, data and payload have
// one owner at a time. A thread becomes the owner by the guard, by an exchange of the job state or
// by the stack of remote operations, all of which acquire and release. Payloads move between
// threads, so `P: Send` is needed. It is also enough, because no two threads access a payload at
// the same time.
unsafe impl<P: Send> Sync for JobSlots<P> {}
// SAFETY: as above; the segments and the payloads in them are owned.
unsafe impl<P: Send> Send for JobSlots<P> {}

const fn segment_len(segment: usize) -> usize {
    1 << (FIRST_BITS as usize + segment)
}

/// The segment of a slot and its index there. Slot numbers are less than 2^30.
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

    /// A slot of which the caller has a handle, or that it owns by the guard or as a reserved slot.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u32) -> &JobSlot<P> {
        let (segment, place) = locate(slot);
        // Acquire: pairs with the store in `grow`. A caller without the guard learned of the slot
        // by an operation that came after that store, so Relaxed would do, but loom needs Acquire.
        let slots = self.segments[segment].load(Ordering::Acquire);
        assert!(!slots.is_null(), "a slot in use is in an allocated segment");
        // SAFETY: the segment has 2^(FIRST_BITS + segment) slots and `place` is less, by `locate`.
        let slot = unsafe { slots.add(place) };
        // SAFETY: the segment is freed only when all its slots are free, and this one is in use.
        // Only the cells and atomics in a slot are written to.
        unsafe { &*slot }
    }

    /// A hint that a slot is used soon. Any number is allowed.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: u32) {
        if !prefetch::IS_SUPPORTED {
            return;
        }
        let (segment, place) = locate(slot);
        // Relaxed: nothing is read there.
        let slots = self.segments[segment].load(Ordering::Relaxed);
        let slot = slots.wrapping_add(place).cast::<CacheLine>();
        prefetch(slot);
        prefetch(slot.wrapping_byte_add(LINE));
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
    /// All its slots are free, and the caller holds the guard or has exclusive access.
    unsafe fn free(&self, segment: usize) {
        // Relaxed: no other thread uses this segment.
        let slots = self.segments[segment].swap(ptr::null_mut(), Ordering::Relaxed);
        if slots.is_null() {
            return;
        }
        let slots = ptr::slice_from_raw_parts_mut(slots, segment_len(segment));
        // SAFETY: the pointer came from `Box::into_raw` of a slice of this length in `grow`, the
        // swap removed it from the table, and no thread uses a slot of it.
        drop(unsafe { Box::from_raw(slots) });
    }
}

impl<P> Links for JobSlots<P> {
    fn set_next(&self, index: u32, next: u32) {
        // Relaxed: the push, which stores the head of the stack, publishes it.
        self.get(index).link.store(next, Ordering::Relaxed);
    }

    fn next(&self, index: u32) -> u32 {
        // Relaxed: the drain has acquired the head.
        self.get(index).link.load(Ordering::Relaxed)
    }
}

impl<P> Drop for JobSlots<P> {
    fn drop(&mut self) {
        for segment in 0..SEGMENTS {
            // SAFETY: `&mut self` is exclusive. Remaining payloads are dropped with their slots.
            unsafe { self.free(segment) };
        }
    }
}

impl<P> fmt::Debug for JobSlots<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSlots").finish_non_exhaustive()
    }
}

/// The free list: one stack of slot numbers per segment. Only the guard holder uses it. The numbers
/// are not linked through the slots, so that taking a cold slot does not read its memory.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    /// The free slots of each segment.
    stacks: [Vec<u32>; SEGMENTS],
    /// A bit per segment that has a free slot.
    nonempty: u32,
    /// How many segments there are.
    n_segments: usize,
    /// The most slots there may be.
    slots_max: u32,
    /// Segments below this number are never freed.
    n_kept: usize,
    /// Since when the last segment has been empty.
    empty_since: Option<Tick>,
    /// Whether a segment was freed since `clear_shrunk`.
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

    /// Allocates at least `n` slots at once, and never frees them.
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
        // The lowest number is on top.
        self.stacks[segment] = (first_of(segment)..end).rev().collect();
        self.nonempty |= 1 << segment;
        self.n_segments += 1;
        self.empty_since = None;
    }

    /// Takes a free slot, whose state is cleared. Called by the guard holder.
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
        if let Some(soon) = stack.len().checked_sub(PREFETCH_AHEAD) {
            slots.prefetch(stack[soon]);
        } else if stack.is_empty() {
            self.nonempty &= !(1 << segment);
        }
        slot
    }

    /// Returns a slot without handles. Called by the guard holder.
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

    /// Frees the last segment if it has been empty for `retention` ticks and at least half of the
    /// one before is free, so that a load that goes up and down does not allocate each time.
    /// Returns when to try again, if ever.
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
            // SAFETY: no slot of the segment is in use, and the caller holds the guard.
            unsafe { slots.free(last) };
        }
        self.empty_since = None;
        None
    }

    /// Every slot that may be in use. The caller must free no segment while it iterates.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.end()
    }

    /// One more than the last slot that may be in use. Freeing a segment lowers it.
    pub(crate) fn end(&self) -> u32 {
        first_of(self.n_segments).min(self.slots_max)
    }

    /// Whether a segment was freed: there were many jobs, and few are left.
    pub(crate) fn has_shrunk(&self) -> bool {
        self.has_shrunk
    }

    pub(crate) fn clear_shrunk(&mut self) {
        self.has_shrunk = false;
    }

    /// Whether the last segment has so few used slots that all of them may be reserved ones.
    pub(crate) fn is_sparse(&self) -> bool {
        let last = self.n_segments.saturating_sub(1);
        self.n_segments > self.n_kept && (1..=RESERVED_SLOTS as usize).contains(&self.used_of(last))
    }

    /// Whether a reserved slot may be what keeps its segment alive, while a lower segment has a
    /// free slot.
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
