//! What a system in virtual time promises to tests.

#[path = "support/panics.rs"]
mod panics;

use core::{
    cell::RefCell,
    future::{pending, poll_fn},
    task::Poll,
    time::Duration,
};
use std::rc::Rc;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Mailbox, Next, Props, Strategy,
    shutdown::{Phase, PhaseOutcome, ShutdownConfig},
};
use clockjack_testkit::ManualTime;
use panics::panic_of;

const SECOND: Duration = Duration::from_secs(1);

/// Executes closures of the test.
struct Doer;

type Deed = Box<dyn FnOnce(&mut Context<'_, Doer>) -> Result<Next, Failure>>;

impl Actor for Doer {
    type Msg = Deed;

    fn receive(&mut self, cx: &mut Context<'_, Self>, deed: Deed) -> Result<Next, Failure> {
        deed(cx)
    }
}

fn doer(time: &ManualTime, name: &str) -> ActorRef<Deed> {
    time.spawn(name, Props::new(|| Doer).supervise(Strategy::resume()))
}

fn tell(
    to: &ActorRef<Deed>,
    deed: impl FnOnce(&mut Context<'_, Doer>) -> Result<Next, Failure> + 'static,
) {
    assert!(to.tell(Box::new(deed)).is_ok(), "it is there");
}

/// Sends the time since the start to `to` after `after`.
fn tell_time(doer: &ActorRef<Deed>, time: &ManualTime, after: Duration, to: &ActorRef<Duration>) {
    let (to, start) = (to.clone(), time.now());
    tell(doer, move |cx| {
        let nanos = u64::try_from(after.as_nanos())?;
        let deed: Deed = Box::new(move |cx| {
            to.tell(cx.now().since(start))?;
            Ok(Next::Stay)
        });
        let set = cx.timers().single(nanos, after, deed);
        assert!(set.is_ok(), "there is room");
        Ok(Next::Stay)
    });
    time.settle();
}

/// Sends itself a message for each message that it receives.
struct Spinner;

impl Actor for Spinner {
    type Msg = ();

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        cx.self_ref().tell(())?;
        Ok(Next::Stay)
    }
}

#[test]
fn nothing_runs_before_the_test_says_so() {
    let time = ManualTime::start();
    let ran = Rc::new(RefCell::new(false));
    let mine = Rc::clone(&ran);
    tell(&doer(&time, "a"), move |_| {
        *mine.borrow_mut() = true;
        Ok(Next::Stay)
    });
    assert!(!*ran.borrow());
    time.settle();
    assert!(*ran.borrow());
}

#[test]
fn everything_due_runs_at_its_own_time_and_in_order() {
    let time = ManualTime::start();
    let out = time.probe::<Duration>();
    let a = doer(&time, "a");
    for seconds in [3, 1, 2] {
        tell_time(&a, &time, seconds * SECOND, &out.actor_ref());
    }
    time.advance(5 * SECOND);
    assert_eq!(out.receive_n(3), [SECOND, 2 * SECOND, 3 * SECOND]);
    assert_eq!(time.elapsed(), 5 * SECOND);
}

#[test]
fn what_follows_from_a_timer_happens_before_the_next_one() {
    let time = ManualTime::start();
    let out = time.probe::<u32>();
    let (a, b) = (doer(&time, "a"), doer(&time, "b"));
    for n in [1, 2] {
        let (b, to) = (b.clone(), out.actor_ref());
        tell(&a, move |cx| {
            let deed: Deed = Box::new(move |_| {
                to.tell(10 * n)?;
                tell(&b, move |_| Ok(to.tell(10 * n + 1).map(|()| Next::Stay)?));
                Ok(Next::Stay)
            });
            let set = cx.timers().single(u64::from(n), n * SECOND, deed);
            assert!(set.is_ok(), "there is room");
            Ok(Next::Stay)
        });
    }
    time.advance(2 * SECOND);
    assert_eq!(out.receive_n(4), [10, 11, 20, 21]);
}

#[test]
fn parts_of_a_tick_add_up() {
    let time = ManualTime::start();
    let out = time.probe::<Duration>();
    tell_time(&doer(&time, "a"), &time, Duration::from_millis(1), &out.actor_ref());
    time.advance(Duration::from_nanos(999_999));
    out.expect_none();
    time.advance(Duration::from_nanos(1));
    out.expect_eq(Duration::from_millis(1));
}

#[test]
fn time_jumps_to_what_is_due_next() {
    let time = ManualTime::start();
    let out = time.probe::<Duration>();
    let a = doer(&time, "a");
    let weeks = 3 * 7 * 86_400 * SECOND;
    tell_time(&a, &time, weeks, &out.actor_ref());
    tell_time(&a, &time, SECOND, &out.actor_ref());
    assert_eq!(time.advance_to_next(), Some(SECOND));
    out.expect_eq(SECOND);
    assert_eq!(time.advance_to_next(), Some(weeks - SECOND));
    out.expect_eq(weeks);
    assert_eq!(time.advance_to_next(), None);
    assert_eq!(time.elapsed(), weeks);
}

#[test]
fn a_future_gets_the_time_that_it_waits_for() {
    let time = ManualTime::start();
    let delay = time.system().scheduler().jobs().delays().delay(90 * SECOND);
    assert!(time.block_on(delay).is_ok());
    assert_eq!(time.elapsed(), 90 * SECOND);
}

#[test]
fn an_ask_is_answered_without_any_time() {
    let time = ManualTime::start();
    let a = doer(&time, "a");
    let ask = a.ask::<u32, _>(
        |reply_to| {
            Box::new(move |_| {
                reply_to.reply(7);
                Ok(Next::Stay)
            })
        },
        SECOND,
    );
    assert_eq!(time.block_on(ask).ok(), Some(7));
    assert_eq!(time.elapsed(), Duration::ZERO);
}

#[test]
fn a_future_that_wakes_itself_is_polled_again() {
    let time = ManualTime::start();
    let mut left = 3;
    let future = poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready("done");
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    assert_eq!(time.block_on(future), "done");
}

#[test]
fn a_future_that_nothing_can_wake_is_a_deadlock() {
    let time = ManualTime::start();
    let _a = doer(&time, "a");
    time.advance(SECOND);
    let text = panic_of(|| time.block_on(pending::<()>()));
    let expected = "ManualTime: deadlock at 1s: the future is pending, no actor is ready, and \
                    nothing is due\nactors:\n  /\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("\n  /user/a"), "{text}");
}

#[test]
fn a_system_that_is_never_idle_is_told_with_the_busiest() {
    let time = ManualTime::start();
    let _idle = doer(&time, "idle");
    let spinner = time.spawn("spinner", Props::new(|| Spinner));
    assert!(spinner.tell(()).is_ok());
    time.set_rounds_max(50);
    let text = panic_of(|| time.settle());
    let expected = "ManualTime: not idle after 50 rounds at 0ns; the busiest: \
                    /user/spinner";
    assert_eq!(text, expected);
    assert!(time.system().stop(&spinner).is_ok());
}

#[test]
fn an_actor_that_is_refused_is_told_by_its_name() {
    let time = ManualTime::start();
    let _a = doer(&time, "a");
    let text = panic_of(|| doer(&time, "a"));
    assert!(text.starts_with("ManualTime: cannot start `a`: "), "{text}");
    assert!(time.try_spawn("a b", Props::new(|| Doer)).is_err());
}

#[test]
fn failures_are_shown_until_they_are_taken() {
    let time = ManualTime::start();
    time.expect_no_failures();
    let a = doer(&time, "a");
    tell(&a, |_| Err(Failure::msg("out of paper")));
    let text = panic_of(|| time.expect_no_failures());
    assert!(text.starts_with("ManualTime: 1 failures:\n  "), "{text}");
    assert!(text.contains("/user/a") && text.contains("out of paper"), "{text}");
    tell(&a, |_| panic!("no ink"));
    let failures = time.take_failures();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].reason.is_panic());
    time.expect_no_failures();
}

#[test]
fn a_handler_cannot_run_the_system_that_runs_it() {
    let time = Rc::new(ManualTime::start());
    let (a, inside) = (doer(&time, "a"), Rc::clone(&time));
    tell(&a, move |_| {
        inside.settle();
        Ok(Next::Stay)
    });
    let failures = time.take_failures();
    let expected = "ManualTime: `settle` was called inside a handler, while the system is running";
    assert!(failures[0].reason.text().contains(expected), "{}", failures[0].reason);
}

#[test]
fn the_end_stops_all_actors() {
    let time = ManualTime::start();
    let a = doer(&time, "a");
    tell(&a, |cx| {
        cx.spawn_local_child("b", Props::new(|| Doer)).map_err(|_| Failure::msg("refused"))?;
        Ok(Next::Stay)
    });
    time.settle();
    let report = time.shutdown();
    assert!(report.is_clean(), "{report:?}");
    assert!(a.is_stopped());
}

#[test]
fn the_end_takes_the_time_that_its_tasks_need() {
    let time = ManualTime::start();
    let system = time.system().clone();
    let delay = system.scheduler().jobs().delays().delay(3 * SECOND);
    let task = async move { delay.await.map_err(|_| Failure::msg("no delay")) };
    assert!(system.on_shutdown(Phase::SERVICE_STOP, "slow", task).is_ok());
    drop(time);
    let report = system.when_terminated().report().expect("it has ended");
    let phases = report.shutdown.expect("its phases were run");
    let phase = phases.phase(Phase::SERVICE_STOP).expect("it was run");
    assert_eq!(phase.outcome, PhaseOutcome::Completed);
}

#[test]
fn an_end_that_does_not_come_is_told_with_those_that_are_left() {
    let mut config = ShutdownConfig::default();
    config.phase_mut(Phase::SERVICE_STOP).expect("a default").timeout = Duration::MAX;
    let time = ManualTime::start_with(ActorSystem::builder("test").shutdown(config));
    let _a = doer(&time, "a");
    assert!(time.system().on_shutdown(Phase::SERVICE_STOP, "stuck", pending()).is_ok());
    let text = panic_of(|| drop(time));
    assert!(
        text.starts_with("ManualTime: the system does not terminate\nactors:\n  /\n"),
        "{text}"
    );
    assert!(text.contains("\n  /user/a"), "{text}");
}

#[test]
fn a_task_of_the_end_that_fails_is_told_by_its_name() {
    let time = ManualTime::start();
    let task = async { Err(Failure::msg("no more paper")) };
    time.system().on_shutdown(Phase::SERVICE_STOP, "print", task).unwrap();
    let text = panic_of(|| drop(time));
    assert!(text.contains("`print` failed: no more paper"), "{text}");
    assert!(!text.contains("waited for"), "{text}");
}

#[test]
fn a_test_that_panics_is_not_told_of_the_end() {
    let mut config = ShutdownConfig::default();
    config.phase_mut(Phase::SERVICE_STOP).expect("a default").timeout = Duration::MAX;
    let time = ManualTime::start_with(ActorSystem::builder("test").shutdown(config));
    assert!(time.system().on_shutdown(Phase::SERVICE_STOP, "stuck", pending()).is_ok());
    let text = panic_of(move || {
        let _time = time;
        panic!("what is wrong");
    });
    assert_eq!(text, "what is wrong");
}

#[test]
fn settings_are_those_of_the_builder() {
    let time = ManualTime::start_with(ActorSystem::builder("mine"));
    assert_eq!(time.system().name(), "mine");
}

/// In which order five actors run that became ready at the same time.
fn order(seed: u64) -> Vec<usize> {
    let time = ManualTime::with_seed(seed);
    let out = time.probe::<usize>();
    let all: Vec<_> = (0..5).map(|n| doer(&time, &format!("a{n}"))).collect();
    time.settle();
    for (n, one) in all.iter().enumerate() {
        let to = out.actor_ref();
        tell(one, move |_| Ok(to.tell(n).map(|()| Next::Stay)?));
    }
    out.receive_n(5)
}

#[test]
fn a_seed_decides_the_order_and_repeats_it() {
    assert_eq!(order(0), [0, 1, 2, 3, 4]);
    assert!((1..20).any(|seed| order(seed) != order(0)));
    for seed in 1..20 {
        assert_eq!(order(seed), order(seed));
    }
}

#[test]
fn a_seed_never_changes_the_order_from_one_to_another() {
    for seed in 0..20 {
        let time = ManualTime::with_seed(seed);
        let out = time.probe::<u32>();
        let keeper = Props::new(|| Doer).mailbox(Mailbox::unbounded());
        let a = time.spawn("a", keeper);
        let to = out.actor_ref();
        tell(&a, move |_| {
            (0..200).try_for_each(|n| to.tell(n))?;
            Ok(Next::Stay)
        });
        assert_eq!(out.receive_n(200), (0..200).collect::<Vec<_>>());
    }
}
