//! Which node an incarnation belongs to, as the log says.
//!
//! The subjects of a node contain its name, so that the permissions of a server can give each node
//! its own ones. The core of a node knows incarnations only; the reader of the log writes the names
//! down here before the core learns about a member.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use clockjack_net::{LogEntry, LogEvent};

/// See the [module](self).
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeMap<u64, String>>>);

impl Names {
    fn with<R>(&self, change: impl FnOnce(&mut BTreeMap<u64, String>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An entry of the log was read.
    pub(crate) fn read(&self, event: &LogEvent) {
        match event.entry() {
            Some(LogEntry::Member(member)) => {
                let token = node_token(member.node.name());
                self.with(|names| names.insert(member.node.incarnation(), token));
            }
            Some(LogEntry::MemberEnded(incarnation)) => {
                self.with(|names| names.remove(&incarnation));
            }
            _ => {}
        }
    }

    /// All entries of the log were read.
    pub(crate) fn read_all(&self, entries: &[LogEvent]) {
        self.with(BTreeMap::clear);
        entries.iter().for_each(|entry| self.read(entry));
    }

    /// The token of a member's name.
    pub(crate) fn get(&self, incarnation: u64) -> Option<String> {
        self.with(|names| names.get(&incarnation).cloned())
    }
}

/// The name of a node as one token of a subject.
pub(crate) fn node_token(name: &str) -> String {
    let mut token = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            token.push(char::from(byte));
        } else {
            token.push_str(&format!("%{byte:02x}"));
        }
    }
    // Not a token of any node: a name is not empty.
    if token.is_empty() { "%".into() } else { token }
}

/// The subject of an incarnation, without its last token.
pub(crate) fn node_subject(cluster: &str, token: &str, incarnation: u64) -> String {
    format!("{cluster}.n.{token}.{incarnation:016x}")
}

/// The prefix of the subjects for answers to a node.
pub(crate) fn inbox_prefix(cluster: &str, node: &str) -> String {
    let cluster = if cluster.is_empty() { "%" } else { cluster };
    format!("_INBOX.{cluster}.{}", node_token(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_token_and_two_names_are_two_tokens() {
        assert_eq!(node_token("node-1_b"), "node-1_b");
        assert_eq!(node_token("a.b"), "a%2eb");
        assert_eq!(node_token("a%2eb"), "a%252eb");
        assert_eq!(node_token("*"), "%2a");
        assert_eq!(inbox_prefix("shop", "a.b"), "_INBOX.shop.a%2eb");
        assert_eq!(inbox_prefix("", ""), "_INBOX.%.%");
        assert_eq!(node_subject("shop", "a", 7), "shop.n.a.0000000000000007");
    }

    #[test]
    fn a_name_is_known_while_its_incarnation_is_a_member() {
        // The value of a key that a node has written: its name, no roles, and the entry in which it
        // joined.
        let value = Some(vec![1, b'a', 0, 0]);
        let live = |value| LogEvent { sequence: 5, key: format!("live.{:016x}", 7), value };
        let names = Names::default();
        names.read(&live(value.clone()));
        assert_eq!(names.get(7).as_deref(), Some("a"));
        names.read(&live(None));
        assert_eq!(names.get(7), None);
        names.read_all(&[live(value)]);
        assert_eq!(names.get(7).as_deref(), Some("a"));
        names.read_all(&[]);
        assert_eq!(names.get(7), None);
    }
}
