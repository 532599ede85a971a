//! Whether a fixed rate drifts on the system's clock: fits a line through the lateness of its runs.
//!
//! `rate [SECONDS] [MILLIS]`: for how long, 60 s by default, and with which period, 10 ms. Fails
//! if the line rises or falls by more than noise, or if a run is missing.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use core::{error::Error, time::Duration};
use std::{env, process::ExitCode, sync::mpsc};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::Commands,
    sched::{DispatcherId, FireContext},
};

/// How many standard errors of a slope are noise. Lateness has long tails on a busy machine.
const NOISE_ERRORS: f64 = 6.0;
/// What is no drift whatever the noise, in parts of the run: a tick of a millisecond in an hour.
const SLOPE_MIN: f64 = 1e-3 / 3600.0;

/// A line through points, and how sure its slope is.
struct Line {
    slope: f64,
    error: f64,
}

/// When a run was due, in seconds from the first one, and how late it was.
type Point = (f64, f64);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln_error(&*error);
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "where errors go")]
fn eprintln_error(error: &dyn Error) {
    eprintln!("rate: {error}");
}

fn argument(index: usize, default: u64) -> Result<u64, Box<dyn Error>> {
    let Some(text) = env::args().nth(index) else { return Ok(default) };
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{text}` is not a number above zero").into()),
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let (seconds, millis) = (argument(1, 60)?, argument(2, 10)?);
    let period = Duration::from_millis(millis);
    let wanted = usize::try_from(seconds * 1000 / millis)?;
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    let (sender, receiver) = mpsc::channel();
    let tell = move |fire: &FireContext| sender.send((fire.due().get(), fire.late()));
    let job =
        pool.scheduler().schedule_at_fixed_rate_fn(period, period, DispatcherId::DEFAULT, tell)?;
    let runs: Vec<_> = receiver.iter().take(wanted).collect();
    job.cancel();
    drop(pool);

    let is_on_grid = runs.windows(2).all(|pair| pair[1].0 - pair[0].0 == millis);
    let second_of = |place: usize| place as f64 * period.as_secs_f64();
    let points: Vec<Point> =
        runs.iter().enumerate().map(|(at, run)| (second_of(at), run.1.as_secs_f64())).collect();
    let Some(line) = fit(&points) else { return Err("too few runs for a line".into()) };
    let noise = (NOISE_ERRORS * line.error).max(SLOPE_MIN);
    let is_level = line.slope.abs() <= noise;
    let drift_us = line.slope * seconds as f64 * 1e6;
    let noise_us = noise * seconds as f64 * 1e6;
    println!("{} runs of {period:?} in {seconds} s, all on the grid: {is_on_grid}", runs.len());
    println!("lateness rises by {drift_us:.1} us over the run, {noise_us:.1} us are noise");
    println!("{}", if is_level && is_on_grid { "no drift" } else { "DRIFT" });
    Ok(is_level && is_on_grid)
}

/// Least squares, and the standard error of the slope.
fn fit(points: &[Point]) -> Option<Line> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let spread: f64 = points.iter().map(|at| (at.0 - mean_x).powi(2)).sum();
    let common: f64 = points.iter().map(|at| (at.0 - mean_x) * (at.1 - mean_y)).sum();
    let slope = common / spread;
    let rest = |at: &Point| (at.1 - mean_y - slope * (at.0 - mean_x)).powi(2);
    let variance = points.iter().map(rest).sum::<f64>() / (n - 2.0);
    Some(Line { slope, error: (variance / spread).sqrt() })
}
