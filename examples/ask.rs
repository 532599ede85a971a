//! Ask: methods as messages; immediate, delayed and missing answers.
//!
//! `cargo run --example ask`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use clockjack::prelude::*;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A shelf of books, and the readers who wait for one.
#[derive(Default)]
struct Library {
    books: Vec<String>,
    waiting: Vec<ReplyTo<String>>,
}

// Generates `LibraryMsg`, `impl Actor for Library`, and `LibraryApi`: these methods on an address.
#[actor]
impl Library {
    /// A tell: the caller does not wait.
    #[msg]
    fn give_back(&mut self, title: String) {
        match self.waiting.pop() {
            Some(reader) => reader.reply(title),
            None => self.books.push(title),
        }
    }

    /// An ask: the return value is the answer.
    #[ask]
    fn count(&self) -> usize {
        self.books.len()
    }

    /// An ask that a later message may answer.
    #[ask]
    fn borrow_one(&mut self, reply_to: ReplyTo<String>) {
        match self.books.pop() {
            Some(title) => reply_to.reply(title),
            None => self.waiting.push(reply_to),
        }
    }

    /// Every waiting reader gets an error immediately.
    #[msg]
    fn close(&mut self) {
        self.waiting.clear();
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("town")?;
    let library = rt.spawn("library", Library::default)?;

    library.give_back("Emma".into())?;
    println!("{} on the shelf", rt.block_on(library.count(PATIENCE))?);
    println!("first reader: {}", rt.block_on(library.borrow_one(PATIENCE))?);

    // The call sends the question; the program awaits the answer when it needs it.
    let second = library.borrow_one(PATIENCE);
    library.give_back("Middlemarch".into())?;
    println!("second reader: {}", rt.block_on(second)?);

    // Every ask has a time-out.
    let third = rt.block_on(library.borrow_one(Duration::from_millis(20)));
    println!("third reader: {}", explain(third));

    let fourth = library.borrow_one(PATIENCE);
    library.close()?;
    println!("fourth reader: {}", explain(rt.block_on(fourth)));

    rt.system().stop(&library)?;
    rt.block_on(rt.system().when_stopped(&library));
    let fifth = rt.block_on(library.borrow_one(PATIENCE));
    println!("fifth reader: {}", explain(fifth));
    Ok(())
}

fn explain(answer: Result<String, AskError>) -> String {
    match answer {
        Ok(title) => title,
        Err(error) if error.is_timed_out() => "it took too long".into(),
        Err(error) if error.is_dropped() => "they will not answer".into(),
        Err(error) if error.is_stopped() => "the library is gone".into(),
        Err(error) => error.to_string(),
    }
}
