//! The list of those who wait for room in a mailbox; its protocol is that of the [parent](super).
#![expect(unsafe_code, reason = "the list of an actor stands in its front")]

use alloc::{boxed::Box, vec::Vec};
use core::{any::Any, ptr::NonNull, task::Waker};

use clockjack_sync::{
    lock::Lock,
    mail::{Bar, Permit},
    mutant,
};

use super::line::Line;
use crate::{base::WAITERS, envelope::Envelope, front::Front, props::Overflow};

/// A message that waits.
pub(crate) enum Letter<M> {
    /// As it is.
    Plain(M),
    /// What a mapped ref makes a message of, when there is room.
    Mapped(Box<dyn Unsent<M>>),
}

/// What a message is made of.
pub(crate) trait Unsent<M> {
    /// The message; once.
    fn make(&mut self) -> M;
    /// What it was to be made of, into an `Option` of that type.
    fn give_back(&mut self, back: &mut dyn Any);
}

/// What was to be sent, untouched.
struct Whole<N>(Option<N>);

impl<N: 'static> Unsent<N> for Whole<N> {
    fn make(&mut self) -> N {
        self.0.take().expect("it is made once")
    }

    fn give_back(&mut self, back: &mut dyn Any) {
        put_back(self.0.take(), back);
    }
}

/// Goes through the function of a mapped ref.
pub(crate) struct Through<N, M> {
    pub(crate) from: Box<dyn Unsent<N>>,
    pub(crate) f: fn(N) -> M,
}

impl<N, M> Unsent<M> for Through<N, M> {
    fn make(&mut self) -> M {
        (self.f)(self.from.make())
    }

    fn give_back(&mut self, back: &mut dyn Any) {
        self.from.give_back(back);
    }
}

fn put_back<N: 'static>(what: Option<N>, back: &mut dyn Any) {
    if let Some(back) = back.downcast_mut::<Option<N>>() {
        *back = what;
    }
}

impl<M: 'static> Letter<M> {
    /// To be made when there is room.
    pub(crate) fn unsent(msg: M) -> Box<dyn Unsent<M>> {
        Box::new(Whole(Some(msg)))
    }

    pub(crate) fn boxed(self) -> Box<dyn Unsent<M>> {
        match self {
            Self::Plain(msg) => Self::unsent(msg),
            Self::Mapped(unsent) => unsent,
        }
    }

    fn make(self) -> M {
        match self {
            Self::Plain(msg) => msg,
            Self::Mapped(mut unsent) => unsent.make(),
        }
    }

    fn give_back(self, back: &mut dyn Any) {
        match self {
            Self::Plain(msg) => put_back(Some(msg), back),
            Self::Mapped(mut unsent) => unsent.give_back(back),
        }
    }
}

/// What became of who lined up. What was refused is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lined {
    /// There was room after all.
    Sent,
    /// It waits, with this ticket.
    Waits(u64),
    /// The mailbox is one that nobody waits for.
    Full,
    /// The actor takes no more.
    Stopped,
}

/// Those who wait; see the [parent](super).
pub(crate) struct Waiters<M: 'static> {
    /// Where this hangs, so it is there as long as this is.
    front: NonNull<Front<M>>,
    list: Lock<List<M>>,
}

struct List<M> {
    next: u64,
    waiting: Line<Waiting<M>>,
    /// Given up on another thread, to be dropped by the runner.
    withdrawn: Vec<Letter<M>>,
    is_closed: bool,
}

struct Waiting<M> {
    letter: Letter<M>,
    waker: Option<Waker>,
    /// Whether it is the request of an ask, for which nobody polls here.
    is_request: bool,
}

/// The duty to wake the cell.
struct Duty<'w>(&'w dyn Fn());

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// What the lists of all types do for who has a ticket.
pub(crate) trait WaitList {
    /// Whether it still waits; then `waker` will be woken. If it does not and was not sent, it is
    /// given back.
    fn poll(&self, ticket: u64, waker: &Waker, back: &mut dyn Any) -> bool;
    /// Takes it out and gives it back, if it was not sent.
    fn give_up(&self, ticket: u64, back: &mut dyn Any);
    /// Takes a request out and drops it, here or, if it must not be dropped elsewhere, by the
    /// runner, whom the caller wakes.
    fn withdraw(&self, ticket: u64, is_local: bool);
    /// The list of the type.
    fn as_any(&self) -> &dyn Any;
}

/// Room for a message, and what that is to be made of.
type Unmade<'m, M> = (Permit<'m, Envelope<M>>, Box<dyn Unsent<M>>);

/// A message that was let in.
pub(crate) struct Admitted<'m, M> {
    /// Room that was taken for a message that is to be made first.
    pub(crate) unmade: Option<Unmade<'m, M>>,
    /// Who is to be told.
    pub(crate) waker: Option<Waker>,
}

/// What is left when a list is closed.
pub(crate) struct Leftover<M> {
    pub(crate) requests: Vec<Letter<M>>,
    pub(crate) wakers: Vec<Waker>,
}

impl<M: 'static> Waiters<M> {
    /// # Safety
    ///
    /// It lives no longer than the front, which stays where it is.
    pub(crate) unsafe fn new(front: &Front<M>) -> Self {
        let list = List { next: 1, waiting: Line::new(), withdrawn: Vec::new(), is_closed: false };
        Self { front: NonNull::from(front), list: Lock::new(list) }
    }

    fn front(&self) -> &Front<M> {
        // SAFETY: by the contract of `new`.
        unsafe { self.front.as_ref() }
    }

    /// Rule 1; `wake` wakes the cell, and `queue` queues it if a claim has ended its sleep.
    pub(crate) fn line_up(
        &self,
        letter: Letter<M>,
        is_request: bool,
        back: &mut dyn Any,
        wake: &dyn Fn(),
        queue: &dyn Fn(),
    ) -> Lined {
        if self.front().core.overflow != Overflow::Fail {
            letter.give_back(back);
            return Lined::Full;
        }
        let mut letter = Some(letter);
        loop {
            let (bar, ticket) = self.list.with(|list| self.enter(list, &mut letter, is_request));
            match (bar, letter.take()) {
                (Bar::Barred, _) => {
                    wake();
                    return Lined::Waits(ticket);
                }
                (Bar::HasRoom, Some(unsent)) => match self.front().mail.claim() {
                    Ok(permit) => {
                        // Whoever has the permit has the duty, also if the function panics.
                        let duty = permit.wakes().then(|| Duty(queue));
                        let _ = permit.write(Envelope::new(unsent.make()));
                        drop(duty);
                        return Lined::Sent;
                    }
                    Err(_) => letter = Some(unsent),
                },
                (_, unsent) => {
                    if let Some(unsent) = unsent {
                        unsent.give_back(back);
                    }
                    return Lined::Stopped;
                }
            }
        }
    }

    fn enter(
        &self,
        list: &mut List<M>,
        letter: &mut Option<Letter<M>>,
        is_request: bool,
    ) -> (Bar, u64) {
        let bar = self.front().mail.bar();
        let ticket = list.next;
        if bar == Bar::Barred
            && let Some(letter) = letter.take()
        {
            list.next += 1;
            list.waiting.push(ticket, Waiting { letter, waker: None, is_request });
            self.front().core.raise(WAITERS);
        }
        (bar, ticket)
    }

    /// Rule 2; called whenever somebody has left the list.
    fn settle(&self, list: &List<M>) {
        if !list.waiting.is_empty() {
            return;
        }
        if !mutant!("send-bar-stays") {
            self.front().mail.unbar();
        }
        if list.withdrawn.is_empty() {
            self.front().core.lower(WAITERS);
        }
    }

    fn take(&self, list: &mut List<M>, ticket: u64) -> Option<Waiting<M>> {
        let taken = list.waiting.remove(ticket);
        if taken.is_some() {
            self.settle(list);
        }
        taken
    }

    /// Rule 3, once. For the runner.
    pub(crate) fn admit(&self) -> Option<Admitted<'_, M>> {
        self.list.with(|list| {
            if list.waiting.is_empty() {
                self.settle(list);
                return None;
            }
            let permit = self.front().mail.claim_awaited().ok()?;
            let next = list.waiting.pop(!mutant!("send-newest-first"))?;
            let unmade = match next.letter {
                Letter::Plain(msg) => {
                    let _ = permit.write(Envelope::new(msg));
                    None
                }
                Letter::Mapped(unsent) => Some((permit, unsent)),
            };
            self.settle(list);
            Some(Admitted { unmade, waker: next.waker })
        })
    }

    /// What was given up elsewhere. For the runner.
    pub(crate) fn take_withdrawn(&self) -> Vec<Letter<M>> {
        self.list.with(|list| {
            let withdrawn = core::mem::take(&mut list.withdrawn);
            self.settle(list);
            withdrawn
        })
    }

    /// Rule 6. The mailbox is closed. For the runner.
    pub(crate) fn close(&self) -> Leftover<M> {
        self.list.with(|list| {
            list.is_closed = true;
            let mut requests = core::mem::take(&mut list.withdrawn);
            let (mut of_asks, mut wakers) = (Vec::new(), Vec::new());
            for (ticket, one) in list.waiting.iter_mut() {
                if one.is_request || mutant!("send-refused-as-sent") {
                    of_asks.push(ticket);
                } else {
                    wakers.extend(one.waker.take());
                }
            }
            let waiting = &mut list.waiting;
            requests.extend(
                of_asks.into_iter().filter_map(|ticket| Some(waiting.remove(ticket)?.letter)),
            );
            self.front().mail.unbar();
            self.front().core.lower(WAITERS);
            Leftover { requests, wakers }
        })
    }
}

impl<M: 'static> WaitList for Waiters<M> {
    fn poll(&self, ticket: u64, waker: &Waker, back: &mut dyn Any) -> bool {
        let mut spare = Some(waker.clone());
        let left = self.list.with(|list| {
            if list.is_closed {
                return Some(list.waiting.remove(ticket));
            }
            let Some(waiting) = list.waiting.get_mut(ticket) else { return Some(None) };
            if !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                core::mem::swap(&mut waiting.waker, &mut spare);
            }
            None
        });
        drop(spare);
        match left {
            None => true,
            Some(left) => {
                if let Some(waiting) = left {
                    waiting.letter.give_back(back);
                }
                false
            }
        }
    }

    fn give_up(&self, ticket: u64, back: &mut dyn Any) {
        let taken = self.list.with(|list| {
            if list.is_closed { list.waiting.remove(ticket) } else { self.take(list, ticket) }
        });
        if let Some(waiting) = taken {
            waiting.letter.give_back(back);
        }
    }

    fn withdraw(&self, ticket: u64, is_local: bool) {
        let dropped = self.list.with(|list| {
            let taken = self.take(list, ticket)?;
            if !is_local {
                return Some(taken);
            }
            list.withdrawn.push(taken.letter);
            self.front().core.raise(WAITERS);
            None
        });
        drop(dropped);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<M: 'static> Drop for Waiters<M> {
    /// What is here belongs to somebody who has forgotten it. The last ref to an actor may go on
    /// any thread, so it is not known whether it may be dropped here.
    fn drop(&mut self) {
        let list = self.list.get_mut();
        // Only the letters: the memory of the line is ours.
        while let Some(one) = list.waiting.pop(true) {
            core::mem::forget(one.letter);
        }
        core::mem::take(&mut list.withdrawn).into_iter().for_each(core::mem::forget);
    }
}
