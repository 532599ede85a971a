//! A system in virtual time, turned by the test.
//!
//! All of it is one thread. The test holds a [`ManualTime`], its probes hold the same system; who
//! turns the crank borrows the [`RootContext`], so a handler that does so is found out.

use alloc::{collections::BTreeMap, rc::Rc, sync::Arc, task::Wake};
use core::{
    cell::{Cell, RefCell, RefMut},
    fmt,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::thread;

use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, EventKinds, Failure, FailureInfo, IntoProps, Mailbox,
    MsgOf, Next, Props, RootContext, SpawnError, StartError, SystemBuilder, SystemEvent,
    TerminationReport, testing,
};
use clockjack_time::{ManualClock, MonotonicClock as _, Tick, TimerInstant};

use crate::{
    probe::TestProbe,
    toolbox::{Bench, RESOLUTION},
};

/// After how many turns a system that is never idle is given up, unless set. A turn is some dozens
/// of steps, each of some dozens of messages: seconds, if all of them are busy.
const TURNS_MAX: usize = 1_000;
/// How many turns of such a system are looked at to learn who is busy.
const TURNS_SAMPLED: usize = 16;
/// How many of the busiest are named.
const BUSIEST_SHOWN: usize = 5;
/// How often time is moved on for one future, or one end, before that is given up.
const JUMPS_MAX: usize = 100_000;
/// How often something may be said to be due now, and nothing run, before that is given up.
const STALLS_MAX: usize = 1_000;
/// The name of the actor that collects failures.
const COLLECTOR: &str = "testkit-failures";

/// A system of actors on this thread, in a time that passes only by hand. Its clock has ticks of a
/// millisecond; what is shorter adds up.
///
/// # Drop
///
/// The system is terminated and run to its end. What has not stopped by then, and a task of the
/// shutdown that did not succeed, is a panic that names it, unless the test panics already.
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

/// What a [`ManualTime`] and its probes share.
pub(crate) struct Inner {
    root: RefCell<RootContext>,
    system: ActorSystem,
    clock: Arc<ManualClock>,
    /// The time in nanoseconds, of which the clock knows whole ticks.
    nanos: Cell<u128>,
    seed: u64,
    turns_max: Cell<usize>,
    /// How often in a row something was due and nothing ran.
    n_stalls: Cell<usize>,
    n_probes: Cell<usize>,
    failures: Rc<RefCell<Vec<FailureInfo>>>,
}

impl ManualTime {
    /// A system of default settings, in which messages are delivered in the order of sending.
    ///
    /// # Panics
    ///
    /// If the system does not start, as all constructors.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(ActorSystem::builder("test"))
    }

    /// A system of one's own settings.
    #[must_use]
    pub fn start_with(builder: SystemBuilder) -> Self {
        Self::start_seeded(builder, 0)
    }

    /// A system in which a number decides who of those that are ready runs next: the same one, the
    /// same course. Zero is the order in which they became ready. The order of the messages from
    /// one actor to another is never changed.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::start_seeded(ActorSystem::builder("test"), seed)
    }

    /// As [`with_seed`](Self::with_seed), with one's own settings.
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
        let root = RootContext::new(Bench::new(Arc::clone(&clock), seed), builder)?;
        let system = root.system().clone();
        let inner = Inner {
            root: RefCell::new(root),
            system,
            clock,
            nanos: Cell::new(0),
            seed,
            turns_max: Cell::new(TURNS_MAX),
            n_stalls: Cell::new(0),
            n_probes: Cell::new(0),
            failures: Rc::default(),
        };
        let this = Self { inner: Rc::new(inner) };
        let failures = Rc::clone(&this.inner.failures);
        let props = Props::new(move || Collector(Rc::clone(&failures)));
        let collector = this.spawn(COLLECTOR, props.mailbox(Mailbox::unbounded()));
        this.system().events().subscribe(EventKinds::FAILURE, collector);
        this.settle();
        Ok(this)
    }

    /// Starts an actor below `/user`; nothing needs to be `Send`. It runs when the test settles.
    ///
    /// # Panics
    ///
    /// If it is refused; [`try_spawn`](Self::try_spawn) gives the error.
    pub fn spawn<P: IntoProps>(&self, name: &str, props: P) -> ActorRef<MsgOf<P>> {
        self.try_spawn(name, props).unwrap_or_else(|refused| {
            panic!("ManualTime: `{name}` is not started: {}", refused.discard())
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

    /// A probe with a name of its own, `probe-1` and so on.
    #[must_use]
    pub fn probe<M: 'static>(&self) -> TestProbe<M> {
        let n = self.inner.n_probes.get() + 1;
        self.inner.n_probes.set(n);
        self.probe_named(&format!("probe-{n}"))
    }

    /// A probe with this name.
    ///
    /// # Panics
    ///
    /// If the name is taken or is none.
    #[must_use]
    pub fn probe_named<M: 'static>(&self, name: &str) -> TestProbe<M> {
        TestProbe::start(self, name)
    }

    /// Runs until nobody has anything to do now; no time passes. Gives the number of turns.
    ///
    /// # Panics
    ///
    /// If that does not come to an end: then the busiest actors are named.
    pub fn settle(&self) -> usize {
        self.inner.settle()
    }

    /// How many turns may follow each other in one moment before [`settle`](Self::settle) gives up;
    /// a thousand, if nothing else is set. A turn is up to 64 steps, a step up to 64 messages.
    pub fn set_turns_max(&self, turns: usize) {
        self.inner.turns_max.set(turns);
    }

    /// Lets time pass. Everything that is due meanwhile runs in order, each at its own time, with
    /// all that follows from it.
    ///
    /// # Panics
    ///
    /// As [`settle`](Self::settle).
    pub fn advance(&self, by: Duration) {
        let until = self.inner.after(by);
        while self.inner.jump(until) {}
    }

    /// Lets time pass until something is due that makes anybody do something, and gives how much
    /// that was. None, and no time passes, if nothing is due ever.
    ///
    /// # Panics
    ///
    /// As [`settle`](Self::settle).
    pub fn advance_to_next(&self) -> Option<Duration> {
        let before = self.now();
        self.inner.advance_to_next().then(|| self.now().since(before))
    }

    /// Runs until a future has its output. Where nothing else can run, time passes.
    ///
    /// # Panics
    ///
    /// If the future waits and nothing is due that could end that; then the tree of actors is
    /// shown. As [`settle`](Self::settle), too.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let bell = Arc::new(Bell(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&bell));
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        for _ in 0..JUMPS_MAX {
            while bell.take() {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return output;
                }
                self.settle();
            }
            if !self.inner.advance_to_next() && !bell.is_rung() {
                panic!(
                    "ManualTime: deadlock at {:?}: the future waits, nobody has anything to do, \
                     and nothing is due\n{}",
                    self.elapsed(),
                    self.inner.dump()
                );
            }
        }
        panic!(
            "ManualTime: the future still waits at {:?}, after time was moved on {JUMPS_MAX} \
             times\n{}",
            self.elapsed(),
            self.inner.dump()
        );
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> TimerInstant {
        self.inner.clock.now()
    }

    /// How much time has passed since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }

    /// The seed of the order of delivery; zero is the order of sending.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.inner.system
    }

    /// Settles, and takes the failures of actors so far, whatever was decided about them.
    #[must_use]
    pub fn take_failures(&self) -> Vec<FailureInfo> {
        self.settle();
        self.inner.failures.take()
    }

    /// Settles, and expects that no actor has failed, those apart that were
    /// [taken](Self::take_failures).
    ///
    /// # Panics
    ///
    /// If one has; then they are shown.
    pub fn expect_no_failures(&self) {
        let failures = self.take_failures();
        let lines: String = failures.iter().map(|info| format!("\n  {info}")).collect();
        assert!(failures.is_empty(), "ManualTime: {} failures:{lines}", failures.len());
    }

    /// Terminates the system and runs it to its end; time passes where that needs it.
    ///
    /// # Panics
    ///
    /// If it does not end: then those are named that are still there.
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
        assert!(stragglers.is_empty(), "ManualTime: these had to be waited for too long:{lines}");
        if let Some(shutdown) = shutdown.filter(|shutdown| !shutdown.is_clean()) {
            panic!("ManualTime: not all went well: {shutdown}");
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
            panic!("ManualTime: `{what}` from inside a handler, while the system is being run")
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let nanos = u64::try_from(self.nanos.get()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos)
    }

    /// The time after a while, in nanoseconds.
    pub(crate) fn after(&self, by: Duration) -> u128 {
        self.nanos.get().saturating_add(by.as_nanos())
    }

    pub(crate) fn settle(&self) -> usize {
        let turns_max = self.turns_max.get();
        for turns in 0..turns_max {
            if !self.turn() {
                return turns;
            }
        }
        let mut busy = BTreeMap::<ActorPath, usize>::new();
        for _ in 0..TURNS_SAMPLED {
            self.turn();
            for seen in testing::census(&self.system).into_iter().filter(|seen| seen.is_ready) {
                *busy.entry(seen.path).or_default() += 1;
            }
        }
        let mut busy: Vec<_> = busy.into_iter().collect();
        busy.sort_by_key(|(_, n)| core::cmp::Reverse(*n));
        let names: Vec<_> =
            busy.iter().take(BUSIEST_SHOWN).map(|(path, _)| path.to_string()).collect();
        panic!(
            "ManualTime: never idle, not after {turns_max} turns at {:?}; the busiest: {}",
            self.elapsed(),
            names.join(", ")
        );
    }

    /// One turn; whether it did anything.
    fn turn(&self) -> bool {
        let mut root = self.root("settle");
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(root.dispatch_next()).poll(&mut cx) {
            Poll::Ready(true) => return true,
            Poll::Pending => return false,
            Poll::Ready(false) => {}
        }
        // After its end nobody can make others busy for ever.
        root.run_until_idle() > 0
    }

    /// Lets time pass until something is due, or until `until`; then settles. Whether there is more
    /// to come before that.
    pub(crate) fn jump(&self, until: u128) -> bool {
        self.settle();
        let next = self.next_nanos().filter(|next| *next <= until);
        let before = self.nanos.get();
        self.set_time(next.unwrap_or(until));
        let is_stalled = self.settle() == 0 && next.is_some() && self.nanos.get() == before;
        self.n_stalls.set(if is_stalled { self.n_stalls.get() + 1 } else { 0 });
        assert!(
            self.n_stalls.get() < STALLS_MAX,
            "ManualTime: something is due at {:?} and does not run",
            self.elapsed()
        );
        next.is_some()
    }

    fn next_nanos(&self) -> Option<u128> {
        let next = self.root("advance").next_wake()?;
        Some(u128::from(next.get()) * u128::from(RESOLUTION.nanos().get()))
    }

    fn set_time(&self, nanos: u128) {
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
        panic!("ManualTime: something is due at {:?} and does not run", self.elapsed());
    }

    fn shutdown(&self) -> TerminationReport {
        let end = self.system.terminate();
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

    /// The tree of actors, for a person.
    pub(crate) fn dump(&self) -> String {
        let mut lines = String::from("actors:");
        for seen in testing::census(&self.system) {
            let state = if seen.is_ready { " (ready)" } else { "" };
            lines.push_str(&format!("\n  {}{state}", seen.path));
        }
        lines
    }
}

/// Keeps the failures that are told.
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

/// Whether a future is to be polled.
struct Bell(AtomicBool);

impl Bell {
    fn take(&self) -> bool {
        // Acquire: pairs with the waker; what it is about was left before.
        self.0.swap(false, AcqRel)
    }

    fn is_rung(&self) -> bool {
        // Acquire: as above.
        self.0.load(Acquire)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Release: pairs with `take`.
        self.0.swap(true, AcqRel);
    }
}
