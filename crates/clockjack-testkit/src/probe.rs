//! [`TestProbe`]: an actor that records the messages it receives.

use core::{any::type_name, cell::RefCell, fmt, time::Duration};
use std::{collections::VecDeque, rc::Rc};

use clockjack_actor::{Actor, ActorRef, Context, Failure, Mailbox, Next, Props};

use crate::manual_time::{Inner, ManualTime};

/// The most queued messages that a panic shows.
const SHOWN_MAX: usize = 10;

/// An actor that queues the messages it receives, for the test to check.
///
/// All expectations [settle](ManualTime::settle) the system first. Those with `within` or `for` in
/// their names also let time pass; the others do not. They take the oldest messages from the queue.
///
/// # Panics
///
/// If the expectation is not met. The message contains the path of the probe, the expectation, and
/// the queue; the messages themselves only if they can be shown: see [`showing`](Self::showing).
///
/// # Examples
///
/// ```
/// use clockjack_testkit::{Fish, ManualTime};
///
/// let time = ManualTime::start();
/// let out = time.probe::<u32>().showing();
/// for n in 0..5 {
///     out.actor_ref().tell(n).expect("it is there");
/// }
/// assert_eq!(out.expect(), 0);
/// out.expect_eq(1);
/// let caught = out.fish(|n| if *n == 3 { Fish::Complete } else { Fish::Continue });
/// assert_eq!(caught, [2, 3]);
/// assert_eq!(out.receive_n(1), [4]);
/// out.expect_none();
/// ```
pub struct TestProbe<M: 'static> {
    time: Rc<Inner>,
    to: ActorRef<M>,
    queue: Rc<RefCell<VecDeque<M>>>,
    show: Option<fn(&M) -> String>,
}

/// What [`TestProbe::fish`] does with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fish {
    /// Keep the message and continue.
    Continue,
    /// Keep the message and stop.
    Complete,
    /// Fail, for this reason.
    Fail(String),
}

impl<M: 'static> TestProbe<M> {
    pub(crate) fn start(time: &ManualTime, name: &str) -> Self {
        let queue = Rc::<RefCell<VecDeque<M>>>::default();
        let mine = Rc::clone(&queue);
        let props = Props::new(move || QueueActor(Rc::clone(&mine))).mailbox(Mailbox::unbounded());
        let to = time.spawn(name, props);
        Self { time: Rc::clone(time.inner()), to, queue, show: None }
    }

    /// A reference to the probe.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<M> {
        self.to.clone()
    }

    /// The next message.
    #[track_caller]
    pub fn expect(&self) -> M {
        self.expect_within(Duration::ZERO)
    }

    /// The next message. If there is none yet, time passes until one arrives, but not longer than
    /// `within`.
    #[track_caller]
    pub fn expect_within(&self, within: Duration) -> M {
        match self.next(self.time.after(within)) {
            Some(msg) => msg,
            None => self.fail_missing("a message", within),
        }
    }

    /// Expects that the next message is this one.
    #[track_caller]
    pub fn expect_eq(&self, expected: M)
    where
        M: PartialEq + fmt::Debug,
    {
        self.expect_eq_within(expected, Duration::ZERO);
    }

    /// As [`expect_eq`](Self::expect_eq); time passes as for
    /// [`expect_within`](Self::expect_within).
    #[track_caller]
    pub fn expect_eq_within(&self, expected: M, within: Duration)
    where
        M: PartialEq + fmt::Debug,
    {
        let Some(came) = self.next(self.time.after(within)) else {
            self.fail_missing(&format!("{expected:?}"), within)
        };
        if came != expected {
            let what = format!("{expected:?}, got {came:?}");
            self.fail(&what, Some(|msg| format!("{msg:?}")));
        }
    }

    /// Expects that there is no message.
    #[track_caller]
    pub fn expect_none(&self) {
        self.expect_none_for(Duration::ZERO);
    }

    /// Expects that there is no message, and that none arrives within this time. If one arrives,
    /// the time stays at its arrival.
    #[track_caller]
    pub fn expect_none_for(&self, long: Duration) {
        let until = self.time.after(long);
        loop {
            let is_more = self.advance_to_next(until);
            if !self.queue.borrow().is_empty() {
                self.fail("no message", self.show);
            }
            if !is_more {
                return;
            }
        }
    }

    /// Expects that the actor has stopped.
    #[track_caller]
    pub fn expect_terminated<N: 'static>(&self, actor: &ActorRef<N>) {
        self.expect_terminated_within(actor, Duration::ZERO);
    }

    /// As [`expect_terminated`](Self::expect_terminated); time passes until the actor has stopped,
    /// but not longer than `within`.
    #[track_caller]
    pub fn expect_terminated_within<N: 'static>(&self, actor: &ActorRef<N>, within: Duration) {
        let until = self.time.after(within);
        while !actor.is_stopped() {
            if !self.advance_to_next(until) && !actor.is_stopped() {
                self.fail_missing(&format!("{actor} to stop"), within);
            }
        }
    }

    /// The next `n` messages.
    #[track_caller]
    pub fn receive_n(&self, n: usize) -> Vec<M> {
        self.receive_n_within(n, Duration::ZERO)
    }

    /// As [`receive_n`](Self::receive_n); time passes until there are enough messages, but not
    /// longer than `within`.
    #[track_caller]
    pub fn receive_n_within(&self, n: usize, within: Duration) -> Vec<M> {
        let until = self.time.after(within);
        let mut all = Vec::new();
        while all.len() < n {
            let Some(msg) = self.next(until) else {
                self.fail_missing(&format!("{n} messages, got {}", all.len()), within)
            };
            all.push(msg);
        }
        all
    }

    /// Takes messages until `judge` returns [`Fish::Complete`], and returns all of them.
    #[track_caller]
    pub fn fish(&self, judge: impl FnMut(&M) -> Fish) -> Vec<M> {
        self.fish_within(Duration::ZERO, judge)
    }

    /// As [`fish`](Self::fish); time passes until `judge` is satisfied, but not longer than
    /// `within`.
    #[track_caller]
    pub fn fish_within(&self, within: Duration, mut judge: impl FnMut(&M) -> Fish) -> Vec<M> {
        let until = self.time.after(within);
        let mut caught = Vec::new();
        loop {
            let Some(msg) = self.next(until) else {
                self.fail_missing(&format!("more than {} messages to fish", caught.len()), within)
            };
            let verdict = judge(&msg);
            caught.push(msg);
            match verdict {
                Fish::Continue => {}
                Fish::Complete => return caught,
                Fish::Fail(why) => {
                    self.fail(&format!("matching messages to fish: {why}"), self.show);
                }
            }
        }
    }

    /// The number of queued messages.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.time.settle();
        self.queue.borrow().len()
    }

    /// The next message, if it arrives by `until`.
    fn next(&self, until: u128) -> Option<M> {
        self.time.settle();
        loop {
            // Not in the condition of the loop: the borrow of the queue has to end before actors
            // run, which may send to this probe.
            let msg = self.queue.borrow_mut().pop_front();
            if msg.is_some() {
                return msg;
            }
            if !self.advance_to_next(until) {
                return self.queue.borrow_mut().pop_front();
            }
        }
    }

    /// Lets time pass until something is due, at most until `until`. Returns whether there is more
    /// to come.
    fn advance_to_next(&self, until: u128) -> bool {
        self.time.jump(until)
    }

    #[track_caller]
    fn fail_missing(&self, expected: &str, within: Duration) -> ! {
        if within.is_zero() {
            self.fail(&format!("{expected}, but no further message came"), self.show)
        } else {
            self.fail(
                &format!("{expected}, but no further message came within {within:?}"),
                self.show,
            )
        }
    }

    #[track_caller]
    fn fail(&self, expected: &str, show: Option<fn(&M) -> String>) -> ! {
        let queue = self.queue.borrow();
        let queued = match show {
            _ if queue.is_empty() => String::from("nothing is queued"),
            None => format!("{} of {} queued", queue.len(), type_name::<M>()),
            Some(show) => {
                let shown: Vec<_> = queue.iter().take(SHOWN_MAX).map(show).collect();
                let more = queue.len().saturating_sub(SHOWN_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("queued: [{}]{more}", shown.join(", "))
            }
        };
        let (path, at) = (self.to.path(), self.time.elapsed());
        panic!("{path} at {at:?}: expected {expected}; {queued}");
    }
}

impl<M: fmt::Debug + 'static> TestProbe<M> {
    /// Makes the probe show messages in its panics.
    #[must_use]
    pub fn showing(self) -> Self {
        Self { show: Some(|msg| format!("{msg:?}")), ..self }
    }
}

impl<M: 'static> fmt::Debug for TestProbe<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProbe").field("to", &self.to).finish_non_exhaustive()
    }
}

/// The actor of the probe.
struct QueueActor<M>(Rc<RefCell<VecDeque<M>>>);

impl<M: 'static> Actor for QueueActor<M> {
    type Msg = M;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        self.0.borrow_mut().push_back(msg);
        Ok(Next::Stay)
    }
}
