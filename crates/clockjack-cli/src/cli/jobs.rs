//! The arguments of `clockjack jobs`, and the files it reads and writes.

use core::time::Duration;
use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, value_parser};
use clockjack_sched::{CatchUp, DumpFormat, ReplayTrace};
use clockjack_time::Resolution;

use super::graph::keep_apart;
use super::{Format, ProgressMode, Streams, exit_codes, write_result};
use crate::{
    failure::Failure,
    jobs::{self, Dump, Outcome, Plan},
    output::OutputFile,
    span,
};

const NOTE: &str = "\
A third of the jobs run once, a third at a fixed rate, a third with a fixed delay; the last two each
1/64 to 1/8 of the whole time. All are registered in the first half. Every run is held to books that
the scheduler knows nothing of. Nothing depends on the machine: equal arguments give equal bytes.

DURATION is a whole number and one of ns, us, ms, s, m, h, d: 250ms.

A dump comes first and ends with an empty line; the report follows. One that is asked for within the
stall is of its end, before anything has run: it shows what has piled up.";

const EXAMPLES: &str = "\
Examples:
  clockjack jobs                                  a thousand jobs in a minute
  clockjack jobs --stall 20s                      the clock leaps: bursts, drift and what is told
  clockjack jobs --stall 20s --policy folded      the same, missed runs being one call
  clockjack jobs --jobs 9 --dump text --at 10s    what the scheduler looks like after 10 s
  clockjack jobs --trace a.trace                  keep what happened
  clockjack jobs --seed 2 --compare a.trace       where another run parts from it; exits with 1";

/// Run jobs once, at a fixed rate and with a fixed delay in virtual time, and check every run
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{EXAMPLES}"), &[0, 1, 2]))]
pub(super) struct JobsArgs {
    /// How many jobs; at most 100000.
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT.jobs,
        value_parser = value_parser!(u32).range(..=i64::from(Plan::JOBS_MAX)))]
    jobs: u32,

    /// Decides what the jobs are, and who is cancelled when. Equal seeds give equal runs.
    #[arg(long, value_name = "SEED", default_value_t = Plan::DEFAULT.seed)]
    seed: u64,

    /// For how long, in virtual time; at most 2147483647 ticks.
    #[arg(long = "for", value_name = "DURATION", default_value = "60s",
        value_parser = span::parse)]
    length: Duration,

    /// The length of a tick; at most 4294967295ns.
    #[arg(long, value_name = "DURATION", default_value = "10ms", value_parser = resolution)]
    resolution: Resolution,

    /// How many of a hundred are cancelled on the way; 0 to 100.
    #[arg(long, value_name = "PERCENT", default_value_t = Plan::DEFAULT.cancel_percent,
        value_parser = value_parser!(u8).range(..=i64::from(Plan::CANCEL_PERCENT_MAX)))]
    cancel: u8,

    /// By how much the clock leaps in the middle, while nothing runs; at most half of --for.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::parse)]
    stall: Duration,

    /// What becomes of runs at a fixed rate that the leap has passed. A leap of more than a minute
    /// folds them in any case.
    #[arg(long, value_enum, default_value_t = PolicyMode::Individually)]
    policy: PolicyMode,

    /// Show the scheduler: as tables, or as one record a line for programs.
    #[arg(long, value_enum, value_name = "FORM")]
    dump: Option<DumpMode>,

    /// When to; in the middle if it is not said, before the leap.
    #[arg(long, value_name = "DURATION", value_parser = span::parse, requires = "dump")]
    at: Option<Duration>,

    /// Write what the scheduler did to this file, one record a line.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Read what a scheduler did from this file, and tell where this run parts from it.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    /// What to print: tables, or one line with one object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Whether to draw a progress line on standard error; `auto` draws it on a terminal.
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
        keep_apart(&read, &self.trace)?;
        // Before the run: what cannot be compared or kept is told at once.
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
    resolution.ok_or_else(|| format!("a tick is from 1ns to {}ns long", u32::MAX))
}

fn read_trace(path: &Path) -> Result<ReplayTrace, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::trace_input(path, error))?;
    ReplayTrace::parse(&text).map_err(|error| Failure::not_a_trace(path, error))
}
