//! `hierarchical_hash_wheel_timer`: four wheels of 256 slots that hold weak pointers, and a hash
//! map by id that holds the entries.
//!
//! Its cancel takes the entry out of the map and leaves the weak pointer, and with it the entry's
//! allocation, in the wheel until the slot is reached: its documentation calls that "lazy
//! deallocation (garbage collection) as the wheel advances". So it does not count as a rival.

use core::time::Duration;

use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

pub(crate) struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>,
    now_ms: u64,
}

impl HashWheel {
    fn tick(&mut self) -> Fired {
        self.now_ms += 1;
        let mut fired = Fired::default();
        for entry in self.wheel.tick() {
            fired.note(entry.id);
        }
        fired
    }
}

impl Subject for HashWheel {
    const FACTS: Facts = Facts {
        name: "hash-wheel",
        package: Some("hierarchical_hash_wheel_timer"),
        role: Role::Crate,
        cancel: Cancel::Lazy,
        ids: Ids::HandedBack,
        note: "quad wheel with overflow; a cancelled entry stays until its slot is reached",
    };

    type Key = u32;

    fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(), now_ms: 0 }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        let delay = Duration::from_millis(deadline_ms - self.now_ms);
        self.wheel.insert(IdOnlyTimerEntry { id, delay }).expect("the deadline is in the future");
        id
    }

    fn cancel(&mut self, key: Self::Key) {
        self.wheel.cancel(&key).expect("the timer has not fired");
    }

    /// It has no jump: a host skips the ticks that `can_skip` allows and ticks otherwise.
    fn jump(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        while self.now_ms < to_ms {
            match self.wheel.can_skip() {
                Skip::Empty => self.now_ms = to_ms,
                Skip::Millis(most) => {
                    let rest = u32::try_from(to_ms - self.now_ms).unwrap_or(u32::MAX);
                    let skipped = most.min(rest);
                    self.wheel.skip(skipped);
                    self.now_ms += u64::from(skipped);
                }
                Skip::None => fired += self.tick(),
            }
        }
        fired
    }

    fn steps(&mut self, to_ms: u64) -> Fired {
        let mut fired = Fired::default();
        while self.now_ms < to_ms {
            fired += self.tick();
        }
        fired
    }
}
