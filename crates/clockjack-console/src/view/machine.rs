//! Workers, timers and jobs.

use serde::{Deserialize, Serialize};

use super::Number;

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkerRow {
    /// The pool.
    pub pool: String,
    /// Its index in the pool.
    pub worker: u32,
    /// The part of its time in which it is busy, of 1.
    pub busy: Number,
    /// What it runs at this moment.
    pub running: Option<Running>,
    /// Polls of tasks, per second.
    pub steps_rate: Number,
    /// Tasks that it steals, per second.
    pub steals_in_rate: Number,
    /// Tasks that are stolen from it, per second.
    pub steals_out_rate: Number,
    /// How often it goes to sleep, per second.
    pub parks_rate: Number,
    /// Tasks in its ring.
    pub ring: Number,
    /// Tasks in its LIFO slot: 0 or 1.
    pub lifo: Number,
    /// The mean time of a poll, in nanoseconds.
    pub poll_mean_ns: Number,
    /// The longest poll that was seen, in nanoseconds.
    pub longest_ns: Number,
    /// Timers that wait in its shards.
    pub timers: Number,
    /// Timers that it fires, per second.
    pub fired_rate: Number,
    /// The largest lateness of a timer, in ticks, since the start.
    pub late_max_ticks: Number,
}

/// What a worker runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Running {
    /// The pid of the task.
    pub pid: String,
    /// The path of the actor, or the name of the task; empty if it has none.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// For how long it has been seen in the same poll, in nanoseconds: a lower bound.
    pub for_ns: Number,
}

/// All workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Workers {
    /// The workers of all pools.
    pub rows: Vec<WorkerRow>,
    /// Tasks that wait in the injectors, from where all workers of a pool take them.
    pub injector: Number,
}

/// The timers of all executors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TimersView {
    /// Timers that are armed.
    pub pending: Number,
    /// Timers that are armed, per second.
    pub armed_rate: Number,
    /// Timers that fire, per second.
    pub fired_rate: Number,
    /// Timers that are cancelled, per second.
    pub cancelled_rate: Number,
    /// How many timers were how late, in ticks, since the start: in time, 1, 2 to 3, 4 to 7, and
    /// so on.
    pub by_lateness: Vec<Number>,
    /// The lateness that 99 of 100 timers do not exceed, in ticks, since the last inspection.
    pub late_p99_ticks: Number,
    /// The largest lateness, in ticks, since the start.
    pub late_max_ticks: Number,
    /// The shards.
    pub shards: Vec<TimerShardRow>,
}

/// The wheel of a shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TimerShardRow {
    /// The pool.
    pub pool: String,
    /// The number of the shard.
    pub shard: u32,
    /// Timers that wait.
    pub pending: Number,
    /// The levels of the wheel, the finest first. Of each slot, 1 if it has timers.
    pub levels: Vec<Vec<u8>>,
    /// How many ticks a slot of each level covers.
    pub slot_ticks: Vec<u64>,
    /// In how many ticks the next timer is due, at the earliest.
    pub next_due_ticks: Number,
    /// Timers that are due beyond the range of the wheel.
    pub overflow: Number,
}

/// One job of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct JobRow {
    /// Its number, like `0:17`: the shard and the number in the shard.
    pub job: String,
    /// `once`, `rate` or `delay`.
    pub mode: String,
    /// What it does.
    pub state: String,
    /// In how many nanoseconds it is due; negative if it is overdue.
    pub due_in_ns: Number,
    /// Its period or delay, in nanoseconds; unknown if it runs once.
    pub period_ns: Number,
    /// Due runs that wait behind an earlier run of the job.
    pub backlog: Number,
    /// Runs that were missed.
    pub missed: Number,
    /// How long ago its last run began, in nanoseconds.
    pub last_run_ns: Number,
    /// The policy, as text.
    pub policy: String,
    /// Its priority.
    pub priority: String,
}
