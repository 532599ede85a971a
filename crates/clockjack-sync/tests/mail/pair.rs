//! A mailbox next to a deque, which is its oracle. Random steps and the bytes of a fuzzer drive
//! both.
#![expect(unsafe_code, reason = "the consumer's side of a mailbox wants a promise")]

use alloc::{collections::VecDeque, rc::Rc};

use clockjack_sync::mail::{Mailbox, Pop};

/// The consumer's view of a mailbox.
pub(crate) struct Consumer<'a, T>(pub(crate) &'a Mailbox<T>);

impl<T> Consumer<'_, T> {
    pub(crate) fn pop(&mut self) -> Pop<T> {
        // SAFETY: each test has one consumer of its mailbox.
        unsafe { self.0.pop() }
    }

    pub(crate) fn pop_held(&mut self) -> Pop<T> {
        // SAFETY: as above.
        unsafe { self.0.pop_held() }
    }

    pub(crate) fn free(&mut self, n: usize) {
        // SAFETY: as above.
        unsafe { self.0.free(n) }
    }

    pub(crate) fn try_idle(&mut self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.try_idle() }
    }

    pub(crate) fn shrink(&mut self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.shrink() }
    }

    pub(crate) fn release(&mut self) -> bool {
        // SAFETY: as above.
        unsafe { self.0.release() }
    }
}

/// An operation on a mailbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Push(usize),
    Pop(usize),
    Hold(usize),
    Free,
    Claim,
    Abandon,
    Idle,
    Shrink,
    Release,
    Close,
}

/// A mailbox next to the deque that is its oracle. `None` is an abandoned claim.
pub(crate) struct Pair {
    mailbox: Mailbox<Rc<u32>>,
    model: VecDeque<Option<Rc<u32>>>,
    held: usize,
    idle: bool,
    closed: bool,
    next: u32,
}

impl Pair {
    /// With positions that begin at `start`.
    pub(crate) fn new(capacity: usize, start: isize) -> Self {
        Self {
            mailbox: Mailbox::with_start(capacity, start),
            model: VecDeque::new(),
            held: 0,
            idle: false,
            closed: false,
            next: 0,
        }
    }

    fn room(&self) -> usize {
        self.mailbox.capacity() - self.model.len() - self.held
    }

    fn pushed(&mut self, wake: bool) {
        assert_eq!(wake, self.idle, "exactly a sleeping consumer is woken");
        self.idle = false;
    }

    fn push(&mut self) {
        let value = Rc::new(self.next);
        self.next += 1;
        match self.mailbox.push(Rc::clone(&value)) {
            Ok(pushed) => {
                assert!(self.room() > 0 && !self.closed, "it should have been refused");
                self.pushed(pushed.wake);
                self.model.push_back(Some(value));
            }
            Err(refused) => {
                assert_eq!(refused.is_closed(), self.closed);
                assert_eq!(refused.is_full(), !self.closed && self.room() == 0);
                assert_eq!(refused.into_inner(), value, "the error contains the refused value");
            }
        }
    }

    fn claim(&mut self, write: bool) {
        let value = Rc::new(self.next);
        self.next += 1;
        let Ok(permit) = self.mailbox.claim() else {
            assert!(self.closed || self.room() == 0, "it should have been let in");
            return;
        };
        let (wake, entered) = if write {
            (permit.write(Rc::clone(&value)).wake, Some(value))
        } else {
            (permit.cancel().wake, None)
        };
        self.pushed(wake);
        self.model.push_back(entered);
    }

    /// The expected result of a pop; also removes the marks of abandoned claims.
    fn expected(&mut self) -> Pop<Rc<u32>> {
        while let Some(front) = self.model.pop_front() {
            if let Some(value) = front {
                return Pop::Item(value);
            }
        }
        Pop::Empty
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Push(n) => (0..n).for_each(|_| self.push()),
            Step::Claim => self.claim(true),
            Step::Abandon => self.claim(false),
            Step::Pop(n) => {
                for _ in 0..n {
                    let expected = self.expected();
                    assert_eq!(Consumer(&self.mailbox).pop(), expected);
                }
            }
            Step::Hold(n) => {
                for _ in 0..n {
                    let expected = self.expected();
                    let popped = Consumer(&self.mailbox).pop_held();
                    self.held += usize::from(popped != Pop::Empty);
                    assert_eq!(popped, expected);
                }
            }
            Step::Free => {
                Consumer(&self.mailbox).free(self.held);
                self.held = 0;
            }
            Step::Idle => {
                let idle = Consumer(&self.mailbox).try_idle();
                assert_eq!(idle, self.model.is_empty());
                self.idle |= idle;
            }
            Step::Shrink => {
                assert_eq!(Consumer(&self.mailbox).shrink(), self.model.is_empty());
            }
            Step::Release => {
                assert_eq!(Consumer(&self.mailbox).release(), self.model.is_empty());
            }
            Step::Close => {
                assert_eq!(self.mailbox.close(), !self.closed);
                self.closed = true;
            }
        }
        assert_eq!(self.mailbox.len(), self.model.len() + self.held);
        assert_eq!(self.mailbox.is_idle(), self.idle);
        assert_eq!(self.mailbox.is_closed(), self.closed);
    }

    /// The remaining values are dropped with the mailbox, each once.
    pub(crate) fn finish(self) {
        let Self { mailbox, model, .. } = self;
        drop(mailbox);
        assert!(model.iter().flatten().all(|value| Rc::strong_count(value) == 1));
    }
}
