//! [`Address`]: where a console is, and the directories in which the sockets of programs are.

use core::{fmt, net::SocketAddr, str::FromStr};
use std::path::{Path, PathBuf};

use crate::Token;

/// Where the console of a program is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Address {
    /// A unix socket.
    Socket(PathBuf),
    /// A TCP address, with the token.
    Tcp(SocketAddr, Option<Token>),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is neither a socket nor a URL like http://127.0.0.1:7117/#t=TOKEN", self.0)
    }
}

impl core::error::Error for AddressError {}

impl Address {
    /// The URL for a browser, with the token in the fragment, which a browser never sends; `None`
    /// for a socket.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Socket(_) => None,
            Self::Tcp(at, None) => Some(format!("http://{at}/")),
            Self::Tcp(at, Some(token)) => Some(format!("http://{at}/#t={}", token.secret())),
        }
    }
}

/// Without the token.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Tcp(at, _) => write!(f, "http://{at}/"),
        }
    }
}

/// A path, or a URL like `http://127.0.0.1:7117/#t=TOKEN`.
impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.to_owned());
        let Some(rest) = text.strip_prefix("http://") else {
            let is_path = text.contains('/') || text.ends_with(".sock");
            return if is_path { Ok(Self::Socket(text.into())) } else { Err(error()) };
        };
        let (at, fragment) = match rest.split_once('#') {
            Some((at, fragment)) => (at, Some(fragment)),
            None => (rest, None),
        };
        let at = at.strip_suffix('/').unwrap_or(at);
        let at = match at.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => at.to_owned(),
        };
        let at = at.parse().map_err(|_| error())?;
        let token = match fragment {
            None | Some("") => None,
            Some(fragment) => {
                let secret = fragment.strip_prefix("t=").ok_or_else(error)?;
                Some(Token::of_text(secret).map_err(|_| error())?)
            }
        };
        Ok(Self::Tcp(at, token))
    }
}

/// The directories in which the sockets of this user's programs can be, the one for new sockets
/// first: `$XDG_RUNTIME_DIR/clockjack`, and `/tmp/clockjack-UID` where that variable is not set, as
/// in most containers.
#[cfg(unix)]
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    let runtime = runtime.map(|path| Path::new(&path).join("clockjack"));
    let uid = rustix::process::geteuid().as_raw();
    // Not `TMPDIR`, which may differ between the program and the one who looks at it.
    let fallback = Path::new("/tmp").join(format!("clockjack-{uid}"));
    runtime.into_iter().chain([fallback]).collect()
}

/// Why others than this user can reach what is in a directory, if they can.
///
/// # Errors
///
/// If the directory cannot be looked at; there may be none.
#[cfg(unix)]
pub(crate) fn why_insecure(path: &Path) -> std::io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt as _;
    // Not `metadata`: a symbolic link in `/tmp` may be somebody else's.
    let found = std::fs::symlink_metadata(path)?;
    let mode = found.mode() & 0o777;
    Ok(if !found.is_dir() {
        Some("is not a directory".to_owned())
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        Some("belongs to another user".to_owned())
    } else if mode != 0o700 {
        Some(format!("has mode {mode:03o}, and must have 700, so that only its owner enters"))
    } else {
        None
    })
}

/// There are no sockets here.
#[cfg(not(unix))]
pub(crate) fn why_insecure(_: &Path) -> std::io::Result<Option<String>> {
    Ok(None)
}

/// There are no sockets here.
#[cfg(not(unix))]
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    Vec::new()
}

/// The name of a program's socket. A path of a socket is short, so a long name is cut off.
#[must_use]
pub fn socket_name(pid: u32, system: &str) -> String {
    const NAME_MAX: usize = 40;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = system.chars().map(|c| if is_plain(c) { c } else { '_' });
    let name: String = name.take(NAME_MAX).collect();
    format!("{pid}-{name}.sock")
}

/// The pid and the name in the name of a socket.
#[must_use]
pub fn parse_socket_name(path: &Path) -> Option<(u32, &str)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".sock")?;
    let (pid, system) = name.split_once('-')?;
    Some((pid.parse().ok()?, system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_a_url() {
        let secret = "0123456789abcdefgh";
        let url = format!("http://127.0.0.1:7117/#t={secret}");
        for text in [url.clone(), format!("http://localhost:7117/#t={secret}")] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.url(), Some(url.clone()));
            assert_eq!(address.to_string(), "http://127.0.0.1:7117/", "without the token");
        }
        assert!(matches!("/run/x.sock".parse(), Ok(Address::Socket(_))));
        assert!(matches!("http://[::1]:80".parse(), Ok(Address::Tcp(_, None))));
        for wrong in ["house", "http://example.org/", "http://127.0.0.1:1/#x", "http://:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_name_of_a_socket_tells_pid_and_system() {
        let name = socket_name(4711, "my house/1");
        assert_eq!(name, "4711-my_house_1.sock");
        assert_eq!(parse_socket_name(Path::new(&name)), Some((4711, "my_house_1")));
        assert_eq!(parse_socket_name(Path::new("/x/other.txt")), None);
        assert!(socket_name(1, &"x".repeat(300)).len() < 60);
    }
}
