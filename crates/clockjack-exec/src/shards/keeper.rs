//! Who keeps a shard, as one word, and what a seat knows of its shards.

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// Whose duty a shard is.
///
/// ```text
///   bits    31..1   0
///           seat    1 = home, 0 = extra          all ones: orphan
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeper {
    /// Nobody's: it waits in the merge queue.
    Orphan,
    /// Of the seat that attached with it.
    Home(u32),
    /// Of a seat that has another home.
    Extra(u32),
}

const ORPHAN: u32 = u32::MAX;

impl Keeper {
    const fn encode(self) -> u32 {
        match self {
            Self::Orphan => ORPHAN,
            Self::Home(seat) => (seat << 1) | 1,
            Self::Extra(seat) => seat << 1,
        }
    }

    const fn decode(word: u32) -> Self {
        match word {
            ORPHAN => Self::Orphan,
            home if home & 1 == 1 => Self::Home(home >> 1),
            extra => Self::Extra(extra >> 1),
        }
    }

    /// The seat that keeps it.
    pub(super) const fn seat(self) -> Option<u32> {
        match self {
            Self::Orphan => None,
            Self::Home(seat) | Self::Extra(seat) => Some(seat),
        }
    }
}

/// The keeper of one shard.
pub(super) struct KeeperWord(AtomicU32);

impl KeeperWord {
    pub(super) fn new(keeper: Keeper) -> Self {
        Self(AtomicU32::new(keeper.encode()))
    }

    #[inline]
    pub(super) fn load(&self) -> Keeper {
        // Acquire pairs with the exchange: what the keeper was told before it is seen.
        Keeper::decode(self.0.load(Ordering::Acquire))
    }

    /// Rule 1: true for one of those that try it at a time.
    pub(super) fn change(&self, from: Keeper, to: Keeper) -> bool {
        if mutant!("shards_keeper_by_store") {
            let was = self.load();
            self.0.swap(to.encode(), Ordering::AcqRel);
            return was == from;
        }
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

/// `home` of a seat that has none.
const NO_HOME: u32 = u32::MAX;

/// What a seat knows of its shards.
pub(super) struct Seat(Padded<SeatWords>);

struct SeatWords {
    home: AtomicU32,
    extras: AtomicU32,
    is_active: AtomicBool,
}

impl Seat {
    pub(super) fn new() -> Self {
        Self(Padded(SeatWords {
            home: AtomicU32::new(NO_HOME),
            extras: AtomicU32::new(0),
            is_active: AtomicBool::new(false),
        }))
    }

    /// Makes it active or not, and says whether it was.
    pub(super) fn set_active(&self, is_active: bool) -> bool {
        // AcqRel: one worker at the seat follows another. Rule 4 has a fence of its own.
        self.0.is_active.swap(is_active, Ordering::AcqRel)
    }

    pub(super) fn is_active(&self) -> bool {
        // Acquire pairs with the swap.
        self.0.is_active.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn home(&self) -> Option<u32> {
        // Acquire pairs with the release in `set_home`.
        let home = self.0.home.load(Ordering::Acquire);
        (home != NO_HOME).then_some(home)
    }

    /// By the worker at the seat.
    pub(super) fn set_home(&self, home: Option<u32>) {
        // Release pairs with the acquire in `home`.
        self.0.home.store(home.unwrap_or(NO_HOME), Ordering::Release);
    }

    /// Whether it may keep shards beside its home (rule 5).
    #[inline]
    pub(super) fn has_extras(&self) -> bool {
        // Acquire pairs with the read-modify-writes below.
        self.0.extras.load(Ordering::Acquire) != 0
    }

    /// Before a shard becomes an extra of this seat.
    pub(super) fn expect_extra(&self) {
        // AcqRel: counted before the keeper changes.
        self.0.extras.fetch_add(1, Ordering::AcqRel);
    }

    /// After a shard ceased to be one, or did not become one.
    pub(super) fn forget_extra(&self) {
        // AcqRel: counted after the keeper changed.
        let before = self.0.extras.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "more extras left than came");
    }
}
