//! The scheduler without actors, for boards with as little as 16 KiB of memory: jobs of every kind,
//! and every fault that can occur there. The output is compared with `golden/jobs.txt`.
//!
//! Times are ticks of a millisecond since the start. With `-icount` the machine is exact, so the
//! lines are the same in each run and on each target.
#![no_std]
#![no_main]

use core::{
    cell::{Cell, RefCell},
    time::Duration,
};

use clockjack_firmware::{
    board::{self, TICKS},
    heap, line, out, program, report,
};
use clockjack_sched::{
    Cancellable, DispatcherId, FireContext, HardwareHost, RunnerLoop, ScheduleErrorKind, Scheduler,
    SchedulerConfig,
};
use clockjack_time::{Resolution, TickDriver as _};
use critical_section::Mutex;

program!(run);

const HERE: DispatcherId = DispatcherId::DEFAULT;
/// The maximum number of jobs.
const JOBS: usize = 8;
/// The number of delays that are measured with the board's finest clock, each started in another
/// part of a tick.
const DELAYS: u32 = 16;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The tick interrupt cancels this job.
static DOOMED: Mutex<RefCell<Option<Cancellable>>> = Mutex::new(RefCell::new(None));
/// When the last delay was over, in nanoseconds; zero until then.
static OVER: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

fn on_tick(tick: u64) {
    if tick == 35 {
        critical_section::with(|cs| {
            let was_first = DOOMED.borrow_ref(cs).as_ref().is_some_and(Cancellable::cancel);
            assert!(was_first, "nobody else cancels it");
        });
    }
}

fn run() {
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        quota: JOBS,
        capacity: JOBS,
        overflow_capacity: 2,
        ..SchedulerConfig::SMALL
    };
    let host = HardwareHost::new(&TICKS, &TICKS, board::waker())
        .with_interrupts(board::is_interrupt)
        .with_fine_clock(board::now_fine);
    let scheduler = Scheduler::new(config, host).expect("one shard");
    let mut runner = RunnerLoop::new(scheduler.clone(), &TICKS, board::waker()).expect("alone");

    let beats = begin(&scheduler);
    fill(&scheduler);
    runner.poll();
    out::fact("heap-sealed", heap::used() as u64);
    let made = heap::books().allocations;
    // From here on any allocation stops the program.
    heap::shut(true);

    board::on_tick(on_tick);
    board::start_ticks();
    until(&mut runner, || board::now() >= 60);
    let again = TICKS.register(board::waker()).expect_err("the loop has registered");
    line!("{:>4} {again}", board::now());
    line!("{:>4} a storm: the loop is away for 60 ticks", board::now());
    board::spin(60);
    line!("{:>4} driver: {:?}", board::now(), TICKS.current_status());
    let turn = runner.poll();
    line!("{:>4} made up for: {} of {} ticks", board::now(), turn.catch_up, turn.ticks);
    until(&mut runner, || board::now() >= 150);
    let made = heap::books().allocations - made;
    heap::shut(false);
    beats.iter().for_each(|job| assert!(job.cancel(), "it goes on until it is cancelled"));

    never_early(&mut runner);
    line!("allocations since the start: {made}");
    let metrics = scheduler.metrics();
    assert_eq!((metrics.accepted_total, metrics.cancelled_total), (8 + u64::from(DELAYS), 7));
    let ended = runner.stop().driver.expect("there is a driver");
    line!("the driver stops: {ended:?}");
    let late = scheduler.schedule_once_fn(ms(1), HERE, |_| {}).expect_err("it is closed");
    assert_eq!(late.kind(), ScheduleErrorKind::Closed);
    critical_section::with(|cs| DOOMED.take(cs));
    drop((beats, runner, scheduler));
    report();
    out::fact("heap-left", heap::used() as u64);
}

/// Polls, and sleeps while there is nothing to do.
fn until(runner: &mut RunnerLoop, is_over: impl Fn() -> bool) {
    while !is_over() {
        if !runner.poll().is_more {
            board::park();
        }
    }
}

/// Schedules one job of each kind, and one that an interrupt cancels. Returns the periodic ones.
fn begin(scheduler: &Scheduler) -> [Cancellable; 2] {
    let mut n = 0;
    let rate = move |fire: &FireContext| {
        n += 1;
        line!("{:>4} rate: run {n}, missed {}", board::now(), fire.batch().missed_runs);
    };
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, rate);
    let slow = |_: &FireContext| {
        line!("{:>4} delay: begins", board::now());
        board::spin(3);
    };
    let slow = scheduler.schedule_with_fixed_delay_fn(ms(15), ms(15), HERE, slow);
    let once = scheduler.schedule_once_fn(ms(12), HERE, |_| line!("{:>4} once", board::now()));
    let doomed = |_: &FireContext| line!("{:>4} was cancelled, and runs", board::now());
    let doomed = scheduler.schedule_once_fn(ms(40), HERE, doomed).ok();
    assert!(once.is_ok() && doomed.is_some(), "there is room");
    critical_section::with(|cs| DOOMED.replace(cs, doomed));
    [rate.ok(), slow.ok()].map(|job| job.expect("there is room"))
}

/// Schedules jobs until one is refused, and cancels them.
fn fill(scheduler: &Scheduler) {
    let mut jobs = [const { None::<Cancellable> }; JOBS];
    for (n, place) in jobs.iter_mut().enumerate() {
        match scheduler.schedule_once_fn(Duration::from_secs(1), HERE, |_| {}) {
            Ok(job) => *place = Some(job),
            Err(refused) => {
                line!("{:>4} after {n} more jobs: {refused}", board::now());
                break;
            }
        }
    }
    let cancelled = jobs.iter().flatten().filter(|job| job.cancel()).count();
    line!("{:>4} cancelled: {cancelled}", board::now());
}

/// Checks with the finest clock that no delay is too short, at whichever part of a tick it starts,
/// and that none is longer by more than the rest of a tick and the time of the loop.
fn never_early(runner: &mut RunnerLoop) {
    let mut longest = 0;
    for n in 0..DELAYS {
        let tick = board::now();
        while board::now() == tick {}
        let begins = board::nanos() + u64::from(n) * 1_000_000 / u64::from(DELAYS);
        while board::nanos() < begins {}
        critical_section::with(|cs| OVER.borrow(cs).set(0));
        let begun = board::nanos();
        let over = |_: &FireContext| {
            critical_section::with(|cs| OVER.borrow(cs).set(board::nanos()));
        };
        assert!(runner.scheduler().schedule_once_fn(ms(3), HERE, over).is_ok(), "there is room");
        until(runner, || critical_section::with(|cs| OVER.borrow(cs).get() != 0));
        let took = critical_section::with(|cs| OVER.borrow(cs).get()) - begun;
        assert!(took >= 3_000_000, "early: {took} ns instead of 3 ms");
        longest = took.max(longest);
    }
    line!("{DELAYS} delays of 3 ms: none early, all within 5 ms: {}", longest < 5_000_000);
}
