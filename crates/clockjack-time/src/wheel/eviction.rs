//! Eviction: a timer of higher priority replaces one of lower priority, and load shedding drops the
//! lowest priority first.

use super::{Storage, TimerId, TimerPriority, Wheel, list};
use crate::{InsertError, Tick};

/// How many entries an insert scans for a timer to evict: bounded, so that an insert into a full
/// wheel costs at most a few hundred nanoseconds.
const EVICTION_SCAN_MAX: usize = 256;

/// A timer that was dropped because there was no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// Its id, which refers to nothing any more.
    pub id: TimerId,
    /// Its priority.
    pub priority: TimerPriority,
    /// The value that it was armed with.
    pub value: T,
}

/// The result of an insert that may evict another timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted<T> {
    /// The new timer.
    pub id: TimerId,
    /// The timer that was dropped for it.
    pub evicted: Option<Dropped<T>>,
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// Arms a timer and, if there is no room, drops one of a strictly lower priority for it.
    ///
    /// It drops only a timer of the lowest priority that is armed, and only one that a bounded
    /// search finds; the next call continues the search there. If the overflow has no room, only
    /// overflow timers count, because only they make room there.
    ///
    /// # Errors
    /// [`InsertError`], which holds the value, if no timer of a lower priority was found. Then nothing has
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
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    pub fn insert_or_evict(
        &mut self,
        deadline: Tick,
        priority: TimerPriority,
        value: T,
    ) -> Result<Admitted<T>, InsertError<T>> {
        let victim = if self.overflow_is_full_for(deadline.get()) {
            self.find_in_overflow_below(priority)
        } else if !self.store.has_slot() {
            self.find_below(priority)
        } else {
            None
        };
        // The slot of an overflow timer can be used by a wheel timer too, and a wheel timer is
        // dropped only if there is room in the overflow: so no timer is dropped in vain.
        let evicted = victim.and_then(|(timer, priority)| self.drop_timer(timer, priority));
        let id = self.insert_with_priority(deadline, priority, value)?;
        Ok(Admitted { id, evicted })
    }

    /// Drops one timer of the lowest priority that is armed: `Low` while there are any, then
    /// `Normal`, then `High`.
    ///
    /// Scans no more than `scan_max` entries. `None` means that nothing is armed or that the scan
    /// found none; the next call continues there.
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

    /// Scans the entries of the chunks and then those of the overflow, round robin.
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

    /// The last entries of the overflow's heap are among the latest deadlines: they are scanned
    /// first.
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
