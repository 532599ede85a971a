//! Asks that cannot be answered, or whose answer type does not match.

use clockjack_macros::actor;

struct ReplyTo<R = u32>(R);
struct Context<'a, A>(&'a A);

struct Log(String);

#[actor]
impl Log {
    #[ask]
    fn of_no_type(&mut self, reply_to: ReplyTo) {
        drop(reply_to.0);
    }

    #[ask]
    fn lent(&mut self, reply_to: &ReplyTo<u32>) {
        drop(reply_to.0);
    }

    #[ask]
    fn of_borrowed(&mut self, reply_to: ReplyTo<&str>) {
        drop(reply_to.0);
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

fn main() {}
