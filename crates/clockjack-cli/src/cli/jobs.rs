//! The arguments of `clockjack jobs`, and the files it reads and writes.

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, value_parser};
use clockjack_sched::{CatchUp, DumpFormat, ReplayTrace};
use clockjack_time::Resolution;

use super::{Format, ProgressMode, Streams, exit_codes, graph::check_distinct_files, write_result};
use crate::{
    failure::Failure,
    jobs::{self, Dump, Outcome, Plan},
    output::OutputFile,
    span,
};

const NOTE: &str = "\
A third of the jobs run once, a third at a fixed rate and a third with a fixed delay. The periods
are 1/64 to 1/8 of the whole duration. All jobs are registered in the first half. Every run is
checked against an independent model of the scheduler. The output does not depend on the machine:
equal arguments give equal bytes.

DURATION is a whole number with a unit (ns, us, ms, s, m, h or d), for example 250ms.

A dump is printed before the report, followed by an empty line. A dump during the stall shows the
state at the end of the stall, before any job has run: it shows the backlog.";

const EXAMPLES: &str = "\
Examples:
  clockjack jobs                                  a thousand jobs within a minute
  clockjack jobs --stall 20s                      the clock jumps: bursts, drift and warnings
  clockjack jobs --stall 20s --policy folded      the same, but one call for all missed runs
  clockjack jobs --jobs 9 --dump text --at 10s    the state of the scheduler after 10 s
  clockjack jobs --trace a.trace                  write a trace
  clockjack jobs --seed 2 --compare a.trace       first difference to that trace; exits with 1";

/// Run jobs once, at a fixed rate and with a fixed delay in virtual time, and check every run
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{EXAMPLES}"), &[0, 1, 2]))]
pub(super) struct JobsArgs {
    /// Number of jobs; at most 100000.
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT.jobs,
        value_parser = value_parser!(u32).range(..=i64::from(Plan::JOBS_MAX)))]
    jobs: u32,

    /// Seed for the jobs and their cancellations. Equal seeds give equal runs.
    #[arg(long, value_name = "SEED", default_value_t = Plan::DEFAULT.seed)]
    seed: u64,

    /// Virtual duration of the run; at most 2147483647 ticks.
    #[arg(long = "for", value_name = "DURATION", default_value = "60s",
        value_parser = span::parse)]
    length: Duration,

    /// Length of a tick; at most 4294967295ns.
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = resolution)]
    resolution: Resolution,

    /// Percentage of jobs that are cancelled during the run; 0 to 100.
    #[arg(long, value_name = "PERCENT", default_value_t = Plan::DEFAULT.cancel_percent,
        value_parser = value_parser!(u8).range(..=i64::from(Plan::CANCEL_PERCENT_MAX)))]
    cancel: u8,

    /// How far the clock jumps in the middle of the run, while nothing executes; at most half of
    /// --for.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::parse)]
    stall: Duration,

    /// What happens to fixed-rate runs that the jump has skipped. A jump of more than a minute
    /// always folds them.
    #[arg(long, value_enum, default_value_t = PolicyMode::Individually)]
    policy: PolicyMode,

    /// Print the state of the scheduler: as tables, or as one record per line for programs.
    #[arg(long, value_enum, value_name = "FORM")]
    dump: Option<DumpMode>,

    /// When to print the state; default: in the middle of the run, before the jump.
    #[arg(long, value_name = "DURATION", value_parser = span::parse, requires = "dump")]
    at: Option<Duration>,

    /// Write the operations of the scheduler to this file, one record per line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Compare the run with the trace in this file and report the first difference.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    /// Output format: tables, or one JSON object on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// When to show a progress line on standard error; `auto` shows it on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyMode {
    Individually,
    Folded,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DumpMode {
    Text,
    Lines,
}

impl JobsArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let read: Vec<&Path> = self.compare.as_deref().into_iter().collect();
        check_distinct_files(&read, &self.trace)?;
        // Checked before the run, so that an unreadable or unwritable file is reported immediately.
        let file = self.trace.as_deref().map(OutputFile::at).transpose()?;
        let recorded = self.compare.as_deref().map(read_trace).transpose()?;
        let Outcome { report, trace } = jobs::simulate(self.plan(), self.progress.on(streams))?;
        if let Some(file) = file {
            file.write(trace.to_string())?;
        }
        let text = match self.format {
            Format::Human => report.to_string(),
            Format::Json | Format::Ndjson => report.to_json(),
        };
        write_result(streams, &text)?;
        if let (Some(path), Some(recorded)) = (&self.compare, recorded)
            && let Some(divergence) = recorded.first_divergence(&trace)
        {
            return Err(Failure::diverged(path, divergence));
        }
        Ok(())
    }

    fn plan(&self) -> Plan {
        let dump = self.dump.map(|mode| {
            let format = match mode {
                DumpMode::Text => DumpFormat::Text,
                DumpMode::Lines => DumpFormat::Lines,
            };
            Dump { format, at: self.at }
        });
        Plan {
            jobs: self.jobs,
            seed: self.seed,
            length: self.length,
            resolution: self.resolution,
            cancel_percent: self.cancel,
            stall: self.stall,
            policy: match self.policy {
                PolicyMode::Individually => CatchUp::Individually,
                PolicyMode::Folded => CatchUp::Folded,
            },
            dump,
        }
    }
}

fn resolution(text: &str) -> Result<Resolution, String> {
    let nanos = u32::try_from(span::parse(text)?.as_nanos()).ok();
    let resolution = nanos.and_then(Resolution::from_nanos);
    resolution.ok_or_else(|| format!("the length of a tick must be between 1ns and {}ns", u32::MAX))
}

fn read_trace(path: &Path) -> Result<ReplayTrace, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::trace_input(path, error))?;
    ReplayTrace::parse(&text).map_err(|error| Failure::not_a_trace(path, error))
}
