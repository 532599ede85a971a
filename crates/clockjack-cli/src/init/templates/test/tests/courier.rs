//! Every kind of test for an actor.

use clockjack::{
    prelude::*,
    testkit::{ActorTestKit, Effect, ManualTime, TestProbe, TimerMode, for_each_seed},
};

use {{crate}}::{Courier, Msg, Outcome, retry_delay};

/// A courier in virtual time, with its carrier and its customer.
struct Fixture<'t> {
    time: &'t ManualTime,
    carrier: TestProbe<u64>,
    customer: TestProbe<Outcome>,
    courier: ActorRef<Msg>,
}

impl<'t> Fixture<'t> {
    fn new(time: &'t ManualTime) -> Self {
        let (carrier, customer) = (time.probe(), time.probe());
        let (to, back) = (carrier.actor_ref(), customer.actor_ref());
        let courier = Props::new(move || Courier::new(to.clone(), back.clone()));
        let courier = time.spawn("courier", courier.supervise(Strategy::restart()));
        Self {
            time,
            carrier,
            customer,
            courier,
        }
    }

    fn pending(&self) -> usize {
        let answer = self.courier.ask(Msg::Pending, Duration::from_secs(1));
        self.time.block_on(answer).expect("a courier answers")
    }
}

#[test]
fn by_hand() {
    let time = ManualTime::start();
    let (carrier, customer) = (time.probe::<u64>(), time.probe::<Outcome>());
    let (to, back) = (carrier.actor_ref(), customer.actor_ref());
    let mut kit = ActorTestKit::new(move || Courier::new(to.clone(), back.clone()));
    kit.run(Msg::Send(7));
    carrier.expect_eq(7);
    kit.expect_effect(&Effect::TimerScheduled {
        key: ("timeout", 7).into(),
        delay: retry_delay(1),
        mode: TimerMode::Single,
        overriding: false,
    });
    // The timer fires only when the test says so.
    let timer = kit.timer(("timeout", 7)).expect("the timer was scheduled");
    assert!(kit.send(timer));
    carrier.expect_eq(7);
    assert!(kit.try_run(Msg::Send(0)).is_err());
}

#[test]
fn in_virtual_time() -> Result<(), Failure> {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time);
    fixture.courier.tell(Msg::Send(1))?;
    fixture.carrier.expect_eq(1);
    time.advance(retry_delay(1) - Duration::from_millis(1));
    fixture.carrier.expect_none();
    time.advance(Duration::from_millis(1)); // neither early nor late
    fixture.carrier.expect_eq(1);
    time.advance(retry_delay(2));
    fixture.carrier.expect_eq(1);
    fixture.customer.expect_none();
    time.advance(retry_delay(3));
    fixture.customer.expect_eq(Outcome::Lost(1));
    fixture.courier.tell(Msg::Arrived(1))?; // too late
    fixture.customer.expect_none();
    time.expect_no_failures();
    Ok(())
}

#[test]
fn in_any_order() {
    for_each_seed(0..50, |time| {
        let fixture = Fixture::new(time);
        let send = |msg| fixture.courier.tell(msg).expect("there is room");
        for parcel in 1..=10 {
            send(Msg::Send(parcel));
        }
        for parcel in (1..=10).filter(|parcel| parcel % 3 != 0) {
            send(Msg::Arrived(parcel));
            send(Msg::Arrived(parcel)); // a carrier may confirm twice
        }
        time.advance(Duration::from_secs(60));
        let mut outcomes = fixture.customer.receive_n(10);
        fixture.customer.expect_none();
        outcomes.sort_by_key(|outcome| match outcome {
            Outcome::Delivered(parcel) | Outcome::Lost(parcel) => *parcel,
        });
        let expected = (1..=10).map(|parcel| match parcel % 3 {
            0 => Outcome::Lost(parcel),
            _ => Outcome::Delivered(parcel),
        });
        assert_eq!(outcomes, expected.collect::<Vec<_>>());
        assert_eq!(fixture.pending(), 0);
    });
}

#[test]
fn after_a_failure() -> Result<(), Failure> {
    let time = ManualTime::start();
    let fixture = Fixture::new(&time);
    fixture.courier.tell(Msg::Send(1))?;
    fixture.courier.tell(Msg::Send(0))?; // fails and restarts the courier
    fixture.courier.tell(Msg::Send(2))?; // waits in the mailbox during the restart
    assert_eq!(fixture.carrier.receive_n(2), [1, 2]);
    assert_eq!(fixture.pending(), 1, "a restart drops the first parcel");
    assert_eq!(time.take_failures().len(), 1);
    Ok(())
}

#[test]
fn on_threads() -> Result<(), Failure> {
    let rt = Runtime::new("couriers")?;
    let (carrier, customer) = (rt.system().dead_letters(), rt.system().dead_letters());
    let courier = rt.spawn("courier", move || {
        Courier::new(carrier.clone(), customer.clone())
    })?;
    let answer = courier.ask(Msg::Pending, Duration::from_secs(10));
    assert_eq!(rt.block_on(answer)?, 0);
    assert!(rt.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
