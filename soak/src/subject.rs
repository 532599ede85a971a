//! What is soaked, seen from the load: operations to start, counts to read, an end.

use std::sync::Arc;

use crate::{dice::Dice, ledger::Ledger};

/// Work that is left for later: aborts and terminations of what was started.
pub(crate) type Later = Box<dyn FnOnce() + Send>;

/// What can be started, and how often of a hundred.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// A future that yields a few times and spawns another.
    Yield,
    /// A future that sleeps.
    Sleep,
    /// A future that sleeps long and is aborted.
    Abort,
    /// A future that panics.
    Panic,
    /// A future that awaits the ends of others.
    Join,
    /// A process that gets messages and is asked to stop.
    Send,
    /// A process that gets messages and is terminated.
    Terminate,
    /// A closure on a blocking thread.
    Block,
    /// A process that monitors another, which ends.
    Monitor,
    /// A process that is linked to another, which fails.
    Link,
}

/// The mix.
pub(crate) const MIX: [(Operation, u64); 10] = [
    (Operation::Yield, 25),
    (Operation::Sleep, 20),
    (Operation::Abort, 10),
    (Operation::Panic, 4),
    (Operation::Join, 10),
    (Operation::Send, 15),
    (Operation::Terminate, 6),
    (Operation::Block, 2),
    (Operation::Monitor, 4),
    (Operation::Link, 4),
];

impl Operation {
    /// Draws from the mix.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let mut left = dice.below(MIX.iter().map(|row| row.1).sum());
        for (operation, weight) in MIX {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return operation,
            }
        }
        unreachable!("a number below the sum is below some row")
    }
}

/// What the subject counted itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) spawned: u64,
    pub(crate) finished: u64,
}

/// What is soaked.
pub(crate) trait Subject: Send + Sync {
    /// Starts an operation; all of it is entered in the ledger.
    fn start(&self, operation: Operation, dice: &mut Dice, ledger: &Arc<Ledger>) -> Option<Later>;

    /// Changes the number of workers.
    fn resize(&self, workers: usize) -> Result<(), String>;

    /// Its own counts.
    fn counts(&self) -> Counts;

    /// The state of everything, for who has to find out why it stands still.
    fn picture(&self) -> String;

    /// Ends it; what did not end in time is an error.
    fn stop(self: Box<Self>) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Consumer;

    #[test]
    fn every_operation_of_the_mix_is_drawn() {
        let mut dice = Dice::of(1, Consumer::Resizer);
        let mut n_drawn = [0_u32; MIX.len()];
        (0..10_000).for_each(|_| n_drawn[Operation::draw(&mut dice) as usize] += 1);
        assert!(n_drawn.iter().all(|n| *n > 50), "{n_drawn:?}");
    }
}
