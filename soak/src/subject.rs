//! The tested subject, as the load sees it: operations to start, counts to read, a shutdown.

use std::sync::Arc;

use crate::{dice::Dice, ledger::Ledger};

/// Postponed work: aborts and terminations of operations that were started.
pub(crate) type Later = Box<dyn FnOnce() + Send>;

/// The operations of the mix.
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
    /// A future that joins others.
    Join,
    /// A process that receives messages and is asked to stop.
    Send,
    /// A process that receives messages and is terminated.
    Terminate,
    /// A closure on a blocking thread.
    Block,
    /// A process that monitors another one, which stops.
    Monitor,
    /// A process that is linked to another, which fails.
    Link,
}

/// The mix: each operation with its share in percent.
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
    /// Draws an operation from the mix.
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

/// The subject's own counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) spawned: u64,
    pub(crate) finished: u64,
}

/// The tested subject.
pub(crate) trait Subject: Send + Sync {
    /// Starts an operation; every part of it opens an entry in the ledger.
    fn start(&self, operation: Operation, dice: &mut Dice, ledger: &Arc<Ledger>) -> Option<Later>;

    /// Changes the number of workers.
    fn resize(&self, workers: usize) -> Result<(), String>;

    /// The subject's own counts.
    fn counts(&self) -> Counts;

    /// A dump of the whole state, for the analysis of a stall.
    fn dump(&self) -> String;

    /// Shuts the subject down; fails if that takes too long.
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
