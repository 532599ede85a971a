//! What the workers step: futures that pass tokens to each other and sleep, and processes that
//! count their messages.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    sync::Arc,
    vec::Vec,
};
use core::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::sync::{Mutex, MutexGuard};

use clockjack_exec::{
    Event, Events, Failure, Handle, Join, Payload, Process, ProcessRef, Sleep, StepOutput,
};

use crate::{
    fault::Class,
    law::Law,
    random::Stream,
    run::panic_as_told,
    stage::{Stage, open},
};

/// How many futures there may be at a time.
const CLERKS_MAX: usize = 200;

/// What is known of a future.
#[derive(Default)]
pub(super) struct Card {
    /// Tokens that it was woken for and has not seen.
    pub(super) tokens: u64,
    pub(super) waker: Option<Waker>,
    /// When its sleep is due, if it sleeps.
    pub(super) due: Option<u64>,
    is_busy: bool,
    pub(super) is_over: bool,
}

/// What is known of a process.
#[derive(Default)]
pub(super) struct Till {
    pub(super) sent: VecDeque<u64>,
    pub(super) n_sent: u64,
    pub(super) is_over: bool,
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) cards: Vec<Card>,
    pub(super) joins: BTreeMap<usize, Join<()>>,
    pub(super) tills: Vec<Till>,
    pub(super) refs: Vec<ProcessRef<u64>>,
    pub(super) n_spawned: u64,
    pub(super) n_ended: u64,
    /// What futures do is drawn here; none when they are to come to rest.
    pub(super) deeds: Option<Stream>,
}

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) stage: Stage,
    pub(super) handle: Handle,
    books: Arc<Mutex<Books>>,
}

impl Shared {
    pub(super) fn new(stage: &Stage, handle: Handle) -> Self {
        let books = Books { deeds: Some(stage.stream("deeds")), ..Books::default() };
        Self { stage: stage.clone(), handle, books: Arc::new(Mutex::new(books)) }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        open(&self.books)
    }

    /// Starts a future.
    pub(super) fn spawn(&self) {
        let index = {
            let mut books = self.books();
            if books.n_spawned - books.n_ended >= CLERKS_MAX as u64 {
                return;
            }
            books.cards.push(Card::default());
            books.n_spawned += 1;
            books.cards.len() - 1
        };
        self.stage.note("spawn", &[index as u64]);
        let clerk = Clerk { shared: self.clone(), index, sleep: None };
        let join = self.handle.spawn(clerk);
        if join.pid().is_none() {
            self.books().n_spawned -= 1;
            self.books().n_ended -= 1;
        }
        self.books().joins.insert(index, join);
    }

    /// Gives a future a token, and wakes it.
    pub(super) fn give(&self, to: usize) {
        let waker = {
            let mut books = self.books();
            let card = &mut books.cards[to];
            if card.is_over {
                return;
            }
            card.tokens += 1;
            card.waker.clone()
        };
        self.stage.note("give", &[to as u64]);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Starts a process.
    pub(super) fn submit(&self) {
        let index = {
            let mut books = self.books();
            books.tills.push(Till::default());
            books.n_spawned += 1;
            books.tills.len() - 1
        };
        match self.handle.submit(Cashier { shared: self.clone(), index }) {
            Ok(it) => self.books().refs.push(it),
            Err(refused) => {
                // Its drop counts it as one that has ended.
                drop(refused);
                self.stage.check(Law::M1, false, || format!("process {index} is refused"));
            }
        }
    }

    /// Sends a process its next number.
    pub(super) fn send(&self, to: usize) {
        let (it, number, is_over) = {
            let mut books = self.books();
            let Some(it) = books.refs.get(to).cloned() else { return };
            let till = &mut books.tills[to];
            till.n_sent += 1;
            (it, till.n_sent, till.is_over)
        };
        // Told before: it may be handled before the call returns.
        self.books().tills[to].sent.push_back(number);
        let sent = it.tell(number);
        let is_taken = sent.is_ok();
        self.stage.note("send", &[to as u64, number, u64::from(is_taken)]);
        if let Err(refused) = sent {
            let back = refused.into_inner();
            self.books().tills[to].sent.retain(|one| *one != number);
            self.stage.check(Law::M1, back == number, || format!("{back} came back"));
        }
        self.stage.check(Law::S2, !(is_over && is_taken), || format!("process {to} is over"));
    }
}

/// A future that waits for tokens, and sleeps at times.
struct Clerk {
    shared: Shared,
    index: usize,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for Clerk {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let index = self.index;
        let tokens = {
            let mut books = shared.books();
            let card = &mut books.cards[index];
            let (was_busy, is_over) = (core::mem::replace(&mut card.is_busy, true), card.is_over);
            card.waker = Some(cx.waker().clone());
            let tokens = core::mem::take(&mut card.tokens);
            drop(books);
            shared.stage.check(Law::X2, !was_busy && !is_over, || {
                format!("future {index} is polled: busy {was_busy}, over {is_over}")
            });
            tokens
        };
        shared.stage.note("poll", &[index as u64, tokens, shared.stage.now()]);
        let _visit = Visit(&shared, index);
        self.look_at_sleep(cx);
        for _ in 0..tokens {
            if self.deed(cx) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

struct Visit<'s>(&'s Shared, usize);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.books().cards[self.1].is_busy = false;
    }
}

impl Clerk {
    fn look_at_sleep(&mut self, cx: &mut Context<'_>) {
        let Some(sleep) = &mut self.sleep else { return };
        let Poll::Ready(slept) = sleep.as_mut().poll(cx) else { return };
        self.sleep = None;
        let due = self.shared.books().cards[self.index].due.take();
        let (now, index) = (self.shared.stage.now(), self.index);
        // A sleep that ends with its executor, or for want of room, says so.
        let is_fine = slept.is_err() || due.is_some_and(|due| now >= due);
        self.shared.stage.check(Law::T1, is_fine, || {
            format!("future {index} wakes at {now}, its sleep is for {due:?}")
        });
    }

    /// What is done for a token; whether the future is done, too.
    fn deed(&mut self, cx: &mut Context<'_>) -> bool {
        let shared = self.shared.clone();
        self.suffer();
        let drawn = {
            let mut books = shared.books();
            let n_cards = books.cards.len();
            books
                .deeds
                .as_mut()
                .map(|deeds| (deeds.below(20), deeds.index(n_cards), deeds.between(1, 400)))
        };
        let Some((choice, other, ticks)) = drawn else { return false };
        match choice {
            0..6 => shared.give(other),
            // To itself, in its own turn: the wake that is lost most easily.
            6..8 => shared.give(self.index),
            8 => shared.spawn(),
            9..14 => self.sleep_for(ticks, cx),
            14 => {
                self.sleep = None;
                shared.books().cards[self.index].due = None;
            }
            15 => {
                let n_tills = shared.books().tills.len().max(1);
                shared.send(other % n_tills);
            }
            16 if other % 4 == 0 => return true,
            _ => {}
        }
        false
    }

    fn sleep_for(&mut self, ticks: u64, cx: &mut Context<'_>) {
        let shared = &self.shared;
        let after = Duration::from_millis(ticks);
        let due = shared.stage.clock().raw() + ticks;
        let sleep = Box::pin(shared.handle.sleep(after));
        let found = sleep.deadline().map(|tick| tick.get());
        shared.stage.check(Law::T1, found == Some(due), || format!("{found:?}, not {due}"));
        shared.books().cards[self.index].due = Some(due);
        self.sleep = Some(sleep);
        self.look_at_sleep(cx);
    }

    fn suffer(&self) {
        let stage = &self.shared.stage;
        stage.may_dawdle();
        if stage.fault(Class::HandlerPanic).is_some() {
            panic_as_told();
        }
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        let (shared, index) = (&self.shared, self.index);
        let waker = {
            let mut books = shared.books();
            books.n_ended += 1;
            let card = &mut books.cards[index];
            card.tokens = 0;
            card.due = None;
            let was_over = core::mem::replace(&mut card.is_over, true);
            let waker = card.waker.take();
            drop(books);
            shared.stage.check(Law::X2, !was_over, || format!("future {index} is dropped twice"));
            waker
        };
        drop(waker);
        shared.stage.note("drop", &[index as u64]);
    }
}

/// A process that takes numbers, in order.
struct Cashier {
    shared: Shared,
    index: usize,
}

impl Process for Cashier {
    type Message = u64;

    fn step(&mut self, events: &mut Events<'_, u64>, out: &mut StepOutput) -> Result<(), Failure> {
        let Self { shared, index } = self;
        for event in events {
            match event {
                Event::Message(number) => {
                    let expected = shared.books().tills[*index].sent.pop_front();
                    shared.stage.note("take", &[*index as u64, number]);
                    shared.stage.check(Law::A2, expected == Some(number), || {
                        format!("process {index} takes {number}, expected {expected:?}")
                    });
                    if shared.stage.fault(Class::HandlerError).is_some() {
                        return Err(Failure::msg("as told"));
                    }
                }
                Event::Cancel { .. } => {
                    out.done(Payload::unit());
                    return Ok(());
                }
                _ => {}
            }
        }
        out.idle();
        Ok(())
    }
}

impl Drop for Cashier {
    fn drop(&mut self) {
        let mut books = self.shared.books();
        books.n_ended += 1;
        books.tills[self.index].is_over = true;
        drop(books);
        self.shared.stage.note("closed", &[self.index as u64]);
    }
}
