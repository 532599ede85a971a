//! What is promised to a process: its events, its steps, its pid, its end.

use alloc::{rc::Rc, sync::Arc};
use core::cell::RefCell;
use std::sync::{Mutex, mpsc};

use clockjack_testing::keeps_deadline;
use clockjack_time::{ManualClock, MonotonicClock as _};

use crate::bench::{Asker, Log, Mortal, Run, asker, millis, process, text};
use clockjack_exec::{
    Command, CommandId, Commands, Completer, Event, Events, Failure, Limits, Payload, Payloads,
    Pid, Process, State, StepOutput, Tag, builtin::SleepFor, command::UNKNOWN_METHOD,
};

struct Ask(u32);

impl Command for Ask {
    const ID: CommandId = CommandId(300);
    type Reply = u32;
}

/// Completers that a handler keeps until a test takes them.
type Kept = Arc<Mutex<Vec<(u32, Completer<u32>)>>>;

fn keeping() -> (Commands, Kept) {
    let kept = Kept::default();
    let theirs = Arc::clone(&kept);
    let commands =
        Commands::new().handle(move |Ask(n), done| theirs.lock().unwrap().push((n, done)));
    (commands, kept)
}

#[test]
fn completions_come_in_the_order_in_which_they_completed() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let log = Log::default();
    let asks = |out: &mut StepOutput| {
        for n in 1..=3 {
            out.yield_command(Tag(n), Ask(u32::try_from(n).unwrap()));
        }
    };
    let it = run.exec.submit(asker(&log, asks)).unwrap();
    run.idle();
    assert_eq!(it.state(), State::Blocked);
    let mut kept = core::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(kept.iter().map(|(_, done)| done.tag()).collect::<Vec<_>>(), [1, 2, 3].map(Tag));
    assert!(kept.iter().all(|(_, done)| done.pid() == it.pid()));
    for at in [1, 1, 0] {
        let (n, done) = kept.remove(at);
        done.complete(Ok(n * 10));
    }
    run.idle();
    log.expect(&["2 20", "3 30", "1 10"]);
}

#[test]
fn two_commands_of_one_step_with_one_tag_are_answered_twice() {
    let mut run = Run::with(Commands::new().handle(|Ask(n), done| done.complete(Ok(n))));
    let log = Log::default();
    let asks = |out: &mut StepOutput| {
        out.yield_command(Tag(7), Ask(1));
        out.yield_command(Tag(7), Ask(2));
    };
    drop(run.exec.submit(asker(&log, asks)).unwrap());
    run.idle();
    log.expect(&["7 1", "7 2"]);
}

#[test]
fn a_completion_while_the_process_runs_brings_another_turn() {
    let mut run = Run::with(Commands::new().handle(|Ask(n), done| done.complete(Ok(n))));
    let log = Log::default();
    let it = run.exec.submit(asker(&log, |out| out.yield_command(Tag(1), Ask(5)))).unwrap();
    // The handler replies during the poll, so the process is ready again when that ends.
    assert!(run.exec.step_one());
    assert_eq!(it.state(), State::Ready);
    assert!(run.exec.step_one());
    assert_eq!(it.state(), State::Idle);
    assert!(!run.exec.step_one());
    log.expect(&["1 5"]);
}

#[test]
fn the_first_step_has_no_events_and_a_process_bears_it() {
    let mut run = Run::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let theirs = Rc::clone(&seen);
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        theirs.borrow_mut().push(events.count());
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    run.idle();
    it.tell(1).unwrap();
    run.idle();
    assert_eq!(*seen.borrow(), [0, 1]);
}

#[test]
fn events_that_are_not_taken_stay_in_order() {
    let mut run = Run::new();
    let log = Log::default();
    let theirs = log.clone();
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        if let Some(event) = events.next() {
            theirs.say(format!("{} of {}", text(event), events.waiting() + 1));
        }
        if events.waiting() == 0 {
            out.idle();
        }
        Ok(())
    }));
    let it = it.unwrap();
    for n in 0..3 {
        it.tell(n).unwrap();
    }
    it.cancel("now");
    run.idle();
    // What the system tells goes first: it is what a process must not sleep through.
    log.expect(&["cancel now of 4", "message 0 of 3", "message 1 of 2", "message 2 of 1"]);
}

/// How many messages each step gets of `n`, if nothing else holds it up.
fn shares(limits: Limits, n: u32, millis_each: u64) -> Vec<u32> {
    let mut run = Run::of(limits, Commands::new(), 0);
    let shares = Rc::new(RefCell::new(Vec::new()));
    let (theirs, clock) = (Rc::clone(&shares), Arc::clone(&run.clock));
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        let mut share = 0;
        for _ in events {
            share += 1;
            clock.advance(millis(millis_each));
        }
        theirs.borrow_mut().push(share);
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    for n in 0..n {
        it.tell(n).unwrap();
    }
    run.idle();
    shares.take()
}

#[test]
fn a_step_gets_as_many_events_as_the_limit_and_then_another_turn() {
    assert_eq!(shares(Limits::DEFAULT.throughput(10), 25, 0), [10, 10, 5]);
    assert_eq!(shares(Limits::DEFAULT.throughput(1), 3, 0), [1, 1, 1]);
    assert_eq!(shares(Limits::DEFAULT.throughput(10), 10, 0), [10]);
}

#[test]
fn a_step_whose_time_is_over_gets_no_more_events() {
    let limits = Limits::DEFAULT.step_budget(millis(20));
    // The time is looked at every eighth event.
    assert_eq!(shares(limits, 60, 1), [24, 24, 12]);
    assert_eq!(shares(limits, 60, 0), [60]);
}

#[test]
fn what_the_limit_kept_back_does_not_wait_for_a_command() {
    let (commands, kept) = keeping();
    let mut run = Run::of(Limits::DEFAULT.throughput(2), commands, 0);
    let log = Log::default();
    let theirs = log.clone();
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        for event in events {
            theirs.say(text(event));
            out.yield_command(Tag(1), Ask(0));
        }
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    for n in 0..5 {
        it.tell(n).unwrap();
    }
    run.idle();
    log.expect(&["message 0", "message 1", "message 2", "message 3", "message 4"]);
    assert_eq!(kept.lock().unwrap().len(), 5);
}

#[test]
fn an_endless_process_leaves_others_and_timers_their_turns() {
    let mut run = Run::new();
    let steps = Rc::new(RefCell::new([0_u32; 2]));
    for at in 0..2 {
        let steps = Rc::clone(&steps);
        // No wish is written, so it goes on and on.
        let endless = process::<u32, _>(move |_, _| {
            steps.borrow_mut()[at] += 1;
            Ok(())
        });
        drop(run.exec.submit(endless).unwrap());
    }
    let sleeper = run.handle();
    let slept = run.exec.spawn_future(async move {
        for _ in 0..10 {
            sleeper.sleep(millis(1)).await.unwrap();
        }
    });
    let mut turns = 0;
    while !slept.is_finished() {
        run.exec.turn();
        run.clock.advance(millis(1));
        turns += 1;
        assert!(turns < 100, "the timers starve");
    }
    let [a, b] = *steps.borrow();
    assert!(a.abs_diff(b) <= 1, "one of two gets more turns: {a} and {b}");
}

#[test]
fn a_process_asked_to_stop_may_clean_up_for_a_while() {
    let run = Run::new();
    let log = Log::default();
    for _ in 0..2 {
        let mut is_stopping = false;
        let log = log.clone();
        let it = run.exec.submit(process::<u32, _>(move |events, out| {
            for event in events {
                match event {
                    Event::Cancel { reason } => {
                        log.say(reason);
                        is_stopping = true;
                        out.yield_command(Tag(1), SleepFor(millis(100)));
                    }
                    Event::YieldComplete { result, .. } if is_stopping => {
                        log.say(format!("cleaned up at {}", events_now(&result?)));
                        out.done(Payload::unit());
                        return Ok(());
                    }
                    _ => {}
                }
            }
            out.idle();
            Ok(())
        }));
        drop(it.unwrap());
    }
    let clock = Arc::clone(&run.clock);
    let report = keeps_deadline(millis(1000), || run.exec.shutdown(millis(1000)));
    assert_eq!((report.completed, report.stragglers.len()), (2, 0));
    log.expect(&["shutdown", "shutdown", "cleaned up at done", "cleaned up at done"]);
    assert_eq!(clock_ticks(&clock), 100, "it waited for the clean-up and not for the deadline");
}

fn events_now(payload: &Payload) -> &'static str {
    if payload.is::<()>() { "done" } else { "something else" }
}

fn clock_ticks(clock: &ManualClock) -> u64 {
    clock.now().ticks
}

/// Knows one method, which takes a number.
struct Entry(Log);

impl Process for Entry {
    type Message = u32;

    fn init(&mut self, pid: Pid, method: &str, mut input: Payloads) -> Result<(), Failure> {
        if method != "count" {
            return Err(UNKNOWN_METHOD.failure());
        }
        let n: u32 = input.take(0)?;
        self.0.say(format!("{pid} count {n}"));
        Ok(())
    }

    fn step(&mut self, _: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        Ok(())
    }

    fn close(&mut self) {
        self.0.say("closed");
    }
}

#[test]
fn init_gets_method_and_input_and_an_unknown_method_is_a_typed_refusal() {
    let mut run = Run::new();
    let log = Log::default();
    let input = Payloads::new().with(7_u32);
    let it = run.exec.submit_method(Entry(log.clone()), "count", input).unwrap();
    log.expect(&[&format!("{} count 7", it.pid())]);

    let refused = run.exec.submit_method(Entry(log.clone()), "sing", Payloads::new()).unwrap_err();
    assert!(refused.is_refused());
    assert_eq!(refused.failure().unwrap().code(), Some(UNKNOWN_METHOD.code()));
    assert!(refused.into_inner().is_some(), "the process comes back");
    let refused = run.exec.submit_method(Mortal, "sing", Payloads::new()).unwrap_err();
    assert_eq!(refused.failure().unwrap().code(), Some(UNKNOWN_METHOD.code()));
    log.expect(&[]);
    it.terminate();
    run.idle();
    log.expect(&["closed"]);
    run.assert_well();
}

#[test]
fn a_pid_finds_its_process_and_no_other() {
    let mut run = Run::new();
    let log = Log::default();
    let it = run.exec.submit(asker(&log, |_| {})).unwrap();
    let handle = run.handle();
    let pid = it.pid();
    handle.send(pid, Payload::new(3_u32)).unwrap();
    run.idle();
    log.expect(&["message 3"]);
    assert_eq!(handle.state(pid), Some(State::Idle));

    let elsewhere = Pid::new(pid.node() + 1, pid.index(), pid.generation());
    let refused = handle.send(elsewhere, Payload::new(4_u32)).unwrap_err();
    assert!(refused.is_unknown());
    assert_eq!(refused.into_inner().downcast::<u32>().unwrap(), 4);

    assert!(it.cancel("enough"));
    run.idle();
    drop(it);
    log.expect(&["cancel enough", "closed"]);
    // The place is used again, the name is not.
    let heir = run.exec.submit(asker(&log, |_| {})).unwrap();
    assert_eq!(heir.pid().index(), pid.index());
    assert_ne!(heir.pid(), pid);
    let refused = handle.send(pid, Payload::new(5_u32)).unwrap_err();
    assert!(refused.is_unknown());
    assert_eq!(refused.into_inner().downcast::<u32>().unwrap(), 5);
    assert_eq!(handle.state(pid), None);
    assert!(!handle.cancel(pid, "you are gone"));
    assert!(!handle.terminate(pid));
    run.idle();
    log.expect(&[]);
}

#[test]
fn a_message_that_cannot_be_sent_comes_back() {
    let mut run = Run::of(Limits::DEFAULT.messages(2), Commands::new(), 0);
    let it = run.exec.submit(Mortal).unwrap();
    let handle = run.handle();
    let wrong = handle.send(it.pid(), Payload::new("text")).unwrap_err();
    assert!(wrong.is_wrong_type());
    assert_eq!(wrong.into_inner().downcast::<&str>().unwrap(), "text");
    let task = run.exec.spawn_future(core::future::pending::<()>());
    let to_a_future = handle.send(task.pid().unwrap(), Payload::new(1_u32)).unwrap_err();
    assert!(to_a_future.is_wrong_type());

    it.tell(0).unwrap();
    it.tell(8).unwrap();
    let full = it.tell(9).unwrap_err();
    assert!(full.is_full());
    assert_eq!(full.into_inner(), 9);
    let full = handle.send(it.pid(), Payload::new(10_u32)).unwrap_err();
    assert!(full.is_full());
    assert_eq!(full.into_inner().downcast::<u32>().unwrap(), 10);

    run.idle();
    assert!(it.is_finished());
    let stopped = it.tell(11).unwrap_err();
    assert!(stopped.is_stopped());
    assert_eq!(stopped.into_inner(), 11);
    assert!(handle.send(it.pid(), Payload::new(12_u32)).unwrap_err().is_unknown());
    assert!(!it.cancel("late"));
    assert!(!it.terminate());
}

#[test]
fn a_result_is_taken_once() {
    let mut run = Run::new();
    let it = run.exec.submit(process::<u32, _>(|_, out| {
        out.done(Payload::new(6_u32));
        Ok(())
    }));
    let it = it.unwrap();
    let mut join = it.join();
    assert!(run.exec.block_on(it.join()).unwrap_err().is_already_joined());
    let result = run.exec.block_on(&mut join).unwrap();
    assert_eq!(result.downcast::<u32>().unwrap(), 6);
    assert!(run.exec.block_on(&mut join).unwrap_err().is_already_joined());
    run.assert_well();
}

/// The successor of a process of [`Asker`]'s kind.
struct Heir(Log, Option<&'static str>);

impl Process for Heir {
    type Message = u32;

    fn init(&mut self, pid: Pid, method: &str, _: Payloads) -> Result<(), Failure> {
        self.0.say(format!("heir of {pid} by {method}"));
        self.1.map_or(Ok(()), |text| Err(Failure::msg(text)))
    }

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            self.0.say(format!("heir: {}", text(event)));
        }
        out.idle();
        Ok(())
    }

    fn close(&mut self) {
        self.0.say("heir closed");
    }
}

type Bequest = Box<dyn FnOnce(&mut StepOutput)>;

/// Upgrades at its first message.
struct Testator {
    log: Log,
    heir: Option<Bequest>,
    has_asked: bool,
}

impl Process for Testator {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        if !self.has_asked {
            self.has_asked = true;
            out.yield_command(Tag(1), Ask(1));
        }
        if let Some(event) = events.next() {
            self.log.say(text(event));
            let heir = self.heir.take().expect("it goes on as another but once");
            heir(out);
            return Ok(());
        }
        out.idle();
        Ok(())
    }

    fn close(&mut self) {
        self.log.say("testator closed");
    }
}

fn testator(log: &Log, heir: impl FnOnce(&mut StepOutput) + 'static) -> Testator {
    Testator { log: log.clone(), heir: Some(Box::new(heir)), has_asked: false }
}

#[test]
fn an_upgraded_process_keeps_its_pid_and_its_messages_and_hears_no_old_answers() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let log = Log::default();
    let heir = Heir(log.clone(), None);
    let upgrade = |out: &mut StepOutput| out.upgrade(heir, "take over", Payloads::new());
    let it = run.exec.submit(testator(&log, upgrade)).unwrap();
    run.idle();
    for n in 1..=3 {
        it.tell(n).unwrap();
    }
    run.idle();
    let pid = it.pid();
    log.expect(&[
        "message 1",
        "testator closed",
        &format!("heir of {pid} by take over"),
        "heir: message 2",
        "heir: message 3",
    ]);
    let (_, done) = kept.lock().unwrap().pop().unwrap();
    done.complete(Ok(1));
    run.idle();
    log.expect(&[]);
    assert_eq!(run.handle().stats().stale_completions, 1);
    run.handle().send(pid, Payload::new(4_u32)).unwrap();
    it.terminate();
    run.idle();
    log.expect(&["heir closed"]);
    run.assert_well();
}

#[test]
fn an_upgrade_that_cannot_be_ends_the_process_with_a_failure() {
    let (commands, _kept) = keeping();
    let mut run = Run::with(commands);
    let log = Log::default();
    let other = process::<String, _>(|_, _| Ok(()));
    let upgrade = |out: &mut StepOutput| out.upgrade(other, "", Payloads::new());
    let it = run.exec.submit(testator(&log, upgrade)).unwrap();
    it.tell(1).unwrap();
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert_eq!(exit.failure().unwrap().code(), Some(9));
    log.expect(&["message 1", "testator closed"]);

    let heir = Heir(log.clone(), Some("no will"));
    let upgrade = |out: &mut StepOutput| out.upgrade(heir, "", Payloads::new());
    let it = run.exec.submit(testator(&log, upgrade)).unwrap();
    it.tell(1).unwrap();
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert_eq!(exit.failure().unwrap().to_string(), "no will");
    let heir_of = format!("heir of {} by ", it.pid());
    log.expect(&["message 1", "testator closed", &heir_of, "heir closed"]);
    run.assert_well();
}

#[test]
fn commands_of_the_last_step_are_not_carried_out() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let it = run.exec.submit(process::<u32, _>(|_, out| {
        out.yield_command(Tag(1), Ask(1));
        out.done(Payload::unit());
        Ok(())
    }));
    assert!(run.exec.block_on(it.unwrap().join()).is_ok());
    assert!(kept.lock().unwrap().is_empty());
}

#[test]
fn a_terminated_process_is_not_stepped_again() {
    let mut run = Run::new();
    let log = Log::default();
    let it = run.exec.submit(asker(&log, |_| {})).unwrap();
    run.idle();
    it.tell(1).unwrap();
    assert!(it.terminate());
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert!(exit.is_terminated());
    log.expect(&["closed"]);
    run.assert_well();
}

/// Ends in the middle of a step, by another thread, and says how far it came.
struct Interrupted {
    log: Log,
    enter: mpsc::Sender<()>,
    go_on: mpsc::Receiver<()>,
}

impl Process for Interrupted {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            self.log.say(format!("begins {}", text(event)));
            self.enter.send(()).expect("the test waits");
            self.go_on.recv().expect("the test goes on");
            self.log.say("has finished");
        }
        out.idle();
        Ok(())
    }

    fn close(&mut self) {
        self.log.say("closed");
    }
}

#[test]
fn a_step_is_not_interrupted_by_a_termination_from_another_thread() {
    let mut run = Run::new();
    let log = Log::default();
    let ((enter, entered), (go_on, may_go_on)) = (mpsc::channel(), mpsc::channel());
    let process = Interrupted { log: log.clone(), enter, go_on: may_go_on };
    let it = run.exec.submit(process).unwrap();
    run.idle();
    it.tell(1).unwrap();
    let (other, said) = (it.clone(), log.clone());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            entered.recv().expect("the step begins");
            assert!(other.terminate());
            said.say("terminated");
            go_on.send(()).expect("the step waits");
        });
        run.idle();
    });
    assert!(it.tell(2).is_err(), "there will be no further step");
    run.idle();
    assert!(run.exec.block_on(it.join()).unwrap_err().is_terminated());
    log.expect(&["begins message 1", "terminated", "has finished", "closed"]);
    run.assert_well();
}

#[test]
fn the_states_of_a_process_are_those_that_are_promised() {
    let (commands, kept) = keeping();
    let mut run = Run::with(commands);
    let log = Log::default();
    let it: clockjack_exec::ProcessRef<u32> = {
        let process: Asker = asker(&log, |out| out.yield_command(Tag(1), Ask(1)));
        run.exec.submit(process).unwrap()
    };
    assert_eq!(it.state(), State::Ready);
    run.idle();
    assert_eq!(it.state(), State::Blocked);
    // A message comes through though the command is never answered.
    it.tell(1).unwrap();
    assert_eq!(it.state(), State::Ready);
    run.idle();
    log.expect(&["message 1"]);
    assert_eq!(it.state(), State::Idle);
    drop(kept.lock().unwrap().pop());
    assert_eq!(it.state(), State::Ready);
    run.idle();
    log.expect(&["1 failed: code 3"]);
    it.terminate();
    run.idle();
    assert_eq!(it.state(), State::Complete);
}

/// What can happen to a process.
#[derive(Clone, Copy, Debug)]
enum Source {
    Message,
    Completion,
    Cancel,
    Timer,
}

#[test]
fn every_source_of_events_wakes_a_process_whatever_it_waits_for() {
    let sources = [Source::Message, Source::Completion, Source::Cancel, Source::Timer];
    for (is_idle, source) in [true, false].into_iter().flat_map(|is| sources.map(|of| (is, of))) {
        let (commands, kept) = keeping();
        let mut run = Run::with(commands);
        let log = Log::default();
        let (theirs, mut is_first) = (log.clone(), true);
        let waits = process(move |events: &mut Events<'_, u32>, out: &mut StepOutput| {
            theirs.say("step");
            if core::mem::take(&mut is_first) {
                out.yield_command(Tag(1), Ask(5));
                out.yield_command(Tag(2), SleepFor(millis(1)));
            }
            events.for_each(|event| theirs.say(text(event)));
            if is_idle {
                out.idle()
            } else {
                out.wait()
            }
            Ok(())
        });
        let it = run.exec.submit(waits).unwrap();
        run.idle();
        it.tell(0).unwrap();
        run.idle();
        log.expect(&["step", "step", "message 0"]);
        let state = if is_idle { State::Idle } else { State::Blocked };
        assert_eq!(it.state(), state, "{source:?}");
        let told = match source {
            Source::Message => {
                it.tell(7).unwrap();
                "message 7"
            }
            Source::Completion => {
                let (n, done) = kept.lock().unwrap().pop().unwrap();
                done.complete(Ok(n));
                "1 5"
            }
            Source::Cancel => {
                assert!(it.cancel("enough"));
                "cancel enough"
            }
            Source::Timer => {
                run.clock.advance(millis(1));
                "2 done"
            }
        };
        run.idle();
        log.expect(&["step", told]);
        assert_eq!(it.state(), state, "{source:?}");
        it.terminate();
        run.idle();
    }
}

/// The event is there before the step returns, so the process must not go to sleep.
#[test]
fn every_source_of_events_brings_another_step_to_a_process_that_runs() {
    for source in [Source::Message, Source::Completion, Source::Cancel, Source::Timer] {
        let (commands, kept) = keeping();
        let mut run = Run::with(commands);
        let log = Log::default();
        let me = Arc::new(Mutex::new(None::<clockjack_exec::ProcessRef<u32>>));
        let (theirs, own, clock) = (log.clone(), Arc::clone(&me), Arc::clone(&run.clock));
        let mut n_steps = 0;
        let runs = process(move |events: &mut Events<'_, u32>, out: &mut StepOutput| {
            events.for_each(|event| theirs.say(text(event)));
            n_steps += 1;
            match (n_steps, source) {
                (1, _) => {
                    out.yield_command(Tag(1), Ask(5));
                    out.yield_command(Tag(2), SleepFor(millis(1)));
                }
                (2, Source::Message) => own.lock().unwrap().as_ref().unwrap().tell(7).unwrap(),
                (2, Source::Completion) => {
                    let (n, done) = kept.lock().unwrap().pop().unwrap();
                    done.complete(Ok(n));
                }
                (2, Source::Cancel) => {
                    assert!(own.lock().unwrap().as_ref().unwrap().cancel("enough"));
                }
                (2, Source::Timer) => _ = clock.advance(millis(1)),
                _ => {}
            }
            out.idle();
            Ok(())
        });
        let it = run.exec.submit(runs).unwrap();
        *me.lock().unwrap() = Some(it.clone());
        run.idle();
        it.tell(0).unwrap();
        assert!(run.exec.step_one());
        log.expect(&["message 0"]);
        let (state, told) = match source {
            Source::Message => (State::Ready, "message 7"),
            Source::Completion => (State::Ready, "1 5"),
            Source::Cancel => (State::Ready, "cancel enough"),
            // Fired by the next look at the clock, and not by the process.
            Source::Timer => (State::Idle, "2 done"),
        };
        assert_eq!(it.state(), state, "{source:?}");
        run.idle();
        log.expect(&[told]);
        assert_eq!(it.state(), State::Idle, "{source:?}");
        me.lock().unwrap().take();
        it.terminate();
        run.idle();
    }
}
