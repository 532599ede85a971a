//! Hot operations of Clockjack, each run in a separate process so that `cargo xtask counts` can
//! measure it.
//!
//! ```text
//! counts list                       name, tab, iterations in a batch
//! counts run NAME BATCHES [--plant] sets up, runs the batches, prints the last one's allocations
//! ```
//!
//! To add an operation: add three lines to a file under `operations/`, then run `cargo xtask counts
//! --bless`.
#![expect(clippy::print_stdout, reason = "the output is what xtask reads")]
#![expect(clippy::print_stderr, reason = "errors of the command line go to standard error")]

mod allocation;
mod operation;
mod operations;

use std::process::{self, ExitCode};

use operation::Operation;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["list"] => list(),
        ["run", name, batches] => run(name, batches, false),
        ["run", name, batches, "--plant"] => run(name, batches, true),
        _ => usage(),
    }
}

fn list() -> ExitCode {
    for operation in operations::all() {
        println!("{}\t{}", operation.name, operation.n);
    }
    ExitCode::SUCCESS
}

fn run(name: &str, batches: &str, is_planted: bool) -> ExitCode {
    let operation = operations::all().into_iter().find(|operation| operation.name == name);
    let (Some(operation), Ok(batches)) = (operation, batches.parse()) else { return usage() };
    let operation = if is_planted { operations::planted() } else { operation };
    println!("{}", allocations(&operation, batches));
    // Exit without dropping what the batches created: the drop of two batches would add to the
    // measured cost.
    process::exit(0);
}

/// Runs the batches and counts what the last one allocates.
fn allocations(operation: &Operation, batches: u32) -> u64 {
    let mut batch = (operation.setup)();
    let mut before = allocation::count();
    for _ in 0..batches {
        before = allocation::count();
        batch(operation.n);
    }
    let after = allocation::count();
    core::mem::forget(batch);
    after - before
}

fn usage() -> ExitCode {
    eprintln!("usage: counts list | counts run NAME BATCHES [--plant]");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = operations::all().iter().map(|o| o.name).collect();
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }

    #[test]
    fn a_planted_regression_allocates_once_an_operation() {
        let planted = operations::planted();
        assert_eq!(allocations(&planted, 2), u64::from(planted.n));
    }

    #[test]
    fn every_operation_survives_two_batches() {
        for operation in operations::all() {
            allocations(&operation, 2);
        }
    }
}
