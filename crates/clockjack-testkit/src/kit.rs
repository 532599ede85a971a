//! [`ActorTestKit`]: calls one actor directly.

mod host;

use core::{any::type_name, cell::RefCell, fmt, panic::AssertUnwindSafe};
use std::{
    collections::VecDeque,
    panic::{catch_unwind, resume_unwind},
    rc::Rc,
};

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, IntoProps, Key, Mailbox, Next, Props, Signal,
    testing::{Effect, TestActor, TimerHandle},
};

use self::host::{Host, JobSlot};
use crate::ManualTime;

/// What a handler returns.
type Handled = Result<Next, Failure>;

/// Calls one actor directly, and records what it does through its context.
///
/// The actor handles what the test [runs](Self::run), and nothing else: messages that it sends to
/// itself wait in the [inbox](Self::take_inbox), timers fire when the test [sends](Self::send)
/// them, and signals, including those of children and watched actors, come from
/// [`signal`](Self::signal). What the actor does through its context really happens, and is
/// recorded as an [`Effect`]: other actors receive its messages, children are started and run, and
/// a scheduled job runs when its [time](Self::time) comes. Futures that the actor starts are
/// recorded, but not run.
///
/// A failure or a panic of the actor fails the test; [`try_run`](Self::try_run) returns the failure
/// instead. Strategies are not consulted: to test those, and everything that needs more than one
/// actor, use [`ManualTime`].
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
    /// `None` only while the actor is being called.
    test_actor: Option<TestActor<A>>,
    effects: VecDeque<Effect>,
    inbox: Rc<RefCell<VecDeque<A::Msg>>>,
    jobs: Rc<JobSlot<A::Msg>>,
    host: ActorRef<A::Msg>,
    next: Next,
    time: ManualTime,
}

impl<A: Actor> ActorTestKit<A> {
    /// Makes the actor, with the path `/user/kit`, and starts it.
    ///
    /// # Panics
    ///
    /// If the start fails.
    pub fn new<P: IntoProps<Actor = A>>(props: P) -> Self {
        Self::named("kit", props)
    }

    /// As [`new`](Self::new), with a custom name.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new); also if the name is invalid.
    pub fn named<P: IntoProps<Actor = A>>(name: &str, props: P) -> Self {
        let time = ManualTime::start();
        let (jobs, inbox) = (Rc::<JobSlot<A::Msg>>::default(), Rc::default());
        let (host_jobs, host_inbox) = (Rc::clone(&jobs), Rc::clone(&inbox));
        let host = Props::new(move || Host::new(Rc::clone(&host_jobs), Rc::clone(&host_inbox)));
        let host = time.spawn(name, host.mailbox(Mailbox::unbounded()));
        time.settle();
        let test_actor = Some(TestActor::new(props));
        let effects = VecDeque::new();
        let mut this = Self { test_actor, effects, inbox, jobs, host, next: Next::Stay, time };
        let started = this.call(TestActor::start);
        this.expect_ok("start", started);
        this
    }

    /// Calls the actor with a message, and then with the messages that it unstashes.
    ///
    /// # Panics
    ///
    /// If the actor fails, panics, or has stopped before.
    #[track_caller]
    pub fn run(&mut self, msg: A::Msg) {
        let result = self.try_run(msg);
        self.expect_ok("message", result);
    }

    /// As [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// The failure of the actor. The actor can be called again, as if it had not failed.
    ///
    /// # Panics
    ///
    /// If the actor panics, or has stopped before.
    #[track_caller]
    pub fn try_run(&mut self, msg: A::Msg) -> Result<Next, Failure> {
        self.call(|test_actor, cx| test_actor.receive(cx, msg))
    }

    /// Calls the actor with a signal. If the signal reports the termination of an actor that is
    /// watched with a message, the actor is called with that message instead.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run); also if the actor leaves the termination of a watched actor
    /// unhandled.
    #[track_caller]
    pub fn signal(&mut self, signal: Signal) {
        let result = self.try_signal(signal);
        self.expect_ok("signal", result);
    }

    /// As [`signal`](Self::signal).
    ///
    /// # Errors
    ///
    /// As [`try_run`](Self::try_run).
    ///
    /// # Panics
    ///
    /// As [`try_run`](Self::try_run).
    #[track_caller]
    pub fn try_signal(&mut self, signal: Signal) -> Result<Next, Failure> {
        self.call(|test_actor, cx| test_actor.signal(cx, signal))
    }

    /// The active timer with this key, to be [sent](Self::send).
    pub fn timer(&self, key: impl Into<Key>) -> Option<TimerHandle> {
        self.test_actor().timer(key.into())
    }

    /// Calls the actor with the message of a timer. Returns false, without effect, if the timer has
    /// fired for the last time, was cancelled, or was replaced.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    pub fn send(&mut self, timer: TimerHandle) -> bool {
        let test_actor = self.test_actor.as_mut().expect("absent only during a call");
        let Some(msg) = test_actor.fire(timer) else { return false };
        self.run(msg);
        true
    }

    /// The actor.
    #[must_use]
    pub fn actor(&self) -> &A {
        self.test_actor().actor()
    }

    /// The actor, for changes of its state.
    pub fn actor_mut(&mut self) -> &mut A {
        self.test_actor.as_mut().expect("absent only during a call").actor_mut()
    }

    /// A reference to the actor. Messages that are sent to it arrive in the inbox.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<A::Msg> {
        self.host.clone()
    }

    /// The last value that the actor returned.
    pub fn last(&self) -> Next {
        self.next
    }

    /// Whether the actor has stopped itself.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.next == Next::Stop
    }

    /// Takes the recorded effects, the oldest first.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.effects.drain(..).collect()
    }

    /// Takes the oldest effect and expects that it is this one.
    ///
    /// # Panics
    ///
    /// If the effect is another one, or if there is none.
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

    /// Expects that there are no more effects.
    ///
    /// # Panics
    ///
    /// If there are effects.
    #[track_caller]
    pub fn expect_no_effects(&self) {
        let Self { effects, host, .. } = self;
        assert!(effects.is_empty(), "{host}: expected no effects, got {effects:?}");
    }

    /// Takes the messages of the inbox.
    pub fn take_inbox(&mut self) -> Vec<A::Msg> {
        self.time.settle();
        self.inbox.borrow_mut().drain(..).collect()
    }

    /// Calls the actor with the oldest message of the inbox. Returns false if there is none.
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

    /// The system of the actor, for probes and for scheduled jobs.
    #[must_use]
    pub fn time(&self) -> &ManualTime {
        &self.time
    }

    fn test_actor(&self) -> &TestActor<A> {
        self.test_actor.as_ref().expect("absent only during a call")
    }

    /// Calls the actor within a poll of its host.
    #[track_caller]
    fn call(
        &mut self,
        call: impl FnOnce(&mut TestActor<A>, &mut Context<'_, Host<A::Msg>>) -> Handled + 'static,
    ) -> Result<Next, Failure> {
        assert!(
            !self.is_stopped(),
            "{}: the actor has stopped and handles nothing more",
            self.host
        );
        let mut test_actor = self.test_actor.take().expect("absent only during a call");
        let back = Rc::new(RefCell::new(None));
        let out = Rc::clone(&back);
        self.jobs.submit(Box::new(move |cx| {
            let result = catch_unwind(AssertUnwindSafe(|| call(&mut test_actor, cx)));
            *out.borrow_mut() = Some((test_actor, result));
        }));
        self.time.settle();
        let (mut test_actor, result) = back.take().expect("the host has run the job");
        self.effects.extend(test_actor.take_effects());
        self.test_actor = Some(test_actor);
        let result = result.unwrap_or_else(|payload| resume_unwind(payload));
        if let Ok(next) = &result {
            self.next = *next;
        }
        result
    }

    #[track_caller]
    fn expect_ok(&self, what: &str, result: Result<Next, Failure>) {
        if let Err(failure) = result {
            panic!("{}: the {what} failed in {}: {failure}", self.host, type_name::<A>());
        }
    }
}

impl<A: Actor> fmt::Debug for ActorTestKit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ActorTestKit");
        f.field("host", &self.host).field("effects", &self.effects).finish_non_exhaustive()
    }
}
