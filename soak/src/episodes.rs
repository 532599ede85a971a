//! Episodes: short lives of a runtime under one kind of pressure, each of which ends with a
//! shutdown that must keep its deadline.
//!
//! The long-lived pool of a soak is shut down once. Faults of a close and of user code that blocks
//! need many shutdowns, so every round ends with one episode of each kind.

use core::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    panic,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    task::Wake,
    thread,
    time::Instant,
};

use clockjack_rt::{
    FailureLog, PoolConfig, Runtime, RuntimeConfig, WorkerPool,
    actor::{self, Actor, ActorRef, ActorSystem, Backoff, Failure, Next, Props, Strategy},
    exec::{Commands, Handle, Sleep},
    sched::{DispatcherId, FireContext, Policy, PolicyRegistry, SchedulerConfig, TimerPriority},
    sleep, yield_now,
};
use clockjack_testing::keeps_deadline;

use crate::{
    dice::Dice,
    ledger::{Kind, Ledger},
};

/// An episode: its name, and what it does. An error is a violation.
type Episode = (&'static str, fn(&mut Dice) -> Result<(), String>);

/// All episodes.
const EPISODES: [Episode; 5] = [
    ("outside threads arm and cancel", outside_timers),
    ("resize storm with wakers of users", resize_storm),
    ("overloaded jobs at a fixed rate", late_jobs),
    ("a back-off among evicted timers", evicted_backoff),
    ("a mapped reference that blocks", blocking_map),
];

/// The time limit for everything that has to happen, far beyond what a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(8);
/// The time limit of a shutdown in which nothing needs force.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Runs each episode once. A violation goes into the ledger.
pub(crate) fn run_all(dice: &mut Dice, ledger: &Arc<Ledger>) {
    for (name, episode) in EPISODES {
        let entry = ledger.begin(Kind::Episode);
        let run = panic::catch_unwind(AssertUnwindSafe(|| episode(dice)));
        match run {
            Ok(Ok(())) => {}
            Ok(Err(violation)) => ledger.fault(format!("{name}: {violation}")),
            // The panic itself is in the ledger already.
            Err(_) => ledger.fault(format!("{name}: panicked")),
        }
        entry.done();
    }
}

fn start_pool(config: PoolConfig) -> Result<WorkerPool, String> {
    WorkerPool::new(config, Commands::new()).map_err(|error| error.to_string())
}

/// Threads that are not workers sleep on the pool and cancel sleeps while it is shut down: every
/// one of them must return.
fn outside_timers(dice: &mut Dice) -> Result<(), String> {
    let pool = start_pool(PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT })?;
    let handle = pool.handle();
    let is_closing = Arc::new(AtomicBool::new(false));
    let (returned, all_returned) = mpsc::channel::<()>();
    let n_threads = 2 + dice.below(6);
    for n in 0..n_threads {
        let (handle, is_closing) = (handle.clone(), Arc::clone(&is_closing));
        let (returned, mut dice) = (returned.clone(), dice.split());
        thread::spawn(move || {
            while !is_closing.load(Relaxed) {
                let mut cancelled = handle.sleep(Duration::from_secs(600));
                // One poll arms the timer; the drop cancels it.
                let _ = Pin::new(&mut cancelled).poll(&mut Context::from_waker(Waker::noop()));
                drop(cancelled);
                if dice.below(64) == 0 {
                    // It ends with its deadline, or with an error when the pool closes.
                    let _ = block_on(handle.sleep(Duration::from_secs(n % 2 * 600)));
                }
            }
            drop(returned);
        });
    }
    drop(returned);
    thread::sleep(Duration::from_millis(10 + dice.below(50)));
    let report = keeps_deadline(STOP_MAX, || pool.shutdown(STOP_MAX));
    is_closing.store(true, Relaxed);
    if !report.is_clean() {
        return Err(format!("the shutdown was not clean: {report:?}"));
    }
    match all_returned.recv_timeout(LIMIT) {
        Err(mpsc::RecvTimeoutError::Disconnected) => Ok(()),
        _ => Err("a thread still sleeps on a pool that was shut down".into()),
    }
}

/// Waits until a condition holds, for a limited time.
fn wait_for(is_over: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while !is_over() && begun.elapsed() < LIMIT {
        thread::sleep(Duration::from_micros(200));
    }
}

/// Ends a pool with a fault, by force: the watchdog of the load would take the time of an ordinary
/// shutdown for a stall, and end the program before the fault is in the ledger.
fn abandon(pool: WorkerPool, fault: String) -> String {
    drop(pool.shutdown(Duration::from_millis(500)));
    fault
}

/// Runs a future on this thread, outside of any pool.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Tasks in a ring that pass tokens to their neighbours. Nothing but the drop of a user's waker
/// passes a token on, so a drop that never happens, or a wake-up that is lost, stops a token.
struct Ring {
    members: Box<[Mutex<Member>]>,
    n_retired: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Member {
    /// For each token that is here: how often it still has to be passed on.
    tokens: Vec<u32>,
    waker: Option<Waker>,
}

impl Ring {
    const N_MEMBERS: usize = 48;
    const N_TOKENS: usize = 96;
    const N_HOPS: u32 = 100;

    fn new() -> Self {
        let members = (0..Self::N_MEMBERS).map(|_| Mutex::default()).collect();
        Self { members, n_retired: AtomicU64::new(0), is_closed: AtomicBool::new(false) }
    }

    /// Sends tokens around. The earlier ones are retired.
    fn start_tokens(&self) {
        self.n_retired.store(0, Relaxed);
        for token in 0..Self::N_TOKENS {
            self.give(token, Self::N_HOPS);
        }
    }

    fn member(&self, index: usize) -> MutexGuard<'_, Member> {
        let member = &self.members[index % self.members.len()];
        member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a token to a member, or retires the token.
    fn give(&self, to: usize, n_hops: u32) {
        if n_hops == 0 {
            self.n_retired.fetch_add(1, Relaxed);
            return;
        }
        let waker = {
            let mut member = self.member(to);
            member.tokens.push(n_hops);
            member.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for a token; `None` after the close. The waker and the tokens have one lock, so a
    /// token comes either before the check or after the waker is there.
    async fn take(&self, index: usize) -> Option<u32> {
        poll_fn(|cx| {
            let mut member = self.member(index);
            if let Some(n_hops) = member.tokens.pop() {
                return Poll::Ready(Some(n_hops));
            }
            if self.is_closed.load(Relaxed) {
                return Poll::Ready(None);
            }
            let earlier = member.waker.replace(cx.waker().clone());
            drop(member);
            drop(earlier);
            Poll::Pending
        })
        .await
    }

    fn n_left(&self) -> u64 {
        Self::N_TOKENS as u64 - self.n_retired.load(Relaxed)
    }

    /// Lets all members return.
    fn close(&self) {
        self.is_closed.store(true, Relaxed);
        for index in 0..self.members.len() {
            let waker = self.member(index).waker.take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// A waker that does nothing when it is called. The drop of its last clone passes a token on, on
/// whichever thread that happens.
struct PassesOnDrop {
    ring: Arc<Ring>,
    to: usize,
    n_hops: u32,
}

impl Wake for PassesOnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PassesOnDrop {
    fn drop(&mut self) {
        self.ring.give(self.to, self.n_hops);
    }
}

/// Polls a future once, with the waker of this task.
async fn poll_once<F: Future + Unpin>(future: &mut F) {
    poll_fn(|cx| {
        let _ = Pin::new(&mut *future).poll(cx);
        Poll::Ready(())
    })
    .await;
}

/// A member of the ring: leaves the waker of each token in a different part of the pool.
async fn pass_tokens(
    ring: Arc<Ring>,
    index: usize,
    mut dice: Dice,
    handle: Handle,
    outside: mpsc::Sender<Sleep>,
) {
    /// Longer than the soak: also a timer that is cancelled while another thread holds its shard
    /// drops its waker before its deadline.
    const NEVER: Duration = Duration::from_secs(86_400);
    // The completion of this task drops the waker, or else the drop of this handle does.
    let mut joined = None;
    while let Some(n_hops) = ring.take(index).await {
        // A worker keeps the cancel of this timer for later, at the latest for when it leaves. Then
        // it also drops the wakers of timers that other threads have cancelled in its shard.
        poll_once(&mut sleep(Duration::from_secs(600))).await;
        let passing = PassesOnDrop { ring: Arc::clone(&ring), to: index + 1, n_hops: n_hops - 1 };
        let waker = Waker::from(Arc::new(passing));
        let short = Duration::from_micros(1 + dice.below(1_500));
        let is_joining = dice.below(16) == 0;
        if is_joining {
            let mut task = handle.spawn_future(sleep(short));
            let _ = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
            joined = Some(task);
            continue;
        }
        // A sleep and its timer have a clone each: the later of both drops passes the token on.
        let is_firing = dice.below(16) == 0;
        let mut held = handle.sleep(if is_firing { short } else { NEVER });
        let _ = Pin::new(&mut held).poll(&mut Context::from_waker(&waker));
        drop(waker);
        match dice.below(3) {
            0 if is_firing => _ = sleep(short * 2).await,
            0 => yield_now().await,
            1 => drop(handle.spawn_future(async move { drop(held) })),
            _ => _ = outside.send(held),
        }
    }
    drop(joined);
}

/// Workers come and go while the drops of users' wakers wake tasks: from timers that fire or are
/// cancelled, from tasks that end, on workers and on other threads. No task is left behind.
fn resize_storm(dice: &mut Dice) -> Result<(), String> {
    const N_STORMS: usize = 12;
    let pool = start_pool(PoolConfig { workers: Some(4), ..PoolConfig::DEFAULT })?;
    let resize = |workers: u64| {
        let workers = usize::try_from(workers).unwrap_or(1);
        let resized = pool.resize(workers);
        resized.map(drop).map_err(|error| format!("resize to {workers}: {error}"))
    };
    let ring = Arc::new(Ring::new());
    let n_live = Arc::new(AtomicU64::new(Ring::N_MEMBERS as u64));
    let (outside, sleeps) = mpsc::channel::<Sleep>();
    let dropper = thread::spawn(move || sleeps.into_iter().for_each(drop));
    for index in 0..Ring::N_MEMBERS {
        let (ring, n_live) = (Arc::clone(&ring), Arc::clone(&n_live));
        let passing = pass_tokens(ring, index, dice.split(), pool.handle(), outside.clone());
        drop(pool.spawn_future(async move {
            passing.await;
            n_live.fetch_sub(1, Relaxed);
        }));
    }
    drop(outside);
    for _ in 0..N_STORMS {
        ring.start_tokens();
        for _ in 0..4 + dice.below(12) {
            resize(1 + dice.below(6))?;
            thread::sleep(Duration::from_micros(dice.below(300)));
        }
        // With one worker, what the others have left behind in their slots stays there: a further
        // worker would find it.
        resize(1)?;
        wait_for(&|| ring.n_left() == 0);
        let (n_left, n) = (ring.n_left(), Ring::N_TOKENS);
        if n_left != 0 {
            let fault = format!("{n_left} of {n} tokens are not passed on any more: {pool:#?}");
            return Err(abandon(pool, fault));
        }
    }
    ring.close();
    wait_for(&|| n_live.load(Relaxed) == 0);
    let n_left = n_live.load(Relaxed);
    if n_left != 0 {
        let fault = format!("{n_left} tasks were woken and not polled again: {pool:#?}");
        return Err(abandon(pool, fault));
    }
    drop(dropper.join());
    let report = keeps_deadline(STOP_MAX, || pool.shutdown(STOP_MAX));
    if report.is_clean() { Ok(()) } else { Err(format!("{report:?}")) }
}

/// Jobs at a fixed rate whose handlers take three periods: the shutdown keeps its deadline, however
/// many runs are pending.
fn late_jobs(dice: &mut Dice) -> Result<(), String> {
    const PERIOD: Duration = Duration::from_millis(1);
    let pool = start_pool(PoolConfig { workers: Some(1), ..PoolConfig::DEFAULT })?;
    for _ in 0..4 {
        let handler = |_: &FireContext| thread::sleep(PERIOD * 3);
        let scheduler = pool.scheduler();
        scheduler
            .schedule_at_fixed_rate_fn(PERIOD, PERIOD, DispatcherId::DEFAULT, handler)
            .map_err(|error| error.to_string())?;
    }
    thread::sleep(Duration::from_millis(300 + dice.below(700)));
    let deadline = Duration::from_millis(50 + dice.below(200));
    let report = keeps_deadline(deadline, || pool.shutdown(deadline));
    match &report.scheduler {
        Some(_) => Ok(()),
        None => Err(format!("the report says nothing about the jobs: {report:?}")),
    }
}

/// A scheduler that users keep full while actors fail: each restart comes, and not before its
/// back-off is over. Without a reserve the job of a back-off evicts one of a user or is refused,
/// and the restart is as punctual.
fn evicted_backoff(dice: &mut Dice) -> Result<(), String> {
    backoff_with_reserve(dice, SchedulerConfig::DEFAULT.internal_reserve)?;
    backoff_with_reserve(dice, 0)
}

fn backoff_with_reserve(dice: &mut Dice, internal_reserve: usize) -> Result<(), String> {
    const BACKOFF: Duration = Duration::from_millis(50);
    // With permits left, a job of the runtime evicts one of a lower class.
    let (quota, class) = match dice.below(3) {
        0 => (64, TimerPriority::Normal),
        1 => (128, TimerPriority::Normal),
        _ => (128, TimerPriority::High),
    };
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.priority(class));
    let capacity = 64;
    let scheduler =
        SchedulerConfig { quota, capacity, internal_reserve, policies, ..SchedulerConfig::DEFAULT };
    let system = ActorSystem::builder("full").scheduler(scheduler);
    // The failures are planned.
    let failure_log = FailureLog::Off;
    let config = RuntimeConfig { workers: Some(2), failure_log, ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(system, config).map_err(|error| error.to_string())?;
    let failing = (0..1 + dice.below(8))
        .map(|n| FailingActor::start(&rt, n, BACKOFF))
        .collect::<Result<Vec<_>, String>>()?;
    let is_over = AtomicBool::new(false);
    let restarted = thread::scope(|scope| {
        scope.spawn(|| keep_full(rt.pool(), &is_over));
        let mut fail_all = || {
            for _ in 0..1 + dice.below(4) {
                failing.iter().try_for_each(FailingActor::fail)?;
                failing.iter().try_for_each(|one| one.restarts_after(BACKOFF))?;
            }
            Ok(())
        };
        let restarted = fail_all();
        is_over.store(true, Relaxed);
        restarted
    });
    let under = || format!("reserve {internal_reserve}, quota {quota}, jobs of class {class:?}");
    let restarted = restarted.map_err(|fault: String| format!("{}: {fault}", under()));
    let report = keeps_deadline(STOP_MAX, || rt.shutdown(STOP_MAX));
    restarted?;
    if report.is_clean() { Ok(()) } else { Err(report.to_string()) }
}

/// Schedules until the scheduler refuses, again and again: a job that leaves makes room for one.
fn keep_full(pool: &WorkerPool, is_over: &AtomicBool) {
    let hour = Duration::from_secs(3600);
    let mut jobs = Vec::new();
    while !is_over.load(Relaxed) {
        while let Ok(job) =
            pool.scheduler().schedule_once_fn(hour, DispatcherId::DEFAULT, |_: &FireContext| ())
        {
            jobs.push(job);
        }
        thread::yield_now();
        // Behind the yield, so that the scheduler is full while other threads run.
        if let Some(job) = jobs.pop() {
            job.cancel();
        }
    }
}

/// An actor that fails on each message, and the times at which its values were created.
struct FailingActor {
    actor: ActorRef<()>,
    failures: mpsc::Receiver<Instant>,
    starts: mpsc::Receiver<Instant>,
}

impl FailingActor {
    fn start(rt: &Runtime, n: u64, backoff: Duration) -> Result<Self, String> {
        let (started, starts) = mpsc::channel();
        let (failed, failures) = mpsc::channel();
        // The new value is created when the back-off is over. `Signal::PreRestart` would be too
        // early: the old value receives it before the back-off.
        let make = move || {
            let _ = started.send(Instant::now());
            Fails { failed: failed.clone() }
        };
        let backoff = Backoff::new(backoff, backoff).jitter(0.0);
        let props = Props::new(make).supervise(Strategy::restart().backoff(backoff));
        let actor = rt.spawn(&format!("failing-{n}"), props).map_err(|error| error.to_string())?;
        starts.recv_timeout(LIMIT).map_err(|_| "an actor does not start")?;
        Ok(Self { actor, failures, starts })
    }

    fn fail(&self) -> Result<(), String> {
        self.actor.tell(()).map_err(|error| format!("the actor is gone: {error}"))
    }

    fn restarts_after(&self, backoff: Duration) -> Result<(), String> {
        let failed_at = self.failures.recv_timeout(LIMIT).map_err(|_| "an actor does not fail")?;
        let restarted_at = self.starts.recv_timeout(LIMIT);
        let restarted_at = restarted_at.map_err(|_| "an actor that has failed never restarts")?;
        let pause = restarted_at.saturating_duration_since(failed_at);
        if pause < backoff {
            return Err(format!("an actor restarted {pause:?} after its failure, before its time"));
        }
        Ok(())
    }
}

struct Fails {
    failed: mpsc::Sender<Instant>,
}

impl Actor for Fails {
    type Msg = ();

    fn receive(&mut self, _cx: &mut actor::Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        let _ = self.failed.send(Instant::now());
        Err(Failure::msg("planned"))
    }
}

/// A mapped reference whose function blocks while the receiver has to stop: the shutdown keeps its
/// deadline and no actor is a straggler.
fn blocking_map(dice: &mut Dice) -> Result<(), String> {
    let config = RuntimeConfig { workers: Some(2), ..RuntimeConfig::DEFAULT };
    let rt = Runtime::start_with(ActorSystem::builder("mapped"), config);
    let rt = rt.map_err(|error| error.to_string())?;
    let receiver = rt.spawn("receiver", Props::from_fn(|_cx, (): ()| Ok(())));
    let receiver = receiver.map_err(|error| error.to_string())?;
    let mapped = receiver.map(|block: Duration| thread::sleep(block));
    let block = Duration::from_millis(1_500 + dice.below(500));
    let blocked = thread::spawn(move || drop(mapped.tell(block)));
    thread::sleep(Duration::from_millis(dice.below(20)));
    let deadline = Duration::from_millis(500);
    let report = keeps_deadline(deadline, || rt.shutdown(deadline));
    drop(blocked.join());
    if report.is_clean() { Ok(()) } else { Err(report.to_string()) }
}
