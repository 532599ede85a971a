//! What a node sends: packs to other nodes, and writes to the log.
//!
//! Two queues, each with a task: a write waits for its confirmation, up to several seconds while
//! the servers elect a leader, and must not delay packs. The key of a new incarnation must not be
//! written before the node receives packs; so a write waits until all subscriptions that were asked
//! for before it are active.
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

/// How long the server may take to confirm a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a write without a condition waits before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// What goes to the task of the packs, in order.
pub(crate) enum Outgoing {
    Subscribe { incarnation: u64, number: u64 },
    Pack { to: u64, pack: Vec<u8> },
}

/// The sending ends of both queues.
pub(crate) struct Queues {
    packs: mpsc::Sender<Outgoing>,
    writes: mpsc::Sender<(u64, LogWrite)>,
    pack_bytes: Arc<AtomicUsize>,
    n_subscriptions: u64,
    /// A subscription that found no room, which is tried again: it must not be lost.
    waiting: VecDeque<Outgoing>,
    inbox: Inbox,
}

/// The receiving ends of both queues.
pub(crate) struct Outgoings {
    packs: mpsc::Receiver<Outgoing>,
    writes: mpsc::Receiver<(u64, LogWrite)>,
    pack_bytes: Arc<AtomicUsize>,
}

pub(crate) fn queues(inbox: Inbox) -> (Queues, Outgoings) {
    let (packs, packs_end) = mpsc::channel(PACKS_MAX);
    let (writes, writes_end) = mpsc::channel(WRITES_MAX);
    let pack_bytes = Arc::new(AtomicUsize::new(0));
    let outgoings =
        Outgoings { packs: packs_end, writes: writes_end, pack_bytes: pack_bytes.clone() };
    let waiting = VecDeque::new();
    (Queues { packs, writes, pack_bytes, n_subscriptions: 0, waiting, inbox }, outgoings)
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
        if self.writes.try_send((self.n_subscriptions, write)).is_err() {
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

/// Sends packs and writes until the node drops its ends of the queues, and both are empty.
pub(crate) async fn run(
    client: async_nats::Client,
    subjects: Subjects,
    log: Log,
    inbox: Inbox,
    outgoings: Outgoings,
) {
    let (active, is_active) = watch::channel(0);
    let Outgoings { packs, writes, pack_bytes } = outgoings;
    let sender = PackSender { client, subjects, inbox: inbox.clone(), pack_bytes, active };
    tokio::join!(sender.run(packs), write_all(log, inbox, writes, is_active));
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

async fn write_all(
    log: Log,
    inbox: Inbox,
    mut writes: mpsc::Receiver<(u64, LogWrite)>,
    mut active: watch::Receiver<u64>,
) {
    while let Some((number, write)) = writes.recv().await {
        // An error means that the other task has ended, and the node with it; its last writes end
        // its membership.
        let _is_active = active.wait_for(|active| *active >= number).await;
        loop {
            let written = time::timeout(WRITE_TIMEOUT, log.write(&write)).await;
            let is_known = matches!(written, Ok(Ok(Written::Accepted | Written::Refused)));
            // The node repeats a write with a condition by itself, with a condition that is true
            // then. One without a condition may be written twice, and must not be lost.
            if is_known || write.expected != Expected::Any {
                break;
            }
            if writes.is_closed() {
                inbox.dropped(1);
                break;
            }
            time::sleep(RETRY).await;
        }
    }
}
