//! `cargo xtask sim` runs this program: seeds, one after the other, on one thread.
//!
//! The exit status is 0 if all invariants were kept and the campaign means something, 1 if not, 2 for a
//! command line that does not parse.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its lines are its product")]

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
    run::{Outcome, Workload, run},
    shrink::shrink,
    workloads,
};

const USAGE: &str = "\
usage: clockjack-sim [--seeds N] [--minutes M] [--from S] [--seed S] [--workload W] [--liveness | \
--safety] [--twice] [--faults LIST] [--hashes] [--trace]";

/// How many runs the search for a smaller failure may take.
const SHRINK_RUNS: usize = 400;
/// How often the progress is told, on a terminal and elsewhere.
const REDRAW: Duration = Duration::from_millis(200);
const TELL: Duration = Duration::from_secs(20);

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
    /// Only a line for each seed, for comparing machines.
    is_hashes: bool,
    /// Of a single seed all of its trace.
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
        Some(seed) => play_one(&plan, &options, seed),
        None if options.is_hashes => play_hashes(&plan, &options),
        None => play_many(&plan, &options),
    };
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("`{text}` is no number"));
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
                    format!("no workload `{name}`: {}", names.join(", "))
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
            _ => return Err(format!("`{arg}` is not known")),
        }
    }
    Ok(options)
}

/// One seed, told in full.
fn play_one(plan: &Plan<'_>, options: &Options, seed: u64) -> bool {
    let (workload, drawn) = plan.at(seed);
    // A run is named by its seed, its workload and its mode: who names the workload names the mode.
    let named = if options.workload.is_some() { Mode::Safety } else { drawn };
    let mode = options.mode.unwrap_or(named);
    let outcome = run(workload, seed, mode, options.faults.as_deref());
    if options.is_trace {
        clockjack_sim::trace::lines(&outcome.trace).iter().for_each(|line| println!("{line}"));
    }
    println!("{outcome}");
    let again = run(workload, seed, mode, options.faults.as_deref());
    if again.trace != outcome.trace {
        println!("  BROKEN D1: repeated, its trace is {:016x}", again.hash);
        return false;
    }
    if !outcome.is_clean() && options.faults.is_none() {
        tell_smaller(workload, &outcome);
    }
    outcome.is_clean()
}

/// A line for each seed: the same on every machine.
fn play_hashes(plan: &Plan<'_>, options: &Options) -> bool {
    let mut is_fine = true;
    for seed in options.from..options.from.saturating_add(options.seeds.unwrap_or(100)) {
        let (workload, mode) = plan.at(seed);
        let outcome = run(workload, seed, mode, None);
        println!("{seed} {} {mode} {:016x}", outcome.workload, outcome.hash);
        is_fine &= outcome.is_clean();
    }
    is_fine
}

fn play_many(plan: &Plan<'_>, options: &Options) -> bool {
    let started = now();
    let limit = options.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = options.seeds.unwrap_or(if limit.is_some() { u64::MAX } else { 200 });
    let mut tally = Tally::default();
    let mut progress = Progress::new(started, options.seeds);
    for seed in options.from..options.from.saturating_add(seeds) {
        let outcome = plan.play(seed, &mut tally);
        if !outcome.is_clean() {
            progress.end();
            println!("{outcome}");
            tell_smaller(plan.at(seed).0, &outcome);
            return false;
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            break;
        }
        progress.tell(&tally);
    }
    progress.end();
    let took = started.elapsed();
    println!("{tally}");
    let hundredths = tally.runs * 100_000 / u64::try_from(took.as_millis()).unwrap_or(1).max(1);
    println!("{}.{:02} seeds a second", hundredths / 100, hundredths % 100);
    let gaps = tally.gaps(plan);
    gaps.iter().for_each(|gap| println!("MEANS LITTLE: {gap}"));
    println!("{} seeds clean", tally.runs);
    gaps.is_empty()
}

/// Looks for a smaller list of faults, and shows it.
fn tell_smaller(workload: &dyn Workload, failed: &Outcome) {
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
            println!("  repeat it: {}", shrunk.outcome.command());
        }
        None => println!("\nit cannot be made smaller: by its list of faults it does not fail"),
    }
}

struct Progress {
    started: Instant,
    seeds: Option<u64>,
    told: Instant,
    is_live: bool,
}

impl Progress {
    fn new(started: Instant, seeds: Option<u64>) -> Self {
        let is_live = io::stdout().is_terminal() && env::var_os("CI").is_none();
        Self { started, seeds, told: started, is_live }
    }

    fn tell(&mut self, tally: &Tally) {
        let pause = if self.is_live { REDRAW } else { TELL };
        if self.told.elapsed() < pause {
            return;
        }
        self.told = now();
        let of = self.seeds.map_or_else(String::new, |seeds| format!(" of {seeds}"));
        let seconds = self.started.elapsed().as_secs().max(1);
        let line = format!(
            "{}{of} seeds, {} h simulated, {} events, {} faults, {} seeds a second",
            tally.runs,
            tally.hours(),
            tally.records,
            tally.faults(),
            tally.runs / seconds
        );
        if self.is_live {
            print!("\r\x1b[2K{line}");
            // What cannot be drawn is not missed.
            let _ = io::stdout().flush();
        } else {
            println!("{line}");
        }
    }

    fn end(&self) {
        if self.is_live {
            print!("\r\x1b[2K");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long it takes is told; no run knows it")]
fn now() -> Instant {
    Instant::now()
}
