//! The page on standard components, from what they say of themselves.

use clockjack::graph::{
    ConfigField, Descriptor, Need, PortDescriptor, Registry, component::Multiplicity,
};

/// The page.
pub(super) fn text(registry: &Registry) -> String {
    let mut out = String::from(
        "# Standard components\n\nWhat `Registry::standard()` knows, for graphs without code. A \
         component of your own is a struct with a derive: see \
         [how to write one](../how-to/write-a-component.md).\n",
    );
    for name in registry.types() {
        let descriptor = registry.descriptor(name).expect("the registry has just named it");
        out.push_str(&section(descriptor));
    }
    out
}

fn section(of: &Descriptor) -> String {
    let mut out = format!("\n## {}\n\n{}.", of.component_type, of.title);
    if let Some(role) = &of.role {
        out.push_str(&format!(" Stands at the border of a graph: `{role}`."));
    }
    out.push('\n');
    if !of.inputs.is_empty() || !of.outputs.is_empty() {
        out.push_str("\n| port | | carries |\n|---|---|---|\n");
        out.extend(of.inputs.iter().map(|port| row(port, "input")));
        out.extend(of.outputs.iter().map(|port| row(port, "output")));
    }
    if !of.config.is_empty() {
        out.push_str("\n| setting | value |\n|---|---|\n");
        out.extend(of.config.iter().map(setting));
    }
    out
}

fn row(port: &PortDescriptor, direction: &str) -> String {
    let mut words = vec![direction];
    // An output may lead nowhere, and to many.
    if direction == "input" && port.need == Need::Optional {
        words.push("may be left unconnected");
    }
    if direction == "input" && port.multiplicity == Multiplicity::Multiple {
        words.push("any number of edges");
    }
    let carries = if port.schema.is_empty() { "anything" } else { &port.schema };
    format!("| `{}` | {} | {carries} |\n", port.name, words.join(", "))
}

fn setting(field: &ConfigField) -> String {
    let mut words = vec![field.kind.to_string()];
    if field.need == Need::Required {
        words.push("required".to_owned());
    }
    if let Some(min) = field.min {
        words.push(format!("at least {min}"));
    }
    if let Some(max) = field.max {
        words.push(format!("at most {max}"));
    }
    if !field.choices.is_empty() {
        let choices: Vec<String> = field.choices.iter().map(|one| format!("`{one}`")).collect();
        words.push(format!("one of {}", choices.join(", ")));
    }
    format!("| `{}` | {} |\n", field.name, words.join(", "))
}
