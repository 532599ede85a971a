//! Estimates how long each task runs, by looking which task each worker polls: a sampling profiler.
//!
//! A thread looks a hundred times per second and adds the time since its last look to each task
//! that it sees. The workers notice nothing of that: they store the number of the task that they
//! poll anyway, for the watchdog. The thread starts at a reading of the metrics and stops when
//! there was no reading for a minute, or when the runtime is gone.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

use clockjack_exec::{Pid, executor_ref::ExecutorRef};

use super::{TraceSource, lock};
use crate::{
    OsInstant,
    thread::{self, ThreadConfig},
};

/// The time between two looks.
const PERIOD: Duration = Duration::from_millis(10);

/// How long the thread runs after the last reading.
const KEEP: Duration = Duration::from_secs(60);

/// The largest number of tasks that are distinguished between two readings.
const TASKS_MAX: usize = 4096;

/// A task: the node of its executor and its index in the registry. The task's generation is not
/// known to the watchdog's words.
type Place = (u32, u32);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Sampler(Mutex<State>);

#[derive(Default)]
struct State {
    executors: Vec<ExecutorRef>,
    last_reading: u64,
    is_running: bool,
    busy: BTreeMap<Place, Busy>,
}

#[derive(Default)]
struct Busy {
    /// The task at this place at the last reading.
    pid: Option<Pid>,
    ns: u64,
}

fn place(pid: Pid) -> Place {
    (pid.node(), pid.index())
}

impl Sampler {
    /// Metrics are read: the thread runs for another minute, on these pools.
    pub(super) fn keep_running(self: &Arc<Self>, pools: &[TraceSource]) {
        let mut state = lock(&self.0);
        state.last_reading = OsInstant::now().as_nanos();
        state.executors = pools.iter().map(|pool| pool.executor.clone()).collect();
        if state.is_running {
            return;
        }
        let weak = Arc::downgrade(self);
        let config = ThreadConfig { name: "cj-metrics".into(), ..ThreadConfig::DEFAULT };
        // Without the thread, the estimates are zero, and the next reading tries again.
        state.is_running = thread::start(&config, move || run(&weak)).is_ok();
    }

    /// How long each of these tasks has run so far. Forgets all others.
    pub(super) fn busy_ns(&self, alive: impl Iterator<Item = Pid>) -> BTreeMap<Pid, u64> {
        let mut state = lock(&self.0);
        let mut before = core::mem::take(&mut state.busy);
        let mut all = BTreeMap::new();
        for pid in alive {
            let Some(mut busy) = before.remove(&place(pid)) else { continue };
            // If another task was there at the last reading, the time may be that task's.
            if busy.pid.replace(pid).is_some_and(|earlier| earlier != pid) {
                busy.ns = 0;
            }
            all.insert(pid, busy.ns);
            state.busy.insert(place(pid), busy);
        }
        all
    }

    /// One sample, `elapsed` nanoseconds after the one before it. Returns false if it was the last.
    fn sample(&self, now: u64, elapsed: u64) -> bool {
        let mut state = lock(&self.0);
        let is_wanted = Duration::from_nanos(now.saturating_sub(state.last_reading)) < KEEP;
        let State { executors, busy, .. } = &mut *state;
        for executor in &*executors {
            executor.polled_tasks(|index| {
                let key = (executor.node(), index);
                if busy.len() < TASKS_MAX || busy.contains_key(&key) {
                    busy.entry(key).or_default().ns += elapsed;
                }
            });
        }
        if !is_wanted {
            state.is_running = false;
            state.executors.clear();
        }
        is_wanted
    }
}

fn run(sampler: &Weak<Sampler>) {
    let mut last = OsInstant::now().as_nanos();
    loop {
        std::thread::sleep(PERIOD);
        let Some(sampler) = sampler.upgrade() else { return };
        let now = OsInstant::now().as_nanos();
        if !sampler.sample(now, now.saturating_sub(last)) {
            return;
        }
        last = now;
    }
}
