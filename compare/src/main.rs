//! The same loads on Clockjack and on the crates people would use instead.
//!
//! `clockjack-compare SUITE` prints a table and, with `--json FILE`, one line of JSON a case:
//! `{"suite","case","n","unit","ours","peers":{..},"best_peer","ratio"}` and further fields behind
//! them. Every claim about speed in the project comes from this output.

extern crate alloc;

mod actor_timers;
mod actors;
mod bell;
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
            // Where even this cannot be said, the exit code says it.
            let _said = writeln!(io::stderr(), "{message}");
            ExitCode::from(if failure.is_usage() { 2 } else { 1 })
        }
    }
}
