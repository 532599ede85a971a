//! Bare metal: any actor, unchanged; the clock of the board is advanced by the test.

use clockjack::{
    actor::RootContext,
    exec::{Limits, Toolbox},
    prelude::*,
    time::{InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver},
};

static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);

struct Board;

impl Toolbox for Board {
    fn clock(&self) -> &dyn MonotonicClock {
        &TICKS
    }

    fn driver(&self) -> &dyn TickDriver {
        &TICKS
    }

    fn park(&self, _until: Option<Tick>) {
        sys_tick(); // would wait for an interrupt, and this is the one that comes
    }

    fn unpark(&self) {}
}

/// The handler of the timer interrupt.
fn sys_tick() {
    TICKS.notify_tick();
}

/// The handler of another interrupt.
fn gpio(to: &ActorRef<u8>) {
    assert!(to.tell(1).is_ok(), "there is room");
}

/// Counts presses, and blinks a while after the third.
#[derive(Default)]
struct Blinker {
    presses: u8,
}

impl Actor for Blinker {
    type Msg = u8;

    fn receive(&mut self, cx: &mut Context<'_, Self>, presses: u8) -> Result<Next, Failure> {
        if presses == 0 {
            return Ok(Next::Stop);
        }
        self.presses += presses;
        if self.presses == 3 {
            cx.timers().single("blink", Duration::from_millis(5), 0)?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn an_actor_runs_on_a_board_that_only_counts_ticks() {
    let limits = Limits::SMALL.processes(8).timers(16);
    let mut root = RootContext::new(Board, ActorSystem::builder("board").limits(limits))
        .expect("a board has room for a system");
    let blinker =
        Props::new(Blinker::default).mailbox(Mailbox::bounded(8)).supervise(Strategy::restart());
    let blinker = root.spawn("blinker", blinker).expect("a board has room for an actor");
    for _ in 0..3 {
        gpio(&blinker);
    }
    let seen = blinker.clone();
    root.blocking_dispatch_loop(move || seen.is_stopped());
    assert!(blinker.is_stopped());
}
