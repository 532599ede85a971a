//! The end of a runtime: in order, in time, from anywhere.

use core::time::Duration;
use std::sync::mpsc;

use clockjack_rt::{
    BLOCKING_DISPATCHER, PoolConfig, Runtime, RuntimeConfig, RuntimeReport, WorkerPool,
    actor::{
        Actor, ActorSystem, Context, Failure, IntoProps, Next, Props, Scope, Signal, Strategy,
        Termination, TerminationReport,
    },
    exec::Commands,
};
use clockjack_testing::keeps_deadline;

use crate::in_time::ShutdownInTime as _;
use crate::{LONG, Log, eventually::eventually, start, start_with};

struct Node {
    log: Log,
    below: Vec<Below>,
}

type Below = (&'static str, clockjack_rt::sched::DispatcherId);

impl Actor for Node {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        for (name, dispatcher) in &self.below {
            let log = self.log.clone();
            let props = Props::new(move || Self { log: log.clone(), below: Vec::new() });
            cx.spawn_child(name, props.dispatcher(*dispatcher))?;
        }
        self.log.add("started");
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        self.log.add(format!("{} {signal:?}", cx.path()));
        Ok(Next::Stay)
    }
}

/// Waits for the end on a thread that belongs to nobody.
fn wait(end: Termination) -> TerminationReport {
    let config = PoolConfig { workers: Some(1), ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).unwrap().block_on(end)
}

#[test]
fn children_end_before_parents_on_whatever_thread_they_are() {
    let runtime = start(2);
    let log = Log::default();
    let other = runtime.system().create_dispatcher("other", 2).unwrap();
    let pinned = runtime.system().create_pinned("pinned").unwrap();
    let to = log.clone();
    let below = vec![
        ("a", clockjack_rt::sched::DispatcherId::DEFAULT),
        ("b", other),
        ("c", pinned.id()),
        ("d", BLOCKING_DISPATCHER),
    ];
    let make = move || Node { log: to.clone(), below: below.clone() };
    runtime.system().spawn_pinned(&pinned, "top", make).unwrap();
    // Who was stopped before it was started has nothing to say at its end.
    eventually("all have started", || log.lines().len() == 5);
    let report = runtime.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.termination.reason, "actor system terminate");
    let names = ["top/d", "top/c", "top/b", "top/a", "top"];
    assert_eq!(log.lines()[5..], names.map(|name| format!("/user/{name} PostStop")));
}

/// Waits in its handler for as long as the other end lives.
struct Stuck(mpsc::Receiver<()>, mpsc::Sender<()>);

impl Actor for Stuck {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.1.send(())?;
        _ = self.0.recv();
        Ok(Next::Stay)
    }
}

#[test]
fn who_does_not_stop_in_time_is_reported_to_all_and_left_behind() {
    for on_pinned in [false, true] {
        let runtime = start(2);
        let (hold, held) = mpsc::channel();
        let (sender, receiver) = mpsc::channel();
        let mut stuck = Some(Stuck(held, sender));
        let props = Props::new(move || stuck.take().expect("it is made once"));
        let actor = if on_pinned {
            let pinned = runtime.system().create_pinned("pinned").unwrap();
            runtime.system().spawn_pinned(&pinned, "stuck", props)
        } else {
            runtime.spawn("stuck", props)
        };
        let actor = actor.unwrap();
        runtime.spawn("well", || Node { log: Log::default(), below: Vec::new() }).unwrap();
        actor.tell(()).unwrap();
        receiver.recv_timeout(LONG).unwrap();
        let end = runtime.system().when_terminated();
        let report = runtime.shutdown_in_time(Duration::from_millis(20));
        let paths: Vec<_> = report.termination.stragglers.iter().map(ToString::to_string).collect();
        // Who waits for it is not at fault, and there all the same.
        assert!(paths.contains(&"/user/stuck".into()), "{paths:?}");
        assert!(!report.is_clean());
        // The thread in the handler did not return, and the report names it.
        let left: Vec<_> = report.executors.iter().filter(|it| it.threads_left == 1).collect();
        assert_eq!(left.len(), 1, "{report}");
        assert_eq!(left[0].name, if on_pinned { "pinned" } else { "cj-worker" });
        let name = format!("{}: 1 thread did not return", left[0].name);
        let text = report.to_string();
        assert!(text.contains(&name) && text.contains("actor /user/stuck did not"), "{text}");
        assert_eq!(end.report(), Some(report.termination));
        drop(hold);
    }
}

/// Owns the runtime on which it runs.
struct Owner {
    drops: bool,
    sender: mpsc::Sender<RuntimeReport>,
}

impl Actor for Owner {
    type Msg = Runtime;

    fn receive(&mut self, _: &mut Context<'_, Self>, runtime: Runtime) -> Result<Next, Failure> {
        if self.drops {
            keeps_deadline(RuntimeConfig::DEFAULT.drop_timeout, || drop(runtime));
        } else {
            self.sender.send(runtime.shutdown_in_time(LONG))?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_runtime_that_is_shut_down_or_dropped_by_its_own_actor_ends_all_the_same() {
    for (on_pinned, drops) in [(false, false), (false, true), (true, false), (true, true)] {
        let runtime = start(1);
        let (sender, receiver) = mpsc::channel();
        let make = move || Owner { drops, sender: sender.clone() };
        let owner = if on_pinned {
            let pinned = runtime.system().create_pinned("pinned").unwrap();
            runtime.system().spawn_pinned(&pinned, "owner", make)
        } else {
            runtime.spawn("owner", make)
        };
        let owner = owner.unwrap();
        let end = runtime.system().when_terminated();
        owner.tell(runtime.into_inner()).unwrap();
        if !drops {
            let now = receiver.recv_timeout(LONG).unwrap();
            assert!(!now.is_final && !now.is_clean(), "{now}");
            assert!(now.jobs.is_none() && now.executors.is_empty(), "{now:?}");
            assert_eq!(now.termination.reason, "shut down by a thread that it waits for");
            assert_eq!(now.termination.stragglers, [owner.path()]);
        }
        let report = wait(end);
        assert!(report.is_clean(), "{report:?}");
        assert!(owner.is_stopped());
    }
}

#[test]
fn a_failure_that_comes_up_to_the_root_ends_the_run() {
    let builder = ActorSystem::builder("t").supervise_users(Scope::AllForOne, Strategy::escalate());
    let runtime = start_with(builder, 2);
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(Failure::msg("out of paper")));
    runtime.spawn("printer", props).unwrap().tell(()).unwrap();
    let report = runtime.into_inner().run();
    assert!(report.termination.reason.contains("out of paper"), "{report:?}");
    assert_eq!(report.failure.as_ref().unwrap().reason.text(), "out of paper");
    assert!(report.is_clean(), "{report:?}");
}

/// Fails at its first message.
fn failing() -> impl IntoProps<Actor: Actor<Msg = &'static str> + Send, Factory: Send> {
    Props::from_fn(|_, why: &'static str| Err::<(), _>(Failure::msg(why)))
}

#[test]
fn the_failure_of_the_last_top_level_actor_ends_the_run() {
    for scope in [None, Some(Scope::OneForOne)] {
        let builder = ActorSystem::builder("t");
        let builder = match scope {
            Some(scope) => builder.supervise_users(scope, Strategy::stop()),
            None => builder,
        };
        let runtime = start_with(builder, 2);
        let first = runtime.spawn("first", failing()).unwrap();
        let last = runtime.spawn("last", failing()).unwrap();
        first.tell("not the last one").unwrap();
        runtime.block_on(runtime.system().when_stopped(&first));
        last.tell("the last one").unwrap();
        let report = runtime.into_inner().run();
        let failure = report.failure.as_ref().unwrap();
        assert_eq!(failure.path.to_string(), "/user/last");
        assert_eq!(failure.reason.text(), "the last one");
        assert!(report.termination.reason.contains("the last one"), "{report:?}");
        assert_eq!(report.signal, None);
        assert!(report.is_clean() && !report.is_success(), "{report:?}");
        assert!(report.to_string().ends_with(": failed"), "{report}");
    }
}

#[test]
fn a_run_goes_on_as_long_as_somebody_can_start_an_actor() {
    let runtime = start(2);
    let system = runtime.system().clone();
    let first = runtime.spawn("first", failing()).unwrap();
    let run = std::thread::spawn(|| runtime.into_inner().run());
    first.tell("nobody is left").unwrap();
    eventually("the first one has stopped", || first.is_stopped());
    // The run goes on: actors can be started.
    let second = system.spawn("second", failing()).unwrap();
    second.tell("nobody is left, again").unwrap();
    eventually("the second one has stopped", || second.is_stopped());
    let polite = system.spawn("polite", failing()).unwrap();
    system.stop(&polite).unwrap();
    eventually("it has stopped", || polite.is_stopped());
    system.spawn("last", failing()).unwrap().tell("the last one").unwrap();
    drop(system);
    let report = run.join().unwrap();
    assert_eq!(report.failure.unwrap().reason.text(), "the last one");
}

#[test]
fn after_the_end_everything_is_refused() {
    let runtime = start(1);
    let pinned = runtime.system().create_pinned("pinned").unwrap();
    let system = runtime.system().clone();
    assert!(runtime.shutdown_in_time(LONG).is_clean());
    let node = || Node { log: Log::default(), below: Vec::new() };
    assert!(system.spawn("a", node).unwrap_err().is_stopping());
    let refused = system.spawn_pinned(&pinned, "a", node).unwrap_err();
    assert!(refused.is_stopping());
    assert!(system.create_pinned("again").unwrap_err().is_stopped());
    assert!(system.create_dispatcher("more", 1).unwrap_err().is_stopped());
}

#[test]
fn a_system_that_has_terminated_gets_no_threads_while_its_runtime_is_there() {
    let runtime = start(1);
    let system = runtime.system();
    system.create_dispatcher("before", 1).unwrap();
    runtime.block_on(system.shutdown());
    assert!(system.create_pinned("again").unwrap_err().is_stopped());
    assert!(system.create_dispatcher("more", 1).unwrap_err().is_stopped());
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_hook_of_the_start_that_fails_leaves_no_runtime_behind() {
    let start = || {
        let builder = ActorSystem::builder("t").on_start(|system| {
            system.create_pinned("pinned")?;
            Err(Failure::msg("no licence"))
        });
        Runtime::start(builder).unwrap_err()
    };
    let refused = start();
    assert!(refused.to_string().contains("no licence"), "{refused}");
    // Where nobody may wait for its end it is the same.
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new()).unwrap();
    let refused = pool.block_on(pool.spawn_future(async move { start() })).unwrap();
    assert!(refused.to_string().contains("no licence"), "{refused}");
}
