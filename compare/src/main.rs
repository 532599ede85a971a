//! The same workloads on Clockjack and on competing crates.
//!
//! `clockjack-compare SUITE` prints a table and, with `--json FILE`, one line of JSON per case:
//! `{"suite","case","n","unit","ours","peers":{..},"best_peer","ratio"}` and further fields after
//! them. Every claim about speed in the project comes from this output.

extern crate alloc;

mod actor_timers;
mod actors;
mod cli;
mod clock;
mod entry;
mod executor;
mod failure;
mod graph;
mod jitter;
mod machine;
mod measure;
mod order;
mod receiver;
mod report;
mod rng;
mod scheduler;
mod selection;
mod slots;
mod stats;
mod table;
mod tally;
mod timers;
mod wake_flag;

use core::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: tally::TallyAllocator = tally::TallyAllocator;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli::run(&cli, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            let mut message = format!("clockjack-compare: {failure}");
            if let Some(cause) = failure.source() {
                message.push_str(&format!(": {cause}"));
            }
            // If even this message cannot be written, the exit code remains.
            let _said = writeln!(io::stderr(), "{message}");
            ExitCode::from(if failure.is_usage() { 2 } else { 1 })
        }
    }
}
