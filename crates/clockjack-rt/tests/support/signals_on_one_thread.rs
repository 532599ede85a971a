//! Signals, or the console events of Windows, stop a system whose one thread is that of the
//! program: a main loop that waits for a [`SignalListener`] and shuts the system down. In processes
//! of their own.

use core::time::Duration;

use clockjack_rt::{
    OsClock, Parker,
    actor::{
        Actor, ActorSystem, Context, Failure, Next, RootContext, Signal, Toolbox, shutdown::Phase,
    },
    signals::{SignalConfig, SignalListener},
};
use clockjack_testing::keeps_deadline;
use clockjack_time::{ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::child::{self, Process, SIGINT, SIGTERM};

pub(crate) const TEST: &str = "signals_on_one_thread::what_the_child_does";

/// The services of this thread. The systems of these tests have no jobs, so nothing advances the
/// driver.
struct OneThread {
    clock: OsClock,
    driver: ManualDriver,
    parker: Parker,
}

impl Toolbox for OneThread {
    fn clock(&self) -> &dyn MonotonicClock {
        &self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }

    fn park(&self, until: Option<Tick>) {
        self.parker.park(until.map(|tick| self.clock.instant_of(tick)));
    }

    fn unpark(&self) {
        self.parker.unpark();
    }
}

/// Prints its signals; a slow one adds a task to the shutdown that never completes.
struct Talker {
    is_slow: bool,
}

impl Actor for Talker {
    type Msg = ();

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        if self.is_slow {
            cx.system().on_shutdown(Phase::BEFORE_SERVICE_UNBIND, "never ends", async {
                println!("drains");
                core::future::pending().await
            })?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    #[expect(clippy::print_stdout, reason = "its parent reads it")]
    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        println!("{signal:?}");
        Ok(Next::Stay)
    }
}

#[test]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "its parent reads it")]
fn what_the_child_does() {
    let Some(role) = child::role() else { return };
    let clock = OsClock::new(Resolution::MILLI);
    let driver = ManualDriver::new(Resolution::MILLI);
    let host = OneThread { clock, driver, parker: Parker::new() };
    let mut root = RootContext::new(host, ActorSystem::builder("t")).unwrap();
    let is_slow = role != "polite";
    root.spawn("talker", move || Talker { is_slow }).unwrap();
    let mut signals = SignalListener::new(SignalConfig::DEFAULT);
    signals.warnings().iter().for_each(|warning| eprintln!("{warning}"));
    println!("ready");
    let event = root.block_on(signals.next());
    let timeout = Duration::from_millis(if role == "short" { 20 } else { 3_600_000 });
    let report = keeps_deadline(timeout, || root.shutdown(timeout));
    let is_left = report.stragglers.iter().any(|path| path.name() == "talker");
    println!("ended: {event:?}, is left: {is_left}");
}

fn start(role: &str) -> Process {
    let mut child = Process::start(TEST, role);
    child.read_until("ready");
    child.wait_for_handlers(&[SIGINT, SIGTERM]);
    child
}

#[test]
fn a_signal_terminates_the_system_in_order() {
    for (signal, name) in [(SIGINT, "Interrupt"), (SIGTERM, "Terminate")] {
        let mut child = start("polite");
        child.send(signal);
        child.read_until("PostStop");
        child.read_until(&format!("ended: Stop({name}), is left: false"));
        assert_eq!(child.wait_for_success(), "");
    }
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    for (first, second, code) in crate::PAIRS {
        let mut child = start("slow");
        child.send(first);
        child.read_until("drains");
        child.send(second);
        // A program that a signal ends has no exit code.
        assert_eq!(child.wait().0.code(), Some(code));
    }
}

#[test]
fn a_drain_that_takes_too_long_is_reported_and_the_program_goes_on() {
    let mut child = start("short");
    child.send(SIGTERM);
    child.read_until("drains");
    child.read_until("ended: Stop(Terminate), is left: true");
    assert_eq!(child.wait_for_success(), "");
}
