//! [`Console`]: lets tools look at the program that opens it.
//!
//! One thread with a single-threaded tokio runtime serves HTTP/1.1 on a unix socket or on TCP.
//! Without a client the thread waits in `accept`: it has no timer, takes no samples and allocates
//! nothing. A second thread exists only while a client subscribes to views; it drives the
//! [`Watcher`](crate::Watcher).
//!
//! What may be asked, and by whom, is decided in `server/guard.rs` before anything is routed.

mod act;
mod connections;
mod errors;
mod guard;
mod health;
mod live;
#[cfg_attr(not(feature = "page"), path = "server/page_none.rs")]
mod page;
mod routes;
#[cfg_attr(not(unix), path = "server/socket_portable.rs")]
mod socket;
mod source;
mod stream;
mod timeline;

use core::{
    fmt,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};
use std::{net::TcpListener, path::PathBuf, sync::Arc, thread};

use clockjack_actor::ActorSystem;
use clockjack_graph::GraphRun;
use clockjack_rt::{Runtime, RuntimeMetrics};
use tokio::sync::watch;

pub use self::errors::OpenError;
pub(crate) use self::source::{Source, ViewError};
use self::{
    connections::{Listener, Served},
    guard::Guard,
    health::Health,
    live::Live,
    socket::Removal,
};
pub(crate) use crate::target::NamesFn;
use crate::{Address, Target, address::socket_name};
pub use crate::{Token, findings::Thresholds};

/// The most connections at the same time; the next one is answered with 503.
pub const CONNECTIONS_MAX: usize = 8;

/// Where a console listens.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Bind {
    /// A unix socket in `$XDG_RUNTIME_DIR/clockjack`, or in `/tmp/clockjack-UID` if that variable
    /// is not set. Only this user and root can connect.
    #[default]
    Socket,
    /// A unix socket at this path. Its directory must belong to this user, and to nobody else.
    SocketAt(PathBuf),
    /// TCP on 127.0.0.1, with a new token; port 0 lets the operating system choose. For browsers.
    Loopback(u16),
    /// TCP on any address. There is no encryption: use a proxy with TLS, or `ssh -L`.
    Public {
        /// The address.
        addr: SocketAddr,
        /// What clients show.
        token: Token,
        /// The names, each with its port, under which clients reach the address.
        hosts: Vec<String>,
    },
}

/// The classes of actions that a program allows to clients of its console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control(u8);

impl Control {
    /// Nothing: clients look.
    pub const NONE: Self = Self(0);
    /// Watch actors, trace for a while, keep the last seconds.
    pub const INSPECT: Self = Self(1);
    /// Set the level of the log.
    pub const LEVELS: Self = Self(1 << 1);
    /// Cancel jobs.
    pub const JOBS: Self = Self(1 << 2);
    /// Stop, restart, suspend and resume actors.
    pub const ACTORS: Self = Self(1 << 3);
    /// Change settings of components of graphs, step and stop graphs.
    pub const GRAPHS: Self = Self(1 << 4);
    /// Everything.
    pub const ALL: Self = Self(0b1_1111);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::INSPECT, "INSPECT"),
        (Self::LEVELS, "LEVELS"),
        (Self::JOBS, "JOBS"),
        (Self::ACTORS, "ACTORS"),
        (Self::GRAPHS, "GRAPHS"),
    ];

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all classes of `other` are allowed.
    #[must_use]
    pub const fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the allowed classes.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let allowed = Self::NAMES.iter().filter(|(class, _)| self.allows(*class));
        allowed.map(|(_, name)| *name).collect()
    }
}

/// Lets tools look at this program: `clockjack top`, `clockjack doctor --of`, a browser, `curl`.
///
/// # Examples
///
/// ```no_run
/// use clockjack_console::server::Console;
/// use clockjack_rt::Runtime;
///
/// let rt = Runtime::new("house")?;
/// let _console = Console::of(&rt).open()?; // closes when it is dropped
/// println!("{}", rt.run());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a console does nothing until it is opened"]
pub struct Console {
    target: Target,
    metrics: Option<RuntimeMetrics>,
    bind: Bind,
    control: Control,
    names: Option<NamesFn>,
    health: Option<SocketAddr>,
    ready: Option<Arc<ReadyFn>>,
}

type ReadyFn = dyn Fn() -> bool + Send + Sync;

impl Console {
    /// A console for a runtime.
    pub fn of(runtime: &Runtime) -> Self {
        Self { metrics: Some(runtime.metrics()), ..Self::of_target(Target::of(runtime)) }
    }

    /// A console for a system on any host: a `RootContext`, for example, or tokio.
    pub fn of_system(system: &ActorSystem) -> Self {
        Self::of_target(Target::of_system(system))
    }

    fn of_target(target: Target) -> Self {
        Self {
            target,
            metrics: None,
            bind: Bind::default(),
            control: Control::NONE,
            names: None,
            health: None,
            ready: None,
        }
    }

    /// Where the console listens; by default a unix socket.
    pub fn bind(self, bind: Bind) -> Self {
        Self { bind, ..self }
    }

    /// Which actions clients may request; by default none.
    pub fn control(self, allow: Control) -> Self {
        Self { control: allow, ..self }
    }

    /// Shows a graph under this name.
    pub fn graph(self, name: &str, run: &GraphRun) -> Self {
        self.target.add_graph(name, run);
        self
    }

    /// From which numbers on something is a finding.
    pub fn thresholds(self, thresholds: Thresholds) -> Self {
        self.target.set_thresholds(thresholds);
        self
    }

    /// How the paths of actors are shown, if they contain what clients are not to see. Paths in
    /// texts are replaced, too. A client finds an actor with a replaced path by its pid.
    pub fn names(self, shown: NamesFn) -> Self {
        Self { names: Some(shown), ..self }
    }

    /// Serves `/alive`, `/ready` and `/metrics` at another address, to everybody and without a
    /// token. The answers contain neither paths of actors nor texts of failures.
    pub fn health(self, addr: SocketAddr) -> Self {
        Self { health: Some(addr), ..self }
    }

    /// What `/ready` asks; without it, a program is ready while its system runs.
    pub fn ready(self, is_ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { ready: Some(Arc::new(is_ready)), ..self }
    }

    /// Opens the console. It closes when the result is dropped.
    ///
    /// # Errors
    ///
    /// If the address is in use, if there is no directory for the socket, if others than this user
    /// can reach that directory, or if the operating system refuses a thread.
    pub fn open(self) -> Result<Opened, OpenError> {
        let n_clients = Arc::new(AtomicUsize::new(0));
        let live = Live::new(self.target.clone(), self.control, self.names, n_clients.clone());
        let health = match self.health {
            None => None,
            Some(addr) => {
                let listener = TcpListener::bind(addr).map_err(OpenError::listen)?;
                let address = listener.local_addr().map_err(OpenError::listen)?;
                let health = Health::new(self.target.system(), self.metrics, self.ready);
                Some((listener, address, health))
            }
        };
        let health_addr = health.as_ref().map(|(_, address, _)| *address);
        let health = health.map(|(listener, _, health)| (listener, health));
        let system = self.target.system().name().to_owned();
        let mut opened = open_with(Arc::new(live), self.bind, &system, n_clients, health)?;
        (opened.target, opened.health) = (Some(self.target), health_addr);
        Ok(opened)
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("target", &self.target)
            .field("bind", &self.bind)
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}

/// Opens a console for any source of views.
pub(crate) fn open_with(
    source: Arc<dyn Source>,
    bind: Bind,
    system: &str,
    n_clients: Arc<AtomicUsize>,
    health: Option<(TcpListener, Health)>,
) -> Result<Opened, OpenError> {
    let (listener, address, guard, removal) = listen(bind, system)?;
    let (stop, stopped) = watch::channel(());
    let served = Served { source, guard, n_clients: n_clients.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(OpenError::thread)?;
    let work = move || runtime.block_on(connections::run(listener, served, health, stopped));
    let builder = thread::Builder::new().name("clockjack-console".into());
    let thread = builder.spawn(work).map_err(OpenError::thread)?;
    Ok(Opened {
        target: None,
        health: None,
        address,
        n_clients,
        stop: Some(stop),
        thread: Some(thread),
        _removal: removal,
    })
}

/// A listener, its address, and who may ask there.
fn listen(
    bind: Bind,
    system: &str,
) -> Result<(Listener, Address, Guard, Option<Removal>), OpenError> {
    let on_socket = |path| {
        let (listener, address, removal) = socket::listen(path)?;
        Ok((listener, address, Guard::of_socket(), Some(removal)))
    };
    let (at, token, hosts) = match bind {
        Bind::Socket => {
            let path = socket::directory()?.join(socket_name(std::process::id(), system));
            return on_socket(path);
        }
        Bind::SocketAt(path) => return on_socket(path),
        Bind::Loopback(port) => {
            let token = Token::random().map_err(|_| OpenError::no_entropy())?;
            (SocketAddr::from(([127, 0, 0, 1], port)), token, Vec::new())
        }
        Bind::Public { addr, token, hosts } => (addr, token, hosts),
    };
    let listener = TcpListener::bind(at).map_err(OpenError::listen)?;
    listener.set_nonblocking(true).map_err(OpenError::listen)?;
    let at = listener.local_addr().map_err(OpenError::listen)?;
    let guard = Guard::of_tcp(at, token.clone(), hosts);
    Ok((Listener::Tcp(listener), Address::Tcp(at, Some(token)), guard, None))
}

/// An open console. Dropping it closes it.
#[must_use = "dropping it closes the console"]
pub struct Opened {
    target: Option<Target>,
    health: Option<SocketAddr>,
    address: Address,
    n_clients: Arc<AtomicUsize>,
    stop: Option<watch::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    /// Removes the socket's file, after the thread has ended.
    _removal: Option<Removal>,
}

impl Opened {
    /// Where the console listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The URL for a browser, with the token; `None` for a socket.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        self.address.url()
    }

    /// Where `/alive`, `/ready` and `/metrics` are served, if they are.
    #[must_use]
    pub fn health_addr(&self) -> Option<SocketAddr> {
        self.health
    }

    /// How many connections there are now.
    #[must_use]
    pub fn clients(&self) -> usize {
        // Relaxed: the number publishes nothing.
        self.n_clients.load(Ordering::Relaxed)
    }

    /// Shows a graph that has started later; one of the same name is shown no more.
    pub fn add_graph(&self, name: &str, run: &GraphRun) {
        if let Some(target) = &self.target {
            target.add_graph(name, run);
        }
    }

    /// Closes the console, with all connections.
    pub fn close(self) {}
}

impl Drop for Opened {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the console's thread was reported when it happened.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_allows_classes_of_actions_and_no_others() {
        let allowed = Control::JOBS.and(Control::INSPECT);
        assert_eq!(allowed.names(), ["INSPECT", "JOBS"]);
        assert!(allowed.allows(Control::JOBS) && !allowed.allows(Control::ACTORS));
        assert!(Control::NONE.names().is_empty());
        assert_eq!(Control::ALL.names().len(), 5);
    }
}
