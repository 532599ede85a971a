//! The text format: a header, and tables of shards, of periodic jobs and of one-shots.

use alloc::{
    format,
    string::{String, ToString as _},
};
use core::fmt;

use clockjack_time::{Tick, TickSpan};

use super::{
    JobDump, SchedulerDump, ShardDump,
    table::{
        Align::{Left, Right},
        TextTable,
    },
};
use crate::BatchMode;

pub(super) fn write(dump: &SchedulerDump, out: &mut dyn fmt::Write) -> fmt::Result {
    let state = if dump.is_closed { "closed" } else { "open" };
    writeln!(out, "scheduler  {}, {state}", dump.mode)?;
    writeln!(out, "clock      {}, a tick is {}", dump.clock, dump.resolution)?;
    let since_start = dump.resolution.duration(TickSpan::new(dump.now.get()));
    writeln!(out, "now        tick {}, {since_start:?} after the start", dump.now)?;
    writeln!(out, "jobs       {} of {}", dump.active, dump.quota_limit)?;

    writeln!(out, "\nshards")?;
    shards(dump).write(out)?;
    let is_once = |job: &&JobDump| job.mode == BatchMode::OneShot;
    writeln!(out, "\nperiodic jobs")?;
    if dump.jobs().any(|job| !is_once(&job)) {
        periodic(dump.jobs().filter(|job| !is_once(job))).write(out)?;
    } else {
        writeln!(out, "  none")?;
    }
    writeln!(out, "\none-shots")?;
    if dump.jobs().any(|job| is_once(&job)) {
        one_shots(dump.jobs().filter(is_once)).write(out)?;
    } else {
        writeln!(out, "  none")?;
    }
    match dump.shards.iter().map(|shard| shard.jobs_left_out).sum::<usize>() {
        0 => Ok(()),
        left_out => writeln!(out, "\n{left_out} jobs are left out"),
    }
}

fn shards(dump: &SchedulerDump) -> TextTable<8> {
    let columns = [
        (Right, "shard"),
        (Right, "wheel at"),
        (Right, "slots used"),
        (Right, "pending"),
        (Right, "overflow"),
        (Right, "commands"),
        (Right, "queued"),
        (Right, "left out"),
    ];
    let row = |shard: &ShardDump| {
        [
            shard.shard.to_string(),
            shard.wheel_offset.to_string(),
            shard.occupied_slots.to_string(),
            shard.pending.to_string(),
            format!("{}/{}", shard.overflow, shard.overflow_capacity),
            shard.pending_commands.to_string(),
            shard.queued.to_string(),
            shard.jobs_left_out.to_string(),
        ]
    };
    TextTable::new(columns, dump.shards.iter().map(row))
}

fn periodic<'d>(jobs: impl Iterator<Item = &'d JobDump>) -> TextTable<8> {
    let columns = [
        (Left, "job"),
        (Left, "state"),
        (Left, "mode"),
        (Left, "class"),
        (Right, "due"),
        (Right, "period"),
        (Right, "backlog"),
        (Right, "last fire"),
    ];
    let row = |job: &JobDump| {
        [
            job.job.to_string(),
            String::from(job.state),
            job.mode.to_string(),
            job.priority.to_string(),
            job.due.to_string(),
            job.period_ticks.to_string(),
            job.backlog.to_string(),
            job.last_fire.map_or_else(|| String::from("never"), |tick: Tick| tick.to_string()),
        ]
    };
    TextTable::new(columns, jobs.map(row))
}

fn one_shots<'d>(jobs: impl Iterator<Item = &'d JobDump>) -> TextTable<4> {
    let columns = [(Left, "job"), (Left, "state"), (Left, "class"), (Right, "due")];
    let row = |job: &JobDump| {
        let state = String::from(job.state);
        [job.job.to_string(), state, job.priority.to_string(), job.due.to_string()]
    };
    TextTable::new(columns, jobs.map(row))
}
