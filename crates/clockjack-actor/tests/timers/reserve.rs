//! Jobs of the system itself under load by users: their reserve, in virtual time.

use core::time::Duration;

use clockjack_actor::{
    ActorRef, ActorSystem, Backoff, DispatcherId, Limits, Next, RootContext, Strategy,
};
use clockjack_sched::{Policy, PolicyRegistry, ScheduleErrorKind, SchedulerConfig, TimerPriority};

use crate::scripted_actor::{Msg, Stage, ms};

const ANY: DispatcherId = DispatcherId::DEFAULT;

/// A scheduler with room for four jobs of users, all of the highest class.
fn crowded() -> Stage {
    reserving(SchedulerConfig::DEFAULT.internal_reserve, Limits::DEFAULT)
}

/// The same with a reserve of this size.
fn reserving(internal_reserve: usize, limits: Limits) -> Stage {
    let policy = Policy::DEFAULT.priority(TimerPriority::High);
    let config = SchedulerConfig {
        quota: 4,
        capacity: 4,
        internal_reserve,
        policies: PolicyRegistry::new().set_default(policy),
        ..SchedulerConfig::DEFAULT
    };
    Stage::with(ActorSystem::builder("t").scheduler(config).limits(limits))
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

fn spawn_with_backoff(stage: &mut Stage) -> ActorRef<Msg> {
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
    assert_is_job(&stage);
    stage.hears_in(99, &["0 PreRestart"]);
    stage.hears_in(1, &["started"]);
}

/// The timer of the actor is a job of the reserve, beside those of users, and not its substitute.
fn assert_is_job(stage: &Stage) {
    let metrics = stage.root.system().scheduler().jobs().metrics();
    assert_eq!((metrics.active_total, metrics.reserve_exceeded_total), (4 + 1, 0));
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
    assert_is_job(&stage);
    stage.hears_in(10, &["10 ReceiveTimeout"]);
}

fn set_timeout(stage: &mut Stage, actor: &ActorRef<Msg>, millis: u64) {
    stage.act(actor, move |cx| {
        cx.set_receive_timeout(ms(millis));
        Ok(Next::Stay)
    });
}

#[test]
fn a_receive_timeout_for_which_the_reserve_has_no_place_fires_in_its_time_again_and_again() {
    let mut stage = reserving(0, Limits::DEFAULT);
    let actor = stage.scripted_actor();
    fill(&stage);
    set_timeout(&mut stage, &actor, 10);
    stage.hears_in(9, &[]);
    stage.hears_in(1, &["10 ReceiveTimeout"]);
    stage.hears_in(9, &[]);
    stage.hears_in(1, &["20 ReceiveTimeout"]);
    // A message moves it.
    stage.pass(4);
    stage.tell(&actor, Msg::Say("here"));
    stage.hears_in(9, &["24 here"]);
    stage.hears_in(1, &["34 ReceiveTimeout"]);
    stage.act(&actor, |cx| {
        cx.cancel_receive_timeout();
        Ok(Next::Stay)
    });
    stage.hears_in(50, &[]);
    assert!(stage.root.system().scheduler().jobs().metrics().reserve_exceeded_total > 0);
}

#[test]
fn a_receive_timeout_without_a_job_can_be_made_shorter_and_longer() {
    let mut stage = reserving(0, Limits::DEFAULT);
    let actor = stage.scripted_actor();
    fill(&stage);
    set_timeout(&mut stage, &actor, 30);
    set_timeout(&mut stage, &actor, 10);
    stage.hears_in(10, &["10 ReceiveTimeout"]);
    set_timeout(&mut stage, &actor, 30);
    stage.hears_in(29, &[]);
    stage.hears_in(1, &["40 ReceiveTimeout"]);
}

#[test]
fn a_close_of_the_scheduler_leaves_a_receive_timeout_as_it_is() {
    for closes_first in [true, false] {
        let mut stage = Stage::new();
        let actor = stage.scripted_actor();
        let close = |root: &RootContext| _ = root.system().scheduler().jobs().shutdown();
        if closes_first {
            close(&stage.root);
        }
        set_timeout(&mut stage, &actor, 10);
        stage.hears_in(4, &[]);
        if !closes_first {
            close(&stage.root);
        }
        stage.hears_in(5, &[]);
        stage.hears_in(1, &["10 ReceiveTimeout"]);
        stage.hears_in(10, &["20 ReceiveTimeout"]);
    }
}

/// A sealed system allocates no timer: the actor is polled, behind other tasks.
#[test]
fn a_receive_timeout_without_any_timer_fires_in_its_time() {
    let mut stage = reserving(0, Limits::DEFAULT);
    let actor = stage.scripted_actor();
    fill(&stage);
    let rounds = |stage: &mut Stage| (0..9).for_each(|_| _ = stage.root.next_wake());
    set_timeout(&mut stage, &actor, 10);
    stage.root.seal();
    // The timer of the executor is used up by its first expiry.
    stage.clock.advance(ms(10));
    rounds(&mut stage);
    assert_eq!(stage.heard(), ["10 ReceiveTimeout"]);
    stage.clock.advance(ms(9));
    rounds(&mut stage);
    assert!(stage.heard().is_empty(), "it came before its time");
    stage.clock.advance(ms(1));
    rounds(&mut stage);
    assert_eq!(stage.heard(), ["20 ReceiveTimeout"]);
    // The actor handles messages meanwhile, and can stop.
    assert!(actor.tell(Msg::Say("here")).is_ok());
    rounds(&mut stage);
    assert_eq!(stage.heard(), ["20 here"]);
    stage.root.system().stop(&actor).unwrap();
    stage.root.run_until_idle();
    assert!(actor.is_stopped());
}

#[test]
fn a_cancelled_receive_timeout_does_not_wake_its_actor_when_the_scheduler_closes() {
    let mut stage = Stage::new();
    let actor = stage.scripted_actor();
    set_timeout(&mut stage, &actor, 10);
    stage.act(&actor, |cx| {
        cx.cancel_receive_timeout();
        Ok(Next::Stay)
    });
    stage.root.system().scheduler().jobs().shutdown();
    stage.hears_in(50, &[]);
}
