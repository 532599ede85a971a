//! The worker pool as the tested subject.

use core::time::Duration;
use std::{panic, sync::Arc};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{
        Commands, Event, Events, Failure, Payload, Pid, Process, StepOutput, Tag,
        builtin::{self, Monitor},
    },
    sleep, spawn_future, yield_now,
};
use clockjack_testing::keeps_deadline;

use crate::{
    dice::Dice,
    ledger::{Entry, Kind, Ledger},
    subject::{Counts, Later, Operation, Subject},
};

/// The time limit of the shutdown of an idle pool.
const STOP_MAX: Duration = Duration::from_secs(10);
/// The longest sleep whose completion is awaited.
const SLEEP_MAX_MS: u64 = 60;
/// A sleep that is always cancelled.
const LONG_SLEEP: Duration = Duration::from_secs(600);
/// The maximum number of messages in one burst.
const BURST_MAX: u64 = 40;

/// The payload of a planned panic.
#[derive(Debug)]
pub(crate) struct Planned;

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool(WorkerPool);

impl Pool {
    /// Starts the pool.
    pub(crate) fn start(workers: usize, seed: u64) -> Result<Self, String> {
        let config = PoolConfig { workers: Some(workers), seed, ..PoolConfig::DEFAULT };
        let pool = WorkerPool::new(config, Commands::new()).map_err(|error| error.to_string())?;
        Ok(Self(pool))
    }

    /// A process that handles messages until it is asked to stop, or terminated.
    fn mailbox(
        &self,
        ledger: &Arc<Ledger>,
        n_letters: u64,
    ) -> Option<clockjack_rt::exec::ProcessRef<PoolMessage>> {
        let process = self.0.submit(Mailbox(Some(ledger.begin(Kind::Task)))).ok()?;
        for n in 0..n_letters {
            // A refused message is dropped here, and the ledger counts it as dropped.
            let message = PoolMessage::Plain(ledger.begin(Kind::Message));
            let sent = if n % 2 == 0 {
                process.tell(message).is_ok()
            } else {
                self.0.send(process.pid(), Payload::new(message)).is_ok()
            };
            if !sent {
                break;
            }
        }
        Some(process)
    }
}

impl Subject for Pool {
    fn start(&self, operation: Operation, dice: &mut Dice, ledger: &Arc<Ledger>) -> Option<Later> {
        let shared = Arc::clone(ledger);
        let enter = || ledger.begin(Kind::Task);
        match operation {
            Operation::Yield => drop(self.0.spawn_future(yields(enter(), shared, dice.below(8)))),
            Operation::Sleep => drop(self.0.spawn_future(sleeps(enter(), shared, millis(dice)))),
            Operation::Abort => {
                let join = self.0.spawn_future(sleeps(enter(), shared, LONG_SLEEP));
                return Some(Box::new(move || join.abort()));
            }
            Operation::Panic => {
                let task = enter();
                drop(self.0.spawn_future(async move {
                    let _task = task;
                    yield_now().await;
                    panic::panic_any(Planned);
                }));
            }
            Operation::Join => drop(self.0.spawn_future(joins(enter(), shared, dice.split()))),
            Operation::Send => {
                let process = self.mailbox(ledger, dice.below(BURST_MAX))?;
                return Some(Box::new(move || {
                    process.cancel("enough");
                }));
            }
            Operation::Terminate => {
                let process = self.mailbox(ledger, dice.below(BURST_MAX))?;
                return Some(Box::new(move || {
                    process.terminate();
                }));
            }
            Operation::Block => {
                let closure = shared.begin(Kind::Blocking);
                // A refused closure is dropped together with its entry.
                drop(self.0.spawn_blocking(move || closure.done()));
            }
            Operation::Monitor => {
                let process = self.mailbox(ledger, dice.below(4))?;
                let watcher = Watcher {
                    whom: process.pid(),
                    task: Some(enter()),
                    watch: None,
                    ledger: shared,
                };
                drop(self.0.submit(watcher));
                let is_gentle = dice.below(2) == 0;
                return Some(Box::new(move || {
                    if is_gentle {
                        process.cancel("enough")
                    } else {
                        process.terminate()
                    };
                }));
            }
            Operation::Link => {
                let process = self.mailbox(ledger, dice.below(4))?;
                let after = millis(dice);
                let tied =
                    Linked { whom: process.pid(), after, task: Some(enter()), is_asked: false };
                drop(self.0.submit(tied));
                return Some(Box::new(move || {
                    if process.tell(PoolMessage::Fail).is_err() {
                        process.terminate();
                    }
                }));
            }
        }
        None
    }

    fn resize(&self, workers: usize) -> Result<(), String> {
        self.0.resize(workers).map(drop).map_err(|error| error.to_string())
    }

    fn counts(&self) -> Counts {
        let stats = self.0.stats();
        Counts { spawned: stats.spawned, finished: stats.finished }
    }

    fn dump(&self) -> String {
        format!("{:#?}", self.0)
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        let report = keeps_deadline(STOP_MAX, || self.0.shutdown(STOP_MAX));
        if report.is_clean() { Ok(()) } else { Err(format!("{report:#?}")) }
    }
}

fn millis(dice: &mut Dice) -> Duration {
    Duration::from_millis(dice.below(SLEEP_MAX_MS))
}

async fn yields(task: Entry, ledger: Arc<Ledger>, n: u64) {
    for _ in 0..n {
        yield_now().await;
    }
    let child = ledger.begin(Kind::Task);
    drop(spawn_future(async move { child.done() }));
    task.done();
}

async fn sleeps(task: Entry, ledger: Arc<Ledger>, after: Duration) {
    let timer = ledger.arm(after);
    match sleep(after).await {
        Ok(()) => timer.done(),
        Err(_) => drop(timer),
    }
    task.done();
}

async fn joins(task: Entry, ledger: Arc<Ledger>, mut dice: Dice) {
    let n = dice.below(6);
    let children = (0..n).map(|_| {
        let child = ledger.begin(Kind::Task);
        spawn_future(sleeps(child, Arc::clone(&ledger), Duration::from_millis(dice.below(4))))
    });
    for child in children.collect::<Vec<_>>() {
        if dice.below(4) == 0 {
            child.abort();
        }
        // The join of an aborted child returns an error, which is expected here.
        drop(child.await);
    }
    task.done();
}

/// A message to a [`Mailbox`].
#[derive(Debug)]
enum PoolMessage {
    Plain(Entry),
    Fail,
}

/// Handles messages until it is asked to stop.
struct Mailbox(Option<Entry>);

impl Process for Mailbox {
    type Message = PoolMessage;

    fn step(
        &mut self,
        events: &mut Events<'_, PoolMessage>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Message(PoolMessage::Plain(entry)) => entry.done(),
                Event::Message(PoolMessage::Fail) => panic::panic_any(Planned),
                Event::Cancel { .. } => {
                    self.0.take().into_iter().for_each(Entry::done);
                    out.done(Payload::new(()));
                    return Ok(());
                }
                _ => {}
            }
        }
        out.idle();
        Ok(())
    }
}

/// Monitors a process and stops when it is notified of that process's exit; it is never terminated.
struct Watcher {
    whom: Pid,
    task: Option<Entry>,
    watch: Option<Entry>,
    ledger: Arc<Ledger>,
}

impl Process for Watcher {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.wait();
        for event in events {
            let is_over = match event {
                // The other process had exited before the monitor was set.
                Event::YieldComplete { result: Err(_), .. } => true,
                Event::Exit { pid, .. } if pid == self.whom => {
                    self.watch.take().into_iter().for_each(Entry::done);
                    true
                }
                _ => false,
            };
            if is_over {
                // A refused monitor was never set: there is no exit to wait for.
                self.watch.take().into_iter().for_each(Entry::done);
                self.task.take().into_iter().for_each(Entry::done);
                out.done(Payload::new(()));
                return Ok(());
            }
        }
        if self.watch.is_none() {
            self.watch = Some(self.ledger.begin(Kind::Watch));
            out.yield_command(Tag(1), Monitor(self.whom));
        }
        Ok(())
    }
}

/// A process that is linked to one that fails, or that stops after a while.
struct Linked {
    whom: Pid,
    after: Duration,
    task: Option<Entry>,
    is_asked: bool,
}

impl Process for Linked {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.wait();
        for event in events {
            if let Event::YieldComplete { tag: Tag(2), .. } = event {
                self.task.take().into_iter().for_each(Entry::done);
                out.done(Payload::new(()));
                return Ok(());
            }
        }
        if !self.is_asked {
            self.is_asked = true;
            out.yield_command(Tag(1), builtin::Link(self.whom));
            out.yield_command(Tag(2), builtin::SleepFor(self.after));
        }
        Ok(())
    }
}
