//! An executor that a task of tokio's drives.

use core::{cell::Cell, future::pending, time::Duration};
use std::{rc::Rc, thread};

use clockjack_rt::{
    TokioExecutor, TokioToolbox,
    exec::{Commands, Event, Events, Failure, Limits, Payload, Process, StepOutput},
};
use clockjack_testing::awaits_deadline;
use clockjack_time::Resolution;
use tokio::{
    sync::oneshot,
    task::{LocalSet, yield_now},
    time::timeout,
};

use crate::{LONG, one_thread, two_threads, within};

fn executor() -> TokioExecutor {
    let toolbox = TokioToolbox::new(Resolution::MILLI);
    toolbox.executor(Limits::DEFAULT, Commands::new()).expect("no handler is there twice")
}

/// Goes on and on, and counts; ends when it is asked to, if it is polite.
struct Restless {
    steps: Rc<Cell<u64>>,
    is_polite: bool,
}

impl Process for Restless {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        self.steps.set(self.steps.get() + 1);
        for event in events {
            if matches!(event, Event::Cancel { .. }) && self.is_polite {
                out.done(Payload::new(()));
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Lets everything else on this thread run for a while.
async fn many_turns() {
    for _ in 0..1_000 {
        yield_now().await;
    }
}

#[test]
fn tokio_tasks_go_on_beside_a_process_that_never_rests() {
    within(&one_thread(), async {
        let mut executor = executor();
        let steps = Rc::new(Cell::new(0));
        executor.submit(Restless { steps: Rc::clone(&steps), is_polite: true }).unwrap();
        let other = tokio::spawn(many_turns());
        executor.drive(other).await.unwrap();
        assert!(steps.get() >= 1_000, "a slice between each two turns: {}", steps.get());
    });
}

#[test]
fn timers_of_both_kinds_fire_beside_a_process_that_never_rests() {
    within(&one_thread(), async {
        let mut executor = executor();
        executor.submit(Restless { steps: Rc::default(), is_polite: true }).unwrap();
        let both = executor.spawn_future(async {
            clockjack_rt::sleep(Duration::from_millis(3)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(3)).await;
        });
        executor.drive(both).await.unwrap();
    });
}

#[test]
fn a_timer_fires_in_an_executor_that_has_nothing_else_to_do() {
    within(&one_thread(), async {
        let mut executor = executor();
        let begun = tokio::time::Instant::now();
        let naps = executor.spawn_future(async {
            for _ in 0..3 {
                clockjack_rt::sleep(Duration::from_millis(4)).await.unwrap();
            }
        });
        executor.drive(naps).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(12));
        // And one that the driving future itself waits for.
        executor
            .drive(async { clockjack_rt::sleep(Duration::from_millis(2)).await })
            .await
            .unwrap();
    });
}

#[test]
fn another_thread_ends_the_wait_of_an_idle_executor() {
    within(&one_thread(), async {
        let mut executor = executor();
        let handle = executor.handle();
        let (report, reported) = oneshot::channel();
        let other = tokio::spawn(async move {
            // After so many turns the executor sleeps.
            many_turns().await;
            tokio::task::spawn_blocking(move || {
                let spawned = handle.spawn_future(async move {
                    // Armed on an executor that slept without a deadline.
                    clockjack_rt::sleep(Duration::from_millis(1)).await.unwrap();
                    report.send(thread::current().id()).unwrap();
                });
                drop(spawned);
            })
            .await
        });
        let ran_on = executor.drive(reported).await.unwrap();
        assert_eq!(ran_on, thread::current().id());
        other.await.unwrap().unwrap();
    });
}

#[test]
fn an_executor_is_driven_in_a_local_set_of_a_runtime_with_threads() {
    let runtime = two_threads();
    let set = LocalSet::new();
    within(
        &runtime,
        set.run_until(async {
            let driven = tokio::task::spawn_local(async {
                let mut executor = executor();
                let not_send = Rc::new(Cell::new(1));
                let spawned = executor.spawn_future({
                    let not_send = Rc::clone(&not_send);
                    async move {
                        // A task that any thread of tokio's may run.
                        not_send.set(tokio::spawn(async { 41 }).await.unwrap() + not_send.get());
                    }
                });
                executor.drive(spawned).await.unwrap();
                not_send.get()
            });
            assert_eq!(driven.await.unwrap(), 42);
        }),
    );
}

#[test]
fn a_burst_of_ready_futures_lets_tokio_run_in_between() {
    within(&one_thread(), async {
        let mut executor = executor();
        let done = Rc::new(Cell::new(0));
        for _ in 0..200 {
            let done = Rc::clone(&done);
            drop(executor.spawn_future(async move { done.set(done.get() + 1) }));
        }
        // The other task runs after the first slice, when most of the burst is still to be done.
        let (look, looked) = oneshot::channel();
        let set = LocalSet::new();
        let seen = Rc::clone(&done);
        set.spawn_local(async move { look.send(seen.get()).unwrap() });
        let first_look = set.run_until(executor.drive(looked)).await.unwrap();
        assert!(first_look <= 64, "{first_look} steps came before tokio had its turn");
        assert!(executor.local().is_ready());
        executor.drive(many_turns()).await;
        assert_eq!(done.get(), 200);
    });
}

#[test]
fn driving_can_be_given_up_and_taken_up_again() {
    within(&one_thread(), async {
        let mut executor = executor();
        let (ask, asked) = oneshot::channel::<u32>();
        let answer = executor.spawn_future(async move { asked.await.unwrap() + 1 });
        let given_up = timeout(Duration::from_millis(3), executor.drive(pending::<()>())).await;
        assert!(given_up.is_err());
        // It rings while nobody waits for the bell.
        ask.send(41).unwrap();
        assert_eq!(executor.drive(answer).await.unwrap(), 42);
    });
}

#[test]
fn a_panic_ends_its_process_and_nothing_else() {
    within(&one_thread(), async {
        let mut executor = executor();
        let bad = executor.spawn_future(async { panic!("boom") });
        let good = executor.spawn_future(async { 1 });
        let exit = executor.drive(bad).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(exit.panic_message(), Some("boom"));
        assert_eq!(executor.drive(good).await.unwrap(), 1);
    });
}

#[test]
fn a_shutdown_asks_waits_and_reports_while_tokio_goes_on() {
    within(&one_thread(), async {
        let executor = executor();
        let steps: Rc<Cell<u64>> = Rc::default();
        for is_polite in [true, false, true] {
            executor.submit(Restless { steps: Rc::clone(&steps), is_polite }).unwrap();
        }
        let other = tokio::spawn(many_turns());
        let deadline = Duration::from_millis(500);
        let report = awaits_deadline(deadline, executor.shutdown(deadline)).await;
        assert_eq!(report.completed, 2);
        assert_eq!(report.stragglers.len(), 1);
        other.await.unwrap();
    });
}

#[test]
fn a_shutdown_ends_as_soon_as_nobody_lives() {
    within(&one_thread(), async {
        let executor = executor();
        let sleeps = executor.spawn_future(async { clockjack_rt::sleep(LONG * 100).await });
        executor.submit(Restless { steps: Rc::default(), is_polite: true }).unwrap();
        // Longer than the test may take.
        let report = awaits_deadline(LONG * 2, executor.shutdown(LONG * 2)).await;
        assert_eq!((report.completed, report.stragglers.len()), (2, 0));
        assert!(sleeps.await.is_err());
    });
}
