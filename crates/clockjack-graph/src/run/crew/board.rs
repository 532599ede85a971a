//! What is written on the board of a crew: the jobs of an epoch, and who waits for one.
//!
//! All of it is behind one lock, which is [`Shared`](super::shared::Shared)'s; nothing here waits,
//! and nothing here runs a job.

use core::{any::Any, cmp::Reverse, task::Waker};
use std::{collections::BinaryHeap, sync::Arc};

use clockjack_sync::mutant;

use super::waits::{Waits, number};

/// A share of what the jobs of an epoch are done on.
pub(crate) trait Share: Clone + Send + 'static {
    /// Why an epoch ends before its last job.
    type Fault: Send + 'static;
    /// Work within a job that anybody may take part in.
    type Batch: Send + Sync + 'static;

    /// Whether the jobs of a lane are done in this epoch.
    fn is_due(&self, lane: usize) -> bool;
    /// Whether no more jobs are to begin.
    fn is_stopping(&self) -> bool;
    /// Does a job; how many components were called.
    fn run(&self, position: usize, worker: u16) -> Result<u32, Self::Fault>;
    /// Whether there is something to do for one more.
    fn has_job(batch: &Self::Batch) -> bool;
    /// Works on a batch for as long as there is something to do.
    fn help(&self, batch: &Self::Batch, worker: u16);
}

/// What came of an epoch.
#[derive(Debug)]
pub(crate) struct Outcome<F> {
    pub(crate) n_called: u64,
    /// The first in compiled order that ends the run, and where it was.
    pub(crate) fault: Option<(usize, F)>,
    /// Regions at work at once, at most.
    pub(crate) overlap: usize,
    /// Regions that have faults to tell of which do not end the run.
    pub(crate) n_faults: usize,
}

impl<F> Default for Outcome<F> {
    fn default() -> Self {
        Self { n_called: 0, fault: None, overlap: 0, n_faults: 0 }
    }
}

/// What a panic was thrown with.
pub(super) type Panic = Box<dyn Any + Send>;

/// How a job ended.
pub(super) enum End<F> {
    /// So many components were called.
    Done(u32),
    Failed(F),
    Panicked(Panic),
}

/// Something to do, with a share of the core.
pub(super) enum Job<S: Share> {
    Region(S, usize),
    Batch(S, Arc<S::Batch>),
}

/// Who is to come.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) wakers: Vec<Waker>,
    pub(super) helpers: Vec<u16>,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// All lanes but those with a thread of their own.
    Anyone,
    /// This lane.
    Lane(usize),
}

/// The board.
pub(super) struct Board<S: Share> {
    pub(super) core: Option<S>,
    n_waiting_for: Vec<u32>,
    is_done: Vec<bool>,
    /// All before this position are done.
    n_done_first: usize,
    n_done: usize,
    /// Jobs that may run, for each lane: the highest rank first, then the first in compiled order.
    pub(super) ready: Vec<BinaryHeap<(u8, Reverse<u32>)>>,
    n_active: Vec<usize>,
    /// Jobs that wait for nobody but all before them.
    gated: BinaryHeap<Reverse<u32>>,
    n_running: usize,
    /// Shares of the core that are out with a batch.
    pub(super) n_sharing: usize,
    /// Invocations of reentrant components that anybody may do.
    pub(super) batches: Vec<Arc<S::Batch>>,
    /// Nothing at or after this position counts.
    limit: usize,
    outcome: Outcome<S::Fault>,
    /// The first in compiled order of the jobs that have panicked.
    panic: Option<(usize, Panic)>,
    pub(super) coordinator: Option<Waker>,
    /// Lane helpers that have nothing to do.
    helpers: Vec<(u16, Who, Waker)>,
    /// Helpers that can be called.
    pub(super) home: Vec<u16>,
    /// Jobs that were taken.
    pub(super) n_picks: u64,
    /// For each job, how many were taken before it could be.
    pub(super) offered: Vec<u64>,
    /// For each lane, how often a job went first because it had been passed over so often.
    pub(super) n_starvations: Vec<u64>,
    pub(super) is_closed: bool,
}

impl<S: Share> Board<S> {
    /// One of so many helpers, who are at home.
    pub(super) fn new(waits: &Waits, n_helpers: usize) -> Self {
        Self {
            core: None,
            n_waiting_for: Vec::new(),
            is_done: Vec::new(),
            n_done_first: 0,
            n_done: 0,
            ready: waits.lanes.iter().map(|_| BinaryHeap::new()).collect(),
            n_active: vec![0; waits.lanes.len()],
            gated: BinaryHeap::new(),
            n_running: 0,
            n_sharing: 0,
            batches: Vec::new(),
            limit: usize::MAX,
            outcome: Outcome::default(),
            panic: None,
            coordinator: None,
            helpers: Vec::new(),
            home: (1..=n_helpers).map(|one| u16::try_from(one).unwrap_or(u16::MAX)).collect(),
            n_picks: 0,
            offered: vec![0; waits.n_jobs()],
            n_starvations: Vec::new(),
            is_closed: false,
        }
    }

    /// Puts the jobs of an epoch on the board (rule 2); who is to come for them.
    pub(super) fn begin(&mut self, waits: &Waits, share: S) -> Calls {
        self.n_waiting_for.clone_from(&waits.n_before);
        self.is_done.clear();
        self.is_done.resize(waits.n_jobs(), false);
        (self.n_done, self.n_done_first, self.limit) = (0, 0, usize::MAX);
        self.core = Some(share);
        for position in 0..waits.n_jobs() {
            if waits.n_before[position] == 0 && !self.offer(waits, position) {
                self.finish(waits, position);
            }
        }
        self.take_calls(waits, 1)
    }

    /// Ends an epoch that is over (rule 4): what came of it, or the panic that did.
    pub(super) fn end(&mut self) -> (Option<S>, Outcome<S::Fault>, Option<Panic>) {
        let share = self.core.take();
        let outcome = core::mem::take(&mut self.outcome);
        let panic = self.panic.take();
        let failed_at = outcome.fault.as_ref().map_or(usize::MAX, |(at, _)| *at);
        // What comes after a failure does not count.
        let panic = panic.filter(|(at, _)| *at < failed_at).map(|(_, panic)| panic);
        (share, outcome, panic)
    }

    /// A job that waits for nobody any more: it can be taken, or it waits for all before it. False
    /// if it is not run in this epoch.
    fn offer(&mut self, waits: &Waits, position: usize) -> bool {
        let (number, lane) = (number(position), waits.lane[position]);
        let is_due = self.core.as_ref().is_some_and(|core| core.is_due(lane));
        if position >= self.limit || !is_due {
            return false;
        }
        let is_shut = waits.is_gated[position] && self.n_done_first < position;
        if is_shut && !mutant!("crew-ignores-the-gate") {
            self.gated.push(Reverse(number));
        } else {
            self.offered[position] = self.n_picks;
            self.ready[lane].push((waits.rank[position], Reverse(number)));
        }
        true
    }

    /// Leaves a waker, in the place of an older one of the same helper.
    pub(super) fn leave_waker(&mut self, worker: u16, who: Who, waker: &Waker) {
        match self.helpers.iter_mut().find(|(of, ..)| *of == worker) {
            Some((_, _, old)) => old.clone_from(waker),
            None => self.helpers.push((worker, who, waker.clone())),
        }
    }

    /// Sends everyone home; the lane helpers that sleep.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.is_closed = true;
        core::mem::take(&mut self.helpers).into_iter().map(|(.., waker)| waker).collect()
    }

    /// Jobs that are for anyone to take.
    pub(super) fn n_ready(&self, waits: &Waits) -> usize {
        let lanes = self.ready.iter().zip(&waits.lanes);
        lanes.filter(|(_, lane)| !lane.is_isolated).map(|(ready, _)| ready.len()).sum()
    }

    /// Those for whom there is something to do, if who asks goes on with so many of the jobs.
    pub(super) fn take_calls(&mut self, waits: &Waits, n_own: usize) -> Calls {
        let mut wakers = Vec::new();
        let mut index = 0;
        while index < self.helpers.len() {
            if self.has_job(waits, self.helpers[index].1) {
                wakers.push(self.helpers.swap_remove(index).2);
            } else {
                index += 1;
            }
        }
        let n_called = self.n_ready(waits).saturating_sub(n_own).min(self.home.len());
        let helpers = self.home.split_off(self.home.len() - n_called);
        Calls { wakers, helpers }
    }

    /// The coordinator, if an epoch is over that it may not know of: who goes may have found
    /// nothing but jobs that do not count any more, the last ones among them, and nobody else tells
    /// of those.
    pub(super) fn told_of_end(&mut self, waits: &Waits) -> Option<Waker> {
        let is_told = self.is_over(waits) && !mutant!("crew-last-leaves-silently");
        if is_told { self.coordinator.take() } else { None }
    }

    /// Whether every job is done, and every share but the board's is back.
    pub(super) fn is_over(&self, waits: &Waits) -> bool {
        let n_sharing = if mutant!("crew-forgets-who-shares") { 0 } else { self.n_sharing };
        self.n_done == waits.n_jobs() && n_sharing == 0
    }

    /// Takes a job, with a share of the core.
    pub(super) fn take(&mut self, waits: &Waits, who: Who) -> Option<Job<S>> {
        if self.core.as_ref().is_some_and(Share::is_stopping)
            && !mutant!("crew-goes-on-when-stopped")
        {
            self.limit = 0;
        }
        if who == Who::Anyone
            && let Some(batch) = self.batches.iter().find(|batch| S::has_job(batch))
        {
            let core = self.core.as_ref().expect("batches come in an epoch");
            self.n_sharing += 1;
            return Some(Job::Batch(core.clone(), Arc::clone(batch)));
        }
        loop {
            let lane = self.best_lane(waits, who)?;
            let position = self.pick(waits, lane);
            if position >= self.limit {
                self.finish(waits, position);
                continue;
            }
            self.n_picks += 1;
            self.n_active[lane] += 1;
            self.n_running += 1;
            self.outcome.overlap = self.outcome.overlap.max(self.n_running);
            let core = self.core.as_ref().expect("jobs come with a core");
            return Some(Job::Region(core.clone(), position));
        }
    }

    /// Takes the next job of a lane that has one: that of the highest rank, unless another has been
    /// passed over so often that it goes first.
    pub(super) fn pick(&mut self, waits: &Waits, lane: usize) -> usize {
        let (top, Reverse(first)) = *self.ready[lane].peek().expect("it was seen");
        let limit = u64::from(waits.lanes[lane].aging);
        let has_waited = |number: u32| self.n_picks - self.offered[number as usize];
        let below = self.ready[lane].iter().filter(|(rank, _)| *rank < top);
        let starving = below
            .map(|(_, Reverse(number))| *number)
            .filter(|number| limit > 0 && has_waited(*number) >= limit)
            .max_by_key(|number| (has_waited(*number), Reverse(*number)));
        let Some(number) = starving.filter(|_| !mutant!("crew-lets-starve")) else {
            self.ready[lane].pop();
            return first as usize;
        };
        if self.n_starvations.len() <= lane {
            self.n_starvations.resize(lane + 1, 0);
        }
        self.n_starvations[lane] += 1;
        self.ready[lane].retain(|(_, Reverse(one))| *one != number);
        number as usize
    }

    pub(super) fn has_job(&self, waits: &Waits, who: Who) -> bool {
        (who == Who::Anyone && self.batches.iter().any(|batch| S::has_job(batch)))
            || self.best_lane(waits, who).is_some()
    }

    /// The lane whose next job goes first.
    fn best_lane(&self, waits: &Waits, who: Who) -> Option<usize> {
        let mut best: Option<(u8, Reverse<u32>, usize)> = None;
        for (lane, ready) in self.ready.iter().enumerate() {
            let of = waits.lanes[lane];
            let is_mine = match who {
                Who::Anyone => !of.is_isolated,
                Who::Lane(mine) => mine == lane,
            };
            if !is_mine || self.n_active[lane] >= of.n_at_once {
                continue;
            }
            let Some((rank, number)) = ready.peek() else { continue };
            let candidate = (*rank, *number, lane);
            if best.is_none_or(|(rank, number, _)| (candidate.0, candidate.1) > (rank, number)) {
                best = Some(candidate);
            }
        }
        best.map(|(.., lane)| lane)
    }

    /// A job that was taken has ended. A panic comes back if it does not count.
    pub(super) fn done(
        &mut self,
        waits: &Waits,
        position: usize,
        end: End<S::Fault>,
    ) -> Option<Panic> {
        self.n_active[waits.lane[position]] -= 1;
        self.n_running -= 1;
        // Whoever has faults to tell of is looked for at the end of the epoch.
        self.outcome.n_faults += 1;
        let mut spare = None;
        match end {
            End::Done(n_called) => self.outcome.n_called += u64::from(n_called),
            End::Failed(fault) => {
                let first = self.outcome.fault.as_ref().map_or(usize::MAX, |(at, _)| *at);
                if position < first || mutant!("crew-tells-the-last-failure") {
                    self.outcome.fault = Some((position, fault));
                }
                self.nothing_after(position);
            }
            End::Panicked(panic) => {
                spare = match self.panic.take() {
                    Some((at, first)) if at < position => {
                        self.panic = Some((at, first));
                        Some(panic)
                    }
                    other => {
                        self.panic = Some((position, panic));
                        other.map(|(_, panic)| panic)
                    }
                };
                self.nothing_after(position);
            }
        }
        self.finish(waits, position);
        spare
    }

    fn nothing_after(&mut self, position: usize) {
        if !mutant!("crew-ignores-the-limit") {
            self.limit = self.limit.min(position + 1);
        }
    }

    /// A job is over, one way or another: those who waited for it may be ready.
    fn finish(&mut self, waits: &Waits, position: usize) {
        // A list of its own instead of calls within calls: a chain may be long.
        let mut finished = vec![position];
        while let Some(position) = finished.pop() {
            self.is_done[position] = true;
            self.n_done += 1;
            while self.is_done.get(self.n_done_first) == Some(&true) {
                self.n_done_first += 1;
            }
            for after in &waits.after[position] {
                let after = *after as usize;
                self.n_waiting_for[after] -= 1;
                if self.n_waiting_for[after] == 0 && !self.offer(waits, after) {
                    finished.push(after);
                }
            }
            while let Some(Reverse(first)) = self.gated.peek() {
                let first = *first as usize;
                if self.n_done_first < first && first < self.limit {
                    break;
                }
                self.gated.pop();
                if !self.offer(waits, first) {
                    finished.push(first);
                }
            }
        }
    }
}
