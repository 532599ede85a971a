//! The worker that a shard is assigned to, as one word, and the shards of a worker.

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// The worker that must poll a shard.
///
/// ```text
///   bits    31..1    0
///           worker   1 = local, 0 = extra          all ones: unassigned
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// No worker: the shard is in the reassignment queue.
    Unassigned,
    /// The worker that got the shard when it attached.
    Local(u32),
    /// A worker that has another local shard.
    Extra(u32),
}

const UNASSIGNED: u32 = u32::MAX;

impl Assignment {
    const fn encode(self) -> u32 {
        match self {
            Self::Unassigned => UNASSIGNED,
            Self::Local(worker) => (worker << 1) | 1,
            Self::Extra(worker) => worker << 1,
        }
    }

    const fn decode(word: u32) -> Self {
        match word {
            UNASSIGNED => Self::Unassigned,
            local_shard if local_shard & 1 == 1 => Self::Local(local_shard >> 1),
            extra => Self::Extra(extra >> 1),
        }
    }

    /// The worker that the shard is assigned to.
    pub(super) const fn worker(self) -> Option<u32> {
        match self {
            Self::Unassigned => None,
            Self::Local(worker) | Self::Extra(worker) => Some(worker),
        }
    }
}

/// The assignment of one shard.
pub(super) struct AtomicAssignment(AtomicU32);

impl AtomicAssignment {
    pub(super) fn new(assignment: Assignment) -> Self {
        Self(AtomicU32::new(assignment.encode()))
    }

    #[inline]
    pub(super) fn load(&self) -> Assignment {
        // Acquire: pairs with the exchange, so that the caller sees what the exchanging thread did
        // before.
        Assignment::decode(self.0.load(Ordering::Acquire))
    }

    /// Rule 1: succeeds for one of the threads that try at the same time.
    pub(super) fn change(&self, from: Assignment, to: Assignment) -> bool {
        // AcqRel pairs with itself and with `load`. Relaxed on failure: nothing follows from it.
        let exchanged = self.0.compare_exchange(
            from.encode(),
            to.encode(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        exchanged.is_ok()
    }
}

/// `local_shard` of a worker that has none.
const NO_SHARD: u32 = u32::MAX;

/// The shards of a worker.
pub(super) struct WorkerShards(Padded<WorkerShardsInner>);

struct WorkerShardsInner {
    local_shard: AtomicU32,
    extra_shards: AtomicU32,
    is_active: AtomicBool,
}

impl WorkerShards {
    pub(super) fn new() -> Self {
        Self(Padded(WorkerShardsInner {
            local_shard: AtomicU32::new(NO_SHARD),
            extra_shards: AtomicU32::new(0),
            is_active: AtomicBool::new(false),
        }))
    }

    /// Makes the worker active or inactive, and returns whether it was active.
    pub(super) fn set_active(&self, is_active: bool) -> bool {
        // AcqRel: orders one worker of this index after the previous one. Rule 4 has its own fence.
        self.0.is_active.swap(is_active, Ordering::AcqRel)
    }

    pub(super) fn is_active(&self) -> bool {
        // Acquire pairs with the swap.
        self.0.is_active.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn local_shard(&self) -> Option<u32> {
        // Acquire pairs with the release in `set_local_shard`.
        let local_shard = self.0.local_shard.load(Ordering::Acquire);
        (local_shard != NO_SHARD).then_some(local_shard)
    }

    /// By the worker itself.
    pub(super) fn set_local_shard(&self, local_shard: Option<u32>) {
        // Release pairs with the acquire in `local_shard`.
        self.0.local_shard.store(local_shard.unwrap_or(NO_SHARD), Ordering::Release);
    }

    /// Whether shards other than the local one may be assigned to the worker (rule 5).
    #[inline]
    pub(super) fn has_extra_shards(&self) -> bool {
        // Acquire pairs with the read-modify-writes below.
        self.0.extra_shards.load(Ordering::Acquire) != 0
    }

    /// Called before a shard becomes an extra shard of this worker.
    pub(super) fn add_extra_shard(&self) {
        // AcqRel: counted before the assignment changes.
        self.0.extra_shards.fetch_add(1, Ordering::AcqRel);
    }

    /// Called after a shard has ceased to be an extra shard of this worker, or did not become one.
    pub(super) fn remove_extra_shard(&self) {
        // AcqRel: counted after the assignment changed.
        let before = self.0.extra_shards.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "more extra shards were removed than added");
    }
}
