//! The addresses: views, the stream, actions.

#![expect(clippy::result_large_err, reason = "a refusal is the response that is sent")]

use core::convert::Infallible;
use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, RawQuery, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    Source, ViewError,
    act::{self, Waiting},
    connections::Served,
    guard::{self, Access, Guard},
    page,
    stream::{self, Streams},
    timeline,
};
use crate::{
    query::Params,
    view::{Auth, SCHEMA},
};

/// What the handlers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) source: Arc<dyn Source>,
    pub(super) guard: Arc<Guard>,
    pub(super) streams: Streams,
    pub(super) waiting: Waiting,
}

/// The routes of a console, behind its guard.
pub(super) fn router(served: Served, stopped: &watch::Receiver<()>) -> Router {
    let guard = Arc::new(served.guard);
    let streams = Streams::new(stopped.clone());
    let waiting = Waiting::default();
    let shared = Shared { source: served.source, guard: guard.clone(), streams, waiting };
    page::add(Router::new())
        .route("/v1/hello", get(hello))
        .route("/v1/stream", get(stream::open))
        .route("/v1/timeline", get(timeline::open))
        .route("/v1/act", post(act::act))
        .route("/v1/param", get(act::param))
        .route("/v1/graph.svg", get(graph_svg))
        .route("/v1/{view}", get(view))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(guard, guard::apply))
        .with_state(shared)
}

/// An answer that refuses, with its reason as JSON.
pub(super) fn refusal(status: StatusCode, what: impl Into<String>) -> Response {
    let mut response = answer(status, &json!({ "error": what.into() }));
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

pub(super) fn answer(status: StatusCode, value: &Value) -> Response {
    let body = format!("{value}\n");
    (status, [(CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}

/// Refuses a request that has shown no token.
pub(super) fn check_access(access: Access) -> Result<(), Response> {
    match access {
        Access::Granted => Ok(()),
        Access::None => {
            let what = "a token is necessary: `Authorization: Bearer ..`";
            Err(refusal(StatusCode::UNAUTHORIZED, what))
        }
    }
}

/// The parameters of a query. What is not UTF-8 is replaced.
pub(super) fn params(query: Option<&str>) -> Params {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

pub(super) fn view_refusal(error: &ViewError) -> Response {
    let status = match error {
        ViewError::NoView | ViewError::NotFound => StatusCode::NOT_FOUND,
        ViewError::Query(_) => StatusCode::BAD_REQUEST,
    };
    refusal(status, error.to_string())
}

async fn hello(State(shared): State<Shared>, Extension(access): Extension<Access>) -> Response {
    let auth = if shared.guard.has_token() { Auth::Token } else { Auth::Peer };
    if access == Access::None {
        return answer(StatusCode::OK, &json!({ "schema": SCHEMA, "auth": auth }));
    }
    let mut hello = shared.source.hello();
    hello.auth = auth;
    match serde_json::to_value(hello) {
        Ok(value) => answer(StatusCode::OK, &value),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

async fn view(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    check_access(access)?;
    let view = shared.source.view(&name, &params(query.as_deref()));
    let value = view.map_err(|error| view_refusal(&error))?;
    Ok(answer(StatusCode::OK, &value))
}

async fn graph_svg(
    State(shared): State<Shared>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    check_access(access)?;
    let svg = shared.source.graph_svg(&params(query.as_deref()));
    let svg = svg.map_err(|error| view_refusal(&error))?;
    Ok(([(CONTENT_TYPE, "image/svg+xml")], svg).into_response())
}

async fn nothing(Extension(access): Extension<Access>) -> Result<Infallible, Response> {
    check_access(access)?;
    Err(refusal(StatusCode::NOT_FOUND, "there is nothing here"))
}

async fn wrong_method(Extension(access): Extension<Access>) -> Result<Infallible, Response> {
    check_access(access)?;
    Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "the method is wrong"))
}
