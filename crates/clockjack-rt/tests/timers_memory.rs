//! How much memory timers take that were armed for long and cancelled by other threads.
#![cfg(not(loom))]

#[path = "support/in_time.rs"]
mod in_time;

use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};
use std::{
    sync::{Mutex, mpsc},
    thread,
};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{Commands, Timer},
};
use clockjack_testing::allocation::Counting;
use in_time::ShutdownInTime as _;

#[global_allocator]
static COUNTING: Counting = Counting::new();

#[test]
fn a_million_timers_cancelled_by_others_take_the_memory_of_those_that_are_armed() {
    const N: usize = 1_000_000;
    const BATCH: usize = 256;
    const BOUND: usize = 4 << 20;
    const HOUR: Duration = Duration::from_secs(3_600);
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).unwrap();
    let (send, receive) = mpsc::sync_channel::<Vec<Timer>>(8);
    let receive = Mutex::new(receive);
    let n_cancelled = AtomicUsize::new(0);
    let before = COUNTING.used_bytes();
    COUNTING.forget_most();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let batch = receive.lock().unwrap().recv();
                    let Ok(batch) = batch else { return };
                    for mut timer in batch {
                        n_cancelled.fetch_add(usize::from(timer.cancel()), SeqCst);
                    }
                }
            });
        }
        let armers: Vec<_> = (0..2)
            .map(|_| {
                let (send, handle) = (send.clone(), pool.handle());
                pool.spawn_future(async move {
                    for _ in 0..N / 2 / BATCH {
                        let armed = |_| {
                            let mut timer = handle.timer();
                            timer.arm(HOUR, Waker::noop().clone()).unwrap();
                            timer
                        };
                        send.send((0..BATCH).map(armed).collect()).unwrap();
                    }
                })
            })
            .collect();
        drop(send);
        for armer in armers {
            pool.block_on(armer).unwrap();
        }
    });
    let n = N / 2 / BATCH * BATCH * 2;
    assert_eq!(n_cancelled.load(SeqCst), n, "each was cancelled before it fired");
    // A dozen batches are armed at a time. A million that stay would take thirty million bytes.
    let most = COUNTING.most_bytes() - before;
    assert!(most < BOUND, "{most} bytes at the most");
    let left = COUNTING.used_bytes().saturating_sub(before);
    assert!(left < BOUND / 2, "{left} bytes are left");
    assert_eq!(pool.stats().timers_fired, 0);
    assert!(pool.shutdown_in_time(Duration::from_secs(60)).is_clean());
}
