//! The receive time-out of an actor, in virtual time.

use crate::scripted_actor::{Msg, Stage, act, ms, tell};
use clockjack_actor::{ActorRef, Next, Signal, Strategy};
use core::time::Duration;

/// A scripted actor that ignores quiet messages, and whose time-out is set.
fn waiting(stage: &mut Stage, after: Duration) -> ActorRef<Msg> {
    let props = stage.props(|_| Ok(Next::Stay)).receive_timeout_ignores(is_quiet).stash(10);
    let a = stage.root.spawn("a", props).unwrap();
    set(&a, after);
    stage.root.run_until_idle();
    a
}

fn is_quiet(msg: &Msg) -> bool {
    matches!(msg, Msg::Quiet(_) | Msg::QuietDo(_))
}

fn set(a: &ActorRef<Msg>, after: Duration) {
    act(a, move |cx| {
        cx.set_receive_timeout(after);
        Ok(Next::Stay)
    });
}

fn timers_fired(stage: &Stage) -> u64 {
    stage.root.system().scheduler().jobs().metrics().fired_total
}

#[test]
fn it_comes_again_and_again_until_it_is_cancelled() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.hears_in(35, &["10 ReceiveTimeout", "20 ReceiveTimeout", "30 ReceiveTimeout"]);
    stage.act(&a, |cx| {
        cx.cancel_receive_timeout();
        Ok(Next::Stay)
    });
    stage.hears_in(50, &[]);
}

#[test]
fn it_counts_from_the_return_of_the_last_handler_and_to_the_tick() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.pass(9);
    stage.tell(&a, Msg::Say("one"));
    stage.pass(7);
    stage.tell(&a, Msg::Work("two", 3));
    stage.hears_in(9, &["9 one", "16 two"]);
    stage.hears_in(1, &["29 ReceiveTimeout"]);
}

#[test]
fn a_handler_that_takes_longer_than_the_time_out_is_no_silence() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.pass(5);
    stage.tell(&a, Msg::Work("long", 50));
    stage.hears_in(9, &["5 long"]);
    stage.hears_in(1, &["65 ReceiveTimeout"]);
}

#[test]
fn what_is_set_in_a_handler_begins_when_that_returns() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    let clock = alloc::sync::Arc::clone(&stage.clock);
    stage.act(&a, move |cx| {
        cx.set_receive_timeout(ms(10));
        clock.advance(ms(30));
        Ok(Next::Stay)
    });
    assert!(stage.heard().is_empty());
    stage.hears_in(9, &[]);
    stage.hears_in(1, &["40 ReceiveTimeout"]);
}

#[test]
fn a_busy_actor_has_one_job_for_each_time_out_and_not_for_each_message() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(100));
    let (fired, accepted) = (timers_fired(&stage), accepted(&stage));
    for _ in 0..1_000 {
        tell(&a, Msg::Say("more"));
        stage.pass(1);
    }
    stage.heard();
    assert!(timers_fired(&stage) - fired <= 11, "{}", timers_fired(&stage));
    assert!(self::accepted(&stage) - accepted <= 11);
    stage.hears_in(99, &[]);
    stage.hears_in(1, &["1100 ReceiveTimeout"]);
}

fn accepted(stage: &Stage) -> u64 {
    stage.root.system().scheduler().jobs().metrics().accepted_total
}

#[test]
fn an_ignored_message_neither_ends_nor_begins_the_wait() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.pass(8);
    stage.tell(&a, Msg::Quiet("quiet"));
    stage.hears_in(4, &["8 quiet", "10 ReceiveTimeout"]);
}

#[test]
fn an_ignored_message_is_one_also_by_a_timer_and_from_the_stash() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.act(&a, |cx| {
        cx.timers().fixed_rate("k", ms(4), || Msg::Quiet("tick"))?;
        let _ = cx.stash(Msg::Quiet("stashed"));
        Ok(Next::Stay)
    });
    stage.pass(9);
    stage.tell(
        &a,
        Msg::QuietDo(Box::new(|cx| {
            cx.unstash_all();
            Ok(Next::Stay)
        })),
    );
    stage.hears_in(2, &["4 tick x1", "8 tick x1", "9 stashed", "10 ReceiveTimeout"]);
}

#[test]
fn a_timers_message_that_is_not_ignored_begins_the_wait_anew() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.act(&a, |cx| {
        cx.timers().single("k", ms(8), Msg::Say("tick"))?;
        Ok(Next::Stay)
    });
    stage.hears_in(18, &["8 tick x1", "18 ReceiveTimeout"]);
}

#[test]
fn setting_and_cancelling_in_the_handler_of_an_ignored_message_act_at_once() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.pass(5);
    stage.tell(
        &a,
        Msg::QuietDo(Box::new(|cx| {
            cx.set_receive_timeout(ms(3));
            Ok(Next::Stay)
        })),
    );
    stage.hears_in(3, &["8 ReceiveTimeout"]);
    stage.tell(
        &a,
        Msg::QuietDo(Box::new(|cx| {
            cx.cancel_receive_timeout();
            Ok(Next::Stay)
        })),
    );
    stage.hears_in(50, &[]);
}

#[test]
fn the_last_of_several_changes_in_one_handler_wins() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    stage.act(&a, |cx| {
        cx.set_receive_timeout(ms(1));
        cx.cancel_receive_timeout();
        cx.set_receive_timeout(ms(30));
        cx.set_receive_timeout(ms(20));
        Ok(Next::Stay)
    });
    stage.hears_in(25, &["20 ReceiveTimeout"]);
    stage.act(&a, |cx| {
        cx.set_receive_timeout(ms(1));
        cx.cancel_receive_timeout();
        Ok(Next::Stay)
    });
    stage.hears_in(50, &[]);
}

#[test]
fn a_nanosecond_is_a_tick() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, Duration::from_nanos(1));
    stage.hears_in(2, &["1 ReceiveTimeout", "2 ReceiveTimeout"]);
    drop(a);
}

#[test]
fn it_may_be_longer_than_the_longest_delay() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, 3 * ms(1 << 31));
    for _ in 0..5 {
        stage.clock.advance(ms(1 << 30));
        stage.root.run_until_idle();
    }
    stage.clock.advance(ms(1 << 30) - ms(1));
    stage.root.run_until_idle();
    assert!(stage.heard().is_empty());
    stage.pass(1);
    assert_eq!(stage.heard(), [format!("{} ReceiveTimeout", 3_u64 << 31)]);
    drop(a);
}

#[test]
fn a_cancel_makes_one_that_is_due_already_disappear() {
    let mut stage = Stage::new();
    let a = waiting(&mut stage, ms(10));
    // Due in the same tick and set earlier, so the timeout is behind it in the queue.
    stage.tell(
        &a,
        Msg::QuietDo(Box::new(|cx| {
            let cancel: Msg = Msg::QuietDo(Box::new(|cx| {
                cx.cancel_receive_timeout();
                Ok(Next::Stay)
            }));
            cx.timers().single("k", ms(10), cancel)?;
            cx.cancel_receive_timeout();
            cx.set_receive_timeout(ms(10));
            Ok(Next::Stay)
        })),
    );
    stage.hears_in(50, &[]);
}

#[test]
fn a_message_that_waits_goes_first_and_begins_the_wait_anew() {
    let mut stage = Stage::new();
    let a = stage.scripted_actor();
    set(&a, ms(10));
    stage.root.run_until_idle();
    stage.clock.advance(ms(15));
    stage.tell(&a, Msg::Say("waits"));
    stage.hears_in(9, &["15 waits"]);
    stage.hears_in(1, &["25 ReceiveTimeout"]);
}

#[test]
fn a_restart_cancels_it_and_a_start_may_set_it() {
    let mut stage = Stage::new();
    let starts = core::sync::atomic::AtomicU32::new(0);
    let props = stage.props(move |cx| {
        if starts.fetch_add(1, core::sync::atomic::Ordering::Relaxed) == 1 {
            cx.set_receive_timeout(ms(7));
        }
        Ok(Next::Stay)
    });
    let a = stage.root.spawn("a", props.supervise(Strategy::restart())).unwrap();
    set(&a, ms(10));
    stage.tell(&a, Msg::Fail);
    stage.hears_in(7, &["0 PreRestart", "7 ReceiveTimeout"]);
    stage.tell(&a, Msg::Panic);
    stage.hears_in(50, &["7 PreRestart"]);
}

#[test]
fn a_failure_that_is_resumed_begins_the_wait_anew() {
    for fault in [|| Msg::Fail, || Msg::Panic] {
        let mut stage = Stage::new();
        let props = stage.props(|_| Ok(Next::Stay)).supervise(Strategy::resume());
        let a = stage.root.spawn("a", props).unwrap();
        set(&a, ms(10));
        stage.root.run_until_idle();
        stage.pass(6);
        tell(&a, fault());
        stage.root.run_until_idle();
        stage.hears_in(10, &["16 ReceiveTimeout"]);
    }
}

#[test]
fn a_stop_cancels_it_and_nothing_is_a_dead_letter() {
    let mut stage = Stage::new();
    let props = stage.props_with(
        |_| Ok(Next::Stay),
        |cx, signal| {
            if matches!(signal, Signal::PostStop) {
                cx.set_receive_timeout(ms(1));
            }
            None
        },
    );
    let a = stage.root.spawn("a", props).unwrap();
    set(&a, ms(10));
    stage.root.run_until_idle();
    stage.tell(&a, Msg::Stop);
    stage.hears_in(50, &["0 PostStop"]);
    assert!(stage.dead.take().is_empty());
    assert_eq!(stage.root.system().scheduler().jobs().metrics().active_total, 0);
}

#[test]
fn it_may_stop_the_actor() {
    let mut stage = Stage::new();
    let props = stage.props_with(
        |cx| {
            cx.set_receive_timeout(ms(10));
            Ok(Next::Stay)
        },
        |_, signal| matches!(signal, Signal::ReceiveTimeout).then_some(Next::Stop),
    );
    let a = stage.root.spawn("a", props).unwrap();
    stage.root.run_until_idle();
    stage.pass(10);
    assert!(a.is_stopped());
}
