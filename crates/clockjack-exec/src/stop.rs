//! The end of an executor: nothing new is taken, what lives is asked, then ended.
//!
//! # Protocol
//!
//! Roles: the *closer*, who stops the executor; *workers*; *others*, who start or wake processes.
//!
//! 1. The stage only goes up: RUNNING, STOPPING, OVER.
//! 2. From STOPPING on nobody starts to make a process, and the closer sends a cancel to each that
//!    it finds. Who was in the middle of making one looks at the stage after it has published it,
//!    and sends the cancel itself. Both have a fence between their write and their look, so one of
//!    the two finds the other.
//! 3. When the workers are gone, or have been told to go, the stage becomes OVER, and the closer
//!    ends what is in the injector. Who puts something there looks at the stage afterwards, and if
//!    that is OVER ends what is there itself. Again there is a fence on both sides, so nothing is
//!    left behind: neither what a leaving worker hands on, nor what was woken or published late.
//! 4. An executor on one thread may have processes that no other thread may touch. So its thread
//!    ends everything before OVER, and waits for those who are between waking and queueing; what is
//!    published after OVER was started by a handle, and may end anywhere.
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

use crate::{cell::CellRef, engine::Engine, pid::Pid, signal::Signal, state::State};

/// Takes everything that is offered.
pub(crate) const RUNNING: u32 = 0;
/// Takes nothing new; what lives was asked to stop.
pub(crate) const STOPPING: u32 = 1;
/// Nobody steps anything any more; what is queued is ended.
pub(crate) const OVER: u32 = 2;

/// How many entries are taken from the injector at a time.
const BATCH: usize = 64;

/// The reason of the cancel that every process is sent when its executor stops.
pub const SHUTDOWN: &str = "shutdown";

/// A process that is alive, for reports.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Alive {
    /// Which.
    pub pid: Pid,
    /// The name of its type.
    pub name: &'static str,
    /// What it does.
    pub state: State,
}

impl From<&CellRef> for Alive {
    fn from(cell: &CellRef) -> Self {
        let head = cell.head();
        Self { pid: cell.pid(), name: (head.vtable.name)(), state: head.state() }
    }
}

impl Engine {
    /// Whether nothing new is taken.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        // Acquire: pairs with `stop`.
        self.stage.load(Acquire) != RUNNING
    }

    /// Takes nothing new and asks everything that lives to stop; says whether this call did it.
    pub fn stop(&self) -> bool {
        // AcqRel: pairs with who looks at the stage.
        let was = self.stage.fetch_max(STOPPING, AcqRel);
        // Rule 2: pairs with the fence of a process that is just being made.
        fence(SeqCst);
        self.for_each_live(|cell| {
            drop(cell.signal(Signal::Cancel { reason: SHUTDOWN }));
        });
        was == RUNNING
    }

    /// What was just published looks at the stage: rules 2 and 3.
    pub(crate) fn check_published(&self, cell: &CellRef) {
        if self.seats.is_empty() {
            // Where there are workers, the notification has fenced.
            fence(SeqCst);
        }
        // Relaxed: behind the fence.
        match self.stage.load(Relaxed) {
            RUNNING => {}
            OVER if !mutant!("publish-ignores-end") => self.end_queued(),
            _ if mutant!("publish-ignores-stop") => {}
            _ => drop(cell.signal(Signal::Cancel { reason: SHUTDOWN })),
        }
    }

    /// Ends everything that lives, each at its next turn; says what it was.
    pub fn terminate_all(&self, mut found: impl FnMut(Alive)) {
        self.for_each_live(|cell| {
            found(cell.into());
            cell.head().terminate();
        });
    }

    /// What lives, at about this time.
    pub fn alive(&self, mut found: impl FnMut(Alive)) {
        self.for_each_live(|cell| found(cell.into()));
    }

    /// How many processes are in a turn, at about this time; or are just being woken: the two look
    /// the same where a custom process is concerned.
    pub(crate) fn running_len(&self) -> usize {
        let mut n_running = 0;
        self.alive(|alive| n_running += usize::from(alive.state == State::Running));
        n_running
    }

    /// Ends what is queued, and lets nothing stay in the queue from now on: the workers are gone,
    /// or were told to go (rule 3). Of an executor on one thread it ends nothing: that is up to its
    /// thread (rule 4).
    pub fn close(&self) {
        if !self.seats.is_empty() {
            self.close_here();
        }
    }

    /// As [`close`](Self::close), by a thread that may end everything that is queued.
    pub(crate) fn close_here(&self) {
        // AcqRel: as in `stop`.
        self.stage.fetch_max(OVER, AcqRel);
        // Pairs with the fence of who queues something.
        fence(SeqCst);
        self.end_queued();
    }

    /// Ends what is in the injector, when nobody will step it.
    #[cold]
    pub(crate) fn end_queued(&self) {
        loop {
            match self.injector.take_batch(BATCH) {
                Pop::Item(batch) => batch.into_iter().for_each(|entry| self.end(entry)),
                Pop::Empty => return,
                // Somebody is in the middle of a push or a take, and about to be done.
                Pop::Busy => {
                    hint::spin_loop();
                    self.host().yield_now();
                }
            }
        }
    }

    /// Asks the worker of a seat to leave.
    pub fn dismiss(&self, seat: usize) {
        self.seats[seat].ask_leave();
        self.wake_seat(seat);
    }

    /// Takes a dismissal back; false if the worker is on its way already.
    #[must_use]
    pub fn recall(&self, seat: usize) -> bool {
        self.seats[seat].ask_stay()
    }

    /// Whether a worker sits there.
    #[must_use]
    pub fn is_taken(&self, seat: usize) -> bool {
        self.seats[seat].is_taken()
    }

    /// Whether the timers are closed, which the metronome waits for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shards.is_closed()
    }

    /// Closes the timers; those that wait for one are woken and learn it.
    pub fn close_timers(&self) {
        let mut fires = Vec::new();
        self.shards.close(|fire| fires.push(fire));
        for fire in fires {
            fire.closed(self);
        }
        for (shard, _, _) in self.shards.wakes() {
            self.clear_out(shard);
        }
    }
}
