//! The size of each part: the same small program with more and more of Clockjack, by features.
//!
//! | features | the program |
//! |---|---|
//! | none | start-up code, the tick interrupt, a heap, lines to the host |
//! | `executor` | and a future that sleeps, on the executor |
//! | `scheduler` | and a job at a fixed rate, on the scheduler |
//! | `actors` | and an actor with a timer, supervised, on both |
#![no_std]
#![no_main]

use clockjack_firmware::{board, out, program, report};

program!(run);

/// How long each program runs, in ticks.
const UNTIL: u64 = 20;

fn run() {
    board::start_ticks();
    part();
    board::spin(1);
    report();
    out::fact("ticks", board::now());
}

#[cfg(not(any(feature = "executor", feature = "scheduler")))]
fn part() {
    while board::now() < UNTIL {
        board::park();
    }
}

#[cfg(all(feature = "executor", not(feature = "actors")))]
fn part() {
    use core::time::Duration;

    use clockjack_exec::{Commands, Limits, LocalExecutor};

    let limits = Limits::SMALL.processes(8).timers(16);
    let mut executor = LocalExecutor::new(board::Board, limits, Commands::new()).expect("it fits");
    let sleeper = executor.spawn_future(async {
        let mut naps = 0;
        while clockjack_exec::sleep(Duration::from_millis(4)).await.is_ok() && naps < 3 {
            naps += 1;
        }
        naps
    });
    let naps = executor.block_on(sleeper);
    assert_eq!(naps.ok(), Some(3));
    assert!(board::now() < UNTIL + 5);
}

#[cfg(all(feature = "scheduler", not(feature = "executor")))]
fn part() {
    use core::{cell::Cell, time::Duration};

    use clockjack_sched::{DispatcherId, RunnerLoop, SchedulerConfig};
    use critical_section::Mutex;

    static RUNS: Mutex<Cell<u32>> = Mutex::new(Cell::new(0));
    let config =
        SchedulerConfig { quota: 16, capacity: 16, overflow_capacity: 4, ..SchedulerConfig::SMALL };
    let mut runner = RunnerLoop::start(config, &board::TICKS, &board::TICKS, board::waker())
        .expect("nobody else has the driver");
    let period = Duration::from_millis(10);
    let run = |_: &_| {
        critical_section::with(|cs| RUNS.borrow(cs).set(RUNS.borrow(cs).get() + 1));
    };
    let job =
        runner.scheduler().schedule_at_fixed_rate_fn(period, period, DispatcherId::DEFAULT, run);
    assert!(job.is_ok());
    while board::now() < UNTIL + 5 {
        if !runner.poll().is_more {
            board::park();
        }
    }
    assert_eq!(critical_section::with(|cs| RUNS.borrow(cs).get()), 2);
}

#[cfg(feature = "actors")]
fn part() {
    use core::time::Duration;

    use clockjack_actor::{
        Actor, ActorSystem, Context, Failure, Limits, Next, Props, RootContext, Strategy,
    };
    use clockjack_sched::SchedulerConfig;

    struct Blinker(u32);

    impl Actor for Blinker {
        type Msg = ();

        fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
            cx.timers().fixed_rate("blink", Duration::from_millis(5), || ())?;
            Ok(Next::Stay)
        }

        fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
            self.0 += 1;
            Ok(if self.0 < 3 { Next::Stay } else { Next::Stop })
        }
    }

    let config =
        SchedulerConfig { quota: 16, capacity: 16, overflow_capacity: 4, ..SchedulerConfig::SMALL };
    let builder = ActorSystem::builder("size")
        .limits(Limits::SMALL.processes(8).timers(16))
        .scheduler(config);
    let mut root = RootContext::new(board::Board, builder).expect("it fits");
    let blinker = Props::new(|| Blinker(0)).supervise(Strategy::restart());
    let blinker = root.spawn("blinker", blinker).expect("it fits");
    root.seal();
    root.blocking_dispatch_loop(|| blinker.is_stopped());
    assert!(board::now() < UNTIL);
}
