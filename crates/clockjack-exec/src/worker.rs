//! A worker of a pool: where it finds work, in which order, and when it sleeps.
//!
//! # Where it looks
//!
//! 1. Its LIFO slot, three times in a row at the most: what the last step woke is still in the
//!    cache.
//! 2. Its ring, oldest first.
//! 3. Every *n* steps, before the two: its timers and the injector. *n* is tuned so that about
//!    200 µs lie between two such looks; no steal resets the count.
//! 4. The injector: one, and up to sixteen more into its ring.
//! 5. Other workers, from a random one on, each once: half of its ring.
//! 6. As a last resort the timers that are overdue elsewhere, and the LIFO slot of a worker that
//!    has been in the same step for longer than the metronome allows.
//!
//! Having found nothing it looks again: four times at once, twelve times after letting others run;
//! then it parks. Only half of the workers search at a time; [`Idle`](crate::idle::Idle) has the
//! protocol by which none sleeps while there is work, and no timer is slept through. Random numbers
//! are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! # What others may touch
//!
//! Of a seat everything: it is made of atomics. Of a [`Local`] nothing: it is on the stack of
//! the worker's thread, which reaches it through its host.
#![expect(unsafe_code, reason = "a worker has its ring and its cache to itself")]

pub mod hand;
mod local;
mod seat;

use core::{
    cell::{Cell, UnsafeCell},
    ptr::NonNull,
};

use clockjack_sync::{
    injector::BATCH_MAX,
    mpsc::Pop,
    mutant,
    prim::{
        atomic::Ordering::{Acquire, Relaxed, Release},
        hint,
    },
    ring::{Owner, Steal},
    splitmix,
};
use clockjack_time::Tick;

pub use self::local::Local;
pub(crate) use self::seat::Seat;
use self::seat::{LEAVE, POLL, count};
use crate::{
    cell::{Entry, Head},
    engine::Engine,
    engine_ref::{EngineRef, Stock},
    fire::Deferred,
};

/// How often in a row the LIFO slot goes first.
const LIFO_RUN_MAX: u8 = 3;
/// Searches without a pause, and all together.
const SPINS_TIGHT: u32 = 4;
const SPINS_MAX: u32 = 16;
/// Steps between two looks at timers and injector.
const INTERVAL_START: u32 = 61;
const INTERVAL_MIN: u32 = 2;
const INTERVAL_MAX: u32 = 127;
/// The time that should lie between two such looks.
const INTERVAL_NANOS: u64 = 200_000;
/// How many timers one look fires at the most; the rest follows after a few steps.
const TIMERS_PER_LOOK: usize = 256;

/// Works in a seat until it is asked to leave. Called by the thread that is to be the worker.
///
/// # Panics
/// If the seat is taken, or there is none of that number.
#[doc(hidden)]
pub fn work(engine: &Engine, seat: usize) {
    work_once_seated(engine, seat, || ());
}

/// The same, and calls `seated` when the worker has its seat and its timers, before it does
/// anything.
///
/// # Panics
/// If the seat is taken, or there is none of that number.
#[doc(hidden)]
pub fn work_once_seated(engine: &Engine, seat: usize, seated: impl FnOnce()) {
    // Beside the worker and not in it: this thread reaches it through its host too, while the
    // worker is borrowed for good.
    let local = sit_down(engine, seat);
    let mut worker = Worker::new(engine, &local);
    let entered = Entered { engine, before: engine.host().enter(&raw const local) };
    seated();
    worker.run();
    worker.leave();
    drop(entered);
    // Not before: what was dropped until now went into it.
    EngineRef::take_back(engine, &local.stock);
}

/// Makes this thread what it was before it became a worker. By a panic of the worker, too: what is
/// dropped then would look at what is gone. The stock is lost in that case, and the engine stays.
struct Entered<'e> {
    engine: &'e Engine,
    before: *const Local,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.engine.host().enter(self.before);
    }
}

/// Takes a seat, with its ring and a shard.
fn sit_down(engine: &Engine, seat: usize) -> Local {
    let place = &*engine.seats[seat];
    // Acquire: pairs with the release of the worker that left.
    let was_taken = place.is_taken.swap(1, Acquire);
    assert_eq!(was_taken, 0, "seat {seat} is taken");
    // SAFETY: this thread has just taken the seat.
    let ring = place.ring.with_mut(|ring| unsafe { (*ring).take() });
    let ring = ring.expect("a worker that left gave the ring back");
    if mutant!("worker-forgets-request") {
        place.flags.store(0, Relaxed);
    }
    place.sit();
    Local {
        engine,
        seat,
        home: Cell::new(engine.shards.attach(seat)),
        is_firing: Cell::new(false),
        ring: UnsafeCell::new(ring),
        cache: UnsafeCell::new(engine.cache()),
        stock: Stock::default(),
        forgotten: UnsafeCell::default(),
    }
}

struct Worker<'e> {
    engine: &'e Engine,
    place: &'e Seat,
    local: &'e Local,
    /// The process whose turn it is.
    running: Cell<Option<NonNull<Head>>>,
    is_searching: bool,
    lifo_run: u8,
    /// Steps until the next look at timers and injector, out of `interval`.
    countdown: u32,
    interval: u32,
    /// When the last such look was.
    looked_at: u64,
    /// How long a step takes, about.
    step_nanos: u64,
    now: Tick,
    random: u64,
    deferred: Deferred,
}

impl<'e> Worker<'e> {
    fn new(engine: &'e Engine, local: &'e Local) -> Self {
        let seat = local.seat;
        engine.idle.activate(seat);
        let nanos = engine.host().nanos();
        engine.tell_awake(engine.host().tick_of(nanos));
        Self {
            engine,
            place: local.seat_of(engine),
            local,
            running: Cell::new(None),
            is_searching: false,
            lifo_run: 0,
            countdown: 0,
            interval: INTERVAL_START,
            looked_at: nanos,
            step_nanos: INTERVAL_NANOS / u64::from(INTERVAL_START),
            now: engine.host().tick_of(nanos),
            random: mix(engine.host().seed() ^ (seat as u64 + 1)),
            deferred: Deferred::default(),
        }
    }

    /// Steps until asked to leave. One guard is around all steps and not around each: a panic ends
    /// the process whose turn it was, and the work goes on.
    fn run(&mut self) {
        let host = self.engine.host();
        while let Err(caught) = host.guarded(&mut || self.run_unguarded()) {
            let running = self.running.take();
            // A panic that is not a process's is a fault of this code, and is not survived.
            let running = running.unwrap_or_else(|| panic!("a worker failed: {caught:?}"));
            self.end_turn();
            // SAFETY: it was running when the panic was caught.
            unsafe { self.engine.bury(running, caught) };
        }
    }

    fn run_unguarded(&mut self) {
        loop {
            if self.is_to_leave() {
                return;
            }
            match self.next().or_else(|| self.search()) {
                Some(entry) => self.step(entry),
                None => self.park(),
            }
        }
    }

    /// Does what it was asked for; whether that is to leave.
    #[inline(always)]
    fn is_to_leave(&mut self) -> bool {
        // Acquire: pairs with whoever asked.
        let flags = self.place.flags.load(Acquire);
        if flags != 0 {
            if flags & LEAVE != 0 && self.place.leaves() {
                return true;
            }
            // Relaxed: the look that follows is what was asked for.
            self.place.flags.fetch_and(!POLL, Relaxed);
            self.countdown = 0;
        }
        false
    }

    #[inline]
    fn step(&mut self, entry: Entry) {
        if self.is_searching {
            self.end_search();
        }
        let place = self.place;
        // Relaxed: a hint for who watches.
        let turn = place.turn.load(Relaxed).wrapping_add(1);
        place.current.store(entry.index(), Relaxed);
        place.turn.store(turn, Relaxed);
        self.engine.run_in_guard(entry, &self.running);
        self.end_turn();
    }

    #[inline]
    fn end_turn(&self) {
        let turn = &self.place.turn;
        // Relaxed: as in `step`.
        turn.store(turn.load(Relaxed).wrapping_add(1), Relaxed);
        count(&self.place.counts.steps, 1);
    }

    /// The next process that is here.
    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.countdown == 0
            && let Some(entry) = self.look()
        {
            return Some(entry);
        }
        self.countdown -= 1;
        if (self.lifo_run < LIFO_RUN_MAX || mutant!("worker-lifo-unbounded"))
            && let Some(entry) = self.place.take_lifo()
        {
            self.lifo_run += 1;
            return Some(entry);
        }
        self.lifo_run = 0;
        self.local.with_ring(Owner::pop).or_else(|| self.place.take_lifo())
    }

    /// Looks at the clock, the timers and the injector.
    #[cold]
    fn look(&mut self) -> Option<Entry> {
        let nanos = self.engine.host().nanos();
        let steps = u64::from(self.interval);
        assert!(!mutant!("worker-clock-must-rise") || nanos >= self.looked_at, "stepped back");
        let took = nanos.saturating_sub(self.looked_at) / steps;
        self.step_nanos = (self.step_nanos * 9 + took) / 10;
        let interval = INTERVAL_NANOS / self.step_nanos.max(1);
        self.interval = u32::try_from(interval).unwrap_or(u32::MAX);
        self.interval = self.interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        self.looked_at = nanos;
        self.countdown = self.interval;
        self.now = self.engine.host().tick_of(nanos);
        self.place.set_now(self.now);
        self.poll_timers();
        self.take_injected()
    }

    /// Reads the clock when it was not read for some time without a reason to tune anything.
    fn refresh(&mut self) {
        let nanos = self.engine.host().nanos();
        self.looked_at = nanos;
        self.countdown = self.interval;
        self.now = self.engine.host().tick_of(nanos);
        self.place.set_now(self.now);
    }

    /// Fires what is due in the shards that this worker keeps.
    fn poll_timers(&mut self) {
        self.local.disarm_forgotten(self.engine);
        let (engine, seat) = (self.engine, self.local.seat);
        for shard in engine.shards.keeps(seat) {
            if engine.shards.is_overdue(shard, self.now) {
                self.fire(shard, true);
            }
        }
    }

    /// Says whether anything was done.
    fn fire(&mut self, shard: u32, is_own: bool) -> bool {
        let Self { engine, now, deferred, local, place, .. } = self;
        let (shards, now) = (&engine.shards, *now);
        let mut latest = 0;
        local.is_firing.set(true);
        let mut hand_over = |timer: clockjack_time::Expired<crate::fire::Fire>| {
            latest = latest.max(now.get().saturating_sub(timer.deadline.get()));
            timer.value.hand_over(engine, now, deferred);
        };
        let polled = if is_own {
            shards.poll(shard, now, TIMERS_PER_LOOK, &mut hand_over)
        } else {
            shards.take_over(shard, now, TIMERS_PER_LOOK, &mut hand_over)
        };
        local.is_firing.set(false);
        if !(mutant!("worker-leaves-deferred") && place.has_flags()) {
            deferred.finish(engine);
        }
        engine.clear_out(shard);
        if polled.more {
            // The rest soon, but not before what has just been woken.
            self.countdown = self.countdown.min(INTERVAL_MIN);
        }
        if polled.fired > 0 {
            count(&place.counts.fired, polled.fired as u64);
            // Relaxed: a statistic with one writer.
            let max = place.counts.lateness_max.load(Relaxed).max(latest);
            place.counts.lateness_max.store(max, Relaxed);
        }
        if polled.fired > 1 {
            engine.notify_one();
        }
        polled.fired > 0 || polled.more
    }

    /// What has become ready here while timers fired: those who wake by way of other wakers leave
    /// it in the LIFO slot.
    fn take_fired(&mut self) -> Option<Entry> {
        self.local.with_ring(Owner::pop).or_else(|| self.place.take_lifo())
    }

    /// One process from the injector, and some more into the ring.
    fn take_injected(&mut self) -> Option<Entry> {
        let injector = &self.engine.injector;
        if injector.is_empty() {
            return None;
        }
        match self.local.with_ring(|ring| injector.take_into(BATCH_MAX, ring)) {
            Pop::Item((first, _)) => Some(first),
            Pop::Empty | Pop::Busy => None,
        }
    }

    /// Looks everywhere, for a while.
    fn search(&mut self) -> Option<Entry> {
        if !self.is_searching {
            self.is_searching = self.engine.idle.start_search();
            if !self.is_searching {
                return None;
            }
        }
        for spin in 0..SPINS_MAX {
            if let Some(entry) = self.take_injected().or_else(|| self.steal()) {
                return Some(entry);
            }
            if self.place.has_flags() {
                return None;
            }
            if spin < SPINS_TIGHT {
                hint::spin_loop();
            } else {
                self.engine.host().yield_now();
            }
        }
        self.refresh();
        self.poll_timers();
        self.take_fired().or_else(|| self.take_over()).or_else(|| self.steal_lifo())
    }

    /// Takes half of what another worker has.
    fn steal(&mut self) -> Option<Entry> {
        let engine = self.engine;
        let (n_seats, start) = (engine.seats.len(), self.random_below(engine.seats.len()));
        for victim in (start..n_seats).chain(0..start) {
            if victim == self.local.seat {
                continue;
            }
            let thief = &engine.seats[victim].thief;
            if thief.is_empty() {
                continue;
            }
            if let Steal::Item { item, moved } = self.local.with_ring(|ring| thief.steal_into(ring))
            {
                count(&self.place.counts.stolen, moved as u64 + 1);
                return Some(item);
            }
        }
        None
    }

    /// Fires what is overdue in the shards of workers that are busy, or that nobody keeps, until
    /// there is something to step.
    fn take_over(&mut self) -> Option<Entry> {
        let engine = self.engine;
        loop {
            if mutant!("worker-takes-nothing-over") {
                return None;
            }
            let from = self.random_below(engine.seats.len());
            let shard = engine.shards.overdue(self.now, Some(self.local.seat), from)?;
            let did_fire = self.fire(shard, false);
            if let Some(entry) = self.take_fired() {
                return Some(entry);
            }
            if !did_fire || self.place.has_flags() || engine.has_shared_work() {
                return None;
            }
            self.refresh();
            self.poll_timers();
        }
    }

    /// Takes what a worker has put first and does not come to, as the metronome has found.
    fn steal_lifo(&mut self) -> Option<Entry> {
        if mutant!("worker-steals-no-lifo") {
            return None;
        }
        let entry = self
            .engine
            .seats
            .iter()
            .find_map(|seat| if seat.is_stuck() { seat.take_lifo() } else { None })?;
        count(&self.place.counts.stolen, 1);
        Some(entry)
    }

    fn end_search(&mut self) {
        self.is_searching = false;
        if mutant!("worker-search-ends-silently") {
            let _ = self.engine.idle.end_search();
            return;
        }
        // If nobody else searches, who submitted meanwhile counted on this worker.
        if self.engine.idle.end_search() && self.engine.has_shared_work() {
            self.engine.wake_one();
        }
    }

    fn park(&mut self) {
        let slept = self.go_to_sleep();
        if let Some(until) = slept {
            self.engine.host().park(self.local.seat, until);
        }
        self.wake_up(slept);
    }

    /// Announces that it sleeps, unless there is something to do after all; says until when.
    fn go_to_sleep(&mut self) -> Option<Option<Tick>> {
        let (engine, seat, place) = (self.engine, self.local.seat, self.place);
        let was_searching = core::mem::replace(&mut self.is_searching, true);
        let now = self.now;
        let parks = engine.idle.park_unless(seat, was_searching, || {
            place.has_flags()
                || place.has_lifo()
                || engine.has_shared_work()
                || engine.shards.next_wake(seat).is_some_and(|wake| wake <= now)
        });
        if !parks {
            return None;
        }
        count(&place.counts.parked, 1);
        // Read after the announcement: whoever armed before that is in it, whoever arms after it
        // sees the sleeper.
        Some(engine.shards.next_wake(seat))
    }

    /// It is awake again, or has not slept.
    fn wake_up(&mut self, slept: Option<Option<Tick>>) {
        let engine = self.engine;
        if let Some(until) = slept {
            engine.idle.cancel_park(self.local.seat);
            if mutant!("worker-trusts-its-alarm") {
                self.now = until.unwrap_or(self.now);
                return self.poll_timers();
            }
        }
        self.refresh();
        engine.tell_awake(self.now);
        // Its timers are probably why it is awake.
        self.poll_timers();
    }

    /// Hands on everything that is here.
    fn leave(&mut self) {
        let engine = self.engine;
        if self.is_searching {
            self.end_search();
        }
        let first = || if mutant!("worker-leaves-lifo") { None } else { self.place.take_lifo() };
        // Both each time: after the end of the executor what is handed on is ended, here, and that
        // may wake others.
        while let Some(entry) = first().or_else(|| self.local.with_ring(Owner::pop)) {
            engine.inject(entry);
        }
        self.local.disarm_forgotten(engine);
        let orphans = engine.shards.detach(self.local.seat);
        engine.idle.deactivate(self.local.seat);
        if orphans > 0 {
            engine.call_metronome();
        }
        self.local.with_cache(|cache| engine.give_back_cache(cache));
        let ring = self.local.with_ring(core::mem::take);
        // SAFETY: this thread has the seat.
        self.place.ring.with_mut(|place| unsafe { *place = Some(ring) });
        self.place.leave();
        // Release: pairs with the acquire of the next one who sits here.
        self.place.is_taken.store(0, Release);
    }

    fn random_below(&mut self, n: usize) -> usize {
        self.random = mix(self.random);
        // The high bits, scaled: no division.
        let high = (self.random >> 32) * n as u64;
        usize::try_from(high >> 32).unwrap_or(0)
    }
}

/// One step of a generator of random numbers: an addition, and a scrambling of its sum.
pub(crate) const fn mix(state: u64) -> u64 {
    splitmix::mix(state.wrapping_add(splitmix::STEP))
}
