//! Each kind of test that there is for an actor.

use clockjack::{
    prelude::*,
    testkit::{ActorTestKit, Effect, ManualTime, TestProbe, TimerMode, for_each_seed},
};

use {{crate}}::{Courier, Msg, Outcome, patience};

/// A courier in virtual time, its carrier and its office.
struct Scene<'t> {
    time: &'t ManualTime,
    carrier: TestProbe<u64>,
    office: TestProbe<Outcome>,
    courier: ActorRef<Msg>,
}

impl<'t> Scene<'t> {
    fn new(time: &'t ManualTime) -> Self {
        let (carrier, office) = (time.probe(), time.probe());
        let (to, back) = (carrier.actor_ref(), office.actor_ref());
        let courier = Props::new(move || Courier::new(to.clone(), back.clone()));
        let courier = time.spawn("courier", courier.supervise(Strategy::restart()));
        Self {
            time,
            carrier,
            office,
            courier,
        }
    }

    fn under_way(&self) -> usize {
        let asked = self.courier.ask(Msg::UnderWay, Duration::from_secs(1));
        self.time.block_on(asked).expect("a courier answers")
    }
}

#[test]
fn by_hand() {
    let time = ManualTime::start();
    let (carrier, office) = (time.probe::<u64>(), time.probe::<Outcome>());
    let (to, back) = (carrier.actor_ref(), office.actor_ref());
    let mut kit = ActorTestKit::new(move || Courier::new(to.clone(), back.clone()));
    kit.run(Msg::Send(7));
    carrier.expect_eq(7);
    kit.expect_effect(&Effect::TimerScheduled {
        key: ("news", 7).into(),
        delay: patience(1),
        mode: TimerMode::Single,
        overriding: false,
    });
    // The timer fires when the test says so, and not before.
    let timer = kit.timer(("news", 7)).expect("it was set");
    assert!(kit.send(timer));
    carrier.expect_eq(7);
    assert!(kit.try_run(Msg::Send(0)).is_err());
}

#[test]
fn in_virtual_time() -> Result<(), Failure> {
    let time = ManualTime::start();
    let scene = Scene::new(&time);
    scene.courier.tell(Msg::Send(1))?;
    scene.carrier.expect_eq(1);
    time.advance(patience(1) - Duration::from_millis(1));
    scene.carrier.expect_none();
    time.advance(Duration::from_millis(1)); // not a millisecond early, and none late
    scene.carrier.expect_eq(1);
    time.advance(patience(2));
    scene.carrier.expect_eq(1);
    scene.office.expect_none();
    time.advance(patience(3));
    scene.office.expect_eq(Outcome::Lost(1));
    scene.courier.tell(Msg::Arrived(1))?; // too late
    scene.office.expect_none();
    time.expect_no_failures();
    Ok(())
}

#[test]
fn in_any_order() {
    for_each_seed(0..50, |time| {
        let scene = Scene::new(time);
        let send = |msg| scene.courier.tell(msg).expect("there is room");
        for parcel in 1..=10 {
            send(Msg::Send(parcel));
        }
        for parcel in (1..=10).filter(|parcel| parcel % 3 != 0) {
            send(Msg::Arrived(parcel));
            send(Msg::Arrived(parcel)); // a carrier may say it twice
        }
        time.advance(Duration::from_secs(60));
        let mut told = scene.office.receive_n(10);
        scene.office.expect_none();
        told.sort_by_key(|outcome| match outcome {
            Outcome::Delivered(parcel) | Outcome::Lost(parcel) => *parcel,
        });
        let expected = (1..=10).map(|parcel| match parcel % 3 {
            0 => Outcome::Lost(parcel),
            _ => Outcome::Delivered(parcel),
        });
        assert_eq!(told, expected.collect::<Vec<_>>());
        assert_eq!(scene.under_way(), 0);
    });
}

#[test]
fn after_a_failure() -> Result<(), Failure> {
    let time = ManualTime::start();
    let scene = Scene::new(&time);
    scene.courier.tell(Msg::Send(1))?;
    scene.courier.tell(Msg::Send(0))?; // fails, and the courier is made anew
    scene.courier.tell(Msg::Send(2))?; // waits in the mailbox meanwhile
    assert_eq!(scene.carrier.receive_n(2), [1, 2]);
    assert_eq!(scene.under_way(), 1, "the new one knows of the second only");
    assert_eq!(time.take_failures().len(), 1);
    Ok(())
}

#[test]
fn on_threads() -> Result<(), Failure> {
    let rt = Runtime::new("couriers")?;
    let (nowhere, nobody) = (rt.system().dead_letters(), rt.system().dead_letters());
    let courier = rt.spawn("courier", move || {
        Courier::new(nowhere.clone(), nobody.clone())
    })?;
    let asked = courier.ask(Msg::UnderWay, Duration::from_secs(10));
    assert_eq!(rt.block_on(asked)?, 0);
    assert!(rt.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
