//! An actor whose messages the test looks at.

use alloc::{collections::VecDeque, rc::Rc};
use core::{any::type_name, cell::RefCell, fmt, time::Duration};

use clockjack_actor::{Actor, ActorRef, Context, Failure, Mailbox, Next, Props};

use crate::manual_time::{Inner, ManualTime};

/// How many of the messages that are queued a panic shows.
const SHOWN_MAX: usize = 10;

/// An actor that keeps what it is told, for the test to look at.
///
/// All expectations [settle](ManualTime::settle) first. Those whose name has `within` or `for` also
/// let time pass; the others do not. They are about the oldest messages that were not looked at
/// yet.
///
/// # Panics
///
/// If what is expected does not hold. The panic names the probe, what was expected, and what is
/// queued; messages themselves only where they can be shown: see [`showing`](Self::showing).
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

/// What [`TestProbe::fish`] is to do with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fish {
    /// It is kept; the next one.
    Continue,
    /// It is kept, and the last.
    Complete,
    /// It is wrong, for this reason.
    Fail(String),
}

impl<M: 'static> TestProbe<M> {
    pub(crate) fn start(time: &ManualTime, name: &str) -> Self {
        let queue = Rc::<RefCell<VecDeque<M>>>::default();
        let mine = Rc::clone(&queue);
        let props = Props::new(move || Keeper(Rc::clone(&mine))).mailbox(Mailbox::unbounded());
        let to = time.spawn(name, props);
        Self { time: Rc::clone(time.inner()), to, queue, show: None }
    }

    /// Its address.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<M> {
        self.to.clone()
    }

    /// The next message.
    #[track_caller]
    pub fn expect(&self) -> M {
        self.expect_within(Duration::ZERO)
    }

    /// The next message; if it has not come yet, time passes until it comes, or this much is over.
    #[track_caller]
    pub fn expect_within(&self, within: Duration) -> M {
        match self.next(self.time.after(within)) {
            Some(msg) => msg,
            None => self.missed("a message", within),
        }
    }

    /// The next message, which is to be this one.
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
            self.missed(&format!("{expected:?}"), within)
        };
        if came != expected {
            let what = format!("{expected:?}, got {came:?}");
            self.fail(&what, Some(|msg| format!("{msg:?}")));
        }
    }

    /// Nothing has come.
    #[track_caller]
    pub fn expect_none(&self) {
        self.expect_none_for(Duration::ZERO);
    }

    /// Nothing has come, and nothing comes for this long. If something does, time stands there.
    #[track_caller]
    pub fn expect_none_for(&self, long: Duration) {
        let until = self.time.after(long);
        loop {
            let is_more = self.run_to_next(until);
            if !self.queue.borrow().is_empty() {
                self.fail("no message", self.show);
            }
            if !is_more {
                return;
            }
        }
    }

    /// That actor has stopped, now or before.
    #[track_caller]
    pub fn expect_terminated<N: 'static>(&self, actor: &ActorRef<N>) {
        self.expect_terminated_within(actor, Duration::ZERO);
    }

    /// As [`expect_terminated`](Self::expect_terminated); time passes until it has, or this much is
    /// over.
    #[track_caller]
    pub fn expect_terminated_within<N: 'static>(&self, actor: &ActorRef<N>, within: Duration) {
        let until = self.time.after(within);
        while !actor.is_stopped() {
            if !self.run_to_next(until) && !actor.is_stopped() {
                self.missed(&format!("the end of {actor}"), within);
            }
        }
    }

    /// The next `n` messages.
    #[track_caller]
    pub fn receive_n(&self, n: usize) -> Vec<M> {
        self.receive_n_within(n, Duration::ZERO)
    }

    /// As [`receive_n`](Self::receive_n); time passes until there are as many, or this much is
    /// over.
    #[track_caller]
    pub fn receive_n_within(&self, n: usize, within: Duration) -> Vec<M> {
        let until = self.time.after(within);
        let mut all = Vec::new();
        while all.len() < n {
            let Some(msg) = self.next(until) else {
                self.missed(&format!("{n} messages, got {}", all.len()), within)
            };
            all.push(msg);
        }
        all
    }

    /// Takes messages until `look` has seen enough, and gives all of them.
    #[track_caller]
    pub fn fish(&self, look: impl FnMut(&M) -> Fish) -> Vec<M> {
        self.fish_within(Duration::ZERO, look)
    }

    /// As [`fish`](Self::fish); time passes until it has, or this much is over.
    #[track_caller]
    pub fn fish_within(&self, within: Duration, mut look: impl FnMut(&M) -> Fish) -> Vec<M> {
        let until = self.time.after(within);
        let mut caught = Vec::new();
        loop {
            let Some(msg) = self.next(until) else {
                self.missed(&format!("more than {} messages to fish", caught.len()), within)
            };
            let verdict = look(&msg);
            caught.push(msg);
            match verdict {
                Fish::Continue => {}
                Fish::Complete => return caught,
                Fish::Fail(why) => {
                    self.fail(&format!("other messages to fish: {why}"), self.show);
                }
            }
        }
    }

    /// How many messages have come that were not looked at yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.time.settle();
        self.queue.borrow().len()
    }

    /// The next message, by `until` at the latest.
    fn next(&self, until: u128) -> Option<M> {
        self.time.settle();
        loop {
            // Not in the condition: what is run here may be told to this probe.
            let msg = self.queue.borrow_mut().pop_front();
            if msg.is_some() {
                return msg;
            }
            if !self.run_to_next(until) {
                return self.queue.borrow_mut().pop_front();
            }
        }
    }

    /// Lets time pass until something is due, at most until `until`; whether there is more.
    fn run_to_next(&self, until: u128) -> bool {
        self.time.jump(until)
    }

    #[track_caller]
    fn missed(&self, expected: &str, within: Duration) -> ! {
        if within.is_zero() {
            self.fail(&format!("{expected}, but nothing more came"), self.show)
        } else {
            self.fail(&format!("{expected}, but nothing more came within {within:?}"), self.show)
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
    /// The same probe, which shows messages in its panics.
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

/// What stands behind the address.
struct Keeper<M>(Rc<RefCell<VecDeque<M>>>);

impl<M: 'static> Actor for Keeper<M> {
    type Msg = M;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        self.0.borrow_mut().push_back(msg);
        Ok(Next::Stay)
    }
}
