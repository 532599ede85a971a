//! [`Rules`]: what a user of the server may publish and subscribe to.
//!
//! Two kinds of users exist. A *worker* is a node. It reads the frames for its own name and the
//! answers to its own requests, and nothing else. An *observer* reads the log by single requests:
//! it has no right to create a consumer, because a consumer delivers to any subject that its
//! creator names, also to those of nodes.

use core::fmt;

use crate::{config::is_cluster_name, names::node_token};

/// What a user of the server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A node of the cluster.
    Worker,
    /// Somebody who reads the log: `clockjack cluster status`, `members`, `events` and `doctor`.
    Observer,
}

/// The permissions of one user of a server. The text form is an account in the language of the
/// server's configuration.
///
/// # Examples
///
/// ```
/// use clockjack_nats::tools::{Role, Rules};
///
/// let rules = Rules::new("shop", "node-1", Role::Worker).expect("these are names");
/// assert!(rules.subscribe.contains(&"shop.n.node-1.>".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The name of the cluster, which is that of the account.
    pub cluster: String,
    /// The name of the user, which is that of the node.
    pub user: String,
    /// The subjects to which the user may publish.
    pub publish: Vec<String>,
    /// The subjects to which the user may subscribe.
    pub subscribe: Vec<String>,
}

impl Rules {
    /// The permissions of a node of this name in this role. `None` if `cluster` is not the name of
    /// a cluster, or if `user` is empty or contains other characters than those of a node.
    #[must_use]
    pub fn new(cluster: &str, user: &str, role: Role) -> Option<Self> {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_user = (1..=64).contains(&user.len()) && user.bytes().all(is_allowed);
        if !is_cluster_name(cluster) || !is_user {
            return None;
        }
        let token = node_token(user);
        let stream = format!("KV_{cluster}");
        // The account has JetStream; what the log is; the last entry of a key.
        let mut publish = vec![
            "$JS.API.INFO".to_owned(),
            format!("$JS.API.STREAM.INFO.{stream}"),
            format!("$JS.API.DIRECT.GET.{stream}"),
            format!("$JS.API.DIRECT.GET.{stream}.>"),
        ];
        let mut subscribe = vec![format!("_INBOX.{cluster}.{token}.>")];
        if role == Role::Worker {
            publish.extend([
                // The first node creates the log.
                format!("$JS.API.STREAM.CREATE.{stream}"),
                format!("$JS.API.STREAM.MSG.GET.{stream}"),
                // Each node reads it with a consumer of its own.
                format!("$JS.API.CONSUMER.CREATE.{stream}"),
                format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
                format!("$JS.API.CONSUMER.INFO.{stream}.*"),
                format!("$JS.API.CONSUMER.DELETE.{stream}.*"),
                format!("$JS.FC.{stream}.>"),
                // The leases of members, and their services.
                format!("$KV.{cluster}.live.*"),
                format!("$KV.{cluster}.reg.>"),
                // Frames for all nodes of the cluster.
                format!("{cluster}.n.*.*.l"),
                format!("{cluster}.n.*.*.c"),
            ]);
            subscribe.push(format!("{cluster}.n.{token}.>"));
        }
        Some(Self { cluster: cluster.into(), user: user.into(), publish, subscribe })
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, user, publish, subscribe } = self;
        writeln!(f, "# One account per cluster; each node is a user of its own.")?;
        writeln!(f, "accounts {{\n  {cluster} {{\n    jetstream: enabled\n    users: [\n      {{")?;
        writeln!(f, "        user: \"{user}\"")?;
        writeln!(f, "        # The server reads the password from this variable.")?;
        writeln!(f, "        password: ${}", variable(user))?;
        writeln!(f, "        permissions {{")?;
        for (what, subjects) in [("publish", publish), ("subscribe", subscribe)] {
            writeln!(f, "          {what} {{\n            allow: [")?;
            for subject in subjects {
                writeln!(f, "              \"{subject}\"")?;
            }
            writeln!(f, "            ]\n          }}")?;
        }
        writeln!(f, "        }}\n      }}\n    ]\n  }}\n}}")
    }
}

/// The variable for the password of a user.
fn variable(user: &str) -> String {
    let upper = |char: char| if char.is_alphanumeric() { char.to_ascii_uppercase() } else { '_' };
    format!("PASSWORD_{}", user.chars().map(upper).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_reads_its_own_frames_and_an_observer_none() {
        let worker = Rules::new("shop", "node.1", Role::Worker).expect("these are names");
        assert_eq!(worker.subscribe, ["_INBOX.shop.node%2e1.>", "shop.n.node%2e1.>"]);
        let observer = Rules::new("shop", "ada", Role::Observer).expect("these are names");
        assert_eq!(observer.subscribe, ["_INBOX.shop.ada.>"]);
        assert!(observer.publish.iter().all(|subject| !subject.contains("CREATE")));
        assert!(observer.publish.iter().all(|subject| subject.starts_with("$JS.API.")));
        // Nobody may delete the log or what it has.
        for subject in worker.publish.iter().chain(&observer.publish) {
            for right in ["STREAM.DELETE", "STREAM.PURGE", "STREAM.UPDATE", "MSG.DELETE"] {
                assert!(!subject.contains(right), "{subject}");
            }
        }
    }

    #[test]
    fn a_name_that_would_widen_the_rules_is_refused() {
        for (cluster, user) in
            [("*", "a"), ("a.b", "a"), ("", "a"), ("a", ""), ("a", "*"), ("a", ">")]
        {
            assert_eq!(Rules::new(cluster, user, Role::Worker), None, "{cluster} {user}");
        }
        assert_eq!(Rules::new("a", "b\"c", Role::Worker), None);
    }
}
