//! A system on one thread, and the hand that turns its crank.
#![expect(unsafe_code, reason = "promises that what it spawns stays on its thread")]

use alloc::boxed::Box;
use core::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    marker::PhantomData,
    task::{Poll, Waker},
    time::Duration,
};

use clockjack_exec::{Caught, LocalExecutor, StartError, Toolbox};
use clockjack_sched::{HandlerError, Scheduler, SchedulerHost};
use clockjack_sync::{Counted, mutant, waker::AtomicWaker};
use clockjack_time::{ClockKind, MonotonicClock, Tick, TickDriver, TimerInstant};

use crate::{
    ActorRef, ActorSystem, IntoProps, MsgOf, SpawnError, SpawnErrorKind, SystemBuilder,
    spawn::{self, Where},
    system::{FailedStart, HostParts, TerminationReport},
};

/// How many jobs of the scheduler run between two looks at the actors.
const JOBS_PER_TURN: usize = 64;
/// How many actors are stepped between two looks at the timers, at most.
const STEPS_PER_TURN: usize = 64;
/// For how long actors are stepped between two looks at the timers, but for the last few steps.
const TURN_MAX: Duration = Duration::from_millis(1);
/// How many actors are stepped between two looks at the clock, at most.
const STEPS_PER_LOOK: usize = 4;

/// A system of actors on the thread that made it; nothing needs to be `Send`.
///
/// It runs when it is told to: on a board without an operating system, in a test, in a simulation.
pub struct RootContext {
    executor: LocalExecutor,
    system: ActorSystem,
    crank: Box<dyn Crank>,
    /// Whether the driver wakes this thread's task when time passes.
    is_driven: bool,
    /// Time passes only by a call, so there is no use in waiting for it.
    is_manual: bool,
    /// Not `Send`: neither is what it runs.
    _here: PhantomData<*const ()>,
}

/// A toolbox that the executor and the scheduler share.
struct Shared<B>(Counted<Desk<B>>);

/// A toolbox, and who else is to be woken where its thread is.
struct Desk<B> {
    toolbox: B,
    /// The task that awaits [`RootContext::dispatch_next`], if one does.
    bell: AtomicWaker,
}

impl<B: Toolbox> Desk<B> {
    fn unpark(&self) {
        self.toolbox.unpark();
        self.bell.wake();
    }
}

/// What a root context needs of its host, whatever its type.
trait Crank {
    fn now(&self) -> Tick;
    fn park(&self, until: Option<Tick>);
    /// Wakes this one, once, when there is something to do.
    fn await_work(&self, waker: &Waker);
    fn driver(&self) -> &dyn TickDriver;
}

impl<B: Toolbox + Send> Crank for Shared<B> {
    fn now(&self) -> Tick {
        self.0.toolbox.clock().now().tick()
    }

    fn park(&self, until: Option<Tick>) {
        self.0.toolbox.park(until);
    }

    fn await_work(&self, waker: &Waker) {
        self.0.bell.register(waker);
    }

    fn driver(&self) -> &dyn TickDriver {
        self.0.toolbox.driver()
    }
}

impl<B: Toolbox + Send> Toolbox for Shared<B> {
    fn clock(&self) -> &dyn MonotonicClock {
        self.0.toolbox.clock()
    }

    fn driver(&self) -> &dyn TickDriver {
        self.0.toolbox.driver()
    }

    fn park(&self, until: Option<Tick>) {
        self.0.toolbox.park(until);
    }

    fn unpark(&self) {
        self.0.unpark();
    }

    fn current_worker(&self) -> Option<u16> {
        self.0.toolbox.current_worker()
    }

    fn now(&self) -> TimerInstant {
        self.0.toolbox.now()
    }

    fn seed(&self) -> u64 {
        self.0.toolbox.seed()
    }

    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        self.0.toolbox.guarded(turn)
    }
}

impl<B: Toolbox + Send + 'static> SchedulerHost for Shared<B> {
    fn now(&self) -> TimerInstant {
        self.0.toolbox.now()
    }

    fn clock_kind(&self) -> ClockKind {
        self.0.toolbox.clock().kind()
    }

    fn name(&self) -> &'static str {
        "root context"
    }

    fn call_runner(&self, _shard: usize) {
        self.0.unpark();
    }

    fn guarded(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        self.0
            .toolbox
            .guarded(call)
            .map_err(|caught| HandlerError::panic(alloc::string::String::from(caught.message())))
    }
}

impl RootContext {
    /// Starts a system on this thread.
    ///
    /// # Errors
    ///
    /// If two commands have the same number, there is no room for the guardians, or a hook of the
    /// start has failed.
    pub fn new(
        toolbox: impl Toolbox + Send + 'static,
        mut builder: SystemBuilder,
    ) -> Result<Self, StartError> {
        let (limits, mut config, commands) = builder.host_config();
        let seed = toolbox.seed();
        config.resolution = toolbox.clock().resolution();
        config.start = toolbox.clock().now().tick();
        config.shards = 1;
        let is_manual = toolbox.clock().kind() == ClockKind::Deterministic;
        let desk = Desk { toolbox, bell: AtomicWaker::new() };
        let toolbox = Counted::new(desk);
        let executor = LocalExecutor::new(Shared(toolbox.clone()), limits, commands)?;
        let scheduler = Scheduler::new(config, Shared(toolbox.clone()))
            .map_err(|refused| StartError::thread(&refused))?;
        let host = HostParts {
            executor: executor.handle(),
            scheduler,
            dispatchers: alloc::vec::Vec::new(),
            dispatcher_host: None,
            seed,
        };
        let (system, error) = match builder.start_on(host) {
            Ok(system) => (system, None),
            Err(FailedStart { error, system: None }) => return Err(error),
            Err(FailedStart { error, system: Some(system) }) => (system, Some(error)),
        };
        let crank = Box::new(Shared(toolbox));
        let root =
            Self { executor, system, crank, is_driven: false, is_manual, _here: PhantomData };
        // What has begun ends as any other does.
        error.map_or(Ok(root), Err)
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// The executor, for models in which other threads run it.
    #[cfg(loom)]
    #[doc(hidden)]
    #[must_use]
    pub fn executor(&self) -> clockjack_exec::Handle {
        self.executor.handle()
    }

    /// Starts an actor below `/user`, on this thread.
    ///
    /// # Errors
    ///
    /// As [`ActorSystem::spawn`].
    pub fn spawn<P: IntoProps>(
        &mut self,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>> {
        let Some(user) = self.system.inner().user() else {
            return Err(SpawnError::new(SpawnErrorKind::Stopping, props));
        };
        let here = Where::Here(self.executor.handle());
        // SAFETY: this is the thread of the executor.
        unsafe { spawn::spawn(&user, true, here, name, props) }
    }

    /// From here on nothing allocates: what would is refused, wherever it is asked for.
    ///
    /// That is: actors; subscriptions to events, to failures, to the receptionist, and what is
    /// listed there; tasks and hooks of the shutdown; waiting for room in a mailbox; asks and
    /// futures beyond what there is room for. Timers and jobs go on, within the capacity of the
    /// scheduler, whose room [`SchedulerConfig::is_fixed`](clockjack_sched::SchedulerConfig)
    /// makes at the start. What a failure will need, each actor makes in its next turn, and so it
    /// does the memory of its mailbox, if that has room for 112 messages at the most, or 28 on a
    /// microcontroller ([`Mailbox::bounded`](crate::Mailbox::bounded), [`Limits::messages`]). The
    /// end of the system itself may allocate.
    ///
    /// [`Limits::messages`]: crate::Limits::messages
    pub fn seal(&mut self) {
        self.system.inner().seal();
    }

    /// Runs what is due and steps what is ready, until nothing is; gives the number of steps.
    pub fn run_until_idle(&mut self) -> usize {
        let mut steps = 0;
        loop {
            let turn = self.turn();
            if turn.steps == 0 {
                return steps;
            }
            steps += turn.steps;
        }
    }

    /// Runs what is due, then steps actors that are ready, for a while.
    fn turn(&mut self) -> Turn {
        let jobs = self.system.scheduler().turn(0, 0, JOBS_PER_TURN);
        let fired = self.executor.fire_due();
        let stepped = self.step_some();
        let next_wake = match (jobs.next_wake, self.executor.next_wake()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let steps = jobs.ran + fired + stepped + usize::from(jobs.is_more);
        Turn { steps, next_wake, is_ready: jobs.is_more || self.executor.is_ready() }
    }

    /// Steps actors until none is ready, or timers are to be looked at again. The clock is read
    /// the more seldom the faster they are; a slow one is noticed after a few steps at the latest.
    fn step_some(&mut self) -> usize {
        let clock = self.system.scheduler();
        let begun = clock.now();
        let (mut steps, mut until_look) = (0, 1);
        while steps < STEPS_PER_TURN {
            let stepped = self.executor.step_many(until_look);
            steps += stepped;
            // One that goes on and on has ended these early, for a look at the clock.
            let is_idle = stepped < until_look && !self.executor.is_ready();
            let is_over = clock.now().since(begun) >= TURN_MAX && !mutant!("root-turn-untimed");
            if stepped == 0 || is_idle || is_over {
                break;
            }
            until_look = (2 * until_look).min(STEPS_PER_LOOK);
        }
        steps
    }

    /// When something is due next, after a turn of what is due and ready now. A turn is bounded:
    /// if it left something, that is due now.
    pub fn next_wake(&mut self) -> Option<Tick> {
        let turn = self.turn();
        if turn.is_ready && !mutant!("root-rest-slept-on") {
            return Some(self.crank.now());
        }
        turn.next_wake
    }

    /// Runs once what is due or ready, and waits for that if nothing is. False if the system has
    /// terminated.
    ///
    /// The task that awaits it is woken by whoever has something for an actor, and by the ticks of
    /// the toolbox's driver, in the context that they come from. If the driver serves somebody else
    /// already, or was stopped, the task asks again and again while something waits for its time.
    pub async fn dispatch_next(&mut self) -> bool {
        poll_fn(|cx| {
            // Before the look for work: what comes behind it wakes.
            self.crank.await_work(cx.waker());
            self.is_driven = self.is_driven || self.follow_driver();
            while self.is_driven && self.crank.driver().poll_tick().is_some() {}
            if self.system.when_terminated().report().is_some() {
                return Poll::Ready(false);
            }
            let turn = self.turn();
            if turn.steps > 0 {
                return Poll::Ready(true);
            }
            if turn.is_ready || (turn.next_wake.is_some() && !self.is_driven) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Lets the driver's ticks wake whoever awaits; false if it serves somebody else.
    fn follow_driver(&self) -> bool {
        self.crank.driver().register(self.executor.waker()).is_ok()
    }

    /// Runs until `stop` says so, or the system has terminated.
    pub async fn run_until(&mut self, mut stop: impl FnMut() -> bool) {
        while !stop() && self.dispatch_next().await {}
    }

    /// Runs for ever: also when the system has terminated it does not return.
    pub async fn run_forever(&mut self) -> Infallible {
        loop {
            if !self.dispatch_next().await {
                core::future::pending::<()>().await;
            }
        }
    }

    /// Runs on this thread, which sleeps where there is nothing to do, until `stop` says so or the
    /// system has terminated.
    pub fn blocking_dispatch_loop(&mut self, mut stop: impl FnMut() -> bool) {
        while !stop() && self.system.when_terminated().report().is_none() {
            let turn = self.turn();
            if turn.steps == 0 && !turn.is_ready {
                self.crank.park(turn.next_wake);
            }
        }
    }

    /// Runs until a future has its output.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = core::pin::pin!(future);
        let waker = self.executor.waker();
        let mut cx = core::task::Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            let turn = self.turn();
            if turn.steps == 0 && !turn.is_ready {
                self.crank.park(turn.next_wake);
            }
        }
    }

    /// Terminates the system and runs until that is done, or the time is over: then what is alive
    /// is reported, and ended by force. On a clock that is moved by hand nobody waits: it runs as
    /// far as it comes.
    pub fn shutdown(mut self, deadline: Duration) -> TerminationReport {
        let end = self.system.terminate();
        let executor = self.executor.handle();
        let host = executor.engine().host();
        let until = host.deadline_after(deadline);
        loop {
            let turn = self.turn();
            if let Some(report) = end.report() {
                return report;
            }
            let is_idle = turn.steps == 0 && !turn.is_ready;
            let is_late = !self.is_manual && host.tick_of(host.nanos()) >= until;
            if is_late || (is_idle && self.is_manual) {
                return self.system.report_by_force();
            }
            if is_idle {
                self.crank.park(Some(turn.next_wake.map_or(until, |wake| wake.min(until))));
            }
        }
    }
}

impl Drop for RootContext {
    /// Jobs that wait are cancelled and actors that are alive are ended by force, in that order: so
    /// nothing is kept by what waits for it.
    fn drop(&mut self) {
        if self.is_driven {
            // Its waker holds the executor, which holds the driver.
            self.crank.driver().unregister();
        }
        self.system.scheduler().shutdown();
    }
}

struct Turn {
    steps: usize,
    next_wake: Option<Tick>,
    is_ready: bool,
}

impl fmt::Debug for RootContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootContext").field("system", &self.system).finish_non_exhaustive()
    }
}
