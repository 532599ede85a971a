//! Jobs of the system itself under load by users: their reserve, in virtual time.

use core::time::Duration;

use clockjack_actor::{ActorSystem, Backoff, DispatcherId, Next, Strategy};
use clockjack_sched::{Policy, PolicyRegistry, ScheduleErrorKind, SchedulerConfig, TimerPriority};

use crate::scripted_actor::{Msg, Stage, ms};

const ANY: DispatcherId = DispatcherId::DEFAULT;

/// A scheduler with room for four jobs of users, all of the highest class.
fn crowded() -> Stage {
    let policy = Policy::DEFAULT.priority(TimerPriority::High);
    let config = SchedulerConfig {
        quota: 4,
        capacity: 4,
        policies: PolicyRegistry::new().set_default(policy),
        ..SchedulerConfig::DEFAULT
    };
    Stage::with(ActorSystem::builder("t").scheduler(config))
}

/// Schedules jobs until one is refused.
fn fill(stage: &Stage) {
    let jobs = stage.root.system().scheduler().jobs();
    let hour = Duration::from_secs(3_600);
    let mut accepted = 0;
    let refused = loop {
        match jobs.schedule_once_fn(hour, ANY, |_| ()) {
            Ok(_) => accepted += 1,
            Err(refused) => break refused.kind(),
        }
    };
    assert_eq!((accepted, refused), (4, ScheduleErrorKind::QuotaExceeded));
}

fn spawn_with_backoff(stage: &mut Stage) -> clockjack_actor::ActorRef<Msg> {
    let log = stage.log.clone();
    let backoff = Backoff::new(ms(100), ms(100));
    let props = stage.props(move |_| {
        log.add("started");
        Ok(Next::Stay)
    });
    let props = props.supervise(Strategy::restart().backoff(backoff));
    let actor = stage.root.spawn("a", props).unwrap();
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["started"]);
    actor
}

#[test]
fn a_full_quota_does_not_make_a_restart_come_at_once() {
    let mut stage = crowded();
    let actor = spawn_with_backoff(&mut stage);
    fill(&stage);
    stage.tell(&actor, Msg::Fail);
    stage.hears_in(99, &["0 PreRestart"]);
    stage.hears_in(1, &["started"]);
}

#[test]
fn jobs_of_users_do_not_evict_the_delay_of_a_restart() {
    let mut stage = crowded();
    let actor = spawn_with_backoff(&mut stage);
    stage.tell(&actor, Msg::Fail);
    fill(&stage);
    stage.hears_in(99, &["0 PreRestart"]);
    stage.hears_in(1, &["started"]);
    assert!(!actor.is_stopped());
}

#[test]
fn a_full_quota_does_not_swallow_a_receive_timeout() {
    let mut stage = crowded();
    let actor = stage.scripted_actor();
    fill(&stage);
    stage.act(&actor, |cx| {
        cx.set_receive_timeout(ms(10));
        Ok(Next::Stay)
    });
    stage.hears_in(10, &["10 ReceiveTimeout"]);
}
