//! A child that a process forks has no workers: what would wait for one fails instead.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "forks")]

#[path = "../support/in_time.rs"]
mod in_time;

use core::{panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, thread, time::Instant};

use clockjack_rt::{
    PoolConfig, Runtime, WorkerPool,
    exec::{Commands, Event, Events, Failure, Process, StepOutput},
};
use clockjack_testing::keeps_deadline;
use in_time::ShutdownInTime as _;

/// What the child may take for what should take no time; what hangs takes ten seconds at least.
const SHORT: Duration = Duration::from_secs(5);

/// Runs this in a forked child; returns whether it succeeded. A child that hangs is killed.
fn succeeds_in_a_child(child: impl FnOnce()) -> bool {
    // SAFETY: glibc keeps the allocator usable in the child; beyond that the child uses only its
    // own memory, and the code under test.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "the system forks");
    if pid == 0 {
        let is_ok = catch_unwind(AssertUnwindSafe(child)).is_ok();
        // SAFETY: ends the child without running what the parent will run.
        unsafe { libc::_exit(i32::from(!is_ok)) };
    }
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let mut status = 0;
        // SAFETY: the child is ours, and the pointer is valid.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if waited == pid {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if Instant::now() > until {
            // SAFETY: the child is ours.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_millis(5));
    }
}

struct Quiet;

impl Process for Quiet {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        events.for_each(|event: Event<()>| drop(event));
        out.wait();
        Ok(())
    }
}

fn pool() -> WorkerPool {
    let config = PoolConfig { workers: Some(2), ..PoolConfig::DEFAULT };
    WorkerPool::new(config, Commands::new()).unwrap()
}

#[test]
fn a_pool_refuses_everything_in_a_forked_child_and_goes_on_in_the_parent() {
    let pool = pool();
    pool.block_on(pool.spawn_future(async {})).unwrap();
    // There is an idle thread for blocking work, in the parent.
    pool.block_on(pool.spawn_blocking(|| ()).unwrap()).unwrap();
    let in_child = pool.handle();
    assert!(succeeds_in_a_child(|| {
        let error = pool.block_on(pool.spawn_future(async {})).unwrap_err();
        assert!(error.is_forked() && error.is_refused(), "{error}");
        let error = pool.block_on(in_child.sleep(Duration::from_millis(1))).unwrap_err();
        assert!(error.is_forked(), "{error}");
        let error = pool.block_on(clockjack_rt::sleep(Duration::from_millis(1))).unwrap_err();
        assert!(error.is_forked(), "{error}");
        let error = pool.submit(Quiet).unwrap_err();
        assert!(error.is_forked() && !error.is_stopped(), "{error}");
        assert!(pool.resize(3).is_err());
        assert!(pool.spawn_blocking(|| ()).unwrap_err().is_closed());
        let here = pool.block_on(async { clockjack_rt::spawn_blocking(|| ()).map(drop) });
        assert!(here.unwrap_err().is_closed());
    }));
    pool.block_on(pool.spawn_blocking(|| ()).unwrap()).unwrap();
    pool.block_on(clockjack_rt::sleep(Duration::from_millis(1))).unwrap();
    pool.block_on(pool.spawn_future(async {})).unwrap();
    assert!(pool.shutdown_in_time(SHORT).is_clean());
}

#[test]
fn a_drop_in_a_forked_child_does_not_wait_for_workers_that_are_not_there() {
    let pool = pool();
    let handle = pool.handle();
    let sleeps = pool.spawn_future(async move { handle.sleep(Duration::from_secs(3600)).await });
    let mut dropped = Some(pool);
    assert!(succeeds_in_a_child(|| {
        let begun = Instant::now();
        drop(dropped.take());
        assert!(begun.elapsed() < SHORT, "{:?}", begun.elapsed());
    }));
    drop(sleeps);
    assert!(dropped.unwrap().shutdown_in_time(SHORT).is_clean());
}

#[test]
fn a_runtime_that_is_dropped_in_a_forked_child_does_not_wait() {
    let mut runtime = Some(Runtime::new("forks").unwrap());
    assert!(succeeds_in_a_child(|| {
        let runtime = runtime.take().unwrap();
        // It waits for nobody, although it may.
        let report = keeps_deadline(SHORT, || runtime.shutdown(Duration::from_secs(60)));
        assert!(!report.is_clean());
    }));
    assert!(runtime.unwrap().shutdown_in_time(SHORT).is_clean());
}

/// A child may have a pool of its own.
#[test]
fn a_pool_that_a_forked_child_starts_works() {
    let old = pool();
    assert!(succeeds_in_a_child(|| {
        let new = pool();
        new.block_on(clockjack_rt::sleep(Duration::from_millis(1))).unwrap();
        assert_eq!(new.block_on(new.spawn_future(async { 7 })).unwrap(), 7);
        assert!(new.shutdown_in_time(SHORT).is_clean());
    }));
    assert!(old.shutdown_in_time(SHORT).is_clean());
}
