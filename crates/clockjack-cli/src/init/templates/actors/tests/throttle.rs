//! The throttle in virtual time: nothing here waits, and each run takes the same course.

use clockjack::{prelude::*, testkit::ManualTime};

use {{crate}}::{Msg, Throttle};

const PERIOD: Duration = Duration::from_secs(60);

fn throttle(time: &ManualTime, burst: u32) -> ActorRef<Msg> {
    time.spawn("throttle", move || Throttle::new(burst, PERIOD))
}

/// How many of so many requests are let through now.
fn let_through(time: &ManualTime, throttle: &ActorRef<Msg>, requests: u32) -> u32 {
    let mut n = 0;
    for _ in 0..requests {
        let answer = time.block_on(throttle.ask(Msg::Enter, Duration::from_secs(1)));
        n += u32::from(answer.expect("a throttle answers"));
    }
    n
}

#[test]
fn a_burst_is_let_through_and_no_more() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    assert_eq!(let_through(&time, &throttle, 5), 3);
}

#[test]
fn each_period_lets_one_more_through() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    assert_eq!(let_through(&time, &throttle, 3), 3);
    time.advance(PERIOD - Duration::from_millis(1));
    assert_eq!(
        let_through(&time, &throttle, 1),
        0,
        "a millisecond too soon"
    );
    time.advance(Duration::from_millis(1));
    assert_eq!(let_through(&time, &throttle, 2), 1);
    time.advance(2 * PERIOD);
    assert_eq!(let_through(&time, &throttle, 3), 2);
}

#[test]
fn a_quiet_day_saves_up_no_more_than_a_burst() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    time.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(let_through(&time, &throttle, 5), 3);
    time.expect_no_failures();
}
