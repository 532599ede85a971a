//! Operations of `clockjack-time`.
//!
//! Timers lie at random within a minute of milliseconds, as time-outs do. Every store has held more
//! timers than the batches make before they begin, so that what is weighed is the steady state.

use core::hint::black_box;

use clockjack_time::{FixedWheel, GrowingWheel, Shard, ShardConfig, Tick, TimerId, WheelConfig};

use crate::operation::{Operation, operation};

/// Iterations in a batch.
const N: u32 = 1000;
/// Timers that two batches make, and some more.
const ROOM: u32 = 4 * N;
/// How far ahead a deadline lies at the most.
const SPREAD: u64 = 60_000;

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    let mut all = wheel();
    all.extend(advance());
    all.extend(shard());
    all
}

/// Numbers that are the same in every run (`SplitMix64`, by Steele, Lea and Flood).
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

    /// In an order that has nothing to do with the one they were made in.
    fn shuffle(&mut self, ids: &mut [TimerId]) {
        for last in (1..ids.len()).rev() {
            let other = usize::try_from(self.next() % (last as u64 + 1)).unwrap_or(0);
            ids.swap(last, other);
        }
    }
}

/// A wheel that has had [`ROOM`] timers at once; it is empty.
fn warmed_up() -> GrowingWheel<u32> {
    let mut wheel = GrowingWheel::new(WheelConfig::DEFAULT);
    let ids = fill(&mut wheel);
    ids.into_iter().for_each(|id| {
        wheel.cancel(id).expect("armed");
    });
    wheel
}

/// Arms [`ROOM`] timers; their ids come back in another order.
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

/// Timers in several spans of one length, as many in each: a batch goes through one of them.
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
        // All that fell due in a minute, in one jump: the cost of a timer.
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
        // A second in steps of a millisecond, with a timer due in each on average: the cost of a
        // step and a timer.
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

/// A shard that has had [`ROOM`] timers at once; it is empty.
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
        // By the owner: the lease, the timer, the lease back.
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
        // By somebody else: the word, the return stack, and every sixty-fourth time the freeing.
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
