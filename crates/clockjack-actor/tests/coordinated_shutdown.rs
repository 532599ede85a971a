//! How a system terminates: phases, their tasks and time-outs, and the report.

extern crate alloc;

#[path = "support/bench.rs"]
mod bench;

use alloc::{sync::Arc, task::Wake};
use core::{
    future::pending,
    pin::{Pin, pin},
    task::{self, Waker},
    time::Duration,
};

use bench::{Log, start};
use clockjack_actor::{
    Actor, ActorPath, ActorRef, ActorSystem, Context, Failure, Next, Props, RootContext, Scope,
    Signal, Strategy,
    shutdown::{Phase, PhaseOutcome, Reason, ShutdownConfig, Skip, TaskOutcome},
};
use clockjack_testing::keeps_deadline;
use clockjack_time::ManualClock;

/// Runs for this long, in steps of 100 ms.
fn pass(root: &mut RootContext, clock: &ManualClock, millis: u64) {
    for _ in 0..millis / 100 {
        root.run_until_idle();
        clock.advance(Duration::from_millis(100));
    }
    root.run_until_idle();
}

fn task(log: &Log, line: &str) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
    let (log, line) = (log.clone(), line.to_owned());
    async move {
        log.add(line);
        Ok(())
    }
}

fn named(root: &mut RootContext, name: &'static str, log: &Log) -> ActorRef<&'static str> {
    struct Named(&'static str, Log);
    impl Actor for Named {
        type Msg = &'static str;
        fn receive(
            &mut self,
            _: &mut Context<'_, Self>,
            msg: &'static str,
        ) -> Result<Next, Failure> {
            self.1.add(format!("{} got {msg}", self.0));
            match msg {
                "stop" => Ok(Next::Stop),
                "fail" => Err(Failure::msg("it failed")),
                _ => Ok(Next::Stay),
            }
        }
        fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
            if let Signal::PostStop = signal {
                self.1.add(format!("{} stopped", self.0));
            }
            Ok(Next::Stay)
        }
    }
    let log = log.clone();
    root.spawn(name, move || Named(name, log.clone())).unwrap()
}

#[test]
fn terminate_runs_the_phases_in_order_and_then_stops_the_actors() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    named(&mut root, "a", &log);
    let system = root.system().clone();
    let last = Phase::BEFORE_ACTOR_SYSTEM_TERMINATE;
    system.on_shutdown(last, "last", task(&log, "last")).unwrap();
    system.on_shutdown(Phase::SERVICE_UNBIND, "unbind", task(&log, "unbind")).unwrap();
    system.on_shutdown(Phase::SERVICE_STOP, "stop", task(&log, "stop")).unwrap();
    root.run_until_idle();
    let end = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["unbind", "stop", "last", "a stopped"]);
    let report = end.report().unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.reason, "actor system terminate");
    let phases = report.shutdown.unwrap();
    assert_eq!(phases.phases.len(), 6);
    let last = phases.phase(Phase::ACTOR_SYSTEM_TERMINATE).unwrap();
    assert_eq!(last.outcome, PhaseOutcome::Completed);
    assert_eq!(&*last.tasks[0].name, "stop all actors");
}

#[test]
fn it_runs_once_and_the_first_reason_stays() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    system.on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "x")).unwrap();
    let first = system.shutdown_with(Reason::new("closing time"), None).unwrap();
    let second = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["x"]);
    assert_eq!(first.report(), second.report());
    assert_eq!(second.report().unwrap().reason, "closing time");
    assert_eq!(system.shutdown().report(), first.report());
}

#[test]
fn a_phase_waits_for_its_tasks_and_goes_on_after_its_time() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    system.on_shutdown(Phase::SERVICE_UNBIND, "never", pending()).unwrap();
    system.on_shutdown(Phase::SERVICE_STOP, "after", task(&log, "after")).unwrap();
    let end = system.shutdown();
    pass(&mut root, &clock, 4_900);
    assert!(log.take().is_empty());
    assert!(end.report().is_none());
    pass(&mut root, &clock, 200);
    assert_eq!(log.take(), ["after"]);
    let report = end.report().unwrap();
    assert!(!report.is_clean());
    assert!(report.stragglers.is_empty());
    let phases = report.shutdown.unwrap();
    let late = phases.phase(Phase::SERVICE_UNBIND).unwrap();
    assert_eq!(late.outcome, PhaseOutcome::TimedOut);
    assert_eq!(late.tasks[0].outcome, TaskOutcome::TimedOut);
}

#[test]
fn a_task_that_panics_has_failed_and_the_rest_goes_on() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    system.on_shutdown(Phase::SERVICE_UNBIND, "bad", async { panic!("no") }).unwrap();
    system.on_shutdown(Phase::SERVICE_UNBIND, "good", task(&log, "good")).unwrap();
    let end = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["good"]);
    let phases = end.report().unwrap().shutdown.unwrap();
    let phase = phases.phase(Phase::SERVICE_UNBIND).unwrap();
    assert_eq!(phase.outcome, PhaseOutcome::Failed);
    assert_eq!(phase.tasks[0].outcome.to_string(), "failed: no");
}

#[test]
fn an_aborted_shutdown_leaves_out_phases_but_stops_the_actors() {
    let mut config = ShutdownConfig::default();
    config.phase_mut(Phase::SERVICE_UNBIND).unwrap().recover = false;
    let (mut root, _) = start(ActorSystem::builder("t").shutdown(config));
    let log = Log::default();
    named(&mut root, "a", &log);
    let system = root.system().clone();
    let bad = async { Err(Failure::msg("cannot")) };
    system.on_shutdown(Phase::SERVICE_UNBIND, "bad", bad).unwrap();
    system.on_shutdown(Phase::SERVICE_STOP, "later", task(&log, "later")).unwrap();
    root.run_until_idle();
    let end = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["a stopped"]);
    let report = end.report().unwrap();
    assert_eq!(report.aborted().unwrap().phase, Phase::SERVICE_UNBIND);
    assert_eq!(report.aborted().unwrap().error, "task `bad` failed: cannot");
    assert!(report.stragglers.is_empty());
}

/// One of a long chain of actors, the last of which takes its time to stop. The others need more
/// steps than are made between two reads of the clock.
struct Slow {
    clock: Arc<ManualClock>,
    below: usize,
    takes: Duration,
}

impl Actor for Slow {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let Self { clock, takes, below } = self;
        if let Some(below) = below.checked_sub(1) {
            let (clock, takes) = (Arc::clone(clock), *takes);
            let child = move || Slow { clock: Arc::clone(&clock), below, takes };
            cx.spawn_child("child", child)?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal
            && self.below == 0
        {
            self.clock.advance(self.takes);
        }
        Ok(Next::Stay)
    }
}

#[test]
fn actors_alive_at_the_end_of_the_last_phase_are_reported_as_stragglers() {
    for (secs, is_late) in [(9, false), (11, true)] {
        let (mut root, clock) = start(ActorSystem::builder("t"));
        let takes = Duration::from_secs(secs);
        let slow =
            root.spawn("slow", move || Slow { clock: Arc::clone(&clock), below: 200, takes });
        let slow = slow.unwrap();
        root.run_until_idle();
        let last = root.system().tree().into_iter().max_by_key(ActorPath::depth).unwrap();
        let end = root.system().shutdown();
        root.run_until_idle();
        let report = end.report().unwrap();
        for path in [slow.path(), slow.path().parent().unwrap().clone(), ActorPath::root()] {
            assert_eq!(report.stragglers.contains(&path), is_late, "{path}");
        }
        assert!(!report.stragglers.contains(&last), "it has stopped in time");
        assert_eq!(report.is_clean(), !is_late);
        // They continue to stop all the same, and the report stays.
        assert!(slow.is_stopped());
        assert_eq!(end.report().unwrap(), report);
        let phases = report.shutdown.unwrap();
        let last = phases.phase(Phase::ACTOR_SYSTEM_TERMINATE).unwrap();
        assert_eq!(last.outcome == PhaseOutcome::TimedOut, is_late);
    }
}

#[test]
fn it_may_begin_with_a_later_phase() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    system.on_shutdown(Phase::SERVICE_UNBIND, "early", task(&log, "early")).unwrap();
    system.on_shutdown(Phase::SERVICE_STOP, "late", task(&log, "late")).unwrap();
    assert!(
        system.shutdown_with(Reason::ACTOR_SYSTEM_TERMINATE, Some(Phase::named("none"))).is_err()
    );
    let end =
        system.shutdown_with(Reason::ACTOR_SYSTEM_TERMINATE, Some(Phase::SERVICE_STOP)).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["late"]);
    let phases = end.report().unwrap().shutdown.unwrap();
    let skipped = phases.phase(Phase::SERVICE_UNBIND).unwrap();
    assert_eq!(skipped.outcome, PhaseOutcome::Skipped(Skip::BeforeStart));
}

#[test]
fn tasks_are_refused_cancelled_and_added_late() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    let refused = system.on_shutdown(Phase::SERVICE_STOP, "", task(&log, "x")).unwrap_err();
    assert!(refused.is_unnamed());
    let refused = system.on_shutdown(Phase::named("none"), "x", task(&log, "x")).unwrap_err();
    assert!(refused.is_unknown_phase());
    let cancelled = system.on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "cancelled")).unwrap();
    assert!(cancelled.cancel());
    assert!(!cancelled.cancel());
    let (adds, to) = (system.clone(), log.clone());
    let add = async move {
        let add = |phase| adds.on_shutdown(phase, "added", task(&to, phase.name()));
        assert!(add(Phase::BEFORE_SERVICE_UNBIND).unwrap_err().is_late());
        assert!(add(Phase::SERVICE_UNBIND).unwrap_err().is_late());
        add(Phase::SERVICE_STOP).unwrap();
        Ok(())
    };
    system.on_shutdown(Phase::SERVICE_UNBIND, "adds", add).unwrap();
    let end = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["service-stop"]);
    assert!(end.report().unwrap().is_clean());
    assert!(system.on_shutdown(Phase::SERVICE_STOP, "x", async { Ok(()) }).unwrap_err().is_late());
}

#[test]
fn a_termination_task_stops_an_actor_and_waits_for_it() {
    let (mut root, clock) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let (a, b) = (named(&mut root, "a", &log), named(&mut root, "b", &log));
    let gone = named(&mut root, "gone", &log);
    gone.tell("stop").unwrap();
    root.run_until_idle();
    log.take();
    let system = root.system().clone();
    let unbind = Phase::SERVICE_UNBIND;
    system.on_shutdown_await(unbind, "a", &a, Some("stop")).unwrap();
    system.on_shutdown_await(unbind, "gone", &gone, Some("stop")).unwrap();
    system.on_shutdown(Phase::SERVICE_STOP, "after", task(&log, "after")).unwrap();
    // Without a message it only waits, here in vain.
    system.on_shutdown_await(Phase::BEFORE_ACTOR_SYSTEM_TERMINATE, "b", &b, None).unwrap();
    let end = system.shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["a got stop", "a stopped", "after"]);
    assert!(end.report().is_none());
    pass(&mut root, &clock, 5_100);
    assert_eq!(log.take(), ["b stopped"]);
    let phases = end.report().unwrap().shutdown.unwrap();
    assert_eq!(phases.phase(unbind).unwrap().outcome, PhaseOutcome::Completed);
    let waited = phases.phase(Phase::BEFORE_ACTOR_SYSTEM_TERMINATE).unwrap();
    assert_eq!(waited.outcome, PhaseOutcome::TimedOut);
}

#[test]
fn the_stop_message_of_a_termination_task_comes_behind_what_was_sent_before() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = named(&mut root, "a", &log);
    root.run_until_idle();
    let system = root.system().clone();
    system.on_shutdown_await(Phase::SERVICE_STOP, "a", &a, Some("stop")).unwrap();
    // More messages than it handles in one poll.
    for _ in 0..200 {
        a.tell("x").unwrap();
    }
    let end = system.shutdown();
    root.run_until_idle();
    let told = log.take();
    assert_eq!(told.iter().filter(|line| *line == "a got x").count(), 200);
    assert_eq!(told[200..], ["a got stop", "a stopped"]);
    assert!(end.report().unwrap().is_clean());
}

#[test]
fn a_failure_at_the_root_ends_the_system_the_same_way() {
    let builder = ActorSystem::builder("t").supervise_users(Scope::OneForOne, Strategy::escalate());
    let (mut root, _) = start(builder);
    let log = Log::default();
    let a = named(&mut root, "a", &log);
    let system = root.system().clone();
    system.on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "x")).unwrap();
    a.tell("fail").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a got fail", "x", "a stopped"]);
    let report = system.when_terminated().report().unwrap();
    assert!(report.reason.contains("it failed"), "{}", report.reason);
}

#[test]
fn without_run_by_terminate_the_actors_are_stopped_at_once() {
    let config = ShutdownConfig { run_by_actor_system_terminate: false, ..Default::default() };
    let (mut root, _) = start(ActorSystem::builder("t").shutdown(config.clone()));
    let log = Log::default();
    named(&mut root, "a", &log);
    root.system().on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "x")).unwrap();
    root.run_until_idle();
    let end = root.system().shutdown();
    root.run_until_idle();
    assert_eq!(log.take(), ["a stopped"]);
    assert_eq!(end.report().unwrap().shutdown, None);

    let config = ShutdownConfig { terminate_actor_system: false, ..config };
    let (mut root, _) = start(ActorSystem::builder("t").shutdown(config));
    root.system().on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "x")).unwrap();
    let end = root.system().shutdown_with(Reason::UNKNOWN, None).unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["x"]);
    assert!(end.report().is_none());
    assert!(root.system().shutdown_so_far().unwrap().is_clean());
    drop(root.system().shutdown());
    root.run_until_idle();
    assert!(end.report().unwrap().is_clean());
}

#[test]
fn a_configuration_that_never_ends_is_refused_at_the_start() {
    let config = ShutdownConfig { terminate_actor_system: false, ..Default::default() };
    let builder = ActorSystem::builder("t").shutdown(config);
    let started = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| start(builder)));
    assert!(started.is_err());
}

#[test]
fn hooks_are_told_of_the_end_also_if_it_was_before() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let system = root.system().clone();
    let to = log.clone();
    system.on_terminated(move |report| to.add(format!("ended: {}", report.reason)));
    system.on_terminated(|_| panic!("a hook that harms nobody"));
    let to = log.clone();
    system.on_terminated(move |_| to.add("another"));
    assert!(log.take().is_empty());
    drop(system.shutdown());
    root.run_until_idle();
    assert_eq!(log.take(), ["ended: actor system terminate", "another"]);
    let to = log.clone();
    system.on_terminated(move |_| to.add("late"));
    assert_eq!(log.take(), ["late"]);
}

#[test]
fn shutdown_of_a_root_context_runs_the_phases() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    named(&mut root, "a", &log);
    root.system().on_shutdown(Phase::SERVICE_STOP, "x", task(&log, "x")).unwrap();
    root.run_until_idle();
    let second = Duration::from_secs(1);
    let report = keeps_deadline(second, || root.shutdown(second));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(log.take(), ["x", "a stopped"]);
}

/// Records that it is dropped.
#[derive(Clone)]
struct Dropped(#[expect(dead_code, reason = "it is counted")] Arc<()>);

/// A root context with an actor, a subscriber, a service, a job, a task and a listener, each of
/// which holds something; the system is held by all.
fn full(counter: &Arc<()>) -> RootContext {
    let held = Dropped(Arc::clone(counter));
    let with = held.clone();
    let builder = ActorSystem::builder("t").on_escalation(move |_| _ = &with);
    let (mut root, _) = start(builder);
    let system = root.system().clone();
    let (with, keeps) = (held.clone(), system.clone());
    let actor = Props::from_fn(move |_, _: u8| {
        let _ = (&with, &keeps);
        Ok(Next::Stay)
    });
    let actor = root.spawn("a", actor).unwrap();
    let key = clockjack_actor::ServiceKey::new("k");
    system.receptionist().register(&key, &actor).unwrap();
    let kinds = clockjack_actor::EventKinds::ALL;
    system.events().subscribe(kinds, actor.map(|_| 0));
    let (with, keeps, to) = (held.clone(), system.clone(), actor.clone());
    let job = move |_: &clockjack_sched::FireContext| {
        let _ = (&with, &keeps, &to);
    };
    let dispatcher = clockjack_actor::DispatcherId::DEFAULT;
    drop(system.scheduler().jobs().schedule_once_fn(Duration::from_secs(9), dispatcher, job));
    let keeps = system.clone();
    let task = async move {
        let _ = (&held, &keeps);
        Ok(())
    };
    system.on_shutdown(Phase::SERVICE_STOP, "x", task).unwrap();
    root.run_until_idle();
    root
}

#[test]
fn a_root_context_that_is_dropped_leaves_nothing_behind() {
    let counter = Arc::new(());
    drop(full(&counter));
    assert_eq!(Arc::strong_count(&counter), 1, "dropped without a word");

    let root = full(&counter);
    let system = root.system().clone();
    drop(root);
    assert!(system.when_terminated().report().is_some());
    drop(system);
    assert_eq!(Arc::strong_count(&counter), 1, "the system outlived its host");

    let (root, second) = (full(&counter), Duration::from_secs(1));
    let report = keeps_deadline(second, || root.shutdown(second));
    assert!(report.is_clean());
    assert_eq!(Arc::strong_count(&counter), 1, "shut down");
}

#[test]
fn a_handle_that_is_not_counted_is_of_use_after_the_end_and_leaves_nothing_behind() {
    let counter = Arc::new(());
    let root = full(&counter);
    let n_handles = root.system().n_handles();
    let (observer, other) = (root.system().uncounted(), root.system().uncounted());
    let waiting = root.system().when_terminated();
    assert_eq!(root.system().n_handles(), n_handles, "none of them can start an actor");
    drop(root);
    assert!(waiting.report().is_some());
    drop((waiting, other.clone(), other));
    observer.dead_letters().tell(1_u8).unwrap_err();
    // The last handle of all is a counted one, and then an uncounted one.
    let counted = ActorSystem::clone(&observer);
    drop(observer);
    counted.dead_letters().tell(1_u8).unwrap_err();
    let observer = counted.uncounted();
    drop(counted);
    observer.dead_letters().tell(1_u8).unwrap_err();
    assert_ne!(Arc::strong_count(&counter), 1);
    drop(observer);
    assert_eq!(Arc::strong_count(&counter), 1, "the system outlived its handles");

    let root = full(&counter);
    drop(root.system().uncounted());
    drop(root);
    assert_eq!(Arc::strong_count(&counter), 1, "the last actor stopped last");
}

struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics")
    }
}

/// Leaves a waker that panics with a future that is not ready.
fn leave_bad_waker(future: Pin<&mut impl Future>) {
    let waker = Waker::from(Arc::new(Bad));
    assert!(future.poll(&mut task::Context::from_waker(&waker)).is_pending());
}

#[test]
fn wakers_that_panic_hinder_nobody_who_waits_for_an_end() {
    let (mut root, _) = start(ActorSystem::builder("t"));
    let log = Log::default();
    let a = named(&mut root, "a", &log);
    let (watched, to) = (a.clone(), log.clone());
    let watcher = Props::new(move || Watcher(watched.clone(), to.clone()));
    root.spawn("watcher", watcher).unwrap();
    root.run_until_idle();
    let mut end = pin!(root.system().when_stopped(&a));
    leave_bad_waker(end.as_mut());
    a.tell("stop").unwrap();
    root.run_until_idle();
    assert_eq!(log.take(), ["a got stop", "a stopped", "the watcher knows"]);
    let system = root.system().clone();
    let mut end = pin!(system.when_terminated());
    leave_bad_waker(end.as_mut());
    let to = log.clone();
    system.on_terminated(move |_| to.add("the end"));
    drop(system.shutdown());
    root.run_until_idle();
    assert_eq!(log.take(), ["the end"]);
}

struct Watcher(ActorRef<&'static str>, Log);

impl Actor for Watcher {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.watch(&self.0)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::Terminated(_) = signal {
            self.1.add("the watcher knows");
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_task_that_is_never_run_and_panics_when_it_is_dropped_hinders_no_end() {
    struct Bomb(Log);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.add("dropped");
            panic!("it does")
        }
    }
    let config = ShutdownConfig { run_by_actor_system_terminate: false, ..Default::default() };
    let (mut root, _) = start(ActorSystem::builder("t").shutdown(config));
    let log = Log::default();
    for _ in 0..2 {
        let bomb = Bomb(log.clone());
        let task = async move {
            let _bomb = bomb;
            Ok(())
        };
        root.system().on_shutdown(Phase::SERVICE_STOP, "never", task).unwrap();
    }
    let to = log.clone();
    root.system().on_terminated(move |_| to.add("the end"));
    drop(root.system().shutdown());
    root.run_until_idle();
    assert_eq!(log.take(), ["dropped", "dropped", "the end"]);
}

#[test]
fn who_waits_for_the_end_no_more_leaves_nothing_behind() {
    struct Quiet;
    impl Wake for Quiet {
        fn wake(self: Arc<Self>) {}
    }
    let (root, _) = start(ActorSystem::builder("t"));
    let quiet = Arc::new(Quiet);
    let waker = Waker::from(Arc::clone(&quiet));
    for _ in 0..3 {
        let mut end = pin!(root.system().when_terminated());
        let mut cx = task::Context::from_waker(&waker);
        assert!(end.as_mut().poll(&mut cx).is_pending());
        assert!(end.as_mut().poll(&mut cx).is_pending());
        assert_eq!(Arc::strong_count(&quiet), 3);
    }
    assert_eq!(Arc::strong_count(&quiet), 2);
}
