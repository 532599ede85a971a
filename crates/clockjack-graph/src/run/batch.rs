//! Invocations of one reentrant component that overlap.
//!
//! # Protocol
//!
//! Who runs the region makes a *batch* of the invocations, puts it on the helpers's board, and works
//! on it like everyone else: whoever takes a job has all that it needs, and gives it back when it
//! is done. No more than the lane's width are out at once. When every job is back, and not before,
//! the results are taken in the order of the invocations, so that nobody can tell who was faster,
//! and a failed invocation is not returned from while another is under way.
//!
//! The one who runs the region waits for jobs that are out, with its thread: they wait for nobody,
//! so it does not wait for itself.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use clockjack_exec::Failure;

use super::{
    context::{Call, CallInfo, GraphContext, LastSeen},
    current_position::CurrentPosition,
    env::Env,
    message::Message,
    node::catch_panic,
    outbox::Outbox,
};
use crate::registry::node::ErasedSharedNode;

/// One invocation, with all it needs.
pub(crate) struct Job {
    pub(crate) index: usize,
    pub(crate) node: Arc<dyn ErasedSharedNode>,
    pub(crate) component: usize,
    pub(crate) id: Arc<str>,
    pub(crate) messages: Vec<Message>,
    pub(crate) last: Vec<Message>,
    pub(crate) outbox: Outbox,
    pub(crate) missed_runs: u64,
    pub(crate) is_one_each: bool,
    pub(crate) result: Result<(), Failure>,
    pub(crate) saw_cancel: bool,
    pub(crate) worker: u16,
    /// It has a budget: how long it takes is looked at in every epoch.
    pub(crate) is_timed: bool,
    /// When it began and how long it took, if that was measured.
    pub(crate) span_ns: Option<(u64, u64)>,
}

/// The invocations of one step.
pub(crate) struct Batch {
    state: Mutex<State>,
    back: Condvar,
    width: usize,
    /// Whose position it is, if others are at work.
    position: Option<CurrentPosition>,
}

struct State {
    /// The last is the next.
    todo: Vec<Job>,
    done: Vec<Job>,
    n_out: usize,
    n_out_max: usize,
}

impl Batch {
    /// `jobs` in the order of the invocations.
    pub(crate) fn new(mut jobs: Vec<Job>, width: usize) -> Self {
        jobs.reverse();
        let done = Vec::with_capacity(jobs.len());
        let state = State { todo: jobs, done, n_out: 0, n_out_max: 0 };
        let position = CurrentPosition::next_batch();
        Self { state: Mutex::new(state), back: Condvar::new(), width, position }
    }

    /// Whether there is a job to take.
    pub(crate) fn has_job(&self) -> bool {
        let state = self.lock();
        !state.todo.is_empty() && state.n_out < self.width
    }

    /// Does one job, if there is one to take.
    pub(crate) fn help(&self, env: &Env, worker: u16) -> bool {
        let mut state = self.lock();
        if state.n_out >= self.width {
            return false;
        }
        let Some(mut job) = state.todo.pop() else { return false };
        state.n_out += 1;
        state.n_out_max = state.n_out_max.max(state.n_out);
        drop(state);
        job.worker = worker;
        job.run(env, self.position);
        let mut state = self.lock();
        state.n_out -= 1;
        state.done.push(job);
        drop(state);
        self.back.notify_all();
        true
    }

    /// Works until all jobs are back; they, in order, and how many were out at once.
    pub(crate) fn finish(&self, env: &Env, worker: u16) -> (Vec<Job>, usize) {
        loop {
            if self.help(env, worker) {
                continue;
            }
            let mut state = self.lock();
            if state.todo.is_empty() && state.n_out == 0 {
                let mut done = core::mem::take(&mut state.done);
                done.sort_unstable_by_key(|job| job.index);
                return (done, state.n_out_max);
            }
            if state.todo.is_empty() || state.n_out >= self.width {
                // Woken for nothing, it looks again.
                drop(self.back.wait(state).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn run(&mut self, env: &Env, position: Option<CurrentPosition>) {
        let _turn = position
            .map(|position| position.with_invocation(self.index).enter(&env.has_buffered_counts));
        let info = CallInfo {
            invocation: self.index,
            missed_runs: self.missed_runs,
            is_one_each: self.is_one_each,
            iteration: None,
        };
        let mut cx = GraphContext {
            messages: &mut self.messages,
            last_seen: LastSeen { first: 0, last: &self.last },
            outbox: &mut self.outbox,
            call: Call {
                env,
                component: self.component,
                id: &self.id,
                info: &info,
                report: None,
                saw_cancel: false,
            },
        };
        let node = &self.node;
        let begun_ns = (env.measures || self.is_timed).then(|| env.since_start());
        self.result = catch_panic(|| node.execute_shared(&mut cx));
        self.saw_cancel = cx.call.saw_cancel;
        let took_ns = |begun_ns| env.since_start().saturating_sub(begun_ns);
        self.span_ns = begun_ns.map(|begun_ns| (begun_ns, took_ns(begun_ns)));
    }
}
