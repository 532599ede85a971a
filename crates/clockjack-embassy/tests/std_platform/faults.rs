//! Faults are reported, and no accepted message is lost.

use alloc::rc::Rc;
use core::{cell::RefCell, task::Waker, time::Duration};

use clockjack_actor::{Actor, ActorSystem, Context, Failure, Next, Props};
use clockjack_embassy::EmbassyToolbox;
use clockjack_exec::Toolbox as _;
use clockjack_testing::awaits_deadline;
use clockjack_time::{DriverStatus, Resolution};
use embassy_time::{Instant, Timer};

use crate::{
    platform,
    system::{LONG, small},
};

#[test]
fn a_stopped_driver_ends_the_run_of_a_system_that_sleeps() {
    platform::run(async |spawner| {
        let toolbox = EmbassyToolbox::new(Resolution::MILLI);
        let stopper = toolbox.clone();
        let mut system = toolbox.system(ActorSystem::builder("t")).expect("there is room");
        let heard = Rc::new(RefCell::new(Vec::new()));
        let by = Rc::clone(&heard);
        let props = Props::new(move || Hears(Rc::clone(&by)));
        let actor = system.spawn("hears", props).expect("there is room");
        platform::start(spawner, async move {
            Timer::after_millis(3).await;
            stopper.driver().stop_and_flush();
        });
        let error = system.run().await.expect_err("the driver was stopped");
        assert!(error.is_stopped(), "{error}");
        assert_eq!(system.driver().current_status(), DriverStatus::Suspended);
        // From now on the stop is reported immediately.
        assert!(system.run().await.is_err_and(|error| error.is_stopped()));

        // Messages that were accepted, also after the stop, are handled before the system stops.
        actor.tell_control(7).expect("it is there");
        let report = awaits_deadline(LONG, system.shutdown(LONG)).await;
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(heard.take(), [7]);
    });
}

struct Hears(Rc<RefCell<Vec<u32>>>);

impl Actor for Hears {
    type Msg = u32;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, n: u32) -> Result<Next, Failure> {
        self.0.borrow_mut().push(n);
        Ok(Next::Stay)
    }
}

#[test]
fn a_driver_that_serves_somebody_else_is_a_typed_error_of_the_run() {
    platform::run(async |_| {
        let toolbox = EmbassyToolbox::new(Resolution::MILLI);
        let other = toolbox.clone();
        other.driver().register(Waker::noop().clone()).expect("it is the first");
        let mut system = toolbox.system(ActorSystem::builder("t")).expect("there is room");
        let error = system.run_until(|| false).await.expect_err("there is another");
        assert!(error.is_already_registered(), "{error}");
        // The other registration is refused only as long as this one exists.
        other.driver().unregister();
        system.drive(Timer::after_millis(1)).await.expect("the driver is free");
    });
}

/// Counts its beats.
struct Beats {
    count: Rc<RefCell<u64>>,
    /// Just before and just after its timer was armed.
    armed: Rc<RefCell<Option<[Instant; 2]>>>,
}

impl Actor for Beats {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let before = Instant::now();
        cx.timers().fixed_rate("beat", Duration::from_millis(1), || ())?;
        *self.armed.borrow_mut() = Some([before, Instant::now()]);
        Ok(Next::Stay)
    }

    fn receive(&mut self, _cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        *self.count.borrow_mut() += 1;
        Ok(Next::Stay)
    }
}

#[test]
fn a_storm_of_ticks_that_came_while_a_task_held_the_executor_loses_no_run() {
    platform::run(async |spawner| {
        let (count, armed) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(None)));
        let mut system = small();
        let (counted, at) = (Rc::clone(&count), Rc::clone(&armed));
        let props = Props::new(move || Beats { count: counted.clone(), armed: at.clone() });
        system.spawn("beats", props).expect("there is room");
        // A task that does not yield blocks the executor for a hundred ticks.
        platform::start(spawner, async {
            Timer::after_millis(5).await;
            let until = Instant::now() + embassy_time::Duration::from_millis(100);
            while Instant::now() < until {}
        });
        system.drive(Timer::after_millis(110)).await.expect("the driver is not stopped");
        let [before, after] = armed.take().expect("it was started");
        // All beats that are due by now arrive, except for the tick that a first run may have to
        // wait.
        let due = after.elapsed().as_millis() - 1;
        system.run_until(|| *count.borrow() >= due).await.expect("the driver is not stopped");
        // No beat arrives before it is due.
        let (n, passed) = (*count.borrow(), before.elapsed().as_millis());
        assert!(n <= passed, "{n} beats of a millisecond in {passed} ms");
        assert_eq!(system.driver().current_status(), DriverStatus::Ok);
    });
}
