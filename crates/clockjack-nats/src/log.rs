//! The log: a stream in JetStream with the last value of each key, read in order.
//!
//! The stream is a key-value bucket in the sense of the NATS tools: `$KV.CLUSTER.KEY`, one message
//! per key, with a time to live per message and markers where a key has ended. A reader gets a
//! *snapshot* first, all messages that the stream has, and then each new one. It begins again with
//! a snapshot after each reconnect, and whenever its consumer fails.
//!
//! # Why a snapshot misses no key
//!
//! The consumer delivers the messages in the order of the stream, and each says how many follow.
//! The snapshot is complete when none does. A key that is written while the snapshot is read moves
//! to the end of the stream; between the removal of its old message and the delivery of its new
//! one, the server may say that nothing follows. So a key that this reader has seen before and that
//! is not in the snapshot is looked up one by one: a node must not be reported as lost by such a
//! race. A key that the reader has never seen arrives later, as a new entry.
//!
//! # When the log begins again
//!
//! If the stream was deleted and created again, or if the server has lost entries that it had
//! confirmed, sequence numbers are used again. The time of creation and the last sequence number
//! show it; then every member is lost ([`EngineEvent::LogReplaced`]). A log that is shorter for a
//! moment only is that of a server which does not lead any more.

use core::{error::Error, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use async_nats::{
    HeaderMap,
    jetstream::{
        self,
        consumer::{DeliverPolicy, push},
        stream::{self, DiscardPolicy, LastRawMessageErrorKind},
    },
};
use clockjack_net::{
    LogEvent,
    engine::{EngineEvent, Expected, LogWrite},
};
use futures_util::StreamExt as _;
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use crate::{inbox::Inbox, names::Names};

/// How long a reader of the log may be away until it needs a snapshot: how long the server keeps
/// the marker of a key that has ended.
const MARKER_TTL: Duration = Duration::from_secs(600);

/// How long the reader waits before it tries again.
const RETRY: Duration = Duration::from_millis(250);

/// How long the reader waits for an entry until it asks the server whether there is one. A process
/// that was stopped for some seconds continues with a consumer that the server has forgotten, and
/// the client does not always notice. Members renew their leases more often than this.
const SILENCE: Duration = Duration::from_secs(3);

/// How long the log may be shorter than what was read of it before that counts as a loss. A server
/// that was stopped while it was the leader answers with what it had then, until it learns that
/// another one leads.
const BEHIND: Duration = Duration::from_secs(5);

/// Whatever the client reports; shown to nobody but the reader of an error.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// The stream of the log.
#[derive(Clone)]
pub(crate) struct Log(Arc<LogInner>);

struct LogInner {
    client: async_nats::Client,
    jetstream: jetstream::Context,
    cluster: String,
    replicas: usize,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Accepted,
    /// The condition was not true, or there was nothing to end.
    Refused,
}

impl Log {
    pub(crate) fn new(client: async_nats::Client, cluster: &str, replicas: usize) -> Self {
        let jetstream = jetstream::new(client.clone());
        Self(Arc::new(LogInner { client, jetstream, cluster: cluster.into(), replicas }))
    }

    pub(crate) fn jetstream(&self) -> &jetstream::Context {
        &self.0.jetstream
    }

    pub(crate) fn name(&self) -> String {
        format!("KV_{}", self.0.cluster)
    }

    pub(crate) fn prefix(&self) -> String {
        format!("$KV.{}.", self.0.cluster)
    }

    fn config(&self) -> stream::Config {
        stream::Config {
            name: self.name(),
            subjects: vec![format!("{}>", self.prefix())],
            max_messages_per_subject: 1,
            num_replicas: self.0.replicas,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            allow_message_ttl: true,
            subject_delete_marker_ttl: Some(MARKER_TTL),
            ..stream::Config::default()
        }
    }

    /// The stream; it is created if it does not exist.
    pub(crate) async fn open(&self) -> Result<stream::Stream, AnyError> {
        let mut stream = self.0.jetstream.get_or_create_stream(self.config()).await?;
        let found = &stream.info().await?.config;
        if found.max_messages_per_subject != 1 || !found.allow_message_ttl {
            let name = self.name();
            return Err(format!(
                "the stream {name} exists with other settings; delete it, or choose another \
                 `cluster`"
            )
            .into());
        }
        Ok(stream)
    }

    /// Writes; an error means that the outcome is not known.
    pub(crate) async fn write(&self, write: &LogWrite) -> Result<Written, AnyError> {
        let subject = format!("{}{}", self.prefix(), write.key);
        let expected = match (write.expected, &write.value) {
            (Expected::Sequence(sequence), _) => Some(sequence),
            (Expected::Absent, Some(_)) => Some(0),
            (Expected::Any, Some(_)) => None,
            // A marker for a key that has no value would be an entry without a meaning.
            _ => match self.last(&subject).await? {
                Some((sequence, Some(_))) if write.expected == Expected::Any => Some(sequence),
                _ => return Ok(Written::Refused),
            },
        };
        let written = self.publish(&subject, write, expected).await?;
        if written == Written::Refused && write.expected == Expected::Absent {
            // Perhaps only the marker of an earlier value is there.
            if let Some((sequence, None)) = self.last(&subject).await? {
                return self.publish(&subject, write, Some(sequence)).await;
            }
        }
        Ok(written)
    }

    /// Checks that the server lets this node write leases and services: an error is what it says
    /// otherwise, if it says anything. Nothing is written, because the conditions are never true.
    pub(crate) async fn check_writable(&self) -> Result<(), AnyError> {
        for key in ["live.check", "reg.check.check.check.check"] {
            let subject = format!("{}{key}", self.prefix());
            let value = Some(Vec::new());
            let expected = Expected::Sequence(u64::MAX);
            let write = LogWrite { key: key.into(), value, expected, ttl: None };
            self.publish(&subject, &write, Some(u64::MAX)).await?;
        }
        Ok(())
    }

    async fn publish(
        &self,
        subject: &str,
        write: &LogWrite,
        expected: Option<u64>,
    ) -> Result<Written, AnyError> {
        let mut headers = HeaderMap::new();
        if let Some(sequence) = expected {
            headers.insert("Nats-Expected-Last-Subject-Sequence", sequence.to_string());
        }
        if write.value.is_none() {
            headers.insert("KV-Operation", "DEL");
        }
        let ttl = if write.value.is_none() { Some(MARKER_TTL) } else { write.ttl };
        if let Some(ttl) = ttl {
            // The server takes whole seconds, at least one.
            let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
            headers.insert("Nats-TTL", format!("{}s", seconds.max(1)));
        }
        let payload = write.value.clone().unwrap_or_default().into();
        let publish = self.0.jetstream.publish_with_headers(subject.to_owned(), headers, payload);
        match publish.await?.await {
            Ok(_) => Ok(Written::Accepted),
            Err(error)
                if error.kind() == jetstream::context::PublishErrorKind::WrongLastSequence =>
            {
                Ok(Written::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The last message of a subject: its sequence number, and its value unless it is a marker.
    async fn last(&self, subject: &str) -> Result<Option<(u64, Option<Vec<u8>>)>, AnyError> {
        let stream = self.0.jetstream.get_stream_no_info(self.name()).await?;
        match stream.get_last_raw_message_by_subject(subject).await {
            Ok(message) => {
                let is_marker = is_marker(&message.headers);
                let value = (!is_marker).then(|| message.payload.to_vec());
                Ok(Some((message.sequence, value)))
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) fn is_marker(headers: &HeaderMap) -> bool {
    headers.get("KV-Operation").is_some() || headers.get("Nats-Marker-Reason").is_some()
}

/// The server has entries that its consumer does not deliver.
const SILENT: &str = "the consumer delivers nothing";

/// What is known about the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connection {
    /// How often it was lost.
    pub(crate) n_lost: u64,
    pub(crate) is_up: bool,
}

/// Reads the log for a node.
pub(crate) struct LogReader {
    log: Log,
    inbox: Inbox,
    names: Names,
    connection: watch::Receiver<Connection>,
    /// How often the connection was lost, as far as the node was notified.
    n_lost: u64,
    /// The keys that have a value, with their sequence numbers.
    known: BTreeMap<String, u64>,
    /// The largest sequence number that was read.
    seen: u64,
    /// When the stream was created, in nanoseconds.
    created: Option<i128>,
    /// Since when the log has been shorter than what was read of it.
    behind: Option<Instant>,
}

impl LogReader {
    pub(crate) fn new(
        log: Log,
        inbox: Inbox,
        names: Names,
        connection: watch::Receiver<Connection>,
    ) -> Self {
        let known = BTreeMap::new();
        let (n_lost, seen, created, behind) = (0, 0, None, None);
        Self { log, inbox, names, connection, n_lost, known, seen, created, behind }
    }

    /// Reads until the task is aborted.
    pub(crate) async fn run(mut self) {
        loop {
            let mut connection = self.connection.clone();
            let n_lost = self.n_lost;
            let lost = tokio::select! {
                biased;
                lost = connection.wait_for(|now| now.n_lost > n_lost) => {
                    Some(lost.map(|now| now.n_lost))
                }
                // It ends when the consumer fails: the stream or its server may be gone.
                _failed = self.read() => None,
            };
            match lost {
                Some(Ok(n_lost)) => {
                    self.n_lost = n_lost;
                    self.inbox.push_log(EngineEvent::Disconnected).await;
                    if self.connection.wait_for(|now| now.is_up).await.is_err() {
                        return;
                    }
                    self.inbox.push_log(EngineEvent::Reconnected).await;
                }
                Some(Err(_)) => return,
                None => time::sleep(RETRY).await,
            }
        }
    }

    /// Reads a snapshot and then each new entry, until something fails.
    async fn read(&mut self) -> Result<(), AnyError> {
        let mut stream = self.log.open().await?;
        let info = stream.info().await?;
        let (created, last) = (info.created.unix_timestamp_nanos(), info.state.last_sequence);
        let is_another = self.created.is_some_and(|before| before != created);
        if last >= self.seen {
            self.behind = None;
        } else if !is_another && self.behind.get_or_insert_with(Instant::now).elapsed() < BEHIND {
            return Err("the server is behind".into());
        }
        if is_another || last < self.seen {
            self.behind = None;
            self.known.clear();
            self.seen = 0;
            self.inbox.push_log(EngineEvent::LogReplaced).await;
        }
        self.created = Some(created);
        let config = push::OrderedConfig {
            deliver_subject: self.log.0.client.new_inbox(),
            deliver_policy: DeliverPolicy::All,
            ..push::OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await?;
        let mut n_pending = consumer.cached_info().num_pending;
        let mut messages = consumer.messages().await?;
        let mut snapshot = BTreeMap::new();
        let mut sequence = last;
        while n_pending > 0 {
            let next = time::timeout(SILENCE, messages.next()).await;
            let message = next.map_err(|_| SILENT)?.ok_or("the consumer has ended")??;
            let (event, n_after) = self.entry(&message)?;
            n_pending = n_after;
            sequence = sequence.max(event.sequence);
            snapshot.insert(event.key.clone(), event);
        }
        self.look_up_missing(&mut snapshot).await?;
        let mut entries: Vec<LogEvent> = snapshot.into_values().collect();
        entries.retain(|entry| entry.value.is_some());
        entries.sort_by_key(|entry| entry.sequence);
        self.known = entries.iter().map(|entry| (entry.key.clone(), entry.sequence)).collect();
        self.seen = sequence;
        self.names.read_all(&entries);
        self.inbox.push_log(EngineEvent::Snapshot { sequence, entries }).await;
        loop {
            let message = match time::timeout(SILENCE, messages.next()).await {
                Ok(next) => next.ok_or("the consumer has ended")??,
                Err(_) if stream.info().await?.state.last_sequence > self.seen => {
                    return Err(SILENT.into());
                }
                Err(_) => continue,
            };
            let (event, _) = self.entry(&message)?;
            self.seen = self.seen.max(event.sequence);
            match event.value {
                Some(_) => self.known.insert(event.key.clone(), event.sequence),
                None => self.known.remove(&event.key),
            };
            self.names.read(&event);
            self.inbox.push_log(EngineEvent::Log(event)).await;
        }
    }

    /// An entry, and how many follow.
    fn entry(&self, message: &jetstream::Message) -> Result<(LogEvent, u64), AnyError> {
        let info = message.info()?;
        let prefix = self.log.prefix();
        let key = message.subject.strip_prefix(&prefix).ok_or("a subject of another stream")?;
        let is_end = message.headers.as_ref().is_some_and(is_marker);
        let value = (!is_end).then(|| message.payload.to_vec());
        Ok((LogEvent { sequence: info.stream_sequence, key: key.into(), value }, info.pending))
    }

    /// Looks up the keys that had a value before and are not in the snapshot: see the
    /// [module](self).
    async fn look_up_missing(
        &self,
        snapshot: &mut BTreeMap<String, LogEvent>,
    ) -> Result<(), AnyError> {
        for key in self.known.keys() {
            if snapshot.contains_key(key) {
                continue;
            }
            let subject = format!("{}{key}", self.log.prefix());
            if let Some((sequence, value)) = self.log.last(&subject).await? {
                snapshot.insert(key.clone(), LogEvent { sequence, key: key.clone(), value });
            }
        }
        Ok(())
    }
}
