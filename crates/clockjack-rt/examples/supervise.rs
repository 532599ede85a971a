//! A process that starts another, is notified of its failures, and starts it again.
//!
//! `cargo run -p clockjack-rt --example supervise`
#![expect(clippy::print_stdout, reason = "an example that prints its result")]

use core::{error::Error, time::Duration};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{builtin::Spawn, *},
};

/// Fails, unless it is the third.
struct Line(u32);
impl Process for Line {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::unit());
        if self.0 < 3 { Err(Failure::msg("the line is dead")) } else { Ok(()) }
    }
}

#[derive(Default)]
struct Operator(u32);

impl Operator {
    fn connect(&mut self, out: &mut StepOutput) {
        self.0 += 1;
        out.yield_command(Tag(0), Spawn::new(Line(self.0)).linked().monitored());
    }
}

impl Process for Operator {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        if self.0 == 0 {
            out.trap_links(true); // else the first failure would end it too
            self.connect(out);
        }
        for event in events {
            match event {
                Event::LinkDown { .. } => self.connect(out),
                Event::Exit { pid, reason } if reason.is_failure() => println!("{pid} {reason}"),
                Event::Exit { .. } | Event::Cancel { .. } => out.done(Payload::new(self.0)),
                _ => {} // the pid of a line
            }
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    let operator = pool.submit(Operator::default())?;
    let lines = pool.block_on(operator.join())?.downcast::<u32>().map_err(|_| "no count")?;
    println!("connected by line {lines}");
    assert_eq!(lines, 3);
    assert!(pool.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
