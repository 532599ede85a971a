//! HTTP: turns requests into messages, and answers into responses.

use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use clockjack::{
    actor::AskError, observe::prometheus::CONTENT_TYPE, prelude::*, rt::RuntimeMetrics,
};

use crate::sessions::{self, Msg, Refusal};

/// How long a request waits for the answer of an actor.
pub const ANSWER_MAX: Duration = Duration::from_secs(2);
/// The longest note, in bytes.
pub const NOTE_LEN_MAX: usize = 4096;
/// The longest name of a session, in bytes.
const NAME_LEN_MAX: usize = 64;

/// What `/` shows.
const INDEX: &str = "\
POST /sessions/NAME  adds the body as a note
GET  /sessions/NAME  lists the notes
GET  /health         whether the service answers
GET  /metrics        for Prometheus
";

/// The pages of the service. The address of the actor is their state.
pub fn pages(sessions: ActorRef<Msg>) -> Router {
    Router::new()
        .route("/", get(INDEX))
        .route("/sessions/{name}", get(list).post(add))
        .route("/health", get(health))
        .fallback(async || Problem(StatusCode::NOT_FOUND, "no such page; / lists the pages"))
        .layer(DefaultBodyLimit::max(NOTE_LEN_MAX))
        .layer(middleware::from_fn(log))
        .with_state(sessions)
}

/// The page for Prometheus.
pub fn metrics(metrics: RuntimeMetrics) -> Router {
    let page = |State(metrics): State<RuntimeMetrics>| async move {
        match metrics.prometheus() {
            Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        }
    };
    Router::new()
        .route("/metrics", get(page))
        .with_state(metrics)
}

async fn add(
    State(sessions): State<ActorRef<Msg>>,
    Path(name): Path<String>,
    text: String,
) -> Result<String, Problem> {
    let name = checked(name)?;
    let request = |reply_to| sessions::Request::Add { text, reply_to };
    let added = sessions.ask(
        |reply_to| Msg::To {
            name,
            request: request(reply_to),
        },
        ANSWER_MAX,
    );
    Ok(format!("note {}\n", added.await??))
}

async fn list(
    State(sessions): State<ActorRef<Msg>>,
    Path(name): Path<String>,
) -> Result<String, Problem> {
    let name = checked(name)?;
    let request = |reply_to| sessions::Request::List { reply_to };
    let listed = sessions.ask(
        |reply_to| Msg::To {
            name,
            request: request(reply_to),
        },
        ANSWER_MAX,
    );
    let notes = listed.await??;
    Ok(notes.iter().map(|note| format!("{note}\n")).collect())
}

/// Whether the actors answer, not only whether the process exists.
async fn health(State(sessions): State<ActorRef<Msg>>) -> Result<String, Problem> {
    let n_sessions = sessions.ask(Msg::Count, ANSWER_MAX).await?;
    Ok(format!("ok, {n_sessions} sessions\n"))
}

/// A part of a path becomes part of the path of an actor, so not everything is allowed.
fn checked(name: String) -> Result<String, Problem> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(name)
    } else {
        let why = "a name has 1 to 64 letters, digits, `-` or `_`";
        Err(Problem(StatusCode::BAD_REQUEST, why))
    }
}

/// A response that is not a success, with its reason.
struct Problem(StatusCode, &'static str);

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        if error.is_timed_out() {
            Self(StatusCode::GATEWAY_TIMEOUT, "no answer in time")
        } else {
            // The mailbox is full, or the service is stopping.
            Self(StatusCode::SERVICE_UNAVAILABLE, "busy, try again later")
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSession => Self(StatusCode::NOT_FOUND, "no such session"),
            Refusal::SessionFull => Self(StatusCode::CONFLICT, "the session is full"),
            Refusal::Busy => Self(StatusCode::SERVICE_UNAVAILABLE, "busy, try again later"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

/// Writes a line per request.
async fn log(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    tracing::info!(%method, path, status = response.status().as_u16(), "request");
    response
}
