//! `cargo xtask soak`: hours of mixed load on the worker pool, with a ledger that must balance.
//!
//! The load consists of spawns, sends, yields, timers, aborts, panics, terminations, joins,
//! blocking work, links and monitors, while workers are added and removed. Every ten seconds the
//! load pauses until no operation is open. Then the ledger must balance for every kind of
//! operation, short-lived runtimes are driven into a shutdown under pressure (see `episodes`), and
//! a line shows the progress. The seed is printed: it repeats the operations, but
//! not the interleaving of the threads.
//!
//! Exit status: 0 if every invariant held (also after Ctrl-C), 1 if one was violated or the load
//! stalled, 2 for a command line that does not parse.
#![expect(clippy::print_stdout, reason = "the output of this program is its product")]
#![expect(clippy::print_stderr, reason = "errors go to standard error")]

mod dice;
mod episodes;
mod ledger;
mod load;
mod pool;
mod subject;

use core::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use std::{
    panic,
    process::{self, ExitCode},
    sync::Arc,
    thread,
    time::{Instant, SystemTime},
};

use clap::Parser;

use crate::{
    dice::{Consumer, Dice},
    ledger::{Kind, Ledger},
    load::{Load, ROUND, Streams},
    pool::{Planned, Pool},
    subject::Subject,
};

/// Mixed load on the worker pool, with a check that nothing is lost or done twice.
#[derive(Parser)]
#[command(name = "cargo xtask soak", bin_name = "cargo xtask soak")]
struct Arguments {
    /// The running time in minutes
    #[arg(long, value_name = "N", default_value_t = 2)]
    minutes: u64,
    /// The seed of the load; default: from the clock
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The initial number of workers
    #[arg(long, value_name = "N", default_value_t = 2)]
    workers: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(clock_seed);
    println!("soak: {} min, {} workers, seed {seed}", arguments.minutes, arguments.workers);
    match run(&arguments, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nrepeat with --seed {seed}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, seed: u64) -> Result<(), String> {
    static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| IS_INTERRUPTED.store(true, Relaxed))
        .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let ledger = Arc::new(Ledger::default());
    count_panics(&ledger);
    let subject: Box<dyn Subject> = Box::new(Pool::start(arguments.workers, seed)?);
    let load = Load {
        subject: &*subject,
        ledger: Arc::clone(&ledger),
        is_interrupted: &IS_INTERRUPTED,
        started: Instant::now(),
    };
    let is_done = AtomicBool::new(false);
    let length = Duration::from_secs(60 * arguments.minutes);
    let give_up = || {
        eprintln!("error: the load has stalled\n{ledger}{}", subject.dump());
        process::exit(1);
    };
    let result = thread::scope(|scope| {
        scope.spawn(|| load.watch(&is_done, &give_up));
        let result = rounds(&load, seed, length);
        is_done.store(true, Relaxed);
        result
    });
    println!("after {:.0} s:\n{ledger}", load.started.elapsed().as_secs_f64());
    if let Err(stuck) = result {
        let faults = ledger.faults().join("\n  ");
        return Err(format!("{stuck}\n{}\nearlier violations: {faults}", subject.dump()));
    }
    subject.stop()?;
    verdict(&ledger)
}

fn rounds(load: &Load<'_>, seed: u64, length: Duration) -> Result<(), load::Stuck> {
    let mut streams = Streams::new(seed);
    let mut episodes = Dice::of(seed, Consumer::Episodes);
    let mut events = 0;
    while load.started.elapsed() < length && !load.is_interrupted.load(Relaxed) {
        let (begun, left) = (Instant::now(), length.saturating_sub(load.started.elapsed()));
        let most = watch_peak(load, || load.round(&mut streams, ROUND.min(left)))?;
        let (before, seconds) = (events, begun.elapsed().as_secs_f64());
        events = load.ledger.events();
        episodes::run_all(&mut episodes, &load.ledger);
        println!(
            "{:>6} s  {:>9} events/s  live {:>6}  timers {:>6}  resident {:>7} KiB  faults {}",
            load.started.elapsed().as_secs(),
            per_second(events - before, seconds),
            most.0,
            most.1,
            resident_kib().map_or("?".to_owned(), |kib| kib.to_string()),
            load.ledger.faults().len(),
        );
    }
    Ok(())
}

/// Runs a round and returns the open tasks and timers half-way through it.
fn watch_peak<E: Send>(
    load: &Load<'_>,
    round: impl FnOnce() -> Result<(), E> + Send,
) -> Result<(u64, u64), E> {
    thread::scope(|scope| {
        let round = scope.spawn(round);
        thread::sleep(ROUND / 2);
        let most = (load.ledger.open(Kind::Task), load.ledger.open(Kind::Timer));
        round.join().unwrap_or_else(|panic| panic::resume_unwind(panic)).map(|()| most)
    })
}

fn verdict(ledger: &Ledger) -> Result<(), String> {
    ledger.audit();
    let faults = ledger.faults();
    if faults.is_empty() {
        println!("every invariant held");
        return Ok(());
    }
    Err(format!("violated invariants:\n  {}", faults.join("\n  ")))
}

/// Planned panics are silent; any other panic is a violation and is printed.
fn count_panics(ledger: &Arc<Ledger>) {
    let show = panic::take_hook();
    let ledger = Arc::clone(ledger);
    panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Planned>() {
            ledger.fault(format!("an unplanned panic: {info}"));
            show(info);
        }
    }));
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an approximate rate for display"
)]
fn per_second(n: u64, seconds: f64) -> u64 {
    (n as f64 / seconds) as u64
}

fn clock_seed() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_secs())
}

/// Resident memory, if the operating system reports it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
