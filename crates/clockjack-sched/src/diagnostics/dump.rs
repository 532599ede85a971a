//! A snapshot of a scheduler, as data and as text.
//!
//! The text format is for people: aligned tables, which may change. The line format is for
//! programs: a word, then `key=value` pairs separated by one space, one record per line. Keys are
//! never renamed; new ones are added at the end.

mod lines;
mod table;
mod text;

use alloc::vec::Vec;
use core::fmt;

use clockjack_time::{ClockKind, Resolution, Tick};

use crate::{BatchMode, JobNumber, TimerPriority};

/// The format of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DumpFormat {
    /// Tables, for people.
    #[default]
    Text,
    /// One record per line, for programs.
    Lines,
}

/// A snapshot of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerDump {
    /// The mode.
    pub mode: &'static str,
    /// The kind of its clock.
    pub clock: ClockKind,
    /// The length of a tick.
    pub resolution: Resolution,
    /// The current tick.
    pub now: Tick,
    /// Whether it was shut down.
    pub is_closed: bool,
    /// How many jobs may be live.
    pub quota_limit: usize,
    /// How many jobs are live.
    pub active: usize,
    /// Its shards.
    pub shards: Vec<ShardDump>,
}

/// A snapshot of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardDump {
    /// Its number.
    pub shard: u32,
    /// How far its wheel was advanced.
    pub wheel_offset: Tick,
    /// How many slots of the wheel have a timer.
    pub occupied_slots: usize,
    /// How many timers wait, including those in the overflow.
    pub pending: usize,
    /// How many of them are due beyond the range of the wheel.
    pub overflow: usize,
    /// How many timers the overflow can hold.
    pub overflow_capacity: usize,
    /// How many remote operations were not applied yet.
    pub pending_commands: usize,
    /// How many jobs are due and wait for a poll.
    pub queued: usize,
    /// Its jobs, or some of them.
    pub jobs: Vec<JobDump>,
    /// How many jobs are not among them.
    pub jobs_left_out: usize,
}

/// A snapshot of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDump {
    /// Its number.
    pub job: JobNumber,
    /// Its state.
    pub state: &'static str,
    /// How it repeats.
    pub mode: BatchMode,
    /// When it is due.
    pub due: Tick,
    /// Its period or delay; zero for a one-shot.
    pub period_ticks: u64,
    /// How many due runs wait behind an earlier run of the job; as in [`Policy`](crate::Policy).
    pub backlog: u32,
    /// When a run was last handed over.
    pub last_fire: Option<Tick>,
    /// Its priority.
    pub priority: TimerPriority,
}

impl SchedulerDump {
    /// Writes the dump.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, format: DumpFormat, out: &mut dyn fmt::Write) -> fmt::Result {
        match format {
            DumpFormat::Text => text::write(self, out),
            DumpFormat::Lines => lines::write(self, out),
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobDump> {
        self.shards.iter().flat_map(|shard| &shard.jobs)
    }
}

impl fmt::Display for SchedulerDump {
    /// As [`DumpFormat::Text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(DumpFormat::Text, f)
    }
}
