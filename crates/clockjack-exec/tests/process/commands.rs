//! Commands: each is answered exactly once, whatever its handler does.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_exec::{
    Command, CommandId, Commands, Completer, Events, Failure, Limits, Payload, Payloads, Pid,
    Process, ProcessRef, State, StepOutput, Tag,
    builtin::{
        Cancel, Exec, Link, Monitor, RepeatEvery, Send, SleepFor, Spawn, Terminate, Unlink,
        Unmonitor,
    },
    sleep,
};

use crate::bench::{Log, Mortal, Run, asker, millis, process, text};

struct Double(u32);

impl Command for Double {
    const ID: CommandId = CommandId(300);
    type Reply = u32;
}

/// Has the number of [`Double`].
struct Twin;

impl Command for Twin {
    const ID: CommandId = Double::ID;
    type Reply = ();
}

/// Has the number of [`Send`].
struct Impostor;

impl Command for Impostor {
    const ID: CommandId = CommandId(1);
    type Reply = ();
}

/// Has a number of Clockjack's that is not taken.
struct Reserved;

impl Command for Reserved {
    const ID: CommandId = CommandId(255);
    type Reply = ();
}

/// Runs a process that yields commands, and returns it with the events that it got.
#[track_caller]
fn asked(
    run: &mut Run,
    log: &Log,
    ask: impl FnOnce(&mut StepOutput) + core::marker::Send + 'static,
) -> ProcessRef<u32> {
    let it = run.exec.submit(asker(log, ask)).unwrap();
    run.idle();
    it
}

#[track_caller]
fn check<C: Command>(commands: Commands, command: C, told: &[&str]) {
    let mut run = Run::with(commands);
    let log = Log::default();
    let it = asked(&mut run, &log, |out| out.yield_command(Tag(1), command));
    log.expect(told);
    it.terminate();
    run.idle();
    run.assert_well();
}

fn double() -> Commands {
    Commands::new().handle(|Double(n), done| done.complete(Ok(2 * n)))
}

#[test]
fn a_handler_is_found_by_number_and_type() {
    check(double(), Double(4), &["1 8"]);
    check(double(), Twin, &["1 failed: code 2"]);
    check(double(), Impostor, &["1 failed: code 2"]);
    check(double(), Reserved, &["1 failed: code 1"]);
    check(Commands::new(), Double(4), &["1 failed: code 1"]);
}

#[test]
fn a_handler_that_fails_panics_or_lets_go_is_answered_by_a_failure() {
    let failing = Commands::new().handle(|Double(_), done| done.complete(Err(Failure::msg("odd"))));
    check(failing, Double(1), &["1 failed: odd"]);
    let panicking = Commands::new().handle(|Double(_), _: Completer<u32>| panic!("no"));
    check(panicking, Double(1), &["1 failed: code 3"]);
    let dropping = Commands::new().handle(|Double(_), done| drop(done));
    check(dropping, Double(1), &["1 failed: code 3"]);
}

#[test]
fn a_panic_of_one_handler_leaves_the_other_commands_of_the_step() {
    let picky = Commands::new().handle(|Double(n), done| {
        assert_ne!(n, 2, "not this one");
        done.complete(Ok(n));
    });
    let mut run = Run::with(picky);
    let log = Log::default();
    asked(&mut run, &log, |out| {
        for n in 1..=3 {
            out.yield_command(Tag(n), Double(u32::try_from(n).unwrap()));
        }
    });
    log.expect(&["1 1", "2 failed: code 3", "3 3"]);
}

#[test]
fn a_command_that_is_never_answered_blocks_until_a_message_or_the_end() {
    let kept = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&kept);
    let never = Commands::new().handle(move |Double(_), done| {
        theirs.lock().unwrap().replace(done);
    });
    let mut run = Run::with(never);
    let log = Log::default();
    let it = asked(&mut run, &log, |out| out.yield_command(Tag(1), Double(1)));
    assert_eq!(it.state(), State::Blocked);
    it.tell(5).unwrap();
    run.idle();
    log.expect(&["message 5"]);
    assert!(it.terminate());
    run.idle();
    log.expect(&["closed"]);
    // An answer to nobody is dropped.
    let done = kept.lock().unwrap().take().unwrap();
    done.complete(Ok(1));
    run.idle();
    log.expect(&[]);
    run.assert_well();
}

#[test]
fn an_answer_may_come_from_another_thread() {
    let kept: Arc<Mutex<Option<Completer<u32>>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let later = Commands::new().handle(move |Double(_), done| {
        theirs.lock().unwrap().replace(done);
    });
    let mut run = Run::with(later);
    let log = Log::default();
    asked(&mut run, &log, |out| out.yield_command(Tag(1), Double(1)));
    let done = kept.lock().unwrap().take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || done.complete(Ok(99)));
    });
    run.idle();
    log.expect(&["1 99"]);
}

#[test]
fn two_handlers_of_one_number_are_refused_at_the_start() {
    let refused = |commands| {
        let refused = Run::try_of(Limits::DEFAULT, commands, 0).err().unwrap();
        assert!(refused.is_duplicate_command());
        refused.command()
    };
    assert_eq!(refused(double().handle(|Twin, done| done.complete(Ok(())))), Some(300));
    assert_eq!(refused(Commands::new().handle(|Impostor, done| drop(done))), Some(1));
}

#[test]
fn send_answers_when_the_message_is_there_and_says_why_it_is_not() {
    let mut run = Run::of(Limits::DEFAULT.messages(1), Commands::new(), 0);
    let (log, theirs) = (Log::default(), Log::default());
    let to = run.exec.submit(asker(&theirs, |_| {})).unwrap().pid();
    run.idle();
    let gone = Pid::new(0, 77, to.generation());
    asked(&mut run, &log, move |out| {
        out.yield_command(Tag(1), Send { to, message: Payload::new(5_u32) });
        out.yield_command(Tag(2), Send { to, message: Payload::new(6_u32) });
        out.yield_command(Tag(3), Send { to, message: Payload::new("five") });
        out.yield_command(Tag(4), Send { to: gone, message: Payload::new(5_u32) });
    });
    theirs.expect(&["message 5"]);
    log.expect(&[
        "1 done",
        "2 failed: message not sent: the mailbox is full",
        "3 failed: message not sent: the process takes messages of another type",
        "4 failed: message not sent: there is no such process",
    ]);
}

#[test]
fn spawn_gives_the_pid_of_a_process_that_lives() {
    let mut run = Run::of(Limits::DEFAULT.processes(2), Commands::new(), 0);
    let log = Log::default();
    asked(&mut run, &log, |out| {
        out.yield_command(Tag(1), Spawn::new(Mortal));
        out.yield_command(Tag(2), Spawn::new(Mortal));
        out.yield_command(Tag(3), Spawn::method(Mortal, "sing", Payloads::new()));
    });
    let no_room = "2 failed: code 8";
    log.expect(&["1 pid", no_room, "3 failed: code 8"]);
    assert_eq!(run.exec.live_len(), 2);

    let mut run = Run::new();
    asked(&mut run, &log, |out| {
        out.yield_command(Tag(3), Spawn::method(Mortal, "sing", Payloads::new()));
    });
    log.expect(&["3 failed: code 10"]);
}

#[test]
fn terminate_and_cancel_reach_the_living_only() {
    let mut run = Run::new();
    let (log, theirs) = (Log::default(), Log::default());
    let polite = run.exec.submit(asker(&theirs, |_| {})).unwrap();
    let other = run.exec.submit(asker(&theirs, |_| {})).unwrap();
    run.idle();
    let (first, second) = (polite.pid(), other.pid());
    let it = asked(&mut run, &log, move |out| {
        out.yield_command(Tag(1), Cancel { pid: first, reason: "tired" });
        out.yield_command(Tag(2), Terminate(second));
    });
    log.expect(&["1 done", "2 done"]);
    theirs.expect(&["cancel tired", "closed", "closed"]);
    assert!(polite.is_finished() && other.is_finished());
    it.terminate();
    asked(&mut run, &log, move |out| {
        out.yield_command(Tag(1), Cancel { pid: first, reason: "tired" });
        out.yield_command(Tag(2), Terminate(second));
        out.yield_command(Tag(3), Monitor(first));
        out.yield_command(Tag(4), Unmonitor(first));
        out.yield_command(Tag(5), Link(first));
        out.yield_command(Tag(6), Unlink(first));
    });
    let no_process: Vec<_> = (1..=6).map(|tag| format!("{tag} failed: code 4")).collect();
    assert_eq!(log.take(), format!("closed\n{}", no_process.join("\n")));
}

#[test]
fn a_process_may_terminate_itself() {
    let mut run = Run::new();
    let log = Log::default();
    let me = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&me);
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        *theirs.lock().unwrap() = Some(events.pid());
        out.yield_command(Tag(1), Terminate(events.pid()));
        Ok(())
    }));
    let it = it.unwrap();
    let exit = run.exec.block_on(it.join()).unwrap_err();
    assert!(exit.is_terminated());
    assert_eq!(*me.lock().unwrap(), Some(it.pid()));
    log.expect(&[]);
    run.assert_well();
}

#[test]
fn exec_answers_with_the_result_of_a_process_or_future() {
    let mut run = Run::new();
    let log = Log::default();
    let seven = || {
        process::<u32, _>(|_, out| {
            out.done(Payload::new(7_u32));
            Ok(())
        })
    };
    let failing = process::<u32, _>(|_, _| Err(Failure::msg("no seven")));
    asked(&mut run, &log, move |out| {
        out.yield_command(Tag(1), Exec::process(seven(), "", Payloads::new()));
        out.yield_command(Tag(2), Exec::process(failing, "", Payloads::new()));
        out.yield_command(Tag(3), Exec::process(seven(), "sing", Payloads::new()));
        out.yield_command(Tag(4), Exec::future(async { Ok(8_u32) }));
        out.yield_command(Tag(5), Exec::future(async { Err::<u32, _>(Failure::msg("no eight")) }));
        out.yield_command(Tag(6), Exec::future::<_, u32>(async { panic!("no nine") }));
    });
    let told = log.take();
    let mut told: Vec<_> = told.lines().collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "1 7",
            "2 failed: the process failed: no seven",
            "3 failed: code 10",
            "4 8",
            "5 failed: no eight",
            "6 failed: code 3",
        ]
    );
}

#[test]
fn a_sleep_is_answered_when_its_time_has_come_and_not_before() {
    let mut run = Run::new();
    let log = Log::default();
    asked(&mut run, &log, |out| {
        out.yield_command(Tag(1), SleepFor(millis(20)));
        out.yield_command(Tag(2), SleepFor(millis(10)));
        out.yield_command(Tag(3), SleepFor(millis(0)));
    });
    log.expect(&["3 done"]);
    run.clock.advance(millis(9));
    run.idle();
    log.expect(&[]);
    run.clock.advance(millis(1));
    run.idle();
    log.expect(&["2 done"]);
    run.run_for(10);
    log.expect(&["1 done"]);
}

#[test]
fn a_process_that_ends_leaves_nothing_of_what_it_still_slept_for() {
    // Room for one, so that the next is refused if the last is not gone.
    let mut run = Run::of(Limits::DEFAULT.processes(1).timers(8), Commands::new(), 0);
    let log = Log::default();
    for _ in 0..20 {
        let it = asked(&mut run, &log, |out| {
            for n in 0..6 {
                // One that has fired, and five that have not.
                out.yield_command(Tag(n), SleepFor(millis(n * 3_600_000)));
            }
        });
        assert!(it.cancel("enough"));
        drop(it);
        run.idle();
        assert_eq!(run.handle().stats().timers_pending, 0);
        log.expect(&["0 done", "cancel enough", "closed"]);
    }
    run.assert_well();
}

#[test]
fn a_process_that_ends_is_gone_before_its_interval_is_due() {
    let mut run = Run::of(Limits::DEFAULT.processes(1), Commands::new(), 0);
    let log = Log::default();
    for _ in 0..3 {
        let it =
            asked(&mut run, &log, |out| out.yield_command(Tag(1), RepeatEvery(millis(3_600_000))));
        assert!(it.cancel("enough"));
        drop(it);
        run.idle();
        log.expect(&["cancel enough", "closed"]);
    }
    run.run_for(3_600_000);
    assert_eq!(run.handle().stats().timers_pending, 0, "none is armed again");
    run.assert_well();
}

#[test]
fn a_timer_too_many_is_refused_as_such() {
    let mut run = Run::of(Limits::DEFAULT.timers(8), Commands::new(), 0);
    let log = Log::default();
    asked(&mut run, &log, |out| {
        for n in 0..10 {
            out.yield_command(Tag(n), SleepFor(millis(1)));
            out.yield_command(Tag(n), RepeatEvery(millis(1)));
        }
    });
    let refused = log.take();
    let n_refused = refused.lines().count();
    assert!(refused.lines().all(|line| line.ends_with(" failed: code 8")), "{refused}");
    assert!((12..20).contains(&n_refused), "{n_refused} of 20 were refused");
    run.run_for(1);
    assert_eq!(log.take().lines().count(), 20 - n_refused);
}

#[test]
fn an_interval_keeps_its_multiples_and_counts_what_was_missed() {
    let mut run = Run::new();
    let log = Log::default();
    run.clock.advance(millis(5));
    let it = asked(&mut run, &log, |out| out.yield_command(Tag(1), RepeatEvery(millis(10))));
    run.run_for(30);
    log.expect(&["1 due 15 missed 0", "1 due 25 missed 0", "1 due 35 missed 0"]);
    // Three and a half periods at once: two due times are passed over, and nothing drifts.
    run.clock.advance(millis(35));
    run.idle();
    log.expect(&["1 due 65 missed 2"]);
    run.clock.advance(millis(5));
    run.idle();
    log.expect(&["1 due 75 missed 0"]);
    it.terminate();
    run.idle();
    log.expect(&["closed"]);
    run.run_for(100);
    log.expect(&[]);
    assert_eq!(run.exec.next_wake(), None, "the interval of an ended process is still armed");
    run.assert_well();
}

/// Starts an interval, and takes nothing until it may.
struct Reluctant {
    log: Log,
    is_willing: Arc<AtomicBool>,
    has_begun: bool,
    waiting_max: Arc<AtomicUsize>,
}

impl Process for Reluctant {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        if !core::mem::replace(&mut self.has_begun, true) {
            out.yield_command(Tag(1), RepeatEvery(millis(10)));
        }
        self.waiting_max.fetch_max(events.waiting(), Relaxed);
        if self.is_willing.load(Relaxed) {
            events.for_each(|event| self.log.say(text(event)));
        }
        out.wait();
        Ok(())
    }
}

#[test]
fn the_ticks_of_an_interval_that_nobody_takes_do_not_pile_up() {
    let mut run = Run::new();
    let (log, is_willing) = (Log::default(), Arc::new(AtomicBool::new(false)));
    let waiting_max = Arc::new(AtomicUsize::new(0));
    let it = Reluctant {
        log: log.clone(),
        is_willing: Arc::clone(&is_willing),
        has_begun: false,
        waiting_max: Arc::clone(&waiting_max),
    };
    let it = run.exec.submit(it).unwrap();
    run.run_for(1005);
    is_willing.store(true, Relaxed);
    run.run_for(10);
    // A hundred ticks had come as one, and the next has joined them.
    log.expect(&["1 due 1010 missed 100"]);
    assert_eq!(waiting_max.load(Relaxed), 1);
    run.run_for(10);
    log.expect(&["1 due 1020 missed 0"]);
    it.terminate();
    run.idle();
    run.assert_well();
}

#[test]
fn a_period_that_is_no_whole_number_of_ticks_does_not_drift() {
    let mut run = Run::new();
    let log = Log::default();
    let every = Duration::from_micros(16_667);
    asked(&mut run, &log, move |out| out.yield_command(Tag(1), RepeatEvery(every)));
    run.run_for(1_001);
    let told = log.take();
    assert_eq!(told.lines().count(), 60);
    assert!(told.starts_with("1 due 17 missed 0\n1 due 34 missed 0\n1 due 51"), "{told}");
    assert!(told.ends_with("1 due 1001 missed 0"), "{told}");
}

#[test]
fn a_period_below_a_tick_is_a_tick() {
    let mut run = Run::new();
    let log = Log::default();
    asked(&mut run, &log, |out| {
        out.yield_command(Tag(1), RepeatEvery(Duration::from_micros(1)));
    });
    run.run_for(2);
    log.expect(&["1 due 1 missed 0", "1 due 2 missed 0"]);
}

#[test]
fn the_timers_of_commands_and_of_futures_are_of_one_clock() {
    let mut run = Run::new();
    let log = Log::default();
    asked(&mut run, &log, |out| out.yield_command(Tag(1), SleepFor(millis(3))));
    let theirs = log.clone();
    drop(run.exec.spawn_future(async move {
        sleep(millis(2)).await.unwrap();
        theirs.say("future at 2");
        sleep(millis(2)).await.unwrap();
        theirs.say("future at 4");
    }));
    run.run_for(5);
    log.expect(&["future at 2", "1 done", "future at 4"]);
}

#[test]
fn the_interval_of_a_process_that_has_ended_is_not_armed() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let mut run = Run::of(Limits::DEFAULT.timers(64), Commands::new(), 0);
    let log = Log::default();
    for round in 0..1_000 {
        let it = asked(&mut run, &log, |out| out.yield_command(Tag(1), RepeatEvery(HOUR)));
        assert_eq!(run.handle().stats().timers_pending, 1, "round {round}");
        if round % 2 == 0 {
            // The next timer of the interval, and not the first.
            run.run_for(3_600_000);
            assert_eq!(run.handle().stats().timers_pending, 1, "round {round}");
        }
        it.terminate();
        run.idle();
        assert_eq!(run.handle().stats().timers_pending, 0, "round {round}");
    }
    log.take();
    run.assert_well();
}

#[test]
fn a_sleep_of_no_time_is_answered_at_once() {
    check(Commands::new(), SleepFor(Duration::ZERO), &["1 done"]);
}
