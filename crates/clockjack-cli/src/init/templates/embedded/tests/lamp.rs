//! The lamp on a PC: in virtual time, and on a board whose interrupts are calls.

use std::{cell::Cell, rc::Rc};

use clockjack::{prelude::*, testkit::ManualTime};

use {{crate}}::{
    Lamp, Led, Msg, SHINE,
    board::{self, Board},
};

/// A pin that a test can look at.
#[derive(Clone, Debug, Default)]
struct Pin(Rc<Cell<bool>>);

impl Led for Pin {
    fn set(&mut self, is_on: bool) {
        self.0.set(is_on);
    }
}

#[test]
fn a_lamp_shines_for_half_a_minute_after_the_last_press() -> Result<(), Failure> {
    let time = ManualTime::start();
    let pin = Pin::default();
    let lamp = time.spawn("lamp", Props::once(Lamp::new(pin.clone())));
    assert!(!pin.0.get());
    lamp.tell(Msg::Pressed)?;
    time.advance(SHINE / 2);
    assert!(pin.0.get());
    lamp.tell(Msg::Pressed)?; // the time begins anew
    time.advance(SHINE - Duration::from_millis(1));
    assert!(pin.0.get(), "a millisecond too soon");
    time.advance(Duration::from_millis(1));
    assert!(!pin.0.get());
    time.expect_no_failures();
    Ok(())
}

#[test]
fn the_board_runs_it_by_nothing_but_its_interrupts() -> Result<(), Box<dyn std::error::Error>> {
    let pin = Pin::default();
    // Each time that it waits for an interrupt, the one of the timer comes.
    let (mut root, lamp) = board::start(
        Board {
            wait: board::on_tick,
        },
        pin.clone(),
    )?;
    lamp.tell(Msg::Pressed)?; // what an interrupt of the button does
    let lit = pin.clone();
    root.blocking_dispatch_loop(move || lit.0.get());
    assert!(pin.0.get());
    let dark = pin.clone();
    root.blocking_dispatch_loop(move || !dark.0.get());
    assert!(!pin.0.get(), "it took thirty thousand interrupts");
    Ok(())
}
