//! Assigning shards to workers: when workers start, when they stop, and between the two.

use clockjack_sync::primitive::atomic::{AtomicBool, Ordering, fence};
use clockjack_time::{Shard, ShardConfig, shard::RETURNS_MAX};

use super::{Assignment, AtomicAssignment, ShardEntry, Shards, SourceWake, WorkerShards};

/// How often another worker is chosen if the chosen one is stopping.
const CHOICES_MAX: usize = 4;

impl<T: Send> Shards<T> {
    /// A worker starts, and gets its local shard: an unassigned one if there is any, else an extra
    /// shard of another worker, else a new one.
    ///
    /// So there are never more shards than workers. An attached worker must [poll](Self::poll) the
    /// shards that are [assigned to](Self::assigned_to) it. The caller notifies the watchdog if a
    /// shard [is still unassigned](Self::has_unassigned) afterwards.
    ///
    /// # Panics
    /// If there is no such worker, or it is attached already.
    pub fn attach(&self, worker: usize) -> u32 {
        let (index, state) = self.worker(worker);
        assert!(!state.set_active(true), "worker {worker} is attached already");
        let shard = loop {
            let found = self
                .take_unassigned(index)
                .or_else(|| self.take_extra(index))
                .or_else(|| self.make_shard(index));
            if let Some(shard) = found {
                break shard;
            }
            // Rule 2: other threads have just taken what there was.
        };
        state.set_local_shard(Some(shard));
        // Pairs with the fence of an arm (rule 6), with that in `reassign` (rule 15), and for a new
        // shard with that of the closing thread (rule 8).
        fence(Ordering::SeqCst);
        shard
    }

    /// A worker stops. Its shards go into the reassignment queue; returns how many they are, so
    /// that the caller can notify the watchdog.
    ///
    /// # Panics
    /// If there is no such worker, or it is not attached.
    pub fn detach(&self, worker: usize) -> usize {
        let (index, state) = self.worker(worker);
        assert!(state.set_active(false), "worker {worker} is not attached");
        state.set_local_shard(None);
        // Pairs with the fence in `assign` (rule 4).
        fence(Ordering::SeqCst);
        let mut unassigned = 0;
        for (shard, entry) in self.table.iter() {
            let assignment = entry.assignment.load();
            if assignment.worker() == Some(index) && self.unassign(shard, entry, assignment) {
                unassigned += 1;
            }
        }
        unassigned
    }

    /// Assigns the shards in the reassignment queue to the workers that `choose` returns, and calls
    /// `reassigned` with the worker and the shard: the caller wakes that worker, which may sleep
    /// for too long otherwise. Returns how many shards were assigned.
    ///
    /// A shard stays in the queue if no worker is chosen, or if the chosen workers are stopping.
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
            // Pairs with the fence in `attach`: either this thread sees the worker that attaches,
            // or that worker sees the shard in the queue (rule 15).
            fence(Ordering::SeqCst);
            for _ in 0..CHOICES_MAX {
                // Chosen before the shard is taken: while the caller's code runs, the shard is in
                // the queue.
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

    /// How loaded a worker is: the one with the least load gets the next unassigned shard. A worker
    /// that frees its cancelled timers in time has fewer than [`RETURNS_MAX`] of them in a shard,
    /// however many that are at the moment; among such workers the number of shards decides.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn load(&self, worker: usize) -> (usize, usize) {
        (self.stale_len(worker) / RETURNS_MAX, self.assigned_to(worker).count())
    }

    /// Whether an unassigned shard is in the reassignment queue.
    #[must_use]
    pub fn has_unassigned(&self) -> bool {
        let is_unassigned =
            |entry: &ShardEntry<T>| entry.assignment.load() == Assignment::Unassigned;
        self.reassign_queue.iter().any(|shard| self.table.get(shard).is_some_and(is_unassigned))
    }

    /// The shards that are assigned to a worker, its local shard first.
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

    /// The shard that a worker got when it attached.
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
        let found = self
            .reassign_queue
            .iter()
            .find(|shard| self.dequeue(*shard, Assignment::Local(worker)));
        found.inspect(|_| self.count_reassigned())
    }

    /// Takes an extra shard of another worker, or an unassigned shard that another thread has just
    /// removed from the queue.
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
                shard: if self.keeps_stale_values { shard.keeping_stale_values() } else { shard },
                assignment: AtomicAssignment::new(Assignment::Local(worker)),
                source_wake: SourceWake::new(),
                is_firing: AtomicBool::new(false),
            }
        })
    }

    /// Rule 3: removes an unassigned shard from the queue and assigns it.
    fn dequeue(&self, shard: u32, assignment: Assignment) -> bool {
        let Some(entry) = self.table.get(shard) else { return false };
        self.reassign_queue.take(shard)
            && entry.assignment.change(Assignment::Unassigned, assignment)
    }

    /// Makes a shard with this assignment unassigned; false if it has another one by now.
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

    /// Rules 4 and 5: makes an unassigned shard an extra shard of a worker.
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
        // Pairs with the fence of an arm (rule 6), and with that in `detach` (rule 4).
        fence(Ordering::SeqCst);
        if !state.is_active() {
            // The stopping worker may have found the shard itself: then it has put the shard back
            // into the queue.
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

/// What became of an unassigned shard that was offered to a worker.
enum Reassigned {
    /// The shard is assigned to the worker.
    Kept,
    /// Another thread has taken the shard.
    Gone,
    /// The worker is stopping or has stopped; the shard is in the queue.
    Leaving,
}
