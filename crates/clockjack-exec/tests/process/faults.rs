//! Whatever panics ends at most one process: nothing else is lost, and the panic is reported.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::pending,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::sync::Mutex;

use clockjack_exec::{
    Command, CommandId, Commands, Completer, Events, Failure, Limits, Payload, Payloads, Pid,
    Process, SHUTDOWN, StepOutput, Tag,
    builtin::{Monitor, SleepFor},
};
use clockjack_testing::keeps_deadline;

use crate::bench::{Bomb, Dropped, Log, Mortal, Run, asker, millis, process};

/// Panics where it is configured to.
struct Faulty(&'static str);

impl Faulty {
    fn at(&self, place: &str) {
        assert_ne!(self.0, place, "a fault");
    }
}

impl Process for Faulty {
    type Message = u32;

    fn init(&mut self, _: Pid, _: &str, _: Payloads) -> Result<(), Failure> {
        self.at("init");
        Ok(())
    }

    fn step(&mut self, _: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        self.at("step");
        out.done(Payload::new(1_u32));
        Ok(())
    }

    fn close(&mut self) {
        self.at("close");
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.at("drop");
        }
    }
}

#[test]
fn a_panic_in_init_refuses_the_process_and_gives_it_back() {
    let mut run = Run::new();
    let refused = run.exec.submit(Faulty("init")).unwrap_err();
    assert!(refused.failure().unwrap().to_string().contains("a fault"));
    assert!(refused.into_inner().is_some());
    run.assert_well();
}

#[test]
fn a_panic_in_a_step_is_how_the_process_ended() {
    let mut run = Run::new();
    let log = Log::default();
    let it = run.exec.submit(Faulty("step")).unwrap();
    let pid = it.pid();
    let watcher = run.exec.submit(asker(&log, move |out| out.yield_command(Tag(1), Monitor(pid))));
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert!(exit.panic_message().unwrap().contains("a fault"));
    watcher.unwrap().terminate();
    run.idle();
    run.assert_well();
}

#[test]
fn a_panic_in_close_or_drop_is_counted_and_leaves_the_result() {
    for place in ["close", "drop"] {
        let mut run = Run::new();
        let it = run.exec.submit(Faulty(place)).unwrap();
        let result = run.exec.block_on(it.join()).unwrap();
        assert_eq!(result.downcast::<u32>().unwrap(), 1);
        assert_eq!(run.handle().stats().drop_panics, 1, "{place}");
        run.assert_well();
    }
}

/// Wherever a process panics: its neighbours neither end nor miss an event.
#[test]
fn a_panic_of_one_process_leaves_every_other_as_it_was() {
    for place in ["init", "step", "close", "drop"] {
        let mut run = Run::new();
        let log = Log::default();
        // One waits for a message, and the other for a timer.
        let others = [(), ()].map(|()| {
            let sleeps = |out: &mut StepOutput| out.yield_command(Tag(1), SleepFor(millis(5)));
            run.exec.submit(asker(&log, sleeps)).unwrap()
        });
        run.idle();
        let faulty = run.exec.submit(Faulty(place));
        others[0].tell(7).unwrap();
        run.idle();
        assert!(faulty.is_ok_and(|it| it.is_finished()) || place == "init");
        log.expect(&["message 7"]);
        run.run_for(5);
        log.expect(&["1 done", "1 done"]);
        assert!(others.iter().all(|it| !it.is_finished() && it.terminate()), "{place}");
        run.idle();
        run.assert_well();
    }
}

/// Ends as the first step says.
fn ending(
    end: impl Fn(&mut StepOutput) -> Result<(), Failure> + 'static,
) -> impl Process<Message = Bomb> {
    process::<Bomb, _>(move |_, out| end(out))
}

#[test]
fn a_result_that_nobody_takes_and_that_panics_when_dropped_is_counted() {
    let mut run = Run::new();
    let result = |out: &mut StepOutput| {
        out.done(Payload::new(Bomb("result")));
        Ok(())
    };
    drop(run.exec.submit(ending(result)).unwrap());
    run.idle();
    assert_eq!(run.handle().stats().drop_panics, 1);
    // The place of it is free again.
    let first = run.exec.submit(Mortal).unwrap();
    assert_eq!(first.pid().index(), 0);
    first.terminate();
    run.idle();
    run.assert_well();
}

#[test]
fn the_output_of_a_future_that_nobody_takes_is_guarded_too() {
    let mut run = Run::new();
    drop(run.exec.spawn_future(async { Bomb("output") }));
    run.idle();
    assert_eq!(run.handle().stats().drop_panics, 1);
    run.assert_well();
}

/// A future that panics when it is dropped.
struct Doomed(#[expect(dead_code, reason = "its drop is what it is for")] Bomb, bool);

impl Future for Doomed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.1 { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn a_future_that_panics_when_dropped_ends_by_it() {
    let mut run = Run::new();
    let join = run.exec.spawn_future(Doomed(Bomb("future"), true));
    assert!(run.exec.block_on(join).unwrap_err().is_panicked());
    let join = run.exec.spawn_future(Doomed(Bomb("future"), false));
    run.idle();
    join.abort();
    assert!(run.exec.block_on(join).unwrap_err().is_terminated());
    assert_eq!(run.handle().stats().drop_panics, 1);
    run.assert_well();
}

#[test]
fn messages_that_panic_when_dropped_are_dropped_one_by_one() {
    let mut run = Run::new();
    let it = run.exec.submit(process::<Bomb, _>(|_, out| {
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    for _ in 0..3 {
        it.tell(Bomb("message")).unwrap();
    }
    run.idle();
    it.terminate();
    run.idle();
    assert_eq!(run.handle().stats().drop_panics, 3);
    run.assert_well();
}

/// A command that panics when it is dropped, and whose answer does.
struct Explosive(Option<Bomb>);

impl Command for Explosive {
    const ID: CommandId = CommandId(301);
    type Reply = Bomb;
}

type Kept = Arc<Mutex<Vec<Completer<Bomb>>>>;

fn keeping() -> (Commands, Kept) {
    let kept = Kept::default();
    let theirs = Arc::clone(&kept);
    let commands = Commands::new().handle(move |Explosive(bomb), done| {
        core::mem::forget(bomb);
        theirs.lock().unwrap().push(done);
    });
    (commands, kept)
}

#[test]
fn answers_that_nobody_takes_and_that_panic_when_dropped_are_dropped_one_by_one() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let mut has_asked = false;
    let it = run.exec.submit(process::<u32, _>(move |_, out| {
        if !core::mem::replace(&mut has_asked, true) {
            for _ in 0..4 {
                out.yield_command(Tag(1), Explosive(None));
            }
        }
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    run.idle();
    let answer = || {
        let done = kept.lock().unwrap().pop().unwrap();
        done.complete(Ok(Bomb("answer")));
    };
    // Two are told and not taken, two come when it is too late.
    answer();
    answer();
    run.idle();
    answer();
    answer();
    it.terminate();
    run.idle();
    assert!(it.is_finished());
    assert_eq!(run.handle().stats().drop_panics, 4);
    run.assert_well();
}

#[test]
fn an_answer_for_the_process_before_an_upgrade_is_dropped_in_peace() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let log = Log::default();
    let mut heir = Some(asker(&log, |_| {}));
    let mut has_asked = false;
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        if !core::mem::replace(&mut has_asked, true) {
            out.yield_command(Tag(1), Explosive(None));
        }
        if events.next().is_some() {
            out.upgrade(heir.take().expect("it is told but once"), "", Payloads::new());
        } else {
            out.idle();
        }
        Ok(())
    }));
    let it = it.unwrap();
    run.idle();
    it.tell(1).unwrap();
    run.idle();
    let done = kept.lock().unwrap().pop().unwrap();
    done.complete(Ok(Bomb("answer")));
    it.tell(2).unwrap();
    run.idle();
    log.expect(&["message 2"]);
    let stats = run.handle().stats();
    assert_eq!((stats.stale_completions, stats.drop_panics), (1, 1));
    assert!(it.terminate());
    run.idle();
    run.assert_well();
}

#[test]
fn commands_of_the_last_step_that_panic_when_dropped_leave_the_result() {
    let (commands, _kept) = keeping();
    let mut run = Run::with(commands);
    let it = run.exec.submit(process::<u32, _>(|_, out| {
        for _ in 0..2 {
            out.yield_command(Tag(1), Explosive(Some(Bomb("command"))));
        }
        out.done(Payload::new(5_u32));
        Ok(())
    }));
    let result = run.exec.block_on(it.unwrap().join()).unwrap();
    assert_eq!(result.downcast::<u32>().unwrap(), 5);
    assert_eq!(run.handle().stats().drop_panics, 2);
    run.assert_well();
}

/// An error that cannot even be printed.
#[derive(Debug)]
struct Unspeakable;

impl core::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        panic!("no words")
    }
}

impl core::error::Error for Unspeakable {}

#[test]
fn a_failure_whose_text_panics_ends_its_process_and_is_told_without_a_text() {
    let mut run = Run::new();
    let log = Log::default();
    let it = run.exec.submit(process::<u32, _>(|events, out| {
        out.idle();
        if events.next().is_some() { Err(Unspeakable.into()) } else { Ok(()) }
    }));
    let it = it.unwrap();
    let pid = it.pid();
    let ask = move |out: &mut StepOutput| out.yield_command(Tag(1), Monitor(pid));
    let watcher = run.exec.submit(asker(&log, ask)).unwrap();
    run.idle();
    it.tell(1).unwrap();
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert!(exit.into_failure().unwrap().downcast::<Unspeakable>().is_ok());
    run.idle();
    log.expect(&["1 done", "exit failed: a failure whose text panicked"]);
    watcher.terminate();
    run.idle();
    run.assert_well();
}

/// Throws something that panics when it is dropped.
fn throw() -> ! {
    std::panic::panic_any(Bomb("thrown"))
}

#[test]
fn what_is_thrown_may_itself_panic_when_dropped() {
    let mut run = Run::with(Commands::new().handle(|Explosive(_), _| throw()));
    let log = Log::default();
    let ask = |out: &mut StepOutput| out.yield_command(Tag(1), Explosive(None));
    let it = run.exec.submit(asker(&log, ask)).unwrap();
    run.idle();
    log.expect(&["1 failed: code 3"]);
    it.terminate();
    drop(run.exec.submit(process::<u32, _>(|_, _| throw())).unwrap());
    run.idle();
    drop(run.exec.spawn_future(async { throw() }));
    run.idle();
    run.assert_well();
}

/// Closes with a panic when it goes on as another.
struct Loud(Log);

impl Process for Loud {
    type Message = u32;

    fn step(&mut self, _: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        out.upgrade(Mortal, "", Payloads::new());
        Ok(())
    }

    fn close(&mut self) {
        self.0.say("closed");
        panic!("not so loud");
    }
}

#[test]
fn a_process_is_closed_once_also_if_that_panics_in_an_upgrade() {
    let mut run = Run::new();
    let log = Log::default();
    let it = run.exec.submit(Loud(log.clone())).unwrap();
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert_eq!(exit.panic_message(), Some("not so loud"));
    log.expect(&["closed"]);
    run.assert_well();
}

#[test]
fn a_panic_in_the_init_of_an_upgrade_ends_the_process() {
    let mut run = Run::new();
    let it = run.exec.submit(process::<u32, _>(|_, out| {
        out.upgrade(Faulty("init"), "", Payloads::new());
        Ok(())
    }));
    assert!(run.exec.block_on(it.unwrap().join()).unwrap_err().is_panicked());
    run.assert_well();
}

/// A waker of somebody else's, which panics.
struct CommandTimer;

impl Wake for CommandTimer {
    fn wake(self: Arc<Self>) {
        panic!("do not wake me");
    }
}

#[test]
fn a_foreign_waker_that_panics_harms_neither_the_end_nor_the_timers() {
    let mut run = Run::new();
    let waker = Waker::from(Arc::new(CommandTimer));
    let mut join = run.exec.spawn_future(async { 7 });
    let polled = Pin::new(&mut join).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    run.idle();
    assert_eq!(run.handle().stats().drop_panics, 1);
    assert_eq!(run.exec.block_on(join).unwrap(), 7);

    let mut timer = run.handle().timer();
    timer.arm(millis(5), waker).unwrap();
    let mut other = run.handle().timer();
    let woken = Arc::new(Mutex::new(Vec::new()));
    struct Note(Arc<Mutex<Vec<&'static str>>>);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().push("woken");
        }
    }
    other.arm(millis(5), Waker::from(Arc::new(Note(Arc::clone(&woken))))).unwrap();
    run.run_for(5);
    assert_eq!(run.handle().stats().drop_panics, 2);
    assert_eq!(*woken.lock().unwrap(), ["woken"]);
    assert!(!timer.is_armed() && !other.is_armed());
    run.assert_well();
}

#[test]
fn what_comes_after_the_stop_is_refused_and_comes_back() {
    let run = Run::new();
    let handle = run.handle();
    let log = Log::default();
    let live = run.exec.submit(asker(&log, |_| {})).unwrap();
    drop(run);
    log.expect(&["closed"]);
    assert!(handle.is_stopping());
    let refused = handle.submit(Mortal).unwrap_err();
    assert!(refused.is_stopped());
    assert!(refused.into_inner().is_some());
    let join = handle.spawn_future(async { 1 });
    assert!(join.is_finished() && join.pid().is_none());
    let mut run = Run::new();
    assert!(run.exec.block_on(join).unwrap_err().is_refused());
    assert!(live.tell(1).unwrap_err().is_stopped());
    assert!(run.exec.block_on(live.join()).unwrap_err().is_terminated());
    assert!(run.exec.block_on(handle.sleep(millis(1))).unwrap_err().is_closed());
    let mut timer = handle.timer();
    assert!(timer.arm(millis(1), Waker::noop().clone()).unwrap_err().is_closed());
    let stats = handle.stats();
    assert_eq!(stats.spawned, stats.finished);
}

#[test]
fn a_process_that_is_started_while_the_executor_stops_is_refused_by_the_same_word() {
    let run = Run::new();
    let log = Log::default();
    let handle = run.handle();
    let theirs = log.clone();
    drop(run.exec.submit(process::<u32, _>(move |events, out| {
        out.idle();
        if events.next().is_some() {
            let refused = handle.submit(Mortal).unwrap_err();
            theirs.say(if refused.is_stopped() { SHUTDOWN } else { "refused otherwise" });
            out.done(Payload::unit());
        }
        Ok(())
    })));
    let report = keeps_deadline(millis(10), || run.exec.shutdown(millis(10)));
    assert_eq!((report.completed, report.stragglers.len()), (1, 0));
    log.expect(&[SHUTDOWN]);
}

#[test]
fn a_process_too_many_is_refused_and_comes_back_until_one_ends() {
    let mut run = Run::of(Limits::DEFAULT.processes(2), Commands::new(), 0);
    let first = run.exec.submit(Mortal).unwrap();
    let task = run.exec.spawn_future(pending::<()>());
    let refused = run.exec.submit(Mortal).unwrap_err();
    assert!(refused.is_full());
    assert!(refused.into_inner().is_some());
    let join = run.exec.spawn_future(async {});
    assert!(run.exec.block_on(join).unwrap_err().is_refused());
    first.terminate();
    task.abort();
    drop((first, task));
    run.idle();
    run.assert_well();
    assert!(run.exec.submit(Mortal).is_ok());
}

#[test]
fn a_process_that_has_ended_does_not_count_while_references_to_it_are_kept() {
    const MAX: usize = 4;
    let mut run = Run::of(Limits::DEFAULT.processes(MAX), Commands::new(), 0);
    let mut kept = Vec::new();
    for _ in 0..100 {
        let alive: Vec<_> = (0..MAX).map(|_| run.exec.submit(Mortal).unwrap()).collect();
        assert!(run.exec.submit(Mortal).unwrap_err().is_full(), "one more than the limit");
        alive.iter().for_each(|process| assert!(process.terminate()));
        run.idle();
        kept.extend(alive);
    }
    assert_eq!(run.exec.live_len(), 0);
    // The joins are kept as well, with the outputs in them.
    let joins: Vec<_> = (0..MAX).map(|n| run.exec.spawn_future(async move { n })).collect();
    run.idle();
    let alive: Vec<_> = (0..MAX).map(|_| run.exec.submit(Mortal).unwrap()).collect();
    for (n, join) in joins.into_iter().enumerate() {
        assert_eq!(run.exec.block_on(join).unwrap(), n);
    }
    drop(kept);
    assert!(run.exec.submit(Mortal).unwrap_err().is_full(), "the limit is the same as before");
    alive.iter().for_each(|process| assert!(process.terminate()));
    run.idle();
    run.assert_well();
}

#[test]
fn an_aborted_future_is_dropped_and_says_so_once() {
    let mut run = Run::new();
    let log = Log::default();
    let held = Dropped(log.clone(), "future");
    let mut join = run.exec.spawn_future(async move {
        pending::<()>().await;
        drop(held);
    });
    run.idle();
    join.abort();
    join.abort();
    log.expect(&[]);
    assert!(run.exec.block_on(&mut join).unwrap_err().is_terminated());
    log.expect(&["dropped future"]);
    assert!(run.exec.block_on(&mut join).unwrap_err().is_already_joined());
    run.assert_well();
}
