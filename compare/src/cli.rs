//! The command line: what may be asked for, and what is printed around the table.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::machine;
use crate::report::{Column, Progress, Reporter, Standing};
use crate::timers;

/// Runs the same loads on Clockjack and on the crates people would use instead.
///
/// Exit codes: 0 the comparison was made, whatever came out; 1 it could not be made; 2 the call was
/// wrong.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Timer stores: insert, cancel, fire, churn, bytes a timer.
    Timers(TimersArgs),
}

#[derive(Debug, clap::Args)]
struct TimersArgs {
    /// Fewer rounds and at most 100000 timers: below a minute.
    #[arg(long)]
    quick: bool,
    /// Also write one line of JSON a case to FILE; `-` is standard output, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only this case; may be given more than once.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<timers::Case>,
    /// Only this number of timers, in place of the usual ones.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(timers::N_MAX)))]
    n: Option<u32>,
    /// So many timed rounds, in place of the usual number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: Option<u32>,
    /// Only these subjects, by their names in `--list`.
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    only: Vec<String>,
    /// Say which subjects and cases there are, and stop.
    #[arg(long)]
    list: bool,
}

/// Does what the command line asks for; the table goes to `out`.
///
/// # Errors
///
/// If the comparison could not be made or written.
pub(crate) fn run(cli: &Cli, out: &mut dyn Write) -> Result<(), Failure> {
    match &cli.suite {
        Suite::Timers(args) => timers(args, out),
    }
}

fn timers(args: &TimersArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let selection = timers::Selection {
        effort: if args.quick { timers::Effort::Quick } else { timers::Effort::Full },
        n_rounds: args.rounds,
        cases: args.cases.clone(),
        n: args.n,
        only: args.only.clone(),
    };
    let columns = timers::columns(&selection)?;
    if args.list {
        return list(&columns, out).map_err(to_stdout);
    }
    let machine = machine::describe();
    let progress = Progress::on_stderr();
    let reporter = |json| Reporter {
        suite: timers::NAME,
        columns: columns.clone(),
        machine: machine.clone(),
        json,
        rows: Vec::new(),
        progress,
    };
    match &args.json {
        Some(path) if path.as_os_str() == "-" => {
            let mut reporter = reporter(Some((out, "standard output".to_owned())));
            timers::run(&selection, &mut reporter)?;
            reporter.progress.end();
            Ok(())
        }
        place => {
            let mut file = None;
            if let Some(path) = place {
                // Before the first minute of work, not behind the last.
                let shown = path.display().to_string();
                let opened = File::create(path);
                let opened = opened.map_err(|source| Failure::output(shown.clone(), source))?;
                file = Some((opened, shown));
            }
            let json = file.as_mut().map(|(file, shown)| (file as &mut dyn Write, shown.clone()));
            let mut reporter = reporter(json);
            timers::run(&selection, &mut reporter)?;
            reporter.progress.end();
            table(&reporter, out).map_err(to_stdout)
        }
    }
}

fn list(columns: &[Column], out: &mut dyn Write) -> io::Result<()> {
    let cases = timers::Case::ALL.map(timers::Case::name);
    writeln!(out, "cases: {}", cases.join(", "))?;
    legend(columns, out)
}

fn table(reporter: &Reporter<'_>, out: &mut dyn Write) -> io::Result<()> {
    let counts: Vec<usize> = reporter.rows.iter().map(|row| row.n_rounds).collect();
    let (fewest, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    writeln!(out, "{}", reporter.machine)?;
    writeln!(
        out,
        "suite {}: thread CPU time an operation, medians over {fewest} to {most} interleaved \
         rounds; ratio = best peer / ours, above 1 we win",
        reporter.suite
    )?;
    write!(out, "\n{}\n", reporter.table())?;
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
