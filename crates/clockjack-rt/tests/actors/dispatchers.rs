//! Actors on threads of their own kind: pinned, apart, blocking.

use core::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    rc::Rc,
    sync::{Arc, Barrier, mpsc},
    thread::{self, ThreadId},
};

use clockjack_rt::{
    BLOCKING_DISPATCHER, BlockingConfig, Runtime, RuntimeConfig,
    actor::{Actor, ActorSystem, Context, Failure, Next, Pool, Props, Signal},
    sched::{DispatcherId, ScheduleErrorKind},
};
use clockjack_testing::InTime;

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, eventually::eventually, start};

/// Not `Send`; tells on which thread each part of its life was.
struct Local {
    count: Rc<Cell<u32>>,
    sender: mpsc::Sender<(&'static str, ThreadId)>,
}

impl Local {
    fn tell(&self, what: &'static str) {
        // At the end nobody may listen any more.
        _ = self.sender.send((what, thread::current().id()));
    }

    fn new(sender: mpsc::Sender<(&'static str, ThreadId)>) -> Self {
        let this = Self { count: Rc::default(), sender };
        this.tell("made");
        this
    }
}

impl Actor for Local {
    type Msg = u32;

    fn started(&mut self, _: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.tell("started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, n: u32) -> Result<Next, Failure> {
        self.tell("handled");
        let shared = Rc::clone(&self.count);
        shared.set(shared.get() + n);
        if n > 0 {
            let sender = self.sender.clone();
            let child = cx.spawn_local_child(&format!("below-{n}"), move || {
                // What is not `Send` goes to the child as it is.
                let _ = &shared;
                Self { count: Rc::clone(&shared), sender: sender.clone() }
            });
            let child = child.map_err(clockjack_rt::actor::SpawnError::discard)?;
            child.tell(0)?;
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, _: Signal) -> Result<Next, Failure> {
        self.tell("signalled");
        Ok(Next::Stay)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.tell("dropped");
    }
}

#[test]
fn an_actor_that_is_not_send_lives_and_dies_on_its_thread_and_so_do_its_children() {
    let runtime = start(2);
    let pinned = runtime.system().create_pinned("pinned").unwrap();
    let (sender, receiver) = mpsc::channel();
    let make = move || Local::new(sender.clone());
    let local = runtime.system().spawn_pinned(&pinned, "local", make).unwrap();
    local.tell(3).unwrap();
    assert_eq!(local.pid().node(), u32::from(pinned.id().0));
    let mut parts = Vec::new();
    while parts.iter().filter(|(what, _)| *what == "handled").count() < 2 {
        parts.push(receiver.recv_timeout(LONG).unwrap());
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    // The last ref goes elsewhere, and takes nothing of the actor with it.
    drop(local);
    parts.extend(receiver.iter());
    let names: Vec<_> = parts.iter().map(|(what, _)| *what).collect();
    let expected = [
        "made",
        "started",
        "handled",
        "started",
        "handled", // the child is not made by `new`
        "signalled",
        "dropped",
        "signalled",
        "dropped",
    ];
    assert_eq!(names, expected);
    assert!(parts.iter().all(|(_, id)| *id == parts[0].1));
    assert_ne!(parts[0].1, thread::current().id());
}

#[test]
fn what_is_not_send_is_refused_where_threads_change() {
    let runtime = start(2);
    let (sender, receiver) = mpsc::channel();
    let props = Props::from_fn(move |cx, (): ()| {
        let not_send = Rc::new(());
        let props = Props::new(move || {
            let _ = &not_send;
            Empty
        });
        let refused = cx.spawn_local_child("below", props).map(drop);
        sender.send(refused.unwrap_err().is_not_local())?;
        Ok(Next::Stay)
    });
    runtime.spawn("a", props).unwrap().tell(()).unwrap();
    assert!(receiver.recv_timeout(LONG).unwrap());
}

struct Empty;

impl Actor for Empty {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

#[test]
fn a_dispatcher_has_a_name_of_its_own_threads_and_a_system() {
    let runtime = start(1);
    let system = runtime.system();
    let first = system.create_dispatcher("first", 2).unwrap();
    assert!(system.create_dispatcher("first", 2).unwrap_err().is_name_taken());
    assert!(system.create_pinned("first").unwrap_err().is_name_taken());
    assert!(system.create_dispatcher("none", 0).unwrap_err().is_zero_workers());
    assert!(system.create_dispatcher("many", 5000).unwrap_err().is_too_many_workers());
    // What could not be made has not taken its name.
    assert_ne!(system.create_dispatcher("none", 1).unwrap(), first);
    let unknown = Props::new(|| Empty).dispatcher(DispatcherId(999));
    assert!(runtime.spawn("a", unknown).unwrap_err().is_no_dispatcher());
    let other = start(1);
    let foreign = other.system().create_pinned("foreign").unwrap();
    let refused = system.spawn_pinned(&foreign, "a", || Empty).unwrap_err();
    assert!(refused.is_no_dispatcher());
}

#[test]
fn pids_of_all_dispatchers_differ() {
    let runtime = start(1);
    let system = runtime.system();
    let (a, b) =
        (system.create_dispatcher("a", 1).unwrap(), system.create_dispatcher("b", 1).unwrap());
    let pinned = system.create_pinned("p").unwrap().id();
    let all = [DispatcherId::DEFAULT, BLOCKING_DISPATCHER, a, b, pinned];
    let mut pids = Vec::new();
    for (n, dispatcher) in all.into_iter().enumerate() {
        for m in 0..50 {
            let props = Props::new(|| Empty).dispatcher(dispatcher);
            pids.push(runtime.spawn(&format!("{n}-{m}"), props).unwrap().pid());
        }
    }
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 250);
}

#[test]
fn handlers_that_wait_for_each_other_all_run_on_the_blocking_dispatcher() {
    const ACTORS: usize = 12;
    let runtime = start(1);
    let barrier = Arc::new(Barrier::new(ACTORS));
    let n_through = Arc::new(AtomicUsize::new(0));
    for round in 0..3 {
        let actors: Vec<_> = (0..ACTORS)
            .map(|n| {
                let (barrier, n_through) = (Arc::clone(&barrier), Arc::clone(&n_through));
                let props = Props::from_fn(move |_, (): ()| {
                    barrier.wait();
                    n_through.fetch_add(1, SeqCst);
                    Ok(Next::Stop)
                });
                let props = props.dispatcher(BLOCKING_DISPATCHER);
                runtime.spawn(&format!("{round}-{n}"), props).unwrap()
            })
            .collect();
        actors.iter().for_each(|actor| actor.tell(()).unwrap());
        eventually("all are through", || n_through.load(SeqCst) == ACTORS * (round + 1));
        eventually("all have stopped", || {
            actors.iter().all(clockjack_rt::actor::ActorRef::is_stopped)
        });
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn beyond_its_bound_the_blocking_dispatcher_shares_its_threads() {
    let blocking = BlockingConfig { threads_max: 2, ..BlockingConfig::DEFAULT };
    let config = RuntimeConfig { workers: Some(1), blocking, ..RuntimeConfig::DEFAULT };
    let runtime = InTime::new(
        Runtime::start_with(ActorSystem::builder("t"), config).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    let (sender, receiver) = mpsc::channel();
    for n in 0..20 {
        let sender = sender.clone();
        let props = Props::from_fn(move |_, (): ()| {
            sender.send(thread::current().id())?;
            Ok(Next::Stay)
        });
        let props = props.dispatcher(BLOCKING_DISPATCHER);
        runtime.spawn(&format!("{n}"), props).unwrap().tell(()).unwrap();
    }
    let ids: Vec<_> = (0..20).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    let mut apart = Vec::new();
    ids.iter().for_each(|id| {
        if !apart.contains(id) {
            apart.push(*id)
        }
    });
    assert!(apart.len() <= 2, "{apart:?}");
}

/// The name of the thread on which a closure is run by the scheduler.
fn thread_of_job(runtime: &Runtime, dispatcher: DispatcherId) -> String {
    let (sender, receiver) = mpsc::channel();
    let jobs = runtime.system().scheduler();
    let job = jobs.jobs().schedule_once_fn(Duration::from_millis(1), dispatcher, move |_| {
        sender.send(thread::current().name().unwrap_or_default().to_owned())
    });
    job.unwrap();
    receiver.recv_timeout(LONG).unwrap()
}

#[test]
fn jobs_of_the_scheduler_run_on_the_dispatcher_that_they_name() {
    let runtime = start(2);
    let system = runtime.system();
    let apart = system.create_dispatcher("apart", 2).unwrap();
    let pinned = system.create_pinned("pinned").unwrap().id();
    assert!(thread_of_job(&runtime, apart).starts_with("apart-"));
    assert_eq!(thread_of_job(&runtime, pinned), "pinned");
    assert!(thread_of_job(&runtime, DispatcherId::DEFAULT).starts_with("cj-worker-"));
    let blocking = thread_of_job(&runtime, BLOCKING_DISPATCHER);
    assert!(!blocking.starts_with("cj-worker-") && !blocking.starts_with("apart-"), "{blocking}");

    // Again and again, one run at a time, also beside others.
    for dispatcher in [apart, pinned] {
        let (sender, receiver) = mpsc::channel();
        let (at_once, ms) = (Arc::new(AtomicUsize::new(0)), Duration::from_millis(1));
        let beat =
            system.scheduler().jobs().schedule_at_fixed_rate_fn(ms, ms, dispatcher, move |_| {
                assert_eq!(at_once.fetch_add(1, SeqCst), 0);
                let sent = sender.send(thread::current().id());
                at_once.fetch_sub(1, SeqCst);
                sent
            });
        let beat = beat.unwrap();
        assert_eq!(receiver.iter().take(20).count(), 20);
        assert!(beat.cancel());
        // The closure goes with the job, and hangs up.
        for _ in receiver {}
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_job_for_a_dispatcher_that_there_is_not_is_refused() {
    let runtime = start(1);
    let (scheduler, ms) = (runtime.system().scheduler().clone(), Duration::from_millis(1));
    let refused = scheduler.jobs().schedule_once_fn(ms, DispatcherId(999), |_| ()).unwrap_err();
    assert!(matches!(refused.kind(), ScheduleErrorKind::ReceiverGone), "{refused}");
    let apart = runtime.system().create_dispatcher("apart", 1).unwrap();
    scheduler.jobs().schedule_once_fn(ms, apart, |_| ()).unwrap();
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    let refused = scheduler.jobs().schedule_once_fn(ms, apart, |_| ()).unwrap_err();
    assert!(matches!(refused.kind(), ScheduleErrorKind::Closed), "{refused}");
}

#[test]
fn a_job_that_runs_on_a_dispatcher_is_waited_for_at_the_end_and_may_panic() {
    let runtime = start(2);
    let system = runtime.system();
    let (apart, ms) = (system.create_dispatcher("apart", 1).unwrap(), Duration::from_millis(1));
    system.scheduler().jobs().schedule_once_fn(ms, apart, |_| -> () { panic!("a job") }).unwrap();
    let (sender, receiver) = mpsc::channel();
    let is_done = Arc::new(AtomicUsize::new(0));
    let (done, end) = (Arc::clone(&is_done), system.when_terminated());
    let job = system.scheduler().jobs().schedule_once_fn(ms, apart, move |_| {
        sender.send(()).unwrap();
        // The actors are gone before the scheduler is closed.
        while end.report().is_none() {
            thread::yield_now();
        }
        done.fetch_add(1, SeqCst);
    });
    job.unwrap();
    receiver.recv_timeout(LONG).unwrap();
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    assert_eq!(is_done.load(SeqCst), 1);
}

/// Tells the name of its thread.
struct Names(mpsc::Sender<String>);

impl Actor for Names {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.0.send(thread::current().name().unwrap_or_default().to_owned())?;
        Ok(Next::Stay)
    }
}

#[test]
fn routees_run_on_the_dispatcher_of_their_pool() {
    let runtime = start(1);
    let reports = runtime.system().create_dispatcher("reports", 2).unwrap();
    let (sender, receiver) = mpsc::channel();
    let pool = Pool::round_robin(3, move || Names(sender.clone())).dispatcher(reports);
    let pool = runtime.spawn("pool", pool).unwrap();
    for _ in 0..6 {
        pool.tell(()).unwrap();
        let name = receiver.recv_timeout(LONG).unwrap();
        assert!(name.starts_with("reports"), "{name}");
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}
