//! Operations of `clockjack-actor`, in manual time.

use core::{hint::black_box, time::Duration};

use clockjack_actor::{Actor, Context, Failure, Next, Props};
use clockjack_testkit::ManualTime;

use crate::operation::{Operation, operation};

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("actor/tell", 1000, || {
            let time = ManualTime::start();
            let to = time.spawn("adder", Props::new(|| Adder(0)));
            time.settle();
            move |n| {
                (0..n).for_each(|_| {
                    to.tell(1).expect("it has room");
                    time.settle();
                });
            }
        }),
        // With the message that makes the actor do so, which costs as much as `actor/tell`.
        operation("actor/timer_arm_cancel", 1000, || {
            let time = ManualTime::start();
            let to = time.spawn("armer", Props::new(|| Armer));
            to.tell(()).expect("it has room");
            time.settle();
            move |n| {
                (0..n).for_each(|_| {
                    to.tell(()).expect("it has room");
                    time.settle();
                });
            }
        }),
        operation("actor/spawn_stop", 1000, || {
            let time = ManualTime::start();
            time.settle();
            move |n| {
                (0..n).for_each(|_| {
                    let to = time.spawn("adder", Props::new(|| Adder(0)));
                    to.tell(0).expect("it has room");
                    time.settle();
                });
            }
        }),
    ]
}

/// Stops when it is sent a zero.
struct Adder(u64);

impl Actor for Adder {
    type Msg = u64;

    fn receive(&mut self, _cx: &mut Context<'_, Self>, n: u64) -> Result<Next, Failure> {
        self.0 = black_box(self.0 + n);
        Ok(if n == 0 { Next::Stop } else { Next::Stay })
    }
}

/// Arms a timer and cancels it for each message.
struct Armer;

impl Actor for Armer {
    type Msg = ();

    fn receive(&mut self, cx: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        let mut timers = cx.timers();
        timers.single("timeout", Duration::from_secs(30), ())?;
        black_box(timers.cancel("timeout"));
        Ok(Next::Stay)
    }
}
