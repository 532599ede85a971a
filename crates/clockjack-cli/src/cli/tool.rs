//! The arguments of the commands about the program itself: `doctor`, `completions` and `man`.

use clap::{Args, CommandFactory as _};
use clockjack_graph::Registry;

use super::{Cli, Streams, exit_codes, write_result};
use crate::{failure::Failure, format::Format, graph::doctor};

const DOCTOR_EXAMPLES: &str = "\
Examples:
  clockjack doctor                  versions, component types, limits, machine
  clockjack doctor --format json    the same as JSON";

/// Show versions, component types, limits and properties of the machine
#[derive(Debug, Args)]
#[command(after_help = exit_codes(DOCTOR_EXAMPLES, &[0, 2]))]
pub(super) struct DoctorArgs {
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
        let text = match self.format {
            Format::Human => doctor::text(registry),
            Format::Json | Format::Ndjson => format!("{}\n", doctor::json(registry)),
        };
        write_result(streams, &text)
    }
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
