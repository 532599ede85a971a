//! Texts as small numbers: every name is stored once.
//!
//! Not a cache: nothing is ever forgotten, and numbers follow the order of first use.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

/// The number of a text in the [`Timeline`](super::Timeline) that interned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(usize);

/// A name as a text or by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// As a text; looked up at each use.
    Text(&'a str),
    /// By number, from [`Timeline::intern`](super::Timeline::intern).
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
    /// The position among all names.
    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

/// All texts of a timeline.
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

    /// The number of a name.
    ///
    /// # Panics
    ///
    /// If it is a number of another timeline's.
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
