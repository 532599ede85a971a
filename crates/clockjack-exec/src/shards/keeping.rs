//! Keepers: workers that come, workers that leave, and shards that are adopted meanwhile.

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicUsize, Ordering, fence},
};
use clockjack_time::{Shard, ShardConfig};

use super::{Entry, Keeper, KeeperWord, Seat, Shards};

/// How often an adopter asks for another seat if the one that was chosen is leaving.
const CHOICES_MAX: usize = 4;

impl<T: Send> Shards<T> {
    /// A worker takes its seat, and gets the shard that is its home from then on: an orphan if
    /// there is one, else one of a seat that keeps several, else a new one.
    ///
    /// So there are never more shards than seats. A worker that was attached is to
    /// [poll](Self::poll) what it [keeps](Self::keeps).
    ///
    /// # Panics
    /// If there is no such seat, or a worker is at it.
    pub fn attach(&self, seat: usize) -> u32 {
        let (number, place) = self.seat(seat);
        assert!(!place.set_active(true), "a worker is at seat {seat} already");
        let shard = loop {
            let found = self
                .take_orphan(number)
                .or_else(|| self.take_kept(number))
                .or_else(|| self.make_shard(number));
            if let Some(shard) = found {
                break shard;
            }
            // Rule 2: others have just got what there was.
        };
        place.set_home(Some(shard));
        if !mutant!("shards_attach_without_fence") {
            // Pairs with the fence of an arm (rule 6), and for a new shard with that of the closer
            // (rule 8).
            fence(Ordering::SeqCst);
        }
        shard
    }

    /// A worker leaves its seat. What it kept goes into the merge queue; says how many shards that
    /// are, so that the metronome can be told.
    ///
    /// # Panics
    /// If there is no such seat, or nobody is at it.
    pub fn detach(&self, seat: usize) -> usize {
        let (number, place) = self.seat(seat);
        assert!(place.set_active(false), "nobody is at seat {seat}");
        place.set_home(None);
        if !mutant!("shards_detach_without_fence") {
            // Pairs with the fence in `give` (rule 4).
            fence(Ordering::SeqCst);
        }
        let mut orphans = 0;
        for (shard, entry) in self.table.iter() {
            let keeper = entry.keeper.load();
            if keeper.seat() == Some(number) && self.abandon(shard, entry, keeper) {
                orphans += 1;
            }
        }
        orphans
    }

    /// Gives the shards in the merge queue to the seats that `choose` names, and tells `adopted`
    /// the seat and the shard: its worker is to be woken, for it may sleep too long for it. Says
    /// how many were adopted.
    ///
    /// Whatever is not adopted, because nobody is chosen or those that are chosen leave, stays in
    /// the queue.
    ///
    /// # Panics
    /// If there is no such seat.
    pub fn adopt(
        &self,
        mut choose: impl FnMut() -> Option<usize>,
        mut adopted: impl FnMut(usize, u32),
    ) -> usize {
        let mut n_adopted = 0;
        for shard in self.queue.iter() {
            for _ in 0..CHOICES_MAX {
                // Chosen before the shard is taken: while others' code runs, it is in the queue.
                let Some(seat) = choose() else { return n_adopted };
                match self.give(shard, seat) {
                    Given::Kept => {
                        n_adopted += 1;
                        adopted(seat, shard);
                        break;
                    }
                    Given::Gone => break,
                    Given::Leaving => {}
                }
            }
        }
        n_adopted
    }

    /// Whether a shard waits for a keeper in the merge queue.
    #[must_use]
    pub fn has_orphans(&self) -> bool {
        let is_orphan = |entry: &Entry<T>| entry.keeper.load() == Keeper::Orphan;
        self.queue.iter().any(|shard| self.table.get(shard).is_some_and(is_orphan))
    }

    /// The shards that a seat keeps, its home first.
    ///
    /// # Panics
    /// If there is no such seat.
    #[inline]
    pub fn keeps(&self, seat: usize) -> impl Iterator<Item = u32> {
        let (number, place) = self.seat(seat);
        let end = if place.has_extras() { self.table.end() } else { 0 };
        let is_extra = move |shard: &u32| {
            let entry = self.table.get(*shard);
            entry.is_some_and(|entry| entry.keeper.load() == Keeper::Extra(number))
        };
        place.home().into_iter().chain((0..end).filter(is_extra))
    }

    /// The shard that a seat's worker attached with.
    ///
    /// # Panics
    /// If there is no such seat.
    #[inline]
    #[must_use]
    pub fn home(&self, seat: usize) -> Option<u32> {
        self.seat(seat).1.home()
    }

    #[inline]
    fn seat(&self, seat: usize) -> (u32, &Seat) {
        let place = &self.seats[seat];
        (u32::try_from(seat).expect("there are fewer seats"), place)
    }

    fn take_orphan(&self, seat: u32) -> Option<u32> {
        if mutant!("shards_attach_passes_orphans") {
            return None;
        }
        let found = self.queue.iter().find(|shard| self.dequeue(*shard, Keeper::Home(seat)));
        found.inspect(|_| self.count_adopted())
    }

    /// Takes an extra of another seat, or an orphan that is in an adopter's hands.
    fn take_kept(&self, seat: u32) -> Option<u32> {
        let found = self.table.iter().find(|(_, entry)| {
            let keeper = entry.keeper.load();
            if matches!(keeper, Keeper::Home(_)) || !entry.keeper.change(keeper, Keeper::Home(seat))
            {
                return false;
            }
            match keeper {
                Keeper::Extra(other) => self.seats[other as usize].forget_extra(),
                Keeper::Orphan | Keeper::Home(_) => self.count_adopted(),
            }
            true
        });
        found.map(|(shard, _)| shard)
    }

    fn make_shard(&self, seat: u32) -> Option<u32> {
        self.table.add(|id| {
            let (start, capacity) = (self.config.start, self.config.capacity);
            let shard = Shard::new(ShardConfig { id, start, capacity });
            Entry {
                shard: if self.keeps_garbage { shard.keeping_garbage() } else { shard },
                keeper: KeeperWord::new(Keeper::Home(seat)),
                stale: AtomicUsize::new(0),
            }
        })
    }

    /// Rule 3: takes an orphan out of the queue for a keeper.
    fn dequeue(&self, shard: u32, keeper: Keeper) -> bool {
        let Some(entry) = self.table.get(shard) else { return false };
        if mutant!("shards_dequeue_late") {
            let taken = entry.keeper.change(Keeper::Orphan, keeper);
            self.queue.take(shard);
            return taken;
        }
        self.queue.take(shard) && entry.keeper.change(Keeper::Orphan, keeper)
    }

    /// Makes an orphan of a shard that has this keeper; false if it has another by now.
    fn abandon(&self, shard: u32, entry: &Entry<T>, keeper: Keeper) -> bool {
        let abandoned = entry.keeper.change(keeper, Keeper::Orphan);
        if abandoned {
            if let Keeper::Extra(seat) = keeper {
                self.seats[seat as usize].forget_extra();
            }
            self.queue.put(shard);
        }
        abandoned
    }

    /// Rules 4 and 5: makes an orphan an extra of a seat.
    fn give(&self, shard: u32, seat: usize) -> Given {
        let (number, place) = self.seat(seat);
        if !place.is_active() {
            return Given::Leaving;
        }
        let Some(entry) = self.table.get(shard) else { return Given::Gone };
        let keeper = Keeper::Extra(number);
        place.expect_extra();
        if !self.dequeue(shard, keeper) {
            place.forget_extra();
            return Given::Gone;
        }
        if !mutant!("shards_adopt_without_fence") {
            // Pairs with the fence of an arm (rule 6), and with that in `detach` (rule 4).
            fence(Ordering::SeqCst);
        }
        if !place.is_active() && !mutant!("shards_adopt_ignores_leaving") {
            // The seat's worker may have found the shard itself: then it is in the queue, too.
            self.abandon(shard, entry, keeper);
            return Given::Leaving;
        }
        self.count_adopted();
        Given::Kept
    }

    fn count_adopted(&self) {
        // Relaxed: a statistic.
        self.counts.adopted.fetch_add(1, Ordering::Relaxed);
    }
}

/// What became of an orphan that was given to a seat.
enum Given {
    /// The seat keeps it.
    Kept,
    /// Another thread had it first.
    Gone,
    /// The seat's worker is leaving or gone; the shard is in the queue.
    Leaving,
}
