//! Sends five requests to a throttle that admits three.

use clockjack::prelude::*;

use {{crate}}::{Msg, Throttle};

fn main() -> Result<(), Failure> {
    let rt = Runtime::new("{{name}}")?;
    // `spawn` takes a factory, so that the actor can be restarted after a failure.
    let throttle = rt.spawn("throttle", || Throttle::new(3, Duration::from_secs(1)))?;
    for n in 1..=5 {
        let may_enter = rt.block_on(throttle.ask(Msg::Enter, Duration::from_secs(1)))?;
        println!(
            "request {n}: {}",
            if may_enter { "admitted" } else { "rejected" }
        );
    }
    let report = rt.shutdown(Duration::from_secs(1));
    println!("{report}");
    Ok(())
}
