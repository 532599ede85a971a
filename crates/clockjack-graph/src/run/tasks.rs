//! Futures that components start. What they give comes back at the beginning of an epoch.
//!
//! Roles: components submit during an epoch, from any worker; the futures run on the system's
//! executor; the coordinator takes completions between epochs. One lock, held for a push or a swap
//! and never while anything of a user runs.
//!
//! In virtual time the order of completions is not left to threads: the coordinator waits for all
//! that are under way and takes them by number, which is given in the order of components.
//!
//! Whether one is admitted is not left to threads either: what counts is how many were under way
//! when the epoch began, and how many the component itself has submitted in it (of invocations that
//! overlap, each for itself). So the bound may be passed within one epoch, by no more than that
//! bound for each of them.
//!
//! A run that ends leaves nothing behind: its coordinator waits for the tasks that are under way,
//! or cancels them, as the [policy](ShutdownPolicy) says, and counts what became of each. There is
//! no epoch left in which anybody could see what they give.

use core::{
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use clockjack_exec::{Failure, Handle, Join};
use clockjack_sync::mutant;

use super::{message::MessageId, node::catch_panic};
use crate::{data::Value, named::named};

named! {
    /// What becomes of the tasks that are under way when a run ends.
    #[derive(Default)]
    pub enum ShutdownPolicy {
        /// They are waited for, for a while; what is left then is cancelled.
        #[default]
        Drain = "drain",
        /// Those that have not begun are cancelled, the others waited for.
        CancelPending = "cancel_pending",
        /// All are cancelled. Each is dropped the next time it would be polled.
        Cancel = "cancel",
    }
}

/// A future of a component: what it gives, if that is anything.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<Option<Value>, Failure>> + Send>>;

/// How a future begins.
pub(crate) enum TaskStart {
    /// It is there.
    Now(Work),
    /// It is made by the coordinator, in the order of components: for what is heard by others when
    /// it is made.
    Deferred(Box<dyn FnOnce() -> Work + Send>, ResultOrder),
}

/// In which order what the tasks of a component give is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultOrder {
    /// As they end.
    ByCompletion,
    /// As they were submitted: one that has ended waits for those before it.
    BySubmission,
}

/// A future of a component that has not been given to the executor yet.
pub(crate) struct Submitted {
    pub(crate) from: TaskOrigin,
    /// Which of the component's invocations that overlap.
    invocation: usize,
    begin: TaskStart,
}

impl Submitted {
    /// The future.
    pub(crate) fn into_work(self) -> Work {
        match self.begin {
            TaskStart::Now(work) => work,
            TaskStart::Deferred(make, _) => catch_panic(|| Ok(make()))
                .unwrap_or_else(|failure| Box::pin(core::future::ready(Err(failure)))),
        }
    }
}

/// Whose future it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskOrigin {
    pub(crate) component: usize,
    pub(crate) port: usize,
    pub(crate) correlation: MessageId,
    pub(crate) order: ResultOrder,
}

/// Where components leave their futures.
#[derive(Clone)]
pub(crate) struct Tasks {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Submitted and not taken back. It changes under the lock.
    n_open: AtomicUsize,
}

struct State {
    submitted: Vec<Submitted>,
    /// Given to the executor and not taken back: it changes between epochs only.
    n_open: usize,
    n_open_max: usize,
    n_rejected: u64,
    /// As of the last look.
    n_rejected_seen: u64,
}

impl Tasks {
    pub(crate) fn new(n_open_max: usize) -> Self {
        let state = State {
            submitted: Vec::new(),
            n_open: 0,
            n_open_max,
            n_rejected: 0,
            n_rejected_seen: 0,
        };
        let n_open = AtomicUsize::new(0);
        Self { shared: Arc::new(Shared { state: Mutex::new(state), n_open }) }
    }

    pub(crate) fn submit(
        &self,
        (component, invocation): (usize, usize),
        port: usize,
        correlation: MessageId,
        begin: TaskStart,
    ) -> Result<(), TaskRefused> {
        let order = match &begin {
            TaskStart::Now(_) => ResultOrder::ByCompletion,
            TaskStart::Deferred(_, order) => *order,
        };
        let from = TaskOrigin { component, port, correlation, order };
        let mut state = self.lock();
        let is_own = |one: &&Submitted| {
            (one.from.component, one.invocation) == (component, invocation)
                || mutant!("tasks-admitted-by-occupancy")
        };
        let n_own = state.submitted.iter().filter(is_own).count();
        if state.n_open + n_own >= state.n_open_max {
            state.n_rejected += 1;
            return Err(TaskRefused { limit: Some(state.n_open_max) });
        }
        state.submitted.push(Submitted { from, invocation, begin });
        // Relaxed: the coordinator looks at it when all who could submit are done.
        self.shared.n_open.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes what was submitted, in the order of components.
    pub(crate) fn take_submitted(&self) -> Vec<Submitted> {
        let mut state = self.lock();
        let mut taken = core::mem::take(&mut state.submitted);
        state.n_open += taken.len();
        drop(state);
        taken.sort_by_key(|one| (one.from.component, one.invocation));
        taken
    }

    /// Lets go of what these components have submitted and nobody has taken: it does not count.
    pub(crate) fn forget(&self, components: &[usize]) {
        let mut state = self.lock();
        let is_gone = |one: &mut Submitted| components.contains(&one.from.component);
        let gone: Vec<Submitted> = state.submitted.extract_if(.., is_gone).collect();
        drop(state);
        // Relaxed: as in `submit`.
        self.shared.n_open.fetch_sub(gone.len(), Ordering::Relaxed);
        for one in gone {
            // A drop that panics is the component's affair, whose call does not count either.
            drop(catch_panic(move || {
                drop(one);
                Ok(())
            }));
        }
    }

    /// `n` of them have come back.
    pub(crate) fn closed(&self, n: usize) {
        self.lock().n_open -= n;
        // Relaxed: as in `submit`.
        self.shared.n_open.fetch_sub(n, Ordering::Relaxed);
    }

    /// How many were submitted and have not come back.
    pub(crate) fn n_open(&self) -> usize {
        // Relaxed: as in `submit`.
        self.shared.n_open.load(Ordering::Relaxed)
    }

    /// How many were refused since this was last asked.
    pub(crate) fn take_new_rejects(&self) -> u64 {
        let mut state = self.lock();
        let n_rejected = state.n_rejected;
        n_rejected - core::mem::replace(&mut state.n_rejected_seen, n_rejected)
    }

    /// How many were refused.
    pub(crate) fn n_rejected(&self) -> u64 {
        self.lock().n_rejected
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tasks that the executor has, by number.
#[derive(Default)]
pub(crate) struct RunningTasks(BTreeMap<u64, Task>);

/// A task that the executor has.
struct Task {
    component: usize,
    join: Join<()>,
    has_begun: Arc<AtomicBool>,
}

impl RunningTasks {
    /// Gives a task to the executor.
    pub(crate) fn start(
        &mut self,
        number: u64,
        component: usize,
        executor: &Handle,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let has_begun = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&has_begun);
        let join = executor.spawn(async move {
            // Relaxed: it says no more than itself.
            begun.store(true, Ordering::Relaxed);
            task.await;
        });
        self.0.insert(number, Task { component, join, has_begun });
    }

    /// Whether what a task gave has to wait for one that was submitted before it.
    pub(crate) fn must_wait(&self, number: u64, origin: TaskOrigin) -> bool {
        let mut earlier = self.0.range(..number);
        origin.order == ResultOrder::BySubmission
            && earlier.any(|(_, one)| one.component == origin.component)
            && !mutant!("tasks-order-is-forgotten")
    }

    /// One has told what came of it.
    pub(crate) fn ended(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Dependencies until nothing is left of any, as the policy says.
    pub(crate) async fn end(
        &mut self,
        policy: ShutdownPolicy,
        drain_max: Duration,
        executor: &Handle,
    ) {
        if self.0.is_empty() || mutant!("tasks-outlive-their-run") {
            return;
        }
        for Task { join, has_begun, .. } in self.0.values() {
            // Relaxed: as above. One that begins meanwhile is dropped at its second look.
            let is_pending = !has_begun.load(Ordering::Relaxed);
            match policy {
                ShutdownPolicy::Cancel => join.abort(),
                ShutdownPolicy::CancelPending if is_pending => join.abort(),
                _ => {}
            }
        }
        let mut patience = pin!(executor.sleep(drain_max));
        let mut is_over = false;
        for Task { join, .. } in self.0.values_mut() {
            poll_fn(|cx| {
                if !is_over && patience.as_mut().poll(cx).is_ready() {
                    is_over = true;
                }
                if is_over {
                    join.abort();
                }
                Pin::new(&mut *join).poll(cx).map(|_| ())
            })
            .await;
        }
        self.0.clear();
    }
}

/// What became of the tasks that were under way at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndCounts {
    /// They have ended, and nobody sees what they gave.
    pub(crate) unseen: u64,
    /// They were dropped.
    pub(crate) cancelled: u64,
}

/// A task that was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRefused {
    limit: Option<usize>,
}

impl TaskRefused {
    pub(crate) fn unbound() -> Self {
        Self { limit: None }
    }

    /// Whether as many are under way as the run allows. That may be otherwise in a later epoch.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.limit.is_some()
    }
}

impl fmt::Display for TaskRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Some(limit) => write!(f, "{limit} tasks are under way already"),
            None => f.write_str("the output is not one of this component"),
        }
    }
}

impl core::error::Error for TaskRefused {}
