//! Limits on the size of a graph file.
//!
//! Each limit is checked before the memory or time that it guards is spent, so that a hostile file
//! costs no more than a large one.

/// Limits on the size of a graph file. Override single limits like this:
/// `FileLimits { lanes: 8, ..FileLimits::DEFAULT }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Bytes of the text. At most 1 GiB, even if a larger value is set.
    pub text_bytes: usize,
    /// Nesting depth of lists and maps.
    pub nesting: usize,
    /// Number of lanes.
    pub lanes: usize,
    /// Number of components, including those of subgraphs and instances.
    pub components: usize,
    /// Number of edges, including those of subgraphs and instances.
    pub edges: usize,
    /// Number of loops, including those of subgraphs and instances. The same limit applies to
    /// chains.
    pub loops: usize,
    /// Number of subgraphs; the same limit applies to templates and to instances.
    pub groups: usize,
    /// Bytes of an identifier, including its namespace.
    pub identifier_bytes: usize,
    /// Nesting depth of a free `config` map, including the map itself.
    pub config_depth: usize,
    /// Bytes of a setting; for a list or map, the bytes of its JSON text.
    pub config_value_bytes: usize,
    /// Bytes of any other string.
    pub string_bytes: usize,
    /// Total bytes that template instances may expand to.
    pub expanded_bytes: usize,
    /// Number of diagnostics that are reported. Further ones are only counted.
    pub diagnostics: usize,
}

impl FileLimits {
    /// The limits of schema version 1.
    pub const DEFAULT: Self = Self {
        // Enough for a file with as many components and edges as the other limits allow.
        text_bytes: 4 << 20,
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

    /// The largest offset that spans can represent.
    const TEXT_BYTES_MAX: usize = 1 << 30;
    /// The deepest nesting that recursive functions can process on the smallest stack.
    const NESTING_MAX: usize = 256;

    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes.min(Self::TEXT_BYTES_MAX)
    }

    pub(crate) fn nesting(&self) -> usize {
        self.nesting.min(Self::NESTING_MAX)
    }
}

impl Default for FileLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
