//! Messages that arrive too early are stashed, up to a bound, and handled later.
//!
//! `cargo run --example stash`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::prelude::*;

enum Msg {
    Line(&'static str),
    Connected,
    HangUp(ReplyTo<u32>),
}

/// Sends lines, once it is connected.
#[derive(Default)]
struct Session {
    is_connected: bool,
    sent: u32,
}

impl Actor for Session {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Line(line) if !self.is_connected => match cx.stash(msg) {
                Ok(()) => println!("kept: {line} ({} of 2)", cx.stash_len()),
                Err(_full) => println!("no room: {line}"), // the message is in the error
            },
            Msg::Line(line) => {
                self.sent += 1;
                println!("sent: {line}");
            }
            Msg::Connected => {
                println!("connected");
                self.is_connected = true;
                cx.unstash_all(); // before the mailbox, in the order of arrival
            }
            Msg::HangUp(reply_to) => {
                reply_to.reply(self.sent);
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Stay)
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("exchange")?;
    // The props of the actor set the capacity of its stash.
    let session = rt.spawn("session", Props::new(Session::default).stash(2))?;
    for line in ["one", "two", "three"] {
        session.tell(Msg::Line(line))?;
    }
    session.tell(Msg::Connected)?;
    session.tell(Msg::Line("four"))?;

    let sent = rt.block_on(session.ask(Msg::HangUp, Duration::from_secs(10)))?;
    println!("{sent} lines sent");
    Ok(())
}
