//! How a runtime's system ends: by the phases of its shutdown, whoever asks for it.

#[path = "support/in_time.rs"]
mod in_time;

use core::{convert::Infallible, future::pending, time::Duration};
use std::sync::mpsc;

use clockjack_rt::{
    Runtime,
    actor::{
        ActorSystem, Next, Props,
        shutdown::{Phase, PhaseOutcome, ShutdownConfig},
    },
};
use in_time::ShutdownInTime as _;

#[test]
fn a_shutdown_runs_the_phases_and_stops_the_actors() {
    let rt = Runtime::new("t").unwrap();
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
    let rt = Runtime::new("t").unwrap();
    let actor = Props::from_fn(|cx, _: u8| {
        drop(cx.system().shutdown());
        Ok(Next::Stay)
    });
    rt.spawn("a", actor).unwrap().tell(0).unwrap();
    let report = rt.run();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.termination.reason, "actor system terminate");
}

#[test]
fn the_end_of_the_user_guardian_is_that_of_the_system() {
    let rt = Runtime::new("t").unwrap();
    let (sender, receiver) = mpsc::channel();
    let task = async move {
        sender.send("stopped")?;
        Ok(())
    };
    rt.system().on_shutdown(Phase::SERVICE_STOP, "stop", task).unwrap();
    let user = rt.system().lookup::<Infallible>("/user").unwrap();
    assert!(rt.pool().handle().cancel(user.pid(), "for the test"));
    let report = rt.run();
    assert_eq!(report.termination.reason, "the user guardian has stopped");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(receiver.try_recv(), Ok("stopped"));
}

#[test]
fn a_phase_that_is_late_is_given_up_by_the_clock_of_the_pool() {
    let mut config = ShutdownConfig::default();
    config.phase_mut(Phase::SERVICE_STOP).unwrap().timeout = Duration::from_millis(20);
    let rt = Runtime::start(ActorSystem::builder("t").shutdown(config)).unwrap();
    rt.system().on_shutdown(Phase::SERVICE_STOP, "never", pending()).unwrap();
    let report = rt.shutdown_in_time(Duration::from_secs(60));
    let phases = report.termination.shutdown.unwrap();
    assert_eq!(phases.phase(Phase::SERVICE_STOP).unwrap().outcome, PhaseOutcome::TimedOut);
    assert!(report.termination.stragglers.is_empty());
}

#[test]
fn what_is_alive_at_the_deadline_is_reported() {
    let rt = Runtime::new("t").unwrap();
    rt.spawn("a", Props::from_fn(|_, _: u8| Ok(Next::Stay))).unwrap();
    rt.system().on_shutdown(Phase::SERVICE_STOP, "never", pending()).unwrap();
    // The phase has more time than the runtime.
    let report = rt.shutdown_in_time(Duration::from_millis(20));
    let alive: Vec<_> = report.termination.stragglers.iter().map(ToString::to_string).collect();
    assert!(alive.contains(&"/user/a".to_owned()), "{alive:?}");
    assert_eq!(report.termination.reason, "actor system terminate");
}
