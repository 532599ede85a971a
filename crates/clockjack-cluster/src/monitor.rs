//! What a server says about itself on its monitoring port.

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
};

use serde_json::Value;

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// More than a server says.
const ANSWER_MAX: u64 = 4 << 20;

/// When the server writes to its disk: `always`, or an interval. None if the server says neither.
pub(crate) fn sync(monitor: SocketAddr) -> io::Result<Option<String>> {
    let mut socket = TcpStream::connect_timeout(&monitor, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    write!(socket, "GET /varz HTTP/1.0\r\nHost: {monitor}\r\n\r\n")?;
    let mut answer = Vec::new();
    socket.take(ANSWER_MAX).read_to_end(&mut answer)?;
    Ok(parse(&String::from_utf8_lossy(&answer)))
}

fn parse(answer: &str) -> Option<String> {
    let body = answer.split_once("\r\n\r\n")?.1;
    let value: Value = serde_json::from_str(body).ok()?;
    let config = &value["jetstream"]["config"];
    if config["sync_always"].as_bool() == Some(true) {
        return Some("always".into());
    }
    let nanos = config["sync_interval"].as_u64()?;
    Some(format!("{} s", nanos / 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_server_says_when_it_writes() {
        let with = |config: &str| {
            let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
            parse(&format!(r#"{head}{{"jetstream":{{"config":{config}}}}}"#))
        };
        assert_eq!(with(r#"{"sync_interval":120000000000}"#).as_deref(), Some("120 s"));
        let always = r#"{"sync_interval":120000000000,"sync_always":true}"#;
        assert_eq!(with(always).as_deref(), Some("always"));
        assert_eq!(with("{}"), None);
        assert_eq!(parse("HTTP/1.0 404 Not Found\r\n\r\nno"), None);
        assert_eq!(parse("garbage"), None);
    }
}
