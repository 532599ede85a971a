//! The arguments of `ps`.

use clap::Args;
use clockjack_console::{
    client::{self, Program},
    query::NoQuery,
    view::Overview,
};
use serde_json::{Value, json};

use super::{Streams, exit_codes, write_result};
use crate::{
    failure::{Failure, printable},
    format::Format,
    live,
};

const EXAMPLES: &str = "\
Examples:
  clockjack ps                    the running programs that have a console
  clockjack ps --format ndjson    one JSON object per program

A program has a console if it contains `Console::of(&rt).open()?`. The sockets of programs that were
killed are removed.";

/// List the running programs that can be looked at
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXAMPLES, &[0, 2]))]
pub(super) struct PsArgs {
    /// Output format: a table, one JSON object, or one JSON object per program.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl PsArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let programs = client::list().map_err(Failure::sockets)?;
        let records: Vec<Value> = programs.iter().map(record).collect();
        let text = self.format.list("programs", records.iter().cloned(), || table(&records));
        write_result(streams, &text)
    }
}

fn record(program: &Program) -> Value {
    let (mut up_s, mut n_actors, mut control, mut problem) = (None, None, None, None);
    match &program.client {
        Ok(client) => {
            let hello = client.hello();
            up_s = hello.started.map(|from| live::now_ms().saturating_sub(from) / 1000);
            control = Some(hello.control.clone());
            let overview = client.get::<Overview>(&NoQuery);
            n_actors = overview.ok().and_then(|overview| overview.actors.value);
        }
        Err(error) => problem = Some(live::with_cause(error)),
    }
    json!({
        "pid": program.pid,
        "system": program.system,
        "up_s": up_s,
        "actors": n_actors,
        "control": control,
        "address": program.path.display().to_string(),
        "problem": problem,
    })
}

/// The programs as text. A program names itself as it likes, and so does the maker of a file.
fn table(records: &[Value]) -> String {
    if records.is_empty() {
        return "no running program has a console\n".to_owned();
    }
    let titles = ["PID", "SYSTEM", "UP", "ACTORS", "CONTROL"].map(str::to_owned);
    let mut rows = vec![(titles, "ADDRESS".to_owned())];
    for one in records {
        let up = one["up_s"].as_u64().map_or("-".to_owned(), live::clock_of_s);
        let actors = one["actors"].as_f64().map_or("-".to_owned(), |n| n.to_string());
        let classes = one["control"].as_array().map(|names| {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { printable(&names.join(",")) }
        });
        let address = printable(one["address"].as_str().unwrap_or_default());
        let problem = one["problem"].as_str();
        let problem = problem.map_or(String::new(), |why| format!("  ({})", printable(why)));
        let cells = [
            one["pid"].to_string(),
            printable(one["system"].as_str().unwrap_or_default()),
            up,
            actors,
            classes.unwrap_or_else(|| "-".into()),
        ];
        rows.push((cells, format!("{address}{problem}")));
    }
    let width = |at: usize| rows.iter().map(|(cells, _)| cells[at].chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|at| width(at).unwrap_or(0)).collect();
    let line = |(cells, address): &([String; 5], String)| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        format!("{}{address}\n", cells.collect::<String>())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sends_no_commands_to_the_terminal() {
        let evil = "\u{1b}]0;x\u{7}\u{9b}2J\n";
        let record = json!({
            "pid": 4711, "system": evil, "up_s": 8_047, "actors": 12.0, "control": [evil, "JOBS"],
            "address": evil, "problem": evil,
        });
        let text = table(&[record]);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(r"\u{1b}]0;x") && text.contains("02:14:07"), "{text}");
    }
}
