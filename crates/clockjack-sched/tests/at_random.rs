//! Users that do anything at any time, on dispatchers that run late, out of order, or not at all.
//!
//! Each task records its calls. Whatever happens: nothing runs after a successful cancel,
//! a cancelled task is notified once, another is not, every task is dropped, the report of the
//! close is exact, nothing is left behind, and who listens is woken for what it hears.
#![cfg(not(loom))]

extern crate alloc;

#[expect(dead_code, reason = "the tests of decisions need more of it")]
#[path = "requirements/bench.rs"]
mod bench;

use alloc::{sync::Arc, task::Wake, vec::Vec};
use core::{
    sync::atomic::{
        AtomicBool, AtomicU32,
        Ordering::{Relaxed, SeqCst},
    },
    task::Context,
};
use std::sync::Mutex;

use bench::{Host, ms};
use clockjack_sched::{
    Affinity, Cancellable, CatchUp, DispatchedRun, DispatcherId, EventKinds, FireContext,
    HandlerError, Policy, PolicyRegistry, Scheduler, SchedulerConfig, SchedulerHost as _,
    SchedulerTask, Subscription, TimerPriority,
    model::{held, while_locked},
};
use clockjack_sync::splitmix::SplitMix;
use clockjack_time::{ClockKind, MonotonicClock as _, Resolution, Tick};

/// Steps before the close, and after it.
const STEPS: usize = 120;
/// Worlds that are drawn.
const ROUNDS: u64 = 300;

/// The calls of a task.
#[derive(Default)]
struct Fate {
    ran: AtomicU32,
    told: AtomicU32,
    dropped: AtomicU32,
    is_running: AtomicBool,
    /// Set by a successful canceller.
    is_cancelled: AtomicBool,
}

struct Job {
    fate: Arc<Fate>,
    handle: Cancellable,
}

/// What all tasks and the test share.
struct World {
    scheduler: Scheduler,
    host: Host,
    random: Mutex<SplitMix>,
    jobs: Mutex<Vec<Job>>,
    /// Whether handlers poll too.
    turns_anywhere: bool,
    /// What was dispatched and not run.
    works: Mutex<Vec<DispatchedRun>>,
}

struct Probe {
    world: Arc<World>,
    fate: Arc<Fate>,
}

impl SchedulerTask for Probe {
    fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError> {
        assert!(!self.fate.is_running.swap(true, SeqCst), "runs of a job do not overlap");
        assert!(!self.fate.is_cancelled.load(SeqCst), "no run begins after a cancel");
        assert_eq!(self.fate.told.load(SeqCst), 0, "nor after it was told");
        let is_due = fire.now().elapsed_tick(Resolution::MILLI) >= fire.due();
        assert!(is_due || self.world.scheduler.is_closed(), "never early, but by the close");
        self.fate.ran.fetch_add(1, SeqCst);
        let draw = self.world.below(16);
        match draw {
            0 => self.world.schedule(),
            1 | 2 => self.world.cancel(),
            3 => _ = self.world.host.clock.advance(ms(3)),
            4 => self.world.run_works(),
            5 if self.world.turns_anywhere => _ = self.world.scheduler.poll_shard(0, 0, 2),
            _ => {}
        }
        self.fate.is_running.store(false, SeqCst);
        match draw {
            6 => Err(HandlerError::new("drawn")),
            7 => panic!("drawn"),
            _ => Ok(()),
        }
    }

    fn cancelled(&mut self) {
        assert!(!self.fate.is_running.load(SeqCst), "it is told when it does not run");
        self.fate.told.fetch_add(1, SeqCst);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.fate.dropped.fetch_add(1, SeqCst);
    }
}

impl World {
    fn new(seed: u64, shards: u32) -> Arc<Self> {
        let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
        let of =
            |dispatcher, policy: Policy| (Affinity::Dispatcher(DispatcherId(dispatcher)), policy);
        let low = of(1, Policy::DEFAULT.priority(TimerPriority::Low).backlog_limit(6));
        let high = of(2, Policy::DEFAULT.priority(TimerPriority::High).catch_up(CatchUp::Folded));
        let config = SchedulerConfig {
            resolution: Resolution::MILLI,
            shards,
            capacity: 24,
            quota: 40,
            policies: PolicyRegistry::new().set(low.0, low.1).set(high.0, high.1),
            ..SchedulerConfig::DEFAULT
        };
        Arc::new(Self {
            scheduler: host.scheduler(config),
            host,
            random: Mutex::new(SplitMix::new(seed)),
            jobs: Mutex::default(),
            turns_anywhere: shards > 1,
            works: Mutex::default(),
        })
    }

    fn below(&self, bound: u32) -> u32 {
        self.random.lock().unwrap().below(bound)
    }

    fn schedule(self: &Arc<Self>) {
        let fate = Arc::new(Fate::default());
        let task = Probe { world: Arc::clone(self), fate: Arc::clone(&fate) };
        let dispatcher = DispatcherId(u16::try_from(self.below(3)).unwrap());
        let (delay, period) = (ms(self.below(12).into()), ms(1 + u64::from(self.below(6))));
        self.host.shard.store(self.below(2) as usize, Relaxed);
        let s = &self.scheduler;
        let scheduled = match self.below(4) {
            0 => s.schedule_at_fixed_rate_task(delay, period, dispatcher, task),
            1 => s.schedule_with_fixed_delay_task(delay, period, dispatcher, task),
            _ => s.schedule_once_task(delay, dispatcher, task),
        };
        match scheduled {
            Ok(handle) => {
                if self.below(8) == 0 {
                    handle.run_on_close();
                }
                self.jobs.lock().unwrap().push(Job { fate, handle });
            }
            Err(refused) => {
                drop(refused);
                assert_eq!(fate.dropped.load(SeqCst), 1, "what is refused comes back");
            }
        }
    }

    fn cancel(&self) {
        let n = u32::try_from(self.jobs.lock().unwrap().len()).unwrap();
        if n == 0 {
            return;
        }
        let chosen = self.below(n) as usize;
        let jobs = self.jobs.lock().unwrap();
        let Job { fate, handle } = &jobs[chosen];
        let (fate, handle) = (Arc::clone(fate), handle.clone());
        drop(jobs);
        if handle.cancel() {
            fate.is_cancelled.store(true, SeqCst);
            assert!(!handle.cancel(), "it wins once");
        }
    }

    /// Some of what was dispatched is run, in any order, or dropped.
    fn run_works(&self) {
        self.works.lock().unwrap().extend(self.host.take_work());
        for _ in 0..self.below(3) {
            let mut works = self.works.lock().unwrap();
            let Some(n) = u32::try_from(works.len()).ok().filter(|n| *n > 0) else { return };
            let work = works.swap_remove(self.below(n) as usize);
            drop(works);
            if self.below(8) == 0 { drop(work) } else { work.run() }
        }
    }

    fn turn(&self) {
        for shard in 0..self.scheduler.shards() {
            self.scheduler.poll_shard(shard, 0, 1 + self.below(8) as usize);
        }
    }

    fn step(self: &Arc<Self>) {
        match self.below(14) {
            12.. => self.turn(),
            _ => self.step_but_turns(),
        }
    }

    fn step_but_turns(self: &Arc<Self>) {
        match self.below(12) {
            0..=3 => self.schedule(),
            // With siblings a post waits for the guard if the quota has nothing left.
            4 if self.scheduler.shards() == 1 => {
                while_locked(&self.scheduler, || self.schedule());
            }
            5 => self.cancel(),
            6 => while_locked(&self.scheduler, || self.cancel()),
            7 => self.host.refuses.store(self.below(3) == 0, SeqCst),
            8 => _ = self.host.clock.advance(ms(self.below(9).into())),
            9 => self.run_works(),
            10 => drop(self.scheduler.metrics()),
            _ => _ = self.scheduler.check_driver(),
        }
    }
}

/// A reader of the stream that reads only when it is woken.
struct Listener {
    stream: Subscription,
    is_woken: Arc<Bell>,
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl Listener {
    fn new(scheduler: &Scheduler) -> Self {
        let stream = scheduler.diagnostics().subscribe(EventKinds::ALL, 1_000).unwrap();
        Self { stream, is_woken: Arc::new(Bell(AtomicBool::new(true))) }
    }

    fn look(&mut self) {
        if !self.is_woken.0.swap(false, SeqCst) {
            let missed = self.stream.try_next();
            assert_eq!(missed, None, "who waits for an event is woken");
            return;
        }
        let waker = Arc::clone(&self.is_woken).into();
        while self.stream.poll_next(&mut Context::from_waker(&waker)).is_ready() {}
    }
}

/// A poller that polls when it is woken, or at the time that the last poll returned
/// it.
struct Runner {
    next_wake: Option<Tick>,
}

impl Runner {
    fn run(&mut self, world: &World) {
        let mut is_called = world.host.take_calls() > 0;
        let is_time = |next_wake: Option<Tick>| {
            next_wake.is_some_and(|next_wake| next_wake <= world.host.clock.now().tick())
        };
        while is_called || is_time(self.next_wake) {
            let turn = world.scheduler.poll_shard(0, 0, 1 + world.below(8) as usize);
            if !turn.is_more {
                self.next_wake = turn.next_wake;
            }
            is_called = turn.is_more || world.host.take_calls() > 0;
        }
    }

    /// What it would have to do now, it has done.
    fn judge(world: &World) {
        let now = world.host.clock.now().tick();
        let dump = world.scheduler.diagnostics().dump();
        for job in &dump.shards[0].jobs {
            assert!(job.due > now || job.state != "scheduled", "at {now} nobody runs {job:?}");
        }
        let is_called = world.host.take_calls() > 0;
        assert!(dump.shards[0].queued == 0 || is_called, "nobody is called at {now}: {dump}");
        if is_called {
            world.host.wake_poller(0, Tick::ZERO);
        }
    }
}

#[test]
fn a_runner_that_turns_only_when_it_is_called_or_its_time_has_come_leaves_nothing_undone() {
    quietly(|| {
        for seed in 0..ROUNDS {
            let world = World::new(seed, 1);
            let mut runner = Runner { next_wake: None };
            for step in 0..STEPS {
                world.step_but_turns();
                runner.run(&world);
                if step % 4 == 0 {
                    Runner::judge(&world);
                }
            }
            world.scheduler.shutdown();
        }
    });
}

fn round(seed: u64) {
    let world = World::new(seed, 1 + u32::try_from(seed % 2).unwrap());
    let mut listener = Listener::new(&world.scheduler);
    for _ in 0..STEPS {
        world.step();
        listener.look();
    }
    let report = world.scheduler.shutdown();
    assert_eq!(report.accepted, report.executed + report.cancelled, "{report}");
    for _ in 0..STEPS {
        world.step();
        listener.look();
    }
    world.works.lock().unwrap().extend(world.host.take_work());
    let works = core::mem::take(&mut *world.works.lock().unwrap());
    works.into_iter().for_each(DispatchedRun::run);
    let metrics = world.scheduler.metrics();
    let now = (metrics.accepted_total, metrics.executed_total, metrics.cancelled_total);
    assert_eq!(now, (report.accepted, report.executed, report.cancelled), "the report was exact");
    assert_eq!(metrics.active_total, 0);
    let jobs = core::mem::take(&mut *world.jobs.lock().unwrap());
    assert_eq!(jobs.len() as u64, report.accepted);
    for Job { fate, handle } in jobs {
        assert_ne!(handle.is_cancelled(), handle.is_completed(), "{handle:?}");
        let told = fate.told.load(SeqCst);
        assert_eq!(told, u32::from(handle.is_cancelled()), "{handle:?} was told {told} times");
        assert_eq!(fate.dropped.load(SeqCst), 1, "{handle:?}");
        // The host catches what a task asserts, which leaves it running.
        assert!(!fate.is_running.load(SeqCst), "{handle:?} has failed an assertion");
    }
    let left = held(&world.scheduler);
    assert_eq!((left.slots, left.permits, left.due, left.remote_ops), (0, 0, 0, 0), "{left:?}");
}

/// Says nothing of panics that were drawn.
fn quietly(f: impl FnOnce()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"drawn") {
            hook(panic);
        }
    }));
    f();
}

#[test]
fn whatever_users_and_dispatchers_do_each_job_ends_in_one_way() {
    quietly(|| (0..ROUNDS).for_each(round));
}
