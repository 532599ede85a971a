//! One address for many actors: round robin, by key, and broadcast.
//!
//! `cargo run --example routers`
#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::sync::mpsc::{self, Sender};

use clockjack::{
    actor::{Group, Pool, ServiceKey, router::hash_of},
    prelude::*,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A word to count, and where to send the name of the counter and its count so far.
struct Count {
    word: &'static str,
    reply_to: ReplyTo<(String, usize)>,
}

#[derive(Default)]
struct Counter {
    words: Vec<&'static str>,
}

impl Actor for Counter {
    type Msg = Count;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Count) -> Result<Next, Failure> {
        self.words.push(msg.word);
        let so_far = self.words.iter().filter(|word| **word == msg.word).count();
        msg.reply_to.reply((cx.path().name().to_owned(), so_far));
        Ok(Next::Stay)
    }
}

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("words")?;
    let count = |word, to: &ActorRef<Count>| {
        rt.block_on(to.ask(|reply_to| Count { word, reply_to }, PATIENCE))
    };

    // A pool starts its routees and supervises them. Its address is an ordinary actor address.
    let pool = Pool::round_robin(3, Counter::default).supervise(Strategy::restart());
    let in_turn = rt.spawn("in-turn", pool)?;
    for word in ["to", "be", "or", "not"] {
        let (who, _) = count(word, &in_turn)?;
        println!("in turn: {word} went to {who}");
    }

    // By key: a word always goes to the same routee, so one routee has its whole count.
    let pool = Pool::consistent_hash(3, |msg: &Count| hash_of(msg.word), Counter::default);
    let by_word = rt.spawn("by-word", pool)?;
    for word in ["to", "be", "or", "not", "to", "be"] {
        let (_, so_far) = count(word, &by_word)?;
        println!("by word: {word}, {so_far} so far");
    }

    // A group contains the actors that are registered under a key. This one sends to all of them.
    let key = ServiceKey::new("guard");
    for name in ["gate", "tower", "wall"] {
        let guard = Props::from_fn(|cx, report: Sender<String>| {
            report.send(cx.path().to_string())?;
            Ok(Next::Stay)
        });
        rt.system().receptionist().register(&key, &rt.spawn(name, guard)?)?;
    }
    let everybody = rt.spawn("everybody", Group::broadcast(&key))?;
    let (report, reports) = mpsc::channel();
    everybody.tell(report)?;
    let mut awake: Vec<String> = reports.iter().take(3).collect();
    awake.sort(); // they run in parallel, in any order
    println!("awake: {}", awake.join(" "));
    Ok(())
}
