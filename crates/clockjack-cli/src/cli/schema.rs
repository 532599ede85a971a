//! The arguments of `clockjack schema`.

use clap::Args;
use clockjack_graph::describe;

use super::{Streams, exit_codes, write_result};
use crate::{failure::Failure, format::Format};

const SCHEMA_EXAMPLES: &str = "\
Examples:
  clockjack schema > graph.schema.json    for editors that validate YAML";

/// Print the JSON Schema of graph files
#[derive(Debug, Args)]
#[command(after_help = exit_codes(SCHEMA_EXAMPLES, &[0, 2]))]
pub(super) struct SchemaArgs {
    /// Output format: indented, or on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl SchemaArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let schema = describe::json_schema();
        let text = match self.format {
            Format::Human => format!("{}\n", schema.trim_end()),
            Format::Json | Format::Ndjson => {
                let value: serde_json::Value =
                    serde_json::from_str(&schema).expect("the schema is JSON, as a test shows");
                format!("{value}\n")
            }
        };
        write_result(streams, &text)
    }
}
