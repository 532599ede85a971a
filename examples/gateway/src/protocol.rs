//! The lines of the protocol.
//!
//! | from a device | answer |
//! |---|---|
//! | `hello NAME`, the first line | `ok`, or `error WHY` and the end of the connection |
//! | `data NUMBER VALUE`, a reading | `ack NUMBER`, `busy NUMBER` or `unknown NUMBER` |
//! | `ping`, a heartbeat | `pong` |
//! | `done NUMBER`, after `cmd NUMBER TEXT` | none |
//!
//! The gateway sends `bye` before it closes a connection by itself.

/// The longest line, in bytes, without its end.
pub const LINE_LEN_MAX: usize = 256;
/// The longest name of a device, in bytes.
pub const NAME_LEN_MAX: usize = 64;

/// A line of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The device says who it is.
    Hello(String),
    /// A reading.
    Data {
        /// The number of the reading, which the answer repeats.
        number: u64,
        /// Its value.
        value: i64,
    },
    /// A heartbeat.
    Ping,
    /// A command was carried out.
    Done(u64),
}

/// Reads a line.
///
/// # Errors
///
/// What is wrong with the line.
pub fn parse(line: &str) -> Result<Line, &'static str> {
    let mut words = line.split_ascii_whitespace();
    let parsed = match (words.next(), words.next(), words.next()) {
        (Some("hello"), Some(name), None) => Line::Hello(checked_name(name)?),
        (Some("data"), Some(number), Some(value)) => Line::Data {
            number: number.parse().map_err(|_| "not a number of a reading")?,
            value: value.parse().map_err(|_| "not a value")?,
        },
        (Some("ping"), None, None) => Line::Ping,
        (Some("done"), Some(number), None) => {
            Line::Done(number.parse().map_err(|_| "not a number of a command")?)
        }
        _ => return Err("not a line of the protocol"),
    };
    if words.next().is_some() { Err("too many words") } else { Ok(parsed) }
}

/// A name is a part of the path of an actor, so not every text is one.
fn checked_name(name: &str) -> Result<String, &'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(name.to_owned())
    } else {
        Err("a name has 1 to 64 letters, digits, `-` or `_`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_or_refused() {
        let data = |number, value| Ok(Line::Data { number, value });
        for (line, expected) in [
            ("hello pump-1", Ok(Line::Hello("pump-1".into()))),
            ("data 1 -5", data(1, -5)),
            ("  ping ", Ok(Line::Ping)),
            ("done 3", Ok(Line::Done(3))),
            ("", Err("not a line of the protocol")),
            ("hello a/b", Err("a name has 1 to 64 letters, digits, `-` or `_`")),
            ("data x 1", Err("not a number of a reading")),
            ("data 1 99999999999999999999", Err("not a value")),
            ("data 1", Err("not a line of the protocol")),
            ("data 1 2 3", Err("too many words")),
            ("done -1", Err("not a number of a command")),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }
}
