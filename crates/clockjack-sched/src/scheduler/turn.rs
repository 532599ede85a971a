//! Taking a turn: time is moved, and what is due is run.

use alloc::boxed::Box;

use clockjack_sync::{Counted, mutant, prim::atomic::Ordering};
use clockjack_time::{ClockKind, Tick, TimerInstant};

use super::{Common, Inner, Item, Scheduler, Station};
use crate::{
    BatchMode, DispatcherId, FireContext, HandlerError, JobState, Parcel, PressureReason, Warning,
    host::Work,
    job::{late_by, tick_of},
    table::{Done, Next, Run},
};

/// How much of the wheel is moved in one lease.
const ADVANCE_BUDGET: usize = 64;
/// How many runs go by one reading of the clock, if they are due already.
const RUNS_PER_READING: usize = 8;

/// What a turn has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// How many handlers were called.
    pub ran: usize,
    /// Whether the budget ended it: there is more to do at once.
    pub is_more: bool,
    /// When something is due next, if nothing is now.
    pub next_wake: Option<Tick>,
    /// Whether the scheduler was closed, and nothing is left to do.
    pub is_over: bool,
}

/// How far a turn moves time.
#[derive(Clone, Copy)]
enum Until {
    /// To now, whenever it looks.
    Now,
    /// To here and no further: so it ends, however long handlers take.
    At(TimerInstant),
    /// Not at all.
    Still,
}

impl Until {
    /// What comes due or is posted meanwhile is the runner's, or else it would go on for as long as
    /// others post.
    fn flush_to(self, common: &Common) -> Option<Tick> {
        match self {
            Self::At(limit) => Some(tick_of(limit, common.resolution)),
            Self::Now | Self::Still => None,
        }
    }
}

/// A turn that is being taken; over also if a handler takes its caller along.
struct Turning<'i>(&'i Inner);

impl<'i> Turning<'i> {
    fn begin(inner: &'i Inner) -> Self {
        // Relaxed: a count for the manual mode, in which one thread turns.
        inner.turning.fetch_add(1, Ordering::Relaxed);
        Self(inner)
    }
}

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        // Relaxed: as in `begin`.
        self.0.turning.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Scheduler {
    /// Moves the time of a shard to now and runs what is due, on this thread: at most `budget`
    /// handlers. For hosts; `executor` is told in logs.
    ///
    /// Several threads may take turns of one shard at a time; each job is run by one of them.
    /// Called from inside a handler it runs what else is due.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn turn(&self, shard: usize, executor: u16, budget: usize) -> Turn {
        let inner = self.inner();
        let turning = Turning::begin(inner);
        let turn = take_turn(&inner.stations[shard], executor, budget, Until::Now);
        drop(turning);
        inner.common.hub().ring();
        turn
    }

    /// Runs what is due by now in all shards, on this thread, and nothing that comes due meanwhile.
    /// Gives the number of runs.
    pub(crate) fn run_due(&self) -> usize {
        self.run_due_by(self.inner().common.host.now())
    }

    /// As [`run_due`](Self::run_due), but for what is due by `limit`, which is not later than now.
    pub(crate) fn run_due_by(&self, limit: TimerInstant) -> usize {
        let inner = self.inner();
        let until = Until::At(limit);
        let turning = Turning::begin(inner);
        let mut ran = 0;
        for (index, station) in inner.stations.iter().enumerate() {
            ran += take_turn(station, 0, usize::MAX, until).ran;
            // What it has completed may be due before the runner wakes.
            inner.common.host.call_runner(index);
        }
        drop(turning);
        inner.common.ring();
        ran
    }

    /// The earliest time at which anything is due.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        let inner = self.inner();
        let next = |station: &Counted<Station>| {
            station.look(|core| match core.table.n_due() {
                0 => core.wheel.next_deadline(),
                _ => Some(core.table.now()),
            })
        };
        inner.stations.iter().filter_map(next).min()
    }
}

impl Inner {
    /// Runs what is on the lists, without moving time.
    pub(super) fn run_listed(&self) {
        for station in &self.stations {
            take_turn(station, 0, usize::MAX, Until::Still);
        }
        self.common.ring();
    }
}

/// Whether the wheel is to be moved before the next run. A job that catches up is listed again and
/// again, and others must not wait for that; but a long list is run first, for what stands in it is
/// due before all that does not, and its slots are still in the cache.
fn wants_more(listed: usize, is_fresh: bool) -> bool {
    listed == 0 || (is_fresh && listed < ADVANCE_BUDGET && !mutant!("turn-catches-up-alone"))
}

/// How many runs go by one reading of the clock.
fn runs_per_reading(common: &Common) -> usize {
    match common.host.clock_kind() {
        // Its readings cost nothing, and what handlers do to it is to be seen at once.
        ClockKind::Deterministic => 1,
        ClockKind::RealtimeHost | ClockKind::RealtimeHardware => RUNS_PER_READING,
    }
}

/// The runner of `shard.md`: takes and completes with the lease, runs without it.
fn take_turn(station: &Counted<Station>, executor: u16, budget: usize, until: Until) -> Turn {
    let common = &*station.common;
    let mut turn = Turn::default();
    let mut done: Option<Done<Item>> = None;
    let read = || common.host.now();
    let runs_per_reading = runs_per_reading(common);
    let flush_to = until.flush_to(common);
    // Fresh: the wheel has not been moved by this reading.
    let (mut now, mut is_fresh) = (read(), true);
    loop {
        let mut lease = station.jobs.lease_wait(&common.relax());
        let ended = done.take().and_then(|done| lease.complete(done));
        let (next, more) = if turn.ran >= budget {
            (None, true)
        } else if flush_to.is_some_and(|to| lease.core().table.is_due_after(to))
            && !mutant!("jobs-flush-unbounded")
        {
            (None, false)
        } else if matches!(until, Until::Still) || !wants_more(lease.core().table.n_due(), is_fresh)
        {
            (lease.next_due(now, executor), false)
        } else {
            is_fresh = false;
            let to = if let Until::At(limit) = until { limit } else { now };
            lease.advance(to, now, ADVANCE_BUDGET, executor)
        };
        let is_last = next.is_none() && !more;
        let next_wake = if is_last {
            lease.retire()
        } else {
            drop(lease);
            None
        };
        if let Some(item) = ended {
            common.discard(item);
        }
        match next {
            Some(Next::Tell(item)) => tell(common, item),
            Some(Next::Drop(item)) => common.discard(item),
            Some(Next::Run(mut run)) => {
                turn.ran += 1;
                now = not_early(common, &mut run, now);
                done = run_one(station, run, now);
                // The end of a fixed delay was read, so those behind it know better for nothing.
                now = done.as_ref().map_or(now, |done| done.at);
                if turn.ran.is_multiple_of(runs_per_reading) {
                    now = read();
                    is_fresh = true;
                }
            }
            Some(Next::Send(run, folds)) => {
                turn.ran += 1;
                send(station, run, folds);
                if turn.ran.is_multiple_of(runs_per_reading) {
                    now = read();
                    is_fresh = true;
                }
            }
            None if turn.ran >= budget => {
                turn.is_more = true;
                return turn;
            }
            None if is_last && (flush_to.is_some() || !station.jobs.has_notes()) => {
                turn.next_wake = next_wake;
                turn.is_over = next_wake.is_none() && station.jobs.is_closed();
                return turn;
            }
            // The wheel has more, or a note came meanwhile.
            None => {
                now = read();
                is_fresh = true;
            }
        }
    }
}

/// The time that a run is told. If another turn has listed it by a later reading, this one's would
/// be before it was due.
fn not_early(common: &Common, run: &mut Run<Item>, now: TimerInstant) -> TimerInstant {
    if tick_of(now, common.resolution) >= run.due || mutant!("jobs-stale-reading") {
        return now;
    }
    let now = common.host.now();
    run.late = late_by(now, run.due, common.resolution);
    now
}

/// A job that was cancelled is told so, and dropped.
fn tell(common: &Common, mut item: Item) {
    drop(common.host.guarded(&mut || item.task.cancelled()));
    common.discard(item);
}

/// Runs a handler here, or hands it to its dispatcher. What is to be completed, if it is.
fn run_one(station: &Counted<Station>, run: Run<Item>, now: TimerInstant) -> Option<Done<Item>> {
    if run.payload.dispatcher == DispatcherId::DEFAULT {
        return Some(execute(&station.common, run, now));
    }
    dispatch(station, run)
}

/// Gives a run to its courier. A panic there is told. Where the parcel is then nobody knows; it
/// completes its run all the same.
#[inline(never)]
fn send(station: &Counted<Station>, run: Run<Item>, folds: bool) {
    let common = &*station.common;
    let (job, batch, carry) = (run.number, run.batch, run.payload.task.carry());
    let mut parcel = Some(Parcel::new(station.clone(), run, folds));
    let sent = common.host.guarded(&mut || {
        if let (Some(carry), Some(parcel)) = (carry, parcel.take()) {
            carry(parcel);
        }
    });
    if let Err(error) = sent {
        common.warn(Warning::HandlerFailed { job, error, batch });
    }
}

fn execute(common: &Common, run: Run<Item>, now: TimerInstant) -> Done<Item> {
    let Run { slot, number, batch, due, late, mut payload } = run;
    let fire = FireContext::new(number, batch, due, now, late);
    let outcome = common.call(&mut || payload.task.run(&fire));
    let at = if batch.mode == BatchMode::FixedDelay { common.host.now() } else { now };
    Done { slot, payload, batch, outcome, at }
}

/// Hands a run to another dispatcher, which completes it.
#[cold]
fn dispatch(station: &Counted<Station>, run: Run<Item>) -> Option<Done<Item>> {
    let common = &*station.common;
    let dispatcher = run.payload.dispatcher;
    let ticket = Ticket { station: station.clone(), run: Some(run) };
    let mut ticket = Some(ticket);
    let work = Work::new(Box::new(move || {
        if let Some(ticket) = ticket.take() {
            ticket.run();
        }
    }));
    match common.host.dispatch(dispatcher, work) {
        Ok(()) => common.tell_pressure(common.pressure.release(PressureReason::Dispatcher)),
        Err(refused) => {
            let now = tick_of(common.host.now(), common.resolution);
            common.tell_pressure(common.pressure.refuse(now));
            // The ticket in it completes the run.
            common.discard(refused);
        }
    }
    None
}

/// A run was completed outside of a turn: what is left to be done without the lease.
pub(crate) fn settle(station: &Counted<Station>, ended: Option<Item>, calls_runner: bool) {
    let common = &*station.common;
    if let Some(item) = ended {
        common.discard(item);
    }
    // The caller rings in any case.
    if !calls_runner && !station.jobs.take_owed().calls_runner() {
        return;
    }
    if station.jobs.is_closed() {
        // The runner may be gone: what is to be told or dropped is so here.
        take_turn(station, 0, usize::MAX, Until::Still);
    } else {
        common.host.call_runner(station.jobs.id() as usize);
    }
}

/// A run on its way to another dispatcher. Dropped without having run, it is completed: a periodic
/// job goes on, and that a one-shot will not run is told as a failure.
struct Ticket {
    station: Counted<Station>,
    run: Option<Run<Item>>,
}

impl Ticket {
    /// Begins the run, unless a cancel of a periodic job, or the close, was first: then the drop
    /// completes it. A cancel that comes behind this look has found it running.
    fn run(mut self) {
        let is_cancelled = |run: &mut Run<Item>| {
            self.station.jobs.state(run.slot) == JobState::Cancelled
                && !mutant!("jobs-dispatched-despite-cancel")
        };
        if let Some(mut run) = self.run.take_if(|run| !is_cancelled(run)) {
            let common = &*self.station.common;
            let now = common.host.now();
            run.late = late_by(now, run.due, common.resolution);
            let done = execute(common, run, now);
            self.complete(done);
        }
    }

    fn complete(&self, done: Done<Item>) {
        let common = &*self.station.common;
        let mut lease = self.station.jobs.lease_wait(&common.relax());
        let ended = lease.complete(done);
        drop(lease);
        // It may be due again, or earlier than the runner knows.
        settle(&self.station, ended, true);
        // Last, as everywhere: a waker may panic, and the runner is to know all the same.
        common.hub().ring();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            let Run { slot, batch, payload, .. } = run;
            let outcome = match batch.mode {
                BatchMode::OneShot => Err(HandlerError::new("its dispatcher did not run it")),
                BatchMode::FixedRate | BatchMode::FixedDelay => Ok(()),
            };
            let at = self.station.common.host.now();
            self.complete(Done { slot, payload, batch, outcome, at });
        }
    }
}
