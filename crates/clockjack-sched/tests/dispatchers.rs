//! Users that do anything at any time, on dispatchers that run late, out of order, or not at all.
//!
//! Each task knows what it was told. Whatever happens: nothing runs after a cancel that has won,
//! who was cancelled is told once, who was not is not, every task is dropped, the report of the
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
    Affinity, Cancellable, CatchUp, Class, DispatcherId, EventKinds, FireContext, HandlerError,
    Policy, PolicyRegistry, Scheduler, SchedulerConfig, SchedulerTask, Subscription, Work,
    model::{held, while_leased},
};
use clockjack_sync::splitmix::SplitMix;
use clockjack_time::{ClockKind, Resolution};

/// Steps before the close, and after it.
const STEPS: usize = 120;
/// Worlds that are drawn.
const ROUNDS: u64 = 500;

/// What a task was told.
#[derive(Default)]
struct Fate {
    ran: AtomicU32,
    told: AtomicU32,
    dropped: AtomicU32,
    is_running: AtomicBool,
    /// Set by whoever has won a cancel.
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
    /// What was dispatched and not run.
    works: Mutex<Vec<Work>>,
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
            5 => _ = self.world.scheduler.turn(0, 0, 2),
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
    fn new(seed: u64) -> Arc<Self> {
        let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
        let of =
            |dispatcher, policy: Policy| (Affinity::Dispatcher(DispatcherId(dispatcher)), policy);
        let low = of(1, Policy::DEFAULT.priority(Class::Low).backlog_limit(6));
        let high = of(2, Policy::DEFAULT.priority(Class::High).catch_up(CatchUp::Folded));
        let config = SchedulerConfig {
            resolution: Resolution::MILLI,
            shards: 1 + u32::try_from(seed % 2).unwrap(),
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
            self.scheduler.turn(shard, 0, 1 + self.below(8) as usize);
        }
    }

    fn step(self: &Arc<Self>) {
        match self.below(14) {
            0..=3 => self.schedule(),
            // With siblings a post waits for the lease if the quota has nothing left.
            4 if self.scheduler.shards() == 1 => {
                while_leased(&self.scheduler, || self.schedule());
            }
            5 => self.cancel(),
            6 => while_leased(&self.scheduler, || self.cancel()),
            7 => self.host.refuses.store(self.below(3) == 0, SeqCst),
            8 => _ = self.host.clock.advance(ms(self.below(9).into())),
            9 => self.run_works(),
            10 => drop(self.scheduler.metrics()),
            11 => _ = self.scheduler.check_driver(),
            _ => self.turn(),
        }
    }
}

/// A reader of the stream that looks only when it is woken.
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

fn round(seed: u64) {
    let world = World::new(seed);
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
    works.into_iter().for_each(Work::run);
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
    assert_eq!((left.slots, left.credits, left.garbage, left.notes), (0, 0, 0, 0), "{left:?}");
}

#[test]
fn whatever_users_and_dispatchers_do_each_job_ends_in_one_way() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"drawn") {
            hook(panic);
        }
    }));
    for seed in 0..ROUNDS {
        round(seed);
    }
}
