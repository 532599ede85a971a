//! Asks that cannot be answered, or whose answer type does not match.

use clockjack_macros::actor;

pub type ReplyTo<R = u32> = stub::ReplyTo<R>;

struct Log(String);

#[actor]
impl Log {
    #[ask]
    fn of_no_type(&mut self, reply_to: ReplyTo) {
        let _ = reply_to;
    }

    #[ask]
    fn lent(&mut self, reply_to: &ReplyTo<u32>) {
        let _ = reply_to;
    }

    #[ask]
    fn of_borrowed(&mut self, reply_to: ReplyTo<&str>) {
        let _ = reply_to;
    }

    #[ask]
    fn borrowed_in_a_result(&self) -> Result<&str, String> {
        Ok(&self.0)
    }

    #[ask]
    fn parsed<T: std::str::FromStr>(&self) -> Option<T> {
        self.0.parse().ok()
    }

    #[ask]
    async fn with_context(&mut self, _cx: &mut Context<'_, Self>) -> u32 {
        0
    }

    #[ask]
    async fn borrowed_later(&mut self) -> &str {
        &self.0
    }

    #[ask]
    fn new() -> Log {
        Log(String::new())
    }

    #[ask]
    fn into_text(self) -> String {
        self.0
    }

    #[ask]
    fn ask_with_status(&self) -> u32 {
        0
    }
}

const SOON: core::time::Duration = core::time::Duration::ZERO;

fn main() {
    let log = spawn(|| Log(String::new()));
    drop((log.of_borrowed(SOON), log.borrowed_in_a_result(SOON), log.with_context(SOON)));
    drop((log.borrowed_later(SOON), log.new(SOON), log.into_text(SOON)));
}

// What generated code names.
extern crate alloc;
extern crate self as clockjack_actor;
#[path = "../stub/ui.rs"]
mod stub;
pub use stub::*;
