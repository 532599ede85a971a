//! The state word around a model of a process: a queue that only counts, events that are only a
//! number, an output and a waker.
//!
//! The queue hands over what the one that enqueues wrote, as every queue does, and the events are
//! relaxed on purpose: all other order in these models comes from the state.
#![expect(unsafe_code, reason = "cells that loom watches stand for what the word guards")]

use clockjack_exec::state::{
    AtomicState, Completion, JoinHandleDrop, NotifyAction, State, WaitKind, WaitTransition,
};
use clockjack_sync::primitive::{
    UnsafeCell,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use loom::{sync::Arc, thread};

/// A process without a body.
struct Process {
    state: AtomicState,
    /// How often it is in a queue: never more than once.
    queued: AtomicUsize,
    events: AtomicUsize,
    /// What only the runner may touch: how many events it has seen.
    seen: UnsafeCell<usize>,
    /// What only the holder of the entry may touch, as the link of a queue.
    link: UnsafeCell<usize>,
    output: UnsafeCell<Option<u32>>,
    waker: UnsafeCell<Option<u32>>,
    /// Which waker was woken, plus one.
    woken: AtomicUsize,
}

// SAFETY: loom itself reports two accesses to a cell that are not ordered.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

/// How a poll ends.
#[derive(Clone, Copy)]
enum Turn {
    Wait(WaitKind),
    Again,
    Complete,
    /// Completes, and leaves the output to a later joiner.
    Keep,
}

impl Process {
    /// A process with its first queue entry.
    fn new(joined: bool) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicState::new(joined),
            queued: AtomicUsize::new(1),
            events: AtomicUsize::new(0),
            seen: UnsafeCell::new(0),
            link: UnsafeCell::new(0),
            output: UnsafeCell::new(None),
            waker: UnsafeCell::new(None),
            woken: AtomicUsize::new(0),
        })
    }

    fn enqueue(&self) {
        set(&self.link, 1);
        assert_eq!(self.queued.fetch_add(1, Release), 0, "in two queues");
    }

    fn obey(&self, notify: NotifyAction) {
        if notify == NotifyAction::Enqueue {
            self.enqueue();
        }
    }

    /// Sends one event.
    fn send(&self) {
        self.events.fetch_add(1, Relaxed);
        self.obey(self.state.notify());
    }

    /// One poll, if the task is in the queue; returns whether it was.
    fn turn(&self, turn: Turn) -> bool {
        if self.queued.compare_exchange(1, 0, Acquire, Relaxed).is_err() {
            return false;
        }
        let started = self.state.transition_to_running();
        set(&self.link, 0);
        let events = self.events.load(Relaxed);
        // Also fails if another runner is in its poll, or left it unpublished.
        set(&self.seen, events);
        match turn {
            _ if started.terminate => self.complete(true),
            Turn::Wait(waiting) => {
                if self.state.transition_to_waiting(waiting) == WaitTransition::Ready {
                    self.enqueue();
                }
            }
            Turn::Again => {
                self.state.transition_to_ready();
                self.enqueue();
            }
            Turn::Complete => self.complete(true),
            Turn::Keep => self.complete(false),
        }
        true
    }

    fn complete(&self, drops_output: bool) {
        set(&self.output, Some(7));
        let Completion { joined, join_waker } = self.state.transition_to_complete();
        if !joined && drops_output {
            assert_eq!(take(&self.output), Some(7), "somebody else took the output");
        }
        if join_waker {
            let waker = take(&self.waker).expect("a published slot has a waker");
            self.woken.fetch_add(waker as usize + 1, Relaxed);
        }
    }

    /// Runs what is left and looks whether the process waits in peace.
    fn settle(&self, n_events: usize) {
        while self.turn(Turn::Wait(WaitKind::Idle)) {}
        assert_eq!(self.queued.load(Relaxed), 0, "complete, and in a queue");
        match self.state.load() {
            State::Blocked | State::Idle => {
                assert!(!self.state.is_terminating(), "told to end, and waits");
                assert_eq!(get(&self.seen), n_events, "an event was not seen");
            }
            State::Complete => {}
            state => panic!("{state:?} and in no queue"),
        }
    }
}

fn set<T>(cell: &UnsafeCell<T>, value: T) {
    cell.with_mut(|cell| {
        // SAFETY: the word says that this thread may; loom checks that.
        unsafe { *cell = value }
    });
}

fn get<T: Copy>(cell: &UnsafeCell<T>) -> T {
    cell.with(|cell| {
        // SAFETY: the word says that this thread may; loom checks that.
        unsafe { *cell }
    })
}

fn take<T>(cell: &UnsafeCell<Option<T>>) -> Option<T> {
    cell.with_mut(|cell| {
        // SAFETY: the word says that this thread may; loom checks that.
        unsafe { (*cell).take() }
    })
}

/// Runs `f` on the process in a thread of the model.
fn spawn<R: 'static>(
    process: &Arc<Process>,
    f: impl FnOnce(&Process) -> R + 'static,
) -> thread::JoinHandle<R> {
    let process = Arc::clone(process);
    thread::spawn(move || f(&process))
}

#[test]
fn an_event_at_the_end_of_a_turn_is_seen_by_some_turn() {
    loom::model(|| {
        let process = Process::new(false);
        let sender = spawn(&process, Process::send);
        let runner = spawn(&process, |process| process.turn(Turn::Wait(WaitKind::Blocked)));
        sender.join().unwrap();
        runner.join().unwrap();
        process.settle(1);
        assert_ne!(process.state.load(), State::Complete);
    });
}

#[test]
fn what_one_turn_leaves_is_found_by_the_next() {
    loom::model(|| {
        let process = Process::new(false);
        let runner = spawn(&process, |process| process.turn(Turn::Wait(WaitKind::Blocked)));
        let sender = spawn(&process, |process| {
            process.send();
            process.turn(Turn::Wait(WaitKind::Idle));
        });
        runner.join().unwrap();
        sender.join().unwrap();
        process.settle(1);
    });
}

#[test]
fn two_senders_and_a_terminator_meet_the_end_of_a_turn() {
    loom::model(|| {
        let process = Process::new(false);
        let sender = spawn(&process, Process::send);
        let terminator = spawn(&process, |process| process.obey(process.state.terminate()));
        let runner = spawn(&process, |process| {
            process.turn(Turn::Wait(WaitKind::Idle));
            process.send();
            process.turn(Turn::Wait(WaitKind::Blocked));
        });
        sender.join().unwrap();
        terminator.join().unwrap();
        runner.join().unwrap();
        process.settle(2);
        assert_eq!(process.state.load(), State::Complete, "told to end, and lives");
    });
}

#[test]
fn a_process_that_goes_on_meets_two_senders() {
    loom::model(|| {
        let process = Process::new(false);
        let senders = [spawn(&process, Process::send), spawn(&process, Process::send)];
        let runner = spawn(&process, |process| {
            assert!(process.turn(Turn::Again), "it was in the queue");
            assert!(process.turn(Turn::Wait(WaitKind::Blocked)), "it is in the queue again");
        });
        for sender in senders {
            sender.join().unwrap();
        }
        runner.join().unwrap();
        process.settle(2);
    });
}

#[test]
fn a_process_that_completes_is_enqueued_by_nobody() {
    loom::model(|| {
        let process = Process::new(false);
        let sender = spawn(&process, Process::send);
        let terminator = spawn(&process, |process| process.obey(process.state.terminate()));
        let runner = spawn(&process, |process| process.turn(Turn::Complete));
        sender.join().unwrap();
        terminator.join().unwrap();
        assert!(runner.join().unwrap());
        assert_eq!(process.queued.load(Relaxed), 0);
        assert_eq!(process.state.load(), State::Complete);
    });
}

/// One poll of the joiner with a waker of this name.
fn poll(process: &Process, waker: u32) -> Option<u32> {
    set(&process.waker, Some(waker));
    match process.state.publish_join_waker() {
        Ok(()) => None,
        Err(_complete) => Some(take(&process.output).expect("complete without an output")),
    }
}

#[test]
fn the_output_reaches_the_joiner_and_a_joiner_that_waits_is_woken() {
    loom::model(|| {
        let process = Process::new(true);
        let runner = spawn(&process, |process| process.turn(Turn::Complete));
        let joiner = spawn(&process, |process| poll(process, 3));
        runner.join().unwrap();
        let got = joiner.join().unwrap();
        match got {
            Some(output) => assert_eq!((output, process.woken.load(Relaxed)), (7, 0)),
            None => {
                assert_eq!(process.woken.load(Relaxed), 4, "the joiner waits and is not woken");
                assert_eq!(take(&process.output), Some(7));
            }
        }
    });
}

#[test]
fn who_sees_complete_sees_the_output() {
    loom::model(|| {
        let process = Process::new(true);
        let runner = spawn(&process, |process| process.turn(Turn::Complete));
        let joiner = spawn(&process, |process| {
            (process.state.load() == State::Complete).then(|| take(&process.output))
        });
        runner.join().unwrap();
        if let Some(output) = joiner.join().unwrap() {
            assert_eq!(output, Some(7));
        }
    });
}

/// Leaves as a joiner does, and says what it cleared away.
fn leave(process: &Process) -> JoinHandleDrop {
    let left = process.state.drop_join_handle();
    if left.owns_output {
        take(&process.output);
    }
    if left.owns_waker_slot {
        take(&process.waker);
    }
    left
}

#[test]
fn a_joiner_that_changes_its_waker_or_leaves_shares_nothing_with_the_completer() {
    loom::model(|| {
        let process = Process::new(true);
        let runner = spawn(&process, |process| process.turn(Turn::Complete));
        let joiner = spawn(&process, |process| {
            let mut output = poll(process, 3);
            if output.is_none() {
                output = match process.state.reclaim_join_waker() {
                    Ok(()) => poll(process, 4),
                    Err(_complete) => take(&process.output),
                };
            }
            (output, leave(process))
        });
        runner.join().unwrap();
        let (output, left) = joiner.join().unwrap();
        assert!(output.is_none() || left.owns_output, "taken before it was there");
        assert_eq!(take(&process.output), None, "nobody dropped the output");
        assert_eq!(take(&process.waker), None, "nobody dropped the waker");
    });
}

#[test]
fn one_of_two_that_claim_joins_however_late_and_has_the_output_to_itself() {
    loom::model(|| {
        let process = Process::new(false);
        let runner = spawn(&process, |process| process.turn(Turn::Keep));
        let claim = |process: &Process| {
            let mine = process.state.claim_join();
            mine.then(|| leave(process))
        };
        let claims = [spawn(&process, claim), spawn(&process, claim)];
        runner.join().unwrap();
        let claims = claims.map(|claim| claim.join().unwrap());
        let joined: Vec<_> = claims.iter().flatten().collect();
        assert_eq!(joined.len(), 1, "one claim comes first");
        let is_left = take(&process.output).is_some();
        assert_ne!(is_left, joined[0].owns_output, "the output is not where it should be");
    });
}
