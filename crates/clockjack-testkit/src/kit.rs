//! One actor, called by hand.

mod host;

use alloc::{boxed::Box, collections::VecDeque, rc::Rc};
use core::{any::type_name, cell::RefCell, fmt, panic::AssertUnwindSafe};
use std::panic::{catch_unwind, resume_unwind};

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, IntoProps, Key, Mailbox, Next, Props, Signal,
    testing::{Effect, Puppet, TimerHandle},
};

use self::host::{Host, Work};
use crate::ManualTime;

/// One actor that is called by hand, and what it does by its context.
///
/// The actor handles what the test [runs](Self::run), and nothing else: what it tells itself waits
/// in the [inbox](Self::take_inbox), timers fire when they are [sent](Self::send), and signals,
/// those of children and watched actors included, come by [`signal`](Self::signal). What it does by
/// its context is real, and written down as an [`Effect`]: so others are told what it tells them,
/// children are started and run, and a job of the scheduler is done when the
/// [time](Self::time) for it comes. Futures that it starts are written down, and are not run.
///
/// A failure or a panic of the actor is one of the test; [`try_run`](Self::try_run) gives it.
/// Strategies are not asked: for them, and for whatever needs more than one actor, there is
/// [`ManualTime`].
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Actor, Context, Failure, Next};
/// use clockjack_testkit::{ActorTestKit, Effect, TimerMode};
/// use core::time::Duration;
///
/// #[derive(Default)]
/// struct Retry {
///     attempts: u32,
/// }
///
/// impl Actor for Retry {
///     type Msg = &'static str;
///
///     fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Self::Msg) -> Result<Next, Failure> {
///         if msg == "failed" {
///             cx.timers().single("again", Duration::from_secs(1), "try")?;
///         } else {
///             self.attempts += 1;
///         }
///         Ok(Next::Stay)
///     }
/// }
///
/// let mut kit = ActorTestKit::new(Retry::default);
/// kit.run("failed");
/// kit.expect_effect(&Effect::TimerScheduled {
///     key: "again".into(),
///     delay: Duration::from_secs(1),
///     mode: TimerMode::Single,
///     overriding: false,
/// });
/// let timer = kit.timer("again").expect("it was set");
/// assert!(kit.send(timer));
/// assert_eq!(kit.actor().attempts, 1);
/// assert!(!kit.send(timer), "it fires once");
/// ```
pub struct ActorTestKit<A: Actor> {
    /// Away only while it is called.
    puppet: Option<Puppet<A>>,
    effects: VecDeque<Effect>,
    inbox: Rc<RefCell<VecDeque<A::Msg>>>,
    work: Rc<Work<A::Msg>>,
    host: ActorRef<A::Msg>,
    next: Next,
    time: ManualTime,
}

impl<A: Actor> ActorTestKit<A> {
    /// Makes the actor, as `/user/kit`, and lets it start.
    ///
    /// # Panics
    ///
    /// If it fails to.
    pub fn new<P: IntoProps<Actor = A>>(props: P) -> Self {
        Self::named("kit", props)
    }

    /// As [`new`](Self::new), by a name of one's own.
    ///
    /// # Panics
    ///
    /// As there; also if that is no name.
    pub fn named<P: IntoProps<Actor = A>>(name: &str, props: P) -> Self {
        let time = ManualTime::start();
        let (work, inbox) = (Rc::<Work<A::Msg>>::default(), Rc::default());
        let (its_work, its_inbox) = (Rc::clone(&work), Rc::clone(&inbox));
        let host = Props::new(move || Host::new(Rc::clone(&its_work), Rc::clone(&its_inbox)));
        let host = time.spawn(name, host.mailbox(Mailbox::unbounded()));
        time.settle();
        let puppet = Some(Puppet::new(props));
        let effects = VecDeque::new();
        let mut this = Self { puppet, effects, inbox, work, host, next: Next::Stay, time };
        let started = this.call(Puppet::start);
        this.conclude("start", started);
        this
    }

    /// Lets the actor handle a message, and then those that it takes back from its stash.
    ///
    /// # Panics
    ///
    /// If it fails, panics, or has stopped before.
    #[track_caller]
    pub fn run(&mut self, msg: A::Msg) {
        let result = self.try_run(msg);
        self.conclude("message", result);
    }

    /// As [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// The failure of the actor, which goes on as if nothing had been.
    ///
    /// # Panics
    ///
    /// If it panics, or has stopped before.
    #[track_caller]
    pub fn try_run(&mut self, msg: A::Msg) -> Result<Next, Failure> {
        self.call(|puppet, cx| puppet.receive(cx, msg))
    }

    /// Lets the actor handle a signal. The end of an actor that it watches by a message of its own
    /// is that message.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run); also if it leaves the end of an actor unhandled.
    #[track_caller]
    pub fn signal(&mut self, signal: Signal) {
        let result = self.try_signal(signal);
        self.conclude("signal", result);
    }

    /// As [`signal`](Self::signal).
    ///
    /// # Errors
    ///
    /// As [`try_run`](Self::try_run).
    ///
    /// # Panics
    ///
    /// As there.
    #[track_caller]
    pub fn try_signal(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.call(|puppet, cx| puppet.signal(cx, signal))
    }

    /// The timer that is set by this key, to be [sent](Self::send).
    pub fn timer(&self, key: impl Into<Key>) -> Option<TimerHandle> {
        self.puppet().timer(key.into())
    }

    /// Lets the actor handle the message of a timer. False, and nothing happens, if that timer has
    /// fired for the last time, was cancelled, or another one is in its place.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn send(&mut self, timer: TimerHandle) -> bool {
        let puppet = self.puppet.as_mut().expect("it is away only while it is called");
        let Some(msg) = puppet.fire(timer) else { return false };
        self.run(msg);
        true
    }

    /// The actor.
    #[must_use]
    pub fn actor(&self) -> &A {
        self.puppet().actor()
    }

    /// The actor, to be put in a state.
    pub fn actor_mut(&mut self) -> &mut A {
        self.puppet.as_mut().expect("it is away only while it is called").actor_mut()
    }

    /// The address of the actor: what is sent there comes to its inbox.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<A::Msg> {
        self.host.clone()
    }

    /// What the actor has returned last.
    pub fn last(&self) -> Next {
        self.next
    }

    /// Whether it has stopped itself.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.next == Next::Stop
    }

    /// Takes the effects so far, the oldest first.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.effects.drain(..).collect()
    }

    /// The oldest effect that was not looked at yet is this one.
    ///
    /// # Panics
    ///
    /// If it is another one, or there is none.
    #[track_caller]
    pub fn expect_effect(&mut self, expected: &Effect) {
        match self.effects.pop_front() {
            Some(effect) if effect == *expected => {}
            Some(effect) => panic!(
                "{}: expected {expected:?}, got {effect:?}; then {:?}",
                self.host, self.effects
            ),
            None => panic!("{}: expected {expected:?}, but there are no more effects", self.host),
        }
    }

    /// There are no more effects.
    ///
    /// # Panics
    ///
    /// If there are.
    #[track_caller]
    pub fn expect_no_effects(&self) {
        let Self { effects, host, .. } = self;
        assert!(effects.is_empty(), "{host}: expected no effects, got {effects:?}");
    }

    /// Takes what has come to the actor's address.
    pub fn take_inbox(&mut self) -> Vec<A::Msg> {
        self.time.settle();
        self.inbox.borrow_mut().drain(..).collect()
    }

    /// Lets the actor handle the oldest message that has come to its address; false if there is
    /// none.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn run_one(&mut self) -> bool {
        self.time.settle();
        let msg = self.inbox.borrow_mut().pop_front();
        let is_some = msg.is_some();
        if let Some(msg) = msg {
            self.run(msg);
        }
        is_some
    }

    /// The system around the actor, for probes, and for jobs that are to come due.
    #[must_use]
    pub fn time(&self) -> &ManualTime {
        &self.time
    }

    fn puppet(&self) -> &Puppet<A> {
        self.puppet.as_ref().expect("it is away only while it is called")
    }

    /// Calls the actor in a turn of its host.
    #[track_caller]
    fn call(
        &mut self,
        call: impl FnOnce(&mut Puppet<A>, &mut Context<'_, Host<A::Msg>>) -> Result<Next, Failure>
        + 'static,
    ) -> Result<Next, Failure> {
        assert!(!self.is_stopped(), "{}: it has stopped, and handles nothing more", self.host);
        let mut puppet = self.puppet.take().expect("it is away only while it is called");
        let back = Rc::new(RefCell::new(None));
        let out = Rc::clone(&back);
        self.work.begin(Box::new(move |cx| {
            let result = catch_unwind(AssertUnwindSafe(|| call(&mut puppet, cx)));
            *out.borrow_mut() = Some((puppet, result));
        }));
        self.time.settle();
        let (mut puppet, result) = back.take().expect("its host has had a turn");
        self.effects.extend(puppet.take_effects());
        self.puppet = Some(puppet);
        let result = result.unwrap_or_else(|payload| resume_unwind(payload));
        if let Ok(next) = &result {
            self.next = *next;
        }
        result
    }

    #[track_caller]
    fn conclude(&self, what: &str, result: Result<Next, Failure>) {
        if let Err(failure) = result {
            panic!("{}: the {what} has failed {}: {failure}", self.host, type_name::<A>());
        }
    }
}

impl<A: Actor> fmt::Debug for ActorTestKit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ActorTestKit");
        f.field("host", &self.host).field("effects", &self.effects).finish_non_exhaustive()
    }
}
