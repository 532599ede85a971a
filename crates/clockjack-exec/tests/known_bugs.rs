//! Bugs that executors and timers have had elsewhere, each as the behaviour that it broke.
//!
//! What is repeated is the situation, not the code; `known_bugs.md` names the project and the fault
//! that is planted here for it. Nothing in here depends on a schedule: time passes by hand, and
//! where a worker is needed it works on the thread of the test.
#![cfg(not(loom))]
#![expect(unsafe_code, reason = "a host promises which worker its thread is")]

extern crate alloc;

#[path = "known_bugs/support.rs"]
mod support;

use alloc::{rc::Rc, sync::Arc};
use core::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Poll, Waker},
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Mutex, mpsc},
    thread,
};

use clockjack_exec::{
    Event, Events, Failure, Handle, Limits, LocalExecutor, Payload, Payloads, Pid, Process,
    SHUTDOWN, StepOutput, Tag,
    builtin::{Monitor, Spawn},
    watchdog::Watchdog,
    worker::manual::ManualWorker,
    yield_now,
};
use clockjack_testing::keeps_deadline;
use clockjack_time::ManualClock;

use crate::support::{
    Woken, bench, close, dismiss, enter, is_worker, pass, poll, stage, stage_with, step_back,
    ticks, when_a_worker_is_called, whenever_the_watchdog_is_called, work,
};

/// A door that a test opens; `await` on it leaves the waker inside.
#[derive(Default)]
struct Door {
    is_open: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Door {
    fn pass(self: Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        poll_fn(move |cx| {
            if self.is_open.load(SeqCst) {
                return Poll::Ready(());
            }
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn open(&self) {
        self.is_open.store(true, SeqCst);
        let waker = self.waker.lock().unwrap().take();
        waker.expect("somebody waits").wake();
    }
}

/// tokio 6999: a wake that a thread has deferred is lost when the thread stops before.
/// Here what was woken last stands in the slot of the worker.
#[test]
fn what_the_last_step_of_a_worker_wakes_runs_on_another() {
    let handle = stage(2);
    let door = Arc::new(Door::default());
    let waiting = handle.spawn_future(Arc::clone(&door).pass());
    work(&handle, 0, Vec::new());
    assert!(!waiting.is_finished());
    let opener = handle.spawn_future(async move {
        door.open();
        dismiss(0);
    });
    work(&handle, 0, Vec::new());
    assert!(opener.is_finished());
    assert!(!waiting.is_finished(), "the worker left before it came to it");
    work(&handle, 1, Vec::new());
    assert!(waiting.is_finished(), "the wake left with the worker");
    close(&handle);
}

/// tokio 6999, once more: what a timer is to wake is put off until the shard is open again.
#[test]
fn a_worker_that_leaves_wakes_whom_its_timers_have_promised() {
    let handle = stage(1);
    let (woken, waker) = Woken::new();
    let mut timer = handle.timer();
    work(&handle, 0, vec![Box::new(|| ())]);
    timer.arm(ticks(5), waker).unwrap();
    let leave_when_due = || {
        pass(5);
        dismiss(0);
    };
    work(&handle, 0, vec![Box::new(leave_when_due)]);
    assert!(!timer.is_armed(), "the timer fired");
    assert_eq!(woken.count(), 1, "its waker was forgotten");
    close(&handle);
}

/// tokio 4751: a waker was kept because another one `will_wake` the same task.
#[test]
fn a_sleep_wakes_who_polled_it_last() {
    let (mut executor, clock) = bench();
    let mut sleep = executor.handle().sleep(ticks(10));
    let ((first, first_waker), (second, second_waker)) = (Woken::new(), Woken::new());
    assert!(poll(&mut sleep, &first_waker).is_pending());
    assert!(poll(&mut sleep, &second_waker).is_pending());
    clock.advance(ticks(10));
    executor.run_until_idle();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert!(poll(&mut sleep, &second_waker).is_ready());
}

/// tokio 4751, in the other place where a waker waits.
#[test]
fn a_join_wakes_who_polled_it_last() {
    let (mut executor, _clock) = bench();
    let door = Arc::new(Door::default());
    let mut join = executor.spawn_future(Arc::clone(&door).pass());
    executor.run_until_idle();
    let ((first, first_waker), (second, second_waker)) = (Woken::new(), Woken::new());
    assert!(poll(&mut join, &first_waker).is_pending());
    assert!(poll(&mut join, &second_waker).is_pending());
    door.open();
    executor.run_until_idle();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert!(poll(&mut join, &second_waker).is_ready());
}

/// tokio 3229: a timer dropped in the very tick that it was armed for, when it had been taken from
/// its slot and had not fired, was looked for in the wrong list.
#[test]
fn a_sleep_dropped_in_the_tick_that_fires_it_wakes_nobody() {
    const N: usize = 600;
    for n_turns in 0..4 {
        let (mut executor, clock) = bench();
        let handle = executor.handle();
        let mut armed: Vec<_> = (0..N)
            .map(|_| {
                let (woken, waker) = Woken::new();
                let mut sleep = handle.sleep(ticks(70));
                assert!(poll(&mut sleep, &waker).is_pending());
                (sleep, woken, waker)
            })
            .collect();
        clock.advance(ticks(70));
        // A turn fires some hundreds, so after one or two the tick is half done.
        let fired: usize = (0..n_turns).map(|_| executor.turn().fired).sum();
        for (number, (sleep, woken, waker)) in armed.iter_mut().enumerate() {
            assert_eq!(woken.count(), usize::from(number < fired), "{number} of {fired}");
            if number % 3 == 0 {
                *sleep = handle.sleep(ticks(1));
            } else {
                let is_ready = poll(sleep, waker).is_ready();
                assert_eq!(is_ready, number < fired, "{number} of {fired}");
            }
        }
        executor.run_until_idle();
        for (number, (_, woken, _)) in armed.iter().enumerate() {
            let wakes = usize::from(number < fired || number % 3 != 0);
            assert_eq!(woken.count(), wakes, "{number} of {fired}");
        }
    }
}

/// Our own: moving timers from slot to slot used up the budget of a poll before one of them fired,
/// and the executor took that for idleness.
#[test]
fn a_tick_with_more_timers_than_a_turn_can_move_is_fired_to_its_end() {
    const N: usize = 2_000;
    let (mut executor, clock) = bench();
    let handle = executor.handle();
    let (woken, waker) = Woken::new();
    let mut sleeps: Vec<_> = (0..N).map(|_| handle.sleep(ticks(70))).collect();
    for sleep in &mut sleeps {
        assert!(poll(sleep, &waker).is_pending());
    }
    clock.advance(ticks(70));
    executor.run_until_idle();
    assert_eq!(woken.count(), N);
    assert_eq!(executor.next_wake(), None);
}

/// Waits for the cancel and keeps its reason.
struct StopsAtBirth {
    handle: Handle,
    told: Rc<RefCell<Vec<&'static str>>>,
}

impl Process for StopsAtBirth {
    type Message = ();

    fn init(&mut self, _: Pid, _: &str, _: Payloads) -> Result<(), Failure> {
        // The stop comes after the executor has looked whether it stops, and before it knows this
        // process.
        self.handle.executor().begin_shutdown();
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            if let Event::Cancel { reason } = event {
                self.told.borrow_mut().push(reason);
                out.done(Payload::new(()));
                return Ok(());
            }
        }
        out.idle();
        Ok(())
    }
}

/// tokio 5989 and 2789: something was started in a runtime that had shut down, and nobody notified
/// it.
#[test]
fn a_process_born_while_the_executor_stops_is_asked_to_stop() {
    let (mut executor, _clock) = bench();
    let told = Rc::new(RefCell::new(Vec::new()));
    let born = StopsAtBirth { handle: executor.handle(), told: Rc::clone(&told) };
    let born = executor.submit(born).expect("the stop came too late to refuse it");
    executor.run_until_idle();
    assert_eq!(*told.borrow(), [SHUTDOWN]);
    assert!(born.is_finished());
    assert_eq!(executor.live_len(), 0);
}

/// Ends the executor while it is born.
struct EndsAtBirth {
    handle: Handle,
    closed: Arc<AtomicUsize>,
}

impl Process for EndsAtBirth {
    type Message = ();

    fn init(&mut self, _: Pid, _: &str, _: Payloads) -> Result<(), Failure> {
        let executor = self.handle.executor();
        assert!(executor.begin_shutdown());
        executor.close_timers();
        executor.close_run_queue();
        Ok(())
    }

    fn step(&mut self, _: &mut Events<'_, ()>, _: &mut StepOutput) -> Result<(), Failure> {
        unreachable!("nobody works any more")
    }

    fn close(&mut self) {
        self.closed.fetch_add(1, SeqCst);
    }
}

/// Our own: a process whose maker had looked before the stop, and came back after the end, stood in
/// the queue of a pool without workers for ever, and so did who joined it.
#[test]
fn a_process_born_after_the_end_of_its_executor_ends_at_once() {
    let handle = stage(1);
    let closed = Arc::new(AtomicUsize::new(0));
    let born = EndsAtBirth { handle: handle.clone(), closed: Arc::clone(&closed) };
    let born = handle.submit(born).expect("the stop came too late to refuse it");
    assert!(born.is_finished());
    assert_eq!(closed.load(SeqCst), 1);
    let (_, waker) = Woken::new();
    let Poll::Ready(Err(exit)) = poll(&mut born.join(), &waker) else { panic!("it has ended") };
    assert!(exit.is_terminated(), "{exit}");
    assert_eq!(handle.executor().live_len(), 0);
}

fn sleeps_exactly(executor: &mut LocalExecutor, clock: &ManualClock, delay: u64) {
    let (woken, waker) = Woken::new();
    let mut sleep = executor.handle().sleep(ticks(delay));
    assert!(poll(&mut sleep, &waker).is_pending());
    for part in [delay / 2, delay - delay / 2 - 1] {
        clock.advance(ticks(part));
        executor.run_until_idle();
        assert_eq!(woken.count(), 0, "a sleep of {delay} ticks is early");
        assert!(poll(&mut sleep, &waker).is_pending());
    }
    clock.advance(ticks(1));
    executor.run_until_idle();
    assert_eq!(woken.count(), 1, "a sleep of {delay} ticks is late");
    assert!(poll(&mut sleep, &waker).is_ready());
}

/// tokio-timer: 2^36 ms, some two years, was the end of its wheel.
#[test]
fn a_sleep_of_two_years_is_one_like_any_other() {
    let (mut executor, clock) = bench();
    for delay in [(1 << 36) - 1, 1 << 36, (1 << 36) + 1, 1 << 37] {
        sleeps_exactly(&mut executor, &clock, delay);
    }
}

/// rpc-perf 180: a delay longer than the wheel was folded into it.
#[test]
fn a_sleep_longer_than_the_wheel_is_not_a_lap_early() {
    let (mut executor, clock) = bench();
    for laps in [1, 2, 3, 64] {
        for offset in [0, 1, 63, 4_097, (1 << 20) - 1] {
            sleeps_exactly(&mut executor, &clock, (laps << 20) + offset);
        }
    }
}

/// tokio-timer 684: a clock that stepped back made a subtraction panic.
#[test]
fn a_clock_that_steps_back_stops_no_worker_and_fires_nothing_early() {
    let handle = stage(1);
    pass(1_000);
    let (woken, waker) = Woken::new();
    let mut timer = handle.timer();
    let rounds = Arc::new(AtomicUsize::new(0));
    let spinner = handle.spawn_future({
        let (handle, rounds) = (handle.clone(), Arc::clone(&rounds));
        async move {
            timer.arm(ticks(10), waker).unwrap();
            for round in 0..1_000_usize {
                // Back and forth, never as far as the timer.
                if round % 2 == 0 {
                    step_back(500)
                } else {
                    pass(500)
                }
                assert!(handle.now().ticks <= 1_009);
                rounds.fetch_add(1, SeqCst);
                yield_now().await;
            }
            timer
        }
    });
    work(&handle, 0, Vec::new());
    assert_eq!(rounds.load(SeqCst), 1_000, "the worker did not survive");
    assert!(spinner.is_finished());
    assert_eq!(woken.count(), 0, "early");
    let mut spinner = spinner;
    let (_, waker) = Woken::new();
    let Poll::Ready(Ok(timer)) = poll(&mut spinner, &waker) else { panic!("it has finished") };
    work(&handle, 0, vec![Box::new(|| pass(10))]);
    assert_eq!(woken.count(), 1, "late");
    drop(timer);
    close(&handle);
}

/// Akka: a scheduler's thread that did not sleep for as long as it had planned went by the plan,
/// not by the clock, and fired early.
#[test]
fn a_worker_that_wakes_at_another_time_than_planned_goes_by_the_clock() {
    let handle = stage(1);
    let (woken, waker) = Woken::new();
    let mut timer = handle.timer();
    work(&handle, 0, Vec::new());
    timer.arm(ticks(100), waker).unwrap();
    let early = Arc::clone(&woken);
    let acts: Vec<Box<dyn FnOnce()>> = vec![
        Box::new(|| pass(3)),
        Box::new(|| pass(96)),
        Box::new(move || {
            assert_eq!(early.count(), 0, "fired at 99, due at 100");
            pass(1);
        }),
    ];
    work(&handle, 0, acts);
    assert_eq!(woken.count(), 1, "not fired at 100");
    close(&handle);
}

/// Go and tokio: two tasks that wake each other keep the slot that goes first, and what stands in
/// the queue behind it starves.
#[test]
fn two_that_wake_each_other_do_not_starve_a_third() {
    const ROUNDS: usize = 1_000;
    let handle = stage(1);
    let steps = Arc::new(AtomicUsize::new(0));
    let third_at = Arc::new(AtomicUsize::new(usize::MAX));
    let wakers: Arc<[Mutex<Option<Waker>>; 2]> = Arc::default();
    let player = |me: usize| {
        let (wakers, steps) = (Arc::clone(&wakers), Arc::clone(&steps));
        let mut rounds = 0;
        poll_fn(move |cx| {
            steps.fetch_add(1, SeqCst);
            rounds += 1;
            *wakers[me].lock().unwrap() = Some(cx.waker().clone());
            if let Some(other) = wakers[1 - me].lock().unwrap().take() {
                other.wake();
            }
            if rounds == ROUNDS { Poll::Ready(()) } else { Poll::Pending }
        })
    };
    let players = [handle.spawn_future(player(0)), handle.spawn_future(player(1))];
    let third = handle.spawn_future({
        let (handle, steps, third_at) = (handle.clone(), Arc::clone(&steps), Arc::clone(&third_at));
        async move {
            // Queued on the worker itself, behind the slot.
            let queued =
                handle.spawn_future(async move { third_at.store(steps.load(SeqCst), SeqCst) });
            queued.await.unwrap();
        }
    });
    work(&handle, 0, Vec::new());
    assert!(third.is_finished() && players.iter().any(|player| player.is_finished()));
    let at = third_at.load(SeqCst);
    assert!(at <= 16, "{at} steps of two others came first");
    close(&handle);
}

/// Our own: a worker that sat down forgot what it had been asked before, and never left.
#[test]
fn a_worker_that_is_asked_to_stop_before_it_starts_does_not_stay() {
    let handle = stage(1);
    let stayed = Rc::new(Cell::new(false));
    dismiss(0);
    let act = {
        let stayed = Rc::clone(&stayed);
        move || stayed.set(true)
    };
    work(&handle, 0, vec![Box::new(act)]);
    assert!(!stayed.get());
    // What was asked is done: the next one stays until it is asked itself.
    let act = {
        let stayed = Rc::clone(&stayed);
        move || stayed.set(true)
    };
    work(&handle, 0, vec![Box::new(act)]);
    assert!(stayed.get());
    close(&handle);
}

/// Our own: a pool called back a worker that had left, believed it, and had one worker too few.
#[test]
fn a_worker_that_has_left_is_not_called_back() {
    let handle = stage(1);
    dismiss(0);
    work(&handle, 0, vec![]);
    assert!(!handle.executor().withdraw_worker_stop(0), "no worker runs there");
    close(&handle);
}

/// Our own: a pool that was resized again and again while a worker left believed that the worker
/// after it had left too, and started one more. The next request to leave was lost: the shutdown
/// waited for that worker until its deadline.
#[test]
fn a_successor_that_was_asked_to_stop_before_it_starts_is_kept_if_it_is_wanted_again() {
    let handle = stage(1);
    dismiss(0);
    work(&handle, 0, vec![]);
    // From now on whatever is asked is for the successor.
    dismiss(0);
    assert!(handle.executor().withdraw_worker_stop(0), "the successor has not accepted that");
    assert!(!handle.executor().withdraw_worker_stop(0), "nothing is left to withdraw");
    let stayed = Rc::new(Cell::new(false));
    let act = {
        let stayed = Rc::clone(&stayed);
        move || stayed.set(true)
    };
    work(&handle, 0, vec![Box::new(act)]);
    assert!(stayed.get());
    close(&handle);
}

/// Opens a door when it is dropped.
struct Last(Arc<Door>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Our own: a worker that leaves after the end of its executor ends what it has, and what that woke
/// it put first, where it had looked already.
#[test]
fn what_is_woken_by_what_a_leaving_worker_ends_is_ended_too() {
    let handle = stage(1);
    let [woken, first, second] = [(); 3].map(|()| Arc::new(Door::default()));
    let late = handle.spawn_future(Arc::clone(&woken).pass());
    let wakes = handle.spawn_future({
        let (last, first) = (Last(woken), Arc::clone(&first));
        async move {
            first.pass().await;
            drop(last);
        }
    });
    let other = handle.spawn_future(Arc::clone(&second).pass());
    let executor = handle.clone();
    let leave_at_the_end = move || {
        executor.executor().close_run_queue();
        // One of the two in the ring, the other before it.
        first.open();
        second.open();
        dismiss(0);
    };
    work(&handle, 0, vec![Box::new(leave_at_the_end)]);
    assert!(wakes.is_finished() && other.is_finished());
    assert!(late.is_finished(), "it was left in the worker");
    close(&handle);
}

/// Our own: the thread of a worker that fell over still passed for one, with what was gone.
#[test]
fn a_thread_whose_worker_failed_is_no_worker_any_more() {
    let handle = stage(1);
    let fails = || panic!("not in a step");
    let worked = catch_unwind(AssertUnwindSafe(|| work(&handle, 0, vec![Box::new(fails)])));
    assert!(worked.is_err());
    assert!(!is_worker());
    drop(handle.clone());
}

/// Counts its closes, and ends as it is configured to.
struct Closes {
    count: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Fail,
    Panic,
    Terminate,
    Shutdown,
}

impl Process for Closes {
    type Message = End;

    fn step(&mut self, events: &mut Events<'_, End>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        for event in events {
            match event {
                Event::Message(End::Fail) => return Err(Failure::msg("as told")),
                Event::Message(End::Panic) => std::panic::resume_unwind(Box::new("as told")),
                Event::Message(End::Done) | Event::Cancel { .. } => out.done(Payload::new(())),
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.count.fetch_add(1, SeqCst);
    }
}

/// Double close, met in many places: what is closed by its end and again by a shutdown.
#[test]
fn a_process_is_closed_once_however_it_ends() {
    for end in [End::Done, End::Fail, End::Panic, End::Terminate, End::Shutdown] {
        for shuts_down in [false, true] {
            let (mut executor, _clock) = bench();
            let count = Arc::new(AtomicUsize::new(0));
            let process = executor.submit(Closes { count: Arc::clone(&count) }).unwrap();
            executor.run_until_idle();
            match end {
                End::Terminate => assert!(process.terminate()),
                End::Shutdown => assert!(executor.handle().executor().begin_shutdown()),
                told => process.tell(told).unwrap(),
            }
            executor.run_until_idle();
            assert_eq!(count.load(SeqCst), 1, "{end:?}");
            assert!(!process.terminate(), "it has ended");
            assert!(process.tell(End::Done).is_err(), "it has ended");
            if shuts_down {
                drop(keeps_deadline(Duration::ZERO, || executor.shutdown(Duration::ZERO)));
            } else {
                drop(executor);
            }
            assert_eq!(count.load(SeqCst), 1, "{end:?}, again by the shutdown");
        }
    }
}

/// Monitors one process, and counts the events of its end.
struct Watcher {
    watched: Option<Pid>,
    exits: Rc<Cell<usize>>,
    refusals: Rc<Cell<usize>>,
}

impl Process for Watcher {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Exit { .. } => self.exits.set(self.exits.get() + 1),
                Event::YieldComplete { result: Err(_), .. } => {
                    self.refusals.set(self.refusals.get() + 1);
                }
                _ => {}
            }
        }
        match self.watched.take() {
            Some(pid) => out.yield_command(Tag(1), Monitor(pid)),
            None => out.idle(),
        }
        Ok(())
    }
}

/// Death watch of a dead actor: a watch that arrives while its target dies, or after it, was never
/// answered.
#[test]
fn a_watch_that_comes_with_the_end_or_after_it_is_answered_once() {
    for is_dead_before in [false, true] {
        let (mut executor, _clock) = bench();
        let count = Arc::new(AtomicUsize::new(0));
        let watched = executor.submit(Closes { count }).unwrap();
        executor.run_until_idle();
        if is_dead_before {
            assert!(watched.terminate());
            executor.run_until_idle();
        }
        let (exits, refusals) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let watcher = Watcher {
            watched: Some(watched.pid()),
            exits: Rc::clone(&exits),
            refusals: Rc::clone(&refusals),
        };
        executor.submit(watcher).unwrap();
        assert!(executor.step_one(), "the watcher asks");
        if !is_dead_before {
            // The watch is in the target's lane; the target ends without another look at it.
            assert!(watched.terminate());
        }
        executor.run_until_idle();
        let told = (exits.get(), refusals.get());
        assert_eq!(told, if is_dead_before { (0, 1) } else { (1, 0) });
    }
}

/// Starts a child that fails at once, monitors it, is linked to it, and keeps the events.
struct Parent {
    before_child: Option<Box<dyn FnOnce() + Send>>,
    told: Arc<Mutex<Vec<&'static str>>>,
}

/// Fails at its first step.
struct Fails;

impl Process for Fails {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, _: &mut StepOutput) -> Result<(), Failure> {
        Err(Failure::msg("at once"))
    }
}

impl Process for Parent {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            self.told.lock().unwrap().push(match event {
                Event::Exit { .. } => "exit",
                Event::LinkDown { .. } => "link",
                Event::YieldComplete { result: Ok(_), .. } => "started",
                _ => "other",
            });
        }
        out.trap_links(true);
        match self.before_child.take() {
            Some(prepare) => {
                prepare();
                out.yield_command(Tag(1), Spawn::new(Fails).linked().monitored());
            }
            None => out.idle(),
        }
        Ok(())
    }
}

/// Our own: a child was visible to others before its parent was linked to it; another worker could
/// run it to its end in between, and the parent was never notified.
#[test]
fn a_child_that_ends_while_its_parent_starts_it_is_told_of() {
    let handle = stage(3);
    // Somebody must sleep when there is a child to run, or nobody is called.
    let (start, is_started) = mpsc::channel();
    let (sleep, is_asleep) = mpsc::channel();
    let (rise, is_called) = mpsc::channel();
    let sleeper = {
        let handle = handle.clone();
        move || {
            is_started.recv().expect("the parent starts");
            let act = move || {
                sleep.send(()).expect("the parent waits");
                is_called.recv().expect("the test comes to its end");
            };
            enter(&handle);
            work(&handle, 1, vec![Box::new(act)]);
        }
    };
    let before_child = move || {
        start.send(()).expect("the sleeper waits");
        is_asleep.recv().expect("the sleeper has nothing to do");
    };
    let told = Arc::default();
    let parent = Parent { before_child: Some(Box::new(before_child)), told: Arc::clone(&told) };
    handle.submit(parent).unwrap();
    when_a_worker_is_called({
        let handle = handle.clone();
        move || {
            // The parent's worker has queued the child and calls for help: it is taken and run.
            work(&handle, 2, Vec::new());
            assert_eq!(handle.stats().finished, 1, "the child has ended");
        }
    });
    thread::scope(|scope| {
        scope.spawn(sleeper);
        work(&handle, 0, Vec::new());
        rise.send(()).expect("the sleeper sleeps");
    });
    let mut told = told.lock().unwrap().clone();
    told.sort_unstable();
    assert_eq!(told, ["exit", "link", "started"]);
    close(&handle);
}

/// A worker that leaves calls code that is not its own: it drops wakers of users, and it calls its
/// host. What that code wakes must not be put into the queues that the worker leaves behind.
#[test]
fn what_is_woken_while_a_worker_leaves_is_polled_by_another() {
    let handle = stage(2);
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let is_woken = Arc::new(AtomicBool::new(false));
    let (my_waker, my_flag) = (Arc::clone(&waker), Arc::clone(&is_woken));
    let task = handle.spawn_future(poll_fn(move |cx| {
        my_flag.store(false, SeqCst);
        *my_waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::<()>::Pending
    }));
    let flag = Arc::clone(&is_woken);
    whenever_the_watchdog_is_called(move || {
        let waker = waker.lock().unwrap().clone();
        if let Some(waker) = waker {
            flag.store(true, SeqCst);
            waker.wake();
        }
    });
    work(&handle, 0, Vec::new());
    assert!(is_woken.load(SeqCst), "the worker calls the watchdog when it leaves");
    let steps = handle.executor().stats().steps;
    work(&handle, 1, Vec::new());
    assert!(handle.executor().stats().steps > steps, "the task is in the slot of nobody");
    drop(task);
    close(&handle);
}

/// A worker that leaves calls the watchdog before its slot is free. The watchdog must not try to
/// assign the shards to this very worker, which has fewer shards than every other.
#[test]
fn the_shard_of_a_worker_that_leaves_is_assigned_while_the_worker_occupies_its_slot() {
    let handle = stage(2);
    let [leaving, staying] = [0, 1].map(|worker| ManualWorker::new(handle.executor(), worker));
    let executor = handle.clone();
    whenever_the_watchdog_is_called(move || {
        let _ = Watchdog::new(2, u64::MAX).poll(executor.executor(), |_| ());
    });
    drop(leaving);
    let stats = handle.worker_stats();
    let shards: Vec<_> = stats.iter().map(|it| (it.worker, it.counts.timer_shards)).collect();
    assert_eq!(shards, [(1, 2)]);
    drop(staying);
    close(&handle);
}

/// A worker keeps a few free slots for the tasks that it starts, but none while it sleeps: others
/// may start as many tasks as the limit says.
#[test]
fn a_worker_that_sleeps_keeps_no_slot_of_a_small_registry() {
    const N: usize = 128;
    let handle = stage_with(1, Limits::DEFAULT.processes(N));
    let inside = handle.clone();
    drop(handle.spawn_future(async move { drop(inside.spawn_future(async {})) }));
    let (outside, started) = (handle.clone(), Rc::new(Cell::new(0)));
    let n_started = Rc::clone(&started);
    let start = move || {
        let tasks = move || {
            let start = || outside.spawn_future(core::future::pending::<()>());
            (0..=N).filter(|_| !start().is_finished()).count()
        };
        n_started.set(thread::scope(|scope| scope.spawn(tasks).join().unwrap()));
    };
    work(&handle, 0, vec![Box::new(start)]);
    assert_eq!(started.get(), N);
    close(&handle);
}
