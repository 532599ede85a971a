//! Keepers: workers that come, workers that leave, and shards that are reassigned meanwhile.

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicUsize, Ordering, fence},
};
use clockjack_time::{Shard, ShardConfig};

use super::{Assignment, AtomicAssignment, ShardEntry, Shards, WorkerShards};

/// How often an adopter asks for another worker if the one that was chosen is leaving.
const CHOICES_MAX: usize = 4;

impl<T: Send> Shards<T> {
    /// A worker takes its worker, and gets the shard that is its local_shard from then on: an unassigned if
    /// there is one, else one of a worker that assigned_to several, else a new one.
    ///
    /// So there are never more shards than workers. A worker that was attached is to
    /// [poll](Self::poll) what it [assigned_to](Self::assigned_to).
    ///
    /// # Panics
    /// If there is no such worker, or a worker is at it.
    pub fn attach(&self, worker: usize) -> u32 {
        let (index, state) = self.worker(worker);
        assert!(!state.set_active(true), "a worker is at worker {worker} already");
        let shard = loop {
            let found = self
                .take_unassigned(index)
                .or_else(|| self.take_extra(index))
                .or_else(|| self.make_shard(index));
            if let Some(shard) = found {
                break shard;
            }
            // Rule 2: others have just got what there was.
        };
        state.set_local_shard(Some(shard));
        if !mutant!("shards_attach_without_fence") {
            // Pairs with the fence of an arm (rule 6), and for a new shard with that of the closer
            // (rule 8).
            fence(Ordering::SeqCst);
        }
        shard
    }

    /// A worker leaves its worker. What it kept goes into the merge reassign_queue; says how many shards that
    /// are, so that the watchdog can be told.
    ///
    /// # Panics
    /// If there is no such worker, or nobody is at it.
    pub fn detach(&self, worker: usize) -> usize {
        let (index, state) = self.worker(worker);
        assert!(state.set_active(false), "nobody is at worker {worker}");
        state.set_local_shard(None);
        if !mutant!("shards_detach_without_fence") {
            // Pairs with the fence in `assign` (rule 4).
            fence(Ordering::SeqCst);
        }
        let mut unassigned = 0;
        for (shard, entry) in self.table.iter() {
            let assignment = entry.assignment.load();
            if assignment.worker() == Some(index) && self.unassign(shard, entry, assignment) {
                unassigned += 1;
            }
        }
        unassigned
    }

    /// Gives the shards in the merge reassign_queue to the workers that `choose` names, and tells `reassigned`
    /// the worker and the shard: its worker is to be woken, for it may sleep too long for it. Says
    /// how many were reassigned.
    ///
    /// Whatever is not reassigned, because nobody is chosen or those that are chosen leave, stays in
    /// the reassign_queue.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn reassign(
        &self,
        mut choose: impl FnMut() -> Option<usize>,
        mut reassigned: impl FnMut(usize, u32),
    ) -> usize {
        let mut n_reassigned = 0;
        for shard in self.reassign_queue.iter() {
            for _ in 0..CHOICES_MAX {
                // Chosen before the shard is taken: while others' code runs, it is in the reassign_queue.
                let Some(worker) = choose() else { return n_reassigned };
                match self.assign(shard, worker) {
                    Reassigned::Kept => {
                        n_reassigned += 1;
                        reassigned(worker, shard);
                        break;
                    }
                    Reassigned::Gone => break,
                    Reassigned::Leaving => {}
                }
            }
        }
        n_reassigned
    }

    /// Whether a shard waits for a assignment in the merge reassign_queue.
    #[must_use]
    pub fn has_unassigned(&self) -> bool {
        let is_unassigned =
            |entry: &ShardEntry<T>| entry.assignment.load() == Assignment::Unassigned;
        self.reassign_queue.iter().any(|shard| self.table.get(shard).is_some_and(is_unassigned))
    }

    /// The shards that a worker assigned_to, its local_shard first.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    pub fn assigned_to(&self, worker: usize) -> impl Iterator<Item = u32> {
        let (index, state) = self.worker(worker);
        let end = if state.has_extra_shards() { self.table.end() } else { 0 };
        let is_extra = move |shard: &u32| {
            let entry = self.table.get(*shard);
            entry.is_some_and(|entry| entry.assignment.load() == Assignment::Extra(index))
        };
        state.local_shard().into_iter().chain((0..end).filter(is_extra))
    }

    /// The shard that a worker's worker attached with.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[must_use]
    pub fn local_shard(&self, worker: usize) -> Option<u32> {
        self.worker(worker).1.local_shard()
    }

    #[inline]
    fn worker(&self, worker: usize) -> (u32, &WorkerShards) {
        let state = &self.workers[worker];
        (u32::try_from(worker).expect("there are fewer workers"), state)
    }

    fn take_unassigned(&self, worker: u32) -> Option<u32> {
        if mutant!("shards_attach_passes_orphans") {
            return None;
        }
        let found = self
            .reassign_queue
            .iter()
            .find(|shard| self.dequeue(*shard, Assignment::Local(worker)));
        found.inspect(|_| self.count_reassigned())
    }

    /// Takes an extra of another worker, or an unassigned that is in an adopter's hands.
    fn take_extra(&self, worker: u32) -> Option<u32> {
        let found = self.table.iter().find(|(_, entry)| {
            let assignment = entry.assignment.load();
            if matches!(assignment, Assignment::Local(_))
                || !entry.assignment.change(assignment, Assignment::Local(worker))
            {
                return false;
            }
            match assignment {
                Assignment::Extra(other) => self.workers[other as usize].remove_extra_shard(),
                Assignment::Unassigned | Assignment::Local(_) => self.count_reassigned(),
            }
            true
        });
        found.map(|(shard, _)| shard)
    }

    fn make_shard(&self, worker: u32) -> Option<u32> {
        self.table.add(|id| {
            let (start, capacity) = (self.config.start, self.config.capacity);
            let shard = Shard::new(ShardConfig { id, start, capacity });
            ShardEntry {
                shard: if self.keeps_stale_values { shard.keeping_garbage() } else { shard },
                assignment: AtomicAssignment::new(Assignment::Local(worker)),
                stale: AtomicUsize::new(0),
            }
        })
    }

    /// Rule 3: takes an unassigned out of the reassign_queue for a assignment.
    fn dequeue(&self, shard: u32, assignment: Assignment) -> bool {
        let Some(entry) = self.table.get(shard) else { return false };
        if mutant!("shards_dequeue_late") {
            let taken = entry.assignment.change(Assignment::Unassigned, assignment);
            self.reassign_queue.take(shard);
            return taken;
        }
        self.reassign_queue.take(shard)
            && entry.assignment.change(Assignment::Unassigned, assignment)
    }

    /// Makes an unassigned of a shard that has this assignment; false if it has another by now.
    fn unassign(&self, shard: u32, entry: &ShardEntry<T>, assignment: Assignment) -> bool {
        let unassigned = entry.assignment.change(assignment, Assignment::Unassigned);
        if unassigned {
            if let Assignment::Extra(worker) = assignment {
                self.workers[worker as usize].remove_extra_shard();
            }
            self.reassign_queue.put(shard);
        }
        unassigned
    }

    /// Rules 4 and 5: makes an unassigned an extra of a worker.
    fn assign(&self, shard: u32, worker: usize) -> Reassigned {
        let (index, state) = self.worker(worker);
        if !state.is_active() {
            return Reassigned::Leaving;
        }
        let Some(entry) = self.table.get(shard) else { return Reassigned::Gone };
        let assignment = Assignment::Extra(index);
        state.add_extra_shard();
        if !self.dequeue(shard, assignment) {
            state.remove_extra_shard();
            return Reassigned::Gone;
        }
        if !mutant!("shards_adopt_without_fence") {
            // Pairs with the fence of an arm (rule 6), and with that in `detach` (rule 4).
            fence(Ordering::SeqCst);
        }
        if !state.is_active() && !mutant!("shards_adopt_ignores_leaving") {
            // The worker's worker may have found the shard itself: then it is in the reassign_queue, too.
            self.unassign(shard, entry, assignment);
            return Reassigned::Leaving;
        }
        self.count_reassigned();
        Reassigned::Kept
    }

    fn count_reassigned(&self) {
        // Relaxed: a statistic.
        self.counts.reassigned.fetch_add(1, Ordering::Relaxed);
    }
}

/// What became of an unassigned that was given to a worker.
enum Reassigned {
    /// The worker assigned_to it.
    Kept,
    /// Another thread had it first.
    Gone,
    /// The worker's worker is leaving or gone; the shard is in the reassign_queue.
    Leaving,
}
