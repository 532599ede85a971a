//! Processes on the local executor, and so their state word: processes become ready, are stepped,
//! are asked to stop and are terminated, in any order.

use std::{
    cell::RefCell,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use clockjack_exec::{
    Commands, Event, Events, Failure, JoinHandle, Limits, LocalExecutor, Payload, Process,
    ProcessRef, StepOutput,
};
use clockjack_testing::toolbox::{ByHand, Panics};
use clockjack_time::{Resolution, TickSpan};

use crate::input::Input;

const PROCESSES_MAX: usize = 6;

/// Starts processes, sends to them, asks them to stop, terminates them, and steps them under a
/// seed. Each process receives the accepted messages, once and in order, until it stops; it stops
/// once, for the right reason; and no process is alive after the shutdown.
pub fn process(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (mut host, clock) = ByHand::new(Resolution::MILLI);
    host.seed = u64::from(input.byte());
    // The fuzzer detects panics.
    host.panics = Panics::GoThrough;
    let limits = Limits::SMALL.processes(PROCESSES_MAX);
    let mut executor =
        LocalExecutor::new(host, limits, Commands::new()).expect("there is no command");
    let mut pairs: Vec<Pair> = Vec::new();
    while !input.is_empty() {
        let nth = input.below(256);
        match (input.below(8), pairs.len()) {
            (0, _) | (_, 0) => start(&executor, &mut pairs),
            (1..=3, n) => pairs[nth % n].tell(input.byte()),
            (4, n) => pairs[nth % n].ask_to_stop(),
            (5, n) => pairs[nth % n].terminate(),
            (6, _) => _ = executor.step_many(1 + nth % 8),
            _ => {
                clock.advance_ticks(TickSpan::new(1));
                executor.run_until_idle();
                pairs.iter_mut().for_each(Pair::check_idle);
            }
        }
        pairs.iter().for_each(Pair::check);
    }
    executor.run_until_idle();
    pairs.iter_mut().for_each(Pair::check_idle);
    // Every process stops when it is asked to.
    let report = executor.shutdown(Duration::ZERO);
    assert!(report.stragglers.is_empty(), "{report:?}");
    for pair in &mut pairs {
        assert!(pair.process.is_finished() && pair.has_ended(), "it was left over");
    }
}

fn start(executor: &LocalExecutor, pairs: &mut Vec<Pair>) {
    let heard = Rc::new(RefCell::new(Vec::new()));
    match executor.submit(Hearer(Rc::clone(&heard))) {
        Ok(process) => {
            assert!(executor.live_len() <= PROCESSES_MAX, "one too many");
            let join = Some(process.join());
            pairs.push(Pair { process, join, heard, accepted: Vec::new(), must_stop: false });
        }
        Err(_) => {
            // A stopped process keeps its slot as long as a handle may ask for it.
            assert!(pairs.len() >= PROCESSES_MAX, "refused although there is room");
            pairs.retain(|pair| !pair.process.is_finished());
        }
    }
}

/// The meaning of a message: what the process does when it receives it.
const END: u8 = 250;
const FAIL: u8 = 251;
const RETURN: u8 = 252;

/// Records the messages that it receives.
struct Hearer(Rc<RefCell<Vec<u8>>>);

impl Process for Hearer {
    type Message = u8;

    fn step(&mut self, events: &mut Events<'_, u8>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Message(what) => {
                    self.0.borrow_mut().push(what);
                    match what {
                        END => {
                            out.done(Payload::new(()));
                            return Ok(());
                        }
                        FAIL => return Err(Failure::msg("a requested failure")),
                        // The remaining messages stay queued, and the process is stepped again.
                        RETURN => return Ok(()),
                        _ => {}
                    }
                }
                Event::Cancel { .. } => {
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

/// A process, and its expected state.
struct Pair {
    process: ProcessRef<u8>,
    join: Option<JoinHandle<Payload>>,
    heard: Rc<RefCell<Vec<u8>>>,
    accepted: Vec<u8>,
    /// It was asked to stop, or terminated: it need not receive the remaining messages.
    must_stop: bool,
}

impl Pair {
    fn tell(&mut self, what: u8) {
        let was_finished = self.process.is_finished();
        match self.process.tell(what) {
            Ok(()) => {
                assert!(!was_finished, "a process that has ended took a message");
                self.accepted.push(what);
            }
            Err(refused) => assert_eq!(refused.into_inner(), what, "the error has the message"),
        }
    }

    fn ask_to_stop(&mut self) {
        self.process.cancel("fuzz");
        self.must_stop = true;
    }

    fn terminate(&mut self) {
        self.process.terminate();
        self.must_stop = true;
    }

    /// Holds always: it has received a prefix of the accepted messages.
    fn check(&self) {
        assert!(self.accepted.starts_with(&self.heard.borrow()), "lost, doubled or out of order");
    }

    /// Holds when nothing is ready: it has received all messages, or has stopped.
    fn check_idle(&mut self) {
        self.check();
        let last = self.accepted.iter().position(|what| [END, FAIL].contains(what));
        let must_end = last.is_some() || self.must_stop;
        assert_eq!(self.process.is_finished(), must_end, "it should have ended, or should not");
        if self.must_stop {
            assert!(self.has_ended());
            return;
        }
        let n = last.map_or(self.accepted.len(), |at| at + 1);
        assert_eq!(*self.heard.borrow(), self.accepted[..n], "something was slept on");
        assert_eq!(self.has_ended(), must_end);
    }

    /// Whether the joiner has been notified of the exit, which happens once.
    fn has_ended(&mut self) -> bool {
        let Some(join) = &mut self.join else { return true };
        let mut cx = Context::from_waker(Waker::noop());
        match std::pin::Pin::new(join).poll(&mut cx) {
            Poll::Ready(_) => {
                self.join = None;
                true
            }
            Poll::Pending => false,
        }
    }
}
