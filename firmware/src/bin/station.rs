//! A weather station: supervised actors, timers, a failure, an interrupt that sends, and every
//! fault that can occur on a board. The output is compared with `golden/station.txt`.
//!
//! The tree:
//!
//! ```text
//! /user ── station ─┬─ sensor    samples at a fixed rate; its third sample fails: restart
//!                   ├─ log       writes with a fixed delay; a write takes three ticks
//!                   └─ lamp      is stopped by its parent, which watches it
//!       └─ button                receives from the tick interrupt
//! ```
//!
//! Times are ticks of a millisecond since the start. With `-icount` the machine is exact, so the
//! lines are the same in each run and on each target.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::{
    cell::{Cell, RefCell},
    time::Duration,
};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Cancellable, Context, Failure, Limits, Mailbox, Next, Props,
    RootContext, Scope, Signal, StaticError, Strategy,
};
use clockjack_firmware::{
    board::{self, Board, TICKS},
    heap, line,
    out::{self, Out},
    program,
};
use clockjack_sched::{DumpFormat, SchedulerConfig};
use clockjack_time::TickDriver as _;
use critical_section::Mutex;

program!(run);

/// Processes: the three guardians, five actors, and room for the shutdown.
const LIMITS: Limits = Limits::SMALL.processes(16).timers(16);
/// Jobs: three timers, and a few more to reach the limit.
const JOBS: usize = 8;
/// The capacity of the button's mailbox.
const PRESSES: usize = 4;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

static SILENT: StaticError = StaticError::new(7, "sensor silent");

// -------------------------------------------------------------------------------------- actors

/// Prints what an actor does, and when.
fn say<A: Actor>(cx: &Context<'_, A>, what: core::fmt::Arguments<'_>) {
    line!("{:>4} {} {what}", board::now(), cx.path());
}

/// The parent: starts the others, decides about their failures, stops the lamp.
struct Station {
    lamp: Option<ActorRef<()>>,
}

enum ToStation {
    LampOff,
}

impl Actor for Station {
    type Msg = ToStation;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        say(cx, format_args!("started"));
        cx.spawn_child("sensor", || Sensor { samples: 0 })?;
        cx.spawn_child("log", || Log)?;
        let lamp = cx.spawn_child("lamp", || Lamp)?;
        cx.watch(&lamp)?;
        self.lamp = Some(lamp);
        cx.timers().single("lamp", ms(60), ToStation::LampOff)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: ToStation) -> Result<Next, Failure> {
        match (msg, self.lamp.take()) {
            (ToStation::LampOff, Some(lamp)) => {
                say(cx, format_args!("stops the lamp"));
                cx.stop_child(&lamp)?;
            }
            (ToStation::LampOff, None) => {}
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::Terminated(end) => say(cx, format_args!("hears that {} has ended", end.path)),
            Signal::ChildFailed(failure) => say(cx, format_args!("hears of {}", failure.reason)),
            Signal::PostStop => say(cx, format_args!("stopped")),
            _ => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

/// Samples at a fixed rate.
struct Sensor {
    samples: u32,
}

impl Actor for Sensor {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        say(cx, format_args!("started"));
        cx.timers().fixed_rate("sample", ms(10), || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        self.samples += 1;
        let missed = cx.scheduler_batch().map_or(0, |batch| batch.missed_runs);
        say(cx, format_args!("sample {}, missed {missed}", self.samples));
        if self.samples == 3 && !IS_MENDED.replace_by(true) {
            return Err(SILENT.failure());
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::PreRestart => say(cx, format_args!("to be made again")),
            Signal::PostStop => say(cx, format_args!("stopped")),
            _ => return Ok(Next::Unhandled),
        }
        Ok(Next::Stay)
    }
}

/// Writes with a fixed delay, and slowly: the delay starts at the end of a write.
struct Log;

impl Actor for Log {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        cx.timers().fixed_delay("write", ms(15), || ())?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        say(cx, format_args!("writes"));
        board::spin(3);
        Ok(Next::Stay)
    }
}

/// Does nothing until it is stopped.
struct Lamp;

impl Actor for Lamp {
    type Msg = ();

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Unhandled)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            say(cx, format_args!("is dark"));
        }
        Ok(Next::Stay)
    }
}

/// Receives messages from an interrupt.
struct Button;

impl Actor for Button {
    type Msg = u32;

    fn receive(&mut self, cx: &mut Context<'_, Self>, press: u32) -> Result<Next, Failure> {
        say(cx, format_args!("pressed: {press}"));
        HEARD.add(1);
        Ok(Next::Stay)
    }
}

// ------------------------------------------------------------------- shared with the interrupt

/// A number that the interrupt and the program share.
struct Count(Mutex<Cell<u32>>);

impl Count {
    const fn new() -> Self {
        Self(Mutex::new(Cell::new(0)))
    }

    fn add(&self, n: u32) {
        critical_section::with(|cs| self.0.borrow(cs).set(self.0.borrow(cs).get() + n));
    }

    fn get(&self) -> u32 {
        critical_section::with(|cs| self.0.borrow(cs).get())
    }
}

struct Flag(Mutex<Cell<bool>>);

impl Flag {
    fn replace_by(&self, value: bool) -> bool {
        critical_section::with(|cs| self.0.borrow(cs).replace(value))
    }
}

static BUTTON: Mutex<RefCell<Option<ActorRef<u32>>>> = Mutex::new(RefCell::new(None));
static ACCEPTED: Count = Count::new();
static REFUSED: Count = Count::new();
static HEARD: Count = Count::new();
static IS_MENDED: Flag = Flag(Mutex::new(Cell::new(false)));

/// In the interrupt of each tick: one press at tick 25, more presses than there is room for at tick
/// 45.
fn on_tick(tick: u64) {
    let presses = match tick {
        25 => 1,
        45 => 6,
        _ => return,
    };
    critical_section::with(|cs| {
        let button = BUTTON.borrow_ref(cs);
        let Some(button) = button.as_ref() else { return };
        for press in 1..=presses {
            match button.tell(press) {
                Ok(()) => ACCEPTED.add(1),
                // The refused message is in the error.
                Err(refused) if refused.is_full() => {
                    REFUSED.add(u32::from(refused.into_inner() == press));
                }
                Err(_) => {}
            }
        }
    });
}

// ------------------------------------------------------------------------------------- program

fn run() {
    let config = SchedulerConfig {
        quota: JOBS,
        capacity: JOBS,
        overflow_capacity: 2,
        ..SchedulerConfig::SMALL
    };
    let builder = ActorSystem::builder("station").limits(LIMITS).scheduler(config);
    let mut root = RootContext::new(Board, builder).expect("it fits");
    let system = root.system().clone();

    let button = Props::new(|| Button).mailbox(Mailbox::bounded(PRESSES));
    let button = root.spawn("button", button).expect("it fits");
    critical_section::with(|cs| BUTTON.replace(cs, Some(button)));
    let restart = Strategy::restart().limit(3, Duration::from_secs(1));
    let station =
        Props::new(|| Station { lamp: None }).supervise_children(Scope::OneForOne, restart);
    root.spawn("station", station).expect("it fits");
    root.run_until_idle();
    fill_with_jobs(&system);
    root.seal();
    root.run_until_idle();
    out::fact("heap-sealed", heap::used() as u64);
    let made = heap::books().allocations;
    // From here on any allocation stops the program.
    heap::shut(true);

    board::on_tick(on_tick);
    board::start_ticks();
    let until = |tick| move || board::now() >= tick;
    board::block_on(root.run_until(until(72)));
    line!("{:>4} allocations since the start: {}", board::now(), heap::books().allocations - made);
    line!(
        "{:>4} presses: {} accepted, {} refused, {} heard",
        board::now(),
        ACCEPTED.get(),
        REFUSED.get(),
        HEARD.get()
    );

    refusals(&mut root);

    line!("{:>4} a storm: the loop is away for 60 ticks", board::now());
    board::spin(60);
    line!("{:>4} driver: {:?}", board::now(), TICKS.current_status());
    board::block_on(root.run_until(until(145)));
    line!("{:>4} driver: {:?}", board::now(), TICKS.current_status());

    // Some ticks must be pending when the driver stops.
    board::spin(3);
    line!("{:>4} the driver stops: {:?}", board::now(), TICKS.stop_and_flush());
    board::block_on(root.run_until(until(165)));
    line!("{:>4} driver: {:?}", board::now(), TICKS.current_status());
    let again = TICKS.register(board::waker()).expect_err("it was stopped");
    line!("{:>4} {again}", board::now());
    line!("{:>4} allocations since the start: {}", board::now(), heap::books().allocations - made);

    heap::shut(false);
    show(&system);
    critical_section::with(|cs| BUTTON.take(cs));
    drop(system);
    // The duration of a dump depends on the processor; the shutdown starts at the same tick on all
    // of them.
    board::spin(183 - board::now());
    let report = root.shutdown(ms(100));
    line!("{:>4} the end is clean: {}", board::now(), report.is_clean());
    drop(report);
    clockjack_firmware::report();
    out::fact("heap-left", heap::used() as u64);
    out::fact("allocations", heap::books().allocations as u64);
}

/// Requests without room are refused, and the error contains the value.
fn refusals(root: &mut RootContext) {
    let now = board::now();
    let again = TICKS.register(board::waker()).expect_err("the loop has registered");
    line!("{now:>4} {again}");
    let late = root.spawn("late", || Lamp).expect_err("the system is sealed");
    line!("{now:>4} {late}");
    let mut bytes: Vec<u8> = Vec::new();
    let empty = bytes.try_reserve(1).expect_err("the heap is shut");
    line!("{now:>4} {empty}");
}

/// Schedules jobs until one is refused, and cancels them. This must precede the sealing of the
/// system, because the message of such a job is allocated.
fn fill_with_jobs(system: &ActorSystem) {
    let button = critical_section::with(|cs| BUTTON.borrow_ref(cs).clone()).expect("it is there");
    let mut jobs = [const { None::<Cancellable> }; JOBS];
    for (n, place) in (0..).zip(&mut jobs) {
        let job = system.scheduler().schedule_once(Duration::from_secs(1), &button, n);
        match job {
            Ok(job) => *place = Some(job),
            // The error contains the message.
            Err(refused) => {
                line!("{:>4} after {n} more jobs: {refused}", board::now());
                assert_eq!(refused.into_inner(), n);
                break;
            }
        }
    }
    let cancelled = jobs.iter().flatten().filter(|job| job.cancel()).count();
    line!("{:>4} cancelled: {cancelled}", board::now());
}

/// Prints the tree, the metrics and the jobs.
fn show(system: &ActorSystem) {
    line!("tree:");
    for path in system.tree() {
        line!("  {path}");
    }
    let metrics = system.metrics();
    let numbers = [
        ("actors", metrics.live),
        ("started", metrics.started),
        ("restarts", metrics.restarts),
        ("failures", metrics.failures),
        ("dead letters", metrics.dead_letters_total()),
    ];
    line!("numbers:");
    for (name, number) in numbers {
        line!("{name:12}  {number}");
    }
    line!("jobs:");
    system.scheduler().jobs().dump(DumpFormat::Text, &mut Out).expect("lines can be written");
}
