//! Both ends of a tie forget each other: what comes and goes leaves nothing behind.

use clockjack_exec::{
    Event, Events, Failure, Payload, Pid, Process, StepOutput, Tag,
    builtin::{Link, Monitor, SleepFor, Spawn, Unlink, Unmonitor},
};
use clockjack_testing::allocation::Counting;

use crate::bench::{Mortal, Run, millis};

#[global_allocator]
static COUNTING: Counting = Counting::new();

/// What a round of a [`Rounds`] is.
#[derive(Clone, Copy)]
enum Round {
    /// Monitors and links, and undoes both.
    Tie(Pid),
    /// Starts a process that ends at once, monitored and linked.
    Spawn,
    /// Sleeps for a moment.
    Sleep,
}

/// Does something over and over, a round for each answer that ends one.
struct Rounds {
    round: Round,
    left: u32,
}

/// Ends in its first step.
struct Brief;

impl Process for Brief {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::unit());
        Ok(())
    }
}

impl Rounds {
    fn begin(&self, out: &mut StepOutput) {
        match self.round {
            Round::Tie(pid) => {
                out.yield_command(Tag(1), Monitor(pid));
                out.yield_command(Tag(1), Link(pid));
                out.yield_command(Tag(1), Unlink(pid));
                out.yield_command(Tag(0), Unmonitor(pid));
            }
            Round::Spawn => out.yield_command(Tag(1), Spawn::new(Brief).monitored().linked()),
            Round::Sleep => out.yield_command(Tag(0), SleepFor(millis(1))),
        }
    }
}

impl Process for Rounds {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            let is_over = match event {
                Event::Message(n) => {
                    self.left = n;
                    self.begin(out);
                    false
                }
                Event::YieldComplete { tag, result } => {
                    result?;
                    tag == Tag(0)
                }
                Event::Exit { .. } => true,
                _ => return Err(Failure::msg("an event that was not expected")),
            };
            if is_over {
                self.left -= 1;
                if self.left > 0 {
                    self.begin(out);
                }
            }
        }
        out.idle();
        Ok(())
    }
}

/// A byte left behind in each round would show in one more.
const MANY: u32 = 20_000;

/// What a thousand rounds need is there afterwards; many rounds more must need no more.
fn check(n_rounds: u32, round: impl FnOnce(Pid) -> Round) {
    let mut run = Run::new();
    let other = run.exec.submit(Mortal).unwrap();
    let rounds = Rounds { round: round(other.pid()), left: 0 };
    let it = run.exec.submit(rounds).unwrap();
    let mut left = [0; 2];
    for (left, n) in left.iter_mut().zip([1000, n_rounds]) {
        it.tell(n).unwrap();
        run.run_for(u64::from(n) + 1);
        assert!(!it.is_finished(), "a round failed");
        *left = COUNTING.counts().live_bytes;
    }
    assert_eq!(left[1] - left[0], 0, "bytes are left behind");
    let stats = run.handle().stats();
    assert_eq!(stats.spawned - stats.finished, 2);
    // The process that was linked so often has nobody to notify.
    other.terminate();
    run.idle();
    assert!(!it.is_finished());
}

#[test]
fn ties_that_come_and_go_leave_nothing() {
    check(MANY, Round::Tie);
}

#[test]
fn short_lives_leave_nothing() {
    check(MANY, |_| Round::Spawn);
}

#[test]
fn many_sleeps_leave_nothing() {
    check(10_000, |_| Round::Sleep);
}
