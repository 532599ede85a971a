//! Clockjack's stores: the wheel of one owner, and the shard that several threads share.

use clockjack_time::{
    Expired, GrowingWheel, Shard, ShardConfig, Tick, TimerId, Wheel, WheelConfig,
};

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

/// The maximum number of timers of the suite, and the slots that a shard reserves for other
/// threads.
const CAPACITY: usize = 10_000_000 + 64;

/// A wheel owned by one thread, as a worker owns it between two tasks.
pub(crate) struct Owned {
    wheel: GrowingWheel<u32>,
}

impl Subject for Owned {
    const FACTS: Facts = Facts {
        name: "clockjack",
        package: Some("clockjack-time"),
        role: Role::Ours,
        cancel: Cancel::Frees,
        ids: Ids::HandedBack,
        note: "growing wheel, 1 ms tick; bytes are those of a shard, with cancel from any thread",
    };

    type Key = TimerId;

    fn new() -> Self {
        let config = WheelConfig { capacity: CAPACITY, ..WheelConfig::DEFAULT };
        Self { wheel: Wheel::new(config) }
    }

    #[inline]
    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.wheel.insert(Tick::new(deadline_ms), id).expect("the capacity is that of the suite")
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.wheel.cancel(key));
    }

    #[inline]
    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        for timer in self.wheel.advance(Tick::new(to_ms), usize::MAX) {
            fired.note(timer.value);
        }
        fired
    }
}

/// The same behind a guard that every operation takes.
pub(crate) struct Shared {
    shard: Shard<u32>,
}

impl Subject for Shared {
    const FACTS: Facts = Facts {
        name: "clockjack-shard",
        package: Some("clockjack-time"),
        role: Role::Reference,
        cancel: Cancel::Frees,
        ids: Ids::HandedBack,
        note: "the same wheel behind a guard that every operation takes again",
    };

    type Key = TimerId;

    fn new() -> Self {
        let config = ShardConfig { capacity: CAPACITY, ..ShardConfig::DEFAULT };
        Self { shard: Shard::new(config) }
    }

    #[inline]
    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.shard
            .remote_insert(Tick::new(deadline_ms), id)
            .expect("the capacity is that of the suite")
    }

    #[inline]
    fn cancel(&mut self, key: Self::Key) {
        let mut guard = self.shard.try_lock().expect("there is one thread");
        core::hint::black_box(guard.cancel(key));
    }

    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        let mut guard = self.shard.try_lock().expect("there is one thread");
        guard.poll(Tick::new(to_ms), usize::MAX, |timer: Expired<u32>| fired.note(timer.value));
        fired
    }
}
