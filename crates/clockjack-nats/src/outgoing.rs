//! What a node sends: packs to other nodes, and writes to the log.
//!
//! Three queues, each with a task: a write waits for its confirmation, up to several seconds while
//! the servers elect a leader, and must delay neither packs nor the renewal of a lease. So leases
//! have a queue of their own, and all other writes another one. The key of a new incarnation must
//! not be written before the node receives packs; so a write waits until all subscriptions that
//! were asked for before it are active.
//!
//! A subscription is active when a message to its own subject has arrived: that the client has
//! flushed it proves nothing to other connections.

use core::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::{collections::VecDeque, sync::Arc};

use async_nats::StatusCode;
use clockjack_net::engine::{Expected, LogWrite};
use futures_util::StreamExt as _;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time,
};

use crate::{
    inbox::Inbox,
    log::{Log, Written},
    names::{Names, node_subject, node_token},
};

/// The most packs that wait for the connection.
const PACKS_MAX: usize = 4_096;

/// The most bytes of packs that wait for the connection.
const PACK_BYTES_MAX: usize = 32 << 20;

/// The most writes that wait for the server.
const WRITES_MAX: usize = 65_536;

/// How the keys of leases begin.
const LEASE: &str = "live.";

/// How long the server may take to confirm a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a write without a condition waits before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// What goes to the task of the packs, in order.
pub(crate) enum Outgoing {
    Subscribe { incarnation: u64, number: u64 },
    Pack { to: u64, pack: Vec<u8> },
}

/// A write, and the number of the last subscription that was asked for before it.
type NumberedWrite = (u64, LogWrite);

/// The sending ends of the queues.
pub(crate) struct Queues {
    packs: mpsc::Sender<Outgoing>,
    leases: mpsc::Sender<NumberedWrite>,
    writes: mpsc::Sender<NumberedWrite>,
    pack_bytes: Arc<AtomicUsize>,
    n_subscriptions: u64,
    /// A subscription that found no room, which is tried again: it must not be lost.
    waiting: VecDeque<Outgoing>,
    inbox: Inbox,
}

/// The receiving ends of the queues.
pub(crate) struct Outgoings {
    packs: mpsc::Receiver<Outgoing>,
    leases: mpsc::Receiver<NumberedWrite>,
    writes: mpsc::Receiver<NumberedWrite>,
    pack_bytes: Arc<AtomicUsize>,
}

pub(crate) fn queues(inbox: Inbox) -> (Queues, Outgoings) {
    let (packs, packs_end) = mpsc::channel(PACKS_MAX);
    let (leases, leases_end) = mpsc::channel(WRITES_MAX);
    let (writes, writes_end) = mpsc::channel(WRITES_MAX);
    let pack_bytes = Arc::new(AtomicUsize::new(0));
    let outgoings = Outgoings {
        packs: packs_end,
        leases: leases_end,
        writes: writes_end,
        pack_bytes: pack_bytes.clone(),
    };
    let waiting = VecDeque::new();
    (Queues { packs, leases, writes, pack_bytes, n_subscriptions: 0, waiting, inbox }, outgoings)
}

impl Queues {
    pub(crate) fn subscribe(&mut self, incarnation: u64) {
        self.n_subscriptions += 1;
        // Only the newest one matters.
        self.waiting.clear();
        self.waiting.push_back(Outgoing::Subscribe { incarnation, number: self.n_subscriptions });
        self.retry();
    }

    /// Hands over a subscription that found no room before.
    pub(crate) fn retry(&mut self) {
        while let Some(one) = self.waiting.pop_front() {
            if let Err(mpsc::error::TrySendError::Full(one)) = self.packs.try_send(one) {
                self.waiting.push_front(one);
                return;
            }
        }
    }

    pub(crate) fn publish(&mut self, to: u64, pack: Vec<u8>) {
        let n_bytes = pack.len();
        let has_room = self.pack_bytes.load(Relaxed) + n_bytes <= PACK_BYTES_MAX;
        self.pack_bytes.fetch_add(n_bytes, Relaxed);
        if !has_room || self.packs.try_send(Outgoing::Pack { to, pack }).is_err() {
            self.pack_bytes.fetch_sub(n_bytes, Relaxed);
            self.inbox.dropped(1);
        }
    }

    pub(crate) fn write(&mut self, write: LogWrite) {
        let queue = if write.key.starts_with(LEASE) { &self.leases } else { &self.writes };
        if queue.try_send((self.n_subscriptions, write)).is_err() {
            self.inbox.dropped(1);
        }
    }
}

/// The names in the subjects of a node.
pub(crate) struct Subjects {
    pub(crate) cluster: String,
    /// The name of this node.
    pub(crate) node: String,
    /// The names of the others.
    pub(crate) names: Names,
}

/// Sends packs and writes until the node drops its ends of the queues, and all are empty.
pub(crate) async fn run(
    client: async_nats::Client,
    subjects: Subjects,
    log: Log,
    inbox: Inbox,
    outgoings: Outgoings,
) {
    let (active, is_active) = watch::channel(0);
    let Outgoings { packs, leases, writes, pack_bytes } = outgoings;
    let sender = PackSender { client, subjects, inbox: inbox.clone(), pack_bytes, active };
    tokio::join!(
        sender.run(packs),
        write_all(log.clone(), inbox.clone(), leases, is_active.clone()),
        write_all(log, inbox, writes, is_active),
    );
}

struct PackSender {
    client: async_nats::Client,
    subjects: Subjects,
    inbox: Inbox,
    pack_bytes: Arc<AtomicUsize>,
    /// The number of the last subscription that is active.
    active: watch::Sender<u64>,
}

impl PackSender {
    async fn run(self, mut packs: mpsc::Receiver<Outgoing>) {
        // A pack names this subject for answers. There are none but the one of the server, that
        // nobody has subscribed to the subject of the pack.
        let answers = self.client.new_inbox();
        let reports =
            tokio::spawn(no_responders(self.client.clone(), answers.clone(), self.inbox.clone()));
        let mut subscription: Option<AbortOnDrop> = None;
        while let Some(one) = packs.recv().await {
            match one {
                Outgoing::Subscribe { incarnation, number } => {
                    drop(subscription.take());
                    subscription = self.subscribe(&packs, incarnation).await;
                    self.active.send_replace(number);
                }
                Outgoing::Pack { to, pack } => {
                    self.pack_bytes.fetch_sub(pack.len(), Relaxed);
                    // An incarnation that has ended has no name any more.
                    let Some(token) = self.subjects.names.get(to) else {
                        self.inbox.push_no_responders(to);
                        continue;
                    };
                    let subject = format!("{}.l", node_subject(&self.subjects.cluster, &token, to));
                    let answer_to = format!("{answers}.{to:016x}");
                    let sent =
                        self.client.publish_with_reply(subject, answer_to, pack.into()).await;
                    if sent.is_err() {
                        self.inbox.dropped(1);
                    }
                }
            }
        }
        // What was published goes out before the connection ends.
        let _flushed = self.client.flush().await;
        reports.abort();
    }

    /// Subscribes to the subjects of an incarnation, and waits until the subscription is active.
    async fn subscribe(
        &self,
        packs: &mpsc::Receiver<Outgoing>,
        incarnation: u64,
    ) -> Option<AbortOnDrop> {
        let token = node_token(&self.subjects.node);
        let subject = node_subject(&self.subjects.cluster, &token, incarnation);
        let control = format!("{subject}.c");
        let arrived = Arc::new(Notify::new());
        let mut wait = Duration::from_millis(50);
        // It fails when the client is closed, which ends everything else, too.
        let mut subscriber = self.client.subscribe(format!("{subject}.*")).await.ok()?;
        let (inbox, has_arrived, own) = (self.inbox.clone(), arrived.clone(), control.clone());
        let task = AbortOnDrop(tokio::spawn(async move {
            while let Some(message) = subscriber.next().await {
                if message.subject.as_str() == own && message.payload.is_empty() {
                    has_arrived.notify_one();
                } else {
                    inbox.push_pack(message.payload.into());
                }
            }
        }));
        while !packs.is_closed() {
            let _sent = self.client.publish(control.clone(), Vec::new().into()).await;
            if time::timeout(wait, arrived.notified()).await.is_ok() {
                break;
            }
            wait = (wait * 2).min(Duration::from_secs(2));
        }
        Some(task)
    }
}

/// Checks that the server lets this node receive frames and send them: the future completes when
/// an empty frame to itself has arrived. No incarnation has this subject.
pub(crate) async fn check_frames(client: &async_nats::Client, cluster: &str, node: &str) {
    let subject = node_subject(cluster, &node_token(node), 0);
    let Ok(mut subscriber) = client.subscribe(format!("{subject}.*")).await else { return };
    for kind in ["c", "l"] {
        loop {
            let _sent = client.publish(format!("{subject}.{kind}"), Vec::new().into()).await;
            // The client has flushed the subscription, and the server may not have it yet.
            let arrived = time::timeout(RETRY, subscriber.next()).await;
            if arrived
                .is_ok_and(|message| message.is_none_or(|message| message.subject.ends_with(kind)))
            {
                break;
            }
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports packs that found no subscriber.
async fn no_responders(client: async_nats::Client, answers: String, inbox: Inbox) {
    let Ok(mut subscriber) = client.subscribe(format!("{answers}.*")).await else { return };
    while let Some(message) = subscriber.next().await {
        let to = message.subject.rsplit('.').next();
        let to = to.and_then(|to| u64::from_str_radix(to, 16).ok());
        if let (Some(StatusCode::NO_RESPONDERS), Some(to)) = (message.status, to) {
            inbox.push_no_responders(to);
        }
    }
}

/// Writes that the server has not answered, which are tried again when no others wait.
#[derive(Default)]
struct Unanswered(VecDeque<NumberedWrite>);

impl Unanswered {
    /// The next write; waits for one. None if the queue is closed and all were answered.
    async fn next(&mut self, writes: &mut mpsc::Receiver<NumberedWrite>) -> Option<NumberedWrite> {
        let new = match writes.try_recv() {
            Ok(new) => Some(new),
            Err(_) if !self.0.is_empty() => return self.0.pop_front(),
            Err(_) => writes.recv().await,
        };
        if let Some((_, new)) = &new
            && new.expected == Expected::Any
        {
            // It says what has become of its key.
            self.0.retain(|(_, old)| old.key != new.key);
        }
        new
    }
}

/// Waits until the subscription of a number is active.
///
/// What the channel returns is a read lock of its value. The task of the packs runs on the same
/// thread and changes that value: a lock that is kept across an await blocks the thread for ever.
async fn wait_until_active(active: &mut watch::Receiver<u64>, number: u64) {
    // An error means that the other task has ended, and the node with it; the last writes of the
    // node end its membership.
    drop(active.wait_for(|active| *active >= number).await);
}

async fn write_all(
    log: Log,
    inbox: Inbox,
    mut writes: mpsc::Receiver<NumberedWrite>,
    mut active: watch::Receiver<u64>,
) {
    let mut unanswered = Unanswered::default();
    while let Some((number, write)) = unanswered.next(&mut writes).await {
        wait_until_active(&mut active, number).await;
        let written = time::timeout(WRITE_TIMEOUT, log.write(&write)).await;
        let is_known = matches!(written, Ok(Ok(Written::Accepted | Written::Refused)));
        // The node repeats a write with a condition by itself, with a condition that is true then.
        // One without a condition may be written twice, and must not be lost.
        if is_known || write.expected != Expected::Any {
            continue;
        }
        if writes.is_closed() {
            inbox.dropped(1);
            continue;
        }
        // Behind those that wait: a lease waits no longer than one write takes.
        unanswered.0.push_back((number, write));
        time::sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, value: Option<u8>) -> LogWrite {
        let value = value.map(|value| vec![value]);
        LogWrite { key: key.into(), value, expected: Expected::Any, ttl: None }
    }

    #[test]
    fn a_lease_waits_behind_no_service_and_has_room_when_services_have_none() {
        let inbox = Inbox::default();
        let (mut queues, mut outgoings) = queues(inbox.clone());
        for n in 0..WRITES_MAX {
            queues.write(write(&format!("reg.printer.{n}"), None));
        }
        queues.write(write("reg.printer.more", None));
        queues.write(write("live.1", Some(1)));
        let lease = outgoings.leases.try_recv().expect("it has a queue of its own");
        assert_eq!(lease, (0, write("live.1", Some(1))));
        assert_eq!(inbox.take(), [clockjack_net::engine::EngineEvent::Dropped(1)]);
    }

    #[tokio::test]
    async fn a_write_without_an_answer_goes_behind_those_that_wait_and_not_behind_a_newer_one() {
        let (sender, mut writes) = mpsc::channel(WRITES_MAX);
        let mut unanswered = Unanswered::default();
        for key in ["a", "b"] {
            unanswered.0.push_back((0, write(key, None)));
        }
        for (key, value) in [("c", 1), ("b", 2), ("c", 3)] {
            sender.send((1, write(key, Some(value)))).await.expect("there is room");
        }
        drop(sender);
        let mut written = Vec::new();
        while let Some(next) = unanswered.next(&mut writes).await {
            written.push(next);
        }
        let new = [("c", 1), ("b", 2), ("c", 3)].map(|(key, value)| (1, write(key, Some(value))));
        assert_eq!(written[..3], new, "each of them, in their order");
        assert_eq!(written[3..], [(0, write("a", None))]);
    }
}
