//! Metadata of a failure: a few entries, sorted by key, shared by all copies until one copy changes
//! (copy-on-write).

use alloc::{borrow::Cow, vec::Vec};
use core::fmt;

use clockjack_sync::Arc;

/// The most entries of one failure.
pub const ENTRIES_MAX: usize = 16;

/// A key or a value.
type Text = Cow<'static, str>;

/// Entries of a failure, as text: an endpoint, a transport, a tenant.
///
/// # Examples
///
/// ```
/// use clockjack_actor::failure_info::Metadata;
///
/// let mut metadata = Metadata::default();
/// metadata.insert(Metadata::TRANSPORT, "tcp")?;
/// metadata.insert(Metadata::ENDPOINT, String::from("sparrow:4711"))?;
/// assert_eq!(metadata.get("endpoint"), Some("sparrow:4711"));
/// assert_eq!(metadata.to_string(), "endpoint=sparrow:4711, transport=tcp");
/// # Ok::<(), clockjack_actor::failure_info::MetadataFull>(())
/// ```
#[derive(Clone, Default)]
pub struct Metadata(Option<Arc<Vec<(Text, Text)>>>);

impl Metadata {
    /// The key for the address of a remote endpoint.
    pub const ENDPOINT: &str = "endpoint";
    /// The key for the transport to a remote endpoint.
    pub const TRANSPORT: &str = "transport";

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Returns key and value if there are [`ENTRIES_MAX`] other keys already.
    pub fn insert(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Result<(), MetadataFull> {
        let (key, value) = (key.into(), value.into());
        let place = self.place(&key);
        if place.is_err() && self.len() == ENTRIES_MAX {
            return Err(MetadataFull { key, value });
        }
        // Copy-on-write: copies of the failure keep their entries.
        let mut entries = self.entries().to_vec();
        match place {
            Ok(index) => entries[index].1 = value,
            Err(index) => entries.insert(index, (key, value)),
        }
        self.0 = Some(Arc::new(entries));
        Ok(())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.place(key).ok().map(|index| &*self.entries()[index].1)
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries().iter().map(|(key, value)| (&**key, &**value))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn entries(&self) -> &[(Text, Text)] {
        self.0.as_ref().map_or(&[], |entries| entries)
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.entries().binary_search_by(|(other, _)| (**other).cmp(key))
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl Eq for Metadata {}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().enumerate().try_for_each(|(n, (key, value))| {
            f.write_str(if n == 0 { "" } else { ", " })?;
            write!(f, "{key}={value}")
        })
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The error for an entry that found no room. Permanent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataFull {
    /// The key of the refused entry.
    pub key: Cow<'static, str>,
    /// The value of the refused entry.
    pub value: Cow<'static, str>,
}

impl fmt::Display for MetadataFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room for the entry `{}`: there are {ENTRIES_MAX} already", self.key)
    }
}

impl core::error::Error for MetadataFull {}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString as _};

    use super::*;

    #[test]
    fn a_copy_keeps_its_notes_when_the_other_changes() {
        let mut one = Metadata::default();
        assert!(one.is_empty());
        one.insert("b", "1").unwrap();
        let other = one.clone();
        one.insert("b", "2").unwrap();
        one.insert("a", "3").unwrap();
        assert_eq!(one.to_string(), "a=3, b=2");
        assert_eq!(other.to_string(), "b=1");
        assert_ne!(one, other);
    }

    #[test]
    fn one_note_too_many_comes_back() {
        let mut metadata = Metadata::default();
        for n in 0..ENTRIES_MAX {
            metadata.insert(format!("{n}"), "x").unwrap();
        }
        let refused = metadata.insert("late", "y").unwrap_err();
        assert_eq!((&*refused.key, &*refused.value), ("late", "y"));
        metadata.insert("3", "changed").unwrap();
        assert_eq!(metadata.get("3"), Some("changed"));
        assert_eq!(metadata.len(), ENTRIES_MAX);
    }
}
