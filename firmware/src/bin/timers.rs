//! The cost of timers: instructions per timer, with 1,000 and with 10,000 timers.
//!
//! For a machine whose time counts instructions (`-icount shift=0`: one instruction is a
//! nanosecond) and which has enough memory. The tick interrupt is included, once per millisecond.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;

use clockjack_firmware::{board, out, program};
use clockjack_time::{GrowingWheel, Tick, TimerId, WheelConfig};

program!(run);

fn run() {
    board::start_ticks();
    for n in [1_000, 10_000] {
        let costs = measure(n);
        for (name, nanos) in ["arm", "cancel", "fire"].into_iter().zip(costs) {
            // Two decimals without floating point, whose formatting code is large.
            let hundredths = nanos * 100 / u64::from(n);
            clockjack_firmware::line!("# {name} {n} {}.{:02}", hundredths / 100, hundredths % 100);
        }
    }
    out::fact("ticks", board::now());
}

/// Nanoseconds for arming, for cancelling, and for firing all timers.
fn measure(n: u32) -> [u64; 3] {
    let config = WheelConfig { capacity: n as usize, ..WheelConfig::DEFAULT };
    let mut wheel: GrowingWheel<u32> = GrowingWheel::new(config);
    wheel.reserve_all();
    let mut ids: Vec<TimerId> = Vec::with_capacity(n as usize);
    let mut deadlines = Deadlines(1);

    let begun = board::nanos();
    for value in 0..n {
        let id = wheel.insert(deadlines.next(), value).expect("there is room");
        ids.push(id);
    }
    let armed = board::nanos() - begun;

    let begun = board::nanos();
    for id in ids.drain(..) {
        black_box(wheel.cancel(id));
    }
    let cancelled = board::nanos() - begun;

    for value in 0..n {
        wheel.insert(deadlines.next(), value).expect("there is room");
    }
    let begun = board::nanos();
    let mut fired = 0;
    for tick in 1..=Deadlines::MAX {
        for expired in wheel.advance(Tick::new(tick), usize::MAX) {
            black_box(expired.value);
            fired += 1;
        }
    }
    let fire = board::nanos() - begun;
    assert_eq!(fired, n);
    [armed, cancelled, fire]
}

/// Random deadlines in the next second, the same in each run.
struct Deadlines(u32);

impl Deadlines {
    const MAX: u64 = 1_000;

    fn next(&mut self) -> Tick {
        // The generator of Park and Miller (1988), with the multiplier of 1993.
        self.0 = (u64::from(self.0) * 48_271 % 0x7FFF_FFFF) as u32;
        Tick::new(1 + u64::from(self.0) % Self::MAX)
    }
}
