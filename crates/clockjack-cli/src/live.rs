//! Running programs: how commands connect to one, and what they need to show it.

use core::{error::Error, time::Duration};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clockjack_console::{
    client::{self, Client, Event, Stream},
    frame::Mirror,
    query::Params,
};
use serde_json::Value;

use crate::failure::Failure;

/// How often frames are asked for while a command waits for rates.
const FRAMES_HZ: f64 = 4.0;

/// Connects to the program that is named by its pid, its system, its socket or a URL.
pub(crate) fn connect(name: &str) -> Result<Client, Failure> {
    let address = client::resolve(name).map_err(Failure::not_connected)?;
    Client::connect(&address).map_err(Failure::not_connected)
}

/// A view after it was subscribed to for so long: rates and shares need two looks.
pub(crate) fn look(
    client: &Client,
    view: &str,
    params: &Params,
    wait: Duration,
) -> Result<Value, Failure> {
    let end = Instant::now() + wait;
    let mut stream =
        client.stream(&[(view, params.clone())], FRAMES_HZ).map_err(Failure::client)?;
    let mut mirror = Mirror::default();
    loop {
        let is_complete = mirror.value().is_some();
        if is_complete && Instant::now() >= end {
            return Ok(mirror.value().unwrap_or_default());
        }
        match next(&mut stream)? {
            Some(Event::Frame(frame)) => match frame.error {
                // The last state of what has ended is worth showing.
                Some(_) if is_complete => return Ok(mirror.value().unwrap_or_default()),
                Some(error) => return Err(Failure::nothing_there(&error)),
                None => mirror.apply(frame),
            },
            Some(Event::Bye) | None if is_complete => {
                return Ok(mirror.value().unwrap_or_default());
            }
            Some(Event::Bye) | None => return Err(Failure::program_ended()),
            Some(_) => {}
        }
    }
}

fn next(stream: &mut Stream) -> Result<Option<Event>, Failure> {
    stream.next_event().map_err(Failure::client)
}

/// An error with its cause, on one line.
pub(crate) fn with_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// The time since 1970.
pub(crate) fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// A time as `02:14:07`.
pub(crate) fn clock_of_s(s: u64) -> String {
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A view as text: one line per member, and what is inside of it below, indented.
pub(crate) fn outline(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, indent: usize, out: &mut String) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(k, v)| (format!("{}:", clean(k)), v)).collect()
        }
        Value::Array(items) => items.iter().map(|item| ("-".to_owned(), item)).collect(),
        other => vec![(String::new(), other)],
    };
    for (name, value) in members {
        let is_inner = match value {
            Value::Object(inner) => !inner.contains_key("v") && !inner.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        if is_inner {
            out.push_str(&format!("{:indent$}{name}\n", ""));
            write(value, indent + 2, out);
        } else {
            out.push_str(&format!("{:indent$}{name} {}\n", "", plain(value)));
        }
    }
}

/// A value on one line: a dash if it is unknown, and a mark behind an estimate.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => clean(text),
        Value::Array(_) => "none".to_owned(),
        Value::Object(members) => match members.get("v") {
            Some(number) if members.contains_key("sampled") => format!("{} ~", plain(number)),
            Some(number) => plain(number),
            None => "none".to_owned(),
        },
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() != 0.0 => format!("{float:.3}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A text of a program without what would be a command to the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outline_shows_unknown_numbers_as_dashes() {
        let value = json!({
            "path": "/user/a\u{1b}", "rate": null, "share": {"v": 0.25, "sampled": 0.1},
            "\u{9b}2J": 1, "asks": [], "mailbox": {"depth": 3}, "children": [{"path": "/b"}],
        });
        let expected = "asks: none\nchildren:\n  -\n    path: /b\nmailbox:\n  depth: 3\n\
            path: /user/a?\nrate: -\nshare: 0.250 ~\n?2J: 1\n";
        assert_eq!(outline(&value), expected);
    }

    #[test]
    fn uptimes_are_clocks() {
        assert_eq!(clock_of_s(8_047), "02:14:07");
        assert_eq!(clock_of_s(360_000), "100:00:00");
    }
}
