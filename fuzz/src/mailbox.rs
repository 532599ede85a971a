//! The mailbox, against a deque.
#![expect(unsafe_code, reason = "the consumer's side of a mailbox wants a promise")]

use std::{collections::VecDeque, rc::Rc};

use clockjack_sync::mail::{Mailbox, Pop};

use crate::input::Input;

const CAPACITIES: [usize; 8] = [1, 2, 3, 16, 17, 100, 130, 1000];

/// Pushes, claims, pops, holds, sleeps and closes. What is accepted comes out once and in order,
/// what is refused comes back, and who is to be woken is told.
pub fn mailbox(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let capacity = CAPACITIES[input.below(CAPACITIES.len())];
    // Positions wrap around soon, or late.
    let start = -isize::from(input.byte());
    let mut pair = Pair {
        mailbox: Mailbox::with_start(capacity, start),
        model: VecDeque::new(),
        n_held: 0,
        is_idle: false,
        is_closed: false,
        next: 0,
    };
    while !input.is_empty() {
        let times = 1 + input.below(40);
        match input.below(10) {
            0 | 1 => (0..times).for_each(|_| pair.push()),
            2 | 3 => (0..times).for_each(|_| pair.pop()),
            4 => (0..times).for_each(|_| pair.hold()),
            5 => pair.free(),
            6 => pair.claim(input.below(2) == 0),
            7 => pair.sleep(),
            8 => pair.give_back(input.below(2) == 0),
            // Seldom, for nothing is accepted any more.
            _ if times == 40 => pair.close(),
            _ => {}
        }
        pair.check();
    }
    // What is left is dropped with the box, each once.
    let Pair { mailbox, model, .. } = pair;
    drop(mailbox);
    assert!(model.iter().flatten().all(|value| Rc::strong_count(value) == 1));
}

/// A mailbox beside the deque that says what it should do. `None` is a claim that was given up.
struct Pair {
    mailbox: Mailbox<Rc<u32>>,
    model: VecDeque<Option<Rc<u32>>>,
    n_held: usize,
    is_idle: bool,
    is_closed: bool,
    next: u32,
}

impl Pair {
    fn room(&self) -> usize {
        self.mailbox.capacity() - self.model.len() - self.n_held
    }

    fn value(&mut self) -> Rc<u32> {
        self.next += 1;
        Rc::new(self.next)
    }

    fn entered(&mut self, wakes: bool, value: Option<Rc<u32>>) {
        assert_eq!(wakes, self.is_idle, "who sleeps is woken, and nobody else");
        self.is_idle = false;
        self.model.push_back(value);
    }

    fn push(&mut self) {
        let value = self.value();
        match self.mailbox.push(Rc::clone(&value)) {
            Ok(pushed) => {
                assert!(self.room() > 0 && !self.is_closed, "it should have been refused");
                self.entered(pushed.wake, Some(value));
            }
            Err(refused) => {
                assert_eq!(refused.is_closed(), self.is_closed);
                assert_eq!(refused.is_full(), !self.is_closed && self.room() == 0);
                assert_eq!(refused.into_inner(), value, "the refused value comes back");
            }
        }
    }

    fn claim(&mut self, is_written: bool) {
        let value = self.value();
        let Ok(permit) = self.mailbox.claim() else {
            assert!(self.is_closed || self.room() == 0, "it should have been let in");
            return;
        };
        if is_written {
            let wakes = permit.write(Rc::clone(&value)).wake;
            self.entered(wakes, Some(value));
        } else {
            let wakes = permit.cancel().wake;
            self.entered(wakes, None);
        }
    }

    /// What a pop should give; marks of claims that were given up go with it.
    fn expected(&mut self) -> Pop<Rc<u32>> {
        while let Some(front) = self.model.pop_front() {
            if let Some(value) = front {
                return Pop::Item(value);
            }
        }
        Pop::Empty
    }

    fn pop(&mut self) {
        let expected = self.expected();
        // SAFETY: there is no other consumer.
        assert_eq!(unsafe { self.mailbox.pop() }, expected);
    }

    fn hold(&mut self) {
        let expected = self.expected();
        // SAFETY: there is no other consumer.
        let popped = unsafe { self.mailbox.pop_held() };
        self.n_held += usize::from(popped != Pop::Empty);
        assert_eq!(popped, expected);
    }

    fn free(&mut self) {
        // SAFETY: there is no other consumer, and so many are held.
        unsafe { self.mailbox.free(self.n_held) };
        self.n_held = 0;
    }

    fn sleep(&mut self) {
        // SAFETY: there is no other consumer.
        let is_asleep = unsafe { self.mailbox.try_idle() };
        assert_eq!(is_asleep, self.model.is_empty());
        self.is_idle |= is_asleep;
    }

    fn give_back(&mut self, all: bool) {
        // SAFETY: there is no other consumer.
        let done = unsafe { if all { self.mailbox.release() } else { self.mailbox.shrink() } };
        assert_eq!(done, self.model.is_empty());
    }

    fn close(&mut self) {
        assert_eq!(self.mailbox.close(), !self.is_closed);
        self.is_closed = true;
    }

    fn check(&self) {
        assert_eq!(self.mailbox.len(), self.model.len() + self.n_held);
        assert_eq!(self.mailbox.is_idle(), self.is_idle);
        assert_eq!(self.mailbox.is_closed(), self.is_closed);
    }
}
