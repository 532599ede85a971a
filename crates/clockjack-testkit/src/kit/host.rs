//! The actor in whose turns another one is called.
//!
//! It waits for work by a future of its own, so that a call needs no message of the actor's type.

use alloc::{boxed::Box, collections::VecDeque, rc::Rc};
use core::{
    cell::RefCell,
    future::poll_fn,
    task::{Poll, Waker},
};

use clockjack_actor::{Actor, Context, Failure, Next};

/// Something to be done in a turn of the host.
pub(super) type Job<M> = Box<dyn FnOnce(&mut Context<'_, Host<M>>)>;

/// What the host is to do next.
pub(super) struct Work<M: 'static> {
    job: RefCell<Option<Job<M>>>,
    waker: RefCell<Option<Waker>>,
}

impl<M> Default for Work<M> {
    fn default() -> Self {
        Self { job: RefCell::new(None), waker: RefCell::new(None) }
    }
}

impl<M> Work<M> {
    /// Leaves a job for the next turn of the host.
    pub(super) fn begin(&self, job: Job<M>) {
        *self.job.borrow_mut() = Some(job);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// See the [module](self).
pub(super) struct Host<M: 'static> {
    work: Rc<Work<M>>,
    inbox: Rc<RefCell<VecDeque<M>>>,
}

impl<M: 'static> Host<M> {
    pub(super) fn new(work: Rc<Work<M>>, inbox: Rc<RefCell<VecDeque<M>>>) -> Self {
        Self { work, inbox }
    }

    /// Waits for the next job.
    fn wait(&self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let work = Rc::clone(&self.work);
        let next = poll_fn(move |cx| match work.job.take() {
            Some(job) => Poll::Ready(job),
            None => {
                *work.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        });
        let waits = cx.spawn_local(next, |host, cx, job| {
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
