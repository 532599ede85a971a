//! The arguments of the commands about the program itself: `doctor`, `completions` and `man`.

use core::time::Duration;

use clap::{Args, CommandFactory as _};
use clockjack_console::{
    query::Params,
    view::{Findings, View as _},
};
use clockjack_graph::Registry;
use serde_json::json;

use super::{Cli, Streams, exit_codes, write_result};
use crate::{
    exit_code,
    failure::{Failure, printable},
    format::Format,
    graph::doctor,
    live, span,
};

const DOCTOR_EXAMPLES: &str = "\
Examples:
  clockjack doctor                  versions, component types, limits, machine
  clockjack doctor --format json    the same as JSON
  clockjack doctor --of house       what is wrong in a running program; exits with 9 if anything is

A running program is named by its process id, the name of its system, the path of its socket, or a
URL. It is looked at for a while, because rates need two looks.";

/// Show versions, limits and properties of the machine, or what is wrong in a running program
#[derive(Debug, Args)]
#[command(after_help = exit_codes(DOCTOR_EXAMPLES, &[0, 2, 8, 9, 13]))]
pub(super) struct DoctorArgs {
    /// Report what is wrong in this running program instead.
    #[arg(long, value_name = "PROGRAM")]
    of: Option<String>,

    /// How long to look at the program.
    #[arg(long = "for", value_name = "DURATION", default_value = "3s", requires = "of",
        value_parser = span::parse)]
    wait: Duration,

    /// Output format: a list, or one JSON object on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl DoctorArgs {
    pub(super) fn run(
        &self,
        registry: &Registry,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        if let Some(program) = &self.of {
            return self.examine(program, streams);
        }
        let text = match self.format {
            Format::Human => doctor::text(registry),
            Format::Json | Format::Ndjson => format!("{}\n", doctor::json(registry)),
        };
        write_result(streams, &text)
    }

    /// Reports what is wrong in a running program.
    fn examine(&self, program: &str, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let client = live::connect(program)?;
        let value = live::look(&client, Findings::NAME, &Params::new(), self.wait)?;
        let found: Findings = serde_json::from_value(value.clone()).unwrap_or_default();
        let records = value["rows"].as_array().cloned().unwrap_or_default();
        let text = match self.format {
            Format::Json => {
                let members = json!({
                    "findings": records,
                    "looked_ms": found.looked_ms,
                    "undecided": found.undecided,
                });
                format!("{members}\n")
            }
            other => other.list("findings", records.into_iter(), || examination(&found)),
        };
        write_result(streams, &text)?;
        if found.rows.is_empty() && found.looked_ms.is_some() {
            return Ok(());
        }
        Err(Failure::already_reported(exit_code::ASSERTION_FAILED))
    }
}

/// What was found, and what cannot be known after a look of this length. Paths of actors are in the
/// texts, and a program names its actors as it likes.
fn examination(found: &Findings) -> String {
    let lines = found.rows.iter().map(|one| {
        let (code, text) = (printable(&one.code), printable(&one.text));
        format!("{code} {text}   clockjack explain {code}\n")
    });
    let mut text: String = lines.collect();
    if found.looked_ms.is_none() && text.is_empty() {
        text.push_str("unknown: nobody looks at the program\n");
    } else if text.is_empty() {
        text.push_str("no findings\n");
    }
    for open in &found.undecided {
        text.push_str(&format!(
            "{} is undecided: {}\n",
            printable(&open.code),
            printable(&open.why)
        ));
    }
    text
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  clockjack completions bash > ~/.local/share/bash-completion/completions/clockjack
  clockjack completions fish > ~/.config/fish/completions/clockjack.fish";

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = exit_codes(COMPLETIONS_EXAMPLES, &[0, 2]))]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "clockjack", &mut script);
        write_result(streams, script)
    }
}

const MAN_EXAMPLES: &str = "\
Examples:
  clockjack man | man -l -          the page of the whole program
  clockjack man run | man -l -      the page of one command";

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = exit_codes(MAN_EXAMPLES, &[0, 2]))]
pub(super) struct ManArgs {
    /// The command; default: the whole program.
    command: Option<String>,
}

impl ManArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let mut whole = Cli::command();
        whole.build();
        let command = match &self.command {
            None => whole,
            Some(name) => {
                let found = whole.find_subcommand(name).cloned();
                found.ok_or_else(|| {
                    Failure::usage(format!(
                        "unknown command '{name}'; `clockjack --help` lists all commands"
                    ))
                })?
            }
        };
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut page);
        rendered.map_err(Failure::output)?;
        write_result(streams, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_sends_no_commands_to_the_terminal() {
        let found = serde_json::json!({
            "looked_ms": 3000,
            "rows": [
                {"code": "S01", "text": "/user/\u{1b}[2J has been\nstuck"},
                {"code": "S03", "text": "/user/\u{9b}2J: 940 of 1000"},
            ],
            "undecided": [{"code": "S11", "why": "\u{1b}[2J"}],
        });
        let found: Findings = serde_json::from_value(found).expect("these are findings");
        let expected = "S01 /user/\\u{1b}[2J has been\\nstuck   clockjack explain S01\n\
                        S03 /user/\\u{9b}2J: 940 of 1000   clockjack explain S03\n\
                        S11 is undecided: \\u{1b}[2J\n";
        assert_eq!(examination(&found), expected);
        assert_eq!(examination(&Findings::default()), "unknown: nobody looks at the program\n");
    }
}
