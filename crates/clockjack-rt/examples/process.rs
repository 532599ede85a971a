//! A process that has commands carried out for it, a plain future, a resize and the end.
//!
//! `cargo run -p clockjack-rt --example process`
#![expect(clippy::print_stdout, reason = "an example that prints its result")]

use core::{error::Error, time::Duration};

use clockjack_rt::{PoolConfig, WorkerPool, exec::*};

struct Fetch(u32);
impl Command for Fetch {
    const ID: CommandId = CommandId(300);
    type Reply = String;
}

type Keys = [u32; 2];
/// Fetches what it is told to, and ends with the length of it all.
#[derive(Default)]
struct Sum {
    len: usize,
    open: usize,
}

impl Process for Sum {
    type Message = Keys;
    fn step(&mut self, events: &mut Events<'_, Keys>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        for event in events {
            match event {
                Event::Message(keys) => {
                    self.open += keys.len();
                    keys.into_iter().for_each(|key| out.yield_command(Tag(key.into()), Fetch(key)));
                }
                Event::YieldComplete { result, .. } => {
                    self.len += result?.downcast::<String>().map_or(0, |text| text.len());
                    self.open -= 1;
                    if self.open == 0 {
                        out.done(Payload::new(self.len));
                    }
                }
                _ => out.done(Payload::unit()), // it is asked to stop
            }
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let fetch = |Fetch(key), done: Completer<String>| done.complete(Ok(format!("value {key}")));
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new().handle(fetch))?;
    let sum = pool.submit(Sum::default())?;
    sum.tell([1, 2])?;
    let len = pool.block_on(sum.join())?.downcast::<usize>().map_err(|_| "no length")?;
    let answer = pool.block_on(pool.spawn_future(async { 6 * 7 }))?;
    pool.resize(4)?;
    println!("{len} bytes, {answer}, {} workers", pool.workers());
    assert_eq!((len, answer, pool.workers()), ("value 1value 2".len(), 42, 4));
    assert!(pool.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
