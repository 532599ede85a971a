//! [`join`] and [`connect`]: the first connection, its checks, and the thread that keeps it.
//!
//! The thread of the connection starts with the call and runs a single-threaded runtime of tokio.
//! It connects, checks the server and opens the log; then it serves the engine until the engine is
//! dropped, sends what is left for at most [`DRAIN`], and ends. Nothing waits for it but the task
//! of the shutdown that [`join`] adds.

use core::{
    fmt,
    hash::{BuildHasher as _, Hasher as _},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::{hash::RandomState, thread};

use async_nats::{
    ClientError, ConnectErrorKind, ConnectOptions, Event, ServerAddr,
    jetstream::context::AccountErrorKind,
};
use clockjack_actor::{ActorSystem, shutdown::Phase};
use clockjack_net::{
    Net,
    engine::{Connect, Engine, Notify},
    wire::frame::PACK_MAX,
};
use tokio::{
    sync::{oneshot, watch},
    time,
};

use crate::{
    Auth, JoinError, NatsConfig, SERVER_MIN, Tls,
    engine::NatsEngine,
    error::JoinErrorKind,
    inbox::Inbox,
    log::{Connection, Log, LogReader},
    names::{Names, inbox_prefix},
    outgoing::{self, Outgoings, Queues, Subjects},
};

/// How long a connection sends what is left when its node has left.
const DRAIN: Duration = Duration::from_secs(3);

/// How often the client checks that the server is there. A server that has not answered for three
/// such times is left.
const PING_EVERY: Duration = Duration::from_secs(3);

/// By how much the delay before an attempt to connect again grows.
const RECONNECT_STEP: Duration = Duration::from_millis(50);

/// The longest delay before an attempt to connect again.
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// Connects to the servers and makes a system a node of the cluster. The future completes when the
/// servers were checked; [`Net::members`] and
/// [`NetEvent::Joined`](clockjack_net::NetEvent::Joined) say when the node is a member. Any
/// executor may poll it; dropping it ends the connection.
///
/// The shutdown of the system leaves the cluster first, so that the other nodes see it at once.
#[must_use = "futures do nothing unless they are polled"]
pub fn join(system: &ActorSystem, config: NatsConfig) -> Joining {
    Joining { node: config.node.clone(), system: system.clone(), connecting: connect(config) }
}

/// Connects to the servers without a node: for tools and tests that use the
/// [engine](clockjack_net::engine) themselves.
#[must_use = "futures do nothing unless they are polled"]
pub fn connect(config: NatsConfig) -> Connecting {
    let (connected, result) = oneshot::channel();
    let started = thread::Builder::new().name("clockjack-nats".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(run(&config, connected)),
            Err(error) => drop(connected.send(Err(JoinErrorKind::Thread(error)))),
        }
    });
    match started {
        Ok(_) => Connecting(Ok(result)),
        Err(error) => Connecting(Err(Some(error))),
    }
}

/// The future of [`join`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Joining {
    system: ActorSystem,
    node: clockjack_net::NetConfig,
    connecting: Connecting,
}

impl Future for Joining {
    type Output = Result<Net, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.connecting).poll(cx).map(|connected| {
            let mut connected = connected?;
            let done = connected.done.take();
            let net = Net::join(&self.system, connected, self.node.clone());
            let net = net.map_err(|error| JoinError::new(JoinErrorKind::Node(error)))?;
            let leaving = net.clone();
            let leave = async move {
                leaving.leave();
                if let Some(done) = done {
                    // An error is the end of the thread as well.
                    let _done = done.await;
                }
                Ok(())
            };
            let phase = Phase::BEFORE_ACTOR_SYSTEM_TERMINATE;
            // A system that shuts down already stops its node by itself.
            drop(self.system.on_shutdown(phase, "leave the cluster", leave));
            Ok(net)
        })
    }
}

impl fmt::Debug for Joining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joining").field("node", &self.node.name).finish_non_exhaustive()
    }
}

/// The future of [`connect`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Connecting(Result<ConnectResult, Option<std::io::Error>>);

type ConnectResult = oneshot::Receiver<Result<NatsConnect, JoinErrorKind>>;

impl Future for Connecting {
    type Output = Result<NatsConnect, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let stopped = || std::io::Error::other("the thread of the connection has stopped");
        let result = match &mut self.0 {
            Ok(result) => match Pin::new(result).poll(cx) {
                Poll::Ready(result) => {
                    result.unwrap_or_else(|_| Err(JoinErrorKind::Thread(stopped())))
                }
                Poll::Pending => return Poll::Pending,
            },
            Err(error) => Err(JoinErrorKind::Thread(error.take().unwrap_or_else(stopped))),
        };
        Poll::Ready(result.map_err(JoinError::new))
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}

/// A connection that was checked, for one node.
pub struct NatsConnect {
    queues: Queues,
    inbox: Inbox,
    alive: oneshot::Sender<()>,
    /// Completes when the thread of the connection has sent everything.
    done: Option<oneshot::Receiver<()>>,
}

impl Connect for NatsConnect {
    /// A random number.
    fn join_number(&mut self) -> u64 {
        // The keys of a hasher are drawn from the operating system.
        RandomState::new().build_hasher().finish()
    }

    fn connect(self: Box<Self>, notify: Notify) -> Box<dyn Engine> {
        self.inbox.set_notify(notify);
        let Self { queues, inbox, alive, .. } = *self;
        Box::new(NatsEngine { queues, inbox, _alive: alive })
    }
}

impl fmt::Debug for NatsConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConnect").finish_non_exhaustive()
    }
}

/// The thread of a connection.
async fn run(config: &NatsConfig, connected: oneshot::Sender<Result<NatsConnect, JoinErrorKind>>) {
    let inbox = Inbox::default();
    let (state, connection) = watch::channel(Connection { n_lost: 0, is_up: true });
    let (client, log) = match open(config, state, inbox.clone()).await {
        Ok(opened) => opened,
        Err(error) => return drop(connected.send(Err(error))),
    };
    let (queues, outgoings) = outgoing::queues(inbox.clone());
    let (alive, is_alive) = oneshot::channel();
    let (finished, done) = oneshot::channel();
    let connect = NatsConnect { queues, inbox: inbox.clone(), alive, done: Some(done) };
    // If nobody waits any more, the ends of the queues are dropped here, and the rest ends at once.
    drop(connected.send(Ok(connect)));
    serve(client, config, log, inbox, connection, outgoings, is_alive).await;
    // Nobody may wait for it.
    let _sent = finished.send(());
}

/// Carries what the node sends and receives, until its engine is dropped.
async fn serve(
    client: async_nats::Client,
    config: &NatsConfig,
    log: Log,
    inbox: Inbox,
    connection: watch::Receiver<Connection>,
    outgoings: Outgoings,
    is_alive: oneshot::Receiver<()>,
) {
    let names = Names::default();
    let reader = LogReader::new(log.clone(), inbox.clone(), names.clone(), connection);
    let reader = tokio::spawn(reader.run());
    let (cluster, node) = (config.cluster.clone(), config.node.name.clone());
    let subjects = Subjects { cluster, node, names };
    let sent_all = outgoing::run(client, subjects, log, inbox, outgoings);
    tokio::select! {
        () = sent_all => {}
        () = async {
            let _dropped = is_alive.await;
            time::sleep(DRAIN).await;
        } => {}
    }
    reader.abort();
}

/// Connects, and checks everything that a node needs.
async fn open(
    config: &NatsConfig,
    state: watch::Sender<Connection>,
    inbox: Inbox,
) -> Result<(async_nats::Client, Log), JoinErrorKind> {
    config.validate_cluster()?;
    let client = reach(config, state, inbox.clone()).await?;
    let log = Log::new(client.clone(), &config.cluster, config.replicas);
    let opened = time::timeout(config.connect_timeout, async {
        check_jetstream(&log).await?;
        log.open().await.map_err(|error| JoinErrorKind::Log(error.to_string()))?;
        let writable = log.check_writable().await;
        writable.map_err(|error| JoinErrorKind::Log(error.to_string()))?;
        outgoing::check_frames(&client, &config.cluster, &config.node.name).await;
        Ok(())
    });
    tokio::select! {
        // The server does not answer what it refuses: the check would time out.
        biased;
        what = inbox.first_refused() => return Err(JoinErrorKind::Permissions(what)),
        opened = opened => opened.unwrap_or(Err(JoinErrorKind::TimedOut))?,
    }
    Ok((client, log))
}

/// Connects, and checks the server.
pub(crate) async fn reach(
    config: &NatsConfig,
    state: watch::Sender<Connection>,
    inbox: Inbox,
) -> Result<async_nats::Client, JoinErrorKind> {
    let addresses = config.validate()?;
    let options = options(config, state, inbox).await?;
    time::timeout(config.connect_timeout, check_server(config, options, addresses))
        .await
        .unwrap_or(Err(JoinErrorKind::TimedOut))
}

async fn check_server(
    config: &NatsConfig,
    options: ConnectOptions,
    addresses: Vec<ServerAddr>,
) -> Result<async_nats::Client, JoinErrorKind> {
    let client = options.connect(addresses).await.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            JoinErrorKind::Credentials(error.into())
        }
        ConnectErrorKind::Tls => JoinErrorKind::Tls(error.into()),
        ConnectErrorKind::TimedOut => JoinErrorKind::TimedOut,
        _ => JoinErrorKind::Unreachable(error.into()),
    })?;
    let info = client.server_info();
    if !is_supported(&info.version) {
        return Err(JoinErrorKind::ServerTooOld(info.version));
    }
    if info.tls_required && config.tls == Tls::Off {
        return Err(JoinErrorKind::Tls("the server requires TLS, and `tls` is off".into()));
    }
    if info.max_payload < PACK_MAX {
        let max = info.max_payload;
        return Err(JoinErrorKind::PayloadTooSmall { max, needed: PACK_MAX });
    }
    Ok(client)
}

/// Checks that the account has JetStream.
pub(crate) async fn check_jetstream(log: &Log) -> Result<(), JoinErrorKind> {
    log.jetstream().query_account().await.map(drop).map_err(|error| match error.kind() {
        AccountErrorKind::JetStream(_) | AccountErrorKind::JetStreamUnavailable => {
            JoinErrorKind::NoJetStream
        }
        AccountErrorKind::TimedOut => JoinErrorKind::TimedOut,
        AccountErrorKind::Other => JoinErrorKind::Log(error.to_string()),
    })
}

async fn options(
    config: &NatsConfig,
    state: watch::Sender<Connection>,
    inbox: Inbox,
) -> Result<ConnectOptions, JoinErrorKind> {
    let options = ConnectOptions::new()
        .name(&config.node.name)
        // Its own one: permissions can keep others from reading the answers to this node.
        .custom_inbox_prefix(inbox_prefix(&config.cluster, &config.node.name))
        .connection_timeout(config.connect_timeout)
        .ping_interval(PING_EVERY)
        .reconnect_delay_callback(reconnect_delay)
        .require_tls(config.tls == Tls::Require)
        .event_callback(move |event| {
            match event {
                Event::Connected => state.send_modify(|now| now.is_up = true),
                Event::Disconnected | Event::Closed => state.send_modify(|now| {
                    now.n_lost += u64::from(now.is_up);
                    now.is_up = false;
                }),
                // The client has dropped a message of a subscription that was not read.
                Event::SlowConsumer(_) => inbox.dropped(1),
                // A missing permission, or credentials that were revoked.
                Event::ServerError(error) => inbox.refused(error.to_string()),
                Event::ClientError(error) if is_refusal(&error) => inbox.refused(error.to_string()),
                _ => {}
            }
            core::future::ready(())
        });
    let options = match &config.ca_file {
        Some(file) => options.add_root_certificates(file.clone()),
        None => options,
    };
    Ok(match config.auth.clone() {
        Auth::None => options,
        Auth::UserPassword { user, password } => options.user_and_password(user, password),
        Auth::Token(token) => options.token(token),
        Auth::NKey(seed) => options.nkey(seed),
        Auth::CredsFile(path) => {
            options.credentials_file(path).await.map_err(JoinErrorKind::CredsFile)?
        }
        Auth::Mtls { certificate, key } => options.add_client_certificate(certificate, key),
    })
}

/// How long a client waits before an attempt to connect again: much shorter than a member may be
/// without a subscriber until another one removes it, because all connect again when a server is
/// back.
fn reconnect_delay(n_attempts: usize) -> Duration {
    let steps = u32::try_from(n_attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    RECONNECT_STEP.saturating_mul(steps).min(RECONNECT_MAX)
}

/// Whether a server was reached and does not accept the client any more.
fn is_refusal(error: &ClientError) -> bool {
    let ClientError::Other(text) = error else { return false };
    let text = text.to_lowercase();
    text.contains("authorization") || text.contains("authentication")
}

/// Whether a version of a server is new enough. One that cannot be read is not.
fn is_supported(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= SERVER_MIN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_connects_again_much_sooner_than_a_member_is_removed() {
        let longest = (0..1_000).map(reconnect_delay).max().expect("there is one");
        assert!(6 * longest <= clockjack_net::NetConfig::new("a").evict_after, "{longest:?}");
        assert_eq!(reconnect_delay(1), Duration::ZERO, "the first attempt is at once");
    }

    #[test]
    fn versions_from_2_14_on_are_supported() {
        for version in ["2.14.0", "2.14.0-beta.1", "2.15.1", "2.100.0", "3.0.0"] {
            assert!(is_supported(version), "{version}");
        }
        for version in ["2.9.10", "2.13.9", "1.99.0", "", "2", "two.14.0", "v2.15.1"] {
            assert!(!is_supported(version), "{version}");
        }
    }
}
