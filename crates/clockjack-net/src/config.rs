//! The settings of a node.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

/// The settings of a node.
///
/// # Examples
///
/// ```
/// use clockjack_net::NetConfig;
///
/// let config = NetConfig { roles: vec!["worker".into()], ..NetConfig::new("node-1") };
/// assert_eq!(config.lease.as_secs(), 15);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetConfig {
    /// The name of the node. It stays when the node joins again.
    pub name: String,
    /// The roles of the node, for other nodes to read.
    pub roles: Vec<String>,
    /// How long a node stays a member without a renewal: 15 s.
    pub lease: Duration,
    /// How often the lease is renewed: every 2 s.
    pub renew_every: Duration,
    /// How long the subject of a member must have had no subscriber until another member removes
    /// it: 3 s.
    pub evict_after: Duration,
    /// Incarnations are drawn from it, and from how many nodes have joined at the server before. A
    /// host passes a random number.
    pub seed: u64,
}

impl NetConfig {
    /// The default settings of a node with this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            roles: Vec::new(),
            lease: Duration::from_secs(15),
            renew_every: Duration::from_secs(2),
            evict_after: Duration::from_secs(3),
            seed: 0,
        }
    }
}
