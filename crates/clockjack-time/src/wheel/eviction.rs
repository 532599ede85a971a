//! Making room: a more important timer displaces a less important one, and saturation drops the
//! least important first.

use super::{Storage, TimerId, TimerPriority, Wheel, list};
use crate::{Full, Tick};

/// How many entries an insert looks at for somebody to displace: bounded, so that a full wheel
/// costs an insert a few hundred nanoseconds and no more.
const EVICTION_SCAN_MAX: usize = 256;

/// A timer that was given up for want of room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// Its id, which names nothing any more.
    pub id: TimerId,
    /// How much it mattered.
    pub priority: TimerPriority,
    /// What it was armed with.
    pub value: T,
}

/// What became of an insert that may displace others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted<T> {
    /// The new timer.
    pub id: TimerId,
    /// Who had to go for it.
    pub evicted: Option<Dropped<T>>,
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// Arms a timer and, if there is no room, gives up one of a strictly lower class for it.
    ///
    /// Only a timer of the lowest class that is armed is given up, and only one that a bounded
    /// search finds; the search goes on from there at the next call. If it is the overflow that
    /// has no room, only far timers count, for only they make room there.
    ///
    /// # Errors
    /// [`Full`], which holds the value, if nobody of a lower class was found. Then nothing has
    /// changed.
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{TimerPriority, FixedWheel, Tick};
    ///
    /// let mut wheel = FixedWheel::<&str, 1>::fixed(Tick::ZERO);
    /// wheel.insert_with_priority(Tick::new(9), TimerPriority::Low, "telemetry")?;
    /// let admitted = wheel.insert_or_evict(Tick::new(5), TimerPriority::High, "watchdog")?;
    /// assert_eq!(admitted.evicted.unwrap().value, "telemetry");
    /// assert!(wheel.insert_or_evict(Tick::new(5), TimerPriority::High, "another").is_err());
    /// # Ok::<(), clockjack_time::Full<&str>>(())
    /// ```
    pub fn insert_or_evict(
        &mut self,
        deadline: Tick,
        priority: TimerPriority,
        value: T,
    ) -> Result<Admitted<T>, Full<T>> {
        let victim = if self.overflow_is_full_for(deadline.get()) {
            self.find_in_overflow_below(priority)
        } else if !self.store.has_slot() {
            self.find_below(priority)
        } else {
            None
        };
        // The slot of a far timer serves a near one too, and a near one goes only if there is room
        // in the overflow: so what is given up is never given up for nothing.
        let evicted = victim.and_then(|(timer, priority)| self.drop_timer(timer, priority));
        let id = self.insert_with_priority(deadline, priority, value)?;
        Ok(Admitted { id, evicted })
    }

    /// Gives up one timer of the lowest class that is armed: `Low` while there are any, then
    /// `Normal`, then `High`.
    ///
    /// Looks at no more than `scan_max` entries. `None` means that nothing is armed or that this
    /// many were not enough; the next call goes on from there.
    pub fn shed(&mut self, scan_max: usize) -> Option<Dropped<T>> {
        let priority = self.lowest_priority()?;
        let timer = self.find_priority(priority, scan_max)?;
        self.drop_timer(timer, priority)
    }

    fn lowest_priority(&self) -> Option<TimerPriority> {
        TimerPriority::ALL.into_iter().find(|priority| self.len_of(*priority) > 0)
    }

    fn find_below(&mut self, priority: TimerPriority) -> Option<(u32, TimerPriority)> {
        let lowest = self.lowest_priority().filter(|lowest| *lowest < priority)?;
        Some((self.find_priority(lowest, EVICTION_SCAN_MAX)?, lowest))
    }

    /// Looks through the chunks' entries and then the overflow's, round and round.
    fn find_priority(&mut self, priority: TimerPriority, scan_max: usize) -> Option<u32> {
        let chunks = self.store.chunks();
        let steps = chunks as usize + self.store.overflow().len();
        let mut looked = 0;
        for _ in 0..steps {
            if looked >= scan_max {
                break;
            }
            if self.eviction_cursor as usize >= steps {
                self.eviction_cursor = 0;
            }
            let at = self.eviction_cursor;
            let found = if at < chunks {
                looked += (self.store.live(at).count_ones() as usize).max(1);
                self.find_in_chunk(priority, at)
            } else {
                looked += 1;
                let entry = self.store.overflow()[(at - chunks) as usize];
                (entry.priority == priority && self.store.is_live(entry.timer))
                    .then_some(entry.timer)
            };
            if found.is_some() {
                return found;
            }
            self.eviction_cursor += 1;
        }
        None
    }

    fn find_in_chunk(&self, priority: TimerPriority, chunk: u32) -> Option<u32> {
        list::live_entries(&self.store, chunk)
            .find(|entry| {
                entry.priority_code() == priority.code() && self.store.is_live(entry.timer())
            })
            .map(|entry| entry.timer())
    }

    /// The last entries of the overflow's heap are among its latest: they are looked at first.
    fn find_in_overflow_below(&self, priority: TimerPriority) -> Option<(u32, TimerPriority)> {
        let last = self.store.overflow().iter().rev().take(EVICTION_SCAN_MAX);
        let lower =
            last.filter(|entry| entry.priority < priority && self.store.is_live(entry.timer));
        lower.min_by_key(|entry| entry.priority).map(|entry| (entry.timer, entry.priority))
    }

    fn drop_timer(&mut self, timer: u32, priority: TimerPriority) -> Option<Dropped<T>> {
        let location = self.store.location(timer);
        let (generation, value) = self.store.fire(timer)?;
        self.store.count_dropped();
        self.unlink(location);
        self.free(timer, priority.code());
        Some(Dropped { id: self.id(timer, generation), priority, value })
    }
}
