//! The state under the lock of a pool for blocking work: counters and queues. Nothing here blocks
//! or starts a thread.

use core::mem;
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar},
};

use super::{BlockingConfig, BlockingStats};

/// A closure that waits for a thread.
pub(super) type Job = Box<dyn BlockingJob>;

/// Work that a thread runs once.
pub(super) trait BlockingJob: Send {
    /// Runs the work. Returns whether the work panicked, if the job itself catches the panic.
    fn run(self: Box<Self>) -> bool;
}

impl<F: FnOnce() + Send> BlockingJob for F {
    fn run(self: Box<Self>) -> bool {
        self();
        false
    }
}

/// Where an idle thread waits: one per thread, so that a specific thread can be woken.
pub(super) type IdleSlot = Condvar;

/// Why a closure is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    Closed,
    NoThread,
}

/// The state of a pool.
#[derive(Default)]
pub(super) struct State {
    queue: VecDeque<Job>,
    /// The slots of idle threads; the last thread to become idle is last.
    idle: Vec<Arc<IdleSlot>>,
    /// Closures that were admitted and are not queued yet, because a thread is being started.
    reserved: usize,
    running: usize,
    /// Threads that have started and not exited.
    live: usize,
    /// Threads that are being started.
    starting: usize,
    /// The number of the thread that was started last, or was to be.
    last_number: u64,
    is_closed: bool,
    threads_started: u64,
    finished: u64,
    panicked: u64,
    refused: u64,
    dropped: u64,
}

impl State {
    /// Admits one closure (rule 1).
    pub(super) fn reserve(&mut self, config: &BlockingConfig) -> Result<(), Refusal> {
        let load_max = config.threads_max.saturating_add(config.queue_max);
        let refusal = if self.is_closed {
            Refusal::Closed
        } else if self.load() >= load_max {
            Refusal::Full
        } else {
            self.reserved += 1;
            return Ok(());
        };
        self.refused += 1;
        Err(refusal)
    }

    /// The number of the thread to start, if one is needed (rule 2).
    pub(super) fn reserve_thread(&mut self, config: &BlockingConfig) -> Option<u64> {
        let n_threads = self.n_threads();
        let is_wanted = self.load() > n_threads;
        if !is_wanted || n_threads >= config.threads_max {
            return None;
        }
        self.starting += 1;
        self.last_number += 1;
        Some(self.last_number)
    }

    /// Whether the admitted closure may be pushed, after the attempt to start a thread.
    pub(super) fn confirm(&mut self, is_started: bool) -> Result<(), Refusal> {
        if !is_started {
            self.starting -= 1;
        }
        let refusal = if self.is_closed {
            Refusal::Closed
        } else if !is_started && self.live == 0 {
            // Other threads that are being started do not count, because their start may fail, too;
            // then the queued closure would wait for ever.
            Refusal::NoThread
        } else {
            return Ok(());
        };
        self.reserved -= 1;
        self.refused += 1;
        Err(refusal)
    }

    /// Queues an admitted closure; returns the slot of the thread to wake (rules 3 and 4).
    pub(super) fn push(&mut self, work: Job) -> Option<Arc<IdleSlot>> {
        self.reserved -= 1;
        self.queue.push_back(work);
        self.idle.pop()
    }

    /// Takes the oldest closure, to run it at once.
    pub(super) fn pop(&mut self) -> Option<Job> {
        let work = self.queue.pop_front()?;
        self.running += 1;
        Some(work)
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the other threads suffice for the load (rule 4).
    pub(super) fn is_surplus(&self) -> bool {
        self.n_threads() > self.load()
    }

    pub(super) fn count_finished(&mut self, panicked: bool) {
        self.running -= 1;
        self.finished += 1;
        self.panicked += u64::from(panicked);
    }

    pub(super) fn count_dropped(&mut self, n_dropped: usize, n_panicked: usize) {
        self.dropped += n_dropped as u64;
        self.panicked += n_panicked as u64;
    }

    /// The number of running closures.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// Refuses all new closures; returns the queued ones and the slots of all idle threads.
    pub(super) fn close(&mut self) -> (VecDeque<Job>, Vec<Arc<IdleSlot>>) {
        self.is_closed = true;
        (mem::take(&mut self.queue), mem::take(&mut self.idle))
    }

    /// A thread calls this first.
    pub(super) fn thread_started(&mut self) {
        self.starting -= 1;
        self.live += 1;
        self.threads_started += 1;
    }

    /// A thread calls this last.
    pub(super) fn thread_exited(&mut self) {
        self.live -= 1;
    }

    /// The thread becomes idle; false if the pool is closed.
    pub(super) fn enter_idle(&mut self, slot: &Arc<IdleSlot>) -> bool {
        if !self.is_closed {
            self.idle.push(Arc::clone(slot));
        }
        !self.is_closed
    }

    /// Whether the thread is idle and was not woken.
    pub(super) fn is_idle(&self, slot: &Arc<IdleSlot>) -> bool {
        self.idle.iter().any(|other| Arc::ptr_eq(other, slot))
    }

    /// The thread stops being idle; returns whether it still was, that is, was not woken.
    pub(super) fn leave_idle(&mut self, slot: &Arc<IdleSlot>) -> bool {
        let was_idle = self.is_idle(slot);
        self.idle.retain(|other| !Arc::ptr_eq(other, slot));
        was_idle
    }

    pub(super) fn stats(&self) -> BlockingStats {
        BlockingStats {
            threads: self.n_threads(),
            idle: self.idle.len(),
            running: self.running,
            queued: self.queue.len(),
            threads_started: self.threads_started,
            finished: self.finished,
            panicked: self.panicked,
            refused: self.refused,
            dropped: self.dropped,
        }
    }

    /// The number of closures that were admitted and have not finished.
    fn load(&self) -> usize {
        self.reserved + self.queue.len() + self.running
    }

    /// The number of threads that have started.
    pub(super) const fn n_live(&self) -> usize {
        self.live
    }

    /// The number of threads, including those that are being started.
    pub(super) const fn n_threads(&self) -> usize {
        self.live + self.starting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(threads_max: usize) -> BlockingConfig {
        BlockingConfig { threads_max, ..BlockingConfig::DEFAULT }
    }

    /// Admits a closure for which a thread must be started.
    fn start(state: &mut State) {
        state.reserve(&config(8)).unwrap();
        assert!(state.reserve_thread(&config(8)).is_some());
    }

    #[test]
    fn a_thread_stays_for_what_is_admitted_and_not_queued() {
        let (mut state, slot) = (State::default(), Arc::default());
        start(&mut state);
        // The thread is faster than its starter, and is idle until its timeout.
        state.thread_started();
        assert!(state.pop().is_none());
        assert!(state.enter_idle(&slot));
        assert!(state.leave_idle(&slot));
        assert!(!state.is_surplus());

        state.confirm(true).unwrap();
        assert!(state.push(Box::new(|| ())).is_none(), "no thread is idle");
        assert!(state.pop().is_some());
        state.count_finished(false);
        assert!(state.is_surplus());
    }

    #[test]
    fn a_start_that_fails_does_not_rely_on_another_that_may_fail() {
        let mut state = State::default();
        start(&mut state);
        start(&mut state);
        assert_eq!(state.confirm(false), Err(Refusal::NoThread));
        assert_eq!(state.confirm(false), Err(Refusal::NoThread));
        assert_eq!(state.n_threads(), 0);
        assert_eq!(state.load(), 0);
    }

    #[test]
    fn a_start_that_fails_relies_on_a_thread_that_is_there() {
        let (mut state, slot) = (State::default(), Arc::default());
        start(&mut state);
        start(&mut state);
        state.thread_started();
        assert!(state.enter_idle(&slot));
        assert_eq!(state.confirm(false), Ok(()));
        let woken = state.push(Box::new(|| ()));
        assert!(woken.is_some_and(|woken| Arc::ptr_eq(&woken, &slot)));
        assert!(!state.leave_idle(&slot), "a woken thread is not idle");
    }

    #[test]
    fn a_close_while_a_thread_is_started_refuses_what_it_was_for() {
        let mut state = State::default();
        start(&mut state);
        let (queue, slots) = state.close();
        assert!(queue.is_empty() && slots.is_empty());
        assert_eq!(state.confirm(true), Err(Refusal::Closed));
        state.thread_started();
        assert!(!state.enter_idle(&Arc::default()));
        state.thread_exited();
        assert_eq!(state.n_threads(), 0);
    }

    #[test]
    fn threads_have_numbers_of_their_own() {
        let mut state = State::default();
        let mut numbers = Vec::new();
        for is_started in [true, false, true] {
            state.reserve(&config(8)).unwrap();
            numbers.extend(state.reserve_thread(&config(8)));
            let _ = state.confirm(is_started);
        }
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(state.reserve_thread(&config(2)), None, "there are two");
    }
}
