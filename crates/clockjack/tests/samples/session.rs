//! Keyed timers, receive time-out, stash, virtual time.

use clockjack::{
    prelude::*,
    testkit::{ManualTime, TestProbe, for_each_seed},
};

#[derive(Debug, PartialEq)]
enum Reply {
    Line(String),
    Missed(u32),
    TimedOut,
}

enum Msg {
    Connected,
    Data(String),
    Beat,
    LoginTooLate,
}

struct Session {
    out: ActorRef<Reply>,
    ready: bool,
}

impl Actor for Session {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().single("login", Duration::from_secs(5), Msg::LoginTooLate)?;
        cx.timers().fixed_rate("beat", Duration::from_secs(10), || Msg::Beat)?;
        cx.set_receive_timeout(Duration::from_secs(30));
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Data(line) if !self.ready => cx.stash(Msg::Data(line))?,
            Msg::Data(line) => self.out.tell(Reply::Line(line))?,
            Msg::Connected => {
                self.ready = true;
                cx.timers().cancel("login");
                cx.unstash_all();
            }
            Msg::Beat => {
                let missed = cx.scheduler_batch().map_or(0, |batch| batch.missed_runs);
                self.out.tell(Reply::Missed(missed))?;
            }
            Msg::LoginTooLate => {
                self.out.tell(Reply::TimedOut)?;
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, s: Signal) -> Result<Next, Failure> {
        Ok(if let Signal::ReceiveTimeout = s { Next::Stop } else { Next::Unhandled })
    }
}

#[test]
fn a_login_after_five_seconds_is_refused() {
    let time = ManualTime::start();
    let out = time.probe::<Reply>();
    let to = out.actor_ref();
    let session = Props::new(move || Session { out: to.clone(), ready: false }).stash(100);
    let session = time.spawn("session", session);
    time.advance(Duration::from_millis(4_999));
    out.expect_none();
    time.advance(Duration::from_millis(1));
    out.expect_eq(Reply::TimedOut);
    out.expect_terminated(&session);
    time.expect_no_failures();
}

/// As above, with a timeout that beats do not postpone.
fn session(time: &ManualTime) -> (TestProbe<Reply>, ActorRef<Msg>) {
    let out = time.probe::<Reply>();
    let to = out.actor_ref();
    let props = Props::new(move || Session { out: to.clone(), ready: false })
        .stash(100)
        .receive_timeout_ignores(|msg| matches!(msg, Msg::Beat));
    (out, time.spawn("session", props))
}

#[test]
fn what_came_before_the_connection_is_handled_behind_it() -> Result<(), Failure> {
    let time = ManualTime::start();
    let (out, session) = session(&time);
    session.tell(Msg::Data("early".into()))?;
    out.expect_none();
    session.tell(Msg::Connected)?;
    session.tell(Msg::Data("late".into()))?;
    out.expect_eq(Reply::Line("early".into()));
    out.expect_eq(Reply::Line("late".into()));
    time.advance(Duration::from_secs(10));
    out.expect_eq(Reply::Missed(0));
    time.expect_no_failures();
    Ok(())
}

#[test]
fn what_came_before_the_login_is_handled_behind_it() {
    for_each_seed(0..20, |time| {
        let (out, session) = session(time);
        for line in ["one", "two"] {
            assert!(session.tell(Msg::Data(line.into())).is_ok());
        }
        out.expect_none_for(Duration::from_secs(4));
        assert!(session.tell(Msg::Connected).is_ok());
        out.expect_eq(Reply::Line("one".into()));
        out.expect_eq(Reply::Line("two".into()));
        time.expect_no_failures();
    });
}

#[test]
fn a_session_that_is_silent_for_thirty_seconds_ends() {
    let time = ManualTime::start();
    let (out, session) = session(&time);
    assert!(session.tell(Msg::Connected).is_ok());
    for _ in 0..2 {
        time.advance(Duration::from_secs(10));
        out.expect_eq(Reply::Missed(0));
    }
    out.expect_none_for(Duration::from_secs(9));
    assert!(!session.is_stopped());
    out.expect_terminated_within(&session, Duration::from_secs(1));
    time.expect_no_failures();
}
