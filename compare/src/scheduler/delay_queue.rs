//! One tokio task that owns a `DelayQueue` and receives its commands over a channel.
//!
//! A key of the queue is only known to the task, and may name another timer as soon as its own has
//! fired. So a one-shot has a slot that the caller and the queue share: the task keeps the key in
//! it while the timer is armed. Commands are taken in batches and all due timers are fired in one
//! poll, which costs less than `select!` in a loop.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::time::{DelayQueue, delay_queue};

use super::subject::Timers;
use super::tokio::Guest;
use crate::receiver::Shot;
use crate::report::{Facts, Standing};

pub(crate) const NAME: &str = "DelayQueue";

/// The maximum number of commands in a batch.
const N_COMMANDS_AT_ONCE: usize = 128;

pub(crate) struct QueueTask {
    commands: UnboundedSender<Command>,
}

/// The key of a timer while it is armed. Only the task locks it, so no thread ever waits.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Mutex<Option<delay_queue::Key>>>);

impl Slot {
    fn replace(&self, key: Option<delay_queue::Key>) -> Option<delay_queue::Key> {
        // A key is valid even after a panic of the thread that held the lock.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut held, key)
    }
}

pub(crate) enum Command {
    Insert { delay: Duration, armed: Armed },
    Remove(Slot),
}

/// An armed timer in the queue.
pub(crate) struct Armed {
    slot: Slot,
    shot: Shot,
}

impl Guest for QueueTask {
    const FACTS: Facts = Facts {
        name: NAME,
        package: Some("tokio-util"),
        standing: Standing::Rival,
        note: "owned by one task in tokio's multi_thread, commands in batches over a channel",
    };

    type Timers = UnboundedSender<Command>;

    fn start(runtime: &Runtime) -> Self {
        let (commands, queue) = unbounded_channel();
        drop(runtime.spawn(serve(queue)));
        Self { commands }
    }

    fn timers(&self) -> UnboundedSender<Command> {
        self.commands.clone()
    }
}

impl Timers for UnboundedSender<Command> {
    type Key = Slot;

    fn schedule(&self, delay: Duration, shot: Shot) -> Slot {
        let slot = Slot(Arc::new(Mutex::new(None)));
        let armed = Armed { slot: slot.clone(), shot };
        let sent = self.send(Command::Insert { delay, armed });
        assert!(sent.is_ok(), "the task takes commands until the last sender is gone");
        slot
    }

    fn cancel(&self, key: Slot) {
        let sent = self.send(Command::Remove(key));
        assert!(sent.is_ok(), "the task takes commands until the last sender is gone");
    }
}

/// The task: returns when the last sender is dropped.
async fn serve(mut commands: UnboundedReceiver<Command>) {
    let mut queue = DelayQueue::new();
    let mut batch = Vec::with_capacity(N_COMMANDS_AT_ONCE);
    poll_fn(|cx| poll_serve(&mut commands, &mut batch, &mut queue, cx)).await;
}

fn poll_serve(
    commands: &mut UnboundedReceiver<Command>,
    batch: &mut Vec<Command>,
    queue: &mut DelayQueue<Armed>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    // Both return `Pending` when tokio's budget for one poll of the task is used up.
    while let Poll::Ready(n) = commands.poll_recv_many(cx, batch, N_COMMANDS_AT_ONCE) {
        if n == 0 {
            return Poll::Ready(());
        }
        for command in batch.drain(..) {
            obey(command, queue);
        }
    }
    while let Poll::Ready(Some(expired)) = queue.poll_expired(cx) {
        let Armed { slot, mut shot } = expired.into_inner();
        slot.replace(None);
        shot.fire();
    }
    Poll::Pending
}

fn obey(command: Command, queue: &mut DelayQueue<Armed>) {
    match command {
        Command::Insert { delay, armed } => {
            let slot = armed.slot.clone();
            let key = queue.insert(armed, delay);
            slot.replace(Some(key));
        }
        Command::Remove(slot) => {
            if let Some(key) = slot.replace(None) {
                drop(queue.remove(&key));
            }
        }
    }
}
