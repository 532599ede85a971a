//! The trace of `jobs.rs` in 16 KiB of memory: the same jobs in a [`JobTable`] on a wheel in a
//! static, advanced by the program's own loop. This is the scheduler without the handles, locks and
//! shards that sharing needs, for boards that need no sharing.
#![no_std]
#![no_main]

use core::{cell::RefCell, time::Duration};

use clockjack_firmware::{
    board::{self, TICKS},
    heap, line, out, program, report,
};
use clockjack_sched::{Delivery, JobId, JobSpec, JobTable, SchedulerConfig};
use clockjack_time::{ClockKind, FixedWheel, Resolution, Tick, TickDriver as _};
use critical_section::Mutex;

program!(run);

/// The maximum number of jobs.
const JOBS: usize = 8;
/// How many of them may have a deadline beyond the range of the wheel.
const FAR: usize = 2;
/// The number of delays that are measured with the board's finest clock, each started in another
/// part of a tick.
const DELAYS: u32 = 16;

const CONFIG: SchedulerConfig = {
    let mut config = SchedulerConfig::SMALL;
    config.resolution = Resolution::MILLI;
    config.quota = JOBS;
    config.capacity = JOBS;
    config.overflow_capacity = FAR;
    config
};

type Wheel = FixedWheel<JobId, JOBS, FAR>;

static WHEEL: Mutex<RefCell<Wheel>> = Mutex::new(RefCell::new(Wheel::fixed(Tick::ZERO)));

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The purpose of a job.
#[derive(Clone, Copy)]
enum What {
    Rate,
    Slow,
    Once,
    Doomed,
    Filler,
    /// A measured delay.
    Measured,
}

/// The jobs, and the state of their handlers.
struct Jobs {
    table: JobTable<What>,
    runs: u32,
    /// When the measured delay was over, in nanoseconds.
    over: Option<u64>,
}

impl Jobs {
    /// Runs a step with the wheel, in a critical section. No user code runs in it, so interrupts
    /// are delayed only for the length of one step.
    fn with<R>(&mut self, step: impl FnOnce(&mut JobTable<What>, &mut Wheel) -> R) -> R {
        critical_section::with(|cs| step(&mut self.table, &mut WHEEL.borrow_ref_mut(cs)))
    }

    fn schedule(&mut self, spec: JobSpec, what: What) -> Option<JobId> {
        let now = board::now_fine();
        match self.with(|table, wheel| table.schedule(wheel, now, spec, what)) {
            Ok(job) => Some(job),
            Err(refused) => {
                line!("{:>4} after 4 more jobs: {refused}", board::now());
                None
            }
        }
    }

    fn cancel(&mut self, job: JobId) -> bool {
        self.with(|table, wheel| table.cancel(wheel, job))
    }

    /// Runs the due jobs, each at most once. False if none is due.
    fn turn(&mut self) -> bool {
        let (now, mut due, mut n) = (board::now_fine(), [None; JOBS], 0);
        self.with(|table, wheel| {
            table.advance(wheel, now, JOBS, |fire| {
                let missed = fire.batch.missed_runs;
                due[n] = Some(match fire.delivery {
                    Delivery::Last(what) => (None, what, missed),
                    Delivery::Again(what) => (Some(fire.job), *what, missed),
                });
                n += 1;
            })
        });
        for (repeats, what, missed) in due.into_iter().flatten() {
            self.handle(what, missed);
            if let Some(job) = repeats {
                let at = board::now_fine();
                self.with(|table, wheel| table.completed(wheel, job, at));
            }
        }
        n > 0
    }

    fn handle(&mut self, what: What, missed: u32) {
        match what {
            What::Rate => {
                self.runs += 1;
                line!("{:>4} rate: run {}, missed {missed}", board::now(), self.runs);
            }
            What::Slow => {
                line!("{:>4} delay: begins", board::now());
                board::spin(3);
            }
            What::Once => line!("{:>4} once", board::now()),
            What::Doomed | What::Filler => line!("{:>4} was cancelled, and runs", board::now()),
            What::Measured => self.over = Some(board::nanos()),
        }
    }

    /// Takes ticks, runs due jobs, and sleeps while there is nothing to do.
    fn until(&mut self, is_over: impl Fn(&Self) -> bool) {
        while !is_over(self) {
            while TICKS.poll_tick().is_some() {}
            if !self.turn() {
                board::park();
            }
        }
    }
}

fn run() {
    TICKS.register(board::waker()).expect("nobody else has the driver");
    let table = JobTable::new(&CONFIG, 0, ClockKind::RealtimeHardware);
    let mut jobs = Jobs { table, runs: 0, over: None };
    let beats = [
        jobs.schedule(JobSpec::fixed_rate(ms(10), ms(10)), What::Rate),
        jobs.schedule(JobSpec::fixed_delay(ms(15), ms(15)), What::Slow),
    ];
    jobs.schedule(JobSpec::once(ms(12)), What::Once);
    let doomed = jobs.schedule(JobSpec::once(ms(40)), What::Doomed);
    let mut fillers = [None; JOBS];
    for place in &mut fillers {
        *place = jobs.schedule(JobSpec::once(Duration::from_secs(1)), What::Filler);
        if place.is_none() {
            break;
        }
    }
    let cancelled = fillers.into_iter().flatten().filter(|job| jobs.cancel(*job)).count();
    line!("{:>4} cancelled: {cancelled}", board::now());
    out::fact("heap-sealed", heap::used() as u64);
    let made = heap::books().allocations;
    // From here on any allocation stops the program.
    heap::shut(true);

    board::start_ticks();
    jobs.until(|_| board::now() >= 35);
    assert!(doomed.is_some_and(|job| jobs.cancel(job)), "nobody else cancels it");
    jobs.until(|_| board::now() >= 60);
    let again = TICKS.register(board::waker()).expect_err("the loop has registered");
    line!("{:>4} {again}", board::now());
    line!("{:>4} a storm: the loop is away for 60 ticks", board::now());
    board::spin(60);
    line!("{:>4} driver: {:?}", board::now(), TICKS.current_status());
    let token = TICKS.poll_tick().expect("time has passed");
    while jobs.turn() {}
    let (made_up, ticks) = (token.catch_up, token.catch_up + 1);
    line!("{:>4} made up for: {made_up} of {ticks} ticks", board::now());
    jobs.until(|_| board::now() >= 150);
    for job in beats.into_iter().flatten() {
        assert!(jobs.cancel(job), "it goes on until it is cancelled");
    }
    never_early(&mut jobs);
    line!("allocations since the start: {}", heap::books().allocations - made);
    line!("the driver stops: {:?}", TICKS.stop_and_flush());
    heap::shut(false);
    drop(jobs);
    report();
    out::fact("heap-left", heap::used() as u64);
}

/// As in `jobs.rs`.
fn never_early(jobs: &mut Jobs) {
    let mut longest = 0;
    for n in 0..DELAYS {
        let tick = board::now();
        while board::now() == tick {}
        let begins = board::nanos() + u64::from(n) * 1_000_000 / u64::from(DELAYS);
        while board::nanos() < begins {}
        jobs.over = None;
        let begun = board::nanos();
        let job = jobs.schedule(JobSpec::once(ms(3)), What::Measured).expect("there is room");
        jobs.until(|jobs| jobs.over.is_some());
        jobs.with(|table, _| table.release(job));
        let took = jobs.over.map_or(0, |over| over - begun);
        assert!(took >= 3_000_000, "early: {took} ns instead of 3 ms");
        longest = took.max(longest);
    }
    line!("{DELAYS} delays of 3 ms: none early, all within 5 ms: {}", longest < 5_000_000);
}
