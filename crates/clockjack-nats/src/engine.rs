//! The engine: the side of the connection that the actor of a node uses.

use clockjack_net::engine::{Engine, EngineEvent, LogWrite, Moment};
use tokio::sync::oneshot;

use crate::{inbox::Inbox, outgoing::Queues};

/// See the [module](self). No function waits.
pub(crate) struct NatsEngine {
    pub(crate) queues: Queues,
    pub(crate) inbox: Inbox,
    /// Dropped with the engine, which tells the thread of the connection to finish.
    pub(crate) _alive: oneshot::Sender<()>,
}

impl Engine for NatsEngine {
    fn subscribe(&mut self, incarnation: u64) {
        self.queues.subscribe(incarnation);
    }

    fn publish(&mut self, to: u64, pack: Vec<u8>) {
        self.queues.publish(to, pack);
    }

    fn write(&mut self, _: Moment, write: LogWrite) {
        self.queues.write(write);
    }

    fn poll(&mut self, _: Moment) -> Vec<EngineEvent> {
        self.queues.retry();
        self.inbox.take()
    }
}
