//! Processes on the local executor, and so their state word: who is made ready, stepped, asked to
//! stop and ended, in any order.

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

/// Starts processes, tells them things, asks them to stop, ends them, and steps them under a seed.
/// Each hears what was accepted, once and in order, until it ends; it ends once, as it should; and
/// nothing is alive after the shutdown.
pub fn process(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (mut host, clock) = ByHand::new(Resolution::MILLI);
    host.seed = u64::from(input.byte());
    // A panic is what the fuzzer looks for.
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
                pairs.iter_mut().for_each(Pair::check_settled);
            }
        }
        pairs.iter().for_each(Pair::check);
    }
    executor.run_until_idle();
    pairs.iter_mut().for_each(Pair::check_settled);
    // Everybody ends when asked.
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
            pairs.push(Pair { process, join, heard, accepted: Vec::new(), is_told_off: false });
        }
        Err(_) => {
            // One that has ended has its place for as long as somebody may ask for it.
            assert!(pairs.len() >= PROCESSES_MAX, "refused although there is room");
            pairs.retain(|pair| !pair.process.is_finished());
        }
    }
}

/// What a message says: what to do when it is heard.
const END: u8 = 250;
const FAIL: u8 = 251;
const GO_ON: u8 = 252;

/// Writes down what it hears.
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
                        FAIL => return Err(Failure::msg("as it was told")),
                        // What is left stays queued, and it is stepped again.
                        GO_ON => return Ok(()),
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

/// A process, and what is known of it.
struct Pair {
    process: ProcessRef<u8>,
    join: Option<JoinHandle<Payload>>,
    heard: Rc<RefCell<Vec<u8>>>,
    accepted: Vec<u8>,
    /// It was asked to stop, or ended: what it has not heard by then it need not hear.
    is_told_off: bool,
}

impl Pair {
    fn tell(&mut self, what: u8) {
        let was_finished = self.process.is_finished();
        match self.process.tell(what) {
            Ok(()) => {
                assert!(!was_finished, "a process that has ended took a message");
                self.accepted.push(what);
            }
            Err(refused) => assert_eq!(refused.into_inner(), what, "the message comes back"),
        }
    }

    fn ask_to_stop(&mut self) {
        self.process.cancel("fuzz");
        self.is_told_off = true;
    }

    fn terminate(&mut self) {
        self.process.terminate();
        self.is_told_off = true;
    }

    /// Always: it has heard a beginning of what was accepted.
    fn check(&self) {
        assert!(self.accepted.starts_with(&self.heard.borrow()), "lost, doubled or out of order");
    }

    /// Where nobody has anything to do: it has heard everything, or has ended.
    fn check_settled(&mut self) {
        self.check();
        let last = self.accepted.iter().position(|what| [END, FAIL].contains(what));
        let must_end = last.is_some() || self.is_told_off;
        assert_eq!(self.process.is_finished(), must_end, "it should have ended, or should not");
        if self.is_told_off {
            assert!(self.has_ended());
            return;
        }
        let n = last.map_or(self.accepted.len(), |at| at + 1);
        assert_eq!(*self.heard.borrow(), self.accepted[..n], "something was slept on");
        assert_eq!(self.has_ended(), must_end);
    }

    /// Whether the joiner was told of the end; it is told once.
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
