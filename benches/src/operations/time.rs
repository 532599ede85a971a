//! Operations of `clockjack-time`.
//!
//! Deadlines are random within one minute of milliseconds, like those of time-outs. Every store has
//! already contained more timers than the batches create, so that the steady state is measured.

use core::hint::black_box;

use clockjack_time::{FixedWheel, GrowingWheel, Shard, ShardConfig, Tick, TimerId, WheelConfig};

use crate::operation::{Operation, operation};

/// Iterations in a batch.
const N: u32 = 1000;
/// More timers than two batches create.
const ROOM: u32 = 4 * N;
/// The latest deadline, in ticks from now.
const SPREAD: u64 = 60_000;

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    let mut all = wheel();
    all.extend(advance());
    all.extend(shard());
    all
}

/// Pseudo-random numbers that are the same in every run (`SplitMix64`: Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn deadline(&mut self) -> Tick {
        Tick::new(1 + self.next() % SPREAD)
    }

    fn deadlines(&mut self) -> Vec<Tick> {
        (0..ROOM).map(|_| self.deadline()).collect()
    }

    /// Shuffles, so that the order is independent of the order of creation.
    fn shuffle(&mut self, ids: &mut [TimerId]) {
        for last in (1..ids.len()).rev() {
            let other = usize::try_from(self.next() % (last as u64 + 1)).unwrap_or(0);
            ids.swap(last, other);
        }
    }
}

/// An empty wheel that has already contained [`ROOM`] timers.
fn warmed_up() -> GrowingWheel<u32> {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let ids = fill(&mut wheel);
    ids.into_iter().for_each(|id| {
        wheel.cancel(id).expect("armed");
    });
    wheel
}

/// Arms [`ROOM`] timers and returns their ids in random order.
fn fill(wheel: &mut GrowingWheel<u32>) -> Vec<TimerId> {
    let mut random = Random(1);
    let deadlines = random.deadlines();
    let armed = deadlines.into_iter().map(|deadline| wheel.insert(deadline, 7).expect("room"));
    let mut ids: Vec<_> = armed.collect();
    random.shuffle(&mut ids);
    ids
}

fn wheel() -> Vec<Operation> {
    vec![
        operation("time/wheel/insert", N, || {
            let mut wheel = warmed_up();
            let mut deadlines = Random(2).deadlines().into_iter();
            move |n| {
                deadlines.by_ref().take(n as usize).for_each(|deadline| {
                    black_box(wheel.insert(deadline, 7).is_ok());
                });
            }
        }),
        operation("time/wheel/cancel", N, || {
            let mut wheel = warmed_up();
            let mut ids = fill(&mut wheel).into_iter();
            move |n| {
                ids.by_ref().take(n as usize).for_each(|id| {
                    black_box(wheel.cancel(id));
                });
            }
        }),
        operation("time/wheel/insert_cancel", N, || {
            let mut wheel = warmed_up();
            let mut deadlines = Random(3).deadlines().into_iter();
            move |n| {
                deadlines.by_ref().take(n as usize).for_each(|deadline| {
                    let id = wheel.insert(deadline, 7).expect("room");
                    black_box(wheel.cancel(id));
                });
            }
        }),
        operation("time/fixed_wheel/insert_cancel", N, || {
            let mut wheel = Box::new(FixedWheel::<u32, 128>::fixed(Tick::ZERO));
            let mut random = Random(4);
            (0..100).for_each(|_| {
                wheel.insert(random.deadline(), 7).expect("room");
            });
            let mut deadlines = random.deadlines().into_iter();
            move |n| {
                deadlines.by_ref().take(n as usize).for_each(|deadline| {
                    let id = wheel.insert(deadline, 7).expect("room");
                    black_box(wheel.cancel(id));
                });
            }
        }),
        operation("time/wheel/next_deadline", N, || {
            let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
            fill(&mut wheel);
            move |n| {
                (0..n).for_each(|_| {
                    black_box(black_box(&wheel).next_deadline());
                });
            }
        }),
    ]
}

/// Timers in several spans of the same length, the same number in each: a batch advances through
/// one span.
fn spans(length: u64) -> GrowingWheel<u32> {
    let mut wheel = warmed_up();
    let mut random = Random(5);
    for span in 0..3 {
        for _ in 0..N {
            let deadline = Tick::new(span * length + 1 + random.next() % length);
            wheel.insert(deadline, 7).expect("room");
        }
    }
    wheel
}

fn advance() -> Vec<Operation> {
    vec![
        // All timers of a minute become due in one jump: the cost per timer.
        operation("time/wheel/fire", N, || {
            let mut wheel = spans(SPREAD);
            let mut now = 0;
            move |_| {
                now += SPREAD;
                wheel.advance(Tick::new(now), usize::MAX).for_each(|timer| {
                    black_box(timer.value);
                });
            }
        }),
        // One second in steps of a millisecond, with one timer due per step on average: the cost of
        // one step and one timer.
        operation("time/wheel/step", N, || {
            let mut wheel = spans(u64::from(N));
            let mut now = 0;
            move |n| {
                (0..n).for_each(|_| {
                    now += 1;
                    wheel.advance(Tick::new(now), usize::MAX).for_each(|timer| {
                        black_box(timer.value);
                    });
                });
            }
        }),
    ]
}

/// An empty shard that has already contained [`ROOM`] timers.
fn warmed_up_shard() -> Shard<u32> {
    let shard = Shard::new(ShardConfig::DEFAULT);
    fill_shard(&shard).into_iter().for_each(|id| {
        shard.try_lock().expect("one thread").cancel(id).expect("armed");
    });
    shard
}

fn fill_shard(shard: &Shard<u32>) -> Vec<TimerId> {
    let mut random = Random(6);
    let deadlines = random.deadlines();
    let armed =
        deadlines.into_iter().map(|deadline| shard.remote_insert(deadline, 7).expect("room"));
    let mut ids: Vec<_> = armed.collect();
    random.shuffle(&mut ids);
    ids
}

fn shard() -> Vec<Operation> {
    vec![
        // By the owner: take the guard, insert the timer, release the guard.
        operation("time/shard/arm_local", N, || {
            let shard = warmed_up_shard();
            let mut deadlines = Random(7).deadlines().into_iter();
            move |n| {
                deadlines.by_ref().take(n as usize).for_each(|deadline| {
                    let mut guard = shard.try_lock().expect("one thread");
                    black_box(guard.insert(deadline, 7).is_ok());
                });
            }
        }),
        // By another thread: the state word, the index stack, and freeing on every sixty-fourth
        // call.
        operation("time/shard/cancel_remote", N, || {
            let shard = warmed_up_shard();
            let mut ids = fill_shard(&shard).into_iter();
            move |n| {
                ids.by_ref().take(n as usize).for_each(|id| {
                    black_box(shard.cancel(id));
                });
            }
        }),
    ]
}
