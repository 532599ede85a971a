//! Toolboxes that do less than they might, or not what they should, and executors side by side.

use alloc::{rc::Rc, sync::Arc};
use core::{
    cell::Cell,
    future::{pending, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::Poll,
};
use std::{
    panic::catch_unwind,
    sync::Mutex,
    thread::{self, ThreadId},
};

use clockjack_exec::{
    Commands, Events, Failure, Limits, LocalExecutor, PanicPayload, Payload, Process, StepOutput,
    Toolbox, sleep,
};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::bench::{Dropped, Log, Run, millis};

/// What a toolbox does with what it is to guard.
#[derive(Clone, Copy)]
enum Habit {
    /// Calls it, and catches nothing.
    Bare,
    Twice,
    /// Catches, and says nothing of it.
    Silent,
    Never,
}

struct Odd {
    clock: ManualClock,
    driver: ManualDriver,
    habit: Habit,
    /// While it is set, nobody is to be unparked.
    is_deaf: Arc<AtomicBool>,
}

impl Toolbox for Odd {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }

    fn park(&self, _until: Option<Tick>) {}

    fn unpark(&self) {
        assert!(!self.is_deaf.load(SeqCst), "cannot unpark");
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        match self.habit {
            Habit::Bare => turn(),
            Habit::Twice => {
                turn();
                turn();
            }
            Habit::Silent => drop(catch_unwind(AssertUnwindSafe(turn))),
            Habit::Never => {}
        }
        Ok(())
    }
}

fn odd(habit: Habit) -> (LocalExecutor, Arc<AtomicBool>) {
    let is_deaf = Arc::new(AtomicBool::new(false));
    let odd = Odd {
        clock: ManualClock::new(Resolution::MILLI),
        driver: ManualDriver::new(Resolution::MILLI),
        habit,
        is_deaf: Arc::clone(&is_deaf),
    };
    let executor = LocalExecutor::new(odd, Limits::DEFAULT, Commands::new());
    (executor.expect("there are no commands to clash"), is_deaf)
}

#[test]
fn an_executor_that_catches_nothing_is_dropped_after_a_panic_with_all_that_can_end() {
    let (mut executor, _) = odd(Habit::Bare);
    let log = Log::default();
    drop(executor.spawn_future(async { panic!("through the executor") }));
    let waits = Dropped(log.clone(), "what waits");
    drop(executor.spawn_future(async move {
        pending::<()>().await;
        drop(waits);
    }));
    let left = catch_unwind(AssertUnwindSafe(|| executor.run_until_idle()));
    assert!(left.is_err());
    assert_eq!(executor.live_len(), 2);
    drop(executor);
    log.expect(&["dropped what waits"]);
}

/// Says where it is dropped.
struct Homebound(ThreadId, Log);

impl Homebound {
    fn new(log: &Log) -> Self {
        Self(thread::current().id(), log.clone())
    }
}

impl Drop for Homebound {
    fn drop(&mut self) {
        self.1.say(if self.0 == thread::current().id() { "at home" } else { "abroad" });
    }
}

/// Is not `Send`, and panics when it is closed.
struct Stubborn(Homebound, Rc<()>);

impl Process for Stubborn {
    type Message = u32;

    fn step(&mut self, _: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::unit());
        Ok(())
    }

    fn close(&mut self) {
        panic!("{:?} is not to be closed: {}", self.0.0, Rc::strong_count(&self.1));
    }
}

#[test]
fn a_process_whose_end_was_cut_short_by_a_panic_is_dropped_on_no_other_thread() {
    let (mut executor, _) = odd(Habit::Bare);
    let log = Log::default();
    let it = executor.submit(Stubborn(Homebound::new(&log), Rc::new(()))).unwrap();
    let left = catch_unwind(AssertUnwindSafe(|| executor.run_until_idle()));
    assert!(left.is_err());
    // The reference may go anywhere, since the messages may.
    let _ = thread::scope(|scope| scope.spawn(move || drop(it)).join());
    drop(executor);
    log.expect(&[]);
}

#[test]
fn a_toolbox_that_calls_twice_what_it_guards_has_it_done_once() {
    let (mut executor, _) = odd(Habit::Twice);
    let polls = Rc::new(Cell::new(0));
    let join = executor.spawn_future({
        let polls = Rc::clone(&polls);
        poll_fn(move |_| {
            polls.set(polls.get() + 1);
            Poll::Ready(String::from("once"))
        })
    });
    executor.run_until_idle();
    assert_eq!(executor.block_on(join).unwrap(), "once");
    assert_eq!(polls.get(), 1);
}

#[test]
fn a_panic_that_a_toolbox_keeps_to_itself_still_ends_its_process() {
    let (mut executor, _) = odd(Habit::Silent);
    let join = executor.spawn_future(async { panic!("kept") });
    executor.run_until_idle();
    let exit: Result<(), _> = executor.block_on(join);
    assert!(exit.unwrap_err().is_panicked());
    assert_eq!(executor.live_len(), 0);
}

#[test]
#[should_panic(expected = "the toolbox did not call the closure")]
fn a_toolbox_that_does_not_call_what_it_guards_is_told() {
    let (mut executor, _) = odd(Habit::Never);
    drop(executor.spawn_future(async {}));
    executor.run_until_idle();
}

#[test]
fn what_must_stay_on_its_thread_is_not_ended_by_another() {
    let (mut executor, _) = odd(Habit::Bare);
    let log = Log::default();
    let guest = Homebound::new(&log);
    drop(executor.spawn_future(async move { drop(guest) }));
    let handle = executor.handle();
    thread::scope(|scope| scope.spawn(move || handle.executor().close_run_queue()).join().unwrap());
    executor.run_until_idle();
    log.expect(&["at home"]);
}

/// The first process of each executor has the same pid.
#[test]
fn a_sleep_that_goes_to_another_executor_wakes_who_polls_it_there() {
    let (mut here, mut there) = (Run::new(), Run::new());
    let moving = Arc::new(Mutex::new(Some(Box::pin(here.handle().sleep(millis(5))))));
    let theirs = Arc::clone(&moving);
    let first = here.exec.spawn_future(poll_fn(move |cx| {
        let mut moving = theirs.lock().unwrap();
        let Some(sleep) = moving.as_mut() else { return Poll::Ready(()) };
        assert!(Pin::new(sleep).poll(cx).is_pending());
        Poll::Pending
    }));
    here.idle();
    let sleep = moving.lock().unwrap().take().unwrap();
    let second = there.exec.spawn_future(sleep);
    there.idle();
    assert_eq!(first.pid(), second.pid());
    here.run_for(5);
    there.idle();
    assert!(second.is_finished(), "the wake went to the process of that name here");
}

#[test]
fn another_executor_that_cannot_be_woken_harms_neither_the_end_nor_the_timers() {
    let mut run = Run::new();
    let (mut deaf, is_deaf) = odd(Habit::Bare);
    let task = run.exec.spawn_future(async { sleep(millis(1)).await });
    let joins = deaf.spawn_future(async move { task.await.unwrap().unwrap() });
    let sleeps = deaf.spawn_future(run.handle().sleep(millis(2)));
    run.idle();
    deaf.run_until_idle();
    is_deaf.store(true, SeqCst);
    run.run_for(1);
    assert_eq!(run.handle().stats().drop_panics, 1);
    run.run_for(1);
    assert_eq!(run.handle().stats().drop_panics, 2);
    is_deaf.store(false, SeqCst);
    run.assert_well();
    deaf.run_until_idle();
    assert!(joins.is_finished() && sleeps.is_finished());
}
