//! The members of a Jacobi loop, called at the same time.
//!
//! In a Jacobi iteration no member sees what another one publishes: all publications become visible
//! after the iteration. So the calls of one iteration are independent, and on a pool lane of
//! several threads they are the jobs of one [`Batch`].
//!
//! An iteration has three parts:
//!
//! 1. In the order of the members: the ready invocations are taken from the channels. A member with
//!    one invocation becomes a job, which owns the component, its last messages and its outbox.
//! 2. The jobs run, on this worker and on any other that has time.
//! 3. In the order of the members: the component goes back to its node, and the result of its call
//!    counts. A member with several invocations is called now, for one after the other.
//!
//! The parts are the same on one worker, so the result does not depend on the number of workers. If
//! a failure ends the run, the members after it have been called, but their results do not count.

use std::sync::Arc;

use super::{
    batch::{Batch, Job},
    context::LoopIteration,
    env::Env,
    node::CallOutcome,
    region::{Downstream, Region},
};
use crate::run::{
    flow::{outbox::Mark, trigger::Invocations},
    observe::{report::Fault, trace},
};

/// What the iterations of a loop need for calls at the same time.
pub(super) struct ConcurrentMembers {
    batch: Arc<Batch>,
    jobs: Vec<Job>,
    /// For each member, how often it may be called, and its invocations if they are several.
    taken: Vec<(usize, Invocations)>,
}

impl ConcurrentMembers {
    pub(super) fn new(n_members: usize, n_at_once: usize) -> Self {
        let taken = (0..n_members).map(|_| (0, Invocations::default()));
        Self {
            batch: Arc::new(Batch::new(n_at_once)),
            jobs: Vec::with_capacity(n_members),
            taken: taken.collect(),
        }
    }

    /// One iteration; returns the number of calls. The publications of all members stay staged.
    ///
    /// # Errors
    ///
    /// The first fault, in the order of the members, that ends the run.
    pub(super) fn call(
        &mut self,
        region: &mut Region,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: LoopIteration,
    ) -> Result<u32, Fault> {
        let fault = self.take_all(region, env, downstream, iteration);
        self.run_jobs(region, env);
        let mut jobs = core::mem::take(&mut self.jobs);
        let (mut n_called, mut result) = (0, Ok(()));
        let mut finished = jobs.drain(..).peekable();
        for (at, (limit, invocations)) in self.taken.iter_mut().enumerate() {
            if let Some(mut job) = finished.next_if(|job| job.index == at) {
                n_called += 1;
                region.nodes[at].take_back(&mut job);
                if result.is_ok() {
                    result = finish(region, at, env, &mut job);
                }
                job.release();
                region.nodes[at].spare.push(job);
            } else if !invocations.is_empty() && result.is_ok() {
                core::mem::swap(invocations, &mut region.invocations);
                let called = region.call_all(at, env, downstream, Some(iteration));
                result = called.map(|in_this| n_called += in_this);
            } else {
                region.nodes[at].counts.lost.run_ended += invocations.n_messages_from(0);
            }
            if result.is_ok() && *limit > 0 {
                region.note_waiting(at, *limit, env);
            }
            invocations.clear();
        }
        drop(finished);
        self.jobs = jobs;
        match result.err().or(fault) {
            Some(fault) => Err(fault),
            None => Ok(n_called),
        }
    }

    /// Takes the invocations of all members from their channels. A fault that ends the run is
    /// returned: the members after it take nothing, those before it are called.
    fn take_all(
        &mut self,
        region: &mut Region,
        env: &Env,
        downstream: &mut impl Downstream,
        iteration: LoopIteration,
    ) -> Option<Fault> {
        self.taken.iter_mut().for_each(|(limit, _)| *limit = 0);
        for (at, (limit, invocations)) in self.taken.iter_mut().enumerate() {
            match region.call_limit(at, env, downstream) {
                Ok(0) => continue,
                Ok(most) => *limit = most,
                Err(fault) => return Some(fault),
            }
            match region.take_ready(at, *limit, env) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(fault) => return Some(fault),
            }
            core::mem::swap(invocations, &mut region.invocations);
            if invocations.len() != 1 {
                continue;
            }
            let (_, messages) = invocations.get_mut(0);
            let chain_call = region.begin_chains(at, env, messages);
            let job = region.nodes[at].begin_member(invocations, (at, iteration, chain_call));
            self.jobs.push(job);
        }
        None
    }

    /// Runs all jobs, some of them at the same time.
    fn run_jobs(&mut self, region: &mut Region, env: &Env) {
        if self.jobs.is_empty() {
            return;
        }
        let is_offered = env.is_parallel && self.jobs.len() > 1;
        let helpers = env.helpers.as_ref().filter(|_| is_offered);
        self.batch.begin(&mut self.jobs);
        if let Some(helpers) = helpers {
            helpers.add_batch(&self.batch);
        }
        self.batch.finish(env, region.recorder.worker, &mut self.jobs);
        if let Some(helpers) = helpers {
            helpers.remove_batch(&self.batch);
        }
        trace::batch(env, &region.nodes[0], &mut region.recorder, &self.jobs);
    }
}

/// Handles the outcome of a call, as of any call.
fn finish(region: &mut Region, at: usize, env: &Env, job: &mut Job) -> Result<(), Fault> {
    let node = &mut region.nodes[at];
    trace::job(env, node, &mut region.recorder, job);
    node.keep(&mut job.messages);
    let n_before = node.counts.executions;
    let outcome = CallOutcome {
        result: core::mem::replace(&mut job.result, Ok(())),
        report: job.report,
        saw_cancel: job.saw_cancel,
    };
    // Nothing was staged before: each iteration commits all that its members have published.
    region.finish_call(at, env, Mark::START, outcome)?;
    if region.nodes[at].counts.executions > n_before {
        region.end_chains(at, 0, env, Mark::START);
    }
    Ok(())
}
