//! Tests the throttle in virtual time: nothing sleeps, and every run is the same.

use clockjack::{prelude::*, testkit::ManualTime};

use {{crate}}::{Msg, Throttle};

const PERIOD: Duration = Duration::from_secs(60);

fn throttle(time: &ManualTime, burst: u32) -> ActorRef<Msg> {
    time.spawn("throttle", move || Throttle::new(burst, PERIOD))
}

/// Sends `requests` requests and returns how many are admitted now.
fn admitted(time: &ManualTime, throttle: &ActorRef<Msg>, requests: u32) -> u32 {
    let mut n = 0;
    for _ in 0..requests {
        let answer = time.block_on(throttle.ask(Msg::Enter, Duration::from_secs(1)));
        n += u32::from(answer.expect("the throttle answers"));
    }
    n
}

#[test]
fn only_a_burst_is_admitted() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    assert_eq!(admitted(&time, &throttle, 5), 3);
}

#[test]
fn each_period_admits_one_more() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    assert_eq!(admitted(&time, &throttle, 3), 3);
    time.advance(PERIOD - Duration::from_millis(1));
    assert_eq!(
        admitted(&time, &throttle, 1),
        0,
        "one millisecond too early"
    );
    time.advance(Duration::from_millis(1));
    assert_eq!(admitted(&time, &throttle, 2), 1);
    time.advance(2 * PERIOD);
    assert_eq!(admitted(&time, &throttle, 3), 2);
}

#[test]
fn a_quiet_day_admits_no_more_than_a_burst() {
    let time = ManualTime::start();
    let throttle = throttle(&time, 3);
    time.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(admitted(&time, &throttle, 5), 3);
    time.expect_no_failures();
}
