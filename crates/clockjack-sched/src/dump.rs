//! What a scheduler looks like at one moment, as data and as text.
//!
//! The text is for people: aligned tables, which may change. The lines are for programs: a word,
//! then `key=value` pairs with one space between two, one record a line. Keys are never renamed;
//! new ones come at the end.

mod lines;
mod table;
mod text;

use alloc::vec::Vec;
use core::fmt;

use clockjack_time::{ClockKind, Resolution, Tick};

use crate::{BatchMode, Class, JobNumber};

/// The form of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DumpFormat {
    /// Tables, for people.
    #[default]
    Text,
    /// One record a line, for programs.
    Lines,
}

/// A scheduler at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerDump {
    /// What runs it.
    pub mode: &'static str,
    /// What makes its time pass.
    pub clock: ClockKind,
    /// What a tick is worth.
    pub resolution: Resolution,
    /// The present tick.
    pub now: Tick,
    /// Whether it was shut down.
    pub is_closed: bool,
    /// How many jobs may live.
    pub quota_limit: usize,
    /// How many live.
    pub active: usize,
    /// Its shards.
    pub shards: Vec<ShardDump>,
}

/// A shard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardDump {
    /// Its number.
    pub shard: u32,
    /// How far its wheel was advanced.
    pub wheel_offset: Tick,
    /// How many slots of the wheel have a timer.
    pub occupied_slots: usize,
    /// How many timers wait, those in the overflow included.
    pub pending: usize,
    /// How many of them lie further ahead than the wheel reaches.
    pub overflow: usize,
    /// How many may.
    pub overflow_capacity: usize,
    /// How many notes from other threads were not yet read.
    pub pending_commands: usize,
    /// How many runs were handed over and not yet begun.
    pub queued: usize,
    /// Its jobs, or some of them.
    pub jobs: Vec<JobDump>,
    /// How many jobs are not among them.
    pub jobs_left_out: usize,
}

/// A job at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDump {
    /// Its number.
    pub job: JobNumber,
    /// How far it is.
    pub state: &'static str,
    /// How it repeats.
    pub mode: BatchMode,
    /// When it is due.
    pub due: Tick,
    /// Its period or delay; zero for a one-shot.
    pub period_ticks: u64,
    /// How many runs it is behind.
    pub backlog: u32,
    /// When it was handed over last.
    pub last_fire: Option<Tick>,
    /// How important it is.
    pub priority: Class,
}

impl SchedulerDump {
    /// Writes it.
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
