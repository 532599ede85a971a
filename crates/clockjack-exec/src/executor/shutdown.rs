//! The shutdown of an executor: it refuses new tasks, asks all live ones to stop, and terminates
//! the rest.
//!
//! # Protocol
//!
//! Roles: the *closing thread*, which shuts the executor down; *workers*; *other threads*, which
//! start or wake tasks.
//!
//! 1. The shutdown state only goes up: RUNNING, SHUTTING_DOWN, SHUT_DOWN. In a forked child it is
//!    FORKED: the executor refuses everything, and nobody waits for its threads.
//! 2. From SHUTTING_DOWN on, no thread begins to create a task, and the closing thread sends a
//!    cancel signal to each task that it finds. A thread that was in the middle of creating one
//!    reads the shutdown state after it has published the task, and sends the signal itself. Both
//!    have a fence between their write and their read, so one of the two sees the other's write;
//!    without the fences both could miss it, and the task would never be asked.
//! 3. When the workers have stopped, or have been asked to, the shutdown state becomes SHUT_DOWN,
//!    and the closing thread terminates the tasks in the injector. A thread that pushes a task
//!    there reads the shutdown state afterwards, and if that is SHUT_DOWN, terminates what is there
//!    itself. Again there is a fence on both sides, so no task is left behind: neither one that a
//!    stopping worker passes on, nor one that was woken or published late.
//! 4. An executor on one thread may have tasks that no other thread may touch. So its thread
//!    terminates everything before SHUT_DOWN, and waits for threads that have woken a task but not
//!    enqueued it yet. A task that is published after SHUT_DOWN was started by a handle, so it is
//!    `Send` and may end on any thread.
//!
//! It cannot hang: only rule 4 waits, for a thread that has nothing left to do but one push.

use alloc::vec::Vec;

use clockjack_observe::Event;
use clockjack_sync::{
    mpsc::Pop,
    primitive::atomic::{
        Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
        fence,
    },
};

use crate::{
    executor::ExecutorShared,
    exit::JoinError,
    process::signal::ProcessSignal,
    state::State,
    task::{TaskRef, live_task::LiveTask},
};

/// Accepts new tasks.
pub(crate) const RUNNING: u32 = 0;
/// Accepts nothing new; every live task was asked to stop.
pub(crate) const SHUTTING_DOWN: u32 = 1;
/// Nobody polls any more; tasks in the injector are terminated.
pub(crate) const SHUT_DOWN: u32 = 2;

/// The process is a forked child: the threads of the executor exist in the parent only, and a lock
/// may be held for ever by one of them.
const FORKED: u32 = 3;

/// How many runnables are taken from the injector at a time.
const BATCH: usize = 64;

/// The reason of the cancel signal that every task gets when its executor shuts down.
pub const SHUTDOWN: &str = "shutdown";

impl ExecutorShared {
    /// Whether the executor shuts down, and refuses new tasks.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        // Acquire: pairs with `begin_shutdown`.
        self.shutdown_state.load(Acquire) != RUNNING
    }

    /// Marks the executor of a forked child. Does only what a signal handler may do.
    #[doc(hidden)]
    pub fn mark_forked(&self) {
        // Relaxed: the child has one thread.
        self.shutdown_state.store(FORKED, Relaxed);
    }

    /// Whether this process is a fork of the one that started the executor.
    #[inline]
    #[must_use]
    pub fn is_forked(&self) -> bool {
        // Relaxed: as above.
        self.shutdown_state.load(Relaxed) == FORKED
    }

    /// Why a task is refused by an executor that accepts none.
    #[cold]
    pub(super) fn refusal(&self) -> JoinError {
        if self.is_forked() { JoinError::refused_forked() } else { JoinError::refused_stopping() }
    }

    /// Begins the shutdown: refuses new tasks and asks every live task to stop. Returns whether
    /// this call began it.
    pub fn begin_shutdown(&self) -> bool {
        // AcqRel: pairs with the threads that read the shutdown state.
        let was = self.shutdown_state.fetch_max(SHUTTING_DOWN, AcqRel);
        // Rule 2: pairs with the fence of a thread that is just creating a task.
        fence(SeqCst);
        if was == RUNNING {
            let tasks = u32::try_from(self.live_len()).unwrap_or(u32::MAX);
            self.record(Event::ShutdownStarted { tasks });
        }
        self.for_each_live(|task| {
            drop(task.signal(ProcessSignal::Cancel { reason: SHUTDOWN }));
        });
        was == RUNNING
    }

    /// Reads the shutdown state after a task was published: rules 2 and 3.
    pub(crate) fn check_published(&self, task: &TaskRef) {
        if self.workers.is_empty() {
            // If there are workers, the notification has executed a fence.
            fence(SeqCst);
        }
        // Relaxed: behind the fence.
        match self.shutdown_state.load(Relaxed) {
            RUNNING => {}
            SHUT_DOWN => self.terminate_queued(),
            _ => drop(task.signal(ProcessSignal::Cancel { reason: SHUTDOWN })),
        }
    }

    /// Terminates every live task instead of its next poll, and reports each.
    pub fn terminate_all(&self, mut found: impl FnMut(LiveTask)) {
        self.for_each_live(|task| {
            found(LiveTask::of(task, self));
            task.header().terminate();
        });
    }

    /// Reports every live task, at about this time.
    pub fn live_tasks(&self, mut found: impl FnMut(LiveTask)) {
        self.for_each_live(|task| found(LiveTask::of(task, self)));
    }

    /// How many tasks are being polled, at about this time. A custom task that is just being woken
    /// cannot be told apart, and counts too.
    pub(crate) fn running_len(&self) -> usize {
        let mut n_running = 0;
        self.live_tasks(|alive| n_running += usize::from(alive.state == State::Running));
        n_running
    }

    /// Terminates the tasks in the injector, and lets none stay there from now on: the workers have
    /// stopped, or were asked to (rule 3). Does nothing on an executor of one thread: its own
    /// thread does that (rule 4).
    pub fn close_run_queue(&self) {
        if !self.workers.is_empty() {
            self.close_run_queue_here();
        }
    }

    /// As [`close_run_queue`](Self::close_run_queue), by a thread that may terminate everything in
    /// the injector.
    pub(crate) fn close_run_queue_here(&self) {
        // AcqRel: as in `begin_shutdown`.
        self.shutdown_state.fetch_max(SHUT_DOWN, AcqRel);
        // Pairs with the fence of a thread that enqueues a task.
        fence(SeqCst);
        self.terminate_queued();
    }

    /// Terminates the tasks in the injector, when nobody will poll them.
    #[cold]
    pub(crate) fn terminate_queued(&self) {
        loop {
            match self.injector.take_batch(BATCH) {
                Pop::Item(batch) => {
                    batch.into_iter().for_each(|runnable| self.terminate_queued_task(runnable))
                }
                Pop::Empty => return,
                // Another thread is in the middle of a push or a take, and about to finish it.
                Pop::Retry => self.wait_for_holder(),
            }
        }
    }

    /// Asks a worker to stop.
    pub fn request_worker_stop(&self, worker: usize) {
        self.workers[worker].request_stop();
        self.wake_worker(worker);
    }

    /// Withdraws a request to stop; false if the worker has accepted it already.
    #[must_use]
    pub fn withdraw_worker_stop(&self, worker: usize) -> bool {
        self.workers[worker].withdraw_stop()
    }

    /// Whether a worker runs under this index.
    #[must_use]
    pub fn is_worker_running(&self, worker: usize) -> bool {
        self.workers[worker].is_occupied()
    }

    /// Whether the thread of the worker under this index is awake. One that is not has returned
    /// from its step, and at most waits for a CPU.
    #[must_use]
    pub fn is_worker_awake(&self, worker: usize) -> bool {
        self.workers[worker].is_awake()
    }

    /// Whether the timers are closed; the watchdog's thread ends then.
    #[must_use]
    pub fn are_timers_closed(&self) -> bool {
        self.shards.is_closed()
    }

    /// Closes the timers; tasks that wait for one are woken and get an error. A worker that fires
    /// timers at this moment closes them again when it has finished.
    pub fn close_timers(&self) {
        let mut actions = Vec::new();
        self.shards.close(|action| actions.push(action), || self.wait_for_holder());
        for action in actions {
            action.closed(self);
        }
        for (shard, _, _) in self.shards.wakes() {
            self.drop_stale_values(shard);
        }
    }
}
