//! A lamp that a button switches on and a timer switches off, without std.
//!
//! The actor knows neither the pins nor the clock: the pin is a [`Led`], and time is a message. So
//! the same code is tested on a PC and run on a board.
#![no_std]

pub mod board;

use clockjack::prelude::*;

/// How long the lamp shines after the last press.
pub const SHINE: Duration = Duration::from_secs(30);

/// A pin that switches a lamp.
pub trait Led: 'static {
    /// Switches it.
    fn set(&mut self, is_on: bool);
}

/// What a lamp is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Msg {
    /// Somebody has pressed the button. May be sent by an interrupt.
    Pressed,
    /// Nobody has, for as long as the lamp shines. It comes from the lamp's own timer.
    TimeOver,
}

/// Shines for [`SHINE`] after the last press.
#[derive(Debug)]
pub struct Lamp<L> {
    led: L,
}

impl<L: Led> Lamp<L> {
    /// A lamp that is dark.
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
                // The key has one timer: a new one takes the place of the old.
                cx.timers().single("shine", SHINE, Msg::TimeOver)?;
            }
            Msg::TimeOver => self.led.set(false),
        }
        Ok(Next::Stay)
    }
}
