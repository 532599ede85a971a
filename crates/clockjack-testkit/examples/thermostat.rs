//! A day of a thermostat in virtual time: `cargo run -p clockjack-testkit --example thermostat`.
//!
//! The thermostat reads the temperature every ten minutes and turns the heating on or off. The test
//! plays both sides: the thermometer, which is asked, and the heating, which receives commands.

use core::time::Duration;

use clockjack_actor::{Actor, ActorRef, Context, Failure, Next, Props};
use clockjack_testkit::ManualTime;

/// How often the thermostat reads the temperature.
const PERIOD: Duration = Duration::from_secs(600);

/// The thermostat's request, with the receiver of the answer.
struct Read(ActorRef<Msg>);

enum Msg {
    Look,
    Celsius(i32),
}

struct Thermostat {
    thermometer: ActorRef<Read>,
    heating: ActorRef<bool>,
    is_on: bool,
}

impl Actor for Thermostat {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_rate("look", PERIOD, || Msg::Look)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Look => self.thermometer.tell(Read(cx.self_ref()))?,
            Msg::Celsius(degrees) => {
                let wanted = if self.is_on { degrees < 21 } else { degrees < 19 };
                if wanted != self.is_on {
                    self.is_on = wanted;
                    self.heating.tell(wanted)?;
                }
            }
        }
        Ok(Next::Stay)
    }
}

pub(crate) fn main() {
    let time = ManualTime::start();
    let (thermometer, heating) = (time.probe::<Read>(), time.probe::<bool>());
    let (ask, tell) = (thermometer.actor_ref(), heating.actor_ref());
    let make = move || Thermostat { thermometer: ask.clone(), heating: tell.clone(), is_on: false };
    time.spawn("thermostat", Props::new(make));

    let mut degrees = 22;
    let mut switched = Vec::new();
    for _ in 0..24 * 6 {
        let Read(answer_to) = thermometer.expect_within(PERIOD);
        answer_to.tell(Msg::Celsius(degrees)).expect("it is there");
        if heating.queued() > 0 {
            switched.push((time.elapsed().as_secs() / 60, heating.expect()));
        }
        degrees += if switched.last().is_some_and(|(_, is_on)| *is_on) { 1 } else { -1 };
    }
    heating.expect_none();
    time.expect_no_failures();
    assert_eq!(time.elapsed(), Duration::from_secs(86_400));
    assert_eq!(switched[..3], [(50, true), (80, false), (110, true)]);
}
