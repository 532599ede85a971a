//! [`ActorPath`]: the path of an actor in the tree, such as `/user/a/b`.
//!
//! A path is a name and a pointer to the parent's path, which all children share. A path names a
//! place in the tree, not a particular actor: a name may be used again after its actor has stopped.
//! The [`Pid`] identifies the actor.
//!
//! [`Pid`]: clockjack_exec::Pid

#![expect(unsafe_code, reason = "reference-counted nodes, and names that are known to be UTF-8")]

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, hash, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use clockjack_exec::memory::{self, Memory};
use clockjack_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The longest name of an actor, in bytes.
pub const NAME_LEN_MAX: usize = 255;

/// The longest name that is stored in the node itself, in bytes.
const INLINE_LEN: usize = 14;

/// Paths with at most this many names are printed without an allocation.
const INLINE_PRINT_DEPTH: usize = 8;

/// The path of an actor in the tree. Cheap to clone.
///
/// # Examples
///
/// ```
/// use clockjack_actor::ActorPath;
///
/// let path = ActorPath::root().child("user").child("worker");
/// assert_eq!(path.to_string(), "/user/worker");
/// assert_eq!(path.name(), "worker");
/// assert_eq!(path.parent().map(|path| path.to_string()), Some("/user".into()));
/// ```
pub struct ActorPath(NonNull<Node>);

/// Has its own reference count instead of an `Arc`, so that the memory of an actor's node can be
/// reused for the next actor.
struct Node {
    count: AtomicUsize,
    parent: Option<ActorPath>,
    name: Name,
}

/// The most references to a node; a larger count can only be caused by leaked references.
const COUNT_MAX: usize = usize::MAX / 2;

// SAFETY: a node is `Sync`, is never changed apart from its reference count, which is atomic, and
// may be dropped on any thread.
unsafe impl Send for ActorPath {}
// SAFETY: as above.
unsafe impl Sync for ActorPath {}

impl Clone for ActorPath {
    fn clone(&self) -> Self {
        // Relaxed: cloned from an existing reference.
        let count = self.node().count.fetch_add(1, Relaxed);
        assert!(count < COUNT_MAX, "{count} references to a path");
        Self(self.0)
    }
}

impl Drop for ActorPath {
    fn drop(&mut self) {
        release(self.0, None);
    }
}

/// Releases a reference. If it was the last one, the memory of the node goes to `memory`, if given.
fn release(node: NonNull<Node>, memory: Option<&Memory>) {
    let mut above = release_one(node, memory);
    // A path may have as many names as there are actors: the nodes are freed in a loop, and not
    // each within the drop of its child.
    while let Some(path) = above {
        above = release_one(ManuallyDrop::new(path).0, None);
    }
}

impl ActorPath {
    /// Drops the reference if it is not the last one, so that nothing is freed; returns it
    /// otherwise.
    pub(crate) fn release_unless_last(self) -> Result<(), Self> {
        let count = &self.node().count;
        // Relaxed: the exchange decides.
        let mut now = count.load(Relaxed);
        while now > 1 {
            // Release: as in `release_one`. The loop ends: it repeats only if another reference was
            // made or dropped meanwhile.
            match count.compare_exchange_weak(now, now - 1, Release, Relaxed) {
                Ok(_) => {
                    core::mem::forget(self);
                    return Ok(());
                }
                Err(other) => now = other,
            }
        }
        Err(self)
    }
}

/// Releases one reference. If it was the last one, frees the node and returns the parent's path.
fn release_one(node: NonNull<Node>, memory: Option<&Memory>) -> Option<ActorPath> {
    // SAFETY: the reference that is being released keeps the node alive.
    let count = unsafe { &(*node.as_ptr()).count };
    // Release: accesses through this reference happen before the node is freed.
    if count.fetch_sub(1, Release) != 1 {
        return None;
    }
    // Acquire: pairs with the Release decrements of all other references.
    count.load(Acquire);
    // SAFETY: this was the last reference.
    let Node { parent, name, .. } = unsafe { node.read() };
    drop(name);
    match memory {
        // SAFETY: the value was moved out; the block was allocated by this module, for this type.
        Some(memory) => unsafe { memory.keep(node) },
        // SAFETY: as above.
        None => unsafe { memory::release(node) },
    }
    parent
}

/// The path of an actor, owned by its cell. Its memory is reused for the next actor, if no other
/// reference to the path exists by then.
pub(crate) struct OwnPath(ManuallyDrop<ActorPath>);

impl OwnPath {
    pub(crate) fn new(path: ActorPath) -> Self {
        Self(ManuallyDrop::new(path))
    }

    /// Releases the path, which must not be used again.
    pub(crate) fn release(&mut self, memory: &Memory) {
        release(self.0.0, Some(memory));
    }
}

impl Deref for OwnPath {
    type Target = ActorPath;

    fn deref(&self) -> &ActorPath {
        &self.0
    }
}

impl Node {
    fn new(parent: Option<ActorPath>, name: &str) -> Self {
        Self { count: AtomicUsize::new(1), parent, name: Name::new(name) }
    }
}

enum Name {
    Inline(u8, [u8; INLINE_LEN]),
    /// Behind two pointers, so that nodes with short names stay small.
    Heap(Box<Box<str>>),
}

impl Name {
    fn new(name: &str) -> Self {
        let mut bytes = [0; INLINE_LEN];
        match bytes.get_mut(..name.len()) {
            Some(room) => {
                room.copy_from_slice(name.as_bytes());
                // A name that fits is shorter than 256 bytes.
                Self::Inline(u8::try_from(name.len()).unwrap_or(0), bytes)
            }
            None => Self::Heap(Box::new(name.into())),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Inline(len, bytes) => {
                let bytes = bytes.get(..usize::from(*len)).unwrap_or_default();
                // SAFETY: the bytes were copied from a complete `str`, and are never changed.
                unsafe { core::str::from_utf8_unchecked(bytes) }
            }
            Self::Heap(name) => name,
        }
    }
}

impl ActorPath {
    /// The path of the root, `/`.
    #[must_use]
    pub fn root() -> Self {
        Self(memory::make(Node::new(None, "")))
    }

    /// The path of a child with this name.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(memory::make(Node::new(Some(self.clone()), name)))
    }

    /// As [`child`](Self::child), with reused memory if there is any.
    pub(crate) fn child_in(&self, name: &str, memory: &Memory) -> Self {
        Self(memory.make(Node::new(Some(self.clone()), name)))
    }

    fn node(&self) -> &Node {
        // SAFETY: this reference keeps the node alive.
        unsafe { self.0.as_ref() }
    }

    /// The last name of the path; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node().name.as_str()
    }

    /// The path of the parent; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<&Self> {
        self.node().parent.as_ref()
    }

    /// The number of names; 0 for the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ancestors().count() - 1
    }

    /// Whether the path has more than `depth` names.
    pub(crate) fn is_deeper_than(&self, depth: usize) -> bool {
        self.ancestors().nth(depth + 1).is_some()
    }

    /// Whether `other` is this path or one of its ancestors.
    #[must_use]
    pub fn is_below_or_at(&self, other: &Self) -> bool {
        self.ancestors().any(|path| path == other)
    }

    /// The names, starting below the root.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.ancestors().map(Self::name).collect();
        names.pop();
        names.reverse();
        names
    }

    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        core::iter::successors(Some(self), |path| path.parent())
    }
}

impl PartialEq for ActorPath {
    fn eq(&self, other: &Self) -> bool {
        let mut pair = (self, other);
        loop {
            if pair.0.0 == pair.1.0 {
                return true;
            }
            if pair.0.name() != pair.1.name() {
                return false;
            }
            match (pair.0.parent(), pair.1.parent()) {
                (Some(one), Some(other)) => pair = (one, other),
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

impl Eq for ActorPath {}

impl PartialOrd for ActorPath {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ActorPath {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.names().cmp(&other.names())
    }
}

impl hash::Hash for ActorPath {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        for path in self.ancestors() {
            path.name().hash(state);
        }
    }
}

impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parent().is_none() {
            return f.write_str("/");
        }
        if self.is_deeper_than(INLINE_PRINT_DEPTH) {
            return self.names().into_iter().try_for_each(|name| write!(f, "/{name}"));
        }
        // Without an allocation, so that a sealed system can print paths, too.
        let mut names = [""; INLINE_PRINT_DEPTH + 1];
        let depth =
            names.iter_mut().zip(self.ancestors()).map(|(name, path)| *name = path.name()).count();
        let names = names.iter().take(depth - 1).rev();
        names.into_iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks the name of an actor.
#[inline]
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    // Fast path: nearly all names consist of these characters, which are always valid.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let len = name.len();
    if (1..=NAME_LEN_MAX).contains(&len) && name.as_bytes().iter().all(is_plain) {
        return Ok(());
    }
    check_any_name(name)
}

#[cold]
fn check_any_name(name: &str) -> Result<(), &'static str> {
    let reason = if name.is_empty() {
        "the name is empty"
    } else if name.len() > NAME_LEN_MAX {
        "the name is longer than 255 bytes"
    } else if name.starts_with('$') {
        "names that begin with `$` are reserved for the system"
    } else if name.contains(|c: char| c == '/' || c == '#' || c.is_control() || c.is_whitespace()) {
        "the name contains a `/`, a `#`, a space or a control character"
    } else {
        return Ok(());
    };
    Err(reason)
}

#[cfg(test)]
mod tests {
    use alloc::{
        format,
        string::{String, ToString as _},
    };

    use super::*;

    #[test]
    fn a_path_is_the_names_from_the_root_down() {
        let root = ActorPath::root();
        assert_eq!(root.to_string(), "/");
        assert_eq!(root.depth(), 0);
        let long = "n".repeat(NAME_LEN_MAX);
        let path = root.child("user").child("a").child(&long);
        assert_eq!(path.to_string(), format!("/user/a/{long}"));
        assert_eq!(path.depth(), 3);
        assert_eq!(path.parent().unwrap().to_string(), "/user/a");
        assert!(path.is_below_or_at(&root) && !root.is_below_or_at(&path));
    }

    #[test]
    fn a_path_of_any_depth_is_printed_whole() {
        let (mut path, mut text) = (ActorPath::root(), String::new());
        for n in 0..2 * INLINE_PRINT_DEPTH + 2 {
            path = path.child(&n.to_string());
            text += &format!("/{n}");
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn paths_are_equal_by_their_names_whoever_made_them() {
        let one = ActorPath::root().child("user").child("a");
        let two = ActorPath::root().child("user").child("a");
        assert_eq!(one, two);
        assert_ne!(one, ActorPath::root().child("system").child("a"));
        assert_ne!(one, ActorPath::root().child("a"));
        assert!(one < two.child("b"));
    }

    #[test]
    fn names_that_would_break_a_path_are_refused() {
        for name in ["", "a/b", "$a", "a b", "a\n", "#1", &"n".repeat(NAME_LEN_MAX + 1)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "worker-1", "ä", "a.b", "a$"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
