//! Tests the sessions in virtual time, without HTTP: nothing sleeps, and every run is the same.

use std::sync::Arc;

use clockjack::{prelude::*, testkit::ManualTime};

use {{crate}}::sessions::{Figures, IDLE_MAX, Msg, NOTES_MAX, Refusal, Request, Sessions};

/// Sessions in virtual time.
struct Fixture {
    time: ManualTime,
    sessions: ActorRef<Msg>,
}

impl Fixture {
    fn new(sessions_max: usize) -> Self {
        let time = ManualTime::start();
        let figures = Arc::new(Figures::default());
        let sessions = move || Sessions::new(sessions_max, Arc::clone(&figures));
        let sessions = time.spawn("sessions", sessions);
        Self { time, sessions }
    }

    fn ask<R: Send + 'static>(
        &self,
        name: &str,
        request: impl FnOnce(ReplyTo<Result<R, Refusal>>) -> Request,
    ) -> Result<R, Refusal> {
        let name = String::from(name);
        let request = |reply_to| Msg::To {
            name,
            request: request(reply_to),
        };
        let answer = self.sessions.ask(request, Duration::from_secs(1));
        self.time.block_on(answer).expect("there is an answer")
    }

    fn add(&self, name: &str, text: &str) -> Result<usize, Refusal> {
        let text = String::from(text);
        self.ask(name, |reply_to| Request::Add { text, reply_to })
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Refusal> {
        self.ask(name, |reply_to| Request::List { reply_to })
    }

    fn count(&self) -> usize {
        let answer = self.sessions.ask(Msg::Count, Duration::from_secs(1));
        self.time.block_on(answer).expect("there is an answer")
    }
}

#[test]
fn a_session_keeps_its_notes_and_no_others() {
    let fixture = Fixture::new(10);
    assert_eq!(fixture.list("ann"), Err(Refusal::NoSession));
    assert_eq!(fixture.add("ann", "milk"), Ok(1));
    assert_eq!(fixture.add("bob", "nails"), Ok(1));
    assert_eq!(fixture.add("ann", "bread"), Ok(2));
    assert_eq!(fixture.list("ann"), Ok(vec!["milk".into(), "bread".into()]));
    assert_eq!(fixture.list("bob"), Ok(vec!["nails".into()]));
    fixture.time.expect_no_failures();
}

#[test]
fn an_idle_session_ends_and_one_in_use_does_not() {
    let fixture = Fixture::new(10);
    fixture.add("ann", "milk").expect("there is room");
    fixture.add("bob", "nails").expect("there is room");
    fixture.time.advance(IDLE_MAX - Duration::from_millis(1));
    assert_eq!(fixture.list("ann"), Ok(vec!["milk".into()]));
    fixture.time.advance(Duration::from_millis(1)); // neither early nor late
    assert_eq!(fixture.count(), 1);
    assert_eq!(fixture.list("bob"), Err(Refusal::NoSession));
    assert_eq!(fixture.add("bob", "screws"), Ok(1), "a new session");
    fixture.time.advance(IDLE_MAX);
    assert_eq!(fixture.count(), 0);
    fixture.time.expect_no_failures();
}

#[test]
fn everything_is_bounded() {
    let fixture = Fixture::new(2);
    fixture.add("ann", "milk").expect("there is room");
    for n in 1..=NOTES_MAX {
        assert_eq!(fixture.add("bob", "a nail"), Ok(n));
    }
    assert_eq!(fixture.add("bob", "a nail"), Err(Refusal::SessionFull));
    assert_eq!(fixture.add("eve", "one more"), Err(Refusal::Busy));
    fixture.time.advance(IDLE_MAX);
    assert_eq!(fixture.add("eve", "one more"), Ok(1), "now there is room");
    fixture.time.expect_no_failures();
}
