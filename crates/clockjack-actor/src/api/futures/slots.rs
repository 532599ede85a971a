//! The running futures of an actor.

use alloc::{collections::VecDeque, vec::Vec};
use core::mem::ManuallyDrop;

use clockjack_sync::Arc;

use super::{
    task::{Loan, PollFn, Task, TaskBuffer},
    wake::{WakeFlagRef, WokenList},
    waker::{self, EXCLUSIVE},
};
use crate::{Actor, carried_span::CarriedSpan, cell::header::AnyActor};

/// The capacity that is kept while no future is running.
const KEPT_MAX: usize = 16;

/// One to be used now, and one for a future that starts while the flag of its predecessor is still
/// referenced.
const SPARE_FLAGS_MAX: usize = 2;

/// What a future holds back while it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclusivity {
    /// Nothing.
    Shared,
    /// User messages.
    Exclusive,
    /// Everything except stop and restart.
    Lent,
}

/// The futures of an actor.
pub(crate) struct Futures<A: Actor> {
    woken: Option<Arc<WokenList<AnyActor>>>,
    entries: Vec<Option<FutureEntry<A>>>,
    free: Vec<u32>,
    n_tasks: usize,
    /// Flags that were set, in this order.
    due: VecDeque<WakeFlagRef<AnyActor>>,
    /// Flags to be reused.
    spare_flags: Vec<WakeFlagRef<AnyActor>>,
    /// The future that the actor waits for.
    waiting: Option<u32>,
    /// Whether that one borrows the actor.
    is_lent: bool,
    /// The future that is being polled.
    polled: Option<u32>,
    pub(super) buffer: TaskBuffer,
    /// Declared after the tasks: a task that borrows the actor is dropped first.
    pub(super) loan: Loan<A>,
}

struct FutureEntry<A: Actor> {
    task: Task<A>,
    flag: WakeFlagRef<AnyActor>,
    /// The span in which it was started.
    span: CarriedSpan,
}

/// A future that is to be polled.
pub(crate) struct Due<A: Actor> {
    pub(crate) flag: WakeFlagRef<AnyActor>,
    pub(crate) run: PollFn<A>,
    pub(crate) body: core::ptr::NonNull<()>,
    pub(crate) name: &'static str,
    /// Taken out of the entry while it is polled.
    pub(crate) span: CarriedSpan,
}

impl<A: Actor> Default for Futures<A> {
    fn default() -> Self {
        Self {
            woken: None,
            entries: Vec::new(),
            free: Vec::new(),
            n_tasks: 0,
            due: VecDeque::new(),
            spare_flags: Vec::new(),
            waiting: None,
            is_lent: false,
            polled: None,
            buffer: TaskBuffer::none(),
            loan: Loan::new(),
        }
    }
}

impl<A: Actor> Futures<A> {
    /// Reserves a buffer for one future of this size, with its continuation.
    pub(crate) fn reserve_buffer(&mut self, bytes: usize) {
        self.buffer = TaskBuffer::new(bytes);
    }

    /// How many futures are running.
    pub(super) fn len(&self) -> usize {
        self.n_tasks
    }

    /// Whether none is running.
    pub(crate) fn is_empty(&self) -> bool {
        self.n_tasks == 0
    }

    /// Whether user messages are held back.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a future has borrowed the actor, or is about to.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Starts a task; it is due at once.
    pub(super) fn insert(
        &mut self,
        me: &AnyActor,
        task: Task<A>,
        span: CarriedSpan,
        exclusivity: Exclusivity,
    ) {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.entries.len()).expect("bounded by a u16");
            self.entries.push(None);
            index
        });
        let label = if exclusivity == Exclusivity::Shared { index } else { index | EXCLUSIVE };
        let spare = self.spare_flags.pop().and_then(|spare| spare.reuse(label));
        let flag = spare.unwrap_or_else(|| {
            let woken = self.woken.get_or_insert_with(|| Arc::new(WokenList::new(me.clone())));
            WakeFlagRef::new_queued(woken.clone(), label)
        });
        self.due.push_back(flag.clone());
        if let Some(entry) = self.entries.get_mut(index as usize) {
            *entry = Some(FutureEntry { task, flag, span });
            self.n_tasks += 1;
        }
        if exclusivity != Exclusivity::Shared {
            self.waiting = Some(index);
            self.is_lent = exclusivity == Exclusivity::Lent;
        }
    }

    /// Collects the flags from the woken list.
    pub(crate) fn collect(&mut self) {
        let Self { woken, due, .. } = self;
        if let Some(woken) = woken {
            woken.take(|flag| due.push_back(flag));
        }
    }

    /// The position of the next flag whose future may be polled now.
    fn next_pollable(&self) -> Option<usize> {
        if !self.is_lent {
            return (!self.due.is_empty()).then_some(0);
        }
        let lent = self.waiting;
        self.due.iter().position(|flag| !flag.is_done() && Some(index_of(flag)) == lent)
    }

    pub(crate) fn has_due(&self) -> bool {
        self.next_pollable().is_some()
    }

    /// The next future that is to be polled.
    pub(crate) fn next_due(&mut self) -> Option<Due<A>> {
        let flag = self.due.remove(self.next_pollable()?)?;
        let index = index_of(&flag);
        if !(flag.clear_queued()) {
            return None;
        }
        let entry = self.entries.get_mut(index as usize)?.as_mut()?;
        let ((run, body), name) = (entry.task.runner(), entry.task.name());
        self.polled = Some(index);
        Some(Due { flag, run, body, name, span: core::mem::take(&mut entry.span) })
    }

    /// The future was polled; it is pending or gone.
    pub(crate) fn was_polled(&mut self, due: Due<A>) {
        if let Some(index) = self.polled.take()
            && let Some(Some(entry)) = self.entries.get_mut(index as usize)
        {
            entry.span = due.span;
        }
        if due.flag.is_done() && self.spare_flags.len() < SPARE_FLAGS_MAX {
            self.spare_flags.push(due.flag);
        }
    }

    /// Removes the future that is being polled, if it still exists. The caller drops it before
    /// another one starts.
    pub(crate) fn remove_polled(&mut self) -> Option<Task<A>> {
        let index = self.polled.take()?;
        self.remove(index)
    }

    /// Removes the last future; called until there is none. The caller drops it before another one
    /// starts.
    pub(crate) fn remove_last(&mut self) -> Option<Task<A>> {
        while let Some(last) = self.entries.len().checked_sub(1) {
            if let Some(task) = u32::try_from(last).ok().and_then(|index| self.remove(index)) {
                return Some(task);
            }
            // It was empty. The free indices are not used before all entries are gone.
            self.entries.truncate(last);
        }
        self.free.clear();
        self.due.clear();
        None
    }

    fn remove(&mut self, index: u32) -> Option<Task<A>> {
        let FutureEntry { task, flag, span: _ } = self.entries.get_mut(index as usize)?.take()?;
        flag.set_done();
        self.free.push(index);
        if self.waiting == Some(index) {
            self.waiting = None;
            self.is_lent = false;
        }
        if task.is_in_buffer() {
            self.buffer.is_taken = false;
        }
        self.n_tasks -= 1;
        if self.n_tasks == 0 {
            self.entries.clear();
            self.entries.shrink_to(KEPT_MAX);
            self.free.clear();
            self.free.shrink_to(KEPT_MAX);
        }
        Some(task)
    }

    /// Takes the actor back, if it was lent. The future that has borrowed it is gone.
    pub(crate) fn take_back(&mut self) -> Option<A> {
        debug_assert!(!self.is_lent, "an actor was taken from a future");
        self.loan.take_back()
    }
}

impl<A: Actor> Drop for Futures<A> {
    fn drop(&mut self) {
        while let Some(task) = self.remove_last() {
            drop(task);
        }
        if let Some(woken) = &self.woken {
            woken.close();
        }
    }
}

impl<A: Actor> Due<A> {
    /// The waker to poll it with.
    pub(crate) fn waker(&self) -> ManuallyDrop<core::task::Waker> {
        waker::borrowed(&self.flag)
    }
}

fn index_of(flag: &WakeFlagRef<AnyActor>) -> u32 {
    flag.label() & !EXCLUSIVE
}
