//! The flight recorder of a runtime: every kind of event has a producer, and tracing can be
//! switched. And the metrics of a runtime.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "flight/metrics.rs"]
mod metrics;

use core::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
    task::Wake,
};

use clockjack_observe::{
    Event, Record,
    event::{Kind, SchedulerWarning},
};
use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{ActorRef, ActorSystem, Failure, Next, Props, Scope, Strategy},
    sched::{DispatcherId, FireContext, HandlerError},
    sleep,
};
use clockjack_testing::InTime;
use eventually::eventually;

/// Everything that the rings still hold.
const ALL: Duration = Duration::MAX;
/// After which time a step is stuck; nothing else here takes that long.
const STUCK_AFTER: Duration = Duration::from_millis(300);

fn start(workers: usize) -> InTime<Runtime> {
    let config = RuntimeConfig {
        workers: Some(workers),
        workers_max: 2,
        stuck_after: STUCK_AFTER,
        flight_records: 1 << 16,
        ..RuntimeConfig::DEFAULT
    };
    let system = ActorSystem::builder("flight")
        .supervise_users(Scope::OneForOne, Strategy::escalate())
        .shutdown_on_escalation(false);
    InTime::new(Runtime::start_with(system, config).unwrap(), RuntimeConfig::DEFAULT.drop_timeout)
}

fn records(rt: &Runtime) -> Vec<Record> {
    rt.flight_recording(ALL).records().into_iter().map(|(_, record)| record).collect()
}

fn has(rt: &Runtime, kind: Kind) -> bool {
    records(rt).iter().any(|record| record.event.kind() == kind)
}

/// How a kind of event is provoked: with so many workers, by this function. The function may block
/// a worker until the event is recorded.
type Provocation = (Kind, usize, fn(&Runtime));

const PROVOCATIONS: &[Provocation] = &[
    (Kind::TimersFired, 1, |rt| {
        drop(rt.block_on(rt.spawn_future(sleep(Duration::from_millis(1)))))
    }),
    (Kind::TimersLate, 1, |rt| block_a_worker_with_a_due_timer(rt, Kind::TimersLate)),
    (Kind::ShardReassigned, 2, |rt| drop(rt.pool().resize(1))),
    (Kind::TimersTakenOver, 2, |rt| block_a_worker_with_a_due_timer(rt, Kind::TimersTakenOver)),
    (Kind::TaskSpawned, 1, spawn_one),
    (Kind::TaskPolled, 1, spawn_one),
    (Kind::TaskWoken, 1, |rt| send_from_a_task(rt, "sink", 1)),
    (Kind::TaskFinished, 1, spawn_one),
    (Kind::WorkerStarted, 1, |_| ()),
    (Kind::WorkerStopped, 2, |rt| drop(rt.pool().resize(1))),
    (Kind::WorkerParked, 1, wake_a_worker_that_sleeps),
    (Kind::WorkStolen, 2, leave_tasks_in_the_ring),
    (Kind::WorkerStuck, 1, |rt| block_a_worker_until(rt, Kind::WorkerStuck)),
    (Kind::ShutdownStarted, 1, |rt| drop(rt.system().shutdown())),
    (Kind::JobFired, 1, |rt| schedule(rt, || Ok(()))),
    (Kind::JobLate, 1, miss_runs),
    (Kind::SchedulerWarned, 1, |rt| schedule(rt, || Err(HandlerError::new("out of paper")))),
    (Kind::ActorStarted, 1, |rt| drop(echo(rt))),
    (Kind::ActorStopped, 1, |rt| rt.system().stop(&echo(rt)).unwrap()),
    (Kind::ActorFailed, 1, |rt| fail(rt, Strategy::resume())),
    (Kind::ActorRestarted, 1, |rt| fail(rt, Strategy::restart())),
    (Kind::FailureEscalated, 1, |rt| fail(rt, Strategy::escalate())),
    (Kind::DeadLettered, 1, |rt| drop(rt.system().dead_letters().tell(7))),
];

#[test]
fn every_kind_of_event_is_recorded() {
    let provoked: BTreeSet<Kind> = PROVOCATIONS.iter().map(|(kind, ..)| *kind).collect();
    let all: BTreeSet<Kind> = Kind::ALL.iter().copied().collect();
    assert_eq!(provoked, all, "each kind of event has a test that provokes it");
    for (kind, workers, provoke) in PROVOCATIONS {
        let rt = start(*workers);
        rt.set_tracing(kind.is_traced_only());
        provoke(&rt);
        eventually(kind.name(), || has(&rt, *kind));
    }
}

#[test]
fn frequent_events_are_recorded_only_while_a_trace_is_on() {
    let rt = start(1);
    let everything = |name| {
        spawn_one(&rt);
        send_from_a_task(&rt, name, 3);
        schedule(&rt, || Ok(()));
        drop(rt.block_on(rt.spawn_future(sleep(Duration::from_millis(1)))));
    };
    let traced = || records(&rt).iter().filter(|one| one.event.kind().is_traced_only()).count();
    everything("before");
    assert_eq!(traced(), 0, "a trace was never on");
    rt.set_tracing(true);
    everything("traced");
    rt.set_tracing(false);
    // The worker may take the first task in the traced form of its loop, and leaves that form
    // before it takes the second one.
    spawn_one(&rt);
    spawn_one(&rt);
    let before = traced();
    assert!(before > 0);
    everything("after");
    assert_eq!(traced(), before, "the trace is off again");
}

#[test]
fn a_traced_poll_says_which_actor_ran_for_how_many_messages() {
    let rt = start(1);
    rt.set_tracing(true);
    spawn_one(&rt);
    send_from_a_task(&rt, "sink", 5);
    let sink = rt.system().lookup::<u32>("/user/sink").unwrap();
    let polls = || -> (u32, u64) {
        let polls = records(&rt).into_iter().filter_map(|record| match record.event {
            Event::TaskPolled { task, messages, ran_ns } if task.0 == sink.pid().index() => {
                Some((u32::from(messages), ran_ns))
            }
            _ => None,
        });
        polls.fold((0, 0), |(messages, ns), (more, ran_ns)| (messages + more, ns + ran_ns))
    };
    eventually("the poll is recorded", || polls().0 == 5);
    assert!(polls().1 > 0);
    let mut trace = Vec::new();
    rt.write_trace(ALL, &mut trace).unwrap();
    for text in ["/user/sink", "worker 0"] {
        let is_in = trace.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(is_in, "the trace has no {text}");
    }
}

#[test]
fn each_worker_writes_its_own_ring_and_other_threads_another() {
    let rt = start(2);
    drop(rt.system().dead_letters().tell(7));
    eventually("the dead letter is recorded", || has(&rt, Kind::DeadLettered));
    for (worker, record) in rt.flight_recording(ALL).records() {
        match record.event {
            Event::WorkerStarted { worker: started } => assert_eq!(worker, started),
            Event::WorkerParked { worker: parked, .. } => assert_eq!(worker, parked),
            _ => {}
        }
    }
    drop(rt.system().shutdown());
    eventually("the shutdown is recorded", || has(&rt, Kind::ShutdownStarted));
}

#[test]
fn a_recording_is_limited_to_the_last_seconds() {
    let rt = start(1);
    eventually("the worker has started", || has(&rt, Kind::WorkerStarted));
    assert!(rt.flight_recording(Duration::ZERO).records().len() <= 1);
    let all = rt.flight_recording(ALL).records();
    assert!(all.is_sorted_by_key(|(_, record)| record.at_ns));
}

#[test]
fn nothing_is_recorded_without_a_recorder() {
    let config = RuntimeConfig {
        workers: Some(1),
        workers_max: 1,
        flight_records: 0,
        ..RuntimeConfig::DEFAULT
    };
    let rt = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    rt.set_tracing(true);
    spawn_one(&rt);
    assert!(records(&rt).is_empty());
}

#[test]
fn a_warning_of_the_scheduler_says_which_it_is() {
    let rt = start(1);
    schedule(&rt, || Err(HandlerError::new("out of paper")));
    let is_it = |record: &Record| {
        let Event::SchedulerWarned { warning, .. } = record.event else { return false };
        warning == SchedulerWarning::HandlerFailed
    };
    eventually("the failure is recorded", || records(&rt).iter().any(is_it));
}

fn spawn_one(rt: &Runtime) {
    rt.block_on(rt.spawn_future(async {})).unwrap();
}

/// A sleep is recorded when it ends.
fn wake_a_worker_that_sleeps(rt: &Runtime) {
    eventually("the worker has announced a sleep", || rt.pool().stats().parked > 0);
    spawn_one(rt);
}

fn echo(rt: &Runtime) -> ActorRef<u32> {
    rt.spawn("echo", Props::from_fn(|_, _: u32| Ok(Next::Stay))).unwrap()
}

/// A task sends `n` messages to a new actor: a worker wakes the actor.
fn send_from_a_task(rt: &Runtime, name: &str, n: u32) {
    let (sender, receiver) = mpsc::channel();
    let sink = Props::from_fn(move |_, one: u32| {
        sender.send(one)?;
        Ok(Next::Stay)
    });
    let sink = rt.spawn(name, sink).unwrap();
    let source = rt.spawn_future(async move { (0..n).try_for_each(|one| sink.tell(one)) });
    rt.block_on(source).unwrap().unwrap();
    assert_eq!(receiver.iter().take(n as usize).count(), n as usize);
}

fn fail(rt: &Runtime, strategy: Strategy) {
    let failing = Props::from_fn(|_, _: u32| Err::<(), _>(Failure::msg("out of paper")));
    rt.spawn("failing", failing.supervise(strategy)).unwrap().tell(7).unwrap();
}

fn schedule(rt: &Runtime, run: fn() -> Result<(), HandlerError>) {
    let (sender, receiver) = mpsc::channel();
    let job = move |_: &FireContext| {
        let result = run();
        sender.send(()).map_err(|_| HandlerError::new("nobody waits")).and(result)
    };
    let scheduler = rt.system().scheduler().jobs();
    scheduler.schedule_once_fn(Duration::ZERO, DispatcherId::DEFAULT, job).unwrap();
    receiver.recv().unwrap();
}

/// Blocks a worker in a task until an event of this kind is recorded.
fn block_a_worker_until(rt: &Runtime, kind: Kind) {
    let is_over = Arc::new(AtomicBool::new(false));
    let blocking = Arc::clone(&is_over);
    let task = rt.spawn_future(async move {
        eventually("the event is recorded", || blocking.load(SeqCst));
    });
    eventually(kind.name(), || has(rt, kind));
    is_over.store(true, SeqCst);
    rt.block_on(task).unwrap();
}

struct Fired(AtomicBool);

impl Wake for Fired {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Arms a timer on a worker and blocks that worker until the timer is overdue: if it is alone, the
/// timer fires late; otherwise another worker fires it.
fn block_a_worker_with_a_due_timer(rt: &Runtime, kind: Kind) {
    let handle = rt.pool().handle();
    let task = rt.spawn_future(async move {
        let fired = Arc::new(Fired(AtomicBool::new(false)));
        let due = handle.deadline_after(Duration::from_millis(1));
        handle.wake_at(due, Arc::clone(&fired).into()).unwrap();
        let is_late = || handle.now().tick().get() > due.get() + 20;
        let other_worker_fires = kind == Kind::TimersTakenOver;
        eventually("the timer is overdue", || {
            if other_worker_fires { fired.0.load(SeqCst) } else { is_late() }
        });
    });
    rt.block_on(task).unwrap();
}

/// A worker starts tasks and stays busy: another worker steals them.
fn leave_tasks_in_the_ring(rt: &Runtime) {
    const TASKS: usize = 64;
    let handle = rt.pool().handle();
    let task = rt.spawn_future(async move {
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            let done = Arc::clone(&done);
            drop(handle.spawn_future(async move { done.fetch_add(1, SeqCst) }));
        }
        eventually("another worker has polled all but one", || done.load(SeqCst) >= TASKS - 1);
    });
    rt.block_on(task).unwrap();
}

/// A job that is due every millisecond misses runs, because the only worker is busy.
fn miss_runs(rt: &Runtime) {
    let every = Duration::from_millis(1);
    let job = |_: &FireContext| Ok::<_, HandlerError>(());
    let scheduler = rt.system().scheduler().jobs();
    let job = scheduler.schedule_at_fixed_rate_fn(every, every, DispatcherId::DEFAULT, job);
    let job = job.unwrap();
    let handle = rt.pool().handle();
    let task = rt.spawn_future(async move {
        let until = handle.now().tick().get() + 100;
        eventually("a hundred runs are missed", || handle.now().tick().get() > until);
    });
    rt.block_on(task).unwrap();
    eventually("the missed runs are recorded", || has(rt, Kind::JobLate));
    job.cancel();
}
