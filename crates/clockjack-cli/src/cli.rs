//! Parses the arguments, runs the command, reports failures and returns the exit code.

mod graph;
mod init;
mod jobs;
mod observe;
mod options;
mod run;
mod schema;
mod tool;

use core::error::Error as _;
use std::{ffi::OsString, io, process::ExitCode};

use clap::{Args, Parser, Subcommand, value_parser};
use clockjack_graph::Registry;

use self::{
    graph::{CheckArgs, DiffPlanArgs, Environment, ExplainArgs, LintArgs, PlanArgs, RenderArgs},
    init::InitArgs,
    jobs::JobsArgs,
    observe::ObserveArgs,
    options::{ColorMode, Format, ProgressMode},
    run::{BenchArgs, RunArgs, TraceArgs},
    schema::SchemaArgs,
    tool::{CompletionsArgs, DoctorArgs, ManArgs},
};
use crate::{
    exit_code,
    failure::Failure,
    output::OutputFile,
    streams::Streams,
    timers::{self, Plan},
};

/// Runs the command with the arguments and the streams of this process. Graph files can use the
/// component types of `registry`.
#[must_use = "return the exit code from `main`"]
pub fn main(registry: Registry) -> ExitCode {
    // Standard output is not locked: a component that prints would wait for the lock until the run
    // ends, and the run would wait for the component.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut streams = Streams::of_process(&mut out, &mut err);
    ExitCode::from(run(&registry, std::env::args_os(), &mut streams))
}

/// Runs the command with these arguments, the first of which is the program name, and these
/// streams. Returns the [exit code](exit_code). This function can be called any number of times.
///
/// # Examples
///
/// ```
/// use clockjack_cli::{Streams, exit_code, run};
/// use clockjack_graph::Registry;
///
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let mut streams = Streams::new(&mut out, &mut err);
/// let code = run(&Registry::new(), ["clockjack", "timers", "--cancel", "101"], &mut streams);
/// assert_eq!(code, exit_code::USAGE);
/// assert!(String::from_utf8_lossy(&err).contains("101 is not in 0..=100"));
/// ```
#[must_use = "the exit code says whether the command succeeded"]
pub fn run<A>(
    registry: &Registry,
    args: impl IntoIterator<Item = A>,
    streams: &mut Streams<'_>,
) -> u8
where
    A: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(parse_error) => return print_parse_message(&parse_error, streams),
    };
    let env = Environment { registry, color: cli.color };
    let result = match cli.command {
        Command::Check(args) => args.run(env, streams),
        Command::Plan(args) => args.run(env, streams),
        Command::Render(args) => args.run(env, streams),
        Command::Run(args) => args.run(env, streams),
        Command::Trace(args) => args.run(env, streams),
        Command::Observe(args) => args.run(env, streams),
        Command::Bench(args) => args.run(env, streams),
        Command::Lint(args) => args.run(env, streams),
        Command::Explain(args) => args.run(streams),
        Command::DiffPlan(args) => args.run(env, streams),
        Command::Schema(args) => args.run(streams),
        Command::Init(args) => args.run(streams),
        Command::Doctor(args) => args.run(registry, streams),
        Command::Completions(args) => args.run(streams),
        Command::Man(args) => args.run(streams),
        Command::Timers(args) => args.run(streams),
        Command::Jobs(args) => args.run(streams),
    };
    report_failure(result, streams)
}

/// Reports the failure, if there is one, and returns the exit code.
fn report_failure(result: Result<(), Failure>, streams: &mut Streams<'_>) -> u8 {
    match result {
        Ok(()) => exit_code::OK,
        Err(failure) if failure.is_already_reported() => failure.exit_code(),
        Err(failure) => {
            let cause = failure.source().map_or(String::new(), |cause| format!(": {cause}"));
            // If standard error cannot be written, the exit code still reports the failure.
            let _written = writeln!(streams.err, "clockjack: {failure}{cause}");
            failure.exit_code()
        }
    }
}

/// Prints the help, the version or the argument error, without colors.
fn print_parse_message(parse_error: &clap::Error, streams: &mut Streams<'_>) -> u8 {
    let text = parse_error.render().to_string();
    if parse_error.use_stderr() {
        // The exit code reports the error even if standard error cannot be written.
        let _written = streams.err.write_all(text.as_bytes());
        return exit_code::USAGE;
    }
    let result = write_result(streams, &text);
    report_failure(result, streams)
}

/// Writes a result. A closed pipe is not a failure: the reader has seen enough. The exit code still
/// reports the result.
fn write_result(streams: &mut Streams<'_>, result: impl AsRef<[u8]>) -> Result<(), Failure> {
    match streams.out.write_all(result.as_ref()).and_then(|()| streams.out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::output),
    }
}

/// Writes a result to `file` if there is one, and to standard output otherwise.
fn write_to(
    file: Option<&OutputFile>,
    streams: &mut Streams<'_>,
    result: impl AsRef<[u8]>,
) -> Result<(), Failure> {
    match file {
        Some(file) => file.write(result),
        None => write_result(streams, result),
    }
}

/// The examples of a command, followed by the descriptions of its exit codes.
fn exit_codes(examples: &str, codes: &[u8]) -> String {
    let mut out = String::from(examples);
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str("Exit codes:");
    for (code, meaning) in exit_code::ALL {
        // Every command can fail to write its result.
        if codes.contains(&code) || code == exit_code::FAILED {
            out.push_str(&format!("\n  {code:<3}  {meaning}"));
        }
    }
    out
}

/// All exit codes.
fn all_codes() -> Vec<u8> {
    exit_code::ALL.iter().map(|(code, _)| *code).collect()
}

const TIMERS_NOTE: &str = "\
Prints counts, how many timers fired per step and how late they were. The costs are the wall time of
one cold run, including memory growth; `cargo xtask compare timers` measures precisely.";

const TIMERS_EXAMPLES: &str = "\
Examples:
  clockjack timers                            a million timers within a minute
  clockjack timers --step-ms 7                larger steps: timers are up to 6 ms late, never early
  clockjack timers --horizon-ms 86400000      a day, most of it beyond the range of the wheel
  clockjack timers --seed 2 --format json     JSON; everything but `timing` is reproducible";

/// Run, check and inspect dataflow graphs, timers and jobs on a clock that you control
#[derive(Debug, Parser)]
#[command(name = "clockjack", version, after_help = exit_codes("", &all_codes()),
    arg_required_else_help = true)]
struct Cli {
    /// When to use colors; `auto` uses them on a terminal unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorMode::Auto)]
    color: ColorMode,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArgs),
    Plan(PlanArgs),
    Render(RenderArgs),
    Run(RunArgs),
    Trace(TraceArgs),
    Observe(ObserveArgs),
    Lint(LintArgs),
    Explain(ExplainArgs),
    DiffPlan(DiffPlanArgs),
    Bench(BenchArgs),
    Schema(SchemaArgs),
    Init(InitArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Timers(TimersArgs),
    Jobs(JobsArgs),
}

/// Create many timers in virtual time, cancel some, fire the rest, and check every one
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{TIMERS_NOTE}\n\n{TIMERS_EXAMPLES}"), &[0, 1, 2]))]
struct TimersArgs {
    /// Number of timers; at most 50000000.
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT.count,
        value_parser = value_parser!(u32).range(..=i64::from(Plan::COUNT_MAX)))]
    count: u32,

    /// Deadlines are between 1 and this many virtual milliseconds; at most 604800000 (a week).
    #[arg(long, value_name = "MS", default_value_t = Plan::DEFAULT.horizon_ms,
        value_parser = value_parser!(u32).range(1..=i64::from(Plan::HORIZON_MS_MAX)))]
    horizon_ms: u32,

    /// Percentage of timers that are cancelled before time starts; 0 to 100.
    #[arg(long, value_name = "PERCENT", default_value_t = Plan::DEFAULT.cancel_percent,
        value_parser = value_parser!(u8).range(..=i64::from(Plan::CANCEL_PERCENT_MAX)))]
    cancel: u8,

    /// How far virtual time advances per step; at least 1.
    #[arg(long, value_name = "MS", default_value_t = Plan::DEFAULT.step_ms,
        value_parser = value_parser!(u32).range(1..))]
    step_ms: u32,

    /// Seed for deadlines and cancellations. Equal seeds give equal runs on every machine.
    #[arg(long, value_name = "SEED", default_value_t = Plan::DEFAULT.seed)]
    seed: u64,

    /// Output format: a table with two histograms, or one JSON object on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// When to show a progress line on standard error; `auto` shows it on a terminal.
    #[arg(long, value_enum, default_value_t = ProgressMode::Auto)]
    progress: ProgressMode,
}

impl TimersArgs {
    fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let plan = Plan {
            count: self.count,
            horizon_ms: self.horizon_ms,
            cancel_percent: self.cancel,
            step_ms: self.step_ms,
            seed: self.seed,
        };
        let report = timers::simulate(plan, self.progress.on(streams))?;
        let text = match self.format {
            Format::Human => report.to_string(),
            Format::Json | Format::Ndjson => report.to_json(),
        };
        write_result(streams, &text)
    }
}

#[cfg(test)]
mod tests {
    use clockjack_time::Tick;

    use super::*;
    use crate::timers::{Fire, Violation};

    #[test]
    fn a_failed_check_is_reported_and_exits_with_failed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let fire = Fire { number: 17, deadline: Tick::new(5), now: Tick::new(4) };
        let result = Err(Failure::from(Violation::Early { fire }));
        assert_eq!(report_failure(result, &mut streams), exit_code::FAILED);
        assert_eq!(
            String::from_utf8_lossy(&err),
            "clockjack: a check failed: timer 17 fired at tick 4, before its deadline 5\n"
        );
        assert!(out.is_empty());
    }

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
