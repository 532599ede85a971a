//! Failures of a runtime's actors, heard by a task of tokio's.

use clockjack_rt::{
    Runtime, RuntimeConfig, TokioFailureEventBridge,
    actor::{
        ActorPath, ActorSystem, Failure, FailureEventHub, FailureInfo, FailureReport, Props, Scope,
        Strategy,
    },
};
use clockjack_testing::InTime;
use tokio::{
    runtime::Builder,
    sync::broadcast::error::{RecvError, TryRecvError},
};

use crate::LONG;
use crate::in_time::ShutdownInTime as _;

fn info(n: usize) -> FailureInfo {
    let path = ActorPath::root().child("user").child("a");
    let worker = clockjack_rt::exec::Pid::new(1, 2, core::num::NonZeroU64::MIN);
    FailureInfo::new(worker, path, FailureReport::new(&n.to_string()))
}

#[test]
fn a_failure_at_the_root_is_heard_by_every_task_that_listens() {
    let builder = ActorSystem::builder("t").supervise_users(Scope::OneForOne, Strategy::escalate());
    let runtime =
        InTime::new(Runtime::start(builder).unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let bridge = TokioFailureEventBridge::new(runtime.system().failure_hub(), 8).unwrap();
    let tokio = Builder::new_current_thread().build().unwrap();
    let heard: Vec<_> = (0..2)
        .map(|_| {
            let mut failures = bridge.subscribe();
            tokio.spawn(async move { failures.recv().await.unwrap().reason.to_string() })
        })
        .collect();
    let props = Props::from_fn(|_, (): ()| Err::<(), _>(Failure::msg("out of paper")));
    runtime.spawn("printer", props).unwrap().tell(()).unwrap();
    for task in heard {
        assert!(tokio.block_on(task).unwrap().contains("out of paper"));
    }
    assert!(runtime.shutdown_in_time(LONG).is_clean());
}

#[test]
fn who_is_too_slow_is_told_how_many_it_has_missed_and_who_publishes_never_waits() {
    let hub = FailureEventHub::new();
    let bridge = TokioFailureEventBridge::new(&hub, 4).unwrap();
    let mut failures = bridge.subscribe();
    (0..10).for_each(|n| _ = hub.publish(&info(n)));
    let tokio = Builder::new_current_thread().build().unwrap();
    assert_eq!(tokio.block_on(failures.recv()).unwrap_err(), RecvError::Lagged(6));
    for n in 6..10 {
        assert_eq!(failures.try_recv().unwrap().reason.to_string(), n.to_string());
    }
    drop(bridge);
    hub.publish(&info(10));
    assert_eq!(failures.try_recv().unwrap_err(), TryRecvError::Closed);
    assert_eq!(hub.n_subscribers(), 0);
}
