//! A lamp that a button switches on and a timer switches off, without std.
//!
//! The actor depends neither on the pins nor on the clock: the pin is a [`Led`], and a timer sends
//! a message. Therefore the same code is tested on a PC and runs on a board.
#![no_std]

pub mod board;

use clockjack::prelude::*;

/// How long the lamp stays on after the last press.
pub const ON_TIME: Duration = Duration::from_secs(30);

/// A pin that switches a lamp.
pub trait Led: 'static {
    /// Switches the lamp on or off.
    fn set(&mut self, is_on: bool);
}

/// The messages of a lamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Msg {
    /// The button was pressed. An interrupt handler may send this message.
    Pressed,
    /// The button was not pressed for [`ON_TIME`]. The lamp's own timer sends this message.
    TimedOut,
}

/// Stays on for [`ON_TIME`] after the last press.
#[derive(Debug)]
pub struct Lamp<L> {
    led: L,
}

impl<L: Led> Lamp<L> {
    /// A lamp that is off.
    pub fn new(mut led: L) -> Self {
        led.set(false);
        Self { led }
    }
}

impl<L: Led> Actor for Lamp<L> {
    type Msg = Msg;

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        match msg {
            Msg::Pressed => {
                self.led.set(true);
                // A key has at most one timer: the new timer replaces the old one.
                cx.timers().single("off", ON_TIME, Msg::TimedOut)?;
            }
            Msg::TimedOut => self.led.set(false),
        }
        Ok(Next::Stay)
    }
}
