//! Monitors and links: which processes learn of an end.

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

use clockjack_exec::{
    Commands, Event, Events, Failure, Limits, Payload, Payloads, Pid, Process, ProcessRef,
    StepOutput, Tag,
    builtin::{Exec, Link, Monitor, Spawn, Terminate, Unlink, Unmonitor},
};

use crate::bench::{Log, Mortal, Run, asker, process, text};

/// How a process is made to end.
#[derive(Clone, Copy)]
enum End {
    Result,
    Failure,
    Panic,
    Terminate,
    Cancel,
}

fn end(it: &ProcessRef<u32>, how: End) {
    match how {
        End::Result => it.tell(0).unwrap(),
        End::Failure => it.tell(1).unwrap(),
        End::Panic => it.tell(2).unwrap(),
        End::Terminate => assert!(it.terminate()),
        End::Cancel => assert!(it.cancel("enough")),
    }
}

#[test]
fn a_monitor_is_told_of_every_end_once() {
    let check = |how: End, told: &str| {
        let mut run = Run::new();
        let log = Log::default();
        let other = run.exec.submit(Mortal).unwrap();
        let pid = other.pid();
        drop(run.exec.submit(asker(&log, move |out| out.yield_command(Tag(1), Monitor(pid)))));
        run.idle();
        log.expect(&["1 done"]);
        end(&other, how);
        run.idle();
        log.expect(&[told]);
        run.idle();
        log.expect(&[]);
    };
    check(End::Result, "exit normal");
    check(End::Failure, "exit failed: told to fail");
    check(End::Panic, "exit panicked: told to panic");
    check(End::Terminate, "exit terminated");
    // A process that ends by a result because it was asked to has ended normally.
    check(End::Cancel, "exit normal");
}

#[test]
fn a_monitor_of_a_future_is_told_too() {
    let mut run = Run::new();
    let log = Log::default();
    let task = run.exec.spawn_future(core::future::pending::<()>());
    let pid = task.pid().unwrap();
    drop(run.exec.submit(asker(&log, move |out| out.yield_command(Tag(1), Monitor(pid)))));
    run.idle();
    task.cancel();
    run.idle();
    log.expect(&["1 done", "exit cancelled: cancelled by the joiner"]);
}

#[test]
fn a_link_tells_of_failures_only() {
    let check = |how: End, is_told: bool, told: &str| {
        let mut run = Run::new();
        let (log, trapped) = (Log::default(), Log::default());
        let other = run.exec.submit(Mortal).unwrap();
        let pid = other.pid();
        let linked = run.exec.submit(asker(&log, move |out| out.yield_command(Tag(1), Link(pid))));
        let linked = linked.unwrap();
        let trapping = run.exec.submit(asker(&trapped, move |out| {
            out.trap_links(true);
            out.yield_command(Tag(1), Link(pid));
        }));
        let trapping = trapping.unwrap();
        run.idle();
        end(&other, how);
        run.idle();
        assert_eq!(linked.is_finished(), is_told);
        assert!(!trapping.is_finished());
        if is_told {
            let exit = run.exec.block_on(linked.join()).unwrap_err();
            assert_eq!(exit.linked(), Some(pid));
            log.expect(&["1 done", "closed"]);
            trapped.expect(&["1 done", told]);
        } else {
            log.expect(&["1 done"]);
            trapped.expect(&["1 done"]);
        }
    };
    check(End::Result, false, "");
    check(End::Cancel, false, "");
    check(End::Failure, true, "link down failed: told to fail");
    check(End::Panic, true, "link down panicked: told to panic");
    check(End::Terminate, true, "link down terminated");
}

#[test]
fn a_link_is_of_both_ends_and_goes_on_through_a_chain() {
    let mut run = Run::new();
    let log = Log::default();
    let first = run.exec.submit(Mortal).unwrap();
    let mut chain = vec![first.clone()];
    for _ in 0..3 {
        let before = chain.last().unwrap().pid();
        let ask = move |out: &mut StepOutput| out.yield_command(Tag(1), Link(before));
        chain.push(run.exec.submit(asker(&log, ask)).unwrap());
    }
    run.idle();
    // From the middle, in both directions.
    chain[2].terminate();
    run.idle();
    assert!(chain.iter().all(ProcessRef::is_finished));
    let exit = run.exec.block_on(chain[0].join()).unwrap_err();
    assert_eq!(exit.linked(), Some(chain[1].pid()));
    run.assert_well();
}

#[test]
fn what_is_undone_tells_nothing() {
    let mut run = Run::new();
    let log = Log::default();
    let other = run.exec.submit(Mortal).unwrap();
    let pid = other.pid();
    let it = run.exec.submit(asker(&log, move |out| {
        out.yield_command(Tag(1), Monitor(pid));
        out.yield_command(Tag(2), Link(pid));
        out.yield_command(Tag(3), Unmonitor(pid));
        out.yield_command(Tag(4), Unlink(pid));
        out.yield_command(Tag(5), Unmonitor(pid));
        out.yield_command(Tag(6), Unlink(pid));
    }));
    let it = it.unwrap();
    run.idle();
    let done = ["1 done", "2 done", "3 done", "4 done", "5 failed: code 4", "6 failed: code 4"];
    log.expect(&done);
    end(&other, End::Failure);
    run.idle();
    log.expect(&[]);
    assert!(!it.is_finished());
}

#[test]
fn the_other_end_of_a_link_can_undo_it() {
    let mut run = Run::new();
    let log = Log::default();
    let first = run.exec.submit(asker(&log, |_| {})).unwrap();
    run.idle();
    let pid = first.pid();
    let second = run.exec.submit(process::<Pid, _>(move |events, out| {
        for event in events {
            match event {
                Event::Message(peer) => out.yield_command(Tag(1), Unlink(peer)),
                Event::YieldComplete { tag: Tag(1), result } => drop(result?),
                _ => {}
            }
        }
        out.idle();
        Ok(())
    }));
    let second = second.unwrap();
    let peer = second.pid();
    let third = run.exec.submit(asker(&log, move |out| out.yield_command(Tag(9), Link(peer))));
    let third = third.unwrap();
    run.idle();
    second.tell(third.pid()).unwrap();
    run.idle();
    second.terminate();
    run.idle();
    log.expect(&["9 done"]);
    assert!(!third.is_finished(), "it was untied by the other end");
    // Nothing was linked to this one.
    assert_eq!(run.handle().state(pid), Some(clockjack_exec::State::Idle));
}

#[test]
fn no_tie_to_oneself_no_second_monitor_and_a_second_link_is_the_first() {
    let mut run = Run::new();
    let log = Log::default();
    let other = run.exec.submit(Mortal).unwrap();
    let pid = other.pid();
    let theirs = log.clone();
    let mut has_asked = false;
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        if !core::mem::replace(&mut has_asked, true) {
            out.trap_links(true);
            out.yield_command(Tag(1), Monitor(events.pid()));
            out.yield_command(Tag(2), Link(events.pid()));
            for tag in [3, 4] {
                out.yield_command(Tag(tag), Monitor(pid));
            }
            for tag in [5, 6] {
                out.yield_command(Tag(tag), Link(pid));
            }
        }
        for event in events {
            theirs.say(text(event));
        }
        out.idle();
        Ok(())
    }));
    drop(it.unwrap());
    run.idle();
    let failed = ["1 failed: code 6", "2 failed: code 6", "3 done", "4 failed: code 5"];
    log.expect(&[&failed[..], &["5 done", "6 done"]].concat());
    end(&other, End::Failure);
    run.idle();
    log.expect(&["exit failed: told to fail", "link down failed: told to fail"]);
}

#[test]
fn trapping_may_be_given_up_again() {
    let mut run = Run::new();
    let first = run.exec.submit(Mortal).unwrap();
    let second = run.exec.submit(Mortal).unwrap();
    let pids = [first.pid(), second.pid()];
    let log = Log::default();
    let theirs = log.clone();
    let mut has_asked = false;
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        if !core::mem::replace(&mut has_asked, true) {
            out.trap_links(true);
            for pid in pids {
                out.yield_command(Tag(1), Link(pid));
            }
        }
        for event in events {
            if matches!(event, Event::LinkDown { .. }) {
                out.trap_links(false);
            }
            theirs.say(text(event));
        }
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    run.idle();
    first.terminate();
    run.idle();
    log.expect(&["1 done", "1 done", "link down terminated"]);
    second.terminate();
    run.idle();
    assert_eq!(run.exec.block_on(it.join()).unwrap_err().linked(), Some(pids[1]));
    run.assert_well();
}

#[test]
fn a_process_that_has_just_ended_cannot_be_monitored_and_one_about_to_is() {
    let mut run = Run::new();
    let log = Log::default();
    let other = run.exec.submit(Mortal).unwrap();
    let pid = other.pid();
    run.idle();
    // It will end before it looks at who wants to know.
    let it = run.exec.submit(asker(&log, move |out| {
        out.yield_command(Tag(1), Terminate(pid));
        out.yield_command(Tag(2), Monitor(pid));
    }));
    drop(it.unwrap());
    run.idle();
    log.expect(&["1 done", "2 done", "exit terminated"]);
    drop(run.exec.submit(asker(&log, move |out| out.yield_command(Tag(3), Monitor(pid)))));
    run.idle();
    log.expect(&["3 failed: code 4"]);
}

/// A process that ends in its first step.
struct Brief(bool);

impl Process for Brief {
    type Message = u32;

    fn step(&mut self, _: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::unit());
        if self.0 { Ok(()) } else { Err(Failure::msg("brief")) }
    }
}

#[test]
fn who_spawns_and_monitors_is_told_of_the_shortest_life() {
    let mut run = Run::new();
    let log = Log::default();
    drop(run.exec.submit(asker(&log, |out| {
        out.yield_command(Tag(1), Spawn::new(Brief(true)).monitored());
        out.yield_command(Tag(2), Spawn::new(Brief(false)).monitored());
        out.trap_links(true);
        out.yield_command(Tag(3), Spawn::new(Brief(false)).linked());
        out.yield_command(Tag(4), Spawn::new(Brief(false)));
    })));
    run.idle();
    let pids = ["1 pid", "2 pid", "3 pid", "4 pid"];
    let ends = ["exit normal", "exit failed: brief", "link down failed: brief"];
    log.expect(&[&pids[..], &ends[..]].concat());
}

#[test]
fn who_spawns_and_links_fails_with_the_other_and_the_other_with_it() {
    let mut run = Run::new();
    let log = Log::default();
    let ask = |out: &mut StepOutput| out.yield_command(Tag(1), Spawn::new(Brief(false)).linked());
    let it = run.exec.submit(asker(&log, ask)).unwrap();
    assert!(run.exec.block_on(it.join()).unwrap_err().is_link_down());

    let ask = |out: &mut StepOutput| out.yield_command(Tag(1), Spawn::new(Mortal).linked());
    let it = run.exec.submit(asker(&log, ask)).unwrap();
    run.idle();
    assert_eq!(run.exec.live_len(), 2);
    it.terminate();
    run.idle();
    run.assert_well();
}

#[test]
fn the_end_of_an_executed_process_is_the_answer_and_no_event() {
    let mut run = Run::new();
    let log = Log::default();
    let ask = |out: &mut StepOutput| {
        out.yield_command(Tag(1), Exec::process(Brief(true), "", Payloads::new()));
    };
    drop(run.exec.submit(asker(&log, ask)));
    run.idle();
    log.expect(&["1 done"]);
}

#[test]
fn ties_outlast_an_upgrade() {
    let mut run = Run::new();
    let log = Log::default();
    let other = run.exec.submit(Mortal).unwrap();
    let pid = other.pid();
    let mut heir = Some(asker(&log, |_| {}));
    let mut has_asked = false;
    let it = run.exec.submit(process::<u32, _>(move |events, out| {
        if !core::mem::replace(&mut has_asked, true) {
            out.yield_command(Tag(1), Monitor(pid));
        }
        for event in events {
            if matches!(event, Event::Message(_)) {
                let heir = heir.take().expect("it is told but once");
                out.upgrade(heir, "", Payloads::new());
                return Ok(());
            }
        }
        out.idle();
        Ok(())
    }));
    let it = it.unwrap();
    run.idle();
    it.tell(1).unwrap();
    run.idle();
    end(&other, End::Result);
    run.idle();
    log.expect(&["exit normal"]);
}

/// Monitors processes, and counts the exits that it is told of and the most events that waited.
struct Watcher {
    monitored: Vec<Pid>,
    told: Arc<AtomicUsize>,
    waiting_max: Arc<AtomicUsize>,
}

impl Process for Watcher {
    type Message = u32;

    fn init(&mut self, _: Pid, _: &str, _: Payloads) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for (tag, pid) in (0..).zip(self.monitored.drain(..)) {
            out.yield_command(Tag(tag), Monitor(pid));
        }
        self.waiting_max.fetch_max(events.waiting(), Relaxed);
        let exits = events.filter(|event| matches!(event, Event::Exit { .. })).count();
        self.told.fetch_add(exits, Relaxed);
        out.wait();
        Ok(())
    }
}

/// Polled in every round: the most that `told` rose between two of its polls.
fn most_at_a_time(run: &mut Run, told: &Arc<AtomicUsize>, until: usize) -> usize {
    let (told, mut before, mut most) = (Arc::clone(told), 0, 0);
    let watch = run.exec.spawn_future(poll_fn(move |cx| {
        let now = told.load(Relaxed);
        most = most.max(now - before);
        before = now;
        if now == until {
            return Poll::Ready(most);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    run.exec.block_on(watch).unwrap()
}

#[test]
fn a_process_with_many_monitors_leaves_others_their_turns_when_it_ends() {
    const N: usize = 2000;
    let mut run = Run::new();
    let (told, waiting_max) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let other = run.exec.submit(Mortal).unwrap();
    for _ in 0..N {
        let (told, waiting_max) = (Arc::clone(&told), Arc::clone(&waiting_max));
        drop(run.exec.submit(Watcher { monitored: vec![other.pid()], told, waiting_max }));
    }
    run.idle();
    end(&other, End::Result);
    let most = most_at_a_time(&mut run, &told, N);
    assert!(most <= 600, "{most} of {N} were told at a time");
}

#[test]
fn the_exits_of_many_monitored_processes_are_handled_by_parts() {
    const N: usize = 2000;
    let limits = Limits::DEFAULT.throughput(2 * N);
    let mut run = Run::of(limits, Commands::new(), 0);
    let (told, waiting_max) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let others: Vec<_> = (0..N).map(|_| run.exec.submit(Mortal).unwrap()).collect();
    let monitored = others.iter().map(ProcessRef::pid).collect();
    let watcher =
        Watcher { monitored, told: Arc::clone(&told), waiting_max: Arc::clone(&waiting_max) };
    drop(run.exec.submit(watcher));
    run.idle();
    waiting_max.store(0, Relaxed);
    others.iter().for_each(|other| end(other, End::Result));
    run.idle();
    assert_eq!(told.load(Relaxed), N);
    let most = waiting_max.load(Relaxed);
    assert!(most <= 300, "{most} of {N} signals were handled in one poll");
}
