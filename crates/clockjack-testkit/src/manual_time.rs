//! [`ManualTime`]: an actor system in virtual time, run by the test.
//!
//! Everything runs on one thread. The test holds a [`ManualTime`], and its probes hold the same
//! system. Running the system borrows the [`RootContext`] mutably, so a handler that tries to run
//! the system is detected.

use core::{
    cell::{Cell, RefCell, RefMut},
    fmt,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    rc::{Rc, Weak},
    sync::Arc,
    task::Wake,
    thread,
};

use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, EventKinds, Failure, FailureInfo, IntoProps, Mailbox,
    MsgOf, Next, Props, RootContext, SpawnError, StartError, SystemBuilder, SystemEvent,
    TerminationReport, testing,
};
use clockjack_time::{ManualClock, MonotonicClock as _, Tick, TimerInstant};

use crate::{
    probe::TestProbe,
    toolbox::{ManualToolbox, RESOLUTION},
};

/// The default limit of rounds for a system that is never idle. A round is some dozens of steps,
/// each of some dozens of messages: seconds, if all of them are busy.
const ROUNDS_MAX: usize = 1_000;
/// The number of rounds that are sampled to find the busiest actors of such a system.
const ROUNDS_SAMPLED: usize = 16;
/// The number of busiest actors that the panic names.
const BUSIEST_SHOWN: usize = 5;
/// The most advances of the time for one future, or for one shutdown.
const JUMPS_MAX: usize = 100_000;
/// The most attempts to run something that is due and does not run.
const STALLS_MAX: usize = 1_000;
/// The name of the actor that collects failures.
const COLLECTOR: &str = "testkit-failures";

/// An actor system on this thread, with a clock that only the test advances. The clock has ticks of
/// a millisecond; shorter times add up.
///
/// # Drop
///
/// Terminates the system and runs it until it has terminated. Panics if an actor has not stopped in
/// time, or if a shutdown task did not succeed, unless the test is panicking already.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Next, Props};
/// use clockjack_testkit::ManualTime;
/// use core::time::Duration;
///
/// let time = ManualTime::start();
/// let out = time.probe::<Duration>();
/// let to = out.actor_ref();
/// let start = time.now();
/// let clerk = time.spawn("clerk", Props::from_fn(move |cx, ()| {
///     to.tell(cx.now().since(start))?;
///     Ok(Next::Stay)
/// }));
/// time.advance(Duration::from_secs(86_400));
/// clerk.tell(()).expect("it is there");
/// out.expect_eq(Duration::from_secs(86_400));
/// ```
pub struct ManualTime {
    inner: Rc<Inner>,
}

/// The state that a [`ManualTime`] and its probes share.
pub(crate) struct Inner {
    root: RefCell<RootContext>,
    system: ActorSystem,
    clock: Arc<ManualClock>,
    /// The time in nanoseconds; the clock has only the whole ticks of it.
    nanos: Cell<u128>,
    seed: u64,
    rounds_max: Cell<usize>,
    /// How often in a row something was due and nothing ran.
    n_stalls: Cell<usize>,
    n_probes: Cell<usize>,
    failures: Rc<RefCell<Vec<FailureInfo>>>,
    /// The systems that share the time with this one, including this one; empty if it is alone.
    pub(crate) group: RefCell<Vec<Weak<Inner>>>,
    /// A test has frozen the system: time passes, and it does not run.
    pub(crate) is_frozen: Cell<bool>,
}

impl ManualTime {
    /// Starts a system with default settings, in which messages are delivered in the order of
    /// sending.
    ///
    /// # Panics
    ///
    /// If the system does not start; so do all constructors.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(ActorSystem::builder("test"))
    }

    /// Starts a system with custom settings.
    #[must_use]
    pub fn start_with(builder: SystemBuilder) -> Self {
        Self::start_seeded(builder, 0)
    }

    /// Starts a system in which a seed decides which of the ready actors runs next; the same seed
    /// gives the same order. Seed 0 is the order in which the actors became ready. The order of the
    /// messages from one actor to another never changes.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::start_seeded(ActorSystem::builder("test"), seed)
    }

    /// As [`with_seed`](Self::with_seed), with custom settings.
    ///
    /// # Panics
    ///
    /// If the system does not start, because the settings contradict each other.
    #[must_use]
    pub fn start_seeded(builder: SystemBuilder, seed: u64) -> Self {
        let started = Self::try_start(builder, seed);
        started.unwrap_or_else(|error| panic!("ManualTime: the system does not start: {error}"))
    }

    fn try_start(builder: SystemBuilder, seed: u64) -> Result<Self, StartError> {
        let clock = Arc::new(ManualClock::new(RESOLUTION));
        let root = RootContext::new(ManualToolbox::new(Arc::clone(&clock), seed), builder)?;
        let system = root.system().clone();
        let inner = Inner {
            root: RefCell::new(root),
            system,
            clock,
            nanos: Cell::new(0),
            seed,
            rounds_max: Cell::new(ROUNDS_MAX),
            n_stalls: Cell::new(0),
            n_probes: Cell::new(0),
            failures: Rc::default(),
            group: RefCell::default(),
            is_frozen: Cell::new(false),
        };
        let this = Self { inner: Rc::new(inner) };
        let failures = Rc::clone(&this.inner.failures);
        let props = Props::new(move || Collector(Rc::clone(&failures)));
        let collector = this.spawn(COLLECTOR, props.mailbox(Mailbox::unbounded()));
        this.system().events().subscribe(EventKinds::FAILURE, collector);
        this.settle();
        Ok(this)
    }

    /// Starts an actor under `/user`; nothing needs to be `Send`. The actor runs when the system
    /// runs next.
    ///
    /// # Panics
    ///
    /// If the actor is refused; [`try_spawn`](Self::try_spawn) returns the error instead.
    pub fn spawn<P: IntoProps>(&self, name: &str, props: P) -> ActorRef<MsgOf<P>> {
        self.try_spawn(name, props).unwrap_or_else(|refused| {
            panic!("ManualTime: cannot start `{name}`: {}", refused.discard())
        })
    }

    /// As [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// As [`RootContext::spawn`].
    pub fn try_spawn<P: IntoProps>(
        &self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        self.inner.root("spawn").spawn(name, props)
    }

    /// Starts a probe with a generated name: `probe-1` and so on.
    #[must_use]
    pub fn probe<M: 'static>(&self) -> TestProbe<M> {
        let n = self.inner.n_probes.get() + 1;
        self.inner.n_probes.set(n);
        self.probe_named(&format!("probe-{n}"))
    }

    /// Starts a probe with this name.
    ///
    /// # Panics
    ///
    /// If the name is taken or invalid.
    #[must_use]
    pub fn probe_named<M: 'static>(&self, name: &str) -> TestProbe<M> {
        TestProbe::start(self, name)
    }

    /// Runs until no actor has anything to do now; no time passes. Returns the number of rounds.
    ///
    /// # Panics
    ///
    /// If the system does not become idle; the message names the busiest actors.
    pub fn settle(&self) -> usize {
        self.inner.settle()
    }

    /// Sets how many rounds [`settle`](Self::settle) runs before it panics; the default is 1000. A
    /// round is up to 64 steps, a step up to 64 messages.
    pub fn set_rounds_max(&self, rounds: usize) {
        self.inner.rounds_max.set(rounds);
    }

    /// Lets time pass. Everything that is due meanwhile runs in order, each at its own time and
    /// with all its consequences.
    ///
    /// # Panics
    ///
    /// As [`settle`](Self::settle).
    pub fn advance(&self, by: Duration) {
        let until = self.inner.after(by);
        while self.inner.jump(until) {}
    }

    /// Lets time pass until something is due that makes an actor run, and returns how much time
    /// that was. `None`, and no time passes, if nothing will ever be due.
    ///
    /// # Panics
    ///
    /// As [`settle`](Self::settle).
    pub fn advance_to_next(&self) -> Option<Duration> {
        let before = self.now();
        self.inner.advance_to_next().then(|| self.now().since(before))
    }

    /// Runs until a future completes and returns its output. Time passes when nothing else can run.
    ///
    /// # Panics
    ///
    /// If the future is pending and nothing is due that could complete it; the message shows the
    /// tree of actors. Also as [`settle`](Self::settle).
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let wake_flag = Arc::new(WakeFlag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&wake_flag));
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        for _ in 0..JUMPS_MAX {
            while wake_flag.take() {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return output;
                }
                self.settle();
            }
            if !self.inner.advance_to_next() && !wake_flag.is_set() {
                panic!(
                    "ManualTime: deadlock at {:?}: the future is pending, no actor is ready, \
                     and nothing is due\n{}",
                    self.elapsed(),
                    self.inner.dump()
                );
            }
        }
        panic!(
            "ManualTime: the future is still pending at {:?}, after {JUMPS_MAX} advances of the \
             time\n{}",
            self.elapsed(),
            self.inner.dump()
        );
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.inner.clock.now()
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }

    /// The seed of the order of delivery; zero is the order of sending.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The actor system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.inner.system
    }

    /// Settles the system and takes the failures of actors so far, whatever was decided about them.
    #[must_use]
    pub fn take_failures(&self) -> Vec<FailureInfo> {
        self.settle();
        self.inner.failures.take()
    }

    /// Settles the system and expects that no actor has failed, apart from failures that were
    /// [taken](Self::take_failures).
    ///
    /// # Panics
    ///
    /// If an actor has failed; the message shows the failures.
    pub fn expect_no_failures(&self) {
        let failures = self.take_failures();
        let lines: String = failures.iter().map(|info| format!("\n  {info}")).collect();
        assert!(failures.is_empty(), "ManualTime: {} failures:{lines}", failures.len());
    }

    /// Terminates the system and runs it until it has terminated; time passes as needed.
    ///
    /// # Panics
    ///
    /// If the system does not terminate; the message names the remaining actors.
    pub fn shutdown(self) -> TerminationReport {
        self.inner.shutdown()
    }

    pub(crate) fn inner(&self) -> &Rc<Inner> {
        &self.inner
    }
}

impl Drop for ManualTime {
    fn drop(&mut self) {
        if thread::panicking() || self.inner.root.try_borrow_mut().is_err() {
            return;
        }
        let TerminationReport { stragglers, shutdown, .. } = self.inner.shutdown();
        let lines: String = stragglers.iter().map(|path| format!("\n  {path}")).collect();
        assert!(stragglers.is_empty(), "ManualTime: these actors did not stop in time:{lines}");
        if let Some(shutdown) = shutdown.filter(|shutdown| !shutdown.is_clean()) {
            panic!("ManualTime: the shutdown was not clean: {shutdown}");
        }
    }
}

impl fmt::Debug for ManualTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualTime")
            .field("elapsed", &self.elapsed())
            .field("seed", &self.seed())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn root(&self, what: &str) -> RefMut<'_, RootContext> {
        self.root.try_borrow_mut().unwrap_or_else(|_| {
            panic!("ManualTime: `{what}` was called inside a handler, while the system is running")
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let nanos = u64::try_from(self.nanos.get()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos)
    }

    /// The time after a duration, in nanoseconds.
    pub(crate) fn after(&self, by: Duration) -> u128 {
        self.nanos.get().saturating_add(by.as_nanos())
    }

    /// Runs all systems that share the time until none has anything to do; returns the rounds.
    pub(crate) fn settle(&self) -> usize {
        let group = self.running();
        if group.is_empty() {
            return if self.is_frozen.get() { 0 } else { self.settle_alone() };
        }
        let mut rounds = 0;
        for _ in 0..self.rounds_max.get() {
            let before = rounds;
            rounds += group.iter().map(|one| one.settle_alone()).sum::<usize>();
            if rounds == before {
                return rounds;
            }
        }
        panic!(
            "ManualTime: the systems keep each other busy at {:?}\n{}",
            self.elapsed(),
            self.dump()
        );
    }

    /// The systems of the group that run.
    fn running(&self) -> Vec<Rc<Self>> {
        let group = self.group.borrow();
        let all = group.iter().filter_map(Weak::upgrade);
        all.filter(|one| !one.is_frozen.get()).collect()
    }

    fn settle_alone(&self) -> usize {
        let rounds_max = self.rounds_max.get();
        for rounds in 0..rounds_max {
            if !self.run_round() {
                return rounds;
            }
        }
        let mut busy = BTreeMap::<ActorPath, usize>::new();
        for _ in 0..ROUNDS_SAMPLED {
            self.run_round();
            for actor in
                testing::all_actors(&self.system).into_iter().filter(|actor| actor.is_ready)
            {
                *busy.entry(actor.path).or_default() += 1;
            }
        }
        let mut busy: Vec<_> = busy.into_iter().collect();
        busy.sort_by_key(|(_, n)| core::cmp::Reverse(*n));
        let names: Vec<_> =
            busy.iter().take(BUSIEST_SHOWN).map(|(path, _)| path.to_string()).collect();
        panic!(
            "ManualTime: not idle after {rounds_max} rounds at {:?}; the busiest: {}",
            self.elapsed(),
            names.join(", ")
        );
    }

    /// Runs one round; returns whether it did anything.
    fn run_round(&self) -> bool {
        let mut root = self.root("settle");
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(root.dispatch_next()).poll(&mut cx) {
            Poll::Ready(true) => return true,
            Poll::Pending => return false,
            Poll::Ready(false) => {}
        }
        // After the termination, no actor can keep others busy forever.
        root.run_until_idle() > 0
    }

    /// Lets time pass until something is due, or until `until`; then settles. Returns whether there
    /// is more to come before that.
    pub(crate) fn jump(&self, until: u128) -> bool {
        self.settle();
        let next = self.next_nanos().filter(|next| *next <= until);
        let before = self.nanos.get();
        self.set_time(next.unwrap_or(until));
        let is_stalled = self.settle() == 0 && next.is_some() && self.nanos.get() == before;
        self.n_stalls.set(if is_stalled { self.n_stalls.get() + 1 } else { 0 });
        assert!(
            self.n_stalls.get() < STALLS_MAX,
            "ManualTime: something is due at {:?} but does not run",
            self.elapsed()
        );
        next.is_some()
    }

    /// When something is due next, in any of the systems that share the time.
    fn next_nanos(&self) -> Option<u128> {
        let group = self.running();
        if group.is_empty() && !self.is_frozen.get() {
            return self.next_nanos_alone();
        }
        group.iter().filter_map(|one| one.next_nanos_alone()).min()
    }

    fn next_nanos_alone(&self) -> Option<u128> {
        let next = self.root("advance").next_wake()?;
        Some(u128::from(next.get()) * u128::from(RESOLUTION.nanos().get()))
    }

    /// Sets the time of all systems that share it, also of those that do not run.
    fn set_time(&self, nanos: u128) {
        self.set_time_alone(nanos);
        for other in self.group.borrow().iter().filter_map(Weak::upgrade) {
            other.set_time_alone(nanos);
        }
    }

    fn set_time_alone(&self, nanos: u128) {
        let nanos = nanos.max(self.nanos.get());
        self.nanos.set(nanos);
        let tick = nanos / u128::from(RESOLUTION.nanos().get());
        self.clock.advance_to(Tick::new(u64::try_from(tick).unwrap_or(u64::MAX)));
    }

    fn advance_to_next(&self) -> bool {
        self.settle();
        for _ in 0..JUMPS_MAX {
            let Some(next) = self.next_nanos() else { return false };
            self.set_time(next);
            if self.settle() > 0 {
                return true;
            }
        }
        panic!("ManualTime: something is due at {:?} but does not run", self.elapsed());
    }

    fn shutdown(&self) -> TerminationReport {
        let end = self.system.shutdown();
        for _ in 0..JUMPS_MAX {
            self.settle();
            if let Some(report) = end.report() {
                return report;
            }
            if !self.advance_to_next() {
                break;
            }
        }
        if let Some(report) = end.report() {
            return report;
        }
        panic!("ManualTime: the system does not terminate\n{}", self.dump());
    }

    /// The tree of actors, as text for a panic.
    pub(crate) fn dump(&self) -> String {
        let mut lines = String::from("actors:");
        for actor in testing::all_actors(&self.system) {
            let state = if actor.is_ready { " (ready)" } else { "" };
            lines.push_str(&format!("\n  {}{state}", actor.path));
        }
        lines
    }
}

/// Records the failures that the event stream reports.
struct Collector(Rc<RefCell<Vec<FailureInfo>>>);

impl Actor for Collector {
    type Msg = SystemEvent;

    fn receive(
        &mut self,
        _cx: &mut clockjack_actor::Context<'_, Self>,
        event: SystemEvent,
    ) -> Result<Next, Failure> {
        if let SystemEvent::Failure(info) = event {
            self.0.borrow_mut().push(info);
        }
        Ok(Next::Stay)
    }
}

/// The waker of a future: whether it has to be polled.
struct WakeFlag(AtomicBool);

impl WakeFlag {
    fn take(&self) -> bool {
        // Acquire: pairs with the waker; what the future waits for was stored before the wake.
        self.0.swap(false, AcqRel)
    }

    fn is_set(&self) -> bool {
        // Acquire: as above.
        self.0.load(Acquire)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        // Release: pairs with `take`.
        self.0.swap(true, AcqRel);
    }
}
