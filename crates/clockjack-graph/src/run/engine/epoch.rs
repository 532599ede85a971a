//! The state of a domain, and one epoch of its regions on one thread.
//!
//! # How an epoch commits
//!
//! A *commit* makes a published value visible to its reader: it moves the value from the outbox of
//! the publisher into the channel of the reader. Components never write to channels themselves.
//! There is no instant at which a whole epoch commits: the epoch is atomic because nobody reads a
//! channel before everybody who writes to it in this epoch has finished.
//!
//! 1. **Stage.** A component publishes into its own outbox, which no other component reads. If its
//!    call fails, everything that the call has staged is discarded.
//! 2. **Commit immediate edges.** After a successful call, the region moves the staged values of
//!    its immediate edges into the channels of the readers. The readers are later in *compiled
//!    order* (the topological order of the plan): they run in the same epoch, after this region has
//!    finished, and see the values.
//!    A composite loop holds the values for other regions until the loop has ended; invocations
//!    that overlap commit together, in the order of the invocations.
//! 3. **Defer the other edges.** Values on `delay`, `state` and `async` edges, values for other
//!    domains, and writes to the blackboard go to a list of the region. At the beginning of the
//!    next epoch the coordinator commits these lists in compiled order, then the values that came
//!    from outside, in the order of arrival, then the results of tasks, by their numbers
//!    (`domain/boundary.rs`). So all regions of one epoch see the same values there, whichever
//!    region runs first.
//! 4. **Record.** Each region appends what it commits to a buffer of its own. At the end of the
//!    epoch the coordinator concatenates the buffers in compiled order and writes them to the
//!    commit log ([`commit_log`](crate::run::observe::commit_log)).
//!
//! A channel belongs to one edge, so it has one writer, which has finished before the reader
//! starts: two regions that run concurrently never put values into the same channel. With equal
//! inputs, the result of an epoch therefore depends on compiled order only. One thread that runs
//! the regions in that order ([`DomainState::run_sequential`]) and several threads that run
//! independent regions concurrently ([`helpers`](super::helpers)) write the same commit log, byte
//! for byte. If a region fails and that ends the run, the effects of regions after it in compiled
//! order do not count, even if another thread has already run them: the coordinator drops their log
//! buffers, tasks, log lines and counts of users.
//!
//! # What a failure leaves
//!
//! * A call fails: what it has staged is discarded. The policy of the component decides whether the
//!   run goes on (`node.rs`); if so, the epoch commits everything else.
//! * A member of a loop fails: see [`loops`](super::loops).
//! * A failure ends the run: as above; the log of the epoch ends with an `X`, and what the epoch
//!   has deferred is never committed.
//! * A panic outside of a call, for example while a value is encoded: the run ends, and the epoch
//!   leaves no entry in the log.
//!
//! # Who may touch a region
//!
//! Between epochs the coordinator has exclusive access to everything here (`Arc::get_mut`). In a
//! parallel epoch each region is behind its own lock. The worker that runs the region holds the
//! lock; a worker that runs an earlier region takes the lock for a moment to put a message into a
//! channel. A region starts only after all regions that publish to it have finished, so nobody
//! waits for the lock of a region whose component is being called. A worker that holds a lock takes
//! only locks of regions later in compiled order, so the locks cannot deadlock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    current_position::CurrentPosition,
    env::Env,
    region::{Downstream, Region},
};
use crate::{
    data::Value,
    lock::lock,
    run::{
        flow::message::Meta,
        observe::{
            report::Fault,
            trace::{ClockCache, Lines},
        },
        setup::wiring,
    },
};

/// The regions of a domain, in compiled order, and what they see of an epoch.
pub(crate) struct DomainState {
    pub(crate) regions: Vec<RegionCell>,
    pub(crate) env: Env,
    /// For each lane of the plan, whether its components are called in this epoch.
    pub(crate) is_due: Vec<bool>,
    /// Trace records of the regions that one worker has run in this epoch.
    pub(crate) lines: Box<Lines>,
}

/// A region and its lock. A panic of a lock holder does not poison it: the panic ends the run, and
/// the run still reports what the regions counted.
pub(crate) struct RegionCell(Mutex<Region>);

impl RegionCell {
    pub(crate) fn new(region: Region) -> Self {
        Self(Mutex::new(region))
    }

    /// The region, for the owner of the cell: takes no lock.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> &mut Region {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Region> {
        lock(&self.0)
    }
}

/// The result of an epoch.
pub(crate) type EpochOutcome = super::helpers::EpochOutcome<Fault>;

impl DomainState {
    /// Runs all regions in compiled order, on this thread.
    pub(crate) fn run_sequential(&mut self) -> EpochOutcome {
        if self.env.is_unobserved() {
            self.run_regions::<true>()
        } else {
            self.run_regions::<false>()
        }
    }

    /// The code is generated twice: an [unobserved](Env::is_unobserved) epoch does not check at
    /// each call whether the call is to be measured, traced or logged.
    fn run_regions<const IS_UNOBSERVED: bool>(&mut self) -> EpochOutcome {
        let (mut n_called, mut first_fault) = (0, None);
        let mut clock = ClockCache::default();
        let env = &self.env;
        if must_stop(env) {
            return EpochOutcome { overlap: 1, ..EpochOutcome::default() };
        }
        let is_all_due = self.is_due.iter().all(|is_due| *is_due);
        let (mut first, mut rest) = (0, self.regions.as_mut_slice());
        while let Some((region, after)) = rest.split_first_mut() {
            first += 1;
            let region = region.get_mut();
            if is_all_due || self.is_due[region.lane] {
                let regions = &mut *after;
                let clock = &mut clock;
                let downstream = SequentialOut::<'_, IS_UNOBSERVED> { first, regions, clock };
                if !IS_UNOBSERVED {
                    lend(&mut self.lines, region);
                }
                let stepped = region.step(env, downstream);
                if !IS_UNOBSERVED {
                    core::mem::swap(&mut self.lines, &mut region.recorder.lines);
                }
                match stepped {
                    Ok(0) => {}
                    Ok(in_this) => {
                        n_called += u64::from(in_this);
                        // Only after a region that called something: the others take no time.
                        if must_stop(env) {
                            lend(&mut self.lines, region);
                            region.note_stop_request(env);
                            core::mem::swap(&mut self.lines, &mut region.recorder.lines);
                            break;
                        }
                    }
                    Err(fault) => {
                        first_fault = Some((first - 1, fault));
                        break;
                    }
                }
            }
            rest = after;
        }
        let may_have_faults = core::mem::take(self.env.has_faults.get_mut());
        EpochOutcome { n_called, fault: first_fault, overlap: 1, may_have_faults }
    }

    /// How long all measured calls took so far.
    pub(crate) fn measured_ns(&mut self) -> u64 {
        let regions = self.regions.iter_mut().map(RegionCell::get_mut);
        regions.flat_map(|region| &region.nodes).map(|node| node.counts.measured_ns).sum()
    }

    /// Concatenates the trace records of regions that several workers have run, in compiled order.
    pub(crate) fn gather_lines(&mut self) {
        for region in &mut self.regions {
            self.lines.append(&mut region.get_mut().recorder.lines);
        }
    }

    /// Runs one region, while other workers may run other regions.
    pub(crate) fn run_region(&self, position: usize, worker: u16) -> Result<u32, Fault> {
        let current = CurrentPosition::of_region(wiring::count(position));
        let _guard = current.enter(&self.env.has_buffered_counts);
        let mut region = self.regions[position].lock();
        region.recorder.worker = worker;
        let downstream = ParallelOut { regions: &self.regions, clock: ClockCache::default() };
        let result = region.step(&self.env, downstream);
        if self.env.is_stopping() && result.as_ref().is_ok_and(|n_called| *n_called > 0) {
            region.note_stop_request(&self.env);
        }
        result
    }
}

/// Lets a region append to the trace records of the regions before it.
#[inline]
fn lend(lines: &mut Box<Lines>, region: &mut Region) {
    lines.begin();
    core::mem::swap(lines, &mut region.recorder.lines);
}

/// Whether an epoch must not go on.
#[inline]
fn must_stop(env: &Env) -> bool {
    env.is_stopping()
}

/// Delivery to later regions when one worker runs all of them: takes no lock.
struct SequentialOut<'a, const IS_UNOBSERVED: bool> {
    /// The position of the first of `regions`.
    first: usize,
    /// The regions after the one that runs.
    regions: &'a mut [RegionCell],
    clock: &'a mut ClockCache,
}

impl<const IS_UNOBSERVED: bool> Downstream for SequentialOut<'_, IS_UNOBSERVED> {
    const IS_UNOBSERVED: bool = IS_UNOBSERVED;

    #[inline(always)]
    fn deliver(
        &mut self,
        (region, channel): (u32, u32),
        now_ns: u64,
        value: Value,
        meta: &Meta,
    ) -> u64 {
        let to = self.regions[region as usize - self.first].get_mut();
        put(to, channel, now_ns, value, meta)
    }

    fn room(&mut self, region: u32, channel: u32) -> u32 {
        let to = self.regions[region as usize - self.first].get_mut();
        to.channels[channel as usize].room()
    }

    fn clock(&mut self) -> &mut ClockCache {
        self.clock
    }
}

/// Delivery to later regions while other workers run some of them: locks the reader's region.
struct ParallelOut<'a> {
    regions: &'a [RegionCell],
    clock: ClockCache,
}

impl Downstream for ParallelOut<'_> {
    const IS_UNOBSERVED: bool = false;

    fn deliver(
        &mut self,
        (region, channel): (u32, u32),
        now_ns: u64,
        value: Value,
        meta: &Meta,
    ) -> u64 {
        put(&mut self.regions[region as usize].lock(), channel, now_ns, value, meta)
    }

    fn room(&mut self, region: u32, channel: u32) -> u32 {
        self.regions[region as usize].lock().channels[channel as usize].room()
    }

    fn clock(&mut self) -> &mut ClockCache {
        &mut self.clock
    }
}

#[inline(always)]
fn put(region: &mut Region, channel: u32, now_ns: u64, value: Value, meta: &Meta) -> u64 {
    let channel = &mut region.channels[channel as usize];
    if !channel.put(now_ns, value, meta) {
        region.n_published.failed_commit += 1;
    }
    channel.counters().publish_count
}
