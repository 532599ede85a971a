//! Helpers that create a wheel at a tick, and collect the timers that fire.

use clockjack_time::{GrowingWheel, Storage, Tick, Wheel, WheelConfig};

/// The first distance that belongs to the overflow.
pub(crate) const RANGE: u64 = GrowingWheel::<()>::RANGE;

pub(crate) fn tick(ticks: u64) -> Tick {
    Tick::new(ticks)
}

/// A growing wheel of a million timers at a tick.
pub(crate) fn at<T>(start: u64) -> GrowingWheel<T> {
    Wheel::new(WheelConfig { start: tick(start), ..WheelConfig::DEFAULT })
}

/// Deadlines and values of all timers that fire up to a tick.
pub(crate) fn fire<T, S: Storage<T>>(wheel: &mut Wheel<T, S>, to: u64) -> Vec<(u64, T)> {
    let mut due = wheel.advance(tick(to), usize::MAX);
    let fired = due.by_ref().map(|timer| (timer.deadline.get(), timer.value)).collect();
    assert!(!due.more(), "an unlimited budget ended");
    fired
}
