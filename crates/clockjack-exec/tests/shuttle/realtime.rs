//! Priority inversion: a thread of a real-time class that waits for a normal thread which it has
//! preempted in the middle of an operation, on one processor.
//!
//! In these models a thread that spins or yields instead of blocking never ends. The rules are
//! those of `clockjack_sync::backoff`.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Waker,
};

use clockjack_exec::{Event, Events, Failure, Handle, Limits, Payload, Process, StepOutput};
use clockjack_sync::primitive::{become_realtime, block_realtime, explore_realtime};
use shuttle::{future::block_on, thread};

use crate::toolbox::{ModelExecutor, SHARE, TICK};

/// Two threads submit. The push of one wakes the worker while the other is between the two steps of
/// its push, so that neither task can be taken.
#[test]
fn a_real_time_worker_lets_a_submitter_finish_that_it_has_preempted() {
    explore_realtime(SHARE, || {
        let executor = ModelExecutor::of_realtime(Limits::SMALL);
        let submitters = [(); 2].map(|()| {
            let handle = executor.handle();
            thread::spawn(move || block_on(handle.spawn_future(async {})).unwrap())
        });
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        executor.end();
    });
}

/// Counts its messages, and ends when it has all.
struct Counter {
    left: usize,
    counted: Arc<AtomicUsize>,
}

impl Process for Counter {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.idle();
        for event in events {
            let Event::Message(()) = event else { panic!("nobody does anything else") };
            self.counted.fetch_add(1, Relaxed);
            self.left -= 1;
        }
        if self.left == 0 {
            out.done(Payload::new(()));
        }
        Ok(())
    }
}

/// As above, for the mailbox of a process: a sender has claimed a position and not written it.
#[test]
fn a_process_on_a_real_time_worker_lets_a_sender_finish_that_it_has_preempted() {
    const SENDERS: usize = 2;
    const EACH: usize = 2;
    explore_realtime(SHARE, || {
        let executor = ModelExecutor::of_realtime(Limits::SMALL);
        let counted = Arc::new(AtomicUsize::new(0));
        let counter = Counter { left: SENDERS * EACH, counted: Arc::clone(&counted) };
        let process = executor.handle().submit(counter).unwrap();
        let senders = [(); SENDERS].map(|()| {
            let process = process.clone();
            thread::spawn(move || (0..EACH).for_each(|_| process.tell(()).unwrap()))
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        block_on(process.join()).unwrap();
        drop(process);
        executor.end();
        assert_eq!(counted.load(Relaxed), SENDERS * EACH);
    });
}

/// A shard has two cells for timers that are armed while another thread holds its guard. A thread
/// that arms a third one waits for the holder.
#[test]
fn a_real_time_thread_arms_a_timer_though_it_has_preempted_the_holder_of_the_shard() {
    const TIMERS: usize = 3;
    explore_realtime(SHARE, || {
        let executor = ModelExecutor::of_one(Limits::SMALL.timers(8));
        let arm = |handle: &Handle| {
            let mut timer = handle.timer();
            timer.arm(1_000 * TICK, Waker::noop().clone()).expect("there is room");
            timer
        };
        let holder = {
            let handle = executor.handle();
            thread::spawn(move || (0..TIMERS).for_each(|_| drop(arm(&handle))))
        };
        let realtime = {
            let handle = executor.handle();
            thread::spawn(move || {
                become_realtime();
                block_realtime();
                let timers = [(); TIMERS].map(|()| arm(&handle));
                drop(timers);
            })
        };
        [holder, realtime].into_iter().for_each(|thread| thread.join().unwrap());
        executor.end();
    });
}
