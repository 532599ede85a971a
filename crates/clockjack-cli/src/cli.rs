//! Parses the arguments, runs the command, reports failures and returns the exit code.

mod cluster;
mod demo;
mod graph;
mod init;
mod inspect;
mod observe;
mod options;
mod params;
mod plot;
mod ps;
mod run;
mod schema;
mod tool;
mod top;

use core::error::Error as _;
use std::{ffi::OsString, io, process::ExitCode};

use clap::{Parser, Subcommand};
use clockjack_graph::Registry;

use self::{
    cluster::ClusterArgs,
    demo::DemoArgs,
    graph::{CheckArgs, DiffPlanArgs, Env, ExplainArgs, LintArgs, PlanArgs, RenderArgs},
    init::InitArgs,
    inspect::InspectArgs,
    observe::ObserveArgs,
    options::ColorMode,
    params::{GetArgs, SetArgs},
    plot::PlotArgs,
    ps::PsArgs,
    run::{BenchArgs, RunArgs, TraceArgs},
    schema::SchemaArgs,
    tool::{CompletionsArgs, DoctorArgs, ManArgs},
    top::TopArgs,
};
use crate::{exit_code, failure::Failure, output::OutputFile, streams::Streams};

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
/// let code = run(&Registry::new(), ["clockjack", "demo", "jobs", "--count", "-1"], &mut streams);
/// assert_eq!(code, exit_code::USAGE);
/// assert!(String::from_utf8_lossy(&err).contains("unexpected argument '-1'"));
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
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(parse_error) => return print_parse_message(&parse_error, streams),
    };
    let program = args.first().map_or("clockjack".into(), |name| name.to_string_lossy());
    // The program, the command and a file.
    let has_options = args.len() > 3;
    let env = Env { registry, color: cli.color, program: &program, has_options };
    let result = match cli.command {
        Command::Check(args) => args.run(env, streams),
        Command::Plan(args) => args.run(env, streams),
        Command::Render(args) => args.run(env, streams),
        Command::Run(args) => args.run(env, streams),
        Command::Plot(args) => args.run(env, streams),
        Command::Trace(args) => args.run(env, streams),
        Command::Observe(args) => args.run(env, streams),
        Command::Bench(args) => args.run(env, streams),
        Command::Lint(args) => args.run(env, streams),
        Command::Explain(args) => args.run(streams),
        Command::DiffPlan(args) => args.run(env, streams),
        Command::Schema(args) => args.run(streams),
        Command::Init(args) => args.run(streams),
        Command::Cluster(args) => args.run(streams),
        Command::Ps(args) => args.run(streams),
        Command::Top(args) => args.run(env, streams),
        Command::Inspect(args) => args.run(streams),
        Command::Get(args) => args.run(streams),
        Command::Set(args) => args.run(streams),
        Command::Doctor(args) => args.run(registry, streams),
        Command::Completions(args) => args.run(streams),
        Command::Man(args) => args.run(streams),
        Command::Demo(args) => args.run(streams),
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

const EXAMPLES: &str = "\
Examples:
  clockjack init night-watch                 create a project: an actor with a timer, and its tests
  clockjack init notes --template service    create an HTTP server that drains on SIGTERM
  clockjack check cell.yaml                  report every error of a graph file
  clockjack run cell.yaml                    run it: a thousand epochs in virtual time
  clockjack explain missing_field            explain a diagnostic code";

/// Run, check and inspect dataflow graphs, timers and jobs on a clock that you control
#[derive(Debug, Parser)]
#[command(name = "clockjack", version, after_help = exit_codes(EXAMPLES, &all_codes()),
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
    Plot(PlotArgs),
    Trace(TraceArgs),
    Observe(ObserveArgs),
    Lint(LintArgs),
    Explain(ExplainArgs),
    DiffPlan(DiffPlanArgs),
    Bench(BenchArgs),
    Schema(SchemaArgs),
    Init(InitArgs),
    Cluster(ClusterArgs),
    Ps(PsArgs),
    Top(TopArgs),
    Inspect(InspectArgs),
    Get(GetArgs),
    Set(SetArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Demo(DemoArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_is_reported_and_exits_with_failed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let result = Err(Failure::check("the wheel has refused a timer"));
        assert_eq!(report_failure(result, &mut streams), exit_code::FAILED);
        assert_eq!(
            String::from_utf8_lossy(&err),
            "clockjack: a check failed: the wheel has refused a timer\n"
        );
        assert!(out.is_empty());
    }

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
