//! Starts the gateway, and drains it in order: connections, devices, shards.

use core::net::SocketAddr;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use clockjack::{
    actor::shutdown::Phase,
    exec::JoinHandle,
    prelude::*,
    rt::{RunConfig, RuntimeConfig, RuntimeReport, TracingBridge, sleep, timeout},
};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    archive::Archive,
    devices::{self, Devices},
    figures::Figures,
    http,
    store::{self, Reading},
    tcp,
};

/// How long each step of the drain may take: less than the limit of its phase, five seconds.
const STEP_MAX: Duration = Duration::from_secs(4);
/// How long the whole drain may take.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where devices connect; port 0 for any free port.
    pub tcp: SocketAddr,
    /// Where the pages are; port 0 for any free port.
    pub http: SocketAddr,
    /// The file to which readings are appended; `None` to drop them.
    pub archive: Option<PathBuf>,
    /// The maximum number of devices.
    pub devices_max: usize,
}

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    rt: Runtime,
    /// Where devices connect.
    pub tcp: SocketAddr,
    /// Where the pages are.
    pub http: SocketAddr,
}

impl Gateway {
    /// Starts a gateway.
    ///
    /// # Errors
    ///
    /// If an address is in use, or the archive cannot be opened.
    pub fn start(config: Config) -> Result<Self, Failure> {
        // First, so that a wrong argument starts nothing.
        let file = config.archive.as_deref().map(|path| {
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.map_err(|error| Failure::msg(format!("cannot open {path:?}: {error}")))
        });
        let file = file.transpose()?;
        let system = ActorSystem::builder("gateway").on_start(|system| {
            TracingBridge::install(system)?;
            Ok(())
        });
        // Connections of devices run on the workers. Those of HTTP, which axum starts by
        // `tokio::spawn`, run on the threads of tokio: they are few.
        let rt = Runtime::start_with(system, RuntimeConfig { tokio: 1, ..RuntimeConfig::DEFAULT })?;
        let figures = Arc::new(Figures::default());
        let counted = Arc::clone(&figures);
        rt.metrics().add_source(move |set| counted.add_to(set));

        // Writing blocks, so it has a thread of its own. The archive is never created again: it
        // would forget which batches it has.
        let dispatcher = rt.system().create_dispatcher("archive", 1)?;
        let archive = Archive::new(move |readings: &[Reading]| append(file.as_ref(), readings));
        let archive = rt.spawn("archive", Props::once(archive).dispatcher(dispatcher))?;
        let store = rt.spawn("store", store::router(archive, Arc::clone(&figures)))?;
        let (to, shared, devices_max) = (store, Arc::clone(&figures), config.devices_max);
        let devices =
            Props::new(move || Devices::new(devices_max, to.clone(), Arc::clone(&shared)))
                .mailbox(Mailbox::bounded(4_096))
                .supervise(Strategy::restart());
        let devices = rt.spawn("devices", devices)?;

        let bind = |address: SocketAddr| {
            let bound = rt.block_on(TcpListener::bind(address));
            bound.map_err(|error| Failure::msg(format!("cannot listen on {address}: {error}")))
        };
        let (tcp, http) = (bind(config.tcp)?, bind(config.http)?);
        let addresses = (tcp.local_addr()?, http.local_addr()?);
        let (stop, stopped) = watch::channel(false);
        let (system, to) = (rt.system().clone(), devices.clone());
        let accepting = rt.spawn_future(tcp::accept(system, tcp, to, figures, stopped.clone()));
        let router = http::pages(devices.clone()).merge(http::metrics(rt.metrics()));
        let mut signal = stopped;
        let serving = rt.spawn_future(async move {
            let stopped = async move { drop(signal.changed().await) };
            axum::serve(http, router).with_graceful_shutdown(stopped).await
        });
        drain_in_order(rt.system(), stop, accepting, serving, devices)?;
        Ok(Self { rt, tcp: addresses.0, http: addresses.1 })
    }

    /// Drains the gateway after this time, as a signal would.
    pub fn stop_after(&self, time: Duration) {
        let system = self.rt.system().clone();
        // A task continues without its handle.
        drop(self.rt.spawn_future(async move {
            // An error means that the runtime is shut down already.
            if sleep(time).await.is_ok() {
                drop(system.shutdown());
            }
        }));
    }

    /// Serves until SIGTERM or Ctrl-C, drains, and returns what was left behind.
    pub fn run(self) -> RuntimeReport {
        self.rt.run_with(RunConfig { drain_timeout: Some(DRAIN_MAX), on_hangup: None })
    }
}

/// Appends readings to a file, all or none of them.
fn append(file: Option<&File>, readings: &[Reading]) -> io::Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    let mut text = String::new();
    for Reading { device, number, value } in readings {
        text.push_str(&format!("{device} {number} {value}\n"));
    }
    let before = file.metadata()?.len();
    file.write_all(text.as_bytes()).or_else(|error| {
        // A part may be written. Without it, the batch can be written again.
        file.set_len(before)?;
        Err(error)
    })
}

/// Registers what a signal does, phase after phase, before the actors stop.
fn drain_in_order(
    system: &ActorSystem,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    serving: JoinHandle<io::Result<()>>,
    devices: ActorRef<devices::Msg>,
) -> Result<(), Failure> {
    system.on_shutdown(Phase::SERVICE_UNBIND, "no new connections", async move {
        stop.send_replace(true);
        accepting.await?;
        if timeout(STEP_MAX, serving).await.is_err() {
            tracing::warn!("closing HTTP connections whose requests are not complete");
        }
        Ok(())
    })?;
    system.on_shutdown(Phase::SERVICE_REQUESTS_DONE, "disconnect the devices", async move {
        Ok(devices.ask(devices::Msg::Drain, STEP_MAX).await?)
    })?;
    let receptionist = system.receptionist().clone();
    system.on_shutdown(Phase::SERVICE_STOP, "write what is buffered", async move {
        let shards = receptionist.find(&store::shards());
        // All at once: a slow archive delays them together.
        let drains: Vec<_> =
            shards.services().iter().map(|it| it.ask(store::Msg::Drain, STEP_MAX)).collect();
        for drained in drains {
            drained.await?;
        }
        Ok(())
    })?;
    Ok(())
}
