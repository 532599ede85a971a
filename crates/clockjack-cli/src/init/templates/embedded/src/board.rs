//! The board: a timer interrupt that counts ticks, and a function that waits for an interrupt.

use clockjack::{
    actor::RootContext,
    exec::{Limits, StartError, Toolbox},
    prelude::*,
    time::{InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver},
};

use crate::{Lamp, Led, Msg};

static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);

/// Call this function from the handler of a timer interrupt, once per millisecond.
pub fn on_tick() {
    TICKS.notify_tick();
}

/// The platform services that the runtime needs.
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

    // The interrupt that calls this function has already woken the processor.
    fn unpark(&self) {}
}

/// Starts a system with one lamp. Returns the system and the address to which button presses are
/// sent.
///
/// # Errors
///
/// If the memory does not suffice.
///
/// # Panics
///
/// If the lamp cannot be spawned; the limits below leave room for it.
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
