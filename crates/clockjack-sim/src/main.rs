//! The program behind `cargo xtask sim`: runs seeds one after the other on one thread.
//!
//! The exit status is 0 if all invariants hold and the campaign covers enough, 1 if not, and 2 for
//! an invalid command line.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output is the purpose of the program"
)]

use core::time::Duration;
use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
    time::Instant,
};

use clockjack_sim::{
    campaign::{Plan, Tally},
    context::Mode,
    fault::Fault,
    invariant::Invariant,
    run::{RunOutcome, Workload, run},
    shrink::shrink,
    workloads,
};

const USAGE: &str = "\
usage: clockjack-sim [--seeds N] [--minutes M] [--from S] [--seed S] [--workload W] [--liveness | \
--safety] [--twice] [--faults LIST] [--hashes] [--trace]";

/// The maximum number of runs of the search for a smaller failure.
const SHRINK_RUNS: usize = 400;
/// The interval between progress reports, on a terminal and elsewhere.
const REDRAW: Duration = Duration::from_millis(200);
const REPORT: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Options {
    seeds: Option<u64>,
    minutes: Option<u64>,
    from: u64,
    seed: Option<u64>,
    workload: Option<&'static dyn Workload>,
    mode: Option<Mode>,
    is_twice: bool,
    faults: Option<Vec<Fault>>,
    /// Print only one line per seed, to compare machines.
    is_hashes: bool,
    /// Print the complete trace of a single seed.
    is_trace: bool,
}

fn main() -> ExitCode {
    let options = match parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let plan = Plan {
        workloads: options
            .workload
            .map_or_else(|| workloads::ALL.to_vec(), |workload| vec![workload]),
        mode: options.mode,
        is_twice: options.is_twice,
    };
    let is_fine = match options.seed {
        Some(seed) => run_one(&plan, &options, seed),
        None if options.is_hashes => run_hashes(&plan, &options),
        None => run_many(&plan, &options),
    };
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("`{text}` is not a number"));
        match arg.as_str() {
            "--seeds" => options.seeds = Some(number(value()?)?),
            "--minutes" => options.minutes = Some(number(value()?)?),
            "--from" => options.from = number(value()?)?,
            "--seed" => options.seed = Some(number(value()?)?),
            "--workload" => {
                let name = value()?;
                let workload = workloads::named(&name).ok_or_else(|| {
                    let names: Vec<_> =
                        workloads::ALL.iter().map(|workload| workload.description().name).collect();
                    format!("unknown workload `{name}`; expected one of {}", names.join(", "))
                })?;
                options.workload = Some(workload);
            }
            "--liveness" => options.mode = Some(Mode::Liveness),
            "--safety" => options.mode = Some(Mode::Safety),
            "--twice" => options.is_twice = true,
            "--trace" => options.is_trace = true,
            "--hashes" => options.is_hashes = true,
            "--faults" => {
                let list = value()?;
                let parse = |text: &str| text.parse::<Fault>().map_err(|error| error.to_string());
                let faults = list.split(',').filter(|text| !text.is_empty()).map(parse);
                options.faults = Some(faults.collect::<Result<_, _>>()?);
            }
            _ => return Err(format!("unknown argument `{arg}`")),
        }
    }
    Ok(options)
}

/// Runs one seed with a full report.
fn run_one(plan: &Plan<'_>, options: &Options, seed: u64) -> bool {
    let (workload, drawn) = plan.at(seed);
    // A seed, a workload and a mode identify a run: with an explicit workload, the default mode is
    // safety.
    let named = if options.workload.is_some() { Mode::Safety } else { drawn };
    let mode = options.mode.unwrap_or(named);
    let outcome = run(workload, seed, mode, options.faults.as_deref());
    if options.is_trace {
        clockjack_sim::trace::lines(&outcome.trace).iter().for_each(|line| println!("{line}"));
    }
    println!("{outcome}");
    let again = run(workload, seed, mode, options.faults.as_deref());
    if again.trace != outcome.trace {
        println!("  BROKEN D1: the repeated run has trace {:016x}", again.hash);
        return false;
    }
    if !outcome.is_clean() && options.faults.is_none() {
        print_shrunk(workload, &outcome);
    }
    outcome.is_clean()
}

/// One line per seed: the same on every machine.
fn run_hashes(plan: &Plan<'_>, options: &Options) -> bool {
    let mut is_fine = true;
    for seed in options.from..options.from.saturating_add(options.seeds.unwrap_or(100)) {
        let (workload, mode) = plan.at(seed);
        let outcome = run(workload, seed, mode, None);
        println!("{seed} {} {mode} {:016x}", outcome.workload, outcome.hash);
        is_fine &= outcome.is_clean();
    }
    is_fine
}

fn run_many(plan: &Plan<'_>, options: &Options) -> bool {
    let started = now();
    let limit = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = options.seeds.unwrap_or(if limit.is_some() { u64::MAX } else { 200 });
    let mut tally = Tally::default();
    let mut progress = Progress::new(started, options.seeds);
    for seed in options.from..options.from.saturating_add(seeds) {
        let outcome = plan.run_seed(seed, &mut tally);
        if !outcome.is_clean() {
            progress.clear();
            println!("{outcome}");
            print_shrunk(plan.at(seed).0, &outcome);
            return false;
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            break;
        }
        progress.report(&tally);
    }
    progress.clear();
    let took = started.elapsed();
    println!("{tally}");
    let hundredths = tally.runs * 100_000 / u64::try_from(took.as_millis()).unwrap_or(1).max(1);
    println!("{}.{:02} seeds per second", hundredths / 100, hundredths % 100);
    let gaps = tally.coverage_gaps(plan);
    gaps.iter().for_each(|gap| println!("NOT COVERED: {gap}"));
    println!("{} seeds clean", tally.runs);
    gaps.is_empty()
}

/// Searches for a smaller list of faults and prints it.
fn print_shrunk(workload: &dyn Workload, failed: &RunOutcome) {
    if failed
        .violations
        .iter()
        .any(|violation| matches!(violation.invariant, Invariant::W1 | Invariant::D1))
    {
        return;
    }
    match shrink(workload, failed, SHRINK_RUNS) {
        Some(shrunk) => {
            let before = failed.faults.len();
            println!(
                "\n{} of {before} faults are enough ({} runs):",
                shrunk.outcome.faults.len(),
                shrunk.runs
            );
            shrunk.outcome.faults.iter().for_each(|fault| println!("  {fault}"));
            shrunk.outcome.violations.iter().for_each(|violation| println!("  BROKEN {violation}"));
            println!("  repeat with: {}", shrunk.outcome.command());
        }
        None => println!("\nshrinking failed: the repeated run does not fail"),
    }
}

struct Progress {
    started: Instant,
    seeds: Option<u64>,
    reported_at: Instant,
    is_live: bool,
}

impl Progress {
    fn new(started: Instant, seeds: Option<u64>) -> Self {
        let is_live = io::stdout().is_terminal() && env::var_os("CI").is_none();
        Self { started, seeds, reported_at: started, is_live }
    }

    fn report(&mut self, tally: &Tally) {
        let pause = if self.is_live { REDRAW } else { REPORT };
        if self.reported_at.elapsed() < pause {
            return;
        }
        self.reported_at = now();
        let of = self.seeds.map_or_else(String::new, |seeds| format!(" of {seeds}"));
        let seconds = self.started.elapsed().as_secs().max(1);
        let line = format!(
            "{}{of} seeds, {} h simulated, {} events, {} faults, {} seeds per second",
            tally.runs,
            tally.hours(),
            tally.records,
            tally.faults(),
            tally.runs / seconds
        );
        if self.is_live {
            print!("\r\x1b[2K{line}");
            // A write error is ignored: progress is optional.
            let _ = io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    fn clear(&self) {
        if self.is_live {
            print!("\r\x1b[2K");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only progress reports use the wall clock")]
fn now() -> Instant {
    Instant::now()
}
