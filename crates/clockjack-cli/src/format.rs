//! The output format that most commands have.

use clap::ValueEnum;
use serde_json::{Value, json};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Human,
    /// One JSON object on one line.
    Json,
    /// One JSON object per line, as soon as it is available.
    Ndjson,
}

impl Format {
    /// Formats a list: the text, one JSON object with the list as its only member, or one JSON
    /// object per item.
    pub(crate) fn list(
        self,
        key: &str,
        records: impl Iterator<Item = Value>,
        text: impl FnOnce() -> String,
    ) -> String {
        match self {
            Self::Human => text(),
            Self::Json => format!("{}\n", json!({ key: records.collect::<Vec<Value>>() })),
            Self::Ndjson => records.map(|record| format!("{record}\n")).collect(),
        }
    }
}
