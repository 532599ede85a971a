//! The line format: `word key=value ..`, one record per line.

use core::fmt;

use super::{JobDump, SchedulerDump, ShardDump};

pub(super) fn write(dump: &SchedulerDump, out: &mut dyn fmt::Write) -> fmt::Result {
    let SchedulerDump { mode, clock, resolution, now, is_closed, quota_limit, active, shards } =
        dump;
    write!(
        out,
        "scheduler mode={} clock={clock} resolution_ns={} ",
        Name(mode),
        resolution.nanos()
    )?;
    write!(out, "now={now} is_closed={is_closed} quota_limit={quota_limit} active={active} ")?;
    writeln!(out, "shards={}", shards.len())?;
    for shard in shards {
        write_shard(shard, out)?;
        shard.jobs.iter().try_for_each(|job| write_job(job, out))?;
    }
    Ok(())
}

fn write_shard(dump: &ShardDump, out: &mut dyn fmt::Write) -> fmt::Result {
    let ShardDump { shard, wheel_offset, occupied_slots, pending, overflow, .. } = dump;
    let ShardDump { overflow_capacity, pending_commands, queued, jobs_left_out, .. } = dump;
    write!(
        out,
        "shard shard={shard} wheel_offset={wheel_offset} occupied_slots={occupied_slots} "
    )?;
    write!(out, "pending={pending} overflow={overflow} overflow_capacity={overflow_capacity} ")?;
    write!(out, "pending_commands={pending_commands} queued={queued} ")?;
    writeln!(out, "jobs={} jobs_left_out={jobs_left_out}", dump.jobs.len())
}

fn write_job(job: &JobDump, out: &mut dyn fmt::Write) -> fmt::Result {
    let JobDump { job, state, mode, due, period_ticks, backlog, last_fire, priority } = job;
    write!(out, "job shard={} job={} state={} mode={mode} ", job.shard, job.number, Name(state))?;
    write!(out, "due={due} period_ticks={period_ticks} backlog={backlog} last_fire=")?;
    match last_fire {
        Some(tick) => write!(out, "{tick}")?,
        None => out.write_str("-")?,
    }
    writeln!(out, " priority={priority}")
}

/// A name in which underscores replace spaces, because spaces separate fields.
struct Name<'w>(&'w str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.split_whitespace();
        f.write_str(parts.next().unwrap_or("-"))?;
        parts.try_for_each(|part| write!(f, "_{part}"))
    }
}
