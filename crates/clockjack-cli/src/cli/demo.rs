//! The arguments of `clockjack demo`.

use clap::{Args, Subcommand, value_parser};

use super::{Streams, exit_codes, write_result};
use crate::{
    demo::{jobs, timers},
    failure::Failure,
};

const NOTE: &str = "\
Every run is checked against an independent oracle, which is a sorted list. Equal seeds give equal
runs on every machine; only the wall time differs. `cargo xtask compare` measures precisely.";

const EXAMPLES: &str = "\
Examples:
  clockjack demo timers                   a million timers, one in ten cancelled
  clockjack demo timers --seed 2          other deadlines
  clockjack demo jobs                     a thousand jobs, and a clock that jumps
  clockjack demo jobs --count 9 --dump    also print the state of the scheduler";

/// Run many timers or jobs in virtual time, and check every run
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{NOTE}\n\n{EXAMPLES}"), &[0, 1, 2]))]
pub(super) struct DemoArgs {
    #[command(subcommand)]
    demo: Demo,
}

#[derive(Debug, Subcommand)]
enum Demo {
    /// Arm timers in a timer wheel, cancel one in ten, and fire the rest.
    Timers {
        /// Number of timers; at most 10000000.
        #[arg(long, value_name = "N", default_value_t = timers::Plan::DEFAULT.count,
            value_parser = value_parser!(u32).range(..=i64::from(timers::Plan::COUNT_MAX)))]
        count: u32,

        /// Seed for deadlines and cancellations.
        #[arg(long, value_name = "SEED", default_value_t = timers::Plan::DEFAULT.seed)]
        seed: u64,
    },
    /// Run jobs once, at a fixed rate and with a fixed delay, while the clock jumps.
    Jobs {
        /// Number of jobs; at most 1000000.
        #[arg(long, value_name = "N", default_value_t = jobs::Plan::DEFAULT.count,
            value_parser = value_parser!(u32).range(..=i64::from(jobs::Plan::COUNT_MAX)))]
        count: u32,

        /// Seed for the jobs and their cancellations.
        #[arg(long, value_name = "SEED", default_value_t = jobs::Plan::DEFAULT.seed)]
        seed: u64,

        /// Print the state of the scheduler before the clock jumps.
        #[arg(long)]
        dump: bool,
    },
}

impl DemoArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let text = match self.demo {
            Demo::Timers { count, seed } => {
                timers::run(timers::Plan { count, seed, ..timers::Plan::DEFAULT })?.to_string()
            }
            Demo::Jobs { count, seed, dump } => {
                jobs::run(jobs::Plan { count, seed, is_dumped: dump })?.to_string()
            }
        };
        write_result(streams, &text)
    }
}
