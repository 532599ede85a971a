//! Overlapping calls of one region: the invocations of a reentrant component, or the members of a
//! Jacobi loop in one iteration ([`members`](super::members)).
//!
//! # Protocol
//!
//! 1. The worker that runs the region makes a *batch* of the invocations and offers it to the other
//!    workers ([`helpers`](super::helpers)). Then it works on the batch itself.
//! 2. A worker takes a job under the lock of the batch, runs it without the lock, and puts it back.
//!    A job owns everything that its invocation needs. At most as many jobs as the lane is wide are
//!    taken at the same time.
//! 3. The worker that runs the region blocks its thread until all jobs are back, and only then
//!    processes the results, in the order of the invocations. So the result does not depend on
//!    which thread was faster, and no failed invocation returns while another one still runs.
//!
//! Blocking cannot deadlock: the jobs that are taken wait for nothing, and the waiting worker runs
//! jobs itself as long as there are any to take.
//!
//! A component or a loop has one batch and keeps its jobs, so a warm step allocates nothing. A
//! worker that still has a reference to the batch of an earlier step of the same epoch finds no
//! job, or one of the step that runs now; both are right, because a job owns all that it needs. No
//! worker keeps a reference beyond the epoch.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use clockjack_exec::Failure;

use super::{
    context::{Call, CallInfo, ConvergenceReport, GraphContext, LastSeen, LoopIteration},
    current_position::CurrentPosition,
    env::Env,
    node::catch_panic,
};
use crate::{
    lock::lock,
    registry::node::ErasedComponent,
    run::{
        flow::{message::Message, outbox::Outbox},
        observe::call_watch::WatchedComponent,
    },
};

/// One invocation, with everything that it needs.
pub(crate) struct Job {
    pub(crate) index: usize,
    /// Shared with the other jobs of a reentrant component; of a member of a loop, the component
    /// itself. `Removed` between steps, when the component must have no other owner.
    pub(crate) body: ErasedComponent,
    pub(crate) component: usize,
    pub(crate) id: Arc<str>,
    pub(crate) messages: Vec<Message>,
    pub(crate) last: Vec<Message>,
    pub(crate) outbox: Outbox,
    pub(crate) missed_runs: u64,
    pub(crate) is_one_each: bool,
    /// The number of the call, if the component is on a chain; else zero.
    pub(crate) chain_call: u64,
    /// Of a member of a loop.
    pub(crate) iteration: Option<LoopIteration>,
    pub(crate) result: Result<(), Failure>,
    pub(crate) report: Option<ConvergenceReport>,
    pub(crate) saw_cancel: bool,
    pub(crate) worker: u16,
    /// Where it is visible while it runs, if its lane limits calls.
    pub(crate) watched: Option<Arc<WatchedComponent>>,
    /// It has a budget, so its duration is measured in every epoch.
    pub(crate) is_timed: bool,
    /// When it began and how long it took, if it was measured.
    pub(crate) span_ns: Option<(u64, u64)>,
}

/// The invocations of one step.
pub(crate) struct Batch {
    state: Mutex<State>,
    back: Condvar,
    width: usize,
}

struct State {
    /// In reverse order: the last one is taken next.
    todo: Vec<Job>,
    done: Vec<Job>,
    n_out: usize,
    n_out_max: usize,
    /// The position of the batch, in a parallel epoch.
    position: Option<CurrentPosition>,
}

impl Batch {
    /// An empty batch, of which `width` jobs may run at the same time.
    pub(crate) fn new(width: usize) -> Self {
        let (todo, done) = (Vec::new(), Vec::new());
        let state = State { todo, done, n_out: 0, n_out_max: 0, position: None };
        Self { state: Mutex::new(state), back: Condvar::new(), width }
    }

    /// Begins a step with these jobs, in the order of the invocations. The step before has been
    /// [finished](Self::finish).
    pub(crate) fn begin(&self, jobs: &mut Vec<Job>) {
        let mut state = self.lock();
        state.todo.extend(jobs.drain(..).rev());
        (state.n_out_max, state.position) = (0, CurrentPosition::next_batch());
    }

    /// Whether there is a job to take.
    pub(crate) fn has_job(&self) -> bool {
        let state = self.lock();
        !state.todo.is_empty() && state.n_out < self.width
    }

    /// Runs one job, if there is one to take; returns whether there was.
    pub(crate) fn help(&self, env: &Env, worker: u16) -> bool {
        let mut state = self.lock();
        if state.n_out >= self.width {
            return false;
        }
        let Some(mut job) = state.todo.pop() else { return false };
        state.n_out += 1;
        state.n_out_max = state.n_out_max.max(state.n_out);
        let position = state.position;
        drop(state);
        job.worker = worker;
        job.run(env, position);
        let mut state = self.lock();
        state.n_out -= 1;
        state.done.push(job);
        drop(state);
        self.back.notify_all();
        true
    }

    /// Works until all jobs are back; moves the jobs to `into` in order, and returns how many ran
    /// at once at most.
    pub(crate) fn finish(&self, env: &Env, worker: u16, into: &mut Vec<Job>) -> usize {
        loop {
            if self.help(env, worker) {
                continue;
            }
            let mut state = self.lock();
            if state.todo.is_empty() && state.n_out == 0 {
                state.done.sort_unstable_by_key(|job| job.index);
                into.append(&mut state.done);
                return state.n_out_max;
            }
            if state.todo.is_empty() || state.n_out >= self.width {
                // A spurious wake-up is harmless: the loop checks again.
                drop(self.back.wait(state).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Job {
    /// Releases everything that belongs to the invocation, and keeps the memory.
    pub(crate) fn release(&mut self) {
        self.body = ErasedComponent::Removed;
        self.messages.clear();
        self.last.clear();
        (self.result, self.saw_cancel, self.span_ns) = (Ok(()), false, None);
        (self.report, self.iteration) = (None, None);
    }

    fn run(&mut self, env: &Env, position: Option<CurrentPosition>) {
        let _turn = position
            .map(|position| position.with_invocation(self.index).enter(&env.has_buffered_counts));
        let info = CallInfo {
            // A member of a loop has one invocation.
            invocation: if self.iteration.is_some() { 0 } else { self.index },
            missed_runs: self.missed_runs,
            is_one_each: self.is_one_each,
            iteration: self.iteration,
            chain_call: self.chain_call,
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
        let begun_ns = (env.measures || self.is_timed).then(|| env.since_start());
        let in_progress = self.watched.as_ref().and_then(|one| one.begin(env.epoch, env.nanos()));
        self.result = match &mut self.body {
            ErasedComponent::Exclusive(node) => catch_panic(|| node.execute(&mut cx)),
            ErasedComponent::Shared(node) => catch_panic(|| node.execute_shared(&mut cx)),
            ErasedComponent::Removed => Ok(()),
        };
        drop(in_progress);
        (self.report, self.saw_cancel) = (cx.call.report, cx.call.saw_cancel);
        let took_ns = |begun_ns| env.since_start().saturating_sub(begun_ns);
        self.span_ns = begun_ns.map(|begun_ns| (begun_ns, took_ns(begun_ns)));
    }
}
