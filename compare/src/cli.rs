//! The command line: options, and the text around the table.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::machine;
use crate::report::{Column, Progress, Reporter, Standing};
use crate::selection::{Effort, Selection};
use crate::table::Table;
use crate::{actor_timers, actors, executor, graph, jitter, scheduler, timers};

/// Runs the same workloads on Clockjack and on competing crates.
///
/// Exit codes: 0: the comparison was made, whatever the result; 1: it could not be made; 2: wrong
/// arguments.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Timer stores: insert, cancel, fire, churn, bytes per timer.
    Timers(TimersArgs),
    /// Executors with two workers: spawn, yield, wake, messages, fork and join, steal, idle cost.
    Executor(ExecutorArgs),
    /// The lateness of a periodic timer of one millisecond.
    Jitter(JitterArgs),
    /// One-shots on two workers: schedule and cancel, schedule and fire.
    Scheduler(SchedulerArgs),
    /// Actors on one thread and on two: messages, asks, starts, stops, bytes per actor.
    Actors(ActorsArgs),
    /// Timers of actors on two workers: arm and cancel, arm and fire, keyed timers.
    ActorTimers(ActorTimersArgs),
    /// Dataflow graphs: time per node, parallel branches, compiling, tracing, allocations.
    Graph(GraphArgs),
    /// Runs one idle executor in this process; `executor` starts this for its last case.
    #[command(hide = true)]
    Idle(IdleArgs),
}

/// The options of every suite.
#[derive(Debug, clap::Args)]
struct CommonArgs {
    /// Use fewer rounds and small sizes: takes less than a minute.
    #[arg(long)]
    quick: bool,
    /// Also write one line of JSON per case to FILE; `-` is standard output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The number of timed rounds, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: Option<u32>,
    /// Run only these subjects, by their names in `--list`.
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    only: Vec<String>,
    /// List the subjects and cases, and exit.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, clap::Args)]
struct TimersArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<timers::Case>,
    /// The number of timers, instead of the default sizes.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(timers::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct ExecutorArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<executor::Case>,
    /// The number of operations, or milliseconds of idle time, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(executor::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct JitterArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Report only this percentile; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<jitter::Case>,
    /// The total number of periods, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(jitter::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct SchedulerArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<scheduler::Case>,
    /// The number of timers, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(scheduler::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct ActorsArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<actors::Case>,
    /// The number of messages, actors or rounds, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(actors::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct ActorTimersArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<actor_timers::Case>,
    /// The number of timers, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(actor_timers::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct GraphArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Run only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<graph::Case>,
    /// The number of epochs, instead of the default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(graph::N_MAX)))]
    n: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct IdleArgs {
    subject: String,
    millis: u32,
}

/// Executes the command line; the table goes to `out`.
///
/// # Errors
///
/// If the comparison could not be made or written.
pub(crate) fn run(cli: &Cli, out: &mut dyn Write) -> Result<(), Failure> {
    match &cli.suite {
        Suite::Timers(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: timers::NAME,
                caption: timers::CAPTION,
                cases: timers::Case::ALL.map(timers::Case::name).to_vec(),
                columns: timers::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| timers::run(&selection, reporter))
        }
        Suite::Executor(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: executor::NAME,
                caption: executor::CAPTION,
                cases: executor::Case::ALL.map(executor::Case::name).to_vec(),
                columns: executor::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| executor::run(&selection, reporter))
        }
        Suite::Jitter(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: jitter::NAME,
                caption: jitter::CAPTION,
                cases: jitter::Case::ALL.map(jitter::Case::name).to_vec(),
                columns: jitter::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| jitter::run(&selection, reporter))
        }
        Suite::Scheduler(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: scheduler::NAME,
                caption: scheduler::CAPTION,
                cases: scheduler::Case::ALL.map(scheduler::Case::name).to_vec(),
                columns: scheduler::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| scheduler::run(&selection, reporter))
        }
        Suite::Actors(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: actors::NAME,
                caption: actors::CAPTION,
                cases: actors::Case::ALL.map(actors::Case::name).to_vec(),
                columns: actors::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| actors::run(&selection, reporter))
        }
        Suite::ActorTimers(args) => {
            let selection = args.common.selection(&args.cases, args.n);
            let suite = Head {
                name: actor_timers::NAME,
                caption: actor_timers::CAPTION,
                cases: actor_timers::Case::ALL.map(actor_timers::Case::name).to_vec(),
                columns: actor_timers::columns(&selection)?,
            };
            present(suite, &args.common, out, |reporter| actor_timers::run(&selection, reporter))
        }
        Suite::Graph(args) => run_graph(args, out),
        Suite::Idle(args) => {
            let idleness = executor::idle(&args.subject, args.millis)?;
            writeln!(out, "{idleness}").map_err(to_stdout)
        }
    }
}

fn run_graph(args: &GraphArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let selection = args.common.selection(&args.cases, args.n);
    let rivals = graph::Rivals::find();
    let suite = Head {
        name: graph::NAME,
        caption: graph::CAPTION,
        cases: graph::Case::ALL.map(graph::Case::name).to_vec(),
        columns: graph::columns(&selection, &rivals)?,
    };
    let run = |reporter: &mut Reporter<'_>| graph::run(&selection, &rivals, reporter);
    present(suite, &args.common, out, run)
}

impl CommonArgs {
    fn selection<C: Clone>(&self, cases: &[C], n: Option<u32>) -> Selection<C> {
        Selection {
            effort: if self.quick { Effort::Quick } else { Effort::Full },
            n_rounds: self.rounds,
            cases: cases.to_vec(),
            n,
            only: self.only.clone(),
        }
    }
}

/// Further figures that have a separate table, if a suite has them.
const EXTRA_TABLES: [(&str, &str); 7] = [
    ("cpu", "the CPU time of all threads"),
    ("wall_time", "the wall time"),
    ("schedule", "the wall time of a call that schedules"),
    ("cancel", "the wall time of a call that cancels"),
    ("efficiency", "time of the static loop / (time x cores), in per cent"),
    ("load", "the part of it that reads the file"),
    ("load_general", "the same with the general YAML parser alone"),
];

/// The properties of a suite.
struct Head {
    name: &'static str,
    caption: &'static str,
    cases: Vec<&'static str>,
    columns: Vec<Column>,
}

/// Runs a suite and writes its results.
fn present(
    suite: Head,
    args: &CommonArgs,
    out: &mut dyn Write,
    run: impl FnOnce(&mut Reporter<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if args.list {
        return list(&suite, out).map_err(to_stdout);
    }
    let reporter = |json| Reporter {
        suite: suite.name,
        caption: suite.caption,
        columns: suite.columns,
        machine: machine::describe(),
        json,
        rows: Vec::new(),
        progress: Progress::on_stderr(),
    };
    match &args.json {
        Some(path) if path.as_os_str() == "-" => {
            let mut reporter = reporter(Some((out, "standard output".to_owned())));
            run(&mut reporter)?;
            reporter.progress.end();
            Ok(())
        }
        place => {
            let mut file = None;
            if let Some(path) = place {
                // Open the file before the first run, so that an error does not waste the
                // measurement.
                let shown = path.display().to_string();
                let opened = File::create(path);
                let opened = opened.map_err(|source| Failure::output(shown.clone(), source))?;
                file = Some((opened, shown));
            }
            let json = file.as_mut().map(|(file, shown)| (file as &mut dyn Write, shown.clone()));
            let mut reporter = reporter(json);
            run(&mut reporter)?;
            reporter.progress.end();
            table(&reporter, out).map_err(to_stdout)
        }
    }
}

fn list(suite: &Head, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "cases: {}", suite.cases.join(", "))?;
    legend(&suite.columns, out)
}

fn table(reporter: &Reporter<'_>, out: &mut dyn Write) -> io::Result<()> {
    let counts: Vec<usize> = reporter.rows.iter().map(|row| row.n_rounds).collect();
    let (fewest, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    writeln!(out, "{}", reporter.machine)?;
    writeln!(
        out,
        "suite {}: {}, over {fewest} to {most} interleaved rounds; ratio = best peer / ours, \
         above 1 we win",
        reporter.suite, reporter.caption
    )?;
    write!(out, "\n{}\n", reporter.table())?;
    for (extra, caption) in EXTRA_TABLES {
        let rows = reporter.rows_of(extra);
        if !rows.is_empty() {
            let table = Table { columns: &reporter.columns, rows: &rows };
            write!(out, "{caption}:\n\n{table}\n")?;
        }
    }
    for row in reporter.rows.iter().filter(|row| !row.versus.is_empty()) {
        let shown = |(key, ratio): (&str, Option<f64>)| {
            ratio.map_or_else(|| format!("{key} -"), |ratio| format!("{key} {ratio:.2}"))
        };
        let ours = row.outcome(&reporter.columns).ours;
        let ratios: Vec<String> = row.versus(ours).map(shown).collect();
        writeln!(out, "{}: {}", row.case, ratios.join(", "))?;
    }
    legend(&reporter.columns, out)
}

fn legend(columns: &[Column], out: &mut dyn Write) -> io::Result<()> {
    for column in columns {
        let origin = column.package.map_or_else(
            || "std".to_owned(),
            |name| format!("{name} {}", machine::locked_version(name).unwrap_or("?")),
        );
        let standing = match column.standing {
            Standing::Ours => "ours",
            Standing::Rival => "rival",
            Standing::Reference => "reference*, never the best peer",
        };
        writeln!(out, "{}: {origin}; {standing}; {}", column.name, column.note)?;
    }
    Ok(())
}

fn to_stdout(source: io::Error) -> Failure {
    Failure::output("standard output".to_owned(), source)
}

#[cfg(test)]
mod tests {
    use super::{
        Column, Failure, Selection, actor_timers, actors, executor, jitter, scheduler, timers,
    };
    use crate::selection::Effort;

    #[test]
    fn the_subjects_of_a_suite_have_different_names_and_one_is_ours() {
        check("timers", timers::columns(&everything()));
        check("executor", executor::columns(&everything()));
        check("jitter", jitter::columns(&everything()));
        check("scheduler", scheduler::columns(&everything()));
        check("actors", actors::columns(&everything()));
        check("actor-timers", actor_timers::columns(&everything()));
    }

    fn check(suite: &str, columns: Result<Vec<Column>, Failure>) {
        let columns = columns.unwrap_or_else(|failure| panic!("{suite}: {failure}"));
        let mut names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns.len(), "{suite}: {columns:?}");
        let ours = columns.iter().filter(|column| column.standing == super::Standing::Ours);
        assert_eq!(ours.count(), 1, "{suite}: {columns:?}");
    }

    fn everything<C>() -> Selection<C> {
        Selection {
            effort: Effort::Quick,
            n_rounds: None,
            cases: Vec::new(),
            n: None,
            only: Vec::new(),
        }
    }
}
