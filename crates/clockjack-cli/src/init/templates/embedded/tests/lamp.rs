//! Tests the lamp on a PC: in virtual time, and on a simulated board.

use std::{cell::Cell, rc::Rc};

use clockjack::{prelude::*, testkit::ManualTime};

use {{crate}}::{
    Lamp, Led, Msg, ON_TIME,
    board::{self, Board},
};

/// A pin that a test can read.
#[derive(Clone, Debug, Default)]
struct Pin(Rc<Cell<bool>>);

impl Led for Pin {
    fn set(&mut self, is_on: bool) {
        self.0.set(is_on);
    }
}

#[test]
fn the_lamp_stays_on_for_half_a_minute_after_the_last_press() -> Result<(), Failure> {
    let time = ManualTime::start();
    let pin = Pin::default();
    let lamp = time.spawn("lamp", Props::once(Lamp::new(pin.clone())));
    assert!(!pin.0.get());
    lamp.tell(Msg::Pressed)?;
    time.advance(ON_TIME / 2);
    assert!(pin.0.get());
    lamp.tell(Msg::Pressed)?; // restarts the timer
    time.advance(ON_TIME - Duration::from_millis(1));
    assert!(pin.0.get(), "one millisecond too early");
    time.advance(Duration::from_millis(1));
    assert!(!pin.0.get());
    time.expect_no_failures();
    Ok(())
}

#[test]
fn interrupts_alone_drive_the_board() -> Result<(), Box<dyn std::error::Error>> {
    let pin = Pin::default();
    // Whenever the board waits for an interrupt, the timer interrupt occurs.
    let (mut root, lamp) = board::start(
        Board {
            wait: board::on_tick,
        },
        pin.clone(),
    )?;
    lamp.tell(Msg::Pressed)?; // what the interrupt handler of the button does
    let lit = pin.clone();
    root.blocking_dispatch_loop(move || lit.0.get());
    assert!(pin.0.get());
    let dark = pin.clone();
    root.blocking_dispatch_loop(move || !dark.0.get());
    assert!(!pin.0.get(), "off after 30000 interrupts");
    Ok(())
}
