//! The end of an executor: nothing new is taken, what lives is asked, then ended.
//!
//! # Protocol
//!
//! Roles: the *closer*, who stops the executor; *workers*; *others*, who start or wake processes.
//!
//! 1. The shutdown_state only goes up: RUNNING, SHUTTING_DOWN, SHUT_DOWN.
//! 2. From SHUTTING_DOWN on nobody starts to make a process, and the closer sends a cancel to each that
//!    it finds. Who was in the middle of making one looks at the shutdown_state after it has published it,
//!    and sends the cancel itself. Both have a fence between their write and their look, so one of
//!    the two finds the other.
//! 3. When the workers are gone, or have been told to go, the shutdown_state becomes SHUT_DOWN, and the closer
//!    ends what is in the injector. Who puts something there looks at the shutdown_state afterwards, and if
//!    that is SHUT_DOWN ends what is there itself. Again there is a fence on both sides, so nothing is
//!    left behind: neither what a leaving worker hands on, nor what was woken or published late.
//! 4. An executor on one thread may have processes that no other thread may touch. So its thread
//!    ends everything before SHUT_DOWN, and waits for those who are between waking and queueing; what is
//!    published after SHUT_DOWN was started by a handle, and may end anywhere.
//!
//! It cannot hang: only rule 4 waits, for a thread that has nothing left to do but one push.

use alloc::vec::Vec;

use clockjack_sync::{
    mpsc::Pop,
    mutant,
    prim::{
        atomic::{
            Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
            fence,
        },
        hint,
    },
};

use crate::{
    executor::ExecutorShared, pid::Pid, signal::ProcessSignal, state::State, task::TaskRef,
};

/// Takes everything that is offered.
pub(crate) const RUNNING: u32 = 0;
/// Takes nothing new; what lives was asked to stop.
pub(crate) const SHUTTING_DOWN: u32 = 1;
/// Nobody steps anything any more; what is queued is ended.
pub(crate) const SHUT_DOWN: u32 = 2;

/// How many runnables are taken from the injector at a time.
const BATCH: usize = 64;

/// The reason of the cancel that every process is sent when its executor stops.
pub const SHUTDOWN: &str = "shutdown";

/// A process that is alive, for reports.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct LiveTask {
    /// Which.
    pub pid: Pid,
    /// The name of its type.
    pub name: &'static str,
    /// What it does.
    pub state: State,
}

impl From<&TaskRef> for LiveTask {
    fn from(task: &TaskRef) -> Self {
        let header = task.header();
        Self { pid: task.pid(), name: (header.vtable.name)(), state: header.state() }
    }
}

impl ExecutorShared {
    /// Whether nothing new is taken.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        // Acquire: pairs with `begin_shutdown`.
        self.shutdown_state.load(Acquire) != RUNNING
    }

    /// Takes nothing new and asks everything that lives to stop; says whether this call did it.
    pub fn begin_shutdown(&self) -> bool {
        // AcqRel: pairs with who looks at the shutdown_state.
        let was = self.shutdown_state.fetch_max(SHUTTING_DOWN, AcqRel);
        // Rule 2: pairs with the fence of a process that is just being made.
        fence(SeqCst);
        self.for_each_live(|task| {
            drop(task.signal(ProcessSignal::Cancel { reason: SHUTDOWN }));
        });
        was == RUNNING
    }

    /// What was just published looks at the shutdown_state: rules 2 and 3.
    pub(crate) fn check_published(&self, task: &TaskRef) {
        if self.workers.is_empty() {
            // Where there are workers, the notification has fenced.
            fence(SeqCst);
        }
        // Relaxed: behind the fence.
        match self.shutdown_state.load(Relaxed) {
            RUNNING => {}
            SHUT_DOWN if !mutant!("publish-ignores-end") => self.terminate_queued(),
            _ if mutant!("publish-ignores-stop") => {}
            _ => drop(task.signal(ProcessSignal::Cancel { reason: SHUTDOWN })),
        }
    }

    /// Ends everything that lives, each at its next turn; says what it was.
    pub fn terminate_all(&self, mut found: impl FnMut(LiveTask)) {
        self.for_each_live(|task| {
            found(task.into());
            task.header().terminate();
        });
    }

    /// What lives, at about this time.
    pub fn live_tasks(&self, mut found: impl FnMut(LiveTask)) {
        self.for_each_live(|task| found(task.into()));
    }

    /// How many processes are in a turn, at about this time; or are just being woken: the two look
    /// the same where a custom process is concerned.
    pub(crate) fn running_len(&self) -> usize {
        let mut n_running = 0;
        self.live_tasks(|alive| n_running += usize::from(alive.state == State::Running));
        n_running
    }

    /// Ends what is queued, and lets nothing stay in the queue from now on: the workers are gone,
    /// or were told to go (rule 3). Of an executor on one thread it ends nothing: that is up to its
    /// thread (rule 4).
    pub fn close_run_queue(&self) {
        if !self.workers.is_empty() {
            self.close_run_queue_here();
        }
    }

    /// As [`close_run_queue`](Self::close_run_queue), by a thread that may end everything that is queued.
    pub(crate) fn close_run_queue_here(&self) {
        // AcqRel: as in `begin_shutdown`.
        self.shutdown_state.fetch_max(SHUT_DOWN, AcqRel);
        // Pairs with the fence of who queues something.
        fence(SeqCst);
        self.terminate_queued();
    }

    /// Ends what is in the injector, when nobody will step it.
    #[cold]
    pub(crate) fn terminate_queued(&self) {
        loop {
            match self.injector.take_batch(BATCH) {
                Pop::Item(batch) => {
                    batch.into_iter().for_each(|runnable| self.terminate_queued_task(runnable))
                }
                Pop::Empty => return,
                // Somebody is in the middle of a push or a take, and about to be done.
                Pop::Busy => {
                    hint::spin_loop();
                    self.toolbox().yield_now();
                }
            }
        }
    }

    /// Asks the worker of a worker to leave.
    pub fn request_worker_stop(&self, worker: usize) {
        self.workers[worker].request_stop();
        self.wake_worker(worker);
    }

    /// Takes a dismissal back; false if the worker is on its way already.
    #[must_use]
    pub fn withdraw_worker_stop(&self, worker: usize) -> bool {
        self.workers[worker].withdraw_stop()
    }

    /// Whether a worker sits there.
    #[must_use]
    pub fn is_worker_running(&self, worker: usize) -> bool {
        self.workers[worker].is_occupied()
    }

    /// Whether the timers are closed, which the watchdog waits for.
    #[must_use]
    pub fn are_timers_closed(&self) -> bool {
        self.shards.is_closed()
    }

    /// Closes the timers; those that wait for one are woken and learn it.
    pub fn close_timers(&self) {
        let mut actions = Vec::new();
        self.shards.close(|action| actions.push(action));
        for action in actions {
            action.closed(self);
        }
        for (shard, _, _) in self.shards.wakes() {
            self.drop_stale_values(shard);
        }
    }
}
