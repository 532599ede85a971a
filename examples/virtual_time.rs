//! Tests without waiting: the test advances the clock, and every run is the same.
//!
//! `cargo run --example virtual_time --features testkit`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::{prelude::*, testkit::ManualTime};

/// What a session sends to its user.
#[derive(Debug, PartialEq)]
enum Reply {
    Welcome,
    TooLate,
}

enum Msg {
    Password(&'static str),
    LoginTooLate,
}

/// Stops after five seconds without a login, and later after an hour of silence.
struct Session {
    user: ActorRef<Reply>,
}

impl Actor for Session {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().single("login", Duration::from_secs(5), Msg::LoginTooLate)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Password("sesame") => {
                cx.timers().cancel("login");
                cx.set_receive_timeout(Duration::from_secs(3600));
                self.user.tell(Reply::Welcome)?;
            }
            Msg::Password(_) => {}
            Msg::LoginTooLate => {
                self.user.tell(Reply::TooLate)?;
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        Ok(if let Signal::ReceiveTimeout = signal { Next::Stop } else { Next::Unhandled })
    }
}

fn main() -> Result<(), Failure> {
    // A whole system on this thread. Time advances only when this code says so.
    let time = ManualTime::start();
    let user = time.probe::<Reply>(); // replaces the user and records its messages
    let session = || {
        let user = user.actor_ref();
        Props::new(move || Session { user: user.clone() })
    };

    let late = time.spawn("late", session());
    late.tell(Msg::Password("please"))?;
    time.advance(Duration::from_millis(4_999));
    user.expect_none();
    println!("at {:?}: nothing yet", time.elapsed());
    time.advance(Duration::from_millis(1)); // exactly on time
    user.expect_eq(Reply::TooLate);
    user.expect_terminated(&late);
    println!("at {:?}: too late, and the session is over", time.elapsed());

    let prompt = time.spawn("prompt", session());
    time.advance(Duration::from_secs(3));
    prompt.tell(Msg::Password("sesame"))?;
    user.expect_eq(Reply::Welcome);
    println!("at {:?}: welcome", time.elapsed());
    user.expect_none_for(Duration::from_secs(3599)); // takes no real time
    user.expect_terminated_within(&prompt, Duration::from_secs(1));
    println!("at {:?}: silent for an hour, and the session is over", time.elapsed());

    time.expect_no_failures();
    Ok(())
}
