//! String interning: every name is stored once.
//!
//! Nothing is ever removed, and ids follow the order of first use.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// The id of a string in the [`Timeline`](super::Timeline) that interned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(usize);

/// A name, as a string or by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// As a string; looked up at each use.
    Text(&'a str),
    /// By id, from [`Timeline::intern`](super::Timeline::intern).
    Id(NameId),
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<NameId> for Name<'_> {
    fn from(id: NameId) -> Self {
        Self::Id(id)
    }
}

impl NameId {
    /// The index among all names.
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

/// All strings of a timeline.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    ids: BTreeMap<Box<str>, NameId>,
}

impl Names {
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = NameId(self.texts.len());
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The id of a name.
    ///
    /// # Panics
    ///
    /// If the id belongs to another timeline.
    pub(super) fn resolve(&mut self, name: Name<'_>) -> NameId {
        match name {
            Name::Text(text) => self.intern(text),
            Name::Id(id) => {
                assert!(id.0 < self.texts.len(), "name {} is of another timeline", id.0);
                id
            }
        }
    }

    pub(super) fn text(&self, id: NameId) -> &str {
        &self.texts[id.0]
    }
}
