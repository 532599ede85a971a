//! The board: a timer interrupt that counts ticks, and a way to wait for the next interrupt.

use clockjack::{
    actor::RootContext,
    exec::{Limits, StartError, Toolbox},
    prelude::*,
    time::{InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver},
};

use crate::{Lamp, Led, Msg};

static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);

/// To be called by the handler of a timer interrupt, each millisecond.
pub fn on_tick() {
    TICKS.notify_tick();
}

/// What the runtime asks of a board.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// Waits for the next interrupt: `wfi` on ARM and RISC-V.
    pub wait: fn(),
}

impl Toolbox for Board {
    fn clock(&self) -> &dyn MonotonicClock {
        &TICKS
    }

    fn driver(&self) -> &dyn TickDriver {
        &TICKS
    }

    fn park(&self, _until: Option<Tick>) {
        (self.wait)();
    }

    // The interrupt that calls this has ended the waiting already.
    fn unpark(&self) {}
}

/// A system with one lamp, and how it is told that somebody has pressed the button.
///
/// # Errors
///
/// If there is no room for it.
///
/// # Panics
///
/// If the lamp is refused, which the limits here leave room for.
pub fn start<L: Led>(board: Board, led: L) -> Result<(RootContext, ActorRef<Msg>), StartError> {
    let limits = Limits::SMALL.processes(8).timers(16);
    let system = ActorSystem::builder("board").limits(limits);
    let mut root = RootContext::new(board, system)?;
    let lamp = Props::once(Lamp::new(led)).mailbox(Mailbox::bounded(8));
    let lamp = root
        .spawn("lamp", lamp)
        .expect("the limits leave room for one actor");
    Ok((root, lamp))
}
