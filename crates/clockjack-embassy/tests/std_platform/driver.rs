//! The tick driver without a system.

use alloc::{sync::Arc, task::Wake};
use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Poll, Waker},
};

use clockjack_embassy::{AlarmDriver, EmbassyToolbox};
use clockjack_time::{DriverStatus, MonotonicClock as _, Resolution, Tick, TickDriver as _};
use embassy_time::{Instant, Timer};

use crate::platform;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn leaked() -> &'static AlarmDriver {
    Box::leak(Box::new(AlarmDriver::new(Resolution::MILLI)))
}

#[test]
fn who_is_registered_is_woken_by_the_alarm_and_never_before_its_tick() {
    platform::run(async |spawner| {
        let start = Instant::now();
        let driver = leaked();
        platform::start(spawner, driver.serve());
        let ticks = core::future::poll_fn(|cx| {
            // Registered again each time: a registration is woken by the first tick only.
            driver.unregister();
            match driver.poll_tick() {
                Some(token) if token.up_to >= Tick::new(5) => Poll::Ready(token.up_to),
                _ => {
                    driver.register(cx.waker().clone()).expect("there is no other");
                    Poll::Pending
                }
            }
        });
        let up_to = ticks.await.get();
        assert!(start.elapsed().as_millis() >= up_to, "{up_to} ticks have come early");
        assert!(up_to <= driver.now().ticks);
    });
}

#[test]
fn a_driver_that_nobody_is_registered_with_is_served_without_an_alarm() {
    platform::run(async |spawner| {
        let driver = leaked();
        platform::start(spawner, driver.serve());
        Timer::after_millis(5).await;
        // No thread has read the clock, so no tick has arrived, and a sleep is not backpressure.
        assert_eq!(driver.current_status(), DriverStatus::Ok);
        let count = Arc::new(Count::default());
        driver.register(Waker::from(Arc::clone(&count))).expect("there is no other");
        while count.0.load(SeqCst) == 0 {
            Timer::after_millis(1).await;
        }
        assert!(driver.poll_tick().is_some_and(|token| token.up_to >= Tick::new(5)));
    });
}

#[test]
fn a_second_registration_is_refused_until_the_first_is_taken_back() {
    let driver = AlarmDriver::new(Resolution::MILLI);
    driver.register(Waker::noop().clone()).expect("there is no other");
    let refused = driver.register(Waker::noop().clone()).expect_err("there is one");
    assert!(refused.is_already_registered(), "{refused}");
    driver.unregister();
    driver.register(Waker::noop().clone()).expect("it was taken back");
}

#[test]
fn a_stop_ends_the_service_accounts_for_every_tick_and_refuses_from_then_on() {
    platform::run(async |spawner| {
        let driver = leaked();
        let (told, heard) = std::sync::mpsc::channel();
        platform::start(spawner, async move {
            driver.serve().await;
            told.send(()).expect("the test waits");
        });
        let mut taken = 0;
        while taken < 3 {
            Timer::after_millis(1).await;
            let token = driver.poll_tick();
            taken += token.map_or(0, |token| u64::from(token.catch_up) + 1);
        }
        let DriverStatus::Flushed { drained, .. } = driver.stop_and_flush() else {
            panic!("a stop says that it flushed")
        };
        assert!(taken + drained <= driver.now().ticks, "a tick came before its time");
        assert_eq!(driver.current_status(), DriverStatus::Suspended);
        assert_eq!(driver.poll_tick(), None);
        let refused = driver.register(Waker::noop().clone()).expect_err("it was stopped");
        assert!(refused.is_stopped(), "{refused}");
        while heard.try_recv().is_err() {
            Timer::after_millis(1).await;
        }
    });
}

#[test]
fn every_tick_arrives_once_whoever_looks() {
    const LOOKS: usize = 50_000;
    // The resolution is so fine that every reading finds new ticks.
    let driver = AlarmDriver::new(Resolution::from_nanos(1).expect("not zero"));
    let looks = || {
        let tokens = (0..LOOKS).filter_map(|_| driver.poll_tick());
        let checked = tokens.map(|token| {
            let now = driver.now().tick();
            assert!(token.up_to <= now, "{} came at {now}", token.up_to);
            u64::from(token.catch_up) + 1
        });
        checked.sum::<u64>()
    };
    let taken = std::thread::scope(|scope| {
        let others = [scope.spawn(looks), scope.spawn(looks)];
        others.map(|other| other.join().expect("no look panics")).into_iter().sum::<u64>()
    });
    let up_to = driver.poll_tick().map_or((0, 0), |t| (t.up_to.get(), u64::from(t.catch_up) + 1));
    assert_eq!(taken + up_to.1, up_to.0, "what was taken is what has arrived");
    assert!(up_to.0 <= driver.now().ticks, "a tick came before its time");
}

#[test]
fn a_root_by_hand_runs_on_a_toolbox_that_somebody_serves() {
    use clockjack_actor::{ActorSystem, Next, Props, RootContext};

    platform::run(async |spawner| {
        let toolbox = EmbassyToolbox::new(Resolution::MILLI);
        let served = toolbox.clone();
        platform::start(spawner, async move { served.serve().await });
        let mut root = RootContext::new(toolbox, ActorSystem::builder("t")).expect("it starts");
        let count = Arc::new(Count::default());
        let counted = Arc::clone(&count);
        let props = Props::from_fn(move |cx, beats: usize| {
            counted.0.fetch_add(1, SeqCst);
            if beats > 0 {
                cx.timers().single("beat", core::time::Duration::from_millis(2), beats - 1)?;
            }
            Ok(Next::Stay)
        });
        let actor = root.spawn("a", props).expect("there is room");
        actor.tell(5).expect("it is there");
        root.run_until(|| count.0.load(SeqCst) == 6).await;
    });
}
