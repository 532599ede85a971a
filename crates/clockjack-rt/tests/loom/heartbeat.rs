//! The watchdog: which steps of a pinned thread it finds, and what it finds next to them.

use std::sync::Arc;

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::heartbeat::{Heartbeat, WakeFlag};

fn heartbeat() -> (Arc<WakeFlag>, Arc<Heartbeat>) {
    let wake_flag = Arc::new(WakeFlag::new());
    (Arc::clone(&wake_flag), Arc::new(Heartbeat::new(wake_flag)))
}

/// The watchdog: looks until it has found a step, and sleeps when nobody is awake.
fn look_for_step(wake_flag: &WakeFlag, heartbeat: &Heartbeat) {
    loop {
        wake_flag.mark_awake();
        if !heartbeat.step().is_multiple_of(2) {
            return;
        }
        if wake_flag.prepare_park(|| heartbeat.is_awake()) {
            wake_flag.parker().park(None);
        } else {
            // Instead of the time until the next look.
            thread::yield_now();
        }
    }
}

/// A watchdog that sleeps for ever is a deadlock, which loom reports.
#[test]
fn a_step_after_a_sleep_is_not_overlooked() {
    loom::model(|| {
        let (wake_flag, heartbeat) = heartbeat();
        let pinned = thread::spawn({
            let heartbeat = Arc::clone(&heartbeat);
            move || {
                heartbeat.while_asleep(|| {});
                // It does not return from this step.
                heartbeat.advance();
            }
        });
        let watchdog = thread::spawn(move || look_for_step(&wake_flag, &heartbeat));
        pinned.join().unwrap();
        watchdog.join().unwrap();
    });
}

#[test]
fn what_is_found_in_a_step_belongs_to_that_step() {
    loom::model(|| {
        let (_, heartbeat) = heartbeat();
        // Who has its turn: as it is known from outside, by a hint without order.
        let running = Arc::new(AtomicU32::new(0));
        let pinned = thread::spawn({
            let (heartbeat, running) = (Arc::clone(&heartbeat), Arc::clone(&running));
            move || {
                for n in 1..=2 {
                    heartbeat.advance();
                    running.store(n, Relaxed);
                    running.store(0, Relaxed);
                    heartbeat.advance();
                }
            }
        });
        let watchdog = thread::spawn(move || {
            let step = heartbeat.step();
            if step.is_multiple_of(2) {
                return;
            }
            let found = heartbeat.read_in_step(step, || running.load(Relaxed));
            let of_step = step.div_ceil(2);
            assert!(found.is_none_or(|n| n == 0 || n == of_step), "{found:?} in step {step}");
        });
        pinned.join().unwrap();
        watchdog.join().unwrap();
    });
}

#[test]
fn a_watchdog_that_is_told_to_stop_does_not_sleep_on() {
    loom::model(|| {
        let (wake_flag, heartbeat) = heartbeat();
        let watchdog = thread::spawn({
            let wake_flag = Arc::clone(&wake_flag);
            move || {
                while !wake_flag.is_stopped() {
                    wake_flag.mark_awake();
                    if wake_flag.prepare_park(|| heartbeat.is_awake()) {
                        wake_flag.parker().park(None);
                    } else {
                        thread::yield_now();
                    }
                }
            }
        });
        wake_flag.stop();
        watchdog.join().unwrap();
    });
}

/// A watchdog that never rests exceeds the steps that loom allows a model.
#[test]
fn a_thread_that_has_left_keeps_no_watchdog_awake() {
    loom::model(|| {
        let (wake_flag, heartbeat) = heartbeat();
        let pinned = thread::spawn({
            let heartbeat = Arc::clone(&heartbeat);
            move || {
                heartbeat.advance();
                heartbeat.advance();
                heartbeat.thread_exited();
            }
        });
        let watchdog = thread::spawn(move || {
            wake_flag.mark_awake();
            while !wake_flag.prepare_park(|| heartbeat.is_awake()) {
                thread::yield_now();
                wake_flag.mark_awake();
            }
        });
        pinned.join().unwrap();
        watchdog.join().unwrap();
    });
}
