//! `clockjack doctor`: the capabilities of this program on this machine. The command reads nothing
//! outside the process, so it works everywhere.

use core::fmt::Write as _;

use clockjack_graph::{
    Registry,
    describe::FileLimits,
    diagnostic::{Code, json::SCHEMA_VERSION as DIAGNOSTICS_VERSION},
};
use serde_json::{Value, json};

/// The schema version of graph files.
const SCHEMA_VERSION: u32 = 1;
/// The version of the execution semantics of graphs.
const CONTRACT_VERSION: &str = "0.2";

/// The report as JSON.
pub(crate) fn json(registry: &Registry) -> Value {
    let limits = FileLimits::DEFAULT;
    let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "schema_version": SCHEMA_VERSION,
        "semantic_contract_version": CONTRACT_VERSION,
        "diagnostics_schema_version": DIAGNOSTICS_VERSION,
        "n_codes": Code::ALL.len(),
        "component_types": registry.types().collect::<Vec<_>>(),
        "limits": {
            "graph_input_bytes": limits.text_bytes,
            "lanes": limits.lanes,
            "components": limits.components,
            "edges": limits.edges,
            "composite_loops": limits.loops,
            "identifier_bytes": limits.identifier_bytes,
            "config_depth": limits.config_depth,
            "config_value_bytes": limits.config_value_bytes,
            "string_bytes": limits.string_bytes,
        },
        "machine": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "threads": threads,
            "build": crate::BUILD,
        },
    })
}

/// The report as text.
pub(crate) fn text(registry: &Registry) -> String {
    let Value::Object(members) = json(registry) else { return String::new() };
    let mut out = String::new();
    for (name, value) in members {
        let written = match value {
            Value::Object(inner) => {
                let parts: Vec<String> =
                    inner.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
                writeln!(out, "{name:<28} {}", parts.join(", "))
            }
            Value::Array(list) => {
                let parts: Vec<String> = list.iter().map(plain).collect();
                writeln!(out, "{name:<28} {}", parts.join(", "))
            }
            value => writeln!(out, "{name:<28} {}", plain(&value)),
        };
        written.expect("writing to a string cannot fail");
    }
    out
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
