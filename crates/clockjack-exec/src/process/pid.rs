//! The identifier of a process: its node, its index in the registry there, and its generation.
//!
//! A pid is plain data. It keeps nothing alive, and it may identify a process that has ended long
//! ago: the generation distinguishes that process from the one that has the index now. A generation
//! is never zero, so an `Option<Pid>` is as small as a pid. Nothing reads a pid atomically.
//!
//! Its text form is `{3|17.42}`: node 3, index 17, generation 42.

use core::{fmt, num::NonZeroU64};

/// The identifier of a process, unique for as long as its node runs.
///
/// The order is that of node, index and generation, and says nothing about age.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU64;
///
/// use clockjack_exec::pid::Pid;
///
/// let pid = Pid::new(3, 17, NonZeroU64::MIN);
/// assert_eq!((pid.node(), pid.index(), pid.generation().get()), (3, 17, 1));
/// assert_eq!(pid.to_string(), "{3|17.1}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid {
    node: u32,
    index: u32,
    generation: NonZeroU64,
}

const _: () = assert!(size_of::<Pid>() == 16);
const _: () = assert!(size_of::<Option<Pid>>() == 16);

impl Pid {
    /// The pid of the process that was the `generation`-th at `index` of a node.
    #[inline]
    #[must_use]
    pub const fn new(node: u32, index: u32, generation: NonZeroU64) -> Self {
        Self { node, index, generation }
    }

    /// The node that the process runs on.
    #[inline]
    #[must_use]
    pub const fn node(self) -> u32 {
        self.node
    }

    /// The index of the process in the registry of its node; used again after the process has
    /// ended.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Distinguishes the processes that had the same index.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> NonZeroU64 {
        self.generation
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}|{}.{}}}", self.node, self.index, self.generation)
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pid{self}")
    }
}
