//! [`ServerFile`]: the configuration of a server for a cluster of nodes.

use core::{fmt, net::SocketAddr};
use std::path::PathBuf;

/// When a server writes what it has confirmed to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncInterval {
    /// Before it confirms. A power failure loses nothing that was confirmed.
    Always,
    /// Every two minutes, the default of the server. A power failure loses what was confirmed
    /// since.
    Default,
}

/// The configuration of one server, as `nats-server -c` reads it: the text form.
///
/// # Examples
///
/// ```
/// use clockjack_nats::tools::ServerFile;
///
/// let file = ServerFile::new("./nats".into(), "127.0.0.1:4222".parse()?);
/// assert!(file.to_string().contains("sync_interval: always"));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile {
    /// Where the server keeps its data.
    pub data: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where the server answers requests about itself, for `clockjack cluster doctor --monitor`.
    /// Anybody who reaches the port may read it.
    pub monitor: Option<SocketAddr>,
    /// When data is written to the disk.
    pub sync: SyncInterval,
    /// The name of the server; needed if there are several.
    pub name: Option<String>,
    /// Where the other servers connect.
    pub routes_listen: Option<SocketAddr>,
    /// The other servers, such as `nats://10.0.0.8:6222`.
    pub routes: Vec<String>,
}

impl ServerFile {
    /// One server that stores everything before it confirms.
    #[must_use]
    pub fn new(data: PathBuf, listen: SocketAddr) -> Self {
        Self {
            data,
            listen,
            monitor: None,
            sync: SyncInterval::Always,
            name: None,
            routes_listen: None,
            routes: Vec::new(),
        }
    }
}

impl fmt::Display for ServerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Written by `clockjack cluster init-server`.")?;
        if let Some(name) = &self.name {
            writeln!(f, "server_name: {}", quoted(name))?;
        }
        writeln!(f, "listen: \"{}\"", self.listen)?;
        if let Some(monitor) = self.monitor {
            writeln!(f, "http: \"{monitor}\"")?;
        }
        writeln!(f, "jetstream {{")?;
        writeln!(f, "  store_dir: {}", quoted(&self.data.to_string_lossy()))?;
        if self.sync == SyncInterval::Always {
            writeln!(f, "  # What is confirmed survives a power failure.")?;
            writeln!(f, "  sync_interval: always")?;
        }
        writeln!(f, "}}")?;
        if let Some(listen) = self.routes_listen {
            writeln!(f, "cluster {{\n  name: clockjack\n  listen: \"{listen}\"\n  routes: [")?;
            for route in &self.routes {
                writeln!(f, "    {}", quoted(route))?;
            }
            writeln!(f, "  ]\n}}")?;
        }
        if !self.listen.ip().is_loopback() {
            let what = "`clockjack cluster permissions` prints accounts; `tls` is yours to add.";
            writeln!(f, "# This server can be reached from other machines: {what}")?;
        }
        Ok(())
    }
}

/// A text in the language of the server's configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_three_names_the_others_and_an_open_one_gets_a_remark() {
        let listen = "10.0.0.7:4222".parse().expect("an address");
        let mut file = ServerFile::new(r#"C:\a "b""#.into(), listen);
        file.name = Some("one".into());
        file.routes_listen = Some("10.0.0.7:6222".parse().expect("an address"));
        file.routes = vec!["nats://10.0.0.8:6222".into()];
        file.sync = SyncInterval::Default;
        let text = file.to_string();
        for part in [
            "server_name: \"one\"",
            r#"store_dir: "C:\\a \"b\"""#,
            "listen: \"10.0.0.7:6222\"",
            "    \"nats://10.0.0.8:6222\"",
            "can be reached from other machines",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sync_interval"), "{text}");
    }
}
