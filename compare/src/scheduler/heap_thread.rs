//! A thread with a `BinaryHeap` behind a lock: a typical hand-written timer thread.
//!
//! A cancel takes the token out of its slot and leaves the entry in the heap; when more than half
//! of the entries are stale, all of them are removed, so that the memory is reused. A caller wakes
//! the thread only if its timer is the earliest of all.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::Reverse;
use core::future::{Future, ready};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::subject::{Subject, Timers};
use crate::failure::Failure;
use crate::receiver::Shot;
use crate::report::{Facts, Standing};
use crate::slots::{SlotKey, Slots};

const NAME: &str = "heap_thread";

pub(crate) struct HeapThread {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Signals an earlier timer or the shutdown.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: BinaryHeap<Reverse<Entry>>,
    /// The tokens of the armed timers.
    shots: Slots<Option<Shot>>,
    /// The number of entries whose timer was cancelled.
    n_stale: usize,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    key: SlotKey,
}

impl State {
    /// Also returns whether the new timer is the earliest.
    fn insert(&mut self, due: Instant, shot: Shot) -> (SlotKey, bool) {
        let key = self.shots.insert(Some(shot));
        let is_earliest = self.entries.peek().is_none_or(|Reverse(first)| due < first.due);
        self.entries.push(Reverse(Entry { due, key }));
        (key, is_earliest)
    }

    /// Takes the token of `key`, or `None` if it has fired or was cancelled.
    fn take(&mut self, key: SlotKey) -> Option<Shot> {
        self.shots.take(key)?.take()
    }

    fn cancel(&mut self, key: SlotKey) -> Option<Shot> {
        let shot = self.take(key)?;
        self.n_stale += 1;
        if self.n_stale > self.entries.len() / 2 {
            let shots = &self.shots;
            self.entries.retain(|Reverse(entry)| shots.has(entry.key));
            self.n_stale = 0;
        }
        Some(shot)
    }

    fn take_due(&mut self, now: Instant, due: &mut Vec<Shot>) {
        while let Some(&Reverse(entry)) = self.entries.peek() {
            if entry.due > now {
                break;
            }
            self.entries.pop();
            match self.take(entry.key) {
                Some(shot) => due.push(shot),
                None => self.n_stale -= 1,
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, so no thread panics in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: fires due timers outside of the lock, and sleeps until the next deadline.
    fn serve(&self) {
        let mut due = Vec::new();
        let mut state = self.lock();
        while !state.is_over {
            let now = Instant::now();
            state.take_due(now, &mut due);
            if !due.is_empty() {
                drop(state);
                for mut shot in due.drain(..) {
                    shot.fire();
                }
                state = self.lock();
                continue;
            }
            state = match state.entries.peek() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse(first)) => {
                    let left = first.due.saturating_duration_since(now);
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Subject for HeapThread {
    const FACTS: Facts = Facts {
        name: NAME,
        package: None,
        standing: Standing::Reference,
        note: "a thread with a `BinaryHeap`, `Mutex` and `Condvar`, which fires on that thread; \
               scheduled from another thread, with no tasks at all",
    };

    type Timers = Arc<Shared>;

    fn start() -> Result<Self, Failure> {
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        let thread = thread::Builder::new().name("heap-timer".to_owned());
        let thread = thread.spawn(move || served.serve());
        let thread = thread.map_err(|source| Failure::start(NAME, source))?;
        Ok(Self { shared, thread })
    }

    fn timers(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        // There are no workers: the caller is an ordinary thread.
        smol::future::block_on(root)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        ready(())
    }

    fn stop(self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
        self.thread.join().expect("the thread only counts");
    }
}

impl Timers for Arc<Shared> {
    type Key = SlotKey;

    fn schedule(&self, delay: Duration, shot: Shot) -> SlotKey {
        let due = Instant::now() + delay;
        let (key, is_earliest) = self.lock().insert(due, shot);
        if is_earliest {
            self.changed.notify_one();
        }
        key
    }

    fn cancel(&self, key: SlotKey) {
        // A separate variable, so that the lock is released before the token is dropped.
        let shot = self.lock().cancel(key);
        drop(shot);
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, State};
    use crate::receiver::{Ends, Receiver};

    #[test]
    fn cancelled_timers_give_their_entries_back_and_the_others_fire_in_time() {
        let receiver = Receiver::leaked(100);
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut state = State::default();
        let keys: Vec<_> = (0..100).map(|ms| state.insert(at(ms), receiver.shot()).0).collect();
        for &key in keys.iter().step_by(2) {
            assert!(state.cancel(key).is_some(), "it was armed");
            assert!(state.cancel(key).is_none(), "it is cancelled already");
        }
        for &key in keys.iter().skip(1).step_by(4) {
            assert!(state.cancel(key).is_some(), "it was armed");
        }
        assert!(state.entries.len() <= 50, "{} entries for 25 timers", state.entries.len());
        let mut due = Vec::new();
        state.take_due(at(49), &mut due);
        assert_eq!(due.len(), 12);
        state.take_due(at(99), &mut due);
        assert_eq!(due.len(), 25);
        assert_eq!((state.entries.len(), state.n_stale), (0, 0));
        due.iter_mut().for_each(super::Shot::fire);
        assert_eq!(receiver.wait(now), Ends { fired: 25, dropped: 75 });
    }
}
