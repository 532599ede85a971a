//! Futures that components start. Their results are published at the beginning of an epoch.
//!
//! Components submit tasks during an epoch, from any worker. The tasks run on the executor of the
//! system. The coordinator takes their results between epochs. One lock is held for a push or a
//! swap, and never while code of a user runs.
//!
//! In virtual time the order of results does not depend on threads: the coordinator waits for all
//! running tasks and takes their results by number. Numbers are given in the order of components.
//!
//! Admission does not depend on threads either. What counts is how many tasks were running when the
//! epoch began, and how many the component itself has submitted in this epoch (overlapping
//! invocations count separately). So within one epoch the bound can be exceeded, by at most the
//! bound per component or overlapping invocation.
//!
//! A run leaves no task behind: at its end the coordinator waits for the running tasks or cancels
//! them, as the [policy](ShutdownPolicy) says, and counts what happened to each. No epoch is left
//! in which a component could see their results.

use core::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use clockjack_exec::{Failure, Handle, JoinHandle};

use super::message::MessageId;
use crate::{
    data::Value,
    lock::lock,
    named::named,
    run::engine::{
        context_error::{ContextError, Refusal},
        node::catch_panic,
    },
};

named! {
    /// What happens to the running tasks when a run ends.
    #[derive(Default)]
    pub enum ShutdownPolicy {
        /// The run waits for them up to a time limit, and then cancels the rest.
        #[default]
        Drain = "drain",
        /// Tasks that have not begun are cancelled; the run waits for the others.
        CancelPending = "cancel_pending",
        /// All tasks are cancelled. Each is dropped instead of being polled again.
        Cancel = "cancel",
    }
}

/// The future of a task; its result may have no value.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<Option<Value>, Failure>> + Send>>;

/// How the future of a task is created.
pub(crate) enum TaskStart {
    /// It exists.
    Now(Work),
    /// The coordinator creates it, in the order of components: for futures whose creation has
    /// effects that others see.
    Deferred(Box<dyn FnOnce() -> Work + Send>, ResultOrder),
}

/// The order in which the results of a component's tasks are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultOrder {
    /// In the order of completion.
    ByCompletion,
    /// In the order of submission: a result waits for the results of earlier tasks.
    BySubmission,
}

/// A task that was not given to the executor yet.
pub(crate) struct Submitted {
    pub(crate) from: TaskOrigin,
    /// Which one of the component's overlapping invocations submitted it.
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

/// Which component submitted a task, and for which output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskOrigin {
    pub(crate) component: usize,
    pub(crate) port: usize,
    pub(crate) correlation: MessageId,
    /// The number of the call that submitted it, if the component is on a chain; else zero.
    pub(crate) call: u64,
    pub(crate) order: ResultOrder,
}

/// Where components submit tasks.
#[derive(Clone)]
pub(crate) struct Tasks {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Submitted tasks whose results were not taken. It changes under the lock.
    n_open: AtomicUsize,
}

struct State {
    submitted: Vec<Submitted>,
    /// Tasks that the executor has and whose results were not taken. It changes between epochs
    /// only.
    n_open: usize,
    n_open_max: usize,
    n_rejected: u64,
    /// The value of `n_rejected` at the last report.
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
        (correlation, call): (MessageId, u64),
        begin: TaskStart,
    ) -> Result<(), ContextError> {
        let order = match &begin {
            TaskStart::Now(_) => ResultOrder::ByCompletion,
            TaskStart::Deferred(_, order) => *order,
        };
        let from = TaskOrigin { component, port, correlation, call, order };
        let mut state = self.lock();
        let is_own =
            |one: &&Submitted| (one.from.component, one.invocation) == (component, invocation);
        let n_own = state.submitted.iter().filter(is_own).count();
        if state.n_open + n_own >= state.n_open_max {
            state.n_rejected += 1;
            return Err(ContextError(Refusal::TasksFull { limit: state.n_open_max }));
        }
        state.submitted.push(Submitted { from, invocation, begin });
        // Relaxed: the coordinator reads it after all workers of the epoch are done.
        self.shared.n_open.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a component has submitted a task that was not started yet.
    pub(crate) fn has_submitted(&self, component: usize) -> bool {
        self.n_open() > 0 && self.lock().submitted.iter().any(|one| one.from.component == component)
    }

    /// Takes the submitted tasks, in the order of components.
    pub(crate) fn take_submitted(&self) -> Vec<Submitted> {
        let mut state = self.lock();
        let mut taken = core::mem::take(&mut state.submitted);
        state.n_open += taken.len();
        drop(state);
        taken.sort_by_key(|one| (one.from.component, one.invocation));
        taken
    }

    /// Drops the tasks that these components have submitted and that were not started: they do not
    /// count.
    pub(crate) fn forget(&self, components: &[usize]) {
        let mut state = self.lock();
        let is_dropped = |one: &mut Submitted| components.contains(&one.from.component);
        let dropped: Vec<Submitted> = state.submitted.extract_if(.., is_dropped).collect();
        drop(state);
        // Relaxed: as in `submit`.
        self.shared.n_open.fetch_sub(dropped.len(), Ordering::Relaxed);
        for one in dropped {
            // A panic in a drop is ignored: the call that submitted the task does not count either.
            drop(catch_panic(move || {
                drop(one);
                Ok(())
            }));
        }
    }

    /// The results of `n` tasks were taken.
    pub(crate) fn closed(&self, n: usize) {
        self.lock().n_open -= n;
        // Relaxed: as in `submit`.
        self.shared.n_open.fetch_sub(n, Ordering::Relaxed);
    }

    /// How many submitted tasks have results that were not taken.
    pub(crate) fn n_open(&self) -> usize {
        // Relaxed: as in `submit`.
        self.shared.n_open.load(Ordering::Relaxed)
    }

    /// How many tasks were refused since the last call of this method.
    pub(crate) fn take_new_rejects(&self) -> u64 {
        let mut state = self.lock();
        let n_rejected = state.n_rejected;
        n_rejected - core::mem::replace(&mut state.n_rejected_seen, n_rejected)
    }

    /// How many tasks were refused.
    pub(crate) fn n_rejected(&self) -> u64 {
        self.lock().n_rejected
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.shared.state)
    }
}

/// The tasks that the executor has, by number.
#[derive(Default)]
pub(crate) struct RunningTasks(BTreeMap<u64, Task>);

/// A task that the executor has.
struct Task {
    component: usize,
    join: JoinHandle<()>,
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
        let join = executor.spawn_future(async move {
            // Relaxed: the flag publishes no other data.
            begun.store(true, Ordering::Relaxed);
            task.await;
        });
        self.0.insert(number, Task { component, join, has_begun });
    }

    /// Whether the result of a task has to wait for the result of an earlier one.
    pub(crate) fn must_wait(&self, number: u64, origin: TaskOrigin) -> bool {
        let mut earlier = self.0.range(..number);
        origin.order == ResultOrder::BySubmission
            && earlier.any(|(_, one)| one.component == origin.component)
    }

    /// The result of a task was taken.
    pub(crate) fn ended(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Waits until all tasks have ended, as the policy says.
    pub(crate) async fn end(
        &mut self,
        policy: ShutdownPolicy,
        drain_max: Duration,
        executor: &Handle,
    ) {
        if self.0.is_empty() {
            return;
        }
        for Task { join, has_begun, .. } in self.0.values() {
            // Relaxed: as above. A task that begins in between is dropped at its second poll.
            let is_pending = !has_begun.load(Ordering::Relaxed);
            match policy {
                ShutdownPolicy::Cancel => join.abort(),
                ShutdownPolicy::CancelPending if is_pending => join.abort(),
                _ => {}
            }
        }
        let mut timeout = pin!(executor.sleep(drain_max));
        let mut is_over = false;
        for Task { join, .. } in self.0.values_mut() {
            poll_fn(|cx| {
                if !is_over && timeout.as_mut().poll(cx).is_ready() {
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

/// What happened to the tasks that were running at the end of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndCounts {
    /// They completed after the last epoch: no component sees their results.
    pub(crate) unseen: u64,
    /// They were cancelled.
    pub(crate) cancelled: u64,
}
