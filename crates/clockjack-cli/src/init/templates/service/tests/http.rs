//! Tests the pages in virtual time, without a socket: even a time-out takes no time.

use std::sync::Arc;

use axum::{
    body::{self, Body},
    http::{Request, StatusCode},
};
use clockjack::{prelude::*, testkit::ManualTime};
use tower::ServiceExt as _;

use {{crate}}::{
    http::{ANSWER_MAX, NOTE_LEN_MAX, pages},
    sessions::{Figures, Msg, Sessions},
};

fn sessions(time: &ManualTime) -> ActorRef<Msg> {
    let figures = Arc::new(Figures::default());
    let sessions = move || Sessions::new(10, Arc::clone(&figures));
    time.spawn("sessions", sessions)
}

/// Sends a request, and returns the status and the text of the response.
fn send(
    time: &ManualTime,
    to: &ActorRef<Msg>,
    method: &str,
    path: &str,
    text: &str,
) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request
        .body(Body::from(String::from(text)))
        .expect("the request is valid");
    let pages = pages(to.clone());
    time.block_on(async {
        let response = pages.oneshot(request).await.expect("it never fails");
        let status = response.status();
        let body = body::to_bytes(response.into_body(), 1 << 20).await;
        let text = String::from_utf8(body.expect("it is short").to_vec());
        (status, text.expect("it is text"))
    })
}

#[test]
fn notes_are_added_and_listed() {
    let time = ManualTime::start();
    let to = sessions(&time);
    let ann = "/sessions/ann";
    let ok = |text: &str| (StatusCode::OK, String::from(text));
    assert_eq!(send(&time, &to, "POST", ann, "milk"), ok("note 1\n"));
    assert_eq!(send(&time, &to, "POST", ann, "bread"), ok("note 2\n"));
    assert_eq!(send(&time, &to, "GET", ann, ""), ok("milk\nbread\n"));
    let health = send(&time, &to, "GET", "/health", "");
    assert_eq!(health, ok("ok, 1 sessions\n"));
    let (status, index) = send(&time, &to, "GET", "/", "");
    assert!(status.is_success() && index.contains("/sessions/NAME"));
}

#[test]
fn each_problem_has_its_status() {
    let time = ManualTime::start();
    let to = sessions(&time);
    for (method, path, text, expected) in [
        ("GET", "/nowhere", "", StatusCode::NOT_FOUND),
        ("GET", "/sessions/nobody", "", StatusCode::NOT_FOUND),
        ("POST", "/sessions/a%2Fb", "milk", StatusCode::BAD_REQUEST),
        ("DELETE", "/health", "", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let (status, body) = send(&time, &to, method, path, text);
        assert_eq!(status, expected, "{method} {path}: {body}");
    }
    let long = "x".repeat(NOTE_LEN_MAX + 1);
    let (status, _) = send(&time, &to, "POST", "/sessions/ann", &long);
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn a_service_that_does_not_answer_is_a_time_out() {
    let time = ManualTime::start();
    let silent = time.probe::<Msg>(); // keeps what it gets, and answers nothing
    let (status, _) = send(&time, &silent.actor_ref(), "GET", "/health", "");
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(time.elapsed(), ANSWER_MAX);
}
