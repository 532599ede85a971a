//! Monitors and links that are made while the other end goes.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clockjack_exec::{
    Event, Events, Failure, Payload, Pid, Process, StepOutput, Tag,
    builtin::{Link, Monitor, Spawn},
};
use shuttle::{future::block_on, thread};

use crate::toolbox::{ModelExecutor, explore};

/// Ends with its first step, as it is configured to.
struct Brief(Result<(), &'static str>);

impl Process for Brief {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::new(()));
        self.0.map_err(Failure::msg)
    }
}

/// How a [`Watcher`] links itself to another process.
#[derive(Clone, Copy)]
enum Tie {
    Monitor(Pid),
    Link(Pid),
    /// Makes the other process, and monitors it from its birth.
    Spawn,
}

/// Links or monitors another process, and ends when it knows that this was refused, or how the
/// other ended.
struct Watcher {
    tie: Option<Tie>,
    exits: Arc<AtomicUsize>,
}

impl Process for Watcher {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        match self.tie.take() {
            Some(Tie::Monitor(pid)) => out.yield_command(Tag(1), Monitor(pid)),
            Some(Tie::Link(pid)) => out.yield_command(Tag(1), Link(pid)),
            Some(Tie::Spawn) => out.yield_command(Tag(1), Spawn::new(Brief(Ok(()))).monitored()),
            None => {}
        }
        out.wait();
        for event in events {
            match event {
                Event::YieldComplete { result: Err(_), .. } => {
                    assert_eq!(self.exits.load(Relaxed), 0);
                    out.done(Payload::new(false));
                }
                Event::Exit { .. } => {
                    self.exits.fetch_add(1, Relaxed);
                    out.done(Payload::new(true));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[test]
fn a_monitor_is_refused_or_told_of_the_exit_once() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let brief = executor.handle().submit(Brief(Ok(()))).unwrap();
        let exits = Arc::new(AtomicUsize::new(0));
        let tie = Some(Tie::Monitor(brief.pid()));
        let watcher = executor.handle().submit(Watcher { tie, exits: Arc::clone(&exits) }).unwrap();
        let told = block_on(watcher.join()).unwrap().downcast::<bool>().unwrap();
        block_on(brief.join()).unwrap();
        assert_eq!(exits.load(Relaxed), usize::from(told));
        drop((brief, watcher));
        executor.end();
    });
}

#[test]
fn a_process_that_is_monitored_from_its_birth_is_never_missed() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let exits = Arc::new(AtomicUsize::new(0));
        let watcher = Watcher { tie: Some(Tie::Spawn), exits: Arc::clone(&exits) };
        let watcher = executor.handle().submit(watcher).unwrap();
        assert!(block_on(watcher.join()).unwrap().downcast::<bool>().unwrap());
        drop(watcher);
        executor.end();
        assert_eq!(exits.load(Relaxed), 1);
    });
}

/// Two that link to the same one while it fails, and a third thread that ends one of them.
#[test]
fn a_link_is_refused_or_shares_the_failure() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let brief = executor.handle().submit(Brief(Err("the end"))).unwrap();
        let link = |pid| {
            let exits = Arc::new(AtomicUsize::new(0));
            executor.handle().submit(Watcher { tie: Some(Tie::Link(pid)), exits }).unwrap()
        };
        let [one, two] = [link(brief.pid()), link(brief.pid())];
        let victim = two.clone();
        let terminator = thread::spawn(move || victim.terminate());
        for (linked, is_victim) in [(&one, false), (&two, true)] {
            match block_on(linked.join()) {
                Ok(refused) => assert!(!refused.downcast::<bool>().unwrap()),
                Err(exit) if is_victim && exit.is_terminated() => {}
                Err(exit) => assert_eq!(exit.linked(), Some(brief.pid()), "{exit}"),
            }
        }
        // One that is ended by force first, when it is linked, takes the other along.
        let exit = block_on(brief.join()).unwrap_err();
        assert!(exit.is_failed() || exit.linked() == Some(two.pid()), "{exit}");
        terminator.join().unwrap();
        drop((brief, one, two));
        executor.end();
    });
}
