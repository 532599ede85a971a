//! The worker pool as the subject.

use core::time::Duration;
use std::{panic, sync::Arc};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{
        Commands, Event, Events, Failure, Payload, Pid, Process, StepOutput, Tag,
        builtin::{self, Monitor},
    },
    sleep, spawn, yield_now,
};

use crate::{
    dice::Dice,
    ledger::{Entry, Kind, Ledger},
    subject::{Counts, Later, Operation, Subject},
};

/// How long the pool may take to end when nothing is left to do.
const STOP_MAX: Duration = Duration::from_secs(10);
/// The longest sleep that is waited for.
const SLEEP_MAX_MS: u64 = 60;
/// A sleep that nobody waits for.
const LONG_SLEEP: Duration = Duration::from_secs(600);
/// The most messages in one burst.
const BURST_MAX: u64 = 40;

/// The payload of a panic that was planned.
#[derive(Debug)]
pub(crate) struct Planned;

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool(WorkerPool);

impl Pool {
    /// Starts it.
    pub(crate) fn start(workers: usize, seed: u64) -> Result<Self, String> {
        let config = PoolConfig { workers: Some(workers), seed, ..PoolConfig::DEFAULT };
        let pool = WorkerPool::new(config, Commands::new()).map_err(|error| error.to_string())?;
        Ok(Self(pool))
    }

    /// A process that handles letters until it is asked to stop, or ended from outside.
    fn mailbox(
        &self,
        ledger: &Arc<Ledger>,
        n_letters: u64,
    ) -> Option<clockjack_rt::exec::ProcessRef<Letter>> {
        let process = self.0.submit(Mailbox(Some(ledger.begin(Kind::Task)))).ok()?;
        for n in 0..n_letters {
            // What is refused is dropped here, and the books say so.
            let letter = Letter::Plain(ledger.begin(Kind::Message));
            let sent = if n % 2 == 0 {
                process.tell(letter).is_ok()
            } else {
                self.0.send(process.pid(), Payload::new(letter)).is_ok()
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
        let books = Arc::clone(ledger);
        let enter = || ledger.begin(Kind::Task);
        match operation {
            Operation::Yield => drop(self.0.spawn(yields(enter(), books, dice.below(8)))),
            Operation::Sleep => drop(self.0.spawn(sleeps(enter(), books, millis(dice)))),
            Operation::Abort => {
                let join = self.0.spawn(sleeps(enter(), books, LONG_SLEEP));
                return Some(Box::new(move || join.abort()));
            }
            Operation::Panic => {
                let task = enter();
                drop(self.0.spawn(async move {
                    let _task = task;
                    yield_now().await;
                    panic::panic_any(Planned);
                }));
            }
            Operation::Join => drop(self.0.spawn(joins(enter(), books, dice.split()))),
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
                let closure = books.begin(Kind::Blocking);
                // A refused closure is dropped, and its entry with it.
                drop(self.0.spawn_blocking(move || closure.done()));
            }
            Operation::Monitor => {
                let process = self.mailbox(ledger, dice.below(4))?;
                let watcher =
                    Watcher { whom: process.pid(), task: Some(enter()), watch: None, books };
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
                    Tied { whom: process.pid(), after, task: Some(enter()), is_asked: false };
                drop(self.0.submit(tied));
                return Some(Box::new(move || {
                    if process.tell(Letter::Fail).is_err() {
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

    fn picture(&self) -> String {
        format!("{:#?}", self.0)
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        let report = self.0.shutdown(STOP_MAX);
        if report.is_clean() { Ok(()) } else { Err(format!("{report:#?}")) }
    }
}

fn millis(dice: &mut Dice) -> Duration {
    Duration::from_millis(dice.below(SLEEP_MAX_MS))
}

async fn yields(task: Entry, books: Arc<Ledger>, n: u64) {
    for _ in 0..n {
        yield_now().await;
    }
    let child = books.begin(Kind::Task);
    drop(spawn(async move { child.done() }));
    task.done();
}

async fn sleeps(task: Entry, books: Arc<Ledger>, after: Duration) {
    let timer = books.arm(after);
    match sleep(after).await {
        Ok(()) => timer.done(),
        Err(_) => drop(timer),
    }
    task.done();
}

async fn joins(task: Entry, books: Arc<Ledger>, mut dice: Dice) {
    let n = dice.below(6);
    let children = (0..n).map(|_| {
        let child = books.begin(Kind::Task);
        spawn(sleeps(child, Arc::clone(&books), Duration::from_millis(dice.below(4))))
    });
    for child in children.collect::<Vec<_>>() {
        if dice.below(4) == 0 {
            child.abort();
        }
        // An aborted child is an error, which is as good an end as any here.
        drop(child.await);
    }
    task.done();
}

/// What a [`Mailbox`] gets.
#[derive(Debug)]
enum Letter {
    Plain(Entry),
    Fail,
}

/// Handles letters until it is asked to stop.
struct Mailbox(Option<Entry>);

impl Process for Mailbox {
    type Message = Letter;

    fn step(
        &mut self,
        events: &mut Events<'_, Letter>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Message(Letter::Plain(entry)) => entry.done(),
                Event::Message(Letter::Fail) => panic::panic_any(Planned),
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

/// Monitors a process and ends when it is told of its end; nobody ends it from outside.
struct Watcher {
    whom: Pid,
    task: Option<Entry>,
    watch: Option<Entry>,
    books: Arc<Ledger>,
}

impl Process for Watcher {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.wait();
        for event in events {
            let is_over = match event {
                // The other was gone before the monitor was set.
                Event::YieldComplete { result: Err(_), .. } => true,
                Event::Exit { pid, .. } if pid == self.whom => {
                    self.watch.take().into_iter().for_each(Entry::done);
                    true
                }
                _ => false,
            };
            if is_over {
                // A monitor that was refused was not set: there is nothing to be told of.
                self.watch.take().into_iter().for_each(Entry::done);
                self.task.take().into_iter().for_each(Entry::done);
                out.done(Payload::new(()));
                return Ok(());
            }
        }
        if self.watch.is_none() {
            self.watch = Some(self.books.begin(Kind::Watch));
            out.yield_command(Tag(1), Monitor(self.whom));
        }
        Ok(())
    }
}

/// Linked to a process that fails, or ends after a while.
struct Tied {
    whom: Pid,
    after: Duration,
    task: Option<Entry>,
    is_asked: bool,
}

impl Process for Tied {
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
