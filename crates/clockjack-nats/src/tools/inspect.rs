//! [`Inspector`]: reads the log of a cluster without being a member.
//!
//! The log is read by single requests for the next entry, so the right to read is enough; a reader
//! that creates a consumer would need more.

use core::{error::Error, fmt, time::Duration};
use std::{
    collections::BTreeMap,
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use async_nats::jetstream::stream::{DirectGetErrorKind, Info, StorageType, Stream};
use clockjack_net::LogEvent;
use futures_util::StreamExt as _;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    time,
};

use crate::{
    JoinError, NatsConfig,
    connect::{check_jetstream, reach},
    error::JoinErrorKind,
    inbox::Inbox,
    log::{AnyError, Connection, Log, is_marker},
};

/// The most entries that one report reads: far more than a log has keys.
const ENTRIES_MAX: usize = 200_000;

/// How often a reader that waits looks for a new entry.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A connection to the servers of a cluster, for tools. Every call waits.
pub struct Inspector {
    runtime: Runtime,
    client: async_nats::Client,
    log: Log,
    timeout: Duration,
}

/// The server that the inspector is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The most bytes of a message.
    pub max_payload: usize,
    /// Whether clients need credentials.
    pub needs_credentials: bool,
    /// Whether the connection must be encrypted.
    pub needs_tls: bool,
}

/// A server that stores the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Whether it decides about the order of the log.
    pub is_leader: bool,
    /// Whether it has everything that was confirmed.
    pub is_current: bool,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logged {
    /// The entry.
    pub event: LogEvent,
    /// When the server has stored it, since 1970, by its clock.
    pub stored: Duration,
}

impl Logged {
    /// How long ago it was stored, by the clock of this machine; zero if that is behind.
    #[must_use]
    pub fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.stored)
    }
}

/// The log, and the last entry of each key that has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogReport {
    /// When the log was created, since 1970.
    pub created: Duration,
    /// The sequence number up to which it was read.
    pub sequence: u64,
    /// The bytes that it takes.
    pub bytes: u64,
    /// How many servers should store it.
    pub replicas: usize,
    /// The servers that store it; empty if there is one server only.
    pub servers: Vec<Replica>,
    /// What differs from the settings that a node gives the log when it creates it.
    pub differences: Vec<String>,
    /// The entries, in the order of the log.
    pub entries: Vec<Logged>,
}

impl Inspector {
    /// Connects, and checks the servers as a node does. The log is not created.
    ///
    /// # Errors
    ///
    /// Those of [`join`](crate::join).
    pub fn connect(config: &NatsConfig) -> Result<Self, JoinError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| JoinError::new(JoinErrorKind::Thread(error)))?;
        let (state, _) = watch::channel(Connection { n_lost: 0, is_up: true });
        let connected = runtime.block_on(async {
            let client = reach(config, state, Inbox::default()).await?;
            let log = Log::new(client.clone(), &config.cluster, config.replicas);
            let checked = time::timeout(config.connect_timeout, check_jetstream(&log));
            checked.await.unwrap_or(Err(JoinErrorKind::TimedOut))?;
            Ok((client, log))
        });
        let (client, log) = connected.map_err(JoinError::new)?;
        Ok(Self { runtime, client, log, timeout: config.connect_timeout })
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> ServerReport {
        let info = self.client.server_info();
        ServerReport {
            name: info.server_name,
            version: info.version,
            max_payload: info.max_payload,
            needs_credentials: info.auth_required,
            needs_tls: info.tls_required,
        }
    }

    /// The clusters whose logs the servers have, in their order.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub fn clusters(&self) -> Result<Vec<String>, InspectError> {
        let names = async {
            let mut names = self.log.jetstream().stream_names();
            let mut clusters = Vec::new();
            while let Some(name) = names.next().await {
                clusters.extend(name?.strip_prefix("KV_").map(str::to_owned));
            }
            clusters.sort();
            Ok(clusters)
        };
        self.wait(names)
    }

    /// Reads the log.
    ///
    /// # Errors
    ///
    /// The cluster has no log, the server does not answer, or it refuses.
    pub fn read(&self) -> Result<LogReport, InspectError> {
        let info = self.info()?;
        let stream = self.stream()?;
        let mut last: BTreeMap<String, Logged> = BTreeMap::new();
        let mut sequence = 0;
        // A key that is written meanwhile is read a second time, at its new place.
        for _ in 0..ENTRIES_MAX {
            let Some(one) = self.wait(self.entry_after(&stream, sequence))? else { break };
            sequence = one.event.sequence;
            last.insert(one.event.key.clone(), one);
        }
        let mut entries: Vec<Logged> =
            last.into_values().filter(|one| one.event.value.is_some()).collect();
        entries.sort_by_key(|one| one.event.sequence);
        Ok(LogReport {
            created: since_1970(info.created.unix_timestamp_nanos()),
            sequence: sequence.max(info.state.last_sequence),
            bytes: info.state.bytes,
            replicas: info.config.num_replicas,
            servers: replicas(&info),
            differences: differences(&info),
            entries,
        })
    }

    /// The next entry after a sequence number; waits for it up to `wait`.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub fn next(&self, after: u64, wait: Duration) -> Result<Option<Logged>, InspectError> {
        let stream = self.stream()?;
        let start = std::time::Instant::now();
        loop {
            let one = self.wait(self.entry_after(&stream, after))?;
            if one.is_some() || start.elapsed() >= wait {
                return Ok(one);
            }
            // A timer is created inside of the runtime only.
            self.runtime.block_on(async { time::sleep(LOOK_EVERY).await });
        }
    }

    fn info(&self) -> Result<Info, InspectError> {
        self.wait(async {
            let stream = self.log.jetstream().get_stream(self.log.name()).await?;
            Ok(stream.cached_info().clone())
        })
    }

    fn stream(&self) -> Result<Stream<()>, InspectError> {
        self.wait(async { Ok(self.log.jetstream().get_stream_no_info(self.log.name()).await?) })
    }

    async fn entry_after(
        &self,
        stream: &Stream<()>,
        after: u64,
    ) -> Result<Option<Logged>, AnyError> {
        let all = format!("{}>", self.log.prefix());
        let message = match stream.direct_get_next_for_subject(all, Some(after + 1)).await {
            Ok(message) => message,
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let key = message.subject.strip_prefix(&self.log.prefix()).unwrap_or_default().to_owned();
        let value = (!is_marker(&message.headers)).then(|| message.payload.to_vec());
        let event = LogEvent { sequence: message.sequence, key, value };
        Ok(Some(Logged { event, stored: since_1970(message.time.unix_timestamp_nanos()) }))
    }

    fn wait<T>(
        &self,
        future: impl Future<Output = Result<T, AnyError>>,
    ) -> Result<T, InspectError> {
        let limited = async { time::timeout(self.timeout, future).await };
        match self.runtime.block_on(limited) {
            Ok(result) => result.map_err(InspectError),
            Err(_) => {
                let error = io::Error::from(io::ErrorKind::TimedOut);
                Err(InspectError(error.into()))
            }
        }
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("log", &self.log.name()).finish_non_exhaustive()
    }
}

fn since_1970(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

fn replicas(info: &Info) -> Vec<Replica> {
    let Some(cluster) = &info.cluster else { return Vec::new() };
    let leader = cluster.leader.iter().map(|name| Replica {
        name: name.clone(),
        is_leader: true,
        is_current: true,
    });
    let others = cluster.replicas.iter().map(|one| Replica {
        name: one.name.clone(),
        is_leader: false,
        is_current: one.current && !one.offline,
    });
    leader.chain(others).collect()
}

/// What differs from [`Log::config`], as far as nodes rely on it.
fn differences(info: &Info) -> Vec<String> {
    let config = &info.config;
    let checks = [
        (config.max_messages_per_subject == 1, "it keeps more than the last value of a key"),
        (config.allow_message_ttl, "keys do not end by themselves"),
        (config.subject_delete_marker_ttl.is_some(), "the end of a key leaves no marker"),
        (config.allow_direct, "entries cannot be read one by one"),
        (config.deny_delete, "entries can be deleted without a marker"),
        (config.storage == StorageType::File, "it is in memory, and lost with its servers"),
    ];
    let failed = checks.into_iter().filter(|(is_ok, _)| !is_ok);
    failed.map(|(_, what)| what.to_owned()).collect()
}

/// The log cannot be read. Transient if the server did not answer.
#[derive(Debug)]
pub struct InspectError(AnyError);

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the log cannot be read: check the name of the cluster, and that the user may read it",
        )
    }
}

impl Error for InspectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
