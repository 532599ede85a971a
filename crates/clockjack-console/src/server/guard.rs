//! Who may ask: the rules that hold for every request before it is routed.
//!
//! Loopback alone protects nothing: a page of any site in a browser on this machine can reach it,
//! by a name that its owner lets point to 127.0.0.1 (DNS rebinding). Such a page cannot choose the
//! `Host` of its requests, nor hide its `Origin`. So on TCP, both must be ours, before anything
//! else is looked at; and the token is in a header that no page of another site can send without
//! permission, which is never given.

#![expect(clippy::result_large_err, reason = "a refusal is the response that is sent")]

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    body::{self, Body},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Version,
        header::{
            AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
            HOST, HeaderName, ORIGIN, REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::time::{Instant, timeout};

use super::routes::{check_access, refusal};
use crate::Token;

/// How many wrong tokens within [`WRONG_TIME`] close the listener for [`WRONG_TIME`].
pub(super) const WRONG_MAX: usize = 10;
const WRONG_TIME: Duration = Duration::from_secs(60);

/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// In which time a body must arrive.
const BODY_TIME: Duration = Duration::from_secs(5);

/// The headers of every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (CACHE_CONTROL, "no-store"),
];

/// Whether a request has shown that its sender may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// It has shown nothing; it gets what everybody gets.
    None,
}

/// The rules of one listener.
#[derive(Debug)]
pub(crate) struct Guard(Option<Tcp>);

#[derive(Debug)]
struct Tcp {
    token: Token,
    /// What `Host` may be, in lower case.
    hosts: Vec<String>,
    wrong: Mutex<Wrong>,
}

/// The times of wrong tokens.
#[derive(Debug, Default)]
struct Wrong {
    recent: VecDeque<Instant>,
    closed_until: Option<Instant>,
}

impl Wrong {
    fn is_closed(&self, now: Instant) -> bool {
        self.closed_until.is_some_and(|until| now < until)
    }

    fn add(&mut self, now: Instant) {
        self.recent.retain(|at| now.duration_since(*at) < WRONG_TIME);
        self.recent.push_back(now);
        if self.recent.len() >= WRONG_MAX {
            self.recent.clear();
            self.closed_until = Some(now + WRONG_TIME);
        }
    }
}

impl Guard {
    /// On a socket, the operating system has checked who connects.
    pub(super) const fn of_socket() -> Self {
        Self(None)
    }

    pub(super) fn of_tcp(at: SocketAddr, token: Token, names: Vec<String>) -> Self {
        let port = at.port();
        let mut hosts: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        if at.ip().is_loopback() || hosts.is_empty() {
            let own = ["127.0.0.1", "[::1]", "localhost"].map(|host| format!("{host}:{port}"));
            hosts.extend(own);
        }
        if !at.ip().is_unspecified() {
            hosts.push(at.to_string());
        }
        Self(Some(Tcp { token, hosts, wrong: Mutex::default() }))
    }

    /// How a client shows that it may look.
    pub(super) const fn has_token(&self) -> bool {
        self.0.is_some()
    }

    fn check(&self, request: &Request) -> Result<Access, Response> {
        check_form(request)?;
        let Some(tcp) = &self.0 else { return Ok(Access::Granted) };
        tcp.check_origin(request)?;
        tcp.check_token(request.headers())
    }
}

/// Refuses what two servers could read in two ways.
fn check_form(request: &Request) -> Result<(), Response> {
    let headers = request.headers();
    let bad = |what| Err(refusal(StatusCode::BAD_REQUEST, what));
    if request.version() != Version::HTTP_11 && request.version() != Version::HTTP_10 {
        return bad("this is a server of HTTP/1.1");
    }
    if headers.get_all(HOST).iter().count() > 1 {
        return bad("there are two `Host` headers");
    }
    if headers.get_all(ORIGIN).iter().count() > 1 {
        return bad("there are two `Origin` headers");
    }
    if headers.get_all(AUTHORIZATION).iter().count() > 1 {
        return bad("there are two `Authorization` headers");
    }
    // No client of ours needs it, and with it two servers may disagree where a request ends.
    if headers.contains_key(TRANSFER_ENCODING) {
        return bad("a body has a `Content-Length`");
    }
    if request.method() == Method::CONNECT {
        return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy"));
    }
    Ok(())
}

impl Tcp {
    fn check_origin(&self, request: &Request) -> Result<(), Response> {
        let foreign = |what| refusal(StatusCode::FORBIDDEN, what);
        let is_ours = |host: &str| self.hosts.iter().any(|ours| host.eq_ignore_ascii_case(ours));
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let Some(host) = host.filter(|host| is_ours(host)) else {
            return Err(foreign("`Host` is not an address of this console"));
        };
        // The absolute form of an address overrides `Host` (RFC 9112, 3.2.2).
        if request.uri().authority().is_some_and(|authority| authority.as_str() != host) {
            return Err(foreign("the address names another host"));
        }
        if let Some(origin) = request.headers().get(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
                return Err(foreign("`Origin` is not this console"));
            }
        }
        Ok(())
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<Access, Response> {
        let now = Instant::now();
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.is_closed(now) {
            let what = "too many wrong tokens; wait for a minute";
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, what));
        }
        let Some(shown) = headers.get(AUTHORIZATION) else { return Ok(Access::None) };
        let secret = shown.as_bytes().strip_prefix(b"Bearer ");
        if secret.is_some_and(|secret| self.token.ct_eq(secret)) {
            return Ok(Access::Granted);
        }
        wrong.add(now);
        Err(refusal(StatusCode::UNAUTHORIZED, "the token is wrong"))
    }
}

/// Applies the rules to a request, and the headers to its answer.
pub(super) async fn apply(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match admit(&guard, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.into_response()
}

/// The request with its body, if its sender may ask.
///
/// A connection is taken until the body has arrived, and there are few. So the server does not wait
/// for the body of a stranger, and for [`BODY_TIME`] only for that of a client.
async fn admit(guard: &Guard, mut request: Request) -> Result<Request, Response> {
    let access = guard.check(&request)?;
    request.extensions_mut().insert(access);
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        // No view reads a body.
        return Ok(request);
    }
    check_access(access).map_err(last)?;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if length.is_some_and(|length| length.parse().is_ok_and(|n: u64| n > BODY_BYTES_MAX as u64)) {
        let what = format!("a body has at most {BODY_BYTES_MAX} bytes");
        return Err(last(refusal(StatusCode::PAYLOAD_TOO_LARGE, what)));
    }
    let (head, unread) = request.into_parts();
    match timeout(BODY_TIME, body::to_bytes(unread, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(head, Body::from(bytes))),
        Ok(Err(_)) => Err(last(refusal(StatusCode::BAD_REQUEST, "the body is incomplete"))),
        Err(_) => Err(last(refusal(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"))),
    }
}

/// The answer as the last one of its connection: the rest of a body may still come.
fn last(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_wrong_tokens_within_a_minute_close_the_listener_for_a_minute() {
        let second = Duration::from_secs(1);
        let mut wrong = Wrong::default();
        let mut now = Instant::now();
        // Nine per minute may go on for ever.
        for _ in 0..100 {
            wrong.add(now);
            assert!(!wrong.is_closed(now));
            now += 7 * second;
        }
        now += WRONG_TIME;
        for _ in 0..WRONG_MAX {
            assert!(!wrong.is_closed(now));
            wrong.add(now);
        }
        assert!(wrong.is_closed(now));
        assert!(wrong.is_closed(now + 59 * second));
        assert!(!wrong.is_closed(now + 60 * second));
    }
}
