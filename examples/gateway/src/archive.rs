//! The archive: writes batches of readings, each once.

use std::{collections::BTreeMap, io, sync::Arc};

use clockjack::prelude::*;

use crate::store::Reading;

/// A batch of readings.
#[derive(Debug)]
pub struct Store {
    /// The shard that sends it.
    pub shard: u64,
    /// The number of the batch in its shard. A batch that is sent again keeps its number.
    pub batch: u64,
    /// The readings.
    pub readings: Arc<[Reading]>,
    /// Answered when the batch is written, or with the reason why it is not.
    pub reply_to: ReplyTo<Result<(), String>>,
}

/// Writes batches. Writing may block, so the actor has a thread of its own.
pub struct Archive<W> {
    write: W,
    /// The last batch of each shard. A shard sends one batch at a time.
    written: BTreeMap<u64, u64>,
}

impl<W: FnMut(&[Reading]) -> io::Result<()> + Send + 'static> Archive<W> {
    /// An archive that writes by `write`, which writes all readings or none.
    pub fn new(write: W) -> Self {
        Self { write, written: BTreeMap::new() }
    }
}

impl<W: FnMut(&[Reading]) -> io::Result<()> + Send + 'static> Actor for Archive<W> {
    type Msg = Store;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Store) -> Result<Next, Failure> {
        let Store { shard, batch, readings, reply_to } = msg;
        // After a time-out the shard does not know whether the batch was written.
        if self.written.get(&shard).is_some_and(|last| *last >= batch) {
            reply_to.reply(Ok(()));
            return Ok(Next::Stay);
        }
        match (self.write)(&readings) {
            Ok(()) => {
                self.written.insert(shard, batch);
                reply_to.reply(Ok(()));
            }
            // Not a failure of the actor, which would forget what was written. The shard retries.
            Err(error) => reply_to.reply(Err(error.to_string())),
        }
        Ok(Next::Stay)
    }
}

impl<W> core::fmt::Debug for Archive<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Archive").field("written", &self.written).finish_non_exhaustive()
    }
}
