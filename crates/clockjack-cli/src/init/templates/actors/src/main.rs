//! Five requests to a throttle that lets three through.

use clockjack::prelude::*;

use {{crate}}::{Msg, Throttle};

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("{{name}}")?;
    // What is spawned is a way to make the actor, so that it can be made again after a failure.
    let throttle = rt.spawn("throttle", || Throttle::new(3, Duration::from_secs(1)))?;
    for n in 1..=5 {
        let may_enter = rt.block_on(throttle.ask(Msg::Enter, Duration::from_secs(1)))?;
        println!(
            "request {n}: {}",
            if may_enter { "let through" } else { "later" }
        );
    }
    let report = rt.shutdown(Duration::from_secs(1));
    println!("ended: {}", report.reason);
    Ok(())
}
