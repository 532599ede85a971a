//! A supervised lamp as a task of Embassy, next to a plain Embassy task.
//!
//! `cargo run -p clockjack-embassy --example blinker` runs it on Embassy's std platform. On a board
//! only `main` differs: the HAL is set up there, and the last two lines are not reached.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, Failure, Limits, Next, Props, Signal, StaticError,
    Strategy, TerminationReport,
};
use clockjack_embassy::EmbassyToolbox;
use clockjack_time::{DriverError, Resolution};
use embassy_executor::Spawner;
use embassy_time::Timer;

static BURNT: StaticError = StaticError::new(1, "the lamp has burnt out");

enum Msg {
    Toggle,
    Button,
}

/// Toggles by the clock and by a button; every fifth time it fails, and is restarted.
#[derive(Default)]
struct Lamp {
    n_toggles: u32,
}

impl Actor for Lamp {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_rate("blink", Duration::from_millis(5), || Msg::Toggle)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Toggle if self.n_toggles == 4 => Err(BURNT.failure()),
            Msg::Toggle => {
                self.n_toggles += 1;
                println!("lamp is {}", if self.n_toggles % 2 == 1 { "on" } else { "off" });
                Ok(Next::Stay)
            }
            Msg::Button => {
                println!("button");
                drop(cx.system().shutdown());
                Ok(Next::Stay)
            }
        }
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("lamp: {signal:?}");
        Ok(Next::Stay)
    }
}

/// On a board this task would await the edge of a pin.
#[embassy_executor::task]
async fn button(lamp: ActorRef<Msg>) {
    Timer::after_millis(50).await;
    lamp.tell_or_dead_letter(Msg::Button);
}

/// The whole program.
pub(crate) async fn blink(spawner: Spawner) -> Result<TerminationReport, DriverError> {
    let builder = ActorSystem::builder("board").limits(Limits::SMALL);
    let toolbox = EmbassyToolbox::new(Resolution::MILLI);
    let mut system = toolbox.system(builder).expect("there is room");
    let strategy = Strategy::restart().limit(100, Duration::from_secs(60));
    let lamp = Props::new(Lamp::default).supervise(strategy);
    let lamp = system.spawn("lamp", lamp).expect("there is room");
    spawner.spawn(button(lamp)).expect("it runs once");
    system.run().await
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let report = blink(spawner).await.expect("nobody stops the driver");
    println!("{}", report.reason);
    std::process::exit(i32::from(!report.is_clean()));
}
