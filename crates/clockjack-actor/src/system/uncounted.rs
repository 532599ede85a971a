//! [`UncountedSystem`]: a handle of a part that observes a system and starts no top-level actor.
//!
//! # When the dead-letter reference is dropped
//!
//! The reference keeps the shared state alive, so exactly one thread has to drop it: after the last
//! actor has stopped, the last handle was dropped, and the last uncounted handle was dropped. Stops
//! and handles are in one atomic word, and the thread that brings this word to [`TERMINATED`] takes
//! the lock afterwards; the number of uncounted handles is changed under the lock only. *Why it is
//! dropped*: if the lock is taken for the last uncounted handle after it was taken for the word,
//! the lock makes the word visible, and that thread drops the reference. Otherwise the number is 0
//! already when the lock is taken for the word.

use core::{fmt, ops::Deref};

use clockjack_sync::{Arc, primitive::atomic::Ordering::Acquire};

use super::{ActorSystem, SystemInner, TERMINATED};
use crate::{ActorRef, mailbox::dead_letters::DeadLetterInfo};

/// See the [module](self).
#[derive(Default)]
pub(super) struct DeadLetters {
    pub(super) address: Option<ActorRef<DeadLetterInfo>>,
    n_uncounted: usize,
}

impl DeadLetters {
    /// Takes the reference, unless an uncounted handle needs it.
    pub(super) fn take(&mut self) -> Option<ActorRef<DeadLetterInfo>> {
        if self.n_uncounted == 0 { self.address.take() } else { None }
    }
}

/// For consoles, metrics and nets: a handle that [`n_handles`](ActorSystem::n_handles) does not
/// count, because its owner starts no top-level actor by itself. A run whose last actor has failed
/// does not wait for it.
#[doc(hidden)]
pub struct UncountedSystem(Arc<SystemInner>);

impl UncountedSystem {
    fn new(inner: &Arc<SystemInner>) -> Self {
        inner.dead_letters.with(|place| place.n_uncounted += 1);
        Self(inner.clone())
    }
}

impl ActorSystem {
    /// See [`UncountedSystem`].
    #[doc(hidden)]
    #[must_use]
    pub fn uncounted(&self) -> UncountedSystem {
        UncountedSystem::new(&self.0)
    }
}

impl Deref for UncountedSystem {
    type Target = ActorSystem;

    fn deref(&self) -> &ActorSystem {
        self.0.handle()
    }
}

impl Clone for UncountedSystem {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for UncountedSystem {
    fn drop(&mut self) {
        let unused = self.0.dead_letters.with(|place| {
            place.n_uncounted -= 1;
            // Acquire: pairs with the AcqRel of the thread that has made the word so.
            if self.0.handles.load(Acquire) == TERMINATED { place.take() } else { None }
        });
        // Outside of the lock: this may free the actor.
        drop(unused);
    }
}

impl fmt::Debug for UncountedSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
