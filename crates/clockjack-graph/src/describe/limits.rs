//! How much of anything a file may hold.
//!
//! Each limit is looked at before the memory or the time that it guards is spent, so that a hostile
//! file costs no more than a large one.

/// How much of anything a file may hold. Change what needs to be other:
/// `Limits { lanes: 8, ..Limits::DEFAULT }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text. Never more than 1 GiB, whatever is set.
    pub text_bytes: usize,
    /// Lists and maps inside each other, anywhere.
    pub nesting: usize,
    /// Lanes.
    pub lanes: usize,
    /// Components, those of subgraphs and instances included.
    pub components: usize,
    /// Edges, those of subgraphs and instances included.
    pub edges: usize,
    /// Loops, those of subgraphs and instances included.
    pub loops: usize,
    /// Subgraphs; as many templates, and as many instances.
    pub groups: usize,
    /// Bytes of an identifier, its namespace included.
    pub identifier_bytes: usize,
    /// Lists and maps inside each other in a free `config` map, itself included.
    pub config_depth: usize,
    /// Bytes of a setting; of a list or map, those of its JSON text.
    pub config_value_bytes: usize,
    /// Bytes of any other text.
    pub string_bytes: usize,
    /// Bytes that instances of templates may come to, all together.
    pub expanded_bytes: usize,
    /// Findings that are told. Of more only the number is.
    pub diagnostics: usize,
}

impl Limits {
    /// Those of schema version 1.
    pub const DEFAULT: Self = Self {
        text_bytes: 1 << 20,
        nesting: 64,
        lanes: 256,
        components: 4096,
        edges: 8192,
        loops: 1024,
        groups: 4096,
        identifier_bytes: 128,
        config_depth: 8,
        config_value_bytes: 4096,
        string_bytes: 4096,
        expanded_bytes: 8 << 20,
        diagnostics: 1000,
    };

    /// What spans can count.
    const TEXT_BYTES_MAX: usize = 1 << 30;
    /// What a walk over nested values can bear on the smallest stack.
    const NESTING_MAX: usize = 256;

    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes.min(Self::TEXT_BYTES_MAX)
    }

    pub(crate) fn nesting(&self) -> usize {
        self.nesting.min(Self::NESTING_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
