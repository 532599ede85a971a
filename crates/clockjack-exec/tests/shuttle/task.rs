//! Futures over two workers: spread, woken, joined, dropped, ended from outside.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clockjack_exec::yield_now;
use shuttle::{future::block_on, sync::Barrier, thread};

use crate::toolbox::{ModelExecutor, explore};

/// Counts how many of its kind are left. Not an atomic of shuttle's: it is no part of a scene.
pub(crate) struct Token(Arc<AtomicUsize>);

impl Token {
    pub(crate) fn new(left: &Arc<AtomicUsize>) -> Self {
        left.fetch_add(1, Relaxed);
        Self(Arc::clone(left))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn tasks_of_two_submitters_end_and_are_joined() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let submit = |handle: clockjack_exec::Handle, range: core::ops::Range<u32>| {
            let joins: Vec<_> = range
                .clone()
                .map(|n| {
                    handle.spawn_future(async move {
                        yield_now().await;
                        n
                    })
                })
                .collect();
            for (n, join) in range.zip(joins) {
                assert_eq!(block_on(join).unwrap(), n);
            }
        };
        let handle = executor.handle();
        let other = thread::spawn(move || submit(handle, 10..12));
        submit(executor.handle(), 0..2);
        other.join().unwrap();
        let stats = executor.executor.stats();
        assert_eq!(stats.spawned, 4);
        executor.end();
    });
}

/// Each needs a worker of its own, because it blocks it: so nobody may sleep while one waits in a
/// queue, whichever thread has put it there.
#[test]
fn tasks_that_block_for_each_other_get_a_worker_each() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let barrier = Arc::new(Barrier::new(2));
        let meet = |barrier: &Arc<Barrier>| {
            let barrier = Arc::clone(barrier);
            async move {
                barrier.wait();
            }
        };
        let joins = [
            executor.handle().spawn_future(meet(&barrier)),
            executor.handle().spawn_future(meet(&barrier)),
        ];
        for join in joins {
            block_on(join).unwrap();
        }
        // And once more from a worker, which spawns into its own ring.
        let (handle, other) = (executor.handle(), meet(&barrier));
        let first = executor.handle().spawn_future(async move {
            let join = handle.spawn_future(other);
            barrier.wait();
            join.await.unwrap();
        });
        block_on(first).unwrap();
        executor.end();
    });
}

/// The joiner gives up after one look, or does not; somebody else ends the task meanwhile.
#[test]
fn a_result_is_had_or_dropped_once_whoever_joins_drops_and_aborts() {
    explore(|| {
        let executor = ModelExecutor::of_two();
        let left = Arc::new(AtomicUsize::new(0));
        let (body, output) = (Token::new(&left), Token::new(&left));
        let join = executor.handle().spawn_future(async move {
            let _body = body;
            yield_now().await;
            output
        });
        let given_up = {
            let output = Token::new(&left);
            executor.handle().spawn_future(async move {
                yield_now().await;
                output
            })
        };
        let (pid, handle) = (join.pid().unwrap(), executor.handle());
        let aborter = thread::spawn(move || handle.terminate(pid));
        let dropper = thread::spawn(move || {
            let mut given_up = given_up;
            let mut looks = 0;
            let looked = block_on(core::future::poll_fn(|cx| {
                looks += 1;
                let polled = core::pin::Pin::new(&mut given_up).poll(cx);
                if looks == 2 { core::task::Poll::Ready(None) } else { polled.map(Some) }
            }));
            drop(given_up);
            if let Some(result) = looked {
                drop(result.unwrap());
            }
        });
        let result = block_on(join);
        let did = aborter.join().unwrap();
        match result {
            Ok(token) => drop(token),
            Err(exit) => assert!(exit.is_terminated() && did, "{exit}"),
        }
        dropper.join().unwrap();
        executor.end();
        assert_eq!(left.load(Relaxed), 0);
    });
}
