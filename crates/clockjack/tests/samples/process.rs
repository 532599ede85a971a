//! A raw process, a plain future, resize, shutdown.

use clockjack::{
    exec::{Command, CommandId, Commands, Event, Events, Payload, Process, StepOutput, Tag},
    prelude::*,
    rt::{PoolConfig, WorkerPool},
};

struct Fetch(u32);

impl Command for Fetch {
    const ID: CommandId = CommandId(300);
    type Reply = String;
}

/// Sums the lengths of what it fetches, and reports the sum when it is cancelled.
#[derive(Default)]
struct Sum {
    len: usize,
    open: u32,
}

impl Process for Sum {
    type Message = (u32, u32);

    fn step(
        &mut self,
        events: &mut Events<'_, (u32, u32)>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        let mut is_over = false;
        for event in events {
            match event {
                Event::Message((a, b)) => {
                    out.yield_command(Tag(1), Fetch(a));
                    out.yield_command(Tag(2), Fetch(b));
                    self.open += 2;
                }
                Event::YieldComplete { result, .. } => {
                    self.len += result?.downcast::<String>().map_or(0, |text| text.len());
                    self.open -= 1;
                }
                _ => is_over = true,
            }
        }
        if is_over || self.len > 0 && self.open == 0 {
            out.done(Payload::new(self.len));
        } else if self.open == 0 {
            out.idle();
        } else {
            out.wait();
        }
        Ok(())
    }
}

#[test]
fn a_process_has_its_commands_carried_out_and_a_pool_runs_futures_beside_it()
-> Result<(), Box<dyn core::error::Error>> {
    let fetch = |Fetch(key), done: clockjack::exec::Completer<String>| {
        done.complete(Ok(format!("value {key}")));
    };
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new().handle(fetch))?;
    let sum = pool.submit(Sum::default())?;
    sum.tell((1, 23))?;
    assert_eq!(pool.block_on(pool.spawn_future(async { 6 * 7 }))?, 42);
    pool.resize(8)?;
    let len = pool.block_on(sum.join())?.downcast::<usize>();
    assert_eq!(len.ok(), Some("value 1".len() + "value 23".len()));
    let stragglers = pool.shutdown(Duration::from_secs(10)).stragglers;
    assert!(stragglers.is_empty(), "{stragglers:?}");
    Ok(())
}
