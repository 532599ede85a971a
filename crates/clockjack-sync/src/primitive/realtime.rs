//! A processor with one real-time thread, for models of priority inversion under shuttle.
//!
//! The threads of such a model share one processor. One of them may be of a real-time class
//! (`SCHED_FIFO`): while that thread is ready, no other one runs. A yield changes nothing, because
//! all others have a lower priority; only a block lets them run, for a while that is drawn at
//! random. So the real-time thread preempts the others between any two of their accesses, and one
//! that waits for a thread which it has preempted, and does not block, waits for ever. The limit on
//! the accesses of a schedule finds that.

use core::cell::RefCell;
use std::thread_local;

use shuttle::{
    scheduler::{Schedule, Scheduler, Task, TaskId},
    thread,
};

use super::{ITERATIONS, hint, number, run};
use crate::{backoff, splitmix::SplitMix};

/// The longest time of a block, in accesses of the other threads: longer than an operation that
/// others wait for, so that a block may also be long enough at once.
const BLOCK_MAX: u32 = 32;

thread_local! {
    /// shuttle runs all threads of a scenario on one thread of the operating system.
    static PROCESSOR: RefCell<Processor> = const { RefCell::new(Processor::new()) };
}

struct Processor {
    /// The thread that runs.
    current: Option<TaskId>,
    realtime: Option<TaskId>,
    /// For how many accesses of the others the real-time thread is still blocked.
    blocked_for: u32,
    random: SplitMix,
}

impl Processor {
    const fn new() -> Self {
        Self { current: None, realtime: None, blocked_for: 0, random: SplitMix::new(0) }
    }

    fn choose(&mut self, ready: &[&Task]) -> TaskId {
        let realtime = self.realtime.filter(|id| ready.iter().any(|task| task.id() == *id));
        if let Some(realtime) = realtime
            && (self.blocked_for == 0 || ready.len() == 1)
        {
            self.blocked_for = 0;
            return realtime;
        }
        self.blocked_for = self.blocked_for.saturating_sub(1);
        let others = || ready.iter().map(|task| task.id()).filter(|id| Some(*id) != realtime);
        let n_others = u32::try_from(others().count()).expect("a scenario has a few threads");
        let chosen = self.random.below(n_others) as usize;
        others().nth(chosen).expect("it is less than their number")
    }
}

/// Makes the calling thread the real-time thread of the scenario.
///
/// # Panics
///
/// If there is one already.
pub fn become_realtime() {
    PROCESSOR.with_borrow_mut(|processor| {
        assert!(processor.realtime.is_none(), "there is one real-time thread");
        processor.realtime = processor.current;
    });
}

/// Blocks the calling thread for a short time, if it is the real-time thread; else yields. This is
/// what a host does in [`backoff::wait`].
pub fn block_realtime() {
    PROCESSOR.with_borrow_mut(|processor| {
        if processor.current.is_some() && processor.current == processor.realtime {
            processor.blocked_for = 1 + processor.random.below(BLOCK_MAX);
        }
    });
    thread::yield_now();
}

/// As [`explore_part`](super::explore_part), on one processor, of which one thread of the scenario
/// may become the [real-time thread](become_realtime).
///
/// # Panics
///
/// As [`explore_part`](super::explore_part).
pub fn explore_realtime(share: usize, scenario: impl Fn() + Send + Sync + 'static) {
    // For all scenarios of the program: a thread of another one only yields.
    backoff::set_wait(|_| if is_realtime() { block_realtime() } else { hint::spin_loop() });
    let n_left = number("CLOCKJACK_SHUTTLE_ITERATIONS").unwrap_or(ITERATIONS) / share;
    let seeds = SplitMix::new(number("CLOCKJACK_SHUTTLE_SEED").unwrap_or(1));
    run(RealtimeScheduler { n_left, seeds }, scenario);
}

fn is_realtime() -> bool {
    PROCESSOR.with_borrow(|processor| {
        processor.realtime.is_some() && processor.realtime == processor.current
    })
}

struct RealtimeScheduler {
    n_left: usize,
    seeds: SplitMix,
}

impl Scheduler for RealtimeScheduler {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.n_left = self.n_left.checked_sub(1)?;
        let seed = self.seeds.next_u64();
        PROCESSOR.set(Processor { random: SplitMix::new(seed), ..Processor::new() });
        Some(Schedule::new(seed))
    }

    fn next_task(
        &mut self,
        ready: &[&Task],
        _current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        PROCESSOR.with_borrow_mut(|processor| {
            processor.current = Some(processor.choose(ready));
            processor.current
        })
    }

    fn next_u64(&mut self) -> u64 {
        PROCESSOR.with_borrow_mut(|processor| processor.random.next_u64())
    }
}
