//! Bugs that timer wheels have had, each as the behaviour that it broke.
//!
//! Each test is named after the project in which the bug occurred; the wheels there are built
//! differently, so the test repeats the situation, not the code.
#![cfg(not(loom))]
#![cfg(feature = "alloc")]

extern crate alloc;

#[path = "support/wheels.rs"]
mod wheels;

use alloc::collections::BTreeMap;

use clockjack_testing::Random;
use clockjack_time::{FixedWheel, GrowingWheel, Tick};
use wheels::{RANGE, at, fire, tick};

/// tokio 8334: a timer nearly a whole lap of the top level ahead shares the slot of the current
/// tick, and fired immediately, or was kept for another lap.
#[test]
fn a_timer_in_the_top_levels_own_slot_waits_for_its_lap() {
    let top = RANGE / 4;
    for turn in [0, 1, 5, 1 << 10, 1 << 16] {
        for inside in [1, 17, 4_096, top - 1] {
            let start = turn * RANGE + 2 * top + inside;
            // In the slot of the cursor, one lap later: before, at and behind the current tick.
            for deadline in
                [start + RANGE - inside, start + RANGE - 1, start + RANGE, start + RANGE + 1]
            {
                let mut wheel = at(start);
                wheel.insert(tick(deadline), ()).expect("room");
                wheel.insert(tick(start + 1), ()).expect("room");
                assert_eq!(fire(&mut wheel, start + 1).len(), 1);
                assert_eq!(wheel.next_deadline(), Some(tick(deadline)));
                for step in 1..=8 {
                    let to = start + (deadline - 1 - start) * step / 8;
                    assert_eq!(fire(&mut wheel, to), [], "early at {to}, due at {deadline}");
                }
                assert_eq!(fire(&mut wheel, deadline), [(deadline, ())]);
            }
        }
    }
}

/// tokio-timer: 2^36 ms, about two years, was the range of its wheel: beyond it timers panicked or
/// fired immediately.
#[test]
fn two_to_the_thirty_six_is_a_delay_like_any_other() {
    for around in [36, 30, 42, 48] {
        let border = 1_u64 << around;
        for delay in [border - 1, border, border + 1, 2 * border] {
            for start in [0, border - 1, border] {
                let mut wheel = at(start);
                wheel.insert(tick(start + delay), delay).expect("room");
                assert_eq!(fire(&mut wheel, start + delay - 1), [], "early by one");
                assert_eq!(fire(&mut wheel, start + delay), [(start + delay, delay)]);
            }
        }
    }
}

/// tokio-timer 684: a clock that stepped back made a subtraction overflow, and panicked.
#[test]
fn a_clock_that_jumps_about_never_fires_a_timer_early_or_twice() {
    let mut wheel = at(1 << 20);
    let deadlines = [(1 << 20) + 10, (1 << 20) + 5_000, (1 << 21) + 7, 1 << 33];
    for deadline in deadlines {
        wheel.insert(tick(deadline), deadline).expect("room");
    }
    let mut fired = Vec::new();
    let clock = [
        (1 << 20) + 9,
        0,
        (1 << 20) + 10, // the first
        (1 << 20) - 1,
        7,
        1 << 21, // the second
        (1 << 20) + 11,
        (1 << 33) - 1, // the third
        0,
        1 << 33, // the last
        1,
    ];
    let mut latest = 1 << 20;
    for now in clock {
        latest = latest.max(now);
        for (deadline, value) in fire(&mut wheel, now) {
            assert!(deadline <= latest, "{deadline} at {now}");
            fired.push(value);
        }
        assert_eq!(wheel.elapsed(), tick(latest));
    }
    assert_eq!(fired, deadlines);
}

/// rpc-perf 180: a delay longer than the wheel was folded into it and fired laps too early.
#[test]
fn a_delay_longer_than_the_wheel_does_not_fire_a_lap_early() {
    for laps in [1, 2, 3, 64, 1_000] {
        for offset in [0, 1, 63, 64, 4_097, RANGE - 1] {
            let deadline = laps * RANGE + offset;
            let mut wheel = at(0);
            wheel.insert(tick(deadline), ()).expect("room");
            let mut fixed = FixedWheel::<(), 2>::fixed(Tick::ZERO);
            fixed.insert(tick(deadline), ()).expect("room");
            for lap in 0..laps {
                let to = (lap * RANGE + offset).min(deadline - 1);
                assert_eq!(fire(&mut wheel, to), [], "lap {lap} of {laps}");
                assert_eq!(fire(&mut fixed, to), [], "lap {lap} of {laps}");
            }
            assert_eq!(fire(&mut wheel, deadline), [(deadline, ())]);
            assert_eq!(fire(&mut fixed, deadline), [(deadline, ())]);
        }
    }
}

/// Akka's scheduler: after its thread overslept, a timer armed in the meantime was placed relative
/// to the wheel's tick and not to the current time, and fired early by the difference.
#[test]
fn a_timer_armed_after_a_late_poll_is_not_early_by_the_delay() {
    for overslept in [1, 2, 63, 64, 100, 4_097, 300_000, RANGE + 1, 1 << 30] {
        for delay in [1, 2, 64, 65, 5_000, RANGE - 1, RANGE, RANGE + 1] {
            let mut wheel = at(10);
            wheel.insert(tick(11), "old").expect("room");
            // The wheel is still at 10 when the timer is armed by the true time.
            let now = 10 + overslept;
            wheel.insert(tick(now + delay), "new").expect("room");
            assert_eq!(fire(&mut wheel, now), [(11, "old")]);
            assert_eq!(fire(&mut wheel, now + delay - 1), [], "early");
            assert_eq!(fire(&mut wheel, now + delay), [(now + delay, "new")]);
        }
    }
}

/// tokio 3229 and Netty: a timer is cancelled in the very tick in which it is due, after some
/// timers of that tick have fired: it must not fire, and the others must.
#[test]
fn a_cancel_in_the_tick_that_is_firing_hits_only_its_timer() {
    for fired_before in 0..10 {
        for victim in 0..10 {
            let mut wheel = at(0);
            let ids: Vec<_> =
                (0..10).map(|value| wheel.insert(tick(70), value).expect("room")).collect();
            let first: Vec<usize> =
                wheel.advance(tick(70), usize::MAX).take(fired_before).map(|t| t.value).collect();
            assert_eq!(first, (0..fired_before).collect::<Vec<_>>());
            let cancelled = wheel.cancel(ids[victim]);
            assert_eq!(cancelled, (victim >= fired_before).then_some(victim));
            let rest: Vec<_> = fire(&mut wheel, 70).into_iter().map(|(_, value)| value).collect();
            assert_eq!(rest, (fired_before..10).filter(|v| *v != victim).collect::<Vec<_>>());
        }
    }
}

/// Erlang, Ratas and others: a jump over many laps fires everything, in order of deadline and not
/// of slot.
#[test]
fn a_jump_over_many_laps_fires_in_order_of_deadline() {
    let mut wheel = at(0);
    let mut expected = Vec::new();
    for number in 0..2_000_u64 {
        let deadline = 1 + number * 2_654_435_761 % (1 << 24);
        wheel.insert(tick(deadline), number).expect("room");
        expected.push((deadline, number));
    }
    expected.sort_unstable();
    assert_eq!(fire(&mut wheel, 1 << 50), expected);
}

/// Ten thousand years in milliseconds.
const MILLENNIA: u64 = 10_000 * 31_556_952_000;

/// A host that simulates ten thousand years, sleeping until `next_deadline`, mostly exactly,
/// sometimes shorter or longer. Each timer that fires arms another one; distances are of every
/// size, so that every digit of the time wraps often while timers are armed.
struct Traveller {
    wheel: GrowingWheel<u64>,
    /// The deadline of each live timer, by its number.
    expected: BTreeMap<u64, u64>,
    random: Random,
    armed: u64,
    /// How often each digit of six bits, from the lowest, has wrapped with a timer armed across it.
    wraps: [u64; 4],
}

impl Traveller {
    fn arm(&mut self, now: u64) {
        // Mostly short distances; now and then decades, which advance the simulation.
        let bits = match self.random.next() % 16 {
            0..=5 => 1 + self.random.next() % 12,
            6..=11 => 1 + self.random.next() % 21,
            12..=14 => 18 + self.random.next() % 4,
            _ => 20 + self.random.next() % 21,
        };
        let deadline = now + 1 + self.random.next() % (1 << bits);
        self.wheel.insert(tick(deadline), self.armed).expect("room");
        self.expected.insert(self.armed, deadline);
        self.armed += 1;
        for (level, wraps) in self.wraps.iter_mut().enumerate() {
            let lap = [6, 12, 18, 20][level];
            let is_in_wheel = deadline - now < RANGE;
            *wraps += u64::from(is_in_wheel && deadline >> lap != now >> lap);
        }
    }

    /// Sleeps and fires; returns the time after that.
    fn live(&mut self, now: u64) -> u64 {
        let earliest = *self.expected.values().min().expect("some are always armed");
        let wake = self.wheel.next_deadline().expect("some are always armed").get();
        assert!(wake <= earliest, "the host would sleep past {earliest}, until {wake}");
        assert_eq!(wake, earliest, "with so few timers it is exact");
        let to = match self.random.next() % 8 {
            0 => now + (wake - now) / 2,
            1 => wake + self.random.next() % 5_000,
            _ => wake,
        };
        let mut last = 0;
        for (deadline, number) in fire(&mut self.wheel, to) {
            assert_eq!(self.expected.remove(&number), Some(deadline), "another deadline");
            assert!(deadline <= to && deadline >= last, "{deadline} after {last} at {to}");
            last = deadline;
        }
        let late = self.expected.values().find(|deadline| **deadline <= to);
        assert_eq!(late, None, "was kept at {to}");
        to
    }
}

#[test]
fn ten_thousand_years_pass_with_every_timer_on_its_tick() {
    let mut traveller = Traveller {
        wheel: at(0),
        expected: BTreeMap::new(),
        random: Random::new(8_334),
        armed: 0,
        wraps: [0; 4],
    };
    let (mut now, mut turns) = (0, 0);
    while now < MILLENNIA {
        while traveller.expected.len() < 8 {
            traveller.arm(now);
        }
        now = traveller.live(now);
        turns += 1;
        // Decades pass in which only the overflow timers are left.
        if turns % 50 == 0 {
            let far = traveller.expected.values().max().copied().unwrap_or(now);
            while now < far && traveller.expected.len() > 1 {
                now = traveller.live(now);
            }
        }
        assert!(turns < 1_000_000, "the walk does not get on: {now}");
    }
    let wraps = traveller.wraps;
    assert!(wraps.iter().all(|wraps| *wraps >= 100), "too few wraps: {wraps:?}");
}
