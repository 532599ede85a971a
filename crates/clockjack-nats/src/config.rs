//! How a node reaches its servers.

use core::{fmt, net::IpAddr, str::FromStr as _, time::Duration};
use std::path::PathBuf;

use async_nats::ServerAddr;
use clockjack_net::NetConfig;

use crate::error::JoinErrorKind;

/// How a node reaches its servers, and what it is called.
///
/// # Examples
///
/// ```
/// use clockjack_nats::NatsConfig;
///
/// let config = NatsConfig::new("nats://127.0.0.1:4222", "shop", "node-1");
/// assert_eq!(config.node.name, "node-1");
/// ```
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// The servers of one NATS cluster, such as `nats://127.0.0.1:4222`. One that answers is
    /// enough.
    pub urls: Vec<String>,
    /// The name of the cluster of nodes: letters, digits, `-` and `_`. Nodes with different names
    /// share a server and do not see each other.
    pub cluster: String,
    /// The settings of the node. Its seed may stay zero: incarnations are drawn at random.
    pub node: NetConfig,
    /// How the node proves who it is.
    pub auth: Auth,
    /// Whether the connection is encrypted.
    pub tls: Tls,
    /// A file with the certificates of the authorities that sign those of the servers, in addition
    /// to the ones of the operating system.
    pub ca_file: Option<PathBuf>,
    /// Allows [`Auth::None`] and [`Tls::Off`] for servers that are not on this machine.
    pub insecure: bool,
    /// How long the first connection may take, with all checks: 5 s.
    pub connect_timeout: Duration,
    /// The number of servers that store the log, if this node creates it: 1. Three survive the loss
    /// of one server.
    pub replicas: usize,
}

impl NatsConfig {
    /// The default settings of a node: one server, no credentials.
    #[must_use]
    pub fn new(url: &str, cluster: &str, node: &str) -> Self {
        Self {
            urls: vec![url.into()],
            cluster: cluster.into(),
            node: NetConfig::new(node),
            auth: Auth::None,
            tls: Tls::IfOffered,
            ca_file: None,
            insecure: false,
            connect_timeout: Duration::from_secs(5),
            replicas: 1,
        }
    }

    /// Checks the name of the cluster.
    pub(crate) fn validate_cluster(&self) -> Result<(), JoinErrorKind> {
        if is_cluster_name(&self.cluster) {
            return Ok(());
        }
        let why = "`cluster` has 1 to 64 ASCII letters, digits, `-` and `_`";
        Err(JoinErrorKind::Config(why.into()))
    }

    /// Checks everything else that can be checked without a server, and returns the addresses.
    pub(crate) fn validate(&self) -> Result<Vec<ServerAddr>, JoinErrorKind> {
        if self.urls.is_empty() {
            return Err(JoinErrorKind::Config("`urls` is empty; name a server".into()));
        }
        if !(1..=5).contains(&self.replicas) {
            return Err(JoinErrorKind::Config("`replicas` is from 1 to 5".into()));
        }
        let mut addresses = Vec::new();
        for (at, url) in self.urls.iter().enumerate() {
            // The address itself is not shown: it may contain a password.
            let address = ServerAddr::from_str(url).map_err(|_| {
                JoinErrorKind::Config(format!("`urls[{at}]` is not like `nats://host:4222`"))
            })?;
            let has_auth = address.has_user_pass() || !matches!(self.auth, Auth::None);
            let is_open = !has_auth || self.tls == Tls::Off;
            if is_open && !self.insecure && !is_loopback(address.host()) {
                return Err(JoinErrorKind::Insecure(address.host().into()));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// Whether this can be the name of a cluster.
pub(crate) fn is_cluster_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn is_loopback(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// How a node proves who it is. The debug form shows no secret.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    /// Not at all. For servers on this machine.
    None,
    /// By a user name and a password.
    UserPassword {
        /// The name of the user.
        user: String,
        /// The password.
        password: String,
    },
    /// By a token that all nodes share.
    Token(String),
    /// By the seed of an NKey.
    NKey(String),
    /// By a file with a JWT and the seed of its NKey, as `nsc` writes it.
    CredsFile(PathBuf),
    /// By a certificate of the node.
    Mtls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
    },
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::UserPassword { user, .. } => {
                f.debug_struct("UserPassword").field("user", user).finish_non_exhaustive()
            }
            Self::Token(_) => f.write_str("Token(..)"),
            Self::NKey(_) => f.write_str("NKey(..)"),
            Self::CredsFile(path) => f.debug_tuple("CredsFile").field(path).finish(),
            Self::Mtls { certificate, .. } => {
                f.debug_struct("Mtls").field("certificate", certificate).finish_non_exhaustive()
            }
        }
    }
}

/// Whether the connection to a server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// Always; a server without TLS is refused.
    Require,
    /// If the server asks for it.
    IfOffered,
    /// Never; a server that asks for it refuses the node.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &NatsConfig) -> String {
        match config.validate_cluster().and_then(|()| config.validate()) {
            Ok(_) => "ok".into(),
            Err(kind) => crate::JoinError::new(kind).to_string(),
        }
    }

    #[test]
    fn a_server_on_another_machine_needs_credentials_and_encryption() {
        let local = ["nats://127.0.0.1:4222", "localhost:4222", "nats://[::1]:4222", "127.0.0.2"];
        for url in local {
            assert_eq!(check(&NatsConfig::new(url, "shop", "a")), "ok", "{url}");
        }
        let mut config = NatsConfig::new("nats://10.0.0.7:4222", "shop", "a");
        assert!(check(&config).contains("10.0.0.7"), "{}", check(&config));
        config.auth = Auth::Token("secret".into());
        assert_eq!(check(&config), "ok");
        config.tls = Tls::Off;
        assert!(check(&config).contains("insecure"), "{}", check(&config));
        config.insecure = true;
        assert_eq!(check(&config), "ok");
        // A name that only begins like a local one.
        let other = NatsConfig::new("nats://127.0.0.1.example.org", "shop", "a");
        assert_ne!(check(&other), "ok");
    }

    #[test]
    fn a_configuration_that_cannot_work_names_the_field() {
        for cluster in ["", "a.b", "a b", "*", "ä", &"x".repeat(65)] {
            let config = NatsConfig::new("127.0.0.1", cluster, "a");
            assert!(check(&config).contains("`cluster`"), "{cluster:?}");
        }
        let mut config = NatsConfig::new("nats://a:secret@[", "shop", "a");
        assert!(check(&config).contains("`urls[0]`"), "{}", check(&config));
        assert!(!check(&config).contains("secret"));
        config.urls.clear();
        assert!(check(&config).contains("`urls`"));
        config = NatsConfig { replicas: 0, ..NatsConfig::new("127.0.0.1", "shop", "a") };
        assert!(check(&config).contains("`replicas`"));
    }

    #[test]
    fn no_secret_is_shown() {
        let all = [
            Auth::UserPassword { user: "ada".into(), password: "secret".into() },
            Auth::Token("secret".into()),
            Auth::NKey("secret".into()),
            Auth::Mtls { certificate: "cert".into(), key: "secret".into() },
        ];
        for auth in all {
            let config = NatsConfig { auth, ..NatsConfig::new("127.0.0.1", "shop", "a") };
            assert!(!format!("{config:?}").contains("secret"), "{config:?}");
        }
    }
}
