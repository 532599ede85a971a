//! HTTP: status and commands of devices, and the page of metrics.

use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use clockjack::{
    actor::AskError, observe::prometheus::CONTENT_TYPE, prelude::*, rt::RuntimeMetrics,
};

use crate::{
    device::{self, COMMAND_ATTEMPTS, COMMAND_TIMEOUT, CommandError},
    devices,
};

/// How long a request waits for the answer of an actor.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a request waits for a command: longer than all of its attempts.
const COMMAND_MAX: Duration =
    COMMAND_TIMEOUT.saturating_mul(COMMAND_ATTEMPTS).saturating_add(ANSWER_MAX);
/// The longest command, in bytes.
const COMMAND_LEN_MAX: usize = 200;

/// The pages of the gateway.
pub fn pages(devices: ActorRef<devices::Msg>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/devices/{name}", get(status))
        .route("/devices/{name}/command", post(command))
        .layer(DefaultBodyLimit::max(COMMAND_LEN_MAX))
        .with_state(devices)
}

/// The page for Prometheus.
pub fn metrics(metrics: RuntimeMetrics) -> Router {
    let page = |State(metrics): State<RuntimeMetrics>| async move {
        match metrics.prometheus() {
            Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        }
    };
    Router::new().route("/metrics", get(page)).with_state(metrics)
}

type Devices = State<ActorRef<devices::Msg>>;

async fn health(State(devices): Devices) -> Result<String, Problem> {
    Ok(format!("ok, {} devices\n", devices.ask(devices::Msg::Count, ANSWER_MAX).await?))
}

async fn find(
    devices: &ActorRef<devices::Msg>,
    name: String,
) -> Result<ActorRef<device::Msg>, Problem> {
    let found = devices.ask(|reply_to| devices::Msg::Find(name, reply_to), ANSWER_MAX).await?;
    found.ok_or(Problem(StatusCode::NOT_FOUND, "no such device"))
}

async fn status(State(devices): Devices, Path(name): Path<String>) -> Result<String, Problem> {
    let device = find(&devices, name).await?;
    let status = device.ask(device::Msg::Status, ANSWER_MAX).await?;
    let device::Status { n_accepted, n_refused, n_commands } = status;
    Ok(format!("accepted {n_accepted}\nrefused {n_refused}\ncommands {n_commands}\n"))
}

async fn command(
    State(devices): Devices,
    Path(name): Path<String>,
    text: String,
) -> Result<&'static str, Problem> {
    if text.trim().is_empty() || text.contains(|char: char| char.is_control()) {
        return Err(Problem(StatusCode::BAD_REQUEST, "a command is one line"));
    }
    let device = find(&devices, name).await?;
    let done = device.ask(|reply_to| device::Msg::Command(text, reply_to), COMMAND_MAX).await?;
    match done {
        Ok(()) => Ok("done\n"),
        Err(CommandError::Busy) => Err(Problem(StatusCode::SERVICE_UNAVAILABLE, BUSY)),
        Err(CommandError::NoAnswer) => {
            Err(Problem(StatusCode::GATEWAY_TIMEOUT, "the device does not answer"))
        }
    }
}

const BUSY: &str = "busy, try again later";

/// A response that is not a success, with its reason.
#[derive(Debug)]
struct Problem(StatusCode, &'static str);

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        if error.is_timed_out() {
            Self(StatusCode::GATEWAY_TIMEOUT, "no answer in time")
        } else {
            Self(StatusCode::SERVICE_UNAVAILABLE, BUSY)
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}
