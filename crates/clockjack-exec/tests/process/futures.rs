//! Futures: their budget, their time limit, and what a dump says of them, in virtual time.

use alloc::{rc::Rc, vec::Vec};
use core::{
    cell::Cell,
    future::{pending, poll_fn, ready},
    panic::Location,
    task::Poll,
    time::Duration,
};

use clockjack_exec::{Commands, JoinHandle, Limits, LiveTask, State, consume_budget, timeout};

use crate::bench::Run;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Handles of tasks that have finished: each is ready at its first poll.
fn finished(run: &mut Run, n: usize) -> Vec<JoinHandle<()>> {
    let handles = (0..n).map(|_| run.exec.spawn_future(async {})).collect();
    run.idle();
    handles
}

#[test]
fn a_future_that_is_always_ready_lets_the_others_run() {
    const MANY: usize = 1_000;
    let mut run = Run::new();
    let handles = finished(&mut run, MANY);
    let (n_joined, seen) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let joiner = run.exec.spawn_future({
        let n_joined = Rc::clone(&n_joined);
        async move {
            for handle in handles {
                handle.await.unwrap();
                n_joined.set(n_joined.get() + 1);
            }
        }
    });
    drop(run.exec.spawn_future({
        let (n_joined, seen) = (Rc::clone(&n_joined), Rc::clone(&seen));
        async move { seen.set(n_joined.get()) }
    }));
    run.exec.turn();
    assert_eq!(seen.get(), 128, "the other task runs after one budget");
    assert!(!joiner.is_finished());
    // Every poll has a new budget.
    run.exec.turn();
    assert_eq!(n_joined.get(), 256);
    run.idle();
    assert_eq!(n_joined.get(), MANY);
    assert!(joiner.is_finished());
}

#[test]
fn a_loop_without_a_wait_yields_when_it_consumes_its_budget() {
    let mut run = Run::new();
    let n_rounds = Rc::new(Cell::new(0));
    let endless = run.exec.spawn_future({
        let n_rounds = Rc::clone(&n_rounds);
        async move {
            loop {
                n_rounds.set(n_rounds.get() + 1);
                consume_budget().await;
            }
        }
    });
    for turn in 1..=3 {
        assert_eq!(run.exec.turn().steps, 1);
        // The last unit is taken before the yield.
        assert_eq!(n_rounds.get(), turn * 128 + 1);
    }
    endless.abort();
    run.idle();
    run.assert_well();
}

#[test]
fn a_future_in_time_returns_its_output_and_one_too_late_an_error_in_the_tick_of_its_limit() {
    let mut run = Run::new();
    let handle = run.handle();
    let in_time = run.exec.spawn_future(timeout(ms(20), handle.sleep(ms(19))));
    let too_late = run.exec.spawn_future(timeout(ms(20), handle.sleep(ms(21))));
    let both_due = run.exec.spawn_future(timeout(ms(20), handle.sleep(ms(20))));
    run.run_for(19);
    assert!(in_time.is_finished() && !too_late.is_finished());
    run.run_for(1);
    assert!(too_late.is_finished(), "not a tick late");
    assert!(run.exec.block_on(in_time).unwrap().is_ok());
    assert!(run.exec.block_on(both_due).unwrap().is_ok(), "the future comes first");
    let error = run.exec.block_on(too_late).unwrap().unwrap_err();
    assert!(error.is_elapsed() && !error.is_closed());
    assert_eq!(error.to_string(), "the time-out has passed");
    let stats = handle.stats();
    assert_eq!(stats.timers_pending, 0, "a time-out leaves no timer behind");
    run.assert_well();
}

#[test]
fn a_time_out_works_outside_of_tasks_and_with_an_output_that_is_ready() {
    let mut run = Run::new();
    let handle = run.handle();
    let never = handle.timeout(ms(5), pending::<()>());
    assert!(run.exec.block_on(never).unwrap_err().is_elapsed());
    // A future that is ready needs no timer, so nothing can refuse it.
    assert_eq!(run.exec.block_on(timeout(ms(5), ready(7))), Ok(7));
    let error = run.exec.block_on(timeout(ms(5), pending::<()>())).unwrap_err();
    assert!(!error.is_elapsed(), "{error}");
}

#[test]
fn a_time_out_whose_timer_is_refused_is_an_error_and_not_a_wait_without_limit() {
    let mut run = Run::of(Limits::DEFAULT.timers(8), Commands::new(), 0);
    let tasks: Vec<_> =
        (0..1_000).map(|_| run.exec.spawn_future(timeout(ms(5), pending::<()>()))).collect();
    run.idle();
    let n_refused = tasks.iter().filter(|task| task.is_finished()).count();
    assert!(n_refused > 0, "there is room for all");
    run.run_for(5);
    let mut errors = tasks.into_iter().map(|task| run.exec.block_on(task).unwrap().unwrap_err());
    assert_eq!(errors.by_ref().filter(|error| error.is_full()).count(), n_refused);
}

/// Its own polls leave nothing of the budget for the time-out.
#[test]
fn a_future_that_uses_up_its_budget_in_every_poll_is_timed_out() {
    let mut run = Run::new();
    let endless = async {
        loop {
            consume_budget().await;
        }
    };
    let limited = run.exec.spawn_future(timeout(ms(3), endless));
    for _ in 0..4 {
        run.exec.turn();
        run.clock.advance(ms(1));
    }
    run.exec.turn();
    assert!(limited.is_finished());
    let limited: Result<(), _> = run.exec.block_on(limited).unwrap();
    assert!(limited.unwrap_err().is_elapsed());
}

#[track_caller]
fn here() -> u32 {
    Location::caller().line()
}

fn only(run: &Run) -> LiveTask {
    let mut tasks = run.handle().task_dump();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    tasks.remove(0)
}

#[test]
fn a_dump_says_what_a_task_is_called_and_where_it_was_spawned_and_where_it_waits() {
    let mut run = Run::new();
    let handle = run.handle();
    let awaited = Rc::new(Cell::new(0));
    let line = Rc::clone(&awaited);
    let task = run.exec.spawn_future(async move {
        line.set(here() + 1);
        clockjack_exec::sleep(ms(10)).await.unwrap();
        pending::<()>().await;
    });
    let spawned = here() - 5;
    let dumped = only(&run);
    assert_eq!((dumped.state, dumped.polls), (State::Ready, 0));
    assert_eq!((dumped.since_poll, dumped.waits_at), (None, None));
    assert_eq!(dumped.pid, task.pid().unwrap());

    run.idle();
    let dumped = only(&run);
    assert_eq!((dumped.state, dumped.polls, dumped.name.as_deref()), (State::Idle, 1, None));
    let spawned_at = dumped.spawned_at.unwrap();
    assert_eq!((spawned_at.line(), spawned_at.file()), (spawned, file!()));
    let waits_at = dumped.waits_at.unwrap();
    assert_eq!((waits_at.line(), waits_at.file()), (awaited.get(), file!()));
    assert!(dumped.type_name.contains("where_it_waits"), "{}", dumped.type_name);

    run.run_for(10);
    run.clock.advance(ms(5_000));
    let dumped = only(&run);
    assert_eq!((dumped.polls, dumped.waits_at), (2, None), "not where it waited before");
    let since = dumped.since_poll.unwrap();
    assert!((ms(4_990)..ms(5_010)).contains(&since), "{since:?}");
    task.abort();
    run.idle();

    drop(handle.spawn_named(format!("task {}", 7), pending::<()>()));
    run.idle();
    let dumped = only(&run);
    assert_eq!(dumped.name.as_deref(), Some("task 7"));
    let text = dumped.to_string();
    let is_in = |part: &str| assert!(text.contains(part), "{part:?} is not in {text:?}");
    for part in [" \"task 7\" ", " is idle, 1 polls, the last ", ", spawned at ", file!()] {
        is_in(part);
    }
}

#[test]
fn a_dump_taken_by_a_task_shows_that_task_running() {
    let mut run = Run::new();
    let handle = run.handle();
    let dump = run.exec.spawn_future({
        let handle = handle.clone();
        poll_fn(move |_| Poll::Ready(handle.task_dump()))
    });
    drop(run.exec.spawn_future(pending::<()>()));
    run.idle();
    let states: Vec<_> =
        run.exec.block_on(dump).unwrap().iter().map(|task| (task.state, task.polls)).collect();
    assert_eq!(states, [(State::Running, 1), (State::Ready, 0)]);
}
