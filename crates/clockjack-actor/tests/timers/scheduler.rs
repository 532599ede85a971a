//! The scheduler over refs, with the calls of Pekko's, in virtual time.

use crate::bench::Log;
use crate::scripted_actor::{Msg, Stage, ms};
use alloc::sync::Arc;
use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Backoff, Cancellable, Context, DeadLetterReason, DispatcherId,
    Failure, Mailbox, Next, Overflow, Props, ScheduleError, Scheduler, Scope, Strategy,
};
use clockjack_sched::{
    Affinity, CatchUp, FireContext, Policy, PolicyRegistry, ScheduleErrorKind, TaskRunPriority,
    TimerPriority,
};
use clockjack_time::{ManualClock, MonotonicClock};
use core::time::Duration;

const ANY: DispatcherId = DispatcherId::DEFAULT;

/// Notes what it is sent, and when, how many runs that stands for, and in whose name.
struct Ear {
    log: Log,
    clock: Arc<ManualClock>,
    takes: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Say(&'static str),
    Fail,
    Stop,
}
use Word::Say;

impl Actor for Ear {
    type Msg = Word;

    fn receive(&mut self, cx: &mut Context<'_, Self>, word: Word) -> Result<Next, Failure> {
        match word {
            Word::Fail => return Err(Failure::msg("failed")),
            Word::Stop => return Ok(Next::Stop),
            Say(text) => {
                let runs = cx.scheduler_batch().map_or(0, |batch| batch.runs.get());
                let from = cx.sender_pid().map_or(String::new(), |pid| format!(" from {pid}"));
                self.log.add(format!("{} {text} x{runs}{from}", self.clock.now().ticks));
                self.clock.advance(ms(self.takes));
            }
        }
        Ok(Next::Stay)
    }
}

fn ear_props(stage: &Stage, takes: u64) -> Props<Ear, impl FnMut() -> Ear + use<>> {
    let (log, clock) = (stage.log.clone(), Arc::clone(&stage.clock));
    Props::new(move || Ear { log: log.clone(), clock: Arc::clone(&clock), takes })
}

fn ear(stage: &mut Stage, takes: u64) -> ActorRef<Word> {
    let props = ear_props(stage, takes);
    let ear = stage.root.spawn("ear", props).unwrap();
    stage.root.run_until_idle();
    ear
}

fn jobs(stage: &Stage) -> Scheduler {
    stage.root.system().scheduler().clone()
}

/// Both kinds of periodic jobs.
type Periodic = fn(
    &Scheduler,
    Duration,
    Duration,
    &ActorRef<Word>,
    Word,
) -> Result<Cancellable, ScheduleError<Word>>;

const RATE: Periodic =
    |jobs, initial, every, to, word| jobs.schedule_at_fixed_rate(initial, every, to, word);
const DELAY: Periodic =
    |jobs, initial, every, to, word| jobs.schedule_with_fixed_delay(initial, every, to, word);

#[test]
fn a_message_that_is_scheduled_once_comes_once() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let job =
        jobs(&stage).with_sender(ear.pid()).schedule_once(ms(300), &ear, Say("once")).unwrap();
    stage.pass(299);
    assert!(stage.heard().is_empty() && !job.is_completed());
    stage.pass(1_000);
    assert_eq!(stage.heard(), [format!("300 once x1 from {}", ear.pid())]);
    assert!(job.is_completed() && !job.cancel() && !job.is_cancelled());
}

#[test]
fn a_delay_of_zero_goes_through_the_mailbox_at_once() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    ear.tell(Say("told")).unwrap();
    jobs(&stage).schedule_once(Duration::ZERO, &ear, Say("at once")).unwrap();
    assert!(stage.heard().is_empty(), "the scheduler never runs an actor");
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["0 told x0", "0 at once x1"]);
}

#[test]
fn messages_of_one_tick_come_in_the_order_of_their_jobs_behind_what_waits() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    for word in ["a", "b", "c"] {
        jobs(&stage).schedule_once(ms(5), &ear, Say(word)).unwrap();
    }
    ear.tell(Say("told")).unwrap();
    stage.clock.advance(ms(5));
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["5 told x0", "5 a x1", "5 b x1", "5 c x1"]);
}

#[test]
fn a_message_that_comes_due_while_its_receiver_fails_waits_for_what_becomes_of_it() {
    let mut stage = Stage::new();
    let pause = Strategy::restart().backoff(Backoff::new(ms(100), ms(100)));
    let ear = stage.root.spawn("ear", ear_props(&stage, 0).supervise(pause)).unwrap();
    stage.root.run_until_idle();
    jobs(&stage).schedule_once(ms(10), &ear, Say("due")).unwrap();
    ear.tell(Word::Fail).unwrap();
    stage.root.run_until_idle();
    stage.pass(99);
    assert!(stage.heard().is_empty(), "the scheduler has run the actor past its supervisor");
    stage.hears_in(1, &["100 due x1"]);
}

#[test]
fn periodic_messages_repeat_to_an_actor_and_as_a_closure() {
    for periodic in [RATE, DELAY] {
        let mut stage = Stage::new();
        let ear = ear(&mut stage, 0);
        periodic(&jobs(&stage), Duration::ZERO, ms(50), &ear, Say("tick")).unwrap();
        for name in ["rate", "delay"] {
            let log = stage.log.clone();
            let f = move |_: &FireContext| log.add(name);
            let (s, initial) = (jobs(&stage), Duration::ZERO);
            match name {
                "rate" => s.jobs().schedule_at_fixed_rate_fn(initial, ms(50), ANY, f).unwrap(),
                _ => s.jobs().schedule_with_fixed_delay_fn(initial, ms(50), ANY, f).unwrap(),
            };
        }
        stage.root.run_until_idle();
        stage.pass(100);
        let heard = stage.heard();
        let ticks: Vec<_> = heard.iter().filter(|line| line.contains("tick")).collect();
        assert_eq!(ticks, ["0 tick x1", "50 tick x1", "100 tick x1"]);
        let count = |name: &str| heard.iter().filter(|line| *line == name).count();
        assert_eq!((count("rate"), count("delay"), heard.len()), (3, 3, 9));
    }
}

#[test]
fn a_periodic_job_ends_quietly_when_its_receiver_has_stopped() {
    for periodic in [RATE, DELAY] {
        let mut stage = Stage::new();
        let ear = ear(&mut stage, 0);
        let job = periodic(&jobs(&stage), Duration::ZERO, ms(100), &ear, Say("tick")).unwrap();
        stage.root.run_until_idle();
        stage.pass(150);
        assert_eq!(stage.heard().len(), 2);
        ear.tell(Word::Stop).unwrap();
        stage.root.run_until_idle();
        assert!(!job.is_completed());
        stage.pass(500);
        assert!(stage.heard().is_empty() && stage.dead.take().is_empty());
        assert!(job.is_completed() && !job.is_cancelled());
        assert_eq!(jobs(&stage).jobs().metrics().active_total, 0);
    }
}

#[test]
fn a_message_that_finds_its_receiver_stopped_is_a_dead_letter() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let job = jobs(&stage).schedule_once(ms(10), &ear, Say("late")).unwrap();
    ear.tell(Word::Stop).unwrap();
    stage.root.run_until_idle();
    stage.pass(10);
    assert_eq!(stage.dead.take(), ["stopped"]);
    assert!(job.is_completed());
}

#[test]
fn a_receiver_that_is_known_to_have_stopped_is_refused() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    ear.tell(Word::Stop).unwrap();
    stage.root.run_until_idle();
    let refused = jobs(&stage).schedule_once(ms(1), &ear, Say("a")).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::ReceiverGone);
    assert_eq!(refused.into_inner(), Say("a"));
    for periodic in [RATE, DELAY] {
        let refused = periodic(&jobs(&stage), ms(1), ms(1), &ear, Say("b")).unwrap_err();
        assert_eq!(refused.kind(), ScheduleErrorKind::ReceiverGone);
        assert_eq!(refused.into_inner(), Say("b"));
    }
    assert_eq!(jobs(&stage).jobs().metrics().accepted_total, 0);
}

#[test]
fn a_refused_message_comes_back() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let s = jobs(&stage);
    let refused = s.schedule_once(Duration::MAX, &ear, Say("a")).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::InvalidDelay);
    assert_eq!(refused.into_inner(), Say("a"));
    for periodic in [RATE, DELAY] {
        let refused = periodic(&s, ms(1), Duration::ZERO, &ear, Say("b")).unwrap_err();
        assert_eq!(refused.into_inner(), Say("b"));
    }
    s.jobs().shutdown();
    let refused = s.schedule_once(Duration::ZERO, &ear, Say("a")).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
}

#[test]
fn a_cancel_wins_until_the_message_is_taken_out_of_the_mailbox() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let s = jobs(&stage);
    let once = s.schedule_once(ms(5), &ear, Say("once")).unwrap();
    let every = RATE(&s, ms(5), ms(5), &ear, Say("every")).unwrap();
    let kept = s.schedule_once(ms(5), &ear, Say("kept")).unwrap();
    // The messages are in the mailbox, because the scheduler was polled and the actor was not.
    stage.clock.advance(ms(5));
    s.jobs().poll_shard(0, 0, 10);
    assert_eq!(s.jobs().metrics().fired_total, 3);
    assert!(once.cancel() && every.cancel());
    stage.root.run_until_idle();
    stage.hears_in(20, &["5 kept x1"]);
    assert!(once.is_cancelled() && every.is_cancelled() && kept.is_completed());
    assert_eq!(s.jobs().metrics().discarded_total, 2);
    assert!(stage.dead.take().is_empty());
}

#[test]
fn a_cancelled_message_in_the_mailbox_of_an_actor_that_stops_is_no_dead_letter() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let s = jobs(&stage);
    ear.tell(Word::Stop).unwrap();
    let cancelled = s.schedule_once(ms(5), &ear, Say("cancelled")).unwrap();
    s.schedule_once(ms(5), &ear, Say("lost")).unwrap();
    stage.clock.advance(ms(5));
    s.jobs().poll_shard(0, 0, 10);
    assert!(cancelled.cancel());
    stage.root.run_until_idle();
    assert_eq!(stage.dead.take(), ["stopped"]);
}

#[test]
fn a_fixed_delay_counts_from_the_return_of_the_handler_and_a_rate_keeps_its_grid() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 100);
    let job = DELAY(&jobs(&stage), ms(125), ms(125), &ear, Say("d")).unwrap();
    stage.hears_in(450, &["125 d x1", "350 d x1", "575 d x1"]);
    job.cancel();
    let at = stage.clock.now().ticks;
    RATE(&jobs(&stage), ms(225), ms(225), &ear, Say("r")).unwrap();
    stage.pass(500);
    assert_eq!(stage.heard(), [225, 450, 675].map(|n| format!("{} r x1", at + n)));
}

#[test]
fn one_message_of_a_job_is_in_the_mailbox_and_what_is_missed_is_told() {
    let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(CatchUp::Folded));
    let mut stage = Stage::with(ActorSystem::builder("t").policies(policies));
    let props = ear_props(&stage, 0).mailbox(Mailbox::bounded(2));
    let ear = stage.root.spawn("ear", props).unwrap();
    stage.root.run_until_idle();
    RATE(&jobs(&stage), ms(10), ms(10), &ear, Say("tick")).unwrap();
    for _ in 0..5 {
        stage.clock.advance(ms(10));
        jobs(&stage).jobs().poll_shard(0, 0, 10);
    }
    assert!(ear.tell(Say("there is room")).is_ok());
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), ["50 tick x5", "50 there is room x0"]);
    assert!(stage.dead.take().is_empty());
}

#[test]
fn what_the_mailbox_has_no_room_for_is_a_dead_letter_and_does_not_end_the_job() {
    for overflow in [Overflow::Fail, Overflow::DropNewest] {
        let mut stage = Stage::new();
        let props = ear_props(&stage, 0).mailbox(Mailbox::bounded(1).overflow(overflow));
        let ear = stage.root.spawn("ear", props).unwrap();
        stage.root.run_until_idle();
        RATE(&jobs(&stage), ms(10), ms(10), &ear, Say("tick")).unwrap();
        ear.tell(Say("full")).unwrap();
        stage.clock.advance(ms(10));
        jobs(&stage).jobs().poll_shard(0, 0, 10);
        stage.root.run_until_idle();
        assert_eq!(stage.dead.take(), ["full"]);
        stage.hears_in(10, &["10 full x0", "20 tick x1"]);
    }
}

#[test]
fn an_evicted_message_completes_its_run() {
    let mut stage = Stage::new();
    let props = ear_props(&stage, 0).mailbox(Mailbox::bounded(1).overflow(Overflow::DropOldest));
    let ear = stage.root.spawn("ear", props).unwrap();
    stage.root.run_until_idle();
    DELAY(&jobs(&stage), ms(10), ms(10), &ear, Say("tick")).unwrap();
    stage.clock.advance(ms(10));
    jobs(&stage).jobs().poll_shard(0, 0, 10);
    ear.tell(Say("newer")).unwrap();
    stage.hears_in(10, &["11 newer x0", "20 tick x1"]);
    assert_eq!(stage.dead.take(), ["other"]);
}

#[test]
fn a_mapped_ref_makes_each_message() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let each: ActorRef<()> = ear.map(|()| Say("made"));
    let s = jobs(&stage);
    s.schedule_at_fixed_rate(ms(1), ms(1), &each, ()).unwrap();
    let once =
        s.schedule_once(ms(2), &ear.map(|n: u8| [Say("0"), Say("1")][n as usize].clone()), 1);
    stage.hears_in(2, &["1 made x1", "2 1 x1", "2 made x1"]);
    assert!(once.unwrap().is_completed());
}

#[test]
fn periodic_messages_survive_a_restart_of_their_receiver() {
    for periodic in [RATE, DELAY] {
        let users = Strategy::restart().limit(3, Duration::from_secs(1));
        let mut stage =
            Stage::with(ActorSystem::builder("t").supervise_users(Scope::AllForOne, users));
        let ear = ear(&mut stage, 0);
        periodic(&jobs(&stage), ms(500), ms(500), &ear, Say("ping")).unwrap();
        stage.pass(1_000);
        ear.tell(Word::Fail).unwrap();
        stage.root.run_until_idle();
        stage.pass(2_000);
        let expected: Vec<_> = (1..=6).map(|n| format!("{} ping x1", n * 500)).collect();
        assert_eq!(stage.heard(), expected);
    }
}

#[test]
fn a_handler_that_fails_by_its_own_message_does_not_end_the_job() {
    let mut stage = Stage::new();
    let props = ear_props(&stage, 0).supervise(Strategy::restart());
    let ear = stage.root.spawn("ear", props).unwrap();
    stage.root.run_until_idle();
    let job = DELAY(&jobs(&stage), ms(10), ms(10), &ear, Word::Fail).unwrap();
    stage.pass(100);
    assert_eq!(jobs(&stage).jobs().metrics().fired_total, 10);
    assert!(!job.is_completed() && !ear.is_stopped());
}

#[test]
fn a_context_schedules_in_the_name_of_its_actor_and_beyond_its_life() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let scripted_actor = stage.scripted_actor();
    let to = ear.clone();
    stage.act(&scripted_actor, move |cx| {
        drop(cx.schedule_once(ms(10), &to, Say("posthumous"))?);
        Ok(Next::Stop)
    });
    stage.heard();
    stage.pass(10);
    assert_eq!(stage.heard(), [format!("10 posthumous x1 from {}", scripted_actor.pid())]);
}

#[test]
fn a_stashed_message_keeps_its_batch_and_is_no_parcel_any_more() {
    let mut stage = Stage::new();
    let props = stage.props(|_| Ok(Next::Stay)).stash(1);
    let a = stage.root.spawn("a", props).unwrap();
    stage.root.run_until_idle();
    let deed = Msg::Do(Box::new(|cx| {
        cx.stash(Msg::Say("stashed")).map_err(|_| Failure::msg("full"))?;
        Ok(Next::Stay)
    }));
    let job = jobs(&stage).schedule_once(ms(1), &a, deed).unwrap();
    stage.pass(1);
    assert!(job.is_completed());
    stage.tell(
        &a,
        Msg::Do(Box::new(|cx| {
            cx.unstash_all();
            Ok(Next::Stay)
        })),
    );
    assert_eq!(stage.heard(), ["1 stashed x1"]);
}

#[test]
fn policies_are_found_by_dispatcher_guardian_and_class() {
    let folded = Policy::DEFAULT.catch_up(CatchUp::Folded);
    let of = [
        Affinity::Dispatcher(ANY),
        Affinity::Guardian("/user".into()),
        Affinity::ActorClass(core::any::type_name::<Ear>().into()),
    ];
    for affinity in of {
        let policies = PolicyRegistry::new()
            .set(Affinity::Guardian("/system".into()), Policy::DEFAULT.priority(TimerPriority::Low))
            .set(affinity, folded);
        let mut stage = Stage::with(ActorSystem::builder("t").policies(policies));
        let ear = ear(&mut stage, 0);
        RATE(&jobs(&stage), ms(10), ms(10), &ear, Say("tick")).unwrap();
        stage.clock.advance(ms(30));
        stage.root.run_until_idle();
        assert_eq!(stage.heard(), ["30 tick x3"]);
    }
}

#[test]
fn everything_else_of_the_scheduler_is_there_too() {
    let stage = Stage::new();
    let s = jobs(&stage);
    let log = stage.log.clone();
    let note = move || {
        log.add("closed");
        Ok(())
    };
    s.jobs().register_on_close(note, TaskRunPriority::User).unwrap();
    assert_eq!(s.jobs().max_frequency(), 1_000);
    assert!(!s.jobs().is_closed());
    let report = s.jobs().shutdown();
    assert_eq!(report.accepted, report.executed + report.cancelled);
    assert_eq!(stage.heard(), ["closed"]);
}

#[test]
fn messages_by_a_mapped_ref_give_an_actor_that_is_awake_no_second_turn() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let mapped: ActorRef<()> = ear.map(|()| Say("made"));
    ear.tell(Word::Stop).unwrap();
    mapped.tell(()).unwrap();
    mapped.tell(()).unwrap();
    stage.root.run_until_idle();
    assert!(ear.is_stopped());
    assert_eq!(stage.dead.take().len(), 2);
}

/// The close puts nothing into mailboxes, so a message cannot be marked to be sent by it.
#[test]
fn a_close_does_not_send_a_message_before_its_time() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let job = jobs(&stage).schedule_once(ms(5_000), &ear, Say("early")).unwrap();
    assert!(!job.run_on_close(), "marks are for closures");
    let due = jobs(&stage).schedule_once(ms(10), &ear, Say("due")).unwrap();
    stage.clock.advance(ms(10));
    let report = jobs(&stage).jobs().shutdown();
    stage.root.run_until_idle();
    assert_eq!(stage.heard(), [""; 0]);
    assert!(job.is_cancelled() && due.is_cancelled());
    assert_eq!((report.run_on_close, report.executed, report.cancelled), (0, 0, 2));
}

/// Nothing of the scheduler continues behind a system that has terminated.
#[test]
fn a_system_that_has_terminated_has_closed_its_scheduler() {
    let mut stage = Stage::new();
    let s = jobs(&stage);
    let (log, again) = (stage.log.clone(), stage.log.clone());
    let tick = move |_: &FireContext| log.add("tick");
    let every = s.jobs().schedule_at_fixed_rate_fn(ms(10), ms(10), ANY, tick).unwrap();
    let note = move || {
        again.add("closed");
        Ok(())
    };
    s.jobs().register_on_close(note, TaskRunPriority::User).unwrap();
    stage.pass(20);
    let end = stage.root.system().shutdown();
    stage.root.run_until_idle();
    assert!(end.report().is_some_and(|report| report.is_clean()));
    assert_eq!(stage.heard(), ["tick", "tick", "closed"]);
    assert!(s.jobs().is_closed() && every.is_cancelled());
    stage.pass(50);
    assert!(stage.heard().is_empty(), "a closure runs after the termination");
    let refused = s.jobs().schedule_once_fn(ms(1), ANY, |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::Closed);
}

/// A message that waits in the scheduler was never sent: its handle reports the cancel, and it is
/// no dead letter. A message that was sent before is one, because its receiver stops.
#[test]
fn a_shutdown_cancels_a_message_that_was_not_sent_and_one_that_was_sent_is_a_dead_letter() {
    let mut stage = Stage::new();
    let ear = ear(&mut stage, 0);
    let s = jobs(&stage);
    let sent = s.schedule_once(ms(5), &ear, Say("sent")).unwrap();
    let waiting = s.schedule_once(ms(5_000), &ear, Say("waiting")).unwrap();
    ear.tell(Word::Stop).unwrap();
    // The first message is in the mailbox, because the scheduler was polled and the actor was not.
    stage.clock.advance(ms(5));
    s.jobs().poll_shard(0, 0, 10);
    let system = stage.root.system().clone();
    let end = system.shutdown();
    stage.root.run_until_idle();
    assert!(end.report().is_some_and(|report| report.is_clean()));
    assert_eq!(stage.heard(), [""; 0]);
    assert!(sent.is_completed() && !sent.is_cancelled());
    assert!(waiting.is_cancelled() && !waiting.cancel());
    let of = |reason| system.metrics().dead_letters(reason);
    let letters: usize = DeadLetterReason::ALL.iter().map(|reason| of(*reason)).sum();
    assert_eq!((of(DeadLetterReason::Stopped), letters), (1, 1));
    let report = s.jobs().shutdown();
    // The deadlines of the shutdown itself are jobs too, and are cancelled.
    assert_eq!(report.executed, 1);
    assert_eq!(report.accepted, report.executed + report.cancelled);
}

/// Paths and subsystems are found too: the longest path applies, and a subsystem before it.
#[test]
fn policies_are_found_by_path_and_by_subsystem() {
    let folded = Policy::DEFAULT.catch_up(CatchUp::Folded);
    let plain = Policy::DEFAULT;
    let guardian = |path: &'static str| Affinity::Guardian(path.into());
    let subsystem = |name: &'static str| Affinity::Subsystem(name.into());
    for (entries, named, is_folded) in [
        (vec![(guardian("/user/ear"), folded)], None, true),
        (vec![(guardian("/user/ea"), folded), (guardian("/system"), folded)], None, false),
        (vec![(guardian("/user/ear"), folded), (guardian("/user"), plain)], None, true),
        (vec![(guardian("/user/ear"), plain), (guardian("/user"), folded)], None, false),
        (vec![(subsystem("ear"), folded), (guardian("/user/ear"), plain)], None, true),
        (vec![(subsystem("eye"), folded)], None, false),
        (vec![(subsystem("eye"), folded), (subsystem("ear"), plain)], Some("eye"), true),
        (vec![(subsystem("eye"), plain), (subsystem("ear"), folded)], Some("eye"), false),
    ] {
        let text = format!("{entries:?} {named:?}");
        let set = |all: PolicyRegistry, (affinity, policy)| all.set(affinity, policy);
        let policies = entries.into_iter().fold(PolicyRegistry::new(), set);
        let mut stage = Stage::with(ActorSystem::builder("t").policies(policies));
        let ear = ear(&mut stage, 0);
        let s = jobs(&stage);
        let s = named.map_or(s.clone(), |name| s.with_subsystem(name));
        RATE(&s, ms(10), ms(10), &ear, Say("tick")).unwrap();
        stage.clock.advance(ms(30));
        stage.root.run_until_idle();
        assert_eq!(stage.heard().len(), if is_folded { 1 } else { 3 }, "{text}");
    }
}
