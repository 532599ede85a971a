//! How a runtime's system ends: by the phases of its shutdown, whoever asks for it.

#[path = "termination/failure_log.rs"]
mod failure_log;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    convert::Infallible,
    future::pending,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::sync::{Arc, mpsc};

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{
        ActorSystem, Next, Props,
        shutdown::{Phase, PhaseOutcome, ShutdownConfig},
    },
    sched::{DispatcherId, ScheduleErrorKind, TaskRunPriority},
};
use clockjack_testing::InTime;
use in_time::ShutdownInTime as _;

#[test]
fn a_shutdown_runs_the_phases_and_stops_the_actors() {
    let rt = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let (sender, receiver) = mpsc::channel();
    rt.spawn("a", Props::from_fn(|_, _: u8| Ok(Next::Stay))).unwrap();
    let task = async move {
        sender.send("unbound")?;
        Ok(())
    };
    rt.system().on_shutdown(Phase::SERVICE_UNBIND, "unbind", task).unwrap();
    let report = rt.shutdown_in_time(Duration::from_secs(60));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(receiver.try_recv(), Ok("unbound"));
    assert_eq!(report.termination.shutdown.unwrap().phases.len(), 6);
}

#[test]
fn run_ends_when_an_actor_terminates_the_system() {
    let rt = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let actor = Props::from_fn(|cx, _: u8| {
        drop(cx.system().shutdown());
        Ok(Next::Stay)
    });
    rt.spawn("a", actor).unwrap().tell(0).unwrap();
    let report = rt.into_inner().run();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.termination.reason, "actor system terminate");
}

#[test]
fn the_end_of_the_user_guardian_is_that_of_the_system() {
    let rt = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let (sender, receiver) = mpsc::channel();
    let task = async move {
        sender.send("stopped")?;
        Ok(())
    };
    rt.system().on_shutdown(Phase::SERVICE_STOP, "stop", task).unwrap();
    let user = rt.system().lookup::<Infallible>("/user").unwrap();
    assert!(rt.pool().handle().cancel(user.pid(), "for the test"));
    let report = rt.into_inner().run();
    assert_eq!(report.termination.reason, "the user guardian has stopped");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(receiver.try_recv(), Ok("stopped"));
}

#[test]
fn a_phase_that_is_late_is_given_up_by_the_clock_of_the_pool() {
    let mut config = ShutdownConfig::default();
    config.phase_mut(Phase::SERVICE_STOP).unwrap().timeout = Duration::from_millis(20);
    let rt = InTime::new(
        Runtime::start(ActorSystem::builder("t").shutdown(config)).unwrap(),
        RuntimeConfig::DEFAULT.drop_timeout,
    );
    rt.system().on_shutdown(Phase::SERVICE_STOP, "never", pending()).unwrap();
    let report = rt.shutdown_in_time(Duration::from_secs(60));
    let phases = report.termination.shutdown.unwrap();
    assert_eq!(phases.phase(Phase::SERVICE_STOP).unwrap().outcome, PhaseOutcome::TimedOut);
    assert!(report.termination.stragglers.is_empty());
}

#[test]
fn what_is_alive_at_the_deadline_is_reported() {
    let rt = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    rt.spawn("a", Props::from_fn(|_, _: u8| Ok(Next::Stay))).unwrap();
    rt.system().on_shutdown(Phase::SERVICE_STOP, "never", pending()).unwrap();
    // The phase has more time than the runtime.
    let report = rt.shutdown_in_time(Duration::from_millis(20));
    let alive: Vec<_> = report.termination.stragglers.iter().map(ToString::to_string).collect();
    assert!(alive.contains(&"/user/a".to_owned()), "{alive:?}");
    assert_eq!(report.termination.reason, "actor system terminate");
}

/// The end of the system is that of its scheduler; nothing of it waits for the end of the runtime.
#[test]
fn a_system_that_terminates_closes_its_scheduler_while_the_pool_runs_on() {
    let rt = InTime::new(Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let jobs = rt.system().scheduler().jobs().clone();
    let (any, ms) = (DispatcherId::DEFAULT, Duration::from_millis);
    let n_runs = Arc::new(AtomicUsize::new(0));
    let (count, (run, runs)) = (Arc::clone(&n_runs), mpsc::channel());
    let job = move |_: &_| {
        count.fetch_add(1, SeqCst);
        run.send(())
    };
    let every = jobs.schedule_at_fixed_rate_fn(ms(1), ms(1), any, job).unwrap();
    let (close, closed) = mpsc::channel();
    let task = move || Ok(close.send(())?);
    jobs.register_on_close(task, TaskRunPriority::User).unwrap();
    runs.iter().take(5).for_each(drop);
    let ended = rt.block_on(rt.system().shutdown());
    assert!(ended.is_clean(), "{ended:?}");
    assert_eq!(closed.try_recv(), Ok(()), "the close task has run");
    assert!(jobs.is_closed() && every.is_cancelled());
    let n_before = n_runs.load(SeqCst);
    let refused = jobs.schedule_once_fn(ms(1), any, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
    // The pool and its clock go on, and the job does not.
    rt.block_on(clockjack_rt::sleep(ms(50))).unwrap();
    assert_eq!(n_runs.load(SeqCst), n_before);
    assert!(rt.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
