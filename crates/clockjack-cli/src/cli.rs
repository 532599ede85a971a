//! From arguments to an exit code: parse, run, say what went wrong.

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
    graph::{CheckArgs, DiffPlanArgs, ExplainArgs, LintArgs, PlanArgs, RenderArgs, Surroundings},
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

/// The command with the arguments and the streams of this process. Graphs may name the types of
/// this registry.
#[must_use = "the exit code is to be returned from `main`"]
pub fn main(registry: Registry) -> ExitCode {
    // Not locked: components that print would wait for the end of the run, and it for them.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut streams = Streams::of_process(&mut out, &mut err);
    ExitCode::from(run(&registry, std::env::args_os(), &mut streams))
}

/// The command with these arguments, the first of which is its own name, and these streams. Gives
/// the [exit code](exit_code). It can be called any number of times.
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
#[must_use = "the exit code says whether all went well"]
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
        Err(refusal) => return explain(&refusal, streams),
    };
    let of = Surroundings { registry, color: cli.color };
    let result = match cli.command {
        Command::Check(args) => args.run(of, streams),
        Command::Plan(args) => args.run(of, streams),
        Command::Render(args) => args.run(of, streams),
        Command::Run(args) => args.run(of, streams),
        Command::Trace(args) => args.run(of, streams),
        Command::Observe(args) => args.run(of, streams),
        Command::Bench(args) => args.run(of, streams),
        Command::Lint(args) => args.run(of, streams),
        Command::Explain(args) => args.run(streams),
        Command::DiffPlan(args) => args.run(of, streams),
        Command::Schema(args) => args.run(streams),
        Command::Init(args) => args.run(streams),
        Command::Doctor(args) => args.run(registry, streams),
        Command::Completions(args) => args.run(streams),
        Command::Man(args) => args.run(streams),
        Command::Timers(args) => args.run(streams),
        Command::Jobs(args) => args.run(streams),
    };
    conclude(result, streams)
}

/// Says what went wrong, if anything did.
fn conclude(result: Result<(), Failure>, streams: &mut Streams<'_>) -> u8 {
    match result {
        Ok(()) => exit_code::OK,
        Err(failure) if failure.is_told() => failure.exit_code(),
        Err(failure) => {
            let cause = failure.source().map_or(String::new(), |cause| format!(": {cause}"));
            // Where even this cannot be said, the exit code says it.
            let _said = writeln!(streams.err, "clockjack: {failure}{cause}");
            failure.exit_code()
        }
    }
}

/// Prints help, version or what is wrong with the arguments, without colour.
fn explain(refusal: &clap::Error, streams: &mut Streams<'_>) -> u8 {
    let text = refusal.render().to_string();
    if refusal.use_stderr() {
        // As above.
        let _said = streams.err.write_all(text.as_bytes());
        return exit_code::USAGE;
    }
    let result = write_result(streams, &text);
    conclude(result, streams)
}

/// Writes a result. A reader that went away has seen enough: this is no failure, and what the
/// result has to say by the exit code it still says.
fn write_result(streams: &mut Streams<'_>, result: impl AsRef<[u8]>) -> Result<(), Failure> {
    match streams.out.write_all(result.as_ref()).and_then(|()| streams.out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::output),
    }
}

/// Writes a result to a file, if the arguments name one, or prints it.
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

/// Examples, and behind them what these exit codes mean.
fn exit_codes(examples: &str, codes: &[u8]) -> String {
    let mut out = String::from(examples);
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str("Exit codes:");
    for (code, meaning) in exit_code::ALL {
        // A result that cannot be written can happen to every command.
        if codes.contains(&code) || code == exit_code::FAILED {
            out.push_str(&format!("\n  {code:<3}  {meaning}"));
        }
    }
    out
}

/// The numbers of all exit codes.
fn all_codes() -> Vec<u8> {
    exit_code::ALL.iter().map(|(code, _)| *code).collect()
}

const TIMERS_NOTE: &str = "\
Prints what was done, how many timers fired in a step and how late they were. Costs are wall time of
one cold run, with the growth of memory; `cargo xtask compare timers` measures properly.";

const TIMERS_EXAMPLES: &str = "\
Examples:
  clockjack timers                            a million timers in a minute
  clockjack timers --step-ms 7                time in steps: timers are up to 6 ms late, never early
  clockjack timers --horizon-ms 86400000      a day, most of it beyond the wheel's range
  clockjack timers --seed 2 --format json     for programs; all but `timing` repeats exactly";

/// Clockjack: dataflow graphs, timers and jobs on a clock that you control
#[derive(Debug, Parser)]
#[command(name = "clockjack", version, after_help = exit_codes("", &all_codes()),
    arg_required_else_help = true)]
struct Cli {
    /// Whether to use colours; `auto` uses them on a terminal, unless NO_COLOR is set.
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

/// Arm many timers in virtual time, cancel some, fire the rest, and check every one of them
#[derive(Debug, Args)]
#[command(after_help = exit_codes(&format!("{TIMERS_NOTE}\n\n{TIMERS_EXAMPLES}"), &[0, 1, 2]))]
struct TimersArgs {
    /// How many timers; at most 50000000.
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT.count,
        value_parser = value_parser!(u32).range(..=i64::from(Plan::COUNT_MAX)))]
    count: u32,

    /// Deadlines are 1 to this many virtual milliseconds ahead; at most 604800000 (a week).
    #[arg(long, value_name = "MS", default_value_t = Plan::DEFAULT.horizon_ms,
        value_parser = value_parser!(u32).range(1..=i64::from(Plan::HORIZON_MS_MAX)))]
    horizon_ms: u32,

    /// How many of a hundred are cancelled before time begins to pass; 0 to 100.
    #[arg(long, value_name = "PERCENT", default_value_t = Plan::DEFAULT.cancel_percent,
        value_parser = value_parser!(u8).range(..=i64::from(Plan::CANCEL_PERCENT_MAX)))]
    cancel: u8,

    /// By how much virtual time moves at once; at least 1.
    #[arg(long, value_name = "MS", default_value_t = Plan::DEFAULT.step_ms,
        value_parser = value_parser!(u32).range(1..))]
    step_ms: u32,

    /// Decides deadlines and cancels. Equal seeds give equal runs, on every machine.
    #[arg(long, value_name = "SEED", default_value_t = Plan::DEFAULT.seed)]
    seed: u64,

    /// What to print: a table and two histograms, or one line with one object.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Whether to draw a progress line on standard error; `auto` draws it on a terminal.
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
    fn a_check_that_did_not_hold_is_said_and_exits_with_failed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let fire = Fire { number: 17, deadline: Tick::new(5), now: Tick::new(4) };
        let result = Err(Failure::from(Violation::Early { fire }));
        assert_eq!(conclude(result, &mut streams), exit_code::FAILED);
        assert_eq!(
            String::from_utf8_lossy(&err),
            "clockjack: a check did not hold: timer 17 fired at tick 4, before its deadline 5\n"
        );
        assert!(out.is_empty());
    }

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
