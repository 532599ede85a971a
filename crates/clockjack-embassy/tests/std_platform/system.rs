//! The behaviour of a system as a task: timers, messages from other threads, fairness, shutdown.

use alloc::rc::Rc;
use core::{cell::RefCell, time::Duration};
use std::sync::mpsc;

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, DispatcherId, Failure, Limits, Next, Props, Signal,
    SystemBuilder,
};
use clockjack_embassy::{EmbassySystem, EmbassyToolbox};
use clockjack_testing::awaits_deadline;
use clockjack_time::{DriverStatus, Resolution};
use embassy_time::{Instant, Timer};

use crate::{
    platform,
    timer_order::{self, Device, Seen},
};

/// A deadline of which nothing comes near.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A small system whose clock starts now.
pub(crate) fn small() -> EmbassySystem {
    with(ActorSystem::builder("t").limits(Limits::SMALL))
}

fn with(builder: SystemBuilder) -> EmbassySystem {
    EmbassyToolbox::new(Resolution::MILLI).system(builder).expect("there is room")
}

/// Delays that each end in another tick, and delays shorter than a tick.
const DELAYS_US: [u64; 12] = [0, 1, 400, 999, 1_000, 1_001, 2_000, 3_500, 7_000, 9, 20_000, 1_500];

struct Sleeper {
    /// When the clock of its system started, or slightly earlier.
    begun: Instant,
    fired: Rc<RefCell<Vec<(u64, u64)>>>,
}

impl Actor for Sleeper {
    type Msg = (u64, Instant);

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        // Wait for the middle of a tick: at its beginning, a coarse reading would not be detected.
        while !(600..900).contains(&(self.begun.elapsed().as_micros() % 1_000)) {}
        for delay_us in DELAYS_US {
            // Read before the arming, so that the measured lateness is an upper bound.
            let armed = (delay_us, Instant::now());
            cx.timers().single(delay_us, Duration::from_micros(delay_us), armed)?;
        }
        Ok(Next::Stay)
    }

    fn receive(
        &mut self,
        _cx: &mut Context<'_, Self>,
        (delay_us, armed): (u64, Instant),
    ) -> Result<Next, Failure> {
        self.fired.borrow_mut().push((delay_us, armed.elapsed().as_micros()));
        Ok(Next::Stay)
    }
}

#[test]
fn no_timer_is_early_by_embassys_clock_and_none_is_missing() {
    platform::run(async |_| {
        // Many repetitions: on a busy machine most timers are late for other reasons.
        for _ in 0..20 {
            let fired = Rc::new(RefCell::new(Vec::new()));
            let begun = Instant::now();
            let mut system = small();
            let seen = Rc::clone(&fired);
            let props = Props::new(move || Sleeper { begun, fired: Rc::clone(&seen) });
            system.spawn("sleeper", props).expect("there is room");
            let run = system.run_until(|| fired.borrow().len() == DELAYS_US.len());
            run.await.expect("the driver is not stopped");
            for (delay_us, after_us) in fired.take() {
                assert!(after_us >= delay_us, "{delay_us} us were over after {after_us} us");
            }
        }
    });
}

/// An actor that counts, and its address.
fn counter(system: &mut EmbassySystem) -> (ActorRef<()>, Rc<RefCell<usize>>) {
    let count = Rc::new(RefCell::new(0));
    let counted = Rc::clone(&count);
    let props = Props::new(move || Counter(Rc::clone(&counted)));
    (system.spawn("counter", props).expect("there is room"), count)
}

struct Counter(Rc<RefCell<usize>>);

impl Actor for Counter {
    type Msg = ();

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        *self.0.borrow_mut() += 1;
        Ok(Next::Stay)
    }
}

#[test]
fn another_task_wakes_a_system_that_sleeps() {
    platform::run(async |spawner| {
        let mut system = small();
        let (actor, count) = counter(&mut system);
        platform::start(spawner, async move {
            for _ in 0..20 {
                Timer::after_micros(300).await;
                actor.tell(()).expect("it is there");
            }
        });
        system.run_until(|| *count.borrow() == 20).await.expect("the driver is not stopped");
    });
}

#[test]
fn another_thread_wakes_a_system_that_sleeps() {
    platform::run(async |_| {
        let mut system = small();
        let (actor, count) = counter(&mut system);
        let (told, heard) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            for () in heard {
                actor.tell(()).expect("it is there");
            }
        });
        // One at a time, so that each message finds the system asleep or about to sleep.
        for n in 1..=1_000 {
            told.send(()).expect("the thread is there");
            system.run_until(|| *count.borrow() == n).await.expect("the driver is not stopped");
        }
        drop(told);
        thread.join().expect("it does not panic");
    });
}

#[test]
fn a_timer_that_another_task_arms_is_heard_by_a_system_that_sleeps_for_longer() {
    platform::run(async |spawner| {
        let mut system = small();
        let (actor, count) = counter(&mut system);
        let jobs = system.system().clone();
        let far = Duration::from_secs(3_600);
        jobs.scheduler().schedule_once(far, &actor, ()).expect("there is room");
        platform::start(spawner, async move {
            Timer::after_millis(3).await;
            let soon = Duration::from_millis(2);
            jobs.scheduler().schedule_once(soon, &actor, ()).expect("there is room");
        });
        system.run_until(|| *count.borrow() == 1).await.expect("the driver is not stopped");
    });
}

#[test]
fn an_actor_that_is_never_idle_leaves_other_tasks_their_turns() {
    platform::run(async |spawner| {
        let mut system = small();
        let busy = Props::from_fn(|cx, n: u64| {
            cx.self_ref().tell(n + 1)?;
            Ok(Next::Stay)
        });
        let busy = system.spawn("busy", busy).expect("there is room");
        busy.tell(0).expect("it is there");
        let (told, heard) = mpsc::channel();
        platform::start(spawner, async move {
            for _ in 0..10 {
                Timer::after_millis(1).await;
            }
            told.send(()).expect("the test waits");
        });
        let run = system.run_until(|| heard.try_recv().is_ok());
        run.await.expect("the driver is not stopped");
    });
}

#[test]
fn a_future_is_driven_to_its_output_beside_the_actors() {
    platform::run(async |_| {
        let mut system = small();
        let answer = Props::from_fn(|_cx, to: clockjack_actor::ReplyTo<u32>| {
            to.reply(42);
            Ok(Next::Stay)
        });
        let actor = system.spawn("answer", answer).expect("there is room");
        let ask = actor.ask(|to| to, Duration::from_secs(30));
        let answer = system.drive(ask).await.expect("the driver is not stopped");
        assert_eq!(answer.expect("it answers"), 42);
        // Embassy's own futures run as well, while the system has nothing to do.
        system.drive(Timer::after_millis(2)).await.expect("the driver is not stopped");
    });
}

/// Reports that it has stopped.
struct Parent {
    name: &'static str,
    children: usize,
    told: mpsc::Sender<&'static str>,
}

impl Actor for Parent {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        for name in ["a", "b", "c"].into_iter().take(self.children) {
            let told = self.told.clone();
            let child = move || Parent { name, children: 0, told: told.clone() };
            cx.spawn_child(name, child)?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }

    fn signal(&mut self, _cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if let Signal::PostStop = signal {
            self.told.send(self.name)?;
        }
        Ok(Next::Stay)
    }
}

#[test]
fn a_shutdown_stops_children_before_their_parent_the_newest_first() {
    platform::run(async |_| {
        let (told, heard) = mpsc::channel();
        let mut system = small();
        let parent = move || Parent { name: "parent", children: 3, told: told.clone() };
        system.spawn("parent", parent).expect("there is room");
        let report = awaits_deadline(LONG, system.shutdown(LONG)).await;
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["c", "b", "a", "parent"]);
    });
}

#[test]
fn a_shutdown_that_is_held_up_ends_at_its_deadline_and_says_who_is_left() {
    platform::run(async |_| {
        let mut system = small();
        let (_actor, _count) = counter(&mut system);
        let phase = clockjack_actor::shutdown::Phase::BEFORE_SERVICE_UNBIND;
        let never = core::future::pending::<Result<(), Failure>>();
        system.system().on_shutdown(phase, "never", never).expect("there is room");
        let begun = Instant::now();
        let deadline = Duration::from_millis(20);
        let report = awaits_deadline(deadline, system.shutdown(deadline)).await;
        assert!(begun.elapsed().as_millis() >= 20, "it gave up too early");
        assert!(!report.is_clean(), "{report:?}");
    });
}

#[test]
fn a_system_that_terminates_by_itself_ends_its_run() {
    platform::run(async |spawner| {
        let mut system = small();
        let other = system.system().clone();
        platform::start(spawner, async move {
            Timer::after_millis(2).await;
            drop(other.shutdown());
        });
        let report = system.run().await.expect("the driver is not stopped");
        assert!(report.is_clean(), "{report:?}");
        // The system has shut down and stopped the driver, so a second run returns immediately.
        system.run().await.expect("the system has terminated");
        assert_eq!(system.driver().current_status(), DriverStatus::Suspended);
    });
}

/// A task that keeps Embassy's thread makes the system late. That is jitter of the driver; and
/// ticks that are handled in time are no backpressure.
#[test]
fn a_system_that_another_task_delays_reports_jitter_and_takes_its_ticks() {
    platform::run(async |spawner| {
        let mut system = small();
        let jobs = system.system().scheduler().jobs().clone();
        let (run, ran) = mpsc::channel();
        let at = |delay_ms, name| {
            let (run, any) = (run.clone(), DispatcherId::DEFAULT);
            let job = move |_: &_| run.send(name);
            let job = jobs.schedule_once_fn(Duration::from_millis(delay_ms), any, job);
            job.map(drop).map_err(|refused| refused.kind()).expect("there is room");
        };
        at(200, "late");
        platform::start(spawner, async {
            let begun = Instant::now();
            while begun.elapsed().as_millis() < 400 {}
        });
        let is_run = |name| ran.try_recv() == Ok(name);
        system.run_until(|| is_run("late")).await.expect("the driver is not stopped");
        let jitter = jobs.diagnostics().driver_jitter();
        assert!(jitter >= Duration::from_millis(100), "{jitter:?}");
        assert_eq!(system.driver().current_status(), DriverStatus::Ok);
        for _ in 0..50 {
            at(2, "in time");
            system.run_until(|| is_run("in time")).await.expect("the driver is not stopped");
            assert_eq!(system.driver().current_status(), DriverStatus::Ok);
        }
    });
}

#[test]
fn neither_a_timer_nor_a_receive_timeout_overtakes_a_message() {
    platform::run(async |_| {
        for _ in 0..10 {
            // With room for the messages that wait.
            let mut system = with(ActorSystem::builder("t"));
            let seen = Seen::default();
            let device = system.spawn("device", Device::props(&seen)).expect("there is room");
            device.tell(timer_order::Msg::Begin).expect("there is room");
            let stopped = system.system().when_stopped(&device);
            system.drive(stopped).await.expect("the driver is not stopped");
            timer_order::check(&seen);
        }
    });
}
