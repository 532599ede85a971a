//! The arguments of `get` and `set`: settings of a graph that runs in another program.

use clap::Args;
use serde_json::{Value, json};

use super::{Streams, exit_codes, write_result};
use crate::{
    failure::{Failure, printable},
    format::Format,
    live,
};

const GET_EXAMPLES: &str = "\
Examples:
  clockjack get house control.kp                   the value that is in force
  clockjack get 4711 control.kp --graph arm        if the program shows several graphs
  clockjack get house control.kp --format json     as JSON, with the name of the graph

The program is named by its process id, the name of its system, the path of its socket, or a URL. It
shows a graph if it contains `Console::of(&rt).graph(\"arm\", &run)`.";

/// Print a setting of a component of a running graph
#[derive(Debug, Args)]
#[command(after_help = exit_codes(GET_EXAMPLES, &[0, 2, 8, 13]))]
pub(super) struct GetArgs {
    #[command(flatten)]
    of: ProgramArgs,

    /// The component and the name of the setting.
    #[arg(value_name = "COMPONENT.FIELD")]
    setting: String,
}

impl GetArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let client = live::connect(&self.of.program)?;
        let param = client.param(self.of.graph.as_deref(), &self.setting);
        let param = param.map_err(Failure::client)?;
        let text = match self.of.format {
            Format::Human => format!("{}\n", shown(&param.value)),
            Format::Json | Format::Ndjson => format!("{}\n", json!(param)),
        };
        write_result(streams, &text)
    }
}

const SET_EXAMPLES: &str = "\
Examples:
  clockjack set house control.kp=2.5                  a number
  clockjack set house control.mode=manual             a text
  clockjack set house control.mode='\"25\"'             a text that looks like a number
  clockjack set 4711 control.kp=2.5 --graph arm       if the program shows several graphs

The command waits until the value is in force, which is from the next epoch of the run on, and
prints the value before it. The change is in the commit log of the run, and in the events of the
program with the user and the process that asked for it, also if it was refused.

The program must allow changes:
`Console::of(&rt).control(Control::GRAPHS).graph(\"arm\", &run)`. It is named by its process id, the
name of its system, the path of its socket, or a URL.";

/// Change a setting of a component of a running graph
#[derive(Debug, Args)]
#[command(after_help = exit_codes(SET_EXAMPLES, &[0, 2, 8, 13]))]
pub(super) struct SetArgs {
    #[command(flatten)]
    of: ProgramArgs,

    /// The component, the name of the setting, and its value as JSON; what is no JSON is a text.
    #[arg(value_name = "COMPONENT.FIELD=VALUE", value_parser = assignment)]
    assignment: (String, Value),
}

impl SetArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let (setting, value) = &self.assignment;
        let client = live::connect(&self.of.program)?.with_control();
        let change = client.set_param(self.of.graph.as_deref(), setting, value);
        let change = change.map_err(Failure::client)?;
        let text = match self.of.format {
            Format::Human => {
                let (old, new) = (shown(&change.old), shown(&change.new));
                format!("{}: {old} -> {new}\n", printable(&change.setting))
            }
            Format::Json | Format::Ndjson => format!("{}\n", json!(change)),
        };
        write_result(streams, &text)
    }
}

/// The program, its graph and the form of the answer.
#[derive(Debug, Args)]
struct ProgramArgs {
    /// The program.
    program: String,

    /// The graph, by the name under which the program shows it; default: the only one.
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,

    /// Output format: the value, or one JSON object on one line.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Parses `component.field=value`, or returns an error message.
fn assignment(text: &str) -> Result<(String, Value), String> {
    let (setting, value) = text.split_once('=').ok_or("expected COMPONENT.FIELD=VALUE")?;
    let is_named =
        setting.rsplit_once('.').is_some_and(|(of, name)| !of.is_empty() && !name.is_empty());
    if !is_named {
        return Err("expected the component, a dot and the name of the setting before `=`".into());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((setting.to_owned(), value))
}

/// A value on one line; `null` is no value, so that the component uses its default. A text that a
/// client has set could otherwise send commands to the terminal.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "default".to_owned(),
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_json_and_a_text_otherwise() {
        let value = |text: &str| assignment(text).map(|(_, value)| value);
        assert_eq!(value("a.b=2"), Ok(json!(2)));
        assert_eq!(value("a.b=-2.5e1"), Ok(json!(-25.0)));
        assert_eq!(value("a.b=true"), Ok(json!(true)));
        assert_eq!(value("a.b=null"), Ok(Value::Null));
        assert_eq!(value("a.b=manual"), Ok(json!("manual")));
        assert_eq!(value("a.b=\"25\""), Ok(json!("25")));
        assert_eq!(value("a.b=x=y"), Ok(json!("x=y")));
        assert_eq!(value("a.b="), Ok(json!("")));
        assert_eq!(value("a.b=[1,2]"), Ok(json!([1, 2])));
        assert_eq!(assignment("lane.a.b=1").expect("ids may have dots").0, "lane.a.b");
        for wrong in ["a.b", "a=1", ".b=1", "a.=1", "=1"] {
            assert!(assignment(wrong).is_err_and(|why| why.contains("expected")), "{wrong}");
        }
    }

    #[test]
    fn a_text_sends_no_commands_to_the_terminal() {
        assert_eq!(shown(&json!("a\u{1b}[2J\u{9b}b")), "a\\u{1b}[2J\\u{9b}b");
        assert_eq!(shown(&json!(["\u{9b}"])), "[\"\\u{9b}\"]");
    }
}
