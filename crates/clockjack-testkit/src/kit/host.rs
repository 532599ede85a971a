//! The host actor, within whose polls the kit calls the tested actor.
//!
//! The host waits for jobs with a future, so that a call needs no message of the actor's type.

use core::{
    cell::RefCell,
    future::poll_fn,
    task::{Poll, Waker},
};
use std::{collections::VecDeque, rc::Rc};

use clockjack_actor::{Actor, Context, Failure, Next};

/// A function that runs within a poll of the host.
pub(super) type Job<M> = Box<dyn FnOnce(&mut Context<'_, Host<M>>)>;

/// The next job of the host.
pub(super) struct JobSlot<M: 'static> {
    job: RefCell<Option<Job<M>>>,
    waker: RefCell<Option<Waker>>,
}

impl<M> Default for JobSlot<M> {
    fn default() -> Self {
        Self { job: RefCell::new(None), waker: RefCell::new(None) }
    }
}

impl<M> JobSlot<M> {
    /// Submits a job for the next poll of the host.
    pub(super) fn submit(&self, job: Job<M>) {
        *self.job.borrow_mut() = Some(job);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// See the [module](self).
pub(super) struct Host<M: 'static> {
    jobs: Rc<JobSlot<M>>,
    inbox: Rc<RefCell<VecDeque<M>>>,
}

impl<M: 'static> Host<M> {
    pub(super) fn new(jobs: Rc<JobSlot<M>>, inbox: Rc<RefCell<VecDeque<M>>>) -> Self {
        Self { jobs, inbox }
    }

    /// Waits for the next job.
    fn wait(&self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let jobs = Rc::clone(&self.jobs);
        let next = poll_fn(move |cx| match jobs.job.take() {
            Some(job) => Poll::Ready(job),
            None => {
                *jobs.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        });
        let waits = cx.spawn_local_future(next, |host, cx, job| {
            job(cx);
            host.wait(cx)
        });
        waits.map(|()| Next::Stay).map_err(|refused| Failure::msg(refused.to_string()))
    }
}

impl<M: 'static> Actor for Host<M> {
    type Msg = M;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.wait(cx)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        self.inbox.borrow_mut().push_back(msg);
        Ok(Next::Stay)
    }
}
