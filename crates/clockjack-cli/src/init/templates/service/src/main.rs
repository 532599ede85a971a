//! The service: reads its arguments, starts a runtime, serves until a signal, and drains.

use std::{io, net::SocketAddr, process::ExitCode, str::FromStr as _, sync::Arc};

use clockjack::{
    actor::shutdown::Phase,
    prelude::*,
    rt::{RunConfig, RuntimeConfig, RuntimeReport, TracingBridge, timeout},
};
use tokio::{net::TcpListener, sync::oneshot};
use tracing::level_filters::LevelFilter;

use {{crate}}::{
    http,
    sessions::{Figures, SESSIONS_MAX, Sessions},
};

const USAGE: &str = "\
usage: {{name}} [ADDRESS]

ADDRESS is where the service listens, 127.0.0.1:8080 by default; port 0 is any free port.
The environment variable LOG sets the level: error, warn, info (the default), debug or trace.";

/// How long requests that have begun may take after a signal.
const REQUESTS_MAX: Duration = Duration::from_secs(4);
/// How long the whole drain may take. The service manager waits a little longer.
const DRAIN_MAX: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let (address, level) = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{{name}}: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let log = tracing_subscriber::fmt().with_writer(io::stderr);
    log.with_max_level(level).init();
    match serve(address) {
        Ok(report) if report.is_success() => {
            tracing::info!("{report}");
            ExitCode::SUCCESS
        }
        Ok(report) => {
            tracing::error!("{report}");
            ExitCode::FAILURE
        }
        Err(failure) => {
            tracing::error!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// The address and the level of the log; `None` if help is wanted.
fn arguments() -> Result<Option<(SocketAddr, LevelFilter)>, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match arguments.as_slice() {
        [] => "127.0.0.1:8080",
        [help] if help == "--help" || help == "-h" => return Ok(None),
        [address] => address,
        [_, further, ..] => return Err(format!("unexpected argument '{further}'")),
    };
    let address = address
        .parse()
        .map_err(|_| format!("'{address}' is not an address, as 127.0.0.1:8080 is"))?;
    let level = std::env::var("LOG").unwrap_or_else(|_| String::from("info"));
    let level = LevelFilter::from_str(&level).map_err(|_| format!("LOG: no level '{level}'"))?;
    Ok(Some((address, level)))
}

/// Serves until SIGTERM or Ctrl-C, and returns what was left behind.
fn serve(address: SocketAddr) -> Result<RuntimeReport, Failure> {
    // Failures, dead letters and refused messages go to the log.
    let system = ActorSystem::builder("{{name}}").on_start(|system| {
        TracingBridge::install(system)?;
        Ok(())
    });
    // The actors run on one worker per CPU. What axum starts by `tokio::spawn`, a task per
    // connection, runs on the threads of tokio.
    let config = RuntimeConfig {
        tokio: 2,
        ..RuntimeConfig::DEFAULT
    };
    let rt = Runtime::start_with(system, config)?;

    let figures = Arc::new(Figures::default());
    let counted = Arc::clone(&figures);
    rt.metrics().add_source(move |set| counted.add_to(set));
    // A failure loses all sessions, and the service continues.
    let sessions = Props::new(move || Sessions::new(SESSIONS_MAX, Arc::clone(&figures)))
        .mailbox(Mailbox::bounded(1_000))
        .supervise(Strategy::restart());
    let sessions = rt.spawn("sessions", sessions)?;

    let listener = rt
        .block_on(TcpListener::bind(address))
        .map_err(|error| Failure::msg(format!("cannot listen on {address}: {error}")))?;
    tracing::info!("listening on http://{}", listener.local_addr()?);
    let router = http::pages(sessions).merge(http::metrics(rt.metrics()));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = rt.spawn_future(async move {
        let stopped = async { drop(stopped.await) };
        let served = axum::serve(listener, router).with_graceful_shutdown(stopped);
        served.await
    });

    // The first thing that a signal does: no new connections, and requests are completed while the
    // actors still answer. A client that does not finish its request does not hold the drain.
    let finish = async move {
        tracing::info!("draining: no new connections");
        drop(stop);
        if timeout(REQUESTS_MAX, server).await.is_err() {
            tracing::warn!("closing connections whose requests are not complete");
        }
        Ok(())
    };
    rt.system()
        .on_shutdown(Phase::SERVICE_UNBIND, "finish requests", finish)?;
    Ok(rt.run_with(RunConfig {
        drain_timeout: Some(DRAIN_MAX),
        on_hangup: None,
    }))
}
